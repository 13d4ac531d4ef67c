"""The fields of items as typed columns: what filters, facets and signals of items read.

A field's kind is what a person says, or else what all its values are (`kind_of`).
"""

from __future__ import annotations

import difflib
import math
import os
import re
from calendar import monthrange
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from core.filters import ASKING, COMPARING, Condition, Filter, FilterError
from core.types import Metadata

Made = TypeVar("Made")
Value = str | float | bool | tuple[str, ...]

KINDS = ("text", "number", "date", "list", "yes/no")
"""What a field may hold. Facets list the values of all of them; only numbers and dates compare."""

_EPOCH = date(1970, 1, 1)
_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
_MONTH = {name[:cut]: at for at, name in enumerate(_MONTHS, 1) for cut in (3, len(name))} | {"sept": 9}
_TIME = r"(?:(?:T| +)\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)? ?(?:Z|UTC|GMT|[+-]\d\d:?(?:\d\d)?)?)?"
_YEAR_FIRST = re.compile(
    rf"(\d{{4}})(?:-(\d{{1,2}})(?:-(\d{{1,2}}){_TIME})?|/(\d{{1,2}})/(\d{{1,2}}){_TIME})", re.ASCII
)
_DAY_FIRST = re.compile(rf"(\d{{1,2}})\.(\d{{1,2}})\.(\d{{4}}){_TIME}", re.ASCII)
_NAMED = re.compile(
    rf"(?:[A-Za-z]{{3,9}}, ?)?(\d{{1,2}})(?:st|nd|rd|th)?[ -]([A-Za-z]{{3,9}})\.?,?[ -](\d{{4}}){_TIME}",
    re.ASCII,
)
_NAME_FIRST = re.compile(r"([A-Za-z]{3,9})\.? (\d{1,2})(?:st|nd|rd|th)?, (\d{4})", re.ASCII)
_PDF = re.compile(r"D:(\d{4})(\d\d)?(\d\d)?[\d'Z+-]*", re.ASCII)
_YEAR_MONTH = re.compile(r"\d{4}-\d{1,2}", re.ASCII)
_YEAR = re.compile(r"\d{4}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_TRUE, _FALSE = ("yes", "true", "1"), ("no", "false", "0")


def parse_date(text: str) -> date | None:
    """The day that a text names, the first one of a month; None where it names none for certain.

    Read are 2024-03-05, 2024-03, ISO dates with a time (the day is the one written, whatever the time
    zone), 2024/03/05, 5.3.2024, "5 March 2024", "March 5, 2024" and "D:20240305…" of PDF. What could be
    two days, such as 01/02/2024, is never guessed.
    """
    text = text.strip()
    if len(text) > 64:
        return None
    if found := _YEAR_FIRST.fullmatch(text):
        year, month, day = found[1], found[2] or found[4], found[3] or found[5] or "1"
    elif found := _DAY_FIRST.fullmatch(text):
        day, month, year = found.groups()
    elif found := _NAMED.fullmatch(text):
        day, month, year = found[1], _month(found[2]), found[3]
    elif found := _NAME_FIRST.fullmatch(text):
        month, day, year = _month(found[1]), found[2], found[3]
    elif found := _PDF.fullmatch(text):
        year, month, day = found[1], found[2] or "1", found[3] or "1"
    else:
        return None
    return _day(year, month, day)


def kind_of(values: Iterable[Value]) -> str:
    """The kind of a field that holds these values: the narrowest that all of them are of.

    Blank values say nothing. Texts beside lists are lists of one.
    """
    filled = [value for value in values if _is_filled(value)]
    if not filled:
        return "text"
    if all(isinstance(value, bool) for value in filled):
        return "yes/no"
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in filled):
        return "number"
    if any(isinstance(value, tuple) for value in filled):
        return "list" if all(isinstance(value, str | tuple) for value in filled) else "text"
    if all(isinstance(value, str) and parse_date(value) for value in filled):
        return "date"
    return "text"


