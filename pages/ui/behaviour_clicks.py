"""What clicks would rank for a query, item by item, with what moves nothing and why."""

from __future__ import annotations

import streamlit as st

from core.behaviour.clicks import ETA, HALF_LIFE, PEOPLE, QUANTILE, SIMILAR, Evidence
from core.corpus import Corpus
from core.pipeline.further import click_signal
from core.report.tables import item_label
from pages.ui import draw, state

_SHOWN = 20


def clicks_for(corpus: Corpus) -> None:
    """A query, and the evidence on each item that was clicked for it or one like it."""
    query = st.text_input(
        "Query", state.query(), key="behaviour_query", placeholder="A query, as people ask it"
    )
    if not query.strip():
        return
    signal = click_signal(corpus)
    found, ranking = signal.evidence(query), signal.rank(query)
    if not found:
        draw.text("Nobody clicked anything for this query or one like it.", "rs-quiet")
        return
    ranks = {position: rank for rank, position in enumerate(ranking.positions.tolist(), 1)}
    order = sorted(found, key=lambda item: (ranks.get(item, len(found) + 1), -found[item].clicked))
    rows = [_row(corpus, item, found[item], ranks.get(item)) for item in order[:_SHOWN]]
    draw.table(
        ("Rank", "Item", "What it makes", "Clicked", "Shown", "Usual here", "At least", "On average"),
        rows, numeric=(0, 3, 4, 5, 6, 7),
    )  # fmt: skip
    draw.text(
        f"People, each counted once for a query and an item. Usual here: clicks to expect at the ranks it had. At "
        f"least: its click rate once examined, position-corrected (examination falls as rank^−{ETA:g} where the log does "
        f"not say otherwise), with {1 - QUANTILE:.0%} certainty; it ranks when that is above the average, and {PEOPLE} people clicked. "
        f"Queries count as similar from a similarity of {SIMILAR:g}, where unrelated ones have 0; after {HALF_LIFE:g} days an event counts half.",
        "rs-quiet",
    )


def _row(corpus: Corpus, item: int, one: Evidence, rank: int | None) -> tuple[str, ...]:
    if rank is not None:
        why = f"scores {one.gamma / one.mean:.2f}"
    elif one.clicked < PEOPLE:
        why = "too few people: nobody moves a result alone"
    else:
        why = "no more than its ranks explain"
    title = corpus.item_titles[item] or corpus.item_names[item]
    return (
        str(rank or "–"), f"{item_label(item)} {title}", why, f"{one.clicked:,}", f"{one.shown:,}", f"{one.usual:.1f}",
        f"{one.gamma:.2f}", f"{one.mean:.2f}",
    )  # fmt: skip
