"""Clicks as a signal: items that people open more often than others do at the same ranks, for this query or
one like it.

The click model is position-based: a result is opened when it is examined and attractive, P(click) = θ(rank) ·
γ(query, item) (Richardson, Dominowska, Ragno, WWW 2007; Craswell, Zoeter, Taylor, Ramsey, WSDM 2008). Clicks
are weighed by how likely they were at their rank, as in inverse propensity weighting (Joachims, Swaminathan,
Schnabel, WSDM 2017), but through the likelihood: a click says γ, no click 1 − θγ. That is bounded where weights of
1/θ are not, and never falls with a further click.

θ follows the click rate that the log itself has at each rank, as in clicks over expected clicks (Zhang, Jones, WWW
2007); where the log is short, rank^−η with η = 1. So an item is compared with others at its ranks: people who
click anywhere at random, whatever their habit, favour none. The price is that θ holds the ranking's own merit too, and so
asks a little more of an item at the top.

γ has a Beta prior: the log's mean, as strong as makes the log likeliest (empirical Bayes; noise gives a prior that
nothing moves). An item has a rank only when the lower 10 % quantile of its γ is above the mean; the
quotient is its score (after EB05 of DuMouchel, The American Statistician 53, 1999).

A person counts once for an item and a query with those like it, by what counts most; whoever has many accounts counts
as many people. Where a log does not say what was shown, everybody who asked a query is taken to have been shown all that
was ever clicked for it, at its usual rank: what nobody clicked stays unknown, so the mean is too high rather than too low.
"""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from statistics import median_low

import numpy as np
from numpy.typing import NDArray

from core.behaviour.events import CLICKS, Event
from core.protocols import Positions, Vectors
from core.trace import NO_HITS, Ranking

ETA = 1.0
"""Examination falls as rank^−ETA where the log does not say otherwise."""
HALF_LIFE = 90.0
"""Days after which an event counts half."""
SIMILAR = 0.75
"""The similarity from which a query asked before counts as one like it; it is also the weight of its clicks.

A cosine on a scale where 0 is that of unrelated queries (0.03 for MiniLM, 0.78 for E5), so that it means the same
for all models. Of 990 pairs of Cranfield queries one in a hundred reaches 0.54 (E5: 0.43); queries that lost a
quarter of their words have 0.84 in the median (E5 the same). Queries that differ in a word with a digit are
never alike: another number is another thing.
"""
QUANTILE = 0.1
"""An item has a rank when its γ is above the mean but for this probability."""
PEOPLE = 3
"""An item that fewer people clicked has no rank: nobody moves a result alone, nor does a second account."""

_BORROWED = 5.0  # pairs of query and item that rank^−η is worth in the click rate at a rank
_DEEPEST = 100  # ranks below are as this one
_STRENGTHS = 2.0 ** np.arange(0, 11)  # people that the prior may be worth
_ODDS = np.linspace(-6.0, 6.0, 160)
# Evenly spaced in log-odds, of which a density of γ is one times γ(1 − γ).
_GAMMA: NDArray[np.float64] = 1 / (1 + np.exp(-_ODDS))
_PAIRS = 5_000  # (query, item) pairs from which the prior is learnt
_UNDATED = "9999-12-31"  # what has no time does not fade
_KEPT = 64  # queries whose evidence is kept
_UNRELATED = (
    "opening hours of the museum",
    "how is rust removed from steel",
    "annual report of revenue",
    "side effects of the medicine",
    "who wrote the song",
    "train ticket refund",
    "recipe for potato soup",
    "password does not work",
)
_NUMBERED = re.compile(r"\S*\d\S*")


