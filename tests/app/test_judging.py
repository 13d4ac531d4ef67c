"""What is judged for a query, on the Search page: marks on every card, and the line above the columns."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from streamlit.testing.v1 import AppTest

from core.collection import Collection
from core.evaluation import Evidence, GoldenQuery, Judgements, open_judgements
from tests.app.conftest import columns_data, shown_text

Open = Callable[..., AppTest]
QUERY = "bearing grease"


def judge(collection: Collection, quote: str, grade: int = 1, query: str = QUERY) -> str:
    """Judge these words of the document that holds them; returns the query's id."""
    documents = collection.documents()
    for at in range(len(documents)):
        start = documents[at].text.find(quote)
        if start >= 0:
            store = open_judgements(collection)
            return store.judge(query, documents.ids[at], start, start + len(quote), grade, documents)
    raise AssertionError(f"no document holds {quote!r}")


def marks(test: AppTest, column: str) -> dict[str, str | None]:
    """Label of a line → its mark."""
    found = next(one for one in columns_data(test)["columns"] if one["name"] == column)
    return {line["label"]: line.get("mark") for line in found["lines"]}


def line(test: AppTest) -> dict[str, Any]:
    return columns_data(test)["judged"]


def text_box(test: AppTest) -> dict[str, Any]:
    return json.loads(test.get("bidi_component")[1].proto.json)


def test_a_query_nobody_judged_has_no_marks_and_says_how_to_begin(
    machines: Collection, open_page: Open
) -> None:
    page = open_page(q=QUERY)
    assert not page.exception
    for column in columns_data(page)["columns"]:
        assert not any("mark" in one for one in column["lines"])
    assert "Not judged yet" in line(page)["begins"]
    assert (line(page)["none"], line(page)["queries"], line(page)["ends"]) == (False, "", "")


def test_golden_rejected_and_unjudged_are_marked_in_every_column(
    machines: Collection, open_page: Open
) -> None:
    judge(machines, "Grease the bearing every month.")
    judge(machines, "A fan with a bent blade shakes. A bearing without grease squeaks.", grade=0)
    page = open_page(q=QUERY, merge="false")
    chunk = next(label for label, mark in marks(page, "bm25").items() if mark == "golden")
    for column in ("vector", "fused", "scored", "passages"):
        found = marks(page, column)
        assert found[chunk] == "golden"
        assert sorted(filter(None, found.values())) == ["golden", "rejected", "unjudged", "unjudged"]
    assert list(marks(page, "items").values()).count("golden") == 1
    told = line(page)
    assert told["begins"] == "1 golden piece: 1 in the first 20"
    assert [(one["label"], one["rank"]) for one in told["pieces"]] == [(chunk, 1)]
    assert told["ends"] == "2 of the first 4 nobody has judged"
    assert (told["none"], told["queries"]) == (None, "1 judged query")


def test_evidence_that_is_cut_marks_its_chunks_as_golden_in_part(
    machines: Collection, open_page: Open
) -> None:
    judge(machines, "Grease the bearing every month.\n\n## Leaks\n\nA worn seal lets oil out.")
    page = open_page(q=QUERY, merge="false")
    assert "partly" in marks(page, "passages").values()
    assert "golden" not in marks(page, "passages").values()
    # Merged into one passage that holds all of it, it is whole again.
    merged = open_page(q=QUERY)
    assert "golden" in marks(merged, "passages").values()
    assert "golden" not in marks(merged, "fused").values()


def test_a_thumb_s_grade_is_that_of_the_very_span_of_the_chunk(
    machines: Collection, open_page: Open
) -> None:
    judge(machines, "Grease the bearing every month.")
    page = open_page(q=QUERY)
    fused = next(one for one in columns_data(page)["columns"] if one["name"] == "fused")["lines"]
    assert {one["verdict"] for one in fused} == {None}
    best, fans = fused[0], next(one for one in fused if one["title"] == "Fans")
    documents = machines.documents()
    store = open_judgements(machines)
    store.judge(QUERY, best["document"], best["start"], best["end"], 2, documents)
    store.judge(QUERY, fans["document"], fans["start"], fans["end"], 0, documents)
    page.run()
    verdicts = {
        (column["name"], one["id"]): one["verdict"]
        for column in columns_data(page)["columns"]
        for one in column["lines"]
    }
    for name in ("bm25", "vector", "fused", "scored", "passages"):
        assert verdicts[name, best["id"]] == 2
        assert verdicts[name, fans["id"]] == 0


