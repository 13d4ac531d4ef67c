"""What a page begins with: the collection's corpus and its index bar, or that there is nothing yet."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from core.collection import Collection
from core.corpus import Corpus
from core.trace import Trace
from pages.ui import draw, links, people, resources, state
from pages.ui.index_bar import ask, index_bar
from pages.ui.suggest import is_sample


def no_documents(collection: Collection, then: str) -> None:
    """An empty collection, and the way out; `then` says what this page does once there are documents."""
    with st.container(key="empty_state"):
        draw.text("No documents yet", "rs-empty-title")
        if not people.may_manage():
            draw.text(f"“{collection.name}” has no documents that you may see.", "rs-quiet")
            return
        draw.text(
            f"“{collection.name}” is empty. Add files or a folder on the Documents page, then {then}.",
            "rs-quiet",
        )
        links.link(links.DOCUMENTS, "Go to Documents", ":material/upload_file:")


def for_administrators(what: str) -> bool:
    """Whether this window may not change things; then the page says for whom `what` is."""
    if people.may_manage():
        return False
    with st.container(key="empty_state"):
        draw.text("For administrators", "rs-empty-title")
        draw.text(f"{what} for administrators.", "rs-quiet")
    return True


def corpus_of(collection: Collection, shown: Trace | None = None) -> Corpus | None:
    """`resources.seen`, None where there is none yet; the sample is then indexed without being asked for."""
    corpus = resources.seen(collection, shown)
    if corpus is not None or not (people.may_manage() and is_sample(collection)):
        return corpus
    if state.first_time("index the sample"):
        # It is there to be searched at once; whoever presses Stop is not asked again.
        ask()
    return corpus


def indexed(
    collection: Collection, shown: Trace | None = None
) -> tuple[Corpus | None, Callable[[], None] | None]:
    """`corpus_of`, with the index bar drawn; and the indexing that was asked for, if any, to be called when
    all else is drawn."""
    corpus = corpus_of(collection, shown)
    with st.container(key="search_index"):
        indexing = index_bar(collection)
    return corpus, indexing
