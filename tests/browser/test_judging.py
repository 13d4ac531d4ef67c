"""Judging on the Search page as a person does it: thumbs, keys, selected words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from core.collection import Collection, open_collection
from core.evaluation import GoldenQuery, open_judgements
from tests.browser.conftest import Visit, make_collection
from tests.browser.test_search import search

TEXTS = {
    "pumps.md": "# Pumps\n\n## Noise\n\nA dry bearing makes the pump rattle. Grease the bearing monthly.\n\n"
    "## Leaks\n\nA worn seal lets oil out. Replace the seal and check the shaft.\n",
    # Letters that JavaScript counts twice stand before the words to be selected.
    "fans.md": "# Fans\n\n🌀🌀 A fan with a bent blade shakes. A bearing without grease <b>squeaks</b> 🌀 loudly.\n",
    "lamps.md": "# Lamps\n\nA lamp flickers when its driver is too hot.\n",
}
CHUNKS = ("bm25", "vector", "fused", "scored", "passages")


@pytest.fixture
def judged(server: str, home: Path, request: pytest.FixtureRequest) -> Iterator[Collection]:
    """A collection of its own, in the server's data folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANKSCOPE_HOME", str(home))
        make_collection(home, request.node.name, TEXTS)
        yield open_collection(request.node.name)


def stored(collection: Collection) -> list[GoldenQuery]:
    return list(open_judgements(collection).queries(collection.documents()).queries)


def card(page: Page, column: str, words: str) -> str:
    """A selector of the card in a column that shows these words, or whose title does."""
    return f'.column[data-name={column}] .card:has-text("{words}")'


def test_a_thumb_marks_its_chunk_everywhere_searches_nothing_and_stays(
    visit: Visit, server: str, judged: Collection
) -> None:
    page = search(visit, server, judged.name, "bearing grease", settings="default", merge="false")
    said = page.get_by_text("Searched 4 chunks in").inner_text()
    before = page.locator(card(page, "vector", "Fans")).bounding_box()
    board = page.locator(".board").bounding_box()
    page.locator(card(page, "bm25", "Fans")).locator(".thumb.up").click()
    for column in CHUNKS:
        one = page.locator(card(page, column, "Fans"))
        expect(one).to_have_class(re.compile(r"\bgolden\b"))
        expect(one.locator(".sign")).to_have_attribute("aria-label", re.compile("^Golden: holds all"))
        expect(one.locator(".thumb.up")).to_have_attribute("aria-pressed", "true")
        expect(one.locator(".thumb.down")).to_have_attribute("aria-pressed", "false")
    expect(page.locator(".judged")).to_contain_text("1 golden piece: 1 in the first 20")
    # Nothing was searched, selected or moved.
    assert page.get_by_text("Searched 4 chunks in").inner_text() == said
    expect(page.locator(".card.selected")).to_have_count(0)
    assert page.locator(card(page, "vector", "Fans")).bounding_box() == before
    assert page.locator(".board").bounding_box() == board

    page.reload()
    expect(page.locator(".column[data-name=fused] .card.golden")).to_have_count(1)
    page.locator(card(page, "passages", "Fans")).locator(".thumb.up").click()
    expect(page.locator(".judged")).to_contain_text("Not judged yet")
    expect(page.locator(".golden")).to_have_count(0)
    assert stored(judged) == []
    assert (visit.outside, visit.errors) == ([], [])


def test_quick_thumbs_all_count(visit: Visit, server: str, judged: Collection) -> None:
    page = search(visit, server, judged.name, "bearing grease", settings="default", merge="false")
    labels = page.locator(".column[data-name=scored] .card .chip").all_inner_texts()
    page.evaluate(
        """() => {
          const root = [...document.querySelectorAll("*")].find((one) => one.shadowRoot?.querySelector(".board")).shadowRoot;
          const cards = [...root.querySelectorAll(".column[data-name=scored] .card")];
          cards.forEach((card, at) => card.querySelector(at ? ".thumb.down" : ".thumb.up").click());
        }"""
    )
    expect(page.locator(".judged")).to_contain_text("0 of the first 4 nobody has judged")
    (query,) = stored(judged)
    assert (len(query.evidence), len(query.rejected)) == (1, len(labels) - 1)


