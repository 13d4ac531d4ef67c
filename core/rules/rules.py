"""All rules of a collection, in order: read, written, named and asked."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from core.access import Viewer
from core.errors import RankscopeError
from core.protocols import Fields
from core.rules.reading import read, toml_of, written
from core.rules.rule import Rule, even
from core.rules.settling import settled
from core.trace import Ruled


class RulesError(RankscopeError):
    """Rules that cannot be taken. `problems`: (line from 1, reason), in the order of the lines."""

    def __init__(self, problems: Sequence[tuple[int, str]]) -> None:
        lines = "\n".join(f"line {line}: {reason}" for line, reason in problems)
        super().__init__(f"no rule was applied\n{lines}")
        self.problems = tuple(problems)


_Reach = tuple[NDArray[np.int64] | None, str]


@dataclass(frozen=True)
class Rules:
    """Rules in their order. Those that are off are kept, and do nothing."""

    rules: tuple[Rule, ...] = ()
    # What each rule is about does not depend on the query: it is told once for the items of a corpus.
    _reaches: WeakKeyDictionary[Any, dict[Rule, _Reach]] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False, compare=False
    )
    empty: ClassVar[Rules]

    def __len__(self) -> int:
        return len(self.rules)

    @classmethod
    def from_toml(cls, text: str) -> Rules:
        """The rules of a text. Raises RulesError with every problem in it, each with its line."""
        rules, problems = read(text)
        if problems:
            raise RulesError([(problem.line, problem.reason) for problem in problems])
        return cls(rules)

    def to_toml(self) -> str:
        """What `from_toml` reads back; comments in the text they came from are not kept."""
        return toml_of([written(rule) for rule in self.rules])

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits, equal for rules that do the same; blank when none is on."""
        acting = Rules(tuple(rule for rule in self.rules if rule.on))
        return hashlib.sha256(acting.to_toml().encode()).hexdigest()[:16] if acting.rules else ""

    @property
    def dated(self) -> bool:
        """Whether what the rules do depends on the day."""
        return any(rule.on and (rule.first_day or rule.last_day) for rule in self.rules)

    def fired(self, query: str, viewer: Viewer | None, today: date) -> tuple[Rule, ...]:
        """The rules that hold for a query, in order."""
        return tuple(rule for rule in self.rules if not rule.rests(query, viewer, today))

    def about(self, rule: Rule, fields: Fields, ids: Sequence[str], names: Sequence[str]) -> _Reach:
        """`Rule.about` for the items of a corpus: `ids` and `names` are those that `fields` is of."""
        known = self._reaches.setdefault(fields, {})
        if rule not in known:
            known[rule] = rule.about(fields, ids, lambda: _named(ids, names))
        return known[rule]

    def ruled(
        self,
        query: str,
        viewer: Viewer | None,
        today: date,
        fields: Fields,
        ids: Sequence[str],
        names: Sequence[str],
        passing: NDArray[np.bool_] | None = None,
    ) -> Ruled:
        """What the rules make of a query's items, of those marked in `passing` (n_items,) where it is given;
        `core.rules.settling` says how conflicts end.

        A viewer is told of no rule that touches none of their items: it may be about hidden ones.
        """
        fired = self.fired(query, viewer, today)
        reaches = [self.about(rule, fields, ids, names) for rule in fired]
        acting = []
        for rule, (at, _) in zip(fired, reaches, strict=True):
            if at is not None:
                acting.append((rule, at))
            elif rule.action == "only":  # what cannot be told to be among those kept is not kept
                acting.append((rule, np.empty(0, dtype=np.int64)))
        if viewer is not None:
            acting = [(rule, at) for rule, at in acting if rule.action == "only" or _any(at, passing)]
        return settled(
            acting,
            range(len(ids)) if passing is None else np.flatnonzero(passing).tolist(),
            [note for _, note in reaches if note and viewer is None],
        )


Rules.empty = Rules()


def _any(at: NDArray[np.int64], passing: NDArray[np.bool_] | None) -> bool:
    return bool(len(at) if passing is None else passing[at].any())


def _named(ids: Sequence[str], names: Sequence[str]) -> Mapping[str, list[int]]:
    """Positions by evened id and file name; an id goes before a name of the same letters."""
    at: dict[str, list[int]] = {}
    for position, name in enumerate(names):
        at.setdefault(even(name), []).append(position)
    return at | {even(one): [position] for position, one in enumerate(ids)}
