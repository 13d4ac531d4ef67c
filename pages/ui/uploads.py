"""Adding files to a collection: choose, answer what must be asked, watch, read the results."""

from __future__ import annotations

import json
import math
import secrets
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from html import escape
from typing import Any, Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.access import EVERYONE, NOBODY, Access, parse_access
from core.collection import Collection, remember, remembered
from core.loading import SUPPORTED, Limits, LoadOptions
from pages.ui import draw, people
from pages.ui.access_box import known_names, names_box
from pages.ui.access_desk import problem_of
from pages.ui.index_bar import ask
from pages.ui.ingest import Incoming, Outcome, Question, Task, ingest, questions, refusal, with_password
from pages.ui.meter import Meter, time_left
from pages.ui.plain import counted, plain

_MIB = 1024 * 1024
_LIMITS = "upload_limits"
_ASKED_ONE_BY_ONE = 6  # files of one kind; more are asked about together
_MESSAGES = 8  # failures told in full above the table
_ENCODINGS = (
    "utf-8", "utf-16", "cp1252", "iso-8859-1", "iso-8859-2", "iso-8859-15", "cp1250", "cp1251", "koi8-r",
    "cp1253", "cp1254", "cp1255", "cp1256", "cp874", "shift_jis", "euc-jp", "gb18030", "big5", "euc-kr",
)  # fmt: skip
_RECORDS = {"items": "Each record an item", "table": "One table"}
_RECORDS_TOLD = "An item is ranked by itself; a table keeps all its rows in one document."
_CHUNKS_TOLD = (
    "Chunks made elsewhere: each line has a document, and start, end or text; they are not split."
)
_CHUNKS = {"chunks": "Chunks made elsewhere"}
_VERSION = {"replace": "Replace the earlier one", "both": "Keep both"}
_SAME = {"leave": "Leave it as it is", "again": "Read it again"}


@dataclass
class _Job:
    """An upload being worked off. A file leaves `waiting` only after it is committed or has failed."""

    collection_id: str
    collection_name: str
    limits: Limits
    waiting: deque[Task]
    bytes_total: int
    bytes_done: int = 0
    seconds: float = 0.0
    outcomes: list[Outcome] = field(default_factory=list)
    locked: list[Task] = field(default_factory=list)
    left_out: int = 0
    worker: object | None = None  # the run that works it off
    lock: threading.Lock = field(default_factory=threading.Lock)


@st.cache_resource(show_spinner=False)
def _jobs() -> dict[str, _Job]:
    """The latest upload to each collection: a window that was reloaded finds its files again."""
    return {}


def upload_area(collection: Collection) -> Callable[[], None] | None:
    """Everything about adding files; gives the work of the upload that is under way, if there is one.

    The page calls that work when all else is drawn.
    """
    job: _Job | None = st.session_state.get("upload_job")
    if not job or not job.waiting:
        _offer_interrupted(collection)
    running = job is not None and bool(job.waiting)
    limits = _limits()
    incoming = _choose_files(limits, disabled=running)
    # Two places: while one is filled the other is emptied, which takes its widgets off the page at once.
    bar_place, question_place = st.empty(), st.empty()
    work = None
    if job and running and job.collection_id == collection.id:
        work = partial(_run, bar_place, job, collection)
    elif incoming or running:
        with question_place.container(key="upload_questions"):
            if job and running:
                _elsewhere(job)
            else:
                _ask(incoming, collection, limits)
    if job:
        with st.container(key="upload_outcomes"):
            _results(job)
    return work


def add_files(files: Sequence[tuple[str, bytes]], collection: Collection) -> None:
    """Begin an upload of (name, bytes) that needs no questions."""
    _begin([Task(Incoming.of(name, data), LoadOptions()) for name, data in files], collection, _limits())


# Choosing


