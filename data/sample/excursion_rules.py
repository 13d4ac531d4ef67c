"""Rules that decide whether a temperature excursion matters.

Reference version of the rule engine published by Tarnfell Coldline in
December 2023. The hosted service runs the same rules. Times are seconds since
the start of the shipment, temperatures are degrees Celsius.

The engine answers one question: given a list of readings and a band, which
verdict does the shipment deserve? It knows three verdicts. ``accept`` means
that nothing happened which the band does not allow. ``review`` means that a
person has to look. ``reject`` means that the goods must not be used without a
release by the quality department.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

GAS_CONSTANT = 8.314462618e-3  # kJ per mole and kelvin
DEFAULT_ACTIVATION_ENERGY = 83.144  # kJ per mole, customary for medicines
DEFAULT_HOLD_MINUTES = 10
MAX_GAP_MINUTES = 45


@dataclass(frozen=True)
class Band:
    """The permitted band of a shipment and how long it may be left."""

    low: float
    high: float
    excursion_hold_minutes: float = DEFAULT_HOLD_MINUTES
    budget_minutes: float = 120.0
    freeze_sensitive: bool = False


@dataclass(frozen=True)
class Reading:
    """One reading. A reading taken while the probe was open is a gap."""

    at: float
    celsius: float | None

    @property
    def is_gap(self) -> bool:
        return self.celsius is None


@dataclass(frozen=True)
class Excursion:
    """A stretch of time outside the band, longer than the hold."""

    start: float
    end: float
    extreme: float

    @property
    def minutes(self) -> float:
        return (self.end - self.start) / 60.0


class UnsortedReadings(ValueError):
    """Raised when readings are not in order of time."""


def mean_kinetic_temperature(
    readings: list[Reading], activation_energy: float = DEFAULT_ACTIVATION_ENERGY
) -> float:
    """Return the mean kinetic temperature, which weighs warm hours more heavily.

    Gaps are left out and not counted as zero. Counting them as zero once made a
    pallet of insulin look colder than it had ever been.
    """
    values = [r.celsius for r in readings if r.celsius is not None]
    if not values:
        raise ValueError("no readings with a temperature")
    ratio = activation_energy / GAS_CONSTANT
    mean = sum(math.exp(-ratio / (v + 273.15)) for v in values) / len(values)
    return ratio / -math.log(mean) - 273.15


def find_excursions(readings: list[Reading], band: Band) -> list[Excursion]:
    """Return the excursions in order of time.

    A single reading inside the band pauses the count and does not restart it,
    so that a flickering reading cannot hide a long excursion. Two readings in
    a row inside the band end the excursion.
    """
    _check_order(readings)
    found: list[Excursion] = []
    start: float | None = None
    last_outside = 0.0
    extreme = 0.0
    inside_in_a_row = 0
    for reading in readings:
        if reading.celsius is None:
            continue
        outside = not band.low <= reading.celsius <= band.high
        if outside:
            if start is None:
                start, extreme = reading.at, reading.celsius
            last_outside = reading.at
            inside_in_a_row = 0
            extreme = _further_from(band, extreme, reading.celsius)
        elif start is not None:
            inside_in_a_row += 1
            if inside_in_a_row == 2:
                _append_if_long(found, Excursion(start, last_outside, extreme), band)
                start, inside_in_a_row = None, 0
    if start is not None:
        _append_if_long(found, Excursion(start, last_outside, extreme), band)
    return found


def longest_gap_minutes(readings: list[Reading]) -> float:
    """Return the longest time without a temperature, in minutes."""
    _check_order(readings)
    longest = 0.0
    previous: float | None = None
    for reading in readings:
        if reading.is_gap:
            continue
        if previous is not None:
            longest = max(longest, reading.at - previous)
        previous = reading.at
    return longest / 60.0


def verdict(readings: list[Reading], band: Band) -> str:
    """Return ``accept``, ``review`` or ``reject``.

    The order of the tests is part of the specification. Frost is tested first,
    because a vaccine that has been frozen is spoilt however short the frost was.
    """
    if band.freeze_sensitive and any(r.celsius is not None and r.celsius < -0.5 for r in readings):
        return "reject"
    excursions = find_excursions(readings, band)
    if sum(e.minutes for e in excursions) > band.budget_minutes:
        return "reject"
    if longest_gap_minutes(readings) > MAX_GAP_MINUTES:
        return "review"
    if excursions:
        return "review" if mean_kinetic_temperature(readings) <= band.high else "reject"
    return "accept"


def _further_from(band: Band, first: float, second: float) -> float:
    middle = (band.low + band.high) / 2.0
    return max(first, second, key=lambda value: abs(value - middle))


def _append_if_long(found: list[Excursion], excursion: Excursion, band: Band) -> None:
    if excursion.minutes >= band.excursion_hold_minutes:
        found.append(excursion)


def _check_order(readings: list[Reading]) -> None:
    for earlier, later in pairwise(readings):
        if later.at < earlier.at:
            raise UnsortedReadings(f"reading at {later.at} follows {earlier.at}")