@dataclass(frozen=True, eq=False)
class _Sights:
    """One row for each person, query and item: whether it was clicked at last, at which rank it stood (0: not
    known) and how much that counts today. Ordered by query; rows of query q are `first[q]:first[q + 1]`.
    `spelt` is each query as somebody wrote it."""

    queries: tuple[str, ...]
    spelt: tuple[str, ...]
    first: Positions
    person: Positions
    item: Positions
    clicked: NDArray[np.bool_]
    rank: Positions
    weight: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Model:
    """`chance` is the usual click rate at each rank, `theta` that in parts of `mean`, the rate of one who examined
    it; `prior` the log density of γ over `_GAMMA`."""

    chance: NDArray[np.float64]
    theta: NDArray[np.float64]
    mean: float
    strength: float
    prior: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Learnt:
    """All that does not depend on the query asked: `vectors` (n, d) of the queries asked before, and the mean cosine
    of `unrelated` ones, None where that cannot be told."""

    sights: _Sights
    model: _Model
    vectors: Vectors
    unrelated: float | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the clicks say of one item: people who clicked it, of those who were shown it; how many of them would
    at its ranks on average; `gamma` the lower 10 % quantile of its γ, `mean` that of all items."""

    clicked: int
    shown: int
    usual: float
    gamma: float
    mean: float


class ClickSignal:
    """Ranks items by what people opened, copied or thumbed up. Safe to share between threads.

    Only events on `item_ids` count, for the model's means too. `vectors_of` gives unit vectors of queries,
    shape (n, d), zeros for those that have none: where it has none for some queries of our own, it cannot be told how
    much a cosine says, and only equal queries count. `today` is the day from which ages are counted. A person is a `user`, or where none is
    named, a session: one counts once for a query and item, however often it was clicked.
    """

    name = "clicks"

    def __init__(
        self,
        events: Iterable[Event],
        vectors_of: Callable[[Sequence[str]], Vectors],
        item_ids: Sequence[str],
        today: date,
    ) -> None:
        positions = {one: at for at, one in enumerate(item_ids)}
        self._events = tuple(one for one in events if one.document_id in positions)
        self._positions = positions
        self._vectors_of = vectors_of
        self._today = today
        self._lock = threading.Lock()
        self._learnt: _Learnt | None = None
        self._asked: dict[str, dict[int, Evidence]] = {}

    def rank(self, query: str, items: object = None) -> Ranking:
        """Items that are opened more than usual, by γ's lower quantile in parts of the mean."""
        found = self.evidence(query)
        return (
            Ranking.of(
                (item, one.gamma / one.mean)
                for item, one in found.items()
                if one.clicked >= PEOPLE and one.gamma > one.mean
            )
            if found
            else NO_HITS
        )

    def why(self, query: str, item: int, items: object = None) -> str:
        """A sentence on an item's clicks; blank where there are none."""
        one = self.evidence(query).get(item)
        if not one:
            return ""
        return (
            f"{one.clicked} of {one.shown} people who were shown it for this query or similar ones opened it, "
            f"{one.usual:.1f} would be usual at its ranks; position-corrected at least {one.gamma:.2f} against "
            f"{one.mean:.2f} on average"
        )

    def evidence(self, query: str) -> dict[int, Evidence]:
        """What clicks say of each item that was clicked for this query or similar ones."""
        if not self._events:
            return {}
        with self._lock:
            if query not in self._asked:
                if len(self._asked) >= _KEPT:
                    self._asked.clear()
                if self._learnt is None:
                    self._learnt = self._learn()
                self._asked[query] = self._weighed(query, self._learnt)
            return self._asked[query]

    def _learn(self) -> _Learnt:
        sights = _sights(self._events, self._positions, self._today)
        vectors = np.asarray(self._vectors_of((*sights.spelt, *_UNRELATED)), np.float32)
        others = vectors[len(sights.queries) :]
        pairs = (others @ others.T)[~np.eye(len(others), dtype=np.bool_)]
        unrelated = float(pairs.mean()) if others.any(axis=1).all() else None
        return _Learnt(sights, _model(sights), vectors[: len(sights.queries)], unrelated)

    def _weighed(self, query: str, learnt: _Learnt) -> dict[int, Evidence]:
        sights, words = learnt.sights, _normal(query)
        near = np.zeros(len(sights.queries))
        if learnt.unrelated is not None:
            # As it was asked: that is the text whose vector the search has made already.
            cosines = learnt.vectors @ np.asarray(self._vectors_of([query]), np.float32)[0]
            near = np.minimum(
                (cosines.astype(np.float64) - learnt.unrelated) / (1 - learnt.unrelated), 1.0
            )
        numbers = _numbers(words)
        for at, one in enumerate(sights.queries):
            if one == words:
                near[at] = 1.0
            elif near[at] >= SIMILAR and _numbers(one) != numbers:
                near[at] = 0.0
        alike = np.flatnonzero(near >= SIMILAR)
        if not len(alike):
            return {}
        rows = np.concatenate([np.arange(sights.first[q], sights.first[q + 1]) for q in alike])
        weight = np.repeat(near[alike], np.diff(sights.first)[alike]) * sights.weight[rows]
        return _evidence(sights, learnt.model, rows, weight)


