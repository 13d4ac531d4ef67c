"""The Search page in every state a person can meet it in."""

from __future__ import annotations

import gc
import json
import math
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import core.sample
from core.collection import Collection, open_collection
from core.extras import register_index, unregister_index
from core.protocols import Positions
from core.settings import ChunkSettings, IndexSettings, SearchSettings, Settings
from core.trace import Ranking
from core.types import Chunk
from pages.ui import resources, suggest
from pages.ui.searching import took
from tests.app.conftest import add, columns_data, shown_text

Open = Callable[..., AppTest]


def column(test: AppTest, name: str) -> dict[str, Any]:
    return next(one for one in columns_data(test)["columns"] if one["name"] == name)


def slider(test: AppTest, setting: str) -> Any:
    return next(one for one in test.slider if one.key.startswith(f"set_{setting}_to_"))


def exact(test: AppTest, setting: str) -> Any:
    return next(one for one in test.number_input if one.key.startswith(f"set_{setting}_exact_"))


def ids(test: AppTest, name: str) -> list[str]:
    return [line["id"] for line in column(test, name)["lines"]]


# What there is to do before a query


def test_an_empty_collection_says_where_to_add_documents(empty: Collection, open_page: Open) -> None:
    page = open_page()
    assert not page.exception
    assert "No documents yet" in shown_text(page)
    assert "Documents page" in shown_text(page)
    assert "Query" not in [box.label for box in page.text_input]
    model = next(box for box in page.text_input if box.label == "Reranker's model")
    assert "Default: blank." in model.help


def test_documents_without_an_index_are_indexed_when_asked(waiting: Collection, open_page: Open) -> None:
    page = open_page()
    assert "indexed yet" in shown_text(page)
    assert "Query" not in [box.label for box in page.text_input]
    page.button(key="index_resume").click().run()
    assert not page.exception
    page.text_input(key="query_box").set_value("bearing")
    page.button(key="search_button").click().run()
    assert len(column(page, "bm25")["lines"]) == 2


def test_an_index_without_query_invites_to_type_one(machines: Collection, open_page: Open) -> None:
    page = open_page()
    assert "Type a query" in shown_text(page)
    assert not page.get("bidi_component")
    assert not [button for button in page.button if button.key.startswith("suggestion")]


def test_the_sample_indexes_itself_and_suggests_queries(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_page: Open
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "note.md").write_text("# Note\n\nThe gateway was offline for an hour.\n", encoding="utf-8")
    monkeypatch.setattr(core.sample, "_FOLDER", folder)
    monkeypatch.setattr(core.sample, "remembered", lambda key: None)
    page = open_page()
    assert not page.exception
    suggested = [button for button in page.button if button.key.startswith("suggestion")]
    assert len(suggested) == 3
    suggested[0].click().run()
    assert page.text_input(key="query_box").value == "What happened with INC-2023-Q4-011?"
    assert column(page, "vector")["count"] == 1


