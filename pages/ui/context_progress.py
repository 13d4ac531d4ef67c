"""While contexts are written: a job's or a batch's progress, what failed, and what can be done about it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import streamlit as st

from core.collection import Collection
from core.contextualizing import batch
from core.contextualizing.job import Failure, Snapshot
from core.contextualizing.store import BatchRow, ContextStore
from core.errors import RankscopeError
from core.llm import Claude
from core.report.tables import item_label
from core.settings import ContextSettings
from pages.ui import context_desk, draw
from pages.ui.context_desk import Run
from pages.ui.context_marks import facts
from pages.ui.context_plan import say
from pages.ui.context_work import Bench
from pages.ui.meter import duration
from pages.ui.plain import counted, sentence
from pages.ui.prices import dollars, prices

_LOOK = 1.0  # seconds between two looks at a job
_POLL = 20.0  # at a batch, which takes minutes at least
_LISTED = 20  # failures named at a time
_SENT = ("sending", "in_progress", "canceling")


def run_panel(bench: Bench) -> bool:
    """The job of the collection, if there is one; whether it is under way."""
    run = context_desk.run_of(bench.collection)
    if run is None:
        return False
    if run.job.running:
        # Redrawn by itself; whatever else is touched on the page cuts nothing.
        st.fragment(partial(_running, bench, run), run_every=_LOOK)()
        return True
    with st.container(key="context_run"):
        _ended(bench, run)
    return False


def _running(bench: Bench, run: Run) -> None:
    if not run.job.running:
        st.rerun()
    now = run.job.snapshot()
    with st.container(key="context_run"):
        st.progress(min(now.done / now.total, 1.0) if now.total else 1.0, _counts(now))
        _figures(now)
        with st.container(horizontal=True, vertical_alignment="center", key="context_run_do"):
            if now.state == "paused":
                st.button("Resume", key="context_resume", type="primary", on_click=run.job.resume)
            else:
                st.button(
                    "Pause", key="context_pause", on_click=run.job.pause,
                    help="No further call begins; those under way still end",
                )  # fmt: skip
            st.button(
                "Stop", key="context_stop", on_click=run.job.stop,
                help="What is written is kept; go on with the rest whenever you like",
            )  # fmt: skip
            draw.text(_who(run), "rs-quiet")
        if now.state == "paused" and now.reason != "paused by you":
            draw.notice(sentence(f"Paused: {now.reason}"), "warning")
        for note in now.notes:
            draw.notice(sentence(note), "info")
        _failures(bench, run, now)


def _counts(now: Snapshot) -> str:
    parts = [
        "Paused" if now.state == "paused" else "Writing",
        f"{now.done:,} of {now.total:,} contexts",
    ]
    if now.failed:
        parts.append(f"{len(now.failed):,} failed")
    if now.left_seconds is not None and now.state == "running":
        parts.append(f"about {duration(now.left_seconds)} left")
    return " · ".join(parts)


def _figures(now: Snapshot) -> None:
    cost = dollars(now.dollars)
    if now.cap is not None:
        cost += f" of {dollars(now.cap)}"
    told = [
        ("cost so far", cost),
        ("cache hit rate", f"{now.cache_hit_rate:.0%}" if now.usage.prompt else "—"),
        ("chunks a second", f"{now.rate / 60:.1f}" if now.done else "—"),
        ("tokens in", f"{now.usage.prompt:,}"),
        ("out", f"{now.usage.output:,}"),
    ]
    if now.unsure:
        told.append(("at most, for answers that were lost", dollars(now.unsure)))
    facts([(figure, what) for what, figure in told])


def _ended(bench: Bench, run: Run) -> None:
    now = run.job.snapshot()
    cost = f" for {dollars(now.dollars)}" if now.dollars else ""
    told = f"{now.done:,} of {counted(now.total, 'context')} written{cost}"
    if now.seconds >= 1:
        told += f" in {duration(now.seconds)}"
    if now.usage.prompt:
        told += f", cache hit rate {now.cache_hit_rate:.0%}"
    if run.draft.context.writer_key != bench.settings.writer_key:
        told += f", by {told_apart(run.draft.context, bench.settings)}"
    with st.container(horizontal=True, vertical_alignment="center", key="context_ended"):
        match "done" if now.done + len(now.failed) == now.total else now.state:
            case "done":
                draw.notice(f"Done: {told}.", "info")
            case "stopped":
                draw.notice(f"Stopped: {told}. The rest can be written whenever you like.", "info")
            case "capped":
                draw.notice(f"Stopped at the limit: {told}. {sentence(now.reason)}", "warning")
            case _:
                draw.notice(f"Could not go on: {told}. {sentence(now.reason)}", "error")
        st.button(
            "Close", key="context_close", type="tertiary", on_click=context_desk.put_away, args=(bench.collection,)
        )  # fmt: skip
    _failures(bench, run, now)


def _failures(bench: Bench, run: Run, now: Snapshot) -> None:
    failed = now.failed
    if not failed:
        return
    again = sum(one.again for one in failed)
    with st.container(horizontal=True, vertical_alignment="center", key="context_failed"):
        draw.notice(f"{len(failed):,} of {counted(now.total, 'chunk')} failed.", "warning")
        if again:
            st.button(
                f"Retry {'these' if again == len(failed) else f'{again:,} of them'}",
                key="context_retry",
                type="primary",
                on_click=_retry,
                args=(run,),
                help="Asks for these chunks alone",
            )
    with st.expander("Which, and why", key="context_failed_list"):
        draw.table(
            ("Document", "Chunk", "Reason"),
            [(one.name, _label(bench, one), one.reason) for one in failed[:_LISTED]],
        )
        if len(failed) > _LISTED:
            draw.text(f"and {len(failed) - _LISTED:,} more", "rs-quiet")
        if again < len(failed):
            draw.text(
                "Where the model refused, or the request is too large, asking again changes nothing: write "
                "the context yourself below, or use another model or window.",
                "rs-quiet",
            )


def _label(bench: Bench, failure: Failure) -> str:
    """B4: the fourth chunk of the second document, as everywhere; the span where it is cut otherwise now."""
    spans = bench.spans[failure.item] if failure.item < len(bench.spans) else ()
    span = (failure.start, failure.end)
    if span in spans:
        return f"{item_label(failure.item)}{spans.index(span) + 1}"
    return f"{failure.start:,}–{failure.end:,}"


def _retry(run: Run) -> None:
    try:
        run.job.retry_failed()
    except RankscopeError as error:
        say(str(error))


def _who(run: Run) -> str:
    return writer_name(run.draft.context)


def writer_name(settings: ContextSettings) -> str:
    """A writer in a few words."""
    if settings.writer == "headings":
        return "headings"
    parts = [settings.model]
    if settings.writer == "endpoint":
        parts.append(f"at {settings.base_url}")
    if settings.prompt.strip():
        parts.append("with a prompt of your own")
    return " ".join(parts)


def told_apart(settings: ContextSettings, chosen: ContextSettings) -> str:
    """A writer in a few words, with what sets it apart from the chosen one where these words are the same."""
    name = writer_name(settings)
    if name != writer_name(chosen):
        return name
    apart = {
        "another prompt": settings.prompt.strip() != chosen.prompt.strip(),
        f"longest context {settings.max_tokens:,}": settings.max_tokens != chosen.max_tokens,
        f"window {settings.window:,}": settings.window != chosen.window,
    }
    listed = ", ".join(told for told, differs in apart.items() if differs)
    return f"{name} ({listed})" if listed else name


# Batches


def batch_panel(bench: Bench) -> None:
    """Batches under way, whichever writer they are for, and what became of the latest."""
    rows = bench.store.batches()
    if not rows:
        return
    waiting = [row for row in rows if row.status in _SENT]
    if any(row.status != "sending" for row in waiting):
        st.fragment(partial(_waiting, bench.collection, bench.store), run_every=_POLL)()
    elif waiting:
        _waiting(bench.collection, bench.store)
    else:
        _collected(bench, rows)


def _waiting(collection: Collection, store: ContextStore, asked: bool = False) -> None:
    rows = store.batches()
    open_ones = [row for row in rows if row.status in _SENT]
    trouble = ""
    if any(row.status != "sending" for row in open_ones) and _due(collection):
        try:
            rows = _look(store)
        except RankscopeError as error:
            trouble = str(error)
        open_ones = [row for row in rows if row.status in _SENT]
    if not open_ones:
        st.rerun()
    with st.container(key="context_batches"):
        if trouble:
            draw.notice(f"The batches could not be looked at: {trouble}", "warning")
        for row in open_ones:
            _batch(store, row)
        with st.container(horizontal=True, vertical_alignment="center", key="context_batches_do"):
            st.button(
                "Check now", key="context_check", on_click=_forget_look, args=(collection,), icon=":material/refresh:"
            )  # fmt: skip
            draw.text(
                f"Looked at {_ago(collection)}, and every {_POLL:.0f} s while this page is open. Results are "
                "fetched then; closing the page or the app loses none.",
                "rs-quiet",
            )


def _batch(store: ContextStore, row: BatchRow) -> None:
    chunks = len(store.batch_chunks(row.id))
    with st.container(horizontal=True, vertical_alignment="center", key=f"context_batch_{row.id}"):
        if row.status == "sending":
            draw.notice(
                f"A batch of {counted(chunks, 'chunk')} was sent on {_day(row.at)} and no answer came: the "
                "server may have it, and bill it, or not. See your account; its chunks are not asked for "
                "again until you give it up.",
                "warning",
            )
            st.button(
                "Give it up", key=f"context_give_up_{row.id}", on_click=_give_up, args=(store, row.id)
            )
            return
        doing = "is being cancelled" if row.status == "canceling" else "is being written"
        until = f" · ends by {_day(row.expires_at)}" if row.expires_at else ""
        draw.notice(
            f"A batch of {counted(chunks, 'chunk')} {doing} · submitted {_day(row.at)}{until}", "info"
        )
        st.button(
            "Cancel", key=f"context_cancel_{row.id}", type="tertiary", disabled=row.status == "canceling",
            on_click=_cancel, args=(store, row), help="What is answered by then is paid, and kept",
        )  # fmt: skip


def _day(at: str) -> str:
    return f"{at[:16].replace('T', ' ')} UTC"


@st.cache_resource(show_spinner=False)
def _looks() -> dict[str, float]:
    """When each collection's batches were looked at last, in whichever window."""
    return {}


