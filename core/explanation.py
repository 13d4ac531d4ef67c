"""Why is this here, or where was it lost: one chunk's way through a trace, with the numbers put in."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from core.passages import Passage
from core.settings import SearchSettings
from core.trace import NO_RULES, Ruled, Stage, Trace

STAGE_TITLES = {
    "items": "Items",
    "items.lexical": "Items, lexical",
    "items.semantic": "Items, semantic",
    "items.clicks": "Items, clicks",
    "items.recency": "Items, recency",
    "items.popularity": "Items, popularity",
    "items.rules": "Items, rules",
    "items.fused": "Items, fused",
    "bm25": "BM25",
    "vector": "Vector",
    "fused": "Fused",
    "scored": "Score fusion",
    "reranker": "Reranker",
    "reranked": "Rerank fusion",
    "kept": "Kept",
    "passages": "Passages",
}


def stage_title(name: str) -> str:
    """The name a page shows for a stage."""
    signal = name.removeprefix("items.")
    return STAGE_TITLES.get(name) or (name if signal == name else f"Items, {signal}")


@dataclass(frozen=True, slots=True)
class Step:
    """A chunk (or its item) at one stage.

    `rank` and `score` are those it leaves with, None where it did not pass. `arithmetic` substitutes
    the numbers of a fusion, or says how a signal or rules came to it. `lost` says, where it fell out, by
    how much.
    """

    stage: str
    title: str
    on: bool
    rank: int | None
    score: float | None
    count: int
    arithmetic: str
    lost: str
    note: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """One chunk through all stages. `lost_at` names the stage it fell out at; None when it is in the
    result, in `passage`. `terms` holds each index's term table, for indexes that have one."""

    chunk_id: str
    position: int
    steps: tuple[Step, ...]
    sentence: str
    lost_at: str | None
    passage: Passage[int] | None
    passage_rank: int | None
    terms: dict[str, list[Any]]
    similarity: float | None

    def step(self, stage: str) -> Step:
        return next(step for step in self.steps if step.stage == stage)


def explain(trace: Trace, position: int) -> Explanation:
    """The way of the chunk at this position, in the result or not.

    Raises IndexError when the corpus has no such position.
    """
    if not 0 <= position < len(trace.corpus):
        raise IndexError(f"position {position} is outside the corpus of {len(trace.corpus)} chunks")
    item = int(trace.corpus.item_of[position])
    rank, passage = next(
        ((n, p) for n, p in enumerate(trace.passages, 1) if position in p.members), (None, None)
    )
    steps = []
    for stage in trace.stages:
        if stage.unit == "passage":
            steps.append(_merge_step(trace, stage, position, rank, passage))
        else:
            steps.append(_step(trace, stage, item if stage.unit == "item" else position))
    lost_at = None if passage else _lost_at(trace, steps, position)
    terms = {}
    for name, index in trace.indexes.items():
        if hasattr(index, "explain") and trace.query.strip():
            with suppress(Exception):  # somebody else's table must not take the whole explanation along
                terms[name] = index.explain(trace.query, position)
    vector = trace.record.searches.get("vector")
    at = vector.rank_of(position) if vector is not None else None
    similarity = float(vector.scores[at - 1]) if vector is not None and at else None
    return Explanation(
        trace.corpus.chunk_id(position),
        position,
        tuple(steps),
        _sentence(trace, position, steps, lost_at, passage, rank),
        lost_at,
        passage,
        rank,
        terms,
        similarity,
    )


def _step(trace: Trace, stage: Stage, position: int) -> Step:
    rank = stage.ranking.rank_of(position)
    score = None if rank is None else float(stage.ranking.scores[rank - 1])
    lost = "" if rank is not None or not stage.on else _how_lost(trace, stage, position)
    arithmetic = "" if rank is None else _arithmetic(trace, stage, rank - 1)
    title = stage_title(stage.name)
    return Step(
        stage.name, title, stage.on, rank, score, len(stage.ranking), arithmetic, lost, stage.note
    )


