"""Passage merging: overlapping, adjacent and near chunks of one item, keeping the best score."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.passages import Passage, Span, merge


def test_shared_cases_exactly(eval_data: Path) -> None:
    cases = json.loads((eval_data / "hard_inputs/fixtures/merge_cases.json").read_text())["cases"]
    assert cases
    for name, case in cases.items():
        spans = [Span(p["id"], 0, p["start"], p["end"], p["score"]) for p in case["passages"]]
        got = [
            {"start": p.start, "end": p.end, "score": p.score, "members": list(p.members)}
            for p in merge(spans, case["gap"])
        ]
        assert got == case["expected"], name


def test_the_gap_counts_from_end_to_start() -> None:
    near = [Span("a", 0, 0, 100, 0.5), Span("b", 0, 120, 200, 0.9)]
    assert merge(near, 20) == [Passage(0, 0, 200, 0.9, "b", ("a", "b"), ((100, 120),))]
    assert [p.members for p in merge(near, 19)] == [("b",), ("a",)]


def test_items_never_mix() -> None:
    merged = merge([Span("a", 0, 0, 10, 0.1), Span("b", 1, 5, 15, 0.2)], 100)
    assert [(p.item, p.members) for p in merged] == [(1, ("b",)), (0, ("a",))]


def test_nothing_is_joined_past_the_cap() -> None:
    row = [Span(n, 0, n * 100, n * 100 + 100, 1.0) for n in range(5)]
    assert [(p.start, p.end) for p in merge(row, 0, cap=250)] == [(0, 200), (200, 400), (400, 500)]
    assert [(p.start, p.end) for p in merge(row, 0, cap=500)] == [(0, 500)]
    long = [Span("long", 0, 0, 900, 0.1), Span("inside", 0, 10, 20, 0.3), Span("past", 0, 880, 950, 0.2)]
    assert [p.members for p in merge(long, 0, cap=500)] == [("long", "inside"), ("past",)]


def test_equal_scores_stand_in_corpus_order() -> None:
    spans = [Span("c", 1, 0, 5, 0.5), Span("b", 0, 50, 60, 0.5), Span("a", 0, 0, 5, 0.5)]
    assert [p.best for p in merge(spans)] == ["a", "b", "c"]


def test_bad_limits_are_named() -> None:
    with pytest.raises(ValueError, match="gap is -1"):
        merge([], -1)
    with pytest.raises(ValueError, match="cap is 0"):
        merge([], 0, 0)


spans = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 300), st.integers(1, 120), st.integers(0, 5)),
    max_size=25,
).map(lambda rows: [Span(n, i, s, s + w, v / 5) for n, (i, s, w, v) in enumerate(rows)])


@given(spans, st.integers(0, 40), st.one_of(st.none(), st.integers(1, 200)))
def test_merging_keeps_every_member_once_and_its_best_score(
    given_spans: list[Span[int]], gap: int, cap: int | None
) -> None:
    by_key = {span.key: span for span in given_spans}
    merged = merge(given_spans, gap, cap)
    assert sorted(m for p in merged for m in p.members) == sorted(by_key)
    for passage in merged:
        members = [by_key[m] for m in passage.members]
        assert {m.item for m in members} == {passage.item}
        assert passage.start == min(m.start for m in members)
        assert passage.end == max(m.end for m in members)
        assert passage.score == max(m.score for m in members) == by_key[passage.best].score
        if cap is not None and len(members) > 1:
            assert passage.end - passage.start <= max(cap, *(m.end - m.start for m in members))
        covered = {c for m in members for c in range(m.start, m.end)}
        holes = {c for start, end in passage.gaps for c in range(start, end)}
        assert holes == set(range(passage.start, passage.end)) - covered
        assert all(end - start <= gap for start, end in passage.gaps)


@given(spans, st.integers(0, 40), st.one_of(st.none(), st.integers(1, 200)))
def test_merging_twice_changes_nothing(given_spans: list[Span[int]], gap: int, cap: int | None) -> None:
    once = merge(given_spans, gap, cap)
    twice = merge([Span(n, p.item, p.start, p.end, p.score) for n, p in enumerate(once)], gap, cap)
    assert [(p.item, p.start, p.end, p.score) for p in twice] == [
        (p.item, p.start, p.end, p.score) for p in once
    ]


@given(spans, st.integers(0, 40))
def test_the_order_of_the_input_does_not_matter(given_spans: list[Span[int]], gap: int) -> None:
    def shape(spans: list[Span[int]]) -> list[tuple[int, int, int, float]]:
        return [(p.item, p.start, p.end, p.score) for p in merge(spans, gap)]

    assert shape(given_spans) == shape(given_spans[::-1])
