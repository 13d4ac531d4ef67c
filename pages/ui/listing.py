"""What is in a collection, and what is judged in it, read once for each of its versions."""

from __future__ import annotations

import streamlit as st

from core.collection import Collection, DocumentsOfVersion
from core.evaluation import Judgements, JudgementStore, open_judgements


def documents_of(collection: Collection) -> DocumentsOfVersion:
    """The documents as they are now. Raises CollectionError as `Collection.documents` does."""
    return _documents(collection, str(collection.folder), collection.version)


@st.cache_resource(max_entries=4, show_spinner=False)
def _documents(_collection: Collection, folder: str, version: int) -> DocumentsOfVersion:
    return _collection.documents()


def judgements_of(collection: Collection) -> tuple[Judgements, str]:
    """The judgements, located in the documents as they are now, and their fingerprint.

    Raises CollectionError or EvaluationError where documents or judgements cannot be read.
    """
    store, documents = open_judgements(collection), documents_of(collection)
    return _located(store, documents, str(collection.folder), documents.version, store.version)


# Without a sign of being busy: it would push the columns of a search down at each thumb.
@st.cache_resource(max_entries=8, show_spinner=False)
def _located(
    _store: JudgementStore, _documents: DocumentsOfVersion, folder: str, documents: int, judged: int
) -> tuple[Judgements, str]:
    return _store.queries(_documents), _store.fingerprint()
