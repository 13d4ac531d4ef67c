"""The evidence funnel: how much of the golden evidence each stage lets through, and what ends where.

Weights are those of recall: a piece counts 1 / (golden pieces of its query) / (answerable queries), so
that what all stages lose adds up to 1 − recall@k of the stage `kept`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from core.corpus import Corpus
from core.evaluation.fates import LOSSES, Asked, Fate, fates
from core.evaluation.golden import golden_chunks
from core.evaluation.judgements import EvaluationError, GoldenQuery
from core.evaluation.runner import answerable
from core.explanation import stage_title
from core.pipeline import search
from core.protocols import Progress
from core.settings import SearchSettings

__all__ = ["LOSSES", "Bar", "Ceiling", "Fate", "Funnel", "Spans", "fates", "measure_funnel"]


@dataclass(frozen=True, slots=True)
class Bar:
    """One stage: golden pieces that passed it and that it lost, as counts and as shares of all weight.

    `causes`: cause → number of pieces; `queries`: ids of those that lose a piece here, in order.
    `on`: whether the stage was on for any query.
    """

    stage: str
    title: str
    on: bool
    passed: int
    passed_weight: float
    lost: int
    lost_weight: float
    causes: Mapping[str, int]
    queries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Spans:
    """What chunking did to the golden spans: `located` of `all`, of these `whole` in one chunk, `cut` into
    several or `missing` from the corpus. `best` is the mean share that the fullest chunk holds of a cut
    one; `queries` are the ids of those with a cut span."""

    all: int
    located: int
    whole: int
    cut: int
    missing: int
    best: float
    queries: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Ceiling:
    """What sending 1, 2, … items on costs, all of shape (n,): `unreachable` is the share of golden weight
    whose items do not go on, `chunks` the mean number of chunks that a query then searches in stage two.
    `current` is the number that the run sent on."""

    items: NDArray[np.int64]
    unreachable: NDArray[np.float64]
    chunks: NDArray[np.float64]
    current: int

    def at(self, items: int) -> tuple[float, float]:
        """`unreachable` and `chunks` for a number of items; beyond the last, they stay as they are."""
        if items < 1:
            raise EvaluationError(f"{items} items cannot be sent on; give 1 or more")
        row = min(items, len(self.items)) - 1
        return float(self.unreachable[row]), float(self.chunks[row])


@dataclass(frozen=True, eq=False)
class Funnel:
    """The fates of all golden pieces of a set of queries, stage by stage.

    `bars` are those of `LOSSES`, in order; what passed the last is recall@k of `kept`. `indexes` has a
    bar for each index: of the pieces that reached it, those within its depth. `regained` counts pieces
    that were lost and yet stand in one of the first k passages, by merging, with their weight.
    """

    k: int
    queries: int
    fates: tuple[Fate, ...]
    bars: tuple[Bar, ...]
    indexes: tuple[Bar, ...]
    spans: Spans
    regained: int
    regained_weight: float

    @classmethod
    def of(cls, fates: Iterable[Fate]) -> Funnel:
        """The funnel of what `fates` gave for all queries of a set, one after the other.

        Raises EvaluationError when there are none, when they were told for different k, or when two
        queries have one id.
        """
        every = tuple(fates)
        asked = _asked(every)
        twice = [one for one, times in Counter(one.query for one in asked).items() if times > 1]
        if twice:
            raise EvaluationError(f"two golden queries have the id {twice[0]!r}; give each its own")
        ks = sorted({one.k for one in asked})
        if len(ks) != 1:
            raise EvaluationError(
                f"a funnel needs golden pieces, all told for one k; these have {ks or 'no k'}"
            )
        regained = [fate for fate in every if fate.lost_at and 0 < fate.passage <= ks[0]]
        return cls(
            ks[0],
            len(asked),
            every,
            _bars(every, asked),
            _index_bars(every, asked),
            _spans(every, asked),
            len(regained),
            _weight(regained, len(asked)),
        )

    def bar(self, stage: str) -> Bar:
        """The bar of a loss in `LOSSES`, or of an index. Raises KeyError naming those there are."""
        for bar in self.bars + self.indexes:
            if bar.stage == stage:
                return bar
        raise KeyError(
            f"no bar {stage!r}; there are {', '.join(b.stage for b in self.bars + self.indexes)}"
        )

    @property
    def losses(self) -> dict[str, float]:
        """Stage → the share of all weight that it loses."""
        return {bar.stage: bar.lost_weight for bar in self.bars}

    @property
    def worst(self) -> Bar | None:
        """The bar that loses most; None when nothing is lost."""
        worst = max(self.bars, key=lambda bar: bar.lost_weight)
        return worst if worst.lost else None

    def of_query(self, query: str) -> tuple[Fate, ...]:
        """The fates of one query's pieces."""
        return tuple(fate for fate in self.fates if fate.asked.query == query)

    @cached_property
    def ceiling(self) -> Ceiling | None:
        """The first stage's ceiling; None where items play no part for some query."""
        asked = _asked(self.fates)
        curves = [one.searched for one in asked if one.searched is not None]
        if len(curves) < len(asked):
            return None
        n = max(1, *map(len, curves))
        chunks = np.zeros(n)
        for curve in curves:
            # An item that is not ranked never goes on, so that the cost ends with the last that is.
            chunks[: len(curve)] += curve
            if len(curve):
                chunks[len(curve) :] += curve[-1]
        reachable = np.zeros(n)
        inside = [fate for fate in self.fates if fate.position is not None]
        for fate in inside:
            if fate.item_rank:
                reachable[fate.item_rank - 1] += fate.share / self.queries
        unreachable = _weight(inside, self.queries) - reachable.cumsum()
        return Ceiling(
            np.arange(1, n + 1),
            np.where(unreachable < 1e-12, 0.0, unreachable),  # what rounding leaves is nothing
            chunks / len(asked),
            asked[0].items,
        )


