"""Several indexes behind one `add_document` / `search`, fused by RRF: the multi-index retriever."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from core.fusion import rrf
from core.indexes.checks import check_query, indexed_texts
from core.protocols import Index
from core.types import Chunk

OVERSAMPLE = 5
"""Each index is asked for 5·k (the lesson's own retriever): a chunk that is 4th in both lists can be
first in the fused one, and would be lost if each index gave only k."""


@dataclass(frozen=True, slots=True)
class Result:
    """One line of a fused result. `ranks` holds the rank in each index that found the document."""

    document: Chunk | str
    score: float
    rank: int
    ranks: Mapping[str, int]


class Retriever:
    """Indexes with one interface, searched together.

    Raises ValueError when no index is given, when two have the same name, or when one already holds
    documents; TypeError for what is no index.
    """

    def __init__(self, *indexes: Index) -> None:
        if not indexes:
            raise ValueError("a retriever needs at least one index")
        if strangers := [index for index in indexes if not isinstance(index, Index)]:
            raise TypeError(
                f"{type(strangers[0]).__name__} is no index; an index has name, add_document, "
                "add_documents, search and len()"
            )
        names = [index.name for index in indexes]
        if len(set(names)) < len(names):
            raise ValueError(f"index names are {names}; give each index a name of its own")
        if any(len(index) for index in indexes):
            sizes = {index.name: len(index) for index in indexes}
            raise ValueError(
                f"indexes already hold documents ({sizes}); add documents through the retriever"
            )
        self._indexes = indexes
        self._documents: list[Chunk | str] = []

    def add_document(self, document: Chunk | str) -> None:
        """Add one document to every index."""
        self.add_documents([document])

    def add_documents(self, documents: Iterable[Chunk | str]) -> None:
        """Add documents to every index; indexes that embed do so in batches.

        Raises TypeError, before any index is touched, when a document is neither text nor a chunk.
        """
        documents = documents if isinstance(documents, str) else list(documents)
        indexed_texts(documents)
        for index in self._indexes:
            index.add_documents(documents)
        self._documents.extend(documents)

    def search(self, query_text: str, k: int = 1, k_rrf: float = 60) -> list[Result]:
        """The best `k` documents by Σ 1/(k_rrf + rank); ties in the order documents were added.

        Raises TypeError when the query is not a string or k not a whole number, ValueError when
        k < 1, when k_rrf < 0 or not finite, or when an index has lost or gained documents.
        """
        k = check_query(query_text, k)
        if not 0 <= k_rrf < math.inf:
            raise ValueError(f"k_rrf is {k_rrf}; it must be 0 or more, and finite")
        for index in self._indexes:
            if len(index) != len(self._documents):
                raise ValueError(
                    f"index {index.name} holds {len(index)} documents, the retriever "
                    f"{len(self._documents)}: adding failed half-way, or went past the retriever; "
                    "make a new retriever and add all documents again"
                )
        found = {index.name: index.search(query_text, k * OVERSAMPLE) for index in self._indexes}
        fused = rrf(found, k_rrf=k_rrf)
        return [
            Result(
                self._documents[hit.position],
                hit.score,
                hit.rank,
                {name: rank for name, rank in zip(fused.names, ranks, strict=True) if rank},
            )
            for hit, ranks in zip(fused.ranking.head(k), fused.ranks.tolist(), strict=False)
        ]
