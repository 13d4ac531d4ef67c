"""`eval` and `sweep` from the command line, on a small set of our own, with a small embedder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from core import embedding
from core.access import parse_access
from core.cli import app
from core.collection import create, open_collection
from core.evaluation import Evidence, GoldenQuery, Judgements, open_judgements
from core.loading import load
from core.settings import DEFAULT_MODEL, IndexSettings, SearchSettings, Settings
from tests.fakes import HashEmbedder

WORDS = ("pump", "valve", "motor", "filter", "sensor", "gasket")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path / "home"))
    monkeypatch.setitem(embedding._loaded, DEFAULT_MODEL, HashEmbedder(model_id=DEFAULT_MODEL))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """In BEIR's form, six documents: five queries find theirs, the sixth asks for what is not in its own."""
    made = tmp_path / "given"
    (made / "qrels").mkdir(parents=True)
    rows = [{"_id": word, "title": "", "text": f"The {word} is serviced."} for word in WORDS]
    asked = [{"_id": f"q{word}", "text": word} for word in WORDS[:5]]
    asked.append({"_id": "qgasket", "text": "pump valve"})
    (made / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (made / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    judged = "".join(f"q{word}\t{word}\t1\n" for word in WORDS)
    (made / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}qpump\tnowhere\t1\n")
    return made


def run(*words: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(map(str, words)))
    assert result.exit_code == code, (result.output, result.exception)
    return result.stdout if code in (0, 3) else result.output


ONE = ("--set", "two_stage=false", "--set", "indexes.vector.on=false")


def test_eval_tells_every_stage_with_counts_and_what_did_not_match(folder: Path) -> None:
    found = json.loads(run("eval", folder, *ONE, "--k", 1, "--k", 20, "--json"))
    assert found["form"] == "BEIR"
    assert found["queries"]["read"] == found["queries"]["measured"] == 6
    assert found["queries"]["unlocated_evidence"] == 1
    assert any("nowhere" in problem for problem in found["queries"]["problems"])
    assert (found["documents"], found["chunks"]) == (6, 6)
    kept = found["stages"]["kept"]
    # Four find their document; the pump's second document is not there; the sixth finds others.
    assert kept["recall@1"] == pytest.approx((4 + 0.5) / 6)
    assert kept["recall@1"] + kept["failure@1"] == pytest.approx(1)
    assert kept["mrr"] == kept["success@1"] == pytest.approx(5 / 6)
    low, high = kept["intervals"]["recall@1"]
    assert 0 <= low < kept["recall@1"] < high <= 1
    assert kept["reach"] == 20
    assert kept["unjudged@1"] == pytest.approx(1 / 6)
    assert "vector" not in found["stages"]
    assert Settings.from_dict(found["settings"]).search.index("vector").on is False
    assert found["fingerprints"]["settings"] == Settings.from_dict(found["settings"]).fingerprint()


def test_characters_of_the_first_results_are_counted_on_demand(folder: Path) -> None:
    found = json.loads(run("eval", folder, *ONE, "--k", 1, "--characters", 1, "--json"))
    covered = found["characters"]
    assert covered["k"] == 1
    # Five queries: each document is one chunk and whole evidence; four find theirs, and the sixth another.
    assert covered["stages"]["kept"]["recall"] == pytest.approx(5 / 6)
    assert covered["precision_omega"] == 1
    assert "characters" not in json.loads(run("eval", folder, *ONE, "--k", 1, "--json"))


def test_the_sample_comes_with_questions_of_its_own() -> None:
    found = json.loads(run("eval", "Sample", *ONE, "--half", "even", "--json"))
    assert found["queries"]["read"] == 73
    assert found["queries"]["problems"] == []
    assert 0 < found["stages"]["bm25"]["recall@20"] < 1


def test_a_k_beyond_a_stages_reach_is_left_out_and_no_limit_can_stand_on_it(folder: Path) -> None:
    found = json.loads(run("eval", folder, *ONE, "--k", 20, "--set", "k=10", "--json"))
    assert "recall@20" not in found["stages"]["kept"]
    assert "recall@20" in found["stages"]["bm25"]
    said = run("eval", folder, *ONE, "--set", "k=10", "--fail-under", "recall@20=0.1", code=1)
    assert "asked for 10 only" in said


def test_fail_under_decides_the_exit_code(folder: Path) -> None:
    assert "reached" in run("eval", folder, *ONE, "--fail-under", "recall@10=0.75")
    text = run("eval", folder, *ONE, "--fail-under", "recall@10=0.76", "--fail-under", "mrr=0.5", code=3)
    assert "recall@10 of kept: 0.7500, limit 0.76: MISSED" in text
    assert "mrr of kept: 0.8333, limit 0.5: reached" in text
    # Of what is better low, more than the value misses.
    found = json.loads(run("eval", folder, *ONE, "--fail-under", "failure@10=0.2", "--json", code=3))
    assert [one["reached"] for one in found["fail_under"]] == [False]
    run("eval", folder, *ONE, "--fail-under", "failure@10=0.25")
    run("eval", folder, *ONE, "--stage", "bm25", "--fail-under", "recall@10=0.75")


def test_halves_are_by_place_and_share_no_query(folder: Path) -> None:
    halves = {
        half: json.loads(run("eval", folder, *ONE, "--half", half, "--json"))["stages"]["kept"][
            "recall@5"
        ]
        for half in ("even", "odd")
    }
    # Even: pump (half of it), motor, sensor; odd: valve, filter, and the one that cannot be found.
    assert halves == {"even": pytest.approx(2.5 / 3), "odd": pytest.approx(2 / 3)}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--fail-under", "recall@20"], 2, "METRIC=VALUE"),
        (["--fail-under", "recall@20=95"], 2, "from 0 to 1"),
        (["--fail-under", "speed@20=0.5"], 1, "no metric"),
        (["--stage", "nowhere"], 1, "no stage"),
        (["--set", "nothing=1"], 1, "no setting"),
    ],
)
def test_what_cannot_be_measured_says_why(folder: Path, words: list[str], code: int, said: str) -> None:
    assert said in run("eval", folder, *words, code=code)