def _choose_files(limits: Limits, disabled: bool) -> list[Incoming]:
    # Not from 0: after a restart of the server the browser would show files that the server has lost.
    turn = st.session_state.setdefault("upload_turn", secrets.randbelow(10**9))
    with st.container(horizontal=True, vertical_alignment="center", key="upload_head"):
        kind = st.segmented_control(
            "What to upload", ["Files", "Folder"], default="Files", key="upload_kind",
            label_visibility="collapsed", disabled=disabled,
        )  # fmt: skip
        kinds = ", ".join(dict.fromkeys(SUPPORTED.values()))
        st.caption(
            f"{kinds}. Other files are tried as plain text. Limits: {limits.file_bytes / _MIB:,.0f} MiB "
            f"a file ({limits.unpacked_bytes / _MIB:,.0f} MiB unpacked), {counted(limits.files, 'file')} and "
            f"{limits.total_bytes / _MIB:,.0f} MiB an upload."
        )
        _limits_form(limits)
    folder = kind == "Folder"
    given = st.file_uploader(
        "A folder with all that is in it" if folder else "Files to add",
        accept_multiple_files="directory" if folder else True,
        key=f"upload_{'folder' if folder else 'files'}_{turn}",
        max_upload_size=max(1, min(_served_mib(), math.ceil(limits.file_bytes / _MIB))),
        disabled=disabled,
        label_visibility="collapsed",
    )
    return _incoming(given or [])


def _incoming(given: Sequence[Any]) -> list[Incoming]:
    """The files with their digests; hashed once, not at every run of the page."""
    known: dict[str, Incoming] = st.session_state.get("upload_known", {})
    kept = {
        one.file_id: known.get(one.file_id) or Incoming.of(one.name, one.getvalue()) for one in given
    }
    st.session_state["upload_known"] = kept
    return list(kept.values())


def _limits() -> Limits:
    """As set last, in whichever window."""
    try:
        return Limits(**json.loads(remembered(_LIMITS) or "{}"))
    except (ValueError, TypeError):  # kept by a version that had other limits
        return Limits()


def _served_mib() -> int:
    """The server refuses a larger file before the page hears of it."""
    return int(st.get_option("server.maxUploadSize"))


