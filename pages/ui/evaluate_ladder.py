"""Ladder: what each step of contextual retrieval takes off the failures, here and as published."""

from __future__ import annotations

import math
from dataclasses import replace

import streamlit as st

from core.errors import RankscopeError
from core.evaluation import ladder as engine
from core.evaluation.corpora import Telling
from core.evaluation.ladder import Ladder, Step, StepResult, ladder_steps, run_ladder, written_contexts
from core.evaluation.metrics import saturated
from core.evaluation.results import ResultsCache
from core.evaluation.statistics import verdict
from core.explanation import stage_title
from core.llm import missing_key
from core.report.evaluation_figures import Rung, ladder, percent
from core.settings import PAID_RERANKERS
from pages.ui import draw, evaluate_work
from pages.ui.beginning import for_administrators
from pages.ui.evaluate_bench import Bench
from pages.ui.evaluate_charts import chart
from pages.ui.evaluate_measure import ready
from pages.ui.evaluate_work import Finished
from pages.ui.meter import duration
from pages.ui.plain import sentence
from pages.ui.prices import dollars

KIND = "ladder"


def ladder_tab(bench: Bench) -> None:
    """The steps and their cost, the run, the figures beside the published ones."""
    if for_administrators("The ladder, which indexes all documents in several ways, is"):
        return
    if not ready(bench, "run the ladder over them"):
        return
    steps = _steps(bench)
    stamp = _stamp(bench, steps)
    found: Finished[Ladder] | None = evaluate_work.finished(bench.collection, KIND)
    if not evaluate_work.running(bench.collection, KIND):
        _bar(bench, steps, stamp, found)
    evaluate_work.progress(bench.collection, KIND, "run it again, and it goes on from there.")
    work = evaluate_work.work_of(bench.collection, KIND)
    if work is not None and work.running and work.so_far:
        _results(work.so_far[-1])
    elif found is not None and found.result.results:
        _results(found.result)
    with st.expander(
        "The steps, their settings and their cost", expanded=found is None, key="ladder_steps"
    ):
        _table(steps)


@st.cache_data(show_spinner=False, ttl=60, max_entries=8)
def _key_missing() -> str:
    return missing_key()


def _steps(bench: Bench) -> list[Step]:
    try:
        written = written_contexts(bench.collection, bench.settings.index.context)
    except RankscopeError as error:
        draw.notice(f"Written contexts cannot be used: {error}", "warning")
        written = None
    first_stage = bench.corpus.first_stage if bench.corpus else None
    return ladder_steps(bench.settings.index, bench.search, not _key_missing(), written, first_stage)


def _stamp(bench: Bench, steps: list[Step]) -> str:
    parts = [f"{step.index.fingerprint()}{step.search.fingerprint()}" for step in steps]
    ranked = bench.corpus.first_stage.fingerprint if bench.corpus else ""
    return " ".join([str(bench.documents.version), *parts, bench.fingerprint, ranked])


def _paid(steps: list[Step]) -> bool:
    return any(step.search.rerank in PAID_RERANKERS for step in steps)


def _bar(bench: Bench, steps: list[Step], stamp: str, found: Finished[Ladder] | None) -> None:
    current = found is not None and found.stamp == stamp and found.result.complete
    pay, cap = False, 0.0
    with st.container(horizontal=True, vertical_alignment="bottom", key="ladder_bar"):
        if _paid(steps):
            pay = st.toggle(
                "Allow paid steps", key="ladder_pay",
                help="Off: what costs is not asked, and says what it would cost; late interaction reranks instead",
            )  # fmt: skip
            cap = st.number_input(
                "At most, US dollars", 0.0, 1_000.0, _due(found), step=0.5, key="ladder_cap", disabled=not pay,
                width=160,
            )  # fmt: skip
        st.button(
            "Run the ladder again" if found else "Run the ladder", key="ladder_do",
            type="secondary" if current and not pay else "primary", icon=":material/stairs:",
            on_click=_begin, args=(bench, steps, stamp, pay, cap),
        )  # fmt: skip
        if found is None:
            draw.text(
                f"{len(steps)} steps over the golden queries. The collection's own index and settings stay as they are.",
                "rs-quiet",
            )
        elif found.stamp != stamp:
            draw.notice(
                "Stale: documents, settings, judgements, rules or recorded behaviour changed since these figures.",
                "warning",
            )