def test_as_somebody_who_may_not_see_all_of_the_evidence(folder: Path) -> None:
    collection = create("Held")
    for word in WORDS[:4]:
        text = f"The {word} is serviced."
        collection.add(load(text.encode(), f"{word}.txt"), f"{word}.txt", len(text))
    ids = dict(zip(collection.documents().names, collection.documents().ids, strict=True))
    collection.set_access([ids["pump.txt"]], parse_access("group:legal"))
    golden = [GoldenQuery(word, word, (Evidence(ids[f"{word}.txt"], 0, 10),)) for word in WORDS[:4]]
    open_judgements(collection).add(Judgements(tuple(golden)), collection.documents(), "test")
    facts = {
        who: json.loads(run("eval", "Held", *ONE, "--as", who, "--json"))
        for who in ("bo@x.org", "bo@x.org, legal")
    }
    assert facts["bo@x.org"]["viewer"] == {
        "label": "bo@x.org",
        "k": 20,
        "documents": 3,
        "recall": 0.75,
        "withheld": 0.25,
        "recall_of_seen": 1.0,
        "queries_with_evidence_seen": 3,
    }
    assert facts["bo@x.org"]["documents"] == 3
    assert facts["bo@x.org"]["stages"]["kept"]["recall@20"] == 0.75
    legal = facts["bo@x.org, legal"]
    assert (legal["viewer"]["withheld"], legal["stages"]["kept"]["recall@20"]) == (0, 1)
    text = run("eval", "Held", *ONE, "--as", "")
    line = "as anybody: 0.250 of the evidence is hidden; recall@20 0.750 of all evidence, 1.000 of what they may see"
    assert line in text
    assert json.loads(run("eval", "Held", *ONE, "--json"))["viewer"] is None


def test_neither_a_collection_nor_a_folder() -> None:
    assert "neither a collection nor a folder" in run("eval", "Nowhere", code=1)


def test_a_collection_brings_its_judgements_and_settings(folder: Path) -> None:
    run("add", folder / "corpus.jsonl", "-c", "Mine")
    store = open_collection("Mine")
    search = SearchSettings(two_stage=False).with_index("vector", on=False)
    store.save_settings(store.settings().replace(search=search))
    documents = store.documents()
    valve = next(one for one in documents if "valve" in one.text)
    start = valve.text.index("valve")
    query = GoldenQuery("v", "valve", (Evidence(valve.id, start, start + 5),))
    open_judgements(store).add(Judgements((query, GoldenQuery("n", "who?"))), documents, "test")
    found = json.loads(run("eval", "Mine", "--json"))
    assert (found["form"], found["stages"]["kept"]["recall@5"]) == ("collection", 1)
    assert (found["queries"]["measured"], found["queries"]["without_evidence"]) == (1, 1)
    assert "vector" not in found["stages"]
    assert (store.folder / "results.db").exists()


