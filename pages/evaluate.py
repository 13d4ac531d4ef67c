"""Evaluate: golden queries, what every stage makes of them, and whether a difference is real."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from core.errors import RankscopeError
from pages.ui import draw, people, state
from pages.ui.beginning import indexed, no_documents
from pages.ui.controls import index_controls, search_controls
from pages.ui.evaluate_bench import Bench, bench_of
from pages.ui.evaluate_compare import compare_tab
from pages.ui.evaluate_funnel import funnel_tab
from pages.ui.evaluate_judgements import judgements_tab
from pages.ui.evaluate_ladder import ladder_tab
from pages.ui.evaluate_measure import measure_tab
from pages.ui.evaluate_sweep import sweep_tab
from pages.ui.frame import frame
from pages.ui.index_bar import ask
from pages.ui.listing import documents_of
from pages.ui.searching import indexes_of, signals_of

_CSS = (Path(__file__).parent / "ui" / "evaluate.css").read_text(encoding="utf-8")
_TAB, _FIRST, _LAST = "evaluate_tab", "rs_evaluate_first", "rs_evaluate_tab"
_LINK = "tab"  # ?tab=Measure: a reload and a link keep the tab
_TABS: dict[str, Callable[[Bench], None]] = {
    "Judgements": judgements_tab,
    "Measure": measure_tab,
    "Funnel": funnel_tab,
    "Ladder": ladder_tab,
    "Compare": compare_tab,
    "Sweep": sweep_tab,
}


def main() -> None:
    frame("evaluate")
    st.html(f"<style>{_CSS}</style>")
    collection = state.collection()
    if not documents_of(collection):
        no_documents(collection, "judge what a search should find in them")
        return
    corpus, indexing = indexed(collection)
    with st.sidebar:
        search_controls(
            signals_of(corpus, state.search_settings()),
            indexes_of(state.trace()),
            corpus.fields if corpus else None,
        )
        if people.may_manage():
            index_controls(ask)
    bench = bench_of(collection, corpus)
    if _TAB not in st.session_state:  # what was open before a query was followed to the Search page
        linked = st.query_params.get(_LINK)
        st.session_state[_FIRST] = linked if linked in _TABS else st.session_state.get(_LAST)
    tabs = st.tabs(list(_TABS), default=st.session_state.get(_FIRST), key=_TAB, on_change="rerun")
    for name, tab in zip(_TABS, tabs, strict=True):
        if tab.open:
            st.session_state[_LAST] = st.query_params[_LINK] = name
            with tab:
                _TABS[name](bench)
    if indexing is not None:
        indexing()  # last, so that the page is whole while it runs


try:
    main()
except RankscopeError as error:
    draw.notice(str(error), "error")
