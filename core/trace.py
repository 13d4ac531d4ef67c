"""A search's whole story: every stage with its ranking, its inputs and how its parts make its scores.

Rankings are columnar: positions in the corpus (of chunks, items or passages) and scores; the rank
is the place, from 1. `Hit` objects are made only when somebody reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.passages import Passage
from core.settings import SearchSettings
from core.types import Chunk, Document

Unit = Literal["item", "chunk", "passage"]
Kind = Literal["search", "signal", "project", "fuse", "rule", "rerank", "merge"]


def _frozen(values: ArrayLike, dtype: type) -> NDArray[Any]:
    array: NDArray[Any] = np.ascontiguousarray(values, dtype=dtype)
    if array.flags.writeable:
        array = array.copy() if array is values else array
        array.flags.writeable = False
    return array


class Hit(NamedTuple):
    """One line of a ranking: `position` in the corpus, the `score` sorted on, `rank` from 1."""

    position: int
    score: float
    rank: int


class Ranking:
    """Positions by falling score; equal scores by position (corpus order), so that runs repeat.

    `positions` int64 and `scores` float64, both of shape (n,), read-only. A position occurs once.
    """

    __slots__ = ("positions", "scores")
    positions: NDArray[np.int64]
    scores: NDArray[np.float64]

    def __init__(self, positions: ArrayLike, scores: ArrayLike) -> None:
        """Takes arrays that are already in order; `Ranking.order` puts them in order."""
        self.positions = _frozen(positions, np.int64)
        self.scores = _frozen(scores, np.float64)
        if self.positions.shape != self.scores.shape or self.positions.ndim != 1:
            raise ValueError(
                f"positions {self.positions.shape} and scores {self.scores.shape} must be "
                "one-dimensional and equally long"
            )

    @classmethod
    def order(cls, positions: ArrayLike, scores: ArrayLike, k: int | None = None) -> Ranking:
        """The best `k` (all when None) by (score descending, position ascending)."""
        at = np.asarray(positions, dtype=np.int64)
        by = np.asarray(scores, dtype=np.float64)
        if k is not None and k < len(by) // 4:
            # A partial sort first; every score tied with the k-th stays in, so ties are cut by position.
            edge = np.partition(by, len(by) - k)[len(by) - k]
            kept = np.flatnonzero(by >= edge)
            at, by = at[kept], by[kept]
        order = np.lexsort((at, -by))[:k]
        return cls(at[order], by[order])

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, float]]) -> Ranking:
        """From (position, score) pairs in any order; the readable way to end a small index's search."""
        listed = list(pairs)
        return cls.order([p for p, _ in listed], [s for _, s in listed])

    def head(self, n: int) -> Ranking:
        """The first `n` lines."""
        return self if n >= len(self) else Ranking(self.positions[:n], self.scores[:n])

    def within(self, allowed: NDArray[np.bool_]) -> Ranking:
        """Only the positions where the mask holds, in the same order."""
        keep = allowed[self.positions]
        return Ranking(self.positions[keep], self.scores[keep])

    def rank_of(self, position: int) -> int | None:
        """The rank of a position, from 1, or None when it is not in the ranking."""
        found = np.flatnonzero(self.positions == position)
        return int(found[0]) + 1 if len(found) else None

    def __len__(self) -> int:
        return len(self.positions)

    def __iter__(self) -> Iterator[Hit]:
        pairs = zip(self.positions.tolist(), self.scores.tolist(), strict=True)
        for rank, (position, score) in enumerate(pairs, 1):
            yield Hit(position, score, rank)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ranking):
            return NotImplemented
        return np.array_equal(self.positions, other.positions) and np.array_equal(
            self.scores, other.scores
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        lines = ", ".join(f"{hit.position}: {hit.score:.4g}" for hit in self.head(5))
        return f"Ranking({len(self)} hits: {lines}{', …' if len(self) > 5 else ''})"


NO_HITS = Ranking([], [])


class CorpusView(Protocol):
    """What a trace needs to turn positions into documents, spans and texts."""

    fingerprint: str
    item_ids: tuple[str, ...]
    item_names: tuple[str, ...]
    item_titles: tuple[str, ...]
    item_of: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    duplicate_of: NDArray[np.int64]

    def __len__(self) -> int: ...
    def document(self, item: int) -> Document: ...
    def chunk(self, position: int) -> Chunk: ...
    def chunk_id(self, position: int) -> str: ...


@dataclass(frozen=True, eq=False)
class Reranked:
    """What a reranker said of one query's best chunks, in the order they had before.

    `positions` int64 and `scores` float64, both (n,). `listwise`: the scores hold for this list only.
    `failed` says why there are no scores; `held`: because asking costs and nobody said yes to it.
    `dollars` is what asking cost, `note` how it was answered.
    """

    name: str
    model: str
    positions: NDArray[np.int64]
    scores: NDArray[np.float64]
    listwise: bool = False
    failed: str = ""
    held: bool = False
    dollars: float = 0.0
    note: str = ""


@dataclass(frozen=True)
class Ruled:
    """What business rules make of one query's items, by item position.

    `boosts`: the net weight of each item boosted (or buried: negative); `pins`: the rank an item is put
    at; `hidden`: why an item is taken out; `said`: a sentence for each rule that touched it. `fired` names
    the rules that hold for the query, `notes` say which of them conflict and how that was settled.
    """

    boosts: Mapping[int, float] = field(default_factory=lambda: MappingProxyType({}))
    pins: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    hidden: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    said: Mapping[int, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    fired: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


NO_RULES = Ruled()


@dataclass(frozen=True, eq=False)
class Record:
    """What the indexes answered, before any setting that replay can change has cut or weighed it.

    `signals` rank items, uncut, those that a rule hides included. `searches` rank chunks: uncut where
    `depths[name]` is None, else the best `depths[name]`. `covered` (n_items,) marks the items inside which
    the searches are uncut; None: all. `passing` (n_items,) marks those that the filters let pass, the only
    ones that anything here ranks or rules; None: all. `said` has what a signal tells of its ranking, `whys`
    what gives a sentence on one item. `reranked` is there when a reranker was asked.
    """

    query: str
    settings: SearchSettings
    signals: Mapping[str, Ranking]
    searches: Mapping[str, Ranking]
    depths: Mapping[str, int | None]
    covered: NDArray[np.bool_] | None
    milliseconds: Mapping[str, float]
    notes: tuple[str, ...] = ()
    reranked: Reranked | None = None
    passing: NDArray[np.bool_] | None = None
    ruled: Ruled = field(default_factory=lambda: NO_RULES)
    said: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    whys: Mapping[str, Callable[[int], str]] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, eq=False)
class Stage:
    """One step: `ranking` is what it passes on, made from the stages named in `inputs`.

    `ranks` int64 and `terms` float64, both (len(ranking), len(inputs)), say for a fusion at which
    rank each input holds a line (0: not at all) and what it adds; where rules put lines in another order
    there are `ranks` alone. `before` is the ranking ahead of the cut to `limit`. `removed` tells for what
    reason a rule took a position out. A stage that is off keeps its place with an empty ranking and a `note`.
    """

    name: str
    kind: Kind
    unit: Unit
    ranking: Ranking
    inputs: tuple[str, ...] = ()
    ranks: NDArray[np.int64] | None = None
    terms: NDArray[np.float64] | None = None
    before: Ranking = field(default_factory=lambda: NO_HITS)
    limit: int | None = None
    removed: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    on: bool = True
    note: str = ""

    def __eq__(self, other: object) -> bool:
        """Equal in all that the stage passes on; `before` may reach deeper in one of the two."""
        if not isinstance(other, Stage):
            return NotImplemented
        return (
            (self.name, self.kind, self.unit, self.inputs, self.limit, self.on, self.note)
            == (other.name, other.kind, other.unit, other.inputs, other.limit, other.on, other.note)
            and self.ranking == other.ranking
            and dict(self.removed) == dict(other.removed)
            and _same(self.ranks, other.ranks)
            and _same(self.terms, other.terms)
        )

    __hash__ = None  # type: ignore[assignment]


def _same(one: NDArray[Any] | None, other: NDArray[Any] | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)


@dataclass(frozen=True, eq=False)
class Trace:
    """A query's way through all stages. Two traces are equal when they tell the same story;
    the record behind them and the times taken may differ."""

    query: str
    settings: SearchSettings
    corpus: CorpusView
    stages: tuple[Stage, ...]
    passages: tuple[Passage[int], ...]
    notes: tuple[str, ...]
    record: Record
    indexes: Mapping[str, Any]

    def stage(self, name: str) -> Stage:
        """The stage of that name. Raises KeyError naming those there are."""
        for stage in self.stages:
            if stage.name == name:
                return stage
        raise KeyError(f"no stage {name!r}; this trace has {', '.join(s.name for s in self.stages)}")

    def text_of(self, passage: Passage[int]) -> str:
        """The passage's text: the source from its start to its end."""
        return self.corpus.document(passage.item).text[passage.start : passage.end]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trace):
            return NotImplemented
        return (self.query, self.settings, self.corpus.fingerprint, self.passages, self.notes) == (
            other.query,
            other.settings,
            other.corpus.fingerprint,
            other.passages,
            other.notes,
        ) and self.stages == other.stages

    __hash__ = None  # type: ignore[assignment]

    def check(self) -> None:
        """Prove the invariants; raises AssertionError naming the stage that breaks one."""
        known: set[str] = set()
        for stage in self.stages:
            _check_stage(stage, known)
            known.add(stage.name)
            self._check_items(stage)
        kept = set(self.stage("kept").ranking.positions.tolist())
        members = [member for passage in self.passages for member in passage.members]
        _require(len(members) == len(set(members)) and set(members) == kept, "passages", "loses a chunk")
        for passage in self.passages:
            items = {int(self.corpus.item_of[member]) for member in passage.members}
            _require(items == {passage.item}, "passages", "mixes items")

    def _check_items(self, stage: Stage) -> None:
        """Nothing of an item that the filters keep out, or that a rule hides, is ranked anywhere."""
        if stage.unit == "passage":
            return
        items = stage.ranking.positions
        if stage.unit == "chunk":
            items = self.corpus.item_of[items]
        if self.record.passing is not None:
            kept_out = not self.record.passing[items].all()
            _require(not kept_out, stage.name, "ranks what the filters keep out")
        hidden = self.stage("items").removed
        _require(not (hidden and np.isin(items, list(hidden)).any()), stage.name, "ranks what is hidden")
        if stage.name == "items" and stage.kind == "rule":
            places = 1 / np.arange(1, len(items) + 1)
            _require(np.array_equal(stage.ranking.scores, places), stage.name, "scores are not 1/rank")


def _check_stage(stage: Stage, known: set[str]) -> None:
    scores, positions = stage.ranking.scores, stage.ranking.positions
    _require(set(stage.inputs) <= known, stage.name, "names an input that is no earlier stage")
    _require(bool(np.isfinite(scores).all()), stage.name, "has a score that is not a number")
    _require(len(np.unique(positions)) == len(positions), stage.name, "ranks a position twice")
    falling = (scores[:-1] > scores[1:]) | (
        (scores[:-1] == scores[1:]) & (positions[:-1] < positions[1:])
    )
    _require(bool(falling.all()), stage.name, "is not in order of score, then position")
    _require(stage.limit is None or len(positions) <= stage.limit, stage.name, "passes its limit")
    _require(stage.on or not len(positions), stage.name, "is off and has hits")
    if stage.terms is not None:
        _require(
            bool(np.allclose(stage.terms.sum(axis=1), scores, rtol=1e-12)), stage.name, "adds up wrong"
        )


def _require(holds: bool, stage: str, fault: str) -> None:
    if not holds:
        raise AssertionError(f"stage {stage} {fault}")
