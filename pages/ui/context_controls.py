"""Who writes the contexts, as widgets. A change moves the draft only: nothing is written or indexed by it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import streamlit as st

from core.contextualizing.prompt import DEFAULT_PROMPT
from core.errors import LlmError, SettingsError
from core.llm import Claude
from core.settings import CONTEXT_WRITERS, PAID_WRITERS, ContextSettings, IndexSettings
from pages.ui import draw, state
from pages.ui.number import box, show
from pages.ui.plain import sentence
from pages.ui.prices import priced_models

_SPECS = {spec.name: spec for spec in fields(ContextSettings)}
_WRITERS = {"none": "None", "headings": "Headings", "claude": "Claude", "endpoint": "Own endpoint"}
_EXAMPLE = "http://127.0.0.1:8080"  # an endpoint needs an address; nothing is sent before one says so


def context_controls() -> IndexSettings:
    """Draw the widgets; gives the draft that they stand for."""
    draft = state.index_draft()
    context = draft.context
    st.markdown("**Contexts**")
    writers = list(_WRITERS)
    st.selectbox(
        "Written by",
        writers,
        writers.index(context.writer) if show("context_writer", context.writer) else 0,
        format_func=_WRITERS.__getitem__,
        key="context_writer",
        on_change=_choose_writer,
        help=_help("writer"),
    )
    st.caption(sentence(CONTEXT_WRITERS[context.writer]))
    if context.writer == "headings":
        _number("opening", context, step=50)
    elif context.writer in PAID_WRITERS:
        _writer(context)
    if context.writer != "none":
        _use(context)
    _difference(draft)
    return draft


def _writer(context: ContextSettings) -> None:
    if context.writer == "endpoint":
        st.text_input(
            "Address",
            context.base_url if show("context_base_url", context.base_url) else "",
            key="context_base_url",
            on_change=_change,
            args=("base_url",),
            help=_help("base_url"),
        )
        _where(context)
    offered = list(dict.fromkeys([*priced_models(), context.model]))
    st.selectbox(
        "Model",
        offered,
        offered.index(context.model) if show("context_model", context.model) else 0,
        key="context_model",
        accept_new_options=True,
        on_change=_change,
        args=("model",),
        help=f"{_help('model')} Those with a known price are listed; type any other id.",
    )
    prompt = context.prompt.strip() or DEFAULT_PROMPT
    st.text_area(
        "Prompt", prompt if show("context_prompt", prompt) else "", key="context_prompt", height=170,
        on_change=_change_prompt, help=_help("prompt"),
    )  # fmt: skip
    if context.prompt.strip():
        st.button(
            "Back to the built-in prompt", key="context_prompt_reset", type="tertiary",
            icon=":material/undo:", on_click=_set, kwargs={"prompt": ""},
        )  # fmt: skip
    _number("max_tokens", context, step=50)
    _number("window", context, step=10_000)


def _where(context: ContextSettings) -> None:
    try:
        client = Claude(context.base_url)
    except LlmError as error:
        draw.notice(str(error), "warning")
        return
    if client.local:
        st.caption(
            "On this machine: nothing leaves it. A local model's contexts are as good as the model."
        )
    else:
        draw.notice(f"Another machine: documents are sent to {client.address}.", "warning")


def _use(context: ContextSettings) -> None:
    st.segmented_control(
        "Place",
        _SPECS["place"].metadata["choices"],
        default=context.place if show("context_place", context.place) else None,
        format_func=lambda place: f"{place.capitalize()} the text",
        key="context_place",
        required=True,
        on_change=_change,
        args=("place",),
        help=_help("place"),
    )
    for name in ("in_vectors", "in_bm25"):
        key, on = f"context_{name}", getattr(context, name)
        st.toggle(
            _SPECS[name].metadata["label"], show(key, on) and on, key=key, on_change=_change, args=(name,),
            help=_help(name),
        )  # fmt: skip
    if not (context.in_vectors or context.in_bm25):
        draw.notice("In neither index: contexts would change nothing.", "warning")


def _number(name: str, context: ContextSettings, step: int) -> None:
    facts = _SPECS[name].metadata
    box(
        f"context_{name}", facts["label"], getattr(context, name), low=int(facts["low"]),
        high=int(facts["high"]), step=step, on_change=lambda value: _set(**{name: value}), help=_help(name),
    )  # fmt: skip


def _help(name: str) -> str:
    default = _SPECS[name].default
    shown = "" if default == "" else f" Default: {default}."
    return _SPECS[name].metadata["help"] + shown


def _choose_writer() -> None:
    writer = st.session_state["context_writer"]
    context = state.index_draft().context
    changes: dict[str, Any] = {"writer": writer}
    if writer == "endpoint" and not context.base_url:
        changes["base_url"] = _EXAMPLE
    _set(**changes)


def _change(name: str) -> None:
    value = st.session_state[f"context_{name}"]
    if isinstance(value, str):
        value = value.strip() or _SPECS[name].default
    if value is not None:
        _set(**{name: value})


def _change_prompt() -> None:
    text = st.session_state["context_prompt"].strip()
    _set(prompt="" if text == DEFAULT_PROMPT else text)


def _set(**changes: Any) -> None:
    draft = state.index_draft()
    try:
        use_context(draft.context.replace(**changes))
    except SettingsError as error:
        state.notify(str(error))


def use_context(context: ContextSettings) -> None:
    """Put these context settings into the draft."""
    made = state.index_draft().replace(context=context)
    state.set_index_draft(None if made == state.index_settings() else made)


def _difference(draft: IndexSettings) -> None:
    if draft.context == state.index_settings().context:
        st.caption("The index has these settings. Moving them writes and indexes nothing.")
        return
    st.caption("Not in the index yet. Moving these settings writes and indexes nothing.")
    st.button(
        "Back to the index's settings",
        key="context_reset",
        type="tertiary",
        icon=":material/undo:",
        on_click=_reset,
    )


def _reset() -> None:
    use_context(state.index_settings().context)
