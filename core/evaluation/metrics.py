"""Metrics of a stage's ranking, each a function of the ranks and grades of golden pieces.

All are computed from the ranks alone, for a whole set of queries at once: trec_eval wants the rankings
themselves, which made it forty seconds for a hundred settings that take about one here. The tests hold
every metric to trec_eval. None is ever NaN, below 0 or above 1.

Pieces that share a rank lie in one passage. Recall and success count pieces; the metrics that look at
places in the ranking (precision, MAP, nDCG) count such a passage once, with the best grade in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.evaluation.judgements import EvaluationError


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric in words: its key, how it is shown, its definition for one query, and who defined it.

    `needs_k`: it has no meaning without a k; the others then look at all that the stage was asked for.
    """

    name: str
    title: str
    help: str
    source: str
    higher_is_better: bool = True
    needs_k: bool = True

    def label(self, k: int | None = None) -> str:
        """`nDCG@10`; the title alone without a k."""
        return self.title if k is None else f"{self.title}@{k}"


class Ranked(Protocol):
    """Where one stage has the golden pieces of each query: `ranks` from 1, 0 where it does not hold the
    piece, and `grades` from 1, both int64 and of one shape a query. `reach`: ranks it was asked for."""

    @property
    def name(self) -> str: ...
    @property
    def reach(self) -> int: ...
    @property
    def ranks(self) -> Sequence[NDArray[np.int64]]: ...
    @property
    def grades(self) -> Sequence[NDArray[np.int64]]: ...


_MANNING = "Manning, Raghavan, Schütze: Introduction to Information Retrieval, 2008, chapter 8"

METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        one.name: one
        for one in (
            Metric(
                "recall",
                "recall",
                "Share of the query's golden pieces among the first k.",
                _MANNING,
            ),
            Metric(
                "failure",
                "failure",
                "1 − recall@k: share of the query's golden pieces that are not among the first k. "
                "Published for k = 20.",
                "Anthropic: Introducing Contextual Retrieval, 2024",
                higher_is_better=False,
            ),
            Metric(
                "success",
                "success",
                "1 when any golden piece is among the first k, else 0; also called hit rate.",
                "Craswell: Success at n, Encyclopedia of Database Systems, 2009",
            ),
            Metric(
                "mrr",
                "MRR",
                "1 / rank of the first golden piece, 0 when none is among the first k; the mean over the "
                "queries is the mean reciprocal rank.",
                "Voorhees: The TREC-8 Question Answering Track Report, 1999",
                needs_k=False,
            ),
            Metric(
                "ndcg",
                "nDCG",
                "Sum of grade / log2(rank + 1) over the golden results among the first k, divided by that "
                "sum for the best order there could be. Linear gain, as trec_eval's ndcg_cut.",
                "Järvelin, Kekäläinen: Cumulated gain-based evaluation of IR techniques, TOIS 20(4), 2002",
            ),
            Metric(
                "ndcg_exp",
                "nDCG-exp",
                "As nDCG, with the gain 2^grade − 1, which sets high grades further apart; the same as nDCG "
                "when every grade is 1.",
                "Burges et al.: Learning to Rank using Gradient Descent, ICML 2005",
            ),
            Metric(
                "map",
                "MAP",
                "Precision at the rank of each golden result among the first k, summed and divided by the "
                "number of all golden results; the mean over the queries is the mean average precision.",
                "Buckley, Voorhees: Evaluating evaluation measure stability, SIGIR 2000",
                needs_k=False,
            ),
            Metric(
                "precision",
                "precision",
                "Golden results among the first k, divided by k, however many results there are.",
                _MANNING,
            ),
        )
    }
)
"""The metrics by key, in the order in which they are shown."""


_UNORDERED = frozenset({"recall", "failure", "success", "precision"})
"""Those that count hits among the first k, wherever they stand there."""


