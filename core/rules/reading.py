"""From what somebody wrote to rules: every fault found, each at its place, none half applied."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any, NamedTuple

import tomli_w

from core.access import even_name
from core.filters import Filter, FilterError
from core.rules.rule import ACTIONS, Rule, even, words_of

MAX_WEIGHT, MAX_RANK, MAX_RULES = 100.0, 1000, 1000
MAX_TEXT, MAX_NAME, MAX_LISTED = 500, 100, 1000  # characters, characters, entries
_MAX_TOML = 2_000_000  # characters

KEYS = ("name", "on", "query", "pattern", "groups", "from", "until", "items", "documents", *ACTIONS)


class Fault(NamedTuple):
    """What is wrong with a rule: `number` counts rules from 0; `key` is blank where it is the whole rule."""

    number: int
    key: str
    reason: str


class Problem(NamedTuple):
    """What is wrong with a text: the line from 1, the reason, and the rule (from 0) where it is one's."""

    line: int
    reason: str
    number: int | None = None


class _Wrong(Exception):
    """The reason why one value cannot be taken."""


def checked(tables: Sequence[Any]) -> tuple[tuple[Rule, ...], list[Fault]]:
    """The rules of tables with the keys of `KEYS`, and all faults; rules with faults are left out."""
    rules: list[Rule] = []
    faults: list[Fault] = []
    seen: dict[str, int] = {}
    if len(tables) > MAX_RULES:
        faults.append(Fault(MAX_RULES, "", f"{len(tables)} rules; at most {MAX_RULES} are taken"))
    for number, table in enumerate(tables[:MAX_RULES]):
        found: list[tuple[str, str]] = []
        rule = _rule(table, found)
        name = table.get("name") if isinstance(table, Mapping) else None
        if isinstance(name, str) and name.strip():
            earlier = seen.setdefault(even(name), number)
            if earlier != number:
                found.append(
                    ("name", f"rule {earlier + 1} is called {name!r} too; give each its own name")
                )
        faults += [Fault(number, key, reason) for key, reason in found]
        if rule and not found:
            rules.append(rule)
    return tuple(rules), faults


def written(rule: Rule) -> dict[str, Any]:
    """The table of a rule, without what it leaves at its default; `checked` reads it back."""
    table: dict[str, Any] = {"name": rule.name}
    if not rule.on:
        table["on"] = False
    asked = {
        "query": rule.query,
        "pattern": rule.pattern,
        "groups": list(rule.groups),
        "from": rule.first_day,
        "until": rule.last_day,
        "items": str(rule.items),
        "documents": list(rule.documents),
    }
    table |= {key: value for key, value in asked.items() if value}
    whole = rule.value == int(rule.value)
    value = int(rule.value) if whole else rule.value
    return table | {rule.action: True if rule.action in ("hide", "only") else value}


def toml_of(tables: Sequence[Mapping[str, Any]]) -> str:
    """Tables of rules as TOML, whatever they hold: a key a line, a blank line between rules."""
    return "\n".join(
        "[[rule]]\n"
        + "".join(f"{_key_toml(key)} = {_value_toml(value)}\n" for key, value in table.items())
        for table in tables
    )


def _value_toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value_toml, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_key_toml(key)} = {_value_toml(one)}' for key, one in value.items())}}}"
    return tomli_w.dumps({"a": value}).removeprefix("a = ").rstrip("\n")


def _key_toml(key: str) -> str:
    return tomli_w.dumps({key: 0}).removesuffix(" = 0\n")


def _rule(table: Any, found: list[tuple[str, str]]) -> Rule | None:
    """The rule, or None where it cannot be made; `found` is given (key, reason) for each fault."""
    if not isinstance(table, Mapping):
        found.append(("", f"{table!r} is no rule; write each under [[rule]]"))
        return None
    for key in table:
        if key not in KEYS:
            near = difflib.get_close_matches(str(key), KEYS, 1)
            meant = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(KEYS)}"
            found.append((str(key), f"{key!r} is nothing a rule has{meant}"))

    def read(key: str, take: Callable[[Any], Any], blank: Any) -> Any:
        if key not in table:
            return blank
        try:
            return take(table[key])
        except _Wrong as wrong:
            found.append((key, f"{key} {wrong}"))
            return blank

    if "name" not in table:
        found.append(("", 'no name; give one, such as name = "service season"'))
    rule = {
        "name": read("name", _name, ""),
        "on": read("on", _flag, True),
        "query": read("query", _query, ""),
        "pattern": read("pattern", _pattern, ""),
        "groups": read("groups", _groups, ()),
        "first_day": read("from", _day, None),
        "last_day": read("until", _day, None),
        "items": read("items", _filter, Filter()),
        "documents": read("documents", _texts, ()),
    }
    first, last = rule["first_day"], rule["last_day"]
    if first and last and first > last:
        found.append(("until", f"until {last} is before from {first}; the rule would never hold"))
    if "items" not in table and "documents" not in table:
        found.append(("", 'no items; say which by items = "field = value" or documents = ["name.pdf"]'))
    actions = [action for action in ACTIONS if action in table]
    if not actions:
        found.append(("", f"no action; give one of {', '.join(ACTIONS)}"))
        return None
    if len(actions) > 1:
        found.append(
            (actions[1], f"{' and '.join(actions)} in one rule; give one, and another rule the rest")
        )
    values = {action: read(action, _TAKES[action], 0.0) for action in actions}
    return None if found else Rule(action=actions[0], value=values[actions[0]], **rule)


