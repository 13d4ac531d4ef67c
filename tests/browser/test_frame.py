"""The frame around every page: its menu is reached by mouse and keyboard at both widths."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlparse

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Visit, make_collection


@pytest.mark.parametrize("size", [(1440, 900), (390, 844)])
def test_the_menu_is_clicked_from_page_to_page(
    visit: Visit, server: str, home: Path, size: tuple[int, int]
) -> None:
    name = f"Menu {size[0]}"
    make_collection(home, name, {"pumps.md": "# Pumps\n\nA pump leaks."})
    page = visit.page
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto(f"{server}/?collection={name}")
    for label, path in (("Documents", "/documents"), ("Chunks", "/chunks"), ("Search", "/")):
        page.locator(".st-key-frame_header").get_by_role("link", name=label).click(timeout=15_000)
        active = page.locator("[class*='st-key-frame_menu_'][class*='_active']")
        expect(active).to_have_text(label)
        assert urlparse(page.url).path == path
        expect(page.get_by_role("combobox", name="Collection")).to_have_value(name)
    assert visit.errors == []
