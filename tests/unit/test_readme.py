"""The README says what is so: its Python runs, its settings table is the settings' own, its commands exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from core.cli import app
from core.report.settings_table import settings_table

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.mark.model
def test_the_python_examples_run_and_print_what_they_promise(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    retriever, pipeline = blocks(README, "python")
    exec(compile(retriever, "README", "exec"), {})
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("1 0.0328 {'vector': 1, 'bm25': 1} Section 10")
    names: dict[str, object] = {}
    exec(compile(pipeline, "README", "exec"), names)
    printed = capsys.readouterr().out
    assert "passages merge" in printed
    assert "INC-2023-Q4-011" in printed
    assert names["sharper"] != names["trace"]


def test_the_settings_table_is_made_from_the_settings() -> None:
    shown = README.split("<!-- settings:")[1].split("-->\n", 1)[1].split("<!-- /settings -->")[0]
    assert shown.strip() == settings_table()


def test_every_command_is_in_the_readme() -> None:
    for command in app.registered_commands:
        assert command.callback is not None
        assert f"rankscope {command.name or command.callback.__name__}" in README


def test_the_third_index_of_the_notes_runs() -> None:
    text = (ROOT / "core" / "README.md").read_text(encoding="utf-8")
    names: dict = {}
    exec(compile(blocks(text, "python")[0], "core/README", "exec"), names)
    index = names["IdentifierIndex"]()
    index.add_documents(["see INC-2023-Q4-011", "see INC-2023-Q4-012", "nothing"])
    assert [(hit.position, hit.score) for hit in index.search("INC-2023-Q4-012?", 5)] == [(1, 1.0)]
