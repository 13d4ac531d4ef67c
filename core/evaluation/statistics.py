"""Whether a difference between two settings is real: intervals, a paired test, and a verdict in words.

Everything is seeded: the same values give the same figures, and swapping the two settings mirrors them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.evaluation.judgements import EvaluationError

LEVEL = 0.05
"""A difference is called one when p, corrected, is below this. Intervals hold 1 − LEVEL."""
POWER = 0.8
"""The chance of seeing a difference of the size seen, with as many queries as `needed` says."""

_BOOTSTRAP = 2_000  # resamples: the ends of an interval move by less than its third decimal
_PERMUTATIONS = 9_999  # exact when there are fewer ways to swap, that is with up to 13 decided queries
_EQUAL = 1e-9  # values that differ by less are one value, computed in another order
_CELLS = 4_000_000  # resampled values held at once, 8 bytes each
_BEYOND = 100_000  # queries that nobody judges


class Interval(NamedTuple):
    """A mean and the ends of its interval."""

    mean: float
    low: float
    high: float


def interval(values: ArrayLike, *, bounds: tuple[float, float] = (0.0, 1.0), seed: int = 0) -> Interval:
    """The mean of values in `bounds`, one a query, with its 95 % bootstrap interval.

    BCa (Efron: Better Bootstrap Confidence Intervals, JASA 1987): metrics pile up at 1, where percentile
    intervals miss the truth too often. When all values are equal there is nothing to resample: then the
    ends say how far the mean could be off if the share of queries that differ were as large as n equal
    ones allow (Clopper, Pearson, Biometrika 1934), so that 25 queries without a failure do not pass for a
    proof. Raises EvaluationError when there is no value, or one is not finite.
    """
    taken = _values(values)
    mean = float(taken.mean())
    if np.ptp(taken) < _EQUAL:
        share = 1 - (LEVEL / 2) ** (1 / len(taken))
        return Interval(mean, mean + share * (bounds[0] - mean), mean + share * (bounds[1] - mean))
    from scipy.stats import bootstrap

    # Oriented by the first value that is not 0, so that the negated values have the negated interval.
    sign = np.sign(taken[np.flatnonzero(taken)[0]])
    found = bootstrap(
        (taken * sign,),
        np.mean,
        n_resamples=_BOOTSTRAP,
        confidence_level=1 - LEVEL,
        method="BCa",
        batch=_batch(taken),
        rng=np.random.default_rng(seed),
    ).confidence_interval
    low, high = sorted((float(found.low * sign), float(found.high * sign)))
    return Interval(mean, low, high)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two settings over the same queries: `names` are those of a and b, `difference` is b − a.

    `low` and `high` are the ends of its 95 % interval, `spread` its standard deviation over the queries
    (NaN with one query). `wins`: queries where b is better. `p` is of the paired randomisation test,
    `p_corrected` of the same among `comparisons` made at once.
    """

    names: tuple[str, str]
    metric: str
    higher_is_better: bool
    queries: int
    means: tuple[float, float]
    difference: float
    low: float
    high: float
    spread: float
    wins: int
    losses: int
    ties: int
    p: float
    p_corrected: float
    comparisons: int = 1

    @property
    def distinguishable(self) -> bool:
        return self.p_corrected < LEVEL

    @property
    def better(self) -> str | None:
        """The name of the better setting; None when they cannot be told apart."""
        if not self.distinguishable:
            return None
        return self.names[(self.difference > 0) == self.higher_is_better]

    @property
    def needed(self) -> int | None:
        """About how many queries in all would tell the two apart in 8 of 10 cases, were the difference
        and its spread as they are here; None when that cannot be said (no difference, or one query).

        ((z(1 − level/2) + z(power)) · spread / difference)², the normal approximation (Cohen, Statistical
        Power Analysis, 1988; for queries: Sakai, Topic set size design, Inf. Retrieval 19, 2016), and no
        fewer than the test could reject with at all. The level is the corrected one.
        """
        if self.queries < 2 or abs(self.difference) < _EQUAL:
            return None
        level = LEVEL * self.p / self.p_corrected
        reach = NormalDist().inv_cdf(1 - level / 2) + NormalDist().inv_cdf(POWER)
        normal = (reach * self.spread / self.difference) ** 2
        decided = (self.wins + self.losses) / self.queries
        return math.ceil(max(normal, math.log2(2 / level) / decided))


def compare(
    a: ArrayLike,
    b: ArrayLike,
    names: tuple[str, str] = ("A", "B"),
    metric: str = "the metric",
    *,
    higher_is_better: bool = True,
    seed: int = 0,
) -> Comparison:
    """Compare a metric of two settings query by query; values in [0, 1], shape (queries,) each.

    p is of the two-sided paired randomisation test on the mean difference, which assumes nothing of how
    values are distributed (Smucker, Allan, Carterette: A Comparison of Statistical Significance Tests for
    IR Evaluation, CIKM 2007). Raises EvaluationError when the shapes differ, or as `interval` does.
    """
    left, right = _values(a), _values(b)
    if left.shape != right.shape:
        raise EvaluationError(
            f"{names[0]} has {len(left)} queries and {names[1]} has {len(right)}; compare the same ones"
        )
    differences = right - left
    differences[np.abs(differences) < _EQUAL] = 0.0
    gains = int((differences > 0).sum())
    drops = int((differences < 0).sum())
    mean, low, high = interval(differences, bounds=(-1.0, 1.0), seed=seed)
    p = _randomisation(differences, seed)
    return Comparison(
        names=names,
        metric=metric,
        higher_is_better=higher_is_better,
        queries=len(left),
        means=(float(left.mean()), float(right.mean())),
        difference=_unsigned_zero(mean),
        low=_unsigned_zero(low),
        high=_unsigned_zero(high),
        spread=float(differences.std(ddof=1)) if len(left) > 1 else math.nan,
        wins=gains if higher_is_better else drops,
        losses=drops if higher_is_better else gains,
        ties=len(left) - gains - drops,
        p=p,
        p_corrected=p,
    )


