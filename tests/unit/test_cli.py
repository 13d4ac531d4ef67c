"""The command line, with a home of its own and a small embedder."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from core import collection as collections
from core import embedding
from core.cli import app
from core.collection import open_collection
from core.corpus import build_corpus
from core.pipeline import search
from core.report.export import settings_to_python
from core.settings import DEFAULT_MODEL, ChunkSettings, IndexSettings, SearchSettings, Settings
from tests.fakes import HashEmbedder


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path / "home"))
    monkeypatch.setitem(embedding._loaded, DEFAULT_MODEL, HashEmbedder(model_id=DEFAULT_MODEL))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "given"
    folder.mkdir()
    (folder / "pumps.md").write_text(
        "# Pumps\n\nThe seal of pump P-17 leaks.\n\n## Order\n\nOrder kit 4711."
    )
    (folder / "empty.txt").write_text("")
    (folder / "valves.txt").write_text("The valve stem wants grease.")
    return folder


def run(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == code, (result.output, result.exception)
    return result.stdout if code == 0 else result.output


def add(files: Path) -> list[dict]:
    return json.loads(CliRunner().invoke(app, ["add", str(files), "-c", "Mine", "--json"]).stdout)


def test_add_names_the_file_that_fails_and_takes_the_rest(files: Path) -> None:
    rows = {row["file"]: row for row in add(files)}
    assert {name: row["status"] for name, row in rows.items()} == {
        "pumps.md": "added",
        "valves.txt": "added",
        "empty.txt": "failed",
    }
    assert "empty file" in rows["empty.txt"]["error"]
    assert rows["pumps.md"]["headings"] == 2
    assert {row["status"] for row in add(files)} == {"same", "failed"}
    listed = json.loads(run("collections", "--json"))
    assert listed == [{"name": "Mine", "files": 2, "documents": 2}]


def test_add_ends_with_1_when_a_file_failed(files: Path) -> None:
    assert "empty.txt: empty file" in run("add", str(files), "-c", "Mine", code=1)


def test_search_prints_the_trace(files: Path) -> None:
    add(files)
    found = json.loads(run("search", "pump seal P-17", "-c", "Mine", "--json"))
    assert [stage["kind"] for stage in found["stages"]] == [
        *(
            "signal",
            "project",
            "fuse",
            "search",
            "search",
            "fuse",
            "fuse",
            "rerank",
            "fuse",
            "rule",
            "merge",
        )
    ]
    first = found["passages"][0]
    assert first["name"] == "pumps.md"
    assert "P-17" in first["text"]
    assert set(first) >= {"document", "start", "end", "text", "score", "members"}
    fused = next(stage for stage in found["stages"] if stage["name"] == "fused")["ranking"][0]
    assert fused["score"] == pytest.approx(sum(part["term"] for part in fused["parts"].values()))
    assert "Passages" in run("search", "pump seal P-17", "-c", "Mine")
    assert [len(stage["ranking"]) for stage in found["stages"]] == [s["count"] for s in found["stages"]]
    short = json.loads(run("search", "pump seal P-17", "-c", "Mine", "--limit", "1", "--json"))
    assert max(len(stage["ranking"]) for stage in short["stages"]) == 1


def test_search_tells_the_records_of_one_file_apart_by_their_titles(tmp_path: Path) -> None:
    lines = [
        {"title": f"Ticket {n}", "text": f"The pump {word}."} for n, word in ((1, "leaks"), (2, "hums"))
    ]
    (tmp_path / "tickets.jsonl").write_text("\n".join(map(json.dumps, lines)))
    run("add", str(tmp_path / "tickets.jsonl"), "-c", "Mine")
    said = run("search", "pump leaks", "-c", "Mine")
    stages, passages = said.split("Passages")
    assert "1. tickets.jsonl “Ticket 1”" in passages
    assert "2. tickets.jsonl “Ticket 2”" in passages
    assert all("“Ticket 1”" in part for part in stages.split("\n\n") if " (search): 2" in part)
    (tmp_path / "plain.txt").write_text("A valve.")
    run("add", str(tmp_path / "plain.txt"), "-c", "Other")
    assert "1. plain.txt 0–8" in run("search", "valve", "-c", "Other")


def test_settings_given_on_the_call(files: Path, tmp_path: Path) -> None:
    add(files)
    words = ("-c", "Mine", "-s", "k_rrf=1", "-s", "indexes.bm25.on=false")
    found = json.loads(run("search", "pump", *words, "--json"))
    assert found["settings"]["k_rrf"] == 1
    assert [stage["on"] for stage in found["stages"] if stage["name"] == "bm25"] == [False]
    toml = tmp_path / "settings.toml"
    run("export", "-f", "toml", *words, "-o", str(toml))
    again = json.loads(run("search", "pump", "-c", "Mine", "--settings", str(toml), "--json"))
    assert again["settings"] == found["settings"]
    no_utf8 = run("search", "pump", "-c", "Mine", "-s", "filters=a = \udcff", code=1)
    assert "no item has a field 'a'" in no_utf8
    assert "no setting k_rfr" in run("search", "pump", "-c", "Mine", "-s", "k_rfr=1", code=1)


def test_explain_gives_the_reason_and_the_arithmetic(files: Path) -> None:
    add(files)
    found = json.loads(run("explain", "pump seal", "1", "-c", "Mine", "--json"))
    assert found["passage_rank"] == 1
    assert sum(term["contribution"] for term in found["terms"]["bm25"]) > 0
    assert "1/(60+1)" in run("explain", "pump seal", found["chunk_id"], "-c", "Mine")
    assert "there is no passage 99" in run("explain", "pump", "99", "-c", "Mine", code=1)
    assert "no chunk 'x:0-1'" in run("explain", "pump", "x:0-1", "-c", "Mine", code=1)


def test_export_in_every_form(files: Path) -> None:
    add(files)
    assert json.loads(run("export", "pump", "-c", "Mine"))["query"] == "pump"
    trec = run("export", "pump", "-f", "trec", "-c", "Mine").splitlines()
    assert [line.split()[:2] for line in trec] == [["1", "Q0"]] * len(trec)
    assert [int(line.split()[3]) for line in trec] == list(range(1, len(trec) + 1))
    assert run("export", "pump", "-f", "csv", "-c", "Mine").startswith("stage,kind,rank,id")
    assert "has items.lexical" in run(
        "export", "pump", "-f", "trec", "--stage", "no", "-c", "Mine", code=1
    )
    run("export", "pump", "-f", "docx", "-c", "Mine", code=2)


def test_the_exported_script_finds_the_same(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add(files)
    script = run("export", "pump seal", "-f", "python", "-c", "Mine", "-s", "k_rrf=5")
    exec(compile(script, "exported", "exec"), {})
    passages = json.loads(run("search", "pump seal", "-c", "Mine", "-s", "k_rrf=5", "--json"))[
        "passages"
    ]
    printed = capsys.readouterr().out
    for passage in passages:
        assert f"{passage['rank']} {round(passage['score'], 5)} {passage['name']}" in printed


def test_the_script_indexes_under_the_settings_it_was_made_of(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of a sweep's winner are not those that the collection is indexed with."""
    add(files)
    winner = Settings(
        IndexSettings(ChunkSettings(strategy="sentences", size=20)), SearchSettings(k_rrf=5, merge=False)
    )
    script = settings_to_python(winner, "Mine", "order kit")
    exec(compile(script, "exported", "exec"), {})
    corpus = build_corpus(open_collection("Mine"), winner.index)
    assert corpus.fingerprint != build_corpus(open_collection("Mine"), IndexSettings()).fingerprint
    best = search(corpus, "order kit", winner.search).passages[0]
    assert capsys.readouterr().out.startswith(
        f"1 {round(best.score, 5)} pumps.md {best.start} {best.end}\n"
    )


