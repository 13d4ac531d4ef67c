"""Filtered search over 50,000 chunks: recall@20 against brute force, and time as a ratio to unfiltered.

Vectors are surrogates: 384 dimensions, 400 clusters of different sizes in 24 latent dimensions, and noise.
A filter passes chunks at random, whole clusters at random, or the clusters that are farthest from the
query. `RANKSCOPE_BENCH_CHUNKS` measures another size. No test fails on a time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from core.indexes import BM25Index, HnswIndex, VectorIndex
from core.protocols import Positions, Vectors
from core.trace import Ranking
from tests.bench.workload import SurrogateEmbedder, documents, queries

pytestmark = [pytest.mark.bench, pytest.mark.timeout(3600)]

N = int(os.environ.get("RANKSCOPE_BENCH_CHUNKS", "50000"))
CLUSTERS, LATENT, WIDTH, ASKED, K = 400, 24, 384, 25, 20
PERCENT = (0.1, 1, 5, 10, 25, 50, 75, 90, 99, 100)

Search = Callable[[int, Positions | None], Ranking]


class Space:
    """Unit vectors in clusters, queries like them, and filters of a given selectivity."""

    def __init__(self) -> None:
        random = np.random.default_rng(20)
        basis = random.standard_normal((LATENT, WIDTH)) / np.sqrt(LATENT)
        centres = random.standard_normal((CLUSTERS, LATENT))
        sizes = random.dirichlet(np.ones(CLUSTERS))

        def drawn(n: int) -> tuple[NDArray[np.int64], Vectors]:
            member = np.sort(random.choice(CLUSTERS, n, p=sizes))
            latent = centres[member] + 0.6 * random.standard_normal((n, LATENT))
            made = latent @ basis + 0.3 * random.standard_normal((n, WIDTH))
            return member, (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)

        self.member, self.matrix = drawn(N)
        self.queries = drawn(ASKED)[1]
        self.centres = (centres @ basis).astype(np.float32)
        self._random = random

    def allowed(self, kind: str, percent: float, query: int) -> Positions:
        wanted = max(1, round(N * percent / 100))
        if kind == "random":
            return np.sort(self._random.choice(N, wanted, replace=False))
        order = self._random.permutation(CLUSTERS)
        if kind == "far":
            order = np.argsort(self.centres @ self.queries[query], kind="stable")
        place = np.empty(CLUSTERS, np.int64)
        place[order] = np.arange(CLUSTERS)
        # The last cluster in is cut, so that every kind passes as many chunks.
        return np.sort(np.argsort(place[self.member], kind="stable")[:wanted])


@pytest.fixture(scope="module")
def space() -> Space:
    return Space()


@pytest.fixture(scope="module")
def exact(space: Space) -> VectorIndex:
    return VectorIndex.from_vectors(SurrogateEmbedder(), space.matrix)


@pytest.fixture(scope="module")
def hnsw(space: Space) -> HnswIndex:
    return HnswIndex.from_vectors(SurrogateEmbedder(), space.matrix)


@pytest.fixture(scope="module")
def bm25() -> BM25Index:
    made = BM25Index()
    made.add_documents([part for d in documents(N) for part in d.text.split("\n\n")])
    made.search("warm", k=1)
    return made


def timed(call: Callable[..., Ranking], *arguments: object) -> tuple[Ranking, float]:
    """What a call gives, and its milliseconds of processor time: other processes do not count."""
    begin = time.thread_time()
    found = call(*arguments)
    return found, (time.thread_time() - begin) * 1000


def measure(name: str, space: Space, kinds: tuple[str, ...], search: Search, brute: Search) -> None:
    """Prints a line for each selectivity and kind; filtered and unfiltered searches alternate."""
    for percent in PERCENT:
        for kind in kinds:
            ours, base, shares = [], [], []
            for query in range(ASKED):
                only = space.allowed(kind, percent, query)
                search(query, None)  # neither pays for what the other finds in the caches
                found, spent = timed(search, query, only)
                ours.append(spent)
                base.append(timed(search, query, None)[1])
                wanted = brute(query, None).within(np.isin(np.arange(N), only)).head(K)
                assert np.isin(found.positions, only).all()
                if len(wanted):
                    shares.append(np.isin(wanted.positions, found.positions).mean())
            recall, least = float(np.mean(shares)), float(np.min(shares))
            spent, whole = float(np.median(ours)), float(np.median(base))
            print(
                f"\n{name:<6} {percent:>5} % {kind:<9} recall@{K} {recall:.4f} (least {least:.2f}) "
                f"{spent:7.2f} ms, {spent / whole:5.2f} of unfiltered {whole:6.2f} ms",
                end="",
            )
            assert recall >= 0.99


def brute_force(space: Space) -> Search:
    scores = space.matrix.astype(np.float64) @ space.queries.T.astype(np.float64)
    return lambda query, only: Ranking.order(np.arange(N), scores[:, query])


def test_exact(space: Space, exact: VectorIndex) -> None:
    def search(query: int, only: Positions | None) -> Ranking:
        return exact.search_vector(space.queries[query], K, only)

    measure("exact", space, ("random", "clusters"), search, brute_force(space))


def test_hnsw(space: Space, hnsw: HnswIndex) -> None:
    def search(query: int, only: Positions | None) -> Ranking:
        return hnsw.search_vector(space.queries[query], K, only)

    measure("hnsw", space, ("random", "clusters", "far"), search, brute_force(space))


def test_bm25(space: Space, bm25: BM25Index) -> None:
    asked = queries(ASKED)

    def search(query: int, only: Positions | None) -> Ranking:
        return bm25.search(asked[query], K, only)

    def brute(query: int, only: Positions | None) -> Ranking:
        return bm25.search(asked[query], N)

    measure("bm25", space, ("random", "clusters"), search, brute)


def test_the_switch_point(space: Space, exact: VectorIndex, hnsw: HnswIndex) -> None:
    """Milliseconds of m rows compared and of c candidates found: what ROWS_PER_CANDIDATE is taken from."""
    graph = hnsw._grown()
    compared, found = [], []
    for percent in (2, 5, 10, 20, 30):
        m = round(N * percent / 100)
        spent = []
        for query in space.queries:
            # Others each time: rows that are in the processor's cache already take a third of the time.
            only = space.allowed("random", percent, 0)
            spent.append(timed(exact.search_vector, query, K, only)[1])
        compared.append(float(np.median(spent)) / m)
        print(f"\nexact  {m:>7} rows       {np.median(spent):7.2f} ms", end="")
    for candidates in (300, 600, 1200, 2400, 4800):
        spent = []
        for query in space.queries:
            begin = time.thread_time()
            assert graph.nearest(query, candidates) is not None
            spent.append((time.thread_time() - begin) * 1000)
        found.append(float(np.median(spent)) / candidates)
        print(f"\ngraph  {candidates:>7} candidates {np.median(spent):7.2f} ms", end="")
    ratio = np.median(found) / np.median(compared)
    print(f"\none candidate takes as long as {ratio:.1f} rows", end="")
    assert ratio > 0
