"""The Rules page: table and TOML of one draft, saved whole or not at all, tried before."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.access import Viewer
from core.collection import Collection
from core.evaluation import open_judgements, read_judgements
from core.rules.reading import toml_of
from pages.ui import evaluate_work
from pages.ui.rules_table import columns, edited
from tests.app.conftest import shown_text

Open = Callable[..., AppTest]
PAGE = "pages/signals.py"
RULES = """# why this one
[[rule]]
name = "Fans first"
query = "bearing"
documents = ["fans.md"]
pin = 1

[[rule]]
name = "No <b>pumps</b>"
items = "file = pumps.md"
hide = true
"""
FAULTY = RULES + '\n[[rule]]\nname = "Fans first"\nboost = 0\n'


@pytest.fixture
def ruled(machines: Collection) -> Collection:
    machines.save_rules(RULES)
    return machines


def write(page: AppTest, text: str) -> AppTest:
    page.text_area(key="rules_toml").set_value(text).run()
    assert not page.exception
    return page


def table(page: AppTest) -> Any:
    return page.dataframe[0].value


def test_saved_rules_stand_in_the_table_and_as_written(ruled: Collection, open_page: Open) -> None:
    page = open_page(PAGE)
    assert not page.exception
    assert page.text_area(key="rules_toml").value == RULES
    found = table(page)
    assert found["name"].tolist() == ["Fans first", "No <b>pumps</b>"]
    assert found["action"].tolist() == ["pin", "hide"]
    assert "this is what searches use" in shown_text(page)
    assert page.button(key="rules_discard").disabled


def test_faults_are_told_with_line_and_rule_and_nothing_is_saved(
    ruled: Collection, open_page: Open
) -> None:
    page = write(open_page(PAGE), FAULTY)
    told = " ".join(shown_text(page).split())
    assert "3 problems" in told
    assert "13 3 Fans first no items" in told
    assert "14 3 Fans first rule 1 is called 'Fans first' too" in told
    assert "15 3 Fans first boost is 0; give a weight above 0" in told
    assert len(table(page)) == 3
    page.button(key="rules_save").click().run()
    assert "Nothing was saved: 3 problems to mend first." in shown_text(page)
    assert ruled.rules_text() == RULES
    write(page, "[[rule]\n")
    assert "not TOML" in shown_text(page)
    assert len(table(page)) == 3
    page.button(key="rules_discard").click().run()
    assert page.text_area(key="rules_toml").value == RULES


def test_what_is_unsaved_is_named_and_saved_as_it_was_written(
    ruled: Collection, open_page: Open
) -> None:
    changed = RULES.replace("pin = 1", "pin = 2").replace("No <b>pumps</b>", "No pumps") + "# end\n"
    page = write(open_page(PAGE), changed)
    told = shown_text(page)
    assert (
        "1 rule added (No pumps), 1 rule changed (Fans first), 1 rule removed (No <b>pumps</b>)" in told
    )
    page.button(key="rules_save").click().run()
    assert "Saved 2 rules." in shown_text(page)
    assert ruled.rules_text() == changed


def test_rules_saved_elsewhere_meanwhile_are_told_of(ruled: Collection, open_page: Open) -> None:
    page = open_page(PAGE)
    ruled.save_rules("")
    page.run()
    assert page.text_area(key="rules_toml").value == ""
    write(page, RULES)
    ruled.save_rules(RULES.replace("pin = 1", "pin = 3"))
    page.run()
    assert "Other rules were saved since you began to edit" in shown_text(page)
    page.button(key="rules_discard").click().run()
    assert "pin = 3" in page.text_area(key="rules_toml").value


def test_without_rules_an_example_of_the_own_documents_is_offered(
    machines: Collection, open_page: Open
) -> None:
    page = open_page(PAGE)
    assert "No rules yet." in shown_text(page)
    page.button(key="rules_example").click().run()
    assert not page.exception
    assert table(page)["documents"].tolist() == [["pumps.md"]]
    assert "1 rule added (Example)" in shown_text(page)
    assert machines.rules_text() == ""


def test_a_query_is_tried_on_the_rules_of_the_page(ruled: Collection, open_page: Open) -> None:
    page = open_page(PAGE, q="bearing of the pump")
    told = " ".join(shown_text(page).split())
    assert "Fans first pin at 1 1 item holds" in told
    assert "rule Fans first: pin at 1" in told
    assert "out Pumps · pumps.md rule No <b>pumps</b> hides it" in told
    write(page, RULES.replace('query = "bearing"', 'groups = ["sales"]'))
    assert "Fans first pin at 1 1 item it is for others" in " ".join(shown_text(page).split())
    page.text_input(key="rules_viewer").set_value("group:sales").run()
    assert "Fans first pin at 1 1 item holds" in " ".join(shown_text(page).split())
    page.text_input(key="rules_viewer").set_value("boss:anna").run()
    assert "neither a user nor a group" in shown_text(page)


def test_rules_that_cost_golden_evidence_are_named(ruled: Collection, open_page: Open) -> None:
    lines = [
        {"id": "oil", "query": "oil on the floor", "evidence": [
            {"document": "pumps.md", "quote": "A worn seal lets oil out."}]},
        {"id": "lamp", "query": "flickering lamp", "evidence": [
            {"document": "lamps.md", "quote": "A lamp flickers when its driver is too hot."}]},
    ]  # fmt: skip
    documents = ruled.documents()
    text = "\n".join(map(json.dumps, lines))
    open_judgements(ruled).add(read_judgements(text, documents), documents, "set.jsonl")
    page = open_page(PAGE)
    page.button(key="rules_do").click().run()
    work = evaluate_work.work_of(ruled, "rules")
    assert work is not None
    work.wait(60)
    assert work.trouble == ""
    told = " ".join(shown_text(page.run()).split())
    assert "recall@20 over 2 queries: 1.000 without rules, 0.500 with all of them." in told
    assert "No <b>pumps</b> (hide) costs golden evidence of 1 query." in told
    assert "No <b>pumps</b> oil on the floor pumps.md rank 1 → no yes → no" in told
    write(page, RULES.replace("hide = true", "bury = 1"))
    assert "Stale" in shown_text(page)


def test_a_collection_without_documents_and_one_not_indexed(
    waiting: Collection, open_page: Open
) -> None:
    waiting.save_rules(RULES)
    page = open_page(PAGE)
    assert not page.exception
    assert "then the rules can be tried" in shown_text(page)
    for file in waiting.files():
        waiting.remove(file.file_hash)
    assert "No documents yet" in shown_text(open_page(PAGE))


def test_who_does_not_manage_sees_no_rule(ruled: Collection, open_page: Open) -> None:
    page = write(open_page(PAGE), RULES.replace("pin = 1", "pin = 2"))
    page.session_state["rs_view_as"] = Viewer("anna")
    page.button(key="rules_save").click().run()
    assert not page.exception
    assert ruled.rules_text() == RULES
    assert "Rules are for administrators." in shown_text(page)
    assert "Fans first" not in shown_text(page)
    assert not page.text_area


TABLES = [
    {"name": "a", "documents": ["x.md"], "boost": 2, "strange": 1},
    {"name": "b", "items": "year = 1", "hide": True, "from": date(2026, 1, 1)},
    {"name": "c", "on": False, "items": "year = 2", "pin": 3},
]


def test_cells_become_keys_and_what_the_table_cannot_say_stays() -> None:
    changes = {
        "edited_rows": {
            "0": {"action": "hide", "groups": ["sales"], "from": "2026-03-01T00:00:00.000"},
            "1": {"from": None, "action": "pin", "value": 2.0, "name": ""},
            2: {"on": True, "value": 2.5},
        },
        "added_rows": [{"name": "d", "action": "boost", "documents": ["y.md"], "on": True}, {}],
        "deleted_rows": [],
    }
    a, b, c, d, blank = edited(TABLES, changes)
    assert a == {
        "name": "a",
        "groups": ["sales"],
        "from": date(2026, 3, 1),
        "documents": ["x.md"],
        "hide": True,
        "strange": 1,
    }
    assert b == {"items": "year = 1", "pin": 2}
    assert c == {"name": "c", "items": "year = 2", "pin": 2.5}
    assert d == {"name": "d", "documents": ["y.md"], "boost": 1}
    assert blank == {}
    assert TABLES[0]["boost"] == 2


@pytest.mark.parametrize(
    ("row", "order", "names"),
    [(2, 1, "cab"), (0, 3, "bca"), (0, 2, "bac"), (2, 2, "acb"), (1, 9, "acb"), (1, None, "abc")],
)
def test_a_rule_moves_to_the_number_it_is_given(row: int, order: int | None, names: str) -> None:
    moved = edited(
        TABLES, {"edited_rows": {row: {"order": order}}, "added_rows": [], "deleted_rows": []}
    )
    assert "".join(table["name"] for table in moved) == names


def test_rows_are_deleted() -> None:
    assert [one["name"] for one in edited(TABLES, {"deleted_rows": [0, 2]})] == ["b"]


def test_whatever_toml_holds_has_a_row() -> None:
    odd: list[Any] = [3, {"name": 5, "boost": "much", "from": "soon", "documents": "x", "on": "yes"}, {}]
    cells = columns(odd)
    assert cells["name"] == ["", "5", ""]
    assert cells["value"] == [None, None, None]
    assert cells["from"] == [None, None, None]
    assert cells["documents"] == [[], ["x"], []]
    assert columns([])["name"] == []


def test_tables_are_written_on_few_lines() -> None:
    assert toml_of(TABLES[:1]) == '[[rule]]\nname = "a"\ndocuments = ["x.md"]\nboost = 2\nstrange = 1\n'
    odd: dict[str, Any] = {"a b": {"x": [1, {"y": True}]}, "day": date(2026, 1, 1), "text": 'a"\n'}
    assert tomllib.loads(toml_of([odd, {}]))["rule"] == [odd, {}]
