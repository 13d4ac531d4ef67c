"""Searches golden queries and says where each stage that ranks chunks, and the passages, have the evidence.

recall@k of a query is the share of its golden pieces among the first k; of a set, the mean over its
queries that have evidence. Queries without any have no recall: they are counted apart.

Many settings are measured with the query outermost: it is searched once, deep enough for all of them, and
what they differ in is replayed, so that no record of a search outlives its query.
"""

from __future__ import annotations

import math
import statistics
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.corpus import Corpus
from core.errors import NeedsSearch
from core.evaluation.golden import (
    Golden,
    golden_chunks,
    places_in_chunks,
    places_in_passages,
    rejected_chunks,
)
from core.evaluation.judgements import EvaluationError, GoldenQuery
from core.evaluation.metrics import per_query, unjudged
from core.evaluation.results import (
    Observed,
    ResultsCache,
    StageSeen,
    query_key,
    result_key,
    settings_key,
)
from core.hosted_embedding import is_hosted
from core.pipeline.assemble import RERANKER, VECTOR, Memo, assemble
from core.pipeline.run import record, rerank
from core.protocols import Index, Progress, Vectors
from core.reranking import load_reranker
from core.settings import SearchSettings
from core.trace import Record, Reranked, Trace
from core.types import encodable
from core.vectors_cache import model_key

_FROM_CACHE = "from the cache"  # what a reranker's note says where scores were kept from before

_TIMED = 9  # queries embedded for the time of one
_KEPT_FASTER = 10  # times as fast as made: a vector that was kept from before
_EMBEDDING = "embedding a query"  # where the cache keeps that time

_embedding_times: dict[str, dict[str, float]] = {}
"""What `_time_embedding` gave, by model."""

_paces: defaultdict[tuple[str, str], deque[float]] = defaultdict(lambda: deque(maxlen=200))
"""Milliseconds a text that rerankers took lately, by name and model."""


@dataclass(frozen=True, eq=False)
class StageRanks:
    """Where one stage has the golden pieces. `ranks` has an int64 array for each answerable query: the
    rank of each of its golden pieces, from 1, 0 where the stage does not hold it; `grades` stand parallel.
    `reach`: the most ranks that the stage was asked for. `judged` are for each query the ranks, ascending,
    of the lines that hold a golden or a rejected chunk, `lengths` (n,) how many lines there are."""

    name: str
    reach: int
    ranks: tuple[NDArray[np.int64], ...]
    grades: tuple[NDArray[np.int64], ...]
    judged: tuple[NDArray[np.int64], ...] = ()
    lengths: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def recalls(self, k: int) -> NDArray[np.float64]:
        """recall@k of each answerable query, shape (n,).

        Raises EvaluationError when k is below 1 or beyond the stage's reach: its list ends there.
        """
        return per_query(self, "recall", k)

    def recall(self, k: int) -> float:
        """The mean of `recalls`. Raises EvaluationError as it does."""
        return float(self.recalls(k).mean())

    def unjudged(self, k: int) -> NDArray[np.float64]:
        """Of each query's first k lines the share that nobody judged, shape (n,); see `metrics.unjudged`."""
        lines = zip(self.judged, self.lengths.tolist(), strict=True)
        return np.array([unjudged(judged, length, k) for judged, length in lines])


@dataclass(frozen=True)
class Reading:
    """What else is taken from a query's trace while it is there: `of` gives it as JSON holds it. `name` is
    another one as soon as `of` would give something else for the same trace."""

    name: str
    of: Callable[[GoldenQuery, Golden, Trace], Any]


@dataclass(frozen=True, eq=False)
class Measured:
    """What a set of golden queries gave under one setting.

    `queries` are those with evidence, in order; `unanswerable` those without any. `milliseconds` (n,)
    of each query's search: of the parts in use, with the model loaded; embedding counts as the same for
    all queries and settings, where the model runs here and vectors are searched.
    `prices` (n,) are the US dollars for each query's reranking with nothing cached, NaN where not known;
    `dollars` is what this measuring cost, `due` what it would cost to ask the reranker that was held.
    `notes` say, with a count, what did not go as set, and which evidence is not in the corpus. `readings`
    are what a `Reading` gave for each query; `chunks` is how many the corpus has.
    """

    settings: SearchSettings
    queries: tuple[GoldenQuery, ...]
    unanswerable: tuple[GoldenQuery, ...]
    stages: Mapping[str, StageRanks]
    milliseconds: NDArray[np.float64]
    dollars: float
    notes: tuple[str, ...]
    prices: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    due: float = 0.0
    readings: tuple[Any, ...] = ()
    chunks: int = 0

    def stage(self, name: str) -> StageRanks:
        """The stage of that name. Raises EvaluationError naming those there are."""
        if name not in self.stages:
            raise EvaluationError(f"no stage {name!r} was measured; there are {', '.join(self.stages)}")
        return self.stages[name]