def _normal(query: str) -> str:
    return " ".join(query.casefold().split())


def _numbers(query: str) -> frozenset[str]:
    return frozenset(one.strip(".,;:?!()[]\"'") for one in _NUMBERED.findall(query))


def _sights(events: Sequence[Event], positions: dict[str, int], today: date) -> _Sights:
    """Each person's last word on each item for each query."""
    votes: dict[tuple[str, str, int], tuple[str, str]] = {}
    clicks: dict[tuple[str, str, int], str] = {}
    shown: dict[tuple[str, str, int], str] = {}
    ranks: dict[tuple[str, str, int], int] = {}
    told: set[tuple[str, str]] = set()  # query and who of which the log says what was shown
    even: dict[str, str] = {}
    spelt: dict[str, str] = {}
    for event in events:
        query = even.get(event.query) or even.setdefault(event.query, _normal(event.query))
        spelt[query] = min(spelt.get(query, event.query), event.query)
        who = event.user or f"\0{event.session}"
        key = (query, who, positions[event.document_id])
        at = event.at or _UNDATED
        shown[key] = max(shown.get(key, ""), at)
        if event.rank:
            ranks[key] = min(event.rank, ranks.get(key, _DEEPEST))
        if event.kind in CLICKS:
            clicks[key] = max(clicks.get(key, ""), at)
        if event.kind in ("up", "down"):
            votes[key] = max(votes.get(key, ("", "")), (at, event.kind))
        elif event.kind == "shown":
            told.add((query, who))
    _assume_shown(shown, ranks, told)
    for key, (_, vote) in votes.items():
        if vote == "down":
            clicks.pop(key, None)
            ranks[key] = 1  # whoever votes it down has examined it
    queries = sorted({query for query, _, _ in shown})
    number = {query: at for at, query in enumerate(queries)}
    people = {who: at for at, who in enumerate(sorted({who for _, who, _ in shown}))}
    rows = np.array([(number[query], people[who], item) for query, who, item in shown], np.int64)
    days = [clicks.get(key, at)[:10] for key, at in shown.items()]
    fade = {day: _fade(day, today) for day in set(days)}
    order = np.lexsort(rows.T[::-1])
    return _Sights(
        tuple(queries),
        tuple(spelt[query] for query in queries),
        np.searchsorted(rows[order, 0], np.arange(len(queries) + 1)),
        rows[order, 1],
        rows[order, 2],
        np.array([key in clicks for key in shown], np.bool_)[order],
        np.array([ranks.get(key, 0) for key in shown], np.int64)[order],
        np.array([fade[day] for day in days], np.float64)[order],
    )


def _assume_shown(
    shown: dict[tuple[str, str, int], str],
    ranks: dict[tuple[str, str, int], int],
    told: set[tuple[str, str]],
) -> None:
    """Where a log does not say what somebody was shown: all that anybody had for that query, at its usual rank."""
    last: dict[tuple[str, str], str] = {}
    for (query, who, _), at in shown.items():
        if (query, who) not in told:
            last[query, who] = max(last.get((query, who), ""), at)
    asked = {query for query, _ in last}
    known: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for query, who, item in shown:
        if query in asked:
            known[query][item].append(ranks.get((query, who, item), 0))
    usual = {
        query: {item: median_low([one for one in seen if one] or [0]) for item, seen in items.items()}
        for query, items in known.items()
    }
    for (query, who), at in last.items():
        for item, rank in usual[query].items():
            key = (query, who, item)
            if key not in shown:
                shown[key] = at
                ranks[key] = rank


def _fade(day: str, today: date) -> float:
    """What an event of a day still counts; one of a day to come counts whole."""
    age = (today - date.fromisoformat(day)).days
    return float(2 ** (-max(age, 0) / HALF_LIFE))