def test_a_settings_file_counts_and_changes_lie_on_top(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "best.toml"
    search = SearchSettings(two_stage=False, k_rrf=7, k=30)
    file.write_text(Settings(IndexSettings(), search).to_toml())
    found = json.loads(
        run(
            "eval", folder, "--settings", file, "--set", "k_rrf=9", "-i", "analyzer.stem=false", "--json"
        )
    )["settings"]
    assert (found["search"]["k_rrf"], found["search"]["k"]) == (9, 30)
    assert found["index"]["analyzer"]["stem"] is False


def test_a_sweep_finds_the_point_reports_the_other_half_and_writes_it(
    folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "best.toml"
    tried = ["--try", "search.indexes.bm25.weight=0,1", "--try", "search.k=5,20"]
    worse = ("--set", "indexes.bm25.weight=0")
    words = ["sweep", folder, *ONE, *worse, *tried, "--metric", "recall@5", "-o", out]
    found = json.loads(run(*words, "--fail-under", "recall@5=0.9", "--json", code=3))
    assert len(found["trials"]) == 4
    assert found["best"]["point"]["search.indexes.bm25.weight"] == 1
    assert found["better_than_default"] is True
    assert found["best"]["value"] == pytest.approx(2.5 / 3)
    assert found["held_out"]["winner"]["mean"] == found["fail_under"][0]["value"] == pytest.approx(2 / 3)
    assert found["default"]["point"] == {}
    assert Settings.from_toml(out.read_text()).to_dict() == found["settings"]
    text = run(*words)
    assert text.splitlines()[1].startswith("best")
    assert "on the other 3 queries" in text


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 1, "a setting to try"),
        (["--try", "search.k_rrf"], 2, "NAME=VALUE"),
        (["--try", "search.k_rrf=1..9"], 1, "is a range"),
        (["--try", "search.nothing=1"], 1, "no setting"),
        (["--try", "search.k=5", "--fail-under", "mrr=0.5"], 2, "a sweep looks at recall@20"),
    ],
)
def test_a_sweep_that_cannot_be_says_why(folder: Path, words: list[str], code: int, said: str) -> None:
    assert said in run("sweep", folder, *words, code=code)


def test_a_limit_never_stands_on_the_half_that_was_tuned_on(folder: Path) -> None:
    """Here the odd half has no evidence, so nothing is held out."""
    judged = [f"q{word}\t{word}\t1\n" for word in WORDS[::2]]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(judged))
    swept = (
        "sweep",
        folder,
        *ONE,
        "--try",
        "search.k_rrf=1,60",
        "--metric",
        "recall@1",
        "--stage",
        "kept",
    )
    told = run(*swept, "--fail-under", "recall@1=0.1", code=1)
    assert "nothing was held out" in told


def test_a_start_that_nothing_beats_is_the_best_and_is_what_is_written(
    folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "best.toml"
    words = [
        "sweep",
        folder,
        *ONE,
        "--try",
        "search.indexes.bm25.weight=0",
        "--metric",
        "mrr@5",
        "-o",
        out,
    ]
    found = json.loads(run(*words, "--json"))
    assert found["trials"][0]["value"] < found["default"]["value"]
    assert found["best"] == found["default"]
    assert found["better_than_default"] is False
    assert found["held_out"]["winner"] == found["held_out"]["default"]
    assert Settings.from_toml(out.read_text()).search.index("bm25").weight == 1
    best, default = run(*words).splitlines()[1:3]
    assert best.startswith("best")
    assert best.endswith("unchanged: nothing that was tried is better")
    assert default.split()[1] == best.split()[1]


def test_a_setting_that_moves_nothing_and_few_chunks_are_named(folder: Path) -> None:
    words = ["sweep", folder, *ONE, "--try", "search.item_weight=0,1"]
    few = "6 chunks: the first 20 hold them all, so recall@20 cannot tell settings apart"
    notes = json.loads(run(*words, "--json"))["notes"]
    assert notes[0] == "search.item_weight makes no difference: two stages are off"
    assert notes[1].startswith(few)
    assert f"note: {few}" in run("eval", folder, *ONE, "--k", 20)
    assert "cannot tell" not in run("eval", folder, *ONE, "--k", 5)


class Interrupted(HashEmbedder):
    """Ctrl-C comes while it embeds a query, once."""

    armed = True

    def embed_query(self, text: str) -> np.ndarray:
        if self.armed and text == "sensor":
            self.armed = False
            raise KeyboardInterrupt
        return super().embed_query(text)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["eval"], "stopped at queries 4 of 6: that is kept"),
        (["sweep", "--try", "search.k=5,20", "--split", "none"], "under way: searching 4 of 6: that is kept"),
    ],
)  # fmt: skip
def test_stopped_by_ctrl_c_it_says_what_is_kept_and_goes_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], told: str
) -> None:
    embedder = Interrupted(model_id=DEFAULT_MODEL)
    monkeypatch.setitem(embedding._loaded, DEFAULT_MODEL, embedder)
    asked = [words[0], folder, "--set", "two_stage=false", *words[1:]]
    said = run(*asked, code=130)
    assert told in said
    assert "the same call goes on from there" in said
    before = embedder.queries
    run(*asked)
    # Four queries were there: of the default, which a sweep measures first, two are left, then its points.
    assert embedder.queries - before == (2 if words[0] == "eval" else 2 + 6)
