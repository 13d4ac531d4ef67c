"""Why is this chunk here, or where was it lost: the sentence, the journey, the arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from itertools import islice

import streamlit as st

from core.explanation import Explanation, explain, number, stage_title
from core.report.tables import Reader, chunk_hue, chunk_label
from core.trace import Trace
from pages.ui import draw, state

CHUNKS_PAGE = "pages/chunks.py"
_LISTED = 300  # documents in one list: more makes a browser slow


def why(trace: Trace, reader: Reader, position: int, open_page: bool) -> None:
    """The explanation of one chunk. `open_page`: whether there is a page that opens documents."""
    found = explain(trace, position)
    chunk = reader.chunk(position)
    with st.container(horizontal=True, vertical_alignment="center", key="why_head"):
        where = " › ".join(dict.fromkeys([chunk["title"], *chunk["path"]]))
        st.html(
            f'<div class="rs-why-title">{draw.chip(chunk["label"], chunk["hue"])} {escape(where)}'
            f'<span class="rs-quiet"> · characters {chunk["start"]:,}–{chunk["end"]:,}</span></div>'
        )
        if open_page:
            st.page_link(
                CHUNKS_PAGE,
                label="Open in document",
                icon=":material/open_in_new:",
                query_params=state.document_link(chunk["document"], chunk["start"], chunk["end"]),
                width="content",
            )
    draw.text(found.sentence, "rs-why-sentence")
    _journey(found)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        _terms(found, trace)
    with right:
        _passage(trace, found)
        draw.text("Text", "rs-subhead")
        with st.container(height=190, key="why_text"):
            draw.text(trace.corpus.chunk(position).text, "rs-source")


def _journey(found: Explanation) -> None:
    rows = []
    for step in found.steps:
        if not step.on:
            rows.append((step.title, "off", "", "", step.note))
            continue
        place = f"{step.rank:,} of {step.count:,}" if step.rank else "—"
        told = step.arithmetic if step.rank else f"✕ {step.lost}" if step.lost else step.note
        rows.append((step.title, place, "" if step.score is None else number(step.score), "", told))
    draw.table(
        ("Stage", "Rank", "Score", "How"), [(a, b, c, e) for a, b, c, _, e in rows], numeric=(1, 2)
    )


def _terms(found: Explanation, trace: Trace) -> None:
    for name, terms in found.terms.items():
        draw.text(f"{stage_title(name)}: term by term", "rs-subhead")
        rows = [
            (
                term.term + (f" ×{term.count_in_query}" if term.count_in_query > 1 else ""),
                term.tf,
                f"{term.df:,}",
                number(term.idf),
                number(term.length_norm),
                number(term.contribution),
            )
            for term in terms
        ]
        total = number(sum(term.contribution for term in terms))
        draw.table(
            ("Term", "tf", "df", "idf", "length norm", "contribution"),
            [*rows, ("Sum", "", "", "", "", total)],
            numeric=(1, 2, 3, 4, 5),
        )
        if name == "bm25":
            used = trace.settings
            draw.text(
                f"{used.bm25_variant}, k1 {used.bm25_k1:g}, b {used.bm25_b:g}. tf: how often the chunk "
                f"holds the term; df: in how many of {len(trace.corpus):,} chunks it is.",
                "rs-quiet",
            )
    if found.similarity is not None:
        draw.text(f"Vector: the cosine of query and chunk is {number(found.similarity)}.")
    else:
        draw.text("Vector: no cosine on record, the vector search did not reach this chunk.", "rs-quiet")


def _passage(trace: Trace, found: Explanation) -> None:
    draw.text("Merge", "rs-subhead")
    passage = found.passage
    if passage is None:
        draw.text("It is in no passage: chunks that are not kept are not merged.")
        return
    joined = len(passage.members)
    gaps = ", ".join(f"{start:,}–{end:,} ({end - start:,})" for start, end in passage.gaps) or "none"
    draw.table(
        ("Passage", str(found.passage_rank)),
        [
            ("Characters", f"{passage.start:,}–{passage.end:,} ({passage.end - passage.start:,})"),
            ("Members", ", ".join(chunk_label(trace.corpus, member) for member in passage.members)),
            ("Gaps filled", gaps),
            (
                "Score",
                f"{number(passage.score)} of {chunk_label(trace.corpus, passage.best)}, the best member",
            ),
        ]
        if joined > 1
        else [
            ("Characters", f"{passage.start:,}–{passage.end:,}"),
            ("Members", "this chunk alone"),
            ("Score", number(passage.score)),
        ],
    )


def chunk_picker(trace: Trace, reader: Reader, select: Callable[[str], None]) -> None:
    """Choose any chunk of the corpus, in the result or not: by document, then by number."""
    corpus = trace.corpus
    items: Sequence[int] = range(len(corpus.item_ids))
    if len(items) > _LISTED:
        named = st.text_input(
            "Document name",
            key="pick_name",
            placeholder="Any chunk: type a part of its document's name …",
        ).casefold()
        found = (
            at
            for at in items
            if named in f"{corpus.item_titles[at]}\n{corpus.item_names[at]}".casefold()
        )
        items = list(islice(found, _LISTED))
    chosen = st.selectbox(
        "Document",
        items,
        format_func=lambda item: f"{reader.item(item)['label']} · {reader.item(item)['title']}",
        key="pick_item",
        index=None,
        placeholder="Any chunk: choose its document …",
        label_visibility="collapsed",
    )
    if chosen is None:
        return
    first = int(corpus.item_of.searchsorted(chosen))
    stop = int(corpus.item_of.searchsorted(chosen, side="right"))
    if first == stop:
        st.caption("This document has no chunks.")
        return
    number_of = st.number_input(
        f"Chunk of this document, 1 to {stop - first:,}", 1, stop - first, key=f"pick_chunk_{chosen}"
    )
    position = first + int(number_of) - 1
    st.html(
        f'<p class="rs-quiet">{draw.chip(chunk_label(corpus, position), chunk_hue(position))} '
        f"{escape(corpus.chunk(position).text[:160])}</p>"
    )
    st.button("Explain this chunk", key="pick_go", on_click=select, args=(corpus.chunk_id(position),))
