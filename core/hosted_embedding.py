"""Embedding models of Voyage and Gemini, asked over HTTPS: ids such as "voyage:voyage-4-large".

Queries and passages are embedded as such (asymmetric). Checked against a scripted server, never run live.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.errors import EmbeddingError, RankscopeError
from core.hosted import (
    GEMINI,
    PATIENT,
    PROMPT,
    VOYAGE,
    HostedError,
    Service,
    batches,
    by_index,
    estimated_tokens,
    malformed,
    seen_characters,
)
from core.prices import load_prices
from core.protocols import Vectors
from core.types import encodable, text_hash
from core.vectors_cache import shared_cache

_SURE = 2  # a request holds this many times fewer estimated tokens than it may: estimates err


@dataclass(frozen=True)
class _Facts:
    """What a provider documents of a model: the width it gives unasked, and its limits in tokens."""

    dimension: int
    max_tokens: int
    request_tokens: int
    prompt: str = ""
    query_prompt: str = ""
    """Put before the text here; other models' prompts are added by the provider."""


@dataclass(frozen=True)
class _Provider:
    service: Service
    most: int
    """Texts a request may hold."""
    models: Mapping[str, _Facts]
    request: Callable[[str, list[str], bool], tuple[str, dict[str, Any]]]
    """(model, texts, whether they are queries) → path and body"""
    vectors: Callable[[Any, int], list[Any]]
    """(answer, number of texts) → rows of floats in the order of the texts"""


class HostedEmbedder:
    """A hosted embedding model. Safe to share between threads; asks nothing until it embeds.

    Tokens are estimated (`core.hosted.estimated_tokens`), and so is what the model sees of a long text.
    """

    def __init__(self, model_id: str) -> None:
        """Raises EmbeddingError when the provider or the model is not known here."""
        if model_id not in HOSTED_MODELS:
            raise EmbeddingError(
                f"embedding model {model_id!r} is not one that can be asked here; choose one of "
                f"{', '.join(HOSTED_MODELS)}"
            )
        name, _, model = model_id.partition(":")
        self._provider = _PROVIDERS[name]
        self._facts = self._provider.models[model]
        self.model = model
        self.model_id = model_id
        self.dimension = self._facts.dimension
        self.max_tokens = self._facts.max_tokens

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of passages, shape (len(texts), dimension).

        Raises EmbeddingError with reason and remedy.
        """
        return self._ask(texts, query=False)

    def embed_query(self, text: str) -> Vectors:
        """The unit vector of a query, shape (dimension,); paid and waited for once for each text.

        Raises EmbeddingError as `embed` does.
        """
        model, key = f"{self.model_id}?query", text_hash(text)  # no passage's vector: another prompt
        known: Vectors | None = None
        with suppress(RankscopeError):  # without its cache the query costs a call, no more
            known = shared_cache().get_many(model, [key]).get(key)
        if known is not None and known.shape == (self.dimension,):
            return known
        vector = self._ask([text], query=True)[0]
        with suppress(RankscopeError):
            shared_cache().put_many(model, {key: vector})
        return vector

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text without truncation, estimated, a prompt that is put before it included."""
        return [estimated_tokens(self._facts.prompt + text) for text in texts]

    def visible_end(self, text: str) -> int:
        """Character offset past which the model sees nothing, estimated (len(text) when all is seen)."""
        whole = self._facts.prompt + text
        return max(seen_characters(whole, self.max_tokens) - len(self._facts.prompt), 0)

    def estimate_dollars(self, tokens: int) -> float | None:
        """US dollars for embedding so many tokens; None when no price of the model is known."""
        price = load_prices().per_unit("embedding", self.model)
        return None if price is None else tokens * price / 1e6

    def missing_key(self) -> str:
        """Blank when the model can be asked, else one sentence that says which variable to set."""
        return self._provider.service.missing_key()

    def _ask(self, texts: Sequence[str], query: bool) -> Vectors:
        prompt = self._facts.query_prompt if query else self._facts.prompt
        rows: list[Any] = []
        try:
            for batch in batches(
                [encodable(prompt + text) for text in texts],
                self._provider.most,
                self._facts.request_tokens // _SURE,
            ):
                path, body = self._provider.request(self.model, batch, query)
                retries = PROMPT if query else PATIENT
                answer = self._provider.service.post(path, body, retries=retries)
                rows += self._provider.vectors(answer, len(batch))
        except HostedError as error:
            raise EmbeddingError(f"{self.model_id} gave no vectors: {error}") from None
        return self._unit(rows)

    def _unit(self, rows: list[Any]) -> Vectors:
        widths = {len(row) for row in rows} - {self.dimension}
        if widths:
            raise EmbeddingError(
                f"{self.model_id} gave vectors of width {min(widths)}, not of the {self.dimension} it is "
                "documented with; choose another embedding model"
            )
        matrix = np.array(rows, dtype=np.float32).reshape(len(rows), self.dimension)
        lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
        if not (np.isfinite(lengths).all() and (lengths > 0).all()):
            raise EmbeddingError(
                f"{self.model_id} gave vectors that are zero or not finite; choose another embedding model"
            )
        return matrix / lengths


