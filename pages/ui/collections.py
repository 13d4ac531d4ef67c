"""Making, renaming and deleting collections."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from core.collection import LONGEST_NAME, Collection, create, delete, list_collections, rename
from core.errors import RankscopeError
from pages.ui import draw, people, state
from pages.ui.plain import counted, plain

_SAID = "collections_said"


def collection_bar(collection: Collection) -> None:
    """New, rename, delete: each behind a button, deleting only after a confirmation."""
    with st.container(horizontal=True, key="collection_bar"):
        with st.popover(
            "New collection", icon=":material/add:", key="collection_new_open", on_change="rerun"
        ):
            _name_form("collection_new", "Name of the new collection", "", "Create", _create)
        with st.popover(
            "Rename", icon=":material/edit:", key="collection_rename_open", on_change="rerun"
        ):
            _name_form(
                "collection_rename", "New name", collection.name, "Rename", _rename, collection.name
            )
        with st.popover(
            "Delete", icon=":material/delete:", key="collection_delete_open", on_change="rerun"
        ):
            count = len(collection.files())
            st.markdown(
                f"Delete {plain(collection.name)} with its {counted(count, 'file')}, its index and its past "
                "queries? This cannot be undone."
            )
            st.button(
                "Delete the collection",
                type="primary",
                key="collection_delete",
                on_click=_delete,
                args=(collection.name,),
            )


def say(text: str) -> None:
    """Have `take_said` say it at the next run."""
    st.session_state[_SAID] = (text, "info")


def take_said() -> None:
    """What became of the last action, said once."""
    if said := st.session_state.pop(_SAID, None):
        draw.notice(*said)


def _name_form(
    key: str, label: str, value: str, action: str, then: Callable[..., None], *given: str
) -> None:
    with st.form(f"{key}_form", border=False):
        st.text_input(label, value, max_chars=LONGEST_NAME, key=f"{key}_name")
        st.form_submit_button(action, type="primary", key=f"{key}_do", on_click=then, args=given)


def _create() -> None:
    if not people.may_manage():
        return
    name = st.session_state["collection_new_name"]
    try:
        made = create(name)
        state.choose_collection(made.name)
    except RankscopeError as error:
        st.session_state[_SAID] = (str(error), "error")
    else:
        st.session_state[_SAID] = (f"Created {made.name}. Add its documents below.", "info")
        st.session_state["collection_new_name"] = ""
        st.session_state["collection_new_open"] = False


def _rename(old: str) -> None:
    if not people.may_manage():
        return
    name = st.session_state["collection_rename_name"]
    try:
        rename(old, name)
        state.choose_collection(name)
    except RankscopeError as error:
        st.session_state[_SAID] = (str(error), "error")
    else:
        st.session_state["collection_rename_open"] = False


def _delete(name: str) -> None:
    if not people.may_manage():
        return
    try:
        delete(name)
    except RankscopeError as error:
        st.session_state[_SAID] = (str(error), "error")
        return
    st.session_state["collection_delete_open"] = False
    st.session_state[_SAID] = (f"Deleted {name}.", "info")
    rest = [info.name for info in list_collections()]
    if rest:
        state.choose_collection(rest[0])
    else:
        st.query_params.clear()  # the address names the collection that is gone
