"""Asks the indexes, once: everything after that is arithmetic in `assemble`."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from core.access import Viewer
from core.corpus import Corpus
from core.errors import RankscopeError, Stopped
from core.explanation import stage_title
from core.filters import Filter
from core.indexes.checks import checked_ranking
from core.pipeline.assemble import RERANKER, VECTOR, assemble, probe_depth, to_rerank
from core.pipeline.further import further_signals
from core.pipeline.items import acting, counts_signals, rank_items
from core.protocols import Index, Progress
from core.reranking import Cached, load_reranker
from core.settings import SearchSettings
from core.trace import NO_HITS, NO_RULES, Ranking, Record, Reranked, Ruled, Trace
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
    viewer: Viewer | None = None,
) -> Trace:
    """Run a query through every stage, over what `viewer` may see (None: all that the corpus holds).

    `progress` hears of indexes that must be built. Without `pay` a reranker that would cost something, or
    download its model, is not asked, and the trace says so. Raises TypeError when the query is not a string,
    FilterError where the settings filter by what the items' fields cannot answer.
    """
    chosen = settings or SearchSettings()
    corpus = corpus.for_viewer(viewer)
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

    Indexes that are off are asked too: switching one on again is then a replay. Items that the filters
    keep out are ranked by none of them. Raises as `search` does.
    """
    if not isinstance(query, str):
        raise TypeError(f"the query is {type(query).__name__}; give a string")
    query = encodable(query)
    passing = _passing(corpus, settings)
    indexes = corpus.indexes(settings, progress)
    if empty := _nothing(corpus, query, settings, passing):
        signals = dict.fromkeys(_signal_names(corpus, settings), NO_HITS) if settings.two_stage else {}
        searches = dict.fromkeys(indexes, NO_HITS)
        depths: dict[str, int | None] = dict.fromkeys(indexes, None)
        nothing = Record(query, settings, signals, searches, depths, None, {}, (empty,), passing=passing)
        return nothing, indexes
    asking = _Asking(corpus, query, settings, indexes, passing)
    return asking.two_stages() if settings.two_stage else asking.one_stage(), indexes


def _passing(corpus: Corpus, settings: SearchSettings) -> NDArray[np.bool_] | None:
    """The items that the filters let pass; None: all. Raises FilterError."""
    if not (settings.filters and len(corpus.item_ids)):
        return None
    return corpus.fields.mask(Filter.parse(settings.filters))


def _nothing(
    corpus: Corpus, query: str, settings: SearchSettings, passing: NDArray[np.bool_] | None
) -> str:
    """Why there is nothing to search; blank where there is something."""
    if not query.strip():
        return "type a query to search"
    if not len(corpus):
        return "the collection has no chunks: add documents first"
    if passing is not None and not passing.any():
        return f"no item passes the filters ({settings.filters}): change or clear them"
    return ""


