"""Collections: what is accepted stays, what is removed is gone, names are only names."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import pytest

from core import collection as collections
from core.access import Access, parse_access
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
from core.documents import ChosenDocuments
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


def test_the_same_bytes_for_others_do_not_change_who_may_see_them() -> None:
    made = create("Mine")
    loaded = load(b'{"text": "Pay one."}\n{"text": "Pay two."}\n', "pay.jsonl")
    said = "the same bytes are already here as pay.jsonl"
    finance = parse_access("finance")
    assert made.add(loaded, "pay.jsonl", 9, finance).note == ""
    assert made.add(loaded, "copy.jsonl", 9, finance).note == said
    told = f"{said}; who may see it was not changed: group:finance"
    assert made.add(loaded, "pay.jsonl", 9).note == told
    assert made.already_here(loaded.file_hash, None) == told
    assert made.already_here(loaded.file_hash) == said
    assert made.already_here("gone") == ""
    assert set(made.documents().access) == {finance}
    made.set_access(made.documents().ids[:1], None)
    mixed = made.add(loaded, "pay.jsonl", 9, parse_access("nobody"))
    assert mixed.note == f"{said}; who may see it was not changed: not the same for all its documents"

    other = load(b"Other.", "other.txt")
    made.add(other, "other.txt", 6, finance)
    assert made.replace(other.file_hash, loaded, "pay.jsonl", 9, finance).note == mixed.note


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
    with pytest.raises(CollectionError, match="'newer' has the format 99, this Rankscope knows 2"):
        open_collection("newer")


_FORMAT_1 = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO meta VALUES ('version', '7');
CREATE TABLE files(
    file_hash TEXT PRIMARY KEY, name TEXT NOT NULL, format TEXT NOT NULL, encoding TEXT,
    warnings TEXT NOT NULL, pages INTEGER NOT NULL, characters INTEGER NOT NULL,
    headings INTEGER NOT NULL, documents INTEGER NOT NULL, size INTEGER NOT NULL,
    added_at TEXT NOT NULL);
CREATE INDEX files_by_name ON files(name);
CREATE TABLE documents(
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
    file_hash TEXT NOT NULL REFERENCES files(file_hash) ON DELETE CASCADE,
    name TEXT NOT NULL, title TEXT NOT NULL, digest TEXT NOT NULL, length INTEGER NOT NULL,
    structure TEXT NOT NULL, metadata TEXT NOT NULL, text TEXT NOT NULL);
CREATE INDEX documents_by_file ON documents(file_hash);
CREATE INDEX documents_listed ON documents(seq, id, name, title, digest, length, file_hash);
CREATE TABLE queries(
    seq INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL, link TEXT NOT NULL, at TEXT NOT NULL,
    summary TEXT NOT NULL);
INSERT INTO files VALUES ('f1', 'a.txt', 'plain text', 'utf-8', '[]', 1, 9, 0, 1, 9, '2025-03-01T08:00:00+00:00');
INSERT INTO documents VALUES (4, 'f1', 'f1', 'a.txt', 'A', 'digest', 9,
    '{"headings": [], "pages": [], "tables": [], "chunks": []}', '{"year": 2023.0}', 'one pump.');
INSERT INTO queries VALUES (1, 'pump', 'k=5', '2025-03-02T08:00:00+00:00', '{"passages": 1}');
"""


def test_a_collection_of_the_first_format_is_brought_to_this_one() -> None:
    made = create("earlier")
    made.close()
    collections._open.clear()
    for path in made.folder.glob("collection.db*"):
        path.unlink()
    with closing(sqlite3.connect(made.folder / "collection.db")) as database:
        database.executescript(_FORMAT_1 + "PRAGMA user_version=1;")
    opened = open_collection("earlier")
    documents = opened.documents()
    assert [document.text for document in documents] == ["one pump."]
    assert (documents.version, documents.access, documents.metadata()) == (
        7,
        (None,),
        ({"year": 2023.0},),
    )
    assert documents.added() == ("2025-03-01T08:00:00+00:00",)
    assert [(query.text, query.viewer) for query in opened.queries()] == [("pump", "")]
    assert (opened.field_kinds(), opened.rules_text(), opened.facts_version) == ({}, "", 0)
    opened.set_access(["f1"], parse_access("finance"))
    opened.log_query("seal", "", {}, "anna@x.org")
    opened.close()
    collections._open.clear()
    again = open_collection("earlier")  # the second time there is nothing to bring anywhere
    assert again.documents().access == (frozenset({"group:finance"}),)
    assert [query.viewer for query in again.queries()] == ["anna@x.org", ""]


def test_who_may_see_a_document_is_kept_and_makes_a_new_version() -> None:
    made = create("limited")
    loaded = load(b"first", "a.txt")
    made.add(loaded, "a.txt", 5, access=parse_access("anna@x.org"))
    put(made, "b.txt", "second")
    before = made.documents()
    assert before.access == (frozenset({"user:anna@x.org"}), None)
    odd = frozenset({'group:sales, "emea"; all', "user:\u00e9@x"})
    assert made.set_access(before.ids, odd) == 2
    assert made.documents().access == (odd, odd)
    assert made.version == before.version + 1
    assert before.access == (frozenset({"user:anna@x.org"}), None), "a version stays what it was"
    assert made.set_access(before.ids[:1], None) == 1
    assert made.set_access(before.ids[1:], frozenset()) == 1
    assert made.documents().access == (None, frozenset())
    version = made.version
    with pytest.raises(CollectionError, match="no document 'gone'"):
        made.set_access([before.ids[1], "gone"], None)
    assert made.documents().access == (None, frozenset())
    assert made.set_access([], None) == 0
    assert made.version == version


