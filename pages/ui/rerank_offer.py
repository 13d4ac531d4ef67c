"""What a search says of its reranker where it was not asked, or failed."""

from __future__ import annotations

import streamlit as st

from core.reranking import load_reranker
from core.settings import SearchSettings
from core.trace import Trace
from pages.ui import draw, state
from pages.ui.plain import sentence


def rerank_offer(trace: Trace) -> None:
    """A reranker that costs is asked when the person says so; one that failed says why."""
    asked = trace.record.reranked
    if trace.settings.rerank == "none" or asked is None or not asked.failed:
        return
    if not asked.held:
        draw.notice(
            f"Not reranked: {asked.failed.rstrip('.')}. The order before it is shown.", "warning"
        )
        return
    needed = _needed_key(trace.settings)
    with st.container(horizontal=True, vertical_alignment="center", key="rerank_offer"):
        draw.notice(f"{sentence(asked.failed)} {needed}".strip(), "info")
        if st.button(
            "Rerank now",
            key="rerank_now",
            type="primary",
            disabled=bool(needed),
            on_click=state.pay_once,
        ):
            st.rerun()  # out of the fragment: the search is done by the page


def _needed_key(settings: SearchSettings) -> str:
    """A sentence that names the key which the reranker of these settings lacks; blank where it needs none."""
    reranker = load_reranker(settings)
    needed = reranker.missing_key() if reranker else ""
    return sentence(needed) if needed else ""
