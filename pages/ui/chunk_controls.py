"""How documents are cut, as widgets. A change moves the draft only: nothing is indexed by it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import streamlit as st

from core.errors import SettingsError
from core.settings import STRATEGIES, ChunkSettings, IndexSettings
from pages.ui import state
from pages.ui.number import show, slider_and_box
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
    value, choices = getattr(chunking, name), _SPECS[name].metadata["choices"]
    words = _text(name) | ({"help": help} if help else {})
    st.selectbox(
        options=choices,
        index=choices.index(value) if show(key, value) else 0,
        key=key,
        on_change=lambda: _change(name, st.session_state[key]),
        **words,
    )


def _number(name: str, chunking: ChunkSettings, usual: int) -> None:
    facts = _SPECS[name].metadata
    slider_and_box(
        f"chunk_{name}", value=getattr(chunking, name), low=int(facts["low"]), high=int(facts["high"]),
        usual=usual, step=1, on_change=lambda value: _change(name, value),
        exact_label=f"{facts['label']}, exact value", box_width=104, **_text(name),
    )  # fmt: skip


def _change(name: str, value: Any) -> None:
    draft = state.index_draft()
    changes: dict[str, Any] = {name: value}
    size = changes.get("size", draft.chunking.size)
    changes["overlap"] = min(changes.get("overlap", draft.chunking.overlap), size - 1)
    _set(draft, chunking=draft.chunking.replace(**changes))


def _model(draft: IndexSettings) -> None:
    st.text_input(
        "Embedding model",
        draft.model if show("chunk_model", draft.model) else "",
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
