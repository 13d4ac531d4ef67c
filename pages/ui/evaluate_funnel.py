"""Funnel: which stage loses golden evidence, how much, and in which queries."""

from __future__ import annotations

import streamlit as st

from core.evaluation.funnel import Bar, Funnel
from core.report.evaluation_figures import ceiling_curve, funnel_bars, percent
from pages.ui import draw, state
from pages.ui.evaluate_bench import Bench, query_link
from pages.ui.evaluate_charts import chart, clicked
from pages.ui.evaluate_measure import bar as measure_bar
from pages.ui.evaluate_measure import ready
from pages.ui.plain import counted, sentence

_CHART = "funnel_chart"
_STAGE = "funnel_stage"
_LISTED = 20


def funnel_tab(bench: Bench) -> None:
    """The bars, the queries of a loss, and the first stage's ceiling."""
    if not ready(bench, "see which stage loses what"):
        return
    found = measure_bar(bench, "Follow the evidence")
    if found is None:
        return
    funnel = found.result.funnel
    _headline(funnel)
    left, right = st.columns([3, 2], gap="large")
    with left:
        draw.text(
            "Golden evidence from stage to stage; beside a bar what is lost there, in per cent and in pieces. Click it to see which.",
            "rs-quiet",
        )
        chart(funnel_bars(funnel), _CHART, on_select=_choose, selection_mode="points")
    with right:
        _losses(bench, funnel)
    _ceiling(funnel)


def _headline(funnel: Funnel) -> None:
    found = funnel.bars[-1].passed_weight
    worst = funnel.worst
    told = f"{percent(found)} of the golden evidence of {_queries(funnel.queries)} is among the first {funnel.k}."
    if worst is not None:
        told += f" The largest loss is at “{worst.title}”: {percent(worst.lost_weight)}."
    draw.text(told, "rs-eval-verdict")
    spans = funnel.spans
    if spans.cut:
        draw.text(
            f"{counted(spans.cut, 'span')} of {spans.located:,} {'is' if spans.cut == 1 else 'are'} cut by "
            f"chunking; the fullest chunk holds {percent(spans.best)} of one on average.",
            "rs-quiet",
        )
    if funnel.regained:
        draw.text(
            f"Merging brings {counted(funnel.regained, 'lost piece')} back into the passages "
            f"({percent(funnel.regained_weight)}).",
            "rs-quiet",
        )


def _queries(number: int) -> str:
    return f"{number:,} {'query' if number == 1 else 'queries'}"


def _choose() -> None:
    stage = clicked(_CHART)
    if stage:
        st.session_state[_STAGE] = stage


def _losses(bench: Bench, funnel: Funnel) -> None:
    losing = [bar for bar in (*funnel.bars, *funnel.indexes) if bar.lost]
    if not losing:
        draw.text("Nothing is lost: every golden piece is among the first results.", "rs-subhead")
        return
    names = [bar.stage for bar in losing]
    worst = funnel.worst
    if st.session_state.get(_STAGE) not in names:
        # A bar that loses nothing was clicked, or nothing yet.
        st.session_state[_STAGE] = worst.stage if worst else names[0]
    titles = {bar.stage: f"{bar.title} · {bar.lost:,}" for bar in losing}
    chosen = st.pills(
        "Losses", names, key=_STAGE, format_func=titles.__getitem__, required=True, wrap=True,
        help="Pieces lost at each stage. An index alone may miss what another finds.",
    )  # fmt: skip
    if chosen:
        _queries_of(bench, funnel, funnel.bar(chosen))


def _queries_of(bench: Bench, funnel: Funnel, bar: Bar) -> None:
    causes = [f"{cause} ({times:,})" for cause, times in bar.causes.items()]
    why = ", ".join(causes if len(causes) > 1 else bar.causes)
    draw.text(f"{bar.title}: {counted(bar.lost, 'piece')} lost. {sentence(why)}", "rs-text")
    known = {query.id: query for query in bench.queries}
    for name in bar.queries[:_LISTED]:
        query = known.get(name)
        if query is None:
            draw.text(f"{name} was removed since", "rs-quiet")
            continue
        with st.container(key=f"evaluate_query_{name}"):
            query_link(query)
            stories = [
                fate.story for fate in funnel.of_query(name) if fate.lost_at == bar.stage and fate.story
            ]
            for story in stories[:3]:
                draw.text(story, "rs-quiet")
    if len(bar.queries) > _LISTED:
        draw.text(f"and {len(bar.queries) - _LISTED:,} more", "rs-quiet")
    draw.text(
        "A query opens on the Search page, its golden evidence marked in every column.", "rs-quiet"
    )


def _ceiling(funnel: Funnel) -> None:
    ceiling = funnel.ceiling
    if ceiling is None or not len(ceiling.items):
        draw.text("Two stages are off: the number of items sent on limits nothing.", "rs-quiet")
        return
    draw.text("First-stage ceiling: what the number of items sent on makes unreachable", "rs-subhead")
    most = len(ceiling.items)
    items = min(ceiling.current, most)
    if most > 1:
        items = st.slider(
            "Items sent on", 1, most, items, key=f"funnel_items_{ceiling.current}_{most}",
            help="Evidence in items that are not sent on to stage two is lost, whatever comes after",
        )  # fmt: skip
    lost, chunks = ceiling.at(items)
    with st.container(horizontal=True, vertical_alignment="center", key="funnel_ceiling"):
        draw.text(
            f"{counted(items, 'item')}: {percent(lost)} of the golden evidence unreachable, {chunks:,.0f} "
            "chunks searched a query.",
            "rs-text",
        )
        if items != min(state.search_settings().items, most):
            st.button(f"Use {counted(items, 'item')}", key="funnel_use", on_click=_use, args=(items,))
    chart(ceiling_curve(ceiling), "funnel_ceiling_chart")


def _use(items: int) -> None:
    state.set_search_settings(state.search_settings().replace(items=items))
