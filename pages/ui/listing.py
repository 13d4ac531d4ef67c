"""What is in a collection, and what is judged in it, read once for each of its versions: all of it, or what
of it the viewer may see."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import streamlit as st

from core.access import Viewer
from core.collection import Collection, DocumentsOfVersion
from core.evaluation import GoldenQuery, Judgements, JudgementStore, open_judgements
from pages.ui import people


def documents_of(collection: Collection) -> DocumentsOfVersion:
    """The documents as they are now, those that are shown here.

    Raises CollectionError as `Collection.documents` does, NotSignedIn.
    """
    return _seen(collection, str(collection.folder), collection.version, people.viewer())


def judgements_of(collection: Collection) -> tuple[Judgements, str]:
    """The judgements, located in the documents as they are now, and their fingerprint: all, or, for a viewer,
    those in what may be seen.

    Raises CollectionError or EvaluationError where documents or judgements cannot be read, NotSignedIn.
    """
    store, seen = open_judgements(collection), documents_of(collection)
    folder = str(collection.folder)
    whole = _documents(collection, folder, seen.version)
    found, fingerprint = _located(store, whole, folder, seen.version, store.version)
    if people.viewer() is None:
        return found, fingerprint
    names = hashlib.sha256("\0".join((fingerprint, *seen.ids)).encode()).hexdigest()
    return judged_in(found, frozenset(seen.ids)), names


def past_queries(collection: Collection, most: int) -> list[str]:
    """Queries asked before, the latest first: everybody's, or those of the viewer."""
    viewer = people.viewer()
    if viewer is not None and not viewer.user:
        return []  # a group asks nothing
    asked = collection.queries(most, None if viewer is None else viewer.user)
    return list(dict.fromkeys(one.text for one in asked))


def judged_in(judgements: Judgements, ids: frozenset[str]) -> Judgements:
    """The judgements without those of other documents than these, and without queries that have no other.

    What is not located goes too: it says what stands in a document that is not here, or is hidden.
    """
    kept = []
    for query in judgements.queries:
        evidence = tuple(
            replace(one, copies=tuple(copy for copy in one.copies if copy[0] in ids))
            for one in query.evidence
            if one.document_id in ids
        )
        rejected = tuple(one for one in query.rejected if one.document_id in ids)
        if evidence or rejected or _judged_nowhere(query):
            kept.append(replace(query, evidence=evidence, rejected=rejected, unlocated=()))
    return Judgements(tuple(kept))


def _judged_nowhere(query: GoldenQuery) -> bool:
    return not (query.evidence or query.rejected or query.unlocated)


@st.cache_resource(max_entries=4, show_spinner=False)
def _documents(_collection: Collection, folder: str, version: int) -> DocumentsOfVersion:
    return _collection.documents()


@st.cache_resource(max_entries=16, show_spinner=False, hash_funcs={Viewer: repr})
def _seen(
    _collection: Collection, folder: str, version: int, viewer: Viewer | None
) -> DocumentsOfVersion:
    documents = _documents(_collection, folder, version)
    return documents if viewer is None else documents.seen_by(viewer)


# Without a sign of being busy: it would push the columns of a search down at each thumb.
@st.cache_resource(max_entries=8, show_spinner=False)
def _located(
    _store: JudgementStore, _documents: DocumentsOfVersion, folder: str, documents: int, judged: int
) -> tuple[Judgements, str]:
    return _store.queries(_documents), _store.fingerprint()
