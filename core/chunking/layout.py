"""A document as the strategies see it: the places where headings and table rows forbid a cut."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from core.chunking.boundaries import cut_back, cut_forward, is_blank, skip_blanks, word_back
from core.chunking.ruler import Ruler
from core.types import Document


def _rows(document: Document, ruler: Ruler, size: int) -> list[tuple[int, int]]:
    """Table rows in order; the header goes with the first row where both fit a chunk, else alone."""
    rows: list[tuple[int, int]] = []
    for table in document.tables:
        if table.rows and table.start < table.rows[0][0]:
            whole = (table.start, table.rows[0][1])
            if ruler.cost(*whole) <= size:
                rows += [whole, *table.rows[1:]]
                continue
            rows.append((table.start, table.rows[0][0]))
        rows += table.rows
    return sorted(row for row in rows if row[0] < row[1])


class Layout:
    """Headings and those table rows that fit a chunk, for quick questions about a cut."""

    def __init__(self, document: Document, text: str, ruler: Ruler, size: int) -> None:
        self.text = text
        self.headings = document.headings
        self._heading_starts = [heading.start for heading in document.headings]
        self.rows = [row for row in _rows(document, ruler, size) if ruler.cost(*row) <= size]
        self._row_starts = [start for start, _ in self.rows]

    @property
    def is_markdown(self) -> bool:
        return any(self.text.startswith("#", heading.start) for heading in self.headings)

    def row_at(self, place: int) -> tuple[int, int] | None:
        """The row that a cut at `place` would part."""
        i = bisect_left(self._row_starts, place) - 1
        return self.rows[i] if i >= 0 and place < self.rows[i][1] else None

    def bounds(self, start: int, end: int) -> list[int]:
        """Places between start and end where a unit ends in any case: around headings and rows."""
        rows = self.rows[bisect_left(self._row_starts, start) : bisect_left(self._row_starts, end)]
        first, last = bisect_left(self._heading_starts, start), bisect_left(self._heading_starts, end)
        spans = [*rows, *((heading.start, heading.end) for heading in self.headings[first:last])]
        return [place for span in spans for place in span]

    def after_headings(self, start: int, end: int) -> int | None:
        """Where the text under them begins, when text[start:end] is nothing but heading lines."""
        place = start
        i = bisect_right(self._heading_starts, start) - 1
        if i < 0 or start >= self.headings[i].end:
            i += 1
        while i < len(self.headings) and is_blank(self.text, place, self.headings[i].start):
            place = max(place, self.headings[i].end)
            i += 1
        if place == start or not is_blank(self.text, place, end):
            return None
        return skip_blanks(self.text, place, len(self.text))

    def end(self, start: int, end: int, stop: int) -> int:
        """The end of a chunk from `start`, drawn back so that it parts no sign, identifier or row and
        leaves no heading behind without its text."""
        row = self.row_at(end)
        if row and row[0] >= start:
            end = row[0] if row[0] > start else row[1]
        elif end < stop:
            end = word_back(self.text, end, start)
        while end < stop:
            i = bisect_left(self._heading_starts, end) - 1
            if (
                i < 0
                or self.headings[i].start <= start
                or not is_blank(self.text, self.headings[i].end, end)
            ):
                break
            if self.after_headings(start, self.headings[i].start) is not None:
                break
            end = self.headings[i].start
        end = cut_back(self.text, end, start)
        return start + len(self.text[start:end].rstrip())

    def overlap_start(self, start: int, end: int) -> int:
        """The start of a chunk that repeats text before `end`, moved on past a parted row or sign."""
        row = self.row_at(start)
        return cut_forward(self.text, row[1] if row else start, end) if start < end else start

    def back(self, end: int, ruler: Ruler, overlap: int, floor: int) -> int:
        """Where the chunk after `end` starts, so that it repeats whole words within the overlap."""
        start = max(ruler.fit_back(end, overlap), floor + 1) if overlap else end
        while 0 < start < end and not self.text[start - 1].isspace():
            start += 1
        return self.overlap_start(skip_blanks(self.text, start, end), end)
