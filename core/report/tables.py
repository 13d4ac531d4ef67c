"""A trace as plain rows: what the columns of the Search page, the command line and tests read.

Every text of a document leaves here as text; numbers leave as they are, with four digits beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.explanation import acted, formula, number, stage_title, told
from core.passages import Passage
from core.settings import SearchSettings
from core.text import Analyzer
from core.trace import CorpusView, Ranking, Stage, Trace

SNIPPET = 220
"""Characters of a chunk shown on a card."""

_GOLDEN_ANGLE = 137.508
"""Degrees: neighbouring chunks get colours far apart, and no two of a few dozen the same."""


def item_label(item: int) -> str:
    """A, B … Z, AA, AB …: the short name of an item, for one corpus."""
    label = ""
    item += 1
    while item:
        item, letter = divmod(item - 1, 26)
        label = chr(ord("A") + letter) + label
    return label


def chunk_label(corpus: CorpusView, position: int) -> str:
    """The item's letters and the chunk's number in it: B4 is the fourth chunk of item B."""
    item = int(corpus.item_of[position])
    first = int(np.searchsorted(corpus.item_of, item))
    return f"{item_label(item)}{position - first + 1}"


def chunk_hue(position: int) -> float:
    """The colour of a chunk in every column and figure, in degrees of the colour wheel."""
    return round(position * _GOLDEN_ANGLE % 360, 1)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A stretch of text in pieces, each marked or not; joined, they are the source letter by letter.

    `cut_before` and `cut_after` say whether the text goes on.
    """

    pieces: tuple[tuple[str, bool], ...]
    cut_before: bool
    cut_after: bool


