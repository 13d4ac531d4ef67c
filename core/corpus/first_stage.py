"""What ranks items besides their texts: business rules, what people did with results, today's date.

It travels with the corpus, so that whatever searches it has it without being told.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection as Among
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, replace
from datetime import date
from types import MappingProxyType
from typing import TYPE_CHECKING

from core.behaviour.events import Event

if TYPE_CHECKING:
    from core.collection import Collection
    from core.rules import Rules

_NO_KINDS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class FirstStage:
    """`events` are what people did, oldest first; `kinds` what somebody said metadata fields are (`core.fields.KINDS`);
    `today` is the day from which ages and the dates of rules are counted."""

    rules: Rules | None = None
    events: tuple[Event, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=lambda: _NO_KINDS)
    today: date = field(default_factory=date.today)

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits, equal where the same query ranks items alike; blank when there is nothing.

        The day counts where events fade or rules have dates.
        """
        rules = self.rules.fingerprint if self.rules else ""
        if not (rules or self.events or self.kinds):
            return ""
        dated = bool(self.events) or bool(self.rules and self.rules.dated)
        facts = [rules, sorted(self.kinds.items()), self.today.isoformat() if dated else ""]
        digest = hashlib.sha256(json.dumps(facts).encode())
        for event in self.events:
            digest.update(json.dumps(astuple(event)).encode())
        return digest.hexdigest()[:16]

    def of_items(self, ids: Among[str]) -> FirstStage:
        """Without the events on other items: what a collection that never held those would know."""
        known = frozenset(ids)
        return replace(self, events=tuple(one for one in self.events if one.document_id in known))


def first_stage_of(collection: Collection, today: date | None = None) -> FirstStage:
    """That of a collection as it is now."""
    from core.behaviour.store import Behaviour
    from core.rules import Rules

    return FirstStage(
        Rules.from_toml(collection.rules_text()),
        tuple(Behaviour(collection).events()),
        MappingProxyType(collection.field_kinds()),
        today or date.today(),
    )
