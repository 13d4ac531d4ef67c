"""The sidebar: every search setting in pipeline order, and how text becomes terms."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.errors import SettingsError
from core.explanation import stage_title
from core.fields import ItemFields
from core.report.knobs import Knob, knobs, with_value
from core.settings import PAID_RERANKERS, IndexSettings, SearchSettings
from core.text import Analyzer
from pages.ui import state
from pages.ui.filters import filter_controls
from pages.ui.number import box, show, slider_and_box
from pages.ui.plain import label as as_label
from pages.ui.plain import plain

_PAYING = (
    "Ask the reranker whenever a search or a setting needs scores that are not kept yet. Off: the page "
    "shows what it would cost, and asks first."
)
_OPEN = ("Item stage", "Indexes", "Fusion")
_FIELD_KINDS = {"recency_field": "date", "popularity_field": "number"}


def search_controls(
    signals: Sequence[str], indexes: Sequence[str], fields: ItemFields | None = None
) -> DeltaGenerator:
    """One widget for every setting; a change is saved at once. `signals`, `indexes`: those there are; `fields`
    of the items, to choose from, where there is an index.

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
    groups = knobs(settings, signals, indexes)
    _mark([knob.path for _, group in groups for knob in group if knob.value != knob.default])
    for title, group in groups:
        if title == "Filters":
            filter_controls(fields, group[0].help)
            continue
        differing = [knob for knob in group if knob.value != knob.default]
        mark = f" :blue-badge[{len(differing)} changed]" if differing else ""
        with st.expander(title + mark, expanded=title in _OPEN or bool(differing), key=f"group_{title}"):
            for reason, together in groupby(group, key=lambda knob: knob.idle):
                _controls(list(together), reason, fields)
            if title == "Vector search":
                loss = st.empty()
            if title == "Reranking" and settings.rerank in PAID_RERANKERS:
                st.toggle("Pay at every search", key=state.PAY_BOX, help=_PAYING)
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


def _mark(paths: Iterable[str]) -> None:
    """Labels of numbers that differ from their defaults stand out.

    By style: Markdown in a label is read out sign by sign, and a longer label would make the row grow
    and move the slider under the hand.
    """
    rows = ", ".join(f".st-key-row_{widget_key(path)} label p" for path in paths)
    st.html(f"<style>{rows or '.none'} {{ color: #2f7fd6; font-weight: 700; }}</style>")


def _reset(group: list[Knob]) -> None:
    settings = state.search_settings()
    for knob in group:
        settings = with_value(settings, knob.path, knob.default)
    state.set_search_settings(settings)


def widget_key(path: str) -> str:
    """The key of a setting's widget; one that is a slider and a box has it as `name`."""
    return "set_" + path.replace(".", "_")


def _controls(group: list[Knob], idle: str, fields: ItemFields | None) -> None:
    """Controls that move something, or nothing for one reason, which is then told once."""
    for knob in group:
        _control(knob, fields)
    if idle and idle != f"{group[0].part} is off":  # its switch is right above
        st.caption(f"{'Moves' if len(group) == 1 else 'These move'} nothing: {idle}.")


def _control(knob: Knob, fields: ItemFields | None) -> None:
    key = widget_key(knob.path)
    label = _part_title(knob.part) if knob.path.endswith(".on") else knob.label
    help = f"{knob.help} Default: {_shown(knob.default)}."
    if knob.idle:
        help += f" **Moves nothing now: {knob.idle}.**"
    common: dict[str, Any] = {"disabled": bool(knob.idle), "help": help}
    if isinstance(knob.default, (int, float)) and not isinstance(knob.default, bool):
        _number(knob, key, label, common)
        return
    if knob.value != knob.default:
        label += f" · default {_shown(knob.default)}"
    shown = show(key, knob.value)
    change: dict[str, Any] = {"key": key, "on_change": lambda: _change(knob.path, st.session_state[key])}
    if isinstance(knob.default, bool):
        st.toggle(label, shown and knob.value, **change, **common)
    elif fields is not None and knob.path in _FIELD_KINDS:
        kind = _FIELD_KINDS[knob.path]
        fitting = [name for name in fields.names if fields.kind(name) == kind]
        names = list(dict.fromkeys(("", *fitting, knob.value)))
        st.selectbox(
            label, names, names.index(knob.value) if shown else 0, format_func=_field_label,
            **change, **common,
        )  # fmt: skip
    elif knob.choices:
        # A name that somebody registered may stand beside those that are built in.
        choices = list(dict.fromkeys((*knob.choices, knob.value)))
        st.selectbox(label, choices, choices.index(knob.value) if shown else 0, **change, **common)
    else:
        st.text_input(label, knob.value if shown else "", **change, **common)


def _field_label(name: str) -> str:
    return as_label(name) if name else "none"


def _part_title(part: str) -> str:
    title = stage_title(part)
    if title == part:
        return part.capitalize() if re.fullmatch("[a-z ]+", part) else plain(part)
    return title


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value:,}" if isinstance(value, int) else str(value) or "blank"


def _number(knob: Knob, key: str, label: str, common: dict[str, Any]) -> None:
    """A slider with a box; where every step would search again, a box alone."""
    kind: Callable[[float], Any] = int if isinstance(knob.default, int) else float
    low, high = kind(knob.low or 0), kind(knob.high if knob.high is not None else 1e9)
    step = kind(1) if kind is int else 0.05
    if knob.replay == "never":
        box(
            key, label, knob.value, low=low, high=high, step=step,
            on_change=lambda value: _change(knob.path, value), **common,
        )  # fmt: skip
        return
    slider_and_box(
        key, label, knob.value, low=low, high=high, usual=kind(3 * knob.default or 10), step=step,
        on_change=lambda value: _change(knob.path, value),
        exact_label=f"{knob.part} {knob.label}, exact value".strip(), box_width=74, **common,
    )  # fmt: skip


def _change(path: str, value: Any) -> None:
    try:
        state.set_search_settings(with_value(state.search_settings(), path, value))
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
            shown = show(key, value)
            if isinstance(value, bool):
                st.toggle(label, shown and value, **common)
            else:
                choices = spec.metadata["choices"]
                st.selectbox(label, choices, choices.index(value) if shown else 0, **common)
        for note in draft.analyzer.notes():
            st.caption(note)
        if differs:
            changed = (path.rpartition(".")[2].replace("_", " ") for path in draft.changes(current))
            st.info(
                f"Not in the index yet: {', '.join(changed)}. Index again to search with these settings."
            )
            with st.container(horizontal=True):
                st.button("Index again", key="reindex", type="primary", on_click=reindex, args=(draft,))
                st.button("Discard", key="discard_draft", on_click=state.set_index_draft, args=(None,))
        else:
            st.caption("Changing these needs the collection to be indexed again.")


def _draft(name: str, key: str) -> None:
    draft = state.index_draft()
    analyzer = dataclasses.replace(draft.analyzer, **{name: st.session_state[key]})
    state.set_index_draft(draft.replace(analyzer=analyzer))
