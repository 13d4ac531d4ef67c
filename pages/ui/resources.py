"""What all browsers on this process share: models, the vector cache, the corpora being searched."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import streamlit as st

from core.collection import Collection
from core.corpus import Corpus, build_corpus, is_built
from core.embedding import load_embedder
from core.protocols import Embedder, Progress
from core.report.loss import vector_loss
from core.settings import IndexSettings, SearchSettings
from core.vectors_cache import VectorCache, shared_cache


@st.cache_resource(show_spinner=False, max_entries=4)
def embedder(model_id: str) -> Embedder:
    """The embedding model, loaded once per process. Raises EmbeddingError when it cannot be loaded."""
    return load_embedder(model_id)


def vector_cache() -> VectorCache:
    """The vectors of all collections."""
    return shared_cache()


@dataclass(frozen=True)
class _Served:
    """A corpus that answers queries, and the collection's version it was made of."""

    corpus: Corpus
    version: int


class _Shelf:
    """The corpora being searched, by collection; one build at a time for each."""

    def __init__(self) -> None:
        self.served: dict[str, _Served] = {}
        self._building: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def building(self, collection: Collection) -> threading.Lock:
        with self._lock:
            return self._building.setdefault(str(collection.folder), threading.Lock())

    def get(self, collection: Collection) -> _Served | None:
        return self.served.get(str(collection.folder))


@st.cache_resource(show_spinner=False)
def _shelf() -> _Shelf:
    return _Shelf()


@st.cache_data(show_spinner=False, max_entries=64)
def _loss(fingerprint: str, link: str, _corpus: Corpus) -> float | None:
    return vector_loss(_corpus, SearchSettings.from_link(link))


def loss(corpus: Corpus, settings: SearchSettings) -> float | None:
    """`vector_loss`, measured once for the same corpus and vector settings."""
    own = SearchSettings(
        vector=settings.vector,
        hnsw_m=settings.hnsw_m,
        hnsw_ef_construction=settings.hnsw_ef_construction,
        hnsw_ef=settings.hnsw_ef,
    ).with_index("vector", depth=settings.index("vector").depth)
    return _loss(corpus.fingerprint, own.to_link(), corpus)


@st.cache_resource(show_spinner=False)
def warm(model_id: str) -> None:
    """Let the model load while the person still types: its first use takes seconds."""
    threading.Thread(target=embedder(model_id).embed_query, args=("warm",), daemon=True).start()


def corpus(collection: Collection) -> Corpus | None:
    """The newest corpus of the collection, read from disk when it was built before.

    It may lack documents added since (see `stale`) or be cut by earlier index settings (see
    `Corpus.settings`); None when nothing has been indexed yet.
    """
    settings = collection.settings().index
    served = _shelf().get(collection)
    if served and served.version == collection.version and served.corpus.settings == settings:
        return served.corpus
    if is_built(collection, settings) or (
        served and _only_removals(collection, served.corpus, settings)
    ):
        return build(collection, settings)
    return served.corpus if served else None


def _only_removals(collection: Collection, served: Corpus, settings: IndexSettings) -> bool:
    """Whether documents left and none came: then nothing needs embedding, and nobody should find them."""
    return served.settings == settings and set(collection.documents().ids) <= set(served.item_ids)


def stale(collection: Collection) -> int:
    """How many files were added to or removed from the collection since the corpus was built."""
    held_now = _shelf().get(collection)
    if held_now and held_now.version == collection.version:
        return 0
    served = corpus(collection)
    held = set(served.item_ids) if served is not None else set()
    documents = collection.documents()
    now = set(documents.ids)
    added = {
        file for one, file in zip(documents.ids, documents.file_hashes, strict=True) if one not in held
    }
    # A document's id opens with its file's; the file itself is gone from the collection.
    removed = {one.partition("-")[0] for one in held - now}
    return len(added) + len(removed)


def build(
    collection: Collection, index_settings: IndexSettings, progress: Progress | None = None
) -> Corpus:
    """Index the collection and serve the result; until then the corpus before serves on.

    Raises Stopped when `progress` does, EmbeddingError when the model cannot be used.
    """
    with _shelf().building(collection):
        before = _shelf().get(collection)
        version = collection.version
        made = build_corpus(collection, index_settings, progress, before.corpus if before else None)
        _shelf().served[str(collection.folder)] = _Served(made, version)
    return made
