"""Signals: what ranks items besides their texts. Rules, what people did with results, and the items' fields."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from core.collection import Collection
from core.corpus import Corpus
from core.errors import RankscopeError
from pages.ui import draw, state
from pages.ui.beginning import for_administrators, indexed, no_documents
from pages.ui.behaviour_tab import behaviour_tab
from pages.ui.fields_tab import fields_tab
from pages.ui.frame import frame
from pages.ui.listing import documents_of
from pages.ui.rules_draft import draft_of
from pages.ui.rules_editor import editor, help_on_rules
from pages.ui.rules_try import trial

_CSS = (Path(__file__).parent / "ui" / "rules.css").read_text(encoding="utf-8")
_TAB, _FIRST = "signals_tab", "rs_signals_first"
_LINK = "tab"  # ?tab=Behaviour: a reload and a link keep the tab


def main() -> None:
    frame("signals")
    st.html(f"<style>{_CSS}</style>")
    collection = state.collection()
    if not documents_of(collection):
        no_documents(collection, "say here what ranks them besides their texts")
        return
    corpus, indexing = indexed(collection)
    if _TAB not in st.session_state:  # once: tabs whose default changes lose the next click
        linked = st.query_params.get(_LINK)
        st.session_state[_FIRST] = linked if linked in _TABS else None
    tabs = st.tabs(list(_TABS), default=st.session_state[_FIRST], key=_TAB, on_change="rerun")
    for name, tab in zip(_TABS, tabs, strict=True):
        if tab.open:
            st.query_params[_LINK] = name
            with tab:
                _TABS[name](collection, corpus)
    if indexing is not None:
        indexing()  # last, so that the page is whole while it runs


def rules_tab(collection: Collection, corpus: Corpus | None) -> None:
    if for_administrators("Rules are"):  # they name documents that others may not know of
        return
    draw.text(
        "Rules act on the ranking of items, for everybody who searches this collection: first hide and only take items "
        "out, then boosts and buries add up, then pins take their ranks. Where two rules want the same, the earlier one "
        "has it, and the trace says so.",
        "rs-lead",
    )
    draft = draft_of(collection)
    editor(collection, draft, corpus)
    help_on_rules(corpus)
    trial(collection, draft, corpus)


_TABS = {"Rules": rules_tab, "Behaviour": behaviour_tab, "Fields": fields_tab}


try:
    main()
except RankscopeError as error:
    draw.notice(str(error), "error")
