"""The Chunks page as a person uses it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core.collection import open_collection
from tests.browser.conftest import Visit, make_collection

expect.set_options(timeout=30_000)

WORDS = " ".join(f"word{number:04}" for number in range(900))  # 8,099 characters
HOSTILE = (
    '<img src="https://beacon.example.invalid/a.png" onerror="document.title=1"> '
    "<script>document.title='HACKED'</script> ![b](https://beacon.example.invalid/b.png) **bold** $x$ :smile:"
)
TEXTS = {
    "words.txt": WORDS,
    "hostile.txt": HOSTILE,
    "rtl.txt": "يجب إغلاق صمام الماء AR-617 قبل تبديل المحمل.",
    "long.txt": " ".join(f"w{number:06}" for number in range(125_000)),
}


@pytest.fixture(scope="module")
def cuttings(server: str, home: Path) -> dict[str, str]:
    """Name → document id in the collection "Cuttings"."""
    documents = make_collection(home, "Cuttings", TEXTS).documents()
    return dict(zip(documents.names, documents.ids, strict=True))


def open_text(visit: Visit, server: str, document: str, start: int = 0, end: int = 0) -> Page:
    page = visit.page
    page.goto(f"{server}/chunks?collection=Cuttings&doc={document}&start={start}&end={end}")
    expect(page.locator(".doc .text").first).to_be_visible()
    return page


def count(page: Page) -> int:
    told = page.locator("[data-testid=chunk-count]")
    expect(told).to_be_visible()
    return int(re.findall(r"([\d,]+) chunk", told.inner_text())[0].replace(",", ""))


def test_moving_the_size_slider_changes_the_chunks_and_indexes_nothing(
    visit: Visit, server: str, cuttings: dict[str, str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = open_text(visit, server, cuttings["words.txt"])
    assert count(page) == 11  # of at most 800 characters
    assert page.locator(".doc .label").count() == 11

    slider = page.locator(".st-key-row_chunk_size input[type=range]")
    slider.focus()
    for _ in range(20):
        slider.press("ArrowLeft")  # ten characters each

    expect(page.get_by_test_id("chunk-count")).to_contain_text("14 chunks")
    expect(page.locator(".doc .label")).to_have_count(14)
    expect(page.get_by_text("Not in the index yet")).to_be_visible()
    monkeypatch.setenv("RANKSCOPE_HOME", str(home))
    assert open_collection("Cuttings").settings().index.chunking.size == 800
    assert page.locator(".doc").inner_text().count("word0899") == 1


def test_a_link_marks_the_span_and_scrolls_to_it(
    visit: Visit, server: str, cuttings: dict[str, str]
) -> None:
    start = WORDS.index("word0700")
    page = open_text(visit, server, cuttings["words.txt"], start, start + 17)

    mark = page.locator(".doc .mark")
    expect(mark).to_have_text("word0700 word0701")
    expect(mark).to_be_in_viewport()
    assert page.locator(".doc").evaluate("e => e.scrollTop") > 200
    expect(page.get_by_text("Rankscope", exact=True)).to_be_in_viewport()


def test_a_long_line_is_shown_in_parts_and_walked_through(
    visit: Visit, server: str, cuttings: dict[str, str]
) -> None:
    start = TEXTS["long.txt"].index("w100000")
    page = open_text(visit, server, cuttings["long.txt"], start, start + 7)
    expect(page.locator(".doc .mark")).to_have_text("w100000")
    shown = page.locator(".doc .text")
    assert sum(len(text) for text in shown.all_text_contents()) == 20_000

    page.locator(".st-key-chunk_on button").first.click()

    expect(shown.first).not_to_contain_text("w100000")
    expect(page.locator(".doc .mark")).to_have_count(0)


def test_text_is_shown_letter_by_letter(visit: Visit, server: str, cuttings: dict[str, str]) -> None:
    page = open_text(visit, server, cuttings["hostile.txt"])

    expect(page.locator(".doc .text")).to_have_text(HOSTILE)
    assert page.locator(".doc img, .doc script, .doc b").count() == 0
    assert page.title() == "Chunks · Rankscope"
    assert visit.outside == []
    assert visit.errors == []


def test_right_to_left_text_runs_right_to_left(
    visit: Visit, server: str, cuttings: dict[str, str]
) -> None:
    page = open_text(visit, server, cuttings["rtl.txt"])

    text = page.locator(".doc .text").first
    assert text.evaluate("e => getComputedStyle(e).direction") == "rtl"
    # The part number keeps its order: its first letter stands left of its last digit.
    ends = text.evaluate(
        """e => { const node = e.querySelector("span").firstChild, at = node.data.indexOf("AR-617");
        return [at, at + 5].map(i => { const r = document.createRange(); r.setStart(node, i);
        r.setEnd(node, i + 1); return r.getBoundingClientRect().left; }); }"""
    )
    assert ends[0] < ends[1]


def test_the_text_is_reached_and_scrolled_by_keyboard(
    visit: Visit, server: str, cuttings: dict[str, str]
) -> None:
    page = open_text(visit, server, cuttings["words.txt"])
    box = page.locator(".doc")
    assert box.get_attribute("tabindex") == "0"
    box.focus()
    page.keyboard.press("PageDown")

    page.wait_for_function(
        "() => [...document.querySelectorAll('*')].some(e => e.shadowRoot?.querySelector('.doc')?.scrollTop > 100)"
    )


def test_the_page_does_not_scroll_sideways(visit: Visit, server: str, cuttings: dict[str, str]) -> None:
    for width in (1440, 390):
        visit.page.set_viewport_size({"width": width, "height": 844})
        page = open_text(visit, server, cuttings["words.txt"])
        assert count(page) == 11
        assert page.get_by_test_id("stMain").evaluate("e => e.scrollWidth - e.clientWidth") <= 1
