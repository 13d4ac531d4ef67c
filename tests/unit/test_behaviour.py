"""What people did, beside the collection: kept, imported once, exported whole, erased for good."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from core import collection as collections
from core.behaviour.events import BehaviourError, Event, in_utc
from core.behaviour.forms import Log, read_log, to_csv, to_ubi
from core.behaviour.store import Behaviour
from core.cli import app
from core.collection import Collection
from core.corpus import first_stage
from core.documents import Documents, ListedDocuments
from core.errors import CollectionError
from core.loading import LoadOptions, load
from core.types import FORMULA_SIGNS, Document

DOCUMENTS = ListedDocuments(
    [
        Document("a1", "pumps.md", "Pumps", "The seal leaks."),
        Document("b2", "valves.txt", "Valves", "Grease the stem."),
        Document("c3", "table.csv", "Same title", "one", metadata={"id": 7.0}),
        Document("d4", "table.csv", "Same title", "two", metadata={"id": "X-8"}),
    ]
)
EVENTS = [
    Event("seal leaks", "a1", "shown", 1, "2026-05-01T08:00:00+00:00", "ann", "s1"),
    Event("seal leaks", "b2", "shown", 2, "2026-05-01T08:00:00+00:00", "ann", "s1"),
    Event("seal leaks", "b2", "open", 2, "2026-05-01T08:00:09+00:00", "ann", "s1"),
    Event("=grease", "b2", "up", 0, "", "bob", ""),
    Event('\'quoted, "query"\nof two lines', "a1", "down", 3, "2026-05-02T08:00:00+00:00", "", "s2"),
]


@pytest.fixture
def collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Collection:
    monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path / "home"))
    made = collections.create("Mine")
    for name, text in (("pumps.md", b"The seal leaks."), ("valves.txt", b"Grease the stem.")):
        made.add(load(text, name, LoadOptions()), name, len(text))
    return made


def sorted_events(events: list[Event]) -> list[Event]:
    return sorted(events, key=repr)


# The store


def test_nothing_is_recorded_until_it_is_switched_on_and_looking_makes_no_file(
    collection: Collection,
) -> None:
    kept = Behaviour(collection)
    assert (kept.on, kept.events(), kept.users(), kept.version) == (False, [], {}, 0)
    assert kept.record(EVENTS) == 0
    assert not kept.path.exists()
    kept.switch(True)
    assert kept.record(EVENTS) == 5
    kept.switch(False)
    assert kept.record([replace(EVENTS[0], query="later")]) == 0
    assert sorted_events(Behaviour(collection).events()) == sorted_events(EVENTS)


def test_the_same_event_again_changes_nothing(collection: Collection) -> None:
    kept = Behaviour(collection)
    kept.switch(True)
    kept.record(EVENTS)
    version = kept.version
    assert kept.record(EVENTS) == 0
    assert (kept.version, len(kept.events())) == (version, 5)


def test_events_come_oldest_first_and_of_one_user(collection: Collection) -> None:
    kept = Behaviour(collection)
    kept.switch(True)
    kept.record([EVENTS[4], EVENTS[2], EVENTS[0]])
    assert kept.events() == [EVENTS[0], EVENTS[2], EVENTS[4]]
    assert kept.events("ann") == [EVENTS[0], EVENTS[2]]
    assert kept.users() == {"": 1, "ann": 2}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"query": "  "}, "needs a query and a document"),
        ({"kind": "clicked"}, "'clicked' is unknown; give one of shown, open, copy, up, down"),
        ({"rank": -1}, "the rank is -1; count from 1"),
        ({"at": "yesterday"}, "the time 'yesterday' cannot be read"),
    ],
)
def test_what_is_no_event_is_refused_and_nothing_of_the_rest_kept(
    collection: Collection, change: dict, said: str
) -> None:
    kept = Behaviour(collection)
    kept.switch(True)
    with pytest.raises(BehaviourError, match=said):
        kept.record([EVENTS[0], replace(EVENTS[1], **change)])
    assert kept.events() == []


def test_erasing_a_user_leaves_the_others_and_no_trace_in_the_files(collection: Collection) -> None:
    kept = Behaviour(collection)
    kept.switch(True)
    kept.record([replace(EVENTS[0], query="a secret question", user="ann"), EVENTS[3]])
    kept.add(Log((), (replace(EVENTS[0], document_id="gone.md", query="a secret too"),), ()), DOCUMENTS)
    assert kept.erase("ann") == 2
    assert kept.events() == [EVENTS[3]]
    assert (kept.strays(), kept.users(), kept.erase("ann")) == ([], {"bob": 1}, 0)
    left = b"".join(path.read_bytes() for path in kept.path.parent.glob("behaviour.db*"))
    assert b"grease" in left
    assert b"secret" not in left
    assert kept.erase_all() == 1
    assert (kept.events(), kept.on) == ([], True)


def test_the_version_grows_with_every_change_of_the_events(collection: Collection) -> None:
    kept = Behaviour(collection)
    kept.switch(True)
    versions = [kept.version]
    for change in (
        lambda: kept.record(EVENTS[:1]),
        lambda: kept.add(Log(tuple(EVENTS[1:]), (), ()), DOCUMENTS),
        lambda: kept.erase("ann"),
        kept.erase_all,
    ):
        change()
        versions.append(kept.version)
    assert versions == sorted(set(versions))


def test_how_much_a_log_has_grown_and_when_that_cannot_be_told(collection: Collection) -> None:
    kept = Behaviour(collection)
    assert kept.extent() is None
    kept.switch(True)
    kept.record(EVENTS)
    extent = kept.extent()
    assert extent is not None
    assert (extent.size, extent.event) == (5, EVENTS[-1])
    assert kept.grown(extent) == 0
    kept.record([replace(EVENTS[0], user="cid"), replace(EVENTS[0], user="dan")])
    assert kept.grown(extent) == 2
    kept.erase("dan")
    assert kept.grown(extent) == 1
    kept.erase("bob")
    kept.record([replace(EVENTS[0], user="eve")])  # as many as before
    assert kept.grown(extent) is None
    kept.erase_all()
    assert kept.grown(extent) is None


def test_a_long_log_is_read_anew_when_enough_came_or_enough_time_went_by(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(first_stage, "monotonic", lambda: now[0])
    kept = Behaviour(collection)
    kept.switch(True)

    def more(count: int) -> int:
        """How many events a search goes by, once so many more were recorded."""
        kept.record([replace(EVENTS[2], user=f"u{kept.version}-{at}") for at in range(count)])
        return len(first_stage.first_stage_of(collection).events)

    assert [more(998), more(1), more(1)] == [998, 999, 1000]  # short: each event at once
    assert [more(1), more(9)] == [1000, 1000]
    assert more(1) == 1011  # over a hundredth
    assert more(1) == 1011
    held = first_stage.first_stage_of(collection).events
    now[0] += 1.02
    assert more(0) == 1012
    assert first_stage.first_stage_of(collection).events is not held
    assert more(1) == 1012
    kept.erase(next(user for user in kept.users()))
    assert more(0) == 1012  # of 1,013
    assert more(0) == len(kept.events())


def test_a_newer_format_and_a_damaged_file_are_named(collection: Collection) -> None:
    kept = Behaviour(collection)
    kept.switch(True)
    database = sqlite3.connect(kept.path)
    database.execute("PRAGMA user_version=9")
    database.close()
    with pytest.raises(CollectionError, match="has the format 9, this Rankscope knows 1"):
        kept.events()
    for path in kept.path.parent.glob("behaviour.db*"):
        path.unlink()
    kept.path.write_bytes(b"no database" * 100)
    with pytest.raises(CollectionError, match=r"damaged.*delete it: what was recorded is gone then"):
        kept.events()


def test_what_people_did_is_gone_with_the_collection(collection: Collection) -> None:
    kept = Behaviour(collection)
    kept.switch(True)
    kept.record(EVENTS)
    collections.delete("Mine")
    assert not kept.path.exists()


# Logs


def read(text: str, name: str = "log.csv", documents: Documents = DOCUMENTS) -> Log:
    return read_log({name: text.encode()}, documents)


def test_a_table_names_documents_by_id_record_id_file_name_or_title() -> None:
    log = read(
        "Query;Document;Position;Timestamp;User ID\n"
        "q;a1;1;2026-05-01 10:00;ann\n"
        "q;valves.txt;2;2026-05-01T10:00:00+02:00;ann\n"
        "q;Pumps;3;1777629600000;bob\n"
        "q;7;4;1777629600;bob\n"
    )
    at = "2026-05-01T10:00:00+00:00"
    assert log.events == (
        Event("q", "a1", "open", 1, at, "ann"),
        Event("q", "b2", "open", 2, "2026-05-01T08:00:00+00:00", "ann"),
        Event("q", "a1", "open", 3, at, "bob"),
        Event("q", "c3", "open", 4, at, "bob"),
    )
    assert [problem.split(":")[0] for problem in log.problems] == ["the log does not say what was shown"]


def test_what_a_row_lacks_is_named_by_its_line_and_the_rest_is_read() -> None:
    log = read("query,document,rank,kind\nq,a1,first,\n,a1,1,\nq,a1,1,bought\nq,a1,2,thumbs up\n")
    assert log.events == (Event("q", "a1", "up", 2, ""),)
    assert [problem.partition(" is left out: ")[0] for problem in log.problems[:3]] == [
        "log.csv, line 2",
        "log.csv, line 3",
        "log.csv, line 4",
    ]
    assert "the rank is 'first'" in log.problems[0]
    assert log.problems[4:] == (
        "events without a user: 1; each of their sessions counts as one person",
        "events without a time: 1; they do not fade",
    )


def test_unmatched_documents_are_named_and_kept_apart_until_they_come(collection: Collection) -> None:
    log = read("query,document,user,at\nq,gone.md,ann,2026-05-01\nq,Same title,bob,2026-05-01\n")
    assert (log.events, len(log.strays)) == ((), 2)
    assert "gone.md (1), Same title (2 documents have that name)" in log.problems[0]
    kept = Behaviour(collection)
    added = kept.add(log, DOCUMENTS)
    assert (added.new, added.same, added.strays) == (0, 0, 2)
    assert kept.add(log, DOCUMENTS).strays == 0
    came = ListedDocuments([Document("e5", "gone.md", "", "Here again.")])
    kept.add(Log((), (), ()), came)
    assert kept.events() == [Event("q", "e5", "open", 0, "2026-05-01T00:00:00+00:00", "ann")]
    assert [stray.document_id for stray in kept.strays()] == ["Same title"]


def test_ubi_queries_give_what_was_shown_and_events_their_rank_in_it() -> None:
    queries = {
        "query_id": "s1",
        "user_query": "seal leaks",
        "client_id": "ann",
        "timestamp": "2026-05-01T08:00:00Z",
        "query_response_hit_ids": ["a1", "b2"],
    }
    click = {
        "action_name": "on_click",
        "query_id": "s1",
        "timestamp": "2026-05-01T08:00:09.250Z",
        "event_attributes": {
            "object": {"object_id": "b2", "object_id_field": "_id"},
            "position": {"ordinal": 9},
        },
    }
    hover = {"action_name": "product_hover", "query_id": "s1"}
    log = read_log(
        {
            "ubi_queries.json": json.dumps([queries]).encode(),
            "ubi_events.jsonl": "\n".join(
                json.dumps({"_source": one}) for one in (click, hover)
            ).encode(),
        },
        DOCUMENTS,
    )
    assert log.events == tuple(EVENTS[:3])
    assert log.problems == (
        "events that are no result shown, opened or judged are left out: product_hover (1)",
    )


def test_flat_ubi_events_and_positions_that_begin_at_0() -> None:
    events = [
        {
            "query_id": 5,
            "action_name": "click",
            "object_id": 7,
            "position": at,
            "user_query": "q",
            "client_id": "z",
        }
        for at in (0, 2)
    ]
    log = read(json.dumps({"events": events}), "log.json")
    assert [(one.document_id, one.rank, one.session) for one in log.events] == [
        ("c3", 1, "5"),
        ("c3", 3, "5"),
    ]
    assert log.problems[0] == "positions begin at 0 in this log: the ranks are one more"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no row in it; give a CSV with the columns query, document"),
        ('query,document\n"q,a1\n', "after line"),
        ("{broken\n", "line 1 is left out: broken JSON"),
        ("[1, 2]", "entry 1 is left out: not an object"),
    ],
)
def test_a_log_that_is_none_is_refused(text: str, said: str) -> None:
    with pytest.raises(BehaviourError, match=said):
        read(text)
    with pytest.raises(BehaviourError, match="no UTF-8 text"):
        read_log({"log.csv": b"query\xff"}, DOCUMENTS)


@pytest.mark.parametrize("sign", FORMULA_SIGNS)
def test_no_sign_of_a_formula_begins_a_cell(sign: str) -> None:
    events = [replace(EVENTS[0], query=f"{before}{sign}1+1") for before in ("", "'")]
    table = to_csv(events, DOCUMENTS)
    rows = list(csv.reader(io.StringIO(table, newline="")))
    assert [row[0] for row in rows[1:]] == [f"'{sign}1+1", f"''{sign}1+1"]
    if not sign.isspace():  # a query has no blanks around it
        assert read(table).events == tuple(events)


def test_what_is_written_is_read_back_and_no_spreadsheet_runs_it() -> None:
    table = to_csv(EVENTS, DOCUMENTS)
    rows = list(csv.reader(io.StringIO(table, newline="")))
    assert [row[0] for row in rows[4:]] == ["'=grease", '\'quoted, "query"\nof two lines']
    assert rows[1][-1] == "pumps.md"
    assert read(table).events == tuple(EVENTS)
    assert read(to_ubi(EVENTS), "log.jsonl").events == tuple(EVENTS)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-05-01", "2026-05-01T00:00:00+00:00"),
        ("2026-05-01T23:30:00-02:00", "2026-05-02T01:30:00+00:00"),
        ("1777629600.75", "2026-05-01T10:00:00+00:00"),
    ],
)
def test_times_are_kept_as_utc(text: str, at: str) -> None:
    assert in_utc(text) == at


# The command


def test_the_command_imports_once_exports_erases_and_says_what_there_is(
    collection: Collection, tmp_path: Path
) -> None:
    log = tmp_path / "log.csv"
    log.write_text(
        "query,document,rank,at,user\nq,pumps.md,1,2026-05-01,ann\nq,lost.md,2,2026-05-01,bob\n"
    )

    def run(*words: str) -> tuple[str, str]:
        result = CliRunner().invoke(app, ["behaviour", "Mine", *words])
        assert result.exit_code == 0, (result.output, result.exception)
        return result.stdout, result.stderr

    assert run() == ("recording: off\nevents: none\n", "")
    assert "imported: 1 new, 0 here already, 1 kept apart" in run("--import", str(log))[1]
    out, err = run("--import", str(log), "--on")
    assert "imported: 0 new, 1 here already, 0 kept apart" in err
    assert out.splitlines() == [
        "recording: on",
        "events: 1 open; queries: 1; documents: 1",
        "kept apart, as their document is not here: 1",
        "ann: 1",
        "bob: 1",
    ]
    for name in ("out.csv", "out.jsonl"):
        run("--export", str(tmp_path / name))
        back = read_log({name: (tmp_path / name).read_bytes()}, collection.documents())
        assert (back.events, back.strays) == (
            tuple(Behaviour(collection).events()),
            tuple(Behaviour(collection).strays()),
        )
    assert "erased of 'ann': 1" in run("--erase", "ann")[1]
    assert json.loads(run("--json")[0]) == {
        "recording": True,
        "events": 0,
        "kinds": {},
        "queries": 0,
        "documents": 0,
        "apart": 1,
        "users": {"bob": 1},
    }
