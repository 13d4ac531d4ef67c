"""How many of the characters that matter were retrieved: independent of how documents are cut.

The metrics of Smith, Troynikov: Evaluating Chunking Strategies for Retrieval (Chroma, 2024), as its code
computes them: all lengths are in characters, where the report says tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from core.evaluation.judgements import EvaluationError
from core.evaluation.metrics import Metric

_SOURCE = "Smith, Troynikov: Evaluating Chunking Strategies for Retrieval, Chroma 2024"

CHARACTER_METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        one.name: one
        for one in (
            Metric(
                "character_recall",
                "character recall",
                "Characters of the golden spans that the first k hold, divided by the length of the "
                "golden spans; where those overlap, counted once.",
                _SOURCE,
            ),
            Metric(
                "character_precision",
                "character precision",
                "Characters of the golden spans that the first k hold, divided by the length of the first "
                "k; what chunks repeat counts each time.",
                _SOURCE,
            ),
            Metric(
                "character_iou",
                "character IoU",
                "Intersection over union: characters of the golden spans that the first k hold, divided by "
                "the length of the first k and of the golden spans' part that they do not hold.",
                _SOURCE,
            ),
            Metric(
                "precision_omega",
                "precision Ω",
                "The character precision of a perfect search: characters of the golden spans in chunks, "
                "divided by the length of all chunks that touch a golden span. Tells of the chunking alone.",
                _SOURCE,
                needs_k=False,
            ),
        )
    }
)


class Span(NamedTuple):
    """`[start, end)` of a document's text, in characters."""

    document_id: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class CharacterScores:
    """Of one query, each in [0, 1]."""

    recall: float
    precision: float
    iou: float


def character_scores(retrieved: Sequence[Span], references: Sequence[Span]) -> CharacterScores:
    """Recall, precision and IoU of the retrieved spans against one query's references.

    Overlap: the union of what the references share with the retrieved spans. Recall divides it by the
    union of the references, precision by the sum of the retrieved spans (those of other documents too),
    IoU by that sum and the references' characters that were not retrieved. Nothing retrieved: all 0.
    The source's code adds references up instead; its sets have none that overlap, judged ones do (a
    chunk and some words of it), and a search that found all of them would not reach 1.
    Raises EvaluationError when there is no reference or a span is empty.
    """
    _check(references)
    _check(retrieved, required=False)
    wanted = _length(references)
    overlap = _length(span for one in references for span in _shared(one, retrieved))
    size = sum(one.end - one.start for one in retrieved)
    return CharacterScores(
        overlap / wanted,
        overlap / size if size else 0.0,
        overlap / (size + wanted - overlap),
    )


def precision_omega(chunks: Iterable[Span], references: Sequence[Span]) -> float:
    """The precision of a search that retrieves exactly the chunks that touch a reference.

    `chunks` are all chunks; those of the references' documents are enough. Their overlap with the
    references divided by the union of those that touch one; 0 when none does. Raises EvaluationError as
    `character_scores` does.
    """
    _check(references)
    documents = {one.document_id for one in references}
    near = [one for one in chunks if one.document_id in documents]
    _check(near, required=False)
    touching = [one for one in near if _shared(one, references)]
    overlap = _length(span for one in references for span in _shared(one, touching))
    return overlap / _length(touching) if touching else 0.0


def _check(spans: Sequence[Span], required: bool = True) -> None:
    if required and not spans:
        raise EvaluationError("a query without golden spans has no character metrics; leave it out")
    for one in spans:
        if not 0 <= one.start < one.end:
            raise EvaluationError(f"{one.start}-{one.end} is no span; give 0 <= start < end")


def _shared(one: Span, others: Iterable[Span]) -> list[Span]:
    """What a span shares with each of the others that it touches."""
    return [
        Span(one.document_id, max(one.start, other.start), min(one.end, other.end))
        for other in others
        if other.document_id == one.document_id and other.start < one.end and one.start < other.end
    ]


def _length(spans: Iterable[Span]) -> int:
    """Characters in the union of spans."""
    total, document, reached = 0, None, 0
    for one in sorted(spans):
        if one.document_id != document:
            document, reached = one.document_id, 0
        total += max(0, one.end - max(one.start, reached))
        reached = max(reached, one.end)
    return total
