"""A corpus: the same whether made anew, read from disk or grown; nothing is embedded twice."""

from __future__ import annotations

import gc
import shutil
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from weakref import ref

import numpy as np
import pytest
from numpy.typing import NDArray

from core import extras
from core.access import Access, Viewer, parse_access
from core.behaviour.events import Event
from core.chunking import chunk_document
from core.collection import Collection, create
from core.corpus import Corpus, build_corpus, indexed_part, is_built, viewing
from core.corpus.first_stage import FirstStage
from core.documents import ListedDocuments
from core.errors import EmbeddingError, RankscopeError, SettingsError, Stopped
from core.extras import register_index, unregister_index
from core.loading import load
from core.protocols import Index, Positions, Vectors
from core.settings import ChunkSettings, IndexSettings, SearchSettings
from core.text import Analyzer
from core.trace import Ranking
from core.types import Chunk, Document, Heading
from core.vectors_cache import BATCH, VectorCache, embed_all
from tests.fakes import HashEmbedder

SMALL = IndexSettings(chunking=ChunkSettings(size=60), model="hash")
SEARCH = SearchSettings()
QUERIES = ["pump seal", "valve", "word3 word5", "nothing of this"]


def document(name: str, text: str, **more: object) -> Document:
    return Document(name, f"{name}.txt", f"Title {name}", text, **more)  # type: ignore[arg-type]


def some(count: int, first: int = 0) -> list[Document]:
    return [
        document(
            f"d{n}",
            "\n\n".join(
                f"Paragraph {p} of {n}: pump word{p} seal word{n * 7 + p} valve."
                for p in range(n % 4 + 1)
            ),
        )
        for n in range(first, first + count)
    ]


def make(documents: Sequence[Document], **more: object) -> Corpus:
    arguments: dict = {"settings": SMALL, "embedder": HashEmbedder(), **more}
    return Corpus.from_documents(documents, **arguments)


def assert_same(a: Corpus, b: Corpus) -> None:
    assert a.fingerprint == b.fingerprint
    assert a.item_ids == b.item_ids
    for name in ("starts", "ends", "item_of", "first_chunk", "duplicate_of", "tokens", "matrix"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    for search in (SEARCH, SearchSettings(bm25_k1=0.4, bm25_variant="bm25+")):
        mine, theirs = a.indexes(search), b.indexes(search)
        assert list(mine) == list(theirs)
        for query in QUERIES:
            for name in mine:
                assert mine[name].search(query, 50) == theirs[name].search(query, 50), (name, query)
            assert a.item_index(search).search(query, 50) == b.item_index(search).search(query, 50)


@pytest.fixture
def collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Collection:
    monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path / "home"))
    return create("corpus")


def put(collection: Collection, name: str, text: str) -> str:
    loaded = load(text.encode(), name)
    collection.add(loaded, name, len(text))
    return loaded.file_hash


def test_chunks_are_those_of_the_chunker_in_item_order() -> None:
    documents = [
        *some(5),
        document("blank", " \n "),
        document(
            "headed",
            "# Up\n\nText.\n\n## Down\n\nMore text here.",
            headings=(Heading(1, "Up", 0, 4), Heading(2, "Down", 13, 20)),
        ),
    ]
    corpus = make(documents)
    expected = [chunk for one in documents for chunk in chunk_document(one, SMALL.chunking)]
    assert [corpus.chunk(position) for position in range(len(corpus))] == expected
    assert [chunk for batch in corpus.chunk_batches() for chunk in batch] == expected
    assert [chunk for batch in corpus.chunk_batches(4) for chunk in batch] == expected[4:]
    assert [corpus.chunk_id(position) for position in range(len(corpus))] == [
        chunk.id for chunk in expected
    ]
    assert [corpus.position_of(chunk.id) for chunk in expected] == list(range(len(corpus)))
    for item, one in enumerate(documents):
        first, last = corpus.first_chunk[item : item + 2]
        assert [corpus.chunk(position).document_id for position in range(first, last)] == [one.id] * (
            last - first
        )
        assert set(corpus.item_of[first:last].tolist()) <= {item}
        assert corpus.item_position(one.id) == item
    assert corpus.first_chunk[5] == corpus.first_chunk[6], "a blank document has no chunk"
    vectors = HashEmbedder().embed([chunk.indexed_text for chunk in expected])
    np.testing.assert_array_equal(corpus.matrix, vectors)
    assert not corpus.starts.flags.writeable
    assert not corpus.matrix.flags.writeable


