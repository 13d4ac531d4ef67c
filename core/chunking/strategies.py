"""The strategies: each turns a document's layout into spans, ascending, covering all text but blanks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from core.chunking.boundaries import (
    cut_back,
    cut_forward,
    is_blank,
    joined,
    sentences,
    skip_blanks,
    trim,
    word_back,
)
from core.chunking.layout import Layout
from core.chunking.ruler import Characters, Ruler

Span = tuple[int, int]
Embed = Callable[[Sequence[str]], np.ndarray]

# The library is quadratic in the text it is given, so it gets blocks of this many sizes; the last chunk
# of a block is cut again from its own start with the next block.
_BLOCK = 16


def fixed(
    layout: Layout, ruler: Ruler, start: int, stop: int, size: int, overlap: int
) -> Iterator[Span]:
    """Windows of `size` that share `overlap`, moved only so far that no sign is parted."""
    start, stop = trim(layout.text, start, stop)
    last_end = start
    while start < stop:
        end = min(ruler.fit(start, size), stop)
        if end < stop:
            end = cut_back(layout.text, end, start)
        if end <= last_end:  # the next sign is longer than what the overlap leaves
            start = cut_forward(layout.text, start + 1, last_end)
            continue
        yield start, end
        last_end = end
        if end >= stop:
            return
        start = max(ruler.fit_back(end, overlap) if overlap else end, start + 1)
        start = cut_forward(layout.text, start, end)
        # In characters blanks are text like any other; in tokens a window starts at a word.
        if not isinstance(ruler, Characters) or is_blank(layout.text, start, ruler.fit(start, size)):
            start = skip_blanks(layout.text, start, stop)


def recursive(
    layout: Layout, ruler: Ruler, start: int, stop: int, size: int, overlap: int, markdown: bool = False
) -> Iterator[Span]:
    """The spans of semantic-text-splitter, put right where they part a row or leave a heading alone."""
    width = _BLOCK * size
    start, stop = trim(layout.text, start, stop)
    at, last_start, last_end = start, start - 1, start
    while at < stop:
        block_end = min(at + width, stop)
        pieces = _library_spans(layout.text, at, block_end, ruler, size, overlap, markdown)
        if not pieces:
            at = block_end
            continue
        resume = stop
        if block_end < stop:
            if len(pieces) == 1:
                width *= 2
                continue
            resume = pieces.pop()[0]
        for begin, found in pieces:
            begin = layout.overlap_start(begin, last_end)
            end = layout.end(begin, found, stop)
            body = layout.after_headings(begin, end)
            if body is not None and end < stop:
                end = _with_heading(layout, ruler, begin, body, stop, size, markdown) or end
            if begin <= last_start or end <= last_end:
                resume = last_end  # the overlap leaves no room for what comes next
                break
            room = min(overlap, size - ruler.cost(last_end, end))
            if room > 0 and start < last_end <= begin:
                # No whole sentence fits the overlap: words do.
                words = layout.back(last_end, ruler, room, last_start)
                begin = words if words < last_end else begin
            yield begin, end
            last_start, last_end = begin, end
            if end != found:
                resume = layout.back(end, ruler, overlap, begin)
                break
        at = resume


def _library_spans(
    text: str, start: int, end: int, ruler: Ruler, size: int, overlap: int, markdown: bool
) -> list[Span]:
    from semantic_text_splitter import MarkdownSplitter, TextSplitter

    splitter = MarkdownSplitter if markdown else TextSplitter
    if isinstance(ruler, Characters):
        made = splitter(size, overlap=overlap)
    else:
        made = splitter.from_callback(ruler.measure, size, overlap=overlap)
    found = ((start + at, start + at + len(piece)) for at, piece in made.chunk_indices(text[start:end]))
    return [span for span in (trim(text, *span) for span in found) if span[0] < span[1]]


def _with_heading(
    layout: Layout, ruler: Ruler, start: int, body: int, stop: int, size: int, markdown: bool
) -> int | None:
    """The end of a chunk of heading lines and as much of their text as fits; None when none fits."""
    room = size - ruler.cost(start, body)
    if room < 1:
        return None
    first = _library_spans(layout.text, body, min(body + _BLOCK * size, stop), ruler, room, 0, markdown)
    end = layout.end(body, first[0][1], stop) if first else body
    # Where the room is less than the first word or sign, that one would be parted for its heading's sake.
    if end < stop and (joined(layout.text, end) or word_back(layout.text, end, body - 1) <= body):
        return None
    return end if end > body and ruler.cost(start, end) <= size else None


def pack(units: Sequence[Span], ruler: Ruler, size: int, overlap: int) -> Iterator[Span]:
    """Runs of whole units, each as long as fits; a run repeats the last units that fit the overlap."""
    first = 0
    after = 0  # units before this one are in a chunk
    while after < len(units):
        start = units[first][0]
        last = after
        while last + 1 < len(units) and ruler.cost(start, units[last + 1][1]) <= size:
            last += 1
        yield start, units[last][1]
        after = last + 1
        if after == len(units):
            return
        following, end = units[after][1], units[last][1]
        least = first + 1
        first = after
        while (
            first > least
            and ruler.cost(units[first - 1][0], end) <= overlap
            and ruler.cost(units[first - 1][0], following) <= size
        ):
            first -= 1


def units_of(layout: Layout, ruler: Ruler, start: int, stop: int, size: int) -> list[Span]:
    """Sentences and table rows; those above the size are cut as `recursive` does."""
    bounds = layout.bounds(start, stop)
    found = _whole_rows(layout, sentences(layout.text, start, stop, bounds))
    units: list[Span] = []
    for span in found:
        units.extend([span] if ruler.cost(*span) <= size else recursive(layout, ruler, *span, size, 0))
    return units


def _whole_rows(layout: Layout, spans: list[Span]) -> list[Span]:
    """Sentences with those inside one row put together again."""
    if not layout.rows:
        return spans
    whole: list[Span] = []
    for start, end in spans:
        row = layout.row_at(start)
        if row and whole and row[0] <= whole[-1][0]:
            whole[-1] = (whole[-1][0], end)
        else:
            whole.append((start, end))
    return whole


def by_sentences(layout: Layout, ruler: Ruler, size: int, overlap: int) -> Iterator[Span]:
    yield from pack(units_of(layout, ruler, 0, len(layout.text), size), ruler, size, overlap)


def by_headings(layout: Layout, ruler: Ruler, size: int, overlap: int) -> Iterator[Span]:
    """One chunk a section; headings without text of their own open the section that follows."""
    for start, stop in sections(layout):
        start, stop = trim(layout.text, start, stop)
        if start == stop:
            continue
        if ruler.cost(start, stop) <= size:
            yield start, stop
        else:
            yield from recursive(layout, ruler, start, stop, size, overlap, layout.is_markdown)


def sections(layout: Layout) -> list[Span]:
    """From heading to heading; a heading without text joins the section that follows, else the last."""
    starts = dict.fromkeys([0, *(heading.start for heading in layout.headings), len(layout.text)])
    found: list[Span] = []
    begin: int | None = None
    for start, end in pairwise(starts):
        begin = start if begin is None else begin
        if layout.after_headings(start, end) is None and not is_blank(layout.text, start, end):
            found.append((begin, end))
            begin = None
    if begin is not None:
        start = found.pop()[0] if found else begin
        found.append((start, len(layout.text)))
    return found


def by_meaning(
    layout: Layout, ruler: Ruler, size: int, overlap: int, embed: Embed, percentile: float
) -> Iterator[Span]:
    """Breaks where neighbouring sentences differ most; between breaks, sentences packed to the size.

    After Greg Kamradt, "5 Levels of Text Splitting", level 4: each sentence is embedded together with
    its neighbour on either side; a break where the cosine distance to the next is above the percentile.
    """
    units = units_of(layout, ruler, 0, len(layout.text), size)
    first = 0
    for after in [*_jumps(layout, units, embed, percentile), len(units)]:
        yield from pack(units[first:after], ruler, size, overlap)
        first = after


def _jumps(layout: Layout, units: Sequence[Span], embed: Embed, percentile: float) -> list[int]:
    """Places in `units` before which the meaning jumps."""
    if len(units) < 3:
        return []
    text = layout.text
    groups = [
        " ".join(text[start:end] for start, end in units[max(i - 1, 0) : i + 2])
        for i in range(len(units))
    ]
    vectors = np.asarray(embed(groups), dtype=np.float64)
    distances = 1 - np.einsum("ij,ij->i", vectors[:-1], vectors[1:])
    return [int(i) + 1 for i in np.flatnonzero(distances > np.percentile(distances, percentile))]