def measure_funnel(
    corpus: Corpus,
    queries: Sequence[GoldenQuery],
    settings: SearchSettings | None = None,
    k: int | None = None,
    progress: Progress | None = None,
) -> Funnel:
    """Search for every query that has evidence, and gather what became of it; `k` is the settings' own
    when None.

    `progress(done, total)` hears of queries, and may raise `Stopped`. Nothing is paid: a reranker that costs
    takes part with the scores that were paid for before. Raises EvaluationError as `fates` and `measure`.
    """
    chosen = settings or SearchSettings()
    asked = answerable(queries)
    told: list[Fate] = []
    for number, query in enumerate(asked):
        if progress:
            progress(number, len(asked))
        trace = search(corpus, query.text, chosen, pay=False)
        told += fates(trace, golden_chunks(corpus, query), query, chosen.k if k is None else k)
    if progress:
        progress(len(asked), len(asked))
    return Funnel.of(told)


def _asked(every: Iterable[Fate]) -> tuple[Asked, ...]:
    """The queries of fates, each once, in order."""
    return tuple(dict.fromkeys(fate.asked for fate in every))


def _weight(fates: Sequence[Fate], queries: int) -> float:
    return math.fsum(fate.share for fate in fates) / queries


def _bars(every: Sequence[Fate], asked: Sequence[Asked]) -> tuple[Bar, ...]:
    left, bars = every, []
    for stage, title in LOSSES.items():
        lost = [fate for fate in left if fate.lost_at == stage]
        left = [fate for fate in left if fate.lost_at != stage]
        on = any(stage not in one.off for one in asked)
        bars.append(_bar(stage, title, on, left, lost, [fate.cause for fate in lost], len(asked)))
    return tuple(bars)


def _index_bars(every: Sequence[Fate], asked: Sequence[Asked]) -> tuple[Bar, ...]:
    before = list(LOSSES)[: list(LOSSES).index("indexes")]
    came = [fate for fate in every if fate.lost_at not in before]
    bars = []
    for name in dict.fromkeys(name for fate in every for name in fate.depths):
        passed = [fate for fate in came if fate.within(name)]
        lost = [fate for fate in came if not fate.within(name)]
        causes = ["below its depth" if fate.ranks.get(name) else "not in its list" for fate in lost]
        bars.append(_bar(name, stage_title(name), True, passed, lost, causes, len(asked)))
    return tuple(bars)


def _bar(
    stage: str,
    title: str,
    on: bool,
    passed: Sequence[Fate],
    lost: Sequence[Fate],
    causes: Sequence[str],
    queries: int,
) -> Bar:
    return Bar(
        stage,
        title,
        on,
        len(passed),
        _weight(passed, queries),
        len(lost),
        _weight(lost, queries),
        dict(Counter(causes).most_common()),
        tuple(dict.fromkeys(fate.asked.query for fate in lost)),
    )


def _spans(every: Sequence[Fate], asked: Sequence[Asked]) -> Spans:
    cuts = [(one.query, cut) for one in asked for cut in one.cuts]
    apart = [(query, cut) for query, cut in cuts if cut.chunks and not cut.whole]
    missing = sum(not cut.chunks for _, cut in cuts)
    return Spans(
        len(cuts) + sum(fate.lost_at == "located" for fate in every),
        len(cuts),
        len(cuts) - len(apart) - missing,
        len(apart),
        missing,
        math.fsum(cut.best for _, cut in apart) / len(apart) if apart else 1.0,
        tuple(dict.fromkeys(query for query, _ in apart)),
    )