@pytest.mark.parametrize("wrong", ["d1:0-1", "d1:x-y", "gone:0-10", "", "d1"])
def test_an_unknown_chunk_is_told(wrong: str) -> None:
    with pytest.raises(KeyError, match="no chunk"):
        make(some(3)).position_of(wrong)


def test_duplicates_point_to_the_first() -> None:
    corpus = make(
        [document("a", "Seals  leak."), document("b", "Pumps run."), document("c", "seals\nLEAK.")]
    )
    assert corpus.duplicate_of.tolist() == [0, 1, 0]


def test_two_documents_of_one_id_are_refused() -> None:
    with pytest.raises(ValueError, match="'d1'"):
        make([*some(3), document("d1", "again")])


def test_an_empty_corpus_searches_without_error(tmp_path: Path) -> None:
    for _ in range(2):  # made, then read
        corpus = make([], folder=tmp_path / "empty")
        assert len(corpus) == 0
        assert corpus.matrix.shape == (0, 64)
        for index in (*corpus.indexes(SEARCH).values(), corpus.item_index(SEARCH)):
            assert len(index.search("pump", 5)) == 0


def test_the_item_index_sees_file_name_title_and_text() -> None:
    corpus = make([document("alpha-7", "text of one"), document("beta", "text of two")])
    index = corpus.item_index(SEARCH)
    assert index.search("alpha-7", 5).positions.tolist() == [0]
    assert index.search("two", 5).positions.tolist() == [1]
    assert len(index.search("title text", 5)) == 2
    assert len(index.search("txt", 5)) == 0


def test_reading_from_disk_embeds_nothing_and_gives_the_same(tmp_path: Path) -> None:
    made = make(some(9), folder=tmp_path / "c")
    fresh = make(some(9))
    assert_same(made, fresh)
    embedder = HashEmbedder()
    again = make(some(9), folder=tmp_path / "c", embedder=embedder)
    assert isinstance(again.matrix, np.memmap)
    assert_same(again, fresh)
    assert embedder.calls == 0
    assert embedder.queries > 0


@pytest.mark.parametrize("damage", ["delete", "cut", "flip", "unsealed"])
@pytest.mark.parametrize(
    "part",
    [
        "chunks/matrix.npy",
        "chunks/starts.npy",
        "chunks/items.json",
        "bm25/bm25_weights.npy",
        "items/bm25.json",
    ],
)
def test_damaged_or_missing_files_are_made_again(tmp_path: Path, part: str, damage: str) -> None:
    folder = tmp_path / "c"
    made = make(some(6), folder=folder)
    assert_same(made, made)  # writes every file
    path = folder / part
    data = bytearray(path.read_bytes())
    path.unlink()  # the mapping of `made` keeps the old file
    if damage == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "flip":
        data[-2] ^= 0x15
        path.write_bytes(data)
    elif damage == "unsealed":
        path.write_bytes(data)
        (path.parent / "seal.json").write_text("{")
    assert_same(make(some(6), folder=folder), make(some(6)))
    assert isinstance(make(some(6), folder=folder).matrix, np.memmap)


def test_a_folder_of_other_settings_is_not_believed(tmp_path: Path) -> None:
    other = SMALL.replace(chunking=ChunkSettings(size=40))
    assert_same(make(some(6), folder=tmp_path / "c", settings=other), make(some(6), settings=other))
    assert_same(make(some(6), folder=tmp_path / "c"), make(some(6)))
    plain = SMALL.replace(analyzer=Analyzer("none"))
    assert_same(make(some(6), folder=tmp_path / "c", settings=plain), make(some(6), settings=plain))
    wide = HashEmbedder(dimension=32)
    assert make(some(6), folder=tmp_path / "c", embedder=wide).matrix.shape[1] == 32


def test_added_documents_alone_are_embedded() -> None:
    before = make(some(8))
    before.indexes(SEARCH)
    embedder = HashEmbedder()
    grown = make([*some(8), *some(3, 8)], embedder=embedder, previous=before)
    assert embedder.calls == len(grown) - len(before) > 0
    assert_same(grown, make(some(11)))
    assert_same(before, make(some(8)))


