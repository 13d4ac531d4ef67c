"""What a part must offer to be put in the place of another: small interfaces, checked by tests/contracts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from core.filters import Filter
from core.trace import Ranking
from core.types import Chunk, Document

Positions = NDArray[np.int64]
Vectors = NDArray[np.float32]
Progress = Callable[[int, int], None]
"""Called with (done, total); raises `Stopped` to stop the work, keeping what is done."""


@runtime_checkable
class Index(Protocol):
    """An index over chunks. Position 0 is the chunk added first, and so on: all indexes agree on it.

    `search` gives the best `k` chunks (fewer where fewer match: an entry that shares nothing with
    the query has no rank). `allowed`, sorted positions, restricts the search itself: the ranking is
    that of a collection holding those chunks only, apart from collection statistics.
    Raises TypeError when the query is not a string and ValueError when k is below 1.
    """

    name: str

    def add_document(self, document: Chunk | str) -> None: ...

    def add_documents(self, documents: Sequence[Chunk | str]) -> None: ...

    def search(self, query_text: str, k: int = 1, allowed: Positions | None = None) -> Ranking: ...

    def __len__(self) -> int: ...


class Fields(Protocol):
    """What is known of items besides their texts: columns over all of them, by the field's name.

    Each raises FilterError, naming those there are, for a field that no item has.
    """

    @property
    def names(self) -> Sequence[str]: ...

    def kind(self, name: str) -> str: ...

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Shape (n_items,), NaN where there is none."""
        ...

    def dates(self, name: str) -> NDArray[np.float64]:
        """Days since 1970-01-01, shape (n_items,), NaN where there is none."""
        ...

    def texts(self, name: str) -> Sequence[tuple[str, ...]]:
        """Each item's values as texts; none for an item without any."""
        ...

    def mask(self, condition: Filter, /) -> NDArray[np.bool_]:
        """Which items meet all conditions, shape (n_items,)."""
        ...


class Day(Protocol):
    """The day that ages are counted from: a signal that asks the clock could not be repeated."""

    @property
    def today(self) -> date: ...


class Items(Protocol):
    """What a signal may ask of the items that it ranks, in their order: a `Corpus`."""

    item_ids: tuple[str, ...]
    item_names: tuple[str, ...]
    item_titles: tuple[str, ...]

    @property
    def fields(self) -> Fields: ...

    @property
    def first_stage(self) -> Day: ...

    def document(self, item: int) -> Document: ...


@runtime_checkable
class Signal(Protocol):
    """Ranks items for a query: positions are item positions, an item with nothing to say for it has no rank.

    One object serves all corpora and threads, each call with the items that the viewer may see. It may have
    `why(query, item, items)`, a sentence on an item that it ranks. What it raises costs its own list only.
    """

    name: str

    def rank(self, query: str, items: Items) -> Ranking: ...


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into unit vectors, and counts tokens as the model itself does."""

    model_id: str
    dimension: int
    max_tokens: int

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of passages, shape (len(texts), dimension)."""
        ...

    def embed_query(self, text: str) -> Vectors:
        """The unit vector of a query, shape (dimension,)."""
        ...

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text without truncation, the model's special tokens included."""
        ...

    def visible_end(self, text: str) -> int:
        """Character offset past which the model sees nothing (len(text) when all is seen)."""
        ...


class Contexts(Protocol):
    """What goes into the indexes with each chunk of some documents, in their order."""

    digests: tuple[str, ...]
    """For each document a hash of all its contexts, blank when it has none."""

    def of(self, item: int, document: Document, spans: Sequence[tuple[int, int]]) -> list[str]:
        """The context of each span of the document at place `item`; blank where there is none."""
        ...


@dataclass(frozen=True)
class Scores:
    """What a reranker gives: `values` float64 (n,), one for each text, finite, higher is better.

    `dollars` is what this call cost: 0 when it was answered from the cache.
    """

    values: NDArray[np.float64]
    dollars: float = 0.0
    note: str = ""


@runtime_checkable
class Reranker(Protocol):
    """Scores texts for a query. `listwise`: the scores hold only for this very list of texts."""

    name: str
    model_id: str
    listwise: bool
    paid: bool

    def scores(self, query: str, texts: Sequence[str]) -> Scores:
        """Raises RerankError naming reranker, reason and remedy."""
        ...

    def estimate(self, query: str, texts: Sequence[str]) -> float | None:
        """US dollars this call would cost, nothing of it cached; None when no price is known."""
        ...


class Splitter(Protocol):
    """Cuts a document into spans [start, end), ascending by start, covering all text but blanks."""

    def __call__(self, document: Document) -> list[tuple[int, int]]: ...
