"""Contexts of a real local model on the Context page, over a restart of the app."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from core import llm
from core.collection import Collection
from core.contextualizing.store import ContextStore, Row, open_store
from core.settings import ChunkSettings, ContextSettings, IndexSettings, Settings
from tests.browser.conftest import Visit, make_collection
from tests.browser.test_context import button, serving
from tests.claude_server import ClaudeServer
from tests.local.model_server import (
    CHUNK_SIZE,
    CHUNKS,
    FEWEST,
    KEY,
    MODEL,
    SHORT_PROMPT,
    TEXTS,
    LocalModel,
    model_server,
)

NAME = "Town"
WRITING = 150_000  # milliseconds, with both cores busy


@pytest.fixture(scope="module")
def local_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalModel]:
    with model_server(tmp_path_factory.mktemp("model")) as model:
        yield model


def choose_endpoint(page: Page, address: str) -> None:
    """Each setting is typed as a person does, and waited for: the next redraw would forget the one before."""
    page.locator(".st-key-context_writer input").click()
    page.get_by_role("option", name="Own endpoint").click()
    place = page.locator(".st-key-context_base_url input")
    place.fill(address)
    place.press("Enter")
    expect(page.get_by_text("Writing sends")).to_contain_text(f"{address}, on this machine")
    model = page.locator(".st-key-context_model input")
    model.fill(MODEL)
    model.press("Enter")
    expect(page.locator(".st-key-context_plan")).to_contain_text("free")
    prompt = page.locator(".st-key-context_prompt textarea")
    prompt.fill(SHORT_PROMPT)
    prompt.press("Control+Enter")
    expect(page.locator(".st-key-context_prompt_reset")).to_be_visible()
    longest = page.locator(".st-key-context_max_tokens_0 input")
    longest.fill("30")
    longest.press("Enter")


def kept(store: ContextStore, collection: Collection) -> list[list[Row]]:
    """What is on disk, by document."""
    (key,) = store.writers()
    return [store.rows(key, text) for text in store.text_hashes(collection.documents())]


def read_all(page: Page, rows: list[list[Row]]) -> None:
    """Each document, picked in turn, shows a card for each of its chunks, with the context that is kept."""
    for item, of_document in enumerate(rows):
        page.locator(".st-key-context_document input").click()
        page.get_by_role("option").nth(item).click()
        for row in of_document:
            card = page.locator(f".st-key-context_card_{item}_{row.start}_{row.end}")
            expect(card.locator(".rs-card-text").first).to_have_text(row.text)
            expect(card).to_contain_text("written" if row.context else "cut off: not used")


@pytest.mark.local_llm
def test_a_local_model_writes_for_a_dozen_chunks_and_a_restart_keeps_them(
    browser: Browser,
    tmp_path: Path,
    claude: ClaudeServer,
    local_model: LocalModel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(llm.ENDPOINT_KEY, KEY)
    home = tmp_path / "home"
    home.mkdir()
    collection = make_collection(home, NAME, TEXTS)
    collection.save_settings(Settings(IndexSettings(chunking=ChunkSettings(size=CHUNK_SIZE))))
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(30_000)
    visit = Visit(context.new_page())
    page = visit.page
    with serving(home, claude) as address:
        page.goto(f"{address}/context?collection={NAME}")
        choose_endpoint(page, local_model.address)
        expect(page.get_by_text("contexts are as good as the model")).to_be_visible()
        expect(page.get_by_test_id("context-standing")).to_contain_text(f"{CHUNKS} to write")
        button(page, "context_start")
        ended = page.locator(".st-key-context_ended")
        expect(ended).to_contain_text("Done", timeout=WRITING)
        store = open_store(collection)
        assert list(store.writers().values()) == [
            ContextSettings(
                writer="endpoint",
                base_url=local_model.address,
                model=MODEL,
                max_tokens=30,
                prompt=SHORT_PROMPT,
            )
        ]
        rows = kept(store, collection)
        written = sum(bool(row.context) for of_document in rows for row in of_document)
        assert sum(map(len, rows)) == CHUNKS
        assert written >= FEWEST
        expect(ended).to_contain_text(f"{written} of {CHUNKS} contexts")
        read_all(page, rows)
        counted = local_model.counted()

    with serving(home, claude) as address:
        page.goto(f"{address}/context?collection={NAME}")
        page.locator("[class*=st-key-context_use_] button").first.click()
        expect(page.get_by_test_id("context-standing")).to_contain_text(f"{CHUNKS - written} to write")
        expect(page.get_by_text("contexts are as good as the model")).to_be_visible()
        read_all(page, rows)
        button(page, "context_index_do")
        expect(page.get_by_text(f"Indexed: {CHUNKS} chunks of {len(TEXTS)} documents")).to_be_visible()
    context.close()
    assert kept(store, collection) == rows
    assert local_model.counted() == counted
    assert claude.requests == []  # a key for Anthropic is set, and nothing goes there
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []
    assert (visit.errors, visit.outside) == ([], [])
