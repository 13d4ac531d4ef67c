"""Several rankings into one: Reciprocal Rank Fusion and convex combinations of normalised scores.

RRF: Cormack, Clarke, Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual rank
learning methods", SIGIR 2009. Convex combination: Bruch, Gai, Ingber, "An Analysis of Fusion
Functions for Hybrid Retrieval", TOIS 2023. Distribution-based score fusion: Mazzeschi, 2023.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.trace import Ranking


@dataclass(frozen=True, eq=False)
class Fused:
    """A fused ranking and what it is made of, row by row.

    `ranks` int64 (n, lists): the rank in each list, 0 where the list does not hold the position.
    `terms` float64 (n, lists): what each list adds; a row's `math.fsum` is its score.
    """

    ranking: Ranking
    names: tuple[str, ...]
    ranks: NDArray[np.int64]
    terms: NDArray[np.float64]


def rrf(
    rankings: Mapping[str, Ranking], weights: Mapping[str, float] | None = None, k_rrf: float = 60
) -> Fused:
    """score(d) = Σ weight / (k_rrf + rank(d)), over the lists that hold d; ranks from 1.

    A list that does not hold d adds nothing; a position held only by lists of weight 0 is left out.
    A position that a list holds twice counts with its best place, and later places move up.
    Raises ValueError when k_rrf or a weight is negative.
    """
    if k_rrf < 0:
        raise ValueError(f"k_rrf is {k_rrf}; it must be 0 or more")
    return _fuse(
        rankings, weights, lambda ranking, weight: weight / (k_rrf + np.arange(1, len(ranking) + 1))
    )


def convex(
    rankings: Mapping[str, Ranking], weights: Mapping[str, float] | None = None, method: str = "minmax"
) -> Fused:
    """score(d) = Σ (weight / Σ weights) · normalised score(d), over the lists that hold d.

    Normalised within each list as it enters: see `normalise`. Σ weights runs over all lists, also
    empty ones, so that a chunk's score does not rise because another index found nothing.
    Raises ValueError for an unknown method or a negative weight.
    """
    given = {name: (weights or {}).get(name, 1.0) for name in rankings}
    total = math.fsum(given.values()) or 1.0
    return _fuse(
        rankings, given, lambda ranking, weight: weight / total * normalise(ranking.scores, method)
    )


def normalise(scores: NDArray[np.float64], method: str) -> NDArray[np.float64]:
    """Scores of one list on a scale that other lists share; the list's spread is its own.

    minmax: (s − min) / (max − min). zscore: (s − mean) / σ, shifted so that the list's last is 0, as
    a chunk missing from the list adds 0 too. dbsf: (s − (mean − 3σ)) / 6σ, clipped to 0…1.
    σ is the population's. A list whose scores are all equal gives 1 to each (dbsf: 0.5).
    """
    if not len(scores):
        return scores
    low, high = float(scores.min()), float(scores.max())
    spread = float(scores.std())
    if method == "minmax":
        return (scores - low) / (high - low) if high > low else np.ones_like(scores)
    if method == "zscore":
        return (scores - low) / spread if high > low and spread > 0 else np.ones_like(scores)
    if method == "dbsf":
        if not (high > low and spread > 0):
            return np.full_like(scores, 0.5)
        return np.clip((scores - (float(scores.mean()) - 3 * spread)) / (6 * spread), 0.0, 1.0)
    raise ValueError(f"normalisation {method!r} is unknown; choose minmax, zscore or dbsf")


def _fuse(
    rankings: Mapping[str, Ranking],
    weights: Mapping[str, float] | None,
    terms_of: Callable[[Ranking, float], NDArray[np.floating]],
) -> Fused:
    names = tuple(rankings)
    lists = [_distinct(rankings[name]) for name in names]
    union = (
        np.unique(np.concatenate([one.positions for one in lists])) if lists else np.empty(0, np.int64)
    )
    ranks = np.zeros((len(union), len(names)), dtype=np.int64)
    terms = np.zeros((len(union), len(names)), dtype=np.float64)
    counted = np.zeros(len(union), dtype=np.bool_)
    for column, (name, one) in enumerate(zip(names, lists, strict=True)):
        weight = float((weights or {}).get(name, 1.0))
        if weight < 0:
            raise ValueError(f"the weight of {name} is {weight}; it must be 0 or more")
        rows = np.searchsorted(union, one.positions)
        ranks[rows, column] = np.arange(1, len(one) + 1)
        terms[rows, column] = terms_of(one, weight)
        if weight > 0:
            counted[rows] = True
    scores = row_sums(terms)
    found = np.flatnonzero(counted)
    order = found[np.lexsort((union[found], -scores[found]))]
    return Fused(Ranking(union[order], scores[order]), names, ranks[order], terms[order])


def row_sums(terms: NDArray[np.float64]) -> NDArray[np.float64]:
    """The exactly rounded sum of each row: the same in whatever order the columns stand.

    A plain sum of three reciprocals depends on their order in its last digit, and so would ties.
    """
    if terms.shape[1] <= 2:  # one addition rounds once, like fsum
        return terms.sum(axis=1)
    return np.fromiter((math.fsum(row) for row in terms.tolist()), dtype=np.float64, count=len(terms))


def _distinct(ranking: Ranking) -> Ranking:
    """Each position at its best place only."""
    _, first = np.unique(ranking.positions, return_index=True)
    if len(first) == len(ranking):
        return ranking
    first.sort()
    return Ranking(ranking.positions[first], ranking.scores[first])
