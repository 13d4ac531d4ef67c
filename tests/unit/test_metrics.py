"""Metrics by hand, in the cases that a library would not tell: passages, lists that end, odd judgements."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from core.evaluation.characters import CHARACTER_METRICS, Span, character_scores, precision_omega
from core.evaluation.judgements import EvaluationError
from core.evaluation.metrics import METRICS, metric_at, per_query, saturated, unjudged


@dataclass(frozen=True)
class Ranks:
    """The shape that metrics take."""

    ranks: Sequence[NDArray[np.int64]]
    grades: Sequence[NDArray[np.int64]]
    reach: int = 100
    name: str = "vector"


def ranks(
    *queries: Sequence[int], grades: Sequence[Sequence[int]] | None = None, reach: int = 100
) -> Ranks:
    listed = [np.array(one, dtype=np.int64) for one in queries]
    graded = (
        [np.ones_like(one) for one in listed] if grades is None else [np.array(one) for one in grades]
    )
    return Ranks(listed, list(graded), reach)


def value(metric: str, k: int | None, *pieces: int, grades: Sequence[int] | None = None) -> float:
    return float(per_query(ranks(pieces, grades=grades and [grades]), metric, k)[0])


class TestValues:
    @pytest.mark.parametrize(
        ("metric", "k", "expected"),
        [
            ("recall", 5, 2 / 3),
            ("recall", 1, 0),
            ("failure", 5, 1 / 3),
            ("success", 5, 1),
            ("success", 1, 0),
            ("mrr", 5, 1 / 2),
            ("mrr", 1, 0),
            ("mrr", None, 1 / 2),
            ("precision", 5, 2 / 5),
            ("map", 5, (1 / 2 + 2 / 4) / 3),
            ("map", 3, (1 / 2) / 3),
            ("ndcg", 5, (1 / math.log2(3) + 1 / math.log2(5)) / (1 + 1 / math.log2(3) + 1 / 2)),
            # The best order has one result in the first one, and this has none there.
            ("ndcg", 1, 0),
        ],
    )
    def test_of_pieces_at_ranks_2_and_4_and_one_not_found(
        self, metric: str, k: int | None, expected: float
    ) -> None:
        assert value(metric, k, 4, 0, 2) == pytest.approx(expected)

    def test_grades_weigh_in_ndcg_only(self) -> None:
        low_first, high_first = [1, 3], [3, 1]
        for metric in METRICS:
            same = value(metric, 5, 1, 2, grades=low_first) == value(metric, 5, 1, 2, grades=high_first)
            assert same == (metric not in ("ndcg", "ndcg_exp"))
        assert value("ndcg", 5, 1, 2, grades=low_first) == pytest.approx(
            (1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3))
        )
        assert value("ndcg_exp", 5, 1, 2, grades=low_first) == pytest.approx(
            (1 + 7 / math.log2(3)) / (7 + 1 / math.log2(3))
        )

    def test_a_grade_that_overflows_two_to_its_power(self) -> None:
        assert value("ndcg_exp", 5, 1, 2, grades=[5000, 1]) == 1
        assert value("ndcg_exp", 5, 2, 1, grades=[5000, 1]) == pytest.approx(1 / math.log2(3))

    def test_two_pieces_in_one_passage_are_one_result(self) -> None:
        # The first passage holds both golden chunks: nothing could be better.
        for metric in ("recall", "success", "mrr", "ndcg", "ndcg_exp", "map"):
            assert value(metric, 5, 1, 1, grades=[1, 3]) == 1
        assert value("precision", 5, 1, 1) == 1 / 5
        assert value("ndcg", 5, 2, 2, grades=[1, 3]) == pytest.approx(1 / math.log2(3))

    def test_each_query_has_its_own(self) -> None:
        many = ranks([1, 0], [3], [0, 0, 2])
        assert per_query(many, "recall", 2).tolist() == [1 / 2, 0, 1 / 3]
        assert per_query(many, "mrr", 2).tolist() == [1, 0, 1 / 2]
        assert per_query(many, "map", 2).tolist() == [1 / 2, 0, 1 / 6]


class TestRefused:
    def test_k_beyond_the_reach_is_an_error_and_no_low_number(self) -> None:
        shallow = ranks([1, 0], reach=10)
        assert per_query(shallow, "recall", 10).tolist() == [0.5]
        for metric in METRICS:
            with pytest.raises(EvaluationError, match=rf"{metric}@20 of vector .* asked for 10 only"):
                per_query(shallow, metric, 20)

    @pytest.mark.parametrize("k", [0, -3])
    def test_k_below_one(self, k: int) -> None:
        with pytest.raises(EvaluationError, match=f"recall@{k} is not defined"):
            per_query(ranks([1]), "recall", k)

    def test_no_query_and_a_query_without_pieces(self) -> None:
        with pytest.raises(EvaluationError, match="no query"):
            per_query(ranks(), "recall", 5)
        with pytest.raises(EvaluationError, match="query 2 of vector has no golden pieces"):
            per_query(ranks([1], [], [2]), "recall", 5)

    def test_unknown_metrics_and_a_missing_k(self) -> None:
        with pytest.raises(EvaluationError, match=r"no metric 'bleu@5'; there are recall@k, .*ndcg@k"):
            per_query(ranks([1]), "bleu", 5)
        with pytest.raises(EvaluationError, match="recall needs a k"):
            per_query(ranks([1]), "recall")


class TestLabels:
    @pytest.mark.parametrize(
        ("label", "name", "k"),
        [
            ("recall@20", "recall", 20),
            (" nDCG@10 ", "ndcg", 10),
            ("nDCG-exp@5", "ndcg_exp", 5),
            ("MRR", "mrr", None),
        ],
    )
    def test_read(self, label: str, name: str, k: int | None) -> None:
        assert metric_at(label) == (METRICS[name], k)

    @pytest.mark.parametrize("label", ["recall", "recall@0", "recall@", "recall@x", "", "@5", "hits@5"])
    def test_refused(self, label: str) -> None:
        with pytest.raises(EvaluationError):
            metric_at(label)

    def test_every_metric_is_shown_as_it_is_read_and_says_where_it_is_from(self) -> None:
        for metric in METRICS.values():
            assert metric_at(metric.label(7)) == (metric, 7)
        for metric in [*METRICS.values(), *CHARACTER_METRICS.values()]:
            assert metric.help.endswith(".")
            assert any(character.isdigit() for character in metric.source)
        assert [name for name, one in METRICS.items() if not one.higher_is_better] == ["failure"]


@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 12), st.integers(1, 60)), min_size=1, max_size=8),
        min_size=1,
        max_size=5,
    ),
    st.integers(1, 12),
    st.sampled_from(list(METRICS)),
)
def test_always_from_0_to_1_and_no_worse_when_everything_moves_to_the_top(
    queries: list[list[tuple[int, int]]], k: int, metric: str
) -> None:
    taken = [[rank for rank, _ in one] for one in queries]
    grades = [[grade for _, grade in one] for one in queries]
    values = per_query(ranks(*taken, grades=grades, reach=12), metric, k)
    assert values.shape == (len(queries),)
    assert ((values >= 0) & (values <= 1)).all()
    best = [np.argsort(np.argsort(-np.array(one))) + 1 for one in grades]
    ideal = per_query(ranks(*best, grades=grades), metric, k)
    if metric == "failure":
        assert (ideal >= 0).all()
    elif metric in ("success", "mrr", "ndcg", "ndcg_exp"):
        assert ideal == pytest.approx(np.ones(len(queries)))


class TestUnjudged:
    def test_is_the_share_of_what_is_shown(self) -> None:
        assert unjudged([1, 4], length=10, k=4) == 0.5
        assert unjudged([1, 4], length=10, k=3) == pytest.approx(2 / 3)
        assert unjudged([1, 2], length=2, k=20) == 0
        assert unjudged([], length=3, k=20) == 1

    def test_of_an_empty_list_is_nothing_and_of_no_k_is_an_error(self) -> None:
        assert unjudged([], length=0, k=5) == 0
        with pytest.raises(EvaluationError, match="first 0"):
            unjudged([1], length=5, k=0)


def first_places(run: list[str], relevant: list[str]) -> list[int]:
    return [run.index(one) + 1 if one in run else 0 for one in relevant]


def check_pitfalls(case: dict[str, dict[str, list[str]]], expected: dict[str, object]) -> None:
    asked = {query: found for query, found in case["qrels"].items() if found}
    taken = [first_places(case["run"][query], relevant) for query, relevant in asked.items()]
    recalls = per_query(ranks(*taken), "recall", 20)
    assert dict(zip(asked, recalls.tolist(), strict=True)) == expected["recall"]
    assert recalls.mean() == expected["mean_recall"]
    assert per_query(ranks(*taken), "failure", 20).mean() == expected["failure_rate"]
    for metric in METRICS:
        values = per_query(ranks(*taken), metric, 20)
        assert ((values >= 0) & (values <= 1)).all()


def test_duplicates_unknown_ids_and_queries_without_judgements() -> None:
    case = {
        "qrels": {"seal": ["a", "b", "not there"], "pump": [], "leak": ["gone"]},
        "run": {"seal": ["b", "b", "b", "x"], "pump": ["a"], "leak": ["x"], "nobody asked": ["a"]},
    }
    expected = {"recall": {"seal": 1 / 3, "leak": 0.0}, "mean_recall": 1 / 6, "failure_rate": 5 / 6}
    check_pitfalls(case, expected)


def test_the_published_pitfalls(eval_data: Path) -> None:
    case = json.loads(
        (eval_data / "hard_inputs/fixtures/qrels_pitfalls.json").read_text(encoding="utf-8")
    )
    check_pitfalls(case, case["expected"])


class TestCharacters:
    def test_by_hand(self) -> None:
        references = [Span("a", 10, 30), Span("a", 50, 60)]
        # 15 of the first twice, none of the second; 10 characters that belong to nothing, 20 elsewhere.
        retrieved = [Span("a", 15, 35), Span("a", 15, 30), Span("a", 100, 105), Span("b", 10, 30)]
        found = character_scores(retrieved, references)
        assert found.recall == 15 / 30
        assert found.precision == 15 / 60
        assert found.iou == 15 / (60 + 15)

    def test_the_same_place_in_another_document_is_nothing(self) -> None:
        assert character_scores([Span("b", 0, 9)], [Span("a", 0, 9)]).recall == 0

    def test_nothing_retrieved(self) -> None:
        found = character_scores([], [Span("a", 0, 9)])
        assert (found.recall, found.precision, found.iou) == (0, 0, 0)

    def test_exactly_the_references(self) -> None:
        spans = [Span("a", 0, 9), Span("b", 4, 6)]
        found = character_scores(spans, spans)
        assert (found.recall, found.precision, found.iou) == (1, 1, 1)

    def test_words_judged_inside_a_judged_chunk_count_once(self) -> None:
        chunk, words, other = Span("a", 0, 100), Span("a", 20, 40), Span("a", 200, 300)
        found = character_scores([chunk], [chunk, words, other])
        assert (found.recall, found.precision, found.iou) == (0.5, 1, 0.5)
        assert character_scores([chunk], [words, chunk]).recall == 1

    def test_omega_takes_the_chunks_that_touch_and_counts_what_they_repeat_once(self) -> None:
        chunks = [Span("a", 0, 20), Span("a", 15, 35), Span("a", 35, 55), Span("b", 0, 100)]
        assert precision_omega(chunks, [Span("a", 18, 25)]) == 7 / 35
        assert precision_omega(chunks, [Span("a", 18, 25), Span("a", 40, 45)]) == 12 / 55
        # A chunk that ends where the reference begins does not touch it.
        assert precision_omega(chunks, [Span("a", 35, 40)]) == 5 / 20
        assert precision_omega(chunks, [Span("c", 0, 5)]) == 0

    def test_without_references_or_with_an_empty_span_is_an_error(self) -> None:
        with pytest.raises(EvaluationError, match="leave it out"):
            character_scores([Span("a", 0, 5)], [])
        with pytest.raises(EvaluationError, match="leave it out"):
            precision_omega([Span("a", 0, 5)], [])
        with pytest.raises(EvaluationError, match="5-5 is no span"):
            character_scores([Span("a", 5, 5)], [Span("a", 0, 5)])

    @given(
        st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 30), st.integers(1, 12)), max_size=6),
        st.lists(
            st.tuples(st.sampled_from("ab"), st.integers(0, 30), st.integers(1, 12)),
            min_size=1,
            max_size=4,
        ),
    )
    def test_as_counted_character_by_character(
        self, retrieved: list[tuple[str, int, int]], references: list[tuple[str, int, int]]
    ) -> None:
        got = [Span(name, start, start + size) for name, start, size in retrieved]
        wanted = [Span(name, start, start + size) for name, start, size in references]

        def characters(spans: list[Span]) -> list[tuple[str, int]]:
            return [(one.document_id, at) for one in spans for at in range(one.start, one.end)]

        seen = set(characters(got))
        overlap = len(seen & set(characters(wanted)))
        missed = len(set(characters(wanted)) - seen)
        found = character_scores(got, wanted)
        assert found.recall == overlap / len(set(characters(wanted)))
        assert found.precision == (overlap / len(characters(got)) if got else 0)
        assert found.iou == overlap / (len(characters(got)) + missed)
        touching = [one for one in got if set(characters([one])) & set(characters(wanted))]
        union = len(set(characters(touching)))
        assert precision_omega(got, wanted) == (overlap / union if union else 0)


@pytest.mark.parametrize(
    ("chunks", "labels", "told"),
    [
        (13, ["recall@20"], "13 chunks: the first 20 hold them all, so recall@20 cannot tell settings apart; look at MRR, nDCG or recall@5"),
        (20, ["failure@20", "recall@20", "recall@5", "mrr@20", "ndcg@20", "mrr"], "20 chunks: the first 20 hold them all, so failure@20 and recall@20 cannot tell settings apart; look at MRR, nDCG or recall@5"),
        (5, ["success@10", "precision@5"], "5 chunks: the first 5 hold them all, so success@10 and precision@5 cannot tell settings apart; look at MRR or nDCG"),
        (1, ["recall@5"], "1 chunk: the first holds it, so recall@5 cannot tell settings apart; look at MRR or nDCG"),
        (21, ["recall@20"], ""),
        (0, ["recall@20"], ""),
    ],
)  # fmt: skip
def test_so_few_chunks_that_a_metric_tells_nothing(chunks: int, labels: list[str], told: str) -> None:
    assert saturated(chunks, labels) == told