def _due(collection: Collection) -> bool:
    looks, now = _looks(), time.monotonic()
    if now - looks.get(collection.id, -_POLL) < _POLL - 1:
        return False
    looks[collection.id] = now
    return True


def _forget_look(collection: Collection) -> None:
    _looks().pop(collection.id, None)


def _ago(collection: Collection) -> str:
    seconds = time.monotonic() - _looks().get(collection.id, time.monotonic())
    return "just now" if seconds < 3 else f"{seconds:.0f} s ago"


def _look(store: ContextStore) -> list[BatchRow]:
    """Ask each server that has a batch of ours."""
    writers = store.writers()
    addresses = {
        _address(writers[row.writer_key])
        for row in store.batches()
        if row.status in _SENT and row.status != "sending"
    }
    rows = store.batches()
    for address in sorted(addresses):
        rows = batch.refresh(store, Claude(address, retries=1), prices())
    return rows


def _address(settings: ContextSettings) -> str:
    return settings.base_url if settings.writer == "endpoint" else ""


def _cancel(store: ContextStore, row: BatchRow) -> None:
    try:
        batch.cancel(Claude(_address(store.writers()[row.writer_key]), retries=1), row.id)
        _looks().clear()
    except RankscopeError as error:
        say(str(error))


def _give_up(store: ContextStore, name: str) -> None:
    try:
        batch.give_up(store, name)
    except RankscopeError as error:
        say(str(error))