def test_a_stopped_index_is_grown_from_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    before = make(some(8))
    before.indexes(SEARCH)
    grown = make(some(11), previous=before)

    def stop(done: int, total: int) -> None:
        raise Stopped("stopped")

    with pytest.raises(Stopped):
        grown.indexes(SEARCH, stop)
    read, batches = [], grown.chunk_batches

    def watched(first: int = 0) -> Iterator[list[Chunk]]:
        read.append(first)
        return batches(first)

    monkeypatch.setattr(grown, "chunk_batches", watched)
    grown.indexes(SEARCH)
    assert read == [len(before)]
    assert_same(grown, make(some(11)))


def test_what_stays_is_taken_over_wherever_it_stands() -> None:
    before = make(some(8))
    before.indexes(SEARCH)
    embedder = HashEmbedder()
    kept = [some(8)[position] for position in (5, 2, 7)]
    changed = make([*kept, document("d2x", "new pump text")], embedder=embedder, previous=before)
    assert embedder.calls == 1
    assert_same(changed, make([*kept, document("d2x", "new pump text")]))


def test_changed_text_under_an_old_id_is_cut_again() -> None:
    before = make([document("a", "old pump"), document("b", "stays")])
    after = make([document("a", "new valve and more"), document("b", "stays")], previous=before)
    assert_same(after, make([document("a", "new valve and more"), document("b", "stays")]))


def test_another_analyzer_takes_over_the_vectors_and_not_the_terms() -> None:
    before = make(some(6))
    before.indexes(SEARCH)
    embedder = HashEmbedder()
    plain = SMALL.replace(analyzer=Analyzer("none"))
    after = make(some(6), settings=plain, embedder=embedder, previous=before)
    assert embedder.calls == 0
    assert_same(after, make(some(6), settings=plain))


def test_a_corpus_of_another_model_is_not_taken_over() -> None:
    before = make(some(4), embedder=HashEmbedder(dimension=32))
    embedder = HashEmbedder()
    after = make(some(4), embedder=embedder, previous=before)
    assert embedder.calls == len(after)


def test_hnsw_is_kept_grown_and_read(tmp_path: Path) -> None:
    pytest.importorskip("hnswlib", reason="hnswlib is not installed: exact search serves")
    search = SearchSettings(vector="hnsw", hnsw_ef=200)
    before = make(some(40), folder=tmp_path / "a")
    first = before.indexes(search)["vector"]
    assert first is before.indexes(search)["vector"]
    assert first.ef == 200  # type: ignore[attr-defined]
    grown = make(some(44), folder=tmp_path / "b", previous=before)
    again = make(some(44), folder=tmp_path / "b")
    for corpus in (grown, again):
        exact = corpus.indexes(SEARCH)["vector"].search("pump word40 word285", 10)
        assert corpus.indexes(search)["vector"].search("pump word40 word285", 10).head(3) == exact.head(
            3
        )
    assert (tmp_path / "b" / "hnsw-16-200" / "hnsw.bin").exists()


def test_without_hnswlib_vectors_are_searched_exactly_and_it_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("core.corpus.shelf.unavailable_reason", lambda: "hnswlib cannot be imported")
    corpus = make(some(5))
    found = corpus.indexes(SearchSettings(vector="hnsw"))["vector"].search("pump", 5)
    assert found == corpus.indexes(SEARCH)["vector"].search("pump", 5)
    corpus.indexes(SearchSettings(vector="hnsw"))
    assert corpus.notes == ("hnswlib cannot be imported",)


class Exact:
    """A third index: texts that hold the query letter by letter."""

    name = "exact words"

    def __init__(self) -> None:
        self.texts: list[str] = []

    def add_document(self, one: Chunk | str) -> None:
        self.add_documents([one])

    def add_documents(self, documents: Sequence[Chunk | str]) -> None:
        self.texts += [one.indexed_text if isinstance(one, Chunk) else one for one in documents]

    def search(self, query_text: str, k: int = 1, allowed: Positions | None = None) -> Ranking:
        among = range(len(self.texts)) if allowed is None else allowed.tolist()
        return Ranking.of((at, 1.0) for at in among if query_text in self.texts[at]).head(k)

    def __len__(self) -> int:
        return len(self.texts)


@pytest.fixture
def third() -> Iterator[str]:
    register_index("words", Exact)
    yield "words"
    unregister_index("words")