def test_chunks_shows_sizes_and_stores_nothing(files: Path) -> None:
    rows = json.loads(
        run("chunks", str(files / "pumps.md"), "--strategy", "headings", "--size", "40", "--json")
    )
    text = (files / "pumps.md").read_text()
    assert [row["text"] for row in rows] == [text[row["start"] : row["end"]] for row in rows]
    assert rows[-1]["headings"] == ["Pumps", "Order"]
    assert all(row["characters"] <= 40 for row in rows)
    assert json.loads(run("collections", "--json")) == []
    assert "takes 20 to" in run("chunks", str(files / "pumps.md"), "--size", "3", code=1)
    assert "empty file" in run("chunks", str(files / "empty.txt"), code=1)


def test_an_unknown_collection_is_named(files: Path) -> None:
    assert "Nowhere" in run("search", "pump", "-c", "Nowhere", code=1)


def test_a_file_that_is_not_there_is_named() -> None:
    assert "nothing.txt" in run("add", "nothing.txt", "-c", "Mine", code=1)


def test_the_sample_is_the_default_collection() -> None:
    found = json.loads(run("search", "what happened with INC-2023-Q4-011?", "--json"))
    assert "annual-report-2023.md" in {passage["name"] for passage in found["passages"]}


def test_a_name_is_the_same_however_it_is_typed(files: Path) -> None:
    valve, composed, decomposed = (
        str(files / "valves.txt"),
        "R\u00e9sum\u00e9 one",
        " Re\u0301sume\u0301  one",
    )
    assert "added" in run("add", valve, "-c", decomposed)
    assert "same" in run("add", valve, "-c", composed)
    assert "same" in run("add", valve, "-c", decomposed)
    assert [row["name"] for row in json.loads(run("collections", "--json"))] == [composed]


