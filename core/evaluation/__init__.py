"""How good a search is, against golden queries: evidence as spans, recall@k at every stage."""

from core.evaluation.forms import FORMS, ImportedSet, read_files, read_judgements, read_set
from core.evaluation.golden import Golden, golden_chunks, golden_pieces
from core.evaluation.judgements import (
    EvaluationError,
    Evidence,
    GoldenQuery,
    Judgements,
    Unlocated,
    locate,
)
from core.evaluation.results import ResultsCache
from core.evaluation.runner import Measured, StageRanks, measure, measure_many
from core.evaluation.store import Added, Draft, JudgementStore, open_judgements

__all__ = [
    "FORMS",
    "Added",
    "Draft",
    "EvaluationError",
    "Evidence",
    "Golden",
    "GoldenQuery",
    "ImportedSet",
    "JudgementStore",
    "Judgements",
    "Measured",
    "ResultsCache",
    "StageRanks",
    "Unlocated",
    "golden_chunks",
    "golden_pieces",
    "locate",
    "measure",
    "measure_many",
    "open_judgements",
    "read_files",
    "read_judgements",
    "read_set",
]
