"""Indexes over chunks, one file a library: the only importer of it."""

from core.indexes.bm25 import BM25Index
from core.indexes.hnsw import HnswIndex
from core.indexes.vectors import VectorIndex

__all__ = ["BM25Index", "HnswIndex", "VectorIndex"]
