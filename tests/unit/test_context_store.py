"""The store of contexts: what it keeps, under which key, and what a person can change."""

from __future__ import annotations

import sqlite3
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from core.collection import create, delete
from core.contextualizing.prompt import Span
from core.contextualizing.store import ContextStore, Written, open_store
from core.contextualizing.work import survey
from core.documents import ListedDocuments, document_digest
from core.errors import ContextError
from core.llm import Usage
from core.settings import ContextSettings
from core.types import Document, text_hash

CLAUDE = ContextSettings(writer="claude")
KEY = CLAUDE.writer_key
DOCUMENT = Document("a", "a.txt", "A", "one two three")
TEXT = text_hash(DOCUMENT.text)
SPANS = [(0, 3), (4, 7), (8, 13)]


def answer(span: Span, text: str = "", state: str = "written", of: str = TEXT) -> Written:
    usage = Usage(input=10, cache_write=100, cache_read=300, output=20)
    return Written(of, *span, state, text or f"context {span[0]}", False, usage, 0.5, 2.0)


@pytest.fixture
def store(tmp_path: Path) -> ContextStore:
    made = ContextStore(tmp_path)
    for span in SPANS[:2]:
        made.put(CLAUDE, answer(span))
    return made


def contexts(store: ContextStore, settings: ContextSettings = CLAUDE) -> list[str]:
    return store.contexts_of(DOCUMENT, SPANS, settings)


def test_contexts_belong_to_a_text_a_span_and_a_writer(store: ContextStore) -> None:
    assert contexts(store) == ["context 0", "context 4", ""]
    again = replace(DOCUMENT, id="b", name="copy.txt", title="Copy")
    assert store.contexts_of(again, SPANS, CLAUDE) == contexts(store)
    assert store.contexts_of(replace(DOCUMENT, text="One two three"), SPANS, CLAUDE) == ["", "", ""]
    for change in (
        {"model": "claude-opus-5-5"},
        {"prompt": "x"},
        {"max_tokens": 100},
        {"window": 5_000},
    ):
        assert contexts(store, CLAUDE.replace(**change)) == ["", "", ""]
    same = CLAUDE.replace(place="after", in_vectors=False, in_bm25=False, opening=0)
    assert contexts(store, same) == contexts(store)


def test_a_text_uploaded_again_is_not_asked_for(store: ContextStore) -> None:
    again = ListedDocuments([replace(DOCUMENT, id="b", name="other.md", title="Other")])
    work = survey(store, again, [SPANS], CLAUDE.replace(in_bm25=False))
    assert (work.done, [piece.spans for piece in work.pieces]) == (2, [((8, 13),)])


def test_what_is_kept_survives_another_opening(store: ContextStore, tmp_path: Path) -> None:
    store.register(CLAUDE)
    store.close()
    other = ContextStore(tmp_path)
    assert contexts(other) == ["context 0", "context 4", ""]
    assert other.writers() == {KEY: CLAUDE}
    row = other.rows(KEY, TEXT)[1]
    assert (row.start, row.end, row.state, row.context) == (4, 7, "written", "context 4")
    assert (row.usage, row.dollars) == (Usage(10, 100, 0, 300, 20), 0.5)


def test_digests_follow_the_usable_contexts(store: ContextStore) -> None:
    documents = ListedDocuments([DOCUMENT, Document("b", "b.txt", "B", "other")])
    first, other = store.digests(documents, CLAUDE)
    assert first
    assert other == ""
    seen = {first}
    for change in (
        lambda: store.put(CLAUDE, answer(SPANS[2])),
        lambda: store.drop(KEY, TEXT, SPANS[2]),
        lambda: store.edit(KEY, TEXT, SPANS[0], "mine"),
    ):
        change()
        seen.add(store.digests(documents, CLAUDE)[0])
    assert len(seen) == 3  # dropping brought the first back
    before = store.digests(documents, CLAUDE)
    store.accept(KEY, TEXT, SPANS[1])
    store.put(CLAUDE, answer(SPANS[1], "later", "truncated"))  # a person has accepted the first
    assert store.digests(documents, CLAUDE) == before
    store.restore(KEY, TEXT, SPANS[0])
    store.clear(KEY, TEXT, SPANS[2])
    assert store.digests(documents, CLAUDE)[0] == first
    assert store.digests(documents, CLAUDE.replace(prompt="other")) == ("", "")


def test_digests_of_many_documents_read_no_text(store: ContextStore) -> None:
    documents = ListedDocuments([Document(f"{n}", f"{n}", "", f"text {n}") for n in range(10_000)])
    before = store.digests(documents, CLAUDE)

    class Unread(ListedDocuments):
        def __init__(self) -> None:
            self.digests = documents.digests

        def __len__(self) -> int:
            return len(self.digests)

        def __getitem__(self, position: int) -> Document:
            raise AssertionError("a text was read")

    began = time.perf_counter()
    assert store.digests(Unread(), CLAUDE) == before
    assert time.perf_counter() - began < 1.0
    assert document_digest(documents[3]) == documents.digests[3]


