"""What people do with results, as it is recorded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from core.errors import RankscopeError
from core.types import encodable

KINDS = ("shown", "open", "copy", "up", "down")
CLICKS = ("open", "copy", "up")


class BehaviourError(RankscopeError):
    """An event, or a log of events, that cannot be read."""


@dataclass(frozen=True, slots=True)
class Event:
    """One item of one answered query: it was shown at `rank` (from 1), or somebody did something with it.

    `kind` is one of `KINDS`; `at` is UTC (ISO 8601); `user` is whom it is counted for, blank where not
    known; events of one answered query share a `session`. In imported events `rank` is 0 and `at` blank
    where the log does not say.
    """

    query: str
    document_id: str
    kind: str
    rank: int
    at: str
    user: str = ""
    session: str = ""


def checked(event: Event) -> Event:
    """The event as it is kept: its time as UTC in full seconds, what UTF-8 cannot hold replaced.

    Raises BehaviourError for a blank query or document, an unknown kind, a rank below 0, or no time.
    """
    query, document = encodable(event.query).strip(), encodable(event.document_id).strip()
    if not query or not document:
        raise BehaviourError("an event needs a query and a document; one of them is blank")
    if event.kind not in KINDS:
        raise BehaviourError(f"the kind {event.kind!r} is unknown; give one of {', '.join(KINDS)}")
    if not 0 <= event.rank < 2**31:
        raise BehaviourError(f"the rank is {event.rank}; count from 1, and give 0 where it is not known")
    return replace(
        event,
        query=query,
        document_id=document,
        at=event.at and in_utc(event.at),
        user=encodable(event.user).strip(),
        session=encodable(event.session).strip(),
    )


def in_utc(text: str) -> str:
    """A time as `Event.at` has it: from ISO 8601 (UTC where no zone is named), or milliseconds or seconds
    since 1970. Raises BehaviourError for other forms."""
    words = text.strip()
    try:
        if words.replace(".", "", 1).isdecimal():
            seconds = float(words)
            # Seconds reach this limit in the year 5138, milliseconds passed it in 1973.
            moment = datetime.fromtimestamp(seconds / 1000 if seconds >= 1e11 else seconds, UTC)
        else:
            moment = datetime.fromisoformat(words)
        moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        raise BehaviourError(
            f"the time {words[:40]!r} cannot be read; write it as 2026-01-31T09:30:00Z"
        ) from None
    return moment.isoformat(timespec="seconds")