def _text(value: Any, limit: int = MAX_TEXT) -> str:
    if not isinstance(value, str):
        raise _Wrong(f"is {_shown(value)}; give text in double quotes")
    if not value.strip():
        raise _Wrong("is blank; give text, or leave the line out")
    if len(value) > limit:
        raise _Wrong(f"has {len(value)} characters; at most {limit} are taken")
    return value


def _name(value: Any) -> str:
    text = " ".join(_text(value, MAX_NAME).split())
    if not text.isprintable():
        raise _Wrong(f"{text!r} holds signs that cannot be shown; leave them out")
    return text


def _query(value: Any) -> str:
    if not words_of(_text(value)):
        raise _Wrong(f"{value!r} holds no word; give the words that the query must hold")
    return " ".join(value.split())


def _pattern(value: Any) -> str:
    if not _text(value).replace("*", "").strip():
        raise _Wrong(f"{value!r} holds for every query; leave the line out to ask for nothing")
    return " ".join(value.split())


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise _Wrong(f'is {_shown(value)}; give a list, such as ["one", "two"]')
    if len(value) > MAX_LISTED:
        raise _Wrong(f"lists {len(value)}; at most {MAX_LISTED} are taken")
    return tuple(dict.fromkeys(_text(one).strip() for one in value))


def _groups(value: Any) -> tuple[str, ...]:
    """Names as a viewer's groups have them; "group:" before one, as access lists write it, is no part of it."""
    names = [even_name(one).removeprefix("group:").strip() for one in _texts(value)]
    if not all(names):
        raise _Wrong('names no group after "group:"; give its name')
    return tuple(dict.fromkeys(names))


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Wrong(f"is {_shown(value)}; give true or false")
    return value


def _day(value: Any) -> date:
    if isinstance(value, str):
        try:
            return date.fromisoformat(value.strip())
        except ValueError:
            raise _Wrong(f"is {value!r}; give a day, such as 2026-03-01") from None
    if not isinstance(value, date) or isinstance(value, datetime):
        raise _Wrong(f"is {_shown(value)}; give a day, such as 2026-03-01")
    return value


def _filter(value: Any) -> Filter:
    try:
        read = Filter.parse(_text(value, MAX_TEXT * 4))
    except FilterError as error:
        raise _Wrong(f"cannot be read: {error}") from None
    if not read:
        raise _Wrong(f"{value!r} holds no condition; write field = value")
    return read


