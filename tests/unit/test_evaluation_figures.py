"""Figures of an evaluation: what they show, told in words too, and not by colour alone."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from core.evaluation.funnel import Bar, Ceiling, Funnel, Spans
from core.report.evaluation_figures import (
    Rung,
    Trial,
    ceiling_curve,
    difference_bars,
    frontier,
    funnel_bars,
    ladder,
    percent,
    signed,
)


def bar(stage: str, passed: float, lost: float, *queries: str, on: bool = True) -> Bar:
    n = len(queries)
    causes = {"pushed out": n} if n else {}
    return Bar(stage, stage.title(), on, round(passed * 10), passed, n, lost, causes, queries)


FUNNEL = Funnel(
    20,
    10,
    (),
    (
        bar("items", 0.9, 0.1, "a"),
        bar("indexes", 0.9, 0.0),
        bar("reranker", 0.9, 0.0, on=False),
        bar("kept", 0.7, 0.2, "b", "c"),
    ),
    (bar("bm25", 0.6, 0.3, "b", "c", "d"), bar("vector", 0.8, 0.1, "b")),
    Spans(12, 11, 8, 2, 1, 0.625, ("a",)),
    1,
    0.1,
)


class TestFunnelBars:
    def test_a_line_for_each_stage_index_and_the_passages(self) -> None:
        there, lost, labels = funnel_bars(FUNNEL).figure.data
        stages = ("items", "bm25", "vector", "indexes", "reranker", "kept", "passages")
        assert there.customdata == lost.customdata == stages
        assert there.x == pytest.approx((90, 60, 80, 90, 90, 70, 80))
        assert lost.x == pytest.approx((10, 0, 0, 0, 0, 20, 0))
        assert there.y[1] == "Bm25 alone"
        assert there.y[4] == "Reranker (off)"
        assert (labels.text[0], labels.text[1]) == ("\u2002−10.0 % · 1", "")
        assert labels.text[5] == "\u2002−20.0 % · 2"
        assert (labels.x[0], labels.x[5]) == pytest.approx((100, 90))
        assert lost.marker.pattern.shape == "/"
        assert there.marker.pattern.shape is None

    def test_in_words(self) -> None:
        assert funnel_bars(FUNNEL).text == (
            "Of the golden evidence of 10 queries, 70.0 % is among the first 20. "
            "Items loses 10.0 %: 1 piece of 1 query; pushed out (1). "
            "Kept loses 20.0 %: 2 pieces of 2 queries; pushed out (2). "
            "Bm25 alone holds 60.0 %. Vector alone holds 80.0 %. "
            "Merging brings 1 lost piece back (10.0 %). "
            "2 of 11 located spans are cut; the fullest chunk holds 62.5 % of one on average."
        )
        plain = replace(FUNNEL, regained=0, spans=Spans(11, 11, 11, 0, 0, 1.0, ()))
        assert "Merging" not in funnel_bars(plain).text
        assert "cut" not in funnel_bars(plain).text


class TestCeilingCurve:
    CEILING = Ceiling(
        np.arange(1, 5), np.array([0.5, 0.25, 0.0, 0.0]), np.array([10.0, 20.0, 25.0, 40.0]), 4
    )

    def test_both_curves_and_the_number_now(self) -> None:
        unreachable, chunks, now = ceiling_curve(self.CEILING).figure.data
        assert unreachable.y.tolist() == [50, 25, 0, 0]
        assert chunks.y.tolist() == [10, 20, 25, 40]
        assert (now.x, now.y) == ((4,), (0,))
        assert chunks.yaxis == "y2"
        assert unreachable.line.dash != chunks.line.dash

    def test_in_words(self) -> None:
        assert ceiling_curve(self.CEILING).text == (
            "With 4 items sent on, 0.0 % of the golden evidence cannot be reached, and a query searches "
            "40 chunks on average. 3 items would lose as little, with 25 chunks."
        )

    def test_a_number_beyond_the_last_item_is_shown_there(self) -> None:
        drawn = ceiling_curve(replace(self.CEILING, current=100))
        assert drawn.figure.data[2].x == (4,)
        assert drawn.figure.data[2].name == "now: 100 items"
        two = ceiling_curve(replace(self.CEILING, current=2))
        assert "With 2 items sent on, 25.0 %" in two.text
        assert "would lose" not in two.text


def test_the_ladder_has_intervals_and_the_published_line() -> None:
    rungs = [Rung("embeddings", 0.2, 0.1, 0.4, 0.057), Rung("+ own step", 0.1, 0.0, 0.15)]
    drawn = ladder(rungs, 20)
    here, published = drawn.figure.data
    assert here.y == pytest.approx((20, 10))
    assert here.error_y.array == pytest.approx((20, 5))
    assert here.error_y.arrayminus == pytest.approx((10, 10))
    assert (published.x, published.y) == (("embeddings",), (5.7,))
    assert here.marker.symbol != published.marker.symbol
    assert drawn.text == (
        "Failure rate at 20, with its 95 % interval: embeddings 20.0 % (10.0 % to 40.0 %), "
        "published 5.7 %; + own step 10.0 % (0.0 % to 15.0 %)."
    )
    assert len(ladder(rungs[1:], 20).figure.data) == 1


class TestFrontier:
    TRIALS = (
        Trial("slow", 0.9, 30, 0.0, frontier=True, mark="best"),
        Trial("poor", 0.5, 20),
        Trial("fast <b>", 0.7, 5, 0.01, frontier=True),
        Trial("as set", 0.6, 12, mark="default"),
        Trial("failed", math.nan, 3),
    )

    def test_the_frontier_is_a_line_by_cost_and_points_keep_their_places(self) -> None:
        tried, best, marked = frontier(self.TRIALS, "recall@20").figure.data
        assert (tried.customdata, best.customdata, marked.customdata) == ((1,), (2, 0), (0, 3))
        assert (best.x, best.y) == ((5, 30), (0.7, 0.9))
        assert best.mode == "lines+markers+text"
        axis = frontier(self.TRIALS, "recall@20").figure.layout.xaxis
        assert axis.range == pytest.approx((0, 33))  # cut off, small differences would look large
        assert (marked.text, marked.name) == (("best", "default"), "best and default")
        # Names of points in one place do not cover one another, and none leaves the figure.
        assert marked.textposition == ("bottom center", "top center")
        assert best.textposition == ("middle right", "middle left")
        assert best.text == ("fast &lt;b&gt;", "")
        assert best.hovertext == ("fast &lt;b&gt;", "slow")
        assert len({one.marker.symbol for one in (tried, best, marked)}) == 3

    def test_the_axis_ends_where_a_metric_does(self) -> None:
        def ends(*qualities: float) -> tuple[float, float]:
            trials = [Trial("t", quality, 5) for quality in qualities]
            return frontier(trials, "recall@20").figure.layout.yaxis.range

        assert ends(1.0, 1.0) == pytest.approx((0.98, 1.0))
        assert ends(0.5, 0.9) == pytest.approx((0.46, 0.94))
        assert ends(0.0, 1.0) == (0.0, 1.0)

    def test_in_words(self) -> None:
        assert frontier(self.TRIALS, "recall@20").text == (
            "recall@20 against milliseconds a query, 4 trials. fast <b>: 0.700 at 5; "
            "slow (best): 0.900 at 30; as set (default): 0.600 at 12. Left out, as not known: 1."
        )
        dollars = frontier(self.TRIALS, "recall@20", "dollars")
        assert dollars.figure.data[1].x == (0, 0.01)
        assert "US dollars" in dollars.text
        with pytest.raises(ValueError, match="cost is 'euros'; choose milliseconds or dollars"):
            frontier(self.TRIALS, "recall@20", "euros")


def test_differences_from_the_largest_gain_to_the_largest_loss() -> None:
    drawn = difference_bars(["a", "<a href>", "c", "a"], [0.0, -0.5, 0.25, -0.125], "recall@20")
    better, worse = drawn.figure.data
    assert (better.x, better.y, better.customdata) == ((1,), (0.25,), (2,))
    assert (worse.x, worse.y, worse.customdata) == ((3, 4), (-0.125, -0.5), (3, 1))
    assert worse.hovertext[1] == "&lt;a href&gt;"
    assert worse.marker.pattern.shape == "/"
    assert (better.name, worse.name) == ("B is better (1)", "A is better (2)")
    assert drawn.text == (
        "recall@20, B against A over 4 queries: 1 better, 2 worse, 1 the same. "
        "Largest losses: <a href> (−0.500); a (−0.125)."
    )
    assert "Largest" not in difference_bars(["a"], [0.0], "recall@20").text
    assert difference_bars([], [], "recall@20").text.endswith("0 better, 0 worse, 0 the same.")


def test_shares_read_as_per_cent() -> None:
    assert [percent(0.0), percent(0.0574), percent(1)] == ["0.0 %", "5.7 %", "100.0 %"]


@pytest.mark.parametrize(
    ("difference", "told"), [(-0.0, "0.000"), (-0.0004, "0.000"), (-0.0006, "−0.001"), (0.25, "+0.250")]
)
def test_a_difference_has_no_sign_before_zero(difference: float, told: str) -> None:
    assert signed(difference) == told
