"""What people did with a collection's results, on disk: `behaviour.db` in its folder, gone with the collection.

Nothing is recorded until somebody switches it on. What was recorded or imported stays, and counts, until it
is erased: switching off only ends the recording.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import NamedTuple

from core.behaviour.events import Event, checked
from core.behaviour.forms import Finder, Log
from core.collection import Collection
from core.database import clear_errors, connect, make_tables, transaction
from core.documents import Documents

_SCHEMA = 1
# `document` is an id; in `strays` the name that was given, as no document had it.
_COLUMNS = "query, document, kind, rank, at, user, session"
_TABLES = f"""
CREATE TABLE events(
    seq INTEGER PRIMARY KEY AUTOINCREMENT, query TEXT NOT NULL, document TEXT NOT NULL, kind TEXT NOT NULL,
    rank INTEGER NOT NULL, at TEXT NOT NULL, user TEXT NOT NULL, session TEXT NOT NULL,
    UNIQUE({_COLUMNS}));
CREATE INDEX events_by_user ON events(user);
CREATE TABLE strays(
    seq INTEGER PRIMARY KEY AUTOINCREMENT, query TEXT NOT NULL, document TEXT NOT NULL, kind TEXT NOT NULL,
    rank INTEGER NOT NULL, at TEXT NOT NULL, user TEXT NOT NULL, session TEXT NOT NULL,
    UNIQUE({_COLUMNS}));
CREATE TABLE meta(key TEXT PRIMARY KEY, value INTEGER NOT NULL);
INSERT INTO meta VALUES ('version', 0);
INSERT INTO meta VALUES ('on', 0);
"""


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of a click log: `new` events, those that were there (`same`), and `strays` (new ones), whose
    document is not in the collection: they are kept, and looked for again at each import."""

    new: int
    same: int
    strays: int
    problems: tuple[str, ...]


class Extent(NamedTuple):
    """How far a log went: how many events it had, the number of the last one, and that event."""

    size: int
    last: int
    event: Event


