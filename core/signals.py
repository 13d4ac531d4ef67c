"""Signals that rank items by what is known of them, whatever the query: how new, how popular they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import field as fact
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from core.filters import FilterError
from core.protocols import Items
from core.trace import Ranking

OLDEST = 7
"""Half-lives after which an item is not ranked any more: under a hundredth of a new one's score."""

_EPOCH = date(1970, 1, 1)


def day_number(day: date) -> int:
    """Days since 1970-01-01, as `ItemFields.dates` counts them."""
    return (day - _EPOCH).days


def recency(dates: NDArray[np.float64], today: date, half_life: float) -> Ranking:
    """Items by 2^(−age / half_life), `dates` (n_items,) in days since 1970-01-01, NaN where there is none.

    An item without a date, or older than `OLDEST` half-lives (days), has no rank; a date to come counts as
    today's.
    """
    ages = np.maximum(day_number(today) - dates, 0.0)
    found = np.flatnonzero(ages <= OLDEST * half_life)  # NaN is not
    return Ranking.order(found, np.exp2(-ages[found] / half_life))


def to_come(dates: NDArray[np.float64], today: date) -> int:
    """How many of the dates lie after today."""
    return int((np.floor(dates) > day_number(today)).sum())


def popularity(numbers: NDArray[np.float64]) -> Ranking:
    """Items by falling number, shape (n_items,); those without one (NaN, infinite) have no rank."""
    found = np.flatnonzero(np.isfinite(numbers))
    return Ranking.order(found, numbers[found])


@dataclass(frozen=True)
class Recency:
    """The signal of a date field; `half_life` in days. Notes are on the items in `passing` (n_items,); None: all."""

    field: str
    half_life: float
    passing: NDArray[np.bool_] | None = fact(default=None, compare=False)
    name = "recency"

    def rank(self, query: str, items: Items) -> Ranking:
        return recency(self._dates(items), items.first_stage.today, self.half_life)

    def notes(self, items: Items) -> tuple[str, ...]:
        """What should be known of the ranking."""
        dates = self._dates(items)
        if np.isnan(dates).all():
            return (f"no item has a date in {self.field}",)
        late = to_come(dates if self.passing is None else dates[self.passing], items.first_stage.today)
        if late == 1:
            return (f"1 date in {self.field} is yet to come: it counts as today",)
        return (f"{late:,} dates in {self.field} are yet to come: they count as today",) if late else ()

    def why(self, query: str, item: int, items: Items) -> str:
        days = float(items.fields.dates(self.field)[item])
        age = max(day_number(items.first_stage.today) - days, 0.0)
        day = _EPOCH + timedelta(days=math.floor(days))
        return f"{self.field} {day}: 2^(−{age:.0f}/{self.half_life:g}) = {2 ** (-age / self.half_life):#.4g}"

    def _dates(self, items: Items) -> NDArray[np.float64]:
        return _column(items.fields.dates, self.field, items)


@dataclass(frozen=True)
class Popularity:
    """The signal of a number field."""

    field: str
    name = "popularity"

    def rank(self, query: str, items: Items) -> Ranking:
        return popularity(_column(items.fields.numbers, self.field, items))

    def notes(self, items: Items) -> tuple[str, ...]:
        """What should be known of the ranking."""
        found = np.isfinite(_column(items.fields.numbers, self.field, items))
        return () if found.any() else (f"no item has a number in {self.field}",)

    def why(self, query: str, item: int, items: Items) -> str:
        return f"{self.field} {float(items.fields.numbers(self.field)[item]):g}"


def _column(read: Callable[[str], NDArray[np.float64]], field: str, items: Items) -> NDArray[np.float64]:
    """The field's values, shape (n_items,); NaN throughout where no item has the field: those that have it
    may be hidden from this viewer, whose settings are right all the same."""
    try:
        return read(field)
    except FilterError:
        return np.full(len(items.item_ids), np.nan)
