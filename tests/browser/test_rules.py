"""Rules in a real browser: a cell of the table changes the TOML, and both are saved."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit, make_collection

RULES = '[[rule]]\nname = "Pumps"\ndocuments = ["pumps.md"]\nboost = 1\n'


@pytest.mark.parametrize("size", [(1440, 900), (390, 844)])
def test_a_rule_is_written_as_toml_changed_in_the_table_and_saved(
    visit: Visit, server: str, home: Path, size: tuple[int, int]
) -> None:
    collection = make_collection(home, f"Rules {size[0]}", {"pumps.md": "# Pumps\n\nA pump leaks."})
    page = visit.page
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto(f"{server}/signals?collection={collection.name}")
    toml = page.get_by_role("textbox", name="The same as TOML")
    toml.fill(RULES.replace("boost = 1", "boost = 0"))
    toml.blur()
    expect(page.get_by_text("boost is 0; give a weight above 0")).to_be_visible(timeout=30_000)
    toml.fill(RULES)
    toml.blur()
    expect(page.get_by_text("Not saved: 1 rule added (Pumps)")).to_be_visible(timeout=30_000)
    grid = page.locator(".stDataFrame canvas").first
    expect(page.locator("table[role=grid]").first).to_contain_text("Pumps")
    editor = page.locator("#portal textarea, #portal input").first
    for _ in range(10):  # the table is still put in place after a run
        grid.scroll_into_view_if_needed()
        box = grid.bounding_box()
        assert box is not None
        # The grid is painted: behind the narrow column of row numbers stands the name.
        page.mouse.move(box["x"] + 90, box["y"] + 50)
        page.wait_for_timeout(300)
        page.mouse.dblclick(box["x"] + 90, box["y"] + 50)
        page.wait_for_timeout(500)
        if editor.is_visible():
            break
    editor.fill("Pumps first")
    editor.press("Enter")
    expect(toml).to_have_value(RULES.replace('"Pumps"', '"Pumps first"'), timeout=30_000)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved 1 rule.")).to_be_visible(timeout=30_000)
    assert collection.rules_text() == RULES.replace('"Pumps"', '"Pumps first"')
    assert visit.errors == []


def test_every_click_on_a_tab_counts(visit: Visit, server: str, home: Path) -> None:
    collection = make_collection(home, "Tabs", {"pumps.md": "# Pumps\n\nA pump leaks."})
    page = visit.page
    page.goto(f"{server}/signals?collection={collection.name}&tab=Fields")
    for name, said in (
        ("Behaviour", "Record what people do"), ("Rules", "Rules act on"), ("Fields", "What files say"), ("Rules", "Rules act on"),
    ):  # fmt: skip
        page.get_by_role("tab", name=name, exact=True).click()
        expect(page.get_by_text(said)).to_be_visible(timeout=30_000)
        expect(page).to_have_url(f"{server}/signals?collection={collection.name}&tab={name}")