def measure(
    corpus: Corpus,
    queries: Sequence[GoldenQuery],
    settings: SearchSettings | None = None,
    progress: Progress | None = None,
    cache: ResultsCache | None = None,
    pay: bool = False,
    at_most: float = math.inf,
    reading: Reading | None = None,
) -> Measured:
    """Search for every query that has evidence, and say where each stage has it.

    `progress(done, total)` hears of queries, and may raise `Stopped`: what `cache` has got by then is not
    searched again. A stage that is off is not measured; neither is one that was off for some query (a
    reranker that failed), and a note says so. A reranker that costs is asked with `pay` only, while the
    next query's reranking is expected to stay within `at_most` US dollars in all.
    Raises EvaluationError when two queries have one id or none has evidence.
    """
    one = settings or SearchSettings()
    return measure_many(corpus, queries, [one], progress, cache, pay, at_most, reading=reading)[0]


def measure_many(
    corpus: Corpus,
    queries: Sequence[GoldenQuery],
    settings: Sequence[SearchSettings],
    progress: Progress | None = None,
    cache: ResultsCache | None = None,
    pay: bool = False,
    at_most: float = math.inf,
    stages: Collection[str] = (),
    reading: Reading | None = None,
) -> list[Measured]:
    """As `measure`, of each setting, in their order. Only the named `stages` are kept in memory, all when
    there are none; `progress` hears of queries, each under all settings, and the money is for all of them."""
    asked = answerable(queries)
    texts = [query.text for query in asked]
    runner = _Runner(corpus, texts, settings, cache, _Purse(at_most if pay else 0.0), reading)
    gathered = [_Gathered(stages) for _ in settings]
    grades: list[NDArray[np.int64]] = []
    lost = 0
    with cache.held() if cache else nullcontext():
        for number, query in enumerate(asked):
            if progress:
                progress(number, len(asked))
            golden = golden_chunks(corpus, query)
            grades.append(golden.grades)
            lost += golden.lost
            for into, seen in zip(gathered, runner.observe(query, golden), strict=True):
                into.add(seen)
    if progress:
        progress(len(asked), len(asked))
    said = list(filter(None, [cache.trouble if cache else ""]))
    if lost:
        said.append(f"{lost} golden spans have no chunk in this corpus: they count as not found")
    silent = tuple(query for query in queries if not query.answerable)
    return [
        one.measured(chosen, asked, silent, tuple(grades), said, len(corpus))
        for chosen, one in zip(settings, gathered, strict=True)
    ]


def is_kept(
    corpus: Corpus,
    queries: Sequence[GoldenQuery],
    settings: SearchSettings,
    cache: ResultsCache,
    reading: Reading,
) -> bool:
    """Whether `measure` would find all of this in the cache, and search nothing."""
    setting = settings_key(corpus, settings) if cache.path.exists() else None
    if setting is None:
        return False
    keys = {result_key(setting, query_key(query)) for query in queries if query.answerable}
    known = cache.get(list(keys))
    return len(known) == len(keys) and all(_was_read(one, reading) for one in known.values())


def answerable(queries: Sequence[GoldenQuery]) -> tuple[GoldenQuery, ...]:
    """The queries that have evidence. Raises EvaluationError as `measure` does."""
    twice = [one for one, times in Counter(query.id for query in queries).items() if times > 1]
    if twice:
        raise EvaluationError(f"two golden queries have the id {twice[0]!r}; give each its own")
    asked = tuple(query for query in queries if query.answerable)
    if not asked:
        raise EvaluationError(
            f"none of {len(queries)} queries has evidence, so there is no recall; judge one first"
        )
    return asked


def reach(trace: Trace, name: str) -> int:
    """How many ranks a stage of chunks or passages was asked for: a piece further down it cannot hold.

    Searches have their depth; what fuses searches holds what any of them found; each later stage what
    all its inputs hold, up to its own limit. Passages have the k of the chunks they are made of.
    """
    stage = trace.stage(name)
    inputs = [one for one in map(trace.stage, stage.inputs) if one.unit == "chunk"]
    limits = [] if stage.limit is None else [stage.limit]
    if inputs:
        widest = max if all(one.kind == "search" for one in inputs) else min
        limits.append(widest(reach(trace, one.name) for one in inputs))
    return min(limits, default=0)


