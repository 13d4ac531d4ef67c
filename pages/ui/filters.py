"""Filters on the Search page: facets and ranges of one field at a time, the same as a line of text, and chips."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import streamlit as st

from core.errors import SettingsError
from core.fields import ItemFields, parse_date
from core.filters import Condition, Filter
from pages.ui import draw, state
from pages.ui.number import show
from pages.ui.plain import counted, label, sentence

_LISTED = 20  # values of a field
_LONG = 8  # values that stand there without scrolling
_CUT = 60  # characters of a value
_FIELD_BOX, _TEXT_BOX = "filter_field", "filter_text"
_WRONG = "rs_filter_wrong"
_EPOCH = date(1970, 1, 1)


def filter_controls(fields: ItemFields | None, help: str) -> None:
    """The sidebar's group; without an index there are no fields yet, and the line of text stands alone."""
    found = _filter()
    mark = f" :blue-badge[{len(found.conditions)}]" if found else ""
    with st.expander("Filters" + mark, expanded=bool(found), key="group_Filters"):
        if fields is not None and fields.names:
            _by_field(fields, found)
        _as_text(fields, found, help)
        if found:
            if fields is not None:
                st.caption(passing(fields))
            st.button(
                "Clear filters", key="reset_Filters", type="tertiary", icon=":material/undo:", on_click=_save, args=(Filter(),)
            )  # fmt: skip


def filter_chips(fields: ItemFields) -> None:
    """Above the results: each condition with a click that takes it back, and how many items pass."""
    found = _filter()
    if not found:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="filter_chips"):
        for number, one in enumerate(found.conditions):
            st.button(
                label(_cut(str(one))), key=f"filter_chip_{number}", icon=":material/close:", help="Take this filter back",
                on_click=_save, args=(Filter(tuple(other for other in found.conditions if other != one)),),
            )  # fmt: skip
        draw.text(passing(fields), "rs-quiet")


def passing(fields: ItemFields) -> str:
    """How many items pass, in words; or why that cannot be said."""
    try:
        mask = fields.mask(_filter())
    except SettingsError as error:
        return sentence(str(error))
    return f"{int(mask.sum()):,} of {counted(len(mask), 'item')} pass"


def changed(found: Filter, field: str, operator: str, values: Sequence[str]) -> Filter:
    """The filter with these values in the place of those that it has for field and operator; none: without."""
    wanted = (Condition(field, operator, tuple(values)),) if values else ()
    rest = [one for one in found.conditions if not _is(one, field, operator)]
    at = next((at for at, one in enumerate(found.conditions) if _is(one, field, operator)), len(rest))
    return Filter((*rest[:at], *wanted, *rest[at:]))


def values_of(found: Filter, field: str, operator: str) -> tuple[str, ...]:
    """What the filter asks of a field by one operator; empty where it asks nothing."""
    return next((one.values for one in found.conditions if _is(one, field, operator)), ())


def counts(fields: ItemFields, field: str, found: Filter) -> list[tuple[str, int]]:
    """The field's commonest values and after them what else is chosen, each with how many items have it that
    pass the other conditions. Choosing moves nothing: the order is that of all items."""
    chosen = {value.casefold(): value for value in values_of(found, field, "=")}
    known = {value.casefold(): value for value, _ in fields.facets(field, _LISTED)}
    values = (known | chosen).values()
    others = changed(found, field, "=", ())
    return [(value, int(fields.mask(changed(others, field, "=", (value,))).sum())) for value in values]


def _is(one: Condition, field: str, operator: str) -> bool:
    return one.operator == operator and one.field.casefold() == field.casefold()


def _filter() -> Filter:
    return Filter.parse(state.search_settings().filters)


def _save(found: Filter) -> None:
    """Filter by this from now on; what was typed wrong before is gone."""
    st.session_state.pop(_WRONG, None)
    state.set_search_settings(state.search_settings().replace(filters=str(found)))


def _by_field(fields: ItemFields, found: Filter) -> None:
    names = list(fields.names)
    if st.session_state.get(_FIELD_BOX) not in names:
        st.session_state[_FIELD_BOX] = _first(fields, found)
    field = st.selectbox(
        "Field", names, key=_FIELD_BOX, format_func=label,
        help="Conditions on several fields must all hold; each stands above the results",
    )  # fmt: skip
    try:
        fields.mask(found)
    except SettingsError:
        found = Filter()  # counts of what cannot be asked; the line of text says why
    kind = fields.kind(field)
    if kind == "number":
        _numbers(fields, field, found)
    elif kind == "date":
        _dates(fields, field, found)
    else:
        _values(fields, field, found)


