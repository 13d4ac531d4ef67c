"""Contexts without a model: where a chunk stands, in the document's own words."""

from __future__ import annotations

from collections.abc import Sequence

from core.chunking.describe import describe
from core.contextualizing.prompt import Span
from core.types import Chunk, Document

VERSION = 2
"""Raise it when the same document gets another context than before."""


def headings_contexts(document: Document, spans: Sequence[Span], opening: int) -> list[str]:
    """For each span title (the file's name without one), heading path and page, then the document's opening.

    The opening is its first `opening` characters after its title, cut between words, blanks evened out;
    it is left out of a chunk that begins in it, which holds it already.
    """
    first = _after_title(document)
    words = _opening(document.text[first:], opening)
    return [
        "\n".join(
            filter(None, (_place(document, chunk), words if chunk.start >= first + opening else ""))
        )
        for chunk in describe(document, spans)
    ]


def _after_title(document: Document) -> int:
    """Where the text begins; after the heading that repeats the title, which stands before it anyway."""
    start = len(document.text) - len(document.text.lstrip())
    for heading in document.headings[:1]:
        if heading.start == start and _same(heading.title, document.title):
            rest = document.text[heading.end :]
            return heading.end + len(rest) - len(rest.lstrip())
    return start


def _same(one: str, other: str) -> bool:
    return " ".join(one.split()).casefold() == " ".join(other.split()).casefold()


def _place(document: Document, chunk: Chunk) -> str:
    title = " ".join(document.title.split()) or document.name
    path = [title]
    for heading in chunk.heading_path:
        heading = " ".join(heading.split())
        if heading and heading.casefold() not in (title.casefold(), path[-1].casefold()):
            path.append(heading)
    place = " > ".join(path)
    return f"{place} ({_page(chunk.pages[0])})" if chunk.pages else place


def _page(label: str) -> str:
    return label if " " in label else f"page {label}"  # "slide 3", "sheet Sales" say what they are


def _opening(text: str, length: int) -> str:
    cut = text[:length]
    inside_a_word = cut[-1:].strip() and text[length : length + 1].strip()
    if inside_a_word and len(cut.split()) > 1:
        cut = cut.rsplit(maxsplit=1)[0]
    return " ".join(cut.split())
