"""Approximate vector search over an HNSW graph (hnswlib), with its loss against exact search measured.

Malkov and Yashunin, Efficient and robust approximate nearest neighbor search using Hierarchical
Navigable Small World graphs (2016). `m` links a node, `ef_construction` candidates while building,
`ef` candidates while searching.
"""

from __future__ import annotations

import json
import math
import tempfile
import threading
import zlib
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from core.errors import RankscopeError, SettingsError
from core.indexes.checks import as_mask, check_allowed, check_k
from core.indexes.vectors import VectorIndex, checked_matrix, checked_vector, cosines
from core.protocols import Embedder, Positions, Progress, Vectors
from core.trace import Ranking

_FORMAT = 1
_SPACE = "cosine"
_BLOCK = 1_000
_SEED = 20_231_104
_ROUNDING = 1e-5
ROWS_PER_CANDIDATE = 6
"""How many rows an exact search compares while the graph finds one more candidate: 5 that lie anywhere, 7 that
lie side by side (`tests/bench/test_filtered_search.py`)."""


@lru_cache(maxsize=1)
def unavailable_reason() -> str:
    """Why hnswlib cannot be used here; empty when it can. The exact index serves in its place."""
    try:
        import hnswlib  # noqa: F401
    except ImportError as error:
        return (
            f"HNSW search needs hnswlib, which cannot be imported ({error}); install a C++ compiler and "
            "`pip install hnswlib`. Vectors are searched exactly meanwhile."
        )
    return ""


