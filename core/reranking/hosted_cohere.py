"""Cohere's reranker, asked over HTTPS. Checked against a scripted server, never run live."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.errors import RankscopeError, RerankError
from core.hosted import COHERE, PROMPT, batches, charged, estimated_tokens, relevances
from core.prices import load_prices
from core.protocols import Scores
from core.types import encodable

DEFAULT_MODEL = "rerank-v5.0-pro"
_MOST = 1_000  # documents a request; its reference advises against more
_UNIT_DOCUMENTS = 100  # a search unit is a query with so many documents …
_UNIT_TOKENS = 500  # … of which a longer one counts once for each 500 tokens begun, its query included


@dataclass(frozen=True)
class _Price:
    """US dollars for a token, or for a search unit: versions up to 4 are charged by these."""

    dollars: float
    by_tokens: bool

    def expected(self, query: str, texts: Sequence[str]) -> float:
        """US dollars for scoring the texts, estimated."""
        asked = estimated_tokens(query)
        tokens = [asked + estimated_tokens(text) for text in texts]
        if self.by_tokens:
            return self.dollars * sum(tokens)
        parts = sum(max(1, math.ceil(count / _UNIT_TOKENS)) for count in tokens)
        return self.dollars * math.ceil(parts / _UNIT_DOCUMENTS)

    def billed(self, answer: dict[str, Any], query: str, texts: Sequence[str]) -> float:
        """US dollars for what the answer says was charged; an estimate where it says nothing."""
        unit = "input_tokens" if self.by_tokens else "search_units"
        units = charged(answer, "meta", "billed_units", unit)
        return self.expected(query, texts) if units is None else self.dollars * units


class CohereReranker:
    """Relevance in [0, 1] by `v2/rerank`, of each text by itself: the scores of several requests compare."""

    name = "cohere"
    listwise = False
    paid = True

    def __init__(self, model_id: str = "") -> None:
        self.model_id = model_id or DEFAULT_MODEL

    def scores(self, query: str, texts: Sequence[str]) -> Scores:
        """A score for each text, shape (len(texts),). Raises RerankError with reason and remedy."""
        values: list[float] = []
        dollars = 0.0
        try:
            price = self._price()
            for batch in batches([encodable(text) for text in texts], _MOST):
                body = {"model": self.model_id, "query": encodable(query), "documents": batch}
                answer = COHERE.post("/v2/rerank", body, retries=PROMPT)
                values += relevances(COHERE, answer, "results", len(batch))
                dollars += price.billed(answer, query, batch) if price else 0.0
        except RankscopeError as error:
            raise RerankError(
                f"the reranker {self.name} ({self.model_id}) gave no scores: {error}"
            ) from None
        note = "" if price else f"no price is known for {self.model_id}"
        return Scores(np.array(values, dtype=np.float64), dollars, note)

    def estimate(self, query: str, texts: Sequence[str]) -> float | None:
        """US dollars expected for scoring the texts; None when no price is known."""
        price = self._price()
        return price.expected(query, texts) if price else None

    def missing_key(self) -> str:
        """Blank when the reranker can be asked, else one sentence that says which variable to set."""
        return COHERE.missing_key()

    def _price(self) -> _Price | None:
        prices = load_prices()
        for_tokens, for_search = (prices.per_unit(kind, self.model_id) for kind in ("rerank", "search"))
        if for_tokens is not None:
            return _Price(for_tokens / 1e6, by_tokens=True)
        return None if for_search is None else _Price(for_search, by_tokens=False)
