"""An answer with its citations: one component, drawn in the browser from plain rows.

The script only ever sets `textContent`, so what a model or a document says stays text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from core.answering import Answer, Cited, Part, numbered
from core.answering.answer import span_of
from core.types import Document, encodable, text_hash

AROUND = 3_000
"""Characters of a source shown before and after what is cited: a whole document may be very long."""

_ITEM = re.compile(r"\s*([-*•]|\d{1,3}[.)])\s+")
_HERE = Path(__file__).parent
_component = st.components.v2.component(
    "rankscope_answer",
    html='<div class="root"><div class="body"></div><div class="side"></div></div>',
    css=(_HERE / "answer_view.css").read_text(encoding="utf-8"),
    js=(_HERE / "answer_view.js").read_text(encoding="utf-8"),
)

Find = Callable[[str], Document | None]
Link = Callable[[str, int, int], dict[str, str]]


def draw_answer(answer: Answer, find: Find, link: Link, waiting: str = "") -> None:
    """Draw the answer. `find` gives a document by its id, `link` the parameters that open it at a span;
    `waiting` is what stands there while nothing has come yet, blank when the answer is final."""
    numbers = numbered(answer)
    _component(
        key="answer_view",
        data={
            "id": answer.id,
            "busy": bool(waiting),
            "waiting": waiting,
            "lines": lines(answer.parts, lambda one: numbers[span_of(answer, one)][0]),
            "cited": [cited_row(answer, number, one, find, link) for number, one in numbers.values()],
        },
    )


def lines(parts: tuple[Part, ...], number: Callable[[Cited], int]) -> list[dict[str, Any]]:
    """The answer's lines: paragraphs ("text") and list items ("item", with their bullet).

    A part is a text, the numbers cited for it, and `marks`, those that stand after it: the marks of a
    part that runs over several lines stand at its end.
    """
    made: list[dict[str, Any]] = []
    row: list[dict[str, Any]] = []

    def close() -> None:
        kind, bullet = "text", ""
        if row and (item := _ITEM.match(row[0]["text"])):
            kind, bullet = "item", item[1] if item[1][0].isdigit() else "•"
            row[0]["text"] = row[0]["text"][item.end() :]
        if any(part["text"].strip() or part["marks"] for part in row):
            made.append({"kind": kind, "bullet": bullet, "parts": list(row)})
        row.clear()

    for part in parts:
        cited = sorted({number(one) for one in part.cited})
        pieces = part.text.split("\n")
        # Marks stand behind words: not alone in a line of their own.
        last = max((at for at, piece in enumerate(pieces) if piece.strip()), default=0)
        for at, piece in enumerate(pieces):
            if at:
                close()
            marks = cited if at == last else []
            if piece or marks:
                row.append({"text": piece, "cited": cited, "marks": marks})
    close()
    return made


def cited_row(answer: Answer, number: int, cited: Cited, find: Find, link: Link) -> dict[str, Any]:
    """What is shown when a citation is opened: its text where it stands in the source."""
    source = answer.sources[cited.source]
    place = f"characters {cited.start:,}–{cited.end:,}"
    if answer.path == "passages":
        place = f"Passage {cited.source + 1} · {place}"
    row = {
        "number": number,
        "title": source.title,
        "where": place[:1].upper() + place[1:],
        "text": cited.text,
        "before": "",
        "after": "",
        "href": "",
        "note": "",
    }
    document = find(source.document)
    text = encodable(document.text) if document else ""
    if text_hash(text) != source.digest:
        row["note"] = "The document was removed or replaced since: this is what was cited."
        return row
    start, end = max(source.start, cited.start - AROUND), min(source.end, cited.end + AROUND)
    row["before"] = ("… " if start > source.start else "") + text[start : cited.start]
    row["after"] = text[cited.end : end] + (" …" if end < source.end else "")
    # Beside this page, and at the same depth below wherever the app is served.
    row["href"] = "chunks?" + urlencode(link(source.document, cited.start, cited.end))
    return row
