"""What every index asks of a query before it searches."""

from __future__ import annotations

import operator

import numpy as np

from core.protocols import Positions
from core.trace import Ranking


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
    """`allowed` as int64 positions; raises ValueError when one is outside an index of `size` chunks."""
    if allowed is None:
        return None
    positions = np.asarray(allowed, dtype=np.int64)
    if len(positions) and (positions.min() < 0 or positions.max() >= size):
        raise ValueError(
            f"allowed positions go from {positions.min()} to {positions.max()}; "
            f"the index holds positions 0 to {size - 1}"
        )
    return positions
