"""SQLite files that hold what cannot be made again: how they are opened and changed, and what their errors
mean to a person."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from core.errors import CollectionError, RankscopeError
from core.home import refused

_TIMEOUT = 30.0  # seconds to wait for another program's write


def connect(path: Path) -> sqlite3.Connection:
    """A connection for all threads, one at a time; what is committed survives a power cut."""
    database = sqlite3.connect(path, timeout=_TIMEOUT, isolation_level=None, check_same_thread=False)
    try:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=FULL")
        database.execute("PRAGMA foreign_keys=ON")
    except sqlite3.Error:
        database.close()
        raise
    return database


@contextmanager
def transaction(database: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """All that is done inside, or nothing. "BEGIN" is enough to read: one view for all statements."""
    database.execute(begin)
    try:
        yield
        database.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # the first error is the one to tell
            if database.in_transaction:
                database.execute("ROLLBACK")
        raise


def make_tables(
    database: sqlite3.Connection,
    path: Path,
    tables: str,
    schema: int,
    kind: type[RankscopeError] = CollectionError,
) -> None:
    """The tables, where the file is new; within a transaction. Raises `kind` for a newer file's format."""
    found = database.execute("PRAGMA user_version").fetchone()[0]
    if found > schema:
        raise kind(
            f"{path} has the format {found}, this Rankscope knows {schema}; update Rankscope, or set "
            "RANKSCOPE_HOME to another folder"
        )
    if found == 0:
        change_tables(database, tables, schema)


def change_tables(database: sqlite3.Connection, statements: str, schema: int) -> None:
    """Run the statements and say that the file has the format `schema`; within a transaction."""
    for statement in filter(str.strip, statements.split(";")):
        database.execute(statement)
    database.execute(f"PRAGMA user_version={schema}")


@contextmanager
def clear_errors(
    what: str,
    path: Path,
    kind: type[RankscopeError] = CollectionError,
    instead: str = "delete the collection and upload its documents again",
) -> Iterator[None]:
    """Turn what disk and SQLite raise into one message: the thing, the reason, the remedy.

    `instead` is what to do about a damaged file without a copy.
    """
    try:
        yield
    except sqlite3.Error as error:
        raise kind(f"{what}: {_reason(str(error), path, instead)}") from error
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        reason = _full(path) if full else refused(path, error.strerror or str(error))
        raise kind(f"{what}: {reason}") from error


def _reason(message: str, path: Path, instead: str) -> str:
    if "full" in message:
        return _full(path)
    if "readonly" in message or "unable to open" in message:
        return refused(path, message)
    if "locked" in message:
        return "another program is writing to it; try again in a moment"
    if "malformed" in message or "not a database" in message or "disk I/O" in message:
        return f"the file {path} is damaged ({message}); put back a copy of it, or {instead}"
    return f"{message} ({path})"


def _full(path: Path) -> str:
    return f"the disk that holds {path} is full; nothing was changed: free some space and try again"