def metric_at(label: str) -> tuple[Metric, int | None]:
    """The metric and the k of a label such as `recall@20`, `nDCG@10` or `mrr`, in any letter case.

    Raises EvaluationError for an unknown metric, and for one that needs a k and has none.
    """
    match = re.fullmatch(r"\s*([\w-]+?)\s*(?:@\s*([0-9]{1,9}))?\s*", label)
    key = match[1].lower().replace("-", "_") if match else ""
    if match is None or key not in METRICS:
        known = ", ".join(f"{one.name}@k" for one in METRICS.values())
        raise EvaluationError(f"there is no metric {label!r}; there are {known}")
    k = None if match[2] is None else int(match[2])
    if k is None and METRICS[key].needs_k:
        raise EvaluationError(f"{label} needs a k; ask for {key}@20, say")
    if k == 0:
        raise EvaluationError(f"{label} is not defined; k is 1 or more")
    return METRICS[key], k


def saturated(chunks: int, labels: Iterable[str]) -> str:
    """Which of these metrics are the same for any order of so few chunks, in a sentence; blank for none.

    Where the first k hold every chunk, what counts hits among them tells only that there is evidence.
    """
    blind = [label for label in labels if _holds_all(label, chunks)]
    if chunks < 1 or not blind:
        return ""
    least = min(metric_at(label)[1] or 0 for label in blind)
    others = "MRR, nDCG or recall@5" if chunks > 5 else "MRR or nDCG"
    all_of_them = (
        "1 chunk: the first holds it"
        if chunks == 1
        else f"{chunks:,} chunks: the first {least} hold them all"
    )
    return f"{all_of_them}, so {' and '.join(blind)} cannot tell settings apart; look at {others}"


def _holds_all(label: str, chunks: int) -> bool:
    metric, k = metric_at(label)
    return metric.name in _UNORDERED and k is not None and k >= chunks


def per_query(stage: Ranked, metric: str, k: int | None = None) -> NDArray[np.float64]:
    """A metric of each query of a stage, shape (queries,), each in [0, 1].

    `metric` is a key of METRICS. Without a `k`, all that the stage was asked for. Raises EvaluationError
    for an unknown metric, a missing k, a k below 1 or beyond the stage's reach (its list ends there, so
    that the figure would be low for no fault of the search), no query, or a query without golden pieces.
    """
    label = metric if k is None else f"{metric}@{k}"
    if k is not None and k < 1:
        raise EvaluationError(f"{label} is not defined; k is 1 or more")
    known, _ = metric_at(label)
    if k is not None and k > stage.reach:
        raise EvaluationError(
            f"{label} of {stage.name} cannot be told: it was asked for {stage.reach} only; "
            f"raise the index's depth, the rerank depth or k to {k}, or ask for {metric}@{stage.reach}"
        )
    return _FORMULAS[known.name](_Pieces.of(stage), stage.reach if k is None else k)


def unjudged(judged: ArrayLike, length: int, k: int) -> float:
    """Share of the first k of a list that nobody has judged.

    `judged` are the ranks, from 1 and each once, of what was judged golden or not relevant; `length` is
    the list's. Of a list shorter than k, the share of what there is; 0 of an empty one. Raises
    EvaluationError for a k below 1.
    """
    if k < 1:
        raise EvaluationError(f"the unjudged share of the first {k} is not defined; k is 1 or more")
    shown = min(k, length)
    ranks = np.asarray(judged)
    known = int(((ranks > 0) & (ranks <= shown)).sum())
    return 1 - known / shown if shown else 0.0


