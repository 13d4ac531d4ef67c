"""Costs by the dated price list, worked out by hand."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from core.errors import RankscopeError
from core.llm import Usage
from core.prices import Rate, load_prices, read_prices

HAIKU = "claude-haiku-5-5"


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path))
    return tmp_path


def test_the_list_that_comes_with_the_app() -> None:
    prices = load_prices()
    assert prices.date == date(2026, 11, 30)
    assert prices.batch == 0.5
    assert prices.rate("claude-sonnet-5-5") == Rate(2, 10, 2.5, 4, 0.1, 512, 1_000_000)
    assert prices.rate("claude-opus-5-5") == Rate(4, 20, 5, 8, 0.2, 512, 1_000_000)
    assert prices.rate("claude-fable-5-1") == Rate(10, 50, 12.5, 20, 0.25, 512, 1_000_000)
    assert prices.rate("claude-haiku-4-5") == Rate(1, 5, 1.25, 2, 0.1, 4096, 200_000)


def test_a_rate_sums_the_five_kinds_of_tokens() -> None:
    rate = Rate(input=1, output=10, write=2, write_1h=3, read=0.5)
    usage = Usage(input=1_000, cache_write=2_000, cache_write_1h=3_000, cache_read=4_000, output=500)
    assert rate.cost(usage) == pytest.approx((1_000 + 4_000 + 9_000 + 2_000 + 5_000) / 1e6)


def per_million(rate: Rate, reads: int) -> float:
    """USD per million document tokens: 8,000 a document, 10 chunks of 800, question 50, output 100."""
    usage = Usage(input=8_500, cache_write=8_000, cache_read=reads * 8_000, output=1_000)
    return rate.cost(usage) / 8_000 * 1e6


def test_published_costs_of_contexts_are_met() -> None:
    haiku_3 = Rate(input=0.25, output=1.25, write=0.30, write_1h=0.50, read=0.03)
    assert per_million(haiku_3, reads=10) == pytest.approx(1.02, abs=0.005)
    for model, dollars in ((HAIKU, 0.38), ("claude-sonnet-5-5", 6.77), ("claude-opus-5-5", 13.55)):
        rate = load_prices().rate(model)
        assert rate is not None
        assert per_million(rate, reads=9) == pytest.approx(dollars, abs=0.005)


def test_the_whole_request_is_dear_past_the_band() -> None:
    prices = load_prices()
    at = Usage(input=1_000, cache_read=99_000, output=100)
    past = Usage(input=1_001, cache_read=99_000, output=100)
    assert prices.cost(HAIKU, at) == pytest.approx((1_000 * 0.1 + 99_000 * 0.01 + 100 * 0.5) / 1e6)
    assert prices.cost(HAIKU, past) == pytest.approx((1_001 * 0.5 + 99_000 * 0.05 + 100 * 2.5) / 1e6)
    assert prices.rate(HAIKU, 100_001) == Rate(0.5, 2.5, 0.625, 1.0, 0.05, 512, 1_000_000)


def test_a_batch_costs_half() -> None:
    usage = Usage(1_000, 2_000, 3_000, 4_000, 500)
    prices = load_prices()
    whole, half = prices.cost(HAIKU, usage), prices.cost(HAIKU, usage, batch=True)
    assert whole is not None
    assert half == pytest.approx(whole / 2)


def test_a_snapshot_costs_what_its_model_costs() -> None:
    prices = load_prices()
    assert prices.rate("claude-haiku-4-5-20251001") == prices.rate("claude-haiku-4-5")
    assert prices.known("claude-haiku-4-5-20251001")


def test_a_model_without_a_price_has_no_cost() -> None:
    prices = load_prices()
    assert not prices.known("smollm2-135m")
    assert prices.rate("smollm2-135m") is None
    assert prices.cost("smollm2-135m", Usage(1_000)) is None
    assert prices.per_unit("rerank", "smollm2-135m") is None


def test_units_of_embedders_and_rerankers_are_kept_apart() -> None:
    prices = load_prices()
    assert prices.per_unit("embedding", "voyage-3.5") == 0.06
    assert prices.per_unit("embedding", "gemini-embedding-001") == 0.15
    assert prices.per_unit("rerank", "rerank-2.5") == 0.05
    assert prices.per_unit("search", "rerank-2.5") is None
    assert prices.per_unit("search", "rerank-v4.0-fast") == 0.002


OWN = """
date = 2027-01-15
batch = 0.4
[models.mine]
input = 3
output = 4
write = 5
write_1h = 6
read = 7
cache_floor = 8
context = 9
"""


def test_a_list_of_ones_own_replaces_the_other(folder: Path) -> None:
    (folder / "prices.toml").write_text(OWN, encoding="utf-8")
    prices = load_prices()
    assert prices.date == date(2027, 1, 15)
    assert prices.rate("mine") == Rate(3, 4, 5, 6, 7, 8, 9)
    assert prices.cost("mine", Usage(1_000_000), batch=True) == pytest.approx(1.2)
    assert not prices.known(HAIKU)
    assert prices.per_unit("embedding", "voyage-3.5") is None


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (OWN.replace("2027-01-15", '"today"'), "date is 'today'"),
        (OWN.replace("date = 2027-01-15", ""), "date is None"),
        (OWN.replace("read = 7", "read = -7"), "models.mine.read is -7"),
        (OWN.replace("read = 7", "read = nan"), "models.mine.read is nan"),
        (OWN.replace("read = 7", "read = true"), "models.mine.read is True"),
        (OWN.replace("read = 7", ""), "models.mine.read is None"),
        (OWN.replace("batch = 0.4", ""), "batch is None"),
        (OWN + "[[models.mine.above]]\ntokens = 1\n", "models.mine.above[0].input is None"),
        (OWN + "above = 3\n", "models.mine.above is 3, not a list of tables"),
        (OWN + "above = [3]\n", "models.mine.above[0] is 3"),
        (OWN.replace("[models.mine]", "[[models]]"), "models is [{"),
        (OWN + '[rerank]\nrerank-3 = "dear"\n', "rerank.rerank-3 is 'dear'"),
        (OWN.replace("[models.mine]", "[models"), "cannot be read"),
    ],
)
def test_a_list_that_cannot_be_used_is_told(folder: Path, wrong: str, named: str) -> None:
    path = folder / "prices.toml"
    path.write_text(wrong, encoding="utf-8")
    with pytest.raises(RankscopeError) as caught:
        load_prices()
    assert named in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_missing_list_is_told(folder: Path) -> None:
    with pytest.raises(RankscopeError, match="missing: run Rankscope from its own folder"):
        read_prices(folder / "nowhere.toml")
