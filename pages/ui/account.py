"""In the header: who uses the app, and whom it is viewed as."""

from __future__ import annotations

import streamlit as st

from core.access import AccessError, parse_viewer
from core.collection import Collection
from pages.ui import draw, people, state
from pages.ui.access_box import known_names, names_box
from pages.ui.listing import all_documents, documents_of
from pages.ui.plain import counted, plain

_BOX = "view_as_names"
NO_ADMINISTRATOR = (
    "Nobody is named as an administrator, so nobody can add, remove or change anything here. Name one in the app's "
    'secrets, in the section [rankscope]: administrators = ["user:you@example.org", "group:admins"].'
)


def account(collection: Collection) -> None:
    """Who is here, viewing as somebody, signing out: behind one button."""
    me, viewing = people.person(), people.viewing_as()
    signed_in = people.sign_in_needed()
    label = plain(_short(me.user)) if signed_in else "Local"
    icon = ":material/visibility:" if viewing else ":material/person:"
    with (
        st.container(key="frame_account", width="content"),
        st.popover(label, icon=icon, type="tertiary", key="account_open", on_change="rerun") as opened,
    ):
        if not opened.open:  # looking for names reads all documents
            return
        if not signed_in:
            draw.text("Local: one person, who sees and changes everything. Nobody signs in.", "rs-text")
        else:
            draw.text(me.viewer.label, "rs-subhead")
            told = "Administrator: sees and changes everything."
            seen = counted(len(documents_of(collection)), "document")
            draw.text(told if me.manages else f"Sees {seen} of this collection.", "rs-text")
            if not people.administrators_named():
                draw.notice(NO_ADMINISTRATOR, "warning")
        if me.manages:
            _view_as(collection)
        if signed_in:
            st.button("Sign out", key="sign_out", icon=":material/logout:", on_click=st.logout)


def banner(collection: Collection) -> None:
    """Below the header, while somebody is viewed as."""
    viewing = people.viewing_as()
    if viewing is None:
        return
    seen, there = len(documents_of(collection)), len(all_documents(collection))
    with st.container(horizontal=True, vertical_alignment="center", key="frame_viewing"):
        draw.notice(
            f"Viewing as {viewing.label}: {seen:,} of {counted(there, 'document')}. "
            "What you change in settings is kept for this window only; the rest cannot be changed.",
            "warning",
        )
        st.button("Stop viewing", key="view_as_stop", on_click=people.view_as, args=(None,))


def _view_as(collection: Collection) -> None:
    draw.text("View as", "rs-subhead")
    draw.text("See this app as somebody else does: a user, groups, or both.", "rs-quiet")
    # Side by side: the list of names, which stays open, would lie on a button below.
    with st.container(horizontal=True, vertical_alignment="bottom", key="view_as_row"):
        names_box(
            "User and groups", _BOX, known_names(collection), "Nobody in particular", width="stretch"
        )
        st.button(
            "View", key="view_as_do", type="primary", icon=":material/visibility:", on_click=_begin
        )


def _begin() -> None:
    try:
        people.view_as(parse_viewer("; ".join(st.session_state[_BOX])))
    except AccessError as error:
        state.notify(str(error))
    else:
        st.session_state["account_open"] = False


def _short(user: str) -> str:
    return user if len(user) <= 18 else user[:17] + "…"
