"""A document's text as runs under the same chunks: what draws chunks, overlaps and cut-off ends."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from core.protocols import Embedder
from core.types import Chunk

WINDOW = 20_000
"""Characters shown at a time: more makes a browser slow."""

_CHUNKS = 400  # labels in one window


@dataclass(frozen=True, slots=True)
class Run:
    """text[start:end], all of it in the same chunks.

    `depth` chunks hold it (0: blanks between chunks, 2 and more: an overlap), `unseen` of them beyond
    what the embedding model reads. `begins` and `ends` name the chunks that start at its start and
    end at its start; `chunk` is the newest that holds it.
    """

    start: int
    end: int
    depth: int
    unseen: int
    chunk: int | None
    marked: bool
    begins: tuple[int, ...]
    ends: tuple[int, ...]


class ChunkMap:
    """Which chunks hold which part of a text. Made once a document and settings, asked for windows.

    `spans` are ascending by start; `seen` says for each where the model stops reading (its end when
    the model reads all of it).
    """

    def __init__(self, spans: Sequence[tuple[int, int]], seen: Sequence[int] | None = None) -> None:
        self._spans = list(spans)
        self._starts = [start for start, _ in spans]
        self._ends = sorted(end for _, end in spans)
        self._seen = sorted(seen) if seen is not None else self._ends

    def runs(self, start: int, stop: int, mark: tuple[int, int] | None = None) -> list[Run]:
        """The runs of text[start:stop], in order, without gaps; none is empty.

        A chunk that begins before the window is in the runs and in no `begins`.
        """
        first = bisect_right(self._starts, start - 1)
        last = bisect_right(self._starts, stop - 1)
        ending: dict[int, list[int]] = {}
        number = self._first_open(start)
        for at in range(number, last):
            if self._spans[at][1] > start:
                ending.setdefault(self._spans[at][1], []).append(at)
        beginning: dict[int, list[int]] = {}
        for at in range(first, last):
            beginning.setdefault(self._starts[at], []).append(at)
        cuts = {start, stop, *ending, *beginning, *(mark or ())}
        cuts.update(self._seen[bisect_right(self._seen, start) : bisect_right(self._seen, stop)])
        places = sorted(cut for cut in cuts if start <= cut <= stop)
        return [
            self._run(here, following, mark, beginning.get(here, []), ending.get(here, []))
            for here, following in pairwise(places)
        ]

    def _first_open(self, position: int) -> int:
        """A number from which on all chunks that reach beyond the position are."""
        at = bisect_right(self._starts, position)
        depth = at - bisect_right(self._ends, position)
        while at > 0 and depth > 0:
            at -= 1
            depth -= self._spans[at][1] > position
        return at

    def _run(
        self, start: int, end: int, mark: tuple[int, int] | None, begins: list[int], ends: list[int]
    ) -> Run:
        newest = bisect_right(self._starts, start) - 1
        closed = bisect_right(self._ends, start)
        depth = newest + 1 - closed
        unseen = bisect_right(self._seen, start) - closed
        while depth and self._spans[newest][1] <= start:
            newest -= 1
        marked = mark is not None and mark[0] <= start < mark[1]
        chunk = newest if depth else None
        return Run(start, end, depth, unseen, chunk, marked, tuple(begins), tuple(ends))

    def at(self, position: int) -> int | None:
        """The newest chunk that holds the position; None in a gap."""
        return self._run(position, position + 1, None, [], []).chunk

    def window(self, length: int, around: int, width: int = WINDOW) -> tuple[int, int]:
        """The part of a text of `length` characters to show so that `around` is in its first tenth.

        At most `width` characters, and fewer where they would hold more than 400 chunks.
        """
        start = max(0, min(around - width // 10, length - width))
        first = bisect_right(self._starts, start - 1)
        if around < length and bisect_right(self._starts, around) - first > _CHUNKS // 2:
            start = around
            first = bisect_right(self._starts, start - 1)
        stop = min(start + width, length)
        if first + _CHUNKS < len(self._starts):
            stop = min(stop, max(self._starts[first + _CHUNKS], start + 1))
        return start, stop


def seen_end(chunk: Chunk, embedder: Embedder, tokens: int) -> int:
    """Where in the document the model stops reading a chunk of so many tokens; its end if it reads all.

    What stands before the text, columns or a context, is read first.
    """
    if tokens <= embedder.max_tokens:
        return chunk.end
    after = len(chunk.context) + 1 if chunk.context and chunk.context_last else 0
    before = len(chunk.indexed_text) - len(chunk.text) - after
    return min(chunk.start + max(0, embedder.visible_end(chunk.indexed_text) - before), chunk.end)
