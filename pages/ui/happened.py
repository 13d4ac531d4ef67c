"""What people do with results, recorded where that is switched on: shown, opened, copied, judged.

Nothing is recorded while somebody is viewed as somebody else: it would be neither's behaviour.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import streamlit as st

from core.behaviour.events import Event
from core.behaviour.store import Behaviour
from core.collection import Collection
from core.errors import RankscopeError
from core.trace import Trace
from pages.ui import draw, links, people, state
from pages.ui.plain import sentence

_ANSWERED = "rs_answered"
_TROUBLE = "rs_recording_trouble"


def recording(collection: Collection) -> bool:
    """Whether what is done here and now is recorded. Raises CollectionError where that cannot be read."""
    return people.viewing_as() is None and Behaviour(collection).on


def shown(trace: Trace, asked: bool) -> None:
    """Record what a query shows, once each time it is `asked` or comes on show by a link."""
    collection = state.collection()
    try:
        if not recording(collection):
            st.session_state.pop(_ANSWERED, None)
            return
        answered: dict[str, Any] = st.session_state.get(_ANSWERED, {})
        key = (collection.id, trace.query)
        if asked or answered.get("key") != key:
            answered = {"key": key, "session": uuid4().hex}
            st.session_state[_ANSWERED] = answered
            _record(collection, trace, "shown", list(ranks(trace)))
    except RankscopeError as error:
        st.session_state[_TROUBLE] = str(error)


def did(kind: str, chosen: str | None) -> None:
    """Record that somebody did something (`core.behaviour.events.KINDS`) with a chunk, or an item, by its id.

    What is not in a passage was not shown as a result: looking up why it is not there says nothing of it.
    """
    trace, collection = state.trace(), state.collection()
    if trace is None or chosen is None:
        return
    try:
        document = _document_of(trace, chosen)
        if document in ranks(trace) and recording(collection):
            shown(trace, asked=False)
            _record(collection, trace, kind, [document])
    except RankscopeError as error:
        st.session_state[_TROUBLE] = str(error)


def ranks(trace: Trace) -> dict[str, int]:
    """The items shown as results, by id, in the order of their first passages, with their ranks from 1."""
    items = dict.fromkeys(passage.item for passage in trace.passages)
    return {trace.corpus.item_ids[item]: rank for rank, item in enumerate(items, 1)}


def told(collection: Collection) -> None:
    """A line that says that it is recorded, and for whom; nothing where it is not."""
    if trouble := st.session_state.pop(_TROUBLE, ""):
        draw.notice(f"Not recorded: {sentence(trouble)}", "error")
    if not recording(collection):
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="recorded"):
        draw.text(
            f"Recorded for {people.user()}: what a query shows here, and what you open, copy or judge.",
            "rs-quiet",
        )
        links.link(links.SIGNALS, "Behaviour", ":material/visibility:", tab="Behaviour")


def _record(collection: Collection, trace: Trace, kind: str, documents: list[str]) -> None:
    now, places = datetime.now(UTC).isoformat(timespec="seconds"), ranks(trace)
    session, user = st.session_state[_ANSWERED]["session"], people.user()
    Behaviour(collection).record(
        [Event(trace.query, one, kind, places[one], now, user, session) for one in documents]
    )


def _document_of(trace: Trace, chosen: str) -> str:
    """The document of a chunk's id, which begins with its own; an item's id is that of its document."""
    return chosen if chosen in trace.corpus.item_ids else chosen.rpartition(":")[0]
