"""What ranks items besides their texts: business rules, what people did with results, today's date.

It travels with the corpus, so that whatever searches it has it without being told.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection as Among
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date
from functools import cached_property
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING

from core.behaviour.events import Event
from core.rules import Rules

if TYPE_CHECKING:
    from core.collection import Collection

_EVENT = attrgetter(*(one.name for one in fields(Event)))  # of many: astuple takes ten times as long
_NO_KINDS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class FirstStage:
    """`events` are what people did; `kinds` what somebody said metadata fields are (`core.fields.KINDS`);
    `today` is the day from which ages are counted, and on which rules hold or do not."""

    rules: Rules = Rules.empty
    events: tuple[Event, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=lambda: _NO_KINDS)
    today: date = field(default_factory=date.today)

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hex digits, equal where the same query ranks items alike; blank when there is nothing.

        The day counts where events fade or rules have dates. It also counts for recency, whose field the
        search settings name: who keeps results of a search by recency keeps the day with them.
        """
        rules = self.rules.fingerprint
        if not (rules or self.events or self.kinds):
            return ""
        dated = bool(self.events) or self.rules.dated
        facts = [
            rules,
            sorted(self.kinds.items()),
            self.today.isoformat() if dated else "",
            *map(_EVENT, self.events),
        ]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]

    def of_items(self, ids: Among[str]) -> FirstStage:
        """Without the events on other items: what a collection that never held those would know."""
        known = frozenset(ids)
        return replace(self, events=tuple(one for one in self.events if one.document_id in known))


def first_stage_of(collection: Collection, today: date | None = None) -> FirstStage:
    """That of a collection as it is now. Raises RulesError where its rules cannot be read: to search as if it
    had none would show what they hide."""
    from core.behaviour.store import Behaviour

    return FirstStage(
        Rules.from_toml(collection.rules_text()),
        tuple(Behaviour(collection).events()),
        MappingProxyType(collection.field_kinds()),
        today or date.today(),
    )