class HnswIndex(VectorIndex):
    """Vector index that looks at a part of the vectors only; interface and scores of `VectorIndex`.

    The scores of what the graph finds are the exact cosines. A search with as many candidates (ef, or k
    where that is more) as there are chunks is exact.

    Restricted by `allowed`, m of n chunks, the graph is asked for so many of the nearest chunks that as many
    of them are allowed as an unrestricted search has candidates; where fewer are, since what is allowed lies
    away from the query, once more by their share, and then the search is exact. It is exact at once where
    the graph would be asked for more than m / 6: one of its candidates takes as long as 5 to 7 rows compared.
    So the switch is at m = √(6 · candidates · n), about: with ef 300 at 21 % of 50,000 chunks, and at 5 % of
    a million. Over 50,000 surrogate vectors in clusters, recall@20 is 1.000 at 0.1 % to 100 %, whether what
    is allowed has to do with the query or not; the slowest takes 1.3 times an exact search of them all.

    The graph is built with one thread and a fixed seed, so that the same vectors give the same graph and the
    same rankings; n threads would build about n times faster, and differently each time. It holds a second
    copy of the vectors in memory. Vectors added later join it at the next search.
    Raises RankscopeError when hnswlib is missing, SettingsError for m, ef or ef_construction too low.
    """

    def __init__(
        self,
        embedder: Embedder,
        m: int = 16,
        ef_construction: int = 200,
        ef: int = 300,
        seed: int = _SEED,
        name: str = "vector",
    ) -> None:
        if reason := unavailable_reason():
            raise RankscopeError(reason)
        super().__init__(embedder, name)
        for label, value, least in (("M", m, 2), ("ef_construction", ef_construction, 1), ("ef", ef, 1)):
            if value < least:
                raise SettingsError(f"HNSW {label} is {value}; it must be at least {least}")
        self.m, self.ef_construction, self.ef, self.seed = m, ef_construction, ef, seed
        self._graph = _Graph(embedder.dimension, m, ef_construction, seed)
        self._shared = False

    @classmethod
    def from_vectors(
        cls,
        embedder: Embedder,
        matrix: Vectors,
        name: str = "vector",
        m: int = 16,
        ef_construction: int = 200,
        ef: int = 300,
        seed: int = _SEED,
        progress: Progress | None = None,
    ) -> Self:
        """An index over prepared unit vectors, shape (n, d), built at once.

        `progress` hears of (vectors in the graph, n) and may stop the work by raising.
        Raises EmbeddingError when the width is not the embedder's.
        """
        made = cls(embedder, m, ef_construction, ef, seed, name)
        made._matrix = checked_matrix(matrix, embedder)
        made._graph.add(made._matrix, progress)
        return made

    def with_ef(self, ef: int) -> HnswIndex:
        """The same index searching with another `ef`; nothing is built again."""
        made = HnswIndex(self.embedder, self.m, self.ef_construction, ef, self.seed, self.name)
        with self._lock:
            made._matrix, made._graph = self.matrix, self._grown()
            self._shared = made._shared = True
        return made

    def extended(self, vectors: Vectors) -> HnswIndex:
        """A new index with unit vectors, shape (n, d), after those of this one, which stays as it is."""
        made = self.with_ef(self.ef)
        made._pending = [checked_matrix(vectors, self.embedder)]
        return made

    def search_vector(
        self, vector: Vectors, k: int = 1, allowed: Positions | None = None, ef: int | None = None
    ) -> Ranking:
        """`search` for a unit vector, shape (d,); `ef` for this search only (the index's when None)."""
        k, vector = check_k(k), checked_vector(vector, self.embedder)
        # The graph hands over all candidates that it keeps, not the k it thinks nearest: so a
        # smaller k gives the head of the same ranking, and ties are cut by position.
        candidates = max(k, ef or self.ef)
        with self._lock:
            matrix = self.matrix
            only = check_allowed(allowed, len(matrix))
            if only is None:
                found = self._nearest(vector, k, candidates)
            else:
                found = self._nearest_allowed(vector, k, candidates, only)
        if found is None:
            return super().search_vector(vector, k, only)
        return Ranking.order(found, cosines(matrix[found], vector), k)

    def _nearest(self, vector: Vectors, k: int, candidates: int) -> Positions | None:
        """The `k` nearest that the graph finds, and any as near; None where an exact search must do."""
        if candidates >= len(self) or (near := self._grown().nearest(vector, candidates)) is None:
            return None
        return _first(*near, k)

    def _nearest_allowed(
        self, vector: Vectors, k: int, candidates: int, only: Positions
    ) -> Positions | None:
        """As `_nearest`, of those allowed."""
        share = len(only) / max(len(self), 1)
        # Four standard deviations, so that a filter that has nothing to do with the query is met at once.
        wanted = candidates + 4 * math.sqrt(candidates * (1 - share))
        mask = as_mask(only, len(self))
        for _ in range(2):
            if not share or wanted / share * ROWS_PER_CANDIDATE > len(only):
                return None
            near = self._grown().nearest(vector, math.ceil(wanted / share))
            if near is None:
                return None
            labels, distances = near
            kept = mask[labels]
            if np.count_nonzero(kept) >= candidates:
                return _first(labels[kept], distances[kept], k)
            share = np.count_nonzero(kept) / len(kept)
        return None

    def measured_recall(self, queries: Vectors, k: int, ef: int | None = None) -> float:
        """Share of the exact first `k` that the graph finds, the mean over unit `queries`, shape (q, d).

        1 − this is the loss against exact search. A chunk as near as the k-th exact one counts as found.
        Raises ValueError without queries or chunks to measure on.
        """
        k = min(check_k(k), len(self))
        if not k or not len(queries):
            raise ValueError("recall is measured on at least one query and one chunk")
        shares = []
        for query in queries:
            exact = super().search_vector(query, k).scores
            found = self.search_vector(query, k, ef=ef).scores
            shares.append(np.count_nonzero(found >= exact[-1]) / k)
        return float(np.mean(shares))

    def save(self, folder: Path) -> None:
        """Writes the graph and what it was made of; the vectors themselves are the caller's to keep."""
        folder.mkdir(parents=True, exist_ok=True)
        described, stored = folder / "hnsw.json", folder / "hnsw.bin"
        described.unlink(missing_ok=True)
        with self._lock:
            description = self._description(self.matrix)
            self._grown().save(stored)
        description["file"] = _crc(stored.read_bytes())
        described.write_text(json.dumps(description), encoding="utf-8")

    @classmethod
    def load(
        cls,
        folder: Path,
        embedder: Embedder,
        matrix: Vectors,
        m: int = 16,
        ef_construction: int = 200,
        ef: int = 300,
        seed: int = _SEED,
        name: str = "vector",
    ) -> Self:
        """The saved graph over the `matrix` it was built from.

        Raises RankscopeError when the files are missing or damaged, or when model, width, parameters
        or vectors are not those it was saved with: index again. hnswlib itself loads all of that
        without a word and then answers wrongly or crashes, so everything is compared first.
        """
        made = cls(embedder, m, ef_construction, ef, seed, name)
        made._matrix = checked_matrix(matrix, embedder)
        try:
            found = json.loads((folder / "hnsw.json").read_text(encoding="utf-8"))
            wanted = made._description(made._matrix) | {"file": _crc((folder / "hnsw.bin").read_bytes())}
        except (OSError, ValueError) as error:
            raise RankscopeError(
                f"HNSW index in {folder} cannot be read ({error}); index again"
            ) from error
        if found != wanted:
            known = found if isinstance(found, dict) else {}
            other = ", ".join(key for key in wanted if known.get(key) != wanted[key]) or "fields"
            raise RankscopeError(
                f"HNSW index in {folder} is damaged, or was made with another {other} than now in use; "
                "index again"
            )
        made._graph.load(folder / "hnsw.bin", len(made._matrix))
        return made

    def _description(self, matrix: Vectors) -> dict[str, Any]:
        return {
            "format": _FORMAT,
            "space": _SPACE,
            "dimension": self.embedder.dimension,
            "model": self.embedder.model_id,
            "M": self.m,
            "ef_construction": self.ef_construction,
            "seed": self.seed,
            "count": len(matrix),
            "vectors": _crc(matrix.data),
        }

    def _grown(self) -> _Graph:
        """The graph over all vectors added so far; call it with the lock held."""
        matrix = self.matrix
        if self._graph.count < len(matrix):
            if self._shared:  # with_ef and extended share it as long as nobody adds.
                self._graph = self._graph.copy()
                self._shared = False
            self._graph.add(matrix[self._graph.count :], None)
        return self._graph


