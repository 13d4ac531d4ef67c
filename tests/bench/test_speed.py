"""Times and memory at 5,000 and 50,000 chunks, as ratios to the raw library calls doing the same work.

`pytest -m bench -s tests/bench` prints a table; no test fails on a time.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bm25s
import hnswlib
import pytest
from streamlit.testing.v1 import AppTest

import core.embedding
from core.collection import create, remember
from core.corpus import Corpus, build_corpus
from core.embedding import load_embedder
from core.loading import load
from core.pipeline import replay, search
from core.report.export import trace_to_dict
from core.settings import DEFAULT_MODEL, ChunkSettings, IndexSettings, SearchSettings, Settings
from tests.bench.workload import SurrogateEmbedder, documents, queries

pytestmark = [pytest.mark.bench, pytest.mark.model, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
SIZES = [5_000, 50_000]
ROWS: list[dict[str, Any]] = []


def milliseconds(call: Callable[[], Any], repeat: int = 1) -> float:
    """The median of `repeat` calls."""
    spent = []
    for _ in range(repeat):
        begin = time.perf_counter()
        call()
        spent.append((time.perf_counter() - begin) * 1000)
    return statistics.median(spent)


def report(n: int, what: str, ours: float, raw: float | None = None, unit: str = "ms") -> None:
    row = {"chunks": n, "what": what, "ours": round(ours, 2), "unit": unit}
    if raw is not None:
        row |= {"raw": round(raw, 2), "ratio": round(ours / raw, 3)}
    ROWS.append(row)
    told = f" raw {raw:10.2f} ratio {ours / raw:5.2f}" if raw is not None else ""
    print(f"\n{n:>7} {what:<48} {ours:10.2f} {unit}{told}", end="")


@pytest.fixture(scope="module", autouse=True)
def written() -> Iterator[None]:
    yield
    if target := os.environ.get("RANKSCOPE_BENCH_JSON"):
        Path(target).write_text(json.dumps(ROWS, indent=1), encoding="utf-8")


class Made:
    """One corpus, and raw bm25s and hnswlib indexes over the same tokens and vectors."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.embedder = SurrogateEmbedder(load_embedder("all-MiniLM-L6-v2"))
        self.embedder.embed_query("warm")
        self.documents = documents(n)
        self.settings = IndexSettings()
        self.hnsw = SearchSettings(two_stage=False, vector="hnsw")
        begin = time.perf_counter()
        self.corpus = Corpus.from_documents(self.documents, self.settings, self.embedder)
        self.corpus.indexes(self.hnsw)
        self.ours = (time.perf_counter() - begin) * 1000
        self.texts = [self.corpus.chunk(p).indexed_text for p in range(len(self.corpus))]
        begin = time.perf_counter()
        vectors = self.embedder.embed(self.texts)
        tokens = [self.settings.analyzer.tokens_of(text) for text in self.texts]
        self.raw_bm25 = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
        self.raw_bm25.index(tokens, show_progress=False)
        self.raw_hnsw = hnswlib.Index("cosine", self.embedder.dimension)
        self.raw_hnsw.init_index(n, M=16, ef_construction=200, random_seed=100)
        self.raw_hnsw.add_items(vectors)
        self.raw_hnsw.set_ef(300)
        self.raw = (time.perf_counter() - begin) * 1000


@pytest.fixture(scope="module", params=SIZES)
def made(request: pytest.FixtureRequest) -> Made:
    return Made(request.param)


def test_index_time(made: Made) -> None:
    report(made.n, "index (tokens, BM25, HNSW; surrogate vectors)", made.ours, made.raw)
    assert len(made.corpus) == made.n


def test_hybrid_query(made: Made) -> None:
    asked = queries(60)
    search(made.corpus, asked[0], made.hnsw)

    def raw(query: str) -> None:
        made.raw_hnsw.knn_query(made.embedder.embed_query(query), k=150)
        made.raw_bm25.retrieve([made.settings.analyzer.tokens_of(query)], k=150, show_progress=False)

    # Interleaved, so that a busy machine slows both alike.
    ours, base = [], []
    for query in asked:
        base.append(milliseconds(lambda query=query: raw(query)))
        ours.append(milliseconds(lambda query=query: search(made.corpus, query, made.hnsw)))
    report(
        made.n, "hybrid query, bm25 + hnsw + embedding", statistics.median(ours), statistics.median(base)
    )
    assert search(made.corpus, asked[0], made.hnsw).passages


def test_two_stage_query_by_stage(made: Made) -> None:
    settings = SearchSettings()
    asked = queries(20)
    search(made.corpus, asked[0], settings)
    traces = []
    report(
        made.n,
        "two-stage query, exact",
        statistics.median(
            milliseconds(lambda q=q: traces.append(search(made.corpus, q, settings))) for q in asked
        ),
    )
    for name in traces[0].record.milliseconds:
        report(made.n, f"  of it {name}", statistics.median(t.record.milliseconds[name] for t in traces))
    assert traces[0].stage("scored").on


