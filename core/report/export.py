"""Traces and settings as files: JSON, CSV, a TREC run, and a Python script that runs the same search."""

from __future__ import annotations

import csv
import io
import json
import pprint
import re
from typing import Any
from urllib.parse import quote

from core.settings import Settings
from core.trace import Stage, Trace
from core.types import FORMULA_SIGNS


def trace_to_dict(trace: Trace, limit: int | None = None) -> dict[str, Any]:
    """The whole trace as plain values; `limit` cuts each stage's ranking, None keeps all of it.

    A line of a ranking has rank, id, document, name, title and score; chunk lines also start and end; lines
    of a fusion also `parts`: for each input the rank there and the term it adds (None where rules put it
    in its place). `signals` has what each signal of the item stage says of its ranking, `rules` those that
    hold for the query and what they do with which item; `passing`: how many items pass the filters.
    """
    return {
        "query": trace.query,
        "settings": trace.settings.to_dict(),
        "settings_fingerprint": trace.settings.fingerprint(),
        "corpus": trace.corpus.fingerprint,
        "notes": list(trace.notes),
        "milliseconds": {name: round(ms, 3) for name, ms in trace.record.milliseconds.items()},
        "passing": None if trace.record.passing is None else int(trace.record.passing.sum()),
        "signals": {name: list(trace.record.said.get(name, ())) for name in trace.record.signals},
        "rules": _rules(trace, limit),
        "stages": [_stage(trace, stage, limit) for stage in trace.stages],
        "passages": _passages(trace)[:limit],
    }


def trace_to_json(trace: Trace, limit: int | None = None) -> str:
    return json.dumps(trace_to_dict(trace, limit), ensure_ascii=False, indent=2)


def trace_to_csv(trace: Trace, limit: int | None = None) -> str:
    """One line for each line of each stage's ranking, with its parts.

    A cell of text that a spreadsheet would take for a formula is led by an apostrophe.
    """
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(
        ["stage", "kind", "rank", "id", "document", "name", "start", "end", "score", "parts"]
    )
    for stage in trace_to_dict(trace, limit)["stages"]:
        for line in stage["ranking"]:
            parts = "; ".join(
                f"{name} rank {part['rank']}"
                + ("" if part["term"] is None else f" adds {part['term']!r}")
                for name, part in line.get("parts", {}).items()
            )
            row = [stage["name"], stage["kind"], line["rank"], line["id"], line.get("document", "")]
            row += [
                line.get("name", ""),
                line.get("start", ""),
                line.get("end", ""),
                line["score"],
                parts,
            ]
            writer.writerow([_cell(value) for value in row])
    return out.getvalue()


def trace_to_trec(trace: Trace, stage: str = "kept", query_id: str = "1", run: str = "rankscope") -> str:
    """One stage's ranking as a TREC run: `query Q0 id rank score run`; blanks in a field are percent-coded.

    Raises KeyError when there is no such stage.
    """
    lines = _stage(trace, trace.stage(stage), None)["ranking"]
    return "".join(
        f"{_word(query_id)} Q0 {_word(line['id'])} {line['rank']} {line['score']!r} {_word(run)}\n"
        for line in lines
    )


def settings_to_python(settings: Settings, collection: str, query: str) -> str:
    """A script that runs the search with `core` alone and prints its passages: the collection is indexed
    under these settings, which takes time only when it never was before."""
    changed = pprint.pformat(settings.changed_tables(), width=96, sort_dicts=False)
    lines = [
        "from core import Settings, build_corpus, open_collection, search",
        "",
        f"settings = Settings.from_dict({changed})",
        f"corpus = build_corpus(open_collection({collection!r}), settings.index)",
        f"trace = search(corpus, {query!r}, settings.search)",
        "for rank, passage in enumerate(trace.passages, 1):",
        "    print(rank, round(passage.score, 5), corpus.item_names[passage.item], passage.start, passage.end)",
        "    print(trace.text_of(passage))",
        "",
    ]
    return "\n".join(lines)