def test_a_registered_index_joins(third: str) -> None:
    corpus = make(some(6))
    indexes = corpus.indexes(SEARCH)
    assert list(indexes) == ["bm25", "vector", third]
    assert isinstance(indexes[third], Index)
    assert len(indexes[third]) == len(corpus)
    assert indexes[third] is corpus.indexes(SEARCH)[third]
    (position,) = indexes[third].search("word36", 5).positions.tolist()
    assert "word36" in corpus.chunk(position).text
    unregister_index(third)
    assert list(corpus.indexes(SEARCH)) == ["bm25", "vector"]


@pytest.mark.parametrize(
    "name", ["bm25", "vector", " ", "items", "items.x", "fused", "scored", "kept", "passages"]
)
def test_built_in_names_are_taken(name: str) -> None:
    with pytest.raises(SettingsError, match="cannot be named"):
        register_index(name, Exact)
    assert name not in extras.registered_indexes()


def test_chunks_above_the_models_length_are_noted() -> None:
    corpus = make(
        [document("a", "one two three four five six seven eight")], embedder=HashEmbedder(max_tokens=6)
    )
    assert corpus.tokens.tolist() == [10]
    assert len(corpus.notes) == 1
    assert corpus.notes[0].startswith("1 chunk is longer than the 6 tokens that hash sees")


class Broken(HashEmbedder):
    def __init__(self, vectors: Vectors) -> None:
        super().__init__()
        self.vectors = vectors

    def embed(self, texts: Sequence[str]) -> Vectors:
        return np.broadcast_to(self.vectors, (len(texts), len(self.vectors)))


@pytest.mark.parametrize(
    ("vectors", "told"),
    [(np.ones(5, np.float32), r"shape \(1, 5\)"), (np.full(64, np.nan), "not finite")],
)
def test_vectors_other_than_declared_are_refused(vectors: Vectors, told: str) -> None:
    with pytest.raises(EmbeddingError, match=told):
        make([document("a", "text")], embedder=Broken(vectors))


def test_each_distinct_text_is_embedded_once(tmp_path: Path) -> None:
    cache, embedder = VectorCache(tmp_path / "v.db"), HashEmbedder()
    texts = ["one", "two", "one", "three", "two"]
    matrix = embed_all(texts, embedder, cache)
    assert embedder.calls == 3
    np.testing.assert_array_equal(matrix, HashEmbedder().embed(texts))
    np.testing.assert_array_equal(embed_all([*texts, "four"], embedder, cache)[:5], matrix)
    assert embedder.calls == 4
    embed_all(texts, HashEmbedder(model_id="other"), cache)
    assert VectorCache(tmp_path / "v.db").get_many("hash", ["unknown"]) == {}


def test_a_stop_keeps_every_finished_batch(tmp_path: Path) -> None:
    cache, embedder = VectorCache(tmp_path / "v.db"), HashEmbedder()
    texts = [f"text {n}" for n in range(3 * BATCH)]
    told = []

    def progress(done: int, total: int) -> None:
        told.append((done, total))
        if done >= 2 * BATCH:
            raise Stopped("stopped")

    with pytest.raises(Stopped):
        embed_all(texts, embedder, cache, progress)
    assert told == [(0, 3 * BATCH), (BATCH, 3 * BATCH), (2 * BATCH, 3 * BATCH)]
    embed_all(texts, embedder, VectorCache(tmp_path / "v.db"))
    assert embedder.calls == 3 * BATCH


def test_semantic_chunking_can_be_stopped_and_keeps_its_vectors(tmp_path: Path) -> None:
    semantic = IndexSettings(chunking=ChunkSettings(strategy="semantic", size=200), model="hash")
    text = " ".join(f"Sentence number {n} is about pump {n % 7}." for n in range(3 * BATCH))
    cache, embedder, calls = VectorCache(tmp_path / "v.db"), HashEmbedder(), []

    def progress(done: int, total: int) -> None:
        calls.append((done, total))
        if len(calls) == 4:
            raise Stopped("stopped")

    arguments = {"settings": semantic, "embedder": embedder, "cache": cache}
    with pytest.raises(Stopped):
        make([document("a", text)], progress=progress, **arguments)
    assert calls == [(0, 1)] * 4
    assert embedder.calls == 2 * BATCH
    make([document("a", text)], **arguments)
    whole = HashEmbedder()
    make([document("a", text)], settings=semantic, embedder=whole, cache=VectorCache(tmp_path / "w.db"))
    assert embedder.calls == whole.calls > 3 * BATCH