def test_bytes_that_are_no_text_are_no_stack_of_frames(files: Path, tmp_path: Path) -> None:
    run("add", str(files / "valves.txt"), "-c", "Mine")
    settings = tmp_path / "settings.toml"
    settings.write_bytes(b"\xff\xfe\x00")
    said = run("search", "valve", "-c", "Mine", "--settings", str(settings), code=1)
    assert "is not a text in UTF-8" in said
    # A terminal that speaks another encoding gives lone surrogates.
    found = json.loads(run("search", "\udcff valve", "-c", "Mine", "--json"))
    assert found["query"] == "\ufffd valve"
    assert found["passages"][0]["name"] == "valves.txt"
    output = tmp_path / "trace.json"
    run("export", "\udcff valve", "-c", "Mine", "--format", "json", "--output", str(output))
    assert json.loads(output.read_text(encoding="utf-8"))["query"] == "\ufffd valve"


def test_what_the_corpus_has_to_say_is_said(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("add", str(files / "valves.txt"), "-c", "Mine")
    monkeypatch.setattr("core.corpus.shelf.unavailable_reason", lambda: "hnswlib cannot be imported")
    result = CliRunner().invoke(app, ["search", "valve", "-c", "Mine", "-s", "vector=hnsw", "--json"])
    assert result.stderr == "note: hnswlib cannot be imported\n"
    assert json.loads(result.stdout)["passages"]


def test_files_of_one_name_in_two_folders_stay_two(tmp_path: Path) -> None:
    for folder, text in (("a", "The pump leaks."), ("b", "The valve sticks.")):
        (tmp_path / "docs" / folder).mkdir(parents=True)
        (tmp_path / "docs" / folder / "readme.txt").write_text(text)
    for state in ("added", "same"):
        rows = json.loads(run("add", str(tmp_path / "docs"), "-c", "Mine", "--replace", "--json"))
        assert [(row["file"], row["status"]) for row in rows] == [
            ("a/readme.txt", state),
            ("b/readme.txt", state),
        ]
    (tmp_path / "docs/b/readme.txt").write_text("The valve is mended.")
    rows = json.loads(run("add", str(tmp_path / "docs"), "-c", "Mine", "--replace", "--json"))
    assert [row["status"] for row in rows] == ["same", "replaced"]
    found = json.loads(run("search", "valve", "-c", "Mine", "--json"))["passages"]
    assert found[0]["text"] == "The valve is mended."
    assert "The valve sticks." not in [passage["text"] for passage in found]


def test_a_copy_under_another_name_is_named(files: Path) -> None:
    run("add", str(files / "valves.txt"), "-c", "Mine")
    (files / "copy.txt").write_bytes((files / "valves.txt").read_bytes())
    (row,) = json.loads(run("add", str(files / "copy.txt"), "-c", "Mine", "--json"))
    assert (row["status"], row["warnings"]) == (
        "same",
        ["the same bytes are already here as valves.txt"],
    )


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps names that are no text")
def test_a_name_of_bytes_that_are_no_text_is_shown(files: Path) -> None:
    (files / "odd\udcff\x1b[31m.txt").write_text("The pump P-99 hums.")
    rows = {row["file"]: row["status"] for row in add(files)}
    assert rows["odd\ufffd[31m.txt"] == "added"
    found = json.loads(run("search", "P-99", "-c", "Mine", "--json"))
    assert found["passages"][0]["name"] == "odd\ufffd[31m.txt"


def test_a_damaged_collection_is_named_in_the_list(files: Path, tmp_path: Path) -> None:
    add(files)
    collection = open_collection("Mine")
    collection.close()
    collections._open.pop(str(collection.folder))
    for file in collection.folder.glob("collection.db*"):
        file.write_bytes(b"junk" * 2_000)
    assert "collection 'Mine'" in run("collections", code=1)
