"""Compare: two settings over the same golden queries, and whether their difference is real."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from core.collection import remember, remembered
from core.errors import SettingsError
from core.evaluation import measure
from core.evaluation.compare import Change, Compared, Difference, compare_measured
from core.evaluation.corpora import Corpora, Telling
from core.evaluation.results import ResultsCache
from core.explanation import stage_title
from core.report.evaluation_figures import difference_bars, signed
from core.settings import Settings
from pages.ui import draw, evaluate_work, people
from pages.ui.evaluate_bench import Bench, query_link
from pages.ui.evaluate_charts import chart
from pages.ui.evaluate_measure import known_metrics, ready
from pages.ui.evaluate_work import Finished
from pages.ui.plain import counted, sentence

KIND = "compare"
A, B = "A", "B"
_METRICS = (
    "recall@20",
    "recall@5",
    "recall@10",
    "ndcg@10",
    "mrr@20",
    "map@20",
    "success@5",
    "precision@5",
)
_DEFAULT, _KEPT, _GIVEN = "The defaults", "What I kept", "Given as TOML"
_LISTED = 25


def compare_tab(bench: Bench) -> None:
    """Choose A, see B, compare, read the verdict."""
    if not ready(bench, "compare settings over them"):
        return
    other = _choose(bench)
    metrics = _metrics()
    if other is not None and metrics:
        _bar(bench, other, metrics)
    evaluate_work.progress(bench.collection, KIND, "compare again, and it goes on from there.")
    found: Finished[Compared] | None = evaluate_work.finished(bench.collection, KIND)
    if found is not None:
        _results(bench, found)


def _choose(bench: Bench) -> Settings | None:
    draw.text("A is compared with B, the settings in force (those at the left).", "rs-quiet")
    kept = _kept(bench)
    offered = [_DEFAULT, *([_KEPT] if kept else []), _GIVEN]
    with st.container(horizontal=True, vertical_alignment="bottom", key="compare_choose"):
        chosen = st.segmented_control(
            "A is", offered, default=_KEPT if kept else _DEFAULT, key="compare_a", required=True
        )
        if people.may_manage():
            st.button(
                "Keep the settings in force as A", key="compare_keep", icon=":material/keep:",
                on_click=_keep, args=(bench,), help="Then change the settings at the left, and compare",
            )  # fmt: skip
    if chosen == _KEPT and kept:
        other: Settings | None = kept
    elif chosen == _GIVEN:
        other = _given()
    else:
        other = Settings(bench.settings.index)
    if other is not None:
        _differ(other, bench.settings)
    if other is not None and other.index != bench.settings.index and not people.may_manage():
        draw.notice("A needs another index of all documents: that is for administrators.", "warning")
        return None
    return other


def _name(bench: Bench) -> str:
    return f"evaluate_kept/{bench.collection.id}"


def _keep(bench: Bench) -> None:
    remember(_name(bench), bench.settings.to_toml())
    st.session_state.pop("compare_a", None)


def _kept(bench: Bench) -> Settings | None:
    text = remembered(_name(bench))
    try:
        return Settings.from_toml(text) if text else None
    except SettingsError:
        return None  # of another version


def _given() -> Settings | None:
    text = st.text_area(
        "TOML, as “Keep and share” on the Search page exports it", key="compare_toml", height=140,
        placeholder="[search]\nk_rrf = 10",
    )  # fmt: skip
    if not text.strip():
        draw.text("Paste settings to compare with.", "rs-quiet")
        return None
    try:
        return Settings.from_toml(text)
    except SettingsError as error:
        draw.notice(f"These settings cannot be used: {error}", "error")
        return None


def _differ(a: Settings, b: Settings) -> None:
    changed = b.changes(a)
    if not changed:
        draw.text("A and B are the same settings.", "rs-quiet")
        return
    before = a.changes(b)
    with st.expander(
        f"{len(changed)} settings differ" if len(changed) > 1 else "1 setting differs",
        key="compare_settings",
    ):
        rows = [(name, _shown(before.get(name)), _shown(value)) for name, value in changed.items()]
        draw.table(("Setting", A, B), rows)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return "" if value is None else str(value)


def _metrics() -> list[str]:
    asked = st.multiselect(
        "Metrics, at what is kept", _METRICS, default=["recall@20", "ndcg@10"], key="compare_metrics",
        accept_new_options=True, help="Each is a comparison more, for which verdicts are corrected",
    )  # fmt: skip
    return known_metrics(asked)


def _stamp(bench: Bench, other: Settings, metrics: Sequence[str]) -> str:
    return f"{bench.stamp} {other.fingerprint()} {','.join(metrics)}"


def _bar(bench: Bench, other: Settings, metrics: list[str]) -> None:
    if evaluate_work.running(bench.collection, KIND):
        return
    found = evaluate_work.finished(bench.collection, KIND)
    stamp = _stamp(bench, other, metrics)
    current = found is not None and found.stamp == stamp
    with st.container(horizontal=True, vertical_alignment="center", key="compare_bar"):
        st.button(
            "Compare", key="compare_do", type="secondary" if current else "primary", icon=":material/compare_arrows:",
            disabled=other == bench.settings, on_click=_begin, args=(bench, other, metrics, stamp),
            help="Measures both over the golden queries; nothing is paid for it",
        )  # fmt: skip
        if found is not None and not current:
            draw.notice("Stale: what is compared below is not what is chosen now.", "warning")


def _begin(bench: Bench, other: Settings, metrics: list[str], stamp: str) -> None:
    def call(tell: Telling) -> Compared:
        cache = ResultsCache(bench.collection.folder)
        corpora = Corpora(bench.collection)
        measured = {}
        for name, settings in ((A, other), (B, bench.settings)):
            corpus = bench.corpus
            if corpus is None or settings.index != bench.settings.index:
                corpus = corpora.of(settings.index, partial(tell, f"{name}: indexing"))
            told = partial(tell, f"{name}: measuring queries")
            measured[name] = measure(corpus, bench.queries, settings.search, told, cache)
        compared = compare_measured(measured, metrics, ["kept"])
        notes = [f"{name}: {note}" for name, one in measured.items() for note in one.notes]
        return Compared(compared.differences, (*compared.notes, *notes))

    evaluate_work.begin(bench.collection, KIND, stamp, call)


def _results(bench: Bench, found: Finished[Compared]) -> None:
    compared = found.result
    labels = [one.comparison.metric for one in compared.differences]
    if len(labels) > 1:
        draw.table(
            ("Metric", A, B, "Difference", "95 % interval", "B wins", "B loses", "Ties", "p, corrected"),
            [_row(one) for one in compared.differences],
            numeric=range(1, 9),
        )
    chosen = labels[0]
    if len(labels) > 1:
        chosen = st.segmented_control(
            "Look at", labels, default=labels[0], key="compare_look", required=True
        ) or labels[0]  # fmt: skip
    one = compared.differences[labels.index(chosen) if chosen in labels else 0]
    draw.text(sentence(one.verdict), "rs-eval-verdict")
    for note in compared.notes:
        draw.text(sentence(note), "rs-quiet")
    draw.text(_tested(one), "rs-quiet")
    if one.comparison.ties < one.comparison.queries:
        texts = [query.text for query in one.queries]
        chart(difference_bars(texts, (one.after - one.before).tolist(), chosen), "compare_chart")
    left, right = st.columns(2, gap="large")
    with left:
        _changes(bench, "Regressions: B is worse", one, one.regressions)
    with right:
        _changes(bench, "Improvements: B is better", one, one.improvements)


def _tested(one: Difference) -> str:
    told = one.comparison
    made = (
        f", corrected for the {told.comparisons} comparisons made here" if told.comparisons > 1 else ""
    )
    paired = counted(told.queries, "query").replace("querys", "queries")
    return f"At “{stage_title(one.stage)}”, paired over {paired}: randomisation test{made}."


def _row(one: Difference) -> tuple[str, ...]:
    told = one.comparison
    return (
        told.metric, f"{told.means[0]:.3f}", f"{told.means[1]:.3f}", signed(told.difference),
        f"{signed(told.low)} to {signed(told.high)}", f"{told.wins:,}", f"{told.losses:,}", f"{told.ties:,}",
        f"{told.p_corrected:.3f}",
    )  # fmt: skip


def _changes(bench: Bench, title: str, one: Difference, changes: Sequence[Change]) -> None:
    draw.text(f"{title} ({len(changes):,})", "rs-subhead")
    if not changes:
        draw.text("None.", "rs-quiet")
    for change in changes[:_LISTED]:
        with st.container(key=f"evaluate_query_{title[:4]}_{change.query.id}"):
            query_link(change.query)
            draw.text(f"{one.comparison.metric} {change.before:.3f} → {change.after:.3f}", "rs-quiet")
    if len(changes) > _LISTED:
        draw.text(f"and {len(changes) - _LISTED:,} more", "rs-quiet")
