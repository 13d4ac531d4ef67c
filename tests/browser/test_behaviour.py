"""Recording what a person does with results, filters, and the Signals tab, in a real browser."""

from __future__ import annotations

import re
import time
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from core.behaviour.events import Event
from core.behaviour.store import Behaviour
from core.collection import Collection
from core.loading import LoadOptions, load
from tests.browser.conftest import Visit, make_collection

expect.set_options(timeout=30_000)
TEXTS = {
    "pumps.md": "# Pumps\n\n## Noise\n\nA dry bearing makes the pump rattle. Grease the bearing monthly.\n",
    "fans.md": "# Fans\n\nA fan with a bent blade shakes. A bearing without grease squeaks.\n",
}
TICKETS = (
    "ticket,text,severity,customers\nT-1,The bearing rattles,high,12\nT-2,The bearing squeaks,low,3\n"
    "T-3,A lamp flickers,high,40\n"
)


def ask(visit: Visit, server: str, collection: str, query: str, **settings: str) -> Page:
    page = visit.page
    page.goto(f"{server}/?{urlencode({'collection': collection, **settings})}")
    box, resume = page.locator(".st-key-query_box input"), page.locator(".st-key-index_resume button")
    expect(box.or_(resume).first).to_be_visible()
    if resume.is_visible():
        resume.click()
        expect(page.locator(".st-key-invitation")).to_be_visible()
        rests(page)
    box.fill(query)
    box.press("Enter")
    expect(page.locator(".column[data-name=passages] .card").first).to_be_visible()
    rests(page)
    return page


def rests(page: Page) -> None:
    expect(page.locator(".stApp[data-test-script-state=notRunning]")).to_be_visible()


def recorded(collection: Collection, number: int) -> list[Event]:
    """The events, as soon as there are so many."""
    end = time.monotonic() + 10
    while len(found := Behaviour(collection).events()) < number and time.monotonic() < end:
        time.sleep(0.1)
    assert len(found) == number
    return found


def test_what_is_done_with_results_is_recorded_only_where_that_is_switched_on(
    visit: Visit, server: str, home: Path
) -> None:
    collection = make_collection(home, "Watched", TEXTS)
    visit.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = ask(visit, server, "Watched", "bearing grease", two_stage="false")
    second = page.locator(".column[data-name=passages] .card").nth(1)
    second.locator(".copy").click()
    expect(second.locator(".copy.done")).to_be_visible()
    second.click()
    expect(page.locator(".rs-why-sentence")).to_be_visible()
    rests(page)
    assert Behaviour(collection).events() == []
    expect(page.locator(".st-key-recorded")).to_have_count(0)

    page.goto(f"{server}/signals?collection=Watched&tab=Behaviour")
    page.locator(".st-key-behaviour_on label").click()
    expect(page.get_by_text("what you do on the Search page is kept for local")).to_be_visible()

    ask(visit, server, "Watched", "bearing grease", two_stage="false")
    expect(page.locator(".st-key-recorded")).to_contain_text("Recorded for local")
    shown = recorded(collection, 2)
    cards = page.locator(".column[data-name=passages] .card")
    order = [card.get_attribute("data-document") for card in cards.all()]
    assert [(one.kind, one.document_id, one.rank) for one in shown] == [
        ("shown", document, rank) for rank, document in enumerate(order, 1)
    ]
    second.click()
    recorded(collection, 3)
    rests(page)
    second.locator(".copy").click()
    recorded(collection, 4)
    copied = page.evaluate("navigator.clipboard.readText()")
    document = next(one for one in collection.documents() if one.id == order[1])
    assert copied
    assert copied in document.text
    rests(page)
    second.locator(".thumb.up").click()
    events = recorded(collection, 5)
    assert [(one.kind, one.document_id, one.rank) for one in events[2:]] == [
        (kind, order[1], 2) for kind in ("open", "copy", "up")
    ]
    assert {(one.user, one.query) for one in events} == {("local", "bearing grease")}
    assert len({one.session for one in events}) == 1

    page.locator(".st-key-recorded a").click()
    expect(page.get_by_text("5 events: shown 2, opened 1, copied 1, thumbs up 1")).to_be_visible()
    page.get_by_role("button", name="Erase").click()
    page.locator(".st-key-behaviour_erase button").click()
    expect(page.get_by_text("Erased 5 events.")).to_be_visible()
    assert Behaviour(collection).events() == []
    assert (visit.outside, visit.errors) == ([], [])


@pytest.fixture(scope="module")
def tickets(server: str, home: Path) -> str:
    made = make_collection(home, "Tickets", {})
    data = TICKETS.encode()
    made.add(load(data, "tickets.csv", LoadOptions(records="items")), "tickets.csv", len(data))
    return "Tickets"


def test_a_facet_filters_and_its_chip_takes_it_back(visit: Visit, server: str, tickets: str) -> None:
    page = ask(visit, server, tickets, "bearing")
    items = page.locator(".stepbutton", has_text="Items").locator(".stepcount")
    expect(items).to_have_text("3 / 3")
    page.locator(".st-key-group_Filters summary").click()
    page.locator(".st-key-filter_values label", has_text="high · 2").click()
    expect(items).to_have_text("2 / 2")
    chips = page.locator(".st-key-filter_chips")
    expect(chips).to_contain_text("2 of 3 items pass")
    expect(page.locator(".st-key-filter_values")).to_be_visible()
    box = page.locator(".st-key-filter_text input")
    expect(box).to_have_value("severity = high")
    box.fill("severity = high; customers > 20")
    box.press("Enter")
    expect(items).to_have_text("1 / 1")
    page.reload()
    expect(items).to_have_text("1 / 1")
    chips.get_by_role("button", name=re.compile("customers > 20")).click()
    expect(items).to_have_text("2 / 2")
    chips.get_by_role("button").click()
    expect(items).to_have_text("3 / 3")
    expect(chips).to_have_count(0)
    assert (visit.outside, visit.errors) == ([], [])


def test_the_signals_tab_draws_items_and_keeps_to_a_phone(
    visit: Visit, server: str, tickets: str
) -> None:
    visit.page.set_viewport_size({"width": 390, "height": 844})
    page = ask(visit, server, tickets, "bearing", popularity_field="customers")
    page.get_by_role("tab", name="Signals").click()
    table = page.locator(".rs-signals")
    expect(table.locator("tbody tr")).to_have_count(3)
    expect(table.locator("thead")).to_contain_text("Popularity")
    expect(page.locator(".st-key-item_flow .scatterlayer .trace")).to_have_count(3)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert (visit.outside, visit.errors) == ([], [])
