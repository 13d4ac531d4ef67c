"""One rule: when it holds for a query, and which items it is about."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.access import Viewer
from core.filters import Filter, FilterError
from core.protocols import Fields
from core.text import Analyzer

Action = Literal["boost", "bury", "pin", "hide", "only"]
ACTIONS: tuple[Action, ...] = ("boost", "bury", "pin", "hide", "only")

_WORDS = Analyzer(language="none", stem=False, stop_words=False)


@dataclass(frozen=True)
class Rule:
    """When all that is asked of query, viewer and day holds, `action` is done to the items it is about.

    `value` is the weight of a boost or bury, the rank of a pin (from 1), and nothing to the others.
    `reading.checked` is what makes rules of what somebody wrote, and knows the limits.
    """

    name: str
    action: Action
    value: float = 0.0
    on: bool = True
    query: str = ""
    pattern: str = ""
    groups: tuple[str, ...] = ()
    first_day: date | None = None
    last_day: date | None = None
    items: Filter = field(default_factory=Filter)
    documents: tuple[str, ...] = ()

    def rests(self, query: str, viewer: Viewer | None, today: date) -> str:
        """Why the rule does not hold; blank where it does. Who may see all is in no group."""
        if not self.on:
            return "it is off"
        if (self.first_day and today < self.first_day) or (self.last_day and self.last_day < today):
            return "it is another day"
        if self.groups and (viewer is None or viewer.groups.isdisjoint(self.groups)):
            return "it is for others"
        if self.query and not words_of(self.query) <= words_of(query):
            return "the query lacks its words"
        if self.pattern and not matches(self.pattern, query):
            return "the query is not of its pattern"
        return ""

    def about(
        self, fields: Fields, ids: Sequence[str], named: Callable[[], Mapping[str, Sequence[int]]]
    ) -> tuple[NDArray[np.int64] | None, str]:
        """Positions of the items that the rule is about (None where the fields cannot tell), and a note.

        Documents stand in the order written, others in corpus order. `named` gives the positions by id
        and by file name, whose capitals do not matter. The note is for those who manage rules: that
        something is not here tells others that it is somewhere.
        """
        try:
            passing = fields.mask(self.items) if self.items else np.ones(len(ids), dtype=bool)
        except FilterError:
            does = "keeps nothing" if self.action == "only" else "does nothing"
            return None, f"rule {self.name} {does}: the items here cannot answer its conditions"
        found, lost = np.flatnonzero(passing), 0
        if self.documents:
            at = named()
            lost = sum(even(name) not in at for name in self.documents)
            listed = dict.fromkeys(item for name in self.documents for item in at.get(even(name), ()))
            found = np.array([item for item in listed if passing[item]], dtype=np.int64)
        if lost:
            return found, f"rule {self.name}: {lost} of its {len(self.documents)} documents not here"
        return found, "" if len(found) else f"rule {self.name} holds, and is about no item here"


def matches(pattern: str, query: str) -> bool:
    """Whether the whole query is the pattern, where each * stands for any text, none included.

    Capitals and runs of blanks do not matter. The parts between stars are looked for from left to right
    and never anew, so the time is at most the query's length times the pattern's, whatever they hold.
    """
    first, *others = even(pattern).split("*")
    text = even(query)
    if not others:
        return text == first
    *between, last = others
    if len(text) < len(first) + len(last) or not (text.startswith(first) and text.endswith(last)):
        return False
    at, end = len(first), len(text) - len(last)
    for part in between:
        at = text.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


def even(text: str) -> str:
    """Of one width, without capitals, with single blanks and none around."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


@lru_cache(maxsize=2048)
def words_of(text: str) -> frozenset[str]:
    """The terms of a text, unstemmed: what a rule's `query` and a query are compared by."""
    return frozenset(_WORDS.tokens_of(text))
