"""Search settings as controls: in pipeline order, with the reason where one moves nothing at the moment.

Made from the settings' own fields, so that a new field shows up as soon as it has a place in `GROUPS`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from core.corpus import Corpus
from core.pipeline.items import RULES
from core.settings import IndexUse, SearchSettings, SignalUse
from core.trace import Trace

GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Filters", ("filters",)),
    (
        "Item stage",
        (
            "two_stage",
            "signals",
            "recency_field",
            "recency_half_life",
            "popularity_field",
            "k_rrf_items",
            "items",
        ),
    ),
    ("Indexes", ("second_stage", "indexes")),
    ("Fusion", ("fusion", "k_rrf")),
    ("Score fusion", ("passage_weight", "item_weight", "k_rrf_score")),
    (
        "Reranking",
        (
            "rerank",
            "rerank_model",
            "rerank_depth",
            "rerank_order",
            "rerank_weight",
            "k_rrf_rerank",
        ),
    ),
    ("Kept chunks", ("k", "collapse_duplicates", "per_item")),
    ("Merging", ("merge", "merge_gap", "merge_cap")),
    ("BM25", ("bm25_variant", "bm25_k1", "bm25_b")),
    ("Vector search", ("vector", "hnsw_m", "hnsw_ef_construction", "hnsw_ef")),
)
"""Every field of `SearchSettings`, once."""


@dataclass(frozen=True, slots=True)
class Knob:
    """One control. `path`: the field's dotted name as in a link; `part`: its index or signal."""

    path: str
    part: str
    label: str
    help: str
    low: float | None
    high: float | None
    choices: tuple[str, ...]
    replay: str
    default: Any
    value: Any
    idle: str


def signals_of(trace: Trace) -> tuple[str, ...]:
    """The item signals that a trace's corpus has under its settings, "rules" last where it has any; those of
    every collection where no item was ranked."""
    ruled = RULES if len(cast(Corpus, trace.corpus).first_stage.rules) else ""
    return tuple(filter(None, (*(trace.record.signals or ("lexical", "semantic")), ruled)))


def knobs(
    settings: SearchSettings, signals: Sequence[str], indexes: Sequence[str]
) -> list[tuple[str, list[Knob]]]:
    """Group title → its controls; `signals` and `indexes` name those there are (`signals_of` a trace)."""
    blank = SearchSettings()
    specs = {spec.name: spec for spec in dataclasses.fields(SearchSettings)}
    uses = {"signals": (SignalUse, signals), "indexes": (IndexUse, indexes)}
    made = []
    for title, names in GROUPS:
        group = []
        for name in names:
            if name in uses:
                of, parts = uses[name]
                found = [
                    (f"{name}.{part}.{spec.name}", part, spec)
                    for part in parts
                    for spec in dataclasses.fields(of)
                ]
            else:
                found = [(name, "", specs[name])]
            for path, part, spec in found:
                facts = spec.metadata
                group.append(
                    Knob(
                        path,
                        part,
                        facts["label"],
                        facts["help"],
                        facts["low"],
                        facts["high"],
                        facts["choices"],
                        facts["replay"],
                        value_of(blank, path),
                        value_of(settings, path),
                        idle(settings, path, signals, indexes),
                    )
                )
        made.append((title, group))
    return made


def value_of(settings: SearchSettings, path: str) -> Any:
    """The value of a dotted field, such as "indexes.bm25.weight"."""
    name, _, rest = path.partition(".")
    if not rest:
        return getattr(settings, name)
    part, _, field = rest.rpartition(".")
    return getattr(settings.index(part) if name == "indexes" else settings.signal(part), field)


def with_value(settings: SearchSettings, path: str, value: Any) -> SearchSettings:
    """A copy with one dotted field changed. Raises SettingsError when the value is out of its limits."""
    name, _, rest = path.partition(".")
    if not rest:
        return settings.replace(**{name: value})
    part, _, field = rest.rpartition(".")
    change = settings.with_index if name == "indexes" else settings.with_signal
    return change(part, **{field: value})


