"""All chunks of a corpus as columns: 50,000 chunks are a few arrays, not 50,000 objects."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.chunking import chunk_document
from core.documents import Documents
from core.protocols import Embedder, Progress, Vectors
from core.sealed import is_sealed, read_array, write_sealed
from core.settings import ChunkSettings
from core.types import Chunk
from core.vectors_cache import VectorCache, embed_all, model_key

_LAYOUT = 3  # raise it when equal settings begin to cut otherwise than before
_COUNT = 1_000  # texts tokenised at a time


@dataclass(frozen=True)
class ChunkTable:
    """Chunks in item order; chunks of item i are rows `first_chunk[i]:first_chunk[i+1]`.

    `made_with` names settings and model (`made_with`), `digests` the content hash of each item;
    `first_chunk` (n_items + 1,), `starts`, `ends`, `tokens` (n,) int64; `keys` (n, 2) uint64, the hash
    of the text with case and blanks evened out; `matrix` (n, d) float32. All read-only.
    """

    made_with: str
    digests: tuple[str, ...]
    first_chunk: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    tokens: NDArray[np.int64]
    keys: NDArray[np.uint64]
    matrix: Vectors

    def __post_init__(self) -> None:
        for name in _COLUMNS:
            getattr(self, name).flags.writeable = False

    def duplicate_of(self) -> NDArray[np.int64]:
        """For each chunk the first chunk with the same evened-out text (itself when it is the first)."""
        if not len(self.keys):
            return np.empty(0, dtype=np.int64)
        whole = np.ascontiguousarray(self.keys).view("V16").ravel()
        _, first, place = np.unique(whole, return_index=True, return_inverse=True)
        return first[place.ravel()].astype(np.int64)

    def save(self, folder: Path) -> None:
        """Write the columns as npy files. Raises OSError when the disk refuses."""

        def write(into: Path) -> None:
            for name in _COLUMNS:
                np.save(into / f"{name}.npy", getattr(self, name), allow_pickle=False)
            facts = {"made_with": self.made_with, "digests": self.digests}
            (into / "items.json").write_text(json.dumps(facts), encoding="utf-8")

        write_sealed(folder, write)

    @classmethod
    def load(cls, folder: Path) -> ChunkTable | None:
        """The columns from disk, vectors memory-mapped; None when missing or damaged."""
        if not is_sealed(folder):
            return None
        try:
            facts = json.loads((folder / "items.json").read_text(encoding="utf-8"))
            columns = {name: read_array(folder / f"{name}.npy") for name in _COLUMNS[:-1]}
            # An empty array cannot be mapped.
            matrix = read_array(folder / "matrix.npy", mapped=len(columns["starts"]) > 0)
        except (OSError, ValueError):
            return None
        return cls(facts["made_with"], tuple(facts["digests"]), **columns, matrix=matrix)


# The vectors come last: they alone are mapped instead of read.
_COLUMNS = tuple(
    field.name for field in fields(ChunkTable) if field.name not in ("made_with", "digests")
)


def made_with(settings: ChunkSettings, embedder: Embedder) -> str:
    """Equal where equal documents have equal chunks and vectors."""
    return f"{_LAYOUT}/{settings.fingerprint()}/{model_key(embedder)}/{embedder.dimension}"


def build_table(
    documents: Documents,
    settings: ChunkSettings,
    embedder: Embedder,
    cache: VectorCache | None = None,
    progress: Progress | None = None,
    previous: ChunkTable | None = None,
) -> ChunkTable:
    """Cut, count and embed. Items that `previous` (same settings, same model) holds are taken from it.

    `progress` hears of documents while they are cut and counted, then of texts while they are embedded.
    Raises EmbeddingError as `embed_all` does, and what `progress` raises; finished vectors stay cached.
    """

    def told(item: int) -> None:
        if progress:
            progress(item, len(documents))

    def embed(sentences: Sequence[str]) -> Vectors:
        # The person hears of documents, and can stop between two batches of one document's sentences.
        return embed_all(sentences, embedder, cache, lambda *_: told(len(counts)))

    known = {digest: item for item, digest in enumerate(previous.digests)} if previous else {}
    counts: list[int] = []
    origin: list[NDArray[np.int64]] = []  # for each chunk its row in `previous`, -1 when it is new
    spans: list[tuple[int, int]] = []
    keys: list[bytes] = []
    texts: list[str] = []
    tokens: list[int] = []
    for item, digest in enumerate(documents.digests):
        if item % 50 == 0:
            told(item)
        if previous and digest in known:
            first, last = previous.first_chunk[known[digest] : known[digest] + 2].tolist()
            origin.append(np.arange(first, last))
            counts.append(last - first)
            continue
        chunks = chunk_document(documents[item], settings, embedder.count_tokens, embed)
        origin.append(np.full(len(chunks), -1))
        counts.append(len(chunks))
        spans += [(chunk.start, chunk.end) for chunk in chunks]
        keys += [_key(chunk) for chunk in chunks]
        texts += [chunk.indexed_text for chunk in chunks]
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
    first_chunk = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)
    return ChunkTable(made_with(settings, embedder), documents.digests, first_chunk, **columns)


def _key(chunk: Chunk) -> bytes:
    even = " ".join(chunk.text.casefold().split())
    return hashlib.blake2b(even.encode("utf-8", "surrogatepass"), digest_size=16).digest()
