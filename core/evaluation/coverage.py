"""How many characters of the evidence the first k results of each stage cover, over golden queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.corpus import Corpus
from core.evaluation.characters import Span, character_scores, precision_omega
from core.evaluation.golden import rows_of
from core.evaluation.judgements import EvaluationError, GoldenQuery
from core.evaluation.runner import reach
from core.pipeline import search
from core.protocols import Progress
from core.settings import SearchSettings
from core.trace import Stage, Trace

Covered = tuple[Mapping[str, tuple[float, float, float]], float]
"""Of one query: stage → character recall, precision and IoU; and the precision of a perfect search."""


@dataclass(frozen=True, eq=False)
class Coverage:
    """`stages` has for each stage that was on and asked for `k` ranks or more, for every query, float64
    (queries, 3): character recall, precision and IoU of its first `k`. `omega` (queries,) is the precision of a perfect search.

    `queries` are those with located evidence, in order.
    """

    k: int
    queries: tuple[GoldenQuery, ...]
    stages: Mapping[str, NDArray[np.float64]]
    omega: NDArray[np.float64]

    @staticmethod
    def of(k: int, queries: Sequence[GoldenQuery], covered: Sequence[Covered]) -> Coverage:
        """What `covered_by` gave for each query."""
        stages = {
            name: np.array([one[name] for one, _ in covered])
            for name in covered[0][0]
            if all(name in one for one, _ in covered)
        }
        return Coverage(k, tuple(queries), stages, np.array([omega for _, omega in covered]))


def measure_coverage(
    corpus: Corpus,
    queries: Sequence[GoldenQuery],
    settings: SearchSettings | None = None,
    k: int = 5,
    progress: Progress | None = None,
) -> Coverage:
    """Search every query with located evidence, and compare characters (`core.evaluation.characters`).

    Nothing is paid: a reranker that costs is left out where its scores are not kept. Raises
    EvaluationError when k is below 1 or no query has located evidence, and what `progress` raises.
    """
    if k < 1:
        raise EvaluationError(f"the first {k} results cover nothing; k is 1 or more")
    asked = tuple(query for query in queries if query.evidence)
    if not asked:
        raise EvaluationError("no query has evidence in these documents; judge one first")
    found = []
    for number, query in enumerate(asked):
        if progress:
            progress(number, len(asked))
        trace = search(corpus, query.text, settings, pay=False)
        found.append(covered_by(trace, corpus, query, k))
    if progress:
        progress(len(asked), len(asked))
    return Coverage.of(k, asked, found)


def covered_by(trace: Trace, corpus: Corpus, query: GoldenQuery, k: int) -> Covered:
    """What the first `k` results of each stage that was asked for as many cover of a query's evidence, and
    the precision of a perfect search."""
    references = [Span(one.document_id, one.start, one.end) for one in query.evidence]
    found = {}
    for stage in trace.stages:
        # A shorter list would cover less for no fault of the search.
        if stage.on and stage.unit != "item" and reach(trace, stage.name) >= k:
            scores = character_scores(_first(trace, stage, corpus, k), references)
            found[stage.name] = (scores.recall, scores.precision, scores.iou)
    return found, precision_omega(_chunks_of(corpus, references), references)


def _first(trace: Trace, stage: Stage, corpus: Corpus, k: int) -> list[Span]:
    if stage.unit == "passage":
        return [Span(corpus.item_ids[one.item], one.start, one.end) for one in trace.passages[:k]]
    return [_span(corpus, position) for position in stage.ranking.head(k).positions.tolist()]


def _chunks_of(corpus: Corpus, references: Sequence[Span]) -> list[Span]:
    """All chunks of the documents that hold references."""
    chunks = []
    for document in {one.document_id for one in references}:
        rows = rows_of(corpus, document)
        chunks += [_span(corpus, position) for position in range(rows.start, rows.stop)]
    return chunks


def _span(corpus: Corpus, position: int) -> Span:
    item = corpus.item_ids[corpus.item_of[position]]
    return Span(item, int(corpus.starts[position]), int(corpus.ends[position]))
