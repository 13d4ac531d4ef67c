"""A progress bar with the time left, for work that core does and reports on."""

from __future__ import annotations

import time

import streamlit as st

_REDRAW = 0.2  # seconds between two drawings: each one costs a message to the browser


def time_left(done: float, total: float, seconds: float) -> str:
    """What remains at the speed so far, in words; empty before there is a speed."""
    if done <= 0 or done >= total or seconds <= 0:
        return ""
    left = seconds * (total - done) / done
    return f"about {duration(left)} left"


def duration(seconds: float) -> str:
    """Rounded as a person would say it."""
    if seconds < 1:
        return "a second"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


class Meter:
    """Draws (done, total) as core's `Progress` asks; a count that falls back starts the next phase."""

    def __init__(self, what: str, *units: str) -> None:
        """`units` names what is counted in each phase, such as "documents cut"."""
        self._what = what
        self._units = iter(units)
        self._unit = ""
        self._bar = st.progress(0.0, what)
        self._begin()

    def _begin(self) -> None:
        self._unit = next(self._units, self._unit)
        self._started = time.monotonic()
        self._first: int | None = None
        self._drawn = 0.0
        self._last = (0, 0)

    def __call__(self, done: int, total: int) -> None:
        if done < self._last[0] or (self._last[1] and total != self._last[1]):
            self._begin()
        if self._first is None:
            self._first = done
        self._last = (done, total)
        now = time.monotonic()
        if now - self._drawn < _REDRAW and done < total:
            return
        self._drawn = now
        left = time_left(done - self._first, total - self._first, now - self._started)
        count = f"{done:,} of {total:,} {self._unit}".rstrip()
        self.say(done, total, " · ".join(part for part in (self._what, count, left) if part))

    def say(self, done: float, total: float, text: str) -> None:
        """Draw at once, with another text. This is also where Streamlit can stop the run."""
        self._bar.progress(min(1.0, done / total) if total else 1.0, text)

    def clear(self) -> None:
        self._bar.empty()
