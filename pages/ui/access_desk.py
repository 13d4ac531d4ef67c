"""Who may see documents, set on the Documents page: for files that are chosen, or from a field of each."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.access import EVERYONE, NOBODY, AccessError, parse_access
from core.collection import Collection, DocumentsOfVersion, FileInfo
from core.errors import RankscopeError
from pages.ui import draw, people, state
from pages.ui.access_box import known_names, names_box
from pages.ui.collections import say
from pages.ui.plain import counted, plain

_NAMES, _FIELD, _LEFT = "access_names", "access_field", "access_left_out"
_LISTED = 20


def access_of_files(
    collection: Collection, selected: Sequence[FileInfo], documents: DocumentsOfVersion
) -> None:
    """Who may see all documents of the chosen files."""
    count = counted(len(selected), "file")
    with st.popover(
        "Who may see them", icon=":material/lock:", key="access_open", on_change="rerun"
    ) as box:
        if not box.open:
            return
        draw.text(f"Who may see all documents of {count}", "rs-subhead")
        offered = [EVERYONE, NOBODY, *known_names(collection)]
        hashes = {one.file_hash for one in selected}
        ids = [
            one
            for one, file_hash in zip(documents.ids, documents.file_hashes, strict=True)
            if file_hash in hashes
        ]
        with st.container(horizontal=True, vertical_alignment="bottom", key="access_row"):
            words = names_box(
                "Users and groups",
                _NAMES,
                offered,
                "Choose or type",
                "nobody: administrators alone.",
                "stretch",
            )
            st.button(
                f"Set for {count}", key="access_set", type="primary", disabled=not words,
                on_click=_set, args=(collection, ids, count),
            )  # fmt: skip


def access_from_field(collection: Collection, documents: DocumentsOfVersion) -> None:
    """Who may see each document, as a column or field of its own says."""
    with st.popover(
        "Who may see, from a field",
        icon=":material/lock_person:",
        key="access_field_open",
        on_change="rerun",
    ) as box:
        if not box.open:  # looking for fields reads all metadata
            return
        draw.text("Who may see each document, from a field", "rs-subhead")
        draw.text(
            "A column of a table, a field of a record or of front matter that names users and groups: finance; "
            "anna@example.org. Documents without it, or with something else in it, stay as they are.",
            "rs-quiet",
        )
        names = sorted({name for one in documents.metadata() for name in one})
        if not names:
            draw.text("These documents have no fields.", "rs-text")
            return
        field = st.selectbox("Field", names, key=_FIELD, width=320)
        examples = [str(one[field]) for one in documents.metadata() if one.get(field)][:3]
        st.caption(
            "Such as " + ", ".join(map(plain, examples)) if examples else "It is blank everywhere."
        )
        st.button(
            "Set from this field", key="access_from_field", type="primary",
            on_click=_set_from_field, args=(collection,),
        )  # fmt: skip


def left_out() -> None:
    """What the last setting from a field left as it was, and why; said once."""
    problems: list[str] = st.session_state.pop(_LEFT, [])
    if problems:
        draw.notice("Left as they were: " + "; ".join(problems[:_LISTED]), "warning")
        if len(problems) > _LISTED:
            draw.text(f"and {len(problems) - _LISTED:,} more", "rs-quiet")


def _set(collection: Collection, ids: Sequence[str], count: str) -> None:
    words = "; ".join(st.session_state[_NAMES])
    if not people.may_manage() or not words:
        return
    try:
        number = collection.set_access(ids, parse_access(words))
    except RankscopeError as error:
        state.notify(str(error))
        return
    st.session_state["access_open"] = False
    st.session_state[_NAMES] = []
    say(f"{counted(number, 'document')} of {count} now for: {words}.")


def _set_from_field(collection: Collection) -> None:
    if not people.may_manage():
        return
    field = st.session_state[_FIELD]
    try:
        number, problems = collection.set_access_from_field(field)
    except RankscopeError as error:
        state.notify(str(error))
        return
    st.session_state["access_field_open"] = False
    st.session_state[_LEFT] = problems
    say(f"Who may see {counted(number, 'document')} is set from {field}.")


def problem_of(words: str) -> str:
    """What is wrong with users and groups as they were typed; blank when nothing is."""
    try:
        parse_access(words)
    except AccessError as error:
        return str(error)
    return ""
