"""A corpus: the immutable view of documents under one `IndexSettings`, with the indexes over it.

Its arrays and index files are caches under one folder: when they are missing or damaged they are made
again from the documents.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.chunk_table import ChunkTable, build_table, made_with
from core.collection import Collection
from core.documents import Documents, ListedDocuments
from core.embedding import load_embedder
from core.errors import CollectionError, EmbeddingError, RankscopeError
from core.extras import registered_indexes
from core.indexes import BM25Index, HnswIndex, VectorIndex
from core.indexes.hnsw import unavailable_reason
from core.protocols import Embedder, Index, Progress, Vectors
from core.sealed import is_sealed, write_sealed
from core.settings import IndexSettings, SearchSettings
from core.types import Chunk, Document, chunk_id, make_chunk
from core.vectors_cache import VectorCache, shared_cache

_KEPT_INDEXES = 8
_KEPT_CORPORA = 3
_BATCH = 500  # chunks or items read into an index at a time

_Key = tuple[str | int | float, ...]


class Corpus:
    """Chunks of all items in item order, and the indexes over them. Safe to share between threads.

    `item_of`, `starts`, `ends`, `tokens`, `duplicate_of` have shape (n_chunks,); chunks of item i are
    positions `first_chunk[i]:first_chunk[i+1]`; `duplicate_of` is the position of the first chunk with
    the same text but for case and blanks; `matrix` (n_chunks, d) holds the chunks' unit vectors.
    """

    def __init__(
        self,
        documents: Documents,
        settings: IndexSettings,
        embedder: Embedder,
        table: ChunkTable,
        folder: Path | None = None,
        seeds: Mapping[_Key, Any] = MappingProxyType({}),
        notes: tuple[str, ...] = (),
    ) -> None:
        """Use `from_documents`. `seeds` are indexes over the first chunks, to be extended to all."""
        self.settings = settings
        self.embedder = embedder
        self.fingerprint = fingerprint(documents, settings, embedder.model_id)
        self.item_ids = documents.ids
        self.item_names = documents.names
        self.item_titles = documents.titles
        self.first_chunk = table.first_chunk
        self.starts, self.ends, self.tokens = table.starts, table.ends, table.tokens
        self.matrix: Vectors = table.matrix
        self.item_of: NDArray[np.int64] = np.repeat(
            np.arange(len(documents), dtype=np.int64), np.diff(table.first_chunk)
        )
        self.duplicate_of = table.duplicate_of()
        self.item_of.flags.writeable = self.duplicate_of.flags.writeable = False
        self._documents = documents
        self._table = table
        self._folder = folder
        self._seeds = dict(seeds)
        self._notes = [*notes, *self._length_notes()]
        self._positions = {one: at for at, one in enumerate(documents.ids)}
        self._lock = threading.RLock()
        self._base: dict[str, BM25Index] = {}
        self._made: OrderedDict[_Key, Any] = OrderedDict()
        self._extras: dict[str, Index] = {}

    @classmethod
    def from_documents(
        cls,
        documents: Sequence[Document] | Documents,
        settings: IndexSettings,
        embedder: Embedder,
        cache: VectorCache | None = None,
        folder: Path | None = None,
        progress: Progress | None = None,
        previous: Corpus | None = None,
    ) -> Corpus:
        """Cut, embed and index documents, or read all that from `folder` where it was done before.

        Documents that `previous`, or a corpus in a sibling of `folder`, holds as they are and cut and
        embedded in the same way are taken from there.
        `progress` hears of documents while they are cut, then of texts while they are embedded;
        when it raises (`Stopped`), the vectors made so far stay in `cache`.
        Raises EmbeddingError when the model gives other vectors than it declares, ValueError when two
        documents have the same id.
        """
        listed = ListedDocuments(documents) if isinstance(documents, Sequence) else documents
        wanted = made_with(settings.chunking, embedder)
        old = previous if previous and previous._table.made_with == wanted else None
        earlier = old._table if old else None
        table, notes = _table(listed, settings, embedder, cache, folder, progress, earlier)
        seeds = old._seeds_for(listed, settings) if old else {}
        return cls(listed, settings, embedder, table, folder, seeds, notes)

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the person should know of this corpus, in plain sentences."""
        return tuple(self._notes)

    def document(self, item: int) -> Document:
        """The document of an item. Raises CollectionError when it was deleted since."""
        return self._documents[item]

    def chunk(self, position: int) -> Chunk:
        """The chunk at a position, read from its document."""
        document = self.document(int(self.item_of[position]))
        return make_chunk(document, int(self.starts[position]), int(self.ends[position]))

    def chunk_id(self, position: int) -> str:
        item = self.item_ids[self.item_of[position]]
        return chunk_id(item, int(self.starts[position]), int(self.ends[position]))

    def position_of(self, chunk_id: str) -> int:
        """The position of a chunk. Raises KeyError when this corpus has no such chunk."""
        document_id, _, span = chunk_id.rpartition(":")
        start, _, end = span.partition("-")
        if document_id in self._positions and start.isdecimal() and end.isdecimal():
            item = self._positions[document_id]
            first, last = self.first_chunk[item : item + 2]
            same = (self.starts[first:last] == int(start)) & (self.ends[first:last] == int(end))
            if same.any():
                return int(first + np.argmax(same))
        raise KeyError(
            f"no chunk {chunk_id!r} in this corpus: its document was removed or is cut otherwise now"
        )

    def item_position(self, document_id: str) -> int:
        """The position of an item. Raises KeyError when this corpus has no such document."""
        try:
            return self._positions[document_id]
        except KeyError:
            raise KeyError(f"no document {document_id!r} in this corpus: it was removed") from None

    def indexes(self, search: SearchSettings, progress: Progress | None = None) -> Mapping[str, Index]:
        """Name → index over the chunks: "bm25", "vector", and every registered one.

        Built at the first call that needs them, then kept; `progress` hears of building.
        """
        with self._lock:
            return {
                "bm25": self._bm25("bm25", search, progress),
                "vector": self._vector(search, progress),
                **self._registered(progress),
            }

    def item_index(self, search: SearchSettings, progress: Progress | None = None) -> Index:
        """BM25 over items; positions are item positions.

        The text of an item is its file's name without the ending, its title and its whole text.
        """
        with self._lock:
            return self._bm25("items", search, progress)

    def _bm25(self, name: str, search: SearchSettings, progress: Progress | None) -> BM25Index:
        if name not in self._base:
            self._base[name] = self._load_bm25(name) or self._build_bm25(name, progress)
        base = self._base[name]
        k1, b, variant = search.bm25_k1, search.bm25_b, search.bm25_variant
        if (base.k1, base.b, base.variant) == (k1, b, variant):
            return base
        return self._keep((name, k1, b, variant), lambda: base.with_parameters(k1, b, variant))

    def _load_bm25(self, name: str) -> BM25Index | None:
        files = self._files(name)
        if not files or not is_sealed(files):
            return None
        try:
            index = BM25Index.load(files, self.settings.analyzer, name)
        except RankscopeError:
            return None
        return index if len(index) == (len(self) if name == "bm25" else len(self.item_ids)) else None

    def _build_bm25(self, name: str, progress: Progress | None) -> BM25Index:
        seed = self._seeds.pop((name,), None)
        # A copy: the corpus that made it goes on using it as it is.
        index = seed.with_parameters() if seed else BM25Index(self.settings.analyzer, name=name)
        batches = self._chunk_batches(len(index)) if name == "bm25" else self._item_batches()
        self._fill(index, batches, len(self) if name == "bm25" else len(self.item_ids), progress)
        self._store(name, index.save)
        return index

    def _vector(self, search: SearchSettings, progress: Progress | None) -> Index:
        if search.vector == "hnsw" and len(self):
            if reason := unavailable_reason():
                self._note(reason)
            else:
                return self._hnsw(search, progress)
        return self._keep(("exact",), lambda: VectorIndex.from_vectors(self.embedder, self.matrix))

    def _hnsw(self, search: SearchSettings, progress: Progress | None) -> HnswIndex:
        m, ef_construction, ef = search.hnsw_m, search.hnsw_ef_construction, search.hnsw_ef
        key = ("hnsw", m, ef_construction)
        name = f"hnsw-{m}-{ef_construction}"

        def make() -> HnswIndex:
            files = self._files(name)
            if files and is_sealed(files):
                try:
                    return HnswIndex.load(files, self.embedder, self.matrix, m, ef_construction)
                except RankscopeError:
                    pass  # of other vectors: built again
            if seed := self._seeds.pop(key, None):
                index = seed.extended(self.matrix[len(seed) :])
            else:
                index = HnswIndex.from_vectors(
                    self.embedder, self.matrix, m=m, ef_construction=ef_construction, progress=progress
                )
            self._store(name, index.save)
            return index

        graph = self._keep(key, make)
        return graph if graph.ef == ef else self._keep((*key, ef), lambda: graph.with_ef(ef))

    def _registered(self, progress: Progress | None) -> dict[str, Index]:
        """Further indexes, each filled with all chunks once."""
        for name, factory in registered_indexes().items():
            if name not in self._extras:
                index = factory()
                self._fill(index, self._chunk_batches(), len(self), progress)
                self._extras[name] = index
        return dict(self._extras)

    @staticmethod
    def _fill(
        index: Index, batches: Iterable[Sequence[Chunk | str]], total: int, progress: Progress | None
    ) -> None:
        for batch in batches:
            index.add_documents(batch)
            if progress:
                progress(len(index), total)

    def _keep(self, key: tuple, make: Callable[[], Any]) -> Any:
        """The index made before under this key, or a new one; those not used for longest are dropped."""
        if key not in self._made:
            self._made[key] = make()
            if len(self._made) > _KEPT_INDEXES:
                self._made.popitem(last=False)
        self._made.move_to_end(key)
        return self._made[key]

    def _files(self, name: str) -> Path | None:
        return self._folder / name if self._folder else None

    def _store(self, name: str, save: Callable[[Path], object]) -> None:
        if files := self._files(name):
            try:
                write_sealed(files, save)
            except OSError as error:
                self._note(_not_kept(error))

    def _note(self, note: str) -> None:
        if note not in self._notes:
            self._notes.append(note)

    def _seeds_for(self, documents: Documents, settings: IndexSettings) -> dict[_Key, Any]:
        """Our indexes over chunks, when all our documents open the new list."""
        if documents.digests[: len(self.item_ids)] != self._table.digests:
            return {}
        with self._lock:
            seeds: dict[_Key, Any] = {**self._seeds}
            seeds |= {
                key: index for key, index in self._made.items() if key[0] == "hnsw" and len(key) == 3
            }
            if "bm25" in self._base:
                seeds[("bm25",)] = self._base["bm25"]
        if self.settings.analyzer != settings.analyzer:
            seeds.pop(("bm25",), None)
        return seeds

    def _length_notes(self) -> list[str]:
        over = int((self.tokens > self.embedder.max_tokens).sum())
        if not over:
            return []
        subject = "1 chunk is" if over == 1 else f"{over:,} chunks are"
        return [
            f"{subject} longer than the {self.embedder.max_tokens} tokens that {self.embedder.model_id} "
            "sees: the rest does not count for the vector index; make chunks smaller"
        ]

    def _chunk_batches(self, first: int = 0) -> Iterator[list[Chunk]]:
        """The chunks from position `first` on; each document is read once."""
        batch: list[Chunk] = []
        item = int(self.item_of[first]) if first < len(self) else len(self.item_ids)
        for at in range(item, len(self.item_ids)):
            begin, end = self.first_chunk[at : at + 2].tolist()
            if begin == end:
                continue
            document = self.document(at)
            for position in range(max(begin, first), end):
                batch.append(make_chunk(document, int(self.starts[position]), int(self.ends[position])))
                if len(batch) == _BATCH:
                    yield batch
                    batch = []
        if batch:
            yield batch

    def _item_batches(self, first: int = 0) -> Iterator[list[str]]:
        for at in range(first, len(self.item_ids), _BATCH):
            end = min(at + _BATCH, len(self.item_ids))
            yield [_item_text(self.document(item)) for item in range(at, end)]


