"""Indexing a collection from a page: progress, a stop button, one clear message when it fails."""

from __future__ import annotations

import time

import streamlit as st

from core.collection import Collection
from core.corpus import Corpus
from core.errors import RankscopeError
from core.settings import IndexSettings
from pages.ui import draw, resources


def index_now(collection: Collection, settings: IndexSettings) -> Corpus | None:
    """Build the collection's corpus while showing progress; None when it failed, with the reason shown.

    Any widget touched meanwhile stops the work at its next batch (Streamlit ends the run); vectors
    made so far are kept, so that the next attempt goes on from there.
    """
    with st.container(key="indexing", border=True):
        bar = st.progress(0.0, "Preparing the documents …")
        st.button("Stop", key="stop_indexing", help="What is done so far is kept")
        begin = time.monotonic()

        def progress(done: int, total: int) -> None:
            spent = time.monotonic() - begin
            left = f", about {spent / done * (total - done):,.0f} s left" if done and spent > 2 else ""
            bar.progress(
                min(done / total, 1.0) if total else 1.0, f"Indexing {done:,} of {total:,}{left}"
            )

        try:
            return resources.build(collection, settings, progress)
        except RankscopeError as error:
            draw.notice(f"Indexing stopped: {error}", "error")
            return None
