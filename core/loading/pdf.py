"""PDF through PDFium: text in reading order, page labels, the outline as headings.

PDFium is not safe over threads, so one lock of the process is held from opening to closing.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from core.errors import LimitError, LoadError, PasswordNeeded
from core.loading.clean import clean, one_line
from core.loading.draft import Parsed, Reading, Value
from core.loading.options import Limits
from core.loading.properties import of_pdf
from core.types import Heading, Page

_LOCK = threading.Lock()
_PASSWORD_ERROR = 4
_LIGATURES = {chr(code): unicodedata.normalize("NFKC", chr(code)) for code in range(0xFB00, 0xFB07)}
_LIGATURE_TABLE = str.maketrans(_LIGATURES)
_HYPHENS = "-\u2010\u00ad\x02"  # PDFium gives U+0002 for a hyphen it takes for one at a line end
_NO_TITLE = re.compile(
    r"untitled|anonymous|microsoft \w+ - .*|.*\.(docx?|pptx?|xlsx?|indd|tex|dvi|html?)", re.IGNORECASE
)
_COLUMN_TEXT = 15  # characters: shorter cells make a table, whose rows must stay together
_COLUMN_ROWS = 3
_MOST_LINES = 1500  # of a page: no page for reading has more, and looking for columns is quadratic


@dataclass(frozen=True, slots=True)
class Line:
    """A run of text with its box, in points, y upwards."""

    text: str
    left: float
    bottom: float
    right: float
    top: float

    @property
    def height(self) -> float:
        return self.top - self.bottom

    @property
    def sideways(self) -> bool:
        return len(self.text) > 2 and self.height > self.right - self.left


def read_pdf(data: bytes, password: str | None, limits: Limits) -> Reading:
    """One document. Raises PasswordNeeded, LimitError for too many pages, and LoadError for a
    damaged file or one without text (scanned pages: there is no text recognition here)."""
    import pypdfium2

    with _LOCK:
        try:
            pdf = pypdfium2.PdfDocument(data, password=password)
        except pypdfium2.PdfiumError as error:
            if getattr(error, "err_code", None) == _PASSWORD_ERROR:
                remedy = "the password given does not open it" if password else "give its password"
                raise PasswordNeeded(f"password protected PDF: {remedy}") from None
            raise LoadError("damaged PDF: it cannot be opened; export or download it again") from error
        try:
            if len(pdf) > limits.pages:
                raise LimitError(
                    f"the PDF has {len(pdf):,} pages; the limit is {limits.pages:,}: "
                    "split it or raise the limit"
                )
            labels = [pdf.get_page_label(i) or str(i + 1) for i in range(len(pdf))]
            outline = _outline(pdf)
            told = pdf.get_metadata_dict(skip_empty=True)
            title = told.get("Title", "").strip()
            pages, unread = [], 0
            for index in range(len(pdf)):
                try:
                    pages.append(_lines_of_page(pdf, index))
                except pypdfium2.PdfiumError:
                    pages.append([])
                    unread += 1
        finally:
            pdf.close()
    title = "" if _NO_TITLE.fullmatch(title) else title
    return _assemble(pages, labels, outline, title, of_pdf(told), unread)


def _assemble(
    pages: list[list[Line]],
    labels: list[str],
    outline: list[tuple[int, str, int]],
    title: str,
    metadata: Mapping[str, Value],
    unread: int,
) -> Reading:
    empty = sum(not lines for lines in pages)
    if empty == len(pages):
        raise LoadError(
            "no text found (scan?): the pages hold pictures only; run text recognition (OCR) on the "
            "file first"
        )
    warnings = [f"{unread} damaged pages could not be read"] if unread else []
    if empty > unread:
        warnings.append(f"{empty - unread} of {len(pages)} pages hold no text (scanned?)")
    repeated, parted = _without_repeats(pages)
    if repeated:
        warnings.append(
            f"{repeated} repeated header and footer lines were left out (the first of each is kept)"
        )
    text, starts = "", []
    for running, lines in parted:
        body = "\n\n".join(filter(None, (_join(running), _join(lines))))
        if text and body:
            hyphen = _is_hyphenated(text, body)
            text = text[:-1] if hyphen else text
            separator = "" if hyphen else "\n" if text[-1].islower() or text[-1] == "," else "\n\n"
            text += separator
        starts.append(len(text))
        text += body
    # A hyphen at a page's end was kept until now; what is left of PDFium's mark for it is a real one.
    text = text.replace("\x02", "-")
    return Reading(
        [
            Parsed(
                text,
                one_line(title),
                _headings(text, starts, outline),
                tuple(Page(label, start) for label, start in zip(labels, starts, strict=True)),
                metadata=metadata,
            )
        ],
        warnings=warnings,
    )


def _outline(pdf: Any) -> list[tuple[int, str, int]]:
    """(level from 1, title, page index) of each bookmark that leads to a page."""
    entries = []
    for bookmark in pdf.get_toc():
        destination = bookmark.get_dest()
        index = destination.get_index() if destination else None
        title = one_line(clean(bookmark.get_title()))
        if index is not None and index < len(pdf) and title:
            entries.append((bookmark.level + 1, title, index))
    return entries


def _headings(text: str, starts: list[int], outline: list[tuple[int, str, int]]) -> tuple[Heading, ...]:
    """Each bookmark at the line of its page that says the same; at the page's start where none does."""
    found: list[Heading] = []
    for level, title, index in outline:
        end = starts[index + 1] if index + 1 < len(starts) else len(text)
        earliest = max(starts[index], found[-1].end if found else 0)
        pattern = r"\s+".join(map(re.escape, title.split()))
        match = re.compile(rf"^(?:[\dIVX.]+\s+)?{pattern}(?!\w)", re.IGNORECASE | re.MULTILINE).search(
            text, min(earliest, end), end
        )
        start, stop = match.span() if match else (min(earliest, end), min(earliest, end))
        found.append(Heading(level, title, start, stop))
    return tuple(found)


