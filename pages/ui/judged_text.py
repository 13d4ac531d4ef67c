"""A chunk's text in which words are selected and kept as evidence, and judged spans are marked.

The script only ever sets `textContent`, so text of documents stays text. It is no island of styles:
what is selected inside one cannot be read in every browser.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from core.evaluation import Evidence

_HERE = Path(__file__).parent
_component = st.components.v2.component(
    "rankscope_judged_text",
    html='<div class="rs-judged-text"></div>',
    css=(_HERE / "judged_text.css").read_text(encoding="utf-8"),
    js=(_HERE / "judged_text.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)
KEY = "judged_text"


def judged_text(
    text: str,
    start: int,
    judged: Sequence[Evidence],
    on_answer: Callable[[int, int], None],
    on_take_back: Callable[[int, int], None],
) -> None:
    """Draw the text, which begins at `start` of its document. `on_answer` hears the span of the document
    that was selected as an answer, `on_take_back` that of one of the `judged` which is one no more."""

    def answered() -> None:
        on_answer(*_span("answer"))

    def taken_back() -> None:
        on_take_back(*_span("back"))

    _component(
        key=KEY,
        data={"text": text, "start": start, "judged": rows(judged)},
        on_answer_change=answered,
        on_back_change=taken_back,
    )


def rows(judged: Sequence[Evidence]) -> list[dict[str, Any]]:
    """What the component draws of judgements: places in the document, in characters."""
    return [{"start": one.start, "end": one.end, "golden": one.grade > 0} for one in judged]


def _span(event: str) -> tuple[int, int]:
    given = st.session_state[KEY][event]
    return int(given["start"]), int(given["end"])
