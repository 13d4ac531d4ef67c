"""Rules as a table and as TOML side by side, what is wrong with them, and saving all of them or none."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.collection import Collection
from core.corpus import Corpus
from core.rules import RulesError
from core.rules.reading import MAX_RANK, MAX_WEIGHT, Problem, tables_of, toml_of
from pages.ui import draw, people
from pages.ui.plain import counted
from pages.ui.rules_draft import TOML_BOX, Draft, replace_text, save, take_table, take_toml, unsaved
from pages.ui.rules_table import COLUMNS, NO_ROWS, columns, config

_SAID = "rules_said"
_SHOWN = 30  # problems listed
_KEYS = (
    ("name", "What the rule is called; each its own."),
    ("on", "false rests the rule."),
    ("query", "Words that the query holds, all of them, in any order, whatever their capitals."),
    (
        "pattern",
        "The whole query, where * stands for any text: INC-2023-*. No regular expression: none can then take long.",
    ),
    ("groups", "The viewer is in one of these groups. Who sees all is in none."),
    ("from, until", "The first and the last day."),
    ("items", "Which items: conditions on their fields, all of which hold: type = pdf; year >= 2024."),
    (
        "documents",
        "Which items: file names or ids, pinned in this order. With items as well, both must hold.",
    ),
    (
        "boost, bury",
        f"A weight above 0, at most {MAX_WEIGHT:g}: as many more signals that rank the item first; bury takes as much away.",
    ),
    ("pin", f"The rank, 1 to {MAX_RANK:,}; further items of the rule follow at the next free ranks."),
    ("hide", "true takes the items out."),
    ("only", "true takes all other items out."),
)


def editor(collection: Collection, draft: Draft, corpus: Corpus | None) -> None:
    problems = draft.problems()
    _bar(collection, draft, problems)
    with st.container(key="rules_desk"):
        table, toml = st.columns([2, 1], gap="medium")
        with table:
            _table(draft)
        with toml:
            # The table may have changed it.
            st.session_state[TOML_BOX] = draft.text
            st.text_area(
                "The same as TOML", key=TOML_BOX, height=420, on_change=take_toml, args=(draft,),
                help="Comments are kept while you edit here; a change in the table writes it anew, without them",
            )  # fmt: skip
    # Below, so that the table stays where it is while somebody edits it.
    if not draft.text.strip():
        _invitation(draft, corpus)
    if problems:
        _problems(draft, problems)


def _bar(collection: Collection, draft: Draft, problems: Sequence[Problem]) -> None:
    if draft.text != draft.saved and collection.rules_text() != draft.saved:
        draw.notice(
            "Other rules were saved since you began to edit. Saving puts yours in their place; Discard shows them.",
            "warning",
        )
    if said := st.session_state.pop(_SAID, None):
        draw.notice(*said)
    told = unsaved(draft, problems)
    with st.container(horizontal=True, vertical_alignment="center", key="rules_bar"):
        st.button(
            "Save", key="rules_save", type="primary" if told and not problems else "secondary", icon=":material/save:",
            on_click=_save, args=(collection, draft),
            help="All rules or, where one has a problem, none",
        )  # fmt: skip
        st.button(
            "Discard", key="rules_discard", disabled=not told, on_click=_discard, args=(collection, draft),
            help="Back to what is saved",
        )  # fmt: skip
        if told:
            draw.text(f"Not saved: {told}", "rs-unsaved")
        elif not st.session_state.get(_SAID):
            draw.text("Saved: this is what searches use." if draft.text else "No rules yet.", "rs-quiet")


def _save(collection: Collection, draft: Draft) -> None:
    if not people.may_manage():  # a button that was drawn before somebody was viewed as
        return
    try:
        number = save(collection, draft)
    except RulesError as error:
        st.session_state[_SAID] = (
            f"Nothing was saved: {counted(len(error.problems), 'problem')} to mend first.",
            "error",
        )
    else:
        st.session_state[_SAID] = (
            f"Saved {counted(number, 'rule')}. Searches use them from now on.",
            "info",
        )


def _discard(collection: Collection, draft: Draft) -> None:
    draft.saved = collection.rules_text()
    replace_text(draft, draft.saved)


def _invitation(draft: Draft, corpus: Corpus | None) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="rules_invitation"):
        st.button(
            "Start with an example", key="rules_example", icon=":material/add:", on_click=_example,
            args=(draft, corpus), help="A rule about a document of yours, to change; nothing is saved by it",
        )  # fmt: skip
        draw.text("Or add a row to the table, or paste TOML.", "rs-quiet")


def _example(draft: Draft, corpus: Corpus | None) -> None:
    name = corpus.item_names[0] if corpus and corpus.item_names else "file.pdf"
    title = corpus.item_titles[0] if corpus and corpus.item_titles else ""
    word = next((word for word in title.split() if word.isalnum()), "price")
    example = {"name": "Example", "query": word, "documents": [name], "boost": 2}
    replace_text(draft, toml_of([example]))


def _problems(draft: Draft, problems: Sequence[Problem]) -> None:
    tables, _ = tables_of(draft.text)
    names = [str(table.get("name", "")) if isinstance(table, dict) else "" for table in tables]
    rows = []
    for problem in problems[:_SHOWN]:
        number = problem.number
        known = number is not None and number < len(names)
        rule = f"{number + 1} {names[number]}" if known and number is not None else "–"
        rows.append((problem.line, rule, problem.reason))
    with st.container(key="rules_problems"):
        draw.notice(
            f"{counted(len(problems), 'problem')}: nothing can be saved or tried before they are mended.",
            "error",
        )
        draw.table(("Line", "Rule", "What is wrong"), rows, numeric=(0,))
        if len(problems) > _SHOWN:
            draw.text(f"And {len(problems) - _SHOWN:,} more.", "rs-quiet")


def _table(draft: Draft) -> None:
    _, unread = tables_of(draft.text)
    if unread:
        draw.notice("The table shows rules again as soon as the TOML can be read.", "warning")
    st.data_editor(
        columns(draft.tables) if draft.tables else NO_ROWS, key=draft.table_key, num_rows="dynamic", hide_index=True, column_order=COLUMNS,
        column_config=config(), disabled=unread is not None, on_change=take_table, args=(draft,), placeholder="",
    )  # fmt: skip


def help_on_rules(corpus: Corpus | None) -> None:
    with st.expander("What a rule can say", key="rules_help"):
        draw.table(("Key", "Meaning"), _KEYS)
        if corpus is not None:
            fields = corpus.fields
            listed = [f"{name} ({fields.kind(name)})" for name in fields.names[:40]]
            draw.text(f"Fields here: {', '.join(listed)}.", "rs-quiet")
        draw.text(
            "A hidden item is out of the ranking of items, not out of reach: in a search of one stage no rule acts. Who may "
            "see a document at all is said by its access, on the Documents page.",
            "rs-quiet",
        )
