"""Voyage's reranker, asked over HTTPS. Checked against a scripted server, never run live."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from core.errors import RankscopeError, RerankError
from core.hosted import PROMPT, VOYAGE, batches, charged, estimated_tokens, relevances
from core.prices import load_prices
from core.protocols import Scores
from core.types import encodable

DEFAULT_MODEL = "rerank-2.5"
_MOST = 1_000  # documents a request
_TOKENS = 300_000  # half of what a request may hold, the query counted with each document: estimates err


class VoyageReranker:
    """Relevance by `rerank`, of each text by itself: the scores of several requests compare.

    Charged by tokens, the query's counted once for each text.
    """

    name = "voyage"
    listwise = False
    paid = True

    def __init__(self, model_id: str = "") -> None:
        self.model_id = model_id or DEFAULT_MODEL

    def scores(self, query: str, texts: Sequence[str]) -> Scores:
        """A score for each text, shape (len(texts),). Raises RerankError with reason and remedy."""
        values: list[float] = []
        tokens = 0.0
        try:
            price = self._price()
            for batch in batches(
                [encodable(text) for text in texts],
                _MOST,
                _TOKENS,
                lambda text: self._tokens(query, [text]),
            ):
                body = {
                    "model": self.model_id,
                    "query": encodable(query),
                    "documents": batch,
                    "truncation": True,
                }
                answer = VOYAGE.post("/rerank", body, retries=PROMPT)
                values += relevances(VOYAGE, answer, "data", len(batch))
                tokens += self._billed(answer, query, batch)
        except RankscopeError as error:
            raise RerankError(
                f"the reranker {self.name} ({self.model_id}) gave no scores: {error}"
            ) from None
        note = f"no price is known for {self.model_id}" if price is None else ""
        return Scores(np.array(values, dtype=np.float64), tokens * (price or 0.0), note)

    def estimate(self, query: str, texts: Sequence[str]) -> float | None:
        """US dollars expected for scoring the texts; None when no price is known."""
        price = self._price()
        return None if price is None else price * self._tokens(query, texts)

    def missing_key(self) -> str:
        """Blank when the reranker can be asked, else one sentence that says which variable to set."""
        return VOYAGE.missing_key()

    def _tokens(self, query: str, texts: Sequence[str]) -> int:
        return len(texts) * estimated_tokens(query) + sum(map(estimated_tokens, texts))

    def _billed(self, answer: dict[str, Any], query: str, texts: Sequence[str]) -> float:
        """The tokens that the answer says were billed; an estimate where it says nothing."""
        tokens = charged(answer, "usage", "total_tokens")
        return self._tokens(query, texts) if tokens is None else tokens

    def _price(self) -> float | None:
        """US dollars for a token."""
        price = load_prices().per_unit("rerank", self.model_id)
        return None if price is None else price / 1e6