def is_hosted(model_id: str) -> bool:
    """Whether an id names a hosted model by its provider, such as "voyage:…"."""
    name, colon, _ = model_id.partition(":")
    return bool(colon) and name in _PROVIDERS


def _voyage_request(model: str, texts: list[str], query: bool) -> tuple[str, dict[str, Any]]:
    return "/embeddings", {
        "model": model,
        "input": texts,
        "input_type": "query" if query else "document",
        "truncation": True,
        "encoding_format": "base64",  # float32, a quarter of the digits' length
    }


def _voyage_vectors(answer: Any, count: int) -> list[Any]:
    rows = by_index(VOYAGE, answer.get("data") if isinstance(answer, dict) else None, "embedding", count)
    try:
        return [np.frombuffer(base64.b64decode(row, validate=True), dtype="<f4") for row in rows]
    except (TypeError, ValueError, binascii.Error):
        raise malformed(VOYAGE, "vectors that cannot be read") from None


def _gemini_request(model: str, texts: list[str], query: bool) -> tuple[str, dict[str, Any]]:
    name = f"models/{model}"
    # The second generation takes the task from a prompt in the text instead.
    task = (
        {}
        if _GEMINI[model].prompt
        else {"taskType": "RETRIEVAL_QUERY" if query else "RETRIEVAL_DOCUMENT"}
    )
    requests = [{"model": name, "content": {"parts": [{"text": text}]}, **task} for text in texts]
    return f"/v1beta/{name}:batchEmbedContents", {"requests": requests}


def _gemini_vectors(answer: Any, count: int) -> list[Any]:
    try:
        rows = [np.array(row["values"], dtype=np.float32) for row in answer["embeddings"]]
    except (TypeError, KeyError, ValueError, OverflowError):
        raise malformed(GEMINI, "vectors that cannot be read") from None
    if len(rows) != count or any(row.ndim != 1 for row in rows):
        raise malformed(GEMINI, f"{len(rows)} results for {count} texts")
    return rows


# docs.voyageai.com/reference/embeddings-api: 1,000 texts, and this many tokens, a request.
_VOYAGE = {
    "voyage-4-large": _Facts(1024, 32_000, 120_000),
    "voyage-4": _Facts(1024, 32_000, 320_000),
    "voyage-4-lite": _Facts(1024, 32_000, 1_000_000),
    "voyage-3-large": _Facts(1024, 32_000, 120_000),
    "voyage-3.5": _Facts(1024, 32_000, 320_000),
    "voyage-3.5-lite": _Facts(1024, 32_000, 1_000_000),
    "voyage-code-3": _Facts(1024, 32_000, 120_000),
    "voyage-finance-2": _Facts(1024, 32_000, 120_000),
    "voyage-law-2": _Facts(1024, 16_000, 120_000),
}
# ai.google.dev/gemini-api/docs/embeddings; "at most 100 requests can be in one batch". No limit in
# tokens is stated for a request: 100 full texts.
_GEMINI = {
    "gemini-embedding-2": _Facts(
        3072, 8_192, 819_200, prompt="title: none | text: ", query_prompt="task: search result | query: "
    ),
    "gemini-embedding-001": _Facts(3072, 2_048, 204_800),
}
_PROVIDERS = {
    "voyage": _Provider(VOYAGE, 1_000, _VOYAGE, _voyage_request, _voyage_vectors),
    "gemini": _Provider(GEMINI, 100, _GEMINI, _gemini_request, _gemini_vectors),
}
HOSTED_MODELS = tuple(
    f"{name}:{model}" for name, provider in _PROVIDERS.items() for model in provider.models
)
"""Every hosted id, the providers' newest first."""
