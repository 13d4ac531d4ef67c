"""replay(run(q, a), b) == run(q, b), wherever only replayable settings differ."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.corpus import Corpus
from core.errors import NeedsSearch
from core.extras import register_index, unregister_index
from core.pipeline import assemble, replay, search
from core.settings import ChunkSettings, IndexSettings, IndexUse, SearchSettings, SignalUse
from core.types import Document
from tests.contracts.identifier_index import IdentifierIndex
from tests.fakes import HashEmbedder

WORDS = [
    "seal",
    "pump",
    "valve",
    "leak",
    "kit",
    "blue",
    "cold",
    "order",
    "daily",
    "stem",
    "grease",
    "office",
]
QUERIES = ["seal pump", "cold valve stem", "blue", "zzz", "order the kit daily"]


def build() -> Corpus:
    documents = []
    for n in range(12):
        words = [WORDS[(n * 7 + i * i) % len(WORDS)] for i in range(10 + 5 * (n % 4))]
        text = ". ".join(" ".join(words[i : i + 5]) for i in range(0, len(words), 5)) + "."
        documents.append(Document(f"d{n}", f"d{n}.txt", f"Title {n}", text))
    chunking = ChunkSettings(strategy="sentences", size=40)
    return Corpus.from_documents(documents, IndexSettings(chunking=chunking), HashEmbedder())


def build_wide() -> Corpus:
    """More items than any search below looks at."""
    texts = [" ".join(WORDS[(n * k + k) % len(WORDS)] for k in (1, 5, 7)) + f" {n}" for n in range(300)]
    documents = [Document(f"w{n}", f"w{n}.txt", "", text) for n, text in enumerate(texts)]
    return Corpus.from_documents(documents, IndexSettings(), HashEmbedder())


def _at_depth(depth: int) -> dict[str, Any]:
    return {"two_stage": False, "indexes": {"vector": IndexUse(depth=depth)}}


CORPUS, WIDE = build(), build_wide()
weights = st.sampled_from([0.0, 0.5, 1.0, 3.0])
index_uses = st.builds(IndexUse, st.booleans(), weights, st.sampled_from([1, 3, 8, 150]))
signal_uses = st.builds(SignalUse, st.booleans(), weights)
search_settings = st.builds(
    SearchSettings,
    two_stage=st.booleans(),
    signals=st.fixed_dictionaries({"lexical": signal_uses, "semantic": signal_uses}),
    k_rrf_items=st.sampled_from([0, 1, 60]),
    items=st.sampled_from([1, 3, 100]),
    second_stage=st.sampled_from(["hybrid", "semantic"]),
    indexes=st.fixed_dictionaries({"bm25": index_uses, "vector": index_uses}),
    fusion=st.sampled_from(["rrf", "minmax", "zscore", "dbsf"]),
    k_rrf=st.sampled_from([0, 1, 60]),
    passage_weight=weights,
    item_weight=weights,
    k_rrf_score=st.sampled_from([0, 60]),
    collapse_duplicates=st.booleans(),
    per_item=st.sampled_from([0, 1, 2]),
    k=st.sampled_from([1, 5, 20]),
    merge=st.booleans(),
    merge_gap=st.sampled_from([0, 2, 100]),
    merge_cap=st.sampled_from([1, 60, 6000]),
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(QUERIES), search_settings, search_settings)
def test_replaying_equals_searching(query: str, a: SearchSettings, b: SearchSettings) -> None:
    searched = search(CORPUS, query, b)
    searched.check()
    try:
        replayed = replay(search(CORPUS, query, a), b)
    except NeedsSearch:
        assert a.two_stage != b.two_stage or deeper(a, b)
        return
    assert replayed == searched


def deeper(a: SearchSettings, b: SearchSettings) -> bool:
    return any(b.index(name).depth > a.index(name).depth for name in ("bm25", "vector"))


@pytest.mark.parametrize(
    "change",
    [
        {"bm25_k1": 1.2},
        {"bm25_b": 0.5},
        {"bm25_variant": "atire"},
        {"vector": "hnsw"},
        {"hnsw_ef": 50},
        {"hnsw_m": 8},
    ],
)
def test_what_only_a_search_can_tell_is_never_replayed(change: dict[str, Any]) -> None:
    with pytest.raises(NeedsSearch):
        replay(search(CORPUS, "seal", SearchSettings()), SearchSettings(**change))


def test_two_traces_of_different_settings_differ() -> None:
    one = search(CORPUS, "seal pump", SearchSettings())
    assert one != replay(one, SearchSettings(k_rrf=1))
    assert one == search(CORPUS, "seal pump", SearchSettings())


@pytest.mark.parametrize("two_stage", [True, False])
def test_hnsw_with_every_signal_off_searches_all_items(two_stage: bool) -> None:
    off = SearchSettings(vector="hnsw", two_stage=two_stage)
    off = off.with_signal("lexical", on=False).with_signal("semantic", on=False)
    trace = search(CORPUS, "seal pump", off)
    trace.check()
    assert len(trace.stage("vector").ranking) == len(CORPUS)
    assert not trace.stage("items").on
    assert replay(trace, off.replace(k_rrf=1)) == search(CORPUS, "seal pump", off.replace(k_rrf=1))


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        ({"items": 200}, {"items": 150}, "items ranked by 150 chunks"),
        ({"items": 100}, {"items": 60}, ""),
        (_at_depth(40), _at_depth(20), "vector depth 20 with fewer candidates"),
        (_at_depth(40), _at_depth(50), "vector depth above 40"),
        (_at_depth(25), _at_depth(5), ""),
    ],
)
def test_a_graph_that_looked_at_other_candidates_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, a: dict[str, Any], b: dict[str, Any], reason: str
) -> None:
    pytest.importorskip("hnswlib")
    monkeypatch.setattr(assemble, "PROBE", 1)
    graph = {"vector": "hnsw", "hnsw_ef": 30, "hnsw_m": 2, "hnsw_ef_construction": 10}
    one, other = SearchSettings(**graph, **a), SearchSettings(**graph, **b)
    recorded = search(WIDE, "seal pump", one)
    if reason:
        with pytest.raises(NeedsSearch, match=reason):
            replay(recorded, other)
    else:
        assert replay(recorded, other) == search(WIDE, "seal pump", other)


@pytest.fixture
def third() -> Iterator[None]:
    register_index("identifiers", IdentifierIndex)
    yield
    unregister_index("identifiers")


GRAPH = {"vector": "hnsw", "hnsw_ef": 30, "hnsw_m": 2, "hnsw_ef_construction": 10}
graph_settings = st.builds(
    SearchSettings,
    two_stage=st.booleans(),
    signals=st.fixed_dictionaries({"lexical": signal_uses, "semantic": signal_uses}),
    items=st.sampled_from([1, 20, 100, 150]),
    second_stage=st.sampled_from(["hybrid", "semantic"]),
    indexes=st.fixed_dictionaries(dict.fromkeys(("bm25", "vector", "identifiers"), index_uses)),
    fusion=st.sampled_from(["rrf", "minmax", "zscore", "dbsf"]),
    k_rrf=st.sampled_from([0, 60]),
    collapse_duplicates=st.booleans(),
    k=st.sampled_from([1, 20]),
    merge_gap=st.sampled_from([0, 100]),
)


@settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(st.sampled_from(["seal 17", "cold valve 3 250", "zzz"]), graph_settings, graph_settings)
@pytest.mark.parametrize("vector", ["exact", "hnsw"])
def test_replaying_equals_searching_with_a_graph_and_a_third_index(
    third: None, vector: str, query: str, a: SearchSettings, b: SearchSettings
) -> None:
    if vector == "hnsw":
        pytest.importorskip("hnswlib")
        a, b = a.replace(**GRAPH), b.replace(**GRAPH)
    searched = search(WIDE, query, b)
    searched.check()
    assert "identifiers" in [stage.name for stage in searched.stages]
    try:
        replayed = replay(search(WIDE, query, a), b)
    except NeedsSearch:
        return
    replayed.check()
    assert replayed == searched


def test_a_graph_and_a_third_index_are_replayed_at_all(third: None) -> None:
    pytest.importorskip("hnswlib")
    one = SearchSettings(**GRAPH)
    trace = search(WIDE, "seal 17", one)
    assert len(trace.stage("identifiers").ranking) == 1
    for other in (
        one.replace(k_rrf=1),
        one.replace(items=50),
        one.with_index("identifiers", weight=3.0),
        one.with_index("identifiers", on=False),
        one.with_index("vector", depth=5),
        one.replace(second_stage="semantic"),
    ):
        assert replay(trace, other) == search(WIDE, "seal 17", other)