def _stage(trace: Trace, stage: Stage, limit: int | None) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": stage.name,
        "kind": stage.kind,
        "unit": stage.unit,
        "on": stage.on,
        "inputs": list(stage.inputs),
        "note": stage.note,
        "count": len(stage.ranking),
    }
    if stage.unit == "passage":
        return described | {"ranking": [_passage_line(line) for line in _passages(trace)[:limit]]}
    shown = stage.ranking if limit is None else stage.ranking.head(limit)
    lines: list[dict[str, Any]] = []
    for hit in shown:
        lines.append({"rank": hit.rank, **_at(trace, stage, hit.position), "score": hit.score})
        if stage.ranks is not None:
            terms = (
                [None] * len(stage.inputs) if stage.terms is None else stage.terms[hit.rank - 1].tolist()
            )
            ranks = stage.ranks[hit.rank - 1].tolist()
            lines[-1]["parts"] = {
                name: {"rank": rank or None, "term": term}
                for name, rank, term in zip(stage.inputs, ranks, terms, strict=True)
            }
    described["ranking"] = lines
    if stage.removed:
        described["removed"] = [
            {**_at(trace, stage, position), "reason": reason}
            for position, reason in list(stage.removed.items())[:limit]
        ]
    return described


def _rules(trace: Trace, limit: int | None) -> dict[str, Any]:
    ruled = trace.record.ruled
    return {
        "hold": list(ruled.fired),
        "notes": list(ruled.notes),
        "items": [
            {
                **_item(trace, item),
                "boost": ruled.boosts.get(item),
                "pin": ruled.pins.get(item),
                "hidden": ruled.hidden.get(item),
                "said": list(said),
            }
            for item, said in list(ruled.said.items())[:limit]
        ],
    }


def _at(trace: Trace, stage: Stage, position: int) -> dict[str, Any]:
    return _item(trace, position) if stage.unit == "item" else _chunk(trace, position)


def _item(trace: Trace, item: int) -> dict[str, Any]:
    corpus = trace.corpus
    return {
        "id": corpus.item_ids[item],
        "document": corpus.item_ids[item],
        "name": corpus.item_names[item],
        "title": corpus.item_titles[item],
    }


def _chunk(trace: Trace, position: int) -> dict[str, Any]:
    corpus = trace.corpus
    item = int(corpus.item_of[position])
    return {
        **_item(trace, item),
        "id": corpus.chunk_id(position),
        "start": int(corpus.starts[position]),
        "end": int(corpus.ends[position]),
    }


def _passages(trace: Trace) -> list[dict[str, Any]]:
    return [
        {
            "rank": rank,
            "document": trace.corpus.item_ids[passage.item],
            "name": trace.corpus.item_names[passage.item],
            "title": trace.corpus.item_titles[passage.item],
            "start": passage.start,
            "end": passage.end,
            "text": trace.text_of(passage),
            "score": passage.score,
            "best": trace.corpus.chunk_id(passage.best),
            "members": [trace.corpus.chunk_id(member) for member in passage.members],
            "gaps": [list(gap) for gap in passage.gaps],
        }
        for rank, passage in enumerate(trace.passages, 1)
    ]


def _passage_line(passage: dict[str, Any]) -> dict[str, Any]:
    kept = {
        name: passage[name] for name in ("rank", "document", "name", "title", "start", "end", "score")
    }
    return {"id": f"{passage['document']}:{passage['start']}-{passage['end']}", **kept}


def _word(text: str) -> str:
    """A text as one field of a run, which blanks part."""
    return re.sub(r"\s", lambda blank: quote(blank[0]), text) or "-"


def _cell(value: Any) -> Any:
    """Text from documents must not run as a formula; numbers stay numbers."""
    if isinstance(value, str) and value.startswith(FORMULA_SIGNS):
        return "'" + value
    return value