def _lines_of_page(pdf: Any, index: int) -> list[Line]:
    page = pdf[index]
    try:
        text_page = page.get_textpage()
        try:
            runs = _runs(text_page)
        finally:
            text_page.close()
    finally:
        page.close()
    return in_reading_order(_lines(runs))


def _runs(text_page: Any) -> list[Line]:
    """Runs of characters that lie in one box.

    PDFium gives boxes, and the text in a box, but the latter holds neighbouring lines wherever boxes
    overlap. So each run is the longest range of characters with one box only.
    """
    from pypdfium2.raw import FPDFText_GetUnicode

    total = text_page.count_chars()
    codes = [FPDFText_GetUnicode(text_page, i) for i in range(total)]
    runs = []
    start = 0
    while start < total:
        length, step = 1, 64
        while step:
            if start + length + step <= total and text_page.count_rects(start, length + step) <= 1:
                length += step
            else:
                step //= 2
        if text_page.count_rects(start, length):
            text = _decoded(codes[start : start + length])
            if text.strip():
                runs.append(Line(text, *text_page.get_rect(0)))
        start += length
    return runs


def _decoded(codes: list[int]) -> str:
    """Characters as text: no line ends, ligatures as letters, PDFium's mark of a hyphen kept."""
    raw = "".join(chr(code) for code in codes if 0 < code < 0x110000)
    raw = raw.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    parts = raw.translate(_LIGATURE_TABLE).replace("\ufffe", "\x02").split("\x02")
    return "\x02".join(clean(part).replace("\n", " ") for part in parts)


def _lines(runs: list[Line]) -> list[Line]:
    """Runs of one line (PDFium cuts where the font changes) joined, except over a wide gap."""
    lines: list[Line] = []
    for run in runs:
        last = lines[-1] if lines else None
        if last and not last.sideways and not run.sideways:
            height = max(last.height, run.height)
            middle = (run.bottom + run.top) / 2
            gap = run.left - last.right
            if last.bottom < middle < last.top and -0.5 * height < gap < height:
                blank = " " if gap > 0.15 * height and not last.text.endswith(" ") else ""
                lines[-1] = Line(
                    last.text + blank + run.text.lstrip(" " if blank else ""),
                    last.left,
                    min(last.bottom, run.bottom),
                    run.right,
                    max(last.top, run.top),
                )
                continue
        lines.append(run)
    return lines


