"""CSV, TSV, JSON and JSONL: each record an item, or the whole file one table."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from core.errors import LimitError, LoadError
from core.loading.clean import clean, one_line
from core.loading.draft import Draft, Parsed, Reading, Value
from core.loading.options import Limits, LoadOptions
from core.loading.text import decode, dropped

csv.field_size_limit(
    2**31 - 1
)  # the file's own limit holds; the module's 128 KB would refuse long texts

_TITLES = ("title", "name", "subject", "headline", "heading", "question")
_BODIES = ("text", "body", "content", "contents", "passage", "abstract", "description", "message")
_IDS = ("id", "_id", "uuid", "key", "doc_id", "document_id", "docid")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.\d+)?")
_CODE = re.compile(
    r"(?=.*\d)(?=.*[^\W\d_])[\w.#/-]{2,24}"
)  # an id that people write: letters and digits
_SHORT = 80  # characters: a longer field is text to be searched, not a value to filter by
_LONGEST_VALUE = 1000  # characters of a metadata value
_DEPTH = 8
_NAMED_LINES = 20


@dataclass(frozen=True, slots=True)
class _Records:
    """Records as flat fields, each with its number from 1; what could not be read, and why."""

    rows: Sequence[tuple[int, Mapping[str, Value]]]
    skipped: Sequence[tuple[int, str]]
    encoding: str
    warnings: Sequence[str]
    counted: str  # what the numbers of `skipped` count: "line" or "record"
    lines: Mapping[int, int]  # record number -> line, where records are lines


def read_records(data: bytes, extension: str, options: LoadOptions, limits: Limits) -> Reading:
    """Items or one table, as `options.records` says ("ask" gives items).

    Raises LoadError when no record can be read, naming why, and LimitError past `limits.records`.
    """
    raw, encoding, warnings = decode(data, options.encoding)
    warnings += dropped(raw) if extension not in ("json", "jsonl", "ndjson") else []
    text = clean(raw)
    if not text.strip():
        raise LoadError("empty file: it holds no text")
    if extension in ("csv", "tsv"):
        records = _delimited(text, extension, encoding, warnings)
    elif extension == "json":
        value = _parse(text)
        if not isinstance(value, list):
            return Reading([_single(value)], encoding, warnings)
        records = _listed(value, encoding, warnings)
    else:
        records = _lines(text, encoding, warnings)
    if len(records.rows) > limits.records:
        raise LimitError(
            f"the file has {len(records.rows):,} records; the limit is {limits.records:,}: "
            "split the file or raise the limit"
        )
    _check_fields(records, options)
    return _table(records) if options.records == "table" else _items(records, options)


def _parse(text: str) -> object:
    try:
        return json.loads(text)
    except RecursionError as error:
        raise LoadError("the JSON is nested too deeply to be read") from error
    except json.JSONDecodeError as error:
        raise LoadError(f"broken JSON at line {error.lineno}: {error.msg}") from error
    except ValueError as error:  # a number of more digits than Python converts
        raise LoadError(f"broken JSON: {error}") from error


def _listed(values: list[object], encoding: str, warnings: Sequence[str]) -> _Records:
    rows: list[tuple[int, Mapping[str, Value]]] = []
    skipped = []
    for number, value in enumerate(values, 1):
        if isinstance(value, dict):
            rows.append((number, flatten(value)))
        elif isinstance(value, str):
            rows.append((number, {"text": clean(value)}))
        else:
            skipped.append((number, f"{_kind(value)}, not an object"))
    return _Records(rows, skipped, encoding, warnings, "record", {})


def _lines(text: str, encoding: str, warnings: Sequence[str]) -> _Records:
    rows: list[tuple[int, Mapping[str, Value]]] = []
    skipped, lines = [], {}
    number = 0
    for line_number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        number += 1
        lines[number] = line_number
        try:
            value = _parse(line)
        except LoadError as error:
            skipped.append((line_number, str(error).replace(" at line 1", "")))
            continue
        if isinstance(value, dict):
            rows.append((number, flatten(value)))
        else:
            skipped.append((line_number, f"{_kind(value)}, not an object"))
    return _Records(rows, skipped, encoding, warnings, "line", lines)


def _kind(value: object) -> str:
    names = {list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _delimited(text: str, extension: str, encoding: str, warnings: Sequence[str]) -> _Records:
    delimiter = "\t" if extension == "tsv" else _delimiter(text)
    notes = list(warnings)
    try:
        for _ in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True):
            pass
    except csv.Error as error:
        notes.append(f"quotes do not match ({error}): fields may be cut in the wrong places")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    table = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    if not table:
        raise LoadError("empty file: it holds no records")
    header = _header(table[0][1], max(len(row) for _, row in table))
    uneven = [
        str(number) for number, (_, row) in enumerate(table[1:], 1) if len(row) != len(table[0][1])
    ]
    if uneven:
        notes.append(f"another number of fields than the header in records {_some(uneven)}")
    cells = [[clean(cell) for cell in row] + [""] * (len(header) - len(row)) for _, row in table[1:]]
    typed = [_column(name, [row[c] for row in cells]) for c, name in enumerate(header)]
    rows = [
        (number, {name: column[number - 1] for name, column in zip(header, typed, strict=True)})
        for number in range(1, len(cells) + 1)
    ]
    return _Records(rows, (), encoding, notes, "record", {})


def _delimiter(text: str) -> str:
    first = re.sub(r'"[^"]*"', "", text[:20_000]).lstrip("\n").partition("\n")[0]
    return max(",;\t|", key=first.count)


def _header(names: Sequence[str], width: int) -> list[str]:
    header: list[str] = []
    for index in range(width):
        name = one_line(names[index]) if index < len(names) else ""
        name = name or f"column {index + 1}"
        header.append(name if name not in header else f"{name} ({index + 1})")
    return header


def _column(name: str, cells: list[str]) -> list[Value]:
    """Cells of a column as numbers or truth values where all of them are; ids stay as written."""
    filled = [cell.strip() for cell in cells if cell.strip()]
    if filled and name.lower() not in _IDS:
        if all(_NUMBER.fullmatch(cell) for cell in filled):
            return [float(cell) if cell.strip() else "" for cell in cells]
        if all(cell.lower() in ("true", "false") for cell in filled):
            return [cell.strip().lower() == "true" if cell.strip() else "" for cell in cells]
    return list(cells)


def flatten(value: Mapping[str, object]) -> dict[str, Value]:
    """Fields of a JSON object; those of objects inside it are named "outer.inner".

    Lists become tuples of strings; objects in lists, and what lies deeper than eight levels, stay as
    JSON text. Empty fields (null, "", [], {}) are left out.
    """
    fields: dict[str, Value] = {}
    _flatten(value, "", 1, fields)
    return fields


def _flatten(value: Mapping[str, object], prefix: str, depth: int, fields: dict[str, Value]) -> None:
    for key, inner in value.items():
        name = prefix + one_line(clean(key))
        if isinstance(inner, dict) and depth < _DEPTH:
            _flatten(inner, f"{name}.", depth + 1, fields)
        elif isinstance(inner, list):
            if inner:
                fields[name] = tuple(
                    clean(
                        _written(x)
                        if isinstance(x, (str, int, float))
                        else json.dumps(x, ensure_ascii=False)
                    )
                    for x in inner
                )
        elif isinstance(inner, dict):
            if inner:
                fields[name] = clean(json.dumps(inner, ensure_ascii=False))
        elif isinstance(inner, bool):
            fields[name] = inner
        elif isinstance(inner, (int, float)):
            fields[name] = _number(inner)
        elif isinstance(inner, str) and inner.strip():
            fields[name] = clean(inner)


def _number(value: int | float) -> float | str:
    """A float, unless it would not be the same number: then the text (long ids, NaN)."""
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    return float(value) if abs(value) < 2**53 else str(value)


def _written(value: object) -> str:
    """A value as text: 7 rather than 7.0."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.15g}"
    if isinstance(value, tuple):
        return ", ".join(value)
    return str(value)


