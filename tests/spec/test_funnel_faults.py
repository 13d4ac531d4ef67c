"""A fault put into a search that works: the funnel names the stage. And on every set of golden queries,
what the stages lose adds up to what recall misses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from core.corpus import Corpus
from core.documents import ListedDocuments
from core.evaluation import GoldenQuery, golden_chunks, measure, read_judgements
from core.evaluation.fates import Fate, fates
from core.evaluation.forms import read_set
from core.evaluation.funnel import Funnel, measure_funnel
from core.loading import LoadOptions, load
from core.pipeline import search
from core.protocols import Scores
from core.reranking import register_reranker, unregister_reranker
from core.sample import sample_files
from core.settings import ChunkSettings, IndexSettings, SearchSettings
from core.types import Document
from tests.fakes import HashEmbedder

JUDGED = Path(__file__).resolve().parents[2] / "data" / "sample_queries.jsonl"
HEALTHY = SearchSettings()
ONE_STAGE = SearchSettings(two_stage=False)


def corpus_of(documents: Sequence[Document], chunks: ChunkSettings | None = None) -> Corpus:
    settings = IndexSettings(chunking=chunks or ChunkSettings())
    return Corpus.from_documents(documents, settings, HashEmbedder(512))


@pytest.fixture(scope="module")
def documents() -> list[Document]:
    options = LoadOptions(records="items")
    return [one for name, data in sample_files() for one in load(data, name, options).documents]


@pytest.fixture(scope="module")
def queries(documents: list[Document]) -> tuple[GoldenQuery, ...]:
    return read_judgements(JUDGED.read_text("utf-8"), ListedDocuments(documents)).queries


@pytest.fixture(scope="module")
def corpus(documents: list[Document]) -> Corpus:
    return corpus_of(documents)


def lost_more(broken: Funnel, healthy: Funnel) -> str:
    """The stage whose loss grew most."""
    return max(broken.losses, key=lambda stage: broken.losses[stage] - healthy.losses[stage])


def test_a_chunker_that_cuts_spans(
    documents: list[Document], queries: tuple[GoldenQuery, ...], corpus: Corpus
) -> None:
    healthy = measure_funnel(corpus, queries, HEALTHY).spans
    windows = corpus_of(documents, ChunkSettings(strategy="fixed", size=40))
    broken = measure_funnel(windows, queries, HEALTHY).spans
    assert broken.all == broken.located == healthy.all
    assert healthy.cut < 0.1 * healthy.all
    assert broken.cut > 0.9 * broken.all
    assert broken.best < 0.6
    assert len(broken.queries) > 0.85 * sum(query.answerable for query in queries)


def test_an_index_with_depth_5(queries: tuple[GoldenQuery, ...], corpus: Corpus) -> None:
    healthy = measure_funnel(corpus, queries, HEALTHY)
    shallow = measure_funnel(corpus, queries, HEALTHY.with_index("bm25", depth=5))
    assert shallow.bar("bm25").passed < 0.8 * healthy.bar("bm25").passed
    assert (
        max(shallow.bar("bm25").causes, key=shallow.bar("bm25").causes.__getitem__) == "below its depth"
    )
    assert shallow.bar("vector") == healthy.bar("vector")

    alone = HEALTHY.with_index("vector", on=False)
    broken = measure_funnel(corpus, queries, alone.with_index("bm25", depth=5))
    assert lost_more(broken, measure_funnel(corpus, queries, alone)) == "indexes"
    assert broken.worst is broken.bar("indexes")
    assert "below every index's depth" in broken.bar("indexes").causes


def test_a_reranker_that_inverts(
    queries: tuple[GoldenQuery, ...],
    corpus: Corpus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Inverting:
        name, model_id, listwise, paid = "inverting", "m1", True, False

        def scores(self, query: str, texts: Sequence[str]) -> Scores:
            return Scores(np.arange(len(texts), dtype=np.float64))

        def estimate(self, query: str, texts: Sequence[str]) -> float:
            return 0.0

    monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path))  # scores are kept there
    healthy = measure_funnel(corpus, queries, HEALTHY)
    register_reranker("inverting", lambda model: Inverting())
    try:
        settings = HEALTHY.replace(rerank="inverting", rerank_depth=100)
        broken = measure_funnel(corpus, queries, settings)
        narrow = measure_funnel(corpus, queries, settings.replace(rerank_depth=20))
        narrower = measure_funnel(corpus, queries, settings.replace(rerank_depth=5))
    finally:
        unregister_reranker("inverting")
    assert lost_more(broken, healthy) == "reranker"
    assert broken.worst is broken.bar("reranker")
    assert set(broken.bar("reranker").causes) <= {"pushed out", "below the rerank depth"}
    assert broken.bar("reranker").causes["pushed out"] > 0.8 * healthy.bar("kept").passed
    # All 20 that are reranked are kept, in whatever order.
    assert narrow.bar("kept").passed == healthy.bar("kept").passed
    assert set(narrower.bar("reranker").causes) == {"below the rerank depth"}
    assert healthy.bar("kept").passed > narrower.bar("kept").passed > 0


def test_one_item_sent_on(queries: tuple[GoldenQuery, ...], corpus: Corpus) -> None:
    healthy = measure_funnel(corpus, queries, HEALTHY)
    broken = measure_funnel(corpus, queries, HEALTHY.replace(items=1))
    assert lost_more(broken, healthy) == "items"
    assert broken.worst is broken.bar("items")
    assert healthy.ceiling is not None
    assert healthy.ceiling.at(1)[0] == pytest.approx(broken.bar("items").lost_weight, abs=1e-12)


def test_one_chunk_of_each_item(queries: tuple[GoldenQuery, ...], corpus: Corpus) -> None:
    healthy = measure_funnel(corpus, queries, HEALTHY)
    broken = measure_funnel(corpus, queries, HEALTHY.replace(per_item=1))
    assert lost_more(broken, healthy) == "rules"
    assert broken.worst is broken.bar("rules")
    assert set(broken.bar("rules").causes) == {"its item's share was used up"}


def test_a_document_that_is_missing(documents: list[Document], queries: tuple[GoldenQuery, ...]) -> None:
    asked = [one.document_id for query in queries for one in query.evidence]
    gone = max(set(asked), key=asked.count)
    broken = measure_funnel(corpus_of([one for one in documents if one.id != gone]), queries, HEALTHY)
    bar = broken.bar("corpus")
    assert bar.lost == asked.count(gone)
    assert bar.causes == {"its document is missing": bar.lost}
    assert bar.queries == tuple(
        query.id for query in queries if any(one.document_id == gone for one in query.evidence)
    )
    assert broken.spans.missing == bar.lost


def test_an_index_of_weight_0(queries: tuple[GoldenQuery, ...], corpus: Corpus) -> None:
    healthy = measure_funnel(corpus, queries, ONE_STAGE)
    broken = measure_funnel(
        corpus, queries, ONE_STAGE.with_index("vector", weight=0.0).with_index("bm25", weight=0.0)
    )
    assert lost_more(broken, healthy) == "fused"
    assert broken.bar("fused").lost == broken.bar("indexes").passed
    assert set(broken.bar("fused").causes) == {"only indexes of weight 0 list it"}


SETTINGS = {
    "two stages": HEALTHY,
    "one stage": ONE_STAGE,
    "few items, and rules": SearchSettings(items=5, per_item=2, collapse_duplicates=True),
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_losses_are_failures_on_the_sample(
    queries: tuple[GoldenQuery, ...], corpus: Corpus, settings: SearchSettings
) -> None:
    check_losses(corpus, queries, settings)


@pytest.mark.parametrize(
    "name", ["cookbook_codebase", "cranfield", "legalbench_contractnli", "chunking_evaluation"]
)
def test_losses_are_failures_on_every_set(eval_data: Path, name: str) -> None:
    given = read_set(eval_data / "data" / name)
    corpus = corpus_of(given.documents)
    for settings in SETTINGS.values():
        check_losses(corpus, given.judgements.queries, settings)


def check_losses(corpus: Corpus, queries: Sequence[GoldenQuery], settings: SearchSettings) -> None:
    measured = measure(corpus, queries, settings)
    kept = measured.stage("kept")
    told: dict[int, list[Fate]] = {5: [], settings.k: []}
    for query in measured.queries:
        trace, golden = search(corpus, query.text, settings), golden_chunks(corpus, query)
        for k, every in told.items():
            every += fates(trace, golden, query, k)
    for k, every in told.items():
        funnel = Funnel.of(every)
        assert 0 < 1 - kept.recall(k) < 1
        assert math.fsum(funnel.losses.values()) == pytest.approx(1 - kept.recall(k), abs=1e-12)
        assert funnel.queries == len(measured.queries)
        assert len(funnel.fates) == sum(map(len, kept.ranks))
