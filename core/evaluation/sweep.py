"""Many settings over one set of golden queries, and whether the best of them was luck.

Settings that the indexes need not be asked again for are replayed. The winner is chosen on one half of the
queries and reported, beside the settings it would replace, on the other.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.collection import Collection
from core.documents import Documents
from core.embedding import load_embedder
from core.errors import RankscopeError, SettingsError, Stopped
from core.evaluation.corpora import Corpora, Telling
from core.evaluation.judgements import EvaluationError, GoldenQuery
from core.evaluation.metrics import metric_at, per_query, saturated
from core.evaluation.optimiser import Optimiser
from core.evaluation.results import ResultsCache, items_key, parts_version, query_key
from core.evaluation.runner import Measured, answerable, measure_many
from core.evaluation.space import Point, Space, point_key
from core.evaluation.statistics import Comparison, Interval, compare, interval
from core.pipeline.assemble import RERANKER
from core.protocols import Progress
from core.reranking import load_reranker
from core.settings import SearchSettings, Settings
from core.types import Document
from core.vectors_cache import model_key

Method = Literal["grid", "optuna"]
Split = Literal["even", "none"]

ASKED = 10
"""Points that the optimiser gives at a time: those of one corpus are then replayed together."""

BATCH = 20
"""Points measured together under a budget of time, so that a part of them is done when it ends."""

TRIALS = 50
"""Points that an optimiser tries unless told otherwise."""

_PATIENCE = 3  # times as many points asked for as wanted: an optimiser names good ones again
_KEPT = ("value", "milliseconds", "dollars", "chunks", "vector_bytes")
_EQUAL = 9  # decimals in which two values are one, computed in another order
_SLACK, _MOMENT = 1.1, 1.0  # a time beyond another by less than a tenth and a millisecond is noise


@dataclass(frozen=True)
class Trial:
    """A point measured on the tuning queries. `value` is the metric's mean, `milliseconds` the median of a
    query's search, `dollars` the mean price of a query's reranking with nothing cached, NaN where not known;
    `vector_bytes` what the vectors take. `value` is None where it `failed`, and why; `due`: what a
    reranker that was held would cost."""

    point: Point
    settings: Settings
    value: float | None = None
    milliseconds: float = math.nan
    dollars: float = math.nan
    chunks: int = 0
    vector_bytes: int = 0
    failed: str = ""
    due: float = 0.0


@dataclass(frozen=True)
class HeldOut:
    """The winner and the settings it would replace on the queries that chose neither."""

    queries: int
    winner: Interval
    default: Interval
    comparison: Comparison


@dataclass(frozen=True)
class Sweep:
    """What a sweep found. `default` is the space's base on the same queries; `best` has the best value, of equal
    ones the fastest, and is `default` itself where none is better than that; `frontier`, by falling value, the
    best and those that none beats in value, time and price at once.

    Not `complete` when it was stopped or a budget ran out: the same sweep goes on from there. `left` points
    of a grid were not tried. `dollars` were spent now, `seconds` it took.
    """

    metric: str
    stage: str
    queries: int
    trials: tuple[Trial, ...]
    default: Trial
    best: Trial | None
    frontier: tuple[Trial, ...]
    held_out: HeldOut | None
    complete: bool
    left: int
    dollars: float
    seconds: float
    notes: tuple[str, ...]


def run_sweep(
    source: Collection | Documents | Sequence[Document],
    queries: Sequence[GoldenQuery],
    space: Space,
    metric: str = "recall@20",
    stage: str = "kept",
    method: Method = "grid",
    trials: int | None = None,
    budget_seconds: float | None = None,
    budget_dollars: float = 0.0,
    split: Split = "even",
    progress: Telling | None = None,
    cache: ResultsCache | None = None,
) -> Sweep:
    """Measure points of the space and report the best one on queries that did not choose it.

    The grid is tried whole, or `trials` of its points drawn at random (seeded); the optimiser tries `trials`
    (50 without a number). `split` "even" tunes on queries at even places (from 0) and reports on the others.
    `progress(what, done, total)` hears of points, documents and queries; when it raises `Stopped`, or the
    seconds are used up, what is done is given back, and with the same `cache` is not done again. Nothing that
    costs is asked beyond `budget_dollars`, by estimate.
    Raises EvaluationError for a metric that is none, or where no tuning query has evidence; SettingsError
    for a range in a grid; RankscopeError where the optimiser is not installed.
    """
    tuning, reporting = (queries[::2], queries[1::2]) if split == "even" else (queries, ())
    run = _Run(source, tuning, space, metric, stage, progress, cache, budget_seconds, budget_dollars)
    run.attempt([{}])
    default = run.trials.pop(point_key({}), Trial({}, space.base, failed="it was stopped before"))
    if method == "grid":
        points = list(space.grid())
        wanted = len(points) if trials is None else min(trials, len(points))
        run.attempt(random.Random(0).sample(points, wanted) if wanted < len(points) else points)
    else:
        wanted = TRIALS if trials is None else trials
        run.optimise(wanted)
    best, frontier = run.standing(default)
    held_out = run.held_out(best, reporting) if best else None
    chunks = max((one.chunks for one in (default, *run.trials.values())), default=0)
    few = saturated(chunks, [metric])
    return Sweep(
        metric=metric,
        stage=stage,
        queries=len(run.queries),
        trials=tuple(run.trials.values()),
        default=default,
        best=best,
        frontier=frontier,
        held_out=held_out,
        complete=run.complete,
        left=max(0, wanted - len(run.trials)),
        dollars=run.spent,
        seconds=time.monotonic() - run.begun,
        notes=tuple(dict.fromkeys(filter(None, [few, *run.notes]))),
    )


class _Run:
    """One sweep under way."""

    def __init__(
        self,
        source: Collection | Documents | Sequence[Document],
        tuning: Sequence[GoldenQuery],
        space: Space,
        metric: str,
        stage: str,
        progress: Telling | None,
        cache: ResultsCache | None,
        seconds: float | None,
        dollars: float,
    ) -> None:
        self.begun = time.monotonic()
        self.queries = answerable(tuning)
        self.trials: dict[str, Trial] = {}
        self.complete = True
        self.notes: list[str] = []
        self._metric, self._k = metric_at(metric)
        self._label = metric
        self._space, self._stage, self._progress, self._cache = space, stage, progress, cache
        self._deadline = None if seconds is None else self.begun + seconds
        self._pay = dollars > 0
        self._corpora = Corpora(source, dollars)
        self._models: dict[str, str] = {}  # model → why it cannot be used
        facts = [space.fingerprint(), self._metric.name, self._k, stage, *map(query_key, self.queries)]
        self._key = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]
        self._stored = cache.trials(self._key) if cache else {}

    @property
    def spent(self) -> float:
        """US dollars, on vectors and on reranking."""
        return self._corpora.spent

    def attempt(self, points: Sequence[Point]) -> None:
        """Measure the points not measured yet, those of one corpus together."""
        groups: dict[str, list[tuple[Point, Settings, str]]] = {}
        try:
            for point in points:
                if point_key(point) in self.trials:
                    continue
                if settings := self._settings(point):
                    if why := self._unusable(settings.index.model):
                        self._put(Trial(point, settings, failed=why))
                        continue
                    name = self._name(point, settings)
                    if name in self._stored:
                        self._put(Trial(point, settings, **self._stored[name]))
                    else:
                        group = settings.index.fingerprint()
                        groups.setdefault(group, []).append((point, settings, name))
            for one in groups.values():
                free = [made for made in one if not _costs(made[1].search)]
                size = len(one) if self._deadline is None else BATCH
                for at in range(0, len(free), size):
                    self._batch(free[at : at + size])
                for made in one:
                    if _costs(made[1].search):
                        self._batch([made])  # so that money that ends leaves whole trials
        except Stopped as stop:
            self.complete = False
            self.notes.append(str(stop) or "stopped")

    def optimise(self, wanted: int) -> None:
        """Let the optimiser choose points until so many are measured, or it has nothing new."""
        optimiser = Optimiser(self._space)
        for _ in range(math.ceil(_PATIENCE * wanted / ASKED)):
            if not self.complete or len(self.trials) >= min(wanted, self._space.size or wanted):
                return
            asked = [optimiser.ask() for _ in range(min(ASKED, wanted - len(self.trials)))]
            self.attempt([point for _, point in asked])
            for trial, point in asked:
                done = self.trials.get(point_key(point))
                optimiser.tell(trial, None if done is None else self._worth(done))

    def standing(self, default: Trial) -> tuple[Trial | None, tuple[Trial, ...]]:
        """The best trial and the frontier, as `Sweep` has them; of what is alike the first tried."""
        measured = [one for one in (default, *self.trials.values()) if one.value is not None]
        if not measured:
            return None, ()
        least = min(map(self._loss, measured))
        best = next(one for one in measured if self._loss(one) == least)
        if best is not default:
            equal = [one for one in measured if self._loss(one) == least]
            fastest = min(one.milliseconds for one in equal)
            best = min((one for one in equal if _no_slower(one.milliseconds, fastest)), key=_price)
        frontier = [best]
        for one in sorted(measured, key=lambda one: (self._loss(one), one.milliseconds, _price(one))):
            if not any(self._no_worse(other, one) for other in frontier):
                frontier.append(one)
        return best, tuple(frontier)

    def held_out(self, best: Trial, reporting: Sequence[GoldenQuery]) -> HeldOut | None:
        """The winner and the base on the other half; None, with a note, where they cannot be compared."""
        if not any(query.answerable for query in reporting):
            if reporting:
                self.notes.append("no query of the other half has evidence: whether it was luck is open")
            return None
        if not self.complete and self._deadline is None:
            return None
        self._deadline = (
            None  # the seconds are for trying: without this report they would be for nothing
        )
        try:
            default, winner = (
                self._values(self._measured([one], "reporting", reporting)[0])
                for one in (self._space.base, best.settings)
            )
        except (EvaluationError, Stopped) as error:
            self.notes.append(f"not reported on the other half: {error}")
            return None
        comparison = compare(
            default,
            winner,
            ("default", "winner"),
            self._label,
            higher_is_better=self._metric.higher_is_better,
        )
        return HeldOut(len(winner), interval(winner), interval(default), comparison)

    def _settings(self, point: Point) -> Settings | None:
        """The point's settings; None, and a trial that failed, where its values do not go together."""
        try:
            return self._space.settings(point)
        except SettingsError as error:
            self._put(Trial(point, self._space.base, failed=str(error)))
            return None

    def _unusable(self, model: str) -> str:
        """Why no corpus can have this model; blank where one can. Asked once: without a network each time
        would take a minute."""
        if model not in self._models:
            try:
                load_embedder(model)
                self._models[model] = ""
            except RankscopeError as error:
                self._models[model] = str(error)
        return self._models[model]

    def _name(self, point: Point, settings: Settings) -> str:
        """What a trial is kept under: it holds for these documents, contexts and weights only."""
        try:
            model = model_key(load_embedder(settings.index.model))
            corpus = f"{self._corpora.fingerprint(settings.index)} {model}"
        except RankscopeError:  # told when the corpus is to be made
            corpus = ""
        known = items_key(self._corpora, settings.search)
        return f"{point_key(point)} {corpus} {parts_version(settings.search)} {known}".rstrip()

    def _batch(self, batch: Sequence[tuple[Point, Settings, str]]) -> None:
        what = f"{len(self.trials)} points done, {len(batch)} under way"
        try:
            found = self._measured([settings for _, settings, _ in batch], what, self.queries)
        except Stopped:
            raise
        except RankscopeError as error:
            for point, settings, _ in batch:
                self._put(Trial(point, settings, failed=str(error)))
            return
        for (point, settings, name), measured in zip(batch, found, strict=True):
            trial = self._trial(point, settings, measured)
            self._put(trial)
            if self._cache and not trial.failed and parts_version(settings.search) is not None:
                facts = {key: getattr(trial, key) for key in _KEPT}
                self._cache.put_trial(self._key, name, facts)

    def _measured(
        self, settings: Sequence[Settings], what: str, queries: Sequence[GoldenQuery]
    ) -> list[Measured]:
        """Settings of one corpus, on these queries."""
        corpus = self._corpora.of(settings[0].index, self._tell(f"{what}: indexing"))
        self._size = (len(corpus), int(corpus.matrix.nbytes))
        found = measure_many(
            corpus,
            queries,
            [one.search for one in settings],
            self._tell(f"{what}: searching"),
            self._cache,
            self._pay,
            self._corpora.left,
            (self._stage, RERANKER),
        )
        self._corpora.spend(sum(one.dollars for one in found))
        return found

    def _trial(self, point: Point, settings: Settings, measured: Measured) -> Trial:
        chunks, size = self._size
        trial = Trial(
            point,
            settings,
            milliseconds=float(np.median(measured.milliseconds)),
            dollars=float(measured.prices.mean()),
            chunks=chunks,
            vector_bytes=size,
            due=measured.due,
        )
        try:
            return replace(trial, value=float(self._values(measured).mean()))
        except EvaluationError as error:
            return replace(trial, failed=str(error))

    def _values(self, measured: Measured) -> NDArray[np.float64]:
        """The metric of each query. Raises EvaluationError where it is not that of these settings."""
        if measured.settings.rerank != "none" and RERANKER not in measured.stages:
            raise EvaluationError("; ".join(measured.notes))  # the order before would pass for it
        return per_query(measured.stage(self._stage), self._metric.name, self._k)

    def _put(self, trial: Trial) -> None:
        self.trials[point_key(trial.point)] = trial

    def _worth(self, trial: Trial) -> float | None:
        """The value, higher being better."""
        if trial.value is None:
            return None
        return trial.value if self._metric.higher_is_better else -trial.value

    def _loss(self, trial: Trial) -> float:
        return -round(self._worth(trial) or 0.0, _EQUAL)

    def _no_worse(self, one: Trial, other: Trial) -> bool:
        return (
            self._loss(one) <= self._loss(other)
            and _no_slower(one.milliseconds, other.milliseconds)
            and _price(one) <= _price(other)
        )

    def _tell(self, what: str) -> Progress:
        def tell(done: int, total: int) -> None:
            if self._deadline is not None and time.monotonic() > self._deadline:
                raise Stopped("the seconds are used up: the same sweep goes on from here")
            if self._progress:
                self._progress(what, done, total)

        return tell


def _no_slower(one: float, other: float) -> bool:
    return one <= other * _SLACK + _MOMENT


def _price(trial: Trial) -> float:
    """A price that is not known is no bargain."""
    return math.inf if math.isnan(trial.dollars) else trial.dollars


def _costs(search: SearchSettings) -> bool:
    try:
        reranker = load_reranker(search)
    except RankscopeError:  # told when it is asked
        return False
    return bool(reranker and reranker.paid)