def test_a_lost_piece_is_named_with_its_stage_and_recall_stands_in_the_strip(
    machines: Collection, open_page: Open
) -> None:
    judge(machines, "A bearing without grease squeaks.")
    judge(machines, "A lamp flickers when its driver is too hot.")
    page = open_page(q=QUERY, items="2")
    told = line(page)
    assert told["begins"] == "2 golden pieces: 1 in the first 20, 1 lost at the item stage"
    found, lost = told["pieces"]
    assert found["rank"] in (1, 2, 3)
    assert lost["rank"] is None
    assert (lost["fate"], lost["story"]) == (
        "lost at the item stage",
        "its item is 3, and 2 are sent on",
    )
    steps = {step["name"]: step.get("recall") for step in columns_data(page)["strip"]}
    assert steps["items"] is None
    assert steps["fused"] == steps["passages"] == "recall@20 0.50: 1 of 2 golden pieces"
    # A list that ends at 1 has no recall@20.
    short = open_page(q=QUERY, **{"indexes.vector.depth": "1"})
    recall = next(step["recall"] for step in columns_data(short)["strip"] if step["name"] == "vector")
    assert recall.startswith("recall@1 ")


def test_a_link_to_a_judged_query_selects_a_golden_piece_lost_ones_first(
    machines: Collection, open_page: Open
) -> None:
    judge(machines, "A bearing without grease squeaks.")
    name = judge(machines, "A lamp flickers when its driver is too hot.")
    page = open_page(q=QUERY, golden=name, items="2")
    lost = line(page)["pieces"][1]
    assert columns_data(page)["selected"] == lost["id"]
    assert "lost at Items" in shown_text(page)
    judged = text_box(page)["judged"]
    assert [one["golden"] for one in judged] == [True]
    begin = judged[0]["start"] - text_box(page)["start"]
    assert text_box(page)["text"][begin:].startswith("A lamp flickers")
    # Other words asked: the link has had its say.
    page.text_input(key="query_box").set_value("seal")
    page.button(key="search_button").click().run()
    assert "golden" not in page.query_params
    assert columns_data(page)["selected"] is None


def test_a_link_opens_its_query_also_where_another_is_on_show(
    machines: Collection, open_page: Open
) -> None:
    name = judge(machines, "Replace the seal", query="oil leak")
    page = open_page(q=QUERY)
    page.query_params["q"], page.query_params["golden"] = "oil leak", name
    page.run()
    assert page.text_input(key="query_box").value == "oil leak"
    assert columns_data(page)["selected"] == line(page)["pieces"][0]["id"]
    page.query_params["golden"] = "gone"
    page.run()
    assert "names a judged query that is not there" in shown_text(page)


def test_of_two_queries_with_the_same_words_the_link_chooses(
    machines: Collection, open_page: Open
) -> None:
    documents = machines.documents()
    at = {name: documents.ids[place] for place, name in enumerate(documents.names)}
    queries = tuple(
        GoldenQuery(name, QUERY, (Evidence(at[file], 0, 30),))
        for name, file in (("first", "fans.md"), ("second", "lamps.md"))
    )
    open_judgements(machines).add(Judgements(queries), documents, "set.jsonl")
    letter = {}
    for name in ("first", "second"):
        page = open_page(q=QUERY, golden=name)
        letter[name] = line(page)["pieces"][0]["id"].rpartition(":")[0]
    assert letter == {"first": at["fans.md"], "second": at["lamps.md"]}


def test_what_another_window_judges_is_there_on_the_next_run(
    machines: Collection, open_page: Open
) -> None:
    page = open_page(q=QUERY)
    judge(machines, "Grease the bearing every month.")
    page.run()
    assert line(page)["begins"] == "1 golden piece: 1 in the first 20"
    judge(machines, "A lamp flickers", query="lamp")
    page.run()
    assert line(page)["queries"] == "2 judged queries"


def test_a_query_without_an_answer_and_one_with_rejections_only(
    machines: Collection, open_page: Open
) -> None:
    store = open_judgements(machines)
    store.add_query(QUERY)
    page = open_page(q=f" {QUERY} ")
    assert line(page)["none"] is True
    assert line(page)["begins"] == "Judged: these documents do not answer it."
    assert set(marks(page, "fused").values()) == {"unjudged"}
    judge(machines, "A fan with a bent blade shakes.", grade=0)
    page.run()
    assert line(page)["none"] is None
    assert line(page)["begins"] == "1 judged not relevant, none that answers it yet."


def test_damaged_judgements_are_a_message_and_the_search_goes_on(
    machines: Collection, open_page: Open
) -> None:
    open_judgements(machines).path.write_bytes(b"no database, but long enough to be looked at" * 50)
    page = open_page(q=QUERY)
    assert not page.exception
    assert "the collection's judgements" in shown_text(page)
    assert len(marks(page, "passages")) > 1