def _how_lost(trace: Trace, stage: Stage, position: int) -> str:
    if position in stage.removed:
        return stage.removed[position]
    item = position if stage.unit == "item" else int(trace.corpus.item_of[position])
    if trace.record.passing is not None and not trace.record.passing[item]:
        return f"its item does not pass the filters ({trace.settings.filters})"
    before = stage.before.rank_of(position)
    if before is not None and stage.limit is not None and before > stage.limit:
        cut = f"rank {before}, and only the first {stage.limit} go on"
        if stage.unit == "item" and stage.kind == "rule":  # its scores are places
            return cut
        # A reranker's own scores are on another scale than those its list was cut by.
        last = stage.before.head(stage.limit) if stage.kind == "rerank" else stage.ranking
        score, needed = float(stage.before.scores[before - 1]), float(last.scores[-1])
        return (
            f"{cut}: its score {number(score)} is {number(needed - score)} short of the last that does"
        )
    if stage.kind == "search" and stage.inputs and not _item_passed(trace, position):
        return "not searched: its item did not pass the item stage"
    if stage.kind == "search":
        if depth := _cut_at(trace, stage):
            return f"below the first {depth}, as deep as this search looked"
        return "shares nothing with the query that this index sees"
    if stage.unit == "item" and position in trace.stage("items").removed:
        return trace.stage("items").removed[position]
    if stage.kind == "project":
        return "no chunk of its item is among the nearest that the vector search was asked for"
    if stage.kind == "signal":
        pinned = told(trace, "rules", position) if stage.name == "items.rules" else ""
        return pinned or _not_ranked(trace.settings, stage.name)
    inputs = [trace.stage(name) for name in stage.inputs]
    if any(one.unit == stage.unit and one.ranking.rank_of(position) for one in inputs):
        return "only lists of weight 0 hold it"
    return "no signal that is on ranks its item" if stage.unit == "item" else "did not reach this stage"


def _not_ranked(settings: SearchSettings, name: str) -> str:
    """Why a signal has no rank for an item."""
    reasons = {
        "items.lexical": "its item shares nothing with the query that this signal sees",
        "items.clicks": "too little is known of what people do with its item after such queries",
        "items.recency": f"its item has no date in {settings.recency_field}, or one from more than seven "
        "half-lives ago",
        "items.popularity": f"its item has no number in {settings.popularity_field}",
        "items.rules": "no rule boosts or buries its item",
    }
    return reasons.get(name, "this signal does not rank its item")


def _cut_at(trace: Trace, stage: Stage) -> int | None:
    """How deep a search looked, where there may be more below; None where it gave all that it found."""
    depth = trace.record.depths.get(stage.name)
    return depth if depth is not None and len(stage.before) >= depth else None


def _item_passed(trace: Trace, position: int) -> bool:
    return trace.stage("items").ranking.rank_of(int(trace.corpus.item_of[position])) is not None


def _lost_at(trace: Trace, steps: list[Step], position: int) -> str:
    """The stage that ended its way: its item's, the search that it came nearest to passing, or a cut."""
    by_name = {step.stage: step for step in steps}
    items = by_name["items"]
    if items.on and items.rank is None:
        return "items"
    if by_name["reranker"].lost and by_name["fused"].rank is not None:
        return "reranker"
    if by_name["fused"].rank is not None:
        return "kept"  # the fusions after it drop nothing
    searches = [s for s in trace.stages if s.kind == "search" and by_name[s.name].lost]
    if not searches:
        return "fused"
    return min(searches, key=lambda s: s.before.rank_of(position) or _cut_at(trace, s) or math.inf).name


def _arithmetic(trace: Trace, stage: Stage, row: int) -> str:
    """How one line came about: a fusion's formula with its numbers, `1/(60+2) + 1/(60+1) = 0.01613 + …`; what
    a signal says of its item; what rules did."""
    position = int(stage.ranking.positions[row])
    if stage.kind == "signal":
        return told(trace, stage.name.removeprefix("items."), position)
    if stage.ranks is None:
        return ""
    if stage.terms is None:
        fused = int(stage.ranks[row, 0])
        came = f"rank {fused} in the fusion" if fused else "ranked by no signal that counts"
        return "; ".join((came, *trace.record.ruled.said.get(position, ())))
    formulas, values = [], []
    for column, name in enumerate(stage.inputs):
        rank, term = int(stage.ranks[row, column]), float(stage.terms[row, column])
        if rank:
            formulas.append(formula(trace.settings, stage, name, rank, term))
            values.append(number(term))
    total = number(float(stage.ranking.scores[row]))
    if len(values) == 1:
        return f"{formulas[0]} = {total}"
    return f"{' + '.join(formulas)} = {' + '.join(values)} = {total}"


