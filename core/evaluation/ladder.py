"""Contextual retrieval step by step over one set of golden queries: what each step takes off the failures."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from core.collection import Collection
from core.contextualizing import contexts_for
from core.corpus.first_stage import FirstStage
from core.documents import Documents
from core.errors import RankscopeError, Stopped
from core.evaluation.corpora import Corpora, Telling
from core.evaluation.judgements import GoldenQuery
from core.evaluation.metrics import per_query
from core.evaluation.results import ResultsCache
from core.evaluation.runner import Measured, measure
from core.evaluation.statistics import Comparison, Interval, compare, corrected, interval
from core.extras import registered_indexes, registered_signals
from core.pipeline.assemble import RERANKER
from core.pipeline.items import RULES
from core.protocols import Progress
from core.settings import PAID_RERANKERS, PAID_WRITERS, ContextSettings, IndexSettings, SearchSettings
from core.types import Document

OFFLINE = " (offline)"
"""Ends the title of a step in which what is made here stands in for a paid model."""

K = 20
"""The failure rate of every step is at this k, as published."""

LATE_DEPTH = 50
"""Chunks that the late reranker scores: measured the same as 150 at a third of the time."""

SOURCE = "Anthropic: Introducing Contextual Retrieval, 2024, https://www.anthropic.com/news/contextual-retrieval"


@dataclass(frozen=True, slots=True)
class Published:
    """A published failure rate at 20; `step` is our step that is most like it, blank without one."""

    title: str
    failure: float
    step: str = ""


PUBLISHED = (
    Published("embeddings", 0.057, "embeddings"),
    Published("contextual embeddings", 0.037),
    Published("contextual embeddings + contextual BM25", 0.029, "context"),
    Published("the same, reranked", 0.019, "rerank"),
)
"""Averages over nine sets of documents, from `SOURCE`; another collection has other rates."""


@dataclass(frozen=True)
class Step:
    """One rung: what is measured, at which stage, and in words what it adds. `offline`: what is made here
    stands in for a paid model. `stand_in` is searched with where the step's own reranker gives no order."""

    name: str
    title: str
    index: IndexSettings
    search: SearchSettings
    offline: bool = False
    note: str = ""
    stage: str = "kept"
    stand_in: SearchSettings | None = None


@dataclass(frozen=True, eq=False)
class StepResult:
    """What a step gave. `values` (n,) are the failure rates of the queries, `failure` their mean and
    interval, `against` the paired comparison with the step before that has figures; None where the step has
    none, and `notes` say why. `step` says so where its reranker was stood in for. `dollars` were spent now,
    `due` would be for a reranker that was held."""

    step: Step
    measured: Measured | None = None
    values: NDArray[np.float64] | None = None
    failure: Interval | None = None
    against: Comparison | None = None
    chunks: int = 0
    seconds: float = 0.0
    dollars: float = 0.0
    due: float = 0.0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Ladder:
    """The steps run, in order; not `complete` when it was stopped: running it again goes on from there."""

    results: tuple[StepResult, ...]
    complete: bool


def written_contexts(collection: Collection, settings: ContextSettings) -> ContextSettings | None:
    """The settings of the paid writer that has written contexts for every document; None without one."""
    documents = collection.documents()
    for one in (settings, settings.replace(writer="claude")):
        if one.writer in PAID_WRITERS and len(documents):
            digests = contexts_for(one, documents, collection).digests
            if all(digests):
                return one
    return None


def signals_there(search: SearchSettings, first_stage: FirstStage) -> list[str]:
    """What ranks items besides their texts and is on, by name: clicks, recency, popularity, registered
    signals, rules."""
    there = {
        "clicks": first_stage.events,
        "recency": search.recency_field,
        "popularity": search.popularity_field,
        **dict.fromkeys(registered_signals(), True),
        RULES: first_stage.rules.fingerprint,
    }
    uses = {name: search.signal(name) for name in there}
    return [name for name, use in uses.items() if there[name] and use.on and use.weight]


