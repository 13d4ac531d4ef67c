"""What all browsers on this process share: models, the vector cache, the corpora being searched."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path

import streamlit as st

from core.collection import Collection, home
from core.corpus import Corpus, build_corpus, is_built
from core.embedding import load_embedder
from core.protocols import Embedder, Progress
from core.settings import IndexSettings
from core.vectors_cache import VectorCache


@st.cache_resource(show_spinner=False, max_entries=4)
def embedder(model_id: str) -> Embedder:
    """The embedding model, loaded once per process. Raises EmbeddingError when it cannot be loaded."""
    return load_embedder(model_id)


@st.cache_resource(show_spinner=False)
def vector_cache() -> VectorCache:
    """The vectors of all collections."""
    return VectorCache(home() / "vectors.sqlite")


@dataclass
class _Served:
    """The corpora that answer queries, by collection; one build at a time for each."""

    corpora: dict[str, Corpus] = field(default_factory=dict)
    building: dict[str, threading.Lock] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def build_lock(self, name: str) -> threading.Lock:
        with self.lock:
            return self.building.setdefault(name, threading.Lock())


@st.cache_resource(show_spinner=False)
def _served() -> _Served:
    return _Served()


def corpus(collection: Collection) -> Corpus | None:
    """The newest corpus built under the collection's index settings, read from disk when it is there.

    It may lack documents added since (see `stale`); None when nothing has been indexed yet.
    """
    settings = collection.settings().index
    served = _served().corpora.get(_key(collection))
    if served is not None and served.settings == settings and not _outdated(collection, served):
        return served
    if is_built(collection, settings):
        return build(collection, settings)
    return served


def stale(collection: Collection) -> int:
    """How many files of the collection the served corpus does not hold."""
    served = corpus(collection)
    held = set(served.item_ids) if served is not None else set()
    return sum(1 for document_id in collection.document_ids() if document_id not in held)


def build(collection: Collection, index_settings: IndexSettings, progress: Progress | None = None) -> Corpus:
    """Index the collection and serve the result; until then the corpus before serves on.

    Raises Stopped when `progress` does, EmbeddingError when the model cannot be used.
    """
    key = _key(collection)
    with _served().build_lock(key):
        made = build_corpus(collection, index_settings, progress, previous=_served().corpora.get(key))
        _served().corpora[key] = made
    return made


def _outdated(collection: Collection, served: Corpus) -> bool:
    return tuple(collection.document_ids()) != served.item_ids


def _key(collection: Collection) -> str:
    return f"{home()}\0{collection.name}"


def _last_file() -> Path:
    return home() / "last_collection.txt"


def last_collection() -> str:
    """The name of the collection used last on this machine; empty when none was."""
    try:
        return _last_file().read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def remember_collection(name: str) -> None:
    """Open this collection at the next start."""
    try:
        _last_file().write_text(name, encoding="utf-8")
    except OSError:
        return  # Only a convenience: the next start opens the sample.
