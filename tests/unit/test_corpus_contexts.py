"""Contexts in a corpus: beside the chunk in each index, or in one of them; made anew when they change."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.collection import Collection, create
from core.contextualizing.store import Written, open_store
from core.corpus import Corpus, build_corpus, indexed_part, is_built
from core.errors import ContextError
from core.llm import Usage
from core.loading import load
from core.pipeline import search
from core.report.spans import seen_end
from core.settings import ContextSettings, IndexSettings, SearchSettings
from core.types import Chunk, Document, text_hash
from tests.fakes import HashEmbedder

SEARCH = SearchSettings()
ONE_STAGE = SearchSettings(two_stage=False)


class Given:
    """Contexts from a list: one for each document's every chunk."""

    def __init__(self, *contexts: str) -> None:
        self.digests = tuple(text_hash(context) if context else "" for context in contexts)
        self._contexts = contexts

    def of(self, item: int, document: Document, spans: Sequence[tuple[int, int]]) -> list[str]:
        return [self._contexts[item]] * len(spans)


def settings(**context: Any) -> IndexSettings:
    return IndexSettings(context=ContextSettings(writer="headings", **context), model="hash")


def documents() -> list[Document]:
    return [
        Document("a", "a.txt", "", "The seal leaks."),
        Document("b", "b.txt", "", "The valve sticks."),
    ]


def make(index: IndexSettings, **more: Any) -> Corpus:
    arguments: dict[str, Any] = {"contexts": Given("walrus", ""), **more}
    return Corpus.from_documents(documents(), index, HashEmbedder(), **arguments)


def found(corpus: Corpus, name: str, query: str) -> dict[int, float]:
    """Position → score rounded, for all that an index finds."""
    ranking = corpus.indexes(ONE_STAGE)[name].search(query, 5)
    return {hit.position: round(hit.score, 4) for hit in ranking}


def test_a_context_stands_before_the_text_in_both_indexes() -> None:
    corpus = make(settings())
    chunk = corpus.chunk(0)
    assert (chunk.text, chunk.context, chunk.indexed_text) == (
        "The seal leaks.",
        "walrus",
        "walrus\nThe seal leaks.",
    )
    assert corpus.chunk(1).indexed_text == "The valve sticks."
    assert list(found(corpus, "bm25", "walrus")) == [0]
    embedder = HashEmbedder()
    np.testing.assert_array_equal(
        corpus.matrix, embedder.embed(["walrus\nThe seal leaks.", "The valve sticks."])
    )
    assert corpus.tokens.tolist() == embedder.count_tokens(
        ["walrus\nThe seal leaks.", "The valve sticks."]
    )


def test_it_may_stand_after() -> None:
    corpus = make(settings(place="after"))
    assert corpus.chunk(0).indexed_text == "The seal leaks.\nwalrus"
    np.testing.assert_array_equal(corpus.matrix[0], HashEmbedder().embed(["The seal leaks.\nwalrus"])[0])


def test_each_index_can_do_without() -> None:
    vectors = make(settings(in_bm25=False))
    assert found(vectors, "bm25", "walrus") == {}
    np.testing.assert_array_equal(vectors.matrix, make(settings()).matrix)
    terms = make(settings(in_vectors=False))
    assert list(found(terms, "bm25", "walrus")) == [0]
    plain = make(IndexSettings(model="hash"), contexts=None)
    np.testing.assert_array_equal(terms.matrix, plain.matrix)
    assert found(plain, "bm25", "walrus") == {}
    assert terms.tokens.tolist() == plain.tokens.tolist()


def test_columns_stay_beside_the_rows_wherever_the_context_is() -> None:
    chunk = Chunk("a", 5, 9, "1, 2", columns="x, y", context="walrus")
    assert chunk.indexed_text == "walrus\nx, y\n1, 2"
    after = Chunk("a", 5, 9, "1, 2", columns="x, y", context="walrus", context_last=True)
    assert after.indexed_text == "x, y\n1, 2\nwalrus"