def test_taking_back_leaves_what_another_window_judged_since(
    visit: Visit, server: str, judged: Collection
) -> None:
    page = search(visit, server, judged.name, "bearing grease", settings="default", merge="false")
    mine = page.locator(card(page, "fused", "Fans"))
    mine.locator(".thumb.up").click()
    expect(mine).to_have_class(re.compile(r"\bgolden\b"))
    (query,) = stored(judged)
    (one,) = query.evidence
    # Another window, which this one has not heard of.
    open_judgements(judged).judge(query.text, one.document_id, one.start, one.end, 0, judged.documents())
    mine.locator(".thumb.up").click()
    expect(
        page.get_by_text("Not taken back: another window judged this chunk otherwise.")
    ).to_be_visible()
    expect(mine.locator(".thumb.down")).to_have_attribute("aria-pressed", "true")
    (query,) = stored(judged)
    assert (len(query.evidence), len(query.rejected)) == (0, 1)
    # Now it is seen, and can be taken back.
    mine.locator(".thumb.down").click()
    expect(page.locator(".judged")).to_contain_text("Not judged yet")
    assert stored(judged) == []


def test_sums_of_chunks_that_an_index_has_not_stay_in_their_cards(
    visit: Visit, server: str, judged: Collection
) -> None:
    page = search(visit, server, judged.name, "bearing grease", settings="default", merge="false")
    row = page.locator(".column[data-name=fused] .parts tr.none").first
    expect(row).to_have_css("display", "table-row")
    wide = page.locator(".column .body").evaluate_all(
        "all => all.map((one) => one.scrollWidth - one.clientWidth)"
    )
    assert set(wide) == {0}


def test_keys_judge_the_card_in_focus(visit: Visit, server: str, judged: Collection) -> None:
    page = search(visit, server, judged.name, "bearing grease", settings="default", merge="false")
    first = page.locator(".column[data-name=fused] .card").first
    expect(first.locator(".thumb.down")).to_have_attribute("title", re.compile("key −"))
    first.focus()
    page.keyboard.press("-")
    expect(first).to_have_class(re.compile(r"\brejected\b"))
    expect(first).to_be_focused()
    page.keyboard.press("+")
    expect(first).to_have_class(re.compile(r"\bgolden\b"))
    expect(first.locator(".thumb.down")).to_have_attribute("aria-pressed", "false")
    page.keyboard.press("+")
    expect(page.locator(".golden")).to_have_count(0)
    assert stored(judged) == []


