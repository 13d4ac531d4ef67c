"""All that a run over golden queries tells: figures of every stage, where evidence was lost, and how many of
its characters are covered. One search of each query serves all three."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from core.corpus import Corpus
from core.evaluation.coverage import Coverage, covered_by
from core.evaluation.fates import Asked, Fate, cut_of, fates
from core.evaluation.funnel import Funnel
from core.evaluation.golden import Golden, standing
from core.evaluation.judgements import GoldenQuery
from core.evaluation.results import ResultsCache
from core.evaluation.runner import Measured, Reading, is_kept, measure
from core.protocols import Progress
from core.settings import SearchSettings
from core.trace import Trace

COVERED = 5
"""Results whose characters are counted, as in the published tables."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a run gave; `coverage` is None where no evidence is located."""

    measured: Measured
    funnel: Funnel
    coverage: Coverage | None


def evaluate(
    corpus: Corpus,
    queries: Sequence[GoldenQuery],
    settings: SearchSettings,
    progress: Progress | None = None,
    cache: ResultsCache | None = None,
    pay: bool = False,
    at_most: float = math.inf,
) -> Outcome:
    """Search for every query that has evidence, as `measure` does, and read all from its trace."""
    measured = measure(corpus, queries, settings, progress, cache, pay, at_most, _READING)
    pairs = list(zip(measured.queries, measured.readings, strict=True))
    funnel = Funnel.of(fate for query, read in pairs for fate in _fates(read, query, corpus))
    located = [(query, read["covered"]) for query, read in pairs if read["covered"]]
    coverage = None
    if located:
        coverage = Coverage.of(COVERED, *zip(*located, strict=True))
    return Outcome(measured, funnel, coverage)


def kept_outcome(
    corpus: Corpus, queries: Sequence[GoldenQuery], settings: SearchSettings, cache: ResultsCache
) -> Outcome | None:
    """The outcome where all of it is in the cache; None where anything had to be searched."""
    if not is_kept(corpus, queries, settings, cache, _READING):
        return None
    return evaluate(corpus, queries, settings, None, cache)


def _read(query: GoldenQuery, golden: Golden, trace: Trace) -> Mapping[str, Any]:
    """What the funnel and the coverage take from a trace, as JSON holds it."""
    corpus = cast(Corpus, trace.corpus)
    told = fates(trace, golden, query, trace.settings.k)
    asked = told[0].asked
    return {
        "k": asked.k,
        "pieces": asked.pieces,
        # Numbers of chunks, which are short; their sums, which are wanted, are long.
        "chunks": None if asked.searched is None else np.diff(asked.searched, prepend=0).tolist(),
        "items": asked.items,
        "off": sorted(asked.off),
        "depths": dict(told[0].depths),
        "fates": [
            {
                "position": one.position,
                "lost_at": one.lost_at,
                "cause": one.cause,
                "story": one.story,
                "ranks": dict(one.ranks),
                "item_rank": one.item_rank,
                "passage": one.passage,
                "cut": one.cut,
            }
            for one in told
        ],
        "covered": covered_by(trace, corpus, query, COVERED) if query.evidence else None,
    }


_READING = Reading(f"fates, characters of {COVERED}", _read)


def _fates(read: Mapping[str, Any], query: GoldenQuery, corpus: Corpus) -> Iterator[Fate]:
    """The fates that were read, of the query as it is called now."""
    chunks = read["chunks"]
    asked = Asked(
        query.id,
        read["k"],
        read["pieces"],
        tuple(cut_of(corpus, standing(corpus, one)) for one in query.evidence),
        None if chunks is None else np.cumsum(chunks, dtype=np.int64),
        read["items"],
        frozenset(read["off"]),
    )
    depths = MappingProxyType(read["depths"])
    for one in read["fates"]:
        ranks = MappingProxyType(one["ranks"])
        yield Fate(asked, depths=depths, **{**one, "ranks": ranks})