class _Graph:
    """One hnswlib index, labels = positions. hnswlib crashes the process when misused; hence:

    `init_index` follows construction at once, room is made before each add, a file is only loaded into
    a new object, ef is set again for each query, and one lock is around all of it.
    """

    def __init__(self, dimension: int, m: int, ef_construction: int, seed: int) -> None:
        self._arguments = (dimension, m, ef_construction, seed)
        self._lock = threading.Lock()
        self._room = 0
        self.count = 0
        self._index = self._new(0)

    def add(self, rows: Vectors, progress: Progress | None) -> None:
        """Appends unit vectors in blocks."""
        total = self.count + len(rows)
        with self._lock:
            if total > self._room:
                self._room = max(total, 2 * self.count)
                self._index.resize_index(self._room)
        for start in range(0, len(rows), _BLOCK):
            block = rows[start : start + _BLOCK]
            with self._lock:
                labels = np.arange(self.count, self.count + len(block))
                self._index.add_items(block, labels, num_threads=1)
                self.count += len(block)
            if progress:
                progress(self.count, total)

    def nearest(self, query: Vectors, ef: int) -> tuple[Positions, NDArray[np.float32]] | None:
        """Labels of `ef` near vectors, and their distances, ascending; None when the graph reaches fewer."""
        with self._lock:
            self._index.set_ef(ef)
            try:
                labels, distances = self._index.knn_query(query, k=ef, num_threads=1)
            except RuntimeError:
                return None
        return labels[0].astype(np.int64), distances[0]

    def save(self, path: Path) -> None:
        with self._lock:
            self._index.save_index(str(path))

    def load(self, path: Path, count: int) -> None:
        """Takes over a saved graph of `count` vectors. Raises RankscopeError when it is another one."""
        index = self._new(None)
        try:
            index.load_index(str(path), max_elements=count)
        except RuntimeError as error:
            raise RankscopeError(f"HNSW index {path} cannot be read ({error}); index again") from error
        if index.get_current_count() != count:
            raise RankscopeError(
                f"HNSW index {path} holds {index.get_current_count()} vectors, not {count}; index again"
            )
        self._index, self.count, self._room = index, count, count

    def copy(self) -> _Graph:
        made = _Graph(*self._arguments)
        if self.count:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "hnsw.bin"
                self.save(path)
                made.load(path, self.count)
        return made

    def _new(self, room: int | None) -> Any:
        """An initialised index with room, or (None) an empty shell to load a file into."""
        import hnswlib

        dimension, m, ef_construction, seed = self._arguments
        index = hnswlib.Index(_SPACE, dimension)
        if room is not None:
            index.init_index(max(room, 1), M=m, ef_construction=ef_construction, random_seed=seed)
        return index


def _first(labels: Positions, distances: NDArray[np.float32], k: int) -> Positions:
    """The first `k` labels, and those as near as the k-th.

    hnswlib sums in another order than we do: what it holds to be equal within rounding is kept.
    """
    return labels[: np.searchsorted(distances, distances[k - 1] + _ROUNDING, side="right")]


def _crc(data: bytes | memoryview) -> int:
    return zlib.crc32(data)