@pytest.mark.parametrize(
    ("before", "given", "after"),
    [
        (["finance", "finance"], "kept", "finance"),
        (["everyone", "everyone"], "kept", "everyone"),
        (["everyone", "finance, sales"], "kept", "finance, sales"),
        (["finance, sales", "sales"], "kept", "sales"),
        (["finance", "sales"], "kept", "nobody"),
        (["finance", "sales"], None, "everyone"),
        (["everyone", "everyone"], frozenset({"group:board"}), "board"),
    ],
)
def test_a_replaced_file_is_for_those_who_might_see_all_of_the_old_one(
    before: list[str], given: Access | Literal["kept"], after: str
) -> None:
    made = create("again")
    old = load(b'{"text": "first"}\n{"text": "second"}\n', "r.jsonl")
    made.add(old, "r.jsonl", 40)
    for identity, access in zip(made.documents().ids, before, strict=True):
        made.set_access([identity], parse_access(access))
    made.replace(old.file_hash, load(b'{"text": "third"}\n', "r.jsonl"), "r.jsonl", 20, given)
    assert made.documents().access == (parse_access(after),)


def test_a_file_read_anew_keeps_who_may_see_each_record() -> None:
    made = create("anew")
    old = load(b'{"text": "first"}\n{"text": "second"}\n', "r.jsonl")
    made.add(old, "r.jsonl", 40)
    one, _ = made.documents().ids
    made.set_access([one], parse_access("board"))
    made.replace(old.file_hash, old, "r.jsonl", 40)
    assert made.documents().access == (frozenset({"group:board"}), None)


def test_a_removed_document_leaves_no_access_to_the_next() -> None:
    made = create("gone")
    loaded = load(b"secret", "a.txt")
    made.add(loaded, "a.txt", 6, access=frozenset())
    made.remove(loaded.file_hash)
    made.add(loaded, "a.txt", 6)
    assert made.documents().access == (None,)


def test_access_from_a_field_of_the_documents() -> None:
    made = create("field")
    rows = [
        '{"text": "a", "readers": "finance, anna@x.org"}',
        '{"text": "b", "readers": ["group:sales, north", "bo@x.org"]}',
        '{"text": "c"}',
        '{"text": "d", "readers": "team:red"}',
        '{"text": "e", "readers": 7}',
        '{"text": "f", "readers": "everyone"}',
        '{"text": "g", "readers": " ,"}',
        '{"text": "h", "readers": ["", ""]}',
    ]
    data = "\n".join(rows).encode()
    made.add(load(data, "r.jsonl"), "r.jsonl", len(data), access=frozenset())
    count, problems = made.set_access_from_field("readers")
    assert count == 3
    assert [access and sorted(access) for access in made.documents().access] == [
        ["group:finance", "user:anna@x.org"],
        ["group:sales, north", "user:bo@x.org"],
        frozenset(),
        frozenset(),
        frozenset(),
        None,
        frozenset(),
        frozenset(),
    ], "what names nobody opens nothing"
    assert "'team:red' is neither a user nor a group" in problems[0]
    assert "readers is 7" in problems[1]
    assert "names nobody" in problems[2]
    assert "names nobody" in problems[3]
    assert problems[4] == "1 document has no readers: of r.jsonl"
    version = made.version
    assert made.set_access_from_field("owner") == (
        0,
        ["8 documents have no owner: of r.jsonl"],
    )
    assert made.version == version


def test_metadata_is_read_without_texts_and_once() -> None:
    made = create("facts")
    rows = b'{"text": "a", "year": 2023, "tags": ["x", "y"]}\n{"text": "b", "year": 2024}\n'
    made.add(load(rows, "r.jsonl"), "r.jsonl", len(rows))
    put(made, "b.txt", "plain")
    documents = made.documents()
    assert documents.metadata()[:2] == tuple(document.metadata for document in documents)[:2]
    assert documents.metadata()[0]["tags"] == ("x", "y")
    assert documents.metadata() is documents.metadata()
    assert set(documents.added()) == {file.added_at for file in made.files()}
    part = ChosenDocuments(documents, [1, 2])
    assert part.metadata() == documents.metadata()[1:]
    assert part.added() == documents.added()[1:]
    made.remove(made.files()[1].file_hash)
    assert part.metadata()[0]["year"] == 2024, "what was read stays"


def test_rules_and_kinds_of_fields_have_a_version_of_their_own() -> None:
    made = create("rules")
    version = made.version
    made.save_rules("[[rule]]")
    made.set_field_kind("year", "number")
    made.set_field_kind("state", "text")
    made.set_field_kind("year", "date")
    assert made.facts_version == 4
    assert made.rules_text() == "[[rule]]"
    assert made.field_kinds() == {"state": "text", "year": "date"}
    made.set_field_kind("year", None)
    assert made.field_kinds() == {"state": "text"}
    assert made.version == version


def test_each_viewer_has_past_queries_of_their_own() -> None:
    made = create("asked")
    for viewer in ("", "anna", "bo", "anna"):
        made.log_query(f"of {viewer}", "", {}, viewer)
    assert [query.text for query in made.queries(1, "anna")] == ["of anna"]
    assert [query.viewer for query in made.queries(viewer="anna")] == ["anna", "anna"]
    assert [query.viewer for query in made.queries(viewer="")] == [""]
    assert len(made.queries()) == 4
    made.forget_queries("anna")
    assert [query.viewer for query in made.queries()] == ["bo", ""]


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
