"""What the rules on the page would do: to one query's items, and to the golden evidence of the judged set."""

from __future__ import annotations

import hashlib
from functools import partial

import streamlit as st

from core.access import AccessError, Viewer, parse_viewer
from core.collection import Collection
from core.corpus import Corpus
from core.errors import RankscopeError
from core.evaluation import GoldenQuery
from core.evaluation.corpora import Telling
from core.report.rules_preview import (
    Change,
    Effect,
    JudgedPreview,
    Preview,
    Touch,
    preview,
    preview_judged,
)
from core.rules import Rules
from core.rules.settling import does
from core.settings import SearchSettings
from pages.ui import draw, evaluate_work, state
from pages.ui.evaluate_work import Finished
from pages.ui.listing import judgements_of
from pages.ui.plain import counted, sentence
from pages.ui.rules_draft import Draft

KIND = "rules"
_ROWS = 60  # items of the preview, and pieces of evidence, that are listed


def trial(collection: Collection, draft: Draft, corpus: Corpus | None) -> None:
    """Both previews, of the rules as they stand on the page."""
    draw.text("Try them before saving", "rs-section")
    rules = draft.rules()
    if corpus is None:
        draw.text("Index the collection above; then the rules can be tried.", "rs-quiet")
        return
    if rules is None:
        draw.text("Mend the problems above; then the rules can be tried.", "rs-quiet")
        return
    with st.container(horizontal=True, vertical_alignment="bottom", key="rules_try_row"):
        if "rules_query" not in st.session_state:
            st.session_state["rules_query"] = state.query()
        query = st.text_input("Query", key="rules_query", placeholder="A query to try the rules on")
        asked = st.text_input(
            "As viewer", key="rules_viewer", placeholder="somebody who sees all",
            help="A user or groups, such as anna@example.org, group:sales; rules for groups hold for them only",
        )  # fmt: skip
    try:
        viewer = parse_viewer(asked) if asked.strip() else None
    except AccessError as error:
        draw.notice(sentence(str(error)), "error")
        return
    settings = state.search_settings()
    if query.strip():
        _one(corpus, rules, query, settings, viewer)
    else:
        draw.text(
            "Type a query to see which items the rules touch, and their ranks before and after.",
            "rs-quiet",
        )
    _judged(collection, corpus, rules, settings, viewer)


def _one(
    corpus: Corpus, rules: Rules, query: str, settings: SearchSettings, viewer: Viewer | None
) -> None:
    key = (corpus.fingerprint, rules.to_toml(), query, settings, viewer)
    held = st.session_state.get("rs_rules_preview")
    if held is None or held[0] != key:
        try:
            with st.spinner("Searching with and without the rules …"):
                held = (key, preview(corpus, rules, query, settings, viewer))
        except RankscopeError as error:
            draw.notice(sentence(str(error)), "error")
            return
        st.session_state["rs_rules_preview"] = held
    found: Preview = held[1]
    for note in found.notes:
        draw.notice(sentence(note), "warning")
    if not found.touches:
        draw.text("There are no rules to try.", "rs-quiet")
        return
    rules_at, items_at = st.columns([2, 3], gap="medium")
    with rules_at:
        draw.table(("Rule", "Does", "About", "For this query"), [_touch(one) for one in found.touches])
    with items_at:
        _moved(found)


def _touch(touch: Touch) -> tuple[str, str, str, str]:
    about = "cannot be told here" if touch.items is None else counted(len(touch.items), "item")
    return touch.rule.name, does(touch.rule), about, touch.rests or "holds"


def _moved(found: Preview) -> None:
    if not found.moved:
        draw.text("No rule touches an item for this query.", "rs-quiet")
        return
    corpus = found.trace.corpus
    rows = [
        (
            f"{row.before:,}" if row.before else "–",
            f"{row.after:,}" if row.after else "out" if row.before else "–",
            _named(corpus.item_titles[row.item], corpus.item_names[row.item]),
            "; ".join(row.said),
        )
        for row in found.moved[:_ROWS]
    ]
    draw.table(("Rank before", "after", "Item", "By"), rows, numeric=(0, 1))
    if len(found.moved) > _ROWS:
        draw.text(f"And {len(found.moved) - _ROWS:,} more items.", "rs-quiet")


