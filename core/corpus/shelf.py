"""The indexes over a corpus: built when first asked for, kept in memory and on disk."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.errors import RankscopeError
from core.extras import registered_indexes
from core.indexes import BM25Index, HnswIndex, VectorIndex
from core.indexes.hnsw import unavailable_reason
from core.protocols import Embedder, Index, Progress, Vectors
from core.sealed import is_sealed, write_sealed
from core.settings import IndexSettings, SearchSettings
from core.types import Chunk

Key = tuple[str | int | float, ...]
T = TypeVar("T")

_KEPT = 8  # indexes with parameters of their own; what they are made from is always kept


class Source(Protocol):
    """What the indexes are built from."""

    settings: IndexSettings
    embedder: Embedder
    matrix: Vectors
    item_ids: tuple[str, ...]

    def __len__(self) -> int: ...

    def chunk_batches(self, first: int = 0) -> Iterator[list[Chunk]]: ...

    def item_batches(self, first: int = 0) -> Iterator[list[str]]: ...


class Whole(NamedTuple):
    """What a corpus is cut out of: its indexes, and which of its items and chunks are in the part."""

    shelf: IndexShelf
    items: NDArray[np.bool_]
    chunks: NDArray[np.bool_]


class IndexShelf:
    """Indexes by kind and parameters. Any method may be called from any thread; one builds, others wait
    only when they need the same index.
    """

    def __init__(
        self,
        source: Source,
        folder: Path | None,
        seeds: Mapping[Key, Any],
        note: Callable[[str], None],
        whole: Whole | None = None,
    ) -> None:
        """`seeds` are indexes over the first chunks or items, to grow; `note` tells the person; terms are
        taken from the `whole` instead of being read out of the texts again."""
        self._source = source
        self._folder = folder
        self._seeds = dict(seeds)
        self._note = note
        self._whole = whole
        self._lock = threading.Lock()
        self._building: dict[Key, threading.Lock] = {}
        self._base: dict[Key, Any] = {}
        self._tuned: OrderedDict[Key, Any] = OrderedDict()

    def bm25(self, name: str, search: SearchSettings, progress: Progress | None) -> BM25Index:
        """BM25 over chunks ("bm25") or items ("items") with the search's parameters."""
        base = self._terms(name, progress)
        k1, b, variant = search.bm25_k1, search.bm25_b, search.bm25_variant
        if (base.k1, base.b, base.variant) == (k1, b, variant):
            return base
        return self._keep(
            self._tuned, (name, k1, b, variant), lambda: base.with_parameters(k1, b, variant)
        )

    def _terms(self, name: str, progress: Progress | None) -> BM25Index:
        return self._keep(self._base, (name,), lambda: self._make_bm25(name, progress))

    def vector(self, search: SearchSettings, progress: Progress | None) -> VectorIndex:
        """Exact or HNSW, as the search says; exact where hnswlib cannot be imported."""
        if search.vector == "hnsw" and len(self._source):
            if reason := unavailable_reason():
                self._note(reason)
            else:
                return self._hnsw(search, progress)
        source = self._source
        return self._keep(
            self._base, ("exact",), lambda: VectorIndex.from_vectors(source.embedder, source.matrix)
        )

    def registered(self, progress: Progress | None) -> dict[str, Index]:
        """Every registered index, filled with all chunks; one that cannot be is left out, with a note."""

        def make(factory: Callable[[], Index]) -> Index:
            index = factory()
            _fill(index, self._source.chunk_batches(), len(self._source), progress)
            return index

        found = {}
        for name, factory in registered_indexes().items():
            try:
                found[name] = self._keep(self._base, ("registered", name), partial(make, factory))
            except RankscopeError:  # stopped, or the collection cannot be read
                raise
            except Exception as error:
                self._note(
                    f"the index {name} is left out, it cannot be built ({type(error).__name__}: {error})"
                )
        return found

    def seeds(self, analyzer_stays: bool) -> dict[Key, Any]:
        """What the indexes of a corpus that begins with the same chunks can grow from."""
        with self._lock:
            known = {**self._seeds, **self._base}
        return {
            key: index
            for key, index in known.items()
            if key[0] == "hnsw" or (key[0] in ("bm25", "items") and analyzer_stays)
        }

    def _hnsw(self, search: SearchSettings, progress: Progress | None) -> HnswIndex:
        m, ef_construction, ef = search.hnsw_m, search.hnsw_ef_construction, search.hnsw_ef
        key: Key = ("hnsw", m, ef_construction)
        graph = self._keep(self._base, key, lambda: self._make_hnsw(key, m, ef_construction, progress))
        return (
            graph if graph.ef == ef else self._keep(self._tuned, (*key, ef), lambda: graph.with_ef(ef))
        )

    def _make_bm25(self, name: str, progress: Progress | None) -> BM25Index:
        if self._whole:
            rows = self._whole.chunks if name == "bm25" else self._whole.items
            told = progress and _scaled(progress, int(rows.sum()))
            return self._whole.shelf._terms(name, told).chosen(np.flatnonzero(rows))
        source = self._source
        size = len(source) if name == "bm25" else len(source.item_ids)
        analyzer = source.settings.analyzer
        found = self._read(name, lambda files: BM25Index.load(files, analyzer, name))
        if found and len(found) == size:
            return found
        seed = self._seeds.get((name,))
        # A copy: the corpus that made it goes on using it as it is.
        index = seed.with_parameters() if seed else BM25Index(analyzer, name=name)
        batches = source.chunk_batches if name == "bm25" else source.item_batches
        _fill(index, batches(len(index)), size, progress)
        self._write(name, index.save)
        return index

    def _make_hnsw(self, key: Key, m: int, ef_construction: int, progress: Progress | None) -> HnswIndex:
        embedder, matrix = self._source.embedder, self._source.matrix
        name = f"hnsw-{m}-{ef_construction}"
        found = self._read(
            name, lambda files: HnswIndex.load(files, embedder, matrix, m, ef_construction)
        )
        if found:
            return found
        if seed := self._seeds.get(key):
            index = seed.extended(matrix[len(seed) :])
        else:
            index = HnswIndex.from_vectors(
                embedder, matrix, m=m, ef_construction=ef_construction, progress=progress
            )
        self._write(name, index.save)
        return index

    def _keep(self, shelf: dict[Key, Any], key: Key, make: Callable[[], T]) -> T:
        """The index on the shelf, or a new one; of tuned ones those unused for longest are dropped."""
        with self._lock:
            building = self._building.setdefault(key, threading.Lock())
        with building:
            with self._lock:
                if key in shelf:
                    if shelf is self._tuned:
                        self._tuned.move_to_end(key)
                    return shelf[key]
            made = make()
            with self._lock:
                shelf[key] = made
                self._seeds.pop(key, None)  # only now: work that was stopped begins from it again
                if len(self._tuned) > _KEPT:
                    self._tuned.popitem(last=False)
            return made

    def _read(self, name: str, load: Callable[[Path], T]) -> T | None:
        if not self._folder or not is_sealed(self._folder / name):
            return None
        try:
            return load(self._folder / name)
        except RankscopeError:  # of other chunks or another version: built again
            return None

    def _write(self, name: str, save: Callable[[Path], object]) -> None:
        if self._folder:
            try:
                write_sealed(self._folder / name, save)
            except OSError as error:
                self._note(not_kept(error))


def not_kept(error: OSError) -> str:
    """The note that files could not be written."""
    return f"index files cannot be kept ({error}): they are made again next time"


def _scaled(progress: Progress, seen: int) -> Progress:
    """Tells of work on the whole as of work on the part: how much is hidden is not to be told either."""
    return lambda done, total: progress(seen * done // total, seen)


def _fill(
    index: Index, batches: Iterable[Sequence[Chunk | str]], total: int, progress: Progress | None
) -> None:
    for batch in batches:
        index.add_documents(batch)
        if progress:
            progress(len(index), total)
