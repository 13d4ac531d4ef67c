"""An answer as it is kept: parts of text, each with the spans of documents that it cites."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from core.answering.inquiry import Inquiry, Path, Source
from core.answering.prompt import NOT_FOUND
from core.llm import Citation, Usage

State = Literal["whole", "truncated", "refused", "cut"]
"""`truncated`: the limit of tokens was reached. `cut`: it never came to an end, or was stopped."""


@dataclass(frozen=True, slots=True)
class Cited:
    """`text` is that of source number `source` (from 0) from `start` to `end` in its document."""

    source: int
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of the answer and what is cited for it."""

    text: str
    cited: tuple[Cited, ...] = ()


@dataclass(frozen=True)
class Answer:
    """A question's answer, or what came of it. `dollars` is None where no price or no usage is known;
    `expected` is what was estimated before. `at`: when it was asked, UTC (ISO 8601); `asker`: by whom, empty
    where that is not known."""

    id: int
    key: str
    question: str
    path: Path
    model: str
    sources: tuple[Source, ...]
    at: str
    parts: tuple[Part, ...] = ()
    state: State = "cut"
    usage: Usage = field(default_factory=Usage)
    dollars: float | None = None
    expected: float | None = None
    seconds: float = 0.0
    note: str = ""
    request_id: str = ""
    asker: str = ""

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts).strip()

    @property
    def not_found(self) -> bool:
        """Whether the model says that the sources do not hold the answer."""
        return self.text.casefold().startswith(NOT_FOUND.casefold().rstrip("."))


def resolved(citation: Citation, inquiry: Inquiry) -> Cited | None:
    """The span that a citation names; None where it names nothing that was sent."""
    if not 0 <= citation.source < len(inquiry.sources):
        return None
    source, text = inquiry.sources[citation.source], inquiry.texts[citation.source]
    if citation.by == "block":
        named = source.sentences[max(citation.start, 0) : citation.end]
        if not named:
            return None
        start, end = named[0][0], named[-1][1]
    else:
        start, end = _characters(citation, source, text)
    return (
        Cited(citation.source, start, end, text[start - source.start : end - source.start])
        if start < end
        else None
    )


def _characters(citation: Citation, source: Source, text: str) -> tuple[int, int]:
    """The span that reads as the citation says: a server that counts otherwise is put right."""
    start, end = max(citation.start, 0), min(citation.end, len(text))
    quoted = citation.cited_text
    if quoted and text[start:end] != quoted:
        places = []
        at = text.find(quoted)
        while at >= 0:
            places.append(at)
            at = text.find(quoted, at + 1)
        if places:
            start = min(places, key=lambda place: abs(place - citation.start))
            end = start + len(quoted)
    return source.start + start, source.start + end


def numbered(answer: Answer) -> dict[tuple[str, int, int], tuple[int, Cited]]:
    """(document, start, end) → number from 1 by first mention, and the citation: one number a span,
    also where two passages hold it."""
    found: dict[tuple[str, int, int], tuple[int, Cited]] = {}
    for part in answer.parts:
        for cited in part.cited:
            found.setdefault(span_of(answer, cited), (len(found) + 1, cited))
    return found


def span_of(answer: Answer, cited: Cited) -> tuple[str, int, int]:
    """The document and the span that a citation of this answer names."""
    return answer.sources[cited.source].document, cited.start, cited.end


def as_text(answer: Answer) -> str:
    """The answer as plain text with its citations as [1], and below it where each is to be found."""
    numbers = numbered(answer)

    def marked(part: Part) -> str:
        marks = sorted({numbers[span_of(answer, cited)][0] for cited in part.cited})
        return part.text + "".join(f"[{number}]" for number in marks)

    said = "".join(map(marked, answer.parts))
    return "\n".join([said.strip(), *_found_at(answer, numbers.values())])


def _found_at(answer: Answer, cited: Iterable[tuple[int, Cited]]) -> list[str]:
    lines = [
        f"[{number}] {answer.sources[one.source].title}, characters {one.start:,}–{one.end:,}: "
        + " ".join(one.text.split())
        for number, one in cited
    ]
    return ["", *lines] if lines else []
