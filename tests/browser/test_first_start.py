"""The README's first command: `rankscope ui` on a new data folder, with the real model and the sample."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import ROOT, free_port, wait_for

pytestmark = pytest.mark.model


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[str]:
    """The address of an app that has never been started before."""
    port = free_port()
    log = tmp_path / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "core.cli", "ui", "--no-browser", "--port", str(port)],
            cwd=ROOT,
            env={**os.environ, "RANKSCOPE_HOME": str(tmp_path / "home")},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        address = f"http://localhost:{port}"
        wait_for(address, process, log)
        yield address
    finally:
        process.terminate()
        process.wait(timeout=20)
        with pytest.raises(urllib.error.URLError):  # stopping the command stops the server
            urllib.request.urlopen(address, timeout=2)


def test_the_sample_is_searchable_within_three_minutes(browser: Browser, fresh: str) -> None:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(fresh)
    question = page.get_by_role("button", name="What happened with INC-2023-Q4-011?")
    question.click(timeout=180_000)
    fused = page.locator('.column[data-name="fused"] [data-pick]').first
    expect(fused).to_contain_text("Incident INC-2023-Q4-011", timeout=60_000)
    page.close()
