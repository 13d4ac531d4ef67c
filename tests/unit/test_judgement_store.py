"""Judgements on disk: judged, taken back, found again in replaced documents, never lost."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from core import collection as collections
from core.collection import Collection
from core.documents import ListedDocuments
from core.errors import CollectionError
from core.evaluation import (
    EvaluationError,
    Evidence,
    GoldenQuery,
    Judgements,
    JudgementStore,
    Unlocated,
    open_judgements,
)
from core.llm import Usage
from core.loading import load
from core.types import Document

ALPHA = "The valve leaks at night. The pump is new. The valve leaks at noon."


def document(text: str = ALPHA, id: str = "d1", name: str = "notes.txt", **facts: object) -> Document:
    return Document(id, name, "Notes", text, **facts)  # type: ignore[arg-type]


DOCUMENTS = ListedDocuments([document(), document("Other words.", "d2", "other.txt")])


@pytest.fixture
def store(tmp_path: Path) -> JudgementStore:
    return JudgementStore(tmp_path)


def only(judgements: Judgements) -> GoldenQuery:
    (query,) = judgements.queries
    return query


class TestJudging:
    def test_kept_with_its_grade_and_found_by_another_program(self, store: JudgementStore) -> None:
        name = store.judge("leaks?", "d1", 0, 9, 2, DOCUMENTS)
        assert store.judge(" leaks? ", "d1", 10, 24, 1, DOCUMENTS) == name
        store.judge("leaks?", "d1", 26, 42, 0, DOCUMENTS)
        query = only(JudgementStore(store.path.parent).queries(DOCUMENTS))
        assert query == GoldenQuery(
            name,
            "leaks?",
            (Evidence("d1", 0, 9, 2), Evidence("d1", 10, 24)),
            rejected=(Evidence("d1", 26, 42, 0),),
        )

    def test_the_same_span_again_takes_the_new_grade(self, store: JudgementStore) -> None:
        for grade in (1, 3, 0):
            store.judge("q", "d1", 0, 9, grade, DOCUMENTS)
        query = only(store.queries(DOCUMENTS))
        assert (query.evidence, query.rejected) == ((), (Evidence("d1", 0, 9, 0),))

    def test_spans_that_overlap_are_two(self, store: JudgementStore) -> None:
        store.judge("q", "d1", 0, 9, 1, DOCUMENTS)
        store.judge("q", "d1", 4, 15, 1, DOCUMENTS)
        assert len(only(store.queries(DOCUMENTS)).evidence) == 2

    def test_taken_back_and_the_query_with_the_last(self, store: JudgementStore) -> None:
        store.judge("q", "d1", 0, 9, 1, DOCUMENTS)
        store.judge("q", "d1", 10, 12, 0, DOCUMENTS)
        store.unjudge("q", "d1", 0, 9, DOCUMENTS)
        assert not only(store.queries(DOCUMENTS)).answerable
        store.unjudge("q", "d1", 10, 12, DOCUMENTS)
        assert store.queries(DOCUMENTS).queries == ()
        with pytest.raises(EvaluationError, match="10-12 of d1 has no judgement"):
            store.unjudge("q", "d1", 10, 12, DOCUMENTS)

    @pytest.mark.parametrize(
        ("facts", "reason"),
        [
            ((" \n", "d1", 0, 3, 1), "the query is blank"),
            (("q", "d9", 0, 3, 1), "no document 'd9'"),
            (("q", "d2", 0, 99, 1), "0-99 is no span of other.txt, which has 12 characters"),
            (("q", "d1", 3, 3, 1), "3-3 is no span"),
            (("q", "d1", 0, 3, -1), "the grade is -1"),
        ],
    )
    def test_what_cannot_be_judged_is_named_and_changes_nothing(
        self, store: JudgementStore, facts: tuple, reason: str
    ) -> None:
        before = store.version
        with pytest.raises(EvaluationError, match=reason):
            store.judge(*facts, DOCUMENTS)
        assert (store.version, store.queries(DOCUMENTS).queries) == (before, ())

    def test_two_sessions_at_once_lose_nothing(self, store: JudgementStore) -> None:
        def session(number: int) -> None:
            own = JudgementStore(store.path.parent)
            for start in range(10):
                own.judge(f"q{start % 3}", "d1", start, start + 10 + number, number, DOCUMENTS)

        threads = [threading.Thread(target=session, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        queries = store.queries(DOCUMENTS).queries
        assert sorted(query.text for query in queries) == ["q0", "q1", "q2"]
        assert sum(len(query.evidence) for query in queries) == 20
        assert sum(len(query.rejected) for query in queries) == 10
        assert store.version == 30

    def test_version_and_fingerprint_tell_changes(self, store: JudgementStore, tmp_path: Path) -> None:
        empty = store.fingerprint()
        store.judge("q", "d1", 0, 9, 1, DOCUMENTS)
        one = (store.version, store.fingerprint())
        store.queries(DOCUMENTS)
        assert (store.version, store.fingerprint()) == one
        store.judge("q", "d1", 0, 9, 2, DOCUMENTS)
        assert store.version > one[0]
        assert len({empty, one[1], store.fingerprint()}) == 3

    def test_a_damaged_file_is_named(self, store: JudgementStore) -> None:
        store.path.write_bytes(b"no database at all" * 100)
        with pytest.raises(CollectionError, match=r"judgements.db is damaged"):
            store.queries(DOCUMENTS)


class TestReplacedDocuments:
    def find(self, store: JudgementStore, *documents: Document) -> Judgements:
        return store.queries(ListedDocuments(documents))

    def test_found_by_its_quote_under_the_same_name(self, store: JudgementStore) -> None:
        store.judge("q", "d1", 26, 42, 2, DOCUMENTS)
        store.judge("q", "d1", 0, 9, 0, DOCUMENTS)
        found = self.find(store, document("Preface.\n" + ALPHA, "d7"))
        assert only(found).evidence == (Evidence("d7", 35, 51, 2),)
        assert only(found).rejected == (Evidence("d7", 9, 18, 0),)

    def test_what_stands_around_it_tells_two_places_apart(self, store: JudgementStore) -> None:
        store.judge("q", "d1", 43, 58, 1, DOCUMENTS)
        found = self.find(store, document("The valve leaks. " + ALPHA, "d7"))
        assert only(found).evidence == (Evidence("d7", 60, 75),)
        assert found.problems == ()

    def test_two_places_alike_are_named_and_count_as_lost(self, store: JudgementStore) -> None:
        store.judge("q", "d2", 0, 5, 3, DOCUMENTS)
        found = self.find(store, document("Other Other", "d8", "other.txt"))
        assert only(found).unlocated == (
            Unlocated(
                "other.txt",
                "Other",
                "“Other” is in other.txt 2 times; judge the right one anew",
                3,
                (0, 5),
            ),
        )
        missing = self.find(store, document("None.", "d8", "other.txt"))
        assert missing.problems == (
            f"query {only(missing).id}: “Other” is not in other.txt as it is now; judge anew",
        )

    def test_gone_and_back_again(self, store: JudgementStore) -> None:
        store.judge("q", "d1", 26, 42, 1, DOCUMENTS)
        gone = self.find(store, document("Nothing.", "d2", "other.txt"))
        (lost,) = only(gone).unlocated
        assert (lost.document, lost.quote, lost.span) == ("notes.txt", "The pump is new.", (26, 42))
        assert "there is no document 'notes.txt'" in gone.problems[0]
        assert only(gone).answerable
        assert only(store.queries(DOCUMENTS)).evidence == (Evidence("d1", 26, 42),)

    def test_the_same_id_read_in_another_way(self, store: JudgementStore) -> None:
        store.judge("q", "d1", 26, 42, 1, DOCUMENTS)
        found = self.find(store, document("# " + ALPHA, "d1"))
        assert only(found).evidence == (Evidence("d1", 28, 44),)

    def test_the_same_text_is_the_same_span_without_being_read(self, store: JudgementStore) -> None:
        class Unread(ListedDocuments):
            def __getitem__(self, position: int) -> Document:
                raise AssertionError("read")

        store.judge("q", "d1", 26, 42, 1, DOCUMENTS)
        assert only(store.queries(Unread([document()]))).evidence == (Evidence("d1", 26, 42),)
        assert only(store.queries(Unread([document(id="d7")]))).evidence == (Evidence("d7", 26, 42),)

    def test_a_whole_document_stays_whole(self, store: JudgementStore) -> None:
        store.judge("q", "d2", 0, 12, 1, DOCUMENTS)
        found = self.find(store, document("Quite other words.", "d8", "other.txt"))
        assert only(found).evidence == (Evidence("d8", 0, 18),)

    def test_judged_again_in_the_new_version_counts_once(self, store: JudgementStore) -> None:
        store.judge("q", "d1", 26, 42, 1, DOCUMENTS)
        later = ListedDocuments([document("Preface.\n" + ALPHA, "d7")])
        store.judge("q", "d7", 35, 51, 3, later)
        assert only(store.queries(later)).evidence == (Evidence("d7", 35, 51, 3),)
        store.unjudge("q", "d7", 35, 51, later)
        assert store.queries(later).queries == ()
        assert store.queries(DOCUMENTS).queries == ()

    def test_in_a_collection(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path))
        kept = collections.create("Judged")
        data = ALPHA.encode()
        kept.add(load(data, "a.txt"), "a.txt", len(data))
        before = kept.documents()
        store = open_judgements(kept)
        store.judge("q", before.ids[0], 26, 42, 1, before)
        new = b"New first line.\n" + data
        kept.replace(before.file_hashes[0], load(new, "a.txt"), "a.txt", len(new))
        after = kept.documents()
        assert after.ids != before.ids
        assert only(store.queries(after)).evidence == (Evidence(after.ids[0], 42, 58),)
        kept.close()


class TestAdding:
    SET = Judgements(
        (
            GoldenQuery("1", "pump?", (Evidence("d1", 26, 42, 2),), rejected=(Evidence("d2", 0, 5, 0),)),
            GoldenQuery("2", "none?"),
            GoldenQuery("3", "pump?", (Evidence("d1", 0, 9),)),
        ),
        ("line 7: broken JSON; the line is left out",),
    )

    def test_all_comes_back_and_again_is_the_same(self, store: JudgementStore) -> None:
        first = store.add(self.SET, DOCUMENTS, "set\ud800.jsonl")
        assert (first.new, first.same, first.queries, first.problems) == (3, 0, 3, self.SET.problems)
        assert store.queries(DOCUMENTS).queries == self.SET.queries
        again = store.add(self.SET, DOCUMENTS, "set.jsonl")
        assert (again.new, again.same, again.queries) == (0, 3, 0)
        assert store.queries(DOCUMENTS).queries == self.SET.queries

    def test_joins_what_was_judged_here_and_changes_grades(self, store: JudgementStore) -> None:
        name = store.judge("pump?", "d1", 26, 42, 1, DOCUMENTS)
        added = store.add(Judgements(self.SET.queries[:1]), DOCUMENTS, "set.jsonl")
        assert (added.new, added.same, added.queries) == (2, 0, 0)
        query = only(store.queries(DOCUMENTS))
        assert (query.id, query.evidence) == (name, (Evidence("d1", 26, 42, 2),))

    def test_an_id_that_another_query_has(self, store: JudgementStore) -> None:
        store.add(self.SET, DOCUMENTS, "a")
        other = Judgements((GoldenQuery("2", "another", (Evidence("d1", 0, 3),)),))
        added = store.add(other, DOCUMENTS, "b")
        assert added.problems == ("other queries have these ids, so new ones were given: 2 is 2-2",)
        assert [query.id for query in store.queries(DOCUMENTS).queries] == ["1", "2", "3", "2-2"]
        assert store.add(other, DOCUMENTS, "b").queries == 0

    def test_copies_are_kept_and_moved(self, store: JudgementStore) -> None:
        twice = ListedDocuments([document(), document(id="d3", name="copy.txt")])
        one = Evidence("d1", 26, 42, 1, (("d3", 26, 42),))
        store.add(Judgements((GoldenQuery("1", "q", (one,)),)), twice, "a")
        assert only(store.queries(twice)).evidence == (one,)
        moved = ListedDocuments([document(), document("A. " + ALPHA, "d9", "copy.txt")])
        assert only(store.queries(moved)).evidence == (replace(one, copies=(("d9", 29, 45),)),)
        gone = store.queries(ListedDocuments([document()]))
        assert only(gone).evidence == (Evidence("d1", 26, 42),)
        assert "a copy of its evidence: there is no document 'copy.txt'" in gone.problems[0]

    def test_what_was_not_located_is_looked_for_when_its_document_comes(
        self, store: JudgementStore
    ) -> None:
        lost = (
            Unlocated("late.txt", "said late", "no document", 2),
            Unlocated("late.txt", "", "no document", 1, (0, 4)),
            Unlocated("whole.txt", "", "no document", whole=True),
            Unlocated("notes.txt", "The pump is new.", "the grade is 'high'"),
        )
        store.add(Judgements((GoldenQuery("1", "q", (), lost),)), DOCUMENTS, "a")
        assert len(only(store.queries(DOCUMENTS)).unlocated) == 4
        late = [document("What was said late.", "l", "late.txt"), document("All.", "w", "whole.txt")]
        query = only(store.queries(ListedDocuments([document(), *late])))
        assert query.evidence == (Evidence("l", 9, 18, 2), Evidence("l", 0, 4), Evidence("w", 0, 4))
        assert [one.reason for one in query.unlocated] == ["the grade is 'high'"]

    def test_a_document_named_without_its_ending_is_found_when_it_comes(
        self, store: JudgementStore
    ) -> None:
        qrels = Judgements(
            (GoldenQuery("q", "alloy?", unlocated=(Unlocated("doc7", "", "gone", whole=True),)),)
        )
        store.add(qrels, ListedDocuments([]), "qrels.tsv")
        assert only(store.queries(DOCUMENTS)).evidence == ()
        come = document("Alloy seven.", "d7", "sub/doc7.md")
        assert only(store.queries(ListedDocuments([come]))).evidence == (Evidence("d7", 0, 12),)
        twice = ListedDocuments([come, document("Alloy.", "d8", "doc7.txt")])
        assert only(store.queries(twice)).evidence == ()

    def test_renamed_and_removed(self, store: JudgementStore) -> None:
        store.add(self.SET, DOCUMENTS, "a")
        store.rename_query("2", "nobody?")
        store.remove_query("1")
        left = store.queries(DOCUMENTS).queries
        assert [(query.id, query.text) for query in left] == [("2", "nobody?"), ("3", "pump?")]
        with pytest.raises(EvaluationError, match="no query '1'"):
            store.remove_query("1")
        with pytest.raises(EvaluationError, match="blank"):
            store.rename_query("2", " ")
        assert store.add_query("alone?")
        assert not store.queries(DOCUMENTS).queries[-1].answerable


class TestDrafts:
    @pytest.fixture
    def draft(self, store: JudgementStore) -> int:
        return store.add_draft(
            "What is new?",
            Evidence("d1", 26, 42),
            DOCUMENTS,
            model="m",
            usage=Usage(10, output=5),
            dollars=0.25,
        ).id

    def test_counts_only_when_accepted(self, store: JudgementStore, draft: int) -> None:
        (kept,) = store.drafts("waiting")
        assert (kept.quote, kept.document, kept.usage) == (
            "The pump is new.",
            "notes.txt",
            Usage(10, output=5),
        )
        assert store.queries(DOCUMENTS).queries == ()
        name = store.accept(draft, DOCUMENTS)
        assert only(store.queries(DOCUMENTS)) == GoldenQuery(
            name, "What is new?", (Evidence("d1", 26, 42),)
        )
        assert store.accept(draft, DOCUMENTS) == name
        assert len(store.queries(DOCUMENTS).queries) == 1
        with pytest.raises(EvaluationError, match="a query already"):
            store.drop(draft)

    def test_edited_then_accepted(self, store: JudgementStore, draft: int) -> None:
        assert store.edit(draft, DOCUMENTS, " What was bought? ", (30, 41)).quote == "pump is new"
        store.accept(draft, DOCUMENTS)
        query = only(store.queries(DOCUMENTS))
        assert (query.text, query.evidence) == ("What was bought?", (Evidence("d1", 30, 41),))

    def test_dropped_and_taken_up_again(self, store: JudgementStore, draft: int) -> None:
        store.drop(draft)
        assert [one.state for one in store.drafts()] == ["dropped"]
        assert store.queries(DOCUMENTS).queries == ()
        assert store.edit(draft, DOCUMENTS, "What is new?").state == "waiting"

    def test_an_unknown_draft_is_named(self, store: JudgementStore) -> None:
        with pytest.raises(EvaluationError, match="no draft 7"):
            store.accept(7, DOCUMENTS)


def test_gone_with_its_collection(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path))
    kept: Collection = collections.create("Short")
    store = open_judgements(kept)
    store.add_query("q")
    collections.delete("Short")
    with pytest.raises(CollectionError):
        store.add_query("q")
    assert not store.path.exists()