def test_no_suggestion_tells_what_a_hidden_document_is_about(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [
        {"query": q, "kind": kind, "evidence": [{"document": name} for name in names]}
        for q, kind, names in (
            ("What does Icebook pay?", "price", ["contract.md"]),
            ("What does a probe cost?", "price", ["prices.md"]),
            ("What do both say?", "both", ["prices.md", "contract.md"]),
            ("Who is not mentioned?", "nothing", []),
        )
    ]
    lines = "\n".join(json.dumps(one) for one in asked)
    monkeypatch.setattr(suggest, "sample_queries", lambda: lines)
    assert suggest.suggestions() == (
        "What does Icebook pay?", "What do both say?", "Who is not mentioned?"
    )  # fmt: skip
    assert suggest.suggestions({"prices.md"}) == ("What does a probe cost?",)
    assert suggest.suggestions(set()) == ()


def test_documents_added_after_indexing_are_named_and_the_old_index_serves(
    machines: Collection, open_page: Open
) -> None:
    page = open_page(q="bearing")
    before = ids(page, "bm25")
    add(machines, "belts.md", "# Belts\n\nA bearing drives the belt.\n")
    page.run()
    assert "1 file not yet indexed" in shown_text(page)
    assert ids(page, "bm25") == before
    page.button(key="index_resume").click().run()
    assert len(ids(page, "bm25")) == len(before) + 1


# A query


def test_every_stage_is_a_column_and_sums_are_what_is_sorted_on(
    machines: Collection, open_page: Open
) -> None:
    page = open_page(q="bearing grease")
    assert not page.exception
    names = [one["name"] for one in columns_data(page)["columns"]]
    assert names == ["items", "bm25", "vector", "fused", "scored", "passages"]
    for name in ("items", "fused", "scored"):
        for line in column(page, name)["lines"]:
            assert math.fsum(part["term"] for part in line["parts"]) == pytest.approx(
                line["score"], rel=1e-12
            )
    first = column(page, "fused")["lines"][0]
    in_bm25 = next(line for line in column(page, "bm25")["lines"] if line["id"] == first["id"])
    assert first["parts"][0]["rank"] == in_bm25["rank"]
    assert first["parts"][0]["formula"] == f"1/(60+{in_bm25['rank']})"
    assert (first["label"], first["hue"]) == (in_bm25["label"], in_bm25["hue"])


def test_the_strip_counts_what_passes_each_stage(machines: Collection, open_page: Open) -> None:
    steps = {step["name"]: step for step in columns_data(open_page(q="bearing grease"))["strip"]}
    assert list(steps) == ["items", "bm25", "vector", "fused", "scored", "kept", "passages"]
    assert (steps["items"]["count"], steps["items"]["of"]) == (3, 3)
    assert steps["bm25"]["ms"] > 0
    assert steps["kept"]["count"] == steps["kept"]["of"] == steps["fused"]["count"]


def test_matched_terms_are_marked_and_the_excerpt_is_the_source(
    machines: Collection, open_page: Open
) -> None:
    line = column(open_page(q="grease the bearings"), "bm25")["lines"][0]
    pieces = line["excerpt"]
    assert {text.lower() for text, marked in pieces if marked} == {"grease", "bearing"}
    document = next(one for one in machines.documents() if one.id == line["document"])
    assert "".join(text for text, _ in pieces) in document.text


def test_a_further_index_gets_a_column_and_controls_by_itself(
    machines: Collection, open_page: Open
) -> None:
    class Longest:
        """Ranks chunks by length: enough to be told apart."""

        name = "longest"

        def __init__(self) -> None:
            self._lengths: list[int] = []

        def add_document(self, document: Chunk | str) -> None:
            self.add_documents([document])

        def add_documents(self, documents: Sequence[Chunk | str]) -> None:
            self._lengths += [len(one if isinstance(one, str) else one.text) for one in documents]

        def search(self, query_text: str, k: int = 1, allowed: Positions | None = None) -> Ranking:
            every = range(len(self._lengths)) if allowed is None else allowed.tolist()
            return Ranking.of((at, float(self._lengths[at])) for at in every).head(k)

        def __len__(self) -> int:
            return len(self._lengths)

    register_index("longest", Longest)
    try:
        page = open_page(q="bearing")
        assert column(page, "longest")["count"] == 4
        assert [part["name"] for part in column(page, "fused")["lines"][0]["parts"]] == [
            "bm25",
            "vector",
            "longest",
        ]
        page.run()
        assert slider(page, "indexes_longest_weight").value == 1.0
    finally:
        unregister_index("longest")


def test_no_result_says_what_to_try(machines: Collection, open_page: Open) -> None:
    page = open_page(q="xylophone", **{"indexes.vector.on": "false", "two_stage": "false"})
    assert "No chunk holds any term of the query (xylophon)" in shown_text(page)
    assert "No result. Try other words" in shown_text(page)


def test_a_query_of_stop_words_is_explained(machines: Collection, open_page: Open) -> None:
    assert "No term is left of the query" in shown_text(open_page(q="of the and"))


def test_a_query_of_55000_characters_is_answered(machines: Collection, open_page: Open) -> None:
    page = open_page()
    page.text_input(key="query_box").set_value("bearing " * 6_900)
    page.button(key="search_button").click().run()
    assert not page.exception
    assert column(page, "bm25")["count"] == 2
    assert "q" not in page.query_params


def test_past_queries_are_listed_once_and_run_again(machines: Collection, open_page: Open) -> None:
    page = open_page()
    for text in ("bearing", "seal", "bearing"):
        page.text_input(key="query_box").set_value(text)
        page.button(key="search_button").click().run()
    assert page.selectbox(key="past_box").options == ["bearing", "seal"]
    page.selectbox(key="past_box").select("seal").run()
    assert page.text_input(key="query_box").value == "seal"
    assert ids(page, "bm25")
    assert "".join(page.query_params["q"]) == "seal"
    assert open_page().selectbox(key="past_box").options == ["seal", "bearing"]


def test_a_loaded_model_is_left_out_of_the_garbage_that_every_run_looks_through(
    machines: Collection, open_page: Open
) -> None:
    gc.unfreeze()
    resources.warm.clear()
    try:
        open_page()
        end = time.monotonic() + 10
        while not gc.get_freeze_count() and time.monotonic() < end:
            time.sleep(0.01)
        assert gc.get_freeze_count() > 1_000
    finally:
        gc.unfreeze()


# Settings


def test_moving_k_rrf_recomputes_from_the_record_and_is_kept(
    machines: Collection, open_page: Open
) -> None:
    page = open_page(q="bearing grease")
    slider(page, "k_rrf").set_value(1).run()
    assert "Recomputed from the recorded search" in shown_text(page)
    assert column(page, "fused")["lines"][0]["parts"][0]["formula"] == "1/(1+1)"
    assert exact(page, "k_rrf").value == 1
    assert machines.settings().search == SearchSettings(k_rrf=1)
    assert slider(open_page(), "k_rrf").value == 1
    page.button(key="reset_Fusion").click().run()
    assert slider(page, "k_rrf").value == 60
    assert machines.settings().search == SearchSettings()


def test_slider_and_box_follow_each_other_and_beyond_its_end_the_slider_keeps_its_length(
    machines: Collection, open_page: Open
) -> None:
    page = open_page()
    exact(page, "k_rrf").set_value(500).run()
    assert (slider(page, "k_rrf").value, slider(page, "k_rrf").max) == (500, 720)
    slider(page, "k_rrf").set_value(490).run()
    assert (exact(page, "k_rrf").value, slider(page, "k_rrf").max) == (490, 720)
    exact(page, "k_rrf").set_value(61).run()
    assert (slider(page, "k_rrf").value, slider(page, "k_rrf").max) == (61, 180)


def test_controls_that_move_nothing_for_one_reason_say_it_once(
    machines: Collection, open_page: Open
) -> None:
    page = open_page(two_stage="false")
    told = [caption.value for caption in page.caption if "nothing" in caption.value]
    assert told == [
        "These move nothing: two stages are off.",  # the item stage
        "Moves nothing: two stages are off.",  # the second stage
        "These move nothing: two stages are off.",  # the score fusion
        "These move nothing: no reranker is chosen.",
        "These move nothing: vectors are searched exactly.",
    ]


def test_what_differs_from_the_defaults_is_marked_and_labels_are_read_out_as_words(
    machines: Collection, open_page: Open
) -> None:
    page = open_page(k_rrf="7", two_stage="false", **{"indexes.bm25.weight": "2"})
    marks = [element.proto.body for element in page.get("html") if "row_set_k_rrf" in element.proto.body]
    assert len(marks) == 1
    assert set(re.findall(r"st-key-row_set_(\w+)", marks[0])) == {
        "two_stage",  # which is a switch and has no such row
        "k_rrf",
        "indexes_bm25_weight",
    }
    labels = [one.label for kind in ("toggle", "slider", "selectbox") for one in page.get(kind)]
    assert {"Two stages · default on", "BM25", "k_rrf"} <= set(labels)
    assert not [label for label in labels if re.search(r"[*:`\[]", label)]


def test_what_the_record_does_not_hold_is_searched_again(machines: Collection, open_page: Open) -> None:
    page = open_page(q="bearing grease")
    page.number_input(key="set_bm25_k1_0").set_value(0.5).run()
    assert "Searched again, as the recorded search does not cover BM25 k1: " in shown_text(page)


def test_a_change_that_moves_nothing_says_so(machines: Collection, open_page: Open) -> None:
    page = open_page(q="bearing grease")
    slider(page, "indexes_bm25_depth").set_value(140).run()
    assert "no result moved. BM25 Depth: the results are the same at both values." in shown_text(page)


def test_a_control_that_can_move_nothing_is_off_and_says_why(
    machines: Collection, open_page: Open
) -> None:
    page = open_page(q="bearing grease")
    assert not slider(page, "k_rrf").disabled
    page.selectbox(key="set_fusion").select("minmax").run()
    assert slider(page, "k_rrf").disabled
    captions = [caption.value for caption in page.caption]
    assert "Moves nothing: fusion is minmax, which adds scores, not ranks." in captions


def test_an_index_that_is_off_keeps_its_place_and_says_why(
    machines: Collection, open_page: Open
) -> None:
    page = open_page(q="bearing grease")
    page.toggle(key="set_indexes_bm25_on").set_value(False).run()
    bm25 = column(page, "bm25")
    assert (bm25["on"], bm25["note"], bm25["lines"]) == (False, "switched off", [])
    page.selectbox(key="set_second_stage").select("semantic").run()
    assert page.toggle(key="set_indexes_bm25_on").disabled


def test_two_stages_off_leaves_the_item_columns_with_a_reason(
    machines: Collection, open_page: Open
) -> None:
    page = open_page(q="bearing grease")
    page.toggle(key="set_two_stage").set_value(False).run()
    assert "two stages are off" in column(page, "items")["note"]
    assert column(page, "scored")["lines"] == []
    assert column(page, "passages")["lines"]


def test_rules_say_on_the_card_what_they_took_out(machines: Collection, open_page: Open) -> None:
    page = open_page(q="bearing grease", per_item="1", merge="false")
    dropped = [line["dropped"] for line in column(page, "scored")["lines"] if "dropped" in line]
    assert dropped == ["its item already has 1 chunks above it"]


def test_a_link_restores_settings_and_saves_nothing_until_a_change(
    machines: Collection, open_page: Open
) -> None:
    page = open_page(q="bearing", k_rrf="7", **{"indexes.bm25.weight": "2.5"})
    assert slider(page, "k_rrf").value == 7
    assert column(page, "fused")["lines"][0]["parts"][0]["formula"] == "2.5/(7+1)"
    assert machines.settings().search == SearchSettings()
    slider(page, "k_rrf").set_value(8).run()
    assert machines.settings().search == SearchSettings(k_rrf=8).with_index("bm25", weight=2.5)
    assert "k_rrf" not in page.query_params


def test_the_link_on_the_page_restores_what_is_on_show(machines: Collection, open_page: Open) -> None:
    page = open_page(q="bearing", k_rrf="7")
    link = next(code.value for code in page.code if "?" in code.value)
    assert link.endswith("?collection=Machines&q=bearing&k_rrf=7")
    machines.save_settings(Settings(search=SearchSettings(k_rrf=3)))
    plain = open_page(settings="default")
    assert slider(plain, "k_rrf").value == 60


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"k_rrf": "many"}, "k_rrf is 'many'; give a whole number"),
        ({"k_rrf": "-1"}, "it takes 0 to 100000"),
        ({"collection": "Nowhere"}, "there is no collection 'Nowhere'"),
    ],
)
def test_a_link_that_cannot_be_used_is_explained(
    machines: Collection, open_page: Open, parameters: dict[str, str], told: str
) -> None:
    page = open_page(q="bearing", **parameters)
    assert not page.exception
    assert told in shown_text(page)
    assert ids(page, "bm25") or parameters.get("collection")
    assert told not in shown_text(page.run())


