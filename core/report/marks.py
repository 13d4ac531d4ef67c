"""What people judged, as marks on the lines of a trace: golden, judged not relevant, or judged by nobody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from core.corpus import Corpus
from core.evaluation.fates import LOSSES, Fate, fates
from core.evaluation.golden import (
    Golden,
    golden_chunks,
    ranks_in_chunks,
    ranks_in_passages,
    rejected_chunks,
    rows_of,
)
from core.evaluation.judgements import Evidence, GoldenQuery
from core.passages import Passage
from core.report.tables import chunk_hue, chunk_label
from core.trace import Stage, Trace

Mark = Literal["golden", "partly", "rejected", "unjudged"]

_TOLD: Mapping[Mark, str] = {
    "golden": "Golden: holds all of a span that answers this query",
    "partly": "Golden in part: holds some of a span that answers this query",
    "rejected": "Judged not relevant to this query",
    "unjudged": "Nobody has judged it for this query",
}
_ENDS: Mapping[str, str] = {
    "located": "found in no document",
    "corpus": "in no chunk",
    "taken_out": "kept out by filters or a rule",
    "items": "lost at the item stage",
    "indexes": "in no index's depth",
    "fused": "pushed out by fusion",
    "scored": "pushed out by score fusion",
    "reranker": "pushed out by the reranker",
    "rules": "taken out by a rule",
    "kept": "below the first {k}",
}
_PIECES = 12  # golden pieces named in the line above the columns


@dataclass(frozen=True, eq=False)
class Marks:
    """The judgements of one query on one corpus; the query is None where it was never judged.

    `golden` are its golden pieces, `whole` the positions of golden chunks that hold a golden span from end
    to end, `rejected` those of chunks judged not relevant. `verdicts`: position → grade of the judgement
    whose span is exactly that chunk's, which is what a thumb gives and takes back.
    """

    corpus: Corpus
    query: GoldenQuery | None
    golden: Golden
    whole: frozenset[int]
    rejected: frozenset[int]
    verdicts: Mapping[int, int]

    @classmethod
    def of(cls, corpus: Corpus, query: GoldenQuery | None) -> Marks:
        if query is None:
            return cls(corpus, None, Golden(np.empty(0, dtype=np.int64)), frozenset(), frozenset(), {})
        golden = golden_chunks(corpus, query)
        whole = (at for at in golden.all_positions.tolist() if _holds(query, *_place(corpus, at)))
        rejected = rejected_chunks(corpus, query).tolist()
        verdicts: dict[int, int] = {}
        for one in (*query.evidence, *query.rejected):
            rows = rows_of(corpus, one.document_id)
            same = (corpus.starts[rows] == one.start) & (corpus.ends[rows] == one.end)
            verdicts.update((rows.start + at, one.grade) for at in np.flatnonzero(same).tolist())
        return cls(corpus, query, golden, frozenset(whole), frozenset(rejected), verdicts)

    @cached_property
    def positions(self) -> frozenset[int]:
        """Those of golden chunks, copies included."""
        return frozenset(self.golden.all_positions.tolist())

    def of_chunk(self, position: int) -> Mark | None:
        """None where the query was never judged: then nothing is worth a mark."""
        if position in self.positions:
            return "golden" if position in self.whole else "partly"
        return self._other(position in self.rejected)

    def of_passage(self, passage: Passage[int]) -> Mark | None:
        """Golden as recall counts it: it holds a golden chunk from end to end."""
        every = self.golden.all_positions
        inside = every[
            (self.corpus.item_of[every] == passage.item)
            & (self.corpus.starts[every] >= passage.start)
            & (self.corpus.ends[every] <= passage.end)
        ]
        if len(inside) and self.query:
            document = self.corpus.item_ids[passage.item]
            held = _holds(self.query, document, passage.start, passage.end)
            return "golden" if held else "partly"
        return self._other(not self.rejected.isdisjoint(passage.members))

    def of_item(self, item: int) -> Mark | None:
        """Whether it holds golden chunks; an item itself is not judged."""
        return "golden" if (self.corpus.item_of[self.golden.all_positions] == item).any() else None

    def unjudged(self, positions: Iterable[int]) -> int:
        """How many of these chunks nobody has judged."""
        return len(set(positions) - self.positions - self.rejected)

    def inside(self, position: int) -> list[Evidence]:
        """The judgements that share characters with a chunk, in the order of the text."""
        if self.query is None:
            return []
        document, start, end = _place(self.corpus, position)
        found = (
            one
            for one in (*self.query.evidence, *self.query.rejected)
            if one.document_id == document and one.start < end and one.end > start
        )
        return sorted(found, key=lambda one: (one.start, one.end))

    def _other(self, rejected: bool) -> Mark | None:
        if self.query is None:
            return None
        return "rejected" if rejected else "unjudged"


def _place(corpus: Corpus, position: int) -> tuple[str, int, int]:
    item = corpus.item_of[position]
    return corpus.item_ids[item], int(corpus.starts[position]), int(corpus.ends[position])


def _holds(query: GoldenQuery, document: str, start: int, end: int) -> bool:
    """Whether a span holds one of the golden ones, or a copy of it, from end to end."""
    places = (
        place for one in query.evidence for place in ((one.document_id, one.start, one.end), *one.copies)
    )
    return any(name == document and start <= a and b <= end for name, a, b in places)


def add_marks(columns: list[dict[str, Any]], trace: Trace, marks: Marks) -> None:
    """Add to each line of `tables.columns` its `mark`, `mark_told`, and `verdict`: the grade that the very
    span of the line's chunk was given (of a passage's best member), None where it was given none."""
    for column in columns:
        for line in column["lines"]:
            mark, position = _of_line(trace, marks, column["name"], line["rank"])
            line["verdict"] = None if position is None else marks.verdicts.get(position)
            if mark:
                line["mark"], line["mark_told"] = mark, _TOLD[mark]
                if column["unit"] == "item":
                    line["mark_told"] = "Holds golden evidence of this query"


def _of_line(trace: Trace, marks: Marks, name: str, rank: int) -> tuple[Mark | None, int | None]:
    """The mark of a line, and the chunk of which its verdict tells."""
    stage = trace.stage(name)
    if stage.unit == "passage":
        passage = trace.passages[rank - 1]
        return marks.of_passage(passage), passage.best
    position = int(stage.ranking.positions[rank - 1])
    if stage.unit == "item":
        return marks.of_item(position), None
    return marks.of_chunk(position), position


def add_recall(strip: list[dict[str, Any]], trace: Trace, marks: Marks) -> None:
    """Add to each step of `tables.strip` that ranks chunks or passages the query's own `recall` in words."""
    if not len(marks.golden):
        return
    stages = {stage.name: stage for stage in trace.stages}
    for step in strip:
        stage = stages[step["name"]]
        if stage.on and stage.unit != "item":
            step["recall"] = _recall(trace, stage, marks)


