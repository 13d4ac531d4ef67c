"""Cohere's reranker, asked over HTTPS. Checked against a scripted server, never run live."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from core.errors import RankscopeError, RerankError
from core.hosted import COHERE, PROMPT, batches, estimated_tokens, relevances
from core.prices import load_prices
from core.protocols import Scores
from core.types import encodable

DEFAULT_MODEL = "rerank-v5.0-pro"
_MOST = 1_000  # documents a request; its reference advises against more
_BY_TOKENS = re.compile(r"rerank-v([5-9]|\d\d)\b")  # up to version 4 by search units
_UNIT_DOCUMENTS = 100  # a search unit is a query with so many documents …
_UNIT_TOKENS = 500  # … of which a longer one counts once for each 500 tokens begun, its query included


class CohereReranker:
    """Relevance in [0, 1] by `v2/rerank`, of each text by itself: the scores of several requests compare."""

    name = "cohere"
    listwise = False
    paid = True

    def __init__(self, model_id: str = "", base_url: str = "") -> None:
        self.model_id = model_id or DEFAULT_MODEL
        self._base_url = base_url

    def scores(self, query: str, texts: Sequence[str]) -> Scores:
        """A score for each text, shape (len(texts),). Raises RerankError with reason and remedy."""
        values: list[float] = []
        billed = 0.0
        try:
            price = self._price()
            for batch in batches([encodable(text) for text in texts], _MOST):
                body = {"model": self.model_id, "query": encodable(query), "documents": batch}
                answer = COHERE.post("/v2/rerank", body, self._base_url, retries=PROMPT)
                values += relevances(COHERE, answer, "results", len(batch))
                billed += self._billed(answer, query, batch)
        except RankscopeError as error:
            raise RerankError(
                f"the reranker {self.name} ({self.model_id}) gave no scores: {error}"
            ) from None
        note = f"no price is known for {self.model_id}" if price is None else ""
        return Scores(np.array(values, dtype=np.float64), billed * (price or 0.0), note)

    def estimate(self, query: str, texts: Sequence[str]) -> float | None:
        """US dollars expected for scoring the texts; None when no price is known."""
        price = self._price()
        return None if price is None else price * self._expected(query, texts)

    def missing_key(self) -> str:
        """Blank when the reranker can be asked, else one sentence that says which variable to set."""
        return COHERE.missing_key()

    @property
    def _by_tokens(self) -> bool:
        return _BY_TOKENS.match(self.model_id) is not None

    def _price(self) -> float | None:
        """US dollars for a token or for a search unit, whichever the model is charged by."""
        price = load_prices().per_unit("rerank", self.model_id)
        return price / 1e6 if price is not None and self._by_tokens else price

    def _expected(self, query: str, texts: Sequence[str]) -> float:
        """Tokens or search units that the texts will be charged, estimated."""
        asked = estimated_tokens(query)
        tokens = [asked + estimated_tokens(text) for text in texts]
        if self._by_tokens:
            return sum(tokens)
        return math.ceil(
            sum(max(1, math.ceil(count / _UNIT_TOKENS)) for count in tokens) / _UNIT_DOCUMENTS
        )

    def _billed(self, answer: dict[str, Any], query: str, texts: Sequence[str]) -> float:
        """Tokens or search units that the answer says were charged; an estimate where it says nothing."""
        meta = answer.get("meta")
        units = meta.get("billed_units") if isinstance(meta, dict) else None
        charged = (units or {}).get("input_tokens" if self._by_tokens else "search_units")
        return self._expected(query, texts) if charged is None else float(charged)
