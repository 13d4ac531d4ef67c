"""Every search setting has a control, and a locked one has a reason that holds."""

from __future__ import annotations

from dataclasses import fields

import pytest

from core.corpus import Corpus
from core.pipeline import search
from core.report.knobs import GROUPS, idle, knobs, value_of, with_value
from core.settings import IndexSettings, SearchSettings
from core.types import Document
from tests.fakes import HashEmbedder

SIGNALS, INDEXES = ("lexical", "semantic"), ("bm25", "vector")


def test_every_setting_has_its_place_once() -> None:
    placed = [name for _, names in GROUPS for name in names]
    assert sorted(placed) == sorted(spec.name for spec in fields(SearchSettings))


def test_a_control_carries_value_default_limits_and_help() -> None:
    settings = SearchSettings(k_rrf=7).with_index("bm25", weight=2.0)
    found = {knob.path: knob for _, group in knobs(settings, SIGNALS, INDEXES) for knob in group}
    assert (found["k_rrf"].value, found["k_rrf"].default, found["k_rrf"].low) == (7, 60, 0)
    assert (found["indexes.bm25.weight"].value, found["indexes.bm25.weight"].part) == (2.0, "bm25")
    assert found["indexes.vector.weight"].value == 1.0
    assert "signals.lexical.on" in found
    assert all(knob.help and knob.label for knob in found.values())
    half = found["recency_half_life"]
    assert (half.label, half.help[:8]) == ("Recency half-life, days", "In days:")


@pytest.mark.parametrize(
    "path", ["k", "fusion", "indexes.bm25.depth", "indexes.my.index.weight", "signals.lexical.on"]
)
def test_a_value_put_in_comes_out(path: str) -> None:
    new = {"k": 3, "fusion": "dbsf", "indexes.bm25.depth": 9, "signals.lexical.on": False}.get(path, 4.5)
    changed = with_value(SearchSettings(), path, new)
    assert value_of(changed, path) == new
    assert with_value(changed, path, value_of(SearchSettings(), path)) == SearchSettings()


IDLE = [
    (SearchSettings(fusion="minmax"), "k_rrf", 5),
    (SearchSettings(two_stage=False), "items", 1),
    (SearchSettings(two_stage=False), "item_weight", 0.0),
    (SearchSettings(two_stage=False), "signals.lexical.weight", 9.0),
    (SearchSettings(two_stage=False), "second_stage", "semantic"),
    (SearchSettings(two_stage=False, second_stage="semantic"), "second_stage", "hybrid"),
    (SearchSettings(merge=False), "merge_gap", 0),
    (SearchSettings(merge=False), "merge_cap", 1),
    (SearchSettings(second_stage="semantic"), "indexes.bm25.on", False),
    (SearchSettings(second_stage="semantic"), "indexes.bm25.weight", 9.0),
    (SearchSettings().with_index("bm25", on=False), "indexes.bm25.weight", 9.0),
    (SearchSettings().with_index("bm25", on=False), "indexes.bm25.depth", 1),
    (SearchSettings().with_index("bm25", on=False), "indexes.vector.weight", 9.0),
    (SearchSettings().with_index("bm25", on=False), "k_rrf", 5),
    (SearchSettings().with_signal("lexical", on=False), "k_rrf_items", 5),
    (SearchSettings().with_signal("lexical", on=False), "signals.semantic.weight", 9.0),
    (SearchSettings(item_weight=0.0), "k_rrf_score", 5),
    (SearchSettings(bm25_k1=0.0), "bm25_b", 0.1),
    (SearchSettings(), "hnsw_ef", 10),
]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    texts = (
        "red pump and red valve",
        "valve, green pump, long pipe and a hose",
        "red hose on a pump",
        "blue pipe",
    )
    documents = [Document(f"d{at}", f"d{at}.txt", "", f"{text}. " * 40) for at, text in enumerate(texts)]
    return Corpus.from_documents(documents, IndexSettings(), HashEmbedder())


@pytest.mark.parametrize(("settings", "path", "value"), IDLE)
def test_a_locked_control_would_move_nothing(
    corpus: Corpus, settings: SearchSettings, path: str, value: object
) -> None:
    assert idle(settings, path, SIGNALS, INDEXES)
    before = search(corpus, "red pump valve", settings)
    after = search(corpus, "red pump valve", with_value(settings, path, value))
    assert [(one.item, one.start, one.end) for one in after.passages] == [
        (one.item, one.start, one.end) for one in before.passages
    ]


def test_with_the_defaults_only_settings_of_what_is_not_chosen_are_locked() -> None:
    locked = {
        knob.path
        for _, group in knobs(SearchSettings(), SIGNALS, INDEXES)
        for knob in group
        if knob.idle
    }
    reranking = {"rerank_model", "rerank_depth", "rerank_order", "rerank_weight", "k_rrf_rerank"}
    assert locked == {"hnsw_m", "hnsw_ef_construction", "hnsw_ef", "recency_half_life"} | reranking


def test_only_a_fused_order_has_a_weight_and_a_constant() -> None:
    paths = ("rerank_depth", "rerank_weight", "k_rrf_rerank")
    free, locked_two = [False, False, False], [False, True, True]
    for name, order, locked in (
        ("late", "replace", locked_two),
        ("late", "fuse", free),
        ("late", "usual", free),
        ("claude", "usual", locked_two),
    ):
        chosen = SearchSettings(rerank=name, rerank_order=order)
        assert [bool(idle(chosen, path, SIGNALS, INDEXES)) for path in paths] == locked


def test_a_weight_of_0_can_be_raised_again_though_its_list_is_the_only_one(corpus: Corpus) -> None:
    off = SearchSettings().with_index("bm25", on=False).with_index("vector", weight=0.0)
    off = off.with_signal("lexical", on=False).with_signal("semantic", weight=0.0)
    assert not search(corpus, "red pump valve", off).passages
    paths = ("indexes.vector.weight", "signals.semantic.weight")
    assert [idle(off, path, SIGNALS, INDEXES) for path in paths] == ["", ""]
    for path in paths:
        off = with_value(off, path, 1.0)
    assert search(corpus, "red pump valve", off).passages
