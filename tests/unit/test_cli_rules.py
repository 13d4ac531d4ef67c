"""Rules from the command line: printed, checked with every line, saved whole or not at all, tried."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from core import embedding
from core.cli import app
from core.collection import create, open_collection
from core.loading import load
from core.settings import DEFAULT_MODEL
from tests.fakes import HashEmbedder

GOOD = '# kept as written\n[[rule]]\nname = "top"\nquery = "valve"\ndocuments = ["motor.md"]\npin = 1\n'


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path / "home"))
    monkeypatch.setitem(embedding._loaded, DEFAULT_MODEL, HashEmbedder(model_id=DEFAULT_MODEL))
    store = create("Parts")
    for word in ("pump", "valve", "motor"):
        loaded = load(f"# {word}\n\nThe {word} is serviced.".encode(), f"{word}.md")
        store.add(loaded, f"{word}.md", 10)


def run(*words: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(map(str, words)))
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


def test_rules_are_saved_as_written_and_printed(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(GOOD)
    assert run("rules", "Parts").strip() == ""
    assert run("rules", "Parts", "--set", file) == "saved 1 rule in Parts, 1 on\n"
    assert run("rules", "Parts") == GOOD
    found = json.loads(run("rules", "Parts", "--json"))
    assert found["rules"] == [{"name": "top", "on": True, "action": "pin"}]


def test_a_fault_is_told_with_every_line_and_nothing_is_applied(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(GOOD)
    run("rules", "Parts", "--set", file)
    file.write_text(GOOD + "hide = true\n\n[[rule]]\nname = 'b'\nboost = 0\nitems = 'year >'\n")
    told = run("rules", "Parts", "--set", file, code=1).splitlines()
    assert told[0] == "rankscope: no rule was applied"
    assert [line.partition(":")[0] for line in told[1:]] == ["line 7", "line 11", "line 12"]
    assert open_collection("Parts").rules_text() == GOOD
    file.write_bytes(b"\xff\xfe")
    assert "not a text in UTF-8" in run("rules", "Parts", "--set", file, code=1)


def test_a_preview_tells_ranks_without_and_with_and_saves_nothing(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(GOOD)
    found = json.loads(run("rules", "Parts", "--set", file, "--preview", "the valve", "--json"))
    assert open_collection("Parts").rules_text() == ""
    assert found["rules"] == [{"rule": "top", "holds": True, "why_not": "", "items": 1}]
    (moved,) = found["items"]
    assert (moved["document"], moved["after"], moved["said"]) == ("motor.md", 1, ["rule top: pin at 1"])
    assert moved["before"] > 1
    other = run("rules", "Parts", "--set", file, "--preview", "the pump")
    assert other.splitlines()[0] == "top: the query lacks its words; about 1"


def test_as_somebody_goes_with_a_preview_only(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(GOOD)
    for words in ((), ("--set", file)):
        told = run("rules", "Parts", *words, "--as", "", code=2)
        assert "--preview" in told
    assert open_collection("Parts").rules_text() == ""


def test_a_preview_as_somebody_is_of_what_they_see(tmp_path: Path) -> None:
    store = open_collection("Parts")
    motor = next(
        one
        for one, name in zip(store.documents().ids, store.documents().names, strict=True)
        if name == "motor.md"
    )
    store.set_access([motor], frozenset({"group:sales"}))
    file = tmp_path / "rules.toml"
    file.write_text(GOOD)
    # Blank, as from a variable that is unset, is somebody in no group, as for the other commands.
    for viewer, items in (("group:sales", 1), ("ann@example.org", 0), ("", 0)):
        words = ("--preview", "the valve", "--as", viewer, "--json")
        found = json.loads(run("rules", "Parts", "--set", file, *words))
        assert found["rules"][0]["items"] == items, viewer
