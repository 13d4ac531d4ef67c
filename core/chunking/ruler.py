"""How long a piece of text is: in characters, or in the embedding model's tokens."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Protocol

CountTokens = Callable[[Sequence[str]], list[int]]

# Tokens are counted word by word, each word once a document: far faster than counting every candidate
# span. Runs without blanks are counted in slices, so that a run which the model would take for one
# unknown token still has a length.
_WORD = re.compile(r"\S{1,32}")


class Ruler(Protocol):
    """Measures spans of one text."""

    def cost(self, start: int, end: int) -> int:
        """Length of the span in the unit."""
        ...

    def measure(self, piece: str) -> int:
        """Length of a piece of the text."""
        ...

    def fit(self, start: int, limit: int) -> int:
        """The furthest end (at least start + 1) such that the span is not above the limit."""
        ...

    def fit_back(self, end: int, limit: int) -> int:
        """The earliest start (at most end) such that the span is not above the limit."""
        ...

    def above(self, spans: Sequence[tuple[int, int]], limit: int) -> dict[int, int]:
        """Places in `spans` that are truly above the limit, with their length."""
        ...


class Characters:
    """Lengths in Python characters (Unicode code points)."""

    def __init__(self, text: str) -> None:
        self._end = len(text)

    def cost(self, start: int, end: int) -> int:
        return end - start

    def measure(self, piece: str) -> int:
        return len(piece)

    def fit(self, start: int, limit: int) -> int:
        return min(start + limit, self._end)

    def fit_back(self, end: int, limit: int) -> int:
        return max(end - limit, 0)

    def above(self, spans: Sequence[tuple[int, int]], limit: int) -> dict[int, int]:
        return {i: end - start for i, (start, end) in enumerate(spans) if end - start > limit}


class Tokens:
    """Lengths in tokens, special tokens not counted.

    Working lengths are sums over words (what WordPiece counts exactly and others nearly); `above`
    asks the model's tokenizer about the finished spans.
    """

    def __init__(self, text: str, count_tokens: CountTokens) -> None:
        self._text = text
        self._count = count_tokens
        self._special = count_tokens([""])[0]
        self._known: dict[str, int] = {}
        spans = [match.span() for match in _WORD.finditer(text)]
        self._starts = [start for start, _ in spans]
        self._ends = [end for _, end in spans]
        words = [text[start:end] for start, end in spans]
        self._learn(words)
        self._sums = [0, *accumulate(self._known[word] for word in words)]

    def _learn(self, words: Sequence[str]) -> None:
        new = list(dict.fromkeys(word for word in words if word not in self._known))
        if new:
            # A word that the tokenizer drops still counts: no endless chunk of dropped signs.
            counts = (max(count - self._special, 1) for count in self._count(new))
            self._known.update(zip(new, counts, strict=True))

    def measure(self, piece: str) -> int:
        words = _WORD.findall(piece)
        try:
            return sum([self._known[word] for word in words])
        except KeyError:
            self._learn(words)
            return sum([self._known[word] for word in words])

    def cost(self, start: int, end: int) -> int:
        first, last = bisect_left(self._starts, start), bisect_right(self._ends, end)
        if last < first:
            return self.measure(self._text[start:end])
        total = self._sums[last] - self._sums[first]
        if first and self._ends[first - 1] > start:
            total += self.measure(self._text[start : self._ends[first - 1]])
        if last < len(self._starts) and self._starts[last] < end:
            total += self.measure(self._text[self._starts[last] : end])
        return total

    def fit(self, start: int, limit: int) -> int:
        first = bisect_left(self._starts, start)
        used = 0
        begin = start
        if first and self._ends[first - 1] > start:
            used = self.measure(self._text[start : self._ends[first - 1]])
            if used > limit:
                return self._inside(start, self._ends[first - 1], limit)
            begin = self._ends[first - 1]
        last = bisect_right(self._sums, self._sums[first] + limit - used) - 1
        if last == len(self._ends):
            return len(self._text)
        if last > first:
            return self._ends[last - 1]
        return begin if begin > start else self._inside(self._starts[first], self._ends[first], limit)

    def _inside(self, start: int, end: int, limit: int) -> int:
        while end > start + 1 and self.measure(self._text[start:end]) > limit:
            end -= 1
        return end

    def fit_back(self, end: int, limit: int) -> int:
        last = bisect_right(self._ends, end)
        if last < len(self._starts) and self._starts[last] < end:
            limit -= self.measure(self._text[self._starts[last] : end])
            if limit < 0:
                return end
        first = bisect_left(self._sums, self._sums[last] - limit)
        return min(self._starts[first], end) if first < len(self._starts) else end

    def above(self, spans: Sequence[tuple[int, int]], limit: int) -> dict[int, int]:
        counts = self._count([self._text[start:end] for start, end in spans]) if spans else []
        return {i: n - self._special for i, n in enumerate(counts) if n - self._special > limit}
