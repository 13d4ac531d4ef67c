"""Stand-ins that are fast and exact enough to assert values on."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np

from core.protocols import Vectors

_WORD = re.compile(r"\w+")


class HashEmbedder:
    """Bags of hashed words as unit vectors: equal texts are equal, texts without a common word near 0.

    `calls` counts the texts embedded, `queries` the queries. A text without words gives the first axis.
    """

    def __init__(self, dimension: int = 64, max_tokens: int = 256, model_id: str = "hash") -> None:
        self.model_id = model_id
        self.dimension = dimension
        self.max_tokens = max_tokens
        self.calls = 0
        self.queries = 0

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.calls += len(texts)
        vectors = [self._vector(text) for text in texts]
        return np.array(vectors, dtype=np.float32).reshape(len(texts), self.dimension)

    def embed_query(self, text: str) -> Vectors:
        self.queries += 1
        return self._vector(text)

    def _vector(self, text: str) -> Vectors:
        vector = np.zeros(self.dimension, dtype=np.float32)
        for word in _WORD.findall(text.casefold()):
            digest = hashlib.sha256(word.encode()).digest()
            vector[int.from_bytes(digest[:4], "big") % self.dimension] += 1 if digest[4] % 2 else -1
        if not vector.any():
            vector[0] = 1
        return (vector / np.linalg.norm(vector)).astype(np.float32)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(_WORD.findall(text)) + 2 for text in texts]

    def visible_end(self, text: str) -> int:
        words = list(_WORD.finditer(text))
        seen = self.max_tokens - 2
        return len(text) if len(words) <= seen else words[seen - 1].end()
