"""What is in a collection, read once for each of its versions."""

from __future__ import annotations

import streamlit as st

from core.collection import Collection, DocumentsOfVersion


def documents_of(collection: Collection) -> DocumentsOfVersion:
    """The documents as they are now. Raises CollectionError as `Collection.documents` does."""
    return _documents(collection, str(collection.folder), collection.version)


@st.cache_resource(max_entries=4, show_spinner=False)
def _documents(_collection: Collection, folder: str, version: int) -> DocumentsOfVersion:
    return _collection.documents()
