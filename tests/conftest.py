"""Where the shared evaluation data lies, and the scripted server that stands for Anthropic."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from core import llm
from tests.claude_server import KEY, ClaudeServer


@pytest.fixture(scope="session")
def eval_data() -> Path:
    """The folder that RANKSCOPE_EVAL_DATA names; the test is skipped, visibly, where it is unset."""
    named = os.environ.get("RANKSCOPE_EVAL_DATA")
    if not named:
        pytest.skip("RANKSCOPE_EVAL_DATA is not set: no evaluation data to measure on")
    return Path(named).resolve()


@pytest.fixture(scope="session")
def claude_server() -> Iterator[ClaudeServer]:
    """One scripted server for the whole run; tests take `claude`, which starts afresh."""
    server = ClaudeServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def claude(claude_server: ClaudeServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[ClaudeServer]:
    """The scripted server, as the environment's Anthropic: the key and the address point at it."""
    claude_server.reset()
    llm._FACTS.clear()
    for name in ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS", "RANKSCOPE_ENDPOINT_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", claude_server.url)
    yield claude_server
    claude_server.check_handler_errors()