class ItemFields:
    """Typed columns over the metadata of n items, made when they are first asked for.

    `kinds` says the kinds that a person has set, `names` the items' file names, `added` when each was
    added (ISO, blank where that is not known). Beside the fields of the metadata there are "file",
    "type" (the file name's ending) and "added", unless the metadata has fields of that name. Methods
    that take the name of a field raise FilterError where there is none of that name, naming those that
    there are; another use of capitals will do where it means one field only.
    """

    def __init__(
        self,
        metadata: Sequence[Metadata],
        kinds: Mapping[str, str],
        names: Sequence[str],
        added: Sequence[str],
    ) -> None:
        self._metadata, self._kinds, self._files, self._added = metadata, kinds, names, added
        self._columns: dict[str, dict[int, Value]] | None = None
        self._made: dict[tuple[str, str], object] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Fields that at least one item has: those of the metadata by alphabet, then the built-in ones."""
        return tuple(self._filled())

    def kind(self, name: str) -> str:
        """One of KINDS."""
        name = self._named(name)
        return self._once("kind", name, lambda: self._kind(name))

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Values as numbers, shape (n,); NaN where an item has none, or one that is no number."""
        name = self._named(name)
        return self._once("numbers", name, lambda: self._column(name, _as_number))

    def dates(self, name: str) -> NDArray[np.float64]:
        """Values as days since 1970-01-01, shape (n,); NaN where an item has none, or one that is no date."""
        name = self._named(name)
        return self._once("dates", name, lambda: self._column(name, _as_days))

    def texts(self, name: str) -> tuple[tuple[str, ...], ...]:
        """Values of each item as texts, several for a list, none where the item has none.

        A value that is not of the field's kind stands as it was written.
        """
        name = self._named(name)
        return self._once("texts", name, lambda: self._texts(name))

    def facets(self, name: str, limit: int = 20) -> list[tuple[str, int]]:
        """The commonest values and how many items have each, falling; equal counts by alphabet.

        Values that differ in capitals only are one, in their commonest spelling, as for a filter.
        """
        found = sorted(
            ((self._spelling(name)[key], len(at)) for key, at in self._holders(name).items()),
            key=lambda pair: (-pair[1], pair[0]),
        )
        return found[:limit]

    def range(self, name: str) -> tuple[float, float] | None:
        """The least and the greatest number or day (since 1970-01-01); None for other kinds."""
        if self.kind(name) not in ("number", "date"):
            return None
        values = self._comparable(name)
        return None if np.isnan(values).all() else (float(np.nanmin(values)), float(np.nanmax(values)))

    def misfits(self, name: str) -> list[tuple[int, str]]:
        """(item, value) where a value is not of the field's kind: no filter by that kind finds it."""
        name, kind = self._named(name), self.kind(name)
        fits = _FITS[kind]
        return [
            (at, _written(value)) for at, value in self._filled()[name].items() if fits(value) is None
        ]

    def mask(self, condition: Filter) -> NDArray[np.bool_]:
        """Which items pass, shape (n,). Raises FilterError for a value that the field's kind has not."""
        passed = np.ones(len(self._files), bool)
        for one in condition.conditions:
            passed &= self._holds(one)
        return passed

    def _holds(self, condition: Condition) -> NDArray[np.bool_]:
        name, operator = self._named(condition.field), condition.operator
        found = np.zeros(len(self._files), bool)
        if operator in ASKING:
            found[list(self._filled()[name])] = True
            return found if operator == "exists" else ~found
        if operator == "~":
            wanted = [_even(value) for value in condition.values]
            for key, at in self._holders(name).items():
                if any(words in key for words in wanted):
                    found[at] = True
            return found
        kind = self.kind(name)
        if operator in COMPARING:
            if kind not in ("number", "date"):
                raise FilterError(
                    f"{name} holds {_PLURAL[kind]}, which {operator} cannot compare; use =, != or ~, or "
                    "say that the field holds numbers or dates"
                )
            return _compared(self._comparable(name), operator, *_span(name, kind, condition.values[0]))
        for value in condition.values:
            if kind in ("number", "date"):
                low, high = _span(name, kind, value)
                values = self._comparable(name)
                found |= (values >= low) & (values <= high)
            else:
                found[self._holders(name).get(_key(name, kind, value), [])] = True
        return ~found if operator == "!=" else found

    def _comparable(self, name: str) -> NDArray[np.float64]:
        return self.numbers(name) if self.kind(name) == "number" else self.dates(name)

    def _kind(self, name: str) -> str:
        if (known := self._kinds.get(name)) in KINDS:
            return str(known)
        return kind_of(self._filled()[name].values())

    def _column(self, name: str, read: Callable[[Value], float | None]) -> NDArray[np.float64]:
        column = np.full(len(self._files), np.nan)
        for at, value in self._filled()[name].items():
            number = read(value)
            if number is not None:
                column[at] = number
        column.setflags(write=False)
        return column

    def _texts(self, name: str) -> tuple[tuple[str, ...], ...]:
        kind = self.kind(name)
        # "Smith, John" beside lists of authors is one; where a person says that texts are lists, they are.
        cut = kind == "list" and self._kinds.get(name) == kind
        texts: list[tuple[str, ...]] = [()] * len(self._files)
        for at, value in self._filled()[name].items():
            texts[at] = listed(value) if cut and isinstance(value, str) else _shown(kind, value)
        return tuple(texts)

    def _holders(self, name: str) -> dict[str, NDArray[np.int64]]:
        """Value without its capitals → the items that have it, ascending."""
        name = self._named(name)

        def made() -> dict[str, NDArray[np.int64]]:
            held: dict[str, list[int]] = defaultdict(list)
            for at, texts in enumerate(self.texts(name)):
                for key in dict.fromkeys(map(_even, texts)):
                    held[key].append(at)
            return {key: np.array(at, np.int64) for key, at in held.items()}

        return self._once("holders", name, made)

    def _spelling(self, name: str) -> dict[str, str]:
        """Value without its capitals → its commonest spelling, of equally common ones the first."""
        name = self._named(name)

        def made() -> dict[str, str]:
            counts: dict[str, Counter[str]] = defaultdict(Counter)
            for texts in self.texts(name):
                for text in texts:
                    counts[_even(text)][text] += 1
            return {key: counted.most_common(1)[0][0] for key, counted in counts.items()}

        return self._once("spelling", name, made)

    def _filled(self) -> dict[str, dict[int, Value]]:
        """Field → item → value, where there is one."""
        if self._columns is None:
            columns: dict[str, dict[int, Value]] = {}
            for at, metadata in enumerate(self._metadata):
                for name, value in metadata.items():
                    if _is_filled(value):
                        columns.setdefault(name, {})[at] = value
            ordered = {name: columns[name] for name in sorted(columns, key=lambda n: (n.casefold(), n))}
            built_in: tuple[tuple[str, Iterator[str]], ...] = (
                ("file", iter(self._files)),
                ("type", (os.path.splitext(name)[1][1:].lower() for name in self._files)),
                ("added", (time[:10] for time in self._added)),
            )
            for name, values in built_in:
                column: dict[int, Value] = {
                    at: value for at, value in enumerate(values) if value.strip()
                }
                if column:
                    ordered.setdefault(name, column)
            self._columns = ordered
        return self._columns

    def _named(self, name: str) -> str:
        known = self._filled()
        if name in known:
            return name
        alike = [one for one in known if _even(one) == _even(name)]
        if len(alike) == 1:
            return alike[0]
        if not known:
            raise FilterError(f"no field {name!r}: no item has any field")
        near = alike or difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        listed = list(dict.fromkeys([*near, *known]))
        more = f" and {len(listed) - 20} more" if len(listed) > 20 else ""
        raise FilterError(f"no item has a field {name!r}; fields are {', '.join(listed[:20])}{more}")

    def _once(self, what: str, name: str, make: Callable[[], Made]) -> Made:
        if (what, name) not in self._made:
            self._made[what, name] = make()
        return cast(Made, self._made[what, name])