def _recall(trace: Trace, stage: Stage, marks: Marks) -> str:
    k = trace.settings.k
    if stage.kind == "search" and stage.limit is not None:
        k = min(
            k, stage.limit
        )  # its list ends there: recall@k of a shorter list would be a wrong figure
    if stage.unit == "passage":
        ranks = ranks_in_passages(marks.golden, trace.passages, marks.corpus)
    else:
        ranks = ranks_in_chunks(marks.golden, stage.ranking)
    found = int(((ranks > 0) & (ranks <= k)).sum())
    return f"recall@{k} {found / len(ranks):.2f}: {found} of {len(ranks)} golden pieces"


def told(trace: Trace, marks: Marks) -> dict[str, Any]:
    """The line above the columns: `begins` (text), `pieces`, `ends` (text), and `none`: whether the query
    counts as one that these documents do not answer, None where what was judged decides that.

    A piece that has a chunk is told with its `id`, `label` and `hue`, its `rank` (None: lost), `fate` and
    `story`; those found come first, by rank. `more` are not told.
    """
    query = marks.query
    made: dict[str, Any] = {"begins": "", "pieces": [], "more": 0, "ends": "", "none": False}
    if query is None:
        made["begins"] = "Not judged yet: thumbs say what answers it."
        return made
    k = trace.settings.k
    first = trace.stage("kept").ranking.head(k).positions
    unjudged = marks.unjudged(first.tolist())
    if len(first):
        made["ends"] = f"{unjudged} of the first {len(first)} nobody has judged"
    if not query.answerable:
        made["none"] = None if query.rejected else True
        made["begins"] = (
            f"{len(query.rejected)} judged not relevant, none that answers it yet."
            if query.rejected
            else "Judged: these documents do not answer it."
        )
        return made
    made["none"] = None
    pieces = sorted(fates(trace, marks.golden, query, k), key=_by_rank)
    found = sum(not fate.lost_at for fate in pieces)
    ends = Counter(fate.lost_at for fate in pieces if fate.lost_at)
    lost = [f"{ends[stage]} {_end(stage, k)}" for stage in LOSSES if ends[stage]]
    noun = "golden piece" if len(pieces) == 1 else "golden pieces"
    made["begins"] = f"{len(pieces)} {noun}: " + ", ".join([f"{found} in the first {k}", *lost])
    chunks = [(fate, fate.position) for fate in pieces if fate.position is not None]
    made["pieces"] = [_piece(trace, fate, at, k) for fate, at in chunks[:_PIECES]]
    made["more"] = len(chunks[_PIECES:])
    return made


def first_piece(trace: Trace, marks: Marks) -> int | None:
    """The position of the piece to look at first: one that was lost, else the best; None without any."""
    if marks.query is None:
        return None
    pieces = [
        one
        for one in fates(trace, marks.golden, marks.query, trace.settings.k)
        if one.position is not None
    ]
    return min(pieces, key=lambda one: (not one.lost_at, _by_rank(one))).position if pieces else None


def _by_rank(fate: Fate) -> tuple[bool, int]:
    return bool(fate.lost_at), fate.ranks.get("kept", 0)


def _end(stage: str, k: int) -> str:
    return _ENDS[stage].format(k=k)


def _piece(trace: Trace, fate: Fate, position: int, k: int) -> dict[str, Any]:
    return {
        "id": trace.corpus.chunk_id(position),
        "label": chunk_label(trace.corpus, position),
        "hue": chunk_hue(position),
        "rank": None if fate.lost_at else fate.ranks["kept"],
        "fate": _end(fate.lost_at, k) if fate.lost_at else "",
        "story": fate.story,
    }
