"""Settings that a sweep need not try: named with their reason, unless another of its settings wakes them."""

from __future__ import annotations

from core.behaviour.events import Event
from core.corpus.first_stage import FirstStage
from core.evaluation.space import Range, Space
from core.report.idle_space import idle_reason, idle_settings
from core.settings import SearchSettings, Settings

ONE_STAGE = Settings(search=SearchSettings(two_stage=False))
WEIGHT = {"search.item_weight": [0.0, 0.5, 1.0]}


def test_what_moves_nothing_is_named_with_its_reason() -> None:
    space = Space({**WEIGHT, "search.k_rrf": [10, 60], "index.chunking.size": [400]}, ONE_STAGE)
    assert idle_settings(space, "kept") == {"search.item_weight": "two stages are off"}
    assert idle_settings(Space(space.values, Settings()), "kept") == {}
    assert idle_reason(ONE_STAGE.search, "search.items") == "two stages are off"
    assert idle_reason(ONE_STAGE.search, "index.chunking.size") == ""


def test_another_setting_of_the_sweep_wakes_it() -> None:
    assert idle_settings(Space({**WEIGHT, "search.two_stage": [True, False]}, ONE_STAGE), "kept") == {}
    # Of two that are needed, one alone does not.
    k = {"search.k_rrf_score": Range(1, 60), "search.two_stage": [True]}
    alone = Settings(search=SearchSettings(two_stage=False, item_weight=0.0))
    assert list(idle_settings(Space(k, alone), "kept")) == ["search.k_rrf_score"]
    assert idle_settings(Space({**k, **WEIGHT}, alone), "kept") == {}


def test_a_signal_that_is_there_wakes_the_fusion_of_items() -> None:
    alone = SearchSettings().with_signal("semantic", on=False)
    for name in ("search.k_rrf_items", "search.signals.lexical.weight"):
        assert "one list keeps its order" in idle_reason(alone, name)
        assert idle_reason(alone.replace(recency_field="day"), name) == ""
        clicks = FirstStage(events=(Event("pump", "d0", "open", 1, ""),))
        assert idle_reason(alone, name, clicks) == ""
        assert idle_reason(alone.with_signal("clicks", weight=0.0), name, clicks) != ""


def test_merging_changes_passages_alone() -> None:
    space = Space({"search.merge_gap": [0, 400]})
    assert idle_settings(space, "kept") == {"search.merge_gap": "merging changes passages alone"}
    assert idle_settings(space, "passages") == {}