def in_reading_order(lines: list[Line]) -> list[Line]:
    """Lines as stored, but columns written row by row are read one after the other.

    Columns are seen where several rows have a gap at the same place with sentences, not cells, on both
    sides. A line across the gap ends the columns above it.
    """
    gutter = _gutter(lines)
    if gutter is None:
        return lines
    ordered: list[Line] = []
    left: list[Line] = []
    right: list[Line] = []
    for line in sorted(lines, key=lambda line: -line.top):
        if line.right <= gutter + 1:
            left.append(line)
        elif line.left >= gutter - 1:
            right.append(line)
        else:
            ordered += in_reading_order(left) + in_reading_order(right) + [line]
            left, right = [], []
    return ordered + in_reading_order(left) + in_reading_order(right)


def _gutter(lines: list[Line]) -> float | None:
    if len(lines) > _MOST_LINES:
        return None
    gaps: list[tuple[float, float, Line, Line]] = []
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: -line.top):
        if rows and rows[-1][0].bottom < (line.bottom + line.top) / 2 < rows[-1][0].top:
            rows[-1].append(line)
        else:
            rows.append([line])
    for row in rows:
        row.sort(key=lambda line: line.left)
        for one, other in pairwise(row):
            if other.left - one.right > 0.5 * one.height:
                gaps.append((one.right, other.left, one, other))
    best: float | None = None
    most = _COLUMN_ROWS - 1
    for place in {(gap[0] + gap[1]) / 2 for gap in gaps}:
        here = [gap for gap in gaps if gap[0] <= place <= gap[1]]
        if (
            len(here) > most
            and median(len(gap[2].text) for gap in here) >= _COLUMN_TEXT
            and median(len(gap[3].text) for gap in here) >= _COLUMN_TEXT
        ):
            best, most = place, len(here)
    return best


def _without_repeats(pages: list[list[Line]]) -> tuple[int, list[tuple[list[Line], list[Line]]]]:
    """How many lines of running headers and footers went, and each page without them.

    They are lines at the edge of more than half of the pages (two at least) that differ in digits
    only. The first of each is kept, so that no word is lost, apart from the other lines of its page
    (they come first), so that it cuts no sentence.
    """

    def edge(lines: list[Line]) -> list[Line]:
        by_height = sorted(lines, key=lambda line: -line.top)
        return [*by_height[:2], *by_height[2:][-2:]]

    def key(line: Line) -> str:
        return re.sub(r"\d+", "#", one_line(line.text))

    counts = Counter(k for lines in pages for k in {key(line) for line in edge(lines)})
    running = {k for k, count in counts.items() if count >= 2 and count > len(pages) / 2}
    seen: set[str] = set()
    removed = 0
    kept: list[tuple[list[Line], list[Line]]] = []
    for lines in pages:
        edges = {id(line) for line in edge(lines)}
        first: list[Line] = []
        rest: list[Line] = []
        for line in lines:
            if id(line) not in edges or key(line) not in running:
                rest.append(line)
            elif key(line) in seen:
                removed += 1
            else:
                seen.add(key(line))
                first.append(line)
        kept.append((first, rest))
    return removed, kept


def _join(lines: list[Line]) -> str:
    """Lines of a page as text: words cut at a line end joined, a blank line at wider gaps."""
    drops = [one.bottom - other.bottom for one, other in pairwise(lines)]
    downward = [drop for drop in drops if drop > 0]
    usual = median(downward) if downward else 0.0
    text = ""
    for index, line in enumerate(lines):
        new = line.text.strip()
        if not text:
            text = new
        elif _is_hyphenated(text, new):
            text = text[:-1] + new
        else:
            text += ("\n\n" if drops[index - 1] > 1.35 * usual else "\n") + new
    return text


def _is_hyphenated(before: str, after: str) -> bool:
    return len(before) > 1 and before[-1] in _HYPHENS and before[-2].isalpha() and after[0].islower()