def corrected(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The same comparisons, each corrected for all of them having been made.

    Benjamini and Hochberg (JRSS B 57, 1995): of the differences called real, at most 5 % are expected not
    to be. It holds for tests that move together, as metrics and stages over the same queries do; Holm's,
    which bounds the chance of a single error, finds next to nothing among the many a page shows.
    Comparisons without any difference test nothing and are not counted. Intervals stay those of one
    comparison, so that one may leave out 0 where p, corrected, is no longer below 5 %.
    """
    tested = [one for one in comparisons if one.ties < one.queries]
    if not tested:
        return list(comparisons)
    from scipy.stats import false_discovery_control

    adjusted = iter(false_discovery_control([one.p for one in tested], method="bh").tolist())
    return [
        replace(one, p_corrected=next(adjusted), comparisons=len(tested))
        if one.ties < one.queries
        else one
        for one in comparisons
    ]


def verdict(one: Comparison) -> str:
    """A comparison in a sentence. Swapping the two mirrors it; figures have three decimals."""
    if one.ties == one.queries:
        return f"the same on every query: {one.metric} {one.means[0]:.3f} ({_count(one.queries, 'query', 'queries')})"
    counts = _counts(one.wins, one.losses, one.ties)
    test = f"p {_p(one.p_corrected)}" + (
        f" (corrected for {one.comparisons} comparisons)" if one.comparisons > 1 else ""
    )
    if one.better is None:
        figures = _figures(one.means, one.difference, one.low, one.high)
        return (
            f"not distinguishable with {'this' if one.queries == 1 else 'these'} "
            f"{_count(one.queries, 'query', 'queries')}: {one.names[1]} against {one.names[0]}, {one.metric} {figures}, "
            f"{counts}, {test}; {_more(one)}"
        )
    means, difference, low, high = one.means, one.difference, one.low, one.high
    if one.better == one.names[0]:
        # Said from the side of the better one, so that wins are its wins.
        means, difference, low, high = (means[1], means[0]), -difference, -high, -low
        counts = _counts(one.losses, one.wins, one.ties)
    figures = _figures(means, difference, low, high)
    return f"{one.better} is better: {one.metric} {figures}, {counts}, {test}"


def _values(values: ArrayLike) -> NDArray[np.float64]:
    taken = np.array(values, dtype=np.float64)
    if taken.ndim != 1 or not len(taken):
        raise EvaluationError("there is no query to measure; judge one first")
    if not np.isfinite(taken).all():
        raise EvaluationError(f"value {np.argmin(np.isfinite(taken)) + 1} is not a finite number")
    return taken


def _unsigned_zero(value: float) -> float:
    return 0.0 if abs(value) < _EQUAL else value


def _batch(values: NDArray[np.float64]) -> int:
    return max(1, _CELLS // len(values))


def _randomisation(differences: NDArray[np.float64], seed: int) -> float:
    # Swapping the two settings of a tied query changes nothing: without ties the exact test reaches further.
    decided = differences[differences != 0]
    if len(decided) < 2:
        return 1.0  # a single one is as extreme with its sign turned
    from scipy.stats import permutation_test

    return float(
        permutation_test(
            (decided,),
            # Two-sided by the size of the mean: twice the smaller side would double the sampling error.
            lambda swapped, axis: np.abs(np.mean(swapped, axis=axis)),
            alternative="greater",
            permutation_type="samples",
            vectorized=True,
            n_resamples=_PERMUTATIONS,
            batch=_batch(decided),
            rng=np.random.default_rng(seed),
        ).pvalue
    )


def _figures(means: tuple[float, float], difference: float, low: float, high: float) -> str:
    signed = f"{'+' if round(difference, 3) > 0 else ''}{_shown(difference)}"
    return f"{means[1]:.3f} against {means[0]:.3f}, {signed} [{_shown(low)}, {_shown(high)}]"


def _shown(value: float) -> str:
    return f"{round(value, 3) + 0.0:.3f}".replace("-", "−")  # + 0.0: no minus before zero


def _counts(wins: int, losses: int, ties: int) -> str:
    return f"{_count(wins, 'win')}, {_count(losses, 'loss', 'losses')}, {_count(ties, 'tie')}"


def _count(n: int, one: str, many: str = "") -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"= {p:.3f}" if p < 0.1 else f"= {p:.2f}"


def _more(one: Comparison) -> str:
    if one.needed is None:
        return (
            "one query does not tell how many are needed"
            if one.queries == 1
            else "the means are equal, so that no number of queries like these tells them apart"
        )
    more = max(1, one.needed - one.queries)
    if more > _BEYOND:
        return f"more than {_BEYOND:,} more would be needed"
    digits = len(str(more)) - 2
    more = round(more, -digits) if digits > 0 else more
    return f"about {more:,} more {'is' if more == 1 else 'are'} needed"
