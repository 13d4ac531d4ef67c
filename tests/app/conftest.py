"""Pages run in-process on a data folder of their own, with a fast stand-in for the embedding model."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import core.embedding
from core.collection import Collection, create, remember
from core.corpus import build_corpus
from core.loading import load
from core.settings import DEFAULT_MODEL
from tests.fakes import HashEmbedder

ROOT = Path(__file__).parents[2]

DOCUMENTS = {
    "pumps.md": "# Pumps\n\n## Noise\n\nA dry bearing makes the pump rattle. "
    "Grease the bearing every month.\n\n## Leaks\n\nA worn seal lets oil out. "
    "Replace the seal and check the shaft for scratches.\n",
    "fans.md": "# Fans\n\nA fan with a bent blade shakes. A bearing without grease squeaks.\n",
    "lamps.md": "# Lamps\n\nA lamp flickers when its driver is too hot.\n",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder in which the sample counts as deleted."""
    monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path))
    monkeypatch.setitem(core.embedding._loaded, DEFAULT_MODEL, HashEmbedder(model_id=DEFAULT_MODEL))
    remember("sample", "done")
    return tmp_path


@pytest.fixture
def empty(home: Path) -> Collection:
    """A collection without documents, the one used last."""
    made = create("Machines")
    remember("last_collection", "Machines")
    return made


@pytest.fixture
def waiting(empty: Collection) -> Collection:
    """A collection whose documents are not indexed yet."""
    for name, text in DOCUMENTS.items():
        add(empty, name, text)
    return empty


@pytest.fixture
def machines(waiting: Collection) -> Collection:
    """An indexed collection of three short documents."""
    build_corpus(waiting, waiting.settings().index)
    return waiting


def add(collection: Collection, name: str, text: str) -> None:
    """Put a text into a collection as a file."""
    data = text.encode()
    collection.add(load(data, name), name, len(data))


@pytest.fixture
def open_page(home: Path) -> Callable[..., AppTest]:
    """Runs a page: `open_page("app.py", q="…")`; further arguments are query parameters."""

    def run(page: str = "app.py", **parameters: str) -> AppTest:
        test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        if page != "app.py":
            test.switch_page(page)
        for name, value in parameters.items():
            test.query_params[name] = value
        return test.run()

    return run


def shown_text(test: AppTest) -> str:
    """All text that `pages.ui.draw` put on the page, tags removed."""
    parts = [element.proto.body for element in test.get("html") if "<style>" not in element.proto.body]
    return "\n".join(html.unescape(re.sub(r"<[^>]+>", " ", part)) for part in parts)


def columns_data(test: AppTest) -> dict[str, Any]:
    """What the page hands to the component that draws the columns."""
    return json.loads(test.get("bidi_component")[0].proto.json)
