"""Replay with a reranker in the way: the same trace as a new search, or NeedsSearch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import NeedsSearch, RerankError
from core.pipeline import replay, search
from core.protocols import Scores
from core.reranking import register_reranker, unregister_reranker
from core.settings import SearchSettings
from tests.properties.test_replay import CORPUS, QUERIES, WIDE, deeper, search_settings


class ShortestFirst:
    """Scores by length: another order than any index gives. `listwise` scores are places in the list."""

    model_id = "length"
    paid = False

    def __init__(self, name: str, listwise: bool = False) -> None:
        self.name, self.listwise = name, listwise

    def scores(self, query: str, texts: Sequence[str]) -> Scores:
        lengths = np.array([-float(len(text)) for text in texts])
        if self.listwise:
            lengths = lengths - lengths.mean()
        return Scores(lengths)

    def estimate(self, query: str, texts: Sequence[str]) -> float | None:
        return 0.0


class Priced(ShortestFirst):
    paid = True

    def scores(self, query: str, texts: Sequence[str]) -> Scores:
        return Scores(super().scores(query, texts).values, dollars=0.25)

    def estimate(self, query: str, texts: Sequence[str]) -> float | None:
        return 0.25


class Failing(ShortestFirst):
    def scores(self, query: str, texts: Sequence[str]) -> Scores:
        raise RerankError("failing: the service is asleep; wake it")


@pytest.fixture(scope="module", autouse=True)
def registered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    made = (ShortestFirst("short"), ShortestFirst("list", True), Priced("priced"), Failing("failing"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANKSCOPE_HOME", str(tmp_path_factory.mktemp("home")))
        for one in made:
            register_reranker(one.name, lambda model, one=one: one)  # type: ignore[misc]
        yield
        for one in made:
            unregister_reranker(one.name)


reranking = st.fixed_dictionaries(
    {
        "rerank": st.sampled_from(["none", "short", "list"]),
        "rerank_depth": st.sampled_from([1, 5, 150]),
        "rerank_order": st.sampled_from(["usual", "replace", "fuse"]),
        "rerank_weight": st.sampled_from([0.0, 1.0, 3.0]),
        "k_rrf_rerank": st.sampled_from([0, 60]),
    }
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(QUERIES), search_settings, search_settings, reranking, reranking)
def test_replaying_equals_searching(
    query: str, a: SearchSettings, b: SearchSettings, one: dict, other: dict
) -> None:
    a, b = a.replace(**one), b.replace(**other)
    searched = search(CORPUS, query, b)
    searched.check()
    try:
        replayed = replay(search(CORPUS, query, a), b)
    except NeedsSearch:
        assert a.two_stage != b.two_stage or deeper(a, b) or b.rerank != "none"
        return
    assert replayed == searched


def test_fewer_chunks_and_another_order_are_replayed_from_recorded_scores() -> None:
    wide = SearchSettings(rerank="short", rerank_depth=80, k=5)
    trace = search(WIDE, "seal pump", wide)
    for other in (
        wide.replace(rerank_depth=40),
        wide.replace(rerank_order="fuse"),
        wide.replace(rerank="none"),
        wide.replace(k=3),
    ):
        assert replay(trace, other) == search(WIDE, "seal pump", other)
    with pytest.raises(NeedsSearch, match="reranking 20 more"):
        replay(trace, wide.replace(rerank_depth=100))
    with pytest.raises(NeedsSearch, match="reranking by list"):
        replay(trace, wide.replace(rerank="list"))


def test_scores_of_a_list_hold_for_that_list_only() -> None:
    wide = SearchSettings(rerank="list", rerank_depth=50)
    trace = search(WIDE, "seal pump", wide)
    assert replay(trace, wide.replace(k=3)) == search(WIDE, "seal pump", wide.replace(k=3))
    with pytest.raises(NeedsSearch, match="another list"):
        replay(trace, wide.replace(rerank_depth=40))


def test_the_reranker_orders_the_best_chunks_and_only_these_go_on() -> None:
    trace = search(WIDE, "seal pump", SearchSettings(rerank="short", rerank_depth=30, k=10))
    before, after = trace.stage("scored").ranking, trace.stage("reranker").ranking
    assert set(after.positions.tolist()) == set(before.positions[:30].tolist())
    lengths = [len(trace.corpus.chunk(position).text) for position in after.positions.tolist()]
    assert lengths == sorted(lengths)
    assert trace.stage("kept").inputs == ("reranker",)
    assert trace.stage("kept").ranking == after.head(10)
    assert not trace.stage("reranked").on


def test_fused_ranks_are_those_before_and_the_rerankers() -> None:
    chosen = SearchSettings(
        rerank="short", rerank_depth=3, rerank_order="fuse", rerank_weight=2.0, k_rrf_rerank=1
    )
    trace = search(WIDE, "seal pump", chosen)
    fused, own = trace.stage("reranked"), trace.stage("reranker").ranking
    assert fused.inputs == ("scored", "reranker")
    for row, position in enumerate(fused.ranking.positions.tolist()):
        before = trace.stage("scored").ranking.rank_of(position)
        rank = own.rank_of(position)
        assert fused.ranks is not None
        assert before
        assert rank
        assert fused.ranks[row].tolist() == [before, rank]
        assert fused.ranking.scores[row] == pytest.approx(1 / (1 + before) + 2 / (1 + rank))


def test_a_reranker_that_fails_leaves_the_order_and_says_why() -> None:
    plain = search(WIDE, "seal pump", SearchSettings())
    trace = search(WIDE, "seal pump", SearchSettings(rerank="failing"))
    assert trace.passages == plain.passages
    stage = trace.stage("reranker")
    assert not stage.on
    assert stage.note == "failing: the service is asleep; wake it; the order before it goes on"
    assert trace.stage("kept").inputs == ("scored",)


def test_a_name_that_nobody_registered_is_a_failure_with_a_note() -> None:
    trace = search(WIDE, "seal pump", SearchSettings(rerank="nobody"))
    assert "nobody" in trace.stage("reranker").note
    assert trace.passages == search(WIDE, "seal pump").passages


def test_a_paid_reranker_is_asked_only_where_paying_is_allowed() -> None:
    chosen = SearchSettings(rerank="priced", rerank_depth=10)
    held = search(WIDE, "seal pump", chosen, pay=False)
    assert held.record.reranked is not None
    assert held.record.reranked.held
    assert held.stage("reranker").note.startswith(
        "the reranker priced is not asked yet: these 10 texts would cost about $0.2500"
    )
    paid = search(WIDE, "seal pump", chosen)
    assert paid.record.reranked is not None
    assert (paid.record.reranked.dollars, paid.record.reranked.held) == (0.25, False)
    assert paid.stage("reranker").on


def test_nothing_found_asks_nobody() -> None:
    trace = search(CORPUS, "   ", SearchSettings(rerank="failing"))
    assert trace.record.reranked is not None
    assert trace.record.reranked.failed == ""
    assert trace.stage("reranker").ranking.positions.tolist() == []
