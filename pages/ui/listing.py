"""What is in a collection, and what is judged in it, read once for each of its versions: all of it, or what
of it the viewer may see."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from core.access import Viewer
from core.collection import Collection, DocumentsOfVersion, FileInfo
from core.evaluation import GoldenQuery, Judgements, JudgementStore, open_judgements
from pages.ui import people


def documents_of(collection: Collection) -> DocumentsOfVersion:
    """The documents as they are now, those that are shown here.

    Raises CollectionError as `Collection.documents` does, NotSignedIn.
    """
    version, viewer = collection.version, people.viewer()
    return _seen(collection, str(collection.folder), version, people.whom(), viewer)


def files_of(collection: Collection) -> list[FileInfo]:
    """The files, those with a document that is shown here; of one with others as well, only what is known of
    those that are."""
    files, viewer = collection.files(), people.viewer()
    if viewer is None:
        return files
    seen = documents_of(collection)
    lengths: dict[str, list[int]] = {}
    for file_hash, length in zip(seen.file_hashes, seen.lengths, strict=True):
        lengths.setdefault(file_hash, []).append(length)
    return [
        one if len(lengths[one.file_hash]) == one.documents else _part(one, lengths[one.file_hash])
        for one in files
        if one.file_hash in lengths
    ]


def _part(file: FileInfo, lengths: Sequence[int]) -> FileInfo:
    """A file as it looks to who may see some of its documents, of these lengths."""
    return replace(
        file, documents=len(lengths), characters=sum(lengths), pages=0, headings=0, size=0, warnings=()
    )


def all_documents(collection: Collection) -> DocumentsOfVersion:
    """The documents as they are now, whoever may see them: for who manages, and for figures of its own."""
    return _documents(collection, str(collection.folder), collection.version)


def judgements_of(collection: Collection) -> tuple[Judgements, str]:
    """The judgements, located in the documents as they are now, and their fingerprint: all, or, for a viewer,
    those in what may be seen.

    Raises CollectionError or EvaluationError where documents or judgements cannot be read, NotSignedIn.
    """
    store, seen = open_judgements(collection), documents_of(collection)
    whole = all_documents(collection)
    found, fingerprint = _located(store, whole, str(collection.folder), whole.version, store.version)
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


@st.cache_resource(max_entries=16, show_spinner=False)
def _seen(
    _collection: Collection, folder: str, version: int, whom: str, _viewer: Viewer | None
) -> DocumentsOfVersion:
    documents = _documents(_collection, folder, version)
    return documents if _viewer is None else documents.seen_by(_viewer)


# Without a sign of being busy: it would push the columns of a search down at each thumb.
@st.cache_resource(max_entries=8, show_spinner=False)
def _located(
    _store: JudgementStore, _documents: DocumentsOfVersion, folder: str, documents: int, judged: int
) -> tuple[Judgements, str]:
    return _store.queries(_documents), _store.fingerprint()