@dataclass(frozen=True, eq=False)
class _Pieces:
    """The pieces of n queries end to end: the query, rank and grade of each, by query; shapes (m,)."""

    n: int
    query: NDArray[np.int64]
    rank: NDArray[np.int64]
    grade: NDArray[np.int64]

    @classmethod
    def of(cls, stage: Ranked) -> _Pieces:
        sizes = np.array([len(ranks) for ranks in stage.ranks], dtype=np.int64)
        if not len(sizes):
            raise EvaluationError(f"{stage.name} has no query to measure; judge one first")
        if not sizes.all():
            raise EvaluationError(
                f"query {np.argmin(sizes) + 1} of {stage.name} has no golden pieces; leave it out"
            )
        query = np.repeat(np.arange(len(sizes)), sizes)
        return cls(len(sizes), query, np.concatenate(stage.ranks), np.concatenate(stage.grades))

    def found(self, k: int) -> NDArray[np.bool_]:
        return (self.rank > 0) & (self.rank <= k)

    def results(self) -> _Pieces:
        """The pieces of one rank made one, with the best grade; by query and rank, those not found first."""
        order = np.lexsort((-self.grade, self.rank, self.query))
        query, rank = self.query[order], self.rank[order]
        kept = np.ones(len(order), dtype=bool)
        kept[1:] = (rank[1:] == 0) | (rank[1:] != rank[:-1]) | (query[1:] != query[:-1])
        return _Pieces(self.n, query[kept], rank[kept], self.grade[order[kept]])

    def total(self, where: NDArray[np.bool_], weights: NDArray[np.float64] | None = None) -> NDArray:
        """Per query, the sum of `weights` (one for each piece that `where` holds for), or their number."""
        return np.bincount(self.query[where], weights, self.n)


def _places(query: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of each row among those of its query, from 1; rows are by query."""
    first = np.flatnonzero(np.r_[True, query[1:] != query[:-1]])
    return np.arange(1, len(query) + 1) - np.repeat(first, np.diff(np.r_[first, len(query)]))


def _recall(pieces: _Pieces, k: int) -> NDArray[np.float64]:
    return pieces.total(pieces.found(k)) / np.bincount(pieces.query)


def _failure(pieces: _Pieces, k: int) -> NDArray[np.float64]:
    return 1 - _recall(pieces, k)


def _success(pieces: _Pieces, k: int) -> NDArray[np.float64]:
    return (pieces.total(pieces.found(k)) > 0).astype(np.float64)


def _reciprocal_rank(pieces: _Pieces, k: int) -> NDArray[np.float64]:
    best = np.zeros(pieces.n)
    found = pieces.found(k)
    np.maximum.at(best, pieces.query[found], 1 / pieces.rank[found])
    return best


def _precision(pieces: _Pieces, k: int) -> NDArray[np.float64]:
    results = pieces.results()
    return results.total(results.found(k)) / k


def _average_precision(pieces: _Pieces, k: int) -> NDArray[np.float64]:
    results = pieces.results()
    found = results.found(k)
    if not found.any():
        return np.zeros(pieces.n)
    precision = _places(results.query[found]) / results.rank[found]
    return results.total(found, precision) / np.bincount(results.query)


def _linear(results: _Pieces) -> NDArray[np.float64]:
    return results.grade.astype(np.float64)


def _exponential(results: _Pieces) -> NDArray[np.float64]:
    # Divided by 2^(best grade of the query), which nDCG cancels: 2^grade alone overflows to infinity.
    best = np.zeros(results.n)
    np.maximum.at(best, results.query, results.grade)
    return np.exp2(results.grade - best[results.query]) - np.exp2(-best[results.query])


def _ndcg(gain_of: Callable[[_Pieces], NDArray[np.float64]]) -> Callable[[_Pieces, int], NDArray]:
    def ndcg(pieces: _Pieces, k: int) -> NDArray[np.float64]:
        results = pieces.results()
        gains, found = gain_of(results), results.found(k)
        gained = results.total(found, gains[found] / np.log2(results.rank[found] + 1))
        order = np.lexsort((-gains, results.query))
        places = _places(results.query)
        best = places <= k
        ideal = results.total(best, gains[order][best] / np.log2(places[best] + 1))
        return gained / ideal

    return ndcg


_FORMULAS: Mapping[str, Callable[[_Pieces, int], NDArray[np.float64]]] = {
    "recall": _recall,
    "failure": _failure,
    "success": _success,
    "mrr": _reciprocal_rank,
    "ndcg": _ndcg(_linear),
    "ndcg_exp": _ndcg(_exponential),
    "map": _average_precision,
    "precision": _precision,
}
