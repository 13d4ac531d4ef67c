"""What to ask the sample collection first."""

from __future__ import annotations

import json
from pathlib import Path

import streamlit as st

from core.collection import Collection
from core.sample import SAMPLE

_QUERIES = Path(__file__).resolve().parents[2] / "data" / "sample_queries.jsonl"


def is_sample(collection: Collection) -> bool:
    """Whether this is the collection that comes with Rankscope."""
    return collection.name == SAMPLE


@st.cache_data(show_spinner=False)
def suggestions(most: int = 3) -> tuple[str, ...]:
    """The first judged query of each kind, `most` at most; none where the file is not installed."""
    try:
        lines = _QUERIES.read_text(encoding="utf-8").splitlines()
    except OSError:
        return ()
    by_kind: dict[str, str] = {}
    for line in filter(str.strip, lines):
        asked = json.loads(line)
        by_kind.setdefault(asked["kind"], asked["query"])
    return tuple(by_kind.values())[:most]
