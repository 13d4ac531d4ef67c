"""Rules as the rows of a table that is edited, and back: what TOML says that the table cannot stays as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import numpy as np
import streamlit as st

from core.rules.reading import KEYS, MAX_NAME, MAX_TEXT
from core.rules.rule import ACTIONS

Tables = list[dict[str, Any]]
_TEXTS, _LISTS, _DAYS = ("name", "query", "pattern", "items"), ("groups", "documents"), ("from", "until")
COLUMNS = (
    "order", "on", "name", "action", "value", "query", "items", "documents", "pattern", "groups", *_DAYS
)  # fmt: skip


# Of empty lists Streamlit takes every column for numbers.
NO_ROWS = {name: np.empty(0, bool if name == "on" else object) for name in COLUMNS}


def columns(tables: Sequence[Any]) -> dict[str, list[Any]]:
    """The cells of the table by column, a row for each rule."""
    rows = [_row(number, table) for number, table in enumerate(tables, 1)]
    return {name: [row[name] for row in rows] for name in COLUMNS}


def edited(tables: Sequence[Any], changes: Mapping[str, Any]) -> Tables:
    """The tables after what the editor says was done to its rows: cells changed, rows added, rows deleted.

    Rows stand by their order afterwards; of equal numbers, the row that was moved comes first.
    """
    kept = [dict(table) if isinstance(table, Mapping) else {} for table in tables]
    places: list[tuple[float, int]] = [(number, 1) for number in range(1, len(kept) + 1)]
    for row, cells in changes.get("edited_rows", {}).items():
        _change(kept[int(row)], cells)
        places[int(row)] = _place(cells, places[int(row)])
    for cells in changes.get("added_rows", ()):
        table: dict[str, Any] = {}
        _change(table, cells)
        kept.append(table)
        places.append(_place(cells, (len(kept), 1)))
    gone = set(map(int, changes.get("deleted_rows", ())))
    order = sorted((at for at in range(len(kept)) if at not in gone), key=lambda at: (*places[at], at))
    return [_ordered(kept[at]) for at in order]


def config() -> dict[str, Any]:
    """How each column is shown and edited."""
    column = st.column_config
    return {
        "order": column.NumberColumn(
            "Order", step=1, min_value=1, width=64,
            help="Earlier rules win conflicts; give another number to move a rule",
        ),
        "on": column.CheckboxColumn("On", width=48, default=True),
        "name": column.TextColumn("Name", max_chars=MAX_NAME, width=140, pinned=True),
        "action": column.SelectboxColumn("Then", options=list(ACTIONS), width=90, help="What is done to the items"),
        "value": column.NumberColumn(
            "Weight or rank", width=110, help="The weight of a boost or bury, the rank of a pin"
        ),
        "query": column.TextColumn(
            "Query holds", max_chars=MAX_TEXT, width=140, help="Words that the query holds, all of them"
        ),
        "pattern": column.TextColumn(
            "Query is", max_chars=MAX_TEXT, width=140, help="The whole query; * stands for any text"
        ),
        "items": column.TextColumn(
            "Items with", width=170, help="Conditions on the items' fields: type = pdf; year >= 2024"
        ),
        "documents": column.ListColumn("Documents", width=190, help="File names or ids"),
        "groups": column.ListColumn("For groups", width=120, help="The viewer is in one of them"),
        "from": column.DateColumn("From", width=104, help="The first day"),
        "until": column.DateColumn("Until", width=104, help="The last day"),
    }  # fmt: skip


def _row(number: int, table: Any) -> dict[str, Any]:
    given = table if isinstance(table, Mapping) else {}
    action = _action(given)
    value = given.get(action)
    row: dict[str, Any] = {
        "order": number,
        "on": given.get("on", True) is not False,
        "action": action or None,
        "value": float(value)
        if isinstance(value, int | float) and not isinstance(value, bool)
        else None,
    }
    row |= {name: str(given.get(name, "")) for name in _TEXTS}
    for name in _LISTS:
        listed = given.get(name, [])
        row[name] = list(map(str, listed)) if isinstance(listed, list) else [str(listed)]
    return row | {name: _day(given.get(name)) for name in _DAYS}


def _change(table: dict[str, Any], cells: Mapping[str, Any]) -> None:
    for name in (*_TEXTS, *_LISTS, *_DAYS):
        if name in cells:
            _set(table, name, _day(cells[name]) if name in _DAYS else cells[name])
    if "on" in cells:
        _set(table, "on", None if cells["on"] else False)
    if "action" not in cells and "value" not in cells:
        return
    before = _action(table)
    action = cells.get("action", before)
    value = cells.get("value", table.get(before))
    for name in ACTIONS:
        table.pop(name, None)
    if action in ("hide", "only"):
        table[action] = True
    elif action:
        number = 1 if value is None or isinstance(value, bool) else value
        table[action] = int(number) if isinstance(number, float) and number.is_integer() else number


def _set(table: dict[str, Any], name: str, value: Any) -> None:
    """What is empty is left out."""
    if value is None or value == "" or value == []:
        table.pop(name, None)
    else:
        table[name] = value


def _action(table: Mapping[str, Any]) -> str:
    return next((name for name in ACTIONS if name in table), "")


def _day(value: Any) -> date | None:
    """The editor gives days as text."""
    if isinstance(value, date):
        return date(value.year, value.month, value.day)
    try:
        return date.fromisoformat(str(value)[:10])
    except ValueError:
        return None


def _place(cells: Mapping[str, Any], before: tuple[float, int]) -> tuple[float, int]:
    wanted = cells.get("order")
    if wanted is None:
        return before
    # Moved down, it comes after the row that has the number; moved up, before it.
    return float(wanted), 2 if wanted > before[0] else 0


def _ordered(table: dict[str, Any]) -> dict[str, Any]:
    """Keys in the order in which rules are written, those unknown at the end."""
    return {key: table[key] for key in (*KEYS, *table) if key in table}
