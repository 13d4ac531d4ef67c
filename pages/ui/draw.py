"""Small pieces of HTML in which every text is escaped: documents are shown letter by letter."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, Literal

import streamlit as st


def text(value: str, css_class: str = "rs-text") -> None:
    """A paragraph of plain text."""
    st.html(f'<p class="{css_class}">{escape(value)}</p>')


def notice(value: str, kind: Literal["info", "warning", "error"]) -> None:
    """A message in a box, as plain text."""
    role = "status" if kind == "info" else "alert"
    st.html(f'<div class="rs-notice rs-{kind}" role="{role}">{escape(value)}</div>')


def chip(label: str, hue: float) -> str:
    """A chunk's colour chip, as in the columns."""
    return f'<span class="rs-chip" style="--hue:{float(hue)}">{escape(label)}</span>'


def table(headers: Sequence[str], rows: Sequence[Sequence[Any]], numeric: Sequence[int] = ()) -> None:
    """A table of plain texts; `numeric` names the columns that stand to the right."""

    def cells(tag: str, row: Sequence[Any]) -> str:
        return "".join(
            f'<{tag} class="{"rs-num" if at in numeric else ""}">{escape(str(cell))}</{tag}>'
            for at, cell in enumerate(row)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    st.html(
        f'<div class="rs-scroll"><table class="rs-table"><thead><tr>{cells("th", headers)}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
