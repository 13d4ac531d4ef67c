"""Texts from documents and files, shown letter by letter: never as Markdown, HTML or a formula."""

from __future__ import annotations

import html
import re

import streamlit as st

_BACKTICKS = re.compile("`+")
_TONES = {
    "error": ("red", "alert"),
    "warning": ("yellow", "status"),
    "info": ("blue", "status"),
    "success": ("green", "status"),
}


def plain(text: str) -> str:
    """Markdown that shows the text as it is, on one line: a code span.

    A code span and not escapes: emoji names, arrows and dashes are replaced in Markdown text even
    where their signs are escaped.
    """
    shown = " ".join(text.split()) or " "
    fence = "`" * (max((len(run) for run in _BACKTICKS.findall(shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def notice(tone: str, text: str) -> None:
    """A message that may hold a file's name or text: like `st.error` and its kin, without Markdown.

    `tone` is error, warning, info or success; line breaks are kept.
    """
    colour, role = _TONES[tone]
    st.html(
        f'<div role="{role}" class="notice-{tone}" style="white-space:pre-wrap;overflow-wrap:anywhere;'
        f"padding:.6rem .8rem;border-radius:.5rem;border-left:4px solid var(--st-{colour}-color);"
        f'background:var(--st-{colour}-background-color)">{html.escape(text)}</div>'
    )
