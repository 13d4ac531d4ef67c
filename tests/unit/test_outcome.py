"""One search of each query serves metrics, funnel and coverage, and what was kept of it is there at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from core.corpus import Corpus
from core.errors import Stopped
from core.evaluation import Evidence, GoldenQuery, measure
from core.evaluation.coverage import measure_coverage
from core.evaluation.funnel import Funnel, measure_funnel
from core.evaluation.judgements import Unlocated
from core.evaluation.outcome import Outcome, evaluate, kept_outcome
from core.evaluation.results import ResultsCache
from core.settings import SearchSettings
from tests.fakes import HashEmbedder
from tests.unit.test_evaluation import wordy_corpus, wordy_queries
from tests.unit.test_runner import BASE, Priced, figures, priced

__all__ = ["priced"]  # a fixture
SETTINGS = [
    BASE,
    BASE.replace(items=2, k=7),
    SearchSettings(two_stage=False, per_item=1).with_index("bm25", depth=4),
]


@pytest.fixture(autouse=True)
def a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path / "home"))


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return wordy_corpus()


@pytest.fixture(scope="module")
def queries(corpus: Corpus) -> list[GoldenQuery]:
    lost = Unlocated("gone.txt", "no words", "there is no document gone.txt")
    away = GoldenQuery("away", "amber", (Evidence("gone", 0, 3),), (lost,))
    copied = GoldenQuery("copied", "seal", (Evidence("d1", 0, 9, 2, (("d2", 0, 9),)),))
    silent = GoldenQuery("silent", "unanswered")
    unlocated = GoldenQuery("unlocated", "kit", (), (lost,))
    return [*wordy_queries(corpus), away, copied, silent, unlocated]


def asked_of(corpus: Corpus) -> int:
    assert isinstance(corpus.embedder, HashEmbedder)
    return corpus.embedder.queries


def told(funnel: Funnel) -> list[object]:
    ceiling = funnel.ceiling
    curves = [] if ceiling is None else [ceiling.unreachable.tolist(), ceiling.chunks.tolist()]
    asked = [(one.asked.query, one.asked.k, one.asked.pieces, one.asked.cuts) for one in funnel.fates]
    shared = [(one.asked.off, one.asked.items, dict(one.depths)) for one in funnel.fates]
    ends = [(one.position, one.lost_at, one.cause, one.story, one.cut) for one in funnel.fates]
    ranks = [(dict(one.ranks), one.item_rank, one.passage) for one in funnel.fates]
    fates = [asked, shared, ends, ranks]
    return [funnel.bars, funnel.indexes, funnel.spans, funnel.regained, curves, *fates]


def all_of(outcome: Outcome) -> list[object]:
    covered = outcome.coverage
    assert covered is not None
    rows = {name: values.tolist() for name, values in covered.stages.items()}
    return [
        figures(outcome.measured),
        told(outcome.funnel),
        [query.id for query in covered.queries],
        rows,
        covered.omega.tolist(),
    ]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("cached", [False, True])
def test_all_three_are_what_each_is_alone(
    corpus: Corpus, queries: list[GoldenQuery], settings: SearchSettings, cached: bool, tmp_path: Path
) -> None:
    cache = ResultsCache(tmp_path) if cached else None
    outcome = evaluate(corpus, queries, settings, cache=cache)
    alone = Outcome(
        measure(corpus, queries, settings),
        measure_funnel(corpus, queries, settings),
        measure_coverage(corpus, queries, settings, 5),
    )
    assert all_of(outcome) == all_of(alone)
    if cache:
        kept = kept_outcome(corpus, queries, settings, cache)
        assert kept is not None
        assert all_of(kept) == all_of(alone)
        assert np.array_equal(kept.measured.milliseconds, outcome.measured.milliseconds)


def test_a_query_is_searched_once_and_what_is_kept_not_at_all(
    corpus: Corpus, queries: list[GoldenQuery], tmp_path: Path
) -> None:
    asked = sum(query.answerable for query in queries)
    measure(corpus, queries, BASE)  # the time of embedding is taken once
    before = asked_of(corpus)
    evaluate(corpus, queries, BASE, cache=ResultsCache(tmp_path))
    assert asked_of(corpus) - before == asked
    assert kept_outcome(corpus, queries, BASE, ResultsCache(tmp_path)) is not None
    assert asked_of(corpus) - before == asked


def test_without_located_evidence_there_is_no_coverage(corpus: Corpus) -> None:
    lost = Unlocated("gone.txt", "no words", "there is no document gone.txt")
    outcome = evaluate(corpus, [GoldenQuery("q", "amber", (), (lost,))], BASE)
    assert outcome.coverage is None
    assert outcome.funnel.losses["located"] == 1


class TestKept:
    def test_only_the_whole_of_what_was_asked_for(
        self, corpus: Corpus, queries: list[GoldenQuery], tmp_path: Path
    ) -> None:
        cache = ResultsCache(tmp_path)
        assert kept_outcome(corpus, queries, BASE, cache) is None
        assert not cache.path.exists()  # to look is not to write

        def stop(done: int, total: int) -> None:
            if done == 4:
                raise Stopped("enough")

        with pytest.raises(Stopped):
            evaluate(corpus, queries, BASE, stop, cache)
        assert kept_outcome(corpus, queries, BASE, cache) is None
        before = asked_of(corpus)
        whole = evaluate(corpus, queries, BASE, None, cache)
        assert asked_of(corpus) - before <= 2 * (len(whole.measured.queries) - 4)
        assert kept_outcome(corpus, queries, BASE, cache) is not None
        assert kept_outcome(corpus, queries, BASE.replace(k=9), cache) is None
        assert kept_outcome(wordy_corpus(n=5), queries, BASE, cache) is None
        moved = replace(queries[0], evidence=(Evidence("d3", 0, 5),))
        assert kept_outcome(corpus, [moved, *queries[1:]], BASE, cache) is None
        assert kept_outcome(corpus, queries[3:], BASE, cache) is not None

    def test_a_query_that_got_another_id_is_told_of_by_it(
        self, corpus: Corpus, queries: list[GoldenQuery], tmp_path: Path
    ) -> None:
        cache = ResultsCache(tmp_path)
        evaluate(corpus, queries, BASE, cache=cache)
        kept = kept_outcome(corpus, [replace(queries[0], id="renamed")], BASE, cache)
        assert kept is not None
        assert {fate.asked.query for fate in kept.funnel.fates} == {"renamed"}

    def test_why_evidence_is_not_located_is_told_as_it_is_now(
        self, corpus: Corpus, tmp_path: Path
    ) -> None:
        cache = ResultsCache(tmp_path)
        for reason in ("there is no document a.txt", "“no words” is not in a.txt"):
            lost = Unlocated("a.txt", "no words", reason)
            outcome = evaluate(corpus, [GoldenQuery("q", "amber", (), (lost,))], BASE, cache=cache)
            assert [fate.story for fate in outcome.funnel.fates] == [reason]

    def test_figures_alone_are_not_enough_and_take_nothing_away(
        self, corpus: Corpus, queries: list[GoldenQuery], tmp_path: Path
    ) -> None:
        cache = ResultsCache(tmp_path)
        first = measure(corpus, queries, BASE, cache=cache)
        assert kept_outcome(corpus, queries, BASE, cache) is None
        outcome = evaluate(corpus, queries, BASE, cache=cache)
        assert figures(outcome.measured) == figures(first)
        measure(corpus, queries, BASE, cache=cache)
        assert kept_outcome(corpus, queries, BASE, cache) is not None

    def test_a_held_reranker_is_asked_for_again(
        self, corpus: Corpus, queries: list[GoldenQuery], priced: Priced, tmp_path: Path
    ) -> None:
        cache, settings = ResultsCache(tmp_path), SearchSettings(rerank="priced", rerank_depth=30)
        held = evaluate(corpus, queries, settings, cache=cache)
        assert held.measured.due > 0
        assert kept_outcome(corpus, queries, settings, cache) is None
        paid = evaluate(corpus, queries, settings, cache=cache, pay=True)
        kept = kept_outcome(corpus, queries, settings, cache)
        assert kept is not None
        assert all_of(kept) == all_of(paid)
        assert (kept.measured.dollars, paid.measured.dollars) == (0, pytest.approx(0.1 * priced.asked))
        assert "reranker" in kept.measured.stages