def excerpt(text: str, terms: frozenset[str], analyzer: Analyzer, width: int = SNIPPET) -> Excerpt:
    """The `width` characters of a text that hold most of the terms, with the matches marked."""
    spans = sorted((start, end, term) for term, start, end in analyzer.spans_of(text) if term in terms)
    begin = _densest(spans, width)
    if begin > 0:
        # Some words of lead-in, from the start of one.
        begin = max(0, begin - width // 5)
        blank = text.find(" ", begin, begin + width // 5)
        begin = 0 if begin == 0 else blank + 1 if blank >= 0 else begin
    begin += len(text[begin:]) - len(text[begin:].lstrip())
    end = min(len(text), begin + width)
    pieces: list[tuple[str, bool]] = []
    at = begin
    for start, stop in _joined(spans):
        start, stop = max(start, at), min(stop, end)
        if start >= stop:
            continue
        if start > at:
            pieces.append((text[at:start], False))
        pieces.append((text[start:stop], True))
        at = stop
    if at < end:
        pieces.append((text[at:end], False))
    return Excerpt(tuple(pieces), begin > 0 and bool(text[:begin].strip()), end < len(text))


def _joined(spans: Sequence[tuple[int, int, str]]) -> list[tuple[int, int]]:
    """Overlapping spans as one: a compound holds its parts."""
    made: list[tuple[int, int]] = []
    for start, end, _ in spans:
        if made and start <= made[-1][1]:
            made[-1] = (made[-1][0], max(end, made[-1][1]))
        else:
            made.append((start, end))
    return made


def _densest(spans: Sequence[tuple[int, int, str]], width: int) -> int:
    """Start of the window that holds the most different terms, closest together; 0 without any.

    Closest together, so that a short card that shows a few lines of it shows them all.
    """
    best, where = (0, 0), 0
    for index, (start, _, _) in enumerate(spans):
        inside: set[str] = set()
        reach = start
        for other, _, term in spans[index:]:
            if other >= start + width * 4 // 5:
                break
            if term not in inside:
                inside.add(term)
                reach = other
        best, where = max((best, where), ((len(inside), start - reach), start), key=lambda one: one[0])
    return where


class Reader:
    """Describes the chunks, items and passages of one corpus for one query; each is read once."""

    def __init__(self, corpus: CorpusView, query: str, analyzer: Analyzer) -> None:
        self.corpus = corpus
        self.query = query
        self._analyzer = analyzer
        self._terms = frozenset(analyzer.tokens_of(query))
        self._chunks: dict[int, dict[str, Any]] = {}

    def serves(self, trace: Trace) -> bool:
        """Whether what was read still describes this trace."""
        return trace.corpus is self.corpus and trace.query == self.query

    def chunk(self, position: int) -> dict[str, Any]:
        """Label, colour, title, heading path, pages, span and excerpt of a chunk."""
        if position not in self._chunks:
            chunk = self.corpus.chunk(position)
            item = int(self.corpus.item_of[position])
            self._chunks[position] = {
                **self.chip(position),
                "item": item_label(item),
                "document": self.corpus.item_ids[item],
                "title": self._title(item),
                "path": list(chunk.heading_path),
                "pages": list(chunk.pages),
                "start": chunk.start,
                "end": chunk.end,
                **self._excerpt(chunk.text),
            }
        return self._chunks[position]

    def chip(self, position: int) -> dict[str, Any]:
        """What makes a chunk recognisable: id, label, colour."""
        return {
            "id": self.corpus.chunk_id(position),
            "label": chunk_label(self.corpus, position),
            "hue": chunk_hue(position),
        }

    def item(self, item: int) -> dict[str, Any]:
        """Label, title and file name of an item."""
        return {
            "id": self.corpus.item_ids[item],
            "label": item_label(item),
            "item": item_label(item),
            "title": self._title(item),
            "name": self.corpus.item_names[item],
        }

    def passage(self, trace: Trace, passage: Passage[int]) -> dict[str, Any]:
        """A merged passage: members, span, gaps, pages; the best member's heading path and excerpt."""
        best = self.chunk(passage.best)
        pages: list[str] = []
        for member in passage.members:
            pages += [page for page in self.chunk(member)["pages"] if page not in pages]
        return {
            **best,
            "start": passage.start,
            "end": passage.end,
            "pages": pages,
            "members": [
                {
                    **self.chip(member),
                    "start": int(self.corpus.starts[member]),
                    "end": int(self.corpus.ends[member]),
                }
                for member in passage.members
            ],
            "gaps": [list(gap) for gap in passage.gaps],
        }

    def _title(self, item: int) -> str:
        return self.corpus.item_titles[item] or self.corpus.item_names[item]

    def _excerpt(self, text: str) -> dict[str, Any]:
        found = excerpt(text, self._terms, self._analyzer)
        return {
            "excerpt": [list(piece) for piece in found.pieces],
            "cut_before": found.cut_before,
            "cut_after": found.cut_after,
        }


def strip(trace: Trace) -> list[dict[str, Any]]:
    """The stages as a line to read from left to right: name, title, count, out of, milliseconds, on."""
    settings, corpus = trace.settings, trace.corpus
    spent = trace.record.milliseconds
    line = []
    for stage in trace.stages:
        if stage.name.startswith("items.") or _unused(trace, stage):
            continue
        step: dict[str, Any] = {
            "name": stage.name,
            "title": stage_title(stage.name),
            "kind": stage.kind,
            "count": len(stage.ranking),
            "of": None,
            "ms": spent.get(stage.name),
            "on": stage.on,
            "note": stage.note,
        }
        if stage.name == "items":
            passing = trace.record.passing
            step["of"] = len(corpus.item_ids) if passing is None else int(passing.sum())
            parts = [ms for name, ms in spent.items() if name.startswith("items.")]
            step["ms"] = sum(parts) if parts else None
        elif stage.name == "kept":
            step["of"] = len(stage.before)
        elif stage.name == "reranker" and trace.record.reranked:
            step["of"] = len(stage.before) if stage.on else None
            step["dollars"] = trace.record.reranked.dollars
            step["note"] = stage.note or trace.record.reranked.note
        elif stage.name == "fused":
            step["note"] = stage.note or (
                f"RRF, k_rrf {settings.k_rrf}"
                if settings.fusion == "rrf"
                else f"scores, {settings.fusion}"
            )
        line.append(step)
    return line


def _unused(trace: Trace, stage: Stage) -> bool:
    """Whether a stage of reranking plays no part: unlike others it is left out then, not shown as off."""
    if stage.name == "reranked":
        return not stage.on
    return stage.name == "reranker" and trace.settings.rerank == "none"


def columns(
    trace: Trace,
    reader: Reader,
    limit: int = 20,
    before: Trace | None = None,
    selected: int | None = None,
) -> list[dict[str, Any]]:
    """A column for items, every index, fused, score fusion and passages, at most `limit` lines each, and
    one more where the chunk `selected` (a position) is ranked below these.

    A line has rank, score (as sorted on), `digits` (the score for display), what `Reader` says of it,
    `parts` of a fusion, `move` (places gained over the stage before), of an item `said`, a sentence for each
    rule that touched it, and, when `before` is the trace that was shown earlier, `was`: its rank there where
    that differs (0: it was not there).
    """
    old = {} if before is None else {stage.name: stage for stage in before.stages}
    made = []
    for stage in trace.stages:
        if stage.name.startswith("items.") or stage.name == "kept" or _unused(trace, stage):
            continue
        column: dict[str, Any] = {
            "name": stage.name,
            "title": stage_title(stage.name),
            "kind": stage.kind,
            "unit": stage.unit,
            "on": stage.on,
            "note": stage.note,
            "count": len(stage.ranking),
            "lines": _lines(trace, stage, reader, _shown_ranks(trace, stage, limit, selected)),
        }
        if stage.unit != "passage" and stage.name in old:
            _add_was(stage, old[stage.name], column["lines"])
        made.append(column)
    _add_fates(trace, made)
    return made


def _shown_ranks(trace: Trace, stage: Stage, limit: int, selected: int | None) -> list[int]:
    """The ranks of a column's lines: the first ones, and that of the selected chunk, its item or passage."""
    ranks = list(range(1, min(limit, len(stage.ranking)) + 1))
    if selected is None:
        return ranks
    if stage.unit == "passage":
        rank = next((at for at, one in enumerate(trace.passages, 1) if selected in one.members), None)
    else:
        at = int(trace.corpus.item_of[selected]) if stage.unit == "item" else selected
        rank = stage.ranking.rank_of(at)
    return [*ranks, rank] if rank and rank > limit else ranks


def _lines(trace: Trace, stage: Stage, reader: Reader, ranks: Sequence[int]) -> list[dict[str, Any]]:
    if stage.unit == "passage":
        found = [(rank, trace.passages[rank - 1]) for rank in ranks]
        return [
            {"rank": rank, "score": one.score, "digits": number(one.score), **reader.passage(trace, one)}
            for rank, one in found
        ]
    lines = []
    for rank in ranks:
        position, score = (
            int(stage.ranking.positions[rank - 1]),
            float(stage.ranking.scores[rank - 1]),
        )
        described = reader.item(position) if stage.unit == "item" else reader.chunk(position)
        line = {"rank": rank, "score": score, "digits": number(score), **described}
        if stage.unit == "item" and (said := _said(trace, position)):
            line["said"] = said
        if stage.ranks is not None and stage.terms is None:
            before = int(stage.ranks[rank - 1, 0])
            line["parts"] = parts(trace.settings, trace.stage(stage.inputs[0]), before - 1)
            line["move"] = before - rank if before else 0
        elif stage.ranks is not None:
            line["parts"] = parts(trace.settings, stage, rank - 1)
            line["move"] = _move(stage, rank)
        elif stage.kind == "rerank":
            line["move"] = (stage.before.rank_of(position) or rank) - rank
        lines.append(line)
    return lines


def parts(settings: SearchSettings, stage: Stage, row: int) -> list[dict[str, Any]]:
    """For each input of a fusion: its rank of this line (None: not listed), the formula, the term. None for
    a line below 0: what is not in the fusion."""
    if stage.ranks is None or stage.terms is None or row < 0:
        return []
    found = []
    for column, name in enumerate(stage.inputs):
        rank, term = int(stage.ranks[row, column]), float(stage.terms[row, column])
        found.append(
            {
                "name": name,
                "title": _part_title(stage, name),
                "rank": rank or None,
                "term": term,
                "digits": number(term) if rank else "–",
                "formula": formula(settings, stage, name, rank, term) if rank else "",
            }
        )
    return found


def _said(trace: Trace, item: int) -> list[str]:
    """What each rule that acts did with an item."""
    return list(acted(trace).said.get(item, ()))


def item_signals(trace: Trace, limit: int = 20) -> list[dict[str, Any]]:
    """The first `limit` items with their rank and score in every signal that is on; then as many of those
    that rules hide, with `hidden`, the reason, and no rank. None where items play no part.

    A row has id, label, title and name of an item, `rank` and `score`, `fused` (its rank before rules put
    it elsewhere; None: no signal ranks it), `said` (a sentence for each rule) and `signals`: for each by name
    title, rank, score, `digits` and `why` it is there (blank where the signal does not say), `term` and
    `formula` in the fusion; rank None where the signal does not rank it.
    """
    items = trace.stage("items")
    if not items.on:
        return []
    fused = trace.stage("items.fused") if items.terms is None else items
    signals = [stage for stage in trace.stages if stage.name in fused.inputs]
    places = {stage.name: _places(stage.ranking) for stage in (*signals, fused)}
    rows = []
    for hit in items.ranking.head(limit):
        before = places[fused.name].get(hit.position)
        row = {**_item(trace, hit.position), "rank": hit.rank, "score": hit.score, "fused": before}
        terms = (
            {} if before is None else {p["name"]: p for p in parts(trace.settings, fused, before - 1)}
        )
        rows.append(row | {"signals": _signals(trace, signals, places, terms, hit.position)})
    for item, reason in list(items.removed.items())[:limit]:
        gone: dict[str, Any] = {
            "rank": None,
            "score": None,
            "fused": None,
            "hidden": reason,
            "signals": {},
        }
        rows.append({**_item(trace, item), **gone})
    return rows


def _item(trace: Trace, item: int) -> dict[str, Any]:
    return {
        "item": item,
        "id": trace.corpus.item_ids[item],
        "label": item_label(item),
        "title": trace.corpus.item_titles[item] or trace.corpus.item_names[item],
        "name": trace.corpus.item_names[item],
        "said": _said(trace, item),
        "hidden": "",
    }


def _signals(
    trace: Trace,
    signals: Sequence[Stage],
    places: Mapping[str, Mapping[int, int]],
    terms: Mapping[str, Mapping[str, Any]],
    item: int,
) -> dict[str, dict[str, Any]]:
    found = {}
    for stage in signals:
        rank = places[stage.name].get(item)
        score = None if rank is None else float(stage.ranking.scores[rank - 1])
        part = terms.get(stage.name, {})
        found[stage.name.removeprefix("items.")] = {
            "title": stage_title(stage.name).removeprefix("Items, "),
            "rank": rank,
            "score": score,
            "digits": "–" if score is None else number(score),
            "why": "" if rank is None else told(trace, stage.name.removeprefix("items."), item),
            "term": part.get("term", 0.0),
            "formula": part.get("formula", ""),
        }
    return found


def _part_title(stage: Stage, name: str) -> str:
    if stage.name == "scored":
        return {"fused": "Own rank", "items": "Item rank"}[name]
    if stage.name == "reranked" and name != "reranker":
        return "Rank before"
    return stage_title(name).removeprefix("Items, ")


def _move(stage: Stage, rank: int) -> int:
    """Places gained: over its own rank in a score fusion, else over its best rank in any list."""
    assert stage.ranks is not None
    ranks = stage.ranks[rank - 1]
    if stage.name in ("scored", "reranked"):
        return int(ranks[0]) - rank
    listed = ranks[ranks > 0]
    return int(listed.min()) - rank if len(listed) else 0


def _add_was(stage: Stage, old: Stage, lines: list[dict[str, Any]]) -> None:
    places = _places(old.ranking)
    for line in lines:
        was = places.get(int(stage.ranking.positions[line["rank"] - 1]), 0)
        if old.on and was != line["rank"]:
            line["was"] = was


def _places(ranking: Ranking) -> dict[int, int]:
    return {position: rank for rank, position in enumerate(ranking.positions.tolist(), 1)}


def _add_fates(trace: Trace, made: list[dict[str, Any]]) -> None:
    """In the column that rules work on, say of each line that does not go on why."""
    rules = trace.stage("kept")
    column = next((one for one in made if one["name"] == rules.inputs[0]), None)
    if column is None:
        return
    kept = set(rules.ranking.positions.tolist())
    for line in column["lines"]:
        position = int(rules.before.positions[line["rank"] - 1])
        if position not in kept:
            line["dropped"] = rules.removed.get(position) or f"below the first {rules.limit}: not kept"


def moved(old: Trace, new: Trace) -> dict[str, int]:
    """How the passages differ from those before: moved to another rank, entered, gone; and rescored."""
    before = {_span(one): (rank, one.score) for rank, one in enumerate(old.passages, 1)}
    after = {_span(one): (rank, one.score) for rank, one in enumerate(new.passages, 1)}
    both = before.keys() & after.keys()
    return {
        "moved": sum(before[key][0] != after[key][0] for key in both),
        "entered": len(after.keys() - both),
        "gone": len(before.keys() - both),
        "rescored": sum(before[key][1] != after[key][1] for key in both),
    }


def _span(passage: Passage[int]) -> tuple[int, int, int]:
    return passage.item, passage.start, passage.end


def movement_sentence(counts: Mapping[str, int]) -> str:
    """`moved` in words: "2 results moved, 1 is new, 1 dropped out"."""
    told = []
    for key, one, many in (
        ("moved", "1 result moved", "{} results moved"),
        ("entered", "1 is new", "{} are new"),
        ("gone", "1 dropped out", "{} dropped out"),
    ):
        if counts[key]:
            told.append(one if counts[key] == 1 else many.format(counts[key]))
    if told:
        return ", ".join(told)
    return "scores changed, no result moved" if counts["rescored"] else "no result moved"


def flow_rows(trace: Trace, positions: Iterable[int]) -> list[dict[str, Any]]:
    """For each chunk its rank at every stage that is on, and the stage after which it is gone."""
    stages = flow_stages(trace)
    places = {stage.name: _flow_places(trace, stage) for stage in stages}
    rows = []
    for position in positions:
        ranks = {name: places[name].get(position) for name in places}
        last = max((at for at, name in enumerate(ranks) if ranks[name]), default=-1)
        lost = None if last == len(stages) - 1 or last < 0 else stages[_after(stages, last)].name
        rows.append({"position": position, "ranks": ranks, "lost": lost})
    return rows


def flow_stages(trace: Trace) -> list[Stage]:
    """The stages that rank chunks or passages and are on, in order."""
    return [stage for stage in trace.stages if stage.on and stage.unit != "item"]


def _after(stages: Sequence[Stage], last: int) -> int:
    """The stage that did not pass it on: after any index, that is the first fusion."""
    if stages[last].kind == "search":
        return next(at for at, stage in enumerate(stages) if stage.kind != "search")
    return last + 1


def _flow_places(trace: Trace, stage: Stage) -> dict[int, int]:
    if stage.unit == "passage":
        return {member: rank for rank, one in enumerate(trace.passages, 1) for member in one.members}
    return _places(stage.ranking)