def idle(settings: SearchSettings, path: str, signals: Sequence[str], indexes: Sequence[str]) -> str:
    """Why changing this field would move nothing under these settings; empty when it may."""
    name, _, rest = path.partition(".")
    part, _, field = rest.rpartition(".")
    if name == "signals":
        return _idle_signal(settings, part, field, signals)
    if name == "indexes":
        return _idle_index(settings, part, field, indexes)
    if name in ("k_rrf_items", "items", "passage_weight", "item_weight", "k_rrf_score"):
        return _idle_items(settings, name, signals)
    if name in ("recency_field", "recency_half_life", "popularity_field"):
        return _idle_field(settings, name)
    searching = _searching(settings, indexes)
    unranked = "" if settings.rerank != "none" else "no reranker is chosen"
    replaced = "" if settings.rerank_fuses else "the reranker's order replaces the one before"
    reasons = {
        **dict.fromkeys(("rerank_model", "rerank_depth", "rerank_order"), (unranked,)),
        **dict.fromkeys(("rerank_weight", "k_rrf_rerank"), (unranked, replaced)),
        "second_stage": ("" if settings.two_stage else "two stages are off",),
        "fusion": ("" if searching else "no index is on",),
        "k_rrf": (
            ""
            if settings.fusion == "rrf"
            else f"fusion is {settings.fusion}, which adds scores, not ranks",
            "" if len(searching) != 1 else f"only {searching[0]} searches: one list keeps its order",
        ),
        "merge_gap": ("" if settings.merge else "merging is off",),
        "merge_cap": ("" if settings.merge else "merging is off",),
        "bm25_b": ("" if settings.bm25_k1 > 0 else "k1 is 0, so length does not count",),
        "hnsw_m": _exact(settings),
        "hnsw_ef_construction": _exact(settings),
        "hnsw_ef": _exact(settings),
    }
    return next((reason for reason in reasons.get(name, ()) if reason), "")


def _exact(settings: SearchSettings) -> tuple[str, ...]:
    return ("" if settings.vector == "hnsw" else "vectors are searched exactly",)


def _idle_signal(settings: SearchSettings, part: str, field: str, signals: Sequence[str]) -> str:
    if not settings.two_stage:
        return "two stages are off"
    if field == "on":
        return ""
    use = settings.signal(part)
    if not use.on:
        return f"{part} is off"
    on = [name for name in signals if settings.signal(name).on]
    if on == [RULES]:
        return "all other signals are off: rules change a ranking, they make none"
    # With weight 0 it ranks nothing, and another weight brings it back.
    return "it is the only signal: one list keeps its order" if len(on) == 1 and use.weight else ""


def _idle_field(settings: SearchSettings, name: str) -> str:
    signal = name.partition("_")[0]
    if not settings.two_stage:
        return "two stages are off"
    if not settings.signal(signal).on:
        return f"{signal} is off"
    blank = name == "recency_half_life" and not settings.recency_field
    return "no recency field is set" if blank else ""


def _idle_index(settings: SearchSettings, part: str, field: str, indexes: Sequence[str]) -> str:
    if settings.two_stage and settings.second_stage == "semantic" and part != "vector":
        return "the second stage is semantic only"
    if field == "on":
        return ""
    use = settings.index(part)
    if not use.on:
        return f"{part} is off"
    if field == "weight" and use.weight and len(_searching(settings, indexes)) == 1:
        return "it is the only index: one list keeps its order"
    return ""


def _searching(settings: SearchSettings, indexes: Sequence[str]) -> list[str]:
    return [
        name
        for name in indexes
        if not _idle_index(settings, name, "on", indexes) and settings.index(name).on
    ]


def _idle_items(settings: SearchSettings, name: str, signals: Sequence[str]) -> str:
    if not settings.two_stage:
        return "two stages are off"
    on = [signal for signal in signals if settings.signal(signal).on]
    if not on or on == [RULES]:
        return "all item signals are off"
    if name == "k_rrf_items" and len(on) == 1:
        return f"only {on[0]} ranks items: one list keeps its order"
    if name == "k_rrf_score" and not (settings.passage_weight and settings.item_weight):
        return "one of the two weights is 0: the other rank alone decides"
    return ""
