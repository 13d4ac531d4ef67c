"""A real Chromium on a real server, which has a data folder of its own.

Without a browser these tests are skipped, visibly; where CI is set they fail instead.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from core.collection import Collection, create, remember
from core.loading import load

ROOT = Path(__file__).parents[2]
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
_PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


def find_browser() -> str | None:
    """The path of an installed Chromium, Chrome or Edge."""
    found = (shutil.which(name) for name in _NAMES)
    placed = (place for place in _PLACES if Path(place).exists())
    return next((path for path in found if path), None) or next(placed, None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = find_browser()
    if path is None:
        reason = f"no Chromium or Chrome found (looked for {', '.join(_NAMES)})"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=list(_FLAGS))
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The server's data folder. The sample counts as deleted, so that tests know all there is."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def server(browser: Browser, home: Path) -> Iterator[str]:
    """The address of the running app. Tests make the collections they need with `make_collection`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANKSCOPE_HOME", str(home))
        remember("sample", "done")
        port = free_port()
        log = home.with_name("server.log")
        with log.open("wb") as out:
            command = [sys.executable, str(Path(__file__).with_name("serve.py")), str(port)]
            process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT)
        try:
            address = f"http://127.0.0.1:{port}"
            wait_for(address, process, log)
            yield address
        finally:
            process.terminate()
            process.wait(timeout=20)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(address: str, process: subprocess.Popen[bytes], log: Path, seconds: float = 60) -> None:
    """Returns when the server answers; fails the test with its log when it does not."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=2) as answer:
                if answer.read() == b"ok":
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    pytest.fail(f"the server did not start: {log.read_text(errors='replace')[-2000:]}")


class Visit:
    """A page, and what it asked of the network and said on the console."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.outside: list[str] = []
        self.errors: list[str] = []
        page.on("request", self._request)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on(
            "dialog", lambda dialog: (self.errors.append(f"dialog {dialog.message}"), dialog.dismiss())
        )

    def _request(self, request: object) -> None:
        url: str = request.url  # type: ignore[attr-defined]
        if not url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:")):
            self.outside.append(url)


@pytest.fixture
def visit(browser: Browser, server: str) -> Iterator[Visit]:
    """A fresh browser window of 1440×900 on no page yet; `server` is the address."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(30_000)
    yield Visit(context.new_page())
    context.close()


def make_collection(home: Path, name: str, texts: dict[str, str]) -> Collection:
    """A collection with these texts as files, in the server's data folder; not indexed yet."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANKSCOPE_HOME", str(home))
        made = create(name)
        for file, text in texts.items():
            data = text.encode()
            made.add(load(data, file), file, len(data))
        return made