class _Gathered:
    """One setting's results, query by query."""

    def __init__(self, wanted: Collection[str]) -> None:
        self._wanted = wanted
        self._stages: dict[str, list[StageSeen]] = {}
        self._milliseconds: list[float] = []
        self._prices: list[float] = []
        self._dollars = 0.0
        self._notes: Counter[str] = Counter()
        self._held: list[float] = []
        self._readings: list[Any] = []

    def add(self, seen: Observed) -> None:
        price = math.nan if seen.price is None else seen.price
        self._milliseconds.append(seen.milliseconds)
        self._prices.append(price)
        self._dollars += seen.dollars
        self._notes.update(seen.notes)
        if seen.reading:
            self._readings.append(seen.reading[1])
        if seen.held:
            self._held.append(price)
        elif seen.failed:
            self._notes[f"not reranked: {seen.failed}"] += 1
        for name, stage in seen.stages.items():
            if not self._wanted or name in self._wanted:
                self._stages.setdefault(name, []).append(stage)

    def measured(
        self,
        settings: SearchSettings,
        asked: tuple[GoldenQuery, ...],
        silent: tuple[GoldenQuery, ...],
        grades: tuple[NDArray[np.int64], ...],
        said: Sequence[str],
        chunks: int,
    ) -> Measured:
        whole = {name: seen for name, seen in self._stages.items() if len(seen) == len(asked)}
        notes = [f"{note} ({times} of {len(asked)} queries)" for note, times in self._notes.items()]
        due = sum(self._held)
        if self._held:
            price = "a price that is not known" if math.isnan(due) else f"at most about ${due:.4f}"
            notes.append(
                f"not reranked: {settings.rerank} is not asked before you say so; it would cost {price} "
                f"({len(self._held)} of {len(asked)} queries)"
            )
        notes += [
            f"{name} is not measured: it was off for {len(asked) - len(seen)} of {len(asked)} queries"
            for name, seen in self._stages.items()
            if name not in whole
        ]
        stages = {
            name: StageRanks(
                name,
                # A query whose reranker failed was asked for more ranks than the others.
                min(one.reach for one in seen),
                tuple(one.ranks for one in seen),
                grades,
                tuple(one.judged for one in seen),
                np.array([one.length for one in seen], dtype=np.int64),
            )
            for name, seen in whole.items()
        }
        return Measured(
            settings,
            asked,
            silent,
            stages,
            np.array(self._milliseconds),
            self._dollars,
            (*notes, *said),
            np.array(self._prices),
            due,
            tuple(self._readings),
            chunks,
        )


class _Purse:
    """Money that may be spent, in US dollars."""

    def __init__(self, dollars: float) -> None:
        self.left = dollars

    def holds(self, price: float | None) -> bool:
        return self.left == math.inf or (price is not None and 0 < self.left >= price)


