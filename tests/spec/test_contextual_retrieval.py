"""Figures published with contextual retrieval (Anthropic, September 2024), and the prices' own check values."""

from __future__ import annotations

import pytest

from core.contextualizing.plan import document_dollars
from core.prices import DEFAULT_FILE, Rate, read_prices

# The published example: documents of 8,000 tokens, chunks of 800, an instruction of 50, contexts of 100.
EXAMPLE = {"document": 8_000, "chunks": 10, "chunk": 800, "question": 50, "output": 100}
HAIKU_3 = Rate(input=0.25, output=1.25, write=0.30, write_1h=0.50, read=0.03)


def per_million(dollars: float) -> float:
    return dollars / EXAMPLE["document"] * 1e6


def test_the_published_cost_per_million_document_tokens() -> None:
    """One write and one read for each chunk, as the published estimate counts."""
    assert round(per_million(document_dollars(HAIKU_3, **EXAMPLE, reads=10)), 2) == 1.02


def test_the_planner_counts_one_read_less() -> None:
    """The first chunk writes the cache and does not read it."""
    published = document_dollars(HAIKU_3, **EXAMPLE, reads=10)
    assert published - document_dollars(HAIKU_3, **EXAMPLE) == pytest.approx(8_000 * 0.03e-6)


@pytest.mark.parametrize(
    ("model", "cached", "plain"),
    [
        ("claude-haiku-5-5", 0.38, 1.17),
        ("claude-sonnet-5-5", 6.77, 23.38),
        ("claude-opus-5-5", 13.55, 46.75),
    ],
)
def test_the_example_at_todays_prices(model: str, cached: float, plain: float) -> None:
    prices = read_prices(DEFAULT_FILE)
    if str(prices.date) != "2026-11-30":
        pytest.skip(f"the figures are of 2026-11-30, the price list of {prices.date}")
    rate = prices.rate(model, 8_950)
    assert rate
    assert per_million(document_dollars(rate, **EXAMPLE)) == pytest.approx(cached, abs=0.006)
    assert per_million(document_dollars(rate, **EXAMPLE, cached=False)) == pytest.approx(
        plain, abs=0.006
    )