def ladder_steps(
    index: IndexSettings,
    search: SearchSettings,
    has_key: bool,
    written: ContextSettings | None = None,
    first_stage: FirstStage | None = None,
) -> list[Step]:
    """Embeddings, + BM25, + context, + rerank, + two stages and merging, + signals where `first_stage` or the
    settings have any (see `signals_there`), with all else as in the settings.

    Contexts are those of `written` (see `written_contexts`), else headings; the reranker is the settings',
    else Claude with a key, late without; late stands in for another that gives no order, for want of leave
    to pay, say. Depths and k are raised to 20, at which failures are counted.
    """
    plain = index.replace(context=index.context.replace(writer="none"))
    if written:
        contextual, context_note = index.replace(context=written), ""
    else:
        contextual = index.replace(context=index.context.replace(writer="headings"))
        context_note = "headings as contexts, made here: no model has written contexts for all documents"
    both = search.replace(
        two_stage=False,
        merge=False,
        rerank="none",
        k=max(search.k, K),
        rerank_depth=max(search.rerank_depth, K),
    )
    for name in ("bm25", "vector"):
        both = both.with_index(name, on=True, depth=max(both.index(name).depth, K))
    alone = both
    for name in ("bm25", *registered_indexes()):
        alone = alone.with_index(name, on=False)
    depth = min(both.rerank_depth, LATE_DEPTH)
    late = both.replace(rerank="late", rerank_model="", rerank_depth=depth)
    if search.rerank != "none":
        reranked = both.replace(rerank=search.rerank)
    elif has_key:
        reranked = both.replace(rerank="claude", rerank_model="")
    else:
        reranked = late
    free = reranked.rerank not in PAID_RERANKERS
    instead = None if reranked is late else late
    signals = signals_there(search, first_stage or FirstStage())

    def two_stages(one: SearchSettings, on: bool) -> SearchSettings:
        one = one.replace(two_stage=True, merge=True)
        for name in signals:
            one = one.with_signal(name, on=on)
        return one

    steps = [
        Step("embeddings", "embeddings", plain, alone),
        Step("bm25", "+ BM25", plain, both, note="fused with the embeddings"),
        Step(
            "context",
            "+ context" + OFFLINE * (not written),
            contextual,
            both,
            not written,
            context_note,
        ),
        Step(
            "rerank",
            "+ rerank" + OFFLINE * free,
            contextual,
            reranked,
            free,
            f"reranked by {reranked.rerank}, which runs here" if free else "",
            stand_in=instead,
        ),
        Step(
            "stages",
            "+ two stages, merged",
            contextual,
            two_stages(reranked, False),
            free,
            "golden chunks inside the first 20 passages",
            "passages",
            instead and two_stages(instead, False),
        ),
    ]
    if not signals:
        return steps
    last = replace(
        steps[-1],
        name="signals",
        title="+ signals",
        search=two_stages(reranked, True),
        note=", ".join(signals),
        stand_in=instead and two_stages(instead, True),
    )
    return [*steps, last]


def run_ladder(
    source: Collection | Documents | Sequence[Document],
    queries: Sequence[GoldenQuery],
    steps: Sequence[Step],
    progress: Telling | None = None,
    cache: ResultsCache | None = None,
    pay: bool = False,
    at_most: float = float("inf"),
    so_far: Callable[[Ladder], None] | None = None,
) -> Ladder:
    """Measure each step; a step that cannot be is in the result, and says why.

    `progress(what, done, total)` hears of documents, texts and queries; when it raises `Stopped`, the steps
    finished are given back, and what `cache` has got is not measured again. `so_far` gets the steps
    finished, not complete, each time there is one more. Contexts are never written
    here, and nothing that costs is asked without `pay`: each step then says what it would cost.
    Raises EvaluationError as `measure`.
    """
    corpora = Corpora(source, at_most if pay else 0.0)
    results: list[StepResult] = []
    complete = True
    for step in steps:
        try:
            results.append(_run(step, corpora, queries, progress, cache, pay, results))
        except Stopped:
            complete = False
            break
        if so_far:
            so_far(_ladder(results, False))
    return _ladder(results, complete)


def _ladder(results: Sequence[StepResult], complete: bool) -> Ladder:
    """The steps with their comparisons corrected for how many there are."""
    compared = [one.against for one in results if one.against]
    again = iter(corrected(compared))
    told = tuple(replace(one, against=next(again)) if one.against else one for one in results)
    return Ladder(told, complete)


def _run(
    step: Step,
    corpora: Corpora,
    queries: Sequence[GoldenQuery],
    progress: Telling | None,
    cache: ResultsCache | None,
    pay: bool,
    before: Sequence[StepResult],
) -> StepResult:
    def tell(what: str) -> Progress | None:
        return (lambda done, total: progress(f"{step.title}: {what}", done, total)) if progress else None

    begin, spent = time.perf_counter(), corpora.spent
    try:
        corpus = corpora.of(step.index, tell("indexing"))
    except Stopped:
        raise
    except RankscopeError as error:
        return StepResult(step, notes=(str(error),))
    measured = measure(corpus, queries, step.search, tell("searching"), cache, pay, corpora.left)
    corpora.spend(measured.dollars)
    due, notes = measured.due, measured.notes
    if step.stand_in and RERANKER not in measured.stages:
        step = _stood_in(step, step.stand_in)
        measured = measure(corpus, queries, step.search, tell("searching"), cache)
        notes = tuple(dict.fromkeys([*notes, step.note, *measured.notes]))
    result = StepResult(
        step,
        measured,
        chunks=len(corpus),
        seconds=time.perf_counter() - begin,
        dollars=corpora.spent - spent,
        due=due,
        notes=notes,
    )
    if step.search.rerank != "none" and RERANKER not in measured.stages:
        return result  # its figures would be those of the step before
    values = per_query(measured.stage(step.stage), "failure", K)
    last = next((one for one in reversed(before) if one.values is not None), None)
    against = None
    if last is not None and last.values is not None:
        names = (last.step.title, step.title)
        against = compare(last.values, values, names, f"failure@{K}", higher_is_better=False)
    return replace(result, values=values, failure=interval(values), against=against)


def _stood_in(step: Step, search: SearchSettings) -> Step:
    """The step searched in another way, with a title and a note that say so."""
    wanted, here = step.search.rerank, search.rerank
    return replace(
        step,
        title=f"{step.title.removesuffix(OFFLINE)} ({here} for {wanted})",
        search=search,
        offline=True,
        note=f"{here}, which runs here, stands in for {wanted}",
    )