def test_settings_come_in_as_toml(machines: Collection, open_page: Open) -> None:
    page = open_page(q="bearing")
    wanted = Settings(search=SearchSettings(k_rrf=5, merge=False)).to_toml()
    page.file_uploader(key="import_settings").set_value(
        [("s.toml", wanted.encode(), "application/toml")]
    ).run()
    page.button(key="use_import").click().run()
    assert machines.settings().search == SearchSettings(k_rrf=5, merge=False)
    assert "These settings are in use." in shown_text(page)
    assert not [button for button in page.button if button.key == "use_import"]
    page.file_uploader(key="import_settings").set_value(
        [("s.toml", b"k_rrf = [", "application/toml")]
    ).run()
    assert "These settings cannot be used: not TOML" in shown_text(page)


def test_imported_index_settings_wait_until_the_collection_is_indexed_again(
    machines: Collection, open_page: Open
) -> None:
    page = open_page(q="bearing")
    wanted = Settings(IndexSettings(chunking=ChunkSettings(size=300)), SearchSettings(k=2)).to_toml()
    page.file_uploader(key="import_settings").set_value(
        [("s.toml", wanted.encode(), "application/toml")]
    ).run()
    page.button(key="use_import").click().run()
    assert "In use, but for how documents are cut and indexed" in shown_text(page)
    assert [info.value for info in page.info] == [
        "Not in the index yet: size. Index again to search with these settings."
    ]
    page.button(key="reindex").click().run()
    assert machines.settings() == Settings.from_toml(wanted)
    assert "These settings are in use." in shown_text(page)


