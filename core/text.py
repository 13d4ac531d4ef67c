"""From text to search terms: one `Analyzer` for documents and queries alike, and for highlighting.

Two ways to cut:

- "identifiers" (the default) works on the NFKC form without invisible characters. Words are runs of
  letters, digits and combining marks, case-folded, stop words dropped, stemmed. What is joined by
  `- . _ / @ : &` (INC-2023-Q4-011, 3.5-inch, user@host), written in camel case (getUserId), or made
  of a word and a number (BX204, v2.3) counts whole **and** by its parts; so do C++, C#, .NET. Han,
  kana, Thai, Lao, Khmer and Myanmar, which put no blanks between words, become pairs of neighbouring
  characters; Korean words count whole and by such pairs.
- "words" is the tokenizer most published BM25 figures were measured with (the default of bm25s and of
  scikit-learn): lower case, `\\b\\w\\w+\\b`, stop words dropped, stemmed.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any, Literal

import Stemmer

from core.errors import SettingsError
from core.stopwords import NEGATIONS, STOP_WORDS

LANGUAGES: tuple[str, ...] = ("none", *sorted(Stemmer.algorithms()))
"""Values of `Analyzer.language`: the Snowball stemmers, and "none" (no stemmer, no stop words)."""

_VERSION = 1  # Raise it when the tokens of any text change: stored tokens are then made again.
_CACHE_ENTRIES = 200_000
_LONGEST = 128  # Characters of one word; a longer run is cut, so that no token grows with the text.
_JOINTS = 31  # Joints of one compound, for the same reason.


def _field(default: Any, label: str, help: str, choices: tuple[str, ...] = ()) -> Any:
    return field(default=default, metadata={"label": label, "help": help, "choices": choices})


@dataclass(frozen=True, slots=True)
class Analyzer:
    """How text becomes terms. Equal analyzers give equal terms; `fingerprint` names the way.

    Raises SettingsError for an unknown language or way of cutting.
    """

    language: str = _field(
        "english", "Language", "Whose stemmer and stop words are used; none uses neither.", LANGUAGES
    )
    stem: bool = _field(True, "Stemmer", "Cut words to their stems, so that pumps finds pump.")
    stop_words: bool = _field(True, "Stop words", "Leave out words that say little, such as the and of.")
    tokens: Literal["identifiers", "words"] = _field(
        "identifiers",
        "Tokens",
        "identifiers finds INC-2023-Q4-011, C++ or getUserId whole and by their parts, and scripts "
        "without blanks; words is the plain tokenizer of most published figures.",
        ("identifiers", "words"),
    )

    def __post_init__(self) -> None:
        if self.language not in LANGUAGES:
            raise SettingsError(
                f"analyzer language {self.language!r} is unknown; choose one of {', '.join(LANGUAGES)}"
            )
        if self.tokens not in ("identifiers", "words"):
            raise SettingsError(f"analyzer tokens {self.tokens!r}; choose 'identifiers' or 'words'")

    @property
    def fingerprint(self) -> str:
        """Tokens stored under another fingerprint belong to another vocabulary."""
        return f"{self.tokens}/{self.language}/stem={self.stem:d}/stop={self.stop_words:d}/v{_VERSION}"

    def tokens_of(self, text: str) -> list[str]:
        """The terms of a text in order, repetitions kept."""
        return _engine(self).tokens_of(text)

    def spans_of(self, text: str) -> list[tuple[str, int, int]]:
        """The same terms, each with the span [start, end) of `text` that it comes from.

        Spans overlap where a compound counts whole and by its parts.
        """
        return _engine(self).spans_of(text)

    def notes(self) -> tuple[str, ...]:
        """What this choice leaves out, in sentences for the person who makes it."""
        found = []
        if self.language == "none":
            if self.stem or self.stop_words:
                found.append("Language none: words are neither stemmed nor dropped.")
        elif self.stop_words and self.language not in STOP_WORDS:
            found.append(f"There is no stop-word list for {self.language}: every word counts.")
        if self.tokens == "words":
            found.append(
                "Plain words: one-letter terms, C++ and C# cannot be found, identifiers match only by "
                "their parts, and text without blanks between words (Chinese, Japanese, Thai) only by "
                "whole clauses."
            )
        return tuple(found)


@lru_cache(maxsize=32)
def _engine(analyzer: Analyzer) -> _Words | _Identifiers:
    return (_Words if analyzer.tokens == "words" else _Identifiers)(analyzer)


class _Cache(dict[str, Any]):
    """What `make` gives for a word, kept; emptied when full, so that no text fills the memory."""

    def __init__(self, make: Callable[[str], Any]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, word: str) -> Any:
        made = self._make(word)
        if len(self) >= _CACHE_ENTRIES:
            self.clear()
        self[word] = made
        return made


class _Words:
    """`\\b\\w\\w+\\b` of the lower-cased text."""

    def __init__(self, analyzer: Analyzer) -> None:
        speaks = analyzer.language != "none"
        listed = STOP_WORDS.get(analyzer.language, frozenset())
        self._stop = listed if analyzer.stop_words else frozenset()
        # Size 0 switches off the stemmer's own cache: ours holds whole words with all their terms.
        self._stemmer = Stemmer.Stemmer(analyzer.language, 0) if analyzer.stem and speaks else None
        self._lock = threading.Lock()  # A stemmer holds buffers of its own: one thread at a time.
        self._spans = _Cache(lambda word: tuple(self._resolve(word)))
        self._terms = _Cache(lambda word: tuple(term for term, _, _ in self._resolve(word)))

    def tokens_of(self, text: str) -> list[str]:
        return self._looked_up(_PLAIN.findall(text.lower()))

    def _looked_up(self, lexemes: list[str]) -> list[str]:
        # Words repeat: all the work is done once a word, and the rest runs in C.
        return list(chain.from_iterable(map(self._terms.__getitem__, lexemes)))

    def spans_of(self, text: str) -> list[tuple[str, int, int]]:
        lowered = text.lower()
        # Some capitals have a longer small form; then each character of it points to its origin.
        origin = None
        if len(lowered) != len(text):
            origin = [i for i, character in enumerate(text) for _ in character.lower()]
        found = []
        for match in _PLAIN.finditer(lowered):
            start, end = match.span()
            if origin is not None:
                start, end = origin[start], origin[end - 1] + 1
            found += [(term, start, end) for term, _, _ in self._spans[match[0]]]
        return found

    def _resolve(self, word: str) -> Iterator[tuple[str, int, int]]:
        term = self._term(word)
        if term:
            yield term, 0, len(word)

    def _term(self, word: str) -> str:
        """The stem of a lower-case word; empty for a stop word."""
        if word in self._stop:
            return ""
        if self._stemmer is None:
            return word
        with self._lock:
            return self._stemmer.stemWord(word)


class _Identifiers(_Words):
    """Words, compounds with their parts, and character pairs where a script has no blanks."""

    def __init__(self, analyzer: Analyzer) -> None:
        super().__init__(analyzer)
        self._stop -= NEGATIONS
        self._english = analyzer.language == "english"

    def tokens_of(self, text: str) -> list[str]:
        if text.isascii():
            return self._looked_up(_ASCII.findall(text))
        unicode = _unicode()
        found: list[str] = []
        for lexeme in unicode.lexeme.findall(unicode.normalised(text)):
            if unicode.paired.match(lexeme):
                found += (term for term, _, _ in _pairs(lexeme))
            else:
                found += self._terms[lexeme]
        return found

    def spans_of(self, text: str) -> list[tuple[str, int, int]]:
        if text.isascii():
            matches = _ASCII.finditer(text)
            return [
                (term, match.start() + start, match.start() + end)
                for match in matches
                for term, start, end in self._spans[match[0]]
            ]
        unicode = _unicode()
        normalised, starts, ends = unicode.mapped(text)
        found = []
        for match in unicode.lexeme.finditer(normalised):
            lexeme, at = match[0], match.start()
            terms = _pairs(lexeme) if unicode.paired.match(lexeme) else self._spans[lexeme]
            found += [(term, starts[at + start], ends[at + end - 1]) for term, start, end in terms]
        return found

    def _resolve(self, lexeme: str) -> Iterator[tuple[str, int, int]]:
        if lexeme[0] in "'’":
            if self._english:  # what's, don't: the clitic says nothing.
                return
            lexeme, skipped = lexeme[1:], 1
        else:
            skipped = 0
        yield from self._split(lexeme, lexeme if lexeme.isascii() else _shape(lexeme), skipped, 0)

    def _split(self, text: str, shape: str, at: int, level: int) -> Iterator[tuple[str, int, int]]:
        """The whole of a compound, then its parts, then theirs; `shape` shows case and digits."""
        left = len(shape) - len(shape.lstrip("_"))
        text, shape, at = text.strip("_"), shape.strip("_"), at + left
        if not text:
            return
        for deeper in range(level, len(_SPLITTERS)):
            edges = [0]
            for match in _SPLITTERS[deeper].finditer(shape):
                edges += match.span()
            edges.append(len(shape))
            parts = [(s, e) for s, e in zip(edges[::2], edges[1::2], strict=True) if s < e]
            if parts != [(0, len(shape))]:
                yield from self._emit(text, shape, at)
                for start, end in parts:
                    yield from self._split(text[start:end], shape[start:end], at + start, deeper + 1)
                return
        yield from self._emit(text, shape, at)

    def _emit(self, text: str, shape: str, at: int) -> Iterator[tuple[str, int, int]]:
        # Folding İ leaves a dot above that no one types.
        folded = text.casefold().replace("i̇", "i")
        term = self._term(folded) if shape.isalpha() else folded
        if term:
            yield term, at, at + len(text)


_PLAIN = re.compile(r"(?u)\b\w\w+\b")


def _lexeme(word: str) -> str:
    """The pattern of one lexeme: a clitic, or words with their joints and signs."""
    unit = rf"{word}(?:\+\+(?![^\W\d])|(?<=\b[A-Za-z])#(?!\w))?"
    clitic = r"(?<=\w)['’](?i:s|t|d|m|ll|re|ve)\b"
    return rf"{clitic}|(?:(?<![\w.])\.)?{unit}(?:[-./@:&]{unit}){{0,{_JOINTS}}}+"


_ASCII = re.compile(_lexeme(rf"\w{{1,{_LONGEST}}}+"), re.ASCII)

_SPLITTERS = tuple(
    re.compile(pattern)
    for pattern in (
        # addresses and paths, then hyphenated and dotted names (a number keeps its points), then
        # camel case, then word and number: BX|204, 10|mm, v|2.3.1; not Q4, M8x40, 0x8007000E.
        r"[/@:&]+",
        r"[-_]+|(?<!\d)\.+|\.+(?!\d)|(?<=\w\w)\+\+$",
        r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})|(?<=\d)(?=[A-Z][a-z]{2})",
        r"(?:(?<=^[vV])|(?<=[A-Za-z]{2}))(?=\d[\d.]*$)|(?<=\d)(?=(?<!\w\W)[A-Za-z]{2,}$)",
    )
)


def _shape(text: str) -> str:
    """Capitals as A, other letters and marks as a, digits as 0, the rest as it is; equally long."""
    return "".join(
        "A" if c.isupper() else "0" if c.isdecimal() else "a" if c.isalnum() or not c.isascii() else c
        for c in text
    )


def _pairs(run: str) -> list[tuple[str, int, int]]:
    """Neighbouring characters as pairs (a lone one as it is); a Korean word counts whole, too."""
    pairs = [(a + b, i, i + 2) for i, (a, b) in enumerate(pairwise(run))]
    if len(run) == 1 or (len(run) > 2 and "가" <= run[0] <= "힣" and len(run) <= _LONGEST):
        pairs.insert(0, (run, 0, len(run)))
    return pairs


# Scripts without blanks between words: Thai, Lao, Myanmar, Khmer, Han (radicals, iteration marks,
# ideographs, compatibility forms), hiragana, katakana, bopomofo. Digits of these scripts are digits.
_BLANKLESS = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1000-\u103f\u1050-\u108f\u1780-\u17d3"
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua9e0-\ua9ef\uaa60-\uaa7f"
    "\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
_HANGUL = "\uac00-\ud7a3"
# Soft hyphen, joiners, zero-width and direction signs, variation selectors; the vowel signs of Arabic
# and Hebrew with the Arabic stretcher, which one text writes and another does not.
_INVISIBLE = (
    "\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f"
    "\ufeff\U000e0100-\U000e01ef\u0640\u064b-\u0652\u0670\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
)
# Letters that normalisation may join to the one before: Korean letters, half-width voicing signs.
_JOINING = "\u1160-\u11ff\u3131-\u318e\ud7b0-\ud7fb\uff9e\uff9f\uffa0-\uffdc"


@lru_cache(maxsize=1)
def _unicode() -> _Unicode:
    return _Unicode()


class _Unicode:
    """Patterns that need the table of combining marks; made at the first text that is not ASCII."""

    def __init__(self) -> None:
        marks = _marks()
        letter = rf"[^\W{_BLANKLESS}{_HANGUL}]"
        # `re` has no class for marks, and they are no \w: a run may go on after each group of marks.
        word = rf"{letter}{{1,{_LONGEST}}}+(?:[{marks}]++{letter}*+){{0,{_LONGEST}}}+"
        self.lexeme = re.compile(rf"[{_BLANKLESS}]++|[{_HANGUL}]++|{_lexeme(word)}")
        self.paired = re.compile(f"[{_BLANKLESS}{_HANGUL}]")
        self._invisible = re.compile(f"[{_INVISIBLE}]+")
        follows = f"[{marks}{_INVISIBLE}{_JOINING}]"
        self._cluster = re.compile(rf"(?s:(?:[\x00-\x7f](?!{follows}))++|.{follows}*+)")

    def normalised(self, text: str) -> str:
        """NFKC without invisible characters, every hyphen the plain one."""
        return unicodedata.normalize("NFKC", self._invisible.sub("", text)).replace("\u2010", "-")

    def mapped(self, text: str) -> tuple[str, range | list[int], range | list[int]]:
        """`normalised(text)` with the start and end in `text` of where each character comes from."""
        if unicodedata.is_normalized("NFKC", text) and not self._invisible.search(text):
            return text.replace("\u2010", "-"), range(len(text)), range(1, len(text) + 1)
        parts: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        for match in self._cluster.finditer(text):
            start, end = match.span()
            part = self.normalised(match[0])
            parts.append(part)
            if len(part) == end - start:
                starts += range(start, end)
                ends += range(start + 1, end + 1)
            else:
                starts += [start] * len(part)
                ends += [end] * len(part)
        return "".join(parts), starts, ends


def _marks() -> str:
    """All combining marks as ranges of a character class."""
    ranges: list[str] = []
    first = last = -2
    for code in (c for c in range(0x300, 0x1F000) if unicodedata.category(chr(c))[0] == "M"):
        if code != last + 1:
            if first >= 0:
                ranges.append(f"{chr(first)}-{chr(last)}")
            first = code
        last = code
    return "".join([*ranges, f"{chr(first)}-{chr(last)}"])