class _Runner:
    """Puts one query after another to one corpus, each under all settings."""

    def __init__(
        self,
        corpus: Corpus,
        texts: Sequence[str],
        settings: Sequence[SearchSettings],
        cache: ResultsCache | None,
        purse: _Purse,
        reading: Reading | None,
    ) -> None:
        self.corpus, self.settings, self.cache, self.purse = corpus, settings, cache, purse
        self._texts, self._reading = texts, reading
        self._keys = [settings_key(corpus, one) if cache else None for one in settings]
        together: dict[object, list[int]] = defaultdict(list)
        for at, one in enumerate(settings):
            together[_searched_as(one)].append(at)
        self._groups = [
            # The longest list first: the scores of shorter ones are then known, as a rule.
            (_widest([settings[at] for at in group]), sorted(group, key=self._by_rerank_depth))
            for group in together.values()
        ]
        self._reaches: dict[object, dict[str, int]] = {}

    def _by_rerank_depth(self, at: int) -> int:
        return -self.settings[at].rerank_depth

    def observe(self, query: GoldenQuery, golden: Golden) -> list[Observed]:
        """What each setting gives for one query: from the cache, or searched and kept there."""
        name = query_key(query)
        keys = {at: result_key(key, name) for at, key in enumerate(self._keys) if key}
        known = self.cache.get(list(keys.values())) if self.cache else {}
        found = {
            at: known[key]
            for at, key in keys.items()
            if key in known and _was_read(known[key], self._reading)
        }
        fresh = [at for at in range(len(self.settings)) if at not in found]
        rejected = rejected_chunks(self.corpus, query)
        judged = np.union1d(golden.all_positions, rejected)
        for widest, group in self._groups:
            missing = [at for at in group if at not in found]
            if not missing:
                continue
            asking = _Asking(self, query.text, widest)
            for at in missing:
                found[at] = self._seen(at, asking.under(self.settings[at]), query, golden, judged)
        if self.cache:
            # One that was not reranked may be next time.
            lasting = [at for at in fresh if at in keys and not found[at].failed]
            self.cache.put({keys[at]: found[at] for at in lasting})
        return [found[at] for at in range(len(self.settings))]

    def _seen(
        self,
        at: int,
        answer: _Answer,
        query: GoldenQuery,
        golden: Golden,
        judged: NDArray[np.int64],
    ) -> Observed:
        trace = answer.trace
        shown = [one for one in trace.stages if one.on and one.unit != "item"]
        names = tuple(one.name for one in shown)
        reaches = self._reaches.get((at, names))
        if reaches is None:
            reaches = self._reaches[at, names] = {name: reach(trace, name) for name in names}
        # Golden and rejected chunks are looked up at once: golden ones are all among the judged.
        stages = {}
        for one in shown:
            if one.unit == "passage":
                places = places_in_passages(judged, trace.passages, self.corpus)
            else:
                places = places_in_chunks(judged, one.ranking)
            ranks = golden.first(judged, places)
            lines = np.unique(places[places > 0])
            stages[one.name] = StageSeen(reaches[one.name], ranks, lines, len(one.ranking))
        asked = trace.record.reranked if trace.settings.rerank != "none" else None
        failed, held = (asked.failed, asked.held) if asked else ("", False)
        notes = (*trace.notes, answer.note) if answer.note else trace.notes
        reading = self._reading
        read = (reading.name, reading.of(query, golden, trace)) if reading else None
        return Observed(
            stages, answer.milliseconds, notes, answer.price, failed, held, answer.dollars, read
        )

    @cached_property
    def embedding(self) -> float:
        """Milliseconds that a query's vector takes; 0 where a search makes it anew, and is timed with it.

        One figure for all queries and settings: where it was another for each, settings that differ in
        nothing slow would look faster or slower. The cache keeps it, for what is measured later.
        """
        embedder = self.corpus.embedder
        if is_hosted(embedder.model_id):  # paid for each time, and its time is the network's
            return 0.0
        model = model_key(embedder)
        facts = self.cache.trials(_EMBEDDING).get(model) if self.cache else None
        if facts is None:
            facts = _embedding_times.get(model) or _time_embedding(embedder.embed_query, self._texts)
            _embedding_times[model] = facts
            if self.cache:
                self.cache.put_trial(_EMBEDDING, model, facts)
        kept = facts["again"] * _KEPT_FASTER < facts["made"]
        return facts["made"] if kept else 0.0

    def reranking_time(self, trace: Trace) -> tuple[float, str]:
        """Milliseconds that scoring takes, and a note where that is not known.

        Scores from the cache took none: what fresh ones took, for other queries, stands for them.
        """
        asked = trace.record.reranked
        if asked is None or asked.failed or not len(asked.positions):
            return 0.0, ""
        paces = _paces[asked.name, asked.model]
        pace = trace.record.milliseconds[RERANKER] / len(asked.positions)
        note = ""
        if _FROM_CACHE not in asked.note:
            paces.append(pace)
        elif paces:
            pace = statistics.median(list(paces))
        else:
            note = f"{asked.name}: scores were kept from before, so the milliseconds leave it out"
        return pace * len(trace.stage(RERANKER).ranking), note


@dataclass(frozen=True, eq=False)
class _Answer:
    """A trace, its milliseconds, the price of its reranking and what that cost now."""

    trace: Trace
    milliseconds: float
    price: float | None
    dollars: float
    note: str


