"""250 golden queries over 50,000 chunks, and a sweep of 100 search-time settings on them.

`pytest -m bench -s tests/bench/test_evaluation_speed.py` prints the figures. Vectors of chunks are surrogates
(embedding them takes an hour); queries are embedded by the packaged model.
"""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch

from core.corpus import Corpus
from core.embedding import load_embedder
from core.evaluation import Evidence, GoldenQuery
from core.evaluation.metrics import per_query
from core.evaluation.results import ResultsCache
from core.evaluation.runner import measure, measure_many
from core.settings import IndexSettings, SearchSettings
from tests.bench.workload import SurrogateEmbedder, documents, queries

pytestmark = [pytest.mark.bench, pytest.mark.model, pytest.mark.timeout(1800)]

CHUNKS, QUERIES = 50_000, 250
BASE = SearchSettings()
POINTS = [
    BASE.with_index("bm25", weight=weight).replace(k_rrf=k_rrf, items=items, merge_gap=gap)
    for weight, k_rrf, items, gap in itertools.product(
        (0.5, 1.0, 2.0, 3.0, 4.0), (10, 60), (20, 50, 100, 200, 400), (0, 200)
    )
]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    embedder = SurrogateEmbedder(load_embedder("all-MiniLM-L6-v2"))
    embedder.embed_query("loads the model")
    torch.set_num_threads(1)
    made = Corpus.from_documents(documents(CHUNKS), IndexSettings(), embedder)
    made.indexes(BASE)
    made.item_index(BASE)
    return made


@pytest.fixture(scope="module")
def golden(corpus: Corpus) -> list[GoldenQuery]:
    random = np.random.default_rng(5)
    made = []
    for number, text in enumerate(queries(QUERIES)):
        chunks = [corpus.chunk(int(at)) for at in random.integers(0, len(corpus), 2)]
        spans = tuple(Evidence(one.document_id, one.start, one.end) for one in chunks)
        made.append(GoldenQuery(str(number), text, spans))
    return made


def told(what: str, begin: float) -> float:
    spent = time.perf_counter() - begin
    print(f"\n{what:<66} {spent:8.1f} s", end="")
    return spent


def test_a_set_and_a_sweep_of_100_settings(
    corpus: Corpus, golden: list[GoldenQuery], tmp_path: Path
) -> None:
    process = psutil.Process()
    memory = process.memory_info().rss
    cache = ResultsCache(tmp_path)
    begin = time.perf_counter()
    for query in golden:
        corpus.embedder.embed_query(query.text)
    told(f"embedding {QUERIES} queries, kept from then on", begin)
    begin = time.perf_counter()
    one = measure(corpus, golden, BASE, cache=cache)
    told(f"{QUERIES} queries over {CHUNKS:,} chunks", begin)
    begin = time.perf_counter()
    many = measure_many(corpus, golden, POINTS, cache=cache, stages=["kept"])
    told(f"{len(POINTS)} search-time settings on them", begin)
    begin = time.perf_counter()
    values = [per_query(each.stage("kept"), "recall", 20) for each in many]
    told("their recall@20", begin)
    grown = (process.memory_info().rss - memory) / 2**20
    print(f"\n{'memory above the corpus, at the end':<66} {grown:8.1f} MiB", end="")
    begin = time.perf_counter()
    again = measure_many(corpus, golden, POINTS, cache=cache, stages=["kept"])
    told("the same again, from disk", begin)
    assert len(POINTS) == 100
    assert len(one.queries) == QUERIES
    # One point is the base but for its gap, on which no rank at this stage depends.
    same = next(at for at, each in enumerate(POINTS) if each.replace(merge_gap=BASE.merge_gap) == BASE)
    assert np.array_equal(values[same], per_query(one.stage("kept"), "recall", 20))
    for each, before in zip(again, values, strict=True):
        assert np.array_equal(per_query(each.stage("kept"), "recall", 20), before)
