"""What a person should look at before trusting a context: checks for the Context lab. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from core.text import Analyzer

_WORD = re.compile(r"\w+(?:[-_./'’]\w+|,\d+)*")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_PARTS = re.compile(r"[-_./'’,]")
_SHORT = 8  # words in a row that count as repeated from the chunk

# Imperatives to a model or a search engine that have no place in a description.
_ORDERS = re.compile(
    r"\b(?:"
    r"(?:ignore|disregard|forget)\W+(?:\w+\W+){0,3}?(?:previous|prior|above|earlier|instructions?|rules?|prompts?)"
    r"|(?:rank|place|list|put|show)\W+(?:this|it|me|us)\W+(?:\w+\W+){0,3}?(?:first|top|highest|number\W+one)"
    r"|(?:always|must)\W+(?:be\W+)?(?:rank(?:ed)?|return(?:ed)?|recommend(?:ed)?|answer(?:ed)?|cited?)"
    r"|you\W+(?:are\W+now|must|should\W+(?:now|always))"
    r"|(?:do\W+not|don['’]t|never)\W+(?:mention|reveal|tell|cite)"
    r"|system\W+prompt|new\W+instructions?"
    r"|(?:respond|reply|answer)\W+only\b"
    r")",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Flags:
    """Findings about one context; all empty and False: nothing to see.

    `new_terms` are index terms the context adds to the chunk (its purpose, no fault); `foreign` names and
    numbers in it that the document does not have; `repeated` the longest run of words it copies from the
    chunk; `orders` instructions to a model or a search engine that it took over from the chunk;
    `too_long`: the embedder does not see all of context and chunk.
    """

    new_terms: tuple[str, ...]
    foreign: tuple[str, ...]
    repeated: str
    orders: tuple[str, ...]
    too_long: bool

    @property
    def any(self) -> bool:
        """Whether a person should look."""
        return bool(self.foreign or self.repeated or self.orders or self.too_long)


def flags(
    context: str,
    chunk: str,
    document: str,
    analyzer: Analyzer,
    tokens: int | None = None,
    max_tokens: int | None = None,
) -> Flags:
    """The flags of a context. `tokens` counts context and chunk as they are embedded, `max_tokens` is the
    embedder's limit; without either, `too_long` is False. A blank context has none but that."""
    return Flags(
        new_terms(context, chunk, analyzer),
        foreign(context, document),
        repeated(context, chunk),
        orders(context, chunk),
        bool(tokens and max_tokens and tokens > max_tokens),
    )


def new_terms(context: str, chunk: str, analyzer: Analyzer) -> tuple[str, ...]:
    """Index terms of the context that the chunk lacks, in the order they come."""
    have = set(analyzer.tokens_of(chunk))
    return tuple(term for term in dict.fromkeys(analyzer.tokens_of(context)) if term not in have)


def foreign(context: str, document: str) -> tuple[str, ...]:
    """Names (words with a capital that do not open a sentence, or with a digit) and numbers of the context
    that the document does not have in any case or form of grouping."""
    words = {word.casefold() for word in _WORD.findall(document)}
    words |= {part for word in words for part in _PARTS.split(word)}
    numbers = {form for number in _NUMBER.findall(document) for form in _forms(number)}
    found = []
    for match in _WORD.finditer(context):
        word = match.group()
        if not _is_name(word, context, match.start()):
            continue
        if _NUMBER.fullmatch(word):
            known = bool(_forms(word) & numbers)
        else:
            plain = word.casefold()
            # A possessive or plural of a name that is there is no new name.
            known = (
                plain in words
                or plain.removesuffix("s").rstrip("'’") in words
                or all(part in words for part in _PARTS.split(plain) if part)
            )
        if not known:
            found.append(word)
    return tuple(dict.fromkeys(found))


def _is_name(word: str, text: str, at: int) -> bool:
    if any(sign.isdigit() for sign in word):
        return True
    if not word[0].isupper():
        return any(sign.isupper() for sign in word)
    before = text[:at].rstrip(" \t\"'“”‘’([«")
    opens = not before or before[-1] in ".!?:\n"
    return not opens or any(sign.isupper() for sign in word[1:])


def _forms(number: str) -> set[str]:
    """A number as it stands, without the signs that group its thousands, and with a point for a comma."""
    forms = {number, number.replace(",", ".")}
    for sign in ",.":
        if re.fullmatch(rf"\d{{1,3}}(?:\{sign}\d{{3}})+(?:[.,]\d+)?", number):
            forms.add(number.replace(sign, ""))
    return forms


def repeated(context: str, chunk: str, least: int = _SHORT) -> str:
    """The longest run of `least` or more words that the context takes from the chunk, as it stands in the
    context; blank without one."""
    spans = list(_WORD.finditer(context))
    mine = [match.group().casefold() for match in spans]
    runs = _runs(mine, [word.casefold() for word in _WORD.findall(chunk)])
    length, last = max(runs, default=(0, 0))
    if length < least:
        return ""
    return context[spans[last - length + 1].start() : spans[last].end()]


def _runs(mine: Sequence[str], theirs: Sequence[str]) -> list[tuple[int, int]]:
    """(length, last place in `mine`) of the longest common run ending at each place."""
    places: dict[str, list[int]] = {}
    for at, word in enumerate(theirs):
        places.setdefault(word, []).append(at)
    runs: list[tuple[int, int]] = []
    before: dict[int, int] = {}
    for last, word in enumerate(mine):
        now = {at: before.get(at - 1, 0) + 1 for at in places.get(word, ())}
        runs.append((max(now.values(), default=0), last))
        before = now
    return runs


def orders(context: str, chunk: str) -> tuple[str, ...]:
    """Instructions to a model or a search engine in the context, where the chunk holds some as well: the
    writer may have obeyed or copied them."""
    if not _ORDERS.search(chunk):
        return ()
    return tuple(dict.fromkeys(match.group() for match in _ORDERS.finditer(context)))
