"""Prices on the pages: read once, shown with as many digits as matter."""

from __future__ import annotations

import streamlit as st

from core.prices import Prices, load_prices


@st.cache_resource(show_spinner=False, ttl=60)
def prices() -> Prices:
    """The price list; an edit of the file shows within a minute."""
    return load_prices()


def dollars(amount: float | None) -> str:
    """Two digits that say something: $0.0092, $0.13, $2.50."""
    if amount is None:
        return "no price known"
    if amount == 0:
        return "$0"
    if amount < 0.00005:
        return "below $0.0001"
    return f"${amount:.4f}" if amount < 0.1 else f"${amount:.2f}"


def priced_models() -> tuple[str, ...]:
    """The models in the price list."""
    return tuple(prices().bands)
