"""What models cost: read from a dated file that a person can edit, never from code.

A model without a price is no error: its cost is None, and shown as unknown.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Literal, get_args

from core.errors import RankscopeError
from core.home import home
from core.llm import Usage

DEFAULT_FILE = Path(__file__).parents[1] / "data" / "prices.toml"
Kind = Literal["embedding", "rerank", "search"]
_MILLION = 1_000_000


@dataclass(frozen=True)
class Rate:
    """USD per million tokens, for a whole request."""

    input: float
    output: float
    write: float  # into the cache for 5 minutes
    write_1h: float
    read: float
    cache_floor: int = 0  # tokens: a shorter prefix is silently not cached
    context: int = 0  # tokens: the model's context window

    def cost(self, usage: Usage) -> float:
        """USD for one request's tokens."""
        return (
            self.input * usage.input
            + self.output * usage.output
            + self.write * usage.cache_write
            + self.write_1h * usage.cache_write_1h
            + self.read * usage.cache_read
        ) / _MILLION


@dataclass(frozen=True)
class Prices:
    """All prices of one file. `bands` holds for each model (least prompt tokens, Rate), the first from 0 on."""

    date: date  # when the prices were read
    batch: float  # factor on every rate in a batch
    bands: Mapping[str, tuple[tuple[int, Rate], ...]]
    units: Mapping[tuple[str, str], float]

    def known(self, model: str) -> bool:
        return self._bands(model) is not None

    def rate(self, model: str, prompt_tokens: int = 0) -> Rate | None:
        """The band that a request with `prompt_tokens` (cached ones included) is billed at, output as well."""
        bands = self._bands(model)
        if bands is None:
            return None
        return [rate for least, rate in bands if prompt_tokens >= least][-1]

    def cost(self, model: str, usage: Usage, batch: bool = False) -> float | None:
        """USD for ONE request (sums of several would land in the wrong band); None without a price, or where
        the server named no tokens: no request has none."""
        rate = self.rate(model, usage.prompt)
        return (
            None
            if rate is None or not usage.prompt
            else rate.cost(usage) * (self.batch if batch else 1.0)
        )

    def per_unit(self, kind: Kind, model: str) -> float | None:
        """USD for a million tokens ("embedding", "rerank") or for one search unit ("search"), as the provider
        of `model` bills; None without a price."""
        return self.units.get((kind, model))

    def _bands(self, model: str) -> tuple[tuple[int, Rate], ...] | None:
        # A snapshot (model-20261015) costs what its model costs.
        return self.bands.get(model) or self.bands.get(re.sub(r"-\d{8}$", "", model))


def load_prices() -> Prices:
    """The prices of RANKSCOPE_HOME/prices.toml, else those that come with the app.

    Raises RankscopeError for a file that is missing or cannot be used, naming the entry.
    """
    own = home() / "prices.toml"
    return read_prices(own if own.is_file() else DEFAULT_FILE)


def read_prices(path: Path) -> Prices:
    try:
        with path.open("rb") as file:
            table = tomllib.load(file)
    except FileNotFoundError:
        raise RankscopeError(
            f"the price list {path} is missing: run Rankscope from its own folder, "
            "or put a prices.toml into the data folder"
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RankscopeError(f"the price list {path} cannot be read: {error}; {_REMEDY}") from error
    try:
        return _prices(table)
    except _Wrong as wrong:
        raise RankscopeError(f"the price list {path}: {wrong}; {_REMEDY}") from None


_REMEDY = f"correct it, or take {DEFAULT_FILE.name} as it comes with the app"
_RATES = ("input", "output", "write", "write_1h", "read")


class _Wrong(Exception):
    """An entry that cannot be used; the message names it."""


def _prices(table: Mapping[str, Any]) -> Prices:
    day = table.get("date")
    if type(day) is not date:
        raise _Wrong(f"date is {day!r}, not a day such as 2026-11-30")
    units = {
        (kind, model): _number(f"{kind}.{model}", entries, model)
        for kind in get_args(Kind)
        for entries in [_table(kind, table.get(kind, {}))]
        for model in entries
    }
    models = _table("models", table.get("models", {}))
    bands = {
        model: _model_bands(f"models.{model}", _table(model, entry)) for model, entry in models.items()
    }
    return Prices(day, _number("batch", table, "batch"), bands, units)


def _model_bands(name: str, entry: Mapping[str, Any]) -> tuple[tuple[int, Rate], ...]:
    sizes = {key: int(_number(f"{name}.{key}", entry, key)) for key in ("cache_floor", "context")}

    def rate(where: str, part: Mapping[str, Any]) -> Rate:
        return Rate(**{key: _number(f"{where}.{key}", part, key) for key in _RATES}, **sizes)  # type: ignore[arg-type]

    bands = [(0, rate(name, entry))]
    above = entry.get("above", [])
    if not isinstance(above, list):
        raise _Wrong(f"{name}.above is {above!r}, not a list of tables")
    for place, value in enumerate(above):
        where = f"{name}.above[{place}]"
        part = _table(where, value)
        bands.append((int(_number(f"{where}.tokens", part, "tokens")) + 1, rate(where, part)))
    return tuple(sorted(bands, key=lambda band: band[0]))


def _table(name: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _Wrong(f"{name} is {value!r}, not a table")
    return value


def _number(name: str, entries: Mapping[str, Any], key: str) -> float:
    value = entries.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise _Wrong(f"{name} is {value!r}, not a number from 0 on")
    return float(value)