def _model(sights: _Sights) -> _Model:
    """The click rate at each rank, its mean where examined, and the prior of γ."""
    query = np.repeat(np.arange(len(sights.queries)), np.diff(sights.first))
    _, pair, counts = np.unique(
        np.stack([query, sights.item]), axis=1, return_inverse=True, return_counts=True
    )
    pair = pair.reshape(-1)
    expected = np.concatenate(([0.0], np.arange(1, _DEEPEST + 1) ** -ETA))
    seen = np.bincount(sights.rank, sights.weight, _DEEPEST + 1)
    clicks = np.bincount(sights.rank, sights.weight * sights.clicked, _DEEPEST + 1)
    level = min(clicks[1:].sum() / max((seen * expected).sum(), 1e-9), 1.0)
    # How much a rate at a rank says depends on how many pairs stood there, not on how many people saw each.
    _, first = np.unique(np.stack([pair, sights.rank]), axis=1, return_index=True)
    pairs = np.bincount(sights.rank[first], minlength=_DEEPEST + 1)
    rates = np.divide(clicks, seen, out=np.zeros_like(clicks), where=seen > 0)
    chance = (pairs * rates + _BORROWED * level * expected) / (pairs + _BORROWED)
    chance[0] = 0.0
    mean = float(np.clip(chance.max(), 0.02, 0.5))
    theta = np.minimum(chance / mean, 1.0)
    place = np.full(len(counts), -1)
    chosen = np.argsort(-counts, kind="stable")[:_PAIRS]
    place[chosen] = np.arange(len(chosen))
    rows = np.flatnonzero(place[pair] >= 0)
    clicked = sights.weight * sights.clicked
    likelihood = _likelihood(
        place[pair[rows]],
        len(chosen),
        clicked[rows],
        (sights.weight - clicked)[rows],
        sights.rank[rows],
        theta,
    )
    likeliest = max(
        _STRENGTHS,
        key=lambda one: float(np.logaddexp.reduce(likelihood + _prior(mean, one), axis=1).sum()),
    )
    return _Model(chance, theta, mean, float(likeliest), _prior(mean, likeliest))


def _likelihood(
    group: Positions,
    groups: int,
    clicks: NDArray[np.float64],
    passes: NDArray[np.float64],
    rank: Positions,
    theta: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Σ clicks · log γ + Σ passes · log(1 − θγ) for each group, shape (groups, len(_GAMMA))."""
    of_clicks = np.bincount(group, clicks, groups)
    used, column = np.unique(rank, return_inverse=True)
    of_passes = np.bincount(group * len(used) + column, passes, groups * len(used)).reshape(
        groups, len(used)
    )
    passed: NDArray[np.float64] = np.log1p(-theta[used][:, None] * _GAMMA)
    return of_clicks[:, None] * np.log(_GAMMA) + of_passes @ passed


def _prior(mean: float, strength: float) -> NDArray[np.float64]:
    """The log density of Beta(strength · mean, strength · (1 − mean)) over `_GAMMA`, which sums to 1."""
    density: NDArray[np.float64] = strength * (mean * np.log(_GAMMA) + (1 - mean) * np.log1p(-_GAMMA))
    return density - float(np.logaddexp.reduce(density))


def _evidence(
    sights: _Sights, model: _Model, rows: Positions, weight: NDArray[np.float64]
) -> dict[int, Evidence]:
    """What rows say of each item; each person at most once, with what counts most."""
    # Of a person's rows on an item the heaviest comes first.
    order = np.lexsort((-weight, sights.person[rows], sights.item[rows]))
    rows, weight = rows[order], weight[order]
    item, person = sights.item[rows], sights.person[rows]
    begins = np.flatnonzero(np.diff(item, prepend=-1) | np.diff(person, prepend=-1))
    whole = weight[begins]
    clicks = np.maximum.reduceat(np.where(sights.clicked[rows], weight, 0.0), begins)
    rank = sights.rank[rows[begins]]
    items, group = np.unique(item[begins], return_inverse=True)
    posterior = model.prior + _likelihood(group, len(items), clicks, whole - clicks, rank, model.theta)
    share = np.cumsum(np.exp(posterior - posterior.max(1, keepdims=True)), 1)
    gamma = _GAMMA[np.argmax(share >= QUANTILE * share[:, -1:], 1)]
    clicked = np.bincount(group, clicks > 0)
    shown = np.bincount(group)
    usual = np.bincount(group, model.chance[rank])
    return {
        int(items[at]): Evidence(
            int(clicked[at]), int(shown[at]), float(usual[at]), float(gamma[at]), model.mean
        )
        for at in np.flatnonzero(clicked)
    }
