"""The Chunks page: a document's chunks before they are indexed, and documents opened at a span."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import core.embedding
from core.chunking import chunk_document
from core.collection import Collection
from core.corpus import build_corpus
from core.errors import EmbeddingError
from core.loading import LoadOptions, load
from core.settings import DEFAULT_MODEL, ChunkSettings, IndexSettings, Settings
from tests.app.conftest import DOCUMENTS, add, shown_text
from tests.fakes import HashEmbedder

OpenPage = Callable[..., AppTest]
PAGE = "pages/chunks.py"
WORDS = " ".join(f"word{n:03}" for n in range(400))  # 3,199 characters


@pytest.fixture
def embedder(home: object, monkeypatch: pytest.MonkeyPatch) -> HashEmbedder:
    """A stand-in of its own, so that what it embeds can be counted."""
    made = HashEmbedder(model_id=DEFAULT_MODEL)
    monkeypatch.setitem(core.embedding._loaded, DEFAULT_MODEL, made)
    return made


def view(test: AppTest) -> dict[str, Any]:
    """What the page hands to the component that draws the text."""
    return json.loads(test.get("bidi_component")[0].proto.json)


def labels(test: AppTest) -> list[dict[str, Any]]:
    return [label for block in view(test)["blocks"] for label in block["labels"]]


def runs(test: AppTest) -> list[dict[str, Any]]:
    return [run for block in view(test)["blocks"] for run in block["runs"]]


def by_label(widgets: Any, label: str) -> Any:
    return next(widget for widget in widgets if widget.label == label)


def cut_by(collection: Collection, **settings: Any) -> None:
    """Save the collection's chunk settings."""
    collection.save_settings(Settings(index=IndexSettings(chunking=ChunkSettings(**settings))))


def test_an_empty_collection_says_what_to_do_next(empty: Collection, open_page: OpenPage) -> None:
    test = open_page(PAGE)

    assert not test.exception
    assert "No documents in this collection yet" in shown_text(test)


def test_the_text_is_shown_whole_with_its_chunks(machines: Collection, open_page: OpenPage) -> None:
    test = open_page(PAGE)

    assert not test.exception
    assert "".join(run["text"] for run in runs(test)) == machines.documents()[0].text
    assert [(label["number"], label["path"]) for label in labels(test)] == [
        (1, "Pumps › Noise"),
        (2, "Pumps › Leaks"),
    ]
    noise = "# Pumps\n\n## Noise\n\nA dry bearing makes the pump rattle. Grease the bearing every month."
    assert labels(test)[0]["facts"] == f"{len(noise)} characters · 16 tokens"
    assert [run["kind"] for run in runs(test)] == ["a", "gap", "b", "gap"]


def test_overlap_and_what_the_model_cuts_off_are_marked(
    empty: Collection, open_page: OpenPage, embedder: HashEmbedder
) -> None:
    embedder.max_tokens = 12  # two special tokens and ten words
    add(empty, "words.txt", WORDS)
    cut_by(empty, strategy="fixed", size=96, overlap=16)

    test = open_page(PAGE)

    first, second = runs(test)[:2], runs(test)[2]
    assert [(run["kind"], len(run["text"])) for run in first] == [("a", 79), ("a cut", 1)]
    assert (second["kind"], second["text"]) == ("b over part", WORDS[80:96])
    assert labels(test)[0]["facts"] == "96 characters · 14 tokens"
    assert labels(test)[0]["warning"] == "the model reads 12 tokens: 17 characters cut off"
    assert "have more than the 12 tokens" in shown_text(test)


def test_moving_a_slider_draws_again_and_indexes_nothing(
    machines: Collection, open_page: OpenPage, embedder: HashEmbedder
) -> None:
    add(machines, "words.txt", WORDS)
    build_corpus(machines, machines.settings().index)
    before, version = embedder.calls, machines.version
    test = open_page(PAGE)
    test.selectbox(key="chunk_document").set_value(3).run()
    assert len(labels(test)) == 4  # of at most 800 characters

    by_label(test.slider, "Size").set_value(400).run()

    assert len(labels(test)) == 8
    assert all(len(run["text"]) <= 400 for run in runs(test))
    assert embedder.calls == before
    assert (machines.version, machines.settings().index) == (version, IndexSettings())
    assert any("Size: `800` → `400`" in part.value for part in test.markdown)
    test.button(key="chunk_reset").click().run()
    assert by_label(test.slider, "Size").value == 800
    assert len(labels(test)) == 4


def test_a_smaller_size_takes_the_overlap_with_it(machines: Collection, open_page: OpenPage) -> None:
    test = open_page(PAGE)
    by_label(test.number_input, "Overlap, exact value").set_value(300).run()
    by_label(test.number_input, "Size, exact value").set_value(200).run()

    assert not test.exception
    assert by_label(test.slider, "Overlap").value == 199


