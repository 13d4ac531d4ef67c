"""The two ways to ask, with their costs beside each other, before anything is sent."""

from __future__ import annotations

from html import escape

import streamlit as st

from core.answering import (
    OUTPUT,
    Answer,
    AnswerJob,
    AnswerStore,
    Estimate,
    Inquiry,
    estimate,
    request,
    rough_prompt,
)
from core.collection import Collection
from core.errors import RankscopeError
from core.llm import Claude
from pages.ui import answer_state, draw, people
from pages.ui.plain import counted
from pages.ui.prices import dollars, prices


def offers(collection: Collection, passages: Inquiry | None, base: Inquiry | None, no_key: bool) -> None:
    """Both ways side by side; `passages` is None without an index, `base` where it is too large."""
    with st.container(key="answer_offers"):
        left, right = st.columns(2, gap="medium", border=True)
        with left:
            _title("From the passages found", passages)
            if passages is None:
                draw.text("Needs the index: the search finds nothing before.", "rs-quiet")
            elif not passages.sources:
                draw.text("The search found no passage for this question. Try other words.", "rs-quiet")
            else:
                _offer(collection, passages, no_key)
        with right:
            _title("From all documents", base)
            if base is None:
                draw.text(
                    "This collection is too large to be sent whole: the limit is 200,000 tokens.",
                    "rs-quiet",
                )
            elif not base.sources:
                draw.text("The documents hold no text.", "rs-quiet")
            else:
                _offer(collection, base, no_key)


def _title(title: str, inquiry: Inquiry | None) -> None:
    count = ""
    if inquiry and inquiry.sources:
        count = counted(len(inquiry.sources), "passage" if inquiry.path == "passages" else "document")
    st.html(
        f'<div class="rs-offer-title">{escape(title)} <span class="rs-quiet">{escape(count)}</span></div>'
    )


def _offer(collection: Collection, inquiry: Inquiry, no_key: bool) -> None:
    store = AnswerStore(collection.folder)
    until = store.warm_until(inquiry.prefix) if inquiry.path == "base" else None
    prompt = _rough(inquiry.prefix, inquiry)
    found = estimate(
        inquiry, prices(), prompt, answer_state.counted_tokens(inquiry.key), until is not None
    )
    stored = store.find(inquiry.key, answer_state.asker())
    _figures(inquiry, found, until is not None)
    if not found.fits:
        draw.text("That is more than may be sent. Choose fewer passages.", "rs-quiet")
        return
    busy = answer_state.running(collection)
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key=f"answer_ask_{inquiry.path}"
    ):
        if stored is not None:
            st.button(
                "Open the stored answer",
                key=f"answer_stored_{inquiry.path}",
                type="primary",
                icon=":material/history:",
                on_click=answer_state.open_answer,
                args=(collection, stored.id),
                help=_stored(stored),
            )
        st.button(
            "Ask again" if stored else "Ask Claude",
            key=f"answer_send_{inquiry.path}",
            type="secondary" if stored or inquiry.path == "base" else "primary",
            icon=":material/send:",
            disabled=no_key or busy,
            on_click=_send,
            args=(collection, inquiry, found.dollars, stored is not None),
            help="Sends the question with all that is counted here to the model",
        )
        if not found.exact:
            st.button(
                "Count exactly",
                key=f"answer_count_{inquiry.path}",
                type="tertiary",
                disabled=no_key,
                on_click=_count,
                args=(inquiry,),
                help="The model's server counts the tokens, free of charge: the text goes there for that",
            )


def _figures(inquiry: Inquiry, found: Estimate, warm: bool) -> None:
    how = "counted" if found.exact else "rough estimate"
    rows = [("To be read", f"{found.tokens:,} tokens", how)]
    if inquiry.path == "passages":
        rows.append(("This question", dollars(found.dollars), f"with an answer of {OUTPUT} tokens"))
    else:
        now, then = ("writes the prompt cache", "reads it from the cache")
        if warm:
            now = "the documents are in the prompt cache"
        if not found.cached:
            now = then = "too short for the prompt cache"
        rows.append(("This question", dollars(found.dollars), now))
        rows.append(("Another within the hour", dollars(found.following), then))
    lines = "".join(
        f'<tr><td>{escape(name)}</td><td class="rs-offer-figure">{escape(figure)}</td>'
        f'<td class="rs-quiet">{escape(note)}</td></tr>'
        for name, figure, note in rows
    )
    st.html(f'<table class="rs-offer">{lines}</table>')


def _stored(answer: Answer) -> str:
    return f"Answered on {answer.at[:16].replace('T', ' ')} UTC for {dollars(answer.dollars)}; opening it is free"


@st.cache_data(show_spinner=False, max_entries=64)
def _rough(prefix: str, _inquiry: Inquiry) -> int:
    return rough_prompt(_inquiry)


def _send(collection: Collection, inquiry: Inquiry, expected: float | None, again: bool) -> None:
    store, user = AnswerStore(collection.folder), people.user()

    def begin() -> AnswerJob:
        return AnswerJob(inquiry, store, Claude(retries=1), prices(), expected, user)

    try:
        stored = (
            None if again else store.find(inquiry.key, answer_state.asker())
        )  # answered since, in another window
        if stored:
            answer_state.open_answer(collection, stored.id)
        else:
            answer_state.follow(collection, begin)
    except RankscopeError as error:
        answer_state.say(str(error))


def _count(inquiry: Inquiry) -> None:
    try:
        client = Claude(retries=1)
        count = client.count_tokens(request(inquiry, client.facts(inquiry.model)))
    except RankscopeError as error:
        answer_state.say(str(error))
    else:
        answer_state.keep_count(inquiry.key, count)
