"""Golden queries: what should be found for a question, as spans of documents.

Spans survive any change of chunking. A judgement that cannot be located stays with its query and is
named: it counts as evidence that nothing finds, so that a figure is never flattered by it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from core.documents import Documents
from core.errors import RankscopeError
from core.loading.clean import safe_name
from core.types import Document, encodable

_SHOWN = 60  # characters of a quote that a message repeats


class EvaluationError(RankscopeError):
    """A judgement or a metric is not what it must be."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A judged span: `[start, end)` of a document's text. `grade` from 1, higher is more relevant; 0 is
    judged and found not relevant.

    `copies` are other places (document id, start, end) with the same text: finding one of them finds it.
    Raises EvaluationError for an empty span or a negative grade.
    """

    document_id: str
    start: int
    end: int
    grade: int = 1
    copies: tuple[tuple[str, int, int], ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end:
            raise EvaluationError(f"{self.start}-{self.end} is no span; give 0 <= start < end")
        if self.grade < 0:
            raise EvaluationError(f"the grade is {self.grade}; give 0 (not relevant) or more")


@dataclass(frozen=True, slots=True)
class Unlocated:
    """Evidence as it was given, of which no span could be made, and the reason.

    `span` is where it was said to lie, `whole` whether all of the document is meant.
    """

    document: str
    quote: str
    reason: str
    grade: int = 1
    span: tuple[int, int] | None = None
    whole: bool = False


@dataclass(frozen=True, slots=True)
class GoldenQuery:
    """A question and its evidence. With neither evidence nor anything unlocated its answer is "none".

    `rejected` are spans judged not relevant: judged, never golden. Raises EvaluationError when a grade
    of 0 is among the evidence, or another one among the rejected.
    """

    id: str
    text: str
    evidence: tuple[Evidence, ...] = ()
    unlocated: tuple[Unlocated, ...] = ()
    rejected: tuple[Evidence, ...] = ()

    def __post_init__(self) -> None:
        if any(one.grade == 0 for one in self.evidence) or any(one.grade for one in self.rejected):
            raise EvaluationError(
                f"query {self.id}: evidence has grades from 1, what is rejected has grade 0"
            )

    @property
    def answerable(self) -> bool:
        return bool(self.evidence or self.unlocated)


@dataclass(frozen=True, slots=True)
class Judgements:
    """Golden queries in the order read. `problems` names, by line, all that was not taken as given."""

    queries: tuple[GoldenQuery, ...]
    problems: tuple[str, ...] = ()


def locate(quote: str, document: Document) -> tuple[int, int]:
    """The span of a quote in a document's text.

    Looked for as it stands, then with any blanks where it has blanks, then in any letter case; the
    first way that finds it decides. Raises EvaluationError when it is blank, missing, or there twice.
    """
    _, start, end = _locate(quote, [document], document.name)
    return start, end


def read_judgements(text: str, documents: Documents) -> Judgements:
    """Golden queries from JSONL, located in `documents`.

    A line is `{"query", "evidence": [E, …]}`, with an empty list where there is no answer, or one
    `{"query", E's fields}`: such lines of one query are joined. E is `{"document", "quote"}` or
    `{"document", "start", "end"}`, or both, which are then held against one another; `"grade"` is 1
    without it. `document` is a document's id or name; a name that several have (records of a file)
    stands for all of them. `"id"` names a query; without it, it is the number of its first line.
    Further fields are left alone. Raises EvaluationError when no line can be read.
    """
    reader = _Reader(documents)
    # Not splitlines: JSON strings may hold U+2028 and its like as they are.
    for number, line in enumerate(text.lstrip("\ufeff").split("\n"), 1):
        if line.strip():
            reader.take(number, line)
    if not reader.drafts:
        raise EvaluationError(
            'no golden query could be read: give lines like {"query": "…", "document": "…", "quote": "…"}'
            + "".join(f"; {problem}" for problem in reader.problems[:3])
        )
    queries = tuple(
        GoldenQuery(one.id, one.text, tuple(one.evidence.values()), tuple(one.unlocated))
        for one in reader.drafts.values()
    )
    return Judgements(queries, tuple(reader.problems))


@dataclass
class _Draft:
    id: str
    text: str
    evidence: dict[tuple[str, int, int], Evidence] = field(default_factory=dict)
    unlocated: list[Unlocated] = field(default_factory=list)


class _Reader:
    """Collects lines into queries by id; a query without one is found again by its words."""

    def __init__(self, documents: Documents) -> None:
        self.drafts: dict[str, _Draft] = {}
        self.problems: list[str] = []
        self._ids: dict[str, str] = {}  # words of a query that came without an id → the id it got
        self._places: dict[str, list[int]] = {}
        for at, name in enumerate(documents.names):
            self._places.setdefault(name, []).append(at)
        self._places |= {one: [at] for at, one in enumerate(documents.ids)}
        self._document = lru_cache(maxsize=32)(documents.__getitem__)

    def take(self, number: int, line: str) -> None:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            self.problems.append(f"line {number}: broken JSON; the line is left out")
            return
        text = row.get("query") if isinstance(row, dict) else None
        if not isinstance(text, str) or not text.strip():
            self.problems.append(f'line {number}: no object with a text "query"; the line is left out')
            return
        given = row.get("id")
        name = self._ids.setdefault(text, str(number)) if given is None else str(given)
        draft = self.drafts.setdefault(name, _Draft(name, text))
        if draft.text != text:
            self.problems.append(
                f"line {number}: the id {name} is that of another query; the line is left out"
            )
            return
        listed = row.get("evidence")
        if listed is None:
            listed = [row] if {"document", "quote", "start", "end"} & row.keys() else []
        for one in listed if isinstance(listed, list) else [listed]:
            self._add(number, draft, one)

    def _add(self, number: int, draft: _Draft, row: Any) -> None:
        facts: Mapping[str, Any] = row if isinstance(row, Mapping) else {"quote": row}
        if facts.get("grade") == 0:
            self.problems.append(f"line {number}, query {draft.id}: graded 0, so no evidence; left out")
            return
        try:
            found = self._evidence(facts)
        except EvaluationError as error:
            document, quote = str(facts.get("document", "")), str(facts.get("quote", ""))
            draft.unlocated.append(Unlocated(document, quote, str(error)))
            self.problems.append(f"line {number}, query {draft.id}: {error}")
            return
        key = (found.document_id, found.start, found.end)
        if key in draft.evidence:
            self.problems.append(f"line {number}, query {draft.id}: the same evidence again; kept once")
            found = max(found, draft.evidence[key], key=lambda one: one.grade)
        draft.evidence[key] = found

    def _evidence(self, facts: Mapping[str, Any]) -> Evidence:
        named, grade = facts.get("document"), facts.get("grade", 1)
        if type(grade) is not int:
            raise EvaluationError(f"the grade is {grade!r}; give a whole number")
        # A name as the file system gave it may be in another Unicode form than the one that is kept.
        places = self._places.get(str(named)) or self._places.get(safe_name(str(named)), [])
        if not places:
            raise EvaluationError(f"there is no document {named!r}; give the id or the name of one")
        quote, span = facts.get("quote"), (facts.get("start"), facts.get("end"))
        if quote is not None and not isinstance(quote, str):
            raise EvaluationError(f"the quote is {quote!r}; give a text")
        if span != (None, None):
            return self._at_span(str(named), places, span, quote, grade)
        if quote is None:
            raise EvaluationError("neither a quote nor start and end; give one of them")
        documents = [self._document(at) for at in places]
        at, start, end = _locate(quote, documents, str(named))
        return Evidence(documents[at].id, start, end, grade)

    def _at_span(
        self, named: str, places: Sequence[int], span: tuple[Any, Any], quote: str | None, grade: int
    ) -> Evidence:
        if len(places) > 1:
            raise EvaluationError(
                f"{len(places)} documents are called {named}; give the id of the one in which "
                f"{span[0]}-{span[1]} lies"
            )
        document = self._document(places[0])
        start, end = span
        if type(start) is not int or type(end) is not int:
            raise EvaluationError(f"start {start!r} and end {end!r} are no whole numbers")
        found = Evidence(document.id, start, end, grade)
        if end > len(document.text):
            raise EvaluationError(
                f"{start}-{end} is outside {named}, which has {len(document.text):,} characters"
            )
        if quote is not None and _even(document.text[start:end]) != _even(quote):
            raise EvaluationError(
                f"{start}-{end} of {named} reads {shown(document.text[start:end])}, not {shown(quote)}; "
                "give the quote alone to have it looked for"
            )
        return found


def _locate(quote: str, documents: Sequence[Document], name: str) -> tuple[int, int, int]:
    """The place in `documents` of the one that holds the quote, and its span there; as `locate`."""
    found = matches(quote, documents)
    if len(found) > 1:
        raise EvaluationError(
            f"{shown(quote)} is in {name} {len(found)} times; quote more of it, or give start and end"
        )
    if not found:
        raise EvaluationError(
            f"{shown(quote)} is not in {name}; quote it word for word, from one stretch of the text"
        )
    return found[0]


def matches(quote: str, documents: Iterable[Document]) -> list[tuple[int, int, int]]:
    """All places of a quote, by the first way of `locate` that finds any: (place in `documents`, start,
    end). Raises EvaluationError when the quote is blank."""
    words = quote.split()
    if not words:
        raise EvaluationError("the quote is blank; quote the words that answer the query")
    texts = [document.text for document in documents]
    loose = r"\s+".join(map(re.escape, words))
    for pattern, flags in ((re.escape(quote), 0), (loose, 0), (loose, re.IGNORECASE)):
        way = re.compile(pattern, flags)
        if found := [(at, *span) for at, text in enumerate(texts) for span in _spans(way, text)]:
            return found
    return []


def _spans(way: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Where a pattern matches, matches that overlap included."""
    match = way.search(text)
    while match:
        yield match.span()
        match = way.search(text, match.start() + 1)


def _even(text: str) -> str:
    return " ".join(text.split()).casefold()


def shown(quote: str) -> str:
    """A quote as messages repeat it: on one line, cut."""
    line = encodable(" ".join(quote.split()))
    return f"“{line[:_SHOWN]}…”" if len(line) > _SHOWN else f"“{line}”"
