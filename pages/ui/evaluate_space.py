"""What a sweep may try: the settings on offer, and their values as a person types them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from core.errors import SettingsError
from core.evaluation.space import Range, Value
from core.report.idle_space import idle_reason
from core.settings import DEFAULT_MODEL, SearchSettings

_RANGE = re.compile(r"\s*(-?[\d.]+?)\s*(?:\.\.|–|to)\s*(-?[\d.]+)\s*")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A setting by its dotted name, how it is shown, and the values that are tried unless others are given."""

    name: str
    title: str
    values: str

    @property
    def reindexes(self) -> bool:
        return self.name.startswith("index.")


PARAMETERS = {
    one.name: one
    for one in (
        Parameter("search.k_rrf", "k_rrf", "10, 60"),
        Parameter("search.indexes.bm25.weight", "BM25 weight", "0.5, 1, 2"),
        Parameter("search.item_weight", "Item weight", "0, 0.5, 1"),
        Parameter("search.indexes.vector.weight", "Vector weight", "0.5, 1, 2"),
        Parameter("search.fusion", "Fusion", "rrf, minmax, zscore, dbsf"),
        Parameter("search.two_stage", "Two stages", "on, off"),
        Parameter("search.items", "Items to stage two", "20, 50, 100"),
        Parameter("search.k_rrf_items", "k_rrf, items", "10, 60"),
        Parameter("search.k_rrf_score", "k_rrf, score fusion", "10, 60"),
        Parameter("search.indexes.bm25.depth", "BM25 depth", "50, 150"),
        Parameter("search.indexes.vector.depth", "Vector depth", "50, 150"),
        Parameter("search.bm25_k1", "BM25 k1", "0.9, 1.2, 1.5"),
        Parameter("search.bm25_b", "BM25 b", "0.4, 0.75"),
        Parameter("search.rerank", "Reranker", "none, late"),
        Parameter("search.rerank_depth", "Rerank depth", "50, 150"),
        Parameter("search.merge_gap", "Merge gap", "0, 100, 400"),
        Parameter("index.chunking.size", "Chunk size", "400, 800, 1200"),
        Parameter("index.chunking.overlap", "Overlap", "0, 100"),
        Parameter("index.chunking.strategy", "Strategy", "recursive, headings"),
        Parameter("index.context.writer", "Contexts", "none, headings"),
        Parameter("index.analyzer.stem", "Stemmer", "on, off"),
        Parameter("index.analyzer.tokens", "Tokens", "identifiers, words"),
        Parameter("index.model", "Embedding model", DEFAULT_MODEL),
    )
}
_USUAL = ("search.k_rrf", "search.indexes.bm25.weight", "search.item_weight")


def usual(search: SearchSettings) -> list[str]:
    """A small space to begin with, all of it replayed from one search a query: of the usual settings those
    that move something under these."""
    return [name for name in _USUAL if not idle_reason(search, name)]


def values(text: str) -> Sequence[Value] | Range:
    """`10, 20, 60` as a list, `10..60` as a range. Raises SettingsError where nothing is given."""
    if found := _RANGE.fullmatch(text):
        low, high = (_value(end) for end in found.groups())
        if isinstance(low, (int, float)) and isinstance(high, (int, float)):
            return Range(low, high)
    listed = [_value(part) for part in text.split(",") if part.strip()]
    if not listed:
        raise SettingsError("it has no values to try; give some, with commas between them")
    return listed


def _value(text: str) -> Value:
    word = text.strip()
    if word.casefold() in ("on", "true", "yes"):
        return True
    if word.casefold() in ("off", "false", "no"):
        return False
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word


def shown(value: Value) -> str:
    """A value as it is typed."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)