def build_corpus(
    collection: Collection,
    settings: IndexSettings,
    progress: Progress | None = None,
    previous: Corpus | None = None,
    embedder: Embedder | None = None,
) -> Corpus:
    """The corpus of a collection as it is now, read from its folder where it was built before.

    What documents `previous`, or else the corpus built last under these settings, had in common with
    this one is not made again. `embedder` stands in for the model that the settings name.
    Raises EmbeddingError when the model cannot be loaded or is another one than the settings name,
    CollectionError when the collection cannot be read, and what `progress` raises.
    """
    model = embedder or load_embedder(settings.model)
    if model.model_id != settings.model:
        raise EmbeddingError(
            f"the settings name the model {settings.model}, the vectors would come from "
            f"{model.model_id}; choose one of the two and index again"
        )
    while True:
        documents = collection.documents()
        folder = _folder(collection, documents, settings)
        try:
            corpus = Corpus.from_documents(
                documents, settings, model, shared_cache(), folder, progress, previous
            )
        except CollectionError:
            if collection.version == documents.version:
                raise
            continue  # a document was removed while it was to be cut: start from the new version
        _prune(folder)
        return corpus


def is_built(collection: Collection, settings: IndexSettings) -> bool:
    """Whether `build_corpus` would find its chunks and vectors on disk."""
    return is_sealed(_folder(collection, collection.documents(), settings) / "chunks")


