"""The table of chunk sizes that is shown before anything is indexed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from core.types import Chunk


@dataclass(frozen=True)
class Sizes:
    """Least, mean, median, 95th percentile and greatest length of the chunks, in one unit."""

    min: int
    mean: float
    median: float
    p95: float
    max: int


@dataclass(frozen=True)
class SizeTable:
    """Chunk sizes of one or more documents.

    `truncated` chunks have more than `max_tokens` tokens, so the model does not see their end.
    `tokens`, `truncated` and `truncated_share` are None where token counts or the limit are unknown.
    `overlap_characters` is what is repeated: characters of a chunk that the chunks before it of the
    same document already hold.
    """

    count: int
    documents: int
    characters: Sizes | None
    tokens: Sizes | None
    max_tokens: int | None
    truncated: int | None
    truncated_share: float | None
    overlap_characters: int
    chunks_per_document: float


def _sizes(lengths: Sequence[int]) -> Sizes | None:
    if not lengths:
        return None
    values = np.asarray(lengths)
    return Sizes(
        int(values.min()),
        float(values.mean()),
        float(np.median(values)),
        float(np.percentile(values, 95)),
        int(values.max()),
    )


def size_summary(
    chunks: Sequence[Chunk], tokens: Sequence[int] | None = None, max_tokens: int | None = None
) -> SizeTable:
    """Sizes of `chunks`, which stand document by document in ascending order.

    `tokens`: count of each chunk, aligned with `chunks`, as the model counts (special tokens
    included). Raises ValueError when it is not as long as `chunks`.
    """
    if tokens is not None and len(tokens) != len(chunks):
        raise ValueError(f"{len(tokens)} token counts for {len(chunks)} chunks; give one a chunk")
    count = len(chunks)
    documents = len({chunk.document_id for chunk in chunks})
    overlap = 0
    reach = 0
    for before, chunk in pairwise(chunks):
        same = before.document_id == chunk.document_id
        reach = max(reach, before.end) if same else 0
        overlap += max(0, min(reach, chunk.end) - chunk.start)
    known = tokens is not None and max_tokens is not None
    truncated = sum(n > max_tokens for n in tokens) if known else None  # type: ignore[union-attr, operator]
    return SizeTable(
        count,
        documents,
        _sizes([len(chunk.text) for chunk in chunks]),
        None if tokens is None else _sizes(tokens),
        max_tokens,
        truncated,
        None if truncated is None else truncated / max(count, 1),
        overlap,
        count / documents if documents else 0.0,
    )
