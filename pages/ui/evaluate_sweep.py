"""Sweep: many settings over the golden queries, what quality costs, and whether the winner was luck."""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from core.errors import RankscopeError, SettingsError
from core.evaluation.corpora import Telling
from core.evaluation.metrics import metric_at
from core.evaluation.results import ResultsCache
from core.evaluation.space import Point, Space
from core.evaluation.statistics import verdict
from core.evaluation.sweep import Method, Sweep, Trial, run_sweep
from core.explanation import stage_title
from core.report import evaluation_figures as figures
from core.report.export import settings_to_python
from core.report.idle_space import idle_settings
from pages.ui import draw, evaluate_work, state
from pages.ui.beginning import for_administrators
from pages.ui.evaluate_bench import Bench
from pages.ui.evaluate_charts import chart, clicked
from pages.ui.evaluate_measure import ready
from pages.ui.evaluate_space import PARAMETERS, shown, usual, values
from pages.ui.evaluate_work import Finished
from pages.ui.meter import duration
from pages.ui.plain import counted, sentence
from pages.ui.prices import dollars
from pages.ui.searching import took

KIND = "sweep"
_METRICS = (
    "recall@20",
    "recall@10",
    "recall@5",
    "ndcg@10",
    "mrr@20",
    "map@20",
    "failure@20",
    "precision@5",
)
_CHART = "sweep_chart"
_CHOSEN = "sweep_chosen"
_LISTED = 15
_METHODS: dict[Method, str] = {"grid": "Grid", "optuna": "Optimiser (Optuna)"}


@dataclass(frozen=True)
class Plan:
    """What is to be swept, and how much may go into it."""

    space: Space
    metric: str
    stage: str
    method: Method
    trials: int | None
    minutes: float
    dollars: float
    split: bool


def sweep_tab(bench: Bench) -> None:
    """The space and the budget, the run, the frontier, the winner."""
    if for_administrators("Sweeps, which may index all documents anew, are"):
        return
    if not ready(bench, "find the settings that serve them best"):
        return
    found: Finished[Sweep] | None = evaluate_work.finished(bench.collection, KIND)
    busy = evaluate_work.running(bench.collection, KIND)
    if not busy:
        with st.expander("What to try, and how long", expanded=found is None, key="sweep_plan"):
            plan = _plan(bench)
        _bar(bench, plan, found)
    evaluate_work.progress(bench.collection, KIND, "sweep again, and it goes on from there.")
    if found is not None:
        _results(bench, found)


def _plan(bench: Bench) -> Plan | None:
    names = st.multiselect(
        "Settings to vary", list(PARAMETERS), default=usual(bench.search), key="sweep_names",
        format_func=_title, help="All others stay as they are at the left",
    )  # fmt: skip
    space = _space(bench, names)
    with st.container(horizontal=True, vertical_alignment="bottom", key="sweep_goal"):
        metric = st.selectbox("Metric", _METRICS, key="sweep_metric", width=150)
        stage = st.selectbox(
            "At", ("kept", "passages"), format_func=stage_title, key="sweep_stage", width=130,
            help="Merging changes passages alone",
        )  # fmt: skip
        method = st.segmented_control(
            "Method", list(_METHODS), format_func=_METHODS.__getitem__, default="grid", key="sweep_method",
            required=True, help="The grid tries all combinations; the optimiser chooses what to try next",
        ) or "grid"  # fmt: skip
        minutes = st.number_input("Minutes", 0.1, 1_440.0, 5.0, step=1.0, key="sweep_minutes", width=130)
        money = st.number_input(
            "US dollars", 0.0, 1_000.0, 0.0, step=0.5, key="sweep_dollars", width=130,
            help="0: nothing that costs is asked",
        )  # fmt: skip
        most = st.number_input("Trials at most", 1, 10_000, 50, key="sweep_trials", width=130)
    enough = bench.answerable >= 10
    split = st.toggle(
        "Hold half of the queries out", value=enough, key="sweep_split", disabled=not enough,
        help="The winner is chosen on one half and reported, beside the settings in force, on the other: that "
        "shows whether it was luck. Needs ten queries with evidence.",
    )  # fmt: skip
    if space is None:
        return None
    if method == "grid" and space.size is None:
        draw.notice("A range needs the optimiser; for the grid, list the values.", "error")
        return None
    for name, reason in idle_settings(space, stage).items():
        draw.notice(f"{PARAMETERS[name].title} makes no difference: {reason}.", "warning")
    size = space.size
    trials = int(most) if size is None or size > most or method == "optuna" else None
    return Plan(space, metric, stage, method, trials, minutes, money, split and enough)


