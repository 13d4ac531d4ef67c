"""Neighbouring chunks of an item into passages (passage retrieval, second stage).

Published: overlapping, adjacent and near chunks of one item become one passage that keeps the best
member's score. The gap that counts as near and the longest passage are ours, settable.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Span(NamedTuple, Generic[Key]):
    """A scored chunk to be merged: `key` names it, `item` is the place of its document."""

    key: Key
    item: int
    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class Passage(Generic[Key]):
    """A stretch of one item: the source from its first member's start to its last member's end.

    `score` is the best member's, `best` that member; `gaps` are the stretches no member holds.
    """

    item: int
    start: int
    end: int
    score: float
    best: Key
    members: tuple[Key, ...]
    gaps: tuple[tuple[int, int], ...] = ()


def merge(spans: Iterable[Span[Key]], gap: int = 0, cap: int | None = None) -> list[Passage[Key]]:
    """Join spans of one item that overlap, touch or lie at most `gap` characters apart.

    Never joined past `cap` characters; a span longer than the cap stays alone, apart from spans
    inside it. Members by (start, end); passages by (score descending, item, start). Merging the
    result again with the same gap and cap changes nothing. Raises ValueError when gap < 0 or cap < 1.
    """
    if gap < 0:
        raise ValueError(f"the merge gap is {gap}; it must be 0 or more")
    if cap is not None and cap < 1:
        raise ValueError(f"the merge cap is {cap}; it must be 1 or more")
    passages: list[Passage[Key]] = []
    group: list[Span[Key]] = []
    end = 0
    for span in sorted(spans, key=lambda s: (s.item, s.start, s.end)):
        if group and span.item == group[0].item and span.start - end <= gap:
            grown = max(end, span.end)
            if cap is None or grown == end or grown - group[0].start <= cap:
                group.append(span)
                end = grown
                continue
        if group:
            passages.append(_passage(group))
        group, end = [span], span.end
    if group:
        passages.append(_passage(group))
    passages.sort(key=lambda p: (-p.score, p.item, p.start))
    return passages


def _passage(group: Sequence[Span[Key]]) -> Passage[Key]:
    best = max(group, key=lambda s: s.score)
    gaps = []
    end = group[0].end
    for span in group[1:]:
        if span.start > end:
            gaps.append((end, span.start))
        end = max(end, span.end)
    return Passage(
        group[0].item,
        group[0].start,
        end,
        best.score,
        best.key,
        tuple(s.key for s in group),
        tuple(gaps),
    )
