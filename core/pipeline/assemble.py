"""Recorded searches into a trace: fusion, score fusion, rules, merging. Pure; nothing is searched.

`search` itself ends here, so that replaying a trace and searching anew cannot tell different stories.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import NeedsSearch
from core.fusion import convex, row_sums, rrf
from core.passages import Passage, Span, merge
from core.pipeline.items import RULES, acting, counts_signals, item_stages
from core.pipeline.memo import Memo
from core.settings import SearchSettings, search_only_changes
from core.trace import NO_HITS, CorpusView, Ranking, Record, Reranked, Stage, Trace

VECTOR = "vector"
RERANKER, RERANKED = "reranker", "reranked"

UNSET = {
    "clicks": "nobody's clicks are recorded for these items",
    "recency": "no recency field is set",
    "popularity": "no popularity field is set",
}
"""Why a signal of ours may not be there."""

PROBE = 10
"""Where not every chunk is scored, items are ranked by this many times as many chunks as items go on:
several chunks share an item."""


def replay(trace: Trace, settings: SearchSettings) -> Trace:
    """The trace of the same query with other settings, from what was recorded.

    Raises NeedsSearch, naming why, when the record does not reach far enough; then `search`.
    Equal to a new search wherever it returns.
    """
    return assemble(trace.corpus, trace.record, settings, trace.indexes)


def assemble(
    corpus: CorpusView,
    record: Record,
    settings: SearchSettings,
    indexes: Mapping[str, Any],
    memo: Memo | None = None,
) -> Trace:
    """The trace of a record under these settings. Raises NeedsSearch as `replay` does.

    `memo` may be shared by records of the same searches, and by no others.
    """
    if changed := search_only_changes(record.settings, settings):
        raise NeedsSearch(changed)
    stages, best = _until_reranking(corpus, record, settings, memo or Memo())
    best = _rerank_stages(record, settings, best, stages)
    kept = _rule_stage(corpus, settings, best, stages)
    passages = _passages(corpus, settings, kept)
    stages.append(
        Stage(
            "passages",
            "merge",
            "passage",
            Ranking(np.arange(len(passages)), [passage.score for passage in passages]),
            ("kept",),
            note="" if settings.merge else "merging is off: one passage for each chunk",
        )
    )
    return Trace(
        record.query,
        settings,
        corpus,
        tuple(stages),
        tuple(passages),
        record.notes + _item_notes(record, settings) + _unknown_names(record, settings),
        record,
        MappingProxyType(dict(indexes)),
    )


def to_rerank(corpus: CorpusView, record: Record, settings: SearchSettings) -> Ranking:
    """The chunks that go to the reranker, best first. Raises NeedsSearch as `replay` does."""
    _, best = _until_reranking(corpus, record, settings, Memo())
    return best.ranking.head(settings.rerank_depth)


def _until_reranking(
    corpus: CorpusView, record: Record, settings: SearchSettings, memo: Memo
) -> tuple[list[Stage], Stage]:
    """The stages up to score fusion, and the last of them that ranks chunks."""
    stages: list[Stage] = []
    items = item_stages(record, settings, stages, memo)
    within = _within(corpus, record, settings, items, memo)
    _search_stages(record, settings, within, stages)
    fused = _fuse_stage(record, settings, stages)
    return stages, _score_stage(corpus, settings, items, fused, stages)


def probe_depth(settings: SearchSettings, n_chunks: int) -> int:
    """How many chunks rank the items, where not every chunk is scored."""
    return min(n_chunks, PROBE * max(settings.items, 100))


def _within(
    corpus: CorpusView,
    record: Record,
    settings: SearchSettings,
    items: Ranking | None,
    memo: Memo,
) -> Callable[[str], Ranking] | None:
    """What a search found inside the items (None: all are searched), after checking that the record holds it."""
    if items is None:
        if record.covered is not None:
            raise NeedsSearch(("searching outside the recorded items",))
        filtered = record.passing is not None
        short = [
            reason
            for name, deepest in record.depths.items()
            if deepest is not None and (reason := _beyond(name, deepest, settings, filtered))
        ]
        if short:
            raise NeedsSearch(tuple(short))
        return None
    if any(deepest is not None for deepest in record.depths.values()):
        raise NeedsSearch(("searching inside items",))
    if record.covered is not None:
        probed, wanted = (probe_depth(one, len(corpus)) for one in (record.settings, settings))
        if probed != wanted:
            raise NeedsSearch((f"items ranked by {wanted:,} chunks",))
        hid, hides = (one.signal(RULES).on for one in (record.settings, settings))
        if record.ruled.hidden and hid != hides:
            raise NeedsSearch(("items ranked with other items hidden",))
    mask = np.zeros(len(corpus.item_ids), dtype=np.bool_)
    mask[items.positions] = True
    if record.covered is not None and bool((mask & ~record.covered).any()):
        raise NeedsSearch(("items that were not searched",))
    these = mask.tobytes()

    def within(name: str) -> Ranking:
        allowed = memo.once(these, lambda: mask[corpus.item_of])
        return memo.once((these, name), lambda: record.searches[name].within(allowed))

    return within


def _beyond(name: str, deepest: int, settings: SearchSettings, filtered: bool) -> str:
    """Why a search to `deepest` does not hold what one to the wanted depth gives; empty when it does."""
    depth = settings.index(name).depth
    if depth > deepest:
        return f"{name} depth above {deepest}"
    # A graph asked for more than ef keeps more candidates, and may find other chunks among the first; with
    # a filter it looks at more of them the more are wanted.
    enough = depth if filtered else max(depth, settings.hnsw_ef)
    if name == VECTOR and settings.vector == "hnsw" and deepest > enough:
        return f"{name} depth {depth} with fewer candidates"
    return ""


def _search_stages(
    record: Record,
    settings: SearchSettings,
    within: Callable[[str], Ranking] | None,
    stages: list[Stage],
) -> None:
    inputs = ("items",) if within else ()
    for name, recorded in record.searches.items():
        use = settings.index(name)
        off = _why_off(name, record, settings)
        before = NO_HITS if off else within(name) if within else recorded
        stages.append(
            Stage(
                name,
                "search",
                "chunk",
                before.head(use.depth),
                inputs,
                before=before,
                limit=use.depth,
                on=not off,
                note=off,
            )
        )


def _why_off(name: str, record: Record, settings: SearchSettings) -> str:
    if not settings.index(name).on:
        return "switched off"
    if settings.two_stage and settings.second_stage == "semantic" and name != VECTOR:
        return "the second stage is semantic only"
    return ""


def _fuse_stage(record: Record, settings: SearchSettings, stages: list[Stage]) -> Stage:
    rankings = {s.name: s.ranking for s in stages if s.kind == "search" and s.on}
    weights = {name: settings.index(name).weight for name in rankings}
    if settings.fusion == "rrf":
        fused = rrf(rankings, weights, settings.k_rrf)
    else:
        fused = convex(rankings, weights, settings.fusion)
    note = "" if rankings else "no index is on: switch one on to see results"
    if rankings and not any(weights.values()):
        note = "every index that is on has the weight 0: raise one to see results"
    stages.append(
        Stage(
            "fused",
            "fuse",
            "chunk",
            fused.ranking,
            fused.names,
            fused.ranks,
            fused.terms,
            before=fused.ranking,
            note=note,
        )
    )
    return stages[-1]


def _score_stage(
    corpus: CorpusView,
    settings: SearchSettings,
    items: Ranking | None,
    fuse: Stage,
    stages: list[Stage],
) -> Stage:
    """Score fusion: RRF of a chunk's own rank and its item's rank (passage retrieval)."""
    if items is None:
        off = "no item ranking to fuse with: the fused order goes on"
        stages.append(Stage("scored", "fuse", "chunk", NO_HITS, on=False, note=off))
        return fuse
    fused = fuse.ranking
    item_rank = np.zeros(len(corpus.item_ids), dtype=np.int64)
    item_rank[items.positions] = np.arange(1, len(items) + 1)
    ranks = np.stack(
        [np.arange(1, len(fused) + 1), item_rank[corpus.item_of[fused.positions]]], axis=1
    ).reshape(-1, 2)
    weights = np.array([settings.passage_weight, settings.item_weight])
    terms = weights / (settings.k_rrf_score + ranks)
    stages.append(_by_ranks("scored", fused.positions, ("fused", "items"), ranks, terms))
    return stages[-1]


def _by_ranks(
    name: str,
    positions: NDArray[np.int64],
    inputs: tuple[str, ...],
    ranks: NDArray[np.int64],
    terms: NDArray[np.float64],
) -> Stage:
    """A fusion of ranks in which every input lists every chunk."""
    scores = row_sums(terms)
    order = np.lexsort((positions, -scores))
    ranking = Ranking(positions[order], scores[order])
    return Stage(name, "fuse", "chunk", ranking, inputs, ranks[order], terms[order], ranking)


def _rerank_stages(record: Record, settings: SearchSettings, best: Stage, stages: list[Stage]) -> Stage:
    """The reranker's order of the best chunks, and its fusion with the order before; gives what goes on.

    Raises NeedsSearch where the record does not hold the scores of these chunks.
    """
    before = best.ranking.head(settings.rerank_depth)
    off, asked = "no reranker", record.reranked
    if settings.rerank != "none":
        if asked is None or (asked.name, asked.model) != (settings.rerank, settings.rerank_model):
            raise NeedsSearch((f"reranking by {settings.rerank}",))
        if (asked.failed or asked.listwise) and not np.array_equal(asked.positions, before.positions):
            raise NeedsSearch(("reranking another list",))
        off = asked.failed and f"{asked.failed}; the order before it goes on"
    if off or asked is None:
        stages.append(Stage(RERANKER, "rerank", "chunk", NO_HITS, on=False, note=off))
        stages.append(Stage(RERANKED, "fuse", "chunk", NO_HITS, on=False, note=off))
        return best
    ranking = Ranking.order(before.positions, _scores_of(asked, before.positions))
    stages.append(
        Stage(
            RERANKER,
            "rerank",
            "chunk",
            ranking,
            (best.name,),
            before=best.ranking,
            limit=settings.rerank_depth,
        )
    )
    if not settings.rerank_fuses:
        off = "the reranker's order replaces the one before"
        stages.append(Stage(RERANKED, "fuse", "chunk", NO_HITS, on=False, note=off))
        return stages[-2]
    rank_of = {position: rank for rank, position in enumerate(ranking.positions.tolist(), 1)}
    theirs = [rank_of[position] for position in before.positions.tolist()]
    ranks = np.stack([np.arange(1, len(before) + 1), np.array(theirs, dtype=np.int64)], axis=1)
    terms = np.array([1.0, settings.rerank_weight]) / (settings.k_rrf_rerank + ranks)
    stages.append(_by_ranks(RERANKED, before.positions, (best.name, RERANKER), ranks, terms))
    return stages[-1]


def _scores_of(asked: Reranked, positions: NDArray[np.int64]) -> NDArray[np.float64]:
    known = dict(zip(asked.positions.tolist(), asked.scores.tolist(), strict=True))
    if missing := sum(position not in known for position in positions.tolist()):
        raise NeedsSearch((f"reranking {missing:,} more",))
    return np.array([known[position] for position in positions.tolist()], dtype=np.float64)


def _rule_stage(
    corpus: CorpusView, settings: SearchSettings, best: Stage, stages: list[Stage]
) -> Ranking:
    """Duplicates collapsed, at most n of an item, the first k: in that order, walking down the ranking."""
    scored = best.ranking
    removed: dict[int, str] = {}
    if settings.collapse_duplicates or settings.per_item:
        keep = _walk(corpus, settings, scored, removed)
        ranking = Ranking(scored.positions[keep], scored.scores[keep])
    else:
        ranking = scored.head(settings.k)
    stages.append(
        Stage(
            "kept",
            "rule",
            "chunk",
            ranking,
            (best.name,),
            before=scored,
            limit=settings.k,
            removed=MappingProxyType(removed),
        )
    )
    return ranking


def _walk(
    corpus: CorpusView, settings: SearchSettings, scored: Ranking, removed: dict[int, str]
) -> list[int]:
    keep: list[int] = []
    seen: dict[int, int] = {}
    per_item: Counter[int] = Counter()
    for row, position in enumerate(scored.positions.tolist()):
        if len(keep) == settings.k:
            break
        group, item = int(corpus.duplicate_of[position]), int(corpus.item_of[position])
        if settings.collapse_duplicates and group in seen:
            removed[position] = f"same text as the chunk at rank {seen[group]}"
        elif settings.per_item and per_item[item] == settings.per_item:
            removed[position] = f"its item already has {settings.per_item} chunks above it"
        else:
            keep.append(row)
            seen.setdefault(group, row + 1)
            per_item[item] += 1
    return keep


def _passages(corpus: CorpusView, settings: SearchSettings, kept: Ranking) -> list[Passage[int]]:
    spans = [
        Span(hit.position, int(corpus.item_of[hit.position]), start, end, hit.score)
        for hit, start, end in zip(
            kept,
            corpus.starts[kept.positions].tolist(),
            corpus.ends[kept.positions].tolist(),
            strict=True,
        )
    ]
    if settings.merge:
        return merge(spans, settings.merge_gap, settings.merge_cap)
    return [Passage(s.item, s.start, s.end, s.score, s.key, (s.key,)) for s in spans]


def _item_notes(record: Record, settings: SearchSettings) -> tuple[str, ...]:
    """What the signals that count and the rules that act have to say."""
    if not (settings.two_stage and counts_signals(record.signals, settings)):
        return ()
    told = [
        f"{name}: {note}"
        for name, notes in record.said.items()
        if settings.signal(name).on
        for note in notes
    ]
    return (*told, *acting(record.ruled, settings).notes)


def _unknown_names(record: Record, settings: SearchSettings) -> tuple[str, ...]:
    """Settings for parts that are not here move nothing, so they are named."""
    notes = [
        f"there is no index {n}: its settings have no effect"
        for n in settings.indexes
        if n not in record.searches
    ]
    notes += [
        f"{UNSET.get(n, f'there is no item signal {n}')}: its settings have no effect"
        for n in settings.signals
        if settings.two_stage and n not in (*record.signals, RULES)
    ]
    return tuple(notes)
