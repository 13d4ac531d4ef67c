"""The Signals tab of a search, and what is recorded of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.behaviour.events import Event
from core.behaviour.store import Behaviour
from core.collection import Collection
from core.evaluation import open_judgements
from pages.ui import evaluate_work, happened, people, state
from tests.app.conftest import columns_data, shown_text

Open = Callable[..., AppTest]
RULES = """[[rule]]
name = "Lamps first"
query = "bearing"
documents = ["lamps.md"]
pin = 1

[[rule]]
name = "No <b>fans</b>"
documents = ["fans.md"]
hide = true
"""


@pytest.fixture
def ruled(machines: Collection) -> Collection:
    machines.save_rules(RULES)
    return machines


def opened(open_page: Open, **parameters: str) -> AppTest:
    page = open_page(**parameters)
    page.session_state["below"] = "Signals"
    page.run()
    assert not page.exception
    return page


def test_each_item_has_its_rank_in_every_signal_and_what_rules_did(
    ruled: Collection, open_page: Open
) -> None:
    page = opened(open_page, q="bearing grease")
    told = shown_text(page)
    assert "Rules that hold for this query: Lamps first, No <b>fans</b>." in told
    table = next(
        one.proto.body for one in page.get("html") if "Items and their signals" in one.proto.body
    )
    assert '<th scope="col">lexical</th>' in table.lower()
    assert "rule Lamps first: pin" in table
    assert "No &lt;b&gt;fans&lt;/b&gt; hides it" in table
    lamps = next(row for row in table.split("<tr") if "<b>C</b>" in row)
    assert "<td>1<small>" in lamps
    assert page.get("plotly_chart")


def test_the_card_of_an_item_says_what_rules_did(ruled: Collection, open_page: Open) -> None:
    items = columns_data(open_page(q="bearing grease"))["columns"][0]["lines"]
    assert items[0]["name"] == "lamps.md"
    assert items[0]["said"] == ["rule Lamps first: pin at 1"]


def test_an_item_that_is_kept_out_says_by_what(ruled: Collection, open_page: Open) -> None:
    for document, settings, told in (
        (1, {}, "does not go on to stage two: rule No <b>fans</b> hides it."),
        (
            0,
            {"filters": "file = fans.md, lamps.md"},
            "the filters keep it out (file = fans.md, lamps.md).",
        ),
        (0, {"items": "1"}, "does not go on to stage two: others rank above it."),
    ):
        page = open_page(q="bearing grease", **settings)
        page.session_state["rs_selected"] = ruled.documents().ids[document]
        page.run()
        assert told in shown_text(page)


def test_without_each_part_says_what_it_moves(machines: Collection, open_page: Open) -> None:
    told = shown_text(opened(open_page, q="bearing grease"))
    rows = told.split("This query without each part", 1)[1]
    for part in ("BM25", "Vector"):
        assert part in rows
    assert "Judge some queries, and this tells" in told


def test_what_each_part_is_worth_over_the_judged_queries(machines: Collection, open_page: Open) -> None:
    documents = machines.documents()
    text = documents[0].text
    at = text.index("A dry bearing")
    open_judgements(machines).judge("bearing grease", documents.ids[0], at, at + 20, 1, documents)
    page = opened(open_page, q="bearing grease")
    page.button(key="leave_one_out_do").click().run()
    work = evaluate_work.work_of(machines, "leave one out")
    assert work is not None
    work.wait(60)
    page.run()
    told = shown_text(page).split("The judged queries without each part", 1)[1]
    assert "recall@20" in told
    assert "1.000" in told
    assert not [one for one in page.button if one.key == "leave_one_out_do"]


def test_in_one_stage_no_signal_ranks_items(machines: Collection, open_page: Open) -> None:
    told = shown_text(opened(open_page, q="bearing", two_stage="false"))
    assert "No signal ranks items here: two stages are off" in told


# What is recorded


def test_nothing_is_recorded_until_it_is_switched_on(machines: Collection, open_page: Open) -> None:
    page = open_page()
    page.text_input(key="query_box").set_value("bearing")
    page.button(key="search_button").click().run()
    assert Behaviour(machines).events() == []
    assert not (Path(machines.folder) / "behaviour.db").exists()
    assert "Recorded for" not in shown_text(page)


def test_a_search_records_what_it_shows_once_each_time_it_is_asked(
    machines: Collection, open_page: Open
) -> None:
    Behaviour(machines).switch(True)
    page = open_page(q="bearing grease")
    assert "Recorded for local: what a query shows here" in shown_text(page)
    lines = columns_data(page)["columns"][-1]["lines"]
    order = list(dict.fromkeys(line["document"] for line in lines))
    first = Behaviour(machines).events()
    assert [(one.document_id, one.rank) for one in first] == [
        (document, rank) for rank, document in enumerate(order, 1)
    ]
    assert {(one.kind, one.user, one.query) for one in first} == {("shown", "local", "bearing grease")}
    assert len({one.session for one in first}) == 1
    page.run()
    page.toggle(key="set_merge").set_value(False).run()
    assert len(Behaviour(machines).events()) == len(first)
    page.button(key="search_button").click().run()
    again = Behaviour(machines).events()
    assert len(again) == 2 * len(first)
    assert len({one.session for one in again}) == 2


def test_what_is_recorded_does_not_move_the_results_on_show(
    machines: Collection, open_page: Open
) -> None:
    Behaviour(machines).switch(True)
    page = open_page(q="bearing grease")
    found = page.session_state["rs_trace"]
    page.run()
    assert page.session_state["rs_trace"] is found


def test_opening_what_is_no_result_and_viewing_as_somebody_record_nothing(
    machines: Collection, monkeypatch: pytest.MonkeyPatch, open_page: Open
) -> None:
    page = open_page(q="bearing grease", k="1")
    trace = page.session_state["rs_trace"]
    store = Behaviour(machines)
    store.switch(True)
    session: dict[str, Any] = {}
    monkeypatch.setattr(happened.st, "session_state", session)
    monkeypatch.setattr(state, "trace", lambda: trace)
    monkeypatch.setattr(state, "collection", lambda: machines)
    only = trace.passages[0].item
    other = next(at for at in range(3) if at != only)
    happened.did("open", trace.corpus.item_ids[other])
    assert store.events() == []
    happened.did("open", trace.corpus.chunk_id(trace.passages[0].best))
    assert [(one.kind, one.rank, one.user) for one in store.events()] == [
        ("shown", 1, "local"),
        ("open", 1, "local"),
    ]
    monkeypatch.setattr(people, "viewing_as", lambda: object())
    happened.did("copy", trace.corpus.item_ids[only])
    assert len(store.events()) == 2
    assert not happened.recording(machines)


def test_passages_bring_the_text_to_copy(machines: Collection, open_page: Open) -> None:
    page = open_page(q="bearing grease")
    lines = columns_data(page)["columns"][-1]["lines"]
    trace = page.session_state["rs_trace"]
    assert [line["copy"] for line in lines] == [trace.text_of(one) for one in trace.passages]


# The page


def behaviour(open_page: Open) -> AppTest:
    page = open_page("pages/signals.py", tab="Behaviour")
    assert not page.exception
    return page


def test_recording_is_switched_on_and_off_on_the_page(machines: Collection, open_page: Open) -> None:
    page = behaviour(open_page)
    assert "Nothing is kept." in shown_text(page)
    page.toggle(key="behaviour_on").set_value(True).run()
    assert Behaviour(machines).on
    assert "what you do on the Search page is kept for local" in shown_text(page)
    page.toggle(key="behaviour_on").set_value(False).run()
    assert not Behaviour(machines).on


def events(collection: Collection) -> list[Event]:
    ids = collection.documents().ids
    at = "2024-03-01T00:00:00+00:00"
    return [
        Event("bearing", ids[document], kind, rank, at, f"user{n}", f"s{n}")
        for n in range(6)
        for document, rank, kind in ((0, 1, "shown"), (1, 2, "shown"), (1, 2, "open"))
    ]


def test_what_is_kept_is_counted_and_erased_by_person(machines: Collection, open_page: Open) -> None:
    store = Behaviour(machines)
    store.switch(True)
    store.record(events(machines))
    page = behaviour(open_page)
    assert "18 events: shown 12, opened 6, 2024-03-01." in shown_text(page)
    assert "1 query by 6 people; 1 pair of query and document clicked." in shown_text(page)
    page.selectbox(key="behaviour_person").select("user2").run()
    page.button(key="behaviour_erase").click().run()
    assert "Erased 3 events." in shown_text(page)
    assert "user2" not in store.users()
    page.button(key="behaviour_erase").click().run()
    assert store.events() == []


def test_a_log_is_read_shown_with_what_does_not_match_and_kept(
    machines: Collection, open_page: Open
) -> None:
    page = behaviour(open_page)
    log = "query,document,rank,user\nbearing,fans.md,2,ann\nbearing,gone.md,1,ann\n"
    page.file_uploader[0].set_value([("clicks.csv", log.encode(), "text/csv")]).run()
    told = shown_text(page)
    assert "1 event on documents here: open 1." in told
    assert "gone.md (1)" in told
    page.button(key="behaviour_import").click().run()
    told = shown_text(page)
    assert "Imported 1 event; 1 without a document here are kept apart." in told
    assert [one.document_id for one in Behaviour(machines).events()] == [machines.documents().ids[1]]
    assert "gone.md" in told
    page.file_uploader[0].set_value([("clicks.csv", b"a,b\n1,2\n", "text/csv")]).run()
    assert "No event can be read from clicks.csv" in shown_text(page)


def test_the_page_says_what_clicks_make_of_a_query(machines: Collection, open_page: Open) -> None:
    store = Behaviour(machines)
    store.switch(True)
    store.record(events(machines))
    page = behaviour(open_page)
    page.text_input(key="behaviour_query").set_value("Bearing").run()
    told = shown_text(page)
    assert "B Fans" in told
    assert "scores " in told or "no more than its ranks explain" in told
    page.text_input(key="behaviour_query").set_value("lamp").run()
    assert "Nobody clicked anything for this query or one like it." in shown_text(page)


def test_fields_are_listed_with_kind_coverage_and_misfits(machines: Collection, open_page: Open) -> None:
    machines.set_field_kind("type", "number")
    page = open_page("pages/signals.py", tab="Fields")
    assert not page.exception
    table = page.dataframe[0].value
    assert table["Field"].tolist() == ["file", "type", "added"]
    assert table["Kind"].tolist() == ["text", "number", "date"]
    assert table["Said by"].tolist() == ["its values", "you", "its values"]
    assert table["Items"].tolist() == [3, 3, 3]
    told = shown_text(page)
    assert "Values that are not of their field's kind" in told
    assert "A Pumps" in told


def test_a_changed_kind_is_kept_or_left_to_the_values_again(
    machines: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pages.ui import fields_tab

    session: dict[str, Any] = {"k": {"edited_rows": {"1": {"Kind": "list"}}}}
    monkeypatch.setattr(fields_tab.st, "session_state", session)
    fields_tab._changed(machines, ["file", "type"], "k")
    assert machines.field_kinds() == {"type": "list"}
    session["k"] = {"edited_rows": {1: {"Kind": "as its values are"}}}
    fields_tab._changed(machines, ["file", "type"], "k")
    assert machines.field_kinds() == {}


def test_two_viewers_stand_beside_where_not_everybody_sees_all(
    machines: Collection, open_page: Open
) -> None:
    page = open_page(q="bearing grease")
    assert "Two viewers" not in [tab.label for tab in page.tabs]
    machines.set_access([machines.documents().ids[1]], frozenset({"group:sales"}))
    page = open_page(q="bearing grease")
    assert [tab.label for tab in page.tabs][2:4] == ["Signals", "Two viewers"]
    page.session_state["below"] = "Two viewers"
    page.run()
    assert not page.exception
    assert "As anybody" in shown_text(page)
