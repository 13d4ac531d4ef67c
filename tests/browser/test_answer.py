"""The Answer page as a person uses it, against the scripted server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from core.collection import remember
from tests.browser.conftest import ROOT, Visit, free_port, make_collection, wait_for
from tests.claude_server import KEY, ClaudeServer

TEXTS = {
    "pumps.md": "# Pumps\n\n## Noise\n\nA dry bearing makes the pump rattle. Grease the bearing monthly. "
    "軸受に油を差す。毎月確認する。\n\n## Leaks\n\nA worn seal lets oil out 🛠️. Replace the seal.\n",
    "trap.md": "# Trap\n\n<img src=x onerror=\"document.title='taken'\"> **bearing** [a](https://b.invalid)\n",
}
SEND = ".st-key-answer_send_passages button:visible"  # with a tooltip there is a second one, for phones
SLOW = 30_000  # milliseconds, on a busy machine
GREASE = "Grease the bearing monthly."


@pytest.fixture(scope="module")
def asked(
    browser: Browser, claude_server: ClaudeServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Path]]:
    """An app whose Anthropic is the scripted server: its address and its data folder."""
    home = tmp_path_factory.mktemp("answer_home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANKSCOPE_HOME", str(home))
        patch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
        patch.setenv("ANTHROPIC_API_KEY", KEY)
        patch.setenv("ANTHROPIC_BASE_URL", claude_server.url)
        remember("sample", "done")
        make_collection(home, "Pumps", TEXTS)
        port = free_port()
        log = home.with_name("answer_server.log")
        with log.open("wb") as out:
            command = [sys.executable, str(Path(__file__).with_name("serve.py")), str(port)]
            process = subprocess.Popen(
                command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, env=os.environ
            )
    try:
        address = f"http://127.0.0.1:{port}"
        wait_for(address, process, log)
        yield address, home
        assert KEY not in log.read_text(errors="replace")
    finally:
        process.terminate()
        process.wait(timeout=20)


@pytest.fixture
def window(browser: Browser, asked: tuple[str, Path], claude: ClaudeServer) -> Iterator[Visit]:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(30_000)
    yield Visit(context.new_page())
    context.close()


def block_of(claude: ClaudeServer, sentence: str) -> dict[str, object]:
    """A citation of the sentence, wherever it stands in what was sent last."""
    for at, block in enumerate(claude.asked[-1]["messages"][0]["content"][:-1]):
        for place, piece in enumerate(block["content"]):
            if piece["text"].strip() == sentence:
                return {
                    "type": "search_result_location",
                    "search_result_index": at,
                    "start_block_index": place,
                    "end_block_index": place + 1,
                }
    raise AssertionError(f"{sentence!r} was not sent")


class Script:
    """The answer, once the request is known: text blocks with the sentences that each cites."""

    def __init__(self, claude: ClaudeServer, *blocks: tuple[str, tuple[str, ...]]) -> None:
        self.claude, self.blocks = claude, blocks

    def __iter__(self) -> Iterator[tuple[str, list[dict[str, object]]]]:
        return iter(
            [(text, [block_of(self.claude, one) for one in cited]) for text, cited in self.blocks]
        )


def open_page(visit: Visit, address: str, question: str) -> Page:
    page = visit.page
    page.goto(f"{address}/answer?{urlencode({'collection': 'Pumps', 'q': question})}")
    send = page.locator(SEND)
    resume = page.locator(".st-key-index_resume button:visible")
    expect(send.or_(resume).first).to_be_visible(timeout=SLOW)
    if resume.is_visible():
        resume.click()
    expect(send).to_be_enabled(timeout=SLOW)
    return page


def test_ask_read_the_stream_and_open_a_citation(
    window: Visit, asked: tuple[str, Path], claude: ClaudeServer
) -> None:
    page = open_page(window, asked[0], "why does the pump rattle")
    assert claude.requests == []
    claude.pace = 1.0
    claude.answer = Script(  # type: ignore[assignment]
        claude,
        ("The bearing is dry <b>now</b>", ("A dry bearing makes the pump rattle.",)),
        (", which can be put right.\n\n- ", ()),
        ("Grease it once a month and look again after that", (GREASE, "軸受に油を差す。")),
        (" [link](https://c.invalid).", ()),
    )
    page.locator(SEND).click()
    # It streams: the beginning stands there while the end has not come.
    expect(page.locator(".st-key-answer_stop")).to_be_visible(timeout=SLOW)
    expect(page.locator(".body")).to_contain_text("The bearing is", timeout=SLOW)
    assert "look again after that" not in page.locator(".body").inner_text()
    claude.pace = 0.01
    expect(page.locator(".body")).to_contain_text("look again after that", timeout=SLOW)
    expect(page.locator(".st-key-answer_stop")).to_have_count(0)
    assert page.locator(".body").inner_text().count("<b>now</b>") == 1
    assert "[link](https://c.invalid)" in page.locator(".body").inner_text()

    marks = page.locator("button.cite")
    assert marks.all_inner_texts() == ["1", "2", "3"]
    # The first one is open where there is room; then the others.
    expect(page.locator(".panel mark")).to_have_text("A dry bearing makes the pump rattle.")
    marks.nth(1).click()
    expect(page.locator(".panel mark")).to_have_text(GREASE)
    expect(page.locator(".panel mark")).to_be_in_viewport()
    around = page.locator(".panel .text").inner_text()
    assert around.index("pump rattle.") < around.index(GREASE) < around.index("軸受")
    marks.nth(2).click()
    assert page.locator(".panel mark").text_content() == "軸受に油を差す。"
    link = page.locator(".panel .link")
    asked_for = parse_qs(urlsplit(link.get_attribute("href") or "").query)
    assert asked_for["collection"] == ["Pumps"]
    with page.context.expect_page() as opened:
        link.click()
    chunks = opened.value
    expect(chunks.locator(".doc .mark").first).to_be_visible(timeout=SLOW)
    assert "".join(chunks.locator(".doc .mark").all_text_contents()) == "軸受に油を差す。"
    assert page.evaluate("document.documentElement.scrollWidth") <= 1440
    assert (window.outside, window.errors) == ([], [])
    assert page.title() == "Answer · Rankscope"


def test_a_reload_in_the_middle_cuts_nothing(
    window: Visit, asked: tuple[str, Path], claude: ClaudeServer
) -> None:
    page = open_page(window, asked[0], "worn seal oil")
    claude.pace = 1.0
    claude.write = lambda body: "It goes on and on for quite a while and then comes to its very end"
    page.locator(SEND).click()
    expect(page.locator(".body")).to_contain_text("It goes on", timeout=SLOW)
    page.reload()
    claude.pace = 0.01
    expect(page.locator(".body")).to_contain_text("its very end", timeout=SLOW)
    expect(page.locator(".st-key-answer_below")).to_be_visible()
    assert len(claude.asked) == 1
    assert window.errors == []


def test_on_a_phone_the_passage_opens_below_its_line(
    browser: Browser, asked: tuple[str, Path], claude: ClaudeServer
) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844})
    context.set_default_timeout(30_000)
    visit = Visit(context.new_page())
    page = open_page(visit, asked[0], "grease the bearing")
    claude.answer = Script(  # type: ignore[assignment]
        claude, ("First.", (GREASE,)), ("\n\nSecond.", ("Replace the seal.",))
    )
    page.locator(SEND).click()
    first = page.locator("button.cite").first
    expect(first).to_be_visible(timeout=SLOW)
    expect(page.locator(".panel")).to_have_count(0)
    first.click()
    expect(page.locator(".panel mark")).to_have_text(GREASE)
    boxes = [page.locator(name).first.bounding_box() for name in (".line", ".panel", ".line >> nth=1")]
    tops = [box["y"] for box in boxes if box]
    assert tops == sorted(tops)
    first.click()
    expect(page.locator(".panel")).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert visit.errors == []
    context.close()