def test_another_analyzer_waits_until_the_collection_is_indexed_again(
    machines: Collection, open_page: Open
) -> None:
    page = open_page(q="bearings")
    assert column(page, "bm25")["count"] == 2
    page.toggle(key="index_stem").set_value(False).run()
    assert column(page, "bm25")["count"] == 2
    assert machines.settings().index.analyzer.stem is True
    page.button(key="reindex").click().run()
    assert machines.settings().index.analyzer.stem is False
    assert column(page, "bm25")["count"] == 0
    assert "No chunk holds any term of the query (bearings)" in shown_text(page)


def test_hnsw_shows_its_measured_loss(machines: Collection, open_page: Open) -> None:
    page = open_page(q="bearing")
    page.selectbox(key="set_vector").select("hnsw").run()
    captions = [caption.value for caption in page.caption]
    assert "Measured loss against exact search: 0.0% of the first 4." in captions


# Why


def test_why_shows_the_way_and_arithmetic_of_the_selected_chunk(
    machines: Collection, open_page: Open
) -> None:
    page = open_page(q="bearing grease")
    line = column(page, "fused")["lines"][0]
    page.session_state["rs_selected"] = line["id"]
    page.run()
    assert columns_data(page)["selected"] == line["id"]
    told = shown_text(page)
    assert (
        f"BM25 ranks it {line['parts'][0]['rank']} and Vector ranks it {line['parts'][1]['rank']}"
        in told
    )
    assert "1/(60+1)" in told
    assert "BM25: term by term" in told
    in_vector = column(page, "vector")["lines"][line["parts"][1]["rank"] - 1]
    assert f"the cosine of query and chunk is {in_vector['digits']}" in told
    total = next(one for one in column(page, "bm25")["lines"] if one["id"] == line["id"])["digits"]
    assert told.split("Sum", 1)[1].split()[0] == total


