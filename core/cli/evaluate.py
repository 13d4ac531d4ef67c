"""The commands that measure: golden queries from a collection or from a folder, figures in a table or JSON.

Their exit codes: 0 measured, and every --fail-under reached; 1 something a person can mend; 2 the call's
words are off; 3 measured, and a --fail-under missed; 130 stopped by Ctrl-C, and what was measured is kept.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal, NamedTuple

import typer

from core.cli.base import (
    JsonOption,
    ViewerOption,
    app,
    errors,
    index_settings,
    opened,
    search_settings,
    seen,
    show,
)
from core.errors import RankscopeError
from core.sample import SAMPLE, sample_queries
from core.settings import Settings

MISSED = 3
"""The exit code where a figure is on the wrong side of its --fail-under."""

STOPPED = 130
"""The exit code after Ctrl-C, as shells have it: 128 and the signal's number."""

SetArgument = Annotated[
    str,
    typer.Argument(
        metavar="SET",
        help="A collection with judgements, or a folder or file in one of the import forms. ./NAME is "
        "always a path.",
    ),
]
FileOption = Annotated[
    Path | None,
    typer.Option("--settings", help="Settings from a TOML file, of index and search both."),
]
SearchOption = Annotated[
    list[str] | None, typer.Option("--set", "-s", help="A search setting, such as k_rrf=10.")
]
IndexOption = Annotated[
    list[str] | None,
    typer.Option("--index-set", "-i", help="An index setting, such as context.writer=headings."),
]
StageOption = Annotated[
    str, typer.Option(help="The stage whose figures count, such as kept, passages, fused or vector.")
]
DollarsOption = Annotated[
    float,
    typer.Option(
        min=0.0, help="US dollars that vectors and rerankers may cost; nothing is paid without."
    ),
]
FailOption = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-under",
        metavar="METRIC=VALUE",
        help="Exit with 3 when the figure is below (for failure@k, which is better low: above) the value, "
        "such as recall@20=0.9.",
    ),
]


class Limit(NamedTuple):
    """One --fail-under."""

    label: str
    value: float
    higher_is_better: bool

    def reached(self, found: float) -> bool:
        """To nine decimals: a mean of fractions may be one bit below the value it is."""
        gain = found - self.value if self.higher_is_better else self.value - found
        return gain >= -1e-9


@dataclass(frozen=True)
class Given:
    """What SET names: `source` is the collection or the documents, `cache` the folder for results."""

    form: str
    source: Any
    judgements: Any
    settings: Settings
    cache: Path


