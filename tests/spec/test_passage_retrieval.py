"""Passage retrieval in two stages: items first, then chunks of those items only, fused by RRF, merged."""

from __future__ import annotations

import numpy as np
import pytest

from core.corpus import Corpus
from core.errors import NeedsSearch
from core.explanation import explain
from core.pipeline import replay, search
from core.pipeline import run as run_module
from core.settings import ChunkSettings, IndexSettings, SearchSettings
from core.trace import Trace
from core.types import Document
from tests.fakes import HashEmbedder

SENTENCE = IndexSettings(chunking=ChunkSettings(strategy="sentences", size=40))


def document(name: str, *sentences: str) -> Document:
    return Document(name, f"{name}.txt", name, " ".join(sentences))


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    """Four items; chunks of about one sentence."""
    documents = [
        document(
            "pumps",
            "The blue pump leaks at the seal.",
            "Order seal kit 4711 for it.",
            "Pumps run daily.",
        ),
        document("valves", "The valve sticks when it is cold.", "Grease the valve stem weekly."),
        document("travel", "Book trains through the office.", "Receipts go to the desk."),
        document("menu", "Soup on Monday.", "The seal exhibit opens on Friday."),
    ]
    return Corpus.from_documents(documents, SENTENCE, HashEmbedder())


def ids(trace: Trace, stage: str) -> list[str]:
    return [trace.corpus.chunk_id(hit.position) for hit in trace.stage(stage).ranking]


def item_names(trace: Trace, stage: str) -> list[str]:
    return [trace.corpus.item_ids[hit.position] for hit in trace.stage(stage).ranking]


def test_stages_stand_in_pipeline_order_and_hold_their_invariants(corpus: Corpus) -> None:
    trace = search(corpus, "pump seal", SearchSettings())
    trace.check()
    assert [(stage.name, stage.kind) for stage in trace.stages] == [
        ("items.lexical", "signal"),
        ("items.semantic", "project"),
        ("items", "fuse"),
        ("bm25", "search"),
        ("vector", "search"),
        ("fused", "fuse"),
        ("scored", "fuse"),
        ("reranker", "rerank"),
        ("reranked", "fuse"),
        ("kept", "rule"),
        ("passages", "merge"),
    ]


def test_only_chunks_of_the_items_sent_on_are_searched(corpus: Corpus) -> None:
    trace = search(corpus, "pump seal", SearchSettings(items=1))
    assert item_names(trace, "items") == ["pumps"]
    for stage in ("bm25", "vector", "fused", "scored"):
        assert {int(corpus.item_of[hit.position]) for hit in trace.stage(stage).ranking} == {0}, stage


def test_restriction_happens_before_the_depth_is_cut() -> None:
    """A global top-k of the vector index would lose the only good item's chunks."""
    documents = [document(f"noise{n}", "seal seal seal.") for n in range(30)]
    documents.append(
        document("wanted", "A rare gasket is kept in the store.", "The seal of it fits every old pump.")
    )
    corpus = Corpus.from_documents(documents, SENTENCE, HashEmbedder())
    settings = SearchSettings(items=1).with_signal("semantic", on=False)
    settings = settings.with_index("vector", depth=2).with_index("bm25", depth=2)
    trace = search(corpus, "rare gasket seal", settings)
    assert item_names(trace, "items") == ["wanted"]
    wanted = corpus.item_position("wanted")
    assert [int(corpus.item_of[hit.position]) for hit in trace.stage("vector").ranking] == [wanted] * 2
    everywhere = corpus.indexes(settings)["vector"].search("rare gasket seal", 2)
    lost = {hit.position for hit in trace.stage("vector").ranking} - {hit.position for hit in everywhere}
    assert lost, "else a global top-k would have done"


def test_the_semantic_signal_is_the_items_best_chunk(corpus: Corpus) -> None:
    trace = search(corpus, "seal", SearchSettings())
    scores = corpus.matrix @ corpus.embedder.embed_query("seal")
    best = [scores[corpus.first_chunk[i] : corpus.first_chunk[i + 1]].max() for i in range(4)]
    got = {hit.position: hit.score for hit in trace.stage("items.semantic").ranking}
    assert got == pytest.approx(dict(enumerate(best)), abs=1e-6)


def test_the_lexical_signal_sees_title_and_whole_text(corpus: Corpus) -> None:
    assert item_names(search(corpus, "travel", SearchSettings()), "items.lexical") == ["travel"]


def test_score_fusion_is_rrf_of_chunk_rank_and_item_rank(corpus: Corpus) -> None:
    settings = SearchSettings(k_rrf_score=10, passage_weight=2, item_weight=3)
    trace = search(corpus, "pump seal", settings)
    item_rank = {hit.position: hit.rank for hit in trace.stage("items").ranking}
    expected = {
        hit.position: 2 / (10 + hit.rank) + 3 / (10 + item_rank[int(corpus.item_of[hit.position])])
        for hit in trace.stage("fused").ranking
    }
    assert {hit.position: hit.score for hit in trace.stage("scored").ranking} == pytest.approx(expected)


def test_item_weight_zero_keeps_the_fused_order(corpus: Corpus) -> None:
    trace = search(corpus, "pump seal", SearchSettings(item_weight=0))
    assert ids(trace, "scored") == ids(trace, "fused")


