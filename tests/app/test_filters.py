"""Filters, fields and item signals on the Search page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.behaviour.events import Event
from core.behaviour.store import Behaviour
from core.collection import Collection
from core.corpus import build_corpus
from core.filters import Filter
from core.loading import LoadOptions, load
from pages.ui.filters import changed, counts, values_of
from pages.ui.plain import label
from tests.app.conftest import columns_data, shown_text

Open = Callable[..., AppTest]

TICKETS = """ticket,text,severity,customers,opened,note
T-1,The bearing rattles and wants grease,high,12,2024-03-01,
T-2,The bearing squeaks,low,3,2024-01-15,*odd* [x](y)
T-3,A lamp flickers,high,40,2023-11-30,
T-4,The seal leaks oil on the bearing,medium,7,2022-05-05,
"""


@pytest.fixture
def tickets(empty: Collection) -> Collection:
    """An indexed collection of four records with fields."""
    data = TICKETS.encode()
    empty.add(load(data, "tickets.csv", LoadOptions(records="items")), "tickets.csv", len(data))
    build_corpus(empty, empty.settings().index)
    return empty


def boxes(page: AppTest) -> dict[str, bool]:
    return {one.label: one.value for one in page.checkbox if one.key.startswith("filter_is ")}


def items(page: AppTest) -> int:
    found = next(one for one in columns_data(page)["strip"] if one["name"] == "items")
    assert found["of"] is not None
    return found["of"]


def filters(page: AppTest) -> str:
    return page.session_state["rs_search"].filters


def chips(page: AppTest) -> list[str]:
    return [one.label for one in page.button if one.key and one.key.startswith("filter_chip_")]


def test_facets_count_what_passes_the_other_conditions_and_filter_the_search(
    tickets: Collection, open_page: Open
) -> None:
    page = open_page(q="bearing")
    page.selectbox(key="filter_field").select("severity").run()
    assert boxes(page) == {"high · 2": False, "low · 1": False, "medium · 1": False}
    page.checkbox(key="filter_is severity: high").check().run()
    assert filters(page) == "severity = high"
    assert items(page) == 2
    assert chips(page) == ["severity = high"]
    assert "2 of 4 items pass" in shown_text(page)
    fresh = open_page(q="grease", filters="severity = high")
    assert "Searched 2 of 4 chunks in" in shown_text(fresh)
    page.checkbox(key="filter_is severity: low").check().run()
    assert filters(page) == "severity = high, low"
    assert boxes(page) == {"high · 2": True, "low · 1": True, "medium · 1": False}
    page.selectbox(key="filter_field").select("customers").run()
    page.number_input(key="filter_From customers True").set_value(10).run()
    assert filters(page) == "severity = high, low; customers >= 10"
    assert items(page) == 2
    page.selectbox(key="filter_field").select("severity").run()
    assert boxes(page) == {"high · 2": True, "low · 0": True, "medium · 0": False}
    page.button(key="filter_chip_1").click().run()
    assert filters(page) == "severity = high, low"
    page.button(key="reset_Filters").click().run()
    assert filters(page) == ""
    assert (chips(page), items(page)) == ([], 4)


def test_dates_are_a_range_between_the_first_and_the_last(tickets: Collection, open_page: Open) -> None:
    page = open_page(q="bearing", filters="opened >= 2023-01-01")
    assert page.selectbox(key="filter_field").value == "opened"
    start = page.date_input(key="filter_From opened")
    assert str(start.value) == "2023-01-01"
    assert items(page) == 3
    page.date_input(key="filter_To opened").set_value("2023-12-31").run()
    assert filters(page) == "opened >= 2023-01-01; opened <= 2023-12-31"
    assert items(page) == 1
    start.set_value(None).run()
    assert filters(page) == "opened <= 2023-12-31"


def test_a_typed_filter_is_taken_or_says_what_is_wrong_and_stays(
    tickets: Collection, open_page: Open
) -> None:
    page = open_page(q="bearing")
    page.text_input(key="filter_text").set_value("severty = high").run()
    assert "No item has a field 'severty'; fields are severity" in shown_text(page)
    assert page.text_input(key="filter_text").value == "severty = high"
    assert (filters(page), items(page)) == ("", 4)
    page.text_input(key="filter_text").set_value("severity=high;note  missing").run()
    assert page.text_input(key="filter_text").value == "severity = high; note missing"
    assert "No item has a field" not in shown_text(page)
    assert items(page) == 2


def test_a_filter_that_nothing_passes_gives_a_note_and_no_result(
    tickets: Collection, open_page: Open
) -> None:
    page = open_page(q="bearing", filters="customers > 1000")
    assert not page.exception
    assert "0 of 4 items pass" in shown_text(page)
    assert "no item passes the filters (customers > 1000)" in shown_text(page)


def test_a_link_with_a_field_that_is_not_there_can_be_mended_on_the_page(
    tickets: Collection, open_page: Open
) -> None:
    page = open_page(q="bearing", filters="colour = red; severity = high")
    assert not page.exception
    assert "o item has a field 'colour'" in shown_text(page)
    page.button(key="filter_chip_0").click().run()
    assert items(page) == 2


def test_values_are_shown_letter_by_letter(tickets: Collection, open_page: Open) -> None:
    page = open_page(q="bearing", filters="note exists")
    assert page.selectbox(key="filter_field").value == "note"
    assert list(boxes(page)) == ["`*odd* [x](y)` · 1"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("What is closed_utc, in 2024?", "What is closed_utc, in 2024?"),
        ("_a_", "`_a_`"),
        ("- a", "`- a`"),
        ("1. a", "`1. a`"),
        ("3.5 mm", "3.5 mm"),
        ("year >= 2020", "year >= 2020"),
        ("<b>x", "`<b>x`"),
        ("> x", "`> x`"),
        ("*a*", "`*a*`"),
    ],
)
def test_only_what_markdown_would_change_stands_in_code(text: str, told: str) -> None:
    assert label(text) == told


def test_a_condition_keeps_its_place_when_its_values_change() -> None:
    found = Filter.parse("a = 1; B >= 2; c exists")
    assert str(changed(found, "b", ">=", ["3"])) == "a = 1; b >= 3; c exists"
    assert str(changed(found, "a", "=", [])) == "B >= 2; c exists"
    assert str(changed(found, "a", "!=", ["1", "2"])) == "a = 1; B >= 2; c exists; a != 1, 2"
    assert (values_of(found, "b", ">="), values_of(found, "b", "<=")) == (("2",), ())


def test_a_chosen_value_stays_where_it_is_and_others_follow(tickets: Collection) -> None:
    fields = build_corpus(tickets, tickets.settings().index).fields
    order = [("high", 2), ("low", 1), ("medium", 1)]
    assert counts(fields, "severity", Filter()) == order
    assert counts(fields, "severity", Filter.parse("severity = medium")) == order
    typed = Filter.parse("severity = none, MEDIUM")
    assert counts(fields, "severity", typed) == [*order[:2], ("MEDIUM", 1), ("none", 0)]


def test_recency_and_popularity_choose_among_the_fields_that_fit(
    tickets: Collection, open_page: Open
) -> None:
    page = open_page(q="bearing")
    assert page.selectbox(key="set_recency_field").options == ["none", "opened", "added"]
    assert page.selectbox(key="set_popularity_field").options == ["none", "customers"]
    page.selectbox(key="set_popularity_field").select("customers").run()
    assert tickets.settings().search.popularity_field == "customers"
    assert page.toggle(key="set_signals_popularity_on").value is True
    parts: list[dict[str, Any]] = columns_data(page)["columns"][0]["lines"][0]["parts"]
    assert [one["title"] for one in parts] == ["lexical", "semantic", "popularity"]


def test_signals_of_events_have_controls_before_the_first_query(
    tickets: Collection, open_page: Open
) -> None:
    one = tickets.documents().ids[0]
    store = Behaviour(tickets)
    store.switch(True)
    store.record([Event("bearing", one, "open", 1, "2024-03-01", f"u{n}") for n in range(3)])
    page = open_page()
    assert page.toggle(key="set_signals_clicks_on").value is True
