"""Exact vector search: the cosine of the query with every chunk."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from core.errors import EmbeddingError
from core.indexes.checks import check_allowed, check_k, check_query, indexed_texts
from core.protocols import Embedder, Positions, Vectors
from core.trace import Ranking
from core.types import Chunk

_BATCH = 256
_GATHERED = 512
"""Rows that a restricted search copies at once: more fall out of the processor's cache, and take twice as long."""


def cosines(matrix: Vectors, query: Vectors) -> NDArray[np.float32]:
    """Cosines of unit rows with a unit query, shape (n,), cut to [-1, 1] against rounding.

    Each row is summed by itself (`einsum`), so a chunk has the same score to the last bit in any
    subset, at any size and in every index over these vectors. A matrix product groups rows by what
    stands beside them and gives other last digits for the same chunk: ties and replays would differ.
    """
    scores = np.einsum("ij,j->i", matrix, query)
    return np.clip(scores, -1, 1, out=scores)


def cosines_of(matrix: Vectors, positions: Positions, query: Vectors) -> NDArray[np.float32]:
    """`cosines` of the rows at `positions`, shape (len(positions),): the same to the last bit.

    Up to half of the rows are compared by themselves, block by block; more in place, which takes less
    time than to gather them. No part of the matrix is copied but one block.
    """
    if 2 * len(positions) > len(matrix):
        return cosines(matrix, query)[positions]
    scores = np.empty(len(positions), np.float32)
    for start in range(0, len(positions), _GATHERED):
        block = positions[start : start + _GATHERED]
        scores[start : start + _GATHERED] = cosines(matrix[block], query)
    return scores


def checked_matrix(matrix: Vectors, embedder: Embedder) -> Vectors:
    """The matrix as contiguous float32 rows (no copy of what is so already, memory-mapped or not).

    Raises EmbeddingError when it is not (n, embedder.dimension).
    """
    if matrix.ndim != 2 or matrix.shape[1] != embedder.dimension:
        width = matrix.shape[1] if matrix.ndim == 2 else f"shape {matrix.shape}"
        raise EmbeddingError(
            f"vectors have width {width}, but {embedder.model_id} gives width {embedder.dimension}; "
            "index again"
        )
    return np.ascontiguousarray(matrix, dtype=np.float32)


class VectorIndex:
    """Ranking of all chunks by the cosine of their vector with the query's.

    Every chunk has a rank: a cosine of 0 is a value like any other. Vectors are unit vectors. Any
    method may be called from any thread; a search sees all chunks of an `add_documents` or none.
    """

    def __init__(self, embedder: Embedder, name: str = "vector") -> None:
        self.name = name
        self.embedder = embedder
        self._lock = threading.RLock()
        self._matrix: Vectors = np.zeros((0, embedder.dimension), np.float32)
        self._pending: list[Vectors] = []

    @classmethod
    def from_vectors(cls, embedder: Embedder, matrix: Vectors, name: str = "vector") -> Self:
        """An index over prepared unit vectors, shape (n, d), float32; used as they are, not copied.

        Raises EmbeddingError when their width is not the embedder's.
        """
        made = cls(embedder, name)
        made._matrix = checked_matrix(matrix, embedder)
        return made

    def __len__(self) -> int:
        with self._lock:
            return len(self._matrix) + sum(map(len, self._pending))

    @property
    def matrix(self) -> Vectors:
        """The vectors in order of position, shape (n, d)."""
        with self._lock:
            if self._pending:
                self._matrix = np.concatenate([self._matrix, *self._pending])
                self._pending = []
            return self._matrix

    def add_document(self, document: Chunk | str) -> None:
        """Embeds and adds one chunk (or bare text) at the next position."""
        self.add_documents([document])

    def add_documents(self, documents: Sequence[Chunk | str]) -> None:
        """Embeds and adds chunks (or bare texts) at the next positions.

        Raises EmbeddingError when the vectors are not of the declared width or not finite; then
        nothing is added.
        """
        texts = indexed_texts(documents)
        starts = range(0, len(texts), _BATCH)
        blocks = [_embedded(self.embedder, texts[start : start + _BATCH]) for start in starts]
        with self._lock:
            self._pending += blocks

    def search(self, query_text: str, k: int = 1, allowed: Positions | None = None) -> Ranking:
        """The `k` chunks nearest to the query, of the `allowed` ones if given.

        Raises TypeError (query, k), ValueError (k < 1, a position outside the index), EmbeddingError.
        """
        k = check_query(query_text, k)
        if not len(self):
            check_allowed(allowed, 0)
            return Ranking([], [])
        return self.search_vector(self.embedder.embed_query(query_text), k, allowed)

    def search_vector(self, vector: Vectors, k: int = 1, allowed: Positions | None = None) -> Ranking:
        """`search` for a query that is already a unit vector, shape (d,)."""
        k, vector, matrix = check_k(k), checked_vector(vector, self.embedder), self.matrix
        only = check_allowed(allowed, len(matrix))
        if only is None:
            return Ranking.order(np.arange(len(matrix)), cosines(matrix, vector), k)
        return Ranking.order(only, cosines_of(matrix, only, vector), k)

    def similarity(self, query_vector: Vectors, position: int) -> float:
        """The cosine that a search for this vector shows for the chunk at `position`.

        Raises IndexError when there is no such position.
        """
        matrix = self.matrix
        if not 0 <= position < len(matrix):
            raise IndexError(f"position {position} is not in an index of {len(matrix)} chunks")
        row = matrix[position : position + 1]
        return float(cosines(row, checked_vector(query_vector, self.embedder))[0])


def _embedded(embedder: Embedder, texts: list[str]) -> Vectors:
    """Vectors of texts, checked, shape (len(texts), d)."""
    vectors = checked_matrix(np.asarray(embedder.embed(texts)), embedder)
    if len(vectors) != len(texts) or not np.isfinite(vectors).all():
        raise EmbeddingError(
            f"{embedder.model_id} gave {len(vectors)} vectors for {len(texts)} texts, or numbers "
            "that are not finite; nothing was added"
        )
    return vectors


def checked_vector(vector: Vectors, embedder: Embedder) -> Vectors:
    """A query vector as float32; raises EmbeddingError unless finite and of the embedder's width."""
    vector = np.ascontiguousarray(vector, dtype=np.float32)
    if vector.shape != (embedder.dimension,):
        raise EmbeddingError(
            f"the query vector has shape {vector.shape}, but {embedder.model_id} vectors have width "
            f"{embedder.dimension}; index again with the model that is used now"
        )
    if not np.isfinite(vector).all():
        raise EmbeddingError(f"the query vector of {embedder.model_id} is not finite")
    return vector
