"""Before paying: what would be written, what goes where, what it costs live and in batches."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from html import escape

import streamlit as st

from core.contextualizing.job import writer_client
from core.contextualizing.plan import Plan, Range, make_plan
from core.errors import RankscopeError
from core.home import home
from core.llm import Claude, missing_key
from core.prices import Prices
from pages.ui import context_desk, draw, state
from pages.ui.context_marks import facts
from pages.ui.context_work import Bench, work_of
from pages.ui.meter import Meter, duration
from pages.ui.number import show
from pages.ui.plain import counted
from pages.ui.prices import dollars, prices

Working = Callable[[], None]


def plan_panel(bench: Bench) -> Working | None:
    """Draw the plan of what is left; gives the work that was asked for."""
    known = prices()
    client = writer_client(bench.settings)
    work = work_of(bench)
    plan = make_plan(work, bench.settings, known, bench.store.seen(bench.settings.model))
    with st.container(key="context_plan"):
        _standing(bench, plan)
        if not plan.chunks:
            return None
        address = bench.settings.base_url if bench.settings.writer == "endpoint" else ""
        needed = missing_key(address)
        if needed:
            draw.notice(
                f"{needed} The plan below is what it would come to; headings as contexts, and all else "
                "here, work without a key.",
                "info",
            )
        with st.container(
            horizontal=True, vertical_alignment="bottom", gap="medium", key="context_sent"
        ):
            draw.text(_sent(bench, plan, client), "rs-lead")
            cap = _cap(bench, plan) if plan.live else None
        asked = _offers(bench, plan, cap, bool(needed), client)
        counting = _details(bench, plan, known, bool(needed))
    return asked or counting


def _standing(bench: Bench, plan: Plan) -> None:
    told = [
        (f"{bench.chunks:,}", f"chunks of {counted(len(bench.documents), 'document')}"),
        (f"{plan.chunks:,}", "to write"),
    ]
    if plan.done:
        told.append((f"{plan.done:,}", "written or decided already: not paid for again"))
    if plan.waiting:
        told.append((f"{plan.waiting:,}", "in batches under way"))
    if plan.whole:
        told.append((f"{plan.whole:,}", "are a whole document: they need none"))
    facts(told, "context-standing")
    if bench.draft.chunking != state.index_settings().chunking:
        st.caption(
            "Counted as the Chunks page's draft cuts the documents, which is not how the index was cut."
        )


def _sent(bench: Bench, plan: Plan, client: Claude) -> str:
    what = f"the text of {counted(plan.documents, 'document')} and the prompt"
    go = f"Writing sends {what} to {client.address}"
    if client.local:
        return f"{go}, on this machine: nothing leaves it."
    return f"{go}, for the model {bench.settings.model}; nothing else, and nothing before you press a button."


def _cap(bench: Bench, plan: Plan) -> float | None:
    """The limit in US dollars: what the plan says at most, until the person sets another."""
    key, wanted = "context_cap", "context_cap_own"
    own: dict[str, float] = st.session_state.setdefault(wanted, {})
    name = bench.settings.writer_key
    highest = max(cost.high for cost in (plan.live, plan.batch) if cost)
    usual = math.ceil(highest * 100 + 1) / 100
    show(key, own.get(name, usual))

    def changed() -> None:
        value = st.session_state[key]
        if value is None:
            own.pop(name, None)
        else:
            own[name] = value

    return st.number_input(
        "Stop at (USD)", 0.01, 100_000.0, step=0.05, format="%.2f", key=key, on_change=changed, width=170,
        help="No call begins that could bring the run above this; a batch whose highest cost is above it "
        "is not handed over. Preset to the plan's highest cost. Go on later, from where it stopped.",
    )  # fmt: skip


def _offers(bench: Bench, plan: Plan, cap: float | None, closed: bool, client: Claude) -> Working | None:
    own = bench.settings.writer == "endpoint"
    # A server on this machine costs nothing, whatever its model is called.
    free = client.local and own and plan.live is None
    live, batch = st.columns(2, gap="medium", border=True)
    again = bool(plan.done)
    with live:
        _offer("Live", _between(plan.seconds), plan.live, free, plan.rough)
        draw.text("Starts at once; can be paused, stopped and gone on with at any time.", "rs-quiet")
        label = (
            f"Resume: write the other {plan.chunks:,}"
            if again
            else f"Write {counted(plan.chunks, 'context')}"
        )
        start = st.button(
            label, key="context_start", type="primary", icon=":material/edit_note:", disabled=closed,
            help="Each context is kept on disk as soon as it is there",
        )  # fmt: skip
    with batch:
        _offer("Batch", "within a day, most within the hour", plan.batch, free, plan.rough)
        draw.text(
            "Needs a server that takes batches; many local ones do not."
            if own
            else "Half price a token, but finding the document in the cache is luck, and not counted on. "
            "Goes on while this app is closed.",
            "rs-quiet",
        )
        submit = st.button(
            f"Submit {counted(plan.chunks, 'chunk')} as a batch", key="context_submit", icon=":material/schedule_send:",
            disabled=closed, help="Checked for here, by itself, while this page is open",
        )  # fmt: skip
    if start:
        return partial(_begin, bench, cap)
    if submit:
        return partial(_submit, bench, cap)
    return None


def _offer(title: str, time: str, cost: Range | None, free: bool, rough: bool) -> None:
    if cost is not None:
        between = f"{dollars(cost.low)} to {dollars(cost.high)}" + (", rough" if rough else "")
        price = f"≈ {escape(dollars(cost.expected))} <small>{escape(between)}</small>"
    else:
        price = "free <small>your own server</small>" if free else "price not known"
    st.html(
        f'<div class="rs-offer-head"><b>{escape(title)}</b><span class="rs-quiet">{escape(time)}</span></div>'
        f'<p class="rs-price">{price}</p>'
    )


def _between(seconds: tuple[float, float]) -> str:
    low, high = (duration(one) for one in seconds)
    return f"about {low}" if low == high else f"{low} to {high}"


def _details(bench: Bench, plan: Plan, known: Prices, closed: bool) -> Working | None:
    rough = plan.rough
    mark = "≈ " if rough else ""
    with st.expander("How this is counted", key="context_details"):
        rows = [
            ("Documents to send", f"{plan.documents:,}", _sizes(plan)),
            ("Cache writes", f"{plan.writes:,}", f"{mark}{plan.cache_write:,} tokens: once a document or window"),
            ("Cache reads", f"{plan.reads:,}", f"{mark}{plan.cache_read:,} tokens: the other chunks of it"),
            ("Read in full", "", f"{mark}{plan.input:,} tokens: chunks, prompts, what is not cached"),
            ("To be written", f"{plan.chunks:,}", f"≈ {plan.output:,} tokens: the contexts"),
        ]  # fmt: skip
        draw.table(("", "", ""), rows, numeric=(1,))
        draw.text(_prices_from(bench, known, plan), "rs-quiet")
        if not rough:
            draw.text("Tokens of the documents as the model's server counted them.", "rs-quiet")
            return None
        with st.container(horizontal=True, vertical_alignment="center"):
            draw.text(
                "Rough: tokens are taken as a third of the bytes, which is more than most models count.",
                "rs-quiet",
            )
            pressed = st.button(
                "Count exactly", key="context_count", disabled=closed,
                help="Free of charge: the model's server counts each document, whose text goes there for it",
            )  # fmt: skip
        place = st.empty()
    return partial(_count, bench, place) if pressed else None


def _sizes(plan: Plan) -> str:
    parts = []
    if plan.below_floor:
        parts.append(
            f"{counted(plan.below_floor, 'document')} too short for the model's cache: sent in full each time"
        )
    if plan.single:
        parts.append(f"{plan.single:,} with one chunk to write: not cached")
    if plan.windowed:
        parts.append(f"{plan.windowed:,} longer than the window: sent in overlapping parts")
    return "; ".join(parts)


def _prices_from(bench: Bench, known: Prices, plan: Plan) -> str:
    where = f"Copy the app's data/prices.toml to {home() / 'prices.toml'} to use your own."
    if plan.live is None:
        return f"No price of {bench.settings.model} is in the price list of {known.date}. {where}"
    return (
        f"US dollars at the prices of {known.date}; the range is for contexts of 50 tokens at least and "
        f"{bench.settings.max_tokens} at most. {where}"
    )


def _begin(bench: Bench, cap: float | None) -> None:
    _do("Asking the server about the model …", lambda: context_desk.begin(bench, cap))


def _submit(bench: Bench, cap: float | None) -> None:
    _do("Handing the chunks over …", lambda: context_desk.hand_over(bench, cap))


def _do(what: str, work: Callable[[], object]) -> None:
    try:
        with st.spinner(what, show_time=True):
            work()
    except RankscopeError as error:
        say(str(error))
    st.rerun()


def _count(bench: Bench, place: st.delta_generator.DeltaGenerator) -> None:
    with place.container():
        meter = Meter("Counting", "documents")
    try:
        context_desk.count(bench, meter)
    except RankscopeError as error:
        say(str(error))
    st.rerun()


def say(message: str) -> None:
    """Keep a message for the panel of the run."""
    st.session_state["context_said"] = message


def take_said() -> str:
    return st.session_state.pop("context_said", "")
