"""Why is this chunk here, or where was it lost: the sentence, the journey, the arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import streamlit as st

from core.explanation import Explanation, explain, number, stage_title
from core.report.find import around, chunks_of_item
from core.report.marks import Marks
from core.report.tables import Reader, chunk_label, flow_rows
from core.trace import Trace
from pages.ui import draw, links, state
from pages.ui.judging import evidence_box
from pages.ui.plain import counted

_LISTED = 12  # chunks in one list


def why(trace: Trace, reader: Reader, marks: Marks, position: int) -> None:
    """The explanation of one chunk."""
    found = explain(trace, position)
    chunk = reader.chunk(position)
    with st.container(horizontal=True, vertical_alignment="center", key="why_head"):
        where = " › ".join(dict.fromkeys([chunk["title"], *chunk["path"]]))
        st.html(
            f'<div class="rs-why-title">{draw.chip(chunk["label"], chunk["hue"])} {escape(where)}'
            f'<span class="rs-quiet"> · characters {chunk["start"]:,}–{chunk["end"]:,}</span></div>'
        )
        links.open_document("Open in document", chunk["document"], chunk["start"], chunk["end"])
    draw.text(found.sentence, "rs-why-sentence")
    evidence_box(
        trace, marks, position
    )  # above the arithmetic: words are selected more often than sums read
    _journey(found)
    left, right = st.columns([3, 2], gap="medium")
    with left:
        _terms(found, trace)
    with right:
        _passage(trace, found)
        read = trace.corpus.chunk(position)
        if read.context:
            draw.text("Context", "rs-subhead")
            draw.text(read.context, "rs-source")


def _journey(found: Explanation) -> None:
    rows = []
    for step in found.steps:
        if not step.on:
            rows.append((step.title, "off", "", step.note))
            continue
        place = f"{step.rank:,} of {step.count:,}" if step.rank else "—"
        told = step.arithmetic if step.rank else f"✕ {step.lost}" if step.lost else step.note
        rows.append((step.title, place, "" if step.score is None else number(step.score), told))
    draw.table(("Stage", "Rank", "Score", "How"), rows, numeric=(1, 2))


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
        total = number(math.fsum(term.contribution for term in terms))
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


def chunk_search(trace: Trace) -> bool:
    """Find any chunk by its words; whether something is asked for, which is then listed."""
    words = st.text_input(
        "Find any chunk, in the result or not",
        key=state.PICK_BOX,
        placeholder="Find any chunk, in the result or not: its words, its document's name, or its label, "
        "such as B4",
        label_visibility="collapsed",
        help="Chunks that hold every word, in letters as written but for case. Choose one to see why it "
        "is in the result, or at which stage it was lost.",
    )
    if not words.strip():
        return False
    found = state.found_chunks(trace.corpus, words)
    if not found:
        draw.text("No chunk holds all these words.", "rs-quiet")
    _chunk_list(trace, found, words)
    return True


def item_chunks(trace: Trace, reader: Reader, item: int) -> None:
    """An item, and what became of each of its chunks."""
    facts = reader.item(item)
    listed = trace.stage("items")
    place = listed.ranking.positions.tolist()
    draw.text(f"{facts['label']} {facts['title']}", "rs-why-title")
    if item in place:
        draw.text(
            f"This item is {place.index(item) + 1:,} of {len(place):,}. Its chunks, in the order of its text:",
            "rs-why-sentence",
        )
    else:
        draw.text(f"This item does not go on to stage two: {_why_not(trace, item)}.")
    _chunk_list(trace, chunks_of_item(trace.corpus, item), trace.query)


def _why_not(trace: Trace, item: int) -> str:
    listed, passing = trace.stage("items"), trace.record.passing
    if passing is not None and not passing[item]:
        return f"the filters keep it out ({trace.settings.filters})"
    return listed.removed.get(item) or (not listed.on and listed.note) or "others rank above it"


def _chunk_list(trace: Trace, positions: Sequence[int], words: str) -> None:
    """Chunks with a button each to explain it, and what became of it."""
    for row in flow_rows(trace, positions[:_LISTED]):
        position = row["position"]
        rank, lost = row["ranks"].get("passages"), row["lost"]
        fate = (
            f"in passage {rank:,}"
            if rank
            else f"lost at {stage_title(lost)}"
            if lost
            else "in no index's list"
        )
        title = trace.corpus.item_titles[trace.corpus.item_of[position]]
        with st.container(
            horizontal=True, vertical_alignment="center", gap="small", key=f"pick_row_{position}"
        ):
            st.button(
                chunk_label(trace.corpus, position),
                key=f"pick_{position}",
                help="Why is it here, or where was it lost?",
                on_click=state.select,
                args=(trace.corpus.chunk_id(position),),
            )
            piece = around(trace.corpus.chunk(position).text, words)
            st.html(
                f'<div class="rs-pick"><b>{escape(title)}</b> {escape(piece)} '
                f'<span class="rs-quiet">· {escape(fate)}</span></div>'
            )
    if len(positions) > _LISTED:
        more = len(positions) - _LISTED
        draw.text(f"{counted(more, 'more chunk')} not listed: more words find fewer.", "rs-quiet")
