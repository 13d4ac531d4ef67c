"""A search's whole story: every stage with its ranking, its inputs and how its parts make its scores.

Rankings are columnar: positions in the corpus (of chunks, items or passages) and scores; the rank
is the place, from 1. `Hit` objects are made only when somebody reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Unit = Literal["item", "chunk", "passage"]
Kind = Literal["search", "signal", "project", "fuse", "rule", "rerank", "merge"]


def _frozen(values: ArrayLike, dtype: type) -> NDArray:
    array = np.ascontiguousarray(values, dtype=dtype)
    if array.flags.writeable:
        array = array.copy() if array is values else array
        array.flags.writeable = False
    return array


class Hit(NamedTuple):
    """One line of a ranking: `position` in the corpus, the `score` sorted on, `rank` from 1."""

    position: int
    score: float
    rank: int


class Ranking:
    """Positions by falling score; equal scores by position (corpus order), so that runs repeat.

    `positions` int64 and `scores` float64, both of shape (n,), read-only. A position occurs once.
    """

    __slots__ = ("positions", "scores")
    positions: NDArray[np.int64]
    scores: NDArray[np.float64]

    def __init__(self, positions: ArrayLike, scores: ArrayLike) -> None:
        """Takes arrays that are already in order; `Ranking.order` puts them in order."""
        self.positions = _frozen(positions, np.int64)
        self.scores = _frozen(scores, np.float64)
        if self.positions.shape != self.scores.shape or self.positions.ndim != 1:
            raise ValueError(
                f"positions {self.positions.shape} and scores {self.scores.shape} must be "
                "one-dimensional and equally long"
            )

    @classmethod
    def order(cls, positions: ArrayLike, scores: ArrayLike, k: int | None = None) -> Ranking:
        """The best `k` (all when None) by (score descending, position ascending)."""
        at = np.asarray(positions, dtype=np.int64)
        by = np.asarray(scores, dtype=np.float64)
        if k is not None and k < len(by) // 4:
            # A partial sort first; every score tied with the k-th stays in, so ties are cut by position.
            edge = np.partition(by, len(by) - k)[len(by) - k]
            kept = np.flatnonzero(by >= edge)
            at, by = at[kept], by[kept]
        order = np.lexsort((at, -by))[:k]
        return cls(at[order], by[order])

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, float]]) -> Ranking:
        """From (position, score) pairs in any order; the readable way to end a small index's search."""
        listed = list(pairs)
        return cls.order([p for p, _ in listed], [s for _, s in listed])

    def head(self, n: int) -> Ranking:
        """The first `n` lines."""
        return self if n >= len(self) else Ranking(self.positions[:n], self.scores[:n])

    def within(self, allowed: NDArray[np.bool_]) -> Ranking:
        """Only the positions where the mask holds, in the same order."""
        keep = allowed[self.positions]
        return Ranking(self.positions[keep], self.scores[keep])

    def rank_of(self, position: int) -> int | None:
        """The rank of a position, from 1, or None when it is not in the ranking."""
        found = np.flatnonzero(self.positions == position)
        return int(found[0]) + 1 if len(found) else None

    def __len__(self) -> int:
        return len(self.positions)

    def __iter__(self) -> Iterator[Hit]:
        pairs = zip(self.positions.tolist(), self.scores.tolist(), strict=True)
        for rank, (position, score) in enumerate(pairs, 1):
            yield Hit(position, score, rank)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ranking):
            return NotImplemented
        return np.array_equal(self.positions, other.positions) and np.array_equal(
            self.scores, other.scores
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        lines = ", ".join(f"{hit.position}: {hit.score:.4g}" for hit in self.head(5))
        return f"Ranking({len(self)} hits: {lines}{', …' if len(self) > 5 else ''})"
