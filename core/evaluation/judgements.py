"""Golden queries: what should be found for a question, as spans of documents.

Spans survive any change of chunking. A judgement that cannot be located stays with its query and is
named: it counts as evidence that nothing finds, so that a figure is never flattered by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from core.errors import RankscopeError
from core.types import Document, encodable

LARGEST_GRADE = 1_000
"""Scales of judgements end at 4 or so, at 100 where they are per cent."""

_SHOWN = 60  # characters of a quote that a message repeats


class EvaluationError(RankscopeError):
    """A judgement or a metric is not what it must be."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A judged span: `[start, end)` of a document's text. `grade` from 1, higher is more relevant; 0 is
    judged and found not relevant.

    `copies` are other places (document id, start, end) with the same text: finding one of them finds it.
    Raises EvaluationError for an empty span, a negative grade or one above LARGEST_GRADE.
    """

    document_id: str
    start: int
    end: int
    grade: int = 1
    copies: tuple[tuple[str, int, int], ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end:
            raise EvaluationError(f"{self.start}-{self.end} is no span; give 0 <= start < end")
        if not 0 <= self.grade <= LARGEST_GRADE:
            raise EvaluationError(
                f"the grade is {self.grade}; give 0 (not relevant) to {LARGEST_GRADE:,}"
            )


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
    _, start, end = locate_among(quote, [document], document.name)
    return start, end


def locate_among(quote: str, documents: Sequence[Document], name: str) -> tuple[int, int, int]:
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


def even(text: str) -> str:
    """The text without differences of blanks and letter case."""
    return " ".join(text.split()).casefold()


def shown(quote: str) -> str:
    """A quote as messages repeat it: on one line, cut."""
    line = encodable(" ".join(quote.split()))
    return f"“{line[:_SHOWN]}…”" if len(line) > _SHOWN else f"“{line}”"
