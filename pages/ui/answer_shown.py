"""The answer on show: its text with citations, what it took, what was sent; and earlier answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from html import escape

import streamlit as st

from core.answering import SYSTEM, Answer, AnswerJob, AnswerStore, as_text, numbered
from core.answering.answer import span_of
from core.collection import Collection
from core.errors import RankscopeError
from core.types import Document, encodable, text_hash
from pages.ui import answer_state, draw, people, state
from pages.ui.answer_view import draw_answer
from pages.ui.listing import documents_of
from pages.ui.plain import counted, sentence
from pages.ui.prices import dollars

_LOOK = 0.3  # seconds between two looks at an answer that is being written
_LISTED = 50


def shown(collection: Collection) -> None:
    """The answer that was asked for or opened, if any."""
    if said := answer_state.take_said():
        draw.notice(said, "error")
    on_show, place = answer_state.opened(collection)
    if not on_show:
        if answer_state.running(collection):
            draw.text("Another question to this collection is being answered.", "rs-quiet")
        return
    if place is not None:
        answer = AnswerStore(collection.folder).get(place)
        if answer is not None and _seen(collection)(answer):
            _final(collection, answer)
        return
    job = answer_state.job(collection)
    if job is None:
        return
    if job.running:
        # Redrawn by itself; whatever else is touched on the page cuts nothing.
        st.fragment(partial(_growing, collection, job), run_every=_LOOK)()
    elif job.error is not None:
        if job.answer is not None:
            _final(collection, job.answer)
        draw.notice(
            f"{sentence(str(job.error))} Nothing is lost: the question can be asked again.", "error"
        )
    elif job.answer is not None:
        _final(collection, job.answer)


def _growing(collection: Collection, job: AnswerJob) -> None:
    if not job.running:
        st.rerun()
    _heading(job.inquiry.question)
    seconds = int(time.monotonic() - job.started)
    noun = "passage" if job.inquiry.path == "passages" else "document"
    what = counted(len(job.inquiry.sources), noun)
    with st.container(horizontal=True, vertical_alignment="center", key="answer_running"):
        doing = "Stopping" if job.stopping else "Writing" if job.answer else f"Reading {what}"
        draw.text(f"{doing} · {job.inquiry.model} · {seconds} s", "rs-quiet")
        st.button(
            "Stop",
            key="answer_stop",
            on_click=job.stop,
            disabled=job.stopping,
            help="What has come is kept; what the model has read and written so far is paid",
        )
    if job.answer is not None:
        draw_answer(job.answer, _find(collection), state.document_link, "…")


def _final(collection: Collection, answer: Answer) -> None:
    _heading(answer.question)
    if answer.not_found:
        draw.notice(
            "The model did not find the answer in what it was given."
            + (" More passages, or all documents, may hold it." if answer.path == "passages" else ""),
            "info",
        )
    if answer.parts:
        draw_answer(answer, _find(collection), state.document_link)
    if answer.note:
        draw.notice(sentence(answer.note), "warning")
    draw.text(_facts(answer), "rs-quiet")
    _sent(collection, answer)


def _heading(question: str) -> None:
    """The question, where it is not the one in the box above."""
    if question == state.query().strip():
        return
    with st.container(key="answer_heading"):
        draw.text(question, "rs-answer-question")


def _facts(answer: Answer) -> str:
    """One line: what it took."""
    used = answer.usage
    facts = [answer.model]
    if used.prompt or used.output:
        cached = f" ({used.cache_read:,} from the cache)" if used.cache_read else ""
        written = used.cache_write + used.cache_write_1h
        cached += f" ({written:,} written to the cache)" if written else ""
        facts += [
            f"{used.prompt:,} tokens read{cached}",
            f"{used.output:,} written",
            dollars(answer.dollars),
        ]
    else:
        facts.append("cost unknown, as the stream ended before it was told")
    if answer.expected is not None:
        facts.append(f"estimated {dollars(answer.expected)}")
    facts.append(f"{answer.seconds:.1f} s")
    return " · ".join(facts)


def _sent(collection: Collection, answer: Answer) -> None:
    """What was sent, for the one who wants to know; drawn when it is unfolded."""
    noun = "passage" if answer.path == "passages" else "document"
    cited: dict[int, list[int]] = {}
    spans = numbered(answer)
    for part in answer.parts:
        for one in part.cited:
            number = spans[span_of(answer, one)][0]
            if number not in cited.setdefault(one.source, []):
                cited[one.source].append(number)
    with st.container(horizontal=True, vertical_alignment="top", key="answer_below"):
        place = st.expander(
            f"What was sent: {counted(len(answer.sources), noun)}", key="answer_sent", on_change="rerun"
        )
        st.download_button(
            "Save as text",
            partial(_export, answer),
            file_name="answer.txt",
            mime="text/plain",
            key="answer_text",
            icon=":material/download:",
            on_click="ignore",
            help="The question, the answer and what it cites, as plain text",
        )
    if not place.open:
        return
    with place:
        rows = []
        for at, source in enumerate(answer.sources):
            numbers = " ".join(f"[{n}]" for n in cited.get(at, []))
            rows.append((at + 1, source.title, f"{source.start:,}–{source.end:,}", numbers or "–"))
        rank = "Rank" if answer.path == "passages" else "No."
        draw.table((rank, "Title", "Characters", "Cited as"), rows, numeric=(0, 2))
        chosen = st.selectbox(
            f"Text of {noun}",
            range(len(answer.sources)),
            key="answer_sent_source",
            format_func=lambda at: f"{at + 1}",
            width=200,
        )
        with st.container(height=260, key="answer_sent_text"):
            draw.text(_source_text(_find(collection), answer, chosen or 0), "rs-source")
        draw.text("Instructions to the model, the same for every question", "rs-subhead")
        draw.text(SYSTEM, "rs-source")


def _export(answer: Answer) -> str:
    return f"{answer.question}\n\n{as_text(answer)}\n"


def _source_text(find: Callable[[str], Document | None], answer: Answer, at: int) -> str:
    source = answer.sources[at]
    document = find(source.document)
    text = encodable(document.text) if document else ""
    if text_hash(text) != source.digest:
        return "The document was removed or replaced since."
    return text[source.start : source.end]


def _find(collection: Collection) -> Callable[[str], Document | None]:
    documents = documents_of(collection)
    places = {one: at for at, one in enumerate(documents.ids)}

    def find(document_id: str) -> Document | None:
        try:
            return documents[places[document_id]]
        except (KeyError, RankscopeError):
            return None

    return find


def _seen(collection: Collection) -> Callable[[Answer], bool]:
    """Whether an answer may be shown: who does not see all sees what they asked themselves, and of that what is
    made of nothing but what is theirs to see."""
    asker = answer_state.asker()
    if asker is None:
        return lambda answer: True
    ids = frozenset(documents_of(collection).ids)
    return lambda answer: answer.asker == asker and all(one.document in ids for one in answer.sources)


def earlier(collection: Collection) -> None:
    """The answers kept for this collection: opening one sends nothing."""
    latest = AnswerStore(collection.folder).latest(_LISTED, answer_state.asker())
    kept = [*filter(_seen(collection), latest)]
    if not kept:
        return
    with st.expander(f"Earlier answers ({len(kept)})", key="answer_earlier"):
        for answer in kept:
            with st.container(
                horizontal=True, vertical_alignment="center", gap="small", key=f"answer_row_{answer.id}"
            ):
                st.html(
                    f'<div class="rs-answer-row">{escape(answer.question)}'
                    f'<div class="rs-quiet">{escape(_summary(answer))}</div></div>'
                )
                st.button(
                    "Open",
                    key=f"answer_open_{answer.id}",
                    on_click=answer_state.open_answer,
                    args=(collection, answer.id),
                )
                if people.may_manage():
                    st.button(
                        "",
                        key=f"answer_delete_{answer.id}",
                        type="tertiary",
                        icon=":material/delete:",
                        help="Delete this answer",
                        on_click=_delete,
                        args=(collection, answer.id),
                    )


def _summary(answer: Answer) -> str:
    source = "all documents" if answer.path == "base" else counted(len(answer.sources), "passage")
    state_of = "not found" if answer.not_found else "" if answer.state == "whole" else answer.state
    cost = dollars(answer.dollars) if answer.usage.prompt else "cost unknown"
    facts = [answer.at[:16].replace("T", " "), answer.model, source, cost, state_of]
    return " · ".join(filter(None, facts))


def _delete(collection: Collection, place: int) -> None:
    try:
        AnswerStore(collection.folder).forget(place)
    except RankscopeError as error:
        answer_state.say(str(error))