def test_vectors_of_another_width_are_made_again(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "v.db")
    embed_all(["one"], HashEmbedder(dimension=32), cache)
    assert embed_all(["one"], HashEmbedder(dimension=64), cache).shape == (1, 64)


def test_a_damaged_vector_cache_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "v.db"
    path.write_bytes(b"no database at all, " * 500)
    embedder = HashEmbedder()
    embed_all(["one"], embedder, VectorCache(path))
    embed_all(["one"], embedder, VectorCache(path))
    assert embedder.calls == 1


@pytest.mark.parametrize("opened_before", [False, True])
def test_a_vector_cache_damaged_inside_is_replaced(tmp_path: Path, opened_before: bool) -> None:
    path = tmp_path / "v.db"
    texts = [f"text {number}" for number in range(1_000)]
    cache = VectorCache(path)
    whole = embed_all(texts, HashEmbedder(), cache)
    cache.close()
    early = VectorCache(path) if opened_before else None
    pages = bytearray(path.read_bytes())
    for at in range(2 * 4096, len(pages), 4096):  # the first pages open as if nothing were wrong
        pages[at : at + 200] = b"\xff" * 200
    path.write_bytes(bytes(pages))
    embedder, cache = HashEmbedder(), early or VectorCache(path)
    np.testing.assert_array_equal(embed_all([*texts, "new"], embedder, cache)[:-1], whole)
    assert embedder.calls == 1_001
    np.testing.assert_array_equal(embed_all(texts, embedder, cache), whole)
    assert embedder.calls == 1_001


def test_a_closed_vector_cache_is_left_as_it_is(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "v.db")
    embed_all(["one"], HashEmbedder(), cache)
    cache.close()
    with pytest.raises(RankscopeError, match="cannot be read from"):
        cache.get_many("hash", ["0"])
    embedder = HashEmbedder()
    embed_all(["one"], embedder, VectorCache(tmp_path / "v.db"))
    assert embedder.calls == 0


def test_a_collection_becomes_a_corpus_and_grows(collection: Collection) -> None:
    embedder = HashEmbedder()
    put(collection, "a.txt", "The pump leaks.")
    assert not is_built(collection, SMALL)
    first = build_corpus(collection, SMALL, embedder=embedder)
    assert is_built(collection, SMALL)
    assert not is_built(collection, SMALL.replace(chunking=ChunkSettings(size=50)))
    assert first.document(0).text == "The pump leaks."
    put(collection, "b.txt", "The valve holds.")
    assert not is_built(collection, SMALL)
    second = build_corpus(collection, SMALL, previous=first, embedder=embedder)
    assert embedder.calls == 2
    assert [second.chunk(position).text for position in range(2)] == [
        "The pump leaks.",
        "The valve holds.",
    ]
    assert_same(second, build_corpus(collection, SMALL, embedder=embedder))
    assert embedder.calls == 2


def test_a_removed_document_is_gone_from_every_index(collection: Collection, third: str) -> None:
    embedder = HashEmbedder()
    gone = put(collection, "a.txt", "The zebra pump leaks.")
    put(collection, "b.txt", "The valve holds.")
    before = build_corpus(collection, SMALL, embedder=embedder)
    assert before.indexes(SEARCH)["bm25"].search("zebra", 5).positions.tolist() == [0]
    collection.remove(gone)
    after = build_corpus(collection, SMALL, previous=before, embedder=embedder)
    indexes = {**after.indexes(SEARCH), "items": after.item_index(SEARCH)}
    assert list(indexes) == ["bm25", "vector", third, "items"]
    assert [len(index) for index in indexes.values()] == [1, 1, 1, 1]
    assert len(indexes["bm25"].search("zebra", 5)) == len(indexes["items"].search("zebra", 5)) == 0
    assert len(indexes[third].search("zebra", 5)) == 0


