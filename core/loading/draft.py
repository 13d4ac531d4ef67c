"""What a reader of one format hands back, and the pen it writes a document's text with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from core.loading.clean import clean, one_line
from core.types import Heading, Page, Table

Value = str | float | bool | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Parsed:
    """One document before it has an id; `number`, from 1, tells the records of one file apart."""

    text: str
    title: str = ""
    headings: tuple[Heading, ...] = ()
    pages: tuple[Page, ...] = ()
    tables: tuple[Table, ...] = ()
    metadata: Mapping[str, Value] = field(default_factory=dict)
    chunks: tuple[tuple[int, int], ...] = ()
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What one file gave: its documents, the encoding it was in, and what the person should know."""

    parsed: Sequence[Parsed]
    encoding: str | None = None
    warnings: Sequence[str] = ()


class Draft:
    """Writes blocks one after the other and keeps the offsets of headings, pages and tables.

    Headings are written as Markdown lines and tables with bars, so that a plain text shows its
    structure; nothing else is marked up, so that words are found and shown as they were written.
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._after_item = False
        self._waiting: list[str] = []
        self._headings: list[Heading] = []
        self._pages: list[Page] = []
        self._tables: list[Table] = []

    def _put(self, text: str, gap: str = "\n\n") -> int:
        if self._parts:
            self._parts.append(gap)
            self._length += len(gap)
        start = self._length
        for label in self._waiting:
            self._pages.append(Page(label, start if self._pages else 0))
        self._waiting.clear()
        self._parts.append(text)
        self._length += len(text)
        self._after_item = False
        return start

    def page(self, label: str) -> None:
        """What is written next stands on this page, slide or sheet."""
        self._waiting.append(one_line(clean(label)))

    def heading(self, level: int, title: str) -> None:
        title = one_line(clean(title))
        if title:
            line = f"{'#' * min(level, 6)} {title}"
            start = self._put(line)
            self._headings.append(Heading(level, title, start, start + len(line)))

    def paragraph(self, text: str) -> int | None:
        """Write a block with its own line breaks; gives its start, or None when it is blank."""
        text = clean(text).strip("\n").rstrip()
        return self._put(text) if text else None

    def item(self, text: str, depth: int = 0, marker: str = "-") -> None:
        """Write an item of a list; items stand on lines of their own without blank lines between."""
        text = clean(text).strip()
        if text:
            self._put(f"{'  ' * depth}{marker} {text}", "\n" if self._after_item else "\n\n")
            self._after_item = True

    def table(self, rows: Sequence[Sequence[str]]) -> None:
        """Write rows of cells, the first row being the header; blank rows and columns are left out.

        What has a single row or a single column is no table (it is layout) and is written as text.
        """
        grid = [[one_line(clean(cell)) if cell else "" for cell in row] for row in rows]
        grid = [row for row in grid if any(row)]
        width = max((len(row) for row in grid), default=0)
        grid = [row + [""] * (width - len(row)) for row in grid]
        used = [c for c in range(width) if any(row[c] for row in grid)]
        if len(grid) < 2 or len(used) < 2:
            for row in grid:
                self.paragraph(" | ".join(row[c] for c in used if row[c]))
            return
        lines = [f"| {' | '.join(row[c] for c in used)} |" for row in grid]
        columns = lines[0]
        lines.insert(1, f"|{' --- |' * len(used)}")
        start = self._put("\n".join(lines))
        spans: list[tuple[int, int]] = []
        position = start
        for line in lines:
            spans.append((position, position + len(line)))
            position += len(line) + 1
        self._tables.append(Table(columns, start, spans[-1][1], tuple(spans[2:])))

    def page_inside(self, label: str, start: int) -> None:
        """A page that begins inside the block written last."""
        self._pages.append(Page(label, start))

    def finish(self, title: str = "", metadata: Mapping[str, Value] | None = None) -> Parsed:
        """The document; without a title it takes the first heading of level 1."""
        self._pages += [Page(label, self._length) for label in self._waiting]
        self._waiting.clear()
        first = next((heading.title for heading in self._headings if heading.level == 1), "")
        return Parsed(
            "".join(self._parts),
            one_line(clean(title)) or first,
            tuple(self._headings),
            tuple(self._pages),
            tuple(self._tables),
            metadata or {},
        )