def _check_fields(records: _Records, options: LoadOptions) -> None:
    asked = {*(options.text_fields or ()), *([options.title_field] if options.title_field else [])}
    known = {name for _, row in records.rows for name in row}
    missing = sorted(asked - known)
    if missing and records.rows:
        raise LoadError(
            f"no record has the field {missing[0]!r}; the fields are {', '.join(sorted(known))}"
        )


def _items(records: _Records, options: LoadOptions) -> Reading:
    parsed = []
    skipped = list(records.skipped)
    texts = _text_fields([row for _, row in records.rows])
    left_out: set[str] = set()
    for number, row in records.rows:
        item = _item(number, row, options, texts, left_out)
        if item.text.strip():
            parsed.append(item)
        else:
            skipped.append((records.lines.get(number, number), "no text"))
    warnings = [*records.warnings, *_skips(sorted(skipped), records.counted)]
    if left_out:
        warnings.append(f"fields too long to be metadata were left out: {_some(sorted(left_out))}")
    if not parsed:
        raise LoadError("no record could be read" + "".join(f"; {reason}" for reason in warnings))
    return Reading(parsed, records.encoding, warnings)


def _text_fields(rows: Sequence[Mapping[str, Value]]) -> set[str]:
    """Fields that hold text to be searched: most of their values are long or of several lines.

    Decided for the file as a whole, so that its items do not differ in what their text is made of.
    """
    filled: Counter[str] = Counter()
    long: Counter[str] = Counter()
    for row in rows:
        for name, value in row.items():
            if isinstance(value, str) and value.strip():
                filled[name] += 1
                long[name] += len(value) > _SHORT or "\n" in value
    return {name for name, count in filled.items() if long[name] * 2 > count}


