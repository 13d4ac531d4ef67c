"""Judging on the Search page: what is known of the query on show, and what thumbs and selections change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from core.collection import Collection, DocumentsOfVersion
from core.corpus import Corpus
from core.errors import RankscopeError
from core.evaluation import GoldenQuery, Judgements, JudgementStore, open_judgements
from core.report.marks import Marks, first_piece, told
from core.trace import Trace
from pages.ui import people, state
from pages.ui.judged_text import judged_text
from pages.ui.listing import all_documents, judgements_of
from pages.ui.plain import counted

_GOLDEN = "golden"  # ?golden=ID: a judged query opened from the Evaluate page
_OPENED = "rs_golden_opened"
_TROUBLE = "rs_judging_trouble"


def marks_of(trace: Trace) -> Marks:
    """The judgements of the query on show, other windows' included.

    They are those of the link's query where its words are these, else of the first one with these words.
    """
    return Marks.of(_corpus(trace), _query(trace.query, _judgements(state.collection())))


def judged_line(trace: Trace, marks: Marks) -> dict[str, Any]:
    """The line above the columns: `core.report.marks.told`, and how many queries are judged."""
    queries = len(_judgements(state.collection()).queries)
    said = counted(queries, "judged query").replace("querys", "queries") if queries else ""
    return {**told(trace, marks), "queries": said}


def ask_golden() -> None:
    """Ask the query of a link to a judged one, also where another is on show; before the query box is drawn."""
    linked = st.query_params.get("q")
    if _GOLDEN in st.query_params and linked and linked != state.query():
        state.ask(linked)


def select_golden(trace: Trace, marks: Marks) -> None:
    """Select a golden piece of the query that a link opened, the first time it is on show."""
    wanted = st.query_params.get(_GOLDEN)
    if not wanted:
        return
    if marks.query is None or marks.query.id != wanted:
        if all(one.id != wanted for one in _judgements(state.collection()).queries):
            st.session_state[_TROUBLE] = (
                "The link names a judged query that is not there: it was removed."
            )
        del st.query_params[_GOLDEN]  # other words were asked since
    elif st.session_state.get(_OPENED) != wanted:
        st.session_state[_OPENED] = wanted
        at = first_piece(trace, marks)
        if at is not None:
            state.select(trace.corpus.chunk_id(at))


def take_trouble() -> str:
    """What went wrong with the last judgement or link; blank when nothing did. Given once."""
    return st.session_state.pop(_TROUBLE, "")


def judge_chunk(chunk_id: str, grade: int | None, seen: Sequence[int | None]) -> None:
    """A thumb: the chunk's very span gets this grade; None takes its judgement back, if it is one that
    was `seen`."""
    trace = state.trace()
    if trace is None:
        return
    corpus = _corpus(trace)
    position = corpus.position_of(chunk_id)
    document = corpus.item_ids[corpus.item_of[position]]
    start, end = int(corpus.starts[position]), int(corpus.ends[position])
    now = marks_of(trace).verdicts.get(position)
    if now == grade:
        return  # a thumb that was sent twice
    if grade is None and now not in seen:
        st.session_state[_TROUBLE] = (
            "Not taken back: another window judged this chunk otherwise. Its thumb is shown as it is now."
        )
    elif grade is None:
        _change(lambda store, documents: store.unjudge(trace.query, document, start, end, documents))
    else:
        _change(
            lambda store, documents: store.judge(trace.query, document, start, end, grade, documents)
        )


def say_none(on: bool) -> None:
    """The documents do not answer the query, or that is taken back."""
    trace = state.trace()
    if trace is None:
        return
    if not people.may_manage():
        st.session_state[_TROUBLE] = (
            "Whether no document answers a query is for administrators: they see all."
        )
        return
    query = marks_of(trace).query
    if on and query is None:
        _change(lambda store, _: store.add_query(trace.query))
    elif not on and query is not None and not query.answerable and not query.rejected:
        _change(lambda store, _: store.remove_query(query.id))


def evidence_box(trace: Trace, marks: Marks, position: int) -> None:
    """The text of a chunk: select what answers the query, and see or take back what was judged in it."""
    corpus = _corpus(trace)
    document = corpus.item_ids[corpus.item_of[position]]

    def answer(start: int, end: int) -> None:
        _change(lambda store, documents: store.judge(trace.query, document, start, end, 1, documents))

    def take_back(start: int, end: int) -> None:
        _change(lambda store, documents: store.unjudge(trace.query, document, start, end, documents))

    text = corpus.chunk(position).text
    judged_text(text, int(corpus.starts[position]), marks.inside(position), answer, take_back)


def _change(change: Callable[[JudgementStore, DocumentsOfVersion], object]) -> None:
    collection = state.collection()
    try:
        change(open_judgements(collection), all_documents(collection))
    except RankscopeError as error:
        st.session_state[_TROUBLE] = f"Not kept: {error}"


def _query(text: str, judgements: Judgements) -> GoldenQuery | None:
    same = [one for one in judgements.queries if one.text == text.strip()]
    wanted = st.query_params.get(_GOLDEN)
    return next((one for one in same if one.id == wanted), same[0] if same else None)


def _judgements(collection: Collection) -> Judgements:
    """Those of the collection; none, and trouble, where they cannot be read: a search does without."""
    try:
        return judgements_of(collection)[0]
    except RankscopeError as error:
        st.session_state[_TROUBLE] = str(error)
        return Judgements(())


def _corpus(trace: Trace) -> Corpus:
    assert isinstance(trace.corpus, Corpus)
    return trace.corpus
