"""Cutting without indexing: one document for the eye, the whole collection for the decision."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from core.chunking import SizeTable, chunk_document, size_summary
from core.documents import Documents
from core.protocols import Embedder, Progress, Vectors
from core.report.spans import ChunkMap, seen_end
from core.settings import ChunkSettings
from core.types import Chunk, Document, text_hash
from core.vectors_cache import VectorCache, embed_all, model_key

_KEPT = 24  # cuts of a document kept, so that going back with a slider costs nothing
_COUNTED = 500  # texts tokenised between two looks at the progress
_TIMED = 12  # texts embedded to measure the model's speed


@dataclass(frozen=True)
class Cut:
    """One document under one setting: `tokens` and `seen` (where the model stops) for each chunk."""

    chunks: tuple[Chunk, ...]
    tokens: tuple[int, ...]
    seen: tuple[int, ...]
    map: ChunkMap

    @property
    def repeated(self) -> bool:
        """Whether any chunk repeats text of the one before it."""
        return any(after.start < before.end for before, after in pairwise(self.chunks))

    @property
    def truncated(self) -> int:
        """How many chunks the model does not read to their end."""
        return sum(seen < chunk.end for chunk, seen in zip(self.chunks, self.seen, strict=True))


@dataclass(frozen=True)
class Survey:
    """What indexing a collection would make: sizes, and how many texts have no vector yet.

    `rate` is the model's measured speed in texts a second, None when nothing is left to embed.
    """

    sizes: SizeTable
    characters: NDArray[np.int64]
    tokens: NDArray[np.int64]
    texts: int
    missing: int
    rate: float | None

    @property
    def seconds(self) -> float:
        """Time for the embedding, as far as it can be told."""
        return self.missing / self.rate if self.rate else 0.0


def too_many(length: int, settings: ChunkSettings) -> int:
    """How many chunks a text would give at least, where that is too many to draw; else 0."""
    if settings.strategy != "fixed" or settings.unit != "characters":
        return 0
    count = length // (settings.size - settings.overlap)
    return count if count > 50_000 else 0


class _Cuts:
    """The latest cuts, shared by all sessions: a cut is the same for everybody."""

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[str, ...], Cut] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[str, ...]) -> Cut | None:
        with self._lock:
            if key in self._made:
                self._made.move_to_end(key)
            return self._made.get(key)

    def put(self, key: tuple[str, ...], cut: Cut) -> None:
        with self._lock:
            self._made[key] = cut
            while len(self._made) > _KEPT:
                self._made.popitem(last=False)


@st.cache_resource(show_spinner=False)
def _cuts() -> _Cuts:
    return _Cuts()


def known_cut(digest: str, settings: ChunkSettings, embedder: Embedder) -> Cut | None:
    """A cut made before, of the document with this content."""
    return _cuts().get((digest, settings.fingerprint(), model_key(embedder)))


def cut(
    document: Document,
    digest: str,
    settings: ChunkSettings,
    embedder: Embedder,
    cache: VectorCache | None = None,
    progress: Progress | None = None,
) -> Cut:
    """Cut a document, count tokens and find where the model stops reading; kept under its digest.

    `progress` hears of sentences while they are embedded (semantic), then of chunks while they are
    counted. Raises SettingsError and EmbeddingError as chunking and embedding do.
    """

    def embed(texts: Sequence[str]) -> Vectors:
        return embed_all(texts, embedder, cache, progress)

    chunks = chunk_document(document, settings, embedder.count_tokens, embed)
    tokens = _count(chunks, embedder, progress)
    seen = [seen_end(chunk, embedder, count) for chunk, count in zip(chunks, tokens, strict=True)]
    made = Cut(
        tuple(chunks), tuple(tokens), tuple(seen), ChunkMap([(c.start, c.end) for c in chunks], seen)
    )
    _cuts().put((digest, settings.fingerprint(), model_key(embedder)), made)
    return made


def _count(chunks: Sequence[Chunk], embedder: Embedder, progress: Progress | None) -> list[int]:
    tokens: list[int] = []
    for at in range(0, len(chunks), _COUNTED):
        tokens += embedder.count_tokens([chunk.indexed_text for chunk in chunks[at : at + _COUNTED]])
        if progress:
            progress(len(tokens), len(chunks))
    return tokens


def survey(
    documents: Documents,
    settings: ChunkSettings,
    embedder: Embedder,
    cache: VectorCache,
    progress: Progress | None = None,
) -> Survey:
    """Cut and count a whole collection and see which vectors are missing; embeds a few to time it.

    The texts embedded for timing are kept in the cache, so that the work is not done twice.
    """

    def embed(texts: Sequence[str]) -> Vectors:
        return embed_all(texts, embedder, cache)

    chunks: list[Chunk] = []
    tokens: list[int] = []
    for item in range(len(documents)):
        if progress:
            progress(item, len(documents))
        found = chunk_document(documents[item], settings, embedder.count_tokens, embed)
        tokens += embedder.count_tokens([chunk.indexed_text for chunk in found])
        chunks += found
    texts = {text_hash(chunk.indexed_text): chunk.indexed_text for chunk in chunks}
    known = cache.get_many(model_key(embedder), list(texts))
    missing = [text for key, text in texts.items() if key not in known]
    rate, timed = _speed(missing, embedder, cache)
    return Survey(
        size_summary(chunks, tokens, embedder.max_tokens),
        np.array([len(chunk.text) for chunk in chunks], dtype=np.int64),
        np.array(tokens, dtype=np.int64),
        len(texts),
        len(missing) - timed,
        rate,
    )


def _speed(missing: Sequence[str], embedder: Embedder, cache: VectorCache) -> tuple[float | None, int]:
    """Texts a second, and how many were embedded to know it; the first one loads the model."""
    if not missing:
        return None, 0
    embed_all(missing[:1], embedder, cache)
    # Evenly spread: neighbouring texts are often alike in length.
    sample = missing[1 :: max(1, len(missing) // _TIMED)][:_TIMED]
    if not sample:
        return None, 1
    began = time.perf_counter()
    embed_all(sample, embedder, cache)
    return len(sample) / max(time.perf_counter() - began, 1e-6), 1 + len(sample)
