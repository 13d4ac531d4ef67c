"""Reciprocal Rank Fusion (Cormack 2009) and convex combination (Bruch 2023), by exact arithmetic."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.fusion import convex, normalise, row_sums, rrf
from core.trace import Ranking


def ranked(*positions: int) -> Ranking:
    return Ranking(positions, [1 / (place + 1) for place in range(len(positions))])


def scores_of(fused) -> dict[int, float]:  # type: ignore[no-untyped-def]
    return {hit.position: hit.score for hit in fused.ranking}


def test_shared_cases_exactly(eval_data: Path) -> None:
    cases = json.loads((eval_data / "hard_inputs/fixtures/fusion_cases.json").read_text())["cases"]
    assert cases
    for name, case in cases.items():
        ids = sorted({one for listed in case["lists"].values() for one in listed})
        lists = {key: ranked(*map(ids.index, listed)) for key, listed in case["lists"].items()}
        fused = rrf(lists, k_rrf=60)
        got = {ids[position]: score for position, score in scores_of(fused).items()}
        assert got == pytest.approx(case["expected"]["scores"], abs=1e-9), name
        order = [ids[hit.position] for hit in fused.ranking]
        groups = case["expected"]["order_as_groups"]
        assert [sorted(order[sum(map(len, groups[:n])) :][: len(g)]) for n, g in enumerate(groups)] == [
            sorted(g) for g in groups
        ], name


def test_a_missing_rank_adds_nothing() -> None:
    fused = rrf({"a": ranked(0, 1), "b": ranked(1)}, k_rrf=60)
    assert scores_of(fused) == {0: 1 / 61, 1: 1 / 62 + 1 / 61}
    assert fused.ranks.tolist() == [[2, 1], [1, 0]]
    assert fused.terms.tolist() == [[1 / 62, 1 / 61], [1 / 61, 0.0]]


def test_weights_multiply_terms_and_weight_zero_counts_for_nothing() -> None:
    lists = {"a": ranked(0, 1), "b": ranked(2)}
    assert scores_of(rrf(lists, {"a": 2, "b": 0.5}, 0)) == {0: 2 / 1, 1: 2 / 2, 2: 0.5 / 1}
    assert scores_of(rrf(lists, {"b": 0}, 0)) == {0: 1.0, 1: 0.5}
    with pytest.raises(ValueError, match="weight of b is -1"):
        rrf(lists, {"b": -1})


def test_a_position_listed_twice_counts_with_its_best_place() -> None:
    assert scores_of(rrf({"a": ranked(5, 5, 3), "b": ranked(3)}, k_rrf=60)) == {
        3: 1 / 62 + 1 / 61,
        5: 1 / 61,
    }


def test_no_list_and_empty_lists_give_an_empty_ranking() -> None:
    assert len(rrf({}).ranking) == 0
    assert len(rrf({"a": ranked(), "b": ranked()}).ranking) == 0


lists_of_ranks = st.lists(st.lists(st.integers(0, 12), unique=True, max_size=12), min_size=1, max_size=4)


@given(lists_of_ranks, st.integers(0, 100))
def test_equals_exact_fractions_whatever_the_order_of_the_lists(lists: list[list[int]], k: int) -> None:
    exact: dict[int, Fraction] = {}
    for listed in lists:
        for rank, position in enumerate(listed, 1):
            exact[position] = exact.get(position, Fraction(0)) + Fraction(1, k + rank)
    results = [
        rrf({str(n): ranked(*lists[n]) for n in order}, k_rrf=k)
        for order in list(permutations(range(len(lists))))[:6]
    ]
    assert scores_of(results[0]) == pytest.approx({p: float(f) for p, f in exact.items()}, rel=1e-15)
    for other in results[1:]:
        assert other.ranking == results[0].ranking


def test_three_reciprocals_sum_the_same_in_any_order() -> None:
    terms = np.array([[1 / a, 1 / b, 1 / c] for a, b, c in permutations((61, 62, 67))])
    assert len(set(row_sums(terms).tolist())) == 1
    assert len({sum(row) for row in terms.tolist()}) > 1, "else this test proves nothing"


def test_min_max() -> None:
    assert normalise(np.array([3.0, 2.0, 1.0]), "minmax").tolist() == [1.0, 0.5, 0.0]
    assert normalise(np.array([4.0, 4.0]), "minmax").tolist() == [1.0, 1.0]


def test_z_score_is_shifted_so_that_the_last_adds_as_much_as_a_missing_one() -> None:
    spread = np.std([3.0, 2.0, 1.0])
    assert normalise(np.array([3.0, 2.0, 1.0]), "zscore") == pytest.approx([2 / spread, 1 / spread, 0])


def test_distribution_based() -> None:
    scores = np.array([3.0, 2.0, 1.0])
    spread = scores.std()
    low = 2.0 - 3 * spread
    assert normalise(scores, "dbsf") == pytest.approx([(s - low) / (6 * spread) for s in scores])
    assert normalise(np.array([5.0]), "dbsf").tolist() == [0.5]
    outlier = normalise(np.array([100.0] + [0.0] * 99), "dbsf")
    assert outlier[0] == 1.0


def test_convex_combination_shares_weights() -> None:
    lists = {"a": Ranking([0, 1], [10.0, 5.0]), "b": Ranking([1, 2], [0.9, 0.1])}
    fused = convex(lists, {"a": 3, "b": 1}, "minmax")
    assert scores_of(fused) == {0: 0.75, 1: 0.25, 2: 0.0}
    with pytest.raises(ValueError, match="'max' is unknown"):
        convex(lists, None, "max")


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30),
    st.sampled_from(["minmax", "zscore", "dbsf"]),
)
def test_normalising_keeps_the_order_and_is_finite(scores: list[float], method: str) -> None:
    given_scores = np.sort(np.array(scores))[::-1]
    shared = normalise(given_scores, method)
    assert np.isfinite(shared).all()
    assert (np.diff(shared) <= 1e-9).all()
    assert (shared >= 0).all()
