"""The Search page as a person uses it."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit, make_collection

BEARINGS = {
    "pumps.md": "# Pumps\n\n## Noise\n\nA dry bearing makes the pump rattle. Grease the bearing monthly.\n\n"
    "## Leaks\n\nA worn seal lets oil out. Replace the seal and check the shaft.\n",
    "fans.md": "# Fans\n\nA fan with a bent blade shakes. A bearing without grease squeaks.\n",
    "lamps.md": "# Lamps\n\nA lamp flickers when its driver is too hot.\n",
}
HOSTILE = (
    '<img src="https://beacon.example.invalid/a.png" onerror="document.title=\'taken\'"> '
    "<script>document.title='taken'</script> ![beacon](https://beacon.example.invalid/b.png) "
    "[link](https://beacon.example.invalid/c) **bold** `code` $x^2$ :smile: TAGTEXT bearing"
)
COLUMNS = ("items", "bm25", "vector", "fused", "scored", "passages")


@pytest.fixture(scope="module")
def bearings(server: str, home: Path) -> str:
    make_collection(home, "Bearings", BEARINGS)
    return "Bearings"


def search(visit: Visit, server: str, collection: str, query: str, **settings: str) -> Page:
    """Open the collection, index it where that was not done, ask the query."""
    page = visit.page
    page.goto(f"{server}/?{urlencode({'collection': collection, **settings})}")
    box = page.locator(".st-key-query_box input")
    resume = page.locator(".st-key-index_resume button")
    expect(box.or_(resume).first).to_be_visible()
    if resume.is_visible():
        resume.click()
    box.fill(query)
    box.press("Enter")
    expect(page.locator(".column")).to_have_count(len(COLUMNS))
    return page


def rests(page: Page) -> None:
    """Wait until the page is drawn to its end: on a busy machine parts of it arrive late."""
    expect(page.locator(".stApp[data-test-script-state=notRunning]")).to_be_visible()


def cards(page: Page, column: str) -> list[str]:
    """What the cards of a column read, from top to bottom."""
    return page.locator(f".column[data-name={column}] .card").all_inner_texts()


def test_search_select_and_explain(visit: Visit, server: str, bearings: str) -> None:
    page = search(visit, server, bearings, "bearing grease")
    for column in COLUMNS:
        assert cards(page, column), column
    # The two chunks with both words lead in BM25; every fused score is the sum beside it.
    assert [re.search(r"\n(A|B)\d", text) is not None for text in cards(page, "bm25")] == [True, True]
    first = page.locator(".column[data-name=fused] .card").first
    terms = [float(term) for term in first.locator(".term").all_inner_texts()]
    assert abs(sum(terms) - float(first.locator(".score").inner_text())) < 0.00002
    assert first.locator(".formula").first.inner_text() == "1/(60+1)"

    label = first.locator(".chip").inner_text()
    first.click()
    for column in ("bm25", "vector", "fused", "scored", "passages"):
        marked = page.locator(f".column[data-name={column}] .card.selected")
        expect(marked).to_have_count(1)
        assert label in marked.locator(".chip").all_inner_texts()
    why = page.locator(".rs-why-sentence")
    expect(why).to_contain_text("BM25 ranks it 1 and Vector ranks it")
    expect(page.get_by_text("BM25: term by term")).to_be_visible()
    expect(page.locator(".rs-table", has_text="contribution")).to_contain_text("bear")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1440
    assert (visit.outside, visit.errors) == ([], [])


def test_an_item_card_marks_all_its_chunks(visit: Visit, server: str, bearings: str) -> None:
    page = search(visit, server, bearings, "bearing grease", settings="default", merge="false")
    pumps = page.locator(".column[data-name=items] .card", has_text="pumps.md")
    letter = pumps.locator(".chip").inner_text()
    pumps.click()
    expect(page.get_by_text("Its chunks, in the order of its text")).to_be_visible()
    for column, marked in (("items", 1), ("bm25", 1), ("vector", 2), ("fused", 2), ("passages", 2)):
        selected = page.locator(f".column[data-name={column}] .card.selected .chip")
        expect(selected).to_have_count(marked)
        assert all(label.startswith(letter) for label in selected.all_inner_texts())
    # One of its chunks: that one alone from then on, and its item.
    page.locator(".column[data-name=vector] .card.selected").last.click()
    expect(page.locator(".column[data-name=vector] .card.selected")).to_have_count(1)
    expect(pumps).to_have_attribute("aria-pressed", "true")
    pumps.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".column[data-name=vector] .card.selected")).to_have_count(2)
    page.keyboard.press("Enter")
    expect(page.locator(".card.selected")).to_have_count(0)


def test_a_passage_shows_its_chunks_and_gaps_to_scale(visit: Visit, server: str, bearings: str) -> None:
    page = search(visit, server, bearings, "bearing grease", settings="default")
    passage = page.locator(".column[data-name=passages] .card", has_text="chunks joined")
    bar = passage.locator(".spans")
    parts = [part.bounding_box() for part in bar.locator(".span").all()]
    whole = bar.bounding_box()
    assert len(parts) == 2
    assert whole
    assert all(part and part["width"] > 10 for part in parts)
    assert abs(sum(part["width"] for part in parts if part) / whole["width"] - 1) < 0.05
    expect(passage).to_contain_text(re.compile(r"2 chunks joined, (no gap|gap \d+–\d+)"))


def test_a_chunk_is_found_by_its_words_and_explained(visit: Visit, server: str, bearings: str) -> None:
    page = search(visit, server, bearings, "bearing grease", settings="default", k="1")
    box = page.locator(".st-key-pick_words input")
    box.fill("flickers")
    box.press("Enter")
    page.locator("[class*=st-key-pick_row_]").get_by_role("button", name="C1").click()
    expect(page.locator(".rs-why-sentence")).to_contain_text("It is not in the result: lost at Kept")
    expect(box).to_have_value("")


def test_work_that_goes_on_is_seen_and_the_columns_stay_where_they_are(
    visit: Visit, server: str, bearings: str
) -> None:
    page = search(visit, server, bearings, "bearing grease", settings="default")
    expect(page.locator(".rs-change")).to_contain_text("Searched 4 chunks in")
    rests(page)
    board = page.locator(".board").bounding_box()
    page.locator(".st-key-row_set_k_rrf input[type=range]").press("ArrowLeft")
    expect(page.locator(".rs-change")).to_contain_text("Recomputed")
    rests(page)
    assert page.locator(".board").bounding_box() == board
    page.get_by_role("button", name="Reset all").click()
    expect(page.locator(".column[data-name=fused] .formula").first).to_have_text("1/(60+1)")
    rests(page)
    line = "getComputedStyle(document.querySelector('.stApp'), '::before').animationName"
    page.evaluate("document.querySelector('.stApp').dataset.testScriptState = 'running'")
    assert "rs-busy" in page.evaluate(line)
    page.evaluate("document.querySelector('.stApp').dataset.testScriptState = 'notRunning'")
    assert page.evaluate(line) == "none"


def test_a_slider_changes_scores_and_the_change_survives_a_refresh(
    visit: Visit, server: str, bearings: str
) -> None:
    page = search(visit, server, bearings, "bearing grease")
    score = page.locator(".column[data-name=fused] .card .score").first
    before = float(score.inner_text())
    slider = page.locator(".st-key-row_set_k_rrf input[type=range]")
    slider.focus()
    slider.press("ArrowLeft")
    expect(page.locator(".rs-change")).to_contain_text("Recomputed from the recorded search")
    expect(page.locator(".column[data-name=fused] .formula").first).to_have_text("1/(59+1)")
    assert float(score.inner_text()) > before
    page.reload()
    expect(page.locator(".column[data-name=fused] .formula").first).to_have_text("1/(59+1)")
    page.get_by_role("button", name="Reset all").click()
    expect(page.locator(".column[data-name=fused] .formula").first).to_have_text("1/(60+1)")


def test_quick_steps_of_a_slider_all_count(visit: Visit, server: str, bearings: str) -> None:
    page = search(visit, server, bearings, "bearing grease", settings="default")
    handle = page.locator(".st-key-row_set_k_rrf input[type=range]")
    handle.focus()
    for _ in range(20):
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(30)
    expect(page.locator(".column[data-name=fused] .formula").first).to_have_text("1/(80+1)")
    expect(handle).to_be_focused()
    for _ in range(5):  # slow enough for the page to answer each
        page.keyboard.press("ArrowLeft")
        page.wait_for_timeout(300)
    expect(page.locator(".column[data-name=fused] .formula").first).to_have_text("1/(75+1)")
    expect(page.locator(".st-key-row_set_k_rrf input[type=number]")).to_have_value("75")
    page.get_by_role("button", name="Reset all").click()
    expect(page.locator(".column[data-name=fused] .formula").first).to_have_text("1/(60+1)")


def test_the_keyboard_reaches_every_card(visit: Visit, server: str, bearings: str) -> None:
    page = search(visit, server, bearings, "bearing grease")
    fused = page.locator(".column[data-name=fused] .card")
    fused.first.focus()
    page.keyboard.press("ArrowDown")
    expect(fused.nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(fused.nth(1)).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("ArrowRight")
    scored = page.locator(".column[data-name=scored] .card.selected")
    expect(scored).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".card.selected")).to_have_count(0)


def test_pointing_at_a_chunk_marks_it_in_every_column(visit: Visit, server: str, bearings: str) -> None:
    page = search(visit, server, bearings, "bearing grease")
    page.locator(".column[data-name=bm25] .card").first.hover()
    for column in ("bm25", "vector", "fused", "scored", "passages"):
        expect(page.locator(f".column[data-name={column}] .card.hover")).to_have_count(1)


def test_the_rank_flow_has_a_line_for_each_chunk(visit: Visit, server: str, bearings: str) -> None:
    page = search(visit, server, bearings, "bearing grease")
    page.get_by_role("tab", name="Rank flow").click()
    expect(page.locator(".scatterlayer .trace")).to_have_count(4)
    page.locator(".st-key-rank_flow_table summary").click()
    expect(page.locator(".st-key-rank_flow_table tbody tr")).to_have_count(4)


def test_text_of_documents_and_queries_shows_letter_by_letter(
    visit: Visit, server: str, home: Path
) -> None:
    make_collection(home, "Hostile texts", {"hostile.txt": HOSTILE, f"{'<b>x</b>'}.txt": "A bearing."})
    page = search(visit, server, "Hostile texts", "TAGTEXT ![q](https://beacon.example.invalid/q.png)")
    card = page.locator(".column[data-name=passages] .card", has_text="TAGTEXT")
    card.click()
    expect(page.locator(".rs-jt-text")).to_have_text(HOSTILE, use_inner_text=True)
    shown = "".join(
        page.locator(".column[data-name=bm25] .card").first.locator(".excerpt").all_inner_texts()
    )
    assert shown.strip("…") in HOSTILE
    page.wait_for_timeout(500)
    assert page.title() == "Search · Rankscope"
    assert page.locator("img[src*=beacon], a[href*=beacon]").count() == 0
    assert (visit.outside, visit.errors) == ([], [])


def test_long_lists_show_twenty_lines_and_more_when_asked(visit: Visit, server: str, home: Path) -> None:
    make_collection(
        home, "Long", {f"note{at}.md": f"# Note {at}\n\nA pump and note {at}.\n" for at in range(33)}
    )
    page = search(visit, server, "Long", "pump")
    bm25 = page.locator(".column[data-name=bm25]")
    expect(bm25.locator(".card")).to_have_count(20)
    expect(bm25.locator(".count")).to_have_text("33")
    bm25.locator(".more").click()
    expect(bm25.locator(".card")).to_have_count(33)
    expect(bm25.locator(".more")).to_have_count(0)


def test_a_selected_chunk_below_the_lines_drawn_stands_under_a_gap(
    visit: Visit, server: str, home: Path
) -> None:
    texts = {f"note{at}.md": f"Note {at}. A pump{' and a pump' * (at % 7)}.\n" for at in range(60)}
    make_collection(home, "Gap", texts)
    page = search(visit, server, "Gap", "pump")
    bm25, vector = (page.locator(f".column[data-name={name}]") for name in ("bm25", "vector"))
    expect(bm25.locator(".card")).to_have_count(20)
    drawn = {card.get_attribute("data-pick") for card in bm25.locator(".card").all()}
    below = next(
        card for card in vector.locator(".card").all() if card.get_attribute("data-pick") not in drawn
    )
    chosen = below.get_attribute("data-pick")
    below.click()
    expect(bm25.locator(".card")).to_have_count(21)
    last = bm25.locator(".card").last
    expect(last).to_have_attribute("aria-pressed", "true")
    expect(last).to_be_in_viewport()
    assert last.get_attribute("data-pick") == chosen
    rank = int(last.locator(".rank").inner_text())
    left = {21: [], 22: ["⋮ rank 21 not drawn"]}.get(rank, [f"⋮ ranks 21–{rank - 1} not drawn"])
    assert bm25.locator(".gap").all_inner_texts() == left
    expect(bm25.locator(".more")).to_have_text("Show more (39 left)")
    last.click()
    expect(bm25.locator(".card")).to_have_count(20)
    assert visit.errors == []


def test_on_a_phone_the_page_does_not_scroll_sideways(visit: Visit, server: str, bearings: str) -> None:
    visit.page.set_viewport_size({"width": 390, "height": 844})
    page = search(visit, server, bearings, "bearing grease")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.locator(".stepbutton", has_text="Passages").click()
    expect(page.locator(".column[data-name=passages] .card").first).to_be_in_viewport()
