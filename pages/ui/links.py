"""Links between the pages, which keep the collection."""

from __future__ import annotations

import streamlit as st
from streamlit.errors import StreamlitAPIException

from pages.ui import state

SEARCH, DOCUMENTS, CHUNKS = "app.py", "pages/documents.py", "pages/chunks.py"
CONTEXT, ANSWER = "pages/context.py", "pages/answer.py"
EVALUATE, SIGNALS = "pages/evaluate.py", "pages/signals.py"


def link(page: str, label: str, icon: str | None = None, **parameters: str) -> None:
    """A link to a page; `label` is Markdown, `parameters` go into its address."""
    query = {**state.collection_link(), **parameters}
    try:
        st.page_link(page, label=label, icon=icon, query_params=query, width="content")
    except StreamlitAPIException:
        # A page run by itself (as tests do) has no neighbours to link to.
        st.caption(label)


def open_document(label: str, document_id: str, start: int = 0, end: int = 0) -> None:
    """Link to the Chunks page at a document's span; `label` is Markdown, an empty span marks nothing."""
    link(CHUNKS, label, ":material/article:", **state.document_link(document_id, start, end))
