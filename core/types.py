"""The vocabulary: documents (items), chunks, hits. Frozen; scores live in rankings, never on a chunk.

Offsets are Python string indices, `[start, end)`, into `Document.text`.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

Metadata = Mapping[str, str | float | bool | tuple[str, ...]]
_NO_METADATA: Metadata = MappingProxyType({})


FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What a cell begins with that a spreadsheet would run as a formula."""


def text_hash(text: str) -> str:
    """SHA-256 of a text, as hex: the key of everything that is cached by content."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def encodable(text: str) -> str:
    """The text with lone surrogates, which UTF-8 cannot hold, replaced one for one."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= sign <= "\udfff" else sign for sign in text)
    return text


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a document: `level` from 1, `title` without markup, span of its line in the text."""

    level: int
    title: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Page:
    """A page, slide or sheet: it begins at character `start` and runs to the next page's start."""

    label: str
    start: int


@dataclass(frozen=True, slots=True)
class Table:
    """A table: `columns` says what its rows hold; `rows` are the spans of its data rows in the text."""

    columns: str
    start: int
    end: int
    rows: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Document:
    """One item: an uploaded file, or one record of a table or JSONL where the person says so.

    `id` is stable across runs (made from the file's bytes and the record number). `name` is the
    file's name as it was given: shown, never used as a path. `chunks` holds spans cut elsewhere;
    when it is not empty, splitting is off for this document.
    """

    id: str
    name: str
    title: str
    text: str
    headings: tuple[Heading, ...] = ()
    pages: tuple[Page, ...] = ()
    tables: tuple[Table, ...] = ()
    metadata: Metadata = field(default_factory=lambda: _NO_METADATA)
    chunks: tuple[tuple[int, int], ...] = ()

    def heading_path(self, start: int, end: int | None = None) -> tuple[str, ...]:
        """Titles of the headings under which the span lies, outermost first.

        A span that opens with heading lines is under those headings too.
        """
        open_at: list[Heading] = []
        position = start
        stop = len(self.text) if end is None else end
        for heading in self.headings:
            if heading.start > position:
                between = self.text[position : heading.start]
                if heading.start >= stop or between.strip():
                    break
            while open_at and open_at[-1].level >= heading.level:
                open_at.pop()
            open_at.append(heading)
            if heading.start >= start:
                position = heading.end
        return tuple(heading.title for heading in open_at)

    def pages_of(self, start: int, end: int) -> tuple[str, ...]:
        """Labels of the pages that the span touches, in order."""
        starts = [page.start for page in self.pages]
        first = max(bisect_right(starts, start) - 1, 0)
        last = bisect_right(starts, max(end - 1, start))
        return tuple(page.label for page in self.pages[first:last])

    def columns_of(self, start: int, end: int) -> str:
        """The column line of a table some of whose rows are in the span while its header is not."""
        for table in self.tables:
            if table.start < start < table.end and any(s < end and start < e for s, e in table.rows):
                return table.columns
        return ""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A span of one document: `document.text[start:end] == chunk.text`, always.

    `columns` is the header of the table whose rows the chunk holds, when the header itself lies
    outside it; `context` situates the chunk in its document. Both go with the text into the indexes,
    the context last of all where `context_last` says so, and never into the offsets.
    """

    document_id: str
    start: int
    end: int
    text: str
    heading_path: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    columns: str = ""
    context: str = ""
    context_last: bool = False

    @property
    def id(self) -> str:
        return chunk_id(self.document_id, self.start, self.end)

    @property
    def indexed_text(self) -> str:
        """What is embedded and what BM25 sees."""
        parts = (self.context, self.columns, self.text)
        return "\n".join(
            part for part in (parts[1:] + parts[:1] if self.context_last else parts) if part
        )


def chunk_id(document_id: str, start: int, end: int) -> str:
    """The stable name of a span: the same in every index, run and export."""
    return f"{document_id}:{start}-{end}"


def make_chunk(document: Document, start: int, end: int) -> Chunk:
    """The chunk at a span, with its heading path, pages and table columns.

    Raises ValueError when the span is empty or outside the document.
    """
    if not 0 <= start < end <= len(document.text):
        raise ValueError(
            f"span {start}-{end} is not inside document {document.id} of {len(document.text)} characters"
        )
    return Chunk(
        document.id,
        start,
        end,
        document.text[start:end],
        document.heading_path(start, end),
        document.pages_of(start, end),
        document.columns_of(start, end),
    )