def _title(name: str) -> str:
    parameter = PARAMETERS[name]
    return f"{parameter.title} (indexes anew)" if parameter.reindexes else parameter.title


def _space(bench: Bench, names: list[str]) -> Space | None:
    if not names:
        draw.text("Choose a setting to vary.", "rs-quiet")
        return None
    given = {}
    columns = st.columns(3)
    for at, name in enumerate(names):
        with columns[at % 3]:
            text = st.text_input(
                f"{PARAMETERS[name].title}: values", PARAMETERS[name].values, key=f"sweep_values_{name}",
                help="With commas between them; 10..60 is a range, for the optimiser",
            )  # fmt: skip
        try:
            given[name] = values(text)
        except SettingsError as error:
            draw.notice(f"{PARAMETERS[name].title}: {error}", "error")
            return None
    try:
        return Space(given, bench.settings)
    except SettingsError as error:
        draw.notice(sentence(str(error)), "error")
        return None


def _bar(bench: Bench, plan: Plan | None, found: Finished[Sweep] | None) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="sweep_bar"):
        st.button(
            "Sweep", key="sweep_do", type="secondary" if found else "primary", icon=":material/tune:",
            disabled=plan is None, on_click=_begin, args=(bench, plan),
            help="What was measured before is not measured again",
        )  # fmt: skip
        if plan is not None:
            draw.text(_told(plan), "rs-quiet")
        if found is not None and _stale(bench, found):
            draw.notice(
                "Stale: documents, settings, judgements, rules or recorded behaviour changed since these figures.",
                "warning",
            )


def _stale(bench: Bench, found: Finished[Sweep]) -> bool:
    default = found.result.default.settings
    applied = found.result.trials
    if found.stamp != _stamp(bench):
        return True
    return bench.settings != default and all(bench.settings != one.settings for one in applied)


def _stamp(bench: Bench) -> str:
    return f"{bench.documents.version} {bench.fingerprint}"


def _told(plan: Plan) -> str:
    size = plan.space.size
    points = "a range of points" if size is None else counted(size, "point")
    if plan.trials is not None and (size is None or plan.trials < size):
        points += f", {plan.trials:,} of them"
    ranges = [PARAMETERS[name] for name in plan.space.values if PARAMETERS[name].reindexes]
    how = "indexed anew for some of them" if ranges else "replayed from one search a query"
    return f"{points}, {how}; at most {duration(plan.minutes * 60)} and {dollars(plan.dollars)}."


def _begin(bench: Bench, plan: Plan) -> None:
    def call(tell: Telling) -> Sweep:
        return run_sweep(
            bench.collection, bench.queries, plan.space, plan.metric, plan.stage, plan.method, plan.trials,
            plan.minutes * 60, plan.dollars, "even" if plan.split else "none", tell,
            ResultsCache(bench.collection.folder),
        )  # fmt: skip

    evaluate_work.begin(bench.collection, KIND, _stamp(bench), call)


def _results(bench: Bench, found: Finished[Sweep]) -> None:
    sweep = found.result
    trials = _ranked(sweep)
    if not trials:
        why = next((f": {one.failed.rstrip('.')}" for one in sweep.trials if one.failed), "")
        draw.text(f"No point could be measured{why}.", "rs-eval-verdict")
    else:
        _winner(sweep)
    for note in sweep.notes:
        draw.text(sentence(note), "rs-quiet")
    if trials:
        _frontier(sweep, trials)
        _table(sweep, trials)
        _use_one(bench, trials, better=sweep.best is not sweep.default)
    failed = [one for one in sweep.trials if one.failed]
    if failed:
        with st.expander(f"{counted(len(failed), 'point')} could not be measured", key="sweep_failed"):
            rows = [(_point(one.point), one.failed) for one in failed[:50]]
            draw.table(("Point", "Why"), rows)


def _ranked(sweep: Sweep) -> list[Trial]:
    """The trials measured, the best first."""
    sign = -1 if _higher(sweep) else 1
    measured = [one for one in sweep.trials if one.value is not None]
    return sorted(
        measured,
        key=lambda one: (one is not sweep.best, sign * round(one.value or 0.0, 9), one.milliseconds),
    )


