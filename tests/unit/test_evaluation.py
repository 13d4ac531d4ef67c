"""Golden queries: located in documents, matched with chunks, and found again by recall@k."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.corpus import Corpus
from core.documents import ListedDocuments
from core.errors import RerankError, Stopped
from core.evaluation import (
    EvaluationError,
    Evidence,
    Golden,
    GoldenQuery,
    golden_chunks,
    golden_pieces,
    locate,
    measure,
    read_judgements,
)
from core.evaluation.fates import fates
from core.evaluation.golden import ranks_in_chunks
from core.loading import LoadOptions, load
from core.pipeline import search
from core.protocols import Scores
from core.reranking import register_reranker, unregister_reranker
from core.sample import sample_files
from core.settings import IndexSettings, SearchSettings
from core.trace import Ranking
from core.types import Document
from tests.fakes import HashEmbedder

DATA = Path(__file__).resolve().parents[2] / "data"


def document(text: str, id: str = "d1", name: str = "notes.txt", **fields: object) -> Document:
    return Document(id, name, "Notes", text, **fields)  # type: ignore[arg-type]


class TestLocate:
    @pytest.mark.parametrize(
        ("quote", "found"),
        [
            ("valve 7", "valve 7"),
            ("Valve 7\nleaks", "Valve 7\nleaks"),
            ("Valve 7 leaks at night", "Valve 7\nleaks  at night"),
            ("  leaks at\tnight ", "leaks  at night"),
            ("REPLACE (it) [now]?", "replace (it) [now]?"),
        ],
    )
    def test_exact_then_any_blanks_then_any_case(self, quote: str, found: str) -> None:
        text = "The valve 7 is new. Valve 7\nleaks  at night; replace (it) [now]?"
        start, end = locate(quote, document(text))
        assert text[start:end] == found

    def test_the_first_way_that_finds_it_decides(self) -> None:
        assert locate("Pump", document("pump, Pump and PUMP")) == (6, 10)
        assert locate("a pump", document("a  pump, A pump, a pump")) == (17, 23)

    @pytest.mark.parametrize(("quote", "text"), [("pump", "pump\npump"), ("anan", "ananan")])
    def test_a_quote_that_stands_twice_is_named(self, quote: str, text: str) -> None:
        with pytest.raises(EvaluationError, match=rf"“{quote}” is in notes.txt 2 times; quote more"):
            locate(quote, document(text))

    def test_a_quote_that_is_missing_or_blank_is_named(self) -> None:
        with pytest.raises(EvaluationError, match=r"“no such words” is not in notes.txt"):
            locate("no such words", document("such words"))
        with pytest.raises(EvaluationError, match="blank"):
            locate(" \n", document("such words"))


DOCUMENTS = ListedDocuments(
    [
        document("Alpha beta gamma. Delta beta.", "d1", "a.txt"),
        document("First ticket: the seal broke.", "t-1", "tickets.jsonl"),
        document("Second ticket: the pump broke.", "t-2", "tickets.jsonl"),
    ]
)


def read(*rows: object) -> tuple[dict[str, GoldenQuery], tuple[str, ...]]:
    text = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)
    judged = read_judgements(text, DOCUMENTS)
    return {query.id: query for query in judged.queries}, judged.problems


class TestReading:
    def test_both_forms_give_the_same(self) -> None:
        nested, problems = read(
            {
                "id": "q",
                "query": "what?",
                "kind": "two-span",
                "evidence": [
                    {"document": "a.txt", "quote": "beta gamma", "grade": 2},
                    {"document": "t-2", "start": 0, "end": 6},
                ],
            }
        )
        flat, more = read(
            {"id": "q", "query": "what?", "document": "d1", "quote": "beta gamma", "grade": 2},
            {"id": "q", "query": "what?", "document": "t-2", "start": 0, "end": 6, "quote": "second"},
        )
        assert nested == flat
        assert problems == more == ()
        assert nested["q"].evidence == (Evidence("d1", 6, 16, 2), Evidence("t-2", 0, 6))

    def test_lines_without_ids_are_joined_by_their_words(self) -> None:
        queries, _ = read(
            {"query": "one", "document": "a.txt", "quote": "Alpha"},
            {"query": "two", "document": "a.txt", "quote": "Delta"},
            {"query": "one", "document": "a.txt", "quote": "gamma"},
        )
        assert {one.text: len(one.evidence) for one in queries.values()} == {"one": 2, "two": 1}

    def test_a_name_that_records_share_stands_for_all_of_them(self) -> None:
        queries, problems = read(
            {"id": "q", "query": "?", "document": "tickets.jsonl", "quote": "the pump broke"},
            {"id": "r", "query": "!", "document": "tickets.jsonl", "quote": "ticket"},
        )
        assert queries["q"].evidence == (Evidence("t-2", 15, 29),)
        assert "“ticket” is in tickets.jsonl 2 times" in problems[0]

    def test_no_evidence_means_no_answer(self) -> None:
        queries, problems = read({"query": "a", "evidence": []}, {"query": "b"})
        assert [query.answerable for query in queries.values()] == [False, False]
        assert problems == ()

    @pytest.mark.parametrize(
        ("facts", "reason"),
        [
            ({"document": "a.txt", "quote": "epsilon"}, "“epsilon” is not in a.txt"),
            ({"document": "b.txt", "quote": "Alpha"}, "no document “b.txt”"),
            ({"document": "a.txt", "quote": "beta"}, "2 times"),
            ({"document": "a.txt", "start": 20, "end": 99}, "20-99 is outside a.txt"),
            ({"document": "a.txt", "start": 5, "end": 5}, "5-5 is no span"),
            ({"document": "a.txt", "start": "0", "end": 5}, "no whole numbers"),
            (
                {"document": "a.txt", "start": 0, "end": 5, "quote": "Delta"},
                "reads “Alpha”, not “Delta”",
            ),
            (
                {"document": "tickets.jsonl", "start": 0, "end": 5},
                "2 documents are called tickets.jsonl",
            ),
            ({"document": "a.txt"}, "neither a quote nor start and end"),
            ({"document": "a.txt", "quote": 7}, "the quote is 7"),
            ({"document": "a.txt", "quote": "Alpha", "grade": "high"}, "the grade is 'high'"),
        ],
    )
    def test_evidence_that_cannot_be_located_stays_and_is_named(
        self, facts: dict[str, object], reason: str
    ) -> None:
        queries, problems = read({"id": "q7", "query": "?", **facts})
        (kept,) = queries["q7"].unlocated
        assert queries["q7"].answerable
        assert not queries["q7"].evidence
        assert (kept.document, kept.quote) == (facts["document"], str(facts.get("quote", "")))
        assert reason in kept.reason
        assert problems == (f"line 1, query q7: {kept.reason}",)

    def test_lines_that_are_no_queries_are_named(self) -> None:
        queries, problems = read(
            "{broken",
            ["list"],
            {"query": "  "},
            {"id": "q", "query": "with U+2028 \u2028 inside", "document": "a.txt", "quote": "Alpha"},
            {"id": "q", "query": "another", "document": "a.txt", "quote": "Delta"},
        )
        assert list(queries) == ["q"]
        assert len(queries["q"].evidence) == 1
        assert [problem.split(":")[0] for problem in problems] == [
            "line 1",
            "line 2",
            "line 3",
            "line 5",
        ]
        assert "the id q is that of another query" in problems[3]

    def test_the_same_evidence_twice_counts_once_with_the_higher_grade(self) -> None:
        row = {"id": "q", "query": "?", "document": "a.txt", "quote": "Alpha"}
        queries, problems = read({**row, "grade": 3}, row)
        assert queries["q"].evidence == (Evidence("d1", 0, 5, 3),)
        assert "again" in problems[0]

    def test_grade_0_is_rejected(self) -> None:
        queries, problems = read(
            {"id": "q", "query": "?", "document": "a.txt", "quote": "Alpha", "grade": 0}
        )
        assert not queries["q"].answerable
        assert queries["q"].rejected == (Evidence("d1", 0, 5, 0),)
        assert problems == ()

    def test_nothing_to_read_is_an_error(self) -> None:
        with pytest.raises(EvaluationError, match=r"no golden query could be read.*line 1: broken JSON"):
            read("nonsense")

    def test_every_quote_of_the_sample_is_found_in_the_loaded_documents(self) -> None:
        documents = [
            document
            for name, data in sample_files()
            for document in load(data, name, LoadOptions(records="items")).documents
        ]
        text = (DATA / "sample_queries.jsonl").read_text(encoding="utf-8")
        judged = read_judgements(text, ListedDocuments(documents))
        rows = [json.loads(line) for line in text.splitlines()]
        texts = {document.id: document.text for document in documents}
        assert judged.problems == ()
        assert [query.id for query in judged.queries] == [row["id"] for row in rows]
        for row, query in zip(rows, judged.queries, strict=True):
            quoted = [texts[one.document_id][one.start : one.end].split() for one in query.evidence]
            assert quoted == [one["quote"].split() for one in row["evidence"]]


def spans(*pairs: tuple[int, int]) -> tuple[np.ndarray, ...]:
    return tuple(np.array([pair[at] for pair in pairs], dtype=np.int64) for at in (0, 1))


class TestGolden:
    @pytest.mark.parametrize(
        ("span", "golden"),
        [
            ((2, 8), [0]),  # inside one
            ((5, 15), [0, 1]),  # half in each
            ((5, 16), [0, 1]),  # half of the first lies in it; the second holds 6 of 11
            ((6, 17), [1]),  # 4 of 11, 7 of 11
            ((0, 30), [0, 1, 2]),  # all lie in it
            ((4, 26), [0, 1, 2]),  # 6 of 10, 10 of 10 and 6 of 10 characters lie in it
            ((6, 23), [1]),  # 4 of 10, 10 of 10, 3 of 10
            ((29, 31), [2]),  # half of it is held, half lies behind the last
            ((28, 40), [2]),  # no one holds half: the one holding most
            ((40, 50), []),
        ],
    )
    def test_half_of_the_span_or_half_of_the_chunk(
        self, span: tuple[int, int], golden: list[int]
    ) -> None:
        starts, ends = spans((0, 10), (10, 20), (20, 30))
        assert golden_pieces(starts, ends, *span).tolist() == golden

    @given(
        st.lists(st.tuples(st.integers(0, 40), st.integers(1, 20)), max_size=6),
        st.integers(0, 50),
        st.integers(1, 25),
    )
    def test_as_counted_character_by_character(
        self, pieces: list[tuple[int, int]], start: int, length: int
    ) -> None:
        span = set(range(start, start + length))
        held = [len(span & set(range(at, at + size))) for at, size in pieces]
        golden = [
            place
            for place, (_, size) in enumerate(pieces)
            if held[place] and (held[place] >= length / 2 or held[place] >= size / 2)
        ]
        if not golden and any(held):
            golden = [held.index(max(held))]
        starts, ends = spans(*((at, at + size) for at, size in pieces))
        assert golden_pieces(starts, ends, start, start + length).tolist() == golden

    def test_the_first_of_those_that_hold_most(self) -> None:
        # A span cut into three thirds, each a small part of its chunk.
        starts, ends = spans((0, 100), (100, 103), (103, 200))
        assert golden_pieces(starts, ends, 97, 106).tolist() == [1]
        starts, ends = spans((0, 90), (100, 190))
        assert golden_pieces(starts, ends, 88, 102).tolist() == [0]

    def test_chunks_of_all_evidence_once_and_what_is_lost(self) -> None:
        corpus = corpus_of(
            document("aaaa bbbb cccc", "d0", chunks=((0, 4), (5, 9), (10, 14))),
            document("dddd      eeee", "d1", chunks=((0, 4), (10, 14))),
        )
        query = GoldenQuery(
            "q",
            "?",
            (
                Evidence("d1", 10, 14),
                Evidence("d0", 5, 9),
                Evidence("d0", 6, 9),
                Evidence("d1", 5, 8),  # blanks that no chunk holds
                Evidence("gone", 0, 4),
            ),
        )
        golden = golden_chunks(corpus, query)
        assert golden.positions.tolist() == [1, 4]
        assert golden.lost == 2
        assert len(golden) == 4

    def test_any_copy_finds_a_piece(self) -> None:
        # The evidence is cut in two; its copy in d1 in two other parts; "dddd" has no copy.
        corpus = corpus_of(
            document("aaaa bbbb cccc dddd", "d0", chunks=((0, 4), (5, 9), (10, 14), (15, 19))),
            document("xx bbbb cccc", "d1", chunks=((0, 7), (8, 12))),
            document("bbbb", "d2", chunks=((0, 4),)),
        )
        copies = (("d1", 3, 12), ("gone", 0, 9))
        query = GoldenQuery("q", "?", (Evidence("d0", 5, 14, 1, copies), Evidence("d0", 15, 19)))
        golden = golden_chunks(corpus, query)
        assert golden.positions.tolist() == [1, 2, 3]
        assert golden.copies.tolist() == [[0, 4], [1, 5]]
        assert [golden.any_of(place) for place in range(3)] == [[1, 4], [2, 5], [3]]

        def ranks(*order: int) -> list[int]:
            ranking = Ranking(np.array(order, dtype=np.int64), np.arange(len(order), 0, -1.0))
            return ranks_in_chunks(golden, ranking).tolist()

        assert ranks(0, 5, 4, 1, 2) == [3, 2, 0]
        assert ranks(1, 4, 3) == [1, 0, 3]
        assert ranks(6, 0) == [0, 0, 0]

    def test_a_copy_that_is_found_is_no_loss(self) -> None:
        corpus = corpus_of(
            document("amber birch", "d0", chunks=((0, 11),)),
            document("cedar delta", "d1", chunks=((0, 11),)),
            document("amber birch", "d2", chunks=((0, 11),)),
        )
        settings = SearchSettings(k=1, two_stage=False)
        found = search(corpus, "amber birch", settings).stage("kept").ranking.positions[0]
        other = {0: "d2", 2: "d0"}[int(found)]
        alone = Evidence(other, 0, 11)
        for evidence, recall in ((alone, 0.0), (replace(alone, copies=((f"d{found}", 0, 11),)), 1.0)):
            query = GoldenQuery("q", "amber birch", (evidence,))
            assert measure(corpus, [query], settings).stage("kept").recall(1) == recall
            (fate,) = fates(search(corpus, query.text, settings), golden_chunks(corpus, query), query, 1)
            assert (fate.lost_at == "") == (recall == 1)


def corpus_of(*documents: Document) -> Corpus:
    return Corpus.from_documents(documents, IndexSettings(), HashEmbedder())


WORDS = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "jetty"]


def wordy_corpus(n: int = 12, chunks: int = 6) -> Corpus:
    """Items of one-line chunks; every chunk holds three of ten words."""
    documents = []
    for item in range(n):
        lines = [
            " ".join(WORDS[(item * 3 + line * 7 + step * step) % 10] for step in range(1, 4))
            for line in range(chunks)
        ]
        text, cut, at = "\n".join(lines), [], 0
        for line in lines:
            cut.append((at, at + len(line)))
            at += len(line) + 1
        documents.append(document(text, f"d{item}", f"{item}.txt", chunks=tuple(cut)))
    return corpus_of(*documents)


def wordy_queries(corpus: Corpus) -> list[GoldenQuery]:
    """Each word asked for; two chunks are golden, whether or not they hold it."""
    queries = []
    for number, word in enumerate(WORDS):
        chunks = [corpus.chunk(number * 5), corpus.chunk((number * 11 + 3) % len(corpus))]
        evidence = tuple(Evidence(chunk.document_id, chunk.start, chunk.end) for chunk in chunks)
        queries.append(GoldenQuery(word, f"{word} {WORDS[number - 1]}", evidence))
    return queries


class TestMeasuring:
    @pytest.mark.parametrize(
        "settings",
        [
            SearchSettings(),
            SearchSettings(two_stage=False, merge=False),
            SearchSettings(items=3, merge_gap=0),
        ],
    )
    def test_recall_is_the_share_of_golden_pieces_in_the_first_k(self, settings: SearchSettings) -> None:
        corpus = wordy_corpus()
        queries = wordy_queries(corpus)
        measured = measure(corpus, queries, settings)
        for name, stage in measured.stages.items():
            for query, recall in zip(queries, stage.recalls(10), strict=True):
                trace = search(corpus, query.text, settings)
                if name == "passages":
                    shown = {
                        at
                        for at, chunk in enumerate(map(corpus.chunk, range(len(corpus))))
                        for one in trace.passages[:10]
                        if corpus.item_of[at] == one.item
                        and one.start <= chunk.start
                        and chunk.end <= one.end
                    }
                else:
                    shown = set(trace.stage(name).ranking.positions[:10].tolist())
                golden = {
                    corpus.position_of(f"{one.document_id}:{one.start}-{one.end}")
                    for one in query.evidence
                }
                assert recall == len(golden & shown) / len(golden), (name, query.id)
            assert stage.recall(10) == pytest.approx(np.mean(stage.recalls(10)))
        found = measured.stage("kept").recall(10)
        assert 0 < found < 1

    def test_the_stages_that_are_on_are_measured(self) -> None:
        corpus = wordy_corpus()
        queries = wordy_queries(corpus)
        two = measure(corpus, queries)
        assert {"bm25", "vector", "fused", "scored", "kept", "passages"} <= set(two.stages)
        assert "items" not in two.stages
        one = measure(corpus, queries, SearchSettings(two_stage=False).with_index("bm25", on=False))
        assert set(one.stages) == {"vector", "fused", "kept", "passages"}
        with pytest.raises(
            EvaluationError, match="no stage 'bm25' was measured; there are vector, fused"
        ):
            one.stage("bm25")

    def test_a_passage_holds_the_chunks_between_its_ends(self) -> None:
        text = "seal kit one\nof the pump\nseal kit two"
        corpus = corpus_of(document(text, chunks=((0, 12), (13, 24), (25, 37))))
        query = GoldenQuery("q", "seal kit", (Evidence("d1", 13, 24),))
        settings = SearchSettings(two_stage=False, merge_gap=20).with_index("vector", on=False)
        measured = measure(corpus, [query], settings)
        assert measured.stage("kept").ranks[0].tolist() == [0]
        assert measured.stage("passages").ranks[0].tolist() == [1]

    def test_deeper_than_a_stage_was_asked_is_an_error_not_a_low_number(self) -> None:
        corpus = wordy_corpus()
        settings = SearchSettings(two_stage=False, k=15).with_index("bm25", depth=10)
        measured = measure(corpus, wordy_queries(corpus), settings)
        assert {name: stage.reach for name, stage in measured.stages.items()} == {
            "bm25": 10,
            "vector": 150,
            "fused": 150,
            "kept": 15,
            "passages": 15,
        }
        assert measured.stage("bm25").recall(10) >= 0
        with pytest.raises(EvaluationError, match=r"recall@20 of bm25 .* asked for 10 only; raise"):
            measured.stage("bm25").recall(20)
        with pytest.raises(EvaluationError, match="recall@16 of passages"):
            measured.stage("passages").recall(16)
        with pytest.raises(EvaluationError, match="k is 1 or more"):
            measured.stage("bm25").recall(0)

    def test_shallow_lists_make_a_shallow_fusion(self) -> None:
        corpus = wordy_corpus()
        settings = SearchSettings().with_index("bm25", depth=10).with_index("vector", depth=10)
        measured = measure(corpus, wordy_queries(corpus), settings)
        assert {measured.stage(name).reach for name in ("fused", "scored", "kept", "passages")} == {10}

    def test_a_short_list_that_was_asked_for_enough_has_a_recall(self) -> None:
        corpus = corpus_of(document("seal kit"))
        measured = measure(corpus, [GoldenQuery("q", "seal", (Evidence("d1", 0, 8),))])
        assert measured.stage("kept").recall(20) == 1.0

    def test_queries_without_evidence_are_counted_apart(self) -> None:
        corpus = wordy_corpus()
        silent = GoldenQuery("silent", "nothing of it")
        queries = wordy_queries(corpus)
        measured = measure(corpus, [silent, *queries])
        assert measured.unanswerable == (silent,)
        assert measured.queries == tuple(queries)
        assert measured.stage("kept").recall(20) == measure(corpus, queries).stage("kept").recall(20)
        assert measured.milliseconds.shape == (len(queries),)
        with pytest.raises(EvaluationError, match="none of 1 queries has evidence"):
            measure(corpus, [silent])

    def test_evidence_that_is_not_in_the_corpus_counts_as_not_found_and_is_named(self) -> None:
        corpus = corpus_of(document("seal kit"))
        evidence = (Evidence("d1", 0, 8), Evidence("deleted", 0, 8))
        measured = measure(corpus, [GoldenQuery("q", "seal", evidence)])
        assert measured.stage("kept").recall(20) == 0.5
        assert "1 golden spans have no chunk in this corpus: they count as not found" in measured.notes

    def test_a_reranker_that_fails_for_some_queries_is_not_measured_and_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path))  # scores are kept there

        class Moody:
            name, model_id, listwise, paid = "moody", "m1", True, True

            def scores(self, query: str, texts: Sequence[str]) -> Scores:
                if query.startswith("amber"):
                    raise RerankError("moody is away; ask again")
                return Scores(np.arange(len(texts), dtype=np.float64), dollars=0.25)

            def estimate(self, query: str, texts: Sequence[str]) -> float:
                return 0.25

        register_reranker("moody", lambda model: Moody())
        try:
            corpus = wordy_corpus()
            queries = wordy_queries(corpus)
            settings = SearchSettings(rerank="moody", rerank_depth=12)
            whole = measure(corpus, queries[1:], settings, pay=True)
            part = measure(corpus, queries, settings, pay=True)
        finally:
            unregister_reranker("moody")
        assert whole.stage("reranker").reach == whole.stage("kept").reach == 12
        assert whole.dollars == 0.25 * 9
        assert whole.notes == ()
        assert "reranker" not in part.stages
        assert part.notes == (
            "not reranked: moody is away; ask again (1 of 10 queries)",
            "reranker is not measured: it was off for 1 of 10 queries",
        )

    def test_two_queries_with_one_id_are_named(self) -> None:
        corpus = corpus_of(document("seal kit"))
        query = GoldenQuery("q", "seal", (Evidence("d1", 0, 8),))
        with pytest.raises(EvaluationError, match="two golden queries have the id 'q'"):
            measure(corpus, [query, query])

    def test_progress_hears_of_queries_and_stops(self) -> None:
        corpus = wordy_corpus()
        queries = wordy_queries(corpus)
        heard: list[tuple[int, int]] = []
        measure(corpus, queries, progress=lambda done, total: heard.append((done, total)))
        assert heard == [(done, 10) for done in range(11)]

        def stop(done: int, total: int) -> None:
            if done == 3:
                raise Stopped("stopped")

        with pytest.raises(Stopped):
            measure(corpus, queries, progress=stop)

    def test_evidence_is_a_span_with_a_grade(self) -> None:
        with pytest.raises(EvaluationError, match="7-7 is no span"):
            Evidence("d1", 7, 7)
        with pytest.raises(EvaluationError, match="grade"):
            Evidence("d1", 0, 1, -1)


def test_the_pitfalls_of_judgements_have_the_declared_figures(eval_data: Path) -> None:
    facts = json.loads((eval_data / "hard_inputs/fixtures/qrels_pitfalls.json").read_text("utf-8"))
    known = sorted({one for ranked in facts["run"].values() for one in ranked} | {"d2"})
    recalls = {}
    for query, relevant in facts["qrels"].items():
        golden = Golden(
            np.array(sorted(known.index(one) for one in relevant if one in known), dtype=np.int64),
            sum(one not in known for one in relevant),
        )
        run = [known.index(one) for one in facts["run"][query]]
        ranks = ranks_in_chunks(golden, Ranking(run, np.zeros(len(run))))
        if len(golden):
            recalls[query] = np.mean((ranks > 0) & (ranks <= 20))
    assert recalls == facts["expected"]["recall"]
    assert np.mean(list(recalls.values())) == facts["expected"]["mean_recall"]
