"""From a collection on disk to its corpus."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from core.chunk_table import KeptContexts
from core.collection import Collection
from core.contextualizing import contexts_for
from core.corpus.first_stage import first_stage_of
from core.corpus.view import Corpus, by_age, fingerprint, indexed_table
from core.documents import ChosenDocuments, Documents
from core.embedding import load_embedder
from core.errors import CollectionError, EmbeddingError
from core.protocols import Contexts, Embedder, Progress
from core.sealed import is_sealed
from core.settings import IndexSettings
from core.vectors_cache import shared_cache

_KEPT = 3  # corpora kept on disk for a collection


def build_corpus(
    collection: Collection,
    settings: IndexSettings,
    progress: Progress | None = None,
    previous: Corpus | None = None,
    embedder: Embedder | None = None,
) -> Corpus:
    """The corpus of a collection as it is now, read from its folder where it was built before.

    What documents `previous`, or else the corpus built last under these settings, had in common with
    this one is not made again. `embedder` stands in for the model that the settings name. Rules, events and
    kinds of fields are those of now (`Corpus.first_stage`).
    Raises EmbeddingError when the model cannot be loaded or is another one than the settings name,
    CollectionError when the collection cannot be read, and what `progress` raises.
    """
    model = _model(settings, embedder)
    while True:
        documents = collection.documents()
        try:
            contexts = contexts_for(settings.context, documents, collection)
            folder = _folder(collection, documents, settings, contexts)
            corpus = Corpus.from_documents(
                documents, settings, model, shared_cache(), folder, progress, previous, contexts
            )
        except CollectionError:
            if collection.version == documents.version:
                raise
            continue  # a document was removed while it was to be cut: start from the new version
        _prune(folder)
        return corpus.with_first_stage(first_stage_of(collection))


def indexed_part(
    collection: Collection,
    settings: IndexSettings,
    previous: Corpus | None = None,
    embedder: Embedder | None = None,
) -> Corpus | None:
    """The corpus of those documents of a collection that need neither be cut nor embedded.

    They are those that `previous`, or else the corpus opened last under these settings, holds as they
    are, with the contexts they had: what was added since is left out, what was removed or replaced is
    gone; who may see what is as it is now. None when nothing was indexed under these settings. Raises as
    `build_corpus` does.
    """
    corpora = collection.folder / "corpus"
    if not previous and not by_age(corpora):
        return None  # no reason to load the model
    model = _model(settings, embedder)
    table = indexed_table(corpora, settings, model, previous)
    if table is None:
        return None
    known = set(table.digests)
    documents = collection.documents()
    part = ChosenDocuments(
        documents, [at for at, digest in enumerate(documents.digests) if digest in known]
    )
    if previous and previous.shows(part, settings):
        return previous.with_first_stage(first_stage_of(collection))
    contexts = KeptContexts(part, table)
    folder = _folder(collection, part, settings, contexts)
    corpus = Corpus.from_documents(
        part, settings, model, shared_cache(), folder, None, previous, contexts
    )
    _prune(folder)
    return corpus.with_first_stage(first_stage_of(collection))


def is_built(collection: Collection, settings: IndexSettings) -> bool:
    """Whether `build_corpus` would find its chunks and vectors on disk."""
    documents = collection.documents()
    contexts = contexts_for(settings.context, documents, collection)
    return is_sealed(_folder(collection, documents, settings, contexts) / "chunks")


def _model(settings: IndexSettings, embedder: Embedder | None) -> Embedder:
    model = embedder or load_embedder(settings.model)
    if model.model_id != settings.model:
        raise EmbeddingError(
            f"the settings name the model {settings.model}, the vectors would come from "
            f"{model.model_id}; choose one of the two and index again"
        )
    return model


def _folder(
    collection: Collection, documents: Documents, settings: IndexSettings, contexts: Contexts
) -> Path:
    name = fingerprint(documents, settings, settings.model, contexts.digests)
    return collection.folder / "corpus" / name


def _prune(opened: Path) -> None:
    """Mark a corpus as opened just now and delete those not opened for longest."""
    with suppress(OSError):
        os.utime(opened)
    for old in by_age(opened.parent)[_KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
