"""The rules as they are edited in this session: not in force until they are saved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import streamlit as st

from core.collection import Collection
from core.rules import Rule, Rules, RulesError
from core.rules.reading import Problem, read, tables_of, toml_of
from pages.ui.plain import counted
from pages.ui.rules_table import Tables, edited

_SERIAL = count()
TOML_BOX = "rules_toml"


@dataclass
class Draft:
    """`text` is what would be saved, `saved` what the edit began from, `tables` the rows that the table
    editor was given; `serial` is another one for each new table."""

    saved: str
    text: str
    tables: Tables = field(default_factory=list)
    serial: int = field(default_factory=lambda: next(_SERIAL))

    @property
    def table_key(self) -> str:
        return f"rules_table_{self.serial}"

    def problems(self) -> list[Problem]:
        return read(self.text)[1]

    def rules(self) -> Rules | None:
        """None while there are problems."""
        rules, problems = read(self.text)
        return None if problems else Rules(rules)


def draft_of(collection: Collection) -> Draft:
    """The draft of a collection; what was saved, where nothing is edited."""
    drafts: dict[str, Draft] = st.session_state.setdefault("rs_rules", {})
    saved = collection.rules_text()
    draft = drafts.get(collection.id)
    if draft is None or (draft.text == draft.saved != saved):
        draft = drafts[collection.id] = Draft(saved, saved)
        _new_table(draft)
    elif draft.table_key not in st.session_state:
        # The editor forgets what was done in it when another page is opened.
        _new_table(draft)
    return draft


def take_toml(draft: Draft) -> None:
    """The text was changed: the table shows it, where it can be read."""
    draft.text = st.session_state[TOML_BOX]
    _new_table(draft)


def take_table(draft: Draft) -> None:
    """The table was changed: the text says it."""
    changes: Any = st.session_state[draft.table_key]
    tables = edited(draft.tables, changes)
    draft.text = toml_of(tables)
    moved = any("order" in cells for cells in changes.get("edited_rows", {}).values())
    if moved or any("order" in cells for cells in changes.get("added_rows", ())):
        _new_table(draft)


def replace_text(draft: Draft, text: str) -> None:
    draft.text = text
    _new_table(draft)


def save(collection: Collection, draft: Draft) -> int:
    """Save all of it; the number of rules. Raises RulesError, and saves nothing, where there is a problem."""
    rules = Rules.from_toml(draft.text)
    collection.save_rules(draft.text)
    draft.saved = draft.text
    return len(rules)


def unsaved(draft: Draft, problems: Sequence[Problem]) -> str:
    """What differs from what is saved, in words; blank where nothing does. `problems` are the draft's."""
    if draft.text == draft.saved:
        return ""
    if problems:
        return f"changes with {counted(len(problems), 'problem')}, listed below"
    now = Rules.from_toml(draft.text).rules
    return ", ".join(_differences(_rules_of(draft.saved), now)) or "comments or layout only"


def _rules_of(text: str) -> tuple[Rule, ...]:
    try:
        return Rules.from_toml(text).rules
    except RulesError:
        return ()


def _differences(was: tuple[Rule, ...], now: tuple[Rule, ...]) -> Iterator[str]:
    old, new = ({rule.name: rule for rule in rules} for rules in (was, now))
    both = [name for name in old if name in new]
    for names, done in (
        ([name for name in new if name not in old], "added"),
        ([name for name in both if old[name] != new[name]], "changed"),
        ([name for name in old if name not in new], "removed"),
    ):
        if names:
            yield f"{counted(len(names), 'rule')} {done} ({', '.join(names)})"
    if both != [name for name in new if name in old]:
        yield "another order"


def _new_table(draft: Draft) -> None:
    tables, problem = tables_of(draft.text)
    if problem is None:
        draft.tables = tables
    draft.serial = next(_SERIAL)