def _winner(sweep: Sweep) -> None:
    best, default = sweep.best, sweep.default
    if best is None:
        return
    count = counted(len(sweep.trials), "point")
    if best is default:
        told = f"None of {count} is better than the settings it began with: {sweep.metric} {best.value or 0:.3f}"
    else:
        told = f"Best of {count}: {_point(best.point)}. {sweep.metric} {best.value or 0:.3f}"
        if default.value is not None:
            told += f" against {default.value:.3f} with the settings it began with"
    held = sweep.held_out
    half = " of the half it was chosen on" if held is not None else ""
    draw.text(f"{told}, over {_queries(sweep.queries)}{half}.", "rs-eval-verdict")
    if held is not None and best is default:
        draw.text(f"On the other half: {sweep.metric} {held.default.mean:.3f}.", "rs-text")
    elif held is not None:
        names = ("the settings it began with", "the winner")
        said = verdict(replace(held.comparison, names=names))
        draw.text(f"On the other half: {said}.", "rs-text")
    if not sweep.complete:
        left = f" {counted(sweep.left, 'point')} left." if sweep.left else ""
        draw.notice(f"Not complete.{left} Sweep again to go on from here.", "info")


def _queries(number: int) -> str:
    return f"{number:,} {'query' if number == 1 else 'queries'}"


def _higher(sweep: Sweep) -> bool:
    return metric_at(sweep.metric)[0].higher_is_better


def _point(point: Point) -> str:
    return (
        ", ".join(f"{PARAMETERS[name].title} {shown(value)}" for name, value in point.items())
        or "as in force"
    )


def _frontier(sweep: Sweep, trials: list[Trial]) -> None:
    cost = "milliseconds"
    if any(one.dollars > 0 for one in trials):
        cost = st.segmented_control(
            "Against", ["milliseconds", "dollars"], default="milliseconds", key="sweep_cost", required=True
        ) or "milliseconds"  # fmt: skip
    drawn = [
        figures.Trial(
            _point(one.point), one.value or 0.0, one.milliseconds, one.dollars, one in sweep.frontier,
            "best" if one is sweep.best else "",
        )
        for one in trials
    ]  # fmt: skip
    if sweep.default.value is not None:
        now = sweep.default
        drawn.append(
            figures.Trial(
                "the settings it began with",
                now.value or 0.0,
                now.milliseconds,
                now.dollars,
                now in sweep.frontier,
                "start and best" if now is sweep.best else "start",
            )
        )
    chart(
        figures.frontier(drawn, sweep.metric, cost), _CHART, on_select=_choose, selection_mode="points"
    )


def _choose() -> None:
    at = clicked(_CHART)
    if isinstance(at, int):
        st.session_state[_CHOSEN] = at


def _table(sweep: Sweep, trials: list[Trial]) -> None:
    names = list(dict.fromkeys(name for one in trials for name in one.point))
    heads = (
        "#",
        *(PARAMETERS[name].title for name in names),
        sweep.metric,
        "a query",
        "cost a query",
        "chunks",
        "frontier",
    )
    rows = [
        (
            str(at), *(shown(one.point[name]) for name in names), f"{one.value or 0:.3f}", took(one.milliseconds),
            dollars(one.dollars) if one.dollars == one.dollars else "–", f"{one.chunks:,}",
            "yes" if one in sweep.frontier else "",
        )
        for at, one in enumerate(trials[:_LISTED], 1)
    ]  # fmt: skip
    draw.table(heads, rows, numeric=range(1, len(heads) - 1))
    if len(trials) > _LISTED:
        draw.text(f"and {len(trials) - _LISTED:,} more", "rs-quiet")


def _use_one(bench: Bench, trials: list[Trial], better: bool) -> None:
    if st.session_state.get(_CHOSEN, 0) not in range(len(trials)):
        st.session_state[_CHOSEN] = 0
    with st.container(horizontal=True, vertical_alignment="bottom", key="sweep_use_row"):
        at = st.selectbox(
            "Point", range(len(trials)), key=_CHOSEN, width=420,
            format_func=lambda at: f"{at + 1}: {_point(trials[at].point)}",
        )  # fmt: skip
        one = trials[at or 0]
        in_force = one.settings == bench.settings
        st.button(
            "In force" if in_force else "Use these settings", key="sweep_use",
            type="primary" if better else "secondary", disabled=in_force, on_click=_use, args=(one,),
        )  # fmt: skip
        st.download_button(
            "TOML", one.settings.to_toml, file_name="rankscope-settings.toml", mime="application/toml",
            key="sweep_toml", icon=":material/download:", on_click="ignore",
        )  # fmt: skip
        st.download_button(
            "Python", lambda: settings_to_python(one.settings, bench.collection.name, bench.queries[0].text),
            file_name="search.py", mime="text/x-python", key="sweep_python", icon=":material/download:",
            on_click="ignore",
        )  # fmt: skip
    if one.settings.index != bench.settings.index:
        draw.text("It needs the collection indexed anew: using it offers that at the left.", "rs-quiet")


def _use(one: Trial) -> None:
    try:
        state.set_search_settings(one.settings.search)
        state.set_index_draft(
            None if one.settings.index == state.index_settings() else one.settings.index
        )
    except RankscopeError as error:
        state.notify(str(error))
