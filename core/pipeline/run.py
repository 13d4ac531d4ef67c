"""Asks the indexes, once: everything after that is arithmetic in `assemble`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from core.corpus import Corpus
from core.errors import RankscopeError
from core.explanation import stage_title
from core.indexes.checks import checked_ranking
from core.pipeline.assemble import RERANKER, VECTOR, assemble, probe_depth, rank_items, to_rerank
from core.protocols import Index, Progress
from core.reranking import Cached, load_reranker
from core.settings import SearchSettings
from core.trace import NO_HITS, Ranking, Record, Reranked, Trace
from core.types import encodable

BUILT_IN = ("bm25", VECTOR)

RECORD_ALL = 200_000
"""Up to this many chunks a two-stage search records the score of every chunk: fewer or other items
are then replayed. Above it, only chunks of the items sent on are scored."""


def search(
    corpus: Corpus,
    query: str,
    settings: SearchSettings | None = None,
    progress: Progress | None = None,
    pay: bool = True,
) -> Trace:
    """Run a query through every stage.

    `progress` hears of indexes that must be built. Without `pay` a reranker that would cost something, or
    download its model, is not asked, and the trace says so. Raises TypeError when the query is not a string.
    """
    chosen = settings or SearchSettings()
    recorded, indexes = record(corpus, query, chosen, progress)
    if chosen.rerank != "none":
        recorded = rerank(corpus, recorded, chosen, pay)
    return assemble(corpus, recorded, chosen, indexes)


def rerank(corpus: Corpus, recorded: Record, settings: SearchSettings, pay: bool = True) -> Record:
    """The record with the reranker's scores of the best chunks, or with the reason why it has none."""
    best = to_rerank(corpus, recorded, settings).positions
    begin = time.perf_counter()
    made = Reranked(settings.rerank, settings.rerank_model, best, np.empty(0))
    if len(best):
        texts = [corpus.chunk(position).indexed_text for position in best.tolist()]
        try:
            if reranker := load_reranker(settings):
                made = _asked(made, reranker, recorded.query, texts, pay)
        except RankscopeError as error:
            made = replace(made, failed=str(error))
    spent = {**recorded.milliseconds, RERANKER: (time.perf_counter() - begin) * 1000}
    return replace(recorded, reranked=made, milliseconds=MappingProxyType(spent))


def _asked(asking: Reranked, reranker: Cached, query: str, texts: list[str], pay: bool) -> Reranked:
    if not pay and reranker.fetches:  # a link that names a model must not download it by itself
        held = f"the reranker {asking.name} is not asked yet: its model {reranker.model_id} is downloaded first"
        return replace(asking, failed=held, held=True)
    cost = reranker.estimate(query, texts) if reranker.paid and not pay else 0.0
    if cost != 0:
        about = "a price that is not known" if cost is None else f"about ${cost:.4f}"
        held = (
            f"the reranker {asking.name} is not asked yet: these {len(texts):,} texts would cost {about}"
        )
        return replace(asking, failed=held, held=True)
    found = reranker.scores(query, texts)
    return replace(
        asking,
        scores=found.values,
        listwise=reranker.listwise,
        dollars=found.dollars,
        note=found.note,
    )


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
    nothing = "" if query.strip() else "type a query to search"
    if nothing or not len(corpus):
        empty = nothing or "the collection has no chunks: add documents first"
        signals = {"lexical": NO_HITS, "semantic": NO_HITS} if settings.two_stage else {}
        searches = dict.fromkeys(indexes, NO_HITS)
        depths: dict[str, int | None] = dict.fromkeys(indexes, None)
        return Record(query, settings, signals, searches, depths, None, {}, (empty,)), indexes
    asking = _Asking(corpus, query, settings, indexes)
    return asking.two_stages() if settings.two_stage else asking.one_stage(), indexes


class _Asking:
    """One query put to the indexes of one corpus, with what that took and what is to be said of it."""

    def __init__(
        self, corpus: Corpus, query: str, settings: SearchSettings, indexes: Mapping[str, Index]
    ) -> None:
        self.corpus, self.query, self.settings, self.indexes = corpus, query, settings, indexes
        self.notes = _notes(indexes, query)
        self.milliseconds: dict[str, float] = {}

    def one_stage(self, signals: Mapping[str, Ranking] = MappingProxyType({})) -> Record:
        """The best chunks of all items in each index, as many as its depth."""
        depths: dict[str, int | None] = {}
        searches = {}
        for name in self.indexes:
            depth = depths[name] = self.settings.index(name).depth
            searches[name] = self._chunks(name, depth)
        return self._record(signals, searches, depths, None)

    def two_stages(self) -> Record:
        """The items' signals, and the scores of all chunks, or of those inside the items sent on."""
        n_items, n_chunks = len(self.corpus.item_ids), len(self.corpus)
        item_index = self.corpus.item_index(self.settings)
        lexical = self._timed("items.lexical", item_index.search, self.query, n_items)
        everything = self.settings.vector == "exact" and n_chunks <= RECORD_ALL
        vector = self._chunks(VECTOR, n_chunks if everything else probe_depth(self.settings, n_chunks))
        signals = {"lexical": lexical, "semantic": best_chunk_of_each_item(vector, self.corpus.item_of)}
        if not everything and not any(self.settings.signal(name).on for name in signals):
            return self.one_stage(signals)
        covered: NDArray[np.bool_] | None = None
        allowed: NDArray[np.int64] | None = None
        if not everything:
            items = rank_items(signals, self.settings).ranking.head(self.settings.items)
            covered = np.zeros(n_items, dtype=np.bool_)
            covered[items.positions] = True
            allowed = np.flatnonzero(covered[self.corpus.item_of])
        searches = {}
        for name in self.indexes:
            if name == VECTOR and everything:
                searches[name] = vector
            elif allowed is not None and not len(allowed):
                searches[name] = NO_HITS
            else:
                searches[name] = self._chunks(
                    name, n_chunks if allowed is None else len(allowed), allowed
                )
        return self._record(signals, searches, dict.fromkeys(self.indexes, None), covered)

    def _record(
        self,
        signals: Mapping[str, Ranking],
        searches: Mapping[str, Ranking],
        depths: Mapping[str, int | None],
        covered: NDArray[np.bool_] | None,
    ) -> Record:
        spent = MappingProxyType(self.milliseconds)
        return Record(
            self.query, self.settings, signals, searches, depths, covered, spent, tuple(self.notes)
        )

    def _chunks(self, name: str, k: int, allowed: NDArray[np.int64] | None = None) -> Ranking:
        """What an index finds. One that is not ours and fails costs its own list only, and a note says so."""
        search_in = self.indexes[name].search
        if name in BUILT_IN:
            return self._timed(name, search_in, self.query, k, allowed)
        try:
            found = self._timed(name, search_in, self.query, k, allowed)
            return checked_ranking(found, len(self.corpus), k)
        except RankscopeError:
            raise
        except Exception as error:
            failed = f"it failed ({type(error).__name__}: {error})"
            self.notes.append(f"{name}: this index is left out, {failed}")
            return NO_HITS

    def _timed(self, name: str, call: Callable[..., Ranking], *arguments: object) -> Ranking:
        """Milliseconds by name; a name timed twice adds up."""
        begin = time.perf_counter()
        try:
            return call(*arguments)
        finally:
            spent = (time.perf_counter() - begin) * 1000
            self.milliseconds[name] = self.milliseconds.get(name, 0.0) + spent


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
