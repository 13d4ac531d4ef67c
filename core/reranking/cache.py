"""Scores are computed, and paid for, once: kept by (reranker, query, text) in a file that may be deleted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.errors import RankscopeError, RerankError, Stopped
from core.protocols import Reranker, Scores
from core.types import encodable, text_hash
from core.vectors_cache import VectorCache, shared_cache

_LOCKS = tuple(threading.Lock() for _ in range(16))


def shared_scores() -> VectorCache:
    """The score cache of the data folder: what the vector cache does, damaged files included, does for
    scores, each a vector of width 1. Raises RankscopeError where the disk refuses."""
    return shared_cache("rerank.db")


@dataclass(frozen=True)
class _Known:
    """What the cache holds of some texts, what it lacks, and why it could not be read."""

    value_of: dict[str, float]
    missing: list[str]
    trouble: str


class Cached:
    """A reranker behind a cache and a check; itself one.

    Each distinct text is asked for once, so that equal texts have equal scores, and the texts need not
    be encodable. Scores of a listwise reranker are kept for the whole list in its order, others one by
    one. All are single precision, so that a cached score equals a fresh one. Two threads that ask the
    same of one reranker ask it once.
    """

    def __init__(self, reranker: Reranker, cache: Callable[[], VectorCache] | None) -> None:
        """`cache` gives the cache; where it raises RankscopeError the scores come with a note instead.
        With None nothing is kept."""
        self.reranker = reranker
        self.name = reranker.name
        self.model_id = reranker.model_id
        self.listwise = reranker.listwise
        self.paid = reranker.paid
        self._cache = cache

    def estimate(self, query: str, texts: Sequence[str]) -> float | None:
        """US dollars for what the cache lacks: 0 when it holds all. None when no price is known. Raises as
        `scores` does."""
        query, distinct = encodable(query), _distinct(texts)
        missing = self._known(query, distinct).missing
        if not missing:
            return 0.0
        with self._clear_errors():
            return _cost(self.reranker.estimate(query, missing))

    @property
    def fetches(self) -> bool:
        """Whether asking downloads a model first."""
        return bool(getattr(self.reranker, "fetches", False))

    def missing_key(self) -> str:
        """Blank when the reranker can be asked, else one sentence that says which variable to set."""
        ask = getattr(self.reranker, "missing_key", None)
        return str(ask()) if ask else ""

    def scores(self, query: str, texts: Sequence[str]) -> Scores:
        """Shape (len(texts),), finite. Raises RerankError, whatever the reranker raises (but `Stopped`)."""
        query, distinct = encodable(query), _distinct(texts)
        with _LOCKS[hash((self.name, self.model_id, query)) % len(_LOCKS)]:
            known = self._known(query, distinct)
            value_of, trouble, fresh = known.value_of, known.trouble, Scores(np.empty(0))
            if known.missing:
                fresh = self._ask(query, known.missing)
                trouble = self._keep(query, known.missing, fresh.values) or trouble
                value_of |= dict(zip(known.missing, fresh.values.tolist(), strict=True))
        cached = len(distinct) - len(known.missing)
        said = f"{cached} of {len(distinct)} scores from the cache" if cached else ""
        values = np.array([value_of[encodable(text)] for text in texts], dtype=np.float64)
        return Scores(values, fresh.dollars, _joined(fresh.note, said, trouble))

    def _ask(self, query: str, texts: Sequence[str]) -> Scores:
        with self._clear_errors():
            given = self.reranker.scores(query, texts)
            values = _checked(given.values, len(texts))
            dollars = _cost(given.dollars)
        note = given.note if dollars is not None else _joined(given.note, "what it cost is not known")
        return Scores(values, dollars or 0.0, note)

    @contextmanager
    def _clear_errors(self) -> Iterator[None]:
        """Whatever a reranker of somebody's raises: it costs its stage only."""
        try:
            yield
        except (RerankError, Stopped):
            raise
        except Exception as error:
            reason = str(error).strip() or type(error).__name__
            raise RerankError(
                f"the reranker {self.name} ({self.model_id}) failed: {reason}; choose another one or none"
            ) from error

    def _known(self, query: str, texts: Sequence[str]) -> _Known:
        keys = self._keys(query, texts)
        try:
            found = self._cache().get_many(self._model_key(), keys) if keys and self._cache else {}
            trouble = ""
        except RankscopeError as error:
            found, trouble = {}, f"scores are not kept: {error}"
        width = len(texts) if self.listwise else 1
        values = {key: vector.tolist() for key, vector in found.items() if vector.shape == (width,)}
        if self.listwise:
            whole = dict(zip(texts, values[keys[0]], strict=True)) if values else {}
        else:
            whole = {
                text: values[key][0] for text, key in zip(texts, keys, strict=True) if key in values
            }
        return _Known(whole, [text for text in texts if text not in whole], trouble)

    def _keep(self, query: str, texts: Sequence[str], values: NDArray[np.float64]) -> str:
        """Blank, or why they are not kept: lost on disk they are still paid for, and given back."""
        if self._cache is None:
            return ""
        rows = values.astype(np.float32).reshape(1 if self.listwise else len(texts), -1)
        try:
            self._cache().put_many(
                self._model_key(), dict(zip(self._keys(query, texts), rows, strict=True))
            )
        except RankscopeError as error:
            return f"scores are not kept: {error}"
        return ""

    def _keys(self, query: str, texts: Sequence[str]) -> list[str]:
        """One for each text, or one for the whole list."""
        hashes = [text_hash(text) for text in texts]
        if self.listwise and hashes:
            hashes = ["".join(hashes)]
        return [text_hash(f"{text_hash(query)} {one}") for one in hashes]

    def _model_key(self) -> str:
        return f"{self.name}:{self.model_id}@{getattr(self.reranker, 'version', '')}"


def _distinct(texts: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(encodable(text) for text in texts))


def _checked(values: object, count: int) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):
        found = np.asarray(values, dtype=np.float32)
    if found.shape != (count,):
        raise ValueError(f"it gave scores of shape {found.shape} for {count} texts")
    if not np.isfinite(found).all():
        raise ValueError("it gave scores that are not finite numbers")
    return found.astype(np.float64)


def _cost(dollars: object) -> float | None:
    """US dollars; None for what can be no sum."""
    known = isinstance(dollars, int | float) and 0 <= dollars < float("inf")
    return float(dollars) if known else None  # type: ignore[arg-type]


def _joined(*parts: str) -> str:
    return "; ".join(dict.fromkeys(part for part in parts if part))