def test_slider_and_box_show_the_same_also_beyond_the_slider_s_usual_end(
    machines: Collection, open_page: OpenPage
) -> None:
    test = open_page(PAGE)
    for wanted, reach in [(9_000, 16_000), (500, 4_000)]:
        by_label(test.number_input, "Size, exact value").set_value(wanted).run()
        assert (by_label(test.slider, "Size").value, by_label(test.slider, "Size").max) == (
            wanted,
            reach,
        )
    by_label(test.slider, "Size").set_value(700).run()
    assert by_label(test.number_input, "Size, exact value").value == 700
    test.selectbox(key="chunk_unit").set_value("tokens").run()
    assert (by_label(test.slider, "Size").value, by_label(test.slider, "Size").max) == (700, 1_000)


def test_indexing_is_planned_then_done(
    waiting: Collection, open_page: OpenPage, embedder: HashEmbedder
) -> None:
    add(waiting, "words.txt", WORDS)
    build_corpus(waiting, waiting.settings().index)
    test = open_page(PAGE)
    test.selectbox(key="chunk_strategy").set_value("fixed").run()
    by_label(test.slider, "Size").set_value(100).run()
    assert "chunk_index" not in {button.key for button in test.button}

    test.button(key="chunk_survey_do").click().run()
    # 2, 1 and 1 chunks of the short documents, 32 of the long one; 13 texts are embedded to time it.
    told = next(part.value for part in test.markdown if "of 4 documents" in part.value)
    texts = sum(-(-len(text.strip()) // 100) for text in (*DOCUMENTS.values(), WORDS))
    assert told.startswith(f"**{texts} chunks** of 4 documents.")
    assert waiting.settings().index == IndexSettings()

    test.button(key="chunk_index").click().run()

    assert waiting.settings().index.chunking == ChunkSettings(strategy="fixed", size=100)
    assert f"Indexed: {texts} chunks of 4 documents." in shown_text(test)
    assert "These are the settings of the index." in [part.value for part in test.caption]


def test_semantic_chunking_embeds_sentences_once(
    empty: Collection, open_page: OpenPage, embedder: HashEmbedder
) -> None:
    text = "Pumps rattle loudly. Pumps rattle often. Lamps flicker at night. Lamps flicker in rain."
    add(empty, "mixed.txt", text)
    cut_by(empty, strategy="semantic", size=400, breakpoint_percentile=60)

    test = open_page(PAGE)
    assert embedder.calls == 4
    shown = "".join(run["text"] for run in runs(test))
    by_label(test.slider, "Breakpoint percentile").set_value(90).run()

    assert embedder.calls == 4
    assert shown == text


def test_a_link_opens_the_document_at_the_span(machines: Collection, open_page: OpenPage) -> None:
    fans = machines.documents()
    start = fans[1].text.index("bent blade")

    test = open_page(PAGE, doc=fans.ids[1], start=str(start), end=str(start + 10))

    assert test.selectbox(key="chunk_document").value == 1
    assert [run["text"] for run in runs(test) if "mark" in run["kind"].split()] == ["bent blade"]
    assert view(test)["focus"] == f"{fans.ids[1]}:{start}-{start + 10}"
    test.selectbox(key="chunk_document").set_value(2).run()
    assert "doc" not in test.query_params
    assert view(test)["focus"] == ""


@pytest.mark.parametrize(("start", "end"), [("x", "y"), ("-5", "2"), ("9", "3"), ("999999", "9999999")])
def test_a_link_with_a_span_that_is_none_opens_the_document(
    machines: Collection, open_page: OpenPage, start: str, end: str
) -> None:
    test = open_page(PAGE, doc=machines.documents().ids[1], start=start, end=end)

    assert not test.exception
    assert test.selectbox(key="chunk_document").value == 1


def test_a_link_to_a_document_that_is_gone_says_so(machines: Collection, open_page: OpenPage) -> None:
    test = open_page(PAGE, doc="0123456789abcdef", start="0", end="5")

    assert "The document that the link names is not in this collection" in shown_text(test)
    assert test.selectbox(key="chunk_document").value == 0


def test_a_long_text_is_shown_in_parts(empty: Collection, open_page: OpenPage) -> None:
    text = " ".join(f"w{n:06}" for n in range(125_000))  # 999,999 characters in one line
    add(empty, "long.txt", text)
    document = empty.documents().ids[0]
    at = text.index("w100000")

    test = open_page(PAGE, doc=document, start=str(at), end=str(at + 7))

    shown = "".join(run["text"] for run in runs(test))
    assert len(shown) == 20_000
    assert [run["text"] for run in runs(test) if "mark" in run["kind"].split()] == ["w100000"]
    begin = text.index(shown)
    test.button(key="chunk_on").click().run()
    following = text.index("".join(run["text"] for run in runs(test)))
    assert begin < following <= begin + 20_000
    test.number_input(key="chunk_goto").set_value(1).run()
    assert "".join(run["text"] for run in runs(test)) == text[:20_000]
    assert labels(test)[0]["number"] == 1


def test_chunks_made_elsewhere_are_not_split(empty: Collection, open_page: OpenPage) -> None:
    lines = "\n".join(json.dumps({"document": "d", "text": t}) for t in ("one two", "three"))
    empty.add(load(lines.encode(), "c.jsonl", LoadOptions(prechunked=True)), "c.jsonl", len(lines))

    test = open_page(PAGE)

    assert "chunks were made elsewhere" in shown_text(test)
    assert [run["text"] for run in runs(test) if run["kind"] != "gap"] == ["one two", "three"]


def test_overlap_that_repeats_nothing_says_why(machines: Collection, open_page: OpenPage) -> None:
    test = open_page(PAGE)
    by_label(test.slider, "Overlap").set_value(100).run()

    assert any("repeats nothing in this document" in part.value for part in test.caption)


def test_a_model_that_cannot_be_loaded_is_told(machines: Collection, open_page: OpenPage) -> None:
    test = open_page(PAGE)
    test.text_input(key="chunk_model").set_value("/no/such/folder").run()

    assert not test.exception
    assert "'/no/such/folder' cannot be loaded" in shown_text(test)
    test.button(key="chunk_reset").click().run()
    assert len(labels(test)) == 2


def test_hostile_text_stays_text(empty: Collection, open_page: OpenPage) -> None:
    text = "<script>document.title='HACKED'</script> **b** $a$ :red[x] [l](http://evil.example)"
    add(empty, "<b>x</b>.txt", text)

    test = open_page(PAGE)

    assert [run["text"] for run in runs(test)] == [text]
    others = [part.value for part in (*test.markdown, *test.caption)] + [shown_text(test)]
    assert not any("evil.example" in part or "<script>" in part for part in others)


def test_a_model_that_cannot_be_loaded_is_tried_again_only_when_asked(
    machines: Collection, open_page: OpenPage, embedder: HashEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def load(model_id: str) -> HashEmbedder:
        tried.append(model_id)
        if model_id == "no-such-model":
            raise EmbeddingError("embedding model 'no-such-model' cannot be loaded")
        return embedder

    monkeypatch.setattr("core.embedding.load_embedder", load)
    test = open_page("pages/chunks.py")
    test.text_input(key="chunk_model").set_value("no-such-model").run()
    test.run()
    assert "cannot be loaded" in shown_text(test)
    assert tried.count("no-such-model") == 1

    test.button(key="chunk_model_again").click().run()
    assert tried.count("no-such-model") == 2
    test.button(key="chunk_reset").click().run()
    assert "cannot be loaded" not in shown_text(test)
    assert "chunk" in shown_text(test)


class Priced(HashEmbedder):
    """A model whose every use is paid."""

    def estimate_dollars(self, tokens: int) -> float | None:
        return tokens / 1_000

    def missing_key(self) -> str:
        return "PRICED_KEY is not set"


def test_a_paid_model_embeds_nothing_for_a_preview_and_says_its_price(
    waiting: Collection, open_page: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    priced = Priced(model_id="priced")
    monkeypatch.setitem(core.embedding._loaded, "priced", priced)
    waiting.save_settings(Settings(IndexSettings(model="priced")))
    page = open_page("pages/chunks.py")
    page.button(key="chunk_survey_do").click().run()
    shown = [text.value for text in page.markdown if "no vector yet" in text.value]
    tokens = sum(priced.count_tokens(_texts(waiting, priced)))
    assert len(shown) == 1
    assert f"about ${tokens / 1_000:.4f}" in shown[0]
    assert "PRICED_KEY is not set" in shown_text(page)
    page.selectbox(key="chunk_strategy").select("semantic").run()
    assert "no preview" in shown_text(page)
    assert priced.calls == priced.queries == 0


def _texts(collection: Collection, embedder: HashEmbedder) -> list[str]:
    return [
        chunk.indexed_text
        for document in collection.documents()
        for chunk in chunk_document(document, IndexSettings().chunking, embedder.count_tokens)
    ]


def test_a_hosted_model_without_its_key_is_planned_but_cannot_be_indexed(
    machines: Collection, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VOYAGE_API_KEY", raising=False)
    test = open_page(PAGE)
    test.session_state["rs_draft"] = IndexSettings(model="voyage:voyage-3.5")
    test.run().button(key="chunk_survey_do").click().run()
    assert "Voyage needs a key: set VOYAGE_API_KEY and start again." in shown_text(test)
    assert test.button(key="chunk_index").disabled
    monkeypatch.setenv("VOYAGE_API_KEY", "no-real-key")
    assert not test.run().button(key="chunk_index").disabled
