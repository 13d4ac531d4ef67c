"""Chunks are found by the letters in them, their document's names and their labels."""

from __future__ import annotations

import pytest

from core.corpus import Corpus
from core.report.find import around, chunks_of_item, find_chunks
from core.settings import ChunkSettings, IndexSettings
from core.types import Document
from tests.fakes import HashEmbedder


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    texts = (
        "Red pump in the hall. Blue valve in the yard.",
        "Straße to the A2 plant. Old pump in the yard.",
        "Green hose.",
    )
    documents = [
        Document(f"d{at}", f"note{at}.txt", f"Note {at}", text) for at, text in enumerate(texts)
    ]
    settings = IndexSettings(chunking=ChunkSettings(strategy="sentences", size=24))
    return Corpus.from_documents(documents, settings, HashEmbedder())


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("pump", ["Red pump in the hall.", "Old pump in the yard."]),
        ("PUMP old", ["Old pump in the yard."]),
        ("pump note0", ["Red pump in the hall."]),  # the name is every chunk's, the word is not
        ("STRASSE", ["Straße to the A2 plant."]),
        ("a2", ["Blue valve in the yard.", "Straße to the A2 plant."]),
        ("A3", []),
        ("c1", ["Green hose."]),
        ("red hose", []),
        ("  ", []),
    ],
)
def test_every_word_has_to_be_in_the_chunk_or_its_document_s_names(
    corpus: Corpus, words: str, found: list[str]
) -> None:
    texts = [corpus.chunk(position).text.strip() for position in find_chunks(corpus, words)]
    assert texts == found


def test_an_item_s_chunks_lie_together(corpus: Corpus) -> None:
    ranges = [chunks_of_item(corpus, item) for item in range(3)]
    assert [position for one in ranges for position in one] == list(range(len(corpus)))
    assert [len(one) for one in ranges] == [2, 2, 1]


def test_around_shows_where_a_word_stands() -> None:
    text = "x " * 200 + "needle\nin hay " + "y " * 200
    piece = around(text, "NEEDLE hay", width=60)
    assert "needle in hay" in piece
    assert (piece[0], piece[-1]) == ("…", "…")
    assert around("short\ntext", "none") == "short text"
