"""The item stage: the signals that rank items, and what rules add, take out and put elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from core.errors import NeedsSearch
from core.fusion import Fused, row_sums, rrf
from core.pipeline.memo import Memo
from core.settings import SearchSettings
from core.trace import NO_HITS, NO_RULES, Ranking, Record, Ruled, Stage

RULES = "rules"
"""The name under which rules stand among the signals: on or off, and the weight of their boosts."""


@dataclass(frozen=True, eq=False)
class ItemOrder:
    """The items, uncut. `signals` are those that count, without what rules hide; `fused` is their RRF with
    the boosts of rules. `placed` (None where rules pin nothing) is the order after pinning, its scores
    1/rank, as a place that somebody gave has no score."""

    signals: Mapping[str, Ranking]
    fused: Fused
    placed: Ranking | None

    @property
    def ranking(self) -> Ranking:
        """What goes on, before the cut."""
        return self.fused.ranking if self.placed is None else self.placed


def counts_signals(names: Iterable[str], settings: SearchSettings) -> bool:
    """Whether a signal is on, so that items are ranked at all; rules alone rank nothing."""
    return any(settings.signal(name).on for name in names)


def acting(ruled: Ruled, settings: SearchSettings) -> Ruled:
    """What rules do under these settings: nothing where they are switched off."""
    return ruled if settings.signal(RULES).on else NO_RULES


def rank_items(
    signals: Mapping[str, Ranking], settings: SearchSettings, ruled: Ruled = NO_RULES
) -> ItemOrder:
    """Weighted RRF of the signals that are on, rules applied: what they hide takes no rank in any signal, a
    net boost w adds w · weight / (k_rrf_items + 1), a pin puts an item at its rank, in the order of ranks."""
    rules = acting(ruled, settings)
    on = {
        name: without(ranking, rules.hidden)
        for name, ranking in signals.items()
        if settings.signal(name).on
    }
    fused = _fused(on, settings, rules.boosts)
    if not rules.pins:
        return ItemOrder(on, fused, None)
    order = _pinned(fused.ranking.positions.tolist(), rules.pins)
    return ItemOrder(on, fused, Ranking(order, 1 / np.arange(1, len(order) + 1)))


def without(ranking: Ranking, hidden: Mapping[int, str]) -> Ranking:
    """A ranking without some of its positions."""
    if not hidden:
        return ranking
    keep = ~np.isin(ranking.positions, np.fromiter(hidden, np.int64, len(hidden)))
    return Ranking(ranking.positions[keep], ranking.scores[keep])


def by_weight(boosts: Mapping[int, float]) -> Ranking:
    """The items that rules boost or bury, by net weight."""
    return Ranking.order(list(boosts), list(boosts.values()))


def _fused(on: Mapping[str, Ranking], settings: SearchSettings, boosts: Mapping[int, float]) -> Fused:
    weights = {name: settings.signal(name).weight for name in on}
    if not boosts:
        return rrf(on, weights, settings.k_rrf_items)
    weight = settings.signal(RULES).weight
    fused = rrf({**on, RULES: by_weight(boosts)}, {**weights, RULES: weight}, settings.k_rrf_items)
    positions, ranks, terms = fused.ranking.positions, fused.ranks, fused.terms.copy()
    terms[:, -1] = [
        boosts.get(position, 0.0) * weight / (settings.k_rrf_items + 1)
        for position in positions.tolist()
    ]
    # An item that is only buried is ranked by nothing.
    counted = [column for column, name in enumerate(on) if weights[name] > 0]
    found = np.flatnonzero((ranks[:, counted] > 0).any(axis=1) | (terms[:, -1] > 0))
    scores = row_sums(terms[found])
    order = found[np.lexsort((positions[found], -scores))]
    return Fused(
        Ranking(positions[order], row_sums(terms[order])), fused.names, ranks[order], terms[order]
    )


def _pinned(order: list[int], pins: Mapping[int, int]) -> list[int]:
    """Every pinned item at its rank, the others in their order around them; past the end, at the end."""
    placed = [item for item in order if item not in pins]
    for rank, item in sorted((rank, item) for item, rank in pins.items()):
        placed.insert(rank - 1, item)
    return placed


def item_stages(
    record: Record, settings: SearchSettings, stages: list[Stage], memo: Memo
) -> Ranking | None:
    """The ranking of the items sent on; None when items play no part."""
    if not settings.two_stage:
        stages.append(_off("two stages are off", record, settings))
        return None
    if not record.signals:
        raise NeedsSearch(("two stages on",))
    rules, counts = acting(record.ruled, settings), counts_signals(record.signals, settings)
    if counts:
        uses = (settings.signal(name) for name in (*record.signals, RULES))
        key = (settings.k_rrf_items, *((use.on, use.weight) for use in uses))
        order = memo.once(key, lambda: rank_items(record.signals, settings, record.ruled))
    for name in record.signals:
        stages.append(_signal_stage(name, order.signals.get(name) if counts else None, record))
    if record.ruled.fired:
        stages.append(_rules_stage(record.ruled, settings, counts))
    if not counts:
        stages.append(_off("all item signals are off", record, settings))
        return None
    stages += _order_stages(order, rules, settings)
    return stages[-1].ranking


def _off(reason: str, record: Record, settings: SearchSettings) -> Stage:
    among = "all items" if record.passing is None else "all items that pass the filters"
    idle = (
        "; rules act on ranked items, so they do nothing" if acting(record.ruled, settings).fired else ""
    )
    note = f"{reason}: chunks of {among} are searched{idle}"
    return Stage("items", "fuse", "item", NO_HITS, on=False, note=note)


def _signal_stage(name: str, ranking: Ranking | None, record: Record) -> Stage:
    """None: it is switched off."""
    return Stage(
        f"items.{name}",
        "project" if name == "semantic" else "signal",
        "item",
        NO_HITS if ranking is None else ranking,
        on=ranking is not None,
        note="switched off" if ranking is None else "; ".join(record.said.get(name, ())),
    )


def _rules_stage(ruled: Ruled, settings: SearchSettings, counts: bool) -> Stage:
    on = settings.signal(RULES).on and counts
    off = "there is no ranking that rules could change" if settings.signal(RULES).on else "switched off"
    told = [f"{'rule' if len(ruled.fired) == 1 else 'rules'} {', '.join(ruled.fired)}", *ruled.notes]
    net = by_weight(ruled.boosts) if on else NO_HITS
    return Stage(f"items.{RULES}", "signal", "item", net, on=on, note="; ".join(told) if on else off)


def _order_stages(order: ItemOrder, rules: Ruled, settings: SearchSettings) -> list[Stage]:
    fused, limit = order.fused, settings.items
    inputs = tuple(f"items.{name}" for name in fused.names)
    weighed = any(settings.signal(name).weight for name in fused.names)
    unweighed = "" if weighed else "every signal that is on has the weight 0: no item goes on"
    hidden = f"{len(rules.hidden):,} hidden" if rules.hidden else ""
    whole = Stage(
        "items",
        "fuse",
        "item",
        fused.ranking,
        inputs,
        fused.ranks,
        fused.terms,
        fused.ranking,
        note=unweighed,
    )
    removed = MappingProxyType(dict(rules.hidden))
    if order.placed is None:
        n = min(limit, len(fused.ranking))
        return [
            replace(
                whole,
                ranking=fused.ranking.head(n),
                ranks=fused.ranks[:n],
                terms=fused.terms[:n],
                limit=limit,
                removed=removed,
                note="; ".join(filter(None, (unweighed, hidden and f"{hidden} by rules"))),
            )
        ]
    placed = order.placed.head(limit)
    ranks = _ranks_in(fused.ranking, placed.positions)
    told = ", ".join(filter(None, (f"{len(rules.pins):,} pinned", hidden)))
    return [
        replace(whole, name="items.fused"),
        Stage(
            "items",
            "rule",
            "item",
            placed,
            ("items.fused",),
            ranks.reshape(-1, 1),
            before=order.placed,
            limit=limit,
            removed=removed,
            note=f"{told} by rules; the score is 1/rank, as a pin has none",
        ),
    ]


def _ranks_in(ranking: Ranking, positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rank of each position in a ranking, 0 where it has none."""
    rank_of = {position: rank for rank, position in enumerate(ranking.positions.tolist(), 1)}
    return np.array([rank_of.get(position, 0) for position in positions.tolist()], dtype=np.int64)