def _limits_form(limits: Limits) -> None:
    with (
        st.popover("Limits", key="upload_limits_open", on_change="rerun"),
        st.form("upload_limits_form", border=False),
    ):
        for spec in fields(Limits):
            in_bytes = spec.name.endswith("_bytes")
            value = getattr(limits, spec.name)
            told = str(spec.metadata["help"]).replace(", in bytes", "")
            highest = 100_000 if in_bytes else 10_000_000
            if spec.name == "file_bytes":
                highest = _served_mib()
                told += f" At most {highest:,} MiB, the server's own limit (server.maxUploadSize)."
            st.number_input(
                spec.name.replace("_bytes", " size").replace("_", " ").capitalize()
                + (" (MiB)" if in_bytes else ""),
                min_value=1,
                max_value=highest,
                value=min(highest, max(1, value // _MIB if in_bytes else value)),
                help=told,
                key=f"upload_limit_{spec.name}",
            )
        st.caption("Kept for all collections, until they are set again.")
        st.form_submit_button("Use these limits", key="upload_limits_use", on_click=_set_limits)


def _set_limits() -> None:
    given = {spec.name: st.session_state[f"upload_limit_{spec.name}"] for spec in fields(Limits)}
    limits = {name: value * (_MIB if name.endswith("_bytes") else 1) for name, value in given.items()}
    remember(_LIMITS, json.dumps(limits))
    st.session_state["upload_limits_open"] = False


# Asking


def _ask(incoming: Sequence[Incoming], collection: Collection, limits: Limits) -> None:
    if refused := refusal(incoming, limits):
        draw.notice(f"This upload is not taken: {refused}.", "error")
        return
    asked = questions(incoming, collection)
    again = _choice("same", "Already here", [q for q in asked if q.same_as], _SAME)
    versions = _choice("version", "Same name, new content", [q for q in asked if q.earlier], _VERSION)
    reads = [q for q in asked if q.records and (not q.same_as or again[q.incoming.digest] == "again")]
    records = _choice("records", "Files of records", reads, _RECORDS)
    if reads:
        st.caption(_RECORDS_TOLD + (f" {_CHUNKS_TOLD}" if any(q.jsonl for q in reads) else ""))
    with st.expander("Reading options", key="upload_options"):
        encoding = st.selectbox(
            "Encoding of text files", _ENCODINGS, index=None, placeholder="Found by itself",
            key="upload_encoding",
            help="Set it where letters come out wrong; it holds for all text files of this upload.",
        )  # fmt: skip
        password = st.text_input(
            "Password of encrypted PDF files", type="password", key="upload_password",
            help="Used for reading these files; neither kept nor logged.",
        )  # fmt: skip
    words = names_box(
        "Who may see them", "upload_access", [EVERYONE, NOBODY, *known_names(collection)],
        "Everyone; a file that is replaced: as it was",
    )  # fmt: skip
    if problem := problem_of(words):
        draw.notice(problem, "error")
        return
    access: Access | Literal["kept"] = parse_access(words) if words else "kept"
    tasks = []
    for question in asked:
        digest = question.incoming.digest
        way = records.get(digest, "items")
        options = LoadOptions(
            password or None,
            encoding,
            "table" if way == "table" else "items",
            prechunked=way == "chunks",
        )
        replaces = question.earlier if versions.get(digest) == "replace" else ""
        replaces = digest if again.get(digest) == "again" else replaces
        tasks.append(Task(question.incoming, options, replaces, access))
    count = counted(len(tasks), "file")
    # Not a callback: its arguments would be the answers before the last one.
    if st.button(f"Add {count}", type="primary", key="upload_add"):
        _begin(tasks, collection, limits)
        st.rerun()


def _choice(kind: str, title: str, asked: Sequence[Question], options: dict[str, str]) -> dict[str, str]:
    """digest → answer: a question a file, or one for all where there are many."""
    if not asked:
        return {}
    st.markdown(f"**{title}**")
    if len(asked) <= _ASKED_ONE_BY_ONE:
        return {
            q.incoming.digest: _radio(
                f"upload_{kind}_{q.incoming.digest}", _about(kind, q), _options(q, options)
            )
            for q in asked
        }
    answer = _radio(f"upload_{kind}_all", f"All {len(asked)} files", _options(asked[0], options))
    with st.expander("Which files", key=f"upload_{kind}_which"):
        st.text("\n".join(q.incoming.name for q in asked))
    return {q.incoming.digest: answer for q in asked}


def _options(question: Question, options: dict[str, str]) -> dict[str, str]:
    return options | _CHUNKS if options is _RECORDS and question.jsonl else options


def _about(kind: str, question: Question) -> str:
    name = plain(question.incoming.name)
    if kind == "same":
        return f"{name}: the same bytes are here as {plain(question.same_as)}"
    return name


def _radio(key: str, label: str, options: dict[str, str]) -> str:
    with st.container(horizontal=True, vertical_alignment="center", key=f"row_{key}"):
        st.markdown(label, width="content")
        return str(
            st.radio(
                label, list(options), format_func=options.__getitem__, horizontal=True, key=key,
                label_visibility="collapsed", width="content",
            )
        )  # fmt: skip


# Working


def _begin(tasks: Sequence[Task], collection: Collection, limits: Limits) -> None:
    if not people.may_manage():  # a button that was drawn before somebody was viewed as
        return
    size = sum(len(task.incoming.data) for task in tasks)
    job = _Job(collection.id, collection.name, limits, deque(tasks), size)
    st.session_state["upload_job"] = _jobs()[collection.id] = job


def _stop() -> None:
    job: _Job = st.session_state["upload_job"]
    with job.lock:
        job.left_out = len(job.waiting)
        job.waiting.clear()
    if any(outcome.changed for outcome in job.outcomes):
        ask()


def _run(place: DeltaGenerator, job: _Job, collection: Collection) -> None:
    """Work off what waits. Streamlit may end this run at any drawing; the next one goes on there."""
    with place.container(horizontal=True, vertical_alignment="center", key="upload_running"):
        meter = Meter("Reading")
        st.button("Stop", key="upload_stop", on_click=_stop, help="Files added so far stay.")
    total = len(job.waiting) + len(job.outcomes)
    worker = job.worker = object()
    try:
        while job.waiting:
            left = time_left(job.bytes_done, job.bytes_total, job.seconds)
            where = f"{len(job.outcomes) + 1:,} of {total:,} · {plain(job.waiting[0].incoming.name)}"
            meter.say(job.bytes_done, job.bytes_total, f"Reading {where}{' · ' if left else ''}{left}")
            _next(job, collection)
    finally:
        if job.worker is worker:  # else the next run goes on already
            job.worker = None
    st.session_state["upload_turn"] += 1  # an empty uploader
    if any(outcome.changed for outcome in job.outcomes):
        ask()
    st.rerun()


def _next(job: _Job, collection: Collection) -> None:
    """Read and commit the next file.

    A widget touched meanwhile makes Streamlit begin the next run at once, beside this one, which it ends
    only at the next drawing. Under the lock, and with nothing drawn, a file is neither lost nor taken twice.
    """
    with job.lock:
        if not job.waiting:
            return
        task = job.waiting[0]
        began = time.monotonic()
        outcome = ingest(task, collection, job.limits)
        job.waiting.popleft()
        job.outcomes.append(outcome)
        job.bytes_done += len(task.incoming.data)
        job.seconds += time.monotonic() - began
        if outcome.needs_password:
            job.locked.append(task)


def _offer_interrupted(collection: Collection) -> None:
    """An upload that another window began and nobody works off: that window was closed or reloaded."""
    job = _jobs().get(collection.id)
    if not job or not job.waiting or job.worker:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="upload_interrupted"):
        draw.notice(
            f"An upload was interrupted: {counted(len(job.waiting), 'file')} of "
            f"{len(job.waiting) + len(job.outcomes):,} not read yet.",
            "warning",
        )
        st.button("Go on", key="upload_go_on", type="primary", on_click=_adopt, args=(job,))
        st.button("Drop them", key="upload_drop_interrupted", on_click=job.waiting.clear)


def _adopt(job: _Job) -> None:
    st.session_state["upload_job"] = job


def _elsewhere(job: _Job) -> None:
    draw.notice(
        f"An upload to the collection “{job.collection_name}” waits with {len(job.waiting):,} files. "
        "Choose that collection to go on with it.",
        "info",
    )
    st.button("Drop the rest of that upload", key="upload_drop", on_click=job.waiting.clear)


# Results


def _results(job: _Job) -> None:
    if not job.outcomes and not job.left_out:
        return
    failed = [outcome for outcome in job.outcomes if outcome.failed]
    if job.left_out:
        draw.notice(
            f"Stopped: {counted(job.left_out, 'file')} not added. Add them again to go on.", "warning"
        )
    if failed:
        _failures(failed)
    if job.locked and not job.waiting:
        _unlock(job)
    st.caption(_totals(job.outcomes))
    st.dataframe(
        [_row(outcome) for outcome in sorted(job.outcomes, key=lambda one: not one.failed)],
        hide_index=True,
        key="upload_results",
        placeholder="",
        column_config={
            "File": st.column_config.TextColumn(width="medium"),
            "Notes": st.column_config.TextColumn(width="large"),
            **{
                name: st.column_config.NumberColumn(format="localized")
                for name in ("Characters", "Pages", "Documents", "Headings")
            },
        },
    )
    if not job.waiting:
        st.button("Close these results", key="upload_close", type="tertiary", on_click=_close)


def _totals(outcomes: Sequence[Outcome]) -> str:
    counts = Counter(outcome.status for outcome in outcomes)
    return f"Last upload, {counted(len(outcomes), 'file')}: " + ", ".join(
        f"{count:,} {status}" for status, count in counts.most_common()
    )


def _failures(failed: Sequence[Outcome]) -> None:
    lines = [f"{outcome.name}: {outcome.message}" for outcome in failed[:_MESSAGES]]
    if len(failed) > _MESSAGES:
        lines.append(f"{counted(len(failed) - _MESSAGES, 'more file')} failed: see the table.")
    told = "".join(f"<div>{escape(line)}</div>" for line in lines)
    st.html(f'<div class="rs-notice rs-error" role="alert">{told}</div>')


def _row(outcome: Outcome) -> dict[str, Any]:
    shown = None if outcome.failed or outcome.status == "already here" else outcome
    return {
        "File": outcome.name,
        "Result": outcome.status,
        "Documents": shown and shown.documents,
        "Pages": (shown and shown.pages) or None,
        "Characters": shown and shown.characters,
        "Headings": shown and shown.headings,
        "Encoding": outcome.encoding,
        "Notes": outcome.message,
    }


def _unlock(job: _Job) -> None:
    with st.form("upload_unlock", clear_on_submit=True):
        names = ", ".join(plain(task.incoming.name) for task in job.locked[:_MESSAGES])
        st.text_input(f"Password of {names}", type="password", key="upload_unlock_password")
        st.form_submit_button("Try again", key="upload_unlock_try", on_click=_try_again, args=(job,))


def _try_again(job: _Job) -> None:
    password = st.session_state["upload_unlock_password"]
    if not password:
        return
    again = [with_password(task, password) for task in job.locked]
    names = {task.incoming.name for task in again}
    job.outcomes = [o for o in job.outcomes if not (o.needs_password and o.name in names)]
    job.locked, job.left_out = [], 0
    job.waiting.extend(again)
    job.bytes_total, job.bytes_done, job.seconds = sum(len(t.incoming.data) for t in again), 0, 0.0


def _close() -> None:
    st.session_state.pop("upload_job", None)
