"""Fields: what is known of the items, of which kind, how many have it, and what does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

import streamlit as st

from core.collection import Collection
from core.corpus import Corpus
from core.fields import KINDS, ItemFields
from core.report.tables import item_label
from pages.ui import draw, people
from pages.ui.plain import counted, label

_CUT, _MISFITS = 60, 50
_HEAD, _LINE = 38, 35  # pixels
_EPOCH = date(1970, 1, 1)
_TURN = "rs_fields_turn"
_AUTOMATIC = "as its values are"


def fields_tab(collection: Collection, corpus: Corpus | None) -> None:
    draw.text(
        "What files say of themselves, the columns of tables, and front matter. Filters, rules, recency and popularity "
        "read them. A field's kind is what all its values are, unless you say otherwise.",
        "rs-lead",
    )
    if corpus is None:
        return
    fields, said = corpus.fields, collection.field_kinds()
    if not fields.names:
        draw.text("No item has any field.", "rs-quiet")
        return
    rows = [_row(fields, name, said, len(corpus.item_ids)) for name in fields.names]
    key = f"fields_table_{st.session_state.get(_TURN, 0)}"
    st.data_editor(
        rows, key=key, hide_index=True, width="stretch", disabled=_disabled(), column_config=_columns(),
        on_change=_changed, args=(collection, list(fields.names), key), placeholder="",
        height=min(_HEAD + _LINE * len(rows), 640),
    )  # fmt: skip
    misfits = {name: fields.misfits(name) for name in fields.names}
    if any(misfits.values()):
        draw.text("Values that are not of their field's kind", "rs-subhead")
        draw.text("No filter by that kind finds them, and they rank nothing.", "rs-quiet")
    for name, wrong in misfits.items():
        if wrong:
            with st.expander(f"{label(name)} · {counted(len(wrong), 'value')}", key=f"misfits_{name}"):
                listed = [
                    (
                        f"{item_label(item)} {corpus.item_titles[item] or corpus.item_names[item]}",
                        _cut(value),
                    )
                    for item, value in wrong[:_MISFITS]
                ]
                draw.table(("Item", "Value"), listed)
                if len(wrong) > _MISFITS:
                    draw.text(f"And {len(wrong) - _MISFITS:,} more.", "rs-quiet")


def _row(fields: ItemFields, name: str, said: Mapping[str, str], items: int) -> dict[str, Any]:
    filled = sum(map(bool, fields.texts(name)))
    return {
        "Field": name,
        "Kind": fields.kind(name),
        "Said by": "you" if name in said else "its values",
        "Items": filled,
        "Share": 100 * filled / items,
        "Values": _values(fields, name),
        "Misfits": len(fields.misfits(name)) or None,
    }


def _values(fields: ItemFields, name: str) -> str:
    """The range of numbers and dates, else the commonest values."""
    span = fields.range(name)
    if span is not None:
        low, high = span
        if fields.kind(name) == "date":
            return " to ".join((_EPOCH + timedelta(days)).isoformat() for days in (low, high))
        return f"{low:.15g} to {high:.15g}"
    listed = fields.facets(name, 4)
    more = " …" if len(listed) > 3 else ""
    return ", ".join(f"{_cut(value)} ({times})" for value, times in listed[:3]) + more


def _columns() -> dict[str, Any]:
    column = st.column_config
    return {
        "Kind": column.SelectboxColumn(
            options=[*KINDS, _AUTOMATIC],
            required=True,
            help="What the field holds; only numbers and dates compare",
        ),
        "Items": column.NumberColumn(format="localized", help="Items that have it"),
        "Share": column.ProgressColumn(format="%.0f %%", min_value=0, max_value=100),
        "Values": column.TextColumn(width="large"),
        "Misfits": column.NumberColumn(format="localized", help="Values that are not of that kind"),
    }


def _disabled() -> bool | list[str]:
    if not people.may_manage():
        return True
    return ["Field", "Said by", "Items", "Share", "Values", "Misfits"]


def _changed(collection: Collection, names: list[str], key: str) -> None:
    for row, cells in st.session_state[key]["edited_rows"].items():
        if people.may_manage() and (kind := cells.get("Kind")):
            collection.set_field_kind(names[int(row)], None if kind == _AUTOMATIC else kind)
    st.session_state[_TURN] = st.session_state.get(_TURN, 0) + 1  # a fresh table, of the kinds of now


def _cut(text: str) -> str:
    return text if len(text) <= _CUT else text[: _CUT - 1] + "…"