def _item(
    number: int, row: Mapping[str, Value], options: LoadOptions, texts: set[str], left_out: set[str]
) -> Parsed:
    """One record as an item; names of fields that are neither text nor metadata go to `left_out`."""
    names = {name.lower(): name for name in reversed(list(row))}
    body = next((names[name] for name in _BODIES if isinstance(row.get(names.get(name, "")), str)), None)
    title_field = options.title_field or next(
        (
            names[n]
            for n in (*_TITLES, *_IDS)
            if n in names and names[n] != body and _written(row[names[n]])
        ),
        "",
    )
    title = one_line(_written(row.get(title_field, "")))
    code = next((_written(row[names[n]]) for n in _IDS if n in names and names[n] != title_field), "")
    if _CODE.fullmatch(code) and code not in title:
        title = f"{code} · {title}"  # people search for SUP-48213; metadata is not searched
    if options.text_fields:
        shown = [name for name in options.text_fields if _is_filled(row.get(name, ""))]
        text = (
            _written(row[shown[0]]) if len(options.text_fields) == 1 and shown else _as_lines(row, shown)
        )
    elif body and _is_filled(row[body]):
        others = [n for n in row if n not in (body, title_field) and n in texts and _is_filled(row[n])]
        text = "\n\n".join(filter(None, (_written(row[body]), _as_lines(row, others))))
        shown = [body, *others]
    else:
        shown = [name for name in row if _is_filled(row[name])]
        text = "" if all(name.lower() in _IDS for name in shown) else _as_lines(row, shown)
        long = [name for name in shown if len(_written(row[name])) > _LONGEST_VALUE]
        shown = [name for name in shown if name in texts or name in long]
    metadata = {
        name: value
        for name, value in row.items()
        if _is_filled(value) and name not in (*shown, title_field)
    }
    if title_field.lower() in _IDS and title_field in row:
        metadata[title_field] = row[title_field]
    for name in [name for name, value in metadata.items() if len(_written(value)) > _LONGEST_VALUE]:
        del metadata[name]
        left_out.add(name)
    return Parsed(text, title, metadata=metadata, number=number)


def _is_filled(value: Value) -> bool:
    return bool(value.strip()) if isinstance(value, str) else value != ()


def _as_lines(row: Mapping[str, Value], names: Iterable[str]) -> str:
    return "\n".join(f"{name}: {_written(row[name])}" for name in names)


def _skips(skipped: Sequence[tuple[int, str]], counted: str) -> list[str]:
    if not skipped:
        return []
    named = "; ".join(f"{counted} {number} ({reason})" for number, reason in skipped[:_NAMED_LINES])
    more = f"; and {len(skipped) - _NAMED_LINES} more" if len(skipped) > _NAMED_LINES else ""
    return [f"skipped {len(skipped)}: {named}{more}"]


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED_LINES} more" if len(names) > _NAMED_LINES else ""
    return ", ".join(names[:_NAMED_LINES]) + more


def _table(records: _Records) -> Reading:
    header = list(dict.fromkeys(name for _, row in records.rows for name in row))
    warnings = [*records.warnings, *_skips(records.skipped, records.counted)]
    if not header:
        raise LoadError("no record could be read" + "".join(f"; {reason}" for reason in warnings))
    draft = Draft()
    draft.table([header, *([_written(row.get(name, "")) for name in header] for _, row in records.rows)])
    return Reading([draft.finish()], records.encoding, warnings)


def _single(value: object) -> Parsed:
    """A JSON file that is one object or value: one document of "field: value" lines."""
    if not isinstance(value, dict):
        return Parsed(clean(value) if isinstance(value, str) else json.dumps(value))
    row = flatten(value)
    item = _item(1, row, LoadOptions(), _text_fields([row]), set())
    return Parsed(item.text, item.title, metadata=item.metadata)
