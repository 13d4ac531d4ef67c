"""Choosing users and groups: those that documents of the collection name, or others, typed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import streamlit as st

from core.access import Access, written_access
from core.collection import Collection
from pages.ui.listing import all_documents

_FORMS = "Type user:anna@example.org or group:finance; a bare word with an @ is a user, another a group."


def known_names(collection: Collection) -> list[str]:
    """The users and groups that documents are for, each as it is written; for who manages."""
    limited = (one for one in set(all_documents(collection).access) if one is not None)
    names: frozenset[str] = frozenset().union(*limited)
    return [written_access(frozenset({name})) for name in sorted(names)]


def names_box(
    label: str,
    key: str,
    offered: Iterable[str],
    placeholder: str,
    help: str = "",
    width: int | Literal["stretch"] = 420,
) -> str:
    """What is chosen, as `core.access` reads it; blank where nothing is."""
    given = st.session_state.get(key, ())
    chosen = st.multiselect(
        label, list(dict.fromkeys([*offered, *given])), key=key, accept_new_options=True,
        placeholder=placeholder, help=f"{help} {_FORMS}".strip(), width=width, select_all=False,
    )  # fmt: skip
    return "; ".join(chosen)


def told(access: Iterable[Access]) -> str:
    """Who may see documents, for a cell of a table."""
    kinds = {written_access(one) for one in access}
    return kinds.pop() if len(kinds) == 1 else "various" if kinds else ""