def test_the_indexed_part_of_a_collection_is_there_without_embedding(collection: Collection) -> None:
    embedder = HashEmbedder()
    first = put(collection, "a.txt", "The pump leaks.")
    put(collection, "b.txt", "The valve holds.")
    assert indexed_part(collection, SMALL, embedder=embedder) is None
    whole = build_corpus(collection, SMALL, embedder=embedder)
    same = indexed_part(collection, SMALL, whole, embedder)
    assert same is not None
    assert same.matrix is whole.matrix, "nothing is read again"
    put(collection, "c.txt", "The shaft turns.")
    calls = embedder.calls

    grown = indexed_part(collection, SMALL, embedder=embedder)  # from disk
    assert grown is not None
    assert_same(grown, whole)
    collection.remove(first)
    for previous in (whole, None):
        shrunk = indexed_part(collection, SMALL, previous, embedder)
        assert shrunk is not None
        assert shrunk.item_names == ("b.txt",)
        assert [chunk.text for batch in shrunk.chunk_batches() for chunk in batch] == [
            "The valve holds."
        ]
        assert len(shrunk.indexes(SEARCH)["bm25"].search("pump", 5)) == 0
    assert embedder.calls == calls
    other = SMALL.replace(chunking=ChunkSettings(size=50))
    assert indexed_part(collection, other, whole, embedder) is None


def test_cache_files_may_be_deleted(collection: Collection) -> None:
    for n in range(4):
        put(collection, f"{n}.txt", f"Pump {n} leaks. " * 8)
    made = build_corpus(collection, SMALL, embedder=HashEmbedder())
    expected = made.matrix.copy(), made.indexes(SEARCH)["bm25"].search("pump 2", 9)
    shutil.rmtree(collection.folder / "corpus")
    again = build_corpus(collection, SMALL, embedder=HashEmbedder())
    np.testing.assert_array_equal(again.matrix, expected[0])
    assert again.indexes(SEARCH)["bm25"].search("pump 2", 9) == expected[1]
    assert again.fingerprint == made.fingerprint


def test_the_last_three_corpora_are_kept(collection: Collection) -> None:
    put(collection, "a.txt", "Pump leaks. " * 30)
    for size in (40, 50, 60, 70, 80):
        build_corpus(
            collection, SMALL.replace(chunking=ChunkSettings(size=size)), embedder=HashEmbedder()
        )
    kept = [
        size
        for size in (40, 50, 60, 70, 80)
        if is_built(collection, SMALL.replace(chunking=ChunkSettings(size=size)))
    ]
    assert kept == [60, 70, 80]


def test_a_removal_during_the_build_starts_it_again(collection: Collection) -> None:
    hashes = [put(collection, f"{n}.txt", f"Pump {n} leaks.") for n in range(3)]

    def progress(done: int, total: int) -> None:
        if hashes:
            collection.remove(hashes.pop())

    corpus = build_corpus(collection, SMALL, progress, embedder=HashEmbedder())
    assert [corpus.document(item).text for item in range(len(corpus.item_ids))] == [
        document.text for document in collection.documents()
    ]


def test_an_embedder_of_another_name_than_the_settings_is_refused(collection: Collection) -> None:
    with pytest.raises(EmbeddingError, match=r"all-MiniLM-L6-v2.*hash"):
        build_corpus(collection, IndexSettings(), embedder=HashEmbedder())


