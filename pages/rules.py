"""Rules: which items a query boosts, buries, pins, hides or keeps to, as a table and as TOML, tried before they are saved."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from core.errors import RankscopeError
from pages.ui import draw, people, state
from pages.ui.beginning import for_administrators, indexed, no_documents
from pages.ui.frame import frame
from pages.ui.rules_draft import draft_of
from pages.ui.rules_editor import editor, help_on_rules
from pages.ui.rules_try import trial

_CSS = (Path(__file__).parent / "ui" / "rules.css").read_text(encoding="utf-8")


def main() -> None:
    frame("rules")
    st.html(f"<style>{_CSS}</style>")
    collection = state.collection()
    if for_administrators("Rules are"):
        return
    if not collection.files():
        no_documents(collection, "write rules for them here")
        return
    if not people.may_manage():  # rules name documents that not everybody may know of
        draw.notice(
            "Rules are written by who manages the documents; you see what they make of a search.", "info"
        )
        return
    draft = draft_of(collection)
    corpus, indexing = indexed(collection)
    draw.text(
        "Rules act on the ranking of items, for everybody who searches this collection: first hide and only take items "
        "out, then boosts and buries add up, then pins take their ranks. Where two rules want the same, the earlier one "
        "has it, and the trace says so.",
        "rs-lead",
    )
    editor(collection, draft, corpus)
    help_on_rules(corpus)
    trial(collection, draft, corpus)
    if indexing is not None:
        indexing()  # last, so that the page is whole while it runs


try:
    main()
except RankscopeError as error:
    draw.notice(str(error), "error")