def fingerprint(documents: Documents, settings: IndexSettings, model_id: str) -> str:
    """Sixteen hex digits: equal for the same documents in the same order under the same settings."""
    facts = [model_id, settings.fingerprint(), settings.analyzer.fingerprint]
    digest = hashlib.sha256("\0".join(facts).encode())
    for one, content in zip(documents.ids, documents.digests, strict=True):
        digest.update(f"\0{one}\0{content}".encode())
    return digest.hexdigest()[:16]


def _table(
    documents: Documents,
    settings: IndexSettings,
    embedder: Embedder,
    cache: VectorCache | None,
    folder: Path | None,
    progress: Progress | None,
    earlier: ChunkTable | None,
) -> tuple[ChunkTable, tuple[str, ...]]:
    """The chunks read from the folder, or else made and kept there; and notes."""
    wanted = made_with(settings.chunking, embedder)
    found = ChunkTable.load(folder / "chunks") if folder else None
    if found and (found.made_with, found.digests) == (wanted, documents.digests):
        return found, ()
    if folder and not earlier:
        tables = (ChunkTable.load(one / "chunks") for one in _by_age(folder.parent))
        earlier = next((table for table in tables if table and table.made_with == wanted), None)
    table = build_table(documents, settings.chunking, embedder, cache, progress, earlier)
    if not folder:
        return table, ()
    try:
        shutil.rmtree(folder, ignore_errors=True)  # indexes over other chunks
        table.save(folder / "chunks")
    except OSError as error:
        return table, (_not_kept(error),)
    return ChunkTable.load(folder / "chunks") or table, ()


def _folder(collection: Collection, documents: Documents, settings: IndexSettings) -> Path:
    return collection.folder / "corpus" / fingerprint(documents, settings, settings.model)


def _by_age(folder: Path) -> list[Path]:
    """The corpora in a folder, the one opened last first."""
    try:
        return sorted(folder.iterdir(), key=lambda one: one.stat().st_mtime, reverse=True)
    except OSError:
        return []


def _prune(opened: Path) -> None:
    """Mark a corpus as opened just now and delete those not opened for longest."""
    with suppress(OSError):
        os.utime(opened)
    for old in _by_age(opened.parent)[_KEPT_CORPORA:]:
        shutil.rmtree(old, ignore_errors=True)


def _item_text(document: Document) -> str:
    stem = document.name.rpartition(".")[0] or document.name
    return "\n".join((stem, document.title, document.text))


def _not_kept(error: OSError) -> str:
    return f"index files cannot be kept ({error}): they are made again next time"