def _due(found: Finished[Ladder] | None) -> float:
    due = sum(one.due for one in found.result.results) if found else 0.0
    return math.ceil(due * 100) / 100 if due and math.isfinite(due) else 1.0


def _begin(bench: Bench, steps: list[Step], stamp: str, pay: bool, cap: float) -> None:
    so_far: list[Ladder] = []

    def call(tell: Telling) -> Ladder:
        cache, most = ResultsCache(bench.collection.folder), cap if pay else math.inf
        return run_ladder(bench.collection, bench.queries, steps, tell, cache, pay, most, so_far.append)

    evaluate_work.begin(bench.collection, KIND, stamp, call, so_far)


def _results(found: Ladder) -> None:
    results = found.results
    rungs = [
        Rung(one.step.title, *one.failure, _published(one.step))
        for one in results
        if one.failure is not None
    ]
    if rungs:
        first, last = rungs[0], rungs[-1]
        told = f"Failures at {engine.K}: {percent(first.failure)} with {first.name}"
        if len(rungs) > 1:
            told += f", {percent(last.failure)} at “{last.name}”"
        draw.text(f"{told}.", "rs-eval-verdict")
        if few := saturated(max(one.chunks for one in results), [f"failure@{engine.K}"]):
            draw.notice(sentence(few), "info")
        chart(ladder(rungs, engine.K), "ladder_chart")
    draw.table(
        (
            "Step",
            f"failure@{engine.K}",
            "95 % interval",
            "Against the step before",
            "Chunks",
            "Time",
            "Paid",
        ),
        [_row(one) for one in results],
        numeric=(1, 2, 4, 5, 6),
    )
    if any(one.against is not None and one.against.comparisons > 1 for one in results):
        draw.text(
            "Each p is corrected for all comparisons in the table that test a difference.", "rs-quiet"
        )
    for one in results:
        for note in one.notes:
            draw.text(f"{one.step.title}: {note}", "rs-quiet")
    _published_table()


def _row(one: StepResult) -> tuple[str, ...]:
    known = one.failure
    # How many a p is corrected for stands once, below the table: steps without a difference are not counted.
    against = one.against and replace(one.against, comparisons=1)
    return (
        one.step.title,
        percent(known.mean) if known else "–",
        f"{percent(known.low)} to {percent(known.high)}" if known else "–",
        sentence(verdict(against)) if against else "",
        f"{one.chunks:,}" if one.chunks else "–",
        duration(one.seconds) if one.seconds >= 1 else "< 1 s",
        dollars(one.dollars),
    )


def _published(step: Step) -> float | None:
    return next((one.failure for one in engine.PUBLISHED if one.step == step.name), None)


def _published_table() -> None:
    with st.container(key="ladder_published"):
        draw.text("Published, for comparison: other data, other models", "rs-subhead")
        told = " → ".join(f"{percent(one.failure)} {one.title}" for one in engine.PUBLISHED)
        draw.text(f"failure@{engine.K}: {told}.", "rs-text")
        draw.text(
            f"Averages over nine sets of documents with their authors' models; yours have other rates. {engine.SOURCE}",
            "rs-quiet",
        )


def _table(steps: list[Step]) -> None:
    rows = [
        (step.title, _told(step), _cost(step), sentence(step.note) if step.note else "")
        for step in steps
    ]
    draw.table(("Step", "Settings", "Cost", ""), rows)
    draw.text(
        f"All else is as in the settings at the left; depths and k are raised to {engine.K}, at which failures are "
        "counted. Vectors are made once and kept.",
        "rs-quiet",
    )


def _told(step: Step) -> str:
    search = step.search
    on = [stage_title(name) for name in ("bm25", "vector") if search.index(name).on]
    parts = [" + ".join(on), f"contexts: {step.index.context.writer}"]
    if search.rerank != "none":
        parts.append(f"reranked by {search.rerank}, {search.rerank_depth} deep")
    parts.append("two stages, merged" if search.two_stage else "one stage")
    return " · ".join(parts)


def _cost(step: Step) -> str:
    if step.search.rerank in PAID_RERANKERS:
        instead = f"; free with {step.stand_in.rerank} in its stead" if step.stand_in else ""
        return f"paid: {step.search.rerank} for each query{instead}"
    return "free, made here" if step.offline else "free"