def _weight(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MAX_WEIGHT:
        raise _Wrong(f"is {_shown(value)}; give a weight above 0, at most {MAX_WEIGHT:g}")
    return float(value)


def _rank(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_RANK:
        raise _Wrong(f"is {_shown(value)}; give a rank, 1 to {MAX_RANK}")
    return float(value)


def _true(value: Any) -> float:
    if value is not True:
        raise _Wrong(f"is {_shown(value)}; write true, or leave the line out")
    return 0.0


_TAKES = {"boost": _weight, "bury": _weight, "pin": _rank, "hide": _true, "only": _true}


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    shown = repr(value) if isinstance(value, str | int | float | list) else str(value)
    return shown if len(shown) <= 60 else f"{shown[:60]}…"


def read(text: str) -> tuple[tuple[Rule, ...], list[Problem]]:
    """The rules of a TOML text, and every problem in it in the order of the lines.

    What is no TOML, or no list of rules, ends the reading: it is the only problem then.
    """
    tables, problem = tables_of(text)
    if problem:
        return (), [problem]
    lines = _Lines(text)
    problems = [
        Problem(line, f"{key!r} stands outside a rule; write each rule under [[rule]]")
        for key, line in lines.top.items()
        if key != "rule"
    ]
    rules, faults = checked(tables)
    problems += [Problem(lines.of(one.number, one.key), one.reason, one.number) for one in faults]
    return rules, sorted(problems, key=lambda problem: problem.line)


def tables_of(text: str) -> tuple[list[Any], Problem | None]:
    """The tables of a text's rules, as they are written; none, and the reason, where it holds no list of them."""
    if len(text) > _MAX_TOML:
        return [], Problem(1, f"{len(text):,} characters; at most {_MAX_TOML:,} are taken")
    try:
        found = tomllib.loads(text).get("rule", [])
    except (ValueError, RecursionError) as error:  # not only TOMLDecodeError: a number of 5,000 digits
        return [], _syntax(error, text)
    if not isinstance(found, list):
        return [], Problem(_Lines(text).top["rule"], "rule is no list; write each rule under [[rule]]")
    return found, None


def _syntax(error: Exception, text: str) -> Problem:
    if isinstance(error, RecursionError):
        return Problem(1, "not TOML that can be read: lists within lists, too deep")
    place = re.search(r"\(at line (\d+), column (\d+)\)$", str(error))
    if quote := _unclosed(text, (int(place[1]), int(place[2])) if place else None):
        line, mark = quote
        return Problem(line, f"not TOML: the quote {mark} opened on line {line} is not closed")
    said = re.sub(r"\s*\(at .*\)$", "", str(error))
    line = int(place[1]) if place else text.rstrip("\n").count("\n") + 1
    where = f", at character {place[2]}" if place else ""
    return Problem(line, f"not TOML{where}: {said}")


_QUOTED = re.compile(
    r'"""(?:\\.|[^\\])*?"""'
    r"|'''.*?'''"
    r'|"(?!"")(?:\\.|[^"\\\n])*"'
    r"|'(?!'')[^'\n]*'"
    r"|#[^\n]*"
    r"|(?P<open>\"{3}|'{3}|[\"'])",
    re.DOTALL,
)


def _unclosed(text: str, place: tuple[int, int] | None) -> tuple[int, str] | None:
    """Line and mark of the first quote that nothing closes, where it stands ahead of the place (line and
    column from 1; None: the end) at which reading failed: tomllib names what it met then, not the quote."""
    text = text.replace("\r\n", "\n")
    for match in _QUOTED.finditer(text):
        if mark := match["open"]:
            at = match.start()
            line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
            return (line, mark) if place is None or (line, column) < place else None
    return None


class _Lines:
    """Where the headers and keys of a TOML text stand; tomllib keeps no places.

    The text is one that tomllib has read, so a few tokens (strings, comments, brackets) are enough to
    find where each header or `key = value` begins; tomllib reads the names in them.
    """

    def __init__(self, text: str) -> None:
        self.top: dict[str, int] = {}
        self._rules: list[tuple[int, dict[str, int]]] = []
        path: list[str] = []
        for line, statement in _statements(text):
            if statement.startswith("["):
                path = _path(tomllib.loads(statement))
                if statement.startswith("[[") and path == ["rule"]:
                    self._rules.append((line, {}))
                names = path
            else:
                key = _KEY.match(statement)
                names = path + _path(tomllib.loads(f"{key[0]} 0")) if key else path
            self.top.setdefault(names[0], line)
            if names[0] == "rule" and len(names) > 1 and self._rules:
                self._rules[-1][1].setdefault(names[1], line)

    def of(self, number: int, key: str) -> int:
        """The line of a rule's key, of the rule where the key is not there, of `rule` where it is in line."""
        if number >= len(self._rules):
            return self.top.get("rule", 1)
        line, keys = self._rules[number]
        return keys.get(key, line)


_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*|\n|[\[\]{}]|[ \t]+|[^\s\"'#\[\]{}]+",
    re.DOTALL,
)
_KEY = re.compile(r"""(?:"(?:\\.|[^"\\])*"|'[^']*'|[^="'])*=""")


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """(line from 1, text) of each header and each key with its value."""
    depth, line, began, start = 0, 1, 1, -1
    text = text.replace("\r\n", "\n") + "\n"
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token == "\n" and not depth and start >= 0:
            yield began, text[start : match.start()]
            start = -1
        elif start < 0 and token[0] not in "# \t\n":
            began, start = line, match.start()
        depth += (token in ("[", "{")) - (token in ("]", "}"))
        line += token.count("\n")


def _path(values: Mapping[str, Any]) -> list[str]:
    """The names that lead into nested tables of one entry each."""
    names = []
    while isinstance(values, dict) and values:
        name, inner = next(iter(values.items()))
        names.append(name)
        values = inner[0] if isinstance(inner, list) and inner else inner
    return names
