"""Every metric against trec_eval (through ir-measures), and two of them against scikit-learn."""

from __future__ import annotations

import ir_measures
import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, ndcg_score

from core.evaluation.metrics import METRICS, per_query
from core.evaluation.runner import StageRanks

DEPTH = 30
QUERIES = 60
MEASURES = {
    "recall": ir_measures.R,
    "success": ir_measures.Success,
    "mrr": ir_measures.RR,
    "ndcg": ir_measures.nDCG,
    "ndcg_exp": ir_measures.nDCG,  # of gains 2^grade − 1: its own exponential one needs Perl, and rounds
    "map": ir_measures.AP,
    "precision": ir_measures.P,
}


def made_up(seed: int, found: float) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
    """Ranks and grades of 1 to 12 golden pieces a query, each in the list with the chance `found`."""
    random = np.random.default_rng(seed)
    ranks, grades = [], []
    for _ in range(QUERIES):
        n = int(random.integers(1, 13))
        places = random.permutation(DEPTH)[:n] + 1
        ranks.append(np.where(random.random(n) < found, places, 0))
        grades.append(random.integers(1, 5, n))
    return ranks, grades


def as_qrels_and_run(
    ranks: list[NDArray[np.int64]], grades: list[NDArray[np.int64]]
) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    qrels, run = {}, {}
    for query, (at, graded) in enumerate(zip(ranks, grades, strict=True)):
        names = {int(rank): f"golden{n}" for n, rank in enumerate(at) if rank}
        qrels[str(query)] = {f"golden{n}": int(grade) for n, grade in enumerate(graded)}
        run[str(query)] = {
            names.get(rank, f"other{rank}"): float(DEPTH - rank) for rank in range(1, DEPTH + 1)
        }
    return qrels, run


@pytest.mark.parametrize("found", [1.0, 0.6, 0.1])
@pytest.mark.parametrize("k", [1, 3, 10, DEPTH])
@pytest.mark.parametrize("metric", list(MEASURES))
def test_as_trec_eval(metric: str, k: int, found: float) -> None:
    ranks, grades = made_up(7, found)
    gains = [2**one - 1 for one in grades] if metric == "ndcg_exp" else grades
    qrels, run = as_qrels_and_run(ranks, gains)
    theirs = {
        one.query_id: one.value for one in ir_measures.iter_calc([MEASURES[metric] @ k], qrels, run)
    }
    ours = per_query(StageRanks("vector", DEPTH, tuple(ranks), tuple(grades)), metric, k)
    assert ours == pytest.approx([theirs[str(query)] for query in range(QUERIES)])
    assert 0 < ours.mean() <= 1


def test_no_metric_is_left_out() -> None:
    # failure is 1 − recall, of which trec_eval has no name.
    assert set(METRICS) - set(MEASURES) == {"failure"}
    ranks, grades = made_up(8, 0.5)
    stage = StageRanks("vector", DEPTH, tuple(ranks), tuple(grades))
    assert (per_query(stage, "failure", 5) == 1 - per_query(stage, "recall", 5)).all()


@pytest.mark.parametrize("k", [1, 5, DEPTH])
def test_ndcg_and_map_as_scikit_learn(k: int) -> None:
    ranks, grades = made_up(9, 1.0)  # it has no notion of a relevant piece that was not ranked
    stage = StageRanks("vector", DEPTH, tuple(ranks), tuple(grades))
    scores = -np.arange(1, DEPTH + 1, dtype=np.float64)
    gains = np.zeros((QUERIES, DEPTH))
    for query, (at, graded) in enumerate(zip(ranks, grades, strict=True)):
        gains[query, at - 1] = graded
    theirs = [ndcg_score(row[None], scores[None], k=k) for row in gains]
    assert per_query(stage, "ndcg", k) == pytest.approx(theirs)
    if k == DEPTH:
        whole = [average_precision_score(row > 0, scores) for row in gains]
        assert per_query(stage, "map") == pytest.approx(whole)
