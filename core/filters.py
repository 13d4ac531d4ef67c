"""Conditions on the fields of items, as one line of text: `year >= 2020; author = Ann, Ben; tags exists`.

Conditions stand between semicolons, and all of them must hold:

| condition | holds for an item |
| --- | --- |
| `field = a, b` | whose value is one of these; of a list, whose values include one of them |
| `field != a, b` | for which the line above does not hold, those without the field included |
| `field >= v`, `>`, `<=`, `<` | whose number or date compares so; a date may be a year or a month |
| `field ~ a, b` | whose value contains one of these texts |
| `field exists`, `field missing` | that has the field, that does not have it |

Capitals do not matter. A name or value that holds one of `; , = ! < > ~ "`, or ends in "exists" or
"missing", stands between double quotes, a double quote inside them twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

from core.errors import SettingsError

COMPARING = (">=", ">", "<=", "<")
MATCHING = ("=", "!=", "~")
ASKING = ("exists", "missing")

_TOKEN = re.compile(r'\s*(?:("(?:[^"]|"")*"?)|(!=|>=|<=|[=<>~])|([;,!])|([^;,=!<>~"]+))')
_SPECIAL = re.compile(r'[;,=!<>~"]')
_FORMS = "write field = value, field >= value, field ~ words, or field exists"


class FilterError(SettingsError):
    """A filter that cannot be read, or that the fields there are cannot answer."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition: `values` are alternatives; one for a comparison, none for exists and missing.

    Raises FilterError when field, operator and values do not go together.
    """

    field: str
    operator: str
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(dict.fromkeys(self.values)))
        if not self.field.strip():
            raise FilterError(f"a condition without the name of a field; {_FORMS}")
        if self.operator not in (*COMPARING, *MATCHING, *ASKING):
            raise FilterError(f"{self.operator!r} compares nothing; {_FORMS}")
        if self.operator in ASKING:
            if self.values:
                raise FilterError(f"{self.field} {self.operator} takes no value; leave it out")
        elif not self.values or not all(value.strip() for value in self.values):
            raise FilterError(
                f"a value is missing after {self.field} {self.operator}; give one, or write "
                f"{_quoted(self.field)} missing for items without the field"
            )
        elif self.operator in COMPARING and len(self.values) > 1:
            raise FilterError(
                f"{self.field} {self.operator} is given {len(self.values)} values; give one, in double "
                "quotes where it holds a comma"
            )

    def __str__(self) -> str:
        values = ", ".join(map(_quoted, self.values))
        return f"{_quoted(self.field)} {self.operator} {values}".rstrip()


@dataclass(frozen=True, slots=True)
class Filter:
    """All conditions must hold; without any, every item passes. `str` is what `parse` reads back."""

    conditions: tuple[Condition, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "conditions", tuple(dict.fromkeys(self.conditions)))

    @classmethod
    def parse(cls, text: str) -> Self:
        """The filter written as above. Raises FilterError with the place and the reason."""
        found = []
        listed: list[_Token] = []
        for token in (*_tokens(text), _Token(";", "sign", len(text))):
            if (token.text, token.kind) != (";", "sign"):
                listed.append(token)
            elif listed:
                parts = _parts(listed, token.place)
                try:
                    found.append(Condition(*parts))
                except FilterError as error:
                    raise _error(listed[0].place, str(error)) from None
                listed = []
        return cls(tuple(found))

    def __str__(self) -> str:
        return "; ".join(map(str, self.conditions))

    def __bool__(self) -> bool:
        return bool(self.conditions)


class _Token(NamedTuple):
    text: str
    kind: str  # "quoted", "operator", "sign" or "words"
    place: int


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        kind = ("quoted", "operator", "sign", "words")[(match.lastindex or 1) - 1]
        part, place = match[match.lastindex or 0], match.start(match.lastindex or 0)
        if kind == "quoted":
            if len(part) < 2 or not part.endswith('"') or part[1:-1].count('"') % 2:
                raise _error(place, "a double quote is not closed; close it, or leave it out")
            part = part[1:-1].replace('""', '"')
        elif kind == "words":
            part = " ".join(part.split())
            if not part:
                continue
        yield _Token(part, kind, place)


def _parts(tokens: list[_Token], end: int) -> tuple[str, str, tuple[str, ...]]:
    """Field, operator and values of one condition that ends at the place `end`."""
    name, *rest = tokens
    if name.kind not in ("quoted", "words"):
        raise _error(name.place, f"{name.text} where the name of a field should be; {_FORMS}")
    if not rest:
        field, _, asked = name.text.rpartition(" ")
        if name.kind == "words" and field and asked.lower() in ASKING:
            return field, asked.lower(), ()
        raise _error(end, f"{name.text} is followed by nothing; {_FORMS}")
    operator, *values = rest
    if operator.kind == "words" and name.kind == "quoted" and operator.text.lower() in ASKING:
        if values:
            raise _error(values[0].place, f"{operator.text} takes no value; leave it out")
        return name.text, operator.text.lower(), ()
    if operator.kind != "operator":
        raise _error(operator.place, f"{operator.text} where =, !=, >=, >, <=, < or ~ should be")
    for at, token in enumerate(values):
        if at % 2 and (token.text, token.kind) != (",", "sign"):
            raise _error(
                token.place, f"{token.text} after a value; put what belongs to it in double quotes"
            )
        if at % 2 == 0 and token.kind not in ("quoted", "words"):
            raise _error(token.place, f"{token.text} where a value should be; put it in double quotes")
    if len(values) % 2 == 0:
        raise _error(end, f"a value is missing after {values[-1].text if values else operator.text}")
    return name.text, operator.text, tuple(token.text for token in values[::2])


def _error(place: int, reason: str) -> FilterError:
    return FilterError(f"filter, character {place + 1}: {reason}")


def _quoted(text: str) -> str:
    """As it stands in a filter: quoted where it would be read as something else."""
    last = text.rpartition(" ")[2].lower()
    plain = text == " ".join(text.split()) and not _SPECIAL.search(text) and last not in ASKING
    return text if plain else '"' + text.replace('"', '""') + '"'
