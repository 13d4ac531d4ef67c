"""Pieces of HTML of the Context page; every text in them is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import streamlit as st


def facts(pairs: Sequence[tuple[str, str]], testid: str = "") -> None:
    """A line of figures, each (figure, what it counts)."""
    lines = "".join(f"<div><b>{escape(n)}</b> <span>{escape(what)}</span></div>" for n, what in pairs)
    st.html(f'<div class="rs-facts" data-testid="{escape(testid)}">{lines}</div>')


def badge(text: str, kind: str = "") -> str:
    """A short mark; `kind` is blank, "ok" or "bad"."""
    return f'<span class="rs-badge {kind}">{escape(text)}</span>'


def terms(found: Sequence[str], asked: frozenset[str], most: int = 14) -> str:
    """Index terms, those that the query asks for first and outlined."""
    ordered = sorted(found, key=lambda term: term not in asked)
    shown = "".join(
        f'<span class="term{" hit" if term in asked else ""}">{escape(term)}</span>'
        for term in ordered[:most]
    )
    more = f'<span class="more">and {len(found) - most:,} more</span>' if len(found) > most else ""
    return f'<div class="rs-terms"><span class="more">new index terms</span>{shown}{more}</div>'


def move(before: int | None, after: int | None) -> str:
    """A rank without and with contexts, and what became of it."""
    if before is None and after is None:
        return '<span class="same">— → —</span>'
    left = "—" if before is None else f"{before:,}"
    right = "—" if after is None else f"{after:,}"
    if before == after:
        return f'<span class="same">{left} → {right}</span>'
    if after is not None and (before is None or after < before):
        gained = "" if before is None else f"{before - after:,}"
        return f'{left} → <span class="up">{right} ▲{gained}</span>'
    lost = f"{after - before:,}" if after is not None and before is not None else ""
    return f'{left} → <span class="down">{right} ▼{lost}</span>'
