"""Collections: what is accepted stays, what is removed is gone, names are only names."""

from __future__ import annotations

import sqlite3
import threading
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from core import collection as collections
from core.collection import (
    Collection,
    create,
    delete,
    list_collections,
    open_collection,
    open_or_create,
    rename,
)
from core.database import clear_errors
from core.errors import CollectionError, RankscopeError
from core.home import home
from core.loading import load
from core.sample import SAMPLE, ensure_sample
from core.settings import SearchSettings, Settings
from core.types import Document, Heading, Page, Table


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def put(collection: Collection, name: str, text: str) -> collections.AddResult:
    data = text.encode()
    return collection.add(load(data, name), name, len(data))


def test_a_document_comes_back_as_it_went_in() -> None:
    made = create("kept")
    loaded = load(
        b"# Opening\n\nPumps hold.\n\n| part | state |\n| --- | --- |\n| P-1 | new |\n", "a.md"
    )
    rich = Document(
        "rich",
        "a.md",
        "Title",
        "Opening\nx\ty\n1\t2\n\U0001f98e",
        (Heading(1, "Opening", 0, 7),),
        (Page("1", 0), Page("ii", 8)),
        (Table("x\ty", 8, 15, ((12, 15),)),),
        MappingProxyType({"year": 2023.0, "open": True, "tags": ("a", "b"), "by": "Ana"}),
        ((0, 7), (8, 15)),
    )
    made.add(replace(loaded, documents=(*loaded.documents, rich)), "a.md", 70)
    documents = made.documents()
    assert list(documents) == [*loaded.documents, rich]
    assert documents.ids == (loaded.documents[0].id, "rich")
    assert documents.lengths == tuple(len(document.text) for document in documents)
    (file,) = made.files()
    assert (file.name, file.size, file.documents, file.format) == ("a.md", 70, 2, "Markdown")


def test_the_same_bytes_change_nothing() -> None:
    made = create("twice")
    assert put(made, "a.txt", "one pump").status == "added"
    version = made.version
    again = put(made, "b.txt", "one pump")
    assert (again.status, again.file.name) == ("same", "a.txt")
    assert made.version == version
    assert [file.name for file in made.files()] == ["a.txt"]


def test_a_new_version_replaces_the_old_at_once() -> None:
    made = create("versions")
    put(made, "a.txt", "old words")
    put(made, "b.txt", "other words")
    before = made.documents()
    old = made.find_by_name("a.txt")
    assert old is not None
    loaded = load(b"new words", "a.txt")
    result = made.replace(old.file_hash, loaded, "a.txt", 9)
    assert result.status == "replaced"
    assert [document.text for document in made.documents()] == ["other words", "new words"]
    assert made.documents().version == made.version > before.version
    assert before[1].text == "other words"
    with pytest.raises(CollectionError, match=r"'a\.txt' was removed or replaced meanwhile; reload"):
        before[0]


def test_the_same_file_read_in_another_way_replaces_itself() -> None:
    made = create("again")
    data = "caf\xe9".encode("cp1252")
    first = load(data, "a.txt")
    made.add(first, "a.txt", 4)
    second = replace(first, documents=(replace(first.documents[0], text="cafe, read anew"),))
    assert made.replace(first.file_hash, second, "a.txt", 4).status == "replaced"
    assert [document.text for document in made.documents()] == ["cafe, read anew"]


def test_a_failed_replacement_leaves_the_old_file() -> None:
    made = create("atomic")
    put(made, "a.txt", "old words")
    put(made, "b.txt", "in the way")
    version, old = made.version, made.files()[0]
    loaded = load(b"new words", "a.txt")
    clash = replace(loaded.documents[0], id=made.documents().ids[1])
    with pytest.raises(CollectionError):
        made.replace(old.file_hash, replace(loaded, documents=(clash,)), "a.txt", 9)
    assert [document.text for document in made.documents()] == ["old words", "in the way"]
    assert made.version == version


def test_removing_takes_all_documents_of_the_file_and_no_others() -> None:
    made = create("less")
    put(made, "r.jsonl", '{"text": "first record"}\n{"text": "second record"}\n')
    put(made, "b.txt", "stays")
    assert len(made.documents()) == 3
    made.remove(made.files()[0].file_hash)
    assert [document.text for document in made.documents()] == ["stays"]
    with pytest.raises(CollectionError, match="has no file 0000"):
        made.remove("0000")


@pytest.mark.parametrize(
    "name",
    ["../../outside", "CON", "a/b\\c", "\U0001f9ca Kühlkette 表", "--help", "." * 100, "a'; DROP"],
)
def test_any_name_is_only_a_name(name: str, data_folder: Path) -> None:
    made = create(name)
    put(made, "../../climb.txt", "inside")
    assert [info.name for info in list_collections()] == [name]
    assert open_collection(name) is made
    assert made.folder.parent == home() / "collections"
    assert made.folder.name.isalnum()
    assert {path.name for path in data_folder.parent.iterdir()} == {"home"}
    with pytest.raises(CollectionError, match="already"):
        create(name)


@pytest.mark.parametrize("name", ["", "  \n ", "x" * 101])
def test_blank_and_overlong_names_are_refused(name: str) -> None:
    with pytest.raises(CollectionError, match=r"type one|limit is 100"):
        create(name)
    assert list_collections() == []


