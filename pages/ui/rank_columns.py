"""The stages of a trace side by side: one component, drawn in the browser from plain rows.

The script only ever sets `textContent`, so text of documents stays text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

_HERE = Path(__file__).parent
_component = st.components.v2.component(
    "rankscope_rank_columns",
    html='<div class="root"></div>',
    css=(_HERE / "rank_columns.css").read_text(encoding="utf-8"),
    js=(_HERE / "rank_columns.js").read_text(encoding="utf-8"),
)
KEY = "rank_columns"


def rank_columns(
    strip: list[dict[str, Any]],
    columns: list[dict[str, Any]],
    judged: dict[str, Any],
    selected: str | None,
    on_select: Callable[[str | None], None],
    on_more: Callable[[], None],
    on_judge: Callable[[str, int | None, Sequence[int | None]], None],
    on_none: Callable[[bool], None],
    on_copy: Callable[[str], None] | None = None,
) -> None:
    """Draw the strip, the line of what is judged and the columns, as `core.report` makes them.

    `selected` and what `on_select` hears are the id of a chunk, or of an item for all its chunks (None:
    the selection was taken back); `on_more` hears that longer columns are wanted, `on_judge` a chunk's id,
    its new grade (None: taken back) and the grades that the browser knew of, `on_none` whether the documents are said not to answer the query.
    A line with a `copy` has a button that copies this text; `on_copy`, where that is wanted, hears its id.
    """

    def picked() -> None:
        on_select(st.session_state[KEY]["select"]["id"])

    def thumbed() -> None:
        # All thumbs that were not drawn yet: of two quick ones, the browser may send the last only.
        for one in st.session_state[KEY]["judge"]["all"]:
            on_judge(one["id"], one["grade"], one["seen"])

    def said_none() -> None:
        on_none(bool(st.session_state[KEY]["none"]["on"]))

    def copied() -> None:
        if on_copy:
            on_copy(st.session_state[KEY]["copy"]["id"])

    _component(
        key=KEY,
        data={
            "strip": strip, "columns": columns, "judged": judged, "selected": selected,
            "tell_copies": on_copy is not None,
        },
        on_select_change=picked,
        on_more_change=on_more,
        on_judge_change=thumbed,
        on_none_change=said_none,
        on_copy_change=copied,
    )  # fmt: skip
