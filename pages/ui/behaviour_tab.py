"""Behaviour: the switch, what is kept of whom, logs in and out, and what clicks make of a query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import streamlit as st

from core.behaviour.events import CLICKS, Event
from core.behaviour.forms import to_csv, to_ubi
from core.behaviour.store import Behaviour
from core.collection import Collection
from core.corpus import Corpus
from core.documents import Documents
from pages.ui import draw, people, state
from pages.ui.behaviour_clicks import clicks_for
from pages.ui.behaviour_import import import_log
from pages.ui.collections import say, take_said
from pages.ui.listing import documents_of
from pages.ui.plain import counted, label

_NOBODY = "(not named)"
_LISTED = 200  # people
_PICKED = "behaviour_person"
_KINDS = {"shown": "Shown", "open": "Opened", "copy": "Copied", "up": "Thumbs up", "down": "Thumbs down"}


def behaviour_tab(collection: Collection, corpus: Corpus | None) -> None:
    """All of it for who manages; for others what is kept of themselves."""
    draw.text(
        "What people open, copy and judge among the results of a query can rank items for the next one who asks it, or "
        "one like it. Nothing is recorded until it is switched on; switched off, what is kept still counts until it is erased.",
        "rs-lead",
    )
    take_said()
    store, documents = Behaviour(collection), documents_of(collection)
    manages = people.may_manage()
    _switch(store, manages)
    if manages:
        _everybody(store, documents)
        with st.expander("Import a click log", key="behaviour_import_section"):
            import_log(store, documents)
        _strays(store)
    else:
        _mine(store, documents)
    if corpus is not None:
        draw.text("What clicks make of a query", "rs-subhead")
        clicks_for(corpus)


def _switch(store: Behaviour, manages: bool) -> None:
    on = store.on
    st.session_state["behaviour_on"] = on
    st.toggle(
        "Record what people do with results", key="behaviour_on", disabled=not manages,
        on_change=_turn, args=(store,),
        help="The query, the document, its rank, when, and for whom: kept with the collection, on this computer only"
        if manages
        else "Who manages the collection switches it",
    )  # fmt: skip
    if on:
        draw.text(f"On: what you do on the Search page is kept for {people.user()}.", "rs-quiet")


def _turn(store: Behaviour) -> None:
    if people.may_manage():
        store.switch(st.session_state["behaviour_on"])


def _everybody(store: Behaviour, documents: Documents) -> None:
    users, events = store.users(), store.events()
    if not users:
        draw.text("Nothing is kept.", "rs-quiet")
        return
    _totals(events)
    names = list(users)[:_LISTED]
    with st.container(horizontal=True, vertical_alignment="bottom", key="behaviour_people"):
        chosen = st.selectbox(
            "Events of", [None, *names], key=_PICKED, width=260,
            format_func=lambda one: "everybody" if one is None else f"{_name(one)} · {users[one]:,}",
        )  # fmt: skip
        of = events if chosen is None else store.events(chosen)
        _downloads(of, documents)
        whom = "everybody" if chosen is None else _name(chosen)
        with st.popover(
            "Erase", icon=":material/delete:", key="behaviour_erase_open", on_change="rerun"
        ):
            number = sum(users.values()) if chosen is None else users[chosen]
            st.markdown(f"Erase {counted(number, 'event')} of {whom}? This cannot be undone.")
            st.button(
                "Erase", key="behaviour_erase", type="primary", on_click=_erase, args=(store, chosen)
            )
    if len(users) > _LISTED:
        draw.text(
            f"{len(users) - _LISTED:,} more people are not listed; the export has all.", "rs-quiet"
        )


def _mine(store: Behaviour, documents: Documents) -> None:
    user, known = people.user(), set(documents.ids)
    mine = [one for one in store.events(user) if one.document_id in known]
    draw.text(f"Kept of you: {counted(len(mine), 'event')} on documents that you may see.", "rs-text")
    if people.viewing_as() is not None:
        return
    with st.container(horizontal=True, vertical_alignment="bottom", key="behaviour_people"):
        _downloads(mine, documents)
        with st.popover(
            "Erase", icon=":material/delete:", key="behaviour_erase_open", on_change="rerun"
        ):
            st.markdown("Erase all that is kept of you here? This cannot be undone.")
            st.button(
                "Erase", key="behaviour_erase", type="primary", on_click=_erase, args=(store, user)
            )


def _name(user: str) -> str:
    return label(user) if user else _NOBODY


def _totals(events: Sequence[Event]) -> None:
    kinds = Counter(one.kind for one in events)
    queries = len({one.query.casefold() for one in events})
    people_there = len({one.user or one.session for one in events})
    clicked = len({(one.query.casefold(), one.document_id) for one in events if one.kind in CLICKS})
    facts = [f"{title.lower()} {kinds[kind]:,}" for kind, title in _KINDS.items() if kinds[kind]]
    first, last = (min((one.at for one in events if one.at), default=""), max((one.at for one in events), default=""))  # fmt: skip
    days = " to ".join(dict.fromkeys((first[:10], last[:10])))
    since = f", {days}" if first else ""
    draw.text(f"{counted(len(events), 'event')}: {', '.join(facts)}{since}.", "rs-text")
    asked = counted(queries, "query").replace("querys", "queries")
    draw.text(
        f"{asked} by {'1 person' if people_there == 1 else f'{people_there:,} people'}; {counted(clicked, 'pair')} of "
        "query and document clicked.",
        "rs-quiet",
    )


def _downloads(events: Sequence[Event], documents: Documents) -> None:
    for title, ending, mime, make in (
        ("CSV", "csv", "text/csv", lambda: to_csv(events, documents)),
        ("UBI (JSONL)", "jsonl", "application/jsonl", lambda: to_ubi(events)),
    ):
        st.download_button(
            title, make, file_name=f"rankscope-behaviour.{ending}", mime=mime, key=f"behaviour_{ending}",
            icon=":material/download:", on_click="ignore", disabled=not events,
        )  # fmt: skip


def _erase(store: Behaviour, user: str | None) -> None:
    if not (people.may_manage() or user == people.user()):  # drawn for somebody who was here before
        return
    gone = store.erase_all() if user is None else store.erase(user)
    state.set_trace(None)  # it may have been ranked by what is gone
    st.session_state.pop(_PICKED, None)
    # Not how many to who does not manage: some may be on documents that are hidden from them by now.
    say(
        f"Erased {counted(gone, 'event')}."
        if people.may_manage()
        else "Erased all that was kept of you here."
    )


def _strays(store: Behaviour) -> None:
    strays = store.strays()
    if not strays:
        return
    names = Counter(one.document_id for one in strays)
    title = f"{counted(len(strays), 'imported event')} without a document here"
    with st.expander(title, key="behaviour_strays"):
        draw.text(
            "Kept apart: they count as soon as a document has this id, name or title and a log is imported again.",
            "rs-quiet",
        )
        draw.table(("Named in the log", "Events"), names.most_common(50), numeric=(1,))
