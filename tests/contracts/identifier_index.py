"""The third index that core/README.md shows: a whole index in one screen."""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.indexes.checks import check_query
from core.protocols import Positions
from core.trace import Ranking
from core.types import Chunk

IDENTIFIER = re.compile(r"\w+(?:[-_./]\w+)*")


def identifiers(text: str) -> set[str]:
    """Words that hold a digit, such as INC-2023-Q4-011 or v2.3.1."""
    return {word for word in IDENTIFIER.findall(text) if any(c.isdigit() for c in word)}


class IdentifierIndex:
    """Chunks by the number of the query's identifiers that they hold, capitals and all."""

    name = "identifiers"

    def __init__(self) -> None:
        self._held: list[set[str]] = []

    def __len__(self) -> int:
        return len(self._held)

    def add_document(self, document: Chunk | str) -> None:
        text = document.indexed_text if isinstance(document, Chunk) else document
        self._held.append(identifiers(text))

    def add_documents(self, documents: Sequence[Chunk | str]) -> None:
        for document in documents:
            self.add_document(document)

    def search(self, query_text: str, k: int = 1, allowed: Positions | None = None) -> Ranking:
        k = check_query(query_text, k)
        wanted = identifiers(query_text)
        positions = range(len(self)) if allowed is None else allowed.tolist()
        counts = ((position, len(wanted & self._held[position])) for position in positions)
        return Ranking.of((position, count) for position, count in counts if count).head(k)