def _named(title: str, name: str) -> str:
    return name if not title or title == name else f"{title} · {name}"


def _judged(
    collection: Collection, corpus: Corpus, rules: Rules, settings: SearchSettings, viewer: Viewer | None
) -> None:
    draw.text("Over the judged set", "rs-section")
    judged, _ = judgements_of(collection)
    queries = tuple(query for query in judged.queries if query.answerable)
    if not queries:
        draw.text(
            "No judged query has evidence yet: judge results on the Search page, or load a set on the Evaluate page. Then "
            "rules that cost golden evidence are named here.",
            "rs-quiet",
        )
        return
    stamp = _stamp(corpus, rules, queries, settings, viewer)
    found: Finished[JudgedPreview] | None = evaluate_work.finished(collection, KIND)
    current = found is not None and found.stamp == stamp

    def call(tell: Telling) -> JudgedPreview:
        return preview_judged(corpus, rules, queries, settings, partial(tell, "Trying queries"), viewer)

    if not evaluate_work.running(collection, KIND):
        with st.container(horizontal=True, vertical_alignment="center", key="rules_judged_bar"):
            noun = "judged query" if len(queries) == 1 else "judged queries"
            st.button(
                f"Try over {len(queries):,} {noun}", key="rules_do", icon=":material/monitoring:",
                type="secondary" if current or not rules.rules else "primary", disabled=not rules.rules,
                on_click=evaluate_work.begin, args=(collection, KIND, stamp, call),
                help="Searches every judged query with and without the rules; nothing is paid for it",
            )  # fmt: skip
            if found and not current:
                draw.notice(
                    "Stale: rules, settings, viewer, documents, judgements or recorded behaviour changed since.",
                    "warning",
                )
    evaluate_work.progress(collection, KIND, "try the set again for the rest of it.")
    if found:
        _outcome(found.result)


def _stamp(
    corpus: Corpus,
    rules: Rules,
    queries: tuple[GoldenQuery, ...],
    settings: SearchSettings,
    viewer: Viewer | None,
) -> str:
    facts = (
        corpus.fingerprint,
        rules.to_toml(),
        queries,
        settings.fingerprint(),
        viewer and viewer.label,
    )
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def _outcome(found: JudgedPreview) -> None:
    for note in found.notes:
        draw.notice(sentence(note), "warning")
    draw.text(
        f"recall@{found.k} over {counted(found.queries, 'query').replace('querys', 'queries')}: "
        f"{found.without:.3f} without rules, {found.with_rules:.3f} with all of them.",
        "rs-text",
    )
    costly = [effect for effect in found.effects if effect.lost]
    for effect in costly:
        queries = len({change.query.id for change in effect.lost})
        draw.notice(
            f"{effect.rule.name} ({does(effect.rule)}) costs golden evidence of "
            f"{counted(queries, 'query').replace('querys', 'queries')}.",
            "error",
        )
    draw.table(
        ("Rule, alone", "Holds for", "Lifts", "Costs"),
        [
            (
                effect.rule.name,
                f"{len(effect.queries):,}",
                f"{len(effect.lifted):,}",
                f"{len(effect.lost):,}",
            )
            for effect in found.effects
        ],
        numeric=(1, 2, 3),
    )
    rows = [
        _change(effect, change, found.k)
        for effect in found.effects
        for change in (*effect.lost, *effect.lifted)
    ]
    if rows:
        with st.expander(
            f"The evidence: {counted(len(rows), 'piece')}", expanded=bool(costly), key="rules_evidence"
        ):
            draw.table(
                ("Rule", "Query", "Evidence in", f"In the first {found.k}", "Sent to stage two"),
                rows[:_ROWS],
            )
            if len(rows) > _ROWS:
                draw.text(f"And {len(rows) - _ROWS:,} more.", "rs-quiet")


def _change(effect: Effect, change: Change, k: int) -> tuple[str, ...]:
    def rank(value: int) -> str:
        return f"rank {value}" if value else "no"

    def sent(value: bool) -> str:
        return "yes" if value else "no"

    return (
        effect.rule.name,
        change.query.text,
        change.document,
        f"{rank(change.before)} → {rank(change.after)}",
        f"{sent(change.sent_before)} → {sent(change.sent_after)}",
    )
