"""A verdict does not depend on which setting comes first, and noise is not taken for a difference."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from core.evaluation.statistics import compare, corrected, verdict

shares = st.sampled_from([0.0, 0.2, 1 / 3, 0.5, 2 / 3, 1.0])
pairs = st.lists(st.tuples(shares, shares), min_size=1, max_size=40)


@settings(max_examples=60, deadline=None)
@given(pairs, st.booleans())
def test_swapping_mirrors_every_figure_and_the_words(
    values: list[tuple[float, float]], higher_is_better: bool
) -> None:
    a, b = np.array(values).T
    one = compare(a, b, ("plain", "hybrid"), "m", higher_is_better=higher_is_better)
    other = compare(b, a, ("hybrid", "plain"), "m", higher_is_better=higher_is_better)
    assert (other.difference, other.low, other.high) == (-one.difference, -one.high, -one.low)
    assert (other.wins, other.losses, other.ties) == (one.losses, one.wins, one.ties)
    assert (other.p, other.needed, other.better) == (one.p, one.needed, one.better)
    if one.better or one.ties == one.queries:
        assert verdict(other) == verdict(one)
    else:
        start = f"not distinguishable with {'this' if len(a) == 1 else 'these'} {len(a)} quer"
        assert verdict(one).startswith(start)
        assert verdict(other).startswith(start)
        assert "plain against hybrid" in verdict(other)
        assert verdict(other).rsplit("; ", 1)[1] == verdict(one).rsplit("; ", 1)[1]


@settings(max_examples=40, deadline=None)
@given(pairs)
def test_figures_hold_together(values: list[tuple[float, float]]) -> None:
    a, b = np.array(values).T
    found = compare(a, b)
    assert found.wins + found.losses + found.ties == found.queries == len(a)
    assert 0 < found.p <= 1
    assert -1 <= found.low <= found.difference <= found.high <= 1
    assert found.needed is None or found.distinguishable or found.needed > found.queries


def test_settings_that_are_the_same_up_to_noise_are_not_told_apart() -> None:
    apart = 0
    for seed in range(300):
        random = np.random.default_rng(seed)
        a = (random.random(60) < 0.85).astype(float)
        # Both lose and gain the same queries by chance, as a rebuilt graph index does.
        b = np.where(random.random(60) < 0.25, random.random(60) < 0.85, a).astype(float)
        apart += compare(a, b, seed=seed).distinguishable
    assert apart <= 0.07 * 300


def test_correction_keeps_noise_down_over_many_comparisons() -> None:
    alone = together = 0
    for seed in range(40):
        random = np.random.default_rng(1000 + seed)
        many = [compare(random.random(20), random.random(20), seed=seed) for _ in range(6)]
        alone += any(one.distinguishable for one in many)
        together += any(one.distinguishable for one in corrected(many))
    assert together <= 0.12 * 40 < alone


def test_a_real_difference_is_found() -> None:
    found = 0
    for seed in range(20):
        random = np.random.default_rng(seed)
        a = random.random(80)
        found += compare(a, np.clip(a + random.normal(0.06, 0.1, 80), 0, 1)).better == "B"
    assert found == 20