def test_neighbours_become_one_passage_with_the_best_score(corpus: Corpus) -> None:
    trace = search(corpus, "pump seal", SearchSettings(items=1, merge_gap=5))
    assert len(trace.passages) == 1
    passage = trace.passages[0]
    assert trace.text_of(passage) == corpus.document(0).text
    assert len(passage.members) == 3
    assert passage.score == trace.stage("kept").ranking.scores[0]


def test_semantic_second_stage_leaves_bm25_out_and_says_so(corpus: Corpus) -> None:
    trace = search(corpus, "pump seal", SearchSettings(second_stage="semantic"))
    stage = trace.stage("bm25")
    assert (stage.on, len(stage.ranking), stage.note) == (False, 0, "the second stage is semantic only")
    assert ids(trace, "fused") == ids(trace, "vector")


def test_one_stage_keeps_the_places_and_says_why_they_are_empty(corpus: Corpus) -> None:
    trace = search(corpus, "pump seal", SearchSettings(two_stage=False))
    trace.check()
    assert not trace.stage("items").on
    assert not trace.stage("scored").on
    assert trace.stage("kept").inputs == ("fused",)


def test_rules_take_duplicates_and_surplus_chunks_out() -> None:
    twins = [
        document("a", "The seal leaks."),
        document("b", "THE  seal leaks."),
        document("c", "A seal."),
    ]
    corpus = Corpus.from_documents(twins, SENTENCE, HashEmbedder())
    plain = search(corpus, "seal leaks", SearchSettings())
    assert len(plain.stage("kept").ranking) == 3
    trace = replay(plain, SearchSettings(collapse_duplicates=True))
    assert len(trace.stage("kept").ranking) == 2
    assert list(trace.stage("kept").removed.values()) == ["same text as the chunk at rank 1"]


def test_at_most_n_chunks_of_an_item(corpus: Corpus) -> None:
    trace = search(corpus, "pump seal", SearchSettings(per_item=1))
    kept = [int(corpus.item_of[hit.position]) for hit in trace.stage("kept").ranking]
    assert len(kept) == len(set(kept)) == 4
    assert "its item already has 1 chunks above it" in trace.stage("kept").removed.values()


@pytest.mark.parametrize("query", ["", "  \t"])
def test_an_empty_query_asks_for_one(corpus: Corpus, query: str) -> None:
    trace = search(corpus, query, SearchSettings())
    trace.check()
    assert trace.notes == ("type a query to search",)
    assert trace.passages == ()


def test_an_empty_collection_says_so() -> None:
    corpus = Corpus.from_documents([], IndexSettings(), HashEmbedder())
    trace = search(corpus, "anything", SearchSettings())
    assert "no chunks" in trace.notes[0]


def test_an_unknown_word_leaves_bm25_empty_and_adds_nothing(corpus: Corpus) -> None:
    trace = search(corpus, "zzqxv", SearchSettings())
    assert len(trace.stage("bm25").ranking) == 0
    assert (trace.stage("fused").ranks[:, 0] == 0).all()


def test_large_collections_record_only_the_items_sent_on(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "RECORD_ALL", 3)
    settings = SearchSettings(items=2)
    restricted = search(corpus, "pump seal", settings)
    assert restricted.record.covered is not None
    monkeypatch.undo()
    assert restricted == search(corpus, "pump seal", settings)
    assert replay(restricted, SearchSettings(items=1)) == search(
        corpus, "pump seal", SearchSettings(items=1)
    )
    with pytest.raises(NeedsSearch, match="items that were not searched"):
        replay(restricted, SearchSettings(items=4))


def test_settings_for_parts_that_are_not_there_are_named(corpus: Corpus) -> None:
    trace = search(corpus, "seal", SearchSettings().with_index("names", weight=3))
    assert trace.notes == ("there is no index names: its settings have no effect",)


def test_every_chunk_has_a_fate(corpus: Corpus) -> None:
    trace = search(corpus, "pump seal", SearchSettings(items=1, k=1))
    kept = int(trace.stage("kept").ranking.positions[0])
    assert explain(trace, kept).lost_at is None
    cut = int(trace.stage("scored").ranking.positions[1])
    story = explain(trace, cut)
    assert story.lost_at == "kept"
    assert "rank 2, and only the first 1 go on" in story.step("kept").lost
    other = int(corpus.first_chunk[2])
    assert explain(trace, other).lost_at == "items"
    assert "lost at Items" in explain(trace, other).sentence
    with pytest.raises(IndexError, match="outside the corpus"):
        explain(trace, len(corpus))


def test_the_arithmetic_shows_the_numbers_of_the_trace(corpus: Corpus) -> None:
    trace = search(corpus, "pump seal", SearchSettings())
    first = int(trace.stage("fused").ranking.positions[0])
    ranks = trace.stage("fused").ranks[0].tolist()
    total = trace.stage("fused").ranking.scores[0]
    assert (
        explain(trace, first)
        .step("fused")
        .arithmetic.startswith(f"1/(60+{ranks[0]}) + 1/(60+{ranks[1]}) = ")
    )
    assert explain(trace, first).step("fused").arithmetic.endswith(f" = {total:.4g}")


def test_term_contributions_sum_to_the_bm25_score(corpus: Corpus) -> None:
    trace = search(corpus, "pump seal", SearchSettings())
    for hit in trace.stage("bm25").ranking:
        terms = explain(trace, hit.position).terms["bm25"]
        assert np.isclose(sum(term.contribution for term in terms), hit.score, rtol=1e-5)
