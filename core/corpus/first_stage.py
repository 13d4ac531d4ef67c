"""What ranks items besides their texts: business rules, what people did with results, today's date.

It travels with the corpus, so that whatever searches it has it without being told.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Collection as Among
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date
from functools import cached_property
from operator import attrgetter
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from core.behaviour.events import Event
from core.rules import Rules

if TYPE_CHECKING:
    from core.behaviour.store import Extent
    from core.collection import Collection

_EVENT = attrgetter(*(one.name for one in fields(Event)))  # of many: astuple takes ten times as long
_MANY = 1000  # events: fewer are learnt from in a blink
_WAIT = 0.001  # seconds for each event: some twenty times what learning from it takes
_LONGEST = 300.0  # seconds
_KEPT = 8  # collections
_held: OrderedDict[str, _Held] = OrderedDict()
_lock = threading.Lock()
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


class _Held(NamedTuple):
    extent: Extent
    read: float  # seconds, by `monotonic`
    events: tuple[Event, ...]


def first_stage_of(collection: Collection, today: date | None = None) -> FirstStage:
    """That of a collection as it is now. Raises RulesError where its rules cannot be read: to search as if it
    had none would show what they hide.

    Of a log of 1,000 events or more, new ones may come later, by a millisecond for each event there is and at
    most five minutes, while they are under a hundredth of it: what is learnt of events is learnt anew when
    any is added. What is erased is gone at once.
    """
    return FirstStage(
        Rules.from_toml(collection.rules_text()),
        _events(collection),
        MappingProxyType(collection.field_kinds()),
        today or date.today(),
    )


def _events(collection: Collection) -> tuple[Event, ...]:
    from core.behaviour.store import Behaviour

    behaviour, key = Behaviour(collection), str(collection.folder)
    with _lock:
        held = _held.get(key)
    if held:
        grown = behaviour.grown(held.extent)
        wait = min(held.extent.size * _WAIT, _LONGEST)
        few = grown is not None and grown <= held.extent.size // 100
        if grown == 0 or (few and monotonic() - held.read < wait):
            return held.events
    extent = behaviour.extent()  # before the events: what is added meanwhile counts as new
    events = tuple(behaviour.events())
    with _lock:
        _held.pop(key, None)
        if extent and extent.size >= _MANY:
            _held[key] = _Held(extent, monotonic(), events)
            if len(_held) > _KEPT:
                _held.popitem(last=False)
    return events
