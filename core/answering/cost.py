"""What a question costs, before it is asked: from counted tokens, or from an estimate marked as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.answering.inquiry import Inquiry
from core.answering.prompt import SYSTEM
from core.llm import Usage
from core.prices import Prices
from core.prompts import rough_tokens

BASE_LIMIT = 200_000
"""The largest knowledge base, in tokens, that is offered to be sent whole (the published advice)."""

OUTPUT = 500
"""Tokens of an answer that an estimate takes for granted."""

_PER_TOKEN = 3  # characters a token: no estimate is below that
_PER_SOURCE = 12  # tokens around each source


@dataclass(frozen=True, slots=True)
class Estimate:
    """Dollars for this question; `following`, for a whole base, for another within the hour.

    `tokens` are those of the prompt, counted by the model's own server where `exact`. Dollars are None
    where no price is known. `fits`: not above what may be sent. `cached`: long enough for the prompt cache.
    """

    tokens: int
    exact: bool
    dollars: float | None
    following: float | None
    fits: bool
    cached: bool


def rough_prompt(inquiry: Inquiry) -> int:
    """Tokens of the sources and of our instructions, estimated; the question is not counted."""
    sources = sum(
        rough_tokens(source.title) + rough_tokens(text) + _PER_SOURCE
        for source, text in zip(inquiry.sources, inquiry.texts, strict=True)
    )
    return sources + rough_tokens(SYSTEM)


def may_fit(lengths: Sequence[int]) -> bool:
    """Whether documents of these lengths, in characters, can be below the limit: told without reading them."""
    return sum(lengths) / _PER_TOKEN <= BASE_LIMIT


def estimate(
    inquiry: Inquiry, prices: Prices, prompt: int, counted: int | None = None, warm: bool = False
) -> Estimate:
    """`prompt` is `rough_prompt`; `counted` what the server counted for all. `warm`: the base lies in the cache."""
    asked = rough_tokens(inquiry.question)
    tokens = prompt + asked if counted is None else counted
    held = max(tokens - asked, 0)
    rate = prices.rate(inquiry.model, tokens)
    window = rate.context if rate and rate.context else BASE_LIMIT
    fits = tokens <= (min(BASE_LIMIT, window) if inquiry.path == "base" else window)
    plain = Usage(input=tokens, output=OUTPUT)
    first = following = plain
    cached = inquiry.path == "base" and rate is not None and held >= rate.cache_floor
    if cached:
        following = Usage(input=asked, cache_read=held, output=OUTPUT)
        first = following if warm else Usage(input=asked, cache_write_1h=held, output=OUTPUT)
    cost = prices.cost
    return Estimate(
        tokens,
        counted is not None,
        cost(inquiry.model, first),
        cost(inquiry.model, following) if inquiry.path == "base" else None,
        fits,
        cached,
    )
