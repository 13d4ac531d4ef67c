"""What the rules that hold make of the items, and how conflicts between them end.

`hide` and `only` come first and win over the others. Boosts and buries of an item add up. Pins then
take their ranks: a rule's first item the rank written, or, where an earlier rule has that, the next
free one; its further items follow at the next free ranks. An item pinned twice is the earlier rule's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.rules.rule import Rule
from core.trace import Ruled

About = Sequence[tuple[Rule, NDArray[np.int64]]]
_Listed = list[tuple[Rule, list[int]]]


def settled(fired: About, items: Sequence[int], notes: Sequence[str] = ()) -> Ruled:
    """The outcome of rules, in their order, each with the positions of the items it is about, for the `items`
    that are ranked: others keep no rank from them."""
    ranked = frozenset(items)
    listed = [(rule, [item for item in at.tolist() if item in ranked]) for rule, at in fired]
    told = [*notes]
    said: dict[int, list[str]] = {}

    hidden: dict[int, str] = {}
    for rule, at in listed:
        if rule.action in ("hide", "only"):
            reason, taken = _taken_out(rule, at, items)
            for item in taken:
                hidden.setdefault(item, reason)
                said.setdefault(item, []).append(reason)
    if items and len(hidden) == len(items):
        told.append(f"no item is left: {'; '.join(dict.fromkeys(hidden.values()))}")

    left: _Listed = []
    for rule, at in listed:
        if rule.action in ("hide", "only"):
            continue
        left.append((rule, [item for item in at if item not in hidden]))
        if lost := [item for item in at if item in hidden]:
            reasons = "; ".join(dict.fromkeys(hidden[item] for item in lost))
            told.append(f"rule {rule.name} has no effect on {_items(len(lost))}: {reasons}")
        for item in lost:
            said[item].append(f"rule {rule.name}: {does(rule)}, but the item is taken out")

    boosts: dict[int, float] = {}
    for rule, at in left:
        if rule.action != "pin":
            for item in at:
                boosts[item] = boosts.get(item, 0.0) + (
                    rule.value if rule.action == "boost" else -rule.value
                )
                said.setdefault(item, []).append(f"rule {rule.name}: {does(rule)}")
    told += _opposed(left)

    pins: dict[int, int] = {}
    places = {rule.name: place for place, (rule, _) in enumerate(left)}
    found = _pinned([(rule, at) for rule, at in left if rule.action == "pin"])
    for pin in sorted(found, key=lambda pin: places[pin.rule.name]):
        if pin.rank:
            pins[pin.item] = pin.rank
        sentence = ", ".join(filter(None, (f"rule {pin.rule.name}: {does(pin.rule)}", pin.note)))
        said.setdefault(pin.item, []).append(sentence)
        if pin.note:
            told.append(sentence)
    return Ruled(
        boosts=MappingProxyType(boosts),
        pins=MappingProxyType(pins),
        hidden=MappingProxyType(hidden),
        said=MappingProxyType({item: tuple(sentences) for item, sentences in said.items()}),
        fired=tuple(rule.name for rule, _ in listed),
        notes=tuple(dict.fromkeys(told)),
    )


def does(rule: Rule) -> str:
    """The action in words: "boost 2", "pin at 1", "hide"."""
    if rule.action == "pin":
        return f"pin at {rule.value:g}"
    return f"{rule.action} {rule.value:g}" if rule.action in ("boost", "bury") else rule.action


def _taken_out(rule: Rule, at: list[int], items: Sequence[int]) -> tuple[str, list[int]]:
    """Why, and which items. The reason does not quote the rule: any viewer reads it, and the condition may
    name what is hidden from them."""
    if rule.action == "hide":
        return f"rule {rule.name} hides it", at
    kept = set(at)
    return f"rule {rule.name} keeps only others", [item for item in items if item not in kept]


def _opposed(left: _Listed) -> Iterator[str]:
    up, down = (
        {item for rule, at in left if rule.action == action for item in at}
        for action in ("boost", "bury")
    )
    if both := up & down:
        names = [rule.name for rule, at in left if rule.action != "pin" and not both.isdisjoint(at)]
        yield f"{_items(len(both))} both boosted and buried, by rules {', '.join(names)}: the weights add up"


class _Pin(NamedTuple):
    rule: Rule
    item: int
    rank: int  # 0: an earlier rule pins the item
    note: str = ""


def _pinned(left: _Listed) -> Iterator[_Pin]:
    owner: dict[int, Rule] = {}  # of an item
    holder: dict[int, Rule] = {}  # of a rank
    beaten: list[tuple[Rule, int, str]] = []
    further: list[tuple[Rule, int, str]] = []
    for rule, items in left:
        wanted = int(rule.value)
        mine = [item for item in items if item not in owner]
        for item in items:
            if item in owner:
                yield _Pin(rule, item, 0, f"but rule {owner[item].name} pins the item already")
        owner |= dict.fromkeys(mine, rule)
        if not mine:
            continue
        if wanted in holder:
            beaten.append((rule, mine[0], f": rule {holder[wanted].name} has {wanted}"))
        else:
            holder[wanted] = rule
            yield _Pin(rule, mine[0], wanted)
        further += [(rule, item, "") for item in mine[1:]]
    # The sort is stable: of those that want one rank, rules and their items stay in their order. As the
    # wanted ranks rise, every free rank passed over lies below what any later one wants.
    rank = 0
    for rule, item, why in sorted(beaten + further, key=lambda one: one[0].value):
        rank = max(rank, int(rule.value))
        while rank in holder:
            rank += 1
        holder[rank] = rule
        yield _Pin(rule, item, rank, f"put at {rank}{why}" if why else "")


def _items(count: int) -> str:
    return "1 item" if count == 1 else f"{count:,} items"
