"""What became of each golden piece of a query: found, or lost at exactly one stage of its trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import cast

import numpy as np
from numpy.typing import NDArray

from core.corpus import Corpus
from core.evaluation.golden import Golden, pieces_of, ranks_in_passages, rows_of, standing
from core.evaluation.judgements import EvaluationError, Evidence, GoldenQuery
from core.explanation import stage_title
from core.trace import Stage, Trace

LOSSES: Mapping[str, str] = MappingProxyType(
    {
        "located": "Located",
        "corpus": "In the corpus",
        "taken_out": "Filters, hiding rules",
        "items": "Item stage",
        "indexes": "In an index's depth",
        "fused": "Fusion",
        "scored": "Score fusion",
        "reranker": "Reranker",
        "rules": "Duplicates, per item",
        "kept": "First k",
    }
)
"""Where a golden piece can be lost, in pipeline order, with the titles a page shows."""


@dataclass(frozen=True, slots=True)
class Cut:
    """What chunking did to one golden span: how many `chunks` hold some of it, and which share of what
    they hold of it is in the one that holds most (`best`, 0 where no chunk holds any)."""

    evidence: Evidence
    chunks: int
    best: float

    @property
    def whole(self) -> bool:
        """Whether one chunk holds all of it that any chunk holds; blanks between chunks do not count."""
        return self.best == 1


@dataclass(frozen=True, eq=False)
class Asked:
    """What the fates of one query share. `pieces`: the number of its golden pieces, those that no chunk
    is there for included. `searched` int64 (n_ranked_items,): how many chunks the first 1, 2, … ranked
    items hold, None where items play no part; `items` of them were sent on. `off`: losses that could not
    happen, as their stage was off."""

    query: str
    k: int
    pieces: int
    cuts: tuple[Cut, ...]
    searched: NDArray[np.int64] | None
    items: int
    off: frozenset[str]


@dataclass(frozen=True, slots=True)
class Fate:
    """One golden piece. `lost_at` is one of `LOSSES`, "" when it is found; `cause` says how in words that
    all pieces lost in the same way share, `story` with this piece's numbers.

    `position` is its chunk, None where there is none. `ranks` holds its rank, from 1, in each stage
    that ranks it (for an index, also beyond its depth), `depths` the depth of each index that is on.
    `item_rank` is its item's among all ranked ones, 0 where not ranked; `passage` the rank of the
    passage that holds it, 0 where none does. `cut`: its span, or one of them, is in no single chunk.
    """

    asked: Asked
    position: int | None
    lost_at: str
    cause: str
    story: str
    ranks: Mapping[str, int]
    depths: Mapping[str, int]
    item_rank: int = 0
    passage: int = 0
    cut: bool = False

    @property
    def share(self) -> float:
        """Its part of its query's recall."""
        return 1 / self.asked.pieces

    def within(self, index: str) -> bool:
        """Whether the index ranks it within its depth."""
        return 0 < self.ranks.get(index, 0) <= self.depths.get(index, 0)


def fates(trace: Trace, golden: Golden, query: GoldenQuery, k: int) -> list[Fate]:
    """The fate of each golden piece of a query, `golden` being its pieces in the trace's corpus.

    A piece that ranks below k at the end is lost at the last stage that had it among the first k before
    and not after; where none ever had, at "kept". Those that are found are the pieces of recall@k of the
    stage `kept`. Raises EvaluationError when k is below 1 or above the trace's own k.
    """
    if not 1 <= k <= trace.settings.k:
        raise EvaluationError(
            f"fates for k {k} cannot be told from a search that kept {trace.settings.k}; "
            f"give 1 to {trace.settings.k}, or raise k in the search"
        )
    corpus = cast(Corpus, trace.corpus)  # what is evaluated is always a whole corpus
    return list(_Query(trace, corpus, golden, query, k))


