"""`index`, `contexts` and `answer` on the command line, against the scripted server."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from core.cli import app
from core.collection import open_collection
from core.settings import DEFAULT_MODEL, ContextSettings
from tests.claude_server import ClaudeServer, Fault
from tests.unit.test_cli import add, files, own_home, run  # noqa: F401  (fixtures)


def test_index_keeps_other_settings_and_makes_them_count(files: Path) -> None:  # noqa: F811
    add(files)
    found = json.loads(
        run("index", "-c", "Mine", "-s", "context.writer=headings", "-s", "context.opening=0", "--json")
    )
    assert (found["documents"], found["chunks"]) == (2, 3)
    kept = open_collection("Mine").settings().index.context
    assert kept == ContextSettings(writer="headings", opening=0)
    # The title "Pumps" is in the context of the chunk that does not hold it.
    trace = json.loads(run("search", "Pumps kit", "-c", "Mine", "--set", "two_stage=false", "--json"))
    bm25 = next(stage for stage in trace["stages"] if stage["name"] == "bm25")
    assert len(bm25["ranking"]) == 2
    run("index", "-c", "Mine", "-s", "context.writer=nobody", code=1)
    assert open_collection("Mine").settings().index.context == kept


def test_a_model_that_fails_does_not_stay_chosen(
    files: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("VOYAGE_API_KEY", raising=False)
    add(files)
    told = run("index", "-c", "Mine", "-s", "model=voyage:voyage-4-lite", code=1)
    assert "VOYAGE_API_KEY" in told
    assert "voyage:voyage-4-lite, for $" in told
    assert open_collection("Mine").settings().index.model == DEFAULT_MODEL


def test_contexts_are_planned_first_and_written_when_asked(
    files: Path,  # noqa: F811
    claude: ClaudeServer,
) -> None:
    add(files)
    told = run("contexts", "-c", "Mine", code=1)
    assert "context.writer=claude" in told
    plan = json.loads(run("contexts", "-c", "Mine", "-s", "context.writer=claude", "--json"))["plan"]
    # valves.txt is one chunk: its whole document, which needs no context.
    assert (plan["chunks"], plan["whole"], plan["done"]) == (2, 1, 0)
    assert claude.requests == []
    run("contexts", "-c", "Mine", "-s", "context.writer=claude", "--write", code=2)
    written = json.loads(
        run("contexts", "-c", "Mine", "-s", "context.writer=claude", "--write", "--cap", "1", "--json")
    )
    assert (written["job"]["state"], written["job"]["done"]) == ("done", 2)
    assert 0 < written["job"]["dollars"] < 0.01
    again = json.loads(run("contexts", "-c", "Mine", "--json"))["plan"]
    assert (again["chunks"], again["done"]) == (0, 2)
    run("index", "-c", "Mine")
    store = open_collection("Mine")
    assert store.settings().index.context.writer == "claude"


def test_failed_contexts_are_named_and_the_exit_code_tells(
    files: Path,  # noqa: F811
    claude: ClaudeServer,
) -> None:
    add(files)
    claude.fail(*[Fault(400)] * 2)
    told = run("contexts", "-c", "Mine", "-s", "context.writer=claude", "--write", "--cap", "1", code=1)
    assert "0 of 2 written" in told
    assert "pumps.md" in told


def test_an_answer_is_paid_once(files: Path, claude: ClaudeServer) -> None:  # noqa: F811
    add(files)
    first = json.loads(run("answer", "which kit?", "-c", "Mine", "--json"))
    assert first["state"] == "whole"
    assert first["dollars"] > 0
    asked = len([one for one in claude.requests if one.path.endswith("/messages")])
    second = json.loads(run("answer", "which kit?", "-c", "Mine", "--json"))
    assert second == first
    assert len([one for one in claude.requests if one.path.endswith("/messages")]) == asked


def test_without_a_key_it_says_what_to_set(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    add(files)
    told = run("answer", "which kit?", "-c", "Mine", code=1)
    assert "ANTHROPIC_API_KEY" in told


def test_a_paid_reranker_says_its_cost_before_and_after(
    files: Path,  # noqa: F811
    claude: ClaudeServer,
) -> None:
    add(files)
    claude.write = lambda body: '{"order": [2, 1, 3]}'
    words = ["search", "pump", "-c", "Mine", "--set", "two_stage=false", "--set", "rerank=claude"]
    told = CliRunner().invoke(app, words).stderr
    before, after = (line for line in told.splitlines() if "note: " in line)
    assert "texts would cost about $0.00" in before
    assert re.search(r"reranked for \$0\.00\d*[1-9]", after)
    assert len(claude.asked) == 1
    again = CliRunner().invoke(app, words).stderr
    assert "would cost" not in again  # its scores were kept
    assert len(claude.asked) == 1
