"""The stages of a trace side by side: one component, drawn in the browser from plain rows.

The script only ever sets `textContent`, so text of documents stays text.
"""

from __future__ import annotations

from collections.abc import Callable
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
    selected: str | None,
    on_select: Callable[[str | None], None],
    on_more: Callable[[], None],
) -> None:
    """Draw the strip and the columns of `core.report.tables`.

    `selected` and what `on_select` hears are the id of a chunk, or of an item for all its chunks (None:
    the selection was taken back); `on_more` hears that longer columns are wanted.
    """

    def picked() -> None:
        on_select(st.session_state[KEY]["select"]["id"])

    _component(
        key=KEY,
        data={"strip": strip, "columns": columns, "selected": selected},
        on_select_change=picked,
        on_more_change=on_more,
    )
