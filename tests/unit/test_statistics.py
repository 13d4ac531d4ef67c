"""Intervals, the paired test, its correction and the words for it; settings compared over golden queries."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import binomtest, ttest_rel

from core.evaluation.compare import Compared, compare_measured
from core.evaluation.judgements import EvaluationError, Evidence, GoldenQuery
from core.evaluation.runner import Measured, StageRanks
from core.evaluation.statistics import Comparison, compare, corrected, interval, verdict
from core.settings import SearchSettings


def better_by(wins: int, losses: int, ties: int, step: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """A and B with B `step` higher in `wins` queries and lower in `losses`."""
    a = np.array([0.5] * wins + [0.5] * losses + [1.0] * ties)
    return a, a + np.array([step] * wins + [-step] * losses + [0.0] * ties)


class TestInterval:
    def test_is_about_what_the_normal_approximation_says(self) -> None:
        values = np.random.default_rng(3).random(400)
        mean, low, high = interval(values)
        half = 1.96 * values.std(ddof=1) / 20
        assert mean == values.mean()
        assert (low, high) == pytest.approx((mean - half, mean + half), abs=0.003)

    def test_is_the_same_every_time_and_mirrors(self) -> None:
        values = np.random.default_rng(4).choice([-0.5, 0.0, 0.0, 0.5, 1.0], 60)
        found = interval(values, bounds=(-1, 1))
        assert found == interval(values, bounds=(-1, 1))
        mean, low, high = interval(-values, bounds=(-1, 1))
        assert (-mean, -high, -low) == found
        mean, low, high = interval(values, bounds=(-1, 1), seed=1)
        assert (low, high) == pytest.approx(found[1:], abs=0.03)

    def test_holds_the_truth_in_about_95_of_100_sets_of_queries_that_mostly_succeed(self) -> None:
        random = np.random.default_rng(5)
        held = 0
        for _ in range(200):
            _, low, high = interval((random.random(50) < 0.9).astype(float))
            held += low <= 0.9 <= high
        assert held >= 184

    @pytest.mark.parametrize("n", [1, 25])
    def test_all_equal_is_no_proof_and_gives_the_exact_binomial_bound(self, n: int) -> None:
        exact = binomtest(n, n).proportion_ci(0.95, method="exact")
        assert interval([1.0] * n) == pytest.approx((1.0, exact.low, 1.0))
        assert interval([0.0] * n) == pytest.approx((0.0, 0.0, 1 - exact.low))
        share = 1 - exact.low
        assert interval([0.25] * n) == pytest.approx((0.25, 0.25 * exact.low, 0.25 + 0.75 * share))

    def test_ends_are_finite_whatever_the_values(self) -> None:
        for values in product([0.0, 1e-12, 0.3, 1.0], repeat=4):
            mean, low, high = interval(values)
            assert 0 <= low <= mean <= high <= 1

    def test_refuses_no_value_and_what_is_not_finite(self) -> None:
        with pytest.raises(EvaluationError, match="no query"):
            interval([])
        with pytest.raises(EvaluationError, match="value 2 is not a finite number"):
            interval([0.5, math.nan])


class TestCompare:
    def test_counts_and_figures(self) -> None:
        found = compare([0.5, 1.0, 0.0, 0.5], [1.0, 0.5, 1.0, 0.5], ("plain", "hybrid"), "recall@5")
        assert (found.wins, found.losses, found.ties, found.queries) == (2, 1, 1, 4)
        assert found.means == (0.5, 0.75)
        assert found.difference == 0.25
        assert found.spread == pytest.approx(np.std([0.5, -0.5, 1.0, 0.0], ddof=1))
        assert found.low <= 0.25 <= found.high

    def test_lower_may_be_better(self) -> None:
        found = compare([0.5, 0.5, 0.0], [0.0, 0.25, 0.5], metric="failure@5", higher_is_better=False)
        assert (found.wins, found.losses) == (2, 1)

    def test_p_is_exact_with_few_queries(self) -> None:
        random = np.random.default_rng(6)
        a, b = random.random(9), random.random(9)
        differences = b - a
        every = np.array([np.mean(differences * signs) for signs in product([1, -1], repeat=9)])
        exact = np.mean(np.abs(every) >= abs(differences.mean()) - 1e-12)
        assert compare(a, b).p == pytest.approx(exact)
        # A query that both answer alike says nothing for either.
        tied = compare(np.append(a, [0.2] * 50), np.append(b, [0.2] * 50))
        assert tied.p == pytest.approx(exact)

    def test_p_is_near_the_t_test_with_many(self) -> None:
        random = np.random.default_rng(7)
        a = random.random(200)
        b = a + random.normal(0.02, 0.15, 200)
        assert compare(a, b).p == pytest.approx(ttest_rel(a, b).pvalue, abs=0.02)

    def test_one_query_and_no_difference_prove_nothing(self) -> None:
        assert compare([0.0], [1.0]).p == 1
        assert compare([0.5] * 30, [0.5] * 30).p == 1
        # What differs by rounding only is the same.
        assert compare([0.3] * 30, [0.1 + 0.2] * 30).ties == 30

    def test_other_queries_are_refused(self) -> None:
        with pytest.raises(EvaluationError, match="plain has 2 queries and hybrid has 3"):
            compare([1, 0], [1, 0, 1], ("plain", "hybrid"))


class TestNeeded:
    def test_is_the_number_with_which_8_of_10_sets_tell_them_apart(self) -> None:
        random = np.random.default_rng(8)
        steps, odds = [0.5, -0.5, 0.0], [0.2, 0.1, 0.7]

        def drawn(n: int) -> Comparison:
            return compare(np.full(n, 0.5), 0.5 + random.choice(steps, n, p=odds))

        a, b = better_by(20, 10, 70)
        pilot = compare(a, b)
        assert not pilot.distinguishable
        assert pilot.needed == pytest.approx(7.85 * (pilot.spread / pilot.difference) ** 2, rel=0.01)
        seen = sum(drawn(pilot.needed or 0).distinguishable for _ in range(60))
        assert 39 <= seen <= 57

    def test_is_never_fewer_than_could_show_anything(self) -> None:
        # Three wins of three: the spread is 0, and the test cannot get below p = 2/8.
        assert compare([0.0] * 3, [0.5] * 3).needed == 6
        assert compare([0.0] * 6, [0.5] * 6).distinguishable

    def test_more_comparisons_need_more_queries(self) -> None:
        one = compare(*better_by(20, 10, 70))
        nothing = compare(*better_by(5, 5, 90))
        among = corrected([one, *[nothing] * 9])[0]
        assert (among.needed or 0) > (one.needed or 0)

    def test_cannot_be_said_without_a_difference_or_of_one_query(self) -> None:
        assert compare(*better_by(5, 5, 10)).needed is None
        assert compare([0.0], [1.0]).needed is None


class TestCorrected:
    def test_is_benjamini_and_hochbergs(self) -> None:
        real, close, nothing = (compare(*better_by(*how)) for how in ((14, 2, 9), (12, 5, 9), (4, 4, 9)))
        found = corrected([close, nothing, real])
        p = [real.p, close.p, nothing.p]
        expected = [min(p[0] * 3, p[1] * 3 / 2, p[2]), min(p[1] * 3 / 2, p[2]), p[2]]
        assert [found[2].p_corrected, found[0].p_corrected, found[1].p_corrected] == pytest.approx(
            expected
        )
        assert [one.p for one in found] == [close.p, nothing.p, real.p]
        assert {one.comparisons for one in found} == {3}

    def test_of_one_is_itself_and_of_none_is_none(self) -> None:
        one = compare(*better_by(14, 2, 9))
        assert corrected([one]) == [one]
        assert corrected([]) == []

    def test_what_differs_nowhere_is_not_counted(self) -> None:
        one, same = compare(*better_by(14, 2, 9)), compare([0.5] * 25, [0.5] * 25)
        assert corrected([same, one, same]) == [same, one, same]


class TestVerdict:
    def test_better(self) -> None:
        a, b = better_by(14, 2, 34)
        one = compare(a, b, ("plain", "hybrid"), "recall@20")
        others = [compare(*better_by(3, 3, 44))] * 2
        assert verdict(corrected([one, *others])[0]) == (
            "hybrid is better: recall@20 0.960 against 0.840, +0.120 [0.060, 0.200], "
            "14 wins, 2 losses, 34 ties, p = 0.015 (corrected for 3 comparisons)"
        )

    def test_worse_is_said_from_the_side_of_the_better(self) -> None:
        b, a = better_by(14, 0, 36)
        found = verdict(compare(a, b, ("plain", "hybrid"), "recall@20"))
        assert found.startswith("plain is better: recall@20 1.000 against 0.860, +0.140 [0.")
        assert found.endswith("], 14 wins, 0 losses, 36 ties, p < 0.001")

    def test_a_lower_failure_is_better(self) -> None:
        a, b = better_by(0, 14, 36)
        one = compare(a, b, ("plain", "hybrid"), "failure@20", higher_is_better=False)
        assert verdict(one).startswith("hybrid is better: failure@20 0.720 against 0.860, −0.140 [−0.")

    def test_not_distinguishable_says_how_many_more(self) -> None:
        a, b = better_by(4, 2, 19)
        one = compare(a, b, ("plain", "hybrid"), "recall@20")
        assert one.needed is not None
        more = round(one.needed - 25, -1)
        found = verdict(one)
        assert found.startswith(
            "not distinguishable with these 25 queries: hybrid against plain, recall@20 0.920 against "
            "0.880, +0.040 [−0."
        )
        assert found.endswith(f"4 wins, 2 losses, 19 ties, p = 0.69; about {more} more are needed")

    def test_the_same_on_every_query(self) -> None:
        values = [1.0, 0.5, 0.0]
        assert verdict(compare(values, values, metric="recall@20")) == (
            "the same on every query: recall@20 0.500 (3 queries)"
        )

    @pytest.mark.parametrize(
        ("a", "b", "end"),
        [
            (
                [0.0],
                [1.0],
                "1 win, 0 losses, 0 ties, p = 1.00; one query does not tell how many are needed",
            ),
            ([0, 1], [1, 0], "no number of queries like these tells them apart"),
            ([0.5] * 5, [0.9] * 5, "p = 0.062; about 1 more is needed"),
            ([0, 1, 0.5], [1, 0, 0.501], "more than 100,000 more would be needed"),
        ],
    )
    def test_odd_ends(self, a: list[float], b: list[float], end: str) -> None:
        assert verdict(compare(a, b)).endswith(end)


def measured(
    stages: dict[str, list[int]], ids: list[str] | None = None, reach: int = 50, grade: int = 1
) -> Measured:
    """One golden piece a query, at the rank given for each stage."""
    count = len(next(iter(stages.values())))
    named = ids or [f"q{n}" for n in range(count)]
    return Measured(
        settings=SearchSettings(),
        queries=tuple(GoldenQuery(id, f"text of {id}", (Evidence("d", 0, 5, grade),)) for id in named),
        unanswerable=(),
        stages={
            name: StageRanks(
                name,
                reach,
                tuple(np.array([rank]) for rank in ranks),
                tuple(np.array([grade]) for _ in ranks),
            )
            for name, ranks in stages.items()
        },
        milliseconds=np.zeros(count),
        dollars=0.0,
        notes=(),
    )


def only(found: Compared, stage: str, metric: str) -> Comparison:
    (one,) = [
        one.comparison
        for one in found.differences
        if (one.stage, one.comparison.metric) == (stage, metric)
    ]
    return one


class TestMeasured:
    def test_every_metric_at_every_stage_that_both_have(self) -> None:
        plain = measured({"vector": [1, 30, 3], "fused": [1, 30, 3], "rerank": [1, 2, 3]})
        hybrid = measured({"vector": [1, 30, 3], "fused": [1, 2, 0]})
        found = compare_measured({"plain": plain, "hybrid": hybrid}, ["recall@20", "mrr"])
        assert [(one.stage, one.comparison.metric) for one in found.differences] == [
            ("vector", "recall@20"),
            ("vector", "MRR"),
            ("fused", "recall@20"),
            ("fused", "MRR"),
        ]
        assert found.notes == ("rerank is not compared: hybrid did not measure it",)
        assert {one.comparison.comparisons for one in found.differences if one.stage == "fused"} == {2}
        assert only(found, "vector", "recall@20").ties == 3
        assert only(found, "fused", "MRR").means == pytest.approx(
            ((1 + 1 / 30 + 1 / 3) / 3, (1 + 1 / 2) / 3)
        )
        assert found.differences[0].verdict.startswith("the same on every query: recall@20 0.667")

    def test_regressions_by_name_the_largest_first(self) -> None:
        before = measured({"fused": [1, 1, 2, 0, 4]})
        after = measured({"fused": [1, 2, 0, 3, 5]})
        (one,) = compare_measured({"a": before, "b": after}, ["mrr@10"]).differences
        assert [(c.query.id, c.before, c.after) for c in one.regressions] == [
            ("q1", 1.0, 0.5),
            ("q2", 0.5, 0.0),
            ("q4", 0.25, 0.2),
        ]
        assert [(c.query.text, c.after) for c in one.improvements] == [("text of q3", 1 / 3)]

    def test_a_failure_that_rises_is_a_regression(self) -> None:
        pair = {"a": measured({"fused": [1, 9]}), "b": measured({"fused": [9, 9]})}
        (one,) = compare_measured(pair, ["failure@5"]).differences
        assert [(c.query.id, c.before, c.after) for c in one.regressions] == [("q0", 0.0, 1.0)]
        assert one.improvements == ()

    def test_many_settings_are_each_held_to_the_first(self) -> None:
        sets = {name: measured({"fused": [1, 2, 3]}) for name in ("first", "second", "third")}
        found = compare_measured(sets, ["recall@20"])
        assert [one.comparison.names for one in found.differences] == [
            ("first", "second"),
            ("first", "third"),
        ]

    def test_queries_in_another_order_and_queries_that_only_one_has(self) -> None:
        a = measured({"fused": [1, 2, 3]}, ["x", "y", "z"])
        b = measured({"fused": [9, 3, 1]}, ["new", "z", "x"])
        found = compare_measured({"a": a, "b": b}, ["mrr"])
        assert [one.id for one in found.differences[0].queries] == ["x", "z"]
        assert found.differences[0].comparison.ties == 2
        assert found.notes == ("only a has query y: left out", "only b has query new: left out")

    def test_judgements_that_changed_between_are_named(self) -> None:
        a, b = measured({"fused": [1, 2]}), measured({"fused": [1, 2]}, grade=3)
        (note,) = compare_measured({"a": a, "b": b}).notes
        assert (
            note
            == "a and b were measured with different judgements of queries q0, q1; measure both again"
        )

    def test_k_beyond_the_reach_of_a_stage_is_named(self) -> None:
        shallow = measured({"fused": [1, 2]}, reach=10)
        deep = measured({"fused": [1, 2]})
        found = compare_measured({"deep": deep, "shallow": shallow}, ["recall@20", "recall@10"])
        assert [one.comparison.metric for one in found.differences] == ["recall@10"]
        assert "recall@20 of fused cannot be told" in found.notes[0]
        told = r"nothing can be compared: .*asked for 10 only.*; deep alone has recall@20 1\.000$"
        with pytest.raises(EvaluationError, match=told):
            compare_measured({"deep": deep, "shallow": shallow}, ["recall@20"])

    def test_refuses_one_setting_strangers_and_unknown_metrics(self) -> None:
        one = measured({"fused": [1, 2]})
        with pytest.raises(EvaluationError, match="measure two or more"):
            compare_measured({"a": one})
        with pytest.raises(EvaluationError, match="a and b have no query in common"):
            compare_measured({"a": one, "b": measured({"fused": [1, 2]}, ["x", "y"])})
        with pytest.raises(EvaluationError, match="no metric 'bleu@4'"):
            compare_measured({"a": one, "b": one}, ["bleu@4"])
