"""What every page wears: title, theme details, the menu and the collection picker."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import streamlit as st

from core.collection import list_collections
from pages.ui import draw, links, people, state
from pages.ui.account import account, banner
from pages.ui.sign_in import sign_in

Page = Literal["search", "documents", "chunks", "context", "answer", "evaluate", "signals"]

_MENU: tuple[tuple[Page, str, str], ...] = (
    ("search", "Search", links.SEARCH),
    ("documents", "Documents", links.DOCUMENTS),
    ("chunks", "Chunks", links.CHUNKS),
    ("context", "Context", links.CONTEXT),
    ("answer", "Answer", links.ANSWER),
    ("evaluate", "Evaluate", links.EVALUATE),
    ("signals", "Signals", links.SIGNALS),
)
_ICON = str(Path(__file__).parent / "icon.svg")
_WORDMARK = '<span class="rs-wordmark">Rankscope</span>'
_CSS = (Path(__file__).parent / "frame.css").read_text(encoding="utf-8")


def frame(active: Page) -> None:
    """Call first on every page: page settings, style, wordmark, menu, collection picker, who is here, notices.

    Where somebody has to sign in first, that is all there is: the page ends here.
    """
    title = next(label for page, label, _ in _MENU if page == active)
    st.set_page_config(
        page_title=f"{title} · Rankscope", page_icon=_ICON, layout="wide", initial_sidebar_state=304
    )
    st.html(f"<style>{_CSS}</style>")
    try:
        people.person()
    except people.NotSignedIn as reason:
        with st.container(horizontal=True, key="frame_header"):
            st.html(_WORDMARK, width="content")
        sign_in(str(reason))
        st.stop()
    with st.container(horizontal=True, vertical_alignment="center", key="frame_header"):
        st.html(_WORDMARK, width="content")
        for page, label, path in _MENU:
            suffix = "_active" if page == active else ""
            with st.container(key=f"frame_menu_{page}{suffix}", width="content"):
                links.link(path, label)
        _collection_picker()
        account(state.collection())
    banner(state.collection())
    state.search_settings()  # reads the link, which may be worth a notice
    for notice in state.take_notices():
        draw.notice(notice, "warning")


def _collection_picker() -> None:
    names = [info.name for info in list_collections()]
    chosen = state.collection().name
    st.session_state["frame_collection"] = chosen
    with st.container(key="frame_picker", width="content"):
        st.selectbox(
            "Collection",
            names if chosen in names else [*names, chosen],
            key="frame_collection",
            label_visibility="collapsed",
            on_change=lambda: state.choose_collection(st.session_state["frame_collection"]),
            help="The collection that all pages work on",
            width=220,
        )
