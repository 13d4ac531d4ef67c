"""Our own form: JSON lines with a query and its evidence, by quote or by span."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from core.documents import Documents, ListedDocuments
from core.evaluation.forms import corpora
from core.evaluation.forms.collect import Collector, ImportedSet
from core.evaluation.forms.files import Files
from core.evaluation.judgements import (
    Evidence,
    GoldenQuery,
    Judgements,
    Unlocated,
    matches,
)
from core.types import Document

_FIELDS = {"document", "quote", "start", "end"}
_QUERY = re.compile(r'^[ \t]*\{.*"query"\s*:', re.MULTILINE)
_LONGEST_QUOTE = 4000  # characters; longer spans are given by their places alone


def read_judgements(text: str, documents: Documents) -> Judgements:
    """Golden queries from JSONL, located in `documents`.

    A line is `{"query", "evidence": [E, …]}`, with an empty list where there is no answer, or one
    `{"query", E's fields}`: such lines of one query are joined. E is `{"document", "quote"}` or
    `{"document", "start", "end"}`, or both, which are then held against one another, or
    `{"document", "whole": true}`; `"grade"` is 1 without it, and 0 for what was judged not relevant.
    `document` is a document's id or name; a name that several have (records of a file) stands for all of
    them. `"id"` names a query; without it, it gets one made of its words. Further fields are left alone.
    Raises EvaluationError when no line can be read.
    """
    return read(Files.uploaded({"": text.encode("utf-8", "replace")}), "", documents)


def read(files: Files, name: str, documents: Documents) -> Judgements:
    """As `read_judgements`, from a file, which may also be a JSON list of such objects."""
    collector = Collector(documents)
    for where, row in _entries(files, name, collector.problems):
        take(collector, where, row if isinstance(row, dict) else {})
    return collector.judgements()


def _entries(files: Files, name: str, problems: list[str]) -> Iterator[tuple[str, Any]]:
    """The values of a file and where they are."""
    if files.peek(name).lstrip().startswith("["):
        try:
            whole = json.loads(files.text(name))
        except (ValueError, RecursionError):
            whole = None  # lines of which the first is a list, or broken
        if isinstance(whole, list):
            yield from ((f"entry {number}", row) for number, row in enumerate(whole, 1))
            return
    for number, line in files.lines(name):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            problems.append(f"line {number}: broken JSON; the line is left out")
            continue
        yield f"line {number}", row


def take(collector: Collector, where: str, row: Mapping[str, Any]) -> None:
    """Add a row to its query, with all of its evidence."""
    draft = collector.query(where, row.get("query"), row.get("id"))
    if draft is None:
        return
    evidence = row.get("evidence")
    if evidence is None:
        evidence = [row] if _FIELDS & row.keys() else []
    for one in evidence if isinstance(evidence, list) else [evidence]:
        collector.take(where, draft, one if isinstance(one, Mapping) else {"quote": one})


def detect(files: Files) -> bool:
    return bool(_own(files))


def read_form(files: Files, documents: Documents | None) -> ImportedSet:
    """The set of one such file; its documents are all other files of the folder."""
    # Chosen by a person, it need not look like one: what its lines lack is named one by one.
    found = _own(files) or files.ending(".jsonl", ".ndjson") or files.ending(".json", ".txt")
    name, problems = (
        files.first(found, "a file .jsonl with lines that have a query", "JSONL"),
        list[str](),
    )
    made = corpora.beside(files, name, problems) if documents is None else []
    judged = read(files, name, ListedDocuments(made) if documents is None else documents)
    problems += files.passed_over(found, name)
    return ImportedSet(tuple(made), Judgements(judged.queries, (*problems, *judged.problems)), "JSONL")


def _own(files: Files) -> list[str]:
    """The files that begin with a query, in the folder itself before those below it."""
    found = [name for name in files.ending(".jsonl", ".ndjson") if _QUERY.search(files.peek(name))]
    return sorted(found, key=lambda name: name.count("/"))


def write(judgements: Judgements, documents: Documents) -> dict[str, str]:
    """One file with a line for each query, all of its judgements in it, also those not located."""
    made = Rows(documents)
    lines = (
        json.dumps(
            {"id": query.id, "query": query.text, "evidence": list(made.of(query))}, ensure_ascii=False
        )
        for query in judgements.queries
    )
    return {"judgements.jsonl": "".join(f"{line}\n" for line in lines)}


class Rows:
    """Judgements as rows that reading locates again."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._at = {one: at for at, one in enumerate(documents.ids)}
        self._alone = {name for name, times in Counter(documents.names).items() if times == 1}

    def of(self, query: GoldenQuery) -> Iterator[dict[str, Any]]:
        for one in (*query.evidence, *query.rejected):
            yield self._row(one)
        for lost in query.unlocated:
            yield _lost(lost)

    def _row(self, one: Evidence) -> dict[str, Any]:
        row: dict[str, Any] = {"document": self._name(one.document_id)}
        document = self.document(one.document_id)
        if document is None or len(document.text) < one.end:
            row |= {"start": one.start, "end": one.end}
        elif (one.start, one.end) == (0, len(document.text)):
            row["whole"] = True
        else:
            quote = document.text[one.start : one.end]
            short = len(quote) <= _LONGEST_QUOTE and bool(quote.strip())
            # The words alone outlive changes of the document elsewhere; they must stand there once.
            if not short or matches(quote, [document]) != [(0, one.start, one.end)]:
                row |= {"start": one.start, "end": one.end}
            if short:
                row["quote"] = quote
        row["grade"] = one.grade
        if one.copies:
            row["copies"] = [
                {"document": self._name(name), "start": start, "end": end}
                for name, start, end in one.copies
            ]
        return row

    def document(self, id: str) -> Document | None:
        at = self._at.get(id)
        return None if at is None else self._documents[at]

    def _name(self, id: str) -> str:
        at = self._at.get(id)
        name = id if at is None else self._documents.names[at]
        return name if name in self._alone else id


def _lost(lost: Unlocated) -> dict[str, Any]:
    row: dict[str, Any] = {"document": lost.document, "grade": lost.grade}
    if lost.quote:
        row["quote"] = lost.quote
    if lost.whole:
        row["whole"] = True
    elif lost.span:
        row |= {"start": lost.span[0], "end": lost.span[1]}
    return row