def _first(fields: ItemFields, found: Filter) -> str:
    """The field whose controls are shown at first: one that is filtered by, else, of those that most
    items have, the one with the fewest values."""
    for one in found.conditions:
        for name in fields.names:
            if one.field.casefold() == name.casefold():
                return name
    values = {name: len(fields.facets(name, _LISTED + 1)) for name in fields.names}
    few = [name for name in fields.names if 1 < values[name] <= _LISTED]
    return max(few or fields.names, key=lambda name: (sum(map(bool, fields.texts(name))), -values[name]))


def _values(fields: ItemFields, field: str, found: Filter) -> None:
    listed = counts(fields, field, found)
    chosen = values_of(found, field, "=")
    more = len(fields.facets(field, _LISTED + 1)) > _LISTED
    told = any(times > 1 for _, times in fields.facets(field, 1))
    if told or not more:  # else each value is of one item: words in it are what can be asked
        height: Any = 260 if len(listed) > _LONG else "content"
        with st.container(height=height, border=False, gap=None, key="filter_values"):
            for value, times in listed:
                _value(field, value, times, value in chosen)
    if more or values_of(found, field, "~"):
        _contains(field, found)


def _value(field: str, value: str, times: int, on: bool) -> None:
    key = f"filter_is {field}: {value}"
    shown = show(key, on)
    st.checkbox(
        f"{label(_cut(value))} · {times:,}", shown and on, key=key, on_change=_choose, args=(field, value, key)
    )  # fmt: skip


def _choose(field: str, value: str, key: str) -> None:
    found = _filter()
    rest = [one for one in values_of(found, field, "=") if one != value]
    _save(changed(found, field, "=", [*rest, value] if st.session_state[key] else rest))


def _contains(field: str, found: Filter) -> None:
    key, asked = f"filter_has {field}", values_of(found, field, "~")
    value = asked[0] if asked else ""
    shown = show(key, value)
    st.text_input(
        "Contains", value if shown else "", key=key, placeholder="Part of the value", on_change=_ask, args=(field, "~", key)
    )  # fmt: skip


def _numbers(fields: ItemFields, field: str, found: Filter) -> None:
    low, high = fields.range(field) or (0.0, 0.0)
    bounds = {operator: _number(values_of(found, field, operator)) for operator in (">=", "<=")}
    whole = all(number is None or number.is_integer() for number in (low, high, *bounds.values()))
    with st.container(horizontal=True, gap="small", key="filter_range"):
        for operator, title, end in ((">=", "From", low), ("<=", "To", high)):
            key, bound = f"filter_{title} {field} {whole}", bounds[operator]
            value: Any = int(bound) if whole and bound is not None else bound
            shown = show(key, value)
            st.number_input(
                title, value=value if shown else None, key=key, step=1 if whole else None, placeholder=f"{end:.15g}",
                on_change=_ask, args=(field, operator, key),
            )  # fmt: skip


def _dates(fields: ItemFields, field: str, found: Filter) -> None:
    low, high = (_EPOCH + timedelta(days) for days in fields.range(field) or (0.0, 0.0))
    with st.container(horizontal=True, gap="small", key="filter_range"):
        for operator, title in ((">=", "From"), ("<=", "To")):
            asked = values_of(found, field, operator)
            value = parse_date(asked[0]) if asked else None
            key = f"filter_{title} {field}"
            shown = show(key, value)
            st.date_input(
                title, value if shown else None, min_value=min(low, value or low), max_value=max(high, value or high),
                key=key, format="YYYY-MM-DD", on_change=_ask, args=(field, operator, key),
            )  # fmt: skip
    st.caption(f"{low.isoformat()} to {high.isoformat()}")


def _number(values: Sequence[str]) -> float | None:
    try:
        return float(values[0]) if values else None
    except ValueError:
        return None


def _ask(field: str, operator: str, key: str) -> None:
    value = st.session_state[key]
    if isinstance(value, date):
        value = value.isoformat()
    elif isinstance(value, int | float):
        value = f"{value:.15g}"
    _save(changed(_filter(), field, operator, [value] if value and value.strip() else []))


def _as_text(fields: ItemFields | None, found: Filter, help: str) -> None:
    typed, reason, then = st.session_state.get(_WRONG, ("", "", None))
    wrong = then == str(found)
    value = typed if wrong else str(found)
    shown = show(_TEXT_BOX, value)
    st.text_input(
        "As text", value if shown else "", key=_TEXT_BOX, placeholder="year >= 2020; author = Ann, Ben",
        help=f"{help} Default: none.", on_change=_typed, args=(fields,),
    )  # fmt: skip
    if wrong:
        draw.notice(sentence(reason), "error")


def _typed(fields: ItemFields | None) -> None:
    typed: str = st.session_state[_TEXT_BOX]
    try:
        found = Filter.parse(typed)
        if fields is not None:
            fields.mask(found)
    except SettingsError as error:
        st.session_state[_WRONG] = (typed, str(error), state.search_settings().filters)
    else:
        _save(found)


def _cut(text: str) -> str:
    return text if len(text) <= _CUT else text[: _CUT - 1] + "…"
