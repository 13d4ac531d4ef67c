"""Which chunks are golden for a span, and where rankings have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.corpus import Corpus
from core.evaluation.judgements import Evidence, GoldenQuery
from core.passages import Passage
from core.trace import Ranking


@dataclass(frozen=True, eq=False)
class Golden:
    """The golden chunks of one query in one corpus: `positions` (n,) int64, ascending, each once.

    `lost` counts golden spans of which the corpus has no piece: unlocated, in a document that is not
    there, or among blanks that no chunk holds. Each counts as one piece that nothing finds.
    """

    positions: NDArray[np.int64]
    lost: int = 0

    def __len__(self) -> int:
        return len(self.positions) + self.lost


def golden_pieces(
    starts: NDArray[np.int64], ends: NDArray[np.int64], start: int, end: int
) -> NDArray[np.int64]:
    """Which of the pieces `[starts, ends)` of a document are golden for its span `[start, end)`.

    Those that hold at least half of the span, or at least half of which lies in it; if there is none,
    the first of those that hold most of it. Empty when no piece shares a character with the span.
    """
    shared = np.minimum(ends, end) - np.maximum(starts, start)
    golden = (2 * shared >= end - start) | ((2 * shared >= ends - starts) & (shared > 0))
    if golden.any() or not len(shared) or shared.max() <= 0:
        return np.flatnonzero(golden)
    return np.array([shared.argmax()])


def golden_chunks(corpus: Corpus, query: GoldenQuery) -> Golden:
    """The golden chunks of a query: of all its evidence together, a chunk golden twice counting once."""
    lost = len(query.unlocated)
    found: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)]
    for one in query.evidence:
        pieces = _pieces(corpus, one)
        lost += not len(pieces)
        found.append(pieces)
    return Golden(np.unique(np.concatenate(found)), lost)


def _pieces(corpus: Corpus, evidence: Evidence) -> NDArray[np.int64]:
    try:
        item = corpus.item_position(evidence.document_id)
    except KeyError:
        return np.empty(0, dtype=np.int64)
    first, last = corpus.first_chunk[item : item + 2]
    rows = slice(first, last)
    return first + golden_pieces(corpus.starts[rows], corpus.ends[rows], evidence.start, evidence.end)


def ranks_in_chunks(golden: Golden, ranking: Ranking) -> NDArray[np.int64]:
    """The rank of each golden piece in a ranking of chunks, from 1; 0 where it is not; shape (len(golden),)."""
    ranks = np.zeros(len(golden), dtype=np.int64)
    order = np.argsort(ranking.positions, kind="stable")
    at = np.searchsorted(ranking.positions, golden.positions, sorter=order)
    inside = np.flatnonzero(at < len(order))
    rows = order[at[inside]]
    same = ranking.positions[rows] == golden.positions[inside]
    ranks[inside[same]] = rows[same] + 1
    return ranks


def ranks_in_passages(
    golden: Golden, passages: Sequence[Passage[int]], corpus: Corpus
) -> NDArray[np.int64]:
    """As `ranks_in_chunks`: the rank of the first passage that holds a golden chunk from end to end."""
    ranks = np.zeros(len(golden), dtype=np.int64)
    at = golden.positions
    for rank, passage in enumerate(passages, 1):
        holds = (
            (corpus.item_of[at] == passage.item)
            & (corpus.starts[at] >= passage.start)
            & (corpus.ends[at] <= passage.end)
        )
        ranks[: len(at)][holds & (ranks[: len(at)] == 0)] = rank
    return ranks