def test_many_threads_ask_and_each_index_is_built_once(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = make(some(30))
    built = []
    batches = corpus.chunk_batches
    monkeypatch.setattr(corpus, "chunk_batches", lambda first=0: built.append(first) or batches(first))
    found: list[Ranking] = []

    def work(k1: float) -> None:
        found.append(corpus.indexes(SearchSettings(bm25_k1=k1))["bm25"].search("word3", 5))

    threads = [threading.Thread(target=work, args=(k1,)) for k1 in (1.5, 0.5, 1.5, 0.5, 1.5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 5
    assert built == [0]


def test_files_are_read_again_where_python_fails_to_parse_their_header(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = HashEmbedder()
    put(collection, "a.txt", "The pump leaks.")
    first = build_corpus(collection, SMALL, embedder=embedder)
    first.indexes(SEARCH)
    whole, failed = np.load, []

    def load_at_second_try(path: Path, **how: object) -> object:
        if path not in failed:
            failed.append(path)
            raise SystemError("AST constructor recursion depth mismatch (before=42, after=38)")
        return whole(path, **how)

    monkeypatch.setattr(np, "load", load_at_second_try)
    again = build_corpus(collection, SMALL, embedder=embedder)
    assert_same(first, again)
    assert {"matrix.npy", "starts.npy", "bm25_ids.npy"} <= {path.name for path in failed}
    assert embedder.calls == 1


class TestViewers:
    ANN, BO = Viewer("ann"), Viewer("bo", frozenset({"board"}))

    @staticmethod
    def limited(*access: str, count: int = 6) -> Corpus:
        """Documents for everyone but the last ones."""
        who: list[Access] = [None] * count
        who[count - len(access) :] = [parse_access(one) for one in access]
        return make(ListedDocuments(some(count), who))  # type: ignore[arg-type]

    def test_a_slice_is_the_corpus_of_what_is_seen(self) -> None:
        whole = self.limited("board", "ann@x", "nobody")
        seen = whole.for_viewer(self.BO)
        assert seen.item_ids == ("d0", "d1", "d2", "d3")
        assert_same(seen, make(some(4)))
        assert seen.viewer == self.BO
        assert seen.fingerprint != whole.fingerprint
        assert whole.for_viewer(Viewer()).item_ids == ("d0", "d1", "d2")
        with pytest.raises(KeyError, match="no document 'd5'"):
            seen.item_position("d5")

    def test_whoever_sees_all_shares_all(self) -> None:
        whole = self.limited("board")
        assert whole.for_viewer(None) is whole
        seen = whole.for_viewer(self.BO)
        assert (seen.viewer, seen.matrix is whole.matrix) == (self.BO, True)
        assert seen.fingerprint == whole.fingerprint
        assert seen.indexes(SEARCH)["bm25"] is whole.indexes(SEARCH)["bm25"]

    def test_nobody_sees_nothing(self) -> None:
        seen = self.limited(*["board"] * 6).for_viewer(self.ANN)
        assert (len(seen), seen.item_ids, seen.notes) == (0, (), ())
        assert len(seen.indexes(SEARCH)["bm25"].search("pump", 5)) == 0

    def test_those_who_see_the_same_share_a_slice(self) -> None:
        whole = self.limited("board", "nobody")
        one, other = whole.for_viewer(self.ANN), whole.for_viewer(Viewer("cy"))
        assert one.matrix is other.matrix
        assert one is whole.for_viewer(self.ANN)
        assert (one.viewer, other.viewer) == (self.ANN, Viewer("cy"))
        again = whole.with_first_stage(FirstStage(kinds={"year": "date"})).for_viewer(self.ANN)
        assert again.matrix is one.matrix
        assert again.fingerprint != one.fingerprint

    def test_of_a_first_stage_that_is_over_nothing_is_kept(self) -> None:
        whole = self.limited("nobody")
        earlier = FirstStage(events=(Event("pump", "d0", "open", 1, ""),))
        gone = ref(whole.with_first_stage(earlier).for_viewer(self.ANN))
        whole.for_viewer(self.ANN)
        gc.collect()
        assert gone() is None

    def test_progress_does_not_tell_how_much_is_hidden(self) -> None:
        heard: list[tuple[int, int]] = []
        seen = self.limited("nobody", "nobody").for_viewer(self.ANN)
        seen.indexes(SEARCH, lambda done, total: heard.append((done, total)))
        seen.item_index(SEARCH, lambda done, total: heard.append((done, total)))
        assert heard
        assert {total for _, total in heard} == {len(seen), len(seen.item_ids)}
        assert all(done <= total for done, total in heard)

    def test_slices_are_kept_by_their_size(self, monkeypatch: pytest.MonkeyPatch) -> None:
        whole = self.limited("a", "b", "c", "d", "e")
        seen = {group: whole.for_viewer(Viewer("", frozenset(group))) for group in "abcde"}
        assert all(whole.for_viewer(Viewer("", frozenset(group))) is seen[group] for group in "abcde")
        monkeypatch.setattr(viewing, "_BYTES", seen["a"].matrix.nbytes)
        assert whole.for_viewer(Viewer("", frozenset("b"))) is seen["b"]
        kept = [whole.for_viewer(Viewer("", frozenset(group))) is seen[group] for group in "bedca"]
        assert kept == [True, True, True, True, False]  # the fewest that are kept, whatever their size
        again = whole.for_viewer(Viewer("", frozenset("b")))
        assert again is not seen["b"]
        assert again.item_ids == ("d0", "d2")

    def test_who_waits_for_a_slice_keeps_nobody_from_another(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        whole = self.limited("a", "b")
        begun, go_on, slice_of = threading.Event(), threading.Event(), Corpus._slice

        def slow(self: Corpus, items: NDArray[np.bool_]) -> Corpus:
            if items[-2]:
                begun.set()
                assert go_on.wait(30)
            return slice_of(self, items)

        monkeypatch.setattr(Corpus, "_slice", slow)
        ids: list[str] = []
        waiting = threading.Thread(
            target=lambda: ids.extend(whole.for_viewer(Viewer("", frozenset("a"))).item_ids)
        )
        waiting.start()
        try:
            assert begun.wait(30)
            assert whole.for_viewer(Viewer("", frozenset("b"))).item_ids[-1] == "d5"
            assert not ids
        finally:
            go_on.set()
            waiting.join()
        assert ids == ["d0", "d1", "d2", "d3", "d4"]

    def test_events_on_what_is_hidden_are_not_known(self) -> None:
        events = tuple(
            Event("pump", one, "open", 1, "2026-01-01T00:00:00+00:00") for one in ("d0", "d5")
        )
        whole = self.limited("nobody").with_first_stage(FirstStage(events=events))
        seen = whole.for_viewer(self.ANN)
        assert seen.first_stage.events == events[:1]
        assert seen.with_first_stage(FirstStage(events=events)).first_stage.events == events[:1]
        assert whole.first_stage.events == events

    def test_the_first_stage_and_the_viewers_groups_name_a_corpus(self) -> None:
        whole = self.limited()
        assert whole.with_first_stage(FirstStage()).fingerprint == whole.fingerprint
        ruled = whole.with_first_stage(FirstStage(kinds={"year": "date"}))
        names = {ruled.fingerprint, ruled.for_viewer(self.ANN).fingerprint}
        names |= {whole.fingerprint, ruled.for_viewer(self.BO).fingerprint}
        assert len(names) == 4, "rules may hold for some groups only"
        assert ruled.for_viewer(Viewer("cy")).fingerprint == ruled.for_viewer(self.ANN).fingerprint
        assert ruled.for_viewer(self.BO).chunks_fingerprint == whole.fingerprint

    def test_a_slice_names_only_fields_of_its_items(self) -> None:
        documents = [
            document("a", "one", metadata={"year": 2020.0}),
            document("b", "two", metadata={"salary": 9.0}),
        ]
        whole = make(ListedDocuments(documents, [None, frozenset()]))  # type: ignore[arg-type]
        assert "salary" in whole.fields.names
        seen = whole.for_viewer(self.ANN)
        assert "salary" not in seen.fields.names
        assert seen.fields.numbers("year").tolist() == [2020.0]
        assert seen.fields is seen.fields

    def test_many_threads_see_the_same(self) -> None:
        whole = self.limited("board", "nobody")
        found: list[Corpus] = []
        threads = [
            threading.Thread(target=lambda: found.append(whole.for_viewer(self.ANN))) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 4
        assert all(one is found[0] for one in found)


def test_access_that_changed_is_served_without_indexing(collection: Collection) -> None:
    embedder = HashEmbedder()
    put(collection, "a.txt", "The pump leaks.")
    put(collection, "b.txt", "The valve holds.")
    whole = build_corpus(collection, SMALL, embedder=embedder)
    bo = Viewer("bo")
    assert len(whole.for_viewer(bo).item_ids) == 2
    calls = embedder.calls
    collection.set_access([whole.item_ids[0]], frozenset())
    for previous in (whole, None):
        now = indexed_part(collection, SMALL, previous, embedder)
        assert now is not None
        assert len(now.item_ids) == 2
        assert now.for_viewer(bo).item_names == ("b.txt",)
    assert build_corpus(collection, SMALL, previous=whole, embedder=embedder).for_viewer(
        bo
    ).item_names == ("b.txt",)
    assert embedder.calls == calls


def test_rules_and_kinds_of_fields_come_with_the_corpus_of_a_collection(collection: Collection) -> None:
    put(collection, "a.txt", "The pump leaks.")
    bare = build_corpus(collection, SMALL, embedder=HashEmbedder())
    collection.save_rules('[[rule]]\nname = "up"\ndocuments = ["a.txt"]\nboost = 2\n')
    collection.set_field_kind("added", "text")
    ruled = indexed_part(collection, SMALL, bare, HashEmbedder())
    assert ruled is not None
    assert ruled.first_stage.rules is not None
    assert [rule.name for rule in ruled.first_stage.rules.rules] == ["up"]
    assert ruled.fields.kind("added") == "text"
    assert bare.fields.kind("added") == "date"
    assert ruled.chunks_fingerprint == bare.fingerprint != ruled.fingerprint
    assert ruled.matrix is bare.matrix
