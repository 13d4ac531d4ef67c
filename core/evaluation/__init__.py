"""How good a search is, against golden queries: evidence as spans, recall@k at every stage."""

from core.evaluation.golden import Golden, golden_chunks, golden_pieces
from core.evaluation.judgements import (
    EvaluationError,
    Evidence,
    GoldenQuery,
    Judgements,
    Unlocated,
    locate,
    read_judgements,
)
from core.evaluation.recall import Measured, StageRanks, measure

__all__ = [
    "EvaluationError",
    "Evidence",
    "Golden",
    "GoldenQuery",
    "Judgements",
    "Measured",
    "StageRanks",
    "Unlocated",
    "golden_chunks",
    "golden_pieces",
    "locate",
    "measure",
    "read_judgements",
]
