"""The state of a collection's index on the page: asked for, running, stopped, taken up again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.collection import Collection
from core.errors import RankscopeError
from core.settings import IndexSettings
from pages.ui import draw, resources, state
from pages.ui.meter import Meter
from pages.ui.plain import counted

_ASKED = "index_asked"
_SAID = "index_said"


def ask(settings: IndexSettings | None = None) -> None:
    """Index at the next drawing of `index_bar`: with these settings, or the collection's own."""
    st.session_state[_ASKED] = (state.collection().id, settings)


def index_bar(collection: Collection) -> Callable[[], None] | None:
    """One line on the index, with what can be done about it; gives the work that was asked for.

    The page calls that work when all else is drawn.

    A widget touched meanwhile starts the page again, and the work goes on from the vectors that are
    finished; only Stop ends it.
    """
    owner, settings = st.session_state.get(_ASKED, (None, None))
    # Two places: while one is filled the other is emptied, which takes its widgets off the page at once.
    bar_place, state_place = st.empty(), st.empty()
    if owner == collection.id:
        return partial(_run, bar_place, collection, settings or state.index_settings())
    if collection.files():
        with state_place.container(key="index_state"):
            _show(collection)
    return None


def _run(place: DeltaGenerator, collection: Collection, settings: IndexSettings) -> None:
    with place.container(horizontal=True, vertical_alignment="center", key="index_running"):
        meter = Meter("Indexing", "documents cut", "texts embedded")
        st.button("Stop", key="index_stop", on_click=_stop, help="What is embedded already is kept.")
    try:
        made = resources.build(collection, settings, meter)
    except RankscopeError as error:
        _stop()
        st.session_state[_SAID] = (f"The collection could not be indexed: {error}", "error")
        st.rerun()
    if settings != state.index_settings():
        state.set_index_settings(settings)
    _stop()
    done = f"Indexed: {counted(len(made), 'chunk')} of {counted(len(made.item_ids), 'document')}."
    st.session_state[_SAID] = (done, "info")
    st.rerun()


def _stop() -> None:
    st.session_state.pop(_ASKED, None)


def _show(collection: Collection) -> None:
    try:
        served, waiting = resources.corpus(collection), resources.stale(collection)
    except RankscopeError as error:
        draw.notice(f"The index cannot be read: {error}", "error")
        return
    if said := st.session_state.pop(_SAID, None):
        draw.notice(*said)
    if served is not None and not waiting and served.settings == state.index_settings():
        if not said:
            st.caption(
                f"Index up to date: {counted(len(served), 'chunk')}, model {served.embedder.model_id}."
            )
        return
    if served is None:
        reason, action = "Not indexed yet: search finds nothing until it is.", "Index now"
    elif waiting:
        files = f"{counted(waiting, 'file')} {'was' if waiting == 1 else 'were'}"
        reason = f"The index is older than the documents: {files} added or removed since."
        action = "Resume indexing"
    else:
        reason, action = "The index was made with other settings.", "Index again"
    with st.container(horizontal=True, vertical_alignment="center", key="index_waiting"):
        draw.notice(reason, "warning")
        st.button(action, key="index_resume", type="primary", on_click=ask)
