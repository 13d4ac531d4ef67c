"""What every index asks of a query before it searches."""

from __future__ import annotations

import operator
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from core.protocols import Positions
from core.trace import Ranking
from core.types import Chunk


def check_query(query_text: str, k: int) -> int:
    """`k` as an int.

    Raises TypeError when the query is not a string or k not a whole number, ValueError when k < 1.
    """
    if not isinstance(query_text, str):
        raise TypeError(f"the query must be a string, not {type(query_text).__name__}")
    return check_k(k)


def check_k(k: int) -> int:
    """`k` as an int; raises TypeError when it is not a whole number, ValueError when below 1."""
    if isinstance(k, bool):
        raise TypeError("k must be a whole number, not a bool")
    k = operator.index(k)
    if k < 1:
        raise ValueError(f"k is {k}; ask for at least 1 hit")
    return k


def indexed_texts(documents: Iterable[Chunk | str]) -> list[str]:
    """What is indexed of chunks or bare texts; raises TypeError for anything else, and for one string."""
    if isinstance(documents, str):
        raise TypeError("documents is one string; give a list, or use add_document")
    found = []
    for document in documents:
        if not isinstance(document, Chunk | str):
            raise TypeError(f"a document is {type(document).__name__}; give a string or a Chunk")
        found.append(document if isinstance(document, str) else document.indexed_text)
    return found


def checked_ranking(found: object, size: int, k: int) -> Ranking:
    """What an index of `size` chunks that is not ours gave for a search, cut to `k`, ties in corpus order.

    Raises ValueError, naming the fault, when it breaks a promise that the rest builds on.
    """
    if not isinstance(found, Ranking):
        raise ValueError(f"it gave {type(found).__name__}, not a Ranking")
    positions, scores = found.positions, found.scores
    if not np.isfinite(scores).all():
        raise ValueError("it gave a score that is not a finite number")
    if len(positions) and (positions.min() < 0 or positions.max() >= size):
        raise ValueError(
            f"it ranks positions {positions.min()} to {positions.max()}; there are 0 to {size - 1}"
        )
    if len(np.unique(positions)) < len(positions):
        raise ValueError("it ranks a position twice")
    if (scores[:-1] < scores[1:]).any():
        raise ValueError("its scores do not fall from rank to rank")
    return Ranking.order(positions, scores, k)


def check_allowed(allowed: Positions | None, size: int) -> Positions | None:
    """`allowed` as int64 positions; None where all positions are allowed.

    Raises ValueError when they are no ascending whole numbers, such as a mask, or when one is outside
    an index of `size` chunks.
    """
    if allowed is None:
        return None
    given = np.asarray(allowed)
    positions = (
        given.astype(np.int64, copy=False) if given.dtype.kind in "iu" or not given.size else None
    )
    if positions is None or positions.ndim != 1 or (positions[1:] <= positions[:-1]).any():
        raise ValueError(
            f"allowed is {given.dtype} of shape {given.shape}; give positions, ascending and each once"
        )
    if len(positions) and (positions[0] < 0 or positions[-1] >= size):
        raise ValueError(
            f"allowed positions go from {positions[0]} to {positions[-1]}; "
            f"the index holds positions 0 to {size - 1}"
        )
    return None if len(positions) == size else positions


def as_mask(positions: Positions, size: int) -> NDArray[np.bool_]:
    """Which of the first `size` positions are among these, shape (size,)."""
    mask = np.zeros(size, dtype=np.bool_)
    mask[positions] = True
    return mask
