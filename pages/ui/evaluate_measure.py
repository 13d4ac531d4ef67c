"""Measure: every stage of the settings in force, in the field's metrics, each with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from html import escape

import numpy as np
import streamlit as st

from core.errors import RankscopeError
from core.evaluation import EvaluationError, Measured, StageRanks
from core.evaluation.characters import CHARACTER_METRICS
from core.evaluation.corpora import Telling
from core.evaluation.coverage import Coverage
from core.evaluation.metrics import METRICS, Metric, metric_at, per_query, saturated
from core.evaluation.outcome import Outcome, evaluate, kept_outcome
from core.evaluation.results import ResultsCache
from core.evaluation.statistics import Interval, interval
from core.explanation import stage_title
from core.reranking import load_reranker
from core.settings import PAID_RERANKERS
from pages.ui import draw, evaluate_work, links
from pages.ui.evaluate_bench import Bench
from pages.ui.evaluate_work import Finished
from pages.ui.plain import counted, sentence
from pages.ui.prices import dollars
from pages.ui.searching import took

KIND = "measure"
COLUMNS = (
    "recall@5", "recall@10", "recall@20", "failure@20", "success@10", "mrr@20", "ndcg@10", "map@20",
    "precision@5",
)  # fmt: skip
_OFFERED = tuple(f"{name}@{k}" for name in METRICS for k in (1, 3, 5, 10, 20))


def ready(bench: Bench, what: str) -> bool:
    """Whether there is something to measure; else what to do first is on the page."""
    if bench.corpus is None:
        _first("Not indexed yet", f"Index the collection above; then {what}.")
    elif not bench.queries:
        _first("No golden queries yet", f"Make or load some on the Judgements tab; then {what}.")
    elif not bench.answerable:
        _first(
            "No golden query has evidence",
            f"Judge a result on the Search page, or import a set with evidence; then {what}.",
        )
        links.link(links.SEARCH, "Judge on the Search page", ":material/thumb_up:")
    else:
        return True
    return False


def _first(title: str, what_next: str) -> None:
    with st.container(key="empty_state"):
        draw.text(title, "rs-empty-title")
        draw.text(what_next, "rs-quiet")


def begin(bench: Bench, pay: bool = False, at_most: float = 0.0) -> None:
    """Measure the settings in force, and trace what became of the evidence."""
    corpus = bench.corpus
    assert corpus is not None

    def call(tell: Telling) -> Outcome:
        progress, cache = partial(tell, "Measuring queries"), ResultsCache(bench.collection.folder)
        return evaluate(corpus, bench.queries, bench.search, progress, cache, pay, at_most)

    evaluate_work.begin(bench.collection, KIND, bench.stamp, call)


def _kept(bench: Bench) -> Outcome | None:
    """What was measured of the page as it is, by this program or another, before it was started even."""
    assert bench.corpus is not None
    with st.spinner("Looking up what was measured …"):
        cache = ResultsCache(bench.collection.folder)
        return kept_outcome(bench.corpus, bench.queries, bench.search, cache)


def bar(bench: Bench, verb: str) -> Finished[Outcome] | None:
    """The button that measures, what is under way, and whether the result is that of the page as it is."""
    found: Finished[Outcome] | None = evaluate_work.finished_or_kept(
        bench.collection, KIND, bench.stamp, partial(_kept, bench)
    )
    current = found is not None and found.stamp == bench.stamp
    busy = evaluate_work.running(bench.collection, KIND)
    if not busy:
        with st.container(horizontal=True, vertical_alignment="center", key="measure_bar"):
            st.button(
                "Measure again" if found else verb, key="measure_do",
                type="secondary" if current else "primary", icon=":material/monitoring:",
                on_click=begin, args=(bench,),
                help="Searches every golden query with the settings in force; nothing is paid for it",
            )  # fmt: skip
            if found is None:
                number = counted(bench.answerable, "golden query").replace("querys", "queries")
                draw.text(f"{number} with evidence, with the settings at the left.", "rs-quiet")
            elif current:
                draw.text("Up to date: documents, settings and judgements are as they were.", "rs-quiet")
            else:
                draw.notice(f"Stale: {_changed(bench, found)} changed since these figures.", "warning")
    evaluate_work.progress(bench.collection, KIND, "measure again, and it goes on from there.")
    return found


def _changed(bench: Bench, found: Finished[Outcome]) -> str:
    names = ("documents or index", "settings", "judgements")
    pairs = zip(names, bench.stamp.split(" "), found.stamp.split(" "), strict=True)
    return ", ".join(name for name, now, then in pairs if now != then)


def measure_tab(bench: Bench) -> None:
    """The table of stages and metrics."""
    if not ready(bench, "measure what every stage makes of them"):
        return
    found = bar(bench, "Measure")
    if found is None:
        return
    measured = found.result.measured
    _facts(measured)
    _held(bench, measured)
    for note in measured.notes:
        draw.text(sentence(note), "rs-quiet")
    labels = _columns()
    if labels:
        if few := saturated(measured.chunks, labels):
            draw.notice(sentence(few), "info")
        _table(found, measured, labels)
        _definitions(labels)
    if found.result.coverage:
        _coverage(found, found.result.coverage)


def _facts(measured: Measured) -> None:
    lost = sum(len(query.unlocated) for query in measured.queries)
    middle, slow = np.percentile(measured.milliseconds, [50, 95])
    facts = [
        (f"{len(measured.queries):,}", "queries with evidence"),
        (f"{len(measured.unanswerable):,}", "without: they have no recall"),
        (f"{lost:,}", "spans not located, counted as not found"),
        (took(float(middle)), f"a query, {took(float(slow))} for the slowest in twenty"),
        (dollars(measured.dollars), "paid for this run"),
    ]
    shown = [(figure, what) for figure, what in facts if figure not in ("0", "$0")]
    told = "".join(f"<span><b>{escape(figure)}</b> {escape(what)}</span>" for figure, what in shown)
    st.html(f'<p class="rs-eval-facts">{told}</p>')


def _held(bench: Bench, measured: Measured) -> None:
    """A reranker that costs is asked for all queries when the person says so."""
    if not measured.due or bench.search.rerank not in PAID_RERANKERS:
        return
    reranker = load_reranker(bench.search)
    needed = reranker.missing_key() if reranker else ""
    with st.container(horizontal=True, vertical_alignment="bottom", key="measure_held"):
        due = None if np.isnan(measured.due) else float(measured.due)
        draw.notice(
            f"{bench.search.rerank} was not asked: reranking these queries costs "
            f"{'at most about ' if due else ''}{dollars(due)}. {sentence(needed) if needed else ''}".strip(),
            "info",
        )
        cap = st.number_input(
            "At most, US dollars", 0.0, 1_000.0, max(0.01, round(due or 1.0, 2)), step=0.1,
            key=f"measure_cap_{due}", width=160,
        )  # fmt: skip
        st.button(
            "Measure with reranking", key="measure_pay", type="primary", disabled=bool(needed),
            on_click=begin, args=(bench, True, cap),
        )  # fmt: skip


def _columns() -> list[str]:
    with st.popover("Metrics and k", icon=":material/view_column:", key="measure_columns_open"):
        asked = st.multiselect(
            "Columns", list(dict.fromkeys([*COLUMNS, *_OFFERED])), default=list(COLUMNS),
            key="measure_columns", accept_new_options=True, format_func=_label,
            help="Any metric at any k: type it, such as recall@7",
        )  # fmt: skip
        return known_metrics(asked)


def known_metrics(asked: Sequence[str]) -> list[str]:
    """The labels that name a metric; what is wrong with the others is on the page."""
    labels = []
    for label in asked:
        try:
            metric_at(label)
            labels.append(label)
        except EvaluationError as error:
            draw.notice(sentence(str(error)), "error")
    return labels


def _label(label: str) -> str:
    try:
        metric, k = metric_at(label)
    except EvaluationError:
        return label
    return metric.label(k)


def figure(found: Finished[Outcome], stage: str, label: str) -> Interval | str:
    """A metric of a stage with its interval, computed once; a text where it cannot be told, and why."""
    known = found.kept.get((stage, label))
    if known is None:
        metric, k = metric_at(label)
        try:
            known = interval(per_query(found.result.measured.stage(stage), metric.name, k))
        except RankscopeError as error:
            known = str(error)
        found.kept[stage, label] = known
    return known


def _table(found: Finished[Outcome], measured: Measured, labels: Sequence[str]) -> None:
    asked = [metric_at(label) for label in labels]
    k = max((k or 1 for _, k in asked), default=20)
    heads = [_head(metric, metric.label(k)) for metric, k in asked]
    told = f"Share of the first {k} results that nobody has judged. What is not judged counts as not relevant: where much is unjudged, figures are too low."
    heads.append(f'<th scope="col"><span title="{escape(told)}">unjudged@{k}</span></th>')
    with st.spinner("Intervals …"):
        cells = {name: [figure(found, name, label) for label in labels] for name in measured.stages}
    best = [_best(metric, [row[at] for row in cells.values()]) for at, (metric, _) in enumerate(asked)]
    rows = []
    for name, stage in measured.stages.items():
        blind = {at or k: _unjudged(stage, at or k) for _, at in asked}
        shown = "".join(
            _cell(cell, top, f"{blind[at or k]} of the first {at or k} results nobody has judged")
            for cell, top, (_, at) in zip(cells[name], best, asked, strict=True)
        )
        shown += f"<td>{_unjudged(stage, k)}</td>"
        last = ' class="last"' if name in ("kept", "passages") else ""
        rows.append(f"<tr{last}><td>{escape(stage_title(name))}</td>{shown}</tr>")
    st.html(
        '<div class="rs-scroll" tabindex="0" aria-label="Metrics by stage"><table class="rs-eval-table"><thead>'
        f'<tr><th scope="col">Stage</th>{"".join(heads)}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )
    draw.text(
        "Below each figure its 95 % interval: bootstrap over queries, or, where all of them have the same value, "
        "how far so few can be trusted (Clopper–Pearson). Bold: the best stage.",
        "rs-quiet",
    )
    # A dash at what a person gets needs its reason in sight; that of an index stands on hover.
    for why in dict.fromkeys(cell for cell in cells.get("kept", ()) if isinstance(cell, str)):
        draw.text(f"–: {why}.", "rs-quiet")


def _coverage(found: Finished[Outcome], coverage: Coverage) -> None:
    """Characters of the evidence in the first results, which tell of chunk sizes what ranks do not."""
    metrics = [CHARACTER_METRICS[f"character_{name}"] for name in ("recall", "precision", "iou")]
    draw.text(f"Characters of the first {coverage.k}", "rs-subhead")
    cells = found.kept.get("characters")
    if cells is None:
        columns = {name: rows.T for name, rows in coverage.stages.items()}
        cells = found.kept["characters"] = {
            name: [interval(column) for column in rows] for name, rows in columns.items()
        }
    rows = "".join(
        f"<tr><td>{escape(stage_title(name))}</td>{''.join(_cell(one, None) for one in row)}</tr>"
        for name, row in cells.items()
    )
    heads = "".join(_head(metric, metric.title) for metric in metrics)
    st.html(
        '<div class="rs-scroll" tabindex="0" aria-label="Characters by stage"><table class="rs-eval-table">'
        f'<thead><tr><th scope="col">Stage</th>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
    )
    omega = CHARACTER_METRICS["precision_omega"]
    draw.text(
        f"{omega.title} {coverage.omega.mean():.3f}: {omega.help} Source: {omega.source}.", "rs-quiet"
    )


def _head(metric: Metric, label: str) -> str:
    title = escape(f"{metric.help} Source: {metric.source}.")
    return f'<th scope="col"><span title="{title}">{escape(label)}</span></th>'


def _best(metric: Metric, cells: Sequence[Interval | str]) -> float | None:
    means = [cell.mean for cell in cells if isinstance(cell, Interval)]
    if len(set(means)) < 2:
        return None
    return max(means) if metric.higher_is_better else min(means)


def _cell(cell: Interval | str, best: float | None, told: str = "") -> str:
    if isinstance(cell, str):
        return f'<td title="{escape(sentence(cell))}">–</td>'
    mark = ' class="best"' if best is not None and abs(cell.mean - best) < 1e-9 else ""
    title = f' title="{escape(told)}"' if told else ""
    return f"<td{mark}{title}>{cell.mean:.3f}<small>{cell.low:.2f}–{cell.high:.2f}</small></td>"


def _unjudged(stage: StageRanks, k: int) -> str:
    return f"{100 * stage.unjudged(k).mean():.0f} %" if len(stage.judged) else "–"


def _definitions(labels: Sequence[str]) -> None:
    with st.expander("What the metrics mean, and where they come from", key="measure_definitions"):
        metrics = dict.fromkeys(metric_at(label)[0].name for label in labels)
        lines = "".join(
            f"<dt>{escape(METRICS[name].title)}</dt><dd>{escape(METRICS[name].help)} "
            f"<small>{escape(METRICS[name].source)}</small></dd>"
            for name in metrics
        )
        st.html(f'<dl class="rs-eval-defs">{lines}</dl>')
        draw.text(
            "A stage is measured as far as it was asked: an index of depth 10 has no recall@20, which is then "
            "a dash with the reason on hover, and not a low number.",
            "rs-quiet",
        )