def test_why_tells_where_a_chunk_outside_the_result_was_lost(
    machines: Collection, open_page: Open
) -> None:
    page = open_page(q="bearing grease", k="1")
    page.text_input(key="pick_words").set_value("driver LAMP").run()
    found = [button for button in page.button if button.key.startswith("pick_")]
    assert [button.label for button in found] == ["C1"]
    assert "A lamp flickers" in shown_text(page)
    assert "lost at Kept" in shown_text(page)
    found[0].click().run()
    assert page.text_input(key="pick_words").value == ""
    assert "It is not in the result: lost at Kept" in shown_text(page)
    assert columns_data(page)["selected"].startswith(machines.documents().ids[2])


def test_a_chunk_that_is_not_there_is_not_found(machines: Collection, open_page: Open) -> None:
    page = open_page(q="bearing grease")
    page.text_input(key="pick_words").set_value("lamp seal").run()
    assert "No chunk holds all these words." in shown_text(page)
    assert not [button for button in page.button if button.key.startswith("pick_")]


def test_a_selected_item_tells_what_became_of_each_of_its_chunks(
    machines: Collection, open_page: Open
) -> None:
    page = open_page(q="bearing grease", merge="false", per_item="1")
    pumps = column(page, "items")["lines"].index(
        next(line for line in column(page, "items")["lines"] if line["name"] == "pumps.md")
    )
    page.session_state["rs_selected"] = column(page, "items")["lines"][pumps]["id"]
    page.run()
    told = shown_text(page)
    assert f"This item is {pumps + 1} of 3." in told
    labels = [button.label for button in page.button if button.key.startswith("pick_")]
    assert labels == ["A1", "A2"]
    assert sum(told.count(fate) for fate in ("in passage", "lost at Kept")) == 2
    assert told.count("lost at Kept") == 1