def _is_filled(value: Value) -> bool:
    if isinstance(value, str):
        return bool(value.strip())
    return value != () and value == value  # NaN is no value


def _written(value: Value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(value)
    if isinstance(value, str):
        return value
    try:
        return f"{value:.15g}"
    except OverflowError:
        return f"{Decimal(value):.15g}"


def _shown(kind: str, value: Value) -> tuple[str, ...]:
    """A value as the texts that facets show and filters look for."""
    if kind == "list" and isinstance(value, tuple):
        return tuple(part for part in value if part.strip())
    if kind == "date" and (days := _as_days(value)) is not None:
        return ((_EPOCH + timedelta(days)).isoformat(),)
    if kind == "yes/no" and (truth := _as_truth(value)) is not None:
        return ("yes" if truth else "no",)
    return (_written(value),)


def listed(text: str) -> tuple[str, ...]:
    """The parts of a list that is written in one line, between semicolons or, without any, commas."""
    parts = text.split(";" if ";" in text else ",")
    return tuple(part.strip() for part in parts if part.strip())


def _even(text: str) -> str:
    return " ".join(text.casefold().split())


def _as_number(value: Value) -> float | None:
    if isinstance(value, bool | tuple):
        return None
    if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
        return None
    try:
        number = float(value)
    except OverflowError:  # a whole number of 400 digits
        return None
    return number if math.isfinite(number) else None


def _as_days(value: Value) -> float | None:
    """Days since 1970-01-01 of a date; a bare year, where a date should be, is its first day."""
    if isinstance(value, bool | tuple):
        return None
    text = _written(value).strip()
    day = _day(text, "1", "1") if _YEAR.fullmatch(text) else parse_date(text)
    return None if day is None else float((day - _EPOCH).days)


def _as_truth(value: Value) -> bool | None:
    word = _even(_written(value))
    return True if word in _TRUE else False if word in _FALSE else None


_FITS: Mapping[str, Callable[[Value], object]] = {
    "text": _written,
    "list": _written,
    "number": _as_number,
    "date": _as_days,
    "yes/no": _as_truth,
}
_PLURAL = {"text": "texts", "list": "lists", "yes/no": "yes or no", "number": "numbers", "date": "dates"}


def _span(name: str, kind: str, value: str) -> tuple[float, float]:
    """The first and last number or day that a value of a filter means: a year is all its days."""
    low = _FITS[kind](value)
    if not isinstance(low, float):
        forms = "such as 12.5" if kind == "number" else "such as 2024-03-05, 2024-03 or 2024"
        raise FilterError(f"{name} holds {_PLURAL[kind]}, and {value!r} is none; write one {forms}")
    if kind == "number":
        return low, low
    first = _EPOCH + timedelta(low)
    if _YEAR.fullmatch(value.strip()):
        return low, float((date(first.year, 12, 31) - _EPOCH).days)
    if _YEAR_MONTH.fullmatch(value.strip()):
        return low, low + monthrange(first.year, first.month)[1] - 1
    return low, low


def _compared(values: NDArray[np.float64], operator: str, low: float, high: float) -> NDArray[np.bool_]:
    if operator == ">=":
        return values >= low
    if operator == ">":
        return values > high
    return values <= high if operator == "<=" else values < low


def _key(name: str, kind: str, value: str) -> str:
    if kind != "yes/no":
        return _even(value)
    truth = _as_truth(value)
    if truth is None:
        raise FilterError(f"{name} holds yes or no, and {value!r} is neither; write one of them")
    return "yes" if truth else "no"


def _month(word: str) -> str:
    return str(_MONTH.get(word.lower(), ""))


def _day(year: str, month: str, day: str) -> date | None:
    try:
        return date(int(year), int(month), int(day))
    except ValueError:
        return None
