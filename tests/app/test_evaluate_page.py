"""The Evaluate page in every state a person can meet it in."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.collection import Collection
from core.errors import Stopped
from core.evaluation import GoldenQuery, open_judgements, read_judgements
from core.evaluation.space import Range
from core.settings import SearchSettings, Settings
from pages.ui import evaluate_generate, evaluate_work
from pages.ui.evaluate_space import values
from tests.app.conftest import shown_text
from tests.claude_server import ClaudeServer

Open = Callable[..., AppTest]
PAGE = "pages/evaluate.py"
NOT_THERE = "A fan sings when it rains."
LINES = [
    {"id": "rattle", "query": "why does the pump rattle", "evidence": [
        {"document": "pumps.md", "quote": "A dry bearing makes the pump rattle."}]},
    {"id": "oil", "query": "oil on the floor", "evidence": [
        {"document": "pumps.md", "quote": "A worn seal lets oil out."}]},
    {"id": "lamp", "query": "flickering lamp", "evidence": [
        {"document": "lamps.md", "quote": "A lamp flickers when its driver is too hot."}]},
    {"id": "fan", "query": "singing fan", "evidence": [{"document": "fans.md", "quote": NOT_THERE}]},
    {"id": "price", "query": "what a pump costs", "evidence": []},
]  # fmt: skip
SET = "\n".join(map(json.dumps, LINES))


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """No credentials of the machine the tests run on."""
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def judged(machines: Collection) -> Collection:
    documents = machines.documents()
    open_judgements(machines).add(read_judgements(SET, documents), documents, "set.jsonl")
    return machines


def queries(collection: Collection) -> dict[str, GoldenQuery]:
    found = open_judgements(collection).queries(collection.documents()).queries
    return {query.id: query for query in found}


def tab(page: AppTest, name: str) -> AppTest:
    page.session_state["evaluate_tab"] = name
    page.run()
    assert not page.exception
    return page


def done(page: AppTest, collection: Collection, kind: str) -> AppTest:
    """Press the button of a kind of evaluation, wait for its end, draw the page."""
    page.button(key=f"{kind}_do").click().run()
    work = evaluate_work.work_of(collection, kind)
    assert work is not None
    work.wait(60)
    assert (work.running, work.trouble) == (False, "")
    page.run()
    assert not page.exception
    return page


def table(page: AppTest) -> dict[str, list[str]]:
    """Stage → its cells, as the metric table reads."""
    body = next(
        one.proto.body
        for one in page.get("html")
        if "rs-eval-table" in one.proto.body and "<tr" in one.proto.body
    )
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", body.split("<tbody>")[1])
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in rows]
    return {row[0]: row[1:] for row in cells}


# What to do first


def test_an_empty_collection_says_where_to_add_documents(empty: Collection, open_page: Open) -> None:
    page = open_page(PAGE)
    assert not page.exception
    assert "No documents yet" in shown_text(page)
    assert not page.tabs


def test_before_it_is_indexed_queries_are_made_and_nothing_is_measured(
    waiting: Collection, open_page: Open
) -> None:
    page = open_page(PAGE)
    assert "No golden queries yet" in shown_text(page)
    for name in ("Measure", "Funnel", "Ladder", "Compare", "Sweep"):
        assert "Index the collection above" in shown_text(tab(page, name))
        assert not [
            button
            for button in page.button
            if button.key.endswith("_do") and button.key != "judgements_add_do"
        ]


def test_without_queries_and_without_evidence_each_tab_names_the_next_step(
    machines: Collection, open_page: Open
) -> None:
    page = open_page(PAGE)
    assert "on the Judgements tab" in shown_text(tab(page, "Measure"))
    tab(page, "Judgements").text_input(key="judgements_add_text").input("what a pump costs")
    page.button(key="judgements_add_do").click().run()
    assert [query.text for query in queries(machines).values()] == ["what a pump costs"]
    assert "no answer" in shown_text(page)
    assert "No golden query has evidence" in shown_text(tab(page, "Funnel"))


# Judgements


def test_queries_are_counted_listed_opened_and_what_is_not_located_is_named(
    judged: Collection, open_page: Open
) -> None:
    page = open_page(PAGE)
    text = " ".join(shown_text(page).split())
    assert "5 golden queries" in text
    assert "4 with evidence 1 without an answer 3 spans of evidence" in text
    assert "1 judgement not located, in 1 query" in text
    page.button(key="judged_toggle_oil").click().run()
    assert "A worn seal lets oil out." in shown_text(page)
    page.button(key="judged_toggle_fan").click().run()
    assert "A worn seal lets oil out." not in shown_text(page)
    assert NOT_THERE in shown_text(page)


def test_the_list_is_filtered_by_words_document_and_kind(judged: Collection, open_page: Open) -> None:
    page = open_page(PAGE)

    def listed() -> list[str]:
        return [
            button.key.removeprefix("judged_toggle_")
            for button in page.button
            if button.key.startswith("judged_toggle")
        ]

    assert listed() == ["rattle", "oil", "lamp", "fan", "price"]
    page.text_input(key="judgements_filter").input("PUMPS.md").run()
    assert listed() == ["rattle", "oil"]
    page.text_input(key="judgements_filter").input("").run()
    page.session_state["judgements_kind"] = "Not located"
    page.run()
    assert listed() == ["fan"]
    page.session_state["judgements_kind"] = "No answer"
    page.run()
    assert listed() == ["price"]


def test_a_query_is_renamed_and_removed(judged: Collection, open_page: Open) -> None:
    page = open_page(PAGE)
    page.button(key="judged_toggle_lamp").click().run()
    page.text_input(key="judged_text_lamp").input("why a lamp flickers")
    page.button(key="judged_rename_do_lamp").click().run()
    assert queries(judged)["lamp"].text == "why a lamp flickers"
    assert len(queries(judged)["lamp"].evidence) == 1
    page.button(key="judged_remove_lamp").click().run()
    assert "lamp" not in queries(judged)
    assert not page.exception


def test_an_import_says_what_is_new_the_same_and_unmatched(
    machines: Collection, open_page: Open
) -> None:
    page = open_page(PAGE)
    told = (
        "5 new questions, 4 new judgements",
        "0 new questions, 0 new judgements, 4 there already",
    )
    for turn, expected in enumerate(told):
        page.file_uploader(key=f"judgements_files_{turn}_False").set_value(
            [("set.jsonl", SET.encode(), "application/json")]
        ).run()
        page.button(key="judgements_import").click().run()
        assert not page.exception
        assert f"set.jsonl, read as JSONL: {expected}." in shown_text(page)
        assert NOT_THERE in shown_text(page)  # named among what did not match
    assert len(queries(machines)["fan"].unlocated) == 1
    assert "read as JSONL" not in shown_text(tab(page, "Measure"))
    tab(page, "Judgements").button(key="judgements_imported_close").click().run()
    assert "read as JSONL" not in shown_text(page)


def test_a_file_of_no_known_form_is_refused_with_those_known(
    machines: Collection, open_page: Open
) -> None:
    page = open_page(PAGE)
    page.file_uploader(key="judgements_files_0_False").set_value(
        [("a.png", b"\x89PNG", "image/png")]
    ).run()
    page.button(key="judgements_import").click().run()
    assert "No form of golden queries is recognised in a.png" in shown_text(page)
    assert queries(machines) == {}


def test_query_words_are_never_read_as_markup(machines: Collection, open_page: Open) -> None:
    words = "<b>bold</b> **strong** :smile: ![x](https://beacon.example.invalid/a.png)"
    open_judgements(machines).add_query(words)
    page = open_page(PAGE)
    label = next(button.label for button in page.button if button.key.startswith("judged_toggle"))
    assert label == f"`{words}`"


# Drafts by Claude


def test_without_a_key_drafting_names_it(machines: Collection, open_page: Open) -> None:
    page = open_page(PAGE)
    page.session_state["generate_open"] = True
    page.run()
    assert not page.exception
    assert "ANTHROPIC_API_KEY" in shown_text(page)
    assert page.button(key="generate_do").disabled


def test_drafts_are_priced_written_reviewed_and_only_accepted_ones_count(
    machines: Collection, open_page: Open, claude: ClaudeServer
) -> None:
    def write(body: dict[str, Any]) -> str:
        text = body["messages"][0]["content"][0]["source"]["data"]
        quote = re.split(r"(?<=\.) ", text.split("\n\n")[-1])[0].strip()
        return json.dumps({"question": f"What of {quote.split()[1]}?", "quote": quote})

    claude.write = write
    page = open_page(PAGE)
    page.session_state["generate_open"] = True
    page.run()
    assert "Expected cost" in shown_text(page)
    assert "At most" in shown_text(page)
    page.button(key="generate_do").click().run()
    job = evaluate_generate.job_of(machines)
    assert job is not None
    job.wait(30)
    page.run()
    drafts = open_judgements(machines).drafts("waiting")
    assert len(drafts) == len(claude.asked) > 1
    assert f"{len(drafts)} drafts to review" in shown_text(page)
    assert queries(machines) == {}

    first, second = drafts[:2]
    assert first.quote in shown_text(page)
    page.text_area(key=f"review_question_{first.id}").input("a person's own words")
    page.button(key=f"review_accept_{first.id}").click().run()
    [made] = queries(machines).values()
    assert made.text == "a person's own words"
    assert [(one.start, one.end) for one in made.evidence] == [(first.start, first.end)]
    page.button(key=f"review_drop_{second.id}").click().run()
    assert len(queries(machines)) == 1
    assert len(open_judgements(machines).drafts("dropped")) == 1
    assert not page.exception


# Measure and funnel


def test_every_stage_is_measured_and_what_is_not_located_counts_as_lost(
    judged: Collection, open_page: Open
) -> None:
    page = done(tab(open_page(PAGE), "Measure"), judged, "measure")
    rows = table(page)
    assert list(rows) == ["BM25", "Vector", "Fused", "Score fusion", "Kept", "Passages"]
    # Three of four queries have all their evidence in so small a collection; the fourth cannot be found.
    assert rows["Kept"][2].startswith("0.750<small>")
    assert rows["Kept"][3].startswith("0.250<small>")
    # How much is unjudged stands with each figure, at its own k.
    body = "".join(one.proto.body for one in page.get("html"))
    assert re.search(r'title="\d+ % of the first 5 results nobody has judged">', body)
    assert re.search(r'title="\d+ % of the first 20 results nobody has judged">', body)
    text = " ".join(shown_text(page).split())
    assert "4 queries with evidence 1 without: they have no recall 1 spans not located" in text
    assert "Up to date" in text


def test_figures_go_stale_by_name_and_come_back(judged: Collection, open_page: Open) -> None:
    page = done(tab(open_page(PAGE), "Measure"), judged, "measure")
    page.toggle(key="set_two_stage").set_value(False).run()
    assert "Stale: settings changed" in shown_text(page)
    open_judgements(judged).remove_query("fan")
    page.run()
    assert "Stale: settings, judgements changed" in shown_text(page)
    page = done(page, judged, "measure")
    assert "Up to date" in shown_text(page)
    assert table(page)["Kept"][2].startswith("1.000<small>")


def test_figures_are_there_again_after_a_restart_and_for_settings_measured_before(
    judged: Collection, open_page: Open
) -> None:
    page = done(tab(open_page(PAGE), "Measure"), judged, "measure")
    before = table(page)
    evaluate_work._desk.clear()
    page = tab(open_page(PAGE), "Measure")
    assert evaluate_work.work_of(judged, "measure") is None
    assert "Up to date" in shown_text(page)
    assert table(page) == before
    assert "The largest loss is at “Located”: 25.0 %" in shown_text(tab(page, "Funnel"))
    page.toggle(key="set_two_stage").set_value(False).run()
    assert "Stale: settings changed" in shown_text(page)
    page = done(page, judged, "measure")
    page.toggle(key="set_two_stage").set_value(True).run()
    assert "Up to date" in shown_text(page)
    assert table(tab(page, "Measure")) == before


def test_a_metric_beyond_what_was_asked_is_a_dash_with_its_reason(
    judged: Collection, open_page: Open
) -> None:
    page = tab(open_page(PAGE, **{"indexes.bm25.depth": "10"}), "Measure")
    page = done(page, judged, "measure")
    rows = table(page)
    assert (rows["BM25"][2], rows["Vector"][2][:5]) == ("–", "0.750")
    assert "it was asked for 10 only" in "".join(one.proto.body for one in page.get("html"))
    assert "–: recall@20" not in shown_text(page)


def test_the_reason_of_a_dash_at_what_is_kept_is_in_sight_and_few_chunks_are_named(
    judged: Collection, open_page: Open
) -> None:
    page = done(tab(open_page(PAGE, k="10"), "Measure"), judged, "measure")
    text = shown_text(page)
    assert "–: recall@20 of kept cannot be told: it was asked for 10 only" in text
    assert "look at MRR or nDCG." in text
    assert re.search(r"\d chunks: the first \d+ hold them all, so recall@5 and ", text)


def test_a_loss_lists_its_queries_and_its_reason(judged: Collection, open_page: Open) -> None:
    page = done(tab(open_page(PAGE), "Funnel"), judged, "measure")
    text = shown_text(page)
    assert "75.0 % of the golden evidence of 4 queries is among the first 20" in text
    assert "The largest loss is at “Located”: 25.0 %" in text
    assert "Located: 1 piece lost" in text
    assert NOT_THERE[:20] in text
    assert page.get("plotly_chart")


def test_the_ceiling_tells_what_fewer_items_cost_and_takes_them_over(
    judged: Collection, open_page: Open
) -> None:
    page = done(tab(open_page(PAGE), "Funnel"), judged, "measure")
    slider = next(one for one in page.slider if one.key.startswith("funnel_items"))
    slider.set_value(1).run()
    assert "1 item: " in shown_text(page)
    page.button(key="funnel_use").click().run()
    assert judged.settings().search.items == 1
    assert "Stale: settings changed" in shown_text(page)


# Compare


def test_settings_are_compared_query_by_query_with_a_verdict(
    judged: Collection, open_page: Open
) -> None:
    page = tab(open_page(PAGE), "Compare")
    assert page.button(key="compare_do").disabled  # A and B are the same
    page = tab(open_page(PAGE, k="1", merge="false"), "Compare")
    assert "3 settings differ" not in shown_text(page)
    page.multiselect(key="compare_metrics").set_value(["recall@20"]).run()
    page.button(key="compare_do").click().run()
    work = evaluate_work.work_of(judged, "compare")
    assert work is not None
    work.wait(60)
    assert re.search(r"asked for 1 only.*; A alone has recall@20 0\.750$", work.trouble)
    page.multiselect(key="compare_metrics").set_value(["recall@1"]).run()
    page = done(page, judged, "compare")
    assert "the same on every query: recall@1" in shown_text(page).lower()
    assert "Regressions: B is worse (0)" in shown_text(page)


def test_a_regression_is_named(judged: Collection, open_page: Open) -> None:
    page = tab(
        open_page(
            PAGE,
            **{"indexes.bm25.on": "false", "indexes.vector.on": "true", "signals.lexical.on": "false"},
        ),
        "Compare",
    )
    page.multiselect(key="compare_metrics").set_value(["mrr"]).run()
    page = done(page, judged, "compare")
    found = evaluate_work.finished(judged, "compare")
    assert found is not None
    [one] = found.result.differences
    text = shown_text(page)
    assert f"Regressions: B is worse ({len(one.regressions)})" in text
    assert f"Improvements: B is better ({len(one.improvements)})" in text
    for change in (*one.regressions, *one.improvements):
        assert f"{change.before:.3f} → {change.after:.3f}" in text


def test_settings_are_kept_pasted_and_refused(judged: Collection, open_page: Open) -> None:
    page = tab(open_page(PAGE, k_rrf="7"), "Compare")
    page.button(key="compare_keep").click().run()
    assert page.button(key="compare_do").disabled
    page.session_state["compare_a"] = "Given as TOML"
    page.run()
    page.text_area(key="compare_toml").input("[search]\nk_rrf = -1").run()
    assert "These settings cannot be used" in shown_text(page)
    page.text_area(key="compare_toml").input(Settings(search=SearchSettings(k_rrf=3)).to_toml()).run()
    assert not page.button(key="compare_do").disabled


# Ladder and sweep


def test_the_ladder_names_its_steps_and_measures_those_it_can(
    judged: Collection, open_page: Open
) -> None:
    page = tab(open_page(PAGE), "Ladder")
    text = shown_text(page)
    for step in (
        "embeddings",
        "+ BM25",
        "+ context (offline)",
        "+ rerank (offline)",
        "+ two stages, merged",
    ):
        assert step in text
    page = done(page, judged, "ladder")
    text = shown_text(page)
    assert "25.0 %" in text
    assert "Published, for comparison: other data, other models" in text
    assert "5.7 % embeddings → 3.7 %" in text
    assert judged.settings() == Settings()  # nothing of the collection's own was changed


def test_a_sweep_finds_reports_and_applies_a_winner(judged: Collection, open_page: Open) -> None:
    page = tab(open_page(PAGE), "Sweep")
    page.multiselect(key="sweep_names").set_value(["search.k_rrf", "search.item_weight"]).run()
    page.text_input(key="sweep_values_search.k_rrf").input("5, 60").run()
    page.text_input(key="sweep_values_search.item_weight").input("0, 1").run()
    assert "4 points, replayed from one search a query" in shown_text(page)
    page = done(page, judged, "sweep")
    found = evaluate_work.finished(judged, "sweep")
    assert found is not None
    assert len(found.result.trials) == 4
    other = next(
        at
        for at in range(4)
        if page.selectbox(key="sweep_chosen").options[at].endswith("k_rrf 5, Item weight 0")
    )
    page.selectbox(key="sweep_chosen").set_value(other).run()
    page.button(key="sweep_use").click().run()
    assert not page.exception
    assert (judged.settings().search.k_rrf, judged.settings().search.item_weight) == (5, 0.0)


def test_a_start_that_nothing_beats_is_the_best_and_no_other_is_put_forward(
    judged: Collection, open_page: Open
) -> None:
    page = tab(open_page(PAGE), "Sweep")
    page.multiselect(key="sweep_names").set_value(["search.k_rrf"]).run()
    page = done(page, judged, "sweep")
    found = evaluate_work.finished(judged, "sweep")
    assert found is not None
    assert found.result.best is found.result.default
    text = shown_text(page)
    assert "None of 2 points is better than the settings it began with: recall@20 0.750" in text
    assert "so recall@20 cannot tell settings apart" in text
    assert page.button(key="sweep_use").proto.type == "secondary"


def test_what_moves_nothing_is_not_suggested_and_named_when_it_is_chosen(
    judged: Collection, open_page: Open
) -> None:
    assert "search.item_weight" in tab(open_page(PAGE), "Sweep").multiselect(key="sweep_names").value
    page = tab(open_page(PAGE, two_stage="false"), "Sweep")
    names = page.multiselect(key="sweep_names")
    assert names.value == ["search.k_rrf", "search.indexes.bm25.weight"]
    names.set_value(["search.k_rrf", "search.item_weight"]).run()
    assert "Item weight makes no difference: two stages are off." in shown_text(page)


def test_where_no_point_can_be_measured_the_reason_is_the_headline(
    judged: Collection, open_page: Open
) -> None:
    page = tab(open_page(PAGE, k="10"), "Sweep")
    page = done(page, judged, "sweep")
    assert "No point could be measured: recall@20 of kept cannot be told: it was asked for 10 only" in (
        shown_text(page)
    )


def test_values_that_are_none_of_a_setting_are_refused_by_name(
    judged: Collection, open_page: Open
) -> None:
    page = tab(open_page(PAGE), "Sweep")
    page.text_input(key="sweep_values_search.k_rrf").input("ten").run()
    assert page.button(key="sweep_do").disabled
    assert "k_rrf" in shown_text(page)
    page.text_input(key="sweep_values_search.k_rrf").input("5..60").run()
    assert "A range needs the optimiser" in shown_text(page)


def test_typed_values_become_lists_and_ranges() -> None:
    assert values("10, 0.5, on, rrf") == [10, 0.5, True, "rrf"]
    assert values("10..60") == Range(10, 60)
    assert values("0.5 – 2") == Range(0.5, 2)


# Work under way


def test_work_goes_on_without_its_window_begins_once_and_stops(machines: Collection) -> None:
    begun, calls = threading.Event(), []

    def call(tell: Callable[[str, int, int], None]) -> str:
        calls.append(1)
        for done_so_far in range(10_000):
            tell("Measuring", done_so_far, 10_000)
            begun.set()
            threading.Event().wait(0.005)
        return "whole"

    evaluate_work.begin(machines, "measure", "stamp", call)
    evaluate_work.begin(machines, "measure", "stamp", call)
    work = evaluate_work.work_of(machines, "measure")
    assert work is not None
    assert begun.wait(10)
    assert evaluate_work.running(machines, "measure")
    work.stop.set()
    work.wait(10)
    assert (work.running, work.stopped, calls) == (False, True, [1])
    assert evaluate_work.finished(machines, "measure") is None


def test_work_that_fails_says_so_on_the_page(judged: Collection, open_page: Open) -> None:
    def call(tell: object) -> None:
        raise OSError("the disk is full")

    page = tab(open_page(PAGE), "Measure")
    evaluate_work.begin(judged, "measure", "stamp", call)
    work = evaluate_work.work_of(judged, "measure")
    assert work is not None
    work.wait(10)
    page.run()
    assert "OSError: the disk is full." in shown_text(page)
    assert page.button(key="measure_do")


def test_a_stopped_part_is_kept_and_named(judged: Collection, open_page: Open) -> None:
    def call(tell: object) -> None:
        raise Stopped("stopped by you")

    page = tab(open_page(PAGE), "Ladder")
    evaluate_work.begin(judged, "ladder", "stamp", call)
    work = evaluate_work.work_of(judged, "ladder")
    assert work is not None
    work.wait(10)
    page.run()
    assert "Stopped. What was measured is kept: run it again" in shown_text(page)
