"""The settings a sweep may try: for each named setting a list of values, or a range for an optimiser."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import product
from urllib.parse import urlencode

from core.errors import SettingsError
from core.settings import Settings

Value = str | int | float | bool
Point = Mapping[str, Value]
"""Dotted setting → value, such as `{"index.chunking.size": 400, "search.k_rrf": 10}`."""

LARGEST_GRID = 10_000
"""Points of a grid: beyond, memory would end before the sweep began."""


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from `low` to `high`, both included; whole ones when both are whole. `log`: small ones tried as
    densely as large ones. Raises SettingsError for a range that holds nothing, or a logarithm of 0."""

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise SettingsError(f"the range {self.low} to {self.high} holds nothing; give low < high")
        if self.log and self.low <= 0:
            raise SettingsError(f"the range {self.low} to {self.high} has no logarithm; begin above 0")

    @property
    def whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)


@dataclass(frozen=True)
class Space:
    """What may be tried around `base`, by dotted name from "index." or "search.".

    Raises SettingsError for no setting, an unknown one, an empty list, or a value that is none of it.
    """

    values: Mapping[str, Sequence[Value] | Range]
    base: Settings = field(default_factory=Settings)

    def __post_init__(self) -> None:
        if not self.values:
            raise SettingsError("a sweep needs a setting to try; name one, such as search.k_rrf")
        for name, values in self.values.items():
            if not isinstance(values, Range) and not values:
                raise SettingsError(f"{name} has no values to try; give one or more")
            ends = [values.low, values.high] if isinstance(values, Range) else values
            for value in ends:
                # With all else as it comes: what does not go together is found at each point.
                self._read(Settings(), {name: value})

    def settings(self, point: Point) -> Settings:
        """The base with the point's values. Raises SettingsError where they do not go together."""
        return self._read(self.base, point)

    def grid(self) -> Iterator[dict[str, Value]]:
        """All points, the last setting changing fastest. Raises SettingsError where a setting is a range, or
        for more than LARGEST_GRID points."""
        lists = []
        for name, values in self.values.items():
            if isinstance(values, Range):
                raise SettingsError(
                    f"{name} is a range; a grid needs its values listed, or take the optimiser"
                )
            lists.append(list(dict.fromkeys(values)))
        if (self.size or 0) > LARGEST_GRID:
            raise SettingsError(
                f"the grid has {self.size:,} points; list fewer values, so that it has {LARGEST_GRID:,} at most, "
                "or take the optimiser"
            )
        return (dict(zip(self.values, point, strict=True)) for point in product(*lists))

    @property
    def size(self) -> int | None:
        """Points of the grid; None where a setting is a range."""
        if any(isinstance(values, Range) for values in self.values.values()):
            return None
        return reduce(lambda n, values: n * len(set(values)), self.values.values(), 1)  # type: ignore[arg-type]

    def fingerprint(self) -> str:
        """Equal for spaces in which a point means the same: the base and the names count, not the values."""
        facts = [self.base.fingerprint(), sorted(self.values)]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]

    def _read(self, base: Settings, point: Point) -> Settings:
        values = {**base.changes(), **point}
        return Settings.from_link(
            urlencode({name: str(v).lower() if isinstance(v, bool) else v for name, v in values.items()})
        )


def point_key(point: Point) -> str:
    """A point as a text: equal points have equal ones."""
    return json.dumps(dict(point), sort_keys=True)
