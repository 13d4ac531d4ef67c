"""Which chunks are golden for a span, and where rankings have them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

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
    `grades` (n + lost,) int64: of each piece the highest grade of the spans it is golden for.
    `copies` (m, 2) int64: a place in `positions`, and the position of a chunk that is as good, since its
    evidence stands there too.
    """

    positions: NDArray[np.int64]
    lost: int = 0
    grades: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    copies: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 2), dtype=np.int64))

    def __len__(self) -> int:
        return len(self.positions) + self.lost

    def any_of(self, place: int) -> list[int]:
        """The positions any of which finds the piece at a place, its own first."""
        others = self.copies[self.copies[:, 0] == place, 1]
        return [int(self.positions[place]), *others.tolist()]

    def first(self, judged: NDArray[np.int64], ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rank of each piece, shape (len(self),): the first of its own and its copies'; 0 where none.

        `ranks` are those of the positions `judged`, which are ascending and hold pieces and copies.
        """
        found = ranks[np.searchsorted(judged, self.positions)]
        far = np.where(found > 0, found, np.iinfo(np.int64).max)
        copied = ranks[np.searchsorted(judged, self.copies[:, 1])]
        np.minimum.at(far, self.copies[copied > 0, 0], copied[copied > 0])
        nearest = np.where(far < np.iinfo(np.int64).max, far, 0)
        return np.concatenate([nearest, np.zeros(self.lost, dtype=np.int64)])

    @property
    def all_positions(self) -> NDArray[np.int64]:
        """Pieces and copies, ascending, each once."""
        return np.union1d(self.positions, self.copies[:, 1])


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
    lost = [one.grade for one in query.unlocated]
    evidence = [standing(corpus, one) for one in query.evidence]
    best: dict[int, int] = {}
    for one in evidence:
        pieces = pieces_of(corpus, one).tolist()
        if not pieces:
            lost.append(one.grade)
        for at in pieces:
            best[at] = max(best.get(at, 0), one.grade)
    positions = sorted(best)
    grades = [best[at] for at in positions] + lost
    place = {at: number for number, at in enumerate(positions)}
    copies = sorted(
        {
            (place[at], copy)
            for one in evidence
            if one.copies
            for at, copy in _copies(corpus, one)
            if copy != at
        }
    )
    return Golden(
        np.array(positions, dtype=np.int64),
        len(lost),
        np.array(grades, dtype=np.int64),
        np.array(copies, dtype=np.int64).reshape(-1, 2),
    )


def standing(corpus: Corpus, evidence: Evidence) -> Evidence:
    """The evidence where this corpus has it: a copy's place, where its own document is not there (for a
    viewer who may see the copy alone, say)."""

    def there(document: str) -> bool:
        rows = rows_of(corpus, document)
        return rows.start < rows.stop

    here = [copy for copy in evidence.copies if there(copy[0])]
    if there(evidence.document_id) or not here:
        return evidence
    return Evidence(*here[0], evidence.grade, tuple(here[1:]))


def _copies(corpus: Corpus, evidence: Evidence) -> Iterator[tuple[int, int]]:
    """(piece, chunk of a copy): the chunks that are golden for that part of a copy which the piece holds."""
    for at in pieces_of(corpus, evidence).tolist():
        before = max(int(corpus.starts[at]) - evidence.start, 0)
        after = max(evidence.end - int(corpus.ends[at]), 0)
        for document, start, end in evidence.copies:
            if start + before < end - after:
                part = Evidence(document, start + before, end - after)
                yield from ((at, copy) for copy in pieces_of(corpus, part).tolist())


def rejected_chunks(corpus: Corpus, query: GoldenQuery) -> NDArray[np.int64]:
    """Positions (n,), ascending, of the chunks that stand for the query's rejected spans."""
    found = [pieces_of(corpus, one) for one in query.rejected]
    return np.unique(np.concatenate([*found, np.empty(0, dtype=np.int64)]))


def rows_of(corpus: Corpus, document_id: str) -> slice:
    """The positions of a document's chunks; none where the corpus does not hold it."""
    try:
        item = corpus.item_position(document_id)
    except KeyError:
        return slice(0, 0)
    return slice(*corpus.first_chunk[item : item + 2].tolist())


def pieces_of(corpus: Corpus, evidence: Evidence) -> NDArray[np.int64]:
    """Positions (n,), ascending, of the chunks that are golden for one span."""
    rows = rows_of(corpus, evidence.document_id)
    found = golden_pieces(corpus.starts[rows], corpus.ends[rows], evidence.start, evidence.end)
    return rows.start + found


def ranks_in_chunks(golden: Golden, ranking: Ranking) -> NDArray[np.int64]:
    """The rank of each golden piece in a ranking of chunks, from 1; 0 where it is not; shape (len(golden),)."""
    every = golden.all_positions
    return golden.first(every, places_in_chunks(every, ranking))


def ranks_in_passages(
    golden: Golden, passages: Sequence[Passage[int]], corpus: Corpus
) -> NDArray[np.int64]:
    """As `ranks_in_chunks`: the rank of the first passage that holds a golden chunk from end to end."""
    every = golden.all_positions
    return golden.first(every, places_in_passages(every, passages, corpus))


def places_in_chunks(positions: NDArray[np.int64], ranking: Ranking) -> NDArray[np.int64]:
    """The rank of each position in a ranking, from 1; 0 where it is not; shape (len(positions),)."""
    return _first(positions[:, None] == ranking.positions)


def places_in_passages(
    positions: NDArray[np.int64], passages: Sequence[Passage[int]], corpus: Corpus
) -> NDArray[np.int64]:
    """As `places_in_chunks`, of the first passage that holds a chunk from end to end."""
    spans = np.array([(one.item, one.start, one.end) for one in passages], dtype=np.int64).reshape(-1, 3)
    same_item = corpus.item_of[positions][:, None] == spans[:, 0]
    begun = corpus.starts[positions][:, None] >= spans[:, 1]
    return _first(same_item & begun & (corpus.ends[positions][:, None] <= spans[:, 2]))


def _first(holds: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The first column, from 1, in which each row holds; 0 where none does."""
    if not holds.shape[1]:
        return np.zeros(len(holds), dtype=np.int64)
    return np.where(holds.any(axis=1), holds.argmax(axis=1) + 1, 0)
