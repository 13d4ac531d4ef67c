"""Four public sets with the settings of plain parts give the figures measured with plain library calls.

The figures are recall@5, recall@10, recall@20 and nDCG@10. `pytest -m figures` runs all sets, and embeds
some 9,000 chunks the first time; the source code alone runs with the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from core.corpus import Corpus
from core.embedding import load_embedder
from core.evaluation import GoldenQuery, Measured, measure, read_set
from core.evaluation.metrics import per_query
from core.settings import Analyzer, ChunkSettings, IndexSettings, SearchSettings
from core.types import Document
from core.vectors_cache import VectorCache

NEAR = 0.005
PLAIN = Analyzer(tokens="words")
BARE = Analyzer(tokens="words", stem=False)
ONE = SearchSettings(two_stage=False, merge=False)
BM25 = ONE.with_index("vector", on=False)
DENSE = ONE.with_index("bm25", on=False)
NOTEBOOK = ONE.replace(k_rrf=0).with_index("vector", weight=0.8).with_index("bm25", weight=0.2)
WHOLE = ChunkSettings(strategy="fixed", size=20_000)

Figures = tuple[float, float, float, float]
Cut = Callable[[str], list[tuple[int, int]]]


@pytest.fixture
def vectors(pytestconfig: pytest.Config) -> Iterator[VectorCache]:
    """Kept between runs beside pytest's own notes: embedding is nearly all of the time."""
    assert pytestconfig.cache
    cache = VectorCache(pytestconfig.cache.mkdir("figures") / "vectors.db")
    yield cache
    cache.close()


class Measuring:
    """One set, cut and indexed in one way."""

    def __init__(
        self, folder: Path, index: IndexSettings, cache: VectorCache, cut: Cut | None = None
    ) -> None:
        read = read_set(folder)
        self.problems = read.judgements.problems
        self.queries: tuple[GoldenQuery, ...] = read.judgements.queries
        documents: tuple[Document, ...] = read.documents
        if cut:
            documents = tuple(replace(one, chunks=tuple(cut(one.text))) for one in documents)
        self.corpus = Corpus.from_documents(documents, index, load_embedder(index.model), cache)

    def under(self, settings: SearchSettings) -> Measured:
        return measure(self.corpus, self.queries, settings)

    def holds(self, settings: SearchSettings, expected: Figures) -> None:
        stage = self.under(settings).stage("kept")
        found = [stage.recall(5), stage.recall(10), stage.recall(20)]
        found.append(float(per_query(stage, "ndcg", 10).mean()))
        assert found == pytest.approx(expected, abs=NEAR)


@pytest.mark.model
def test_source_code(eval_data: Path, vectors: VectorCache) -> None:
    folder = eval_data / "data" / "cookbook_codebase"
    code = Measuring(folder, IndexSettings(analyzer=PLAIN), vectors)
    assert code.problems == ()
    assert (len(code.corpus.item_ids), len(code.corpus), len(code.queries)) == (90, 737, 248)
    code.holds(BM25, (0.659, 0.768, 0.817, 0.577))
    code.holds(DENSE, (0.676, 0.725, 0.805, 0.583))
    code.holds(ONE, (0.760, 0.841, 0.900, 0.685))
    code.holds(NOTEBOOK, (0.705, 0.766, 0.884, 0.603))
    bare = Measuring(folder, IndexSettings(analyzer=BARE), vectors)
    bare.holds(BM25, (0.636, 0.760, 0.818, 0.575))


@pytest.mark.model
@pytest.mark.bench
@pytest.mark.figures
@pytest.mark.timeout(3600)
def test_abstracts(eval_data: Path, vectors: VectorCache) -> None:
    index = IndexSettings(chunking=WHOLE, analyzer=PLAIN)
    abstracts = Measuring(eval_data / "data" / "cranfield", index, vectors)
    assert [one.split()[:2] for one in abstracts.problems[:2]] == [
        ["document", "471"],
        ["document", "995"],
    ]
    assert (len(abstracts.corpus), len(abstracts.queries)) == (1398, 225)
    abstracts.holds(BM25, (0.292, 0.397, 0.495, 0.382))
    abstracts.holds(DENSE, (0.292, 0.414, 0.531, 0.395))
    abstracts.holds(ONE, (0.316, 0.443, 0.571, 0.426))
