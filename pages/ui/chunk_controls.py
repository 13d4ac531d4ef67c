"""How documents are cut, as widgets. A change moves the draft only: nothing is indexed by it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import streamlit as st

from core.errors import SettingsError
from core.settings import STRATEGIES, ChunkSettings, IndexSettings
from pages.ui import state
from pages.ui.plain import plain

_SPECS = {spec.name: spec for spec in fields(ChunkSettings)}
_REACH = {"characters": 4_000, "tokens": 1_000}  # a slider's usual end; the box beside it goes further


def chunk_controls() -> IndexSettings:
    """Draw the widgets; gives the draft that they stand for."""
    draft = state.index_draft()
    chunking = draft.chunking
    st.markdown("**Cutting**")
    _select(
        "strategy", chunking, help="; ".join(f"**{name}**: {what}" for name, what in STRATEGIES.items())
    )
    st.caption(STRATEGIES[chunking.strategy])
    _select("unit", chunking)
    _number("size", chunking, _REACH[chunking.unit])
    _number("overlap", chunking, _REACH[chunking.unit] // 2)
    if chunking.strategy == "semantic":
        _number("breakpoint_percentile", chunking, 99)
    _model(draft)
    _differences(draft)
    return draft


def _text(name: str) -> dict[str, Any]:
    facts = _SPECS[name].metadata
    return {"label": facts["label"], "help": f"{facts['help']} Default: {_SPECS[name].default}."}


def _select(name: str, chunking: ChunkSettings, help: str = "") -> None:
    key = f"chunk_{name}"
    _sync(key, getattr(chunking, name))
    words = _text(name) | ({"help": help} if help else {})
    st.selectbox(
        options=_SPECS[name].metadata["choices"],
        key=key,
        on_change=_change,
        args=(name, key),
        **words,
    )


def _number(name: str, chunking: ChunkSettings, usual: int) -> None:
    """A slider up to the usual end, or to the value beyond it, and a box that takes any allowed value."""
    facts = _SPECS[name].metadata
    low, high = int(facts["low"]), int(facts["high"])
    value = getattr(chunking, name)
    reach = max(usual, value)
    slider, box = _key(f"chunk_{name}_to_{reach}", value), _key(f"chunk_{name}_exact", value)
    row = f"row_chunk_{name}"
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key=row):
        st.slider(
            min_value=low, max_value=reach, value=value, step=10 if reach > 1_000 else 1, key=slider,
            on_change=_change_number, args=(name, slider), **_text(name),
        )  # fmt: skip
        st.number_input(
            f"{facts['label']}, exact value", low, high, value, step=1, key=box,
            on_change=_change_number, args=(name, box), label_visibility="collapsed", width=104,
        )  # fmt: skip


def _key(base: str, value: int) -> str:
    """The widget's key: another one, and so a fresh widget, once it shows something else than the value.

    To set the value of a widget that mirrors another would have the browser report what it showed
    before as a change, and quick steps of a slider would undo each other.
    """
    turns: dict[str, int] = st.session_state.setdefault("chunk_turns", {})
    key = f"{base}_{turns.setdefault(base, 0)}"
    if st.session_state.get(key, value) != value:
        turns[base] += 1
        key = f"{base}_{turns[base]}"
    return key


def _sync(key: str, value: Any) -> None:
    """Show the value. Left alone where it is shown: to set it would undo what is typed meanwhile."""
    if st.session_state.get(key) != value:
        st.session_state[key] = value


def _change_number(name: str, key: str) -> None:
    base, _, turn = key.rpartition("_")
    if st.session_state["chunk_turns"][base] == int(
        turn
    ):  # else a widget that was replaced reports late
        _change(name, key)


def _change(name: str, key: str) -> None:
    draft = state.index_draft()
    changes: dict[str, Any] = {name: st.session_state[key]}
    size = changes.get("size", draft.chunking.size)
    changes["overlap"] = min(changes.get("overlap", draft.chunking.overlap), size - 1)
    _set(draft, chunking=draft.chunking.replace(**changes))


def _model(draft: IndexSettings) -> None:
    _sync("chunk_model", draft.model)
    st.text_input(
        "Embedding model",
        key="chunk_model",
        on_change=_change_model,
        help="The packaged model, or any sentence-transformers model id or folder. "
        f"Default: {IndexSettings().model}.",
    )


def _change_model() -> None:
    name = st.session_state["chunk_model"].strip() or IndexSettings().model
    _set(state.index_draft(), model=name)


def _set(draft: IndexSettings, **changes: Any) -> None:
    try:
        made = draft.replace(**changes)
    except SettingsError as error:
        state.notify(str(error))
        return
    state.set_index_draft(None if made == state.index_settings() else made)


def _differences(draft: IndexSettings) -> None:
    """What would change against the index as it is."""
    current = state.index_settings()
    changed = draft.changes(current)
    if not changed:
        st.caption("These are the settings of the index.")
        return
    before = current.changes(draft)
    lines = [
        f"{_name(path)}: {plain(str(before[path]))} → {plain(str(value))}"
        for path, value in changed.items()
    ]
    st.markdown("**Not in the index yet**\n\n" + "\n".join(f"- {line}" for line in lines))
    st.button(
        "Back to the index's settings",
        key="chunk_reset",
        type="tertiary",
        on_click=state.set_index_draft,
        args=(None,),
    )


def _name(path: str) -> str:
    last = path.rpartition(".")[2]
    return _SPECS[last].metadata["label"] if last in _SPECS else last.replace("_", " ").capitalize()