def test_another_program_that_writes_is_seen(store: ContextStore, tmp_path: Path) -> None:
    documents = ListedDocuments([DOCUMENT])
    before, version = store.digests(documents, CLAUDE), store.version
    ContextStore(tmp_path).put(CLAUDE, answer(SPANS[2]))
    assert store.version > version
    assert store.digests(documents, CLAUDE) != before
    assert contexts(store)[2] == "context 8"


def test_a_person_edits_accepts_drops_and_restores(store: ContextStore) -> None:
    store.edit(KEY, TEXT, SPANS[0], "  my words \ud800")
    assert contexts(store)[0] == "my words \ufffd"
    store.put(CLAUDE, answer(SPANS[0], "newer"))
    assert contexts(store)[0] == "my words \ufffd"
    store.restore(KEY, TEXT, SPANS[0])
    assert contexts(store)[0] == "context 0"
    store.drop(KEY, TEXT, SPANS[0])
    assert contexts(store)[0] == ""
    assert SPANS[0] in store.settled(KEY)[TEXT]
    store.restore(KEY, TEXT, SPANS[0])
    store.accept(KEY, TEXT, SPANS[0])
    assert store.rows(KEY, TEXT)[0].state == "accepted"
    store.clear(KEY, TEXT, SPANS[0])
    assert SPANS[0] not in store.settled(KEY)[TEXT]


def test_words_can_be_given_where_the_writer_gave_none(store: ContextStore) -> None:
    store.put(CLAUDE, answer(SPANS[2], "I would rather not.", "refused"))
    for decide in (store.accept, store.drop):
        with pytest.raises(ContextError, match="8-13 has no context"):
            decide(KEY, TEXT, SPANS[2])
    store.edit(KEY, TEXT, SPANS[2], "by hand")
    assert contexts(store)[2] == "by hand"
    store.restore(KEY, TEXT, SPANS[2])
    assert contexts(store)[2] == ""
    assert store.rows(KEY, TEXT)[2].state == "refused"
    with pytest.raises(ContextError, match="blank"):
        store.edit(KEY, TEXT, SPANS[2], "  ")


def test_truncated_answers_are_kept_but_never_used(store: ContextStore) -> None:
    store.put(CLAUDE, answer(SPANS[2], "half a", "truncated"))
    assert contexts(store)[2] == ""
    assert SPANS[2] not in store.settled(KEY)[TEXT]
    assert store.rows(KEY, TEXT)[2].text == "half a"
    store.put(CLAUDE, answer(SPANS[2], "whole"))
    assert contexts(store)[2] == "whole"


def test_totals_count_every_answer_paid(store: ContextStore) -> None:
    store.put(CLAUDE, answer(SPANS[0], "anew"))
    store.put(CLAUDE, replace(answer(SPANS[2], " ", ""), dollars=None))
    other = CLAUDE.replace(prompt="other")
    store.put(other, answer(SPANS[0]))
    mine, all_ = store.totals(KEY), store.totals()
    assert (mine.answers, mine.dollars, mine.unpriced) == (4, 1.5, 1)
    assert mine.usage == Usage(40, 400, 0, 1200, 80)
    assert mine.cache_hit_rate == 1200 / 1640
    assert mine.states == {"written": 2}
    assert (all_.answers, all_.states) == (5, {"written": 3})
    seen = store.seen(CLAUDE.model)
    assert seen
    assert (seen.answers, seen.output, seen.seconds) == (5, 20, 2)
    assert store.seen("another") is None


def test_texts_that_are_gone_can_be_forgotten(store: ContextStore) -> None:
    assert store.orphans(ListedDocuments([DOCUMENT])) == {TEXT}  # never asked about before
    store.text_hashes(ListedDocuments([DOCUMENT]))
    assert store.orphans(ListedDocuments([DOCUMENT])) == set()
    assert store.orphans(ListedDocuments([])) == {TEXT}
    store.forget([TEXT])
    assert contexts(store) == ["", "", ""]
    assert store.totals().answers == 2


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "contexts.db").write_bytes(b"no database at all " * 100)
    with pytest.raises(ContextError, match=r"contexts\.db is damaged .* paid for, again"):
        ContextStore(tmp_path)


def test_a_file_of_a_newer_version_is_left_alone(store: ContextStore, tmp_path: Path) -> None:
    store._database.execute("PRAGMA user_version=99")
    store.close()
    with pytest.raises(ContextError, match="format 99"):
        ContextStore(tmp_path)


def test_threads_share_a_store(store: ContextStore) -> None:
    def write(worker: int) -> None:
        for n in range(20):
            store.put(CLAUDE, answer((n, n + 1), of=f"text {worker}"))

    threads = [threading.Thread(target=write, args=(worker,)) for worker in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.totals().answers == 122
    assert all(len(store.settled(KEY)[f"text {worker}"]) == 20 for worker in range(6))


def test_one_store_for_a_collection_and_none_after_it_was_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path))
    made = create("papers")
    store = open_store(made)
    assert open_store(made) is store
    assert store.path == made.folder / "contexts.db"
    delete("papers")
    with pytest.raises(ContextError, match="deleted with their collection"):
        store.totals()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        store._database.execute("SELECT 1")  # an open file would stay behind on Windows
    with pytest.raises(ContextError, match="cannot be used"):
        open_store(made)
