"""Links from anywhere to a document at a span."""

from __future__ import annotations

import streamlit as st
from streamlit.errors import StreamlitAPIException

from pages.ui import state


def open_document(label: str, document_id: str, start: int = 0, end: int = 0) -> None:
    """Link to the Chunks page at a document's span; `label` is Markdown, an empty span marks nothing."""
    link = state.document_link(document_id, start, end)
    try:
        st.page_link(
            "pages/chunks.py", label=label, icon=":material/article:", query_params=link, width="content"
        )
    except StreamlitAPIException:
        # A page run by itself (as tests do) has no neighbours to link to.
        st.caption(label)
