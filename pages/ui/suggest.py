"""What to ask the sample collection first."""

from __future__ import annotations

import json

import streamlit as st

from core.collection import Collection
from core.sample import SAMPLE, sample_queries


def is_sample(collection: Collection) -> bool:
    """Whether this is the collection that comes with Rankscope."""
    return collection.name == SAMPLE


@st.cache_data(show_spinner=False)
def suggestions(most: int = 3) -> tuple[str, ...]:
    """The first judged query of each kind, `most` at most; none where they are not installed."""
    by_kind: dict[str, str] = {}
    for line in filter(str.strip, sample_queries().splitlines()):
        asked = json.loads(line)
        by_kind.setdefault(asked["kind"], asked["query"])
    return tuple(by_kind.values())[:most]
