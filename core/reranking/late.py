"""Late interaction over the packaged model's token vectors: no download, no key.

MaxSim of ColBERT (Khattab and Zaharia 2020, arXiv 2004.12832): each query token counts with its best cosine
among the text's tokens. The packaged model was not trained for it, so tokens are weighted by rarity, and its
order is worth more fused with the one before than in its place (figures in core/README.md).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.embedding import SentenceEmbedder, load_embedder
from core.errors import EmbeddingError, RerankError
from core.protocols import Scores, Vectors
from core.settings import DEFAULT_MODEL
from core.types import text_hash

KEPT = 256 << 20
"""Bytes of token vectors kept in memory: some 1,800 texts of 800 characters."""

_FIRST_WORD = (
    1996  # "the": from here on the model's vocabulary stands by falling frequency in its corpus
)
_DIGITS = 6
_NOTHING = -1.0  # the least cosine: the score of a text, or for a query, without tokens


class LateInteraction:
    """The mean over the query's tokens of their best cosine among the text's, weighted by rarity.

    Scores lie in [-1, 1], and each text's depends on query and text alone: texts go through the model
    one at a time (on CPUs as fast as in batches), and rarity is that of the model's vocabulary, not of
    the texts at hand. A text's tokens past the model's longest input do not count.
    """

    name = "late"
    listwise = False
    paid = False
    version = "1"

    def __init__(self, model_id: str = "") -> None:
        """Raises RerankError for another model than the packaged one: rarity is read off its vocabulary."""
        self.model_id = model_id or DEFAULT_MODEL
        if self.model_id != DEFAULT_MODEL:
            raise RerankError(
                f"the reranker late works with {DEFAULT_MODEL} only, not with {model_id!r}; "
                "leave its model blank, or choose cross-encoder"
            )
        self._kept: OrderedDict[str, Vectors] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def scores(self, query: str, texts: Sequence[str]) -> Scores:
        """Shape (len(texts),). Raises RerankError where the packaged model cannot be read."""
        try:
            embedder = load_embedder(self.model_id)
            if not isinstance(embedder, SentenceEmbedder):
                raise EmbeddingError(f"what is registered as {self.model_id} gives no token vectors")
            asked, ids = embedder.token_vectors(query)
            weights = rarity(ids)
            values = [self._score(asked, weights, self._vectors(embedder, text)) for text in texts]
        except EmbeddingError as error:
            raise RerankError(f"the reranker late cannot score: {error}") from error
        cut = sum(embedder.visible_end(text) < len(text) for text in texts)
        note = f"of {cut} of {len(texts)} texts the model sees only the first part" if cut else ""
        return Scores(np.array(values, dtype=np.float64).round(_DIGITS), note=note)

    def estimate(self, query: str, texts: Sequence[str]) -> float:
        return 0.0

    def _score(self, asked: Vectors, weights: NDArray[np.float64], vectors: Vectors) -> float:
        if not len(asked) or not len(vectors):
            return _NOTHING
        best = (vectors.astype(np.float32) @ asked.T).max(axis=0)
        return float(best @ weights / weights.sum())

    def _vectors(self, embedder: SentenceEmbedder, text: str) -> Vectors:
        """Half precision, kept or new alike."""
        key = text_hash(text)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = embedder.token_vectors(text)[0].astype(np.float16)
        with self._lock:
            if key not in self._kept:
                self._kept[key] = made  # type: ignore[assignment]
                self._bytes += made.nbytes
            while self._bytes > KEPT:
                self._bytes -= self._kept.popitem(last=False)[1].nbytes
        return made  # type: ignore[return-value]


def rarity(ids: Sequence[int]) -> NDArray[np.float64]:
    """Weights of tokens, shape (len(ids),), positive.

    The logarithm of a word's place by frequency is its idf but for a constant (Zipf's law: frequency goes
    as 1/place). What stands before the first word, signs and single letters, weighs as little as "the".
    """
    places = np.maximum(np.asarray(ids, dtype=np.float64) - _FIRST_WORD, 0)
    return np.log(places + 2)
