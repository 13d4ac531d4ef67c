"""Figures of an evaluation on the page, with their words for those who do not see them."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.report.evaluation_figures import Drawing

_QUIET = {"displayModeBar": False}


def chart(drawing: Drawing, key: str, **selecting: Any) -> None:
    """Draw a figure; `selecting` are the arguments of `plotly_chart` for clicks."""
    st.plotly_chart(
        drawing.figure, key=key, alt=drawing.text, config=_QUIET, width="stretch", **selecting
    )


def clicked(key: str) -> Any:
    """What the point clicked last in the figure stands for (its `customdata`); None without one."""
    points = (st.session_state.get(key) or {}).get("selection", {}).get("points", [])
    found = points[0].get("customdata") if points else None
    return found[0] if isinstance(found, list) and found else found