def _collected(bench: Bench, rows: Sequence[BatchRow]) -> None:
    """What went wrong in the latest batch of this writer: the rest is in the plan and below."""
    mine = [row for row in rows if row.writer_key == bench.settings.writer_key]
    if not mine:
        return
    last = mine[-1]
    if last.status == "lost":
        draw.notice(
            f"The server no longer knows the batch of {_day(last.at)}: its chunks are to be written again.",
            "warning",
        )
        return
    failed = batch.failures(bench.store, last.id)
    here = {text: item for item, text in enumerate(bench.store.text_hashes(bench.documents))}
    settled = bench.store.settled(bench.settings.writer_key)
    failed = [
        one
        for one in failed
        if one.text_hash in here and (one.start, one.end) not in settled.get(one.text_hash, ())
    ]
    if not failed:
        return
    total = len(bench.store.batch_chunks(last.id))
    draw.notice(
        f"{len(failed):,} of {counted(total, 'chunk')} of the batch of {_day(last.at)} failed; they are "
        "among those to write.",
        "warning",
    )
    with st.expander("Which, and why", key="context_batch_failed"):
        listed = []
        for one in failed[:_LISTED]:
            item = here[one.text_hash]
            failure = Failure(item, bench.documents.names[item], one.start, one.end, one.outcome, True)
            listed.append((failure.name, _label(bench, failure), failure.reason or "no answer"))
        draw.table(("Document", "Chunk", "Reason"), listed)
        if len(failed) > _LISTED:
            draw.text(f"and {len(failed) - _LISTED:,} more", "rs-quiet")
