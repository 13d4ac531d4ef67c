"""The same query as two viewers: what only one of them is shown, and that nothing hidden was ranked."""

from __future__ import annotations

from collections.abc import Collection as Among
from collections.abc import Iterable
from dataclasses import dataclass

from core.passages import Passage
from core.trace import Ranking, Trace

SIGHT = "hidden from the other"
PLACE = "not among the other's"
MERGED = "merged otherwise"


@dataclass(frozen=True, slots=True)
class Line:
    """A passage as one viewer is shown it: `rank` from 1, `other` the rank of the other viewer's passage that
    shares most of its text, `MERGED` as `why` where that begins or ends elsewhere; without one, `why` only
    this one has it (`SIGHT` or `PLACE`)."""

    rank: int
    passage: Passage[int]
    other: int | None
    why: str


@dataclass(frozen=True, slots=True)
class Listed:
    """One index or signal for both viewers: how many lines it ranks for the first, how many of these are
    hidden from the second, how many it ranks for the second. `scores` are those of `line`, the best line
    of the second that both have; None where they have none.

    Lists filtered after they were ranked and cut would hold `ranked - hidden` for the second, or fewer, and
    their scores would be the same: here lists are as full as what is seen allows, and how rare a word is, is
    counted among that alone.
    """

    name: str
    unit: str
    ranked: int
    hidden: int
    second: int
    line: int | None
    scores: tuple[float, float] | None


def lines(mine: Trace, other: Trace) -> list[Line]:
    """The passages of `mine`, compared with those of the same query for another viewer."""
    theirs: dict[str, list[tuple[int, Passage[int]]]] = {}
    for rank, one in enumerate(other.passages, 1):
        theirs.setdefault(other.corpus.item_ids[one.item], []).append((rank, one))
    seen = frozenset(other.corpus.item_ids)
    made = []
    for rank, one in enumerate(mine.passages, 1):
        document = mine.corpus.item_ids[one.item]
        found = _most_shared(one, theirs.get(document, ()))
        if found is None:
            made.append(Line(rank, one, None, PLACE if document in seen else SIGHT))
        else:
            same = (found[1].start, found[1].end) == (one.start, one.end)
            made.append(Line(rank, one, found[0], "" if same else MERGED))
    return made


def listed(first: Trace, second: Trace) -> list[Listed]:
    """Every index and signal that ranked something for either, in the order of the record."""
    made = []
    for unit, one, other in (
        ("item", first.record.signals, second.record.signals),
        ("chunk", first.record.searches, second.record.searches),
    ):
        for name in dict.fromkeys((*one, *other)):
            made.append(_compared(name, unit, first, second, one.get(name), other.get(name)))
    return [one for one in made if one.ranked or one.second]


def ranked_outside(trace: Trace, visible: Among[str]) -> tuple[int, int]:
    """How many lines all lists of a trace hold, and how many of them are of documents that are not among the
    `visible`: 0, unless something hidden was ranked."""
    total = outside = 0
    lists = [("item", one) for one in trace.record.signals.values()]
    lists += [("chunk", one) for one in trace.record.searches.values()]
    lists += [(stage.unit, stage.ranking) for stage in trace.stages if stage.unit != "passage"]
    for unit, ranking in lists:
        documents = [_document(trace, unit, at) for at in ranking.positions.tolist()]
        total += len(documents)
        outside += sum(one not in visible for one in documents)
    return total, outside


def _compared(
    name: str, unit: str, first: Trace, second: Trace, one: Ranking | None, other: Ranking | None
) -> Listed:
    mine = [] if one is None else one.positions.tolist()
    theirs = [] if other is None else other.positions.tolist()
    seen = frozenset(second.corpus.item_ids)
    hidden = sum(_document(first, unit, at) not in seen for at in mine)
    places = {_name(first, unit, at): place for place, at in enumerate(mine)}
    scores, line = None, None
    for place, at in enumerate(theirs):
        there = places.get(_name(second, unit, at))
        if there is not None and one is not None and other is not None:
            line, scores = at, (float(one.scores[there]), float(other.scores[place]))
            break
    return Listed(name, unit, len(mine), hidden, len(theirs), line, scores)


def _name(trace: Trace, unit: str, at: int) -> str:
    return trace.corpus.item_ids[at] if unit == "item" else trace.corpus.chunk_id(at)


def _document(trace: Trace, unit: str, at: int) -> str:
    return trace.corpus.item_ids[at if unit == "item" else int(trace.corpus.item_of[at])]


def _most_shared(
    one: Passage[int], theirs: Iterable[tuple[int, Passage[int]]]
) -> tuple[int, Passage[int]] | None:
    """Of ranked passages of the same document the one that shares most text, preferably the same stretch and
    then the better rank; None where none shares any."""
    best, most = None, (0, False)
    for rank, other in theirs:
        shared = min(one.end, other.end) - max(one.start, other.start)
        how = (shared, (one.start, one.end) == (other.start, other.end))
        if shared > 0 and how > most:
            best, most = (rank, other), how
    return best
