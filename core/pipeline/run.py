"""Asks the indexes, once: everything after that is arithmetic in `assemble`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from core.corpus import Corpus
from core.errors import RankscopeError
from core.explanation import stage_title
from core.indexes.checks import checked_ranking
from core.pipeline.assemble import VECTOR, assemble, probe_depth, rank_items
from core.protocols import Index, Progress
from core.settings import SearchSettings
from core.trace import NO_HITS, Ranking, Record, Trace
from core.types import encodable

BUILT_IN = ("bm25", VECTOR)

RECORD_ALL = 200_000
"""Up to this many chunks a two-stage search records the score of every chunk: fewer or other items
are then replayed. Above it, only chunks of the items sent on are scored."""


def search(
    corpus: Corpus, query: str, settings: SearchSettings | None = None, progress: Progress | None = None
) -> Trace:
    """Run a query through every stage.

    Raises TypeError when the query is not a string. `progress` hears of indexes that must be built.
    """
    chosen = settings or SearchSettings()
    recorded, indexes = record(corpus, query, chosen, progress)
    return assemble(corpus, recorded, chosen, indexes)


def record(
    corpus: Corpus, query: str, settings: SearchSettings, progress: Progress | None = None
) -> tuple[Record, Mapping[str, Index]]:
    """What all indexes and signals answer, and the indexes asked.

    Indexes that are off are asked too: switching one on again is then a replay.
    """
    if not isinstance(query, str):
        raise TypeError(f"the query is {type(query).__name__}; give a string")
    query = encodable(query)
    indexes = corpus.indexes(settings, progress)
    clock = _Clock()
    nothing = "" if query.strip() else "type a query to search"
    if nothing or not len(corpus):
        empty = nothing or "the collection has no chunks: add documents first"
        signals = {"lexical": NO_HITS, "semantic": NO_HITS} if settings.two_stage else {}
        searches = dict.fromkeys(indexes, NO_HITS)
        depths: dict[str, int | None] = dict.fromkeys(indexes, None)
        return Record(query, settings, signals, searches, depths, None, {}, (empty,)), indexes
    notes = _notes(indexes, query)
    if settings.two_stage:
        return _record_two_stages(corpus, query, settings, indexes, clock, notes), indexes
    searches, depths = _search_to_depth(corpus, query, settings, indexes, clock, notes)
    return Record(query, settings, {}, searches, depths, None, clock.spent, tuple(notes)), indexes


def _search_to_depth(
    corpus: Corpus,
    query: str,
    settings: SearchSettings,
    indexes: Mapping[str, Index],
    clock: _Clock,
    notes: list[str],
) -> tuple[dict[str, Ranking], dict[str, int | None]]:
    """The best chunks of all items in each index, as many as its depth."""
    depths: dict[str, int | None] = {name: settings.index(name).depth for name in indexes}
    searches = {
        name: clock.time(name, _ask, name, index, len(corpus), notes, query, depths[name])
        for name, index in indexes.items()
    }
    return searches, depths


def _record_two_stages(
    corpus: Corpus,
    query: str,
    settings: SearchSettings,
    indexes: Mapping[str, Index],
    clock: _Clock,
    notes: list[str],
) -> Record:
    n_items, n_chunks = len(corpus.item_ids), len(corpus)
    lexical = clock.time("items.lexical", corpus.item_index(settings).search, query, n_items)
    everything = settings.vector == "exact" and n_chunks <= RECORD_ALL
    vector_depth = n_chunks if everything else probe_depth(settings, n_chunks)
    vector = clock.time(VECTOR, indexes[VECTOR].search, query, vector_depth)
    signals = {"lexical": lexical, "semantic": best_chunk_of_each_item(vector, corpus.item_of)}
    if not everything and not any(settings.signal(name).on for name in signals):
        searches, depths = _search_to_depth(corpus, query, settings, indexes, clock, notes)
        return Record(query, settings, signals, searches, depths, None, clock.spent, tuple(notes))
    covered: NDArray[np.bool_] | None = None
    allowed: NDArray[np.int64] | None = None
    if not everything:
        items = rank_items(signals, settings).ranking.head(settings.items)
        covered = np.zeros(n_items, dtype=np.bool_)
        covered[items.positions] = True
        allowed = np.flatnonzero(covered[corpus.item_of])
    searches = {}
    for name, index in indexes.items():
        if name == VECTOR and everything:
            searches[name] = vector
        elif allowed is not None and not len(allowed):
            searches[name] = NO_HITS
        else:
            k = n_chunks if allowed is None else len(allowed)
            searches[name] = clock.time(name, _ask, name, index, n_chunks, notes, query, k, allowed)
    depths = dict.fromkeys(indexes, None)
    return Record(query, settings, signals, searches, depths, covered, clock.spent, tuple(notes))


def _ask(
    name: str,
    index: Index,
    size: int,
    notes: list[str],
    query: str,
    k: int,
    allowed: NDArray[np.int64] | None = None,
) -> Ranking:
    """What an index finds. One that is not ours and fails costs its own list only, and a note says so."""
    if name in BUILT_IN:
        return index.search(query, k, allowed)
    try:
        return checked_ranking(index.search(query, k, allowed), size, k)
    except RankscopeError:
        raise
    except Exception as error:
        notes.append(f"{name}: this index is left out, it failed ({type(error).__name__}: {error})")
        return NO_HITS


def best_chunk_of_each_item(chunks: Ranking, item_of: NDArray[np.int64]) -> Ranking:
    """Items by the score of their best chunk (MaxP: Dai and Callan, SIGIR 2019)."""
    items, first = np.unique(item_of[chunks.positions], return_index=True)
    return Ranking.order(items, chunks.scores[first])


def _notes(indexes: Mapping[str, Index], query: str) -> list[str]:
    """What our indexes have to say of the query, such as that its tokenizer left nothing of it."""
    return [
        f"{stage_title(name)}: {note}"
        for name in BUILT_IN
        if (notes_of := getattr(indexes[name], "query_notes", None))
        for note in notes_of(query)
    ]


class _Clock:
    """Milliseconds by name; a name timed twice adds up."""

    def __init__(self) -> None:
        self._spent: dict[str, float] = {}

    def time(self, name: str, call: Callable[..., Ranking], *arguments: object) -> Ranking:
        begin = time.perf_counter()
        result = call(*arguments)
        self._spent[name] = self._spent.get(name, 0.0) + (time.perf_counter() - begin) * 1000
        return result

    @property
    def spent(self) -> Mapping[str, float]:
        return MappingProxyType(dict(self._spent))
