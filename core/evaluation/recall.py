"""Recall@k of every stage that ranks chunks, and of the passages, over golden queries.

recall@k of a query is the share of its golden pieces among the first k; of a set, the mean over its
queries that have evidence. Queries without any have no recall: they are counted apart.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.corpus import Corpus
from core.evaluation.golden import golden_chunks, ranks_in_chunks, ranks_in_passages
from core.evaluation.judgements import EvaluationError, GoldenQuery
from core.pipeline import search
from core.protocols import Progress
from core.settings import SearchSettings
from core.trace import Trace


@dataclass(frozen=True, eq=False)
class StageRanks:
    """Where one stage has the golden pieces. `ranks` has an int64 array for each answerable query: the
    rank of each of its golden pieces, from 1, 0 where the stage does not hold it. `reach`: the most
    ranks that the stage was asked for."""

    name: str
    reach: int
    ranks: tuple[NDArray[np.int64], ...]

    def recalls(self, k: int) -> NDArray[np.float64]:
        """recall@k of each answerable query, shape (n,).

        Raises EvaluationError when k is below 1 or beyond the stage's reach: its list ends there.
        """
        if k < 1:
            raise EvaluationError(f"recall@{k} is not defined; k is 1 or more")
        if k > self.reach:
            raise EvaluationError(
                f"recall@{k} of {self.name} cannot be told: it was asked for {self.reach} only; "
                f"raise the index's depth, the rerank depth or k to {k}, or ask for recall@{self.reach}"
            )
        return np.array([np.mean((ranks > 0) & (ranks <= k)) for ranks in self.ranks])

    def recall(self, k: int) -> float:
        """The mean of `recalls`. Raises EvaluationError as it does."""
        return float(self.recalls(k).mean())

    def failure_rate(self, k: int = 20) -> float:
        """1 − recall@k; published for k = 20 (Anthropic, Contextual Retrieval, 2024)."""
        return 1 - self.recall(k)


@dataclass(frozen=True, eq=False)
class Measured:
    """A set of golden queries under one corpus and one setting.

    `queries` are those with evidence, in the order of the ranks in `stages`; `unanswerable` the others.
    `milliseconds` (len(queries),) each search took, the first with loading what was not loaded yet;
    `dollars` is what all of them cost together.
    `notes` say, with a count, what did not go as set, and which evidence is not in the corpus.
    """

    settings: SearchSettings
    queries: tuple[GoldenQuery, ...]
    unanswerable: tuple[GoldenQuery, ...]
    stages: Mapping[str, StageRanks]
    milliseconds: NDArray[np.float64]
    dollars: float
    notes: tuple[str, ...]

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
) -> Measured:
    """Search for every query that has evidence, and say where each stage has it.

    `progress(done, total)` hears of queries, and may raise `Stopped`. A stage that is off is not
    measured; neither is one that was off for some query (a reranker that failed), and a note says so.
    Raises EvaluationError when two queries have one id or none has evidence.
    """
    chosen = settings or SearchSettings()
    asked = _answerable(queries)
    ranks: dict[str, list[NDArray[np.int64]]] = {}
    reaches: dict[str, int] = {}
    milliseconds = np.zeros(len(asked))
    dollars = 0.0
    notes: Counter[str] = Counter()
    lost = 0
    for number, query in enumerate(asked):
        if progress:
            progress(number, len(asked))
        golden = golden_chunks(corpus, query)
        lost += golden.lost
        begin = time.perf_counter()
        trace = search(corpus, query.text, chosen)
        milliseconds[number] = (time.perf_counter() - begin) * 1000
        notes.update(trace.notes)
        if asked_anew := trace.record.reranked:
            dollars += asked_anew.dollars
            if asked_anew.failed:
                notes[f"not reranked: {asked_anew.failed}"] += 1
        for stage in trace.stages:
            if not stage.on or stage.unit == "item":
                continue
            reaches[stage.name] = reach(trace, stage.name)
            found = (
                ranks_in_passages(golden, trace.passages, corpus)
                if stage.unit == "passage"
                else ranks_in_chunks(golden, stage.ranking)
            )
            ranks.setdefault(stage.name, []).append(found)
    if progress:
        progress(len(asked), len(asked))
    whole = {name: tuple(found) for name, found in ranks.items() if len(found) == len(asked)}
    said = [f"{note} ({times} of {len(asked)} queries)" for note, times in notes.items()]
    said += [
        f"{name} is not measured: it was off for {len(asked) - len(found)} of {len(asked)} queries"
        for name, found in ranks.items()
        if name not in whole
    ]
    if lost:
        said.append(f"{lost} golden spans have no chunk in this corpus: they count as not found")
    return Measured(
        chosen,
        asked,
        tuple(query for query in queries if not query.answerable),
        {name: StageRanks(name, reaches[name], found) for name, found in whole.items()},
        milliseconds,
        dollars,
        tuple(said),
    )


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


def _answerable(queries: Sequence[GoldenQuery]) -> tuple[GoldenQuery, ...]:
    twice = [one for one, times in Counter(query.id for query in queries).items() if times > 1]
    if twice:
        raise EvaluationError(f"two golden queries have the id {twice[0]!r}; give each its own")
    asked = tuple(query for query in queries if query.answerable)
    if not asked:
        raise EvaluationError(
            f"none of {len(queries)} queries has evidence, so there is no recall; judge one first"
        )
    return asked
