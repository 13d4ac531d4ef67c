"""The sidebar of the Answer page: the model, and how many passages it gets."""

from __future__ import annotations

import streamlit as st

from core.answering import DEFAULT_MODEL, MAX_TOKENS
from core.collection import remember, remembered
from pages.ui import links
from pages.ui.prices import priced_models, prices

_MODEL = "answer_model"


def model() -> str:
    """The model that answers: as chosen last, in any session."""
    return st.session_state.get("rs_answer_model") or remembered(_MODEL) or DEFAULT_MODEL


def most() -> int:
    """The most passages that are sent."""
    return st.session_state.get("rs_answer_most", 20)


def answer_controls() -> None:
    st.markdown("**Answer**")
    chosen = model()
    offered = list(dict.fromkeys([DEFAULT_MODEL, *priced_models(), chosen]))
    st.session_state["answer_model_box"] = chosen
    st.selectbox(
        "Model",
        offered,
        key="answer_model_box",
        accept_new_options=True,
        on_change=_choose_model,
        help="Those with a known price; type any other model id",
    )
    st.session_state["answer_most_box"] = most()
    st.slider(
        "Passages sent", 1, 50, key="answer_most_box", on_change=_choose_most,
        help="The best passages of the search, this many at most",
    )  # fmt: skip
    st.caption(
        f"An answer may take {MAX_TOKENS:,} tokens at most. Prices are those of {prices().date}. How passages "
        "are found is set on the Search page."
    )
    links.link(links.SEARCH, "Open Search", ":material/search:")


def _choose_model() -> None:
    chosen = (st.session_state["answer_model_box"] or "").strip() or DEFAULT_MODEL
    st.session_state["rs_answer_model"] = chosen
    remember(_MODEL, chosen)


def _choose_most() -> None:
    st.session_state["rs_answer_most"] = st.session_state["answer_most_box"]
