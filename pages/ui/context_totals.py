"""What contexts came to: tokens, cache, US dollars, estimated against actual; and what is no longer needed."""

from __future__ import annotations

import streamlit as st

from core.contextualizing.store import USABLE, Totals
from core.errors import RankscopeError
from core.settings import ContextSettings
from pages.ui import context_desk, draw, state
from pages.ui.context_controls import use_context
from pages.ui.context_desk import Forecast
from pages.ui.context_plan import say
from pages.ui.context_progress import told_apart, writer_name
from pages.ui.context_work import Bench
from pages.ui.plain import counted, plain
from pages.ui.prices import dollars


def totals_panel(bench: Bench) -> None:
    """A line for each writer that was asked, and the sum; nothing where none was."""
    writers = bench.store.writers()
    totals = {key: bench.store.totals(key) for key in writers}
    totals = {key: found for key, found in totals.items() if found.answers or found.states}
    if not totals:
        return
    whole = bench.store.totals()
    label = f"Paid so far: {dollars(whole.dollars)} for {counted(whole.answers, 'answer')}"
    with st.expander(label, key="context_totals"):
        rows = [_row(writer_name(writers[key]), found) for key, found in totals.items()]
        if len(rows) > 1:
            rows.append(_row("All", whole))
        heads = ("Writer", "Contexts", "Answers", "Tokens in", "of them cache writes", "cache reads",
                 "Hit rate", "Tokens out", "Cost")  # fmt: skip
        draw.table(heads, rows, numeric=range(1, len(heads)))
        for key, found in totals.items():
            if told := _against(context_desk.forecast(bench.collection, key), found):
                draw.text(f"{writer_name(writers[key])}: {told}", "rs-quiet")
        if whole.unpriced:
            draw.text(
                f"{counted(whole.unpriced, 'answer')} of models without a known price not counted in.",
                "rs-quiet",
            )
        draw.text(
            "Answers that could not be used, or were replaced, are paid too and counted here.",
            "rs-quiet",
        )
        _removed(bench)


def _row(name: str, found: Totals) -> tuple[str, ...]:
    used = found.usage
    usable = sum(found.states.get(one, 0) for one in USABLE)
    cost = dollars(found.dollars) if found.answers > found.unpriced else "—"
    return (
        name, f"{usable:,}", f"{found.answers:,}", f"{used.prompt:,}",
        f"{used.cache_write + used.cache_write_1h:,}", f"{used.cache_read:,}",
        f"{found.cache_hit_rate:.0%}", f"{used.output:,}", cost,
    )  # fmt: skip


def _against(forecast: Forecast | None, found: Totals) -> str:
    """Estimated against actual, of the latest writing."""
    if forecast is None or forecast.expected is None:
        return ""
    actual = found.dollars - forecast.paid_before
    how = "in batches" if forecast.how == "batch" else "live"
    return (
        f"the latest writing ({counted(forecast.chunks, 'chunk')}, {how}) was estimated at "
        f"{dollars(forecast.expected)}; {dollars(actual)} are paid for it so far."
    )


def _removed(bench: Bench) -> None:
    gone = bench.store.orphans(bench.documents)
    if not gone:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="context_orphans"):
        draw.text(
            f"Contexts of {counted(len(gone), 'document')} that are no longer in the collection are kept: the "
            "same text uploaded again has them at once.",
            "rs-quiet",
        )
        sure = st.session_state.get("context_forget_sure") == len(gone)
        if sure:
            st.button(
                "Delete what was paid for", key="context_forget", type="primary", on_click=_forget, args=(bench, gone)
            )  # fmt: skip
            st.button("Keep", key="context_forget_no", on_click=_unsure)
        else:
            st.button("Delete them …", key="context_forget_ask", on_click=_sure, args=(len(gone),))


def _sure(count: int) -> None:
    st.session_state["context_forget_sure"] = count


def _unsure() -> None:
    st.session_state.pop("context_forget_sure", None)


def _forget(bench: Bench, gone: set[str]) -> None:
    _unsure()
    try:
        bench.store.forget(gone)
    except RankscopeError as error:
        say(str(error))


def earlier_writers(bench: Bench) -> None:
    """Contexts that were written before with other settings than those chosen: offered, as they are paid."""
    chosen = bench.settings.writer_key
    for key, settings in reversed(bench.store.writers().items()):
        if key == chosen:
            continue
        usable = sum(bench.store.totals(key).states.get(one, 0) for one in USABLE)
        if not usable:
            continue
        with st.container(horizontal=True, vertical_alignment="center", key=f"context_earlier_{key}"):
            by = told_apart(settings, bench.settings)
            draw.notice(
                f"{counted(usable, 'context')} by {by} were written before and are kept.", "info"
            )
            st.button(
                "Choose this writer", key=f"context_use_{key}", on_click=_use, args=(settings,),
                help=f"Sets {plain(settings.model)} with its prompt at the left; writes nothing",
            )  # fmt: skip
        return  # the latest; the others follow when it is chosen


def _use(settings: ContextSettings) -> None:
    now = state.index_draft().context
    use_context(settings.replace(place=now.place, in_vectors=now.in_vectors, in_bm25=now.in_bm25))
