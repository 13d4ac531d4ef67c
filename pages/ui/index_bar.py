"""The state of a collection's index on the page: asked for, running, stopped, taken up again."""

from __future__ import annotations

import streamlit as st

from core.collection import Collection
from core.errors import RankscopeError
from core.settings import IndexSettings
from pages.ui import draw, resources, state
from pages.ui.meter import Meter

_ASKED = "index_asked"
_SAID = "index_said"


def ask(settings: IndexSettings | None = None) -> None:
    """Index at the next drawing of `index_bar`: with these settings, or the collection's own."""
    st.session_state[_ASKED] = (state.collection().id, settings)


def index_bar(collection: Collection) -> None:
    """One line on the index, with what can be done about it; runs what was asked for.

    A widget touched meanwhile starts the page again, and the work goes on from the vectors that are
    finished; only Stop ends it.
    """
    owner, settings = st.session_state.get(_ASKED, (None, None))
    if owner == collection.id:
        _run(collection, settings or state.index_settings())
    elif collection.files():
        _show(collection)


def _run(collection: Collection, settings: IndexSettings) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="index_running"):
        meter = Meter("Indexing")
        st.button("Stop", key="index_stop", on_click=_stop, help="What is embedded already is kept.")
    try:
        made = resources.build(collection, settings, meter)
    except RankscopeError as error:
        _stop()
        draw.notice(f"The collection could not be indexed: {error}", "error")
        return
    if settings != state.index_settings():
        state.set_index_settings(settings)
    _stop()
    st.session_state[_SAID] = f"Indexed: {len(made):,} chunks of {len(made.item_ids):,} documents."
    st.rerun()


def _stop() -> None:
    st.session_state.pop(_ASKED, None)


def _show(collection: Collection) -> None:
    try:
        served, waiting = resources.corpus(collection), resources.stale(collection)
    except RankscopeError as error:
        draw.notice(f"The index cannot be read: {error}", "error")
        return
    if said := st.session_state.pop(_SAID, ""):
        draw.notice(said, "info")
    if served is not None and not waiting and served.settings == state.index_settings():
        if not said:
            st.caption(f"Index up to date: {len(served):,} chunks, model {served.embedder.model_id}.")
        return
    if served is None:
        reason = "Nothing is indexed yet: search finds nothing until it is."
    elif waiting:
        files = "1 file was" if waiting == 1 else f"{waiting:,} files were"
        reason = f"The index is older than the documents: {files} added or removed since."
    else:
        reason = "The index was made with other settings."
    with st.container(horizontal=True, vertical_alignment="center", key="index_waiting"):
        draw.notice(reason, "warning")
        st.button(
            "Index now" if served is None else "Resume indexing",
            key="index_resume",
            type="primary",
            on_click=ask,
        )
