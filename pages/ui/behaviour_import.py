"""A click log of elsewhere: read, shown with what does not match, then kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from core.behaviour.events import BehaviourError
from core.behaviour.forms import Log, read_log
from core.behaviour.store import Behaviour
from core.documents import Documents
from pages.ui import draw, people, state
from pages.ui.collections import say
from pages.ui.plain import counted, sentence

_BOX, _TURN, _READ = "behaviour_files", "rs_behaviour_turn", "rs_behaviour_read"


def import_log(store: Behaviour, documents: Documents) -> None:
    """The files, what is in them, and the button that keeps it."""
    draw.text(
        "CSV with the columns query and document, and of rank, at, user, kind, session those there are; or the queries "
        "and events of User Behavior Insights as JSON or JSONL, in one file or two. Documents are named by id, file "
        "name or title.",
        "rs-quiet",
    )
    files = st.file_uploader(
        "Click log", type=["csv", "tsv", "json", "jsonl", "ndjson"], accept_multiple_files=True,
        key=f"{_BOX}_{st.session_state.get(_TURN, 0)}", label_visibility="collapsed",
    )  # fmt: skip
    if not files:
        st.session_state.pop(_READ, None)
        return
    log = _read(files, documents)
    if isinstance(log, str):
        draw.notice(log, "error")
        return
    kinds = Counter(one.kind for one in log.events)
    listed = ", ".join(f"{kind} {times:,}" for kind, times in kinds.most_common())
    draw.text(
        f"{counted(len(log.events), 'event')} on documents here" + (f": {listed}." if listed else "."), "rs-text"
    )  # fmt: skip
    for problem in log.problems:
        draw.notice(sentence(problem), "warning")
    st.button(
        "Import", key="behaviour_import", type="primary", on_click=_keep, args=(store, log, documents)
    )


def _read(files: Sequence[UploadedFile], documents: Documents) -> Log | str:
    """What is in the files, or what is wrong with them; read once for the same files and documents, not at every
    click on the page."""
    chosen = tuple(one.file_id for one in files)
    held = st.session_state.get(_READ)
    if held is None or held[0] != chosen or held[1] is not documents:
        found: Log | str
        try:
            found = read_log({one.name: one.getvalue() for one in files}, documents)
        except BehaviourError as error:
            found = sentence(str(error))
        held = st.session_state[_READ] = (chosen, documents, found)
    return held[2]


def _keep(store: Behaviour, log: Log, documents: Documents) -> None:
    if not people.may_manage():
        return
    kept = store.add(log, documents)
    state.set_trace(None)  # the next search knows of it
    st.session_state[_TURN] = st.session_state.get(_TURN, 0) + 1
    said = [f"Imported {counted(kept.new, 'event')}"]
    said += [f"{kept.same:,} were there"] if kept.same else []
    said += [f"{kept.strays:,} without a document here are kept apart"] if kept.strays else []
    say("; ".join(said) + ".")
