"""The state of a collection's index on the page: asked for, running, stopped, taken up again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.collection import Collection
from core.errors import RankscopeError, Stopped
from core.settings import IndexSettings
from pages.ui import draw, people, resources, state
from pages.ui.listing import documents_of
from pages.ui.meter import Meter
from pages.ui.plain import counted

_SAID = "index_said"


def ask(settings: IndexSettings | None = None) -> None:
    """Index at the next drawing of `index_bar`: with these settings, or the collection's own."""
    if not people.may_manage():  # a button that was drawn before somebody was viewed as
        return
    resources.place_order(state.collection(), settings or state.index_settings())


def index_bar(collection: Collection) -> Callable[[], None] | None:
    """One line on the index, with what can be done about it; gives the work that was asked for.

    The page calls that work when all else is drawn. Who does not manage hears only whether there is an
    index: its counts are of what others see, and its work is left to their windows.

    A widget touched or a page reloaded meanwhile starts the page again, and the work goes on from the
    vectors that are finished; only Stop ends it.
    """
    if not people.may_manage():
        _for_viewers(collection)
        return None
    order = resources.order(collection)
    # Two places: while one is filled the other is emptied, which takes its widgets off the page at once.
    bar_place, state_place = st.empty(), st.empty()
    if order:
        return partial(_run, bar_place, collection, order)
    if collection.files():
        with state_place.container(key="index_state"):
            _show(collection)
    return None


def _run(place: DeltaGenerator, collection: Collection, order: resources.Order) -> None:
    with place.container(horizontal=True, vertical_alignment="center", key="index_running"):
        meter = Meter("Indexing", "documents cut", "texts embedded")
        st.button(
            "Stop", key="index_stop", on_click=resources.end_order, args=(collection,),
            help="What is embedded already is kept.",
        )  # fmt: skip

    def wanted() -> None:
        if resources.order(collection) is not order:
            raise Stopped("stopped in another window")

    def told(done: int, total: int) -> None:
        wanted()
        order.progress = (done, total)
        meter(done, total)

    def meanwhile() -> None:
        wanted()
        done, total = order.progress
        count = f" · {done:,} of {total:,}" if total else ""
        meter.say(done, max(total, 1), f"Indexing in another window{count}")

    try:
        made = resources.build(collection, order.settings, told, meanwhile)
    except RankscopeError as error:
        if resources.order(collection) is order:
            resources.end_order(collection)
        if not isinstance(error, Stopped):
            st.session_state[_SAID] = (f"The collection could not be indexed: {error}", "error")
        st.rerun()
    if order.settings != state.index_settings():
        state.set_index_settings(order.settings)
    if resources.order(collection) is order:
        resources.end_order(collection)
    done = f"Indexed: {counted(len(made), 'chunk')} of {counted(len(made.item_ids), 'document')}."
    st.session_state[_SAID] = (done, "info")
    st.rerun()


def _for_viewers(collection: Collection) -> None:
    documents, served = documents_of(collection), resources.seen(collection)
    missing = set(documents.ids).difference(served.item_ids if served is not None else ())
    if missing:
        told = f"{counted(len(missing), 'document')} not indexed yet: search does not find them"
        draw.notice(f"{told}, until an administrator has them indexed.", "warning")


def _show(collection: Collection) -> None:
    try:
        served, waiting = resources.corpus(collection), resources.waiting(collection)
    except RankscopeError as error:
        draw.notice(f"The index cannot be read: {error}", "error")
        return
    if said := st.session_state.pop(_SAID, None):
        draw.notice(*said)
    newer = resources.contexts_waiting(collection, served) if served is not None else 0
    current = served is not None and not waiting and served.settings == state.index_settings()
    if served is not None and current and not newer:
        if not said:
            st.caption(
                f"Index up to date: {counted(len(served), 'chunk')}, model {served.embedder.model_id}."
            )
        return
    if served is None:
        reason, action = "Not indexed yet: search finds nothing until it is.", "Index now"
    elif waiting:
        reason = f"{counted(waiting, 'file')} not yet indexed: search finds only the others."
        action = "Resume indexing"
    elif not current:
        reason, action = "The index was made with other settings.", "Index again"
    else:
        reason = f"{counted(newer, 'document')} with contexts that are newer than the index."
        action = "Index again"
    with st.container(horizontal=True, vertical_alignment="center", key="index_waiting"):
        draw.notice(reason, "warning")
        st.button(action, key="index_resume", type="primary", on_click=ask)
