"""Simulated people who are shown ranked results and open some: the truth behind their clicks is known.

A session: somebody out of `people` asks a query, as it is or in other words, and is shown the first `shown`
results of the ranking given. Whom a result attracts depends on whether it is relevant (`ATTRACTED`); the kind of
person decides what is examined:

- `position_based(eta)` examines rank r with probability r^−eta (Craswell et al., WSDM 2008);
- `cascade` reads from the top, goes on with probability 0.85 after a result left alone and 0.3 after one opened
  (after Craswell's cascade and the dependent click model of Guo, Liu, Wang, WSDM 2009);
- `anywhere` opens any result with one chance, `top_heavy` with a chance that falls as 1/r, whatever the result is: noise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np

from core.behaviour.events import Event

Person = Callable[[np.random.Generator, Sequence[bool]], list[bool]]
"""Which of the results, relevant or not, from rank 1, are opened."""

ATTRACTED = {True: 0.9, False: 0.05}
"""How often somebody who examines a result opens it, by whether it is relevant."""

NOISE = 0.2
"""How often `anywhere` opens a result; `top_heavy` at rank 1: twice that."""


def position_based(eta: float) -> Person:
    def opened(rng: np.random.Generator, relevant: Sequence[bool]) -> list[bool]:
        return [
            bool(rng.random() < rank**-eta * ATTRACTED[good]) for rank, good in enumerate(relevant, 1)
        ]

    return opened


def cascade(rng: np.random.Generator, relevant: Sequence[bool]) -> list[bool]:
    found: list[bool] = []
    reading = True
    for good in relevant:
        found.append(reading and bool(rng.random() < ATTRACTED[good]))
        reading = reading and bool(rng.random() < (0.3 if found[-1] else 0.85))
    return found


def anywhere(rng: np.random.Generator, relevant: Sequence[bool]) -> list[bool]:
    return [bool(rng.random() < NOISE) for _ in relevant]


def top_heavy(rng: np.random.Generator, relevant: Sequence[bool]) -> list[bool]:
    return [bool(rng.random() < 2 * NOISE / rank) for rank in range(1, len(relevant) + 1)]


def reworded(query: str, rng: np.random.Generator) -> str:
    """The query without a few of its words: from a sixth to a third."""
    words = query.split()
    kept = max(1, round(len(words) * rng.uniform(2 / 3, 5 / 6)))
    return " ".join(words[at] for at in sorted(rng.choice(len(words), kept, replace=False)))


def simulate(
    person: Person,
    asked: Mapping[str, Sequence[str]],
    ranked: Callable[[str], Sequence[str]],
    relevant: Callable[[str, str], bool],
    *,
    seed: int,
    sessions: float = 20,
    people: int = 40,
    shown: int = 10,
    as_it_is: float = 0.6,
    end: datetime = datetime(2026, 6, 1, tzinfo=UTC),
    days: int = 60,
) -> list[Event]:
    """The events of all sessions in the `days` before `end`, oldest first.

    `asked` has for each query its other wordings, of which one is taken in 1 − `as_it_is` of its sessions,
    whose number is Poisson with mean `sessions`. `ranked` gives the ids shown for a wording, `relevant` says
    whether a query means an id.
    """
    rng = np.random.default_rng(seed)
    events: list[Event] = []
    for query, others in asked.items():
        for _ in range(rng.poisson(sessions)):
            words = query if not others or rng.random() < as_it_is else str(rng.choice(list(others)))
            user = f"person {rng.integers(people)}"
            at = end - timedelta(seconds=int(rng.integers(days * 86_400)))
            session = f"{len(events):x}"
            ids = list(ranked(words))[:shown]
            opened = person(rng, [relevant(query, one) for one in ids])
            for rank, (one, clicked) in enumerate(zip(ids, opened, strict=True), 1):
                for kind in ("shown", "open")[: 1 + clicked]:
                    events.append(Event(words, one, kind, rank, at.isoformat(), user, session))
    return sorted(events, key=lambda event: event.at)
