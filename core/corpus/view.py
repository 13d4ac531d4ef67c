"""A corpus: the immutable view of documents under one `IndexSettings`, with the indexes over it.

Its arrays and index files are caches under one folder: when they are missing or damaged they are made
again from the documents.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.access import Viewer
from core.chunk_table import (
    ChunkTable,
    build_table,
    made_with,
    with_contexts,
)
from core.chunking.describe import describe
from core.contextualizing import contexts_for
from core.corpus.first_stage import FirstStage
from core.corpus.shelf import IndexShelf, Key, Whole, not_kept
from core.corpus.viewing import Views
from core.documents import ChosenDocuments, Documents, ListedDocuments
from core.fields import ItemFields
from core.protocols import Contexts, Embedder, Index, Progress, Vectors
from core.settings import IndexSettings, SearchSettings
from core.types import Chunk, Document, chunk_id, make_chunk
from core.vectors_cache import VectorCache

_BATCH = 500  # chunks or items read into an index at a time


class Corpus:
    """Chunks of all items in item order, and the indexes over them. Safe to share between threads.

    `item_of`, `starts`, `ends`, `tokens`, `duplicate_of` have shape (n_chunks,); chunks of item i are
    positions `first_chunk[i]:first_chunk[i+1]`; `duplicate_of` is the position of the first chunk with
    the same text but for case and blanks; `matrix` (n_chunks, d) holds the chunks' unit vectors.
    `first_stage` is what ranks items besides their texts, `viewer` who sees this corpus (None: all of it).
    `chunks_fingerprint` names documents and index settings, `fingerprint` all that a search depends on.
    """

    def __init__(
        self,
        documents: Documents,
        settings: IndexSettings,
        embedder: Embedder,
        table: ChunkTable,
        folder: Path | None = None,
        seeds: Mapping[Key, Any] = MappingProxyType({}),
        notes: tuple[str, ...] = (),
        whole: Whole | None = None,
    ) -> None:
        """Use `from_documents`. `seeds` are indexes over the first chunks or items, to grow; `whole` is what
        this corpus is cut out of."""
        self.settings = settings
        self.embedder = embedder
        self.first_stage = FirstStage()
        self.viewer: Viewer | None = None
        named = fingerprint(documents, settings, embedder.model_id, table.context_digests)
        self.chunks_fingerprint = self.fingerprint = named
        self.item_ids = documents.ids
        self.item_names = documents.names
        self.item_titles = documents.titles
        self.item_digests = documents.digests
        self.context_digests = table.context_digests
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
        self._notes = [*notes, *self._length_notes()]
        self._positions = {one: at for at, one in enumerate(documents.ids)}
        self._shelf = IndexShelf(self, folder, seeds, self._note, whole)
        self._views = Views(documents.access)
        self._fields: dict[tuple[tuple[str, str], ...], ItemFields] = {}

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
        contexts: Contexts | None = None,
    ) -> Corpus:
        """Cut, embed and index documents, or read all that from `folder` where it was done before.

        Documents that `previous`, or a corpus in a sibling of `folder`, holds as they are, with the same
        contexts, and cut and embedded in the same way are taken from there. `contexts` are those that the
        settings name, unless others are given.
        `progress` hears of documents while they are cut, then of texts while they are embedded;
        when it raises (`Stopped`), the vectors made so far stay in `cache`.
        Raises EmbeddingError when the model gives other vectors than it declares, ContextError where
        contexts are wanted that are kept with a collection, ValueError when two documents have the same id.
        """
        listed = ListedDocuments(documents) if isinstance(documents, Sequence) else documents
        wanted = made_with(settings, embedder)
        old = previous if previous and previous._table.made_with == wanted else None
        earlier = old._table if old else None
        contexts = contexts or contexts_for(settings.context, listed)
        table, notes = _table(listed, settings, embedder, contexts, cache, folder, progress, earlier)
        begins = old and _starts_with(table, old._table)
        seeds = old._shelf.seeds(_same_terms(old.settings, settings)) if old and begins else {}
        return cls(listed, settings, embedder, table, folder, seeds, notes)

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the person should know of this corpus, in plain sentences."""
        return tuple(self._notes)

    @property
    def fields(self) -> ItemFields:
        """What is known of the items besides their texts: columns, of the kinds that were said or seem."""
        kinds = tuple(sorted(self.first_stage.kinds.items()))
        if not (found := self._fields.get(kinds)):
            documents = self._documents
            found = ItemFields(documents.metadata(), dict(kinds), self.item_names, documents.added())
            self._fields.clear()
            self._fields[kinds] = found
        return found

    def shows(self, documents: Documents, settings: IndexSettings) -> bool:
        """Whether this is the corpus of these very documents, for the same people to see."""
        if self.settings != settings:
            return False
        facts = [(one.ids, one.digests, one.access, one.added()) for one in (self._documents, documents)]
        return facts[0] == facts[1]

    def with_first_stage(self, first_stage: FirstStage) -> Corpus:
        """The same corpus with other rules, events or kinds; it shares chunks and indexes with this one."""
        if self.viewer is not None:
            first_stage = first_stage.of_items(self.item_ids)
        return self._dressed(first_stage, self.viewer)

    def for_viewer(self, viewer: Viewer | None) -> Corpus:
        """What the viewer sees: to the last digit the corpus of a collection without what is hidden.

        None sees all. The last slices are kept; making one copies the vectors of what is seen.
        """
        return self if viewer is None else self._views.of(self, viewer)

    def _dressed(self, first_stage: FirstStage, viewer: Viewer | None) -> Corpus:
        made = copy(self)
        made.first_stage, made.viewer = first_stage, viewer
        made.fingerprint = _named(self.chunks_fingerprint, first_stage, viewer)
        return made

    def _slice(self, items: NDArray[np.bool_]) -> Corpus:
        """The corpus of the items where the mask (n_items,) holds."""
        chosen = ChosenDocuments(self._documents, np.flatnonzero(items).tolist())
        whole = Whole(self._shelf, items, items[self.item_of])
        table = self._table.chosen(items)
        return Corpus(chosen, self.settings, self.embedder, table, whole=whole)

    def document(self, item: int) -> Document:
        """The document of an item. Raises CollectionError when it was deleted since."""
        return self._documents[item]

    def chunk(self, position: int) -> Chunk:
        """The chunk at a position, read from its document, with its context."""
        document = self.document(int(self.item_of[position]))
        chunk = make_chunk(document, int(self.starts[position]), int(self.ends[position]))
        return with_contexts([chunk], [self._table.context(position)], self.settings)[0]

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
        return {
            "bm25": self._shelf.bm25("bm25", search, progress),
            "vector": self._shelf.vector(search, progress),
            **self._shelf.registered(progress),
        }

    def item_index(self, search: SearchSettings, progress: Progress | None = None) -> Index:
        """BM25 over items; positions are item positions.

        The text of an item is its file's name without the ending, its title and its whole text.
        """
        return self._shelf.bm25("items", search, progress)

    def chunk_batches(self, first: int = 0) -> Iterator[list[Chunk]]:
        """The chunks from position `first` on, in lists; each document is read once."""
        batch: list[Chunk] = []
        item = int(self.item_of[first]) if first < len(self) else len(self.item_ids)
        bare = not self.settings.context.in_bm25
        for at in range(item, len(self.item_ids)):
            rows = slice(max(int(self.first_chunk[at]), first), int(self.first_chunk[at + 1]))
            if rows.start < rows.stop:
                spans = zip(self.starts[rows].tolist(), self.ends[rows].tolist(), strict=True)
                chunks = describe(self.document(at), spans)
                if self.context_digests[at] and not bare:
                    written = [self._table.context(row) for row in range(rows.start, rows.stop)]
                    chunks = with_contexts(chunks, written, self.settings)
                batch += chunks
            if len(batch) >= _BATCH:
                yield batch
                batch = []
        if batch:
            yield batch

    def item_batches(self, first: int = 0) -> Iterator[list[str]]:
        """The items' texts for `item_index`, from item `first` on, in lists."""
        for at in range(first, len(self.item_ids), _BATCH):
            end = min(at + _BATCH, len(self.item_ids))
            yield [_item_text(self.document(item)) for item in range(at, end)]

    def _note(self, note: str) -> None:
        if note not in self._notes:
            self._notes.append(note)

    def _length_notes(self) -> list[str]:
        over = int((self.tokens > self.embedder.max_tokens).sum())
        if not over:
            return []
        subject = "1 chunk is" if over == 1 else f"{over:,} chunks are"
        return [
            f"{subject} longer than the {self.embedder.max_tokens} tokens that {self.embedder.model_id} "
            "sees: the rest does not count for the vector index. Make chunks smaller."
        ]