def test_selected_words_become_evidence_letter_by_letter(
    visit: Visit, server: str, judged: Collection
) -> None:
    page = search(visit, server, judged.name, "bearing grease", settings="default", merge="false")
    page.locator(card(page, "bm25", "Fans")).click()
    answer = page.locator(".rs-jt-answer")
    expect(answer).to_be_disabled()
    # Where a person looks first: above the tables of the explanation.
    table = page.get_by_role("cell", name="Score fusion").bounding_box()
    place = answer.bounding_box()
    assert table is not None
    assert place is not None
    assert place["y"] < table["y"]
    wanted = "A bearing without grease <b>squeaks</b> 🌀"
    page.evaluate(
        """(wanted) => {
          const node = document.querySelector(".rs-jt-text").firstChild.firstChild;
          const at = node.data.indexOf(wanted);
          // With the blank before it, as a hand would.
          document.getSelection().setBaseAndExtent(node, at - 1, node, at + wanted.length);
        }""",
        wanted,
    )
    expect(answer).to_be_enabled()
    answer.click()
    expect(page.locator(".rs-jt-text mark")).to_have_text(wanted)
    expect(page.locator(".rs-jt-quote")).to_have_text(f"“{wanted}”")
    for column in CHUNKS:
        expect(page.locator(card(page, column, "Fans"))).to_have_class(re.compile(r"\bgolden\b"))
    # The thumb stands for the whole chunk, which was not judged.
    expect(page.locator(".thumb.on")).to_have_count(0)
    documents = judged.documents()
    text = {documents.ids[at]: documents[at].text for at in range(len(documents))}
    (query,) = stored(judged)
    assert [text[one.document_id][one.start : one.end] for one in query.evidence] == [wanted]
    # Words of two stretches, one of them marked already.
    page.evaluate(
        """() => {
          const parts = document.querySelector(".rs-jt-text").childNodes;
          document.getSelection().setBaseAndExtent(parts[0].firstChild, 0, parts[2].firstChild, parts[2].firstChild.length);
        }"""
    )
    answer.click()
    expect(page.locator(".rs-jt-quote")).to_have_count(2)
    (query,) = stored(judged)
    assert text[query.evidence[1].document_id][query.evidence[1].start :].startswith("# Fans")
    assert text[query.evidence[1].document_id][: query.evidence[1].end].endswith("🌀 loudly.")
    page.locator(".rs-jt-back").first.click()
    expect(page.locator(".rs-jt-quote")).to_have_count(1)
    page.locator(".rs-jt-back").first.click()
    expect(page.locator(".judged")).to_contain_text("Not judged yet")
    assert (visit.outside, visit.errors) == ([], [])


def test_a_lost_piece_is_a_click_away_and_no_answer_can_be_said(
    visit: Visit, server: str, judged: Collection
) -> None:
    page = search(visit, server, judged.name, "lamp driver", settings="default", merge="false")
    none = page.get_by_label("No answer in these documents")
    none.check()
    expect(page.locator(".judged")).to_contain_text("these documents do not answer it")
    assert [(one.text, one.answerable) for one in stored(judged)] == [("lamp driver", False)]
    none.uncheck()
    expect(page.locator(".judged")).to_contain_text("Not judged yet")
    last = page.locator(".column[data-name=passages] .card").last
    label = last.locator(".chip").inner_text()
    last.locator(".thumb.up").click()
    expect(page.locator(".piece")).to_contain_text("rank")
    expect(none).to_have_count(0)
    (query,) = stored(judged)
    address = {"collection": judged.name, "q": query.text, "golden": query.id, "items": "1"}
    page.goto(f"{server}/?{urlencode(address)}")
    piece = page.locator(".piece")
    expect(piece).to_contain_text(f"{label}✕ lost")
    expect(piece).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".rs-why-sentence")).to_contain_text("lost at Items")


def test_on_a_phone_thumbs_are_large_enough_to_touch(
    visit: Visit, server: str, judged: Collection
) -> None:
    search(visit, server, judged.name, "bearing grease", settings="default")
    context = visit.page.context.browser.new_context(  # type: ignore[union-attr]
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    try:
        page = context.new_page()
        page.goto(
            f"{server}/?{urlencode({'collection': judged.name, 'q': 'bearing grease', 'merge': 'false'})}"
        )
        thumb = page.locator(".column[data-name=bm25] .card .thumb.up").first
        expect(page.locator(".judged")).to_contain_text("Not judged yet")
        heights = [page.locator(".judged").bounding_box()]
        thumb.tap()
        expect(thumb).to_have_attribute("aria-pressed", "true")
        expect(page.locator(".judged")).to_contain_text("1 golden piece")
        heights.append(page.locator(".judged").bounding_box())
        assert heights[0]
        assert heights[1]
        assert heights[0]["height"] == heights[1]["height"]  # nothing below it moves
        box = thumb.bounding_box()
        assert box
        assert min(box["width"], box["height"]) >= 32
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    finally:
        context.close()
