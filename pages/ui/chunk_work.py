"""Cutting without indexing: one document for the eye, the whole collection for the decision."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from core.chunk_table import as_embedded, with_contexts
from core.chunking import SizeTable, chunk_document, size_summary
from core.documents import Documents
from core.protocols import Contexts, Embedder, Progress, Vectors
from core.report.spans import ChunkMap, seen_end
from core.settings import ChunkSettings, IndexSettings
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

    `rate` is the model's measured speed in texts a second, None when nothing is left to embed or each
    text costs. `priced`: each costs, `dollars` in all where a price is known.
    """

    sizes: SizeTable
    characters: NDArray[np.int64]
    tokens: NDArray[np.int64]
    texts: int
    missing: int
    rate: float | None
    priced: bool = False
    dollars: float | None = None

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


@dataclass(frozen=True)
class Cutting:
    """How a collection's documents are cut and what goes with their chunks, for one draft."""

    documents: Documents
    settings: IndexSettings
    contexts: Contexts
    embedder: Embedder

    def key(self, item: int) -> tuple[str, ...]:
        """Equal where the cut of a document is the same."""
        context = self.settings.context
        facts = (context.place, str(context.in_vectors), self.contexts.digests[item])
        chunking = self.settings.chunking.fingerprint()
        return (self.documents.digests[item], chunking, model_key(self.embedder), *facts)

    def chunks(
        self, item: int, document: Document, cache: VectorCache | None, told: Progress | None
    ) -> list[Chunk]:
        """The chunks of a document as they would be embedded."""

        def embed(texts: Sequence[str]) -> Vectors:
            return embed_all(texts, self.embedder, cache, told)

        made = chunk_document(document, self.settings.chunking, self.embedder.count_tokens, embed)
        contexts = self.contexts.of(item, document, [(chunk.start, chunk.end) for chunk in made])
        return with_contexts(made, contexts, self.settings)


def known_cut(cutting: Cutting, item: int) -> Cut | None:
    """A cut made before, of the document at this place."""
    return _cuts().get(cutting.key(item))


def cut(
    cutting: Cutting,
    item: int,
    document: Document,
    cache: VectorCache | None = None,
    progress: Progress | None = None,
) -> Cut:
    """Cut a document, count tokens and find where the model stops reading; kept.

    `progress` hears of sentences while they are embedded (semantic), then of chunks while they are
    counted. Raises SettingsError, EmbeddingError and ContextError as its parts do.
    """
    embedder = cutting.embedder
    chunks = cutting.chunks(item, document, cache, progress)
    if not cutting.settings.context.in_vectors:
        chunks = [replace(chunk, context="") for chunk in chunks]  # what the model reads
    tokens = _count([chunk.indexed_text for chunk in chunks], embedder, progress)
    seen = [seen_end(chunk, embedder, count) for chunk, count in zip(chunks, tokens, strict=True)]
    made = Cut(
        tuple(chunks), tuple(tokens), tuple(seen), ChunkMap([(c.start, c.end) for c in chunks], seen)
    )
    _cuts().put(cutting.key(item), made)
    return made


def _count(texts: Sequence[str], embedder: Embedder, progress: Progress | None) -> list[int]:
    tokens: list[int] = []
    for at in range(0, len(texts), _COUNTED):
        tokens += embedder.count_tokens(texts[at : at + _COUNTED])
        if progress:
            progress(len(tokens), len(texts))
    return tokens


def survey(cutting: Cutting, cache: VectorCache, progress: Progress | None = None) -> Survey:
    """Cut and count a whole collection and see which vectors are missing.

    Where embedding is free a few texts are embedded to time it; they are kept, so that the work is not
    done twice.
    """
    embedder = cutting.embedder
    chunks: list[Chunk] = []
    tokens: list[int] = []
    texts: dict[str, str] = {}
    size_of: dict[str, int] = {}
    for item in range(len(cutting.documents)):
        if progress:
            progress(item, len(cutting.documents))
        found = cutting.chunks(item, cutting.documents[item], cache, None)
        embedded = [as_embedded(chunk, cutting.settings) for chunk in found]
        counts = embedder.count_tokens(embedded)
        for text, count in zip(embedded, counts, strict=True):
            texts[text_hash(text)], size_of[text_hash(text)] = text, count
        tokens += counts
        chunks += found
    known = cache.get_many(model_key(embedder), list(texts))
    missing = [key for key in texts if key not in known]
    estimate = getattr(embedder, "estimate_dollars", None)
    rate, timed = (None, 0) if estimate else _speed([texts[key] for key in missing], embedder, cache)
    return Survey(
        size_summary(chunks, tokens, embedder.max_tokens),
        np.array([len(chunk.text) for chunk in chunks], dtype=np.int64),
        np.array(tokens, dtype=np.int64),
        len(texts),
        len(missing) - timed,
        rate,
        estimate is not None,
        estimate(sum(size_of[key] for key in missing)) if estimate else None,
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
