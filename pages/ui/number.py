"""A number as a widget: a slider over the usual range beside a box that takes any allowed value, or the
box alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import streamlit as st

Number = TypeVar("Number", int, float)

_TURNS = "number_turns"


def slider_and_box(
    name: str,
    label: str,
    value: Number,
    *,
    low: Number,
    high: Number,
    usual: Number,
    step: Number,
    on_change: Callable[[Number], None],
    help: str,
    exact_label: str,
    box_width: int,
    disabled: bool = False,
) -> None:
    """Draw both, showing `value`; `on_change` hears a value given by hand. A long slider takes ten steps
    at a time.

    `usual` is the slider's end where the value is not beyond it. `name` is unique on the page; the
    row's key is "row_" and it.
    """
    reach = _reach(value, usual, high)
    slider, box = _key(f"{name}_to_{reach}", value), _key(f"{name}_exact", value)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key=f"row_{name}"):
        st.slider(
            label, low, reach, value, step=10 * step if reach > 1_000 else step, key=slider, on_change=_heard, args=(slider, on_change),
            help=help, disabled=disabled,
        )  # fmt: skip
        st.number_input(
            exact_label, low, high, value, step=step, key=box, on_change=_heard, args=(box, on_change),
            label_visibility="collapsed", width=box_width, disabled=disabled,
        )  # fmt: skip


def box(
    name: str,
    label: str,
    value: Number,
    *,
    low: Number,
    high: Number,
    step: Number,
    on_change: Callable[[Number], None],
    help: str,
    disabled: bool = False,
) -> None:
    """A box alone, for numbers whose every step costs work; arguments as for `slider_and_box`.

    The value is the widget's own, not set through the session: a browser that is redrawn meanwhile
    would show the lowest number for a moment, and report that.
    """
    key = _key(name, value)
    st.number_input(
        label, low, high, value, step=step, key=key, on_change=_heard, args=(key, on_change),
        help=help, disabled=disabled,
    )  # fmt: skip


def show(key: str, value: Any) -> bool:
    """Have the widget of this key, about to be drawn, show the value; whether it does so already.

    Left alone where it is shown: to set it would undo what is done to the widget meanwhile. Give the widget
    the value as its own default then: a browser that makes it anew, as after a change of pages whose first
    drawing was cut short, would show an off switch or the first choice for what was set before.
    """
    if st.session_state.get(key) == value:
        return True
    st.session_state[key] = value
    return False


def _reach(value: Number, usual: Number, high: Number) -> Number:
    """The slider's end. Beyond the usual end it doubles, so that it stays while the slider is moved."""
    reach = min(usual, high)
    while reach < value:
        reach = min(2 * reach, high)
    return reach


def _key(base: str, value: Number) -> str:
    """The widget's key: another one, and so a fresh widget, once it shows something else than the value.

    To set the value of a widget that mirrors another would have the browser report what it showed
    before as a change, and quick steps of a slider would undo each other.
    """
    turns: dict[str, int] = st.session_state.setdefault(_TURNS, {})
    key = f"{base}_{turns.setdefault(base, 0)}"
    if st.session_state.get(key, value) != value:
        turns[base] += 1
        key = f"{base}_{turns[base]}"
    return key


def _heard(key: str, on_change: Callable[[Number], None]) -> None:
    base, _, turn = key.rpartition("_")
    value = st.session_state[key]
    if st.session_state[_TURNS][base] == int(turn) and value is not None:
        on_change(value)  # else a widget that was replaced reports late, or its box was emptied
