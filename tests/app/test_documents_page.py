"""The Documents page: collections, uploads, what is in the collection."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

import core.embedding
import core.vectors_cache
from core.access import parse_access
from core.collection import Collection, list_collections, open_collection
from core.errors import CollectionError, PasswordNeeded, Stopped
from core.loading import Limits, LoadOptions, load
from core.settings import DEFAULT_MODEL
from pages.ui import resources
from pages.ui.ingest import Incoming, Task, ingest
from tests.app.conftest import DOCUMENTS, add, shown_text
from tests.fakes import HashEmbedder

OpenPage = Callable[..., AppTest]
PAGE = "pages/documents.py"


def upload(test: AppTest, *files: tuple[str, bytes]) -> AppTest:
    """Choose files, as they stand in the uploader before they are added."""
    given = [(name, data, "application/octet-stream") for name, data in files]
    return test.file_uploader[0].set_value(given).run()


def results(test: AppTest) -> list[dict[str, Any]]:
    """The table of results of the last upload."""
    return test.dataframe[0].value.to_dict("records")


def listed(test: AppTest) -> list[dict[str, Any]]:
    """The table of what is in the collection."""
    return test.dataframe[-1].value.to_dict("records")


def keys(test: AppTest) -> set[str]:
    return {button.key for button in test.button}


def names(collection: Collection) -> list[str]:
    return [file.name for file in collection.files()]


def test_an_empty_collection_says_what_to_do_next(empty: Collection, open_page: OpenPage) -> None:
    test = open_page(PAGE)

    assert not test.exception
    assert "This collection is empty" in shown_text(test)
    assert "Add the sample documents" in [button.label for button in test.button]
    limits = "50 MiB a file (200 MiB unpacked), 1,000 files and 500 MiB an upload"
    assert limits in "".join(caption.value for caption in test.caption)


def test_the_sample_documents_can_be_added(
    empty: Collection, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = [("one.txt", b"First sample."), ("two.csv", b"a,b\n1,2\n3,4\n")]
    monkeypatch.setattr("core.sample.sample_files", lambda: sample)
    open_page(PAGE).button(key="sample_add").click().run()

    assert names(empty) == ["one.txt", "two.csv"]
    assert len(empty.documents()) == 3


def test_a_file_that_fails_is_told_and_the_others_are_added_and_indexed(
    empty: Collection, open_page: OpenPage
) -> None:
    test = upload(
        open_page(PAGE),
        ("seals.md", b"# Seals\n\nA worn seal leaks.\n"),
        ("broken.pdf", b"%PDF-1.7 nothing of a PDF"),
        ("zero.txt", b""),
        ("belts.txt", "Der Riemen läuft.".encode("cp1252")),
    )
    assert names(empty) == []  # nothing is added before it is asked for
    test.button(key="upload_add").click().run()

    assert not test.exception
    assert names(empty) == ["seals.md", "belts.txt"]
    assert [(row["File"], row["Result"]) for row in results(test)] == [
        ("broken.pdf", "failed"),  # what failed stands first
        ("zero.txt", "failed"),
        ("seals.md", "added"),
        ("belts.txt", "added"),
    ]
    assert "Last upload, 4 files: 2 added, 2 failed" in [caption.value for caption in test.caption]
    _, _, seals, belts = results(test)
    assert (seals["Documents"], seals["Characters"], seals["Headings"]) == (1, 28, 1)
    assert belts["Encoding"] == "cp1252"
    said = shown_text(test)
    assert "broken.pdf: damaged PDF" in said
    assert "zero.txt: empty file" in said
    assert "Indexed: 2 chunks of 2 documents." in said
    assert [(row["Name"], row["Chunks"]) for row in listed(test)] == [("seals.md", 1), ("belts.txt", 1)]


def test_the_same_bytes_are_recognised_under_another_name(
    machines: Collection, open_page: OpenPage
) -> None:
    data = DOCUMENTS["lamps.md"].encode()

    test = upload(open_page(PAGE), ("copy.md", data))
    (question,) = [radio for radio in test.radio if radio.key.startswith("upload_same")]
    assert question.label == "`copy.md`: the same bytes are here as `lamps.md`"
    version = machines.version
    test.button(key="upload_add").click().run()

    assert results(test)[0]["Result"] == "already here"
    assert results(test)[0]["Notes"] == "the same bytes are already here as lamps.md"
    assert machines.version == version


def test_the_same_bytes_for_others_are_said_to_stay_as_they_are(machines: Collection) -> None:
    same = Incoming.of("copy.md", DOCUMENTS["lamps.md"].encode())
    task = Task(same, LoadOptions(), access=parse_access("group:legal"))
    outcome = ingest(task, machines, Limits())
    assert (outcome.status, outcome.message) == (
        "already here",
        "the same bytes are already here as lamps.md; who may see it was not changed: everyone",
    )
    assert set(machines.documents().access) == {None}


@pytest.mark.parametrize(
    ("answer", "left", "result"),
    [("replace", ["New text."], "replaced"), ("both", ["Old text.", "New text."], "kept both")],
)
def test_the_same_name_with_new_content_is_asked(
    empty: Collection, open_page: OpenPage, answer: str, left: list[str], result: str
) -> None:
    add(empty, "policy.txt", "Old text.")

    test = upload(open_page(PAGE), ("policy.txt", b"New text."))
    (question,) = [radio for radio in test.radio if radio.key.startswith("upload_version")]
    question.set_value(answer)
    test.button(key="upload_add").click().run()

    assert [document.text for document in empty.documents()] == left
    assert results(test)[0]["Result"] == result
    assert f"Indexed: {len(left)} chunk" in shown_text(test)


@pytest.mark.parametrize(("answer", "documents"), [("items", 2), ("table", 1)])
def test_records_are_items_or_one_table_as_answered(
    empty: Collection, open_page: OpenPage, answer: str, documents: int
) -> None:
    test = upload(open_page(PAGE), ("parts.csv", b"name,price\nseal,3\nbelt,4\n"))
    (question,) = test.radio
    assert question.value == "items"
    question.set_value(answer)
    test.button(key="upload_add").click().run()

    assert len(empty.documents()) == documents
    assert results(test)[0]["Documents"] == documents


def test_many_files_of_records_are_asked_about_together(empty: Collection, open_page: OpenPage) -> None:
    files = [(f"{n}.csv", f"name,price\nseal,{n}\nbelt,4\n".encode()) for n in range(7)]
    test = upload(open_page(PAGE), *files)
    (question,) = test.radio
    assert question.label == "All 7 files"
    question.set_value("table")
    test.button(key="upload_add").click().run()

    assert [file.documents for file in empty.files()] == [1] * 7


@pytest.mark.parametrize(
    "name", ["../../escaped.txt", "..\\escaped.txt", "/etc/escaped.txt", "a" * 300, "NO_ENDING"]
)
def test_no_name_reaches_outside_the_data_folder(
    home: Path, empty: Collection, open_page: OpenPage, name: str
) -> None:
    test = upload(open_page(PAGE), (name, b"Text."))
    test.button(key="upload_add").click().run()

    assert len(empty.files()) == 1
    assert not list(home.parent.rglob("*escaped*"))
    assert not list(home.rglob("*NO_ENDING*"))


def test_chunks_made_elsewhere_are_taken_as_they_are(empty: Collection, open_page: OpenPage) -> None:
    lines = [{"document": "d", "text": "one two"}, {"document": "d", "text": "three"}]
    data = "\n".join(json.dumps(line) for line in lines).encode()

    test = upload(open_page(PAGE), ("chunks.jsonl", data))
    test.radio[0].set_value("chunks")
    test.button(key="upload_add").click().run()

    (document,) = empty.documents()
    assert [document.text[start:end] for start, end in document.chunks] == ["one two", "three"]
    assert listed(test)[0]["Chunks"] == 2


def test_a_file_can_be_read_again_in_another_way(empty: Collection, open_page: OpenPage) -> None:
    data = "Über uns".encode("cp1252")
    test = upload(open_page(PAGE), ("us.txt", data))
    test.selectbox(key="upload_encoding").set_value("cp1251")
    test.button(key="upload_add").click().run()
    assert empty.documents()[0].text == data.decode("cp1251")

    test = upload(test, ("us.txt", data))
    test.radio[0].set_value("again")
    test.selectbox(key="upload_encoding").set_value("cp1252")
    test.button(key="upload_add").click().run()

    assert [document.text for document in empty.documents()] == ["Über uns"]
    assert results(test)[0]["Result"] == "replaced"


def test_an_upload_above_the_limits_is_refused_as_a_whole(
    empty: Collection, open_page: OpenPage
) -> None:
    test = open_page(PAGE)
    test.number_input(key="upload_limit_files").set_value(1)
    test.button(key="upload_limits_use").click().run()
    assert "1 file and" in "".join(caption.value for caption in test.caption)
    test = open_page(PAGE)  # another window: limits are kept
    assert test.number_input(key="upload_limit_files").value == 1
    assert test.number_input(key="upload_limit_file_bytes").max == st.get_option("server.maxUploadSize")
    test = upload(test, ("a.txt", b"A."), ("b.txt", b"B."))

    assert "This upload is not taken: 2 files in one upload; the limit is 1" in shown_text(test)
    assert "upload_add" not in keys(test)


def test_stop_keeps_what_is_added_and_a_second_upload_takes_the_rest(
    empty: Collection, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pages.ui.uploads as uploads

    real = uploads._next

    def one_then_stop(job, collection):  # type: ignore[no-untyped-def]
        real(job, collection)
        uploads._stop()  # the button's callback

    monkeypatch.setattr(uploads, "_next", one_then_stop)
    files = [("a.txt", b"First."), ("b.txt", b"Second."), ("c.txt", b"Third.")]
    test = upload(open_page(PAGE), *files)
    test.button(key="upload_add").click().run()
    assert names(empty) == ["a.txt"]
    assert "Stopped: 2 files not added." in shown_text(test)

    monkeypatch.setattr(uploads, "_next", real)
    test = upload(test, *files)
    test.button(key="upload_add").click().run()
    assert [row["Result"] for row in results(test)] == ["already here", "added", "added"]
    assert names(empty) == ["a.txt", "b.txt", "c.txt"]


def test_a_widget_touched_while_files_are_read_loses_and_doubles_nothing(
    empty: Collection, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pages.ui.uploads as uploads

    said: list[str] = []

    class RestartsOnce(uploads.Meter):
        def say(self, done: float, total: float, text: str) -> None:
            super().say(done, total, text)
            said.append(text)
            if len(said) == 2:
                uploads.st.rerun()  # what Streamlit does when a widget is touched

    monkeypatch.setattr(uploads, "Meter", RestartsOnce)
    test = upload(open_page(PAGE), *[(f"{n}.txt", f"Text {n}.".encode()) for n in range(3)])
    test.button(key="upload_add").click().run()

    assert [text.split(" · ")[0] for text in said] == [
        "Reading 1 of 3",
        "Reading 2 of 3",
        "Reading 2 of 3",
        "Reading 3 of 3",
    ]
    assert [(row["File"], row["Result"]) for row in results(test)] == [
        ("0.txt", "added"),
        ("1.txt", "added"),
        ("2.txt", "added"),
    ]
    assert names(empty) == ["0.txt", "1.txt", "2.txt"]


def test_an_upload_whose_window_was_closed_is_offered_to_the_next(
    empty: Collection, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pages.ui.uploads as uploads

    real = uploads._next

    def one_then_gone(job, collection):  # type: ignore[no-untyped-def]
        real(job, collection)
        uploads.st.stop()

    monkeypatch.setattr(uploads, "_next", one_then_gone)
    first = upload(open_page(PAGE), *[(f"{n}.txt", f"Text {n}.".encode()) for n in range(3)])
    first.button(key="upload_add").click().run()
    assert names(empty) == ["0.txt"]
    monkeypatch.setattr(uploads, "_next", real)

    second = open_page(PAGE)
    assert "An upload was interrupted: 2 files of 3 not read yet." in shown_text(second)
    second.button(key="upload_go_on").click().run()

    assert names(empty) == ["0.txt", "1.txt", "2.txt"]
    assert [row["Result"] for row in results(second)] == ["added"] * 3
    assert "upload_go_on" not in keys(open_page(PAGE))


def test_an_encrypted_file_asks_for_its_password_and_goes_on(
    empty: Collection, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pages.ui.ingest as ingest

    real = ingest.load

    def locked(data, name, options, limits):  # type: ignore[no-untyped-def]
        if name == "locked.txt" and options.password != "open sesame":
            raise PasswordNeeded("password protected: give its password")
        return real(data, name, options, limits)

    monkeypatch.setattr(ingest, "load", locked)
    test = upload(open_page(PAGE), ("locked.txt", b"Secret."), ("free.txt", b"Free."))
    test.button(key="upload_add").click().run()
    assert "locked.txt: password protected" in shown_text(test)
    assert names(empty) == ["free.txt"]

    for password, left in [("wrong", ["free.txt"]), ("open sesame", ["free.txt", "locked.txt"])]:
        test.text_input(key="upload_unlock_password").set_value(password)
        test.button(key="upload_unlock_try").click().run()
        assert names(empty) == left
    assert [(row["File"], row["Result"]) for row in results(test)] == [
        ("free.txt", "added"),
        ("locked.txt", "added"),
    ]
    assert "upload_unlock_try" not in keys(test)
    assert "open sesame" not in str(test.session_state["upload_job"])


def test_indexing_that_was_stopped_is_taken_up_from_the_finished_vectors(
    empty: Collection, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = HashEmbedder(model_id=DEFAULT_MODEL)
    monkeypatch.setitem(core.embedding._loaded, DEFAULT_MODEL, embedder)
    monkeypatch.setattr(core.vectors_cache, "BATCH", 1)
    for number in range(4):
        add(empty, f"{number}.txt", f"Text number {number}.")

    import pages.ui.index_bar as index_bar

    class StopsAtTwo(index_bar.Meter):
        def __call__(self, done: int, total: int) -> None:
            super().__call__(done, total)
            if embedder.calls >= 2:
                raise Stopped("stop")

    monkeypatch.setattr(index_bar, "Meter", StopsAtTwo)
    test = open_page(PAGE)
    assert "Not indexed yet" in shown_text(test)
    test.button(key="index_resume").click().run()
    assert embedder.calls == 2

    monkeypatch.undo()
    monkeypatch.setenv("RANKSCOPE_HOME", str(empty.folder.parents[1]))
    monkeypatch.setitem(core.embedding._loaded, DEFAULT_MODEL, embedder)
    test.button(key="index_resume").click().run()
    assert embedder.calls == 4
    assert "Indexed: 4 chunks of 4 documents." in shown_text(test)


def test_deleting_asks_and_takes_the_file_out_of_the_index(
    machines: Collection, open_page: OpenPage
) -> None:
    test = open_page(PAGE)
    assert "documents_delete" not in keys(test)
    table = f"documents_table_{machines.id}_{machines.version}_"
    test.session_state[table] = {"selection": {"rows": [1], "columns": [], "cells": []}}
    test.run()
    assert "fans.md" in [text.value for text in test.text]
    test.button(key="documents_delete").click().run()

    assert names(machines) == ["pumps.md", "lamps.md"]
    assert [row["Name"] for row in listed(test)] == ["pumps.md", "lamps.md"]
    assert "Deleted 1 file." in shown_text(test)
    assert "Index up to date: 3 chunks, model all-MiniLM-L6-v2." in [one.value for one in test.caption]


def test_after_a_restart_the_index_on_disk_serves_what_it_holds(
    machines: Collection, open_page: OpenPage
) -> None:
    add(machines, "notes.txt", "Nothing of note.")
    resources._shelf.clear()  # what a restart forgets

    test = open_page(PAGE)

    assert "1 file not yet indexed: search finds only the others." in shown_text(test)
    assert [row["Chunks"] for row in listed(test)][:3] == [2, 1, 1]
    served = resources.corpus(machines)
    assert served is not None
    assert served.item_names == ("pumps.md", "fans.md", "lamps.md")


def test_a_replaced_file_is_out_of_the_index_before_the_new_one_is_in(machines: Collection) -> None:
    assert resources.corpus(machines) is not None
    old = machines.find_by_name("fans.md")
    assert old is not None
    machines.replace(old.file_hash, load(b"A fan hums.", "fans.md"), "fans.md", 11)

    served = resources.corpus(machines)

    assert served is not None
    assert served.item_names == ("pumps.md", "lamps.md")
    assert "blade" not in " ".join(chunk.text for batch in served.chunk_batches() for chunk in batch)
    assert resources.waiting(machines) == 1
    resources.build(machines, machines.settings().index)
    assert resources.waiting(machines) == 0


def test_a_file_read_again_in_another_way_counts_as_not_indexed(machines: Collection) -> None:
    """Its documents keep their ids; what is in them is new."""
    assert resources.corpus(machines) is not None
    old = machines.find_by_name("fans.md")
    assert old is not None
    loaded = load(DOCUMENTS["fans.md"].encode(), "fans.md")
    (document,) = loaded.documents
    other = replace(loaded, documents=(replace(document, text=document.text.upper()),))
    machines.replace(old.file_hash, other, "fans.md", old.size)

    served = resources.corpus(machines)

    assert served is not None
    assert served.item_names == ("pumps.md", "lamps.md")
    assert resources.waiting(machines) == 1


def test_indexing_goes_on_in_the_window_that_comes_next(
    waiting: Collection, open_page: OpenPage
) -> None:
    """The window that asked for it was closed."""
    resources.place_order(waiting, waiting.settings().index)

    test = open_page(PAGE)

    assert "Indexed: 4 chunks of 3 documents." in shown_text(test)
    assert resources.order(waiting) is None


def test_a_window_waits_for_the_indexing_of_another_and_says_so(
    waiting: Collection, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pages.ui.index_bar as index_bar

    said: list[str] = []
    lock = resources._shelf().lock(waiting, "build")
    lock.acquire()  # as the other window does

    class Listens(index_bar.Meter):
        def say(self, done: float, total: float, text: str) -> None:
            super().say(done, total, text)
            said.append(text)
            if len(said) == 1:
                lock.release()

    monkeypatch.setattr(index_bar, "Meter", Listens)
    resources.place_order(waiting, waiting.settings().index)
    order = resources.order(waiting)
    assert order is not None
    order.progress = (1, 3)
    test = open_page(PAGE)

    assert said[0] == "Indexing in another window · 1 of 3"
    assert "Indexed: 4 chunks of 3 documents." in shown_text(test)


def test_stop_in_one_window_stops_the_indexing_of_another(
    waiting: Collection, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pages.ui.index_bar as index_bar

    class OtherStops(index_bar.Meter):
        def __call__(self, done: int, total: int) -> None:
            super().__call__(done, total)
            resources.end_order(waiting)

    monkeypatch.setattr(index_bar, "Meter", OtherStops)
    resources.place_order(waiting, waiting.settings().index)
    test = open_page(PAGE)

    assert "Not indexed yet" in shown_text(test)
    assert "could not be indexed" not in shown_text(test)
    assert resources.corpus(waiting) is None


def test_the_list_can_be_filtered_by_name_title_and_format(
    machines: Collection, open_page: OpenPage
) -> None:
    test = open_page(PAGE)
    add(machines, "notes.txt", "Nothing of note.")

    for wanted, found in [("FAN", ["fans.md"]), ("plain", ["notes.txt"]), ("zzz", [])]:
        test.text_input(key="documents_filter").set_value(wanted).run()
        assert [row["Name"] for row in listed(test)] == found
    assert "1 file not yet indexed: search finds only the others." in shown_text(test)


def test_collections_are_made_renamed_and_deleted(machines: Collection, open_page: OpenPage) -> None:
    test = open_page(PAGE)
    test.text_input(key="collection_new_name").set_value("Second **one**")
    test.button(key="collection_new_do").click().run()
    assert "Documents of `Second **one**`" in [head.value for head in test.subheader]
    assert "This collection is empty" in shown_text(test)

    test.text_input(key="collection_rename_name").set_value("Third")
    test.button(key="collection_rename_do").click().run()
    assert sorted(info.name for info in list_collections()) == ["Machines", "Third"]

    test.text_input(key="collection_new_name").set_value("Machines")
    test.button(key="collection_new_do").click().run()
    assert "there is a collection 'Machines' already" in shown_text(test)

    test.button(key="collection_delete").click().run()
    assert [info.name for info in list_collections()] == ["Machines"]
    assert "Documents of `Machines`" in [head.value for head in test.subheader]
    assert names(open_collection("Machines")) == ["pumps.md", "fans.md", "lamps.md"]


def test_names_are_shown_letter_by_letter(empty: Collection, open_page: OpenPage) -> None:
    name = "**b** [x](http://evil.example) $a$ :red[x] `c` <img src=x>.csv"
    test = upload(open_page(PAGE), (name, b"a,b\n1,2\n"), (name + ".pdf", b"%PDF-"))

    assert test.radio[0].label == f"``{name}``"
    test.button(key="upload_add").click().run()
    assert [row["File"] for row in results(test)] == [f"{name}.pdf", name]
    assert listed(test)[0]["Name"] == name
    assert f"{name}.pdf: damaged PDF" in shown_text(test)
    assert not any("evil.example" in part.value.replace(f"``{name}``", "") for part in test.markdown)


def test_a_collection_that_cannot_be_read_is_told(
    machines: Collection, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(self: Collection) -> None:
        raise CollectionError("the file is damaged; put back a copy of it")

    monkeypatch.setattr(Collection, "files", damaged)
    test = open_page(PAGE)

    assert not test.exception
    assert "the file is damaged; put back a copy of it" in shown_text(test)