def fingerprint(
    documents: Documents, settings: IndexSettings, model_id: str, context_digests: Sequence[str]
) -> str:
    """Sixteen hex digits: equal for the same documents in the same order, with the same contexts, under
    the same settings."""
    facts = [model_id, settings.fingerprint(), settings.analyzer.fingerprint]
    digest = hashlib.sha256("\0".join(facts).encode())
    for one, content, context in zip(documents.ids, documents.digests, context_digests, strict=True):
        digest.update(f"\0{one}\0{content}\0{context}".encode())
    return digest.hexdigest()[:16]


def _named(chunks: str, first_stage: FirstStage, viewer: Viewer | None) -> str:
    """The name of a corpus with what ranks its items: rules may hold for some groups only."""
    if not first_stage.fingerprint:
        return chunks
    facts = [chunks, first_stage.fingerprint, sorted(viewer.groups) if viewer else None]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


def _table(
    documents: Documents,
    settings: IndexSettings,
    embedder: Embedder,
    contexts: Contexts,
    cache: VectorCache | None,
    folder: Path | None,
    progress: Progress | None,
    earlier: ChunkTable | None,
) -> tuple[ChunkTable, tuple[str, ...]]:
    """The chunks read from the folder, or else made and kept there; and notes."""
    wanted = (made_with(settings, embedder), documents.digests, contexts.digests)
    found = ChunkTable.load(folder / "chunks") if folder else None
    if found and (found.made_with, found.digests, found.context_digests) == wanted:
        return found, ()
    if folder and not earlier:
        earlier = _newest(folder.parent, wanted[0])
    table = build_table(documents, settings, embedder, contexts, cache, progress, earlier)
    if not folder:
        return table, ()
    try:
        shutil.rmtree(folder, ignore_errors=True)  # indexes over other chunks
        table.save(folder / "chunks")
    except OSError as error:
        return table, (not_kept(error),)
    return ChunkTable.load(folder / "chunks") or table, ()