@app.command("eval")
def evaluate(
    given: SetArgument = SAMPLE,
    search_changes: SearchOption = None,
    index_changes: IndexOption = None,
    settings: FileOption = None,
    ks: Annotated[
        list[int] | None,
        typer.Option("--k", min=1, help="A k to measure at; 5, 10 and 20 if not given."),
    ] = None,
    stage: StageOption = "kept",
    half: Annotated[
        Literal["all", "even", "odd"],
        typer.Option(
            help="Only the queries at even or odd places, from 0: tune on one, report the other."
        ),
    ] = "all",
    characters: Annotated[
        int,
        typer.Option(
            min=0, help="Count the characters of evidence in so many first results as well; 0 does not."
        ),
    ] = 0,
    viewer: ViewerOption = None,
    dollars: DollarsOption = 0.0,
    fail_under: FailOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure a search against golden queries, at every stage. Exit codes: 0 done, 1 cannot, 3 --fail-under missed.

    With --as, evidence that somebody may not see counts as not found, and a line tells how much that is.
    Stop with Ctrl-C: what is measured is kept, and the same call goes on from there; the exit code is 130.
    """
    from core.evaluation import ResultsCache, measure
    from core.evaluation.corpora import Corpora
    from core.evaluation.coverage import measure_coverage
    from core.evaluation.metrics import saturated
    from core.evaluation.permissions import viewer_recall

    begin = time.monotonic()
    heard = _Heard()
    with errors(), heard.stoppable():
        limits = _limits(fail_under)
        found = _given(given, settings, search_changes, index_changes)
        queries = found.judgements.queries
        asked = queries[half == "odd" :: 1 if half == "all" else 2]
        corpora = Corpora(found.source, dollars)
        whole = corpora.of(found.settings.index, heard.of("documents"))
        corpus = seen(whole, viewer)
        measured = measure(
            corpus,
            asked,
            found.settings.search,
            heard.of("queries"),
            ResultsCache(found.cache),
            dollars > 0,
            dollars - corpora.spent,
        )
        chosen = measured.stage(stage)
        if limits and measured.settings.rerank != "none" and "reranker" not in measured.stages:
            raise RankscopeError(
                "; ".join(measured.notes)
            )  # the order before would pass for the reranker's
        at = sorted(set(ks or (5, 10, 20)))
        figures = {name: _figures(ranks, at) for name, ranks in measured.stages.items()}
        verdicts = [_verdict(limit, _mean(chosen, limit.label), stage) for limit in limits]
        few = saturated(len(corpus), [*(f"recall@{k}" for k in at), *(one.label for one in limits)])
        report = {
            "set": given,
            "form": found.form,
            "half": half,
            "queries": {
                "read": len(queries),
                "measured": len(measured.queries),
                "without_evidence": len(measured.unanswerable),
                "unlocated_evidence": sum(len(query.unlocated) for query in measured.queries),
                "problems": list(found.judgements.problems),
            },
            "documents": len(corpus.item_ids),
            "chunks": len(corpus),
            "viewer": None
            if viewer is None
            else _viewer(viewer_recall(whole, corpus, measured, min(at[-1], chosen.reach), stage)),
            "stages": figures,
            "fail_under": verdicts,
            "milliseconds": _times(measured.milliseconds),
            "seconds": round(time.monotonic() - begin, 2),
            "dollars": corpora.spent + measured.dollars,
            "notes": [*filter(None, [few]), *corpus.notes, *measured.notes],
            "settings": found.settings.to_dict(),
            "fingerprints": {
                "corpus": corpus.fingerprint,
                "settings": found.settings.fingerprint(),
            },
        }
        if characters:
            covered = measure_coverage(
                corpus, asked, found.settings.search, characters, heard.of("queries")
            )
            report["characters"] = _characters(covered)
    show(report, as_json, "" if as_json else _table(report, at))
    if not all(one["reached"] for one in verdicts):
        raise typer.Exit(MISSED)


@app.command()
def sweep(
    given: SetArgument = SAMPLE,
    tried: Annotated[
        list[str] | None,
        typer.Option(
            "--try",
            "-t",
            metavar="NAME=VALUES",
            help="A setting and its values, such as search.k_rrf=10,60; for the optimiser also a range, such "
            "as index.chunking.size=300..1200 or, small ones as densely as large, search.k_rrf=1..200:log.",
        ),
    ] = None,
    metric: Annotated[str, typer.Option(help="What is to be good, such as recall@20.")] = "recall@20",
    stage: StageOption = "kept",
    method: Annotated[
        Literal["grid", "optuna"], typer.Option(help="Every point, or those that an optimiser chooses.")
    ] = "grid",
    trials: Annotated[
        int | None, typer.Option(min=1, help="At most so many points; of a grid, drawn at random.")
    ] = None,
    seconds: Annotated[float | None, typer.Option(min=0.0, help="Stop trying after so long.")] = None,
    dollars: DollarsOption = 0.0,
    split: Annotated[
        Literal["even", "none"],
        typer.Option(
            help="even: choose on queries at even places, report on the others; none: use all."
        ),
    ] = "even",
    search_changes: SearchOption = None,
    index_changes: IndexOption = None,
    settings: FileOption = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A TOML file for the winner's settings.")
    ] = None,
    fail_under: FailOption = None,
    as_json: JsonOption = False,
) -> None:
    """Try many settings and report the best on queries that did not choose it. Exit codes as of eval.

    Stop with Ctrl-C: what is done is kept, and the same call goes on from there; the exit code is 130.
    """
    from core.collection import Collection
    from core.corpus.first_stage import first_stage_of
    from core.evaluation import EvaluationError, ResultsCache
    from core.evaluation.space import Space
    from core.evaluation.sweep import run_sweep
    from core.report.idle_space import idle_settings

    heard = _Heard()
    with errors(), heard.stoppable():
        limits = _limits(fail_under)
        if unlike := [limit.label for limit in limits if limit.label != metric]:
            raise typer.BadParameter(
                f"--fail-under {unlike[0]}: a sweep looks at {metric}; name that one"
            )
        found = _given(given, settings, search_changes, index_changes)
        space = Space(dict(map(_values, tried or [])), found.settings)
        made = run_sweep(
            found.source,
            found.judgements.queries,
            space,
            metric,
            stage,
            method,
            trials,
            seconds,
            dollars,
            split,
            heard,
            ResultsCache(found.cache),
        )
        if made.best is None or made.best.value is None:
            reasons = "; ".join(dict.fromkeys(one.failed for one in made.trials if one.failed))
            raise EvaluationError(f"no point could be measured: {reasons or '; '.join(made.notes)}")
        if limits and split == "even" and not made.held_out:
            raise EvaluationError(
                "nothing was held out (the sweep was stopped, or the other half has no evidence): a figure "
                "of the half it was tuned on is no result; sweep on, or give --split none"
            )
        judged = made.held_out.winner.mean if made.held_out else made.best.value
        verdicts = [_verdict(limit, judged, stage) for limit in limits]
        first_stage = first_stage_of(found.source) if isinstance(found.source, Collection) else None
        idle = idle_settings(space, stage, first_stage).items()
        notes = [f"{name} makes no difference: {reason}" for name, reason in idle]
        if output is not None:
            output.write_text(made.best.settings.to_toml(), encoding="utf-8")
        report = _finite(
            {
                "set": given,
                "metric": metric,
                "stage": stage,
                "queries": made.queries,
                "best": _trial(made.best),
                "better_than_default": made.best is not made.default,
                "default": _trial(made.default),
                "held_out": _held_out(made.held_out),
                "frontier": [_trial(one) for one in made.frontier],
                "trials": [_trial(one) for one in made.trials],
                "complete": made.complete,
                "left": made.left,
                "fail_under": verdicts,
                "seconds": round(made.seconds, 2),
                "dollars": made.dollars,
                "notes": [*notes, *made.notes],
                "settings": made.best.settings.to_dict(),
            }
        )
    show(report, as_json, "" if as_json else _sweep_text(made, [*notes, *made.notes], verdicts))
    if not all(one["reached"] for one in verdicts):
        raise typer.Exit(MISSED)


def _given(
    name: str, file: Path | None, search_changes: list[str] | None, index_changes: list[str] | None
) -> Given:
    """A collection of that name, or else what lies at that path."""
    from core.collection import list_collections
    from core.evaluation import open_judgements, read_judgements, read_set
    from core.home import home

    if name == SAMPLE or name in {info.name for info in list_collections()}:
        store = opened(name)
        documents = store.documents()
        judgements = open_judgements(store).queries(documents)
        if name == SAMPLE and not judgements.queries:  # it comes with questions of its own
            judgements = read_judgements(sample_queries(), documents)
        facts: tuple[Any, ...] = ("collection", store, judgements, store.folder)
    elif Path(name).exists():
        store = SimpleNamespace(settings=Settings)  # a folder has none: the defaults
        read = read_set(name)
        facts = (read.form, read.documents, read.judgements, home())
    else:
        raise RankscopeError(
            f"{name!r} is neither a collection nor a folder; `rankscope collections` lists the collections"
        )
    chosen = Settings(
        index_settings(store, index_changes, file), search_settings(store, search_changes, file)
    )
    form, source, judgements, cache = facts
    return Given(form, source, judgements, chosen, cache)


def _limits(texts: Iterable[str] | None) -> list[Limit]:
    from core.evaluation.metrics import metric_at

    limits = []
    for text in texts or ():
        label, _, value = text.partition("=")
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not 0 <= number <= 1:
            raise typer.BadParameter(
                f"--fail-under {text!r}: write METRIC=VALUE with a value from 0 to 1"
            )
        metric, k = metric_at(label)
        limits.append(Limit(_label(metric.name, k), number, metric.higher_is_better))
    return limits


def _label(name: str, k: int | None) -> str:
    return name if k is None else f"{name}@{k}"


def _mean(stage: Any, label: str) -> float:
    from core.evaluation.metrics import metric_at, per_query

    metric, k = metric_at(label)
    return float(per_query(stage, metric.name, k).mean())


def _verdict(limit: Limit, found: float, stage: str) -> dict[str, Any]:
    return {
        "metric": limit.label,
        "stage": stage,
        "value": found,
        "limit": limit.value,
        "reached": limit.reached(found),
    }


def _figures(stage: Any, ks: Sequence[int]) -> dict[str, Any]:
    """Every metric of a stage with its interval; a k beyond the ranks it was asked for is left out."""
    from core.evaluation.metrics import METRICS, per_query
    from core.evaluation.statistics import interval

    metrics: dict[str, float] = {}
    intervals: dict[str, tuple[float, float]] = {}
    within = [k for k in ks if k <= stage.reach]
    for metric in METRICS.values():
        for k in within if metric.needs_k else [*within, None]:
            found = interval(per_query(stage, metric.name, k))
            metrics[_label(metric.name, k)] = found.mean
            intervals[_label(metric.name, k)] = (found.low, found.high)
    shares = {f"unjudged@{k}": float(stage.unjudged(k).mean()) for k in within}
    return {"reach": stage.reach, **metrics, **shares, "intervals": intervals}


def _viewer(found: Any) -> dict[str, Any]:
    """What permissions do to recall@k, as core.evaluation.permissions defines it."""
    return {
        "label": found.label,
        "k": found.k,
        "documents": found.items,
        "recall": found.recall,
        "withheld": found.withheld,
        "recall_of_seen": found.recall_of_seen,
        "queries_with_evidence_seen": int(found.answerable.sum()),
    }


def _characters(covered: Any) -> dict[str, Any]:
    """Means over the queries, as core.evaluation.characters defines them."""
    names = ("recall", "precision", "iou")
    return {
        "k": covered.k,
        "precision_omega": float(covered.omega.mean()),
        "stages": {
            name: dict(zip(names, rows.mean(axis=0).tolist(), strict=True))
            for name, rows in covered.stages.items()
        },
    }


def _times(milliseconds: Any) -> dict[str, float]:
    import numpy as np

    median, high = np.percentile(milliseconds, [50, 95])
    return {"median": round(float(median), 2), "p95": round(float(high), 2)}


def _values(text: str) -> tuple[str, Any]:
    """The name and values of a --try."""
    from core.evaluation.space import Range

    name, equals, values = text.partition("=")
    if not equals or not values:
        raise typer.BadParameter(f"--try {text!r}: write NAME=VALUE,VALUE or NAME=LOW..HIGH")
    ends, _, how = values.partition(":")
    low, dots, high = ends.partition("..")
    if dots and how in ("", "log"):
        numbers = _value(low), _value(high)
        if all(isinstance(one, int | float) for one in numbers):
            return name, Range(*numbers, log=how == "log")
    return name, [_value(one) for one in values.split(",")]


def _value(text: str) -> Any:
    """A number or true or false where it reads as one, else the text."""
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return found if isinstance(found, bool | int | float) else text


def _trial(one: Any) -> dict[str, Any]:
    return {
        "point": dict(one.point),
        "value": one.value,
        "milliseconds": one.milliseconds,
        "dollars": one.dollars,
        "chunks": one.chunks,
        "failed": one.failed,
    }


def _held_out(found: Any) -> dict[str, Any] | None:
    if found is None:
        return None
    intervals = {"winner": found.winner._asdict(), "default": found.default._asdict()}
    return {"queries": found.queries, **intervals, "comparison": asdict(found.comparison)}


def _finite(value: Any) -> Any:
    """JSON knows no NaN: what is not known is null."""
    if isinstance(value, Mapping):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _table(report: dict[str, Any], ks: Sequence[int]) -> str:
    counts = report["queries"]
    ranked = 10 if 10 in ks else ks[-1]  # the k that nDCG is mostly told at
    labels = [*(f"recall@{k}" for k in ks), f"failure@{ks[-1]}", f"ndcg@{ranked}", "mrr"]
    lines = [
        f"{counts['measured']:,} of {counts['read']:,} queries ({report['half']}), "
        f"{counts['without_evidence']:,} without evidence; {report['chunks']:,} chunks of "
        f"{report['documents']:,} documents",
        "",
        f"{'stage':<12}" + "".join(f"{label:>12}" for label in labels),
    ]
    for name, figures in report["stages"].items():
        cells = (f"{figures[one]:.3f}" if one in figures else "–" for one in labels)
        lines.append(f"{name:<12}" + "".join(f"{cell:>12}" for cell in cells))
    if covered := report.get("characters"):
        lines += ["", f"characters of the first {covered['k']}: recall, precision, IoU"]
        for name, figures in covered["stages"].items():
            cells = (f"{figures[one]:.3f}" for one in ("recall", "precision", "iou"))
            lines.append(f"{name:<12}" + "".join(f"{cell:>12}" for cell in cells))
        lines.append(f"precision of a perfect search: {covered['precision_omega']:.3f}")
    if told := report["viewer"]:
        seen_recall = told["recall_of_seen"]
        lines += [
            "",
            f"as {told['label']}: {told['withheld']:.3f} of the evidence is hidden; recall@{told['k']} "
            f"{told['recall']:.3f} of all evidence, "
            f"{'–' if seen_recall is None else f'{seen_recall:.3f}'} of what they may see",
        ]
    times = report["milliseconds"]
    lines += [
        "",
        f"a search: median {times['median']} ms, 95 % within {times['p95']} ms; {report['seconds']} s in all; "
        f"cost ${report['dollars']:.4f}",
        *(f"note: {note}" for note in report["notes"]),
        *(f"problem: {problem}" for problem in counts["problems"]),
        *map(_verdict_text, report["fail_under"]),
    ]
    return "\n".join(lines)


def _sweep_text(made: Any, notes: Sequence[str], verdicts: Sequence[dict[str, Any]]) -> str:
    from core.evaluation.statistics import verdict

    def line(one: Any) -> str:
        point = ", ".join(f"{name}={value}" for name, value in one.point.items()) or "unchanged"
        if one.value is None:
            return f"{'failed':>8}  {point}: {one.failed}"
        return f"{one.value:>8.4f}  {one.milliseconds:8.1f} ms  {point}"

    same = made.best is made.default
    rest = [one for one in made.frontier if one is not made.best and one is not made.default]
    lines = [
        f"{made.metric} of {made.stage} on {made.queries:,} queries; {len(made.trials):,} points, "
        f"{made.left:,} left; {made.seconds:.1f} s; cost ${made.dollars:.4f}",
        f"best     {line(made.best)}" + ": nothing that was tried is better" * same,
        f"default  {line(made.default)}",
        *(f"cheaper  {line(one)}" for one in rest),
        *(f"         {line(one)}" for one in made.trials if one.value is None),
    ]
    if made.held_out:
        winner, default = made.held_out.winner, made.held_out.default
        lines += [
            f"on the other {made.held_out.queries:,} queries: best {winner.mean:.4f} "
            f"[{winner.low:.4f}, {winner.high:.4f}], default {default.mean:.4f} "
            f"[{default.low:.4f}, {default.high:.4f}]",
            *([] if same else [verdict(made.held_out.comparison)]),
        ]
    lines += [f"note: {note}" for note in notes]
    return "\n".join([*lines, *map(_verdict_text, verdicts)])


def _verdict_text(one: Mapping[str, Any]) -> str:
    said = "reached" if one["reached"] else "MISSED"
    return f"{one['metric']} of {one['stage']}: {one['value']:.4f}, limit {one['limit']}: {said}"


class _Heard:
    """Shows progress in a terminal, and knows how far it came when Ctrl-C ends it."""

    def __init__(self) -> None:
        self._last = "before anything was measured"

    def __call__(self, what: str, done: int, total: int) -> None:
        self._last = f"at {what} {done:,} of {total:,}"
        if sys.stderr.isatty():
            typer.echo(f"\r\033[K{what} {done:,}/{total:,}", err=True, nl=done == total)

    def of(self, what: str) -> Callable[[int, int], None]:
        return partial(self, what)

    @contextmanager
    def stoppable(self) -> Iterator[None]:
        try:
            yield
        except KeyboardInterrupt:
            typer.echo(
                f"\nrankscope: stopped {self._last}: that is kept, and the same call goes on from there",
                err=True,
            )
            raise typer.Exit(STOPPED) from None
