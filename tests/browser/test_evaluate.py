"""The Evaluate page as a person uses it: judged questions, figures, a loss, and the query behind it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core.collection import create
from core.loading import LoadOptions, load
from core.sample import SAMPLE, sample_files
from tests.browser.conftest import Visit

expect.set_options(timeout=30_000)


@pytest.fixture(scope="module")
def sample(server: str, home: Path) -> str:
    """The sample collection in the server's data folder, not indexed yet."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANKSCOPE_HOME", str(home))
        made = create(SAMPLE)
        for name, data in sample_files():
            made.add(load(data, name, LoadOptions(records="items")), name, len(data))
    return SAMPLE


def tab(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name).click()


def test_from_judged_questions_to_a_loss_and_its_query(visit: Visit, server: str, sample: str) -> None:
    page = visit.page
    page.goto(f"{server}/evaluate?collection={sample}")
    expect(page.get_by_text("No golden queries yet").first).to_be_visible()
    expect(page.locator(".st-key-index_running")).to_have_count(0, timeout=60_000)
    page.locator(".st-key-judgements_sample button").first.click()
    expect(page.get_by_text("73 new questions")).to_be_visible()
    expect(page.locator(".rs-eval-facts")).to_contain_text("73 golden queries")

    # On a phone the badges stand right below a question that fills its line.
    page.set_viewport_size({"width": 390, "height": 844})
    gaps = [
        below["y"] - above["y"] - above["height"]
        for one in page.locator("[class*=st-key-judged_row_]").all()
        if (above := one.locator("[class*=st-key-judged_toggle_]").bounding_box())
        and (below := one.locator(".rs-eval-marks").bounding_box())
    ]
    assert 0 <= max(gaps) < 8
    page.set_viewport_size({"width": 1440, "height": 900})

    tab(page, "Measure")
    page.locator(".st-key-measure_do button").first.click()
    cells = page.locator(".rs-eval-table tbody tr", has_text="Kept").locator("td")
    expect(cells.nth(3)).to_have_text(re.compile(r"0\.\d{3}0\.\d\d–[01]\.\d\d"))
    recall, failure = (float(cells.nth(at).inner_text()[:5]) for at in (3, 4))
    assert recall + failure == pytest.approx(1, abs=0.0011)
    assert page.evaluate("document.documentElement.scrollWidth") <= 1440

    tab(page, "Funnel")
    share = page.locator(".rs-eval-verdict").inner_text().partition(" %")[0]
    assert float(share) / 100 == pytest.approx(recall, abs=0.0011)
    # The second series is what is lost: one bar for each stage, the empty ones without a surface.
    lost = page.locator(".st-key-funnel_chart .trace.bars").nth(1).locator(".point path")
    expect(lost.first).to_be_attached()
    boxes = [box for path in lost.all() if (box := path.bounding_box()) and box["width"] > 3]
    smallest = min(boxes, key=lambda box: box["width"])
    page.mouse.click(
        smallest["x"] + smallest["width"] / 2, smallest["y"] + smallest["height"] / 2
    )  # above it lies what plotly hears clicks with
    chosen = page.locator(".st-key-funnel_stage [role=radio][aria-checked=true]")
    expect(chosen).to_have_count(1)
    # The smallest loss, where the largest was shown before.
    expect(chosen).to_have_text(re.compile(r" · 1$"))
    title, number = chosen.inner_text().split(" · ")
    expect(page.get_by_text(f"{title}: {number} piece")).to_be_visible()
    link = page.locator("[class*=st-key-evaluate_query_] a").first
    asked = link.inner_text()

    link.click()
    expect(page.locator(".column").first).to_be_visible()
    assert "golden=q" in page.url
    expect(page.locator(".judged")).to_contain_text("golden piece")
    expect(page.locator(".st-key-query_box input")).to_have_value(
        re.compile(re.escape(asked.split()[-1]))
    )
    # Back again: nothing was lost by leaving.
    page.locator(".st-key-frame_menu_evaluate a").click()
    expect(page.get_by_role("tab", name="Funnel")).to_have_attribute("aria-selected", "true")
    expect(page.locator(".rs-eval-verdict")).to_contain_text(f"{share} %")
    switches = page.locator(".st-key-set_two_stage input, .st-key-set_indexes_bm25_on input")
    for there in ("search", "evaluate", "search"):
        page.locator(f".st-key-frame_menu_{there} a").click()
        expect(page.locator(f".st-key-frame_menu_{there}_active")).to_be_visible()
        expect(page.locator("[data-test-script-state=notRunning]")).to_be_attached()
        expect(switches).to_have_count(2)
        assert [one.is_checked() for one in switches.all()] == [True, True]
    # And a reload keeps the tab.
    page.goto(f"{server}/evaluate?collection={sample}&tab=Funnel")
    expect(page.get_by_role("tab", name="Funnel")).to_have_attribute("aria-selected", "true")
    assert (visit.outside, visit.errors) == ([], [])
