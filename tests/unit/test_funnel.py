"""Each golden piece has one fate, and what the stages lose adds up to what recall misses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from core.corpus import Corpus
from core.corpus.first_stage import FirstStage
from core.evaluation import EvaluationError, Evidence, GoldenQuery, golden_chunks
from core.evaluation.fates import LOSSES, Cut, Fate, fates
from core.evaluation.funnel import Funnel, measure_funnel
from core.evaluation.judgements import Unlocated
from core.explanation import explain
from core.pipeline import search
from core.rules import Rules
from core.settings import IndexSettings, SearchSettings
from core.types import Document
from tests.fakes import HashEmbedder


def document(id: str, *lines: str) -> Document:
    """A document of which each line is a chunk."""
    cut, at = [], 0
    for line in lines:
        cut.append((at, at + len(line)))
        at += len(line) + 1
    return Document(id, f"{id}.txt", id, "\n".join(lines), chunks=tuple(cut))


def corpus_of(*documents: Document) -> Corpus:
    return Corpus.from_documents(documents, IndexSettings(), HashEmbedder())


def chunk_evidence(corpus: Corpus, *positions: int) -> tuple[Evidence, ...]:
    chunks = [corpus.chunk(at) for at in positions]
    return tuple(Evidence(one.document_id, one.start, one.end) for one in chunks)


def fates_of(
    corpus: Corpus, query: GoldenQuery, settings: SearchSettings, k: int | None = None
) -> list[Fate]:
    trace = search(corpus, query.text, settings)
    return fates(trace, golden_chunks(corpus, query), query, settings.k if k is None else k)


def funnel_of(
    corpus: Corpus, queries: list[GoldenQuery], settings: SearchSettings, k: int | None = None
) -> Funnel:
    return Funnel.of(fate for query in queries for fate in fates_of(corpus, query, settings, k))


ONE_STAGE = SearchSettings(two_stage=False)
BM25 = ONE_STAGE.with_index("vector", on=False)
SEALS = document("d0", *(f"seal {'of the pump ' * n}" for n in range(1, 7)))


class TestOneFate:
    def test_found_and_in_which_passage(self) -> None:
        corpus = corpus_of(SEALS)
        query = GoldenQuery("q", "seal", chunk_evidence(corpus, 2))
        (fate,) = fates_of(corpus, query, SearchSettings())
        assert (fate.lost_at, fate.cause, fate.story) == ("", "", "")
        assert (fate.position, fate.item_rank, fate.passage, fate.share) == (2, 1, 1, 1.0)
        assert fate.within("bm25")

    def test_what_has_no_chunk(self) -> None:
        corpus = corpus_of(Document("d0", "a", "A", "aaa  bbb", chunks=((0, 3), (5, 8))))
        lost = Unlocated("b.txt", "no such words", "“no such words” is not in b.txt")
        query = GoldenQuery("q", "aaa", (Evidence("gone", 0, 3), Evidence("d0", 3, 5)), (lost,))
        told = fates_of(corpus, query, SearchSettings())
        assert [(fate.lost_at, fate.story) for fate in told] == [
            ("located", "“no such words” is not in b.txt"),
            ("corpus", "there is no document gone"),
            ("corpus", "no chunk holds any of characters 3–5"),
        ]
        assert {fate.position for fate in told} == {None}

    def test_an_item_that_is_not_sent_on_or_not_ranked(self) -> None:
        corpus = corpus_of(document("d0", "pump pump"), document("d1", "pump station in the north"))
        query = GoldenQuery("q", "pump", chunk_evidence(corpus, 0, 1))
        first, second = fates_of(corpus, query, SearchSettings(items=1))
        assert (first.lost_at, first.item_rank) == ("", 1)
        assert (second.lost_at, second.item_rank) == ("items", 2)
        assert (second.cause, second.story) == (
            "its item was not sent on",
            "its item is 2, and 1 are sent on",
        )
        lexical = SearchSettings().with_signal("semantic", on=False)
        (fate,) = fates_of(corpus, GoldenQuery("q", "station", chunk_evidence(corpus, 0)), lexical)
        assert (fate.lost_at, fate.item_rank) == ("items", 0)
        assert fate.cause == "no signal that counts ranks its item"

    def test_the_depth_of_every_index(self) -> None:
        corpus = corpus_of(SEALS)
        query = GoldenQuery("q", "seal", chunk_evidence(corpus, 3))
        two = BM25.with_index("bm25", depth=2)
        (fate,) = fates_of(corpus, query, two)
        assert (fate.lost_at, fate.cause) == ("indexes", "below every index's depth")
        assert fate.story == "deeper than any index looked: BM25 2"
        (fate,) = fates_of(corpus, query, two.replace(two_stage=True))
        assert (fate.story, fate.ranks["bm25"]) == ("BM25 4; the depth is BM25 2", 4)
        assert not fate.within("bm25")
        (fate,) = fates_of(corpus, GoldenQuery("q", "valve", query.evidence), BM25)
        assert fate.cause == "shares nothing with the query"
        (fate,) = fates_of(corpus, query, BM25.with_index("bm25", on=False))
        assert (fate.lost_at, fate.cause) == ("indexes", "no index is on")

    def test_only_indexes_of_weight_0_list_it(self) -> None:
        corpus = corpus_of(document("d0", "seal", "zeal"))
        query = GoldenQuery("q", "seal", chunk_evidence(corpus, 1))
        settings = ONE_STAGE.with_index("vector", weight=0.0)
        (fate,) = fates_of(corpus, query, settings)
        assert (fate.lost_at, fate.cause) == ("fused", "only indexes of weight 0 list it")
        assert fate.story == "Vector 2"

    def test_never_among_the_first_k(self) -> None:
        corpus = corpus_of(SEALS)
        query = GoldenQuery("q", "seal", chunk_evidence(corpus, 4))
        (fate,) = fates_of(corpus, query, BM25.replace(k=3))
        assert (fate.lost_at, fate.story) == ("kept", "rank 5, and the first 3 count")

    def test_pushed_out_by_fusion(self) -> None:
        """BM25 has it second; the vector list, of heavier weight, has it further down."""
        corpus = corpus_of(SEALS)
        query = GoldenQuery("q", "of the pump seal", chunk_evidence(corpus, *range(6)))
        settings = ONE_STAGE.replace(k=2).with_index("vector", weight=50.0)
        told = fates_of(corpus, query, settings)
        pushed = [fate for fate in told if fate.lost_at == "fused"]
        assert pushed
        for fate in pushed:
            assert fate.cause == "pushed out"
            assert min(fate.ranks["bm25"], fate.ranks["vector"]) <= 2 < fate.ranks["fused"]

    def test_pushed_out_by_score_fusion(self) -> None:
        corpus = corpus_of(
            document("d0", "pump seal", "seal"), document("d1", "pump seal pump", "pump pump pump")
        )
        query = GoldenQuery("q", "pump", chunk_evidence(corpus, *range(4)))
        settings = SearchSettings(k=2, item_weight=100.0).with_index("vector", on=False)
        told = {fate.position: fate for fate in fates_of(corpus, query, settings)}
        trace = search(corpus, "pump", settings)
        out = set(trace.stage("fused").ranking.positions[:2].tolist()) - set(
            trace.stage("scored").ranking.positions[:2].tolist()
        )
        assert {at for at, fate in told.items() if fate.lost_at == "scored"} == out

    def test_a_smaller_k_than_the_search_s(self) -> None:
        corpus = corpus_of(SEALS)
        query = GoldenQuery("q", "seal", chunk_evidence(corpus, 0, 4))
        assert [fate.lost_at for fate in fates_of(corpus, query, BM25, 3)] == ["", "kept"]
        with pytest.raises(EvaluationError, match=r"fates for k 21 .* kept 20; give 1 to 20"):
            fates_of(corpus, query, BM25, 21)
        with pytest.raises(EvaluationError, match="fates for k 0 "):
            fates_of(corpus, query, BM25, 0)

    def test_rules_count_only_above_k(self) -> None:
        corpus = corpus_of(document("d0", "seal", "Seal  ", "seal kit", "seal kit and more"))
        query = GoldenQuery("q", "seal", chunk_evidence(corpus, 1, 2))
        collapsed = BM25.replace(collapse_duplicates=True, per_item=2)
        first, second = fates_of(corpus, query, collapsed)
        assert (first.lost_at, first.cause) == ("rules", "a duplicate of a chunk above it")
        assert first.story == "same text as the chunk at rank 1"
        assert second.lost_at == ""
        (fate,) = fates_of(corpus, GoldenQuery("q", "seal", chunk_evidence(corpus, 3)), collapsed)
        assert (fate.lost_at, fate.cause) == ("rules", "its item's share was used up")
        # Two are above it already, so that with the first 2 no rule was needed to lose it.
        (fate,) = fates_of(corpus, GoldenQuery("q", "seal", chunk_evidence(corpus, 3)), collapsed, 2)
        assert (fate.lost_at, fate.cause) == ("kept", "never among the first k")

    def test_what_filters_and_rules_keep_out(self) -> None:
        corpus = corpus_of(*(document(f"d{n}", f"pump seal {'x ' * n}") for n in range(4)))
        rules = Rules.from_toml(
            '[[rule]]\nname = "old"\nitems = "file = d1.txt"\nhide = true\n'
            '[[rule]]\nname = "new"\nitems = "file != d2.txt"\nonly = true\n'
        )
        ruled = corpus.with_first_stage(FirstStage(rules=rules))
        query = GoldenQuery("q", "pump seal", chunk_evidence(corpus, 0, 1, 2, 3))
        filtered = SearchSettings(filters="file != d3.txt")
        told = fates_of(ruled, query, filtered)
        assert [(fate.lost_at, fate.cause) for fate in told] == [
            ("", ""),
            ("taken_out", "taken out: rule old hides it"),
            ("taken_out", "taken out: rule new keeps only others"),
            ("taken_out", "filtered out"),
        ]
        assert told[3].story == "its item does not pass file != d3.txt"
        funnel = Funnel.of(told)
        assert funnel.losses == dict.fromkeys(LOSSES, 0.0) | {"taken_out": 0.75}
        assert funnel.bar("taken_out").on
        assert funnel.bars[-1].passed_weight == 0.25
        one = fates_of(ruled, query, filtered.replace(two_stage=False))
        assert [fate.lost_at for fate in one] == ["", "", "", "taken_out"]  # rules act on ranked items
        off = fates_of(ruled, query, SearchSettings().with_signal("rules", on=False))
        assert not Funnel.of(off).bar("taken_out").on
        assert {fate.lost_at for fate in off} == {""}

    def test_a_copy_that_is_searched_tells_more_than_an_original_that_is_not(self) -> None:
        corpus = corpus_of(document("d0", "pump seal"), document("d1", "pump seal", "valve"))
        (first,) = chunk_evidence(corpus, 0)
        evidence = Evidence(first.document_id, 0, 9, copies=(("d1", 0, 9),))
        query = GoldenQuery("q", "valve", (evidence,))
        settings = BM25.replace(filters="file = d1.txt")
        (fate,) = fates_of(corpus, query, settings)
        assert (fate.lost_at, fate.position) == ("indexes", 1)
        (fate,) = fates_of(corpus, GoldenQuery("q", "seal", (evidence,)), settings)
        assert (fate.lost_at, fate.position) == ("", 1)

    def test_no_evidence_no_fates(self) -> None:
        assert fates_of(corpus_of(SEALS), GoldenQuery("q", "seal"), SearchSettings()) == []


class TestCuts:
    @pytest.mark.parametrize(
        ("start", "end", "chunks", "best"),
        [
            (1, 3, 1, 1.0),
            (0, 5, 1, 1.0),  # with the blank behind it, that no chunk holds
            (2, 9, 2, 4 / 6),  # "cc" and "dddd"
            (0, 14, 3, 4 / 12),
            (4, 5, 0, 0.0),
        ],
    )
    def test_whole_or_in_how_many(self, start: int, end: int, chunks: int, best: float) -> None:
        corpus = corpus_of(document("d0", "cccc", "dddd", "eeee"))
        evidence = Evidence("d0", start, end)
        told = fates_of(corpus, GoldenQuery("q", "cccc", (evidence,)), SearchSettings())
        assert told[0].asked.cuts == (Cut(evidence, chunks, best),)
        assert told[0].cut is (chunks > 1)

    def test_overlapping_chunks(self) -> None:
        text = "abcdefghij" * 3
        overlapping = Document("d0", "a", "A", text, chunks=((0, 20), (5, 25), (10, 30)))
        corpus = corpus_of(overlapping)
        inside, apart = Evidence("d0", 8, 18), Evidence("d0", 0, 30)
        told = fates_of(corpus, GoldenQuery("q", "abc", (inside, apart)), SearchSettings())
        assert told[0].asked.cuts == (Cut(inside, 3, 1.0), Cut(apart, 3, 20 / 30))

    def test_the_funnel_sums_them_up(self) -> None:
        corpus = corpus_of(document("d0", "cccc", "dddd", "eeee"))
        lost = Unlocated("b.txt", "x", "not there")
        queries = [
            GoldenQuery("a", "cccc", (Evidence("d0", 0, 4), Evidence("d0", 3, 7)), (lost,)),
            GoldenQuery("b", "dddd", (Evidence("d0", 0, 14), Evidence("gone", 0, 4))),
        ]
        spans = funnel_of(corpus, queries, SearchSettings()).spans
        assert (spans.all, spans.located, spans.whole, spans.cut, spans.missing) == (5, 4, 1, 2, 1)
        assert spans.best == pytest.approx((2 / 3 + 1 / 3) / 2)
        assert spans.queries == ("a", "b")


WORDS = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "inlet", "jetty"]


def wordy_corpus(n: int = 8, chunks: int = 5) -> Corpus:
    documents = []
    for item in range(n):
        lines = [
            " ".join(WORDS[(item * 3 + line * 7 + step * step) % 10] for step in range(1, 4))
            for line in range(chunks)
        ]
        documents.append(document(f"d{item}", *lines))
    return corpus_of(*documents)


CORPUS = wordy_corpus()
QUERIES = [
    GoldenQuery(
        word,
        f"{word} {WORDS[n - 3]}",
        (*chunk_evidence(CORPUS, n, (n * 11 + 3) % 40, (n * 7 + 5) % 40)[: n % 3 + 1],)
        + (Evidence("gone", 0, 4),) * (n % 4 == 0),
        (Unlocated("b.txt", "x", "not there"),) * (n == 7),
    )
    for n, word in enumerate(WORDS)
]
SETTINGS = st.builds(
    SearchSettings,
    two_stage=st.booleans(),
    items=st.integers(1, 9),
    second_stage=st.sampled_from(["hybrid", "semantic"]),
    fusion=st.sampled_from(["rrf", "minmax"]),
    item_weight=st.sampled_from([0.0, 1.0, 20.0]),
    collapse_duplicates=st.booleans(),
    per_item=st.integers(0, 3),
    k=st.integers(1, 12),
    merge_gap=st.sampled_from([0, 100]),
)

Use = tuple[bool, float, int]
USES = st.tuples(st.booleans(), st.sampled_from([0.0, 1.0]), st.integers(1, 40))


def _recall(query: GoldenQuery, settings: SearchSettings, k: int) -> float:
    golden = golden_chunks(CORPUS, query)
    kept = search(CORPUS, query.text, settings).stage("kept").ranking.positions[:k]
    return len(set(golden.positions.tolist()) & set(kept.tolist())) / len(golden)


class TestFunnel:
    @examples(max_examples=40, deadline=None)
    @given(
        SETTINGS,
        st.tuples(USES, USES),
        st.data(),
    )
    def test_losses_are_what_recall_misses_and_fates_what_explanations_tell(
        self, settings: SearchSettings, uses: tuple[Use, Use], data: st.DataObject
    ) -> None:
        for name, (on, weight, depth) in zip(("bm25", "vector"), uses, strict=True):
            settings = settings.with_index(name, on=on, weight=weight, depth=depth)
        k = data.draw(st.integers(1, settings.k))
        funnel = funnel_of(CORPUS, QUERIES, settings, k)
        missed = 1 - np.mean([_recall(query, settings, k) for query in QUERIES])
        assert math.fsum(funnel.losses.values()) == pytest.approx(missed, abs=1e-12)
        assert funnel.bars[-1].passed_weight == pytest.approx(1 - missed, abs=1e-12)
        assert [bar.stage for bar in funnel.bars] == list(LOSSES)
        assert sum(bar.lost for bar in funnel.bars) + funnel.bars[-1].passed == len(funnel.fates)
        for query in QUERIES:
            trace = search(CORPUS, query.text, settings)
            for fate in funnel.of_query(query.id):
                if fate.position is not None and k == settings.k:
                    _agrees(fate, explain(trace, fate.position).lost_at)

    def test_bars_carry_counts_weights_causes_and_queries(self) -> None:
        corpus = corpus_of(
            document("d0", "pump pump", "seal"), document("d1", "pump station in the north")
        )
        queries = [
            GoldenQuery("a", "pump", chunk_evidence(corpus, 0, 2)),
            GoldenQuery("b", "seal", chunk_evidence(corpus, 1)),
        ]
        funnel = funnel_of(corpus, queries, SearchSettings(items=1))
        items = funnel.bar("items")
        assert (items.passed, items.lost, items.on) == (2, 1, True)
        assert (items.passed_weight, items.lost_weight) == (0.75, 0.25)
        assert items.causes == {"its item was not sent on": 1}
        assert items.queries == ("a",)
        assert funnel.worst is items
        assert not funnel.bar("reranker").on
        assert not funnel.bar("rules").on
        assert (funnel.k, funnel.queries) == (20, 2)
        assert funnel_of(corpus, queries, SearchSettings()).worst is None

    def test_each_index_has_its_own_bar(self) -> None:
        corpus = corpus_of(SEALS, document("d1", "valve"))
        query = GoldenQuery("q", "seal", chunk_evidence(corpus, 0, 4, 6))
        funnel = funnel_of(corpus, [query], SearchSettings().with_index("bm25", depth=2))
        assert [bar.stage for bar in funnel.indexes] == ["bm25", "vector"]
        bm25 = funnel.bar("bm25")
        assert (bm25.passed, bm25.lost) == (1, 2)
        assert bm25.passed_weight == pytest.approx(1 / 3)
        assert bm25.causes == {"below its depth": 1, "not in its list": 1}
        assert funnel.bar("vector").passed == 3
        assert funnel.bar("indexes").lost == 0
        with pytest.raises(KeyError, match=r"no bar 'colbert'; there are located, .*, vector"):
            funnel.bar("colbert")

    def test_merging_regains_what_lies_between(self) -> None:
        corpus = corpus_of(document("d0", "pump seal", "x", "pump seal kit"))
        query = GoldenQuery("q", "pump seal", chunk_evidence(corpus, 1))
        merged = funnel_of(corpus, [query], BM25.replace(merge_gap=5))
        assert (merged.bar("indexes").lost, merged.regained, merged.regained_weight) == (1, 1, 1.0)
        assert funnel_of(corpus, [query], BM25.replace(merge_gap=0)).regained == 0

    def test_nothing_and_two_k_are_no_funnel(self) -> None:
        with pytest.raises(EvaluationError, match="these have no k"):
            Funnel.of([])
        told = fates_of(CORPUS, QUERIES[0], SearchSettings(), 3)
        with pytest.raises(EvaluationError, match=r"these have \[3, 4\]"):
            Funnel.of(told + fates_of(CORPUS, QUERIES[1], SearchSettings(), 4))

    def test_a_set_is_searched_once_each_with_progress(self) -> None:
        heard: list[tuple[int, int]] = []
        silent = GoldenQuery("silent", "nothing of it")
        funnel = measure_funnel(
            CORPUS, [silent, *QUERIES], k=4, progress=lambda done, total: heard.append((done, total))
        )
        assert heard == [(done, 10) for done in range(11)]
        assert (funnel.k, funnel.queries) == (4, 10)
        assert funnel.losses == funnel_of(CORPUS, QUERIES, SearchSettings(), 4).losses
        assert [fate.asked.query for fate in funnel.of_query("birch")] == ["birch"] * 2
        heard.clear()
        with pytest.raises(EvaluationError, match="two golden queries have the id 'amber'"):
            measure_funnel(
                CORPUS, [QUERIES[0]] * 2, progress=lambda done, total: heard.append((done, total))
            )
        assert heard == []  # before a search, not after all of them


def _agrees(fate: Fate, lost_at: str | None) -> None:
    """An explanation names the cut that ended a way, a fate what pushed it there."""
    if fate.lost_at in ("items", "reranker") and fate.cause != "pushed out":
        assert lost_at == fate.lost_at
    elif fate.lost_at == "indexes":
        assert lost_at in (fate.depths or ("fused",))
    elif fate.cause == "only indexes of weight 0 list it":
        assert lost_at in ("fused", *fate.depths)
    elif fate.lost_at:
        assert lost_at in ("kept", "reranker")
    else:
        assert lost_at is None
        assert fate.passage


class TestCeiling:
    def test_what_each_number_of_items_makes_unreachable_and_costs(self) -> None:
        corpus = corpus_of(
            document("d0", "pump pump", "seal"),
            document("d1", "pump station in the north"),
            document("d2", "seal", "valve", "gate"),
        )
        queries = [
            GoldenQuery("a", "pump", (*chunk_evidence(corpus, 0, 2), Evidence("gone", 0, 3))),
            GoldenQuery("b", "valve", chunk_evidence(corpus, 4, 1)),
        ]
        settings = SearchSettings(items=2).with_signal("semantic", on=False)
        funnel = funnel_of(corpus, queries, settings)
        ceiling = funnel.ceiling
        assert ceiling is not None
        assert ceiling.items.tolist() == [1, 2]
        # Two thirds of a half are in the corpus; d0 is never ranked for "valve".
        assert ceiling.unreachable == pytest.approx([1 / 6 + 1 / 4, 1 / 4])
        # a: d0 (2 chunks), then d1 (1); b: d2 (3) alone.
        assert ceiling.chunks.tolist() == [2.5, 3.0]
        assert ceiling.current == 2
        assert ceiling.at(2) == pytest.approx((funnel.bar("items").lost_weight, 3.0))
        assert ceiling.at(50) == ceiling.at(2)
        with pytest.raises(EvaluationError, match="0 items"):
            ceiling.at(0)

    def test_it_is_what_the_item_stage_loses_at_each_number(self) -> None:
        ceiling = funnel_of(CORPUS, QUERIES, SearchSettings()).ceiling
        assert ceiling is not None
        assert len(ceiling.items) == 8
        for items in range(1, 9):
            settings = SearchSettings(items=items)
            lost = funnel_of(CORPUS, QUERIES, settings).bar("items").lost_weight
            searched = [
                len(search(CORPUS, query.text, settings).stage("vector").before) for query in QUERIES
            ]
            assert ceiling.at(items) == pytest.approx((lost, np.mean(searched)), abs=1e-12)

    def test_without_an_item_stage_there_is_none(self) -> None:
        assert funnel_of(CORPUS, QUERIES, ONE_STAGE).ceiling is None