def acted(trace: Trace) -> Ruled:
    """What rules did to the items; nothing where they are off, or items are not ranked."""
    acts = any(stage.name == "items.rules" and stage.on for stage in trace.stages)
    return trace.record.ruled if acts else NO_RULES


def told(trace: Trace, signal: str, item: int) -> str:
    """What a signal says of an item that it ranks, or rules of one that they touch; blank where it says nothing."""
    if signal == "rules":
        return "; ".join(trace.record.ruled.said.get(item, ()))
    why = trace.record.whys.get(signal)
    if why is None:
        return ""
    with suppress(Exception):  # somebody else's sentence must not take the whole explanation along
        return str(why(item))
    return ""


def formula(settings: SearchSettings, stage: Stage, name: str, rank: int, term: float) -> str:
    """How a fusion came to the term of one line of its input `name`, with the numbers put in."""
    if stage.unit == "item":
        weight, k_rrf = settings.signal(name.removeprefix("items.")).weight, settings.k_rrf_items
        if name == "items.rules":  # every item boosted stands first, weighed by its rules
            net = f"{term * (k_rrf + 1) / weight if weight else 0:g}"
            return f"{weight:g}·{f'({net})' if term < 0 else net}/({k_rrf}+1)"
        return f"{weight:g}/({k_rrf}+{rank})"
    if stage.name == "scored":
        weight = settings.passage_weight if name == "fused" else settings.item_weight
        return f"{weight:g}/({settings.k_rrf_score}+{rank})"
    if stage.name == "reranked":
        weight = settings.rerank_weight if name == "reranker" else 1.0
        return f"{weight:g}/({settings.k_rrf_rerank}+{rank})"
    weight = settings.index(name).weight
    if settings.fusion == "rrf":
        return f"{weight:g}/({settings.k_rrf}+{rank})"
    total = math.fsum(settings.index(other).weight for other in stage.inputs) or 1.0
    return f"{weight:g}/{total:g}·{number(term * total / weight if weight else 0.0)}"


def _merge_step(
    trace: Trace, stage: Stage, position: int, rank: int | None, passage: Passage[int] | None
) -> Step:
    story = ""
    if passage is not None:
        others = len(passage.members) - 1
        story = f"characters {passage.start:,}–{passage.end:,}"
        if others:
            joined = "chunk" if others == 1 else "chunks"
            story += f", joined with {others} neighbouring {joined}"
            story += f" over {len(passage.gaps)} gap(s)" if passage.gaps else ""
            if passage.best != position:
                start, end = trace.corpus.starts[passage.best], trace.corpus.ends[passage.best]
                story += f"; the score is that of the chunk at {start:,}–{end:,}"
    score = passage.score if passage else None
    lost = "" if passage else "not among the chunks that were kept"
    return Step(
        stage.name,
        stage_title(stage.name),
        stage.on,
        rank,
        score,
        len(stage.ranking),
        story,
        lost,
        stage.note,
    )


def _sentence(
    trace: Trace,
    position: int,
    steps: list[Step],
    lost_at: str | None,
    passage: Passage[int] | None,
    rank: int | None,
) -> str:
    by_name = {step.stage: step for step in steps}
    searches = [s for s in trace.stages if s.kind == "search" and s.on]
    places = [
        f"{stage_title(s.name)} ranks it {step.rank}"
        if step.rank
        else f"{stage_title(s.name)} does not list it"
        for s in searches
        for step in [by_name[s.name]]
    ]
    told = " and ".join(places) if places else "No index is on"
    items = by_name["items"]
    told += f"; its item is {items.rank} of {items.count}" if items.on and items.rank else ""
    if items.rank:
        said = acted(trace).said.get(int(trace.corpus.item_of[position]), ())
        told += f" ({'; '.join(said)})" if said else ""
    if passage is not None:
        where = f"so it is in passage {rank}"
        return f"{told}, {where}{' with its neighbours' if len(passage.members) > 1 else ''}."
    step = by_name[lost_at or "kept"]
    return f"{told}. It is not in the result: lost at {step.title} ({step.lost or 'cut'})."


def number(value: float) -> str:
    """Four significant digits, also where the last are zeros, so that numbers stand under each other."""
    return f"{value:#.4g}"