def test_rename_and_delete() -> None:
    made = create("first")
    create("second")
    put(made, "a.txt", "words")
    rename("first", "third")
    assert [info.name for info in list_collections()] == ["second", "third"]
    assert open_collection("third").files()[0].name == "a.txt"
    with pytest.raises(CollectionError, match="already"):
        rename("third", "second")
    folder = made.folder
    delete("third")
    assert not folder.exists()
    assert [info.name for info in list_collections()] == ["second"]
    with pytest.raises(CollectionError, match="no collection 'third'; there are: second"):
        open_collection("third")
    with pytest.raises(CollectionError, match="was deleted"):
        made.files()


def test_settings_and_queries_are_kept() -> None:
    made = create("kept")
    assert made.settings() == Settings()
    chosen = Settings(search=SearchSettings(k_rrf=7).with_index("bm25", weight=0.5))
    version = made.version
    made.save_settings(chosen)
    for number in range(3):
        made.log_query(f"query {number} \ud800", "k=5", {"passages": number})
    assert made.settings() == chosen
    assert [query.text for query in made.queries(2)] == ["query 2 �", "query 1 �"]
    assert made.queries()[0].summary == {"passages": 2}
    assert made.version == version, "the documents are the same: nobody need index again"
    made.forget_queries()
    assert made.queries() == []


def test_threads_add_at_the_same_time() -> None:
    made = create("busy")
    failed: list[BaseException] = []

    def work(part: int) -> None:
        try:
            for number in range(10):
                put(made, f"{part}-{number}.txt", f"document {part} {number}")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(part,)) for part in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert made.version == 30
    assert {document.text for document in made.documents()} == {
        f"document {part} {number}" for part in range(3) for number in range(10)
    }


def test_a_newer_format_is_refused_with_the_reason() -> None:
    made = create("newer")
    made._database.execute("PRAGMA user_version=99")
    made.close()
    collections._open.clear()
    with pytest.raises(CollectionError, match="'newer' has the format 99, this Rankscope knows 1"):
        open_collection("newer")


def test_a_damaged_database_is_named() -> None:
    made = create("broken")
    put(made, "a.txt", "words")
    made.close()
    collections._open.clear()
    path = made.folder / "collection.db"
    for extra in made.folder.glob("collection.db-*"):
        extra.unlink()
    path.write_bytes(b"no database at all, " * 500)
    with pytest.raises(CollectionError, match=r"collection 'broken'.*damaged") as raised:
        open_collection("broken")
    assert str(path) in str(raised.value)
    assert [info.name for info in list_collections()] == ["broken"]


def test_a_folder_that_cannot_be_used_is_one_clear_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("RANKSCOPE_HOME", str(blocked / "inside"))
    with pytest.raises(RankscopeError, match="set RANKSCOPE_HOME to another folder"):
        list_collections()


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (sqlite3.OperationalError("database or disk is full"), "the disk that holds .* is full"),
        (sqlite3.OperationalError("attempt to write a readonly database"), "make it writable"),
        (sqlite3.OperationalError("database is locked"), "another program is writing"),
        (sqlite3.DatabaseError("database disk image is malformed"), "damaged"),
        (OSError(28, "No space left on device"), "is full"),
        (PermissionError(13, "Permission denied"), "Permission denied; make it writable"),
    ],
)
def test_what_the_disk_says_is_told_with_a_remedy(raised: Exception, told: str) -> None:
    with (
        pytest.raises(CollectionError, match=f"^collection 'x': .*{told}"),
        clear_errors("collection 'x'", Path("x.db")),
    ):
        raise raised


def test_the_sample_is_made_once_and_its_deletion_respected() -> None:
    made = ensure_sample()
    assert made is not None
    assert made.name == SAMPLE
    formats = {file.format for file in made.files()}
    assert len(formats) >= 6
    records = [file for file in made.files() if file.format in ("CSV", "JSONL")]
    assert records
    assert all(file.documents > 1 for file in records)
    version = made.version
    assert ensure_sample() is made
    assert made.version == version
    delete(SAMPLE)
    assert ensure_sample() is None
    assert list_collections() == []


def test_the_sample_goes_on_after_a_stop() -> None:
    class Halt(RuntimeError):
        pass

    def stop(done: int, total: int) -> None:
        if done == 3:
            raise Halt

    with pytest.raises(Halt):
        ensure_sample(stop)
    made = ensure_sample()
    assert made is not None
    names = [file.name for file in made.files()]
    assert len(names) == len(set(names)) > 3


def test_settings_of_another_version_give_the_defaults_and_say_so() -> None:
    made = create("old")
    made._database.execute("INSERT INTO meta VALUES ('settings', 'search.sharpness = 3')")
    assert made.settings() == Settings()
    assert "no setting search.sharpness" in made.settings_note
    made.save_settings(Settings())
    assert made.settings() == Settings()
    assert made.settings_note == ""


@pytest.mark.parametrize("name", ["", " ", "\x00", "\u200b", "\u200d\u200b "])
def test_a_name_that_cannot_be_seen_is_refused(name: str) -> None:
    with pytest.raises(CollectionError, match="a name that can be seen"):
        create(name)


def test_control_characters_are_no_part_of_a_name() -> None:
    assert create("a\x00b\x1b[31m").name == "ab[31m"
    assert create("👩🏽\u200d🔧 / 表").name == "👩🏽\u200d🔧 / 表"


def test_open_or_create() -> None:
    made = open_or_create("Re\u0301sume\u0301")
    assert made is open_or_create("R\u00e9sum\u00e9") is open_collection("R\u00e9sum\u00e9")
    with pytest.raises(CollectionError, match="the limit is 100"):
        open_or_create("x" * 101)
