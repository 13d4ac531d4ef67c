"""What the Answer page remembers: the answer on show, those on their way, and counted tokens."""

from __future__ import annotations

import threading
from collections.abc import Callable

import streamlit as st

from core.answering import AnswerJob
from core.collection import Collection
from pages.ui import people, state

_BEGINNING = threading.Lock()
_OPEN = "rs_answer_open"
_SAID = "rs_answer_said"
_COUNTS = "rs_answer_counts"


@st.cache_resource(show_spinner=False)
def _jobs() -> dict[str, AnswerJob]:
    """By collection and who asks, the question asked last: it goes on when its window is closed or reloaded."""
    return {}


def _desk(collection: Collection) -> str:
    """Two who see the same documents do not see each other's questions either."""
    return f"{collection.folder} {people.user()} {people.whom()}"


def asker() -> str | None:
    """Whose answers are listed, opened and found again: one's own; None is everybody's, for who sees all."""
    return None if people.viewer() is None else people.user()


def follow(collection: Collection, begin: Callable[[], AnswerJob]) -> None:
    """Begin an answer and show it as it comes. While one of theirs is on its way to the collection nothing begins: a
    button that is pressed twice, or in two windows, pays once. Raises what `begin` raises."""
    st.session_state.pop(_SAID, None)
    with _BEGINNING:
        if not running(collection):
            _jobs()[_desk(collection)] = begin()
    st.session_state[_OPEN] = (collection.id, state.query(), None)


def job(collection: Collection) -> AnswerJob | None:
    """The question this person asked last of this collection, in whichever window."""
    return _jobs().get(_desk(collection))


def running(collection: Collection) -> bool:
    found = job(collection)
    return found is not None and found.running


def open_answer(collection: Collection, place: int) -> None:
    """Show an answer that is kept."""
    st.session_state[_OPEN] = (collection.id, state.query(), place)
    st.session_state.pop(_SAID, None)


def opened(collection: Collection) -> tuple[bool, int | None]:
    """Whether an answer is on show, and its place in the store; None for the one on its way.

    Another question or collection puts it away. A window that is reloaded finds its answer again.
    """
    chosen = st.session_state.get(_OPEN)
    here = (collection.id, state.query())
    if chosen and chosen[:2] == here:
        return True, chosen[2]
    found = job(collection)
    asked = found is not None and found.inquiry.question == state.query().strip()
    if found and asked and (found.running or found.answer):
        st.session_state[_OPEN] = (*here, None)
        return True, None
    return False, None


def say(message: str) -> None:
    """Keep an error for the next drawing."""
    st.session_state[_SAID] = message


def take_said() -> str:
    return st.session_state.pop(_SAID, "")


def keep_count(key: str, tokens: int) -> None:
    st.session_state.setdefault(_COUNTS, {})[key] = tokens


def counted_tokens(key: str) -> int | None:
    """What the server counted for the inquiry of this key."""
    return st.session_state.get(_COUNTS, {}).get(key)
