"""The Context page as a person uses it, with the scripted server as the model, over a restart."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from core.collection import remember
from tests.browser.conftest import ROOT, Visit, free_port, make_collection, wait_for
from tests.claude_server import ClaudeServer, chunk_of

expect.set_options(timeout=30_000)

FIGURES = "".join(
    f"## Quarter {n}\n\nRevenue was {n * 11} million, which {'grew on all sites and ' * 14}so it ended.\n\n"
    for n in range(1, 13)
)
NAME = "Ledgers"


@contextmanager
def serving(home: Path, claude: ClaudeServer) -> Iterator[str]:
    """The app on this data folder, with the scripted server as Anthropic; its address."""
    port, log = free_port(), home.with_name("context.log")
    with pytest.MonkeyPatch.context() as patch, log.open("wb") as out:
        patch.setenv("RANKSCOPE_HOME", str(home))
        remember("sample", "done")
        command = [sys.executable, str(ROOT / "tests" / "browser" / "serve.py"), str(port)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT)
    try:
        address = f"http://127.0.0.1:{port}"
        wait_for(address, process, log)
        yield address
    finally:
        process.terminate()
        process.wait(timeout=20)


def button(page: Page, key: str) -> None:
    page.locator(f".st-key-{key} button").first.click()


def choose_claude(page: Page, address: str) -> None:
    page.goto(f"{address}/context?collection={NAME}")
    button(page, "context_try_claude")
    expect(page.get_by_test_id("context-standing")).to_be_visible()


def test_contexts_are_written_edited_indexed_and_outlive_a_restart(
    browser: Browser, tmp_path: Path, claude: ClaudeServer
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    make_collection(home, NAME, {"figures.md": f"# Tarnfell in 2031\n\n{FIGURES}"})
    claude.latency = 0.4
    claude.write = lambda body: f"Tarnfell's results of 2031: {' '.join(chunk_of(body).split()[:3])}"
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(30_000)
    visit = Visit(context.new_page())
    page = visit.page
    with serving(home, claude) as address:
        choose_claude(page, address)
        expect(page.get_by_text("Writing sends the text of 1 document")).to_contain_text(claude.url)
        button(page, "context_start")
        expect(page.locator(".st-key-context_run")).to_contain_text("cost so far")
        page.goto(f"{address}/documents?collection={NAME}")  # another page, and back: it goes on
        page.goto(f"{address}/context?collection={NAME}")
        expect(page.locator(".st-key-context_ended")).to_contain_text("Done: 12 of 12 contexts")
        first = page.locator("[class*=st-key-context_card_]").first
        expect(first).to_contain_text("Tarnfell's results of 2031")

        first.locator("[class*=st-key-context_edit_] button").first.click()
        first.locator("textarea").fill("The zweihander quarter of Tarnfell.")
        first.locator("[class*=st-key-context_save_] button").first.click()
        expect(first).to_contain_text("edited by you")
        expect(first.locator(".rs-terms")).to_contain_text("zweihand")

        button(page, "context_index_do")
        expect(page.get_by_text("Indexed: 12 chunks of 1 document.")).to_be_visible()
        page.goto(f"{address}/?collection={NAME}&q=zweihander")
        expect(page.locator("body")).to_contain_text("Searched 12 chunks")
        # Only its context has the word: BM25 ranks the edited chunk first, and no other.
        found = page.locator(".column[data-name=bm25] .card")
        expect(found).to_have_count(1)
        expect(found).to_contain_text("A1")
        assert len(claude.asked) == 12

    with serving(home, claude) as address:
        page.goto(f"{address}/context?collection={NAME}")
        first = page.locator("[class*=st-key-context_card_]").first
        expect(first).to_contain_text("The zweihander quarter of Tarnfell.")
        expect(page.get_by_test_id("context-standing")).to_contain_text("0 to write")
        page.set_viewport_size({"width": 390, "height": 844})
        expect(first).to_be_visible()
        assert page.get_by_test_id("stMain").evaluate("e => e.scrollWidth - e.clientWidth") <= 1
    context.close()
    assert len(claude.asked) == 12
    assert visit.errors == []
    assert visit.outside == []


def test_a_killed_server_leaves_the_rest_to_be_resumed(
    browser: Browser, tmp_path: Path, claude: ClaudeServer
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    make_collection(home, NAME, {"figures.md": f"# Tarnfell in 2031\n\n{FIGURES}"})
    claude.latency = 1.5
    page = browser.new_page()
    page.set_default_timeout(30_000)
    with serving(home, claude) as address:
        choose_claude(page, address)
        button(page, "context_start")
        expect(page.locator(".st-key-context_run")).to_contain_text(re.compile(r"\b[1-9] of 12"))
    claude.latency = 0.0
    with serving(home, claude) as address:
        page.goto(f"{address}/context?collection={NAME}")
        page.locator("[class*=st-key-context_use_] button").first.click()
        resume = page.locator(".st-key-context_start button").first
        expect(resume).to_contain_text("Resume: write the other")
        resume.click()
        expect(page.locator(".st-key-context_ended")).to_contain_text("Done")
        expect(page.get_by_test_id("context-standing")).to_contain_text("0 to write")
    page.close()
    # No more than the calls under way when it ended were asked twice.
    assert 12 <= len(claude.asked) <= 16