class Behaviour:
    """The events of one collection. Every call is one transaction, on disk when it returns.

    Safe to share between threads and programs. Raises CollectionError when the disk or the file fails.
    """

    def __init__(self, collection: Collection) -> None:
        self.path = Path(collection.folder) / "behaviour.db"

    @property
    def on(self) -> bool:
        """Whether what people do is recorded."""
        return bool(self._meta("on"))

    @property
    def version(self) -> int:
        """Grows with every change of the events."""
        return self._meta("version")

    def switch(self, on: bool) -> None:
        with self._write() as database:
            database.execute("UPDATE meta SET value=? WHERE key='on'", (int(on),))

    def record(self, events: Sequence[Event]) -> int:
        """Keep events of this app; none while recording is off. Returns how many are new.

        Raises BehaviourError for an event that is none (see `checked`).
        """
        rows = [astuple(checked(event)) for event in events]
        if not rows or not self.on:
            return 0
        with self._write() as database:
            return _insert(database, "events", rows)

    def add(self, log: Log, documents: Documents) -> Imported:
        """Keep an imported log, on or off; what is here already is not added again.

        Strays of earlier imports whose document is here now join the events.
        """
        with self._write() as database:
            found = _insert(database, "events", map(astuple, log.events))
            strays = _insert(database, "strays", map(astuple, log.strays))
            _settle(database, Finder(documents))
        return Imported(found, len(log.events) - found, strays, log.problems)

    def events(self, user: str | None = None) -> list[Event]:
        """The events, oldest first; with `user`, only what is counted for that one."""
        return self._listed("events", user)

    def extent(self) -> Extent | None:
        """How far the events go; None without any."""
        with self._read() as database:
            row = (
                database
                and database.execute(
                    f"SELECT (SELECT COUNT(*) FROM events), seq, {_COLUMNS} FROM events ORDER BY seq DESC LIMIT 1"
                ).fetchone()
            )
        return Extent(row[0], row[1], Event(*row[2:])) if row else None

    def grown(self, since: Extent) -> int | None:
        """How many events were added since; None where something was erased, or it is another log."""
        with self._read() as database:
            if not database:
                return None
            count, last = database.execute("SELECT COUNT(*), MAX(seq) FROM events").fetchone()
            row = database.execute(
                f"SELECT {_COLUMNS} FROM events WHERE seq=?", (since.last,)
            ).fetchone()
        added = int(count) - since.size
        # Numbers are given once: where fewer events were added than numbers, some may be gone. (One that was
        # there already takes a number too.)
        return added if row == astuple(since.event) and last - since.last == added else None

    def strays(self, user: str | None = None) -> list[Event]:
        """Imported events whose document is not here; `document_id` is the name that was given."""
        return self._listed("strays", user)

    def users(self) -> dict[str, int]:
        """How many events are kept of whom, strays included; blank: of whom is not known."""
        with self._read() as database:
            return dict(
                database.execute(
                    "SELECT user, COUNT(*) FROM (SELECT user FROM events UNION ALL SELECT user FROM strays) "
                    "GROUP BY user ORDER BY user"
                )
                if database
                else ()
            )

    def erase(self, user: str) -> int:
        """Delete all that is kept of somebody, also from the file's unused space; how many events it was."""
        return self._erase("WHERE user=?", (user,))

    def erase_all(self) -> int:
        """Delete all events; how many there were. Recording stays as it is, on or off."""
        return self._erase("", ())

    def _erase(self, which: str, values: tuple[str, ...]) -> int:
        if not self.path.exists():
            return 0
        with self._open() as database:
            database.execute("PRAGMA secure_delete=ON")
            with transaction(database):
                gone = sum(
                    database.execute(f"DELETE FROM {table} {which}", values).rowcount
                    for table in ("events", "strays")
                )
                _bump(database)
            # The log ahead of the file holds the old pages until it is emptied.
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return gone

    def _meta(self, key: str) -> int:
        with self._read() as database:
            row = database and database.execute("SELECT value FROM meta WHERE key=?", (key,)).fetchone()
        return int(row[0]) if row else 0

    def _listed(self, table: str, user: str | None) -> list[Event]:
        which, values = ("", ()) if user is None else ("WHERE user=?", (user,))
        with self._read() as database:
            rows = (
                database.execute(f"SELECT {_COLUMNS} FROM {table} {which} ORDER BY at, seq", values)
                if database
                else ()
            )
            return [Event(*row) for row in rows]

    @contextmanager
    def _read(self) -> Iterator[sqlite3.Connection | None]:
        """None where nothing was ever kept: looking makes no file."""
        if not self.path.exists():
            yield None
            return
        with self._open() as database, transaction(database, "BEGIN"):
            yield database

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        with self._open() as database, transaction(database):
            yield database

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with (
            clear_errors(
                "what people did with results",
                self.path,
                instead="delete it: what was recorded is gone then",
            ),
            closing(connect(self.path)) as database,
        ):
            with transaction(database):
                make_tables(database, self.path, _TABLES, _SCHEMA)
            yield database


def _insert(database: sqlite3.Connection, table: str, rows: Iterable[tuple]) -> int:
    """How many of the rows were new."""
    before = database.total_changes
    database.executemany(f"INSERT OR IGNORE INTO {table}({_COLUMNS}) VALUES (?,?,?,?,?,?,?)", rows)
    if new := database.total_changes - before:
        _bump(database)
    return new


def _settle(database: sqlite3.Connection, finder: Finder) -> None:
    """Make those strays events whose document is there now."""
    for seq, *facts in database.execute(f"SELECT seq, {_COLUMNS} FROM strays").fetchall():
        stray = Event(*facts)
        if document := finder.id_of(stray.document_id):
            _insert(database, "events", [astuple(replace(stray, document_id=document))])
            database.execute("DELETE FROM strays WHERE seq=?", (seq,))


def _bump(database: sqlite3.Connection) -> None:
    database.execute("UPDATE meta SET value=value+1 WHERE key='version'")
