"""Permissions from the command line: set, listed, and searched with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from core.cli import app
from core.collection import create
from core.loading import load

pytestmark = pytest.mark.model


@pytest.fixture(autouse=True)
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path / "home"))
    made = create("Mine")
    for name, text in {
        "pumps.txt": "The pump leaks at its seal.",
        "pay.txt": "Salaries of the pump crew.",
        "rows.jsonl": '{"text": "Seal order one.", "readers": "board"}\n{"text": "Seal order two."}\n',
    }.items():
        made.add(load(text.encode(), name), name, len(text))


def run(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.output


def readers(*words: str) -> dict[str, str]:
    return {row["title"] or row["name"]: row["access"] for row in json.loads(run(*words, "--json"))}


def names(query: str, *words: str) -> set[str]:
    found = json.loads(run("search", query, "-c", "Mine", *words, "--json"))
    return {line["name"] for stage in found["stages"] for line in stage["ranking"]}


def test_who_may_see_what_is_set_and_listed() -> None:
    assert set(readers("access", "Mine").values()) == {"everyone"}
    said = readers("access", "Mine", "pay.txt", "--set", "Finance, anna@x.org")
    assert said["pay"] == "group:finance, user:anna@x.org"
    assert list(said.values()).count("everyone") == 3
    run("access", "Mine", "rows.jsonl", "--set", "nobody")
    text = run("access", "Mine")
    assert "group:finance, user:anna@x.org: 1 document\n  pay\n" in text
    assert "nobody: 2 documents\n" in text
    assert list(readers("access", "Mine", "--from-field", "readers").values()).count("group:board") == 1


def test_a_blank_list_of_readers_opens_nothing() -> None:
    run("access", "Mine", "pay.txt", "--set", "finance")
    assert "--set is blank" in run("access", "Mine", "pay.txt", "--set", "", code=2)
    assert "names nobody" in run("access", "Mine", "pay.txt", "--set", ",", code=1)
    assert readers("access", "Mine")["pay"] == "group:finance"


def test_a_search_as_somebody_finds_only_what_they_may_see() -> None:
    run("access", "Mine", "pay.txt", "--set", "finance")
    assert "pay.txt" in names("pump")
    assert "pay.txt" in names("pump", "--as", "bo@x.org, finance")
    for viewer in ("bo@x.org", "group:sales", ""):
        assert names("pump", "--as", viewer) == {"pumps.txt", "rows.jsonl"}
    hidden = json.loads(run("search", "pump", "-c", "Mine", "--json"))
    chunk = next(line["id"] for line in hidden["stages"][-2]["ranking"] if line["name"] == "pay.txt")
    refused = run("explain", "pump", chunk, "-c", "Mine", "--as", "bo@x.org", code=1)
    assert "no chunk" in refused
    assert "Salaries" not in refused
    assert "pay.txt" not in run("export", "pump", "-c", "Mine", "-f", "csv", "--as", "bo@x.org")


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["access", "Mine", "gone.txt", "--set", "finance"], 1, "title 'gone.txt'"),
        (["access", "Mine", "pay.txt", "--set", "team:red"], 1, "neither a user nor a group"),
        (["access", "Mine", "pay.txt"], 2, "goes with"),
        (["access", "Mine", "--set", "finance"], 2, "goes with"),
        (["search", "pump", "-c", "Mine", "--as", "a@x, b@x"], 1, "a viewer is one user"),
    ],
)
def test_what_cannot_be_done_is_told(words: list[str], code: int, told: str) -> None:
    assert told in run(*words, code=code)
    assert set(readers("access", "Mine").values()) == {"everyone"}


def test_a_file_is_added_for_those_named_from_the_first_moment(tmp_path: Path) -> None:
    plan = tmp_path / "plan.txt"
    plan.write_text("The seal plan of the board.")
    add = ("add", str(plan), "-c", "Mine", "--no-index")
    assert "--access is blank" in run(*add, "--access", " ", code=2)
    assert "names nobody" in run(*add, "--access", ",", code=1)
    assert "plan" not in readers("access", "Mine")
    run(*add, "--access", "group:legal, anna@x.org")
    assert readers("access", "Mine")["plan"] == "group:legal, user:anna@x.org"
    assert "plan" not in names("seal plan", "--as", "ben@x.org")

    (row,) = json.loads(run(*add, "--access", "everyone", "--json"))
    said = "the same bytes are already here as plan.txt"
    unchanged = f"{said}; who may see it was not changed: group:legal, user:anna@x.org"
    assert (row["status"], row["warnings"]) == ("same", [unchanged])
    (row,) = json.loads(run(*add, "--access", "anna@x.org, legal", "--json"))
    assert row["warnings"] == [said]
    assert readers("access", "Mine")["plan"] == "group:legal, user:anna@x.org"

    plan.write_text("The new seal plan of the board.")
    run(*add, "--replace")
    assert readers("access", "Mine")["plan"] == "group:legal, user:anna@x.org"
    plan.write_text("The newest seal plan.")
    run(*add, "--replace", "--access", "nobody")
    assert readers("access", "Mine")["plan"] == "nobody"