def test_a_selection_is_forgotten_with_its_collection(machines: Collection, open_page: Open) -> None:
    page = open_page(q="bearing")
    page.session_state["rs_selected"] = "gone:0-5"
    page.run()
    assert not page.exception
    assert columns_data(page)["selected"] is None
    assert "Or choose a card above" in shown_text(page)


def test_another_collection_starts_afresh(machines: Collection, open_page: Open) -> None:
    from core.collection import create

    create("Other")
    page = open_page(q="bearing")
    page.selectbox(key="frame_collection").select("Other").run()
    assert "“Other” is empty" in shown_text(page)
    page.selectbox(key="frame_collection").select("Machines").run()
    assert page.text_input(key="query_box").value == ""
    assert open_collection("Machines") is machines


def test_a_reranker_without_its_key_names_it_and_cannot_be_asked(
    machines: Collection, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CO_API_KEY", "COHERE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    page = open_page(q="bearing grease", rerank="cohere")
    assert page.button(key="rerank_now").disabled
    assert "Cohere needs a key: set CO_API_KEY or COHERE_API_KEY and start again." in shown_text(page)
    monkeypatch.setenv("COHERE_API_KEY", "no-real-key")
    assert not page.run().button(key="rerank_now").disabled


def test_a_reranker_that_was_not_asked_is_not_said_to_give_the_same(
    machines: Collection, open_page: Open
) -> None:
    page = open_page(q="bearing grease")
    page.selectbox(key="set_rerank").select("cohere").run()
    assert "the results are the same at both values" not in shown_text(page)
    assert "The reranker cohere is not asked yet: " in shown_text(page)


@pytest.mark.parametrize(
    ("spent", "told"), [(0.46, "0.5 ms"), (999.0, "999.0 ms"), (1420.0, "1.4 seconds")]
)
def test_a_search_of_less_than_a_second_is_told_in_milliseconds(spent: float, told: str) -> None:
    assert took(spent) == told
