"""Chunks from spans: what `core.types.make_chunk` says of each, found in one pass over the document."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from core.types import Chunk, Document, Heading


def describe(document: Document, spans: Iterable[tuple[int, int]]) -> list[Chunk]:
    """`[make_chunk(document, *span) for span in spans]`, quick for thousands of headings and rows.

    Headings, pages, tables and their rows stand in the order of the text; spans may come in any order,
    ascending ones cost least. Raises ValueError when a span is empty or outside the document.
    """
    length = len(document.text)
    page_starts = [page.start for page in document.pages]
    table_starts = [table.start for table in document.tables]
    above: list[Heading] = []  # headings open just before the span
    passed = 0  # headings that start before the span
    previous = 0
    chunks = []
    for start, end in spans:
        if not 0 <= start < end <= length:
            raise ValueError(
                f"span {start}-{end} is not inside document {document.id} of {length} characters"
            )
        if start < previous:
            above, passed = [], 0
        previous = start
        while passed < len(document.headings) and document.headings[passed].start < start:
            _open(above, document.headings[passed])
            passed += 1
        first_page = max(bisect_right(page_starts, start) - 1, 0)
        pages = document.pages[first_page : bisect_right(page_starts, end - 1)]
        chunks.append(
            Chunk(
                document.id,
                start,
                end,
                document.text[start:end],
                _path(document, above, passed, start, end),
                tuple(page.label for page in pages),
                _columns(document, table_starts, start, end),
            )
        )
    return chunks


def _open(path: list[Heading], heading: Heading) -> None:
    while path and path[-1].level >= heading.level:
        path.pop()
    path.append(heading)


def _path(
    document: Document, above: list[Heading], passed: int, start: int, end: int
) -> tuple[str, ...]:
    """Titles of the open headings, with those whose lines open the span."""
    path = list(above)
    position = start
    while passed < len(document.headings):
        heading = document.headings[passed]
        if heading.start > position and (
            heading.start >= end or document.text[position : heading.start].strip()
        ):
            break
        _open(path, heading)
        position = heading.end
        passed += 1
    return tuple(heading.title for heading in path)


def _columns(document: Document, table_starts: list[int], start: int, end: int) -> str:
    i = bisect_right(table_starts, start) - 1
    if i < 0 or not document.tables[i].start < start < document.tables[i].end:
        return ""
    rows = document.tables[i].rows
    following = bisect_right(rows, start, key=lambda row: row[1])
    return document.tables[i].columns if following < len(rows) and rows[following][0] < end else ""
