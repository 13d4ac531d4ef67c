"""Settings compared over a set of golden queries: what differs, whether it is real, and which queries lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from core.evaluation.judgements import EvaluationError, GoldenQuery
from core.evaluation.metrics import Metric, metric_at, per_query, saturated
from core.evaluation.runner import Measured
from core.evaluation.statistics import Comparison, compare, corrected, verdict

_NAMED = 5  # queries that a note names


@dataclass(frozen=True, slots=True)
class Change:
    """A query whose metric is not the same under two settings."""

    query: GoldenQuery
    before: float
    after: float


@dataclass(frozen=True, eq=False)
class Difference:
    """A metric at a stage under two settings, query by query.

    `before` and `after` (len(queries),) are of `comparison.names`, in that order.
    """

    stage: str
    comparison: Comparison
    queries: tuple[GoldenQuery, ...]
    before: NDArray[np.float64]
    after: NDArray[np.float64]

    @property
    def verdict(self) -> str:
        return verdict(self.comparison)

    @property
    def regressions(self) -> tuple[Change, ...]:
        """The queries for which the second setting is worse, the largest loss first."""
        return self._changes(-1)

    @property
    def improvements(self) -> tuple[Change, ...]:
        """The queries for which the second setting is better, the largest gain first."""
        return self._changes(1)

    def _changes(self, sign: int) -> tuple[Change, ...]:
        better = (
            self.after - self.before if self.comparison.higher_is_better else self.before - self.after
        )
        order = np.argsort(-sign * better, kind="stable")
        # Less than this is one value, computed in another order.
        rows = [at for at in order.tolist() if sign * better[at] > 1e-9]
        return tuple(
            Change(self.queries[at], float(self.before[at]), float(self.after[at])) for at in rows
        )


@dataclass(frozen=True, eq=False)
class Compared:
    """Differences by setting, stage, and metric; `notes` name what could not be compared, and why."""

    differences: tuple[Difference, ...]
    notes: tuple[str, ...]


def compare_measured(
    measured: Mapping[str, Measured],
    metrics: Sequence[str] = ("recall@20",),
    stages: Sequence[str] | None = None,
    *,
    seed: int = 0,
) -> Compared:
    """Compare settings with the first of them, at every stage that both have (or those of `stages`).

    `measured` has what was measured by the setting's name, `metrics` are labels as `metric_at` reads them.
    All verdicts are corrected for one another. Queries that only one has are left out and named. Raises
    EvaluationError for fewer than two settings, an unknown metric, or when nothing can be compared.
    """
    if len(measured) < 2:
        raise EvaluationError(f"{len(measured)} setting cannot be compared; measure two or more")
    asked = [metric_at(label) for label in metrics]
    first, *others = measured
    found: list[Difference] = []
    few = saturated(max(one.chunks for one in measured.values()), metrics)
    notes = [few] if few else []
    for other in others:
        pair = _Pair((first, other), (measured[first], measured[other]))
        notes += pair.notes()
        for stage in pair.stages(stages, notes):
            for metric, k in asked:
                try:
                    found.append(pair.difference(stage, metric, k, seed))
                except EvaluationError as error:
                    notes.append(f"{first} and {other}: {error}{pair.alone(stage, metric, k)}")
    notes = list(dict.fromkeys(notes))
    if not found:
        raise EvaluationError(
            "nothing can be compared: " + "; ".join(notes or ["no metric was asked for"])
        )
    judged = corrected([one.comparison for one in found])
    return Compared(
        tuple(replace(one, comparison=now) for one, now in zip(found, judged, strict=True)), tuple(notes)
    )


class _Pair:
    """Two settings, and the rows of the queries that both have."""

    def __init__(self, names: tuple[str, str], measured: tuple[Measured, Measured]) -> None:
        self._names, (self._a, self._b) = names, measured
        rows = {(one.id, one.text): at for at, one in enumerate(self._b.queries)}
        shared = [
            (at, rows[one.id, one.text])
            for at, one in enumerate(self._a.queries)
            if (one.id, one.text) in rows
        ]
        if not shared:
            raise EvaluationError(
                f"{names[0]} and {names[1]} have no query in common; measure both with the same ones"
            )
        self._rows = tuple(np.array(side, dtype=np.int64) for side in zip(*shared, strict=True))
        self._queries = tuple(self._a.queries[at] for at, _ in shared)
        self._judged_anew = [
            self._a.queries[at].id for at, to in shared if self._a.queries[at] != self._b.queries[to]
        ]

    def notes(self) -> list[str]:
        said = []
        kept = {one.id for one in self._queries}
        for name, side in zip(self._names, (self._a, self._b), strict=True):
            if alone := [one.id for one in side.queries if one.id not in kept]:
                said.append(f"only {name} has {_named(alone)}: left out")
        if self._judged_anew:
            said.append(
                f"{self._names[0]} and {self._names[1]} were measured with different judgements of "
                f"{_named(self._judged_anew)}; measure both again"
            )
        return said

    def stages(self, chosen: Sequence[str] | None, notes: list[str]) -> list[str]:
        """Those that both have, in order; `notes` is told of the others."""
        wanted = list(dict.fromkeys([*self._a.stages, *self._b.stages])) if chosen is None else chosen
        both = []
        for stage in wanted:
            without = [
                name
                for name, side in zip(self._names, (self._a, self._b), strict=True)
                if stage not in side.stages
            ]
            if without:
                notes.append(f"{stage} is not compared: {' and '.join(without)} did not measure it")
            else:
                both.append(stage)
        return both

    def difference(self, stage: str, metric: Metric, k: int | None, seed: int) -> Difference:
        before, after = (
            per_query(side.stages[stage], metric.name, k)[rows]
            for side, rows in zip((self._a, self._b), self._rows, strict=True)
        )
        comparison = compare(
            before,
            after,
            self._names,
            metric.label(k),
            higher_is_better=metric.higher_is_better,
            seed=seed,
        )
        return Difference(stage, comparison, self._queries, before, after)

    def alone(self, stage: str, metric: Metric, k: int | None) -> str:
        """The figure of the one side that has it, to go on a sentence; blank where neither has."""
        for name, side in zip(self._names, (self._a, self._b), strict=True):
            try:
                mean = float(per_query(side.stages[stage], metric.name, k).mean())
            except EvaluationError:
                continue
            return f"; {name} alone has {metric.label(k)} {mean:.3f}"
        return ""


def _named(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return ("query " if len(ids) == 1 else "queries ") + ", ".join(ids[:_NAMED]) + more
