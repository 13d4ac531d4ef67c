"""Where a text may be cut: between signs as readers see them, and between sentences."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_JOINER = "\u200d"
# What belongs to the sign before it though its category is no mark: joiners, skin tones, tags,
# half-width voice marks, and the Thai and Lao vowels that are written after their consonant.
_FOLLOWS = frozenset(
    [_JOINER, "\u200c", "\uff9e", "\uff9f", *"\u0e30\u0e32\u0e33\u0e45\u0eb0\u0eb2\u0eb3"]
    + [chr(c) for c in range(0x1F3FB, 0x1F400)]
    + [chr(c) for c in range(0xE0020, 0xE0080)]
)
# What belongs to the sign after it: Thai and Lao vowels written first, Arabic number marks.
_LEADS = frozenset(
    "\u0e40\u0e41\u0e42\u0e43\u0e44\u0ec0\u0ec1\u0ec2\u0ec3\u0ec4\u0600\u0601\u0602\u0603\u0604\u0605\u06dd"
)
_FLAG_LETTERS = "".join(chr(c) for c in range(0x1F1E6, 0x1F200))
_VIRAMA = 9  # canonical combining class of the signs that bind the next consonant to this one
_FLAG_RUN = 4096  # even; a longer run of flags is judged from its last ones

_ABBREVIATIONS = frozenset(
    re.split(
        " ",
        "dr mr mrs ms prof st no nos fig figs eq sec vol pp art approx ca cf vs inc ltd co corp dept "
        "rev e.g i.e u.s u.k bzw z.b d.h nr abb vgl evtl ggf",
    )
)
_LONGEST_WORD = 64
_BLANK = re.compile(r"\s")
_BLANKS = re.compile(r"\s*")
_STOP = re.compile(
    r"[.!?…؟۔।॥]+[\"'”’»)\]]*(?=\s)"  # a stop and what closes, before a blank
    r"|[。！？｡]+[\"'”’」』）】]*"  # East Asian stops need no blank
    r"|\n[^\S\n]*\n"  # an empty line
    r"|\n(?=[^\S\n]*(?:[-*+•#|>]|\d{1,3}[.)]|```|~~~))"  # the next line opens an item, a row, a heading
)


def joined(text: str, at: int) -> bool:
    """Whether a cut before character `at` would part one sign (an emoji sequence, a letter and marks).

    Grapheme clusters after Unicode Standard Annex 29, and Thai and Lao vowels kept with their
    consonant. What follows a blank is never joined to it.
    """
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if after < "\u0300":
        return before == "\r" and after == "\n"
    if before.isspace() or after.isspace():
        return False
    if (
        after in _FOLLOWS
        or before == _JOINER
        or before in _LEADS
        or unicodedata.category(after)[0] == "M"
    ):
        return True
    if after in _FLAG_LETTERS and before in _FLAG_LETTERS:
        tail = text[max(0, at - _FLAG_RUN) : at]
        return (len(tail) - len(tail.rstrip(_FLAG_LETTERS))) % 2 == 1
    if unicodedata.combining(before) == _VIRAMA:
        return after.isalpha()
    kinds = _hangul(before) + _hangul(after)
    return kinds in ("LL", "LV", "LS", "VV", "VT", "TT", "SV", "ST")


def _hangul(sign: str) -> str:
    """L, V, T for conjoining Korean letters, S for a syllable, "-" for the rest."""
    if "\u1100" <= sign <= "\u115f" or "\ua960" <= sign <= "\ua97c":
        return "L"
    if "\u1160" <= sign <= "\u11a7" or "\ud7b0" <= sign <= "\ud7c6":
        return "V"
    if "\u11a8" <= sign <= "\u11ff" or "\ud7cb" <= sign <= "\ud7fb":
        return "T"
    return "S" if "\uac00" <= sign <= "\ud7a3" else "-"


def cut_back(text: str, at: int, floor: int) -> int:
    """The last place in (floor, at] where a cut parts no sign; `at` when one sign fills it all."""
    place = at
    while place > floor and joined(text, place):
        place -= 1
    return place if place > floor else at


def cut_forward(text: str, at: int, ceiling: int) -> int:
    """The first place in [at, ceiling] where a cut parts no sign (`ceiling` when there is none)."""
    while at < ceiling and joined(text, at):
        at += 1
    return at


def word_back(text: str, at: int, floor: int) -> int:
    """The blank before the word or identifier that a cut at `at` would part; `at` when there is none.

    Latin letters, digits and signs only: other scripts are written without blanks between words.
    """
    if not 0 < at < len(text) or max(text[at - 1], text[at]) >= "\u0250":
        return at
    if text[at - 1].isspace() or text[at].isspace():
        return at
    begin = max(floor, at - _LONGEST_WORD)
    place = max((match.end() for match in _BLANK.finditer(text, begin, at)), default=begin)
    return place if place > begin else at


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """The span without blanks at its ends; empty when it is all blank."""
    piece = text[start:end]
    return end - len(piece.lstrip()), max(start + len(piece.rstrip()), end - len(piece.lstrip()))


def skip_blanks(text: str, start: int, end: int) -> int:
    """The first place in [start, end] that is no blank."""
    match = _BLANKS.match(text, start, end)
    return match.end() if match else start


def is_blank(text: str, start: int, end: int) -> bool:
    piece = text[start:end]
    return not piece or piece.isspace()


def sentences(text: str, start: int, end: int, bounds: Iterable[int] = ()) -> list[tuple[int, int]]:
    """Spans of the sentences of text[start:end], without blanks around them; they cover all but blanks.

    A sentence ends at a stop, an empty line, before a list item or table row, and at each of `bounds`.
    Stops after an initial or a common abbreviation, or before a small letter, end nothing.
    """
    cuts = {start, end, *(b for b in bounds if start < b < end)}
    cuts.update(m.end() for m in _STOP.finditer(text, start, end) if _ends_sentence(text, m, start))
    spans: list[tuple[int, int]] = []
    places = sorted(cuts)
    last = places[0]
    for place in places[1:]:
        if place != end and joined(text, place):
            continue
        span = trim(text, last, place)
        if span[0] < span[1]:
            spans.append(span)
        last = place
    return spans


def _ends_sentence(text: str, stop: re.Match[str], start: int) -> bool:
    if stop.group() != ".":
        return True
    before = text[max(start, stop.start() - 12) : stop.start()].split()
    word = before[-1].lstrip("([\"'“") if before else ""
    if word.lower() in _ABBREVIATIONS or (len(word) == 1 and word.isupper()):
        return False
    return not text[stop.end() : stop.end() + 3].lstrip()[:1].islower()
