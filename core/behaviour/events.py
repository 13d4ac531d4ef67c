"""What people do with results, as it is recorded."""

from __future__ import annotations

from dataclasses import dataclass

KINDS = ("shown", "open", "copy", "up", "down")
CLICKS = ("open", "copy", "up")


@dataclass(frozen=True, slots=True)
class Event:
    """One item of one answered query: it was shown at `rank` (from 1), or somebody did something with it.

    `kind` is one of `KINDS`; `at` is UTC (ISO 8601); `user` is whom it is counted for, blank where not
    known; events of one answered query share a `session`.
    """

    query: str
    document_id: str
    kind: str
    rank: int
    at: str
    user: str = ""
    session: str = ""
