"""Markdown: the text as it is written, with its headings, tables and front matter as structure."""

from __future__ import annotations

import re

from core.fields import listed
from core.loading.clean import clean, one_line
from core.loading.draft import Parsed, Reading, Value
from core.loading.properties import LISTS, NAMES
from core.loading.text import decode, dropped
from core.types import Heading, Table

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?$")
_SETEXT = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_NOT_A_PARAGRAPH = re.compile(r"\s*$| {4}|\t| {0,3}(?:[-*+>|]|\d+[.)])(?:\s|$)")
_RULE_CELL = re.compile(r":?-+:?")
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|$)", re.DOTALL)
_FIELD = re.compile(r"([A-Za-z_][\w .-]*?):(?:[ \t]+(.*))?$")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_MARKUP = re.compile(r"(\*\*|__|~~|`+)(?=\S)(.+?)(?<=\S)\1")
_EMPHASIS = re.compile(r"(?<![\w*])\*(?=\S)([^*]+?)(?<=\S)\*(?![\w*])")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_KNOWN = frozenset((*NAMES, *LISTS, "title"))
_LONGEST_TITLE = (
    1000  # characters: the patterns above take quadratic time on a text of nothing but marks
)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.\d+)?")


def read_markdown(data: bytes, encoding: str | None) -> Reading:
    """One document; front matter becomes its metadata and is no part of the text."""
    raw, name, warnings = decode(data, encoding)
    text = clean(raw)
    metadata, text = _front_matter(text)
    headings, tables = _structure(text)
    title = str(metadata.pop("title", "")) or next((h.title for h in headings if h.level == 1), "")
    parsed = Parsed(text, title, tuple(headings), (), tuple(tables), metadata)
    return Reading([parsed], name, warnings + dropped(raw))


def _structure(text: str) -> tuple[list[Heading], list[Table]]:
    """Headings (ATX and setext) and pipe tables of a Markdown text, outside fenced code."""
    headings: list[Heading] = []
    tables: list[Table] = []
    rows: list[tuple[int, int]] | None = None
    table_start = table_end = 0
    columns = fence = previous = ""
    previous_start = position = 0

    def end_table() -> None:
        nonlocal rows
        if rows is not None:
            tables.append(Table(columns, table_start, table_end, tuple(rows)))
            rows = None

    for line in text.split("\n"):
        start, end = position, position + len(line)
        position = end + 1
        if fence:
            closing = _FENCE.match(line)
            if closing and closing[1].startswith(fence) and not closing[2].strip():
                fence = ""
            continue
        opening = _FENCE.match(line)
        if opening and not (opening[1][0] == "`" and "`" in opening[2]):
            end_table()
            fence, previous = opening[1], ""
            continue
        if rows is not None:
            if "|" in line:
                rows.append((start, end))
                table_end = end
                continue
            end_table()
        atx = _ATX.match(line)
        setext = _SETEXT.match(line) if previous and not _NOT_A_PARAGRAPH.match(previous) else None
        if atx:
            title = _plain(_without_closing(atx[2] or ""))
            if title:
                headings.append(Heading(len(atx[1]), title, start, end))
            previous = ""
        elif "|" in previous and _is_table_rule(line):
            columns, table_end, rows = previous.strip(), end, []
            table_start = previous_start + previous.index(columns)
            previous = ""
        elif setext:
            level = 1 if setext[1][0] == "=" else 2
            headings.append(Heading(level, _plain(previous), previous_start, end))
            previous = ""
        else:
            previous, previous_start = line, start
    end_table()
    return headings, tables


def _is_table_rule(line: str) -> bool:
    """Whether this is the line of dashes under a table's header, such as |---|:-:|."""
    cells = line.strip().strip("|").split("|")
    return "|" in line and all(_RULE_CELL.fullmatch(cell.strip()) for cell in cells)


def _without_closing(title: str) -> str:
    """A heading without the "##" that may close it; "C#" keeps its sign."""
    title = title.rstrip()
    opened = title.rstrip("#")
    return opened if not opened or opened[-1] in " \t" else title


def _plain(title: str) -> str:
    """A heading without its inline markup (its text in the document keeps it)."""
    if len(title) > _LONGEST_TITLE:
        return one_line(title[:_LONGEST_TITLE])
    title = _LINK.sub(r"\1", title)
    title = _MARKUP.sub(r"\2", title)
    return one_line(_ESCAPE.sub(r"\1", _EMPHASIS.sub(r"\1", title)))


def _front_matter(text: str) -> tuple[dict[str, Value], str]:
    """Fields of a leading block between two lines of dashes, and the text after it.

    Read are `name: value`, `name: [a, b]` and lists of `- item` lines. Names that files of every format
    have are in small letters, keywords and tags are lists however they are written. A block with any other line
    is no front matter (a text may well begin with a rule) and stays in the text.
    """
    block = _FRONT_MATTER.match(text)
    if not block:
        return {}, text
    fields: dict[str, Value] = {}
    name = ""
    for line in block[1].split("\n"):
        field = _FIELD.match(line)
        if field:
            name = field[1].strip()
            name = name.lower() if name.lower() in _KNOWN else name
            value = _value(field[2] or "")
            fields[name] = listed(value) if name in LISTS and isinstance(value, str) else value
        elif name and line.strip().startswith("- "):
            known = fields[name]
            fields[name] = (*(known if isinstance(known, tuple) else ()), _unquoted(line.strip()[2:]))
        elif line.strip() and not line.lstrip().startswith("#"):
            return {}, text
    if not fields:
        return {}, text
    return {key: value for key, value in fields.items() if value not in ("", ())}, text[
        block.end() :
    ].lstrip("\n")


def _value(written: str) -> Value:
    written = written.strip()
    if written.startswith("[") and written.endswith("]"):
        return tuple(_unquoted(part) for part in written[1:-1].split(",") if part.strip())
    if written in ("true", "false"):
        return written == "true"
    return float(written) if _NUMBER.fullmatch(written) else _unquoted(written)


def _unquoted(written: str) -> str:
    written = written.strip()
    quoted = len(written) > 1 and written[0] == written[-1] and written[0] in "\"'"
    return written[1:-1] if quoted else written