class _Query:
    """The stages of one trace, as the fates of its pieces are read from them."""

    def __init__(self, trace: Trace, corpus: Corpus, golden: Golden, query: GoldenQuery, k: int) -> None:
        self.trace, self.corpus, self.golden, self.query, self.k = trace, corpus, golden, query, k
        self.stages = {stage.name: stage for stage in trace.stages}
        self.searches = [stage for stage in trace.stages if stage.kind == "search" and stage.on]
        self.depths = MappingProxyType({stage.name: stage.limit or 0 for stage in self.searches})
        evidence = [standing(corpus, one) for one in query.evidence]
        self.pieces = [pieces_of(corpus, one) for one in evidence]
        self.cuts = tuple(cut_of(corpus, one) for one in evidence)
        self.asked = self._asked()

    def __iter__(self) -> Iterator[Fate]:
        for one in self.query.unlocated:
            yield self._nowhere("located", "no span of a document is known", one.reason)
        for pieces, cut in zip(self.pieces, self.cuts, strict=True):
            if not len(pieces):
                yield self._nowhere("corpus", *self._why_no_chunk(cut.evidence))
        apart = {
            at
            for pieces, cut in zip(self.pieces, self.cuts, strict=True)
            if not cut.whole
            for at in pieces.tolist()
        }
        passages = ranks_in_passages(self.golden, self.trace.passages, self.corpus).tolist()
        for place, passage in enumerate(passages[: len(self.golden.positions)]):
            at = self._found(place)
            ranks = self._ranks(at)
            item_rank = self.stages["items"].before.rank_of(int(self.corpus.item_of[at])) or 0
            lost_at, cause, story = self._end(at, ranks, item_rank)
            known = MappingProxyType(ranks)
            yield Fate(
                self.asked,
                at,
                lost_at,
                cause,
                story,
                known,
                self.depths,
                item_rank,
                passage,
                int(self.golden.positions[place]) in apart,
            )

    def _found(self, place: int) -> int:
        """The piece's own position, or that of the copy which is found in its stead."""
        first, *copies = self.golden.any_of(place)
        kept = self.stages["kept"].ranking
        ranked = ((kept.rank_of(one) or 0, one) for one in (first, *copies))
        # A copy that was searched tells more than an original that was not.
        searched = (one for one in (first, *copies) if not self._taken_out(one)[0])
        lost = 0, next(searched, first)
        return min((pair for pair in ranked if 0 < pair[0] <= self.k), default=lost)[1]

    def _taken_out(self, position: int) -> tuple[str, str]:
        """Cause and story where filters or a rule keep its item out; twice "" where nothing does."""
        item, passing = int(self.corpus.item_of[position]), self.trace.record.passing
        if passing is not None and not passing[item]:
            return "filtered out", f"its item does not pass {self.trace.settings.filters}"
        if reason := self.stages["items"].removed.get(item, ""):
            return f"taken out: {reason}", reason
        return "", ""

    def _asked(self) -> Asked:
        items = self.stages["items"]
        searched = None
        if items.on:
            searched = np.diff(self.corpus.first_chunk)[items.before.positions].cumsum()
        off = {name for name in ("items", "scored", "reranker") if not self._on(name)}
        settings = self.trace.settings
        if not (settings.collapse_duplicates or settings.per_item):
            off.add("rules")
        if self.trace.record.passing is None and not items.removed:
            off.add("taken_out")
        return Asked(
            self.query.id,
            self.k,
            len(self.golden),
            self.cuts,
            searched,
            settings.items,
            frozenset(off),
        )

    def _on(self, name: str) -> bool:
        return name in self.stages and self.stages[name].on

    def _nowhere(self, lost_at: str, cause: str, story: str) -> Fate:
        nothing: Mapping[str, int] = MappingProxyType({})
        return Fate(self.asked, None, lost_at, cause, story, nothing, self.depths)

    def _why_no_chunk(self, evidence: Evidence) -> tuple[str, str]:
        if evidence.document_id not in self.corpus.item_ids:
            return "its document is missing", f"there is no document {evidence.document_id}"
        span = f"{evidence.start:,}–{evidence.end:,}"
        return "no chunk holds any of it", f"no chunk holds any of characters {span}"

    def _ranks(self, position: int) -> dict[str, int]:
        ranks = {}
        for stage in self.trace.stages:
            if stage.unit == "chunk" and stage.on:
                ranking = stage.before if stage.kind == "search" else stage.ranking
                if rank := ranking.rank_of(position):
                    ranks[stage.name] = rank
        return ranks

    def _end(self, position: int, ranks: Mapping[str, int], item_rank: int) -> tuple[str, str, str]:
        """Where its way ended, the cause, and the story; thrice "" when it is found."""
        if 0 < ranks.get("kept", 0) <= self.k:
            return "", "", ""
        if (why := self._taken_out(position))[0]:
            return "taken_out", *why
        if self._on("items") and not 0 < item_rank <= self.trace.settings.items:
            if not item_rank:
                return "items", "no signal that counts ranks its item", "its item is not ranked"
            sent = self.trace.settings.items
            return (
                "items",
                "its item was not sent on",
                f"its item is {item_rank}, and {sent} are sent on",
            )
        listed = {
            s.name: ranks[s.name] for s in self.searches if 0 < ranks.get(s.name, 0) <= (s.limit or 0)
        }
        if not listed:
            return "indexes", *self._why_unlisted(ranks)
        if "fused" not in ranks:
            return "fused", "only indexes of weight 0 list it", _places(listed)
        return self._cut_off(position, ranks, listed)

    def _why_unlisted(self, ranks: Mapping[str, int]) -> tuple[str, str]:
        if not self.searches:
            return "no index is on", self.stages["fused"].note
        below = {stage.name: ranks[stage.name] for stage in self.searches if stage.name in ranks}
        if below:
            depths = ", ".join(f"{stage_title(name)} {self.depths[name]}" for name in below)
            return "below every index's depth", f"{_places(below)}; the depth is {depths}"
        full = [stage for stage in self.searches if len(stage.before) >= (stage.limit or 0)]
        if full:
            depths = ", ".join(f"{stage_title(s.name)} {s.limit}" for s in full)
            return "below every index's depth", f"deeper than any index looked: {depths}"
        return "shares nothing with the query", "no index finds anything in it for this query"

    def _cut_off(
        self, position: int, ranks: Mapping[str, int], listed: Mapping[str, int]
    ) -> tuple[str, str, str]:
        """For a piece that is fused, and not kept among the first k."""
        kept = self.stages["kept"]
        if why := self._removed(kept, position):
            return "rules", why, kept.removed[position]
        before = "scored" if self._on("scored") else "fused"
        last = next(name for name in ("reranked", "reranker", before) if self._on(name))
        if last not in ranks:
            depth = self.trace.settings.rerank_depth
            return (
                "reranker",
                "below the rerank depth",
                f"rank {ranks[before]}, and {depth} are reranked",
            )
        weighed = {name: rank for name, rank in listed.items() if self.trace.settings.index(name).weight}
        told = f"rank {{}} before, {{}} after; the first {self.k} count"
        if last != before and ranks[before] <= self.k:
            return "reranker", "pushed out", told.format(ranks[before], ranks[last])
        if before == "scored" and ranks["fused"] <= self.k:
            return "scored", "pushed out", told.format(ranks["fused"], ranks["scored"])
        if min(weighed.values()) <= self.k:
            return "fused", "pushed out", f"{_places(listed)}; fused {ranks['fused']}"
        return "kept", "never among the first k", f"rank {ranks[last]}, and the first {self.k} count"

    def _removed(self, kept: Stage, position: int) -> str:
        """Which rule took it from among the first k; "" when none did."""
        if position not in kept.removed:
            return ""
        rank = kept.before.rank_of(position) or 0
        above = kept.ranking.positions[np.isin(kept.ranking.positions, kept.before.positions[:rank])]
        if len(above) >= self.k:  # it was below the first k of the search's own, larger k
            return ""
        same = self.corpus.duplicate_of[above] == self.corpus.duplicate_of[position]
        if self.trace.settings.collapse_duplicates and same.any():
            return "a duplicate of a chunk above it"
        return "its item's share was used up"


def _places(ranks: Mapping[str, int]) -> str:
    return ", ".join(f"{stage_title(name)} {rank}" for name, rank in ranks.items())


def cut_of(corpus: Corpus, evidence: Evidence) -> Cut:
    """What chunking did to a golden span."""
    rows = rows_of(corpus, evidence.document_id)
    starts = np.maximum(corpus.starts[rows], evidence.start)
    ends = np.minimum(corpus.ends[rows], evidence.end)
    touched = np.flatnonzero(ends > starts)
    if not len(touched):
        return Cut(evidence, 0, 0.0)
    touched = touched[np.argsort(starts[touched], kind="stable")]
    starts, ends = starts[touched], ends[touched]
    reached = np.maximum.accumulate(np.concatenate([[0], ends[:-1]]))
    together = int(np.maximum(ends - np.maximum(starts, reached), 0).sum())
    return Cut(evidence, len(touched), float((ends - starts).max() / together))