class _Asking:
    """One query put to one corpus under settings that one search serves."""

    def __init__(self, runner: _Runner, query: str, widest: SearchSettings) -> None:
        self._runner, self._corpus, self._query = runner, runner.corpus, query
        if runner.embedding:  # the vector is there when the clock of the search starts
            self._corpus.embedder.embed_query(encodable(query))
        self._assembling: float | None = None
        self._record, self._indexes = record(self._corpus, query, widest)
        self._memo = Memo()
        self._reranked: dict[tuple[str, str], Record] = {}
        self._prices: dict[tuple[str, str, bytes], float | None] = {}

    def under(self, settings: SearchSettings) -> _Answer:
        try:
            return self._of(self._record, self._indexes, self._reranked, settings, self._memo)
        except NeedsSearch:
            found, indexes = record(self._corpus, self._query, settings)
            return self._of(found, indexes, {}, settings, Memo())

    def _of(
        self,
        recorded: Record,
        indexes: Mapping[str, Index],
        reranked: dict[tuple[str, str], Record],
        settings: SearchSettings,
        memo: Memo,
    ) -> _Answer:
        dollars, key = 0.0, (settings.rerank, settings.rerank_model)
        begin = time.perf_counter()
        try:
            trace = assemble(self._corpus, reranked.get(key, recorded), settings, indexes, memo)
        except NeedsSearch:
            if settings.rerank == "none":
                raise
            reranked[key], dollars = self._rerank(recorded, settings)
            begin = time.perf_counter()
            trace = assemble(self._corpus, reranked[key], settings, indexes, memo)
        if (
            self._assembling is None
        ):  # the first stands for all: the others find in the memo what it made
            self._assembling = (time.perf_counter() - begin) * 1000
        spent = self._assembling + _searching(trace, self._runner.embedding)
        reranking, note = self._runner.reranking_time(trace)
        return _Answer(trace, spent + reranking, self._price(trace), dollars, note)

    def _rerank(self, recorded: Record, settings: SearchSettings) -> tuple[Record, float]:
        """The record with scores, where they are free or there is money for them; and what they cost."""
        made = rerank(self._corpus, recorded, settings, pay=False)
        if made.reranked and made.reranked.held:
            due = _estimate(self._corpus, self._query, made.reranked, settings, cached=True)
            if self._runner.purse.holds(due):
                made = rerank(self._corpus, recorded, settings)
        dollars = made.reranked.dollars if made.reranked else 0.0
        self._runner.purse.left -= dollars
        return made, dollars

    def _price(self, trace: Trace) -> float | None:
        asked = trace.record.reranked
        if asked is None or trace.settings.rerank == "none" or (asked.failed and not asked.held):
            return 0.0
        key = (asked.name, asked.model, asked.positions.tobytes())
        if key not in self._prices:
            self._prices[key] = _estimate(self._corpus, self._query, asked, trace.settings, cached=False)
        return self._prices[key]


def _was_read(one: Observed, reading: Reading | None) -> bool:
    return reading is None or (one.reading is not None and one.reading[0] == reading.name)


def _time_embedding(embed: Callable[[str], Vectors], texts: Sequence[str]) -> dict[str, float]:
    """Milliseconds for a query's vector: `made`, and given `again` for the same text. The least of several:
    other work on the machine only adds, and what is kept here would stay."""
    embed("the first loads the model")
    spent: dict[str, list[float]] = {"made": [], "again": []}
    for number in range(_TIMED):
        # Words that nobody searched for: of those that somebody did, the model may have the vector.
        text = encodable(f"{texts[number % len(texts)]} {number}")
        for one in spent.values():
            begin = time.perf_counter()
            embed(text)
            one.append((time.perf_counter() - begin) * 1000)
    return {name: min(one) for name, one in spent.items()}


def _searching(trace: Trace, embedding: float) -> float:
    """Milliseconds of those searches whose results the trace uses, and of the query's vector where one does."""
    used = {stage.name for stage in trace.stages if stage.on}
    if "items.semantic" in used:
        used.add(VECTOR)
    spent = trace.record.milliseconds
    vector = embedding if VECTOR in used else 0.0
    return vector + sum(spent[name] for name in used & spent.keys() - {RERANKER})


def _estimate(
    corpus: Corpus, query: str, asked: Reranked, settings: SearchSettings, cached: bool
) -> float | None:
    """US dollars for scoring the texts, those in the cache for nothing where `cached`; None: not known."""
    reranker = load_reranker(settings)
    if reranker is None or not reranker.paid:
        return 0.0
    texts = [corpus.chunk(position).indexed_text for position in asked.positions.tolist()]
    return reranker.estimate(query, texts) if cached else reranker.reranker.estimate(query, texts)


def _searched_as(settings: SearchSettings) -> tuple[object, ...]:
    """Equal for settings that one recorded search may serve."""
    never = (spec.name for spec in fields(settings) if spec.metadata.get("replay") == "never")
    return (settings.two_stage, *(getattr(settings, name) for name in never))


def _widest(settings: Sequence[SearchSettings]) -> SearchSettings:
    """The search whose record reaches as far as all of these need."""
    names = {VECTOR, "bm25"}.union(*(one.indexes for one in settings))
    wide = settings[0].replace(rerank="none", items=max(one.items for one in settings))
    for name in names:
        wide = wide.with_index(name, depth=max(one.index(name).depth for one in settings))
    return wide
