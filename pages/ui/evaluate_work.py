"""Evaluations under way: one of each kind for a collection, and for what of it is seen, in this process,
whichever window began it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

import streamlit as st

from core.collection import Collection
from core.errors import RankscopeError, Stopped
from core.evaluation.corpora import Telling
from pages.ui import draw, people
from pages.ui.meter import duration, time_left
from pages.ui.plain import sentence

T = TypeVar("T")
_LOOK = 1.0  # seconds between two looks at what is under way


@dataclass(frozen=True, eq=False)
class Finished(Generic[T]):
    """What an evaluation gave, and the `stamp` of what it was made from. `kept` is for figures drawn from it."""

    result: T
    stamp: str
    seconds: float
    kept: dict[Any, Any] = field(default_factory=dict)


@dataclass
class Work:
    """An evaluation in a thread of its own. `so_far` are results before the last, which the page draws;
    `said` is its progress, `trouble` why it ended without a result."""

    so_far: list[Any] = field(default_factory=list)
    said: tuple[str, int, int] = ("Starting", 0, 0)
    trouble: str = ""
    stopped: bool = False
    running: bool = True
    begun: float = field(default_factory=time.monotonic)
    phase: tuple[str, float, int] = ("", 0.0, 0)
    stop: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None

    def tell(self, what: str, done: int, total: int) -> None:
        if self.stop.is_set():
            raise Stopped("stopped by you")
        if self.phase[0] != what or done < self.said[1]:
            self.phase = (what, time.monotonic(), done)
        self.said = (what, done, total)

    def wait(self, seconds: float | None = None) -> None:
        if self.thread:
            self.thread.join(seconds)


class _Desk:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.works: dict[tuple[str, str], Work] = {}
        self.finished: dict[tuple[str, str], Finished[Any]] = {}
        self.looked: dict[tuple[str, str], str] = {}


@st.cache_resource(show_spinner=False)
def _desk() -> _Desk:
    return _Desk()


def _key(collection: Collection, kind: str) -> tuple[str, str]:
    """Those who see other documents have evaluations of their own."""
    return f"{collection.folder} {people.whom()}", kind


def work_of(collection: Collection, kind: str) -> Work | None:
    """The evaluation of this kind begun last; None when none was, or it was put away."""
    return _desk().works.get(_key(collection, kind))


def finished(collection: Collection, kind: str) -> Finished[Any] | None:
    """The latest result of this kind."""
    return _desk().finished.get(_key(collection, kind))


def finished_or_kept(
    collection: Collection, kind: str, stamp: str, look: Callable[[], object | None]
) -> Finished[Any] | None:
    """The latest result of this kind; where that is not of this stamp, what `look` finds to be kept of it.
    It looks once: what comes after is begun here."""
    desk, key = _desk(), _key(collection, kind)
    found = desk.finished.get(key)
    if (found and found.stamp == stamp) or running(collection, kind) or desk.looked.get(key) == stamp:
        return found
    desk.looked[key] = stamp
    if (kept := look()) is not None:
        found = desk.finished[key] = Finished(kept, stamp, 0.0)
    return found


def running(collection: Collection, kind: str) -> bool:
    work = work_of(collection, kind)
    return work is not None and work.running


def begin(
    collection: Collection,
    kind: str,
    stamp: str,
    call: Callable[[Telling], object],
    so_far: list[Any] | None = None,
) -> None:
    """Begin, unless one of this kind is under way. `call` hears of a stop by `Stopped` from its telling,
    and may add to `so_far` what can be drawn before its end."""
    desk, key = _desk(), _key(collection, kind)
    with desk.lock:
        if running(collection, kind):
            return
        work = desk.works[key] = Work([] if so_far is None else so_far)
        # The desk is handed on: the thread has no session, through which Streamlit would find it.
        work.thread = threading.Thread(
            target=_run, args=(desk, key, work, stamp, call), name=f"evaluate {kind}", daemon=True
        )
        work.thread.start()


def _run(
    desk: _Desk, key: tuple[str, str], work: Work, stamp: str, call: Callable[[Telling], object]
) -> None:
    try:
        result = call(work.tell)
    except Stopped:
        work.stopped = True
    except RankscopeError as error:
        work.trouble = str(error)
    except Exception as error:  # nobody waits for a thread that died without a word
        work.trouble = f"{type(error).__name__}: {error}"
    else:
        work.stopped = work.stop.is_set()
        desk.finished[key] = Finished(result, stamp, time.monotonic() - work.begun)
    finally:
        work.running = False


def progress(collection: Collection, kind: str, again: str) -> bool:
    """Progress and Stop while it runs, else how it ended where that needs a word; whether it runs.

    `again` says how to go on after a stop.
    """
    work = work_of(collection, kind)
    if work is None:
        return False
    if work.running:
        # Redrawn by itself; whatever else is touched on the page cuts nothing.
        st.fragment(partial(_running, kind, work, len(work.so_far)), run_every=_LOOK)()
        return True
    if work.trouble:
        draw.notice(sentence(work.trouble), "error")
    elif work.stopped:
        draw.notice(f"Stopped. What was measured is kept: {again}", "info")
    return False


def _running(kind: str, work: Work, drawn: int) -> None:
    if not work.running or len(work.so_far) != drawn:
        st.rerun()
    what, done, total = work.said
    name, since, first = work.phase
    parts = [what]
    if total:
        parts.append(f"{done:,} of {total:,}")
    left = time_left(done - first, total - first, time.monotonic() - since) if name == what else ""
    parts.append(left or f"{duration(time.monotonic() - work.begun)} so far")
    with st.container(key=f"evaluate_running_{kind}"):
        st.progress(min(done / total, 1.0) if total else 0.0)
        with st.container(horizontal=True, vertical_alignment="center"):
            draw.text(" · ".join(parts), "rs-text")
            st.button(
                "Stopping …" if work.stop.is_set() else "Stop", key=f"evaluate_stop_{kind}",
                on_click=work.stop.set, disabled=work.stop.is_set(),
                help="What is measured by then is kept; go on with the rest whenever you like",
            )  # fmt: skip
