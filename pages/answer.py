"""Answer: Claude answers from the passages that the search found, or from the whole base, and cites."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from core.answering import Inquiry, from_documents, from_trace, may_fit
from core.collection import Collection, DocumentsOfVersion
from core.corpus import Corpus
from core.errors import RankscopeError
from core.llm import missing_key
from pages.ui import draw, people, resources, state
from pages.ui.answer_controls import answer_controls, model, most
from pages.ui.answer_offer import offers
from pages.ui.answer_shown import earlier, shown
from pages.ui.beginning import indexed, no_documents
from pages.ui.frame import frame
from pages.ui.listing import documents_of
from pages.ui.rerank_offer import rerank_offer
from pages.ui.searching import current_trace

_CSS = (Path(__file__).parent / "ui" / "answer_page.css").read_text(encoding="utf-8")


def main() -> None:
    frame("answer")
    st.html(f"<style>{_CSS}</style>")
    collection = state.collection()
    if not documents_of(collection):
        no_documents(collection, "ask them here")
        return
    with st.sidebar:
        answer_controls()
    corpus, indexing = indexed(collection, state.shown())
    if corpus is not None:
        resources.warm(corpus.settings.model)
    _question_box(collection)
    if needed := missing_key():
        draw.notice(f"{needed} Only answers need one: all else on this page works without.", "info")
    question = state.query().strip()
    if question:
        passages = _from_passages(corpus, question)
        offers(collection, passages, _from_all(collection, question), bool(needed))
    else:
        _invitation()
    shown(collection)
    earlier(collection)
    if indexing is not None:
        indexing()


def _question_box(collection: Collection) -> None:
    """One question for this page and the Search page. Entering it searches, and costs nothing."""
    key = f"question_box_{collection.id}"
    if key not in st.session_state:
        st.session_state[key] = state.query()
    with (
        st.container(key="query_row"),
        st.form("question_form", border=False),
        st.container(horizontal=True, vertical_alignment="bottom"),
    ):
        st.text_input(
            "Question",
            key=key,
            placeholder="Ask the documents something",
            label_visibility="collapsed",
            width="stretch",
        )
        st.form_submit_button(
            "Find passages",
            key="question_button",
            icon=":material/search:",
            on_click=lambda: state.ask(st.session_state[key]),
            help="Searches with the settings of the Search page; nothing is sent to Claude yet",
        )


def _invitation() -> None:
    with st.container(key="invitation"):
        draw.text("Ask a question to see what an answer would cost.", "rs-empty-title")
        draw.text(
            "The passages that the search finds go to Claude, which answers from them alone and cites: each "
            "number in the answer opens the very sentences it stands on. Nothing is sent before you say so.",
            "rs-quiet",
        )


def _from_passages(corpus: Corpus | None, question: str) -> Inquiry | None:
    """What the search gives for the question; None without an index."""
    if corpus is None:
        return None
    trace = current_trace(corpus, question, state.search_settings())
    for note in trace.notes:
        draw.notice(note, "info")
    rerank_offer(trace)
    return from_trace(trace, model(), most())


def _from_all(collection: Collection, question: str) -> Inquiry | None:
    """The whole base, for the question; None where it is too large to be sent."""
    documents = documents_of(collection)
    found = _whole_base(str(collection.folder), documents.version, people.whom(), documents)
    if found is None:
        return None
    return Inquiry(question, "base", model(), found.sources, found.texts)


@st.cache_resource(max_entries=4, show_spinner=False)
def _whole_base(folder: str, version: int, whom: str, _documents: DocumentsOfVersion) -> Inquiry | None:
    """All documents that are shown here, read once for each version of the collection."""
    return from_documents("", _documents) if may_fit(_documents.lengths) else None


try:
    main()
except RankscopeError as error:
    draw.notice(str(error), "error")
