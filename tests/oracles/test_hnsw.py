"""HNSW against exact search over the same vectors."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from core.errors import EmbeddingError, RankscopeError, SettingsError, Stopped
from core.indexes import HnswIndex, VectorIndex
from core.indexes.hnsw import unavailable_reason
from core.protocols import Vectors
from tests.fakes import HashEmbedder

D = 32


def unit(n: int, seed: int, width: int = D) -> Vectors:
    drawn = np.random.default_rng(seed).standard_normal((n, width)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


EMBEDDER = HashEmbedder(D)
MATRIX = unit(3_000, 1)
QUERIES = unit(40, 2)
EXACT = VectorIndex.from_vectors(EMBEDDER, MATRIX)


@pytest.fixture(scope="module")
def hnsw() -> HnswIndex:
    return HnswIndex.from_vectors(EMBEDDER, MATRIX)


def test_exact_search_is_the_textbook_cosine() -> None:
    for query in QUERIES:
        expected = MATRIX.astype(np.float64) @ query.astype(np.float64)
        ranking = EXACT.search_vector(query, k=20)
        assert ranking.positions.tolist() == np.argsort(-expected, kind="stable")[:20].tolist()
        np.testing.assert_allclose(ranking.scores, np.sort(expected)[::-1][:20], atol=1e-6)


def test_a_chunk_scores_the_same_to_the_last_bit_in_any_subset_and_index(hnsw: HnswIndex) -> None:
    random = np.random.default_rng(3)
    for query in QUERIES[:10]:
        whole = EXACT.search_vector(query, k=len(MATRIX))
        score = dict(zip(whole.positions.tolist(), whole.scores.tolist(), strict=True))
        for size in (1, 2, 7, 100, 1_501):
            only = np.sort(random.choice(len(MATRIX), size, replace=False))
            for index in (EXACT, hnsw):
                for hit in index.search_vector(query, k=size, allowed=only):
                    assert hit.score == score[hit.position]
        for hit in hnsw.search_vector(query, k=50):
            assert hit.score == score[hit.position] == EXACT.similarity(query, hit.position)


def test_recall_on_random_vectors_is_at_least_95_percent(hnsw: HnswIndex) -> None:
    found = [
        len(
            set(hnsw.search_vector(query, k=150).positions.tolist())
            & set(EXACT.search_vector(query, k=150).positions.tolist())
        )
        / 150
        for query in QUERIES
    ]
    assert np.mean(found) >= 0.95
    assert hnsw.measured_recall(QUERIES, k=150) == pytest.approx(np.mean(found))


def test_recall_grows_with_ef_and_is_whole_when_all_are_candidates(hnsw: HnswIndex) -> None:
    few, some = (hnsw.measured_recall(QUERIES, k=10, ef=ef) for ef in (10, 100))
    assert few < some <= 1
    assert hnsw.measured_recall(QUERIES, k=10, ef=len(MATRIX)) == 1
    assert hnsw.with_ef(10).measured_recall(QUERIES, k=10) == few


def test_a_smaller_k_gives_the_head_of_the_same_ranking(hnsw: HnswIndex) -> None:
    for query in QUERIES[:10]:
        whole = hnsw.search_vector(query, k=300)
        for k in (1, 5, 149, 299):
            assert hnsw.search_vector(query, k=k) == whole.head(k)


def test_ef_below_k_and_k_near_the_size_are_absorbed(hnsw: HnswIndex) -> None:
    assert len(hnsw.search_vector(QUERIES[0], k=500, ef=10)) == 500
    assert len(hnsw.search_vector(QUERIES[0], k=len(MATRIX) - 1)) == len(MATRIX) - 1
    assert hnsw.search_vector(QUERIES[0], k=10**9) == EXACT.search_vector(QUERIES[0], k=10**9)


def test_equal_vectors_tie_by_position() -> None:
    index = HnswIndex.from_vectors(EMBEDDER, np.repeat(unit(1, 4), 500, axis=0), ef=20)
    ranking = index.search_vector(unit(1, 4)[0], k=500)
    assert ranking.positions.tolist() == list(range(500))


def clustered(n: int, seed: int) -> Vectors:
    """Unit vectors around 20 axes, one axis after the other."""
    made = 0.2 * unit(n, seed)
    made[np.arange(n), np.arange(n) * 20 // n] += 1
    return made / np.linalg.norm(made, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def clusters() -> HnswIndex:
    return HnswIndex.from_vectors(EMBEDDER, clustered(6_000, 5), ef=100)


@pytest.mark.parametrize("share", [0.001, 0.01, 0.1, 0.3, 0.5, 0.9, 0.99, 1.0])
@pytest.mark.parametrize("kind", ["random", "near", "far"])
def test_a_restricted_search_finds_as_much_at_every_share(
    clusters: HnswIndex, share: float, kind: str
) -> None:
    """Whether what is allowed is near the query, as far from it as can be, or has nothing to do with it."""
    matrix, shares = clusters.matrix, []
    random = np.random.default_rng(8)
    for query in clustered(10, 6):
        nearest = np.argsort(-(matrix @ query))
        order = {"random": random.permutation(len(matrix)), "near": nearest, "far": nearest[::-1]}[kind]
        only = np.sort(order[: max(1, round(share * len(matrix)))])
        expected = VectorIndex.from_vectors(EMBEDDER, matrix).search_vector(query, 20, only)
        found = clusters.search_vector(query, 20, only)
        assert np.isin(found.positions, only).all()
        assert len(found) == len(expected)
        shares.append(np.isin(expected.positions, found.positions).mean())
    assert np.mean(shares) >= 0.99


def test_a_restricted_search_asks_the_graph_where_many_are_allowed_and_no_more_where_few(
    clusters: HnswIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    index, asked = clusters, []
    ask = type(index._graph).nearest

    def counted(self: object, query: Vectors, ef: int) -> object:
        asked.append(ef)
        return ask(self, query, ef)

    monkeypatch.setattr(type(index._graph), "nearest", counted)
    everywhere = np.arange(len(index.matrix))
    query = clustered(10, 6)[0]
    index.search_vector(query, 20, everywhere[::10])
    assert asked == []
    index.search_vector(query, 20, everywhere[everywhere % 10 > 0])
    assert len(asked) == 1
    assert 100 < asked[0] < 150
    far = np.sort(np.argsort(index.matrix @ query)[: len(everywhere) - 400])
    index.search_vector(query, 20, far)  # 400 nearer ones are in the way
    assert len(asked) <= 3
    del asked[:]
    index.search_vector(query, 20, everywhere)
    assert asked == [100]


def test_a_graph_that_reaches_too_few_falls_back_to_exact(
    hnsw: HnswIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing:
        def set_ef(self, ef: int) -> None: ...

        def knn_query(self, *_: object, **__: object) -> None:
            raise RuntimeError("Cannot return the results in a contiguous 2D array")

    monkeypatch.setattr(hnsw._graph, "_index", Refusing())
    assert hnsw.search_vector(QUERIES[0], k=10) == EXACT.search_vector(QUERIES[0], k=10)


def test_the_same_vectors_give_the_same_rankings(hnsw: HnswIndex) -> None:
    again = HnswIndex.from_vectors(EMBEDDER, MATRIX, ef=20)
    for query in QUERIES:
        assert again.search_vector(query, k=20) == hnsw.search_vector(query, k=20, ef=20)


def test_vectors_may_be_memory_mapped(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", MATRIX)
    mapped = np.load(tmp_path / "v.npy", mmap_mode="r")
    index = VectorIndex.from_vectors(EMBEDDER, mapped)
    assert np.shares_memory(index.matrix, mapped)
    assert index.search_vector(QUERIES[0], k=9) == EXACT.search_vector(QUERIES[0], k=9)


def test_progress_counts_up_and_may_stop() -> None:
    seen: list[tuple[int, int]] = []
    HnswIndex.from_vectors(EMBEDDER, MATRIX, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1_000, 3_000), (2_000, 3_000), (3_000, 3_000)]

    def stop(done: int, total: int) -> None:
        raise Stopped("stopped")

    with pytest.raises(Stopped):
        HnswIndex.from_vectors(EMBEDDER, MATRIX, progress=stop)


def test_extending_leaves_the_old_index_as_it_is(hnsw: HnswIndex) -> None:
    query = QUERIES[0]
    before = hnsw.search_vector(query, k=20)
    longer = hnsw.extended(query[None, :])
    assert (len(longer), len(hnsw)) == (len(MATRIX) + 1, len(MATRIX))
    assert longer.search_vector(query, k=1).positions.tolist() == [len(MATRIX)]
    assert hnsw.search_vector(query, k=20) == before
    assert longer.measured_recall(QUERIES, k=150) >= 0.95


def test_an_index_that_shares_its_graph_can_still_grow() -> None:
    first = HnswIndex.from_vectors(EMBEDDER, MATRIX[:500], ef=20)
    second = first.with_ef(30)
    first.add_document("pump")
    second.add_documents(["valve", "seal"])
    assert first.search("pump").positions.tolist() == [500]
    assert second.search("seal").positions.tolist() == [501]
    assert (len(first), len(second)) == (501, 502)


def test_an_index_grows_far_beyond_its_first_room() -> None:
    index = HnswIndex(EMBEDDER, ef=20)
    for number in range(300):
        index.add_document(f"pump {number}")
        if number % 50 == 0:
            index.search("pump", k=3)
    assert len(index) == 300
    for number in (0, 150, 299):
        assert index.search(f"pump {number}", k=1).scores[0] == pytest.approx(1)


def test_a_saved_index_comes_back_as_it_was(hnsw: HnswIndex, tmp_path: Path) -> None:
    hnsw.save(tmp_path)
    loaded = HnswIndex.load(tmp_path, EMBEDDER, MATRIX)
    assert loaded.ef == hnsw.ef
    for query in QUERIES[:10]:
        assert loaded.search_vector(query, k=50) == hnsw.search_vector(query, k=50)
    loaded.add_document("pump")
    assert loaded.search("pump").positions.tolist() == [len(MATRIX)]


def test_an_empty_index_can_be_saved_and_loaded(tmp_path: Path) -> None:
    HnswIndex(EMBEDDER).save(tmp_path)
    assert len(HnswIndex.load(tmp_path, EMBEDDER, MATRIX[:0])) == 0


@pytest.mark.parametrize(
    ("named", "load"),
    [
        ("M", lambda at: HnswIndex.load(at, EMBEDDER, MATRIX, m=32)),
        ("seed", lambda at: HnswIndex.load(at, EMBEDDER, MATRIX, seed=7)),
        ("model", lambda at: HnswIndex.load(at, HashEmbedder(D, model_id="other"), MATRIX)),
        ("dimension", lambda at: HnswIndex.load(at, HashEmbedder(16), unit(3_000, 1, 16))),
        ("count", lambda at: HnswIndex.load(at, EMBEDDER, MATRIX[:-1])),
        ("vectors", lambda at: HnswIndex.load(at, EMBEDDER, unit(3_000, 9))),
    ],
)
def test_a_saved_index_of_something_else_is_refused(
    hnsw: HnswIndex, tmp_path: Path, named: str, load
) -> None:
    hnsw.save(tmp_path)
    with pytest.raises(RankscopeError, match=rf"{named}.*index again"):
        load(tmp_path)


def test_damaged_files_are_refused_before_the_library_sees_them(hnsw: HnswIndex, tmp_path: Path) -> None:
    with pytest.raises(RankscopeError, match="index again"):
        HnswIndex.load(tmp_path / "nowhere", EMBEDDER, MATRIX)
    hnsw.save(tmp_path)
    whole = (tmp_path / "hnsw.bin").read_bytes()
    for damaged in (whole[:-100], whole[:50] + bytes(8) + whole[58:], b""):
        (tmp_path / "hnsw.bin").write_bytes(damaged)
        with pytest.raises(RankscopeError, match=r"damaged.*index again"):
            HnswIndex.load(tmp_path, EMBEDDER, MATRIX)
    (tmp_path / "hnsw.bin").write_bytes(whole)
    for text in ("", "[]", json.dumps({"format": 0})):
        (tmp_path / "hnsw.json").write_text(text, encoding="utf-8")
        with pytest.raises(RankscopeError, match="index again"):
            HnswIndex.load(tmp_path, EMBEDDER, MATRIX)


@pytest.mark.parametrize("index", [EXACT, HnswIndex.from_vectors(EMBEDDER, MATRIX[:400], ef=10)])
def test_vectors_that_would_crash_a_library_are_refused(index: VectorIndex) -> None:
    for wrong in (unit(1, 5, 31)[0], unit(1, 5), np.float32(1)):
        with pytest.raises(EmbeddingError, match=f"{D}"):
            index.search_vector(wrong, k=1)
    for value in (np.nan, np.inf):
        with pytest.raises(EmbeddingError, match="not finite"):
            index.search_vector(np.full(D, value, np.float32), k=1)
    with pytest.raises(EmbeddingError, match=f"width 31.*width {D}"):
        type(index).from_vectors(EMBEDDER, unit(5, 6, 31))
    for position in (-1, len(index)):
        with pytest.raises(IndexError, match=str(position)):
            index.similarity(QUERIES[0], position)


def test_a_model_that_breaks_its_word_adds_nothing() -> None:
    class Wrong(HashEmbedder):
        def embed(self, texts):  # type: ignore[no-untyped-def]
            made = super().embed(texts)
            made[0, 0] = np.nan
            return made

    index = VectorIndex(Wrong(D))
    with pytest.raises(EmbeddingError, match="nothing was added"):
        index.add_documents(["a", "b"])
    assert len(index) == 0


@pytest.mark.parametrize(("name", "value"), [("m", 1), ("ef", 0), ("ef_construction", 0)])
def test_parameters_out_of_range_are_refused(name: str, value: int) -> None:
    with pytest.raises(SettingsError, match=str(value)):
        HnswIndex(EMBEDDER, **{name: value})


def test_recall_needs_something_to_measure_on(hnsw: HnswIndex) -> None:
    with pytest.raises(ValueError, match="at least one query"):
        hnsw.measured_recall(QUERIES[:0], k=5)
    with pytest.raises(ValueError, match="one chunk"):
        HnswIndex(EMBEDDER).measured_recall(QUERIES, k=5)


def test_without_hnswlib_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hnswlib", None)
    unavailable_reason.cache_clear()
    try:
        assert "searched exactly" in unavailable_reason()
        with pytest.raises(RankscopeError, match="hnswlib"):
            HnswIndex(EMBEDDER)
    finally:
        unavailable_reason.cache_clear()


def test_parallel_searches_with_different_ef_do_not_disturb_each_other(hnsw: HnswIndex) -> None:
    expected = {ef: [hnsw.search_vector(q, k=10, ef=ef) for q in QUERIES] for ef in (10, 60)}
    wrong: list[int] = []

    def look(ef: int) -> None:
        view = hnsw.with_ef(ef)
        for _ in range(10):
            if [view.search_vector(q, k=10) for q in QUERIES] != expected[ef]:
                wrong.append(ef)

    threads = [threading.Thread(target=look, args=(ef,)) for ef in (10, 60, 10, 60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