def indexed_table(
    corpora: Path, settings: IndexSettings, embedder: Embedder, previous: Corpus | None = None
) -> ChunkTable | None:
    """The table whose documents `from_documents` would neither cut nor embed again; None without any."""
    wanted = made_with(settings, embedder)
    if previous and previous._table.made_with == wanted:
        return previous._table
    return _newest(corpora, wanted)


def _starts_with(table: ChunkTable, earlier: ChunkTable) -> bool:
    n = len(earlier.digests)
    mine = (table.digests[:n], table.context_digests[:n])
    return mine == (earlier.digests, earlier.context_digests)


def _same_terms(one: IndexSettings, other: IndexSettings) -> bool:
    """Whether the same chunks with the same contexts have the same terms."""
    return (one.analyzer, one.context.in_bm25) == (other.analyzer, other.context.in_bm25)


def _newest(corpora: Path, wanted: str) -> ChunkTable | None:
    """The chunks opened last of those that were made in the wanted way."""
    tables = (ChunkTable.load(one / "chunks") for one in by_age(corpora))
    return next((table for table in tables if table and table.made_with == wanted), None)


def by_age(folder: Path) -> list[Path]:
    """The corpora in a folder, the one opened last first."""
    try:
        return sorted(folder.iterdir(), key=lambda one: one.stat().st_mtime, reverse=True)
    except OSError:
        return []


def _item_text(document: Document) -> str:
    stem = document.name.rpartition(".")[0] or document.name
    return "\n".join((stem, document.title, document.text))
