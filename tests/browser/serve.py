"""Serves the app with the fast stand-in for the embedding model: `python serve.py PORT [options of streamlit]`."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from streamlit.web import cli  # noqa: E402

import core.embedding  # noqa: E402
from core.settings import DEFAULT_MODEL  # noqa: E402
from tests.fakes import HashEmbedder  # noqa: E402

if __name__ == "__main__":
    core.embedding._loaded[DEFAULT_MODEL] = HashEmbedder(model_id=DEFAULT_MODEL)
    sys.argv = [
        "streamlit",
        "run",
        str(ROOT / "app.py"),
        "--server.port",
        sys.argv[1],
        "--server.address",
        "127.0.0.1",
        "--server.headless",
        "true",
        "--server.fileWatcherType",
        "none",
        *sys.argv[2:],
    ]
    cli.main()
