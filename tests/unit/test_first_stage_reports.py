"""What rows, figures, files and controls say of signals, rules and filters."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from core.behaviour.events import Event
from core.corpus import Corpus
from core.corpus.first_stage import FirstStage
from core.errors import NeedsSearch
from core.pipeline import replay, run, search
from core.pipeline.further import query_vectors
from core.report.export import trace_to_csv, trace_to_dict, trace_to_json
from core.report.figures import item_flow
from core.report.knobs import idle, knobs, signals_of, with_value
from core.report.leave_one_out import leave_one_out, parts_of, settings_without
from core.report.tables import Reader, columns, item_signals, strip
from core.rules import Rules
from core.settings import IndexSettings, SearchSettings, SignalUse
from core.trace import Trace
from core.types import Document, text_hash
from core.vectors_cache import shared_cache
from tests.fakes import HashEmbedder

TODAY = date(2026, 3, 1)
RULES = """
[[rule]]
name = "push"
documents = ["d3"]
boost = 1
[[rule]]
name = "top"
documents = ["d4"]
pin = 1
[[rule]]
name = "gone"
documents = ["d2"]
hide = true
"""
SETTINGS = SearchSettings(recency_field="written", items=3)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    texts = ("red pump", "red valve and pump", "red hose on a pump", "blue pipe", "green seal")
    documents = [
        Document(f"d{n}", f"d{n}.txt", f"The {text}", text, metadata={"written": f"2026-02-{n + 10}"})
        for n, text in enumerate(texts)
    ]
    made = Corpus.from_documents(documents, IndexSettings(), HashEmbedder())
    return made.with_first_stage(FirstStage(Rules.from_toml(RULES), today=TODAY))


@pytest.fixture
def trace(corpus: Corpus) -> Trace:
    return search(corpus, "red pump", SETTINGS)


def test_rows_of_items_tell_rank_score_term_and_rule_of_every_signal(trace: Trace) -> None:
    rows = item_signals(trace)
    assert [(row["id"], row["rank"]) for row in rows] == [("d4", 1), ("d0", 2), ("d3", 3), ("d2", None)]
    top, pushed = rows[0], rows[2]
    assert top["said"] == ["rule top: pin at 1"]
    assert top["fused"] == trace.stage("items.fused").ranking.rank_of(4)
    assert list(pushed["signals"]) == ["lexical", "semantic", "recency", "rules"]
    newest = top["signals"]["recency"]
    assert (newest["title"], newest["rank"], newest["formula"]) == ("recency", 1, "1/(10+1)")
    assert newest["why"] == "written 2026-02-14: 2^(−15/365) = 0.9719"
    assert newest["digits"] == "0.9719"
    lexical = pushed["signals"]["lexical"]
    assert (lexical["rank"], lexical["score"], lexical["term"]) == (None, None, 0.0)
    rules = pushed["signals"]["rules"]
    assert (rules["score"], rules["term"], rules["why"]) == (1.0, 1 / 11, "rule push: boost 1")
    assert rows[3]["hidden"] == "rule gone hides it"
    assert item_signals(replay(trace, SETTINGS.replace(two_stage=False))) == []


def test_the_column_of_items_keeps_its_parts_where_rules_put_them_elsewhere(
    corpus: Corpus, trace: Trace
) -> None:
    reader = Reader(corpus, trace.query, corpus.settings.analyzer)
    items = columns(trace, reader)[0]
    assert [line["id"] for line in items["lines"]] == ["d4", "d0", "d3"]
    first = items["lines"][0]
    assert first["said"] == ["rule top: pin at 1"]
    assert first["move"] == trace.stage("items.fused").ranking.rank_of(4) - 1  # type: ignore[operator]
    assert {part["name"]: part["rank"] for part in first["parts"]}["items.recency"] == 1
    plain = columns(replay(trace, SETTINGS.with_signal("rules", on=False)), reader)[0]
    assert all("said" not in line for line in plain["lines"])


def test_the_strip_counts_items_that_pass_and_the_time_of_all_signals(corpus: Corpus) -> None:
    trace = search(corpus, "red pump", SETTINGS.replace(filters="file = d0.txt, d1.txt, d2.txt"))
    items = next(step for step in strip(trace) if step["name"] == "items")
    assert (items["of"], items["count"]) == (3, 2)
    spent = trace.record.milliseconds
    assert items["ms"] == sum(ms for name, ms in spent.items() if name.startswith("items."))
    assert {"items.rules", "items.recency", "items.lexical"} <= set(spent)


def test_json_and_csv_hold_signals_rules_and_filters(corpus: Corpus) -> None:
    trace = search(corpus, "red pump", SETTINGS.replace(filters="file != d0.txt"))
    found = json.loads(trace_to_json(trace))
    assert found == trace_to_dict(trace)
    assert found["passing"] == 4
    assert found["signals"] == {"lexical": [], "semantic": [], "recency": []}
    assert found["rules"]["hold"] == ["push", "top", "gone"]
    touched = {one["id"]: (one["boost"], one["pin"], one["hidden"]) for one in found["rules"]["items"]}
    assert touched == {
        "d2": (None, None, "rule gone hides it"),
        "d3": (1.0, None, None),
        "d4": (None, 1, None),
    }
    stages = {stage["name"]: stage for stage in found["stages"]}
    assert stages["items"]["removed"] == [
        {"id": "d2", "document": "d2", "name": "d2.txt", "title": "The red hose on a pump"}
        | {"reason": "rule gone hides it"}
    ]
    assert stages["items"]["ranking"][0]["parts"] == {"items.fused": {"rank": 3, "term": None}}
    lines = list(csv.DictReader(io.StringIO(trace_to_csv(trace))))
    placed = next(one for one in lines if one["stage"] == "items")
    assert (placed["id"], placed["parts"]) == ("d4", "items.fused rank 3")
    assert search(corpus, "red pump").record.passing is None


def test_without_rules_or_signals_a_trace_has_no_stage_of_theirs(corpus: Corpus) -> None:
    plain = search(corpus.with_first_stage(FirstStage()), "red pump")
    assert [one.name for one in plain.stages if one.unit == "item"] == [
        "items.lexical",
        "items.semantic",
        "items",
    ]
    assert trace_to_dict(plain)["rules"] == {"hold": [], "notes": [], "items": []}


def test_the_picture_of_items_marks_what_rules_did(trace: Trace) -> None:
    drawn = {line.name: line for line in item_flow(trace).data}
    assert set(drawn) == {"A", "B", "C ✕", "D ▲", "E →1"}
    assert list(drawn["E →1"].x) == ["semantic", "recency", "fused", "Items"]
    assert list(drawn["E →1"].y)[-1] == 1
    assert drawn["C ✕"].marker.symbol[-1] == "x"
    assert "rule gone hides it" in drawn["C ✕"].hovertemplate
    assert list(drawn["C ✕"].x) == ["lexical", "semantic", "recency"]


def test_leaving_one_out_is_the_search_without_it(corpus: Corpus, trace: Trace) -> None:
    parts = ("items.lexical", "items.semantic", "items.recency", "items.rules", "bm25", "vector")
    assert parts_of(trace) == parts
    found = {one.part: one for one in leave_one_out(trace)}
    assert tuple(found) == parts
    for part, one in found.items():
        assert one.trace == search(corpus, "red pump", settings_without(SETTINGS, part))
    rules = found["items.rules"]
    assert rules.title == "Items, rules"
    assert {corpus.item_ids[one.item] for _, one in rules.gained} == {"d1", "d2"}
    assert {corpus.item_ids[one.item] for _, one in rules.lost} == {"d3", "d4"}
    assert rules.overlap == pytest.approx(1 / 3)
    gained = {one.item: rank for rank, one in rules.gained}
    assert rules.trace is not None
    assert all(rules.trace.passages[rank - 1].item == item for item, rank in gained.items())
    alone = SETTINGS.with_index("bm25", on=False).with_signal("lexical", on=False)
    alone = alone.with_signal("semantic", on=False)
    assert parts_of(search(corpus, "red pump", alone)) == ("items.rules",)


def test_leaving_out_says_where_only_a_search_tells(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "RECORD_ALL", 1)
    trace = search(corpus, "red pump", SETTINGS)
    rules = next(one for one in leave_one_out(trace) if one.part == "items.rules")
    assert (rules.trace, rules.needs) == (None, ("items ranked with other items hidden",))
    with pytest.raises(NeedsSearch):
        replay(trace, rules.settings)


def test_controls_name_the_signals_there_are(corpus: Corpus, trace: Trace) -> None:
    names = signals_of(trace)
    assert names == ("lexical", "semantic", "recency", "rules")
    assert signals_of(search(corpus.with_first_stage(FirstStage()), "red pump")) == names[:2]
    groups = dict(knobs(SETTINGS, names, ("bm25", "vector")))
    assert [knob.path for knob in groups["Filters"]] == ["filters"]
    assert "signals.rules.weight" in [knob.path for knob in groups["Item stage"]]


NAMES = ("lexical", "semantic", "recency", "rules")
OFF = {"lexical": SignalUse(on=False), "semantic": SignalUse(on=False)}
IDLE = [
    (SETTINGS.replace(recency_field=""), "recency_half_life", 9.0),
    (SETTINGS.with_signal("recency", on=False), "recency_half_life", 9.0),
    (SETTINGS.with_signal("popularity", on=False), "popularity_field", "written"),
    (SETTINGS.replace(two_stage=False), "recency_field", ""),
    (SETTINGS.replace(two_stage=False), "signals.rules.weight", 9.0),
    (SETTINGS.with_signal("rules", on=False), "signals.rules.weight", 9.0),
    (SETTINGS.replace(signals=OFF, recency_field=""), "signals.rules.weight", 9.0),
    (SETTINGS.replace(signals=OFF, recency_field=""), "items", 1),
]
MOVING = [
    (SETTINGS, "recency_half_life"),
    (SETTINGS, "popularity_field"),
    (SETTINGS.replace(signals=OFF), "signals.recency.weight"),
    (SETTINGS.replace(signals=OFF), "k_rrf_items"),
    (SETTINGS, "filters"),
]


@pytest.mark.parametrize(("settings", "path", "value"), IDLE)
def test_a_locked_control_would_move_nothing(
    corpus: Corpus, settings: SearchSettings, path: str, value: object
) -> None:
    names = NAMES if settings.recency_field else ("lexical", "semantic", "rules")
    assert idle(settings, path, names, ("bm25", "vector"))
    before = search(corpus, "red pump", settings)
    assert search(corpus, "red pump", with_value(settings, path, value)).passages == before.passages


@pytest.mark.parametrize(("settings", "path"), MOVING)
def test_a_control_that_may_move_something_is_free(settings: SearchSettings, path: str) -> None:
    assert idle(settings, path, NAMES, ("bm25", "vector")) == ""


def test_a_first_stage_has_a_name_that_changes_with_what_it_does() -> None:
    event = Event("q", "d1", "open", 1, "2026-01-01")
    rules = Rules.from_toml(RULES)
    dated = Rules.from_toml(
        '[[rule]]\nname = "a"\nuntil = 2026-05-01\ndocuments = ["d1"]\nhide = true\n'
    )
    assert FirstStage().fingerprint == FirstStage(today=TODAY).fingerprint == ""
    stages = [
        FirstStage(rules, today=TODAY),
        FirstStage(rules, (event,), today=TODAY),
        FirstStage(rules, (replace(event, rank=2),), today=TODAY),
        FirstStage(events=(event,), today=TODAY),
        FirstStage(events=(event,), today=date(2026, 3, 2)),
        FirstStage(kinds={"year": "number"}, today=TODAY),
        FirstStage(dated, today=TODAY),
        FirstStage(dated, today=date(2026, 6, 1)),
    ]
    assert len({one.fingerprint for one in stages}) == len(stages)
    assert FirstStage(rules, today=date(2030, 1, 1)).fingerprint == stages[0].fingerprint
    assert stages[1].of_items(["d2"]).fingerprint == stages[0].fingerprint


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path))
    return tmp_path  # type: ignore[return-value]


def test_vectors_of_past_queries_are_made_once_and_a_service_is_not_paid_for_them(home: Path) -> None:
    embedder = HashEmbedder(model_id="hash-queries")
    first = query_vectors(embedder, ["red pump", "valve", "red pump"])
    assert embedder.queries == 2
    assert np.array_equal(first[0], first[2])
    assert np.array_equal(query_vectors(embedder, ["valve"])[0], first[1])
    assert embedder.queries == 2
    hosted = HashEmbedder(model_id="voyage:voyage-3.5")
    known = HashEmbedder().embed_query("valve")
    shared_cache().put_many("voyage:voyage-3.5?query", {text_hash("valve"): known})
    vectors = query_vectors(hosted, ["valve", "never asked"])
    assert hosted.queries == 0
    assert np.array_equal(vectors[0], known)
    assert not vectors[1].any()


def test_clicks_join_where_there_are_events_on_the_items(corpus: Corpus, home: Path) -> None:
    events = tuple(
        Event("red pump", f"d{n}", kind, n + 1, "2026-02-20", f"u{person}")
        for person in range(12)
        for n, kind in ((0, "shown"), (1, "shown"), (2, "shown"), (3, "shown"), (3, "open"))
    )
    clicked = corpus.with_first_stage(FirstStage(events=events, today=TODAY))
    trace = search(clicked, "red pump")
    assert trace.stage("items.clicks").ranking.positions.tolist() == [3]
    row = next(row for row in item_signals(trace) if row["id"] == "d3")
    assert row["signals"]["clicks"]["why"].startswith("12 of 12 people")
    elsewhere = tuple(replace(event, document_id="other") for event in events)
    other = corpus.with_first_stage(FirstStage(events=elsewhere, today=TODAY))
    settings = SearchSettings().with_signal("clicks", weight=2.0)
    unclicked = search(other, "red pump", settings)
    assert "items.clicks" not in [one.name for one in unclicked.stages]
    assert unclicked.notes == (
        "nobody's clicks are recorded for these items: its settings have no effect",
    )