class _Asking:
    """One query put to the indexes of one corpus, with what that took and what is to be said of it."""

    def __init__(
        self,
        corpus: Corpus,
        query: str,
        settings: SearchSettings,
        indexes: Mapping[str, Index],
        passing: NDArray[np.bool_] | None,
    ) -> None:
        self.corpus, self.query, self.settings, self.indexes = corpus, query, settings, indexes
        self.passing = passing
        self.notes = _notes(indexes, query)
        self.milliseconds: dict[str, float] = {}
        self.said: dict[str, tuple[str, ...]] = {}
        self.whys: dict[str, Callable[[int], str]] = {}
        self.ruled = self._rules()

    def one_stage(self, signals: Mapping[str, Ranking] = MappingProxyType({})) -> Record:
        """The best chunks of all items that pass in each index, as many as its depth."""
        depths: dict[str, int | None] = {}
        searches = {}
        allowed = self._chunks_of(self.passing)
        for name in self.indexes:
            depth = depths[name] = self.settings.index(name).depth
            searches[name] = self._chunks(name, depth, allowed)
        return self._record(signals, searches, depths, None)

    def two_stages(self) -> Record:
        """The items' signals, and the scores of all chunks, or of those inside the items sent on."""
        settings, n_chunks = self.settings, len(self.corpus)
        allowed = self._chunks_of(self.passing)
        everything = settings.vector == "exact" and _count(allowed, n_chunks) <= RECORD_ALL
        counts = counts_signals(_signal_names(self.corpus, settings), settings)
        if everything:
            vector = self._chunks(VECTOR, n_chunks, allowed)
        else:
            # What rules hide must not fill the places of what they leave.
            hidden = acting(self.ruled, settings).hidden if counts else {}
            searched = self._chunks_of(self._but(hidden)) if hidden else allowed
            vector = self._chunks(VECTOR, probe_depth(settings, n_chunks), searched)
        signals = self._signals(vector)
        if not everything and not counts:
            return self.one_stage(signals)
        covered: NDArray[np.bool_] | None = None
        if not everything:
            items = rank_items(signals, settings, self.ruled).ranking.head(settings.items)
            covered = np.zeros(len(self.corpus.item_ids), dtype=np.bool_)
            covered[items.positions] = True
            allowed = self._chunks_of(covered)
        searches = {
            name: vector if name == VECTOR and everything else self._chunks(name, n_chunks, allowed)
            for name in self.indexes
        }
        return self._record(signals, searches, dict.fromkeys(self.indexes, None), covered)

    def _rules(self) -> Ruled:
        corpus, rules = self.corpus, self.corpus.first_stage.rules
        if not len(rules):
            return NO_RULES
        with self._timing("items.rules"):
            return rules.ruled(
                self.query,
                corpus.viewer,
                corpus.first_stage.today,
                corpus.fields,
                corpus.item_ids,
                corpus.item_names,
                self.passing,
            )

    def _signals(self, vector: Ranking) -> dict[str, Ranking]:
        """Every signal's ranking of the items that pass, uncut. One that fails costs its own list only."""
        n_items = len(self.corpus.item_ids)
        passing = None if self.passing is None else np.flatnonzero(self.passing)
        item_index = self.corpus.item_index(self.settings)
        with self._timing("items.lexical"):
            lexical = item_index.search(self.query, n_items, passing)
        found = {"lexical": lexical, "semantic": best_chunk_of_each_item(vector, self.corpus.item_of)}
        for name, make in further_signals(self.corpus, self.settings).items():
            try:
                with self._timing(f"items.{name}"):
                    signal = make()
                    ranking = checked_ranking(signal.rank(self.query, self.corpus), n_items, n_items)
                    if notes := getattr(signal, "notes", None):
                        self.said[name] = tuple(notes(self.corpus))
                if why := getattr(signal, "why", None):
                    self.whys[name] = partial(_why, why, self.query, self.corpus)
            except Stopped:
                raise
            except Exception as error:
                reason = str(error) if isinstance(error, RankscopeError) else _fault(error)
                self.said[name] = (f"this signal is left out: {reason}",)
                ranking = NO_HITS
            found[name] = ranking if self.passing is None else ranking.within(self.passing)
        return found

    def _but(self, hidden: Collection[int]) -> NDArray[np.bool_]:
        """The items that pass and are not hidden."""
        left = np.ones(len(self.corpus.item_ids), dtype=np.bool_)
        if self.passing is not None:
            left &= self.passing
        left[list(hidden)] = False
        return left

    def _chunks_of(self, items: NDArray[np.bool_] | None) -> NDArray[np.int64] | None:
        """Positions of the chunks of the items marked; None for all."""
        return None if items is None else np.flatnonzero(items[self.corpus.item_of])

    def _record(
        self,
        signals: Mapping[str, Ranking],
        searches: Mapping[str, Ranking],
        depths: Mapping[str, int | None],
        covered: NDArray[np.bool_] | None,
    ) -> Record:
        return Record(
            self.query,
            self.settings,
            signals,
            searches,
            depths,
            covered,
            MappingProxyType(self.milliseconds),
            tuple(self.notes),
            passing=self.passing,
            ruled=self.ruled,
            said=MappingProxyType(self.said),
            whys=MappingProxyType(self.whys),
        )

    def _chunks(self, name: str, k: int, allowed: NDArray[np.int64] | None) -> Ranking:
        """What an index finds. One that is not ours and fails costs its own list only, and a note says so."""
        if allowed is not None:
            if not len(allowed):
                return NO_HITS
            k = min(k, len(allowed))
        search_in = self.indexes[name].search
        if name in BUILT_IN:
            with self._timing(name):
                return search_in(self.query, k, allowed)
        try:
            with self._timing(name):
                found = search_in(self.query, k, allowed)
            return checked_ranking(found, len(self.corpus), k)
        except RankscopeError:
            raise
        except Exception as error:
            self.notes.append(f"{name}: this index is left out, it failed ({_fault(error)})")
            return NO_HITS

    @contextmanager
    def _timing(self, name: str) -> Iterator[None]:
        """Milliseconds by name; a name timed twice adds up."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            spent = (time.perf_counter() - begin) * 1000
            self.milliseconds[name] = self.milliseconds.get(name, 0.0) + spent


def _signal_names(corpus: Corpus, settings: SearchSettings) -> list[str]:
    return ["lexical", "semantic", *further_signals(corpus, settings)]


def _count(allowed: NDArray[np.int64] | None, n_chunks: int) -> int:
    return n_chunks if allowed is None else len(allowed)


def _why(why: Callable[[str, int, Corpus], str], query: str, corpus: Corpus, item: int) -> str:
    return why(query, item, corpus)


def _fault(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


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
