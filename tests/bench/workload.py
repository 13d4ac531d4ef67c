"""Texts and vectors to measure on: invented words with a natural frequency curve, surrogate vectors.

Surrogates (random unit vectors, seeded by the text) stand for the model's: index and query times do not
depend on meaning, and embedding 50,000 chunks takes an hour. Queries are embedded by the real model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.protocols import Embedder, Vectors
from core.types import Document, text_hash

WORDS_PER_CHUNK = 110
CHUNKS_PER_DOCUMENT = 20


class SurrogateEmbedder:
    """Vectors of passages are random but repeatable; those of queries are the model's, if one is given."""

    def __init__(self, model: Embedder | None = None, model_id: str = "surrogate") -> None:
        self._model = model
        self.model_id = model_id
        self.version = "surrogate"
        self.dimension = 384
        self.max_tokens = 10_000
        self.tokenizer = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        seeds = [int(text_hash(text)[:16], 16) for text in texts]
        vectors = np.stack(
            [np.random.default_rng(seed).standard_normal(self.dimension) for seed in seeds]
        )
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)

    def embed_query(self, text: str) -> Vectors:
        return self._model.embed_query(text) if self._model else self.embed([text])[0]

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [text.count(" ") + 3 for text in texts]

    def visible_end(self, text: str) -> int:
        return len(text)


def documents(n_chunks: int, first: int = 0) -> list[Document]:
    """Documents whose paragraphs are chunks of about 700 characters; `first` numbers them."""
    vocabulary = _vocabulary()
    frequency = 1 / np.arange(1, len(vocabulary) + 1) ** 1.05
    frequency /= frequency.sum()
    made = []
    for number in range(first, first + n_chunks // CHUNKS_PER_DOCUMENT):
        random = np.random.default_rng(number)
        drawn = random.choice(len(vocabulary), (CHUNKS_PER_DOCUMENT, WORDS_PER_CHUNK), p=frequency)
        spans, parts, at = [], [], 0
        for row in drawn:
            text = " ".join(vocabulary[word] for word in row) + "."
            parts.append(text)
            spans.append((at, at + len(text)))
            at += len(text) + 2
        name = f"doc{number}"
        made.append(
            Document(name, f"{name}.txt", f"Document {number}", "\n\n".join(parts), chunks=tuple(spans))
        )
    return made


def queries(n: int) -> list[str]:
    """Questions of six words, neither the most frequent nor the rarest."""
    vocabulary = _vocabulary()
    random = np.random.default_rng(99)
    return [" ".join(vocabulary[word] for word in random.integers(20, 3000, 6)) for _ in range(n)]


def _vocabulary() -> list[str]:
    random = np.random.default_rng(7)
    syllables = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]
    words = {"".join(random.choice(syllables, random.integers(2, 5))) for _ in range(40_000)}
    return sorted(words, key=lambda word: text_hash(word))[:30_000]