@pytest.mark.parametrize("last", [False, True])
def test_what_the_model_no_longer_reads_is_counted_in_the_chunks_own_text(last: bool) -> None:
    chunk = Chunk("a", 100, 119, "one two three four.", context="w x y z", context_last=last)
    embedder = HashEmbedder(max_tokens=8)  # six words and two signs of its own
    assert seen_end(chunk, embedder, 10) == (119 if last else 107)


def test_the_same_from_disk_and_made_anew_where_contexts_changed(tmp_path: Path) -> None:
    folder = tmp_path / "c" / "one"
    first = make(settings(), folder=folder)
    again = make(settings(), folder=folder)
    assert again.chunk(0).context == "walrus"
    assert again.fingerprint == first.fingerprint
    other = make(settings(), folder=tmp_path / "c" / "two", contexts=Given("narwhal", ""))
    assert (other.chunk(0).context, other.chunk(1).context) == ("narwhal", "")
    assert other.fingerprint != first.fingerprint
    assert list(found(other, "bm25", "narwhal")) == [0]
    assert found(other, "bm25", "walrus") == {}


def test_only_documents_whose_contexts_changed_are_embedded_again() -> None:
    embedder = HashEmbedder()
    first = Corpus.from_documents(documents(), settings(), embedder, contexts=Given("walrus", "otter"))
    assert embedder.calls == 2
    second = Corpus.from_documents(
        documents(), settings(), embedder, previous=first, contexts=Given("walrus", "seal")
    )
    assert embedder.calls == 3
    assert [second.chunk(at).context for at in range(2)] == ["walrus", "seal"]
    # Grown from the first one's terms, the index must not remember the old context.
    assert found(second, "bm25", "otter") == {}


def test_headings_need_no_collection_and_paid_contexts_do() -> None:
    corpus = Corpus.from_documents(documents(), settings(opening=0), HashEmbedder())
    assert [corpus.chunk(at).context for at in range(2)] == ["a.txt", "b.txt"]
    paid = IndexSettings(context=ContextSettings(writer="claude"), model="hash")
    with pytest.raises(ContextError, match="kept with a collection"):
        Corpus.from_documents(documents(), paid, HashEmbedder())


def test_a_context_with_half_a_sign_is_kept_whole_otherwise() -> None:
    corpus = make(settings(), contexts=Given("wal\ud800rus", ""))
    assert corpus.chunk(0).context == "wal\ufffdrus"


@pytest.fixture
def collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Collection:
    monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path))
    made = create("Mine")
    for name, text in (("a.txt", "The seal leaks."), ("b.txt", "The valve sticks.")):
        made.add(load(text.encode(), name), name, len(text))
    return made


def test_written_contexts_take_effect_when_indexed_and_the_old_serve_until_then(
    collection: Collection,
) -> None:
    paid = IndexSettings(context=ContextSettings(writer="claude"), model="hash")
    embedder = HashEmbedder()
    before = build_corpus(collection, paid, embedder=embedder)
    assert [before.chunk(at).context for at in range(2)] == ["", ""]
    store = open_store(collection)
    text = "The seal leaks."
    store.put(
        paid.context, Written(text_hash(text), 0, len(text), "written", "walrus", False, Usage(), None)
    )
    assert not is_built(collection, paid)
    again = indexed_part(collection, paid, before, embedder)
    assert again is not None
    assert again.indexes(SEARCH)["bm25"] is before.indexes(SEARCH)["bm25"]
    from_disk = indexed_part(collection, paid, None, embedder)
    assert from_disk is not None
    assert from_disk.chunk(0).context == ""
    after = build_corpus(collection, paid, previous=before, embedder=embedder)
    assert [after.chunk(at).context for at in range(2)] == ["walrus", ""]
    assert is_built(collection, paid)
    trace = search(after, "walrus", ONE_STAGE)
    assert after.chunk_id(int(trace.stage("bm25").ranking.positions[0])) == after.chunk_id(0)
    store.drop(paid.context.writer_key, text_hash(text), (0, len(text)))
    dropped = build_corpus(collection, paid, previous=after, embedder=embedder)
    assert dropped.chunk(0).context == ""
    assert dropped.fingerprint == before.fingerprint
