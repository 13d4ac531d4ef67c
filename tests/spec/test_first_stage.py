"""The item stage by hand: signals, boost, bury, pin, hide, recency and popularity over five items."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction as F

import numpy as np
import pytest

from core.access import Viewer
from core.corpus import Corpus
from core.corpus.first_stage import FirstStage
from core.documents import ListedDocuments
from core.explanation import explain
from core.extras import register_signal, unregister_signal
from core.fields import FilterError
from core.pipeline import replay, search
from core.protocols import Items
from core.rules import Rules
from core.settings import IndexSettings, SearchSettings, SignalUse
from core.signals import recency
from core.trace import Ranking, Trace
from core.types import Document
from tests.fakes import HashEmbedder

TODAY = date(2026, 3, 1)
AGES = (None, 0, 365, 7 * 365, 7 * 365 + 1)
VIEWS = (5.0, None, None, None, 9.0)


def build() -> Corpus:
    documents = []
    for n, (age, views) in enumerate(zip(AGES, VIEWS, strict=True)):
        metadata: dict[str, str | float] = {"group": "even" if n % 2 == 0 else "odd"}
        if age is not None:
            metadata["written"] = (TODAY - timedelta(days=age)).isoformat()
        if views is not None:
            metadata["views"] = views
        documents.append(Document(f"d{n}", f"d{n}.txt", "", f"plain text {n}", metadata=metadata))
    access = [None, None, frozenset({"user:ann"}), None, None]
    listed = ListedDocuments(documents, access=access)
    return Corpus.from_documents(listed, IndexSettings(), HashEmbedder())


CORPUS = build()
SETTINGS = SearchSettings(
    signals={"lexical": SignalUse(on=False), "semantic": SignalUse(on=False)},
    recency_field="written",
    popularity_field="views",
    k_rrf_items=10,
)


class Fixed:
    """The items in the order of the corpus."""

    name = "fixed"

    def rank(self, query: str, items: Items) -> Ranking:
        return Ranking.of((item, 100 - int(one[1:])) for item, one in enumerate(items.item_ids))


@pytest.fixture(autouse=True)
def fixed() -> Iterator[None]:
    register_signal("fixed", Fixed)
    yield
    unregister_signal("fixed")


def under(rules: str = "", settings: SearchSettings = SETTINGS, viewer: Viewer | None = None) -> Trace:
    corpus = CORPUS.with_first_stage(FirstStage(Rules.from_toml(rules), today=TODAY))
    trace = search(corpus, "plain text", settings, viewer=viewer)
    trace.check()
    return trace


def rule(name: str, documents: str, action: str) -> str:
    return f'[[rule]]\nname = "{name}"\nquery = "plain"\ndocuments = {documents}\n{action}\n'


def items(trace: Trace, stage: str = "items") -> list[str]:
    return [trace.corpus.item_ids[hit.position] for hit in trace.stage(stage).ranking]


def scores(trace: Trace, stage: str = "items") -> dict[str, float]:
    ids = trace.corpus.item_ids
    return {ids[hit.position]: hit.score for hit in trace.stage(stage).ranking}


BOOST = rule("up", '["d3"]', "boost = 2.0")
BURY = rule("down", '["d0"]', "bury = 1.0")
PIN = rule("first", '["d4"]', "pin = 1")
HIDE = rule("gone", '["d1"]', "hide = true")


def test_recency_halves_and_ends_and_popularity_falls() -> None:
    trace = under()
    assert scores(trace, "items.recency") == {"d1": 1.0, "d2": 0.5, "d3": 2**-7}
    assert scores(trace, "items.popularity") == {"d4": 9.0, "d0": 5.0}


def test_every_signal_adds_its_reciprocal_rank() -> None:
    trace = under()
    expected = {
        "d0": F(1, 11) + F(1, 12),
        "d1": F(1, 12) + F(1, 11),
        "d2": F(1, 13) + F(1, 12),
        "d4": F(1, 15) + F(1, 11),
        "d3": F(1, 14) + F(1, 13),
    }
    assert items(trace) == list(expected)  # d0 and d1 are equal: corpus order
    assert scores(trace) == pytest.approx({one: float(score) for one, score in expected.items()})
    assert trace.stage("items").kind == "fuse"


def test_a_boost_is_a_first_place_more_and_a_bury_one_less() -> None:
    trace = under(BOOST + BURY)
    expected = {
        "d3": F(1, 14) + F(1, 13) + F(2, 11),
        "d1": F(1, 12) + F(1, 11),
        "d2": F(1, 13) + F(1, 12),
        "d4": F(1, 15) + F(1, 11),
        "d0": F(1, 11) + F(1, 12) - F(1, 11),
    }
    assert items(trace) == list(expected)
    assert scores(trace) == pytest.approx({one: float(score) for one, score in expected.items()})
    assert scores(trace, "items.rules") == {"d3": 2.0, "d0": -1.0}
    step = explain(trace, int(CORPUS.first_chunk[3])).step("items")
    assert step.arithmetic.startswith("1/(10+3) + 1/(10+4) + 1·2/(10+1) = ")
    assert (
        explain(trace, 0).step("items").arithmetic.startswith("1/(10+2) + 1/(10+1) + 1·(-1)/(10+1) = ")
    )
    assert "(rule up: boost 2)" in explain(trace, int(CORPUS.first_chunk[3])).sentence


def test_the_weight_of_rules_scales_boosts() -> None:
    trace = under(BOOST, SETTINGS.with_signal("rules", weight=0.5))
    assert scores(trace)["d3"] == pytest.approx(float(F(1, 14) + F(1, 13) + F(1, 11)))


def test_a_pin_puts_an_item_at_its_rank_and_tells_the_one_before() -> None:
    trace = under(BOOST + BURY + PIN)
    assert items(trace, "items.fused") == ["d3", "d1", "d2", "d4", "d0"]
    assert items(trace) == ["d4", "d3", "d1", "d2", "d0"]
    stage = trace.stage("items")
    assert (stage.kind, stage.inputs, dict(stage.removed)) == ("rule", ("items.fused",), {})
    assert stage.ranks is not None
    assert stage.ranks[:, 0].tolist() == [4, 1, 2, 3, 5]
    assert stage.ranking.scores.tolist() == [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5]
    assert "1 pinned by rules" in stage.note
    step = explain(trace, int(CORPUS.first_chunk[4])).step("items")
    assert step.arithmetic == "rank 4 in the fusion; rule first: pin at 1"


def test_what_is_hidden_takes_no_rank_anywhere() -> None:
    trace = under(BOOST + BURY + PIN + HIDE)
    expected = {
        "d3": F(1, 13) + F(1, 12) + F(2, 11),
        "d2": F(1, 12) + F(1, 11),
        "d4": F(1, 14) + F(1, 11),
        "d0": F(1, 11) + F(1, 12) - F(1, 11),
    }
    assert scores(trace, "items.fused") == pytest.approx(
        {one: float(score) for one, score in expected.items()}
    )
    assert items(trace) == ["d4", "d3", "d2", "d0"]
    assert dict(trace.stage("items").removed) == {1: "rule gone hides it"}
    told = explain(trace, int(CORPUS.first_chunk[1]))
    assert told.lost_at == "items"
    assert told.step("items").lost == "rule gone hides it"
    assert "lost at Items (rule gone hides it)" in told.sentence
    assert not any("d1" in one for one in map(str, trace.stage("vector").ranking))


def test_only_is_hiding_the_others() -> None:
    trace = under('[[rule]]\nname = "even"\nitems = "group = even"\nonly = true\n')
    assert items(trace) == ["d0", "d2", "d4"]
    assert set(trace.stage("items").removed) == {1, 3}


def test_what_only_hides_leaves_the_others_their_fused_scores_and_how_they_came_about() -> None:
    expected = {"d0": F(1, 11) + F(1, 12), "d2": F(1, 12) + F(1, 11), "d4": F(1, 13) + F(1, 11)}
    for hiding in (
        rule("gone", '["d1", "d3"]', "hide = true"),
        '[[rule]]\nname = "even"\nitems = "group = even"\nonly = true\n',
    ):
        trace = under(hiding)
        stage = trace.stage("items")
        assert (stage.kind, stage.note) == ("fuse", "2 hidden by rules")
        assert scores(trace) == pytest.approx({one: float(score) for one, score in expected.items()})
        assert items(trace) == list(expected)
        assert "1/(10+" in explain(trace, int(CORPUS.first_chunk[4])).step("items").arithmetic
        assert "items.fused" not in [one.name for one in trace.stages]
        cut = replay(trace, SETTINGS.replace(items=1))
        cut.check()
        assert cut == under(hiding, SETTINGS.replace(items=1))


def test_rules_switched_off_are_replayed_and_equal_no_rules() -> None:
    ruled = under(BOOST + PIN + HIDE)
    off = SETTINGS.with_signal("rules", on=False)
    again = replay(ruled, off)
    assert items(again) == items(under())
    assert again.passages == under().passages
    assert not again.stage("items.rules").on
    assert again.notes == ()
    assert replay(again, SETTINGS) == ruled


def test_a_pin_or_a_boost_brings_in_what_no_signal_ranks_and_a_bury_does_not() -> None:
    only_views = SETTINGS.with_signal("fixed", on=False).with_signal("recency", on=False)
    assert items(under("", only_views)) == ["d4", "d0"]
    assert items(under(BOOST, only_views)) == ["d3", "d4", "d0"]
    assert items(under(rule("down", '["d2"]', "bury = 1.0"), only_views)) == ["d4", "d0"]
    pinned = under(rule("put", '["d1"]', "pin = 2"), only_views)
    assert items(pinned) == ["d4", "d1", "d0"]
    step = explain(pinned, int(CORPUS.first_chunk[1])).step("items")
    assert step.arithmetic == "ranked by no signal that counts; rule put: pin at 2"
    assert items(under(rule("far", '["d1"]', "pin = 40"), only_views)) == ["d4", "d0", "d1"]


def test_the_cut_comes_after_the_pins() -> None:
    trace = under(PIN, SETTINGS.replace(items=2))
    assert items(trace) == ["d4", "d0"]
    lost = explain(trace, int(CORPUS.first_chunk[1]))
    assert lost.step("items").lost == "rank 3, and only the first 2 go on"


def test_filters_come_before_all_else() -> None:
    kept = SETTINGS.replace(filters="group = even")
    trace = under(BOOST + PIN, kept)
    assert items(trace, "items.fixed") == ["d0", "d2", "d4"]
    assert items(trace, "items.recency") == ["d2"]
    assert items(trace, "items.fused") == ["d0", "d2", "d4"]
    assert items(trace) == ["d4", "d0", "d2"]
    assert trace.record.ruled.boosts == {}  # d3 does not pass
    lost = explain(trace, int(CORPUS.first_chunk[3]))
    assert lost.lost_at == "items"
    assert lost.step("items").lost == "its item does not pass the filters (group = even)"
    one_stage = under("", kept.replace(two_stage=False))
    assert {int(CORPUS.item_of[hit.position]) for hit in one_stage.stage("vector").ranking} == {0, 2, 4}
    lost = explain(one_stage, int(CORPUS.first_chunk[3]))
    assert lost.step("vector").lost == "its item does not pass the filters (group = even)"
    assert "of all items that pass the filters are searched" in one_stage.stage("items").note


def test_rules_settle_among_what_passes_the_filters() -> None:
    kept = SETTINGS.replace(filters="group = even")
    trace = under(rule("first", '["d3", "d4"]', "pin = 1"), kept)
    assert items(trace) == ["d4", "d0", "d2"]  # d3, which has the rank without filters, does not take it
    nothing = under(rule("out", '["d0", "d2", "d4"]', "hide = true"), kept)
    assert items(nothing) == []
    assert "no item is left: rule out hides it" in nothing.notes


def test_a_filter_that_nothing_passes_gives_an_empty_trace_that_says_so() -> None:
    trace = under(BOOST, SETTINGS.replace(filters="group = prime"))
    assert trace.passages == ()
    assert trace.notes == ("no item passes the filters (group = prime): change or clear them",)
    with pytest.raises(FilterError, match="color"):
        under("", SETTINGS.replace(filters="color = red"))


def test_rules_do_nothing_where_no_item_is_ranked_and_the_trace_says_so() -> None:
    one_stage = under(HIDE, SETTINGS.replace(two_stage=False))
    assert len(one_stage.passages) == 5
    assert "rules act on ranked items, so they do nothing" in one_stage.stage("items").note
    off = SETTINGS.replace(
        signals=dict.fromkeys(
            ("lexical", "semantic", "fixed", "recency", "popularity"), SignalUse(on=False)
        )
    )
    trace = under(HIDE, off)
    assert len(trace.passages) == 5
    assert trace.stage("items.rules").note == "there is no ranking that rules could change"


def test_a_date_to_come_counts_as_today_and_is_told() -> None:
    earlier = FirstStage(today=TODAY - timedelta(days=400))
    trace = search(CORPUS.with_first_stage(earlier), "plain text", SETTINGS)
    assert scores(trace, "items.recency")["d1"] == 1.0
    assert scores(trace, "items.recency")["d2"] == 1.0
    assert trace.notes == ("recency: 2 dates in written are yet to come: they count as today",)
    filtered = SETTINGS.replace(filters="file != d1.txt")
    trace = search(CORPUS.with_first_stage(earlier), "plain text", filtered)
    assert trace.notes == ("recency: 1 date in written is yet to come: it counts as today",)


def test_a_field_that_no_item_of_the_viewers_has_ranks_nothing_and_is_no_error() -> None:
    trace = under("", SETTINGS.replace(recency_field="colour", popularity_field="size"))
    assert not len(trace.stage("items.recency").ranking)
    assert not len(trace.stage("items.popularity").ranking)
    assert trace.notes == (
        "recency: no item has a date in colour",
        "popularity: no item has a number in size",
    )
    assert len(trace.passages) == 5
    with pytest.raises(FilterError, match="no item has a field 'colour'"):
        under("", SETTINGS.replace(filters="colour exists"))


def test_a_viewer_sees_what_a_collection_without_the_rest_would_give() -> None:
    assert items(under("", viewer=Viewer("ann"))) == items(under())
    trace = under(PIN, viewer=Viewer("ben"))
    assert trace.corpus.item_ids == ("d0", "d1", "d3", "d4")
    assert items(trace, "items.fixed") == ["d0", "d1", "d3", "d4"]
    assert items(trace) == ["d4", "d0", "d1", "d3"]


def test_recency_of_nothing_is_nothing() -> None:
    assert not len(recency(np.full(3, np.nan), TODAY, 365))
    assert not len(recency(np.empty(0), TODAY, 365))


def test_check_finds_what_filters_or_rules_should_have_kept_out() -> None:
    trace = under(PIN + HIDE, SETTINGS.replace(filters="file != d0.txt"))
    trace.check()
    nothing = replace(trace.record, passing=np.zeros(5, dtype=np.bool_))
    with pytest.raises(AssertionError, match=r"stage items\.recency ranks what the filters keep out"):
        replace(trace, record=nothing).check()
    hidden = [
        replace(one, removed={2: "rule other hides it"}) if one.name == "items" else one
        for one in trace.stages
    ]
    with pytest.raises(AssertionError, match=r"stage items\.recency ranks what is hidden"):
        replace(trace, stages=tuple(hidden)).check()
    scored = [
        replace(one, ranking=Ranking(one.ranking.positions, one.ranking.scores * 2))
        if one.name == "items"
        else one
        for one in trace.stages
    ]
    with pytest.raises(AssertionError, match="stage items scores are not 1/rank"):
        replace(trace, stages=tuple(scored)).check()
