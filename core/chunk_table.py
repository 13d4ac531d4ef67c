"""All chunks of a corpus as columns: 50,000 chunks are a few arrays, not 50,000 objects."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.chunking import chunk_document
from core.documents import Documents
from core.protocols import Contexts, Embedder, Progress, Vectors
from core.sealed import is_sealed, read_array, write_sealed
from core.settings import IndexSettings
from core.types import Chunk, Document, encodable
from core.vectors_cache import VectorCache, embed_all, model_key

_LAYOUT = 4  # raise it when equal settings begin to cut otherwise than before
_COUNT = 1_000  # texts tokenised at a time


@dataclass(frozen=True)
class ChunkTable:
    """Chunks in item order; chunks of item i are rows `first_chunk[i]:first_chunk[i+1]`.

    `made_with` names settings and model (`made_with`), `digests` the content hash of each item and
    `context_digests` that of its contexts, blank without any; `first_chunk` (n_items + 1,), `starts`,
    `ends`, `tokens` (n,) int64; `keys` (n, 2) uint64, the hash of the text with case and blanks evened
    out; the context of chunk i is `context_bytes[context_starts[i]:context_starts[i + 1]]`, UTF-8, with
    `context_starts` (n + 1,) int64 and `context_bytes` uint8; `matrix` (n, d) float32. All read-only.
    """

    made_with: str
    digests: tuple[str, ...]
    context_digests: tuple[str, ...]
    first_chunk: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    tokens: NDArray[np.int64]
    keys: NDArray[np.uint64]
    context_starts: NDArray[np.int64]
    context_bytes: NDArray[np.uint8]
    matrix: Vectors

    def __post_init__(self) -> None:
        for name in _COLUMNS:
            getattr(self, name).flags.writeable = False

    def context(self, position: int) -> str:
        """The context of a chunk; blank when it has none."""
        return _context_bytes(self, position).decode()

    def duplicate_of(self) -> NDArray[np.int64]:
        """For each chunk the first chunk with the same evened-out text (itself when it is the first)."""
        if not len(self.keys):
            return np.empty(0, dtype=np.int64)
        whole = np.ascontiguousarray(self.keys).view("V16").ravel()
        _, first, place = np.unique(whole, return_index=True, return_inverse=True)
        return first[place.ravel()].astype(np.int64)

    def chosen(self, items: NDArray[np.bool_]) -> ChunkTable:
        """The chunks of those items where the mask (n_items,) holds, in the same order; arrays are copied."""
        counts = np.diff(self.first_chunk)
        rows = np.repeat(items, counts)
        written = np.diff(self.context_starts)
        at = np.flatnonzero(items).tolist()
        return replace(
            self,
            digests=tuple(self.digests[item] for item in at),
            context_digests=tuple(self.context_digests[item] for item in at),
            first_chunk=_running(counts[items]),
            context_starts=_running(written[rows]),
            context_bytes=self.context_bytes[np.repeat(rows, written)],
            **{
                name: getattr(self, name)[rows]
                for name in ("starts", "ends", "tokens", "keys", "matrix")
            },
        )

    def save(self, folder: Path) -> None:
        """Write the columns as npy files. Raises OSError when the disk refuses."""

        def write(into: Path) -> None:
            for name in _COLUMNS:
                np.save(into / f"{name}.npy", getattr(self, name), allow_pickle=False)
            facts = {name: getattr(self, name) for name in _FACTS}
            (into / "items.json").write_text(json.dumps(facts), encoding="utf-8")

        write_sealed(folder, write)

    @classmethod
    def load(cls, folder: Path) -> ChunkTable | None:
        """The columns from disk, vectors memory-mapped; None when missing or damaged."""
        if not is_sealed(folder):
            return None
        try:
            facts = json.loads((folder / "items.json").read_text(encoding="utf-8"))
            columns = {name: read_array(folder / f"{name}.npy", name in _MAPPED) for name in _COLUMNS}
        except (OSError, ValueError):
            return None
        digests, context_digests = tuple(facts["digests"]), tuple(facts["context_digests"])
        return cls(facts["made_with"], digests, context_digests, **columns)


_FACTS = ("made_with", "digests", "context_digests")
_COLUMNS = tuple(field.name for field in fields(ChunkTable) if field.name not in _FACTS)
_MAPPED = ("matrix", "context_bytes")  # the large ones


def made_with(settings: IndexSettings, embedder: Embedder) -> str:
    """Equal where equal documents with equal contexts have equal chunks and vectors."""
    context = settings.context
    joined = f"{context.place}/{context.in_vectors}" if context.writer != "none" else "none"
    chunking = settings.chunking.fingerprint()
    return f"{_LAYOUT}/{chunking}/{joined}/{model_key(embedder)}/{embedder.dimension}"


def as_embedded(chunk: Chunk, settings: IndexSettings) -> str:
    """The text of a chunk that its vector is made of."""
    return (chunk if settings.context.in_vectors else replace(chunk, context="")).indexed_text


class KeptContexts:
    """The contexts that documents have in a table, for documents that are all in it."""

    def __init__(self, documents: Documents, table: ChunkTable) -> None:
        self._table = table
        row_of = {digest: row for row, digest in enumerate(table.digests)}
        self._items = [row_of[digest] for digest in documents.digests]
        self.digests = tuple(table.context_digests[row] for row in self._items)

    def of(self, item: int, document: Document, spans: Sequence[tuple[int, int]]) -> list[str]:
        first, last = self._table.first_chunk[self._items[item] :][:2].tolist()
        return [self._table.context(position) for position in range(first, last)]


def build_table(
    documents: Documents,
    settings: IndexSettings,
    embedder: Embedder,
    contexts: Contexts,
    cache: VectorCache | None = None,
    progress: Progress | None = None,
    previous: ChunkTable | None = None,
) -> ChunkTable:
    """Cut, count and embed. Items that `previous` (same settings, same model) holds with the same
    contexts are taken from it.

    `progress` hears of documents while they are cut and counted, then of texts while they are embedded.
    Raises EmbeddingError as `embed_all` does, and what `progress` raises; finished vectors stay cached.
    """

    def told(item: int) -> None:
        if progress:
            progress(item, len(documents))

    def embed(sentences: Sequence[str]) -> Vectors:
        # The person hears of documents, and can stop between two batches of one document's sentences.
        return embed_all(sentences, embedder, cache, lambda *_: told(len(counts)))

    known: dict[tuple[str, str], int] = {}
    if previous:
        whole = zip(previous.digests, previous.context_digests, strict=True)
        known = {digests: item for item, digests in enumerate(whole)}
    counts: list[int] = []
    origin: list[NDArray[np.int64]] = []  # for each chunk its row in `previous`, -1 when it is new
    spans: list[tuple[int, int]] = []
    keys: list[bytes] = []
    written: list[bytes] = []  # contexts
    texts: list[str] = []
    tokens: list[int] = []
    for item, digests in enumerate(zip(documents.digests, contexts.digests, strict=True)):
        if item % 50 == 0:
            told(item)
        if previous and digests in known:
            first, last = previous.first_chunk[known[digests] : known[digests] + 2].tolist()
            origin.append(np.arange(first, last))
            counts.append(last - first)
            written += [_context_bytes(previous, position) for position in range(first, last)]
            continue
        document = documents[item]
        chunks = chunk_document(document, settings.chunking, embedder.count_tokens, embed)
        origin.append(np.full(len(chunks), -1))
        counts.append(len(chunks))
        cut = [(chunk.start, chunk.end) for chunk in chunks]
        spans += cut
        keys += [_key(chunk) for chunk in chunks]
        chunks = with_contexts(chunks, contexts.of(item, document, cut), settings)
        written += [chunk.context.encode() for chunk in chunks]
        texts += [as_embedded(chunk, settings) for chunk in chunks]
        if len(texts) - len(tokens) >= _COUNT:
            tokens += embedder.count_tokens(texts[len(tokens) :])
    tokens += embedder.count_tokens(texts[len(tokens) :])

    rows = np.concatenate(origin).astype(np.int64) if origin else np.empty(0, dtype=np.int64)
    new = rows < 0
    made: dict[str, NDArray[Any]] = {
        "starts": np.array([start for start, _ in spans], dtype=np.int64),
        "ends": np.array([end for _, end in spans], dtype=np.int64),
        "tokens": np.array(tokens, dtype=np.int64),
        "keys": np.frombuffer(b"".join(keys), dtype=np.uint64).reshape(-1, 2),
        "matrix": embed_all(texts, embedder, cache, progress),
    }
    columns: dict[str, NDArray[Any]] = {}
    for name, fresh in made.items():
        columns[name] = np.empty((len(rows), *fresh.shape[1:]), dtype=fresh.dtype)
        columns[name][new] = fresh
        if previous:
            columns[name][~new] = getattr(previous, name)[rows[~new]]
    return ChunkTable(
        made_with(settings, embedder),
        documents.digests,
        contexts.digests,
        first_chunk=_running(counts),
        context_starts=_running([len(one) for one in written]),
        context_bytes=np.frombuffer(b"".join(written), dtype=np.uint8).copy(),
        **columns,
    )


def with_contexts(
    chunks: Sequence[Chunk], contexts: Sequence[str], settings: IndexSettings
) -> list[Chunk]:
    """The chunks with their contexts, at the place that the settings say."""
    last = settings.context.place == "after"
    return [
        replace(chunk, context=encodable(context), context_last=last)
        for chunk, context in zip(chunks, contexts, strict=True)
    ]


def _running(counts: ArrayLike) -> NDArray[np.int64]:
    """Where each begins, and where the last ends."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)


def _context_bytes(table: ChunkTable, position: int) -> bytes:
    start, end = table.context_starts[position : position + 2].tolist()
    return table.context_bytes[start:end].tobytes()


def _key(chunk: Chunk) -> bytes:
    even = " ".join(chunk.text.casefold().split())
    return hashlib.blake2b(even.encode("utf-8", "surrogatepass"), digest_size=16).digest()
