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
    _select(
        "strategy", chunking, help="; ".join(f"**{name}**: {what}" for name, what in STRATEGIES.items())
    )
    st.caption(STRATEGIES[chunking.strategy])
    _select("unit", chunking)
    reach = _REACH[chunking.unit]
    _number("size", chunking, max(reach, chunking.size))
    _number("overlap", chunking, max(min(reach // 2, chunking.size - 1), chunking.overlap, 1))
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
    st.session_state[key] = getattr(chunking, name)
    words = _text(name) | ({"help": help} if help else {})
    st.selectbox(
        options=_SPECS[name].metadata["choices"], key=key, on_change=_change, args=(name, key), **words
    )


def _number(name: str, chunking: ChunkSettings, reach: int) -> None:
    facts = _SPECS[name].metadata
    low, high = int(facts["low"]), int(facts["high"])
    if name == "overlap":
        high = min(high, chunking.size - 1)
    slider, box = f"chunk_{name}", f"chunk_{name}_exact"
    st.session_state[slider] = st.session_state[box] = getattr(chunking, name)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key=f"row_{slider}"):
        step = 1 if name == "breakpoint_percentile" or chunking.unit == "tokens" else 10
        st.slider(
            min_value=low, max_value=reach, step=1 if reach < 100 else step, key=slider,
            on_change=_change, args=(name, slider), **_text(name),
        )  # fmt: skip
        st.number_input(
            f"{facts['label']}, exact value", low, high, step=1, key=box,
            on_change=_change, args=(name, box), label_visibility="collapsed", width=104,
        )  # fmt: skip


def _change(name: str, key: str) -> None:
    draft = state.index_draft()
    changes: dict[str, Any] = {name: st.session_state[key]}
    size = changes.get("size", draft.chunking.size)
    if draft.chunking.overlap >= size:
        changes["overlap"] = size - 1
    _set(draft, chunking=draft.chunking.replace(**changes))


def _model(draft: IndexSettings) -> None:
    st.session_state["chunk_model"] = draft.model
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