def test_moving_a_slider(made: Made) -> None:
    trace = search(made.corpus, queries(1)[0], SearchSettings())
    moves = {
        "k_rrf": SearchSettings(k_rrf=10),
        "a weight": SearchSettings().with_index("bm25", weight=2.0),
        "an item weight": SearchSettings().with_signal("lexical", weight=2.0),
        "merge gap": SearchSettings(merge_gap=500),
        "items": SearchSettings(items=20),
        "fusion": SearchSettings(fusion="minmax"),
    }
    for name, settings in moves.items():
        spent = milliseconds(lambda s=settings: trace_to_dict(replay(trace, s), 50), 15)
        report(made.n, f"slider: {name} (replay and rows to draw)", spent)
        assert replay(trace, settings) == search(made.corpus, trace.query, settings)


def test_adding_100_chunks(made: Made) -> None:
    more = [*made.documents, *documents(100, first=1_000_000)]
    exact = SearchSettings(two_stage=False)
    grown = None

    def add() -> None:
        nonlocal grown
        grown = Corpus.from_documents(more, made.settings, made.embedder, previous=made.corpus)
        search(grown, "warm", exact)

    def raw() -> None:
        texts = made.texts + [c for d in more[-5:] for c in d.text.split("\n\n")]
        made.embedder.embed(texts[-100:])
        raw_index = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
        raw_index.index([made.settings.analyzer.tokens_of(text) for text in texts], show_progress=False)

    base = milliseconds(raw)
    report(made.n, "add 100 chunks, searchable (raw: BM25 made anew)", milliseconds(add), base)
    assert grown is not None
    assert len(grown) == made.n + 100


MEMORY = """
import sys, threading, time
import bm25s, hnswlib, psutil
from core.corpus import Corpus
from core.pipeline import search
from core.settings import DEFAULT_MODEL, ChunkSettings, IndexSettings, SearchSettings, Settings
from tests.bench.workload import SurrogateEmbedder, documents, queries
n, ours = int(sys.argv[1]), sys.argv[2] == "ours"
embedder, given, analyzer = SurrogateEmbedder(), documents(n), IndexSettings().analyzer
rss = lambda: psutil.Process().memory_info().rss
before = peak = rss()
done = False
def watch():
    global peak
    while not done:
        peak = max(peak, rss())
        time.sleep(0.005)
watcher = threading.Thread(target=watch); watcher.start()
if ours:
    corpus = Corpus.from_documents(given, IndexSettings(), embedder)
    search(corpus, queries(1)[0], SearchSettings(two_stage=False, vector="hnsw"))
else:
    texts = [part for d in given for part in d.text.split("\\n\\n")]
    vectors = embedder.embed(texts)
    index = bm25s.BM25(); index.index([analyzer.tokens_of(t) for t in texts], show_progress=False)
    graph = hnswlib.Index("cosine", embedder.dimension)
    graph.init_index(n, M=16, ef_construction=200); graph.add_items(vectors)
done = True; watcher.join()
print((peak - before) / 2**20)
"""


@pytest.mark.parametrize("n", SIZES)
def test_peak_memory(n: int) -> None:
    def run(whose: str) -> float:
        done = subprocess.run(
            [sys.executable, "-c", MEMORY, str(n), whose], capture_output=True, text=True, check=True
        )
        return float(done.stdout.split()[-1])

    ours, raw = run("ours"), run("raw")
    report(n, "peak memory above the documents", ours, raw, "MiB")
    assert ours > 0


@pytest.mark.parametrize("n", SIZES)
def test_a_slider_on_the_page(n: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole page drawn again on the server after a slider moved: what a person waits for."""
    monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path))
    monkeypatch.setitem(core.embedding._loaded, DEFAULT_MODEL, SurrogateEmbedder(model_id=DEFAULT_MODEL))
    remember("sample", "done")
    collection = create("Large")
    for document in documents(n):
        data = document.text.encode()
        collection.add(load(data, document.name), document.name, len(data))
    settings = Settings(IndexSettings(chunking=ChunkSettings("fixed", size=700)), SearchSettings())
    collection.save_settings(settings)
    chunks = len(build_corpus(collection, settings.index))
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=600)
    page.query_params["collection"] = "Large"
    page.query_params["q"] = queries(1)[0]
    page.run()
    assert not page.exception

    def move(key: str, value: int) -> None:
        box = next(one for one in page.number_input if one.key.startswith(f"{key}_exact_"))
        box.set_value(value).run()

    for key in ("set_k_rrf", "set_indexes_bm25_weight", "set_merge_gap", "set_items"):
        spent = [milliseconds(lambda v=value, k=key: move(k, v)) for value in range(20, 30)]
        report(chunks, f"page redrawn on the server: {key[4:]}", statistics.median(spent))
        assert page.session_state["rs_change"].startswith("Recomputed from the recorded search")
