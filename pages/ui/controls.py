"""The sidebar: every search setting in pipeline order, and how text becomes terms."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.errors import SettingsError
from core.explanation import stage_title
from core.report.knobs import Knob, knobs, with_value
from core.settings import IndexSettings, SearchSettings
from core.text import Analyzer
from pages.ui import state
from pages.ui.plain import plain

_OPEN = ("Item stage", "Indexes", "Fusion")


def search_controls(signals: Sequence[str], indexes: Sequence[str]) -> DeltaGenerator:
    """One widget for every setting; a change is saved at once. `signals`, `indexes`: those there are.

    Returns the place below the vector search's settings, for the loss that is measured later.
    """
    settings = state.search_settings()
    changed = settings.changes()
    with st.container(horizontal=True, vertical_alignment="center", key="controls_head"):
        st.markdown("**Settings**", width="stretch")
        st.button(
            "Reset all" if changed else "All defaults",
            key="reset_all",
            type="tertiary",
            disabled=not changed,
            on_click=lambda: state.set_search_settings(SearchSettings()),
            help="Set every search setting to its default",
        )
    loss = st.empty()
    for title, group in knobs(settings, signals, indexes):
        differing = [knob for knob in group if knob.value != knob.default]
        mark = f" :blue-badge[{len(differing)} changed]" if differing else ""
        with st.expander(title + mark, expanded=title in _OPEN or bool(differing), key=f"group_{title}"):
            for knob in group:
                _control(knob)
            if title == "Vector search":
                loss = st.empty()
            if differing:
                st.button(
                    "Reset these",
                    key=f"reset_{title}",
                    type="tertiary",
                    icon=":material/undo:",
                    on_click=_reset,
                    args=(differing,),
                )
    return loss


def _reset(group: list[Knob]) -> None:
    settings = state.search_settings()
    for knob in group:
        settings = with_value(settings, knob.path, knob.default)
    state.set_search_settings(settings)


def widget_key(path: str) -> str:
    """The key of a setting's widget; its slider adds "_slider"."""
    return "set_" + path.replace(".", "_")


def _control(knob: Knob) -> None:
    key = widget_key(knob.path)
    label = f"**{_part_title(knob.part)}**" if knob.path.endswith(".on") else knob.label
    if knob.value != knob.default:
        label += f" :gray[· default {_shown(knob.default)}]"
    help = f"{knob.help} Default: {_shown(knob.default)}."
    if knob.idle:
        help += f" **Moves nothing now: {knob.idle}.**"
    common: dict[str, Any] = {"disabled": bool(knob.idle), "help": help}
    if isinstance(knob.default, bool):
        st.session_state[key] = knob.value
        st.toggle(label, key=key, on_change=_change, args=(knob.path, key), **common)
    elif knob.choices:
        st.session_state[key] = knob.value
        st.selectbox(label, knob.choices, key=key, on_change=_change, args=(knob.path, key), **common)
    else:
        _number(knob, key, label, common)
    if knob.idle and knob.idle != f"{knob.part} is off":  # its switch is right above
        st.caption(f"Moves nothing: {knob.idle}.")


def _part_title(part: str) -> str:
    title = stage_title(part)
    if title == part:
        return part.capitalize() if re.fullmatch("[a-z ]+", part) else plain(part)
    return title


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return (
        f"{value:g}"
        if isinstance(value, float)
        else f"{value:,}"
        if isinstance(value, int)
        else str(value)
    )


def _number(knob: Knob, key: str, label: str, common: dict[str, Any]) -> None:
    """A slider over the usual range beside a box that takes any allowed value."""
    whole = isinstance(knob.default, int)
    low, high = _limits(knob, whole)
    reach = slider_reach(knob)
    if knob.replay == "never":
        st.session_state[key] = knob.value
        st.number_input(
            label,
            low,
            high,
            step=1 if whole else 0.05,
            key=key,
            on_change=_change,
            args=(knob.path, key),
            **common,
        )
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key=f"row_{key}"):
        slider = key + "_slider"
        st.session_state[slider] = knob.value
        st.session_state[key] = knob.value
        st.slider(
            label,
            low,
            reach,
            step=1 if whole else 0.05,
            key=slider,
            on_change=_change,
            args=(knob.path, slider),
            **common,
        )
        st.number_input(
            f"{knob.part} {knob.label}, exact value".strip(),
            low,
            high,
            step=1 if whole else 0.05,
            key=key,
            on_change=_change,
            args=(knob.path, key),
            label_visibility="collapsed",
            width=74,
            disabled=bool(knob.idle),
        )


def _limits(knob: Knob, whole: bool) -> tuple[Any, Any]:
    kind: Callable[[float], Any] = int if whole else float
    return kind(knob.low or 0), kind(knob.high if knob.high is not None else 1e9)


def slider_reach(knob: Knob) -> Any:
    """The slider's upper end: three times the default, further where the value is beyond."""
    usual = 3 * knob.default if knob.default else 10
    reach = max(min(usual, knob.high or usual), knob.value)
    return int(reach) if isinstance(knob.default, int) else float(reach)


def _change(path: str, key: str) -> None:
    try:
        state.set_search_settings(with_value(state.search_settings(), path, st.session_state[key]))
    except SettingsError as error:
        state.notify(str(error))


def index_controls(reindex: Callable[[IndexSettings], None]) -> None:
    """How text becomes terms: changes wait until the collection is indexed again, which is offered."""
    draft, current = state.index_draft(), state.index_settings()
    differs = draft != current
    with st.expander(
        "Analyzer" + (" :orange-badge[not indexed]" if differs else ""),
        expanded=differs,
        key="group_Analyzer",
    ):
        for spec in dataclasses.fields(Analyzer):
            key = f"index_{spec.name}"
            value = getattr(draft.analyzer, spec.name)
            label = spec.metadata["label"]
            common: dict[str, Any] = {
                "key": key,
                "help": spec.metadata["help"],
                "on_change": _draft,
                "args": (spec.name, key),
            }
            st.session_state[key] = value
            if isinstance(value, bool):
                st.toggle(label, **common)
            else:
                st.selectbox(label, spec.metadata["choices"], **common)
        for note in draft.analyzer.notes():
            st.caption(note)
        if differs:
            st.info("The index was made with other terms. Index again to search with these.")
            with st.container(horizontal=True):
                st.button("Index again", key="reindex", type="primary", on_click=reindex, args=(draft,))
                st.button("Discard", key="discard_draft", on_click=state.set_index_draft, args=(None,))
        else:
            st.caption("Changing these needs the collection to be indexed again.")


def _draft(name: str, key: str) -> None:
    draft = state.index_draft()
    analyzer = dataclasses.replace(draft.analyzer, **{name: st.session_state[key]})
    state.set_index_draft(draft.replace(analyzer=analyzer))
