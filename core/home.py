"""The user's data folder: RANKSCOPE_HOME, or the platform's place for an application's data."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from core.errors import CollectionError, RankscopeError


def home() -> Path:
    """The data folder, made when it is not there.

    Raises RankscopeError when it cannot be made or written to.
    """
    chosen = os.environ.get("RANKSCOPE_HOME", "").strip()
    folder = Path(chosen).expanduser() if chosen else platformdirs.user_data_path("rankscope", False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RankscopeError(_refused(folder, error.strerror or str(error))) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise RankscopeError(_refused(folder, "it is read-only"))
    return folder.resolve()


@contextmanager
def clear_errors(what: str, path: Path) -> Iterator[None]:
    """Turn what disk and SQLite raise into one message: the thing, the reason, the remedy."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise CollectionError(f"{what}: {_reason(str(error), path)}") from error
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise CollectionError(f"{what}: {_reason('full', path)}") from error
        raise CollectionError(f"{what}: {_refused(path, error.strerror or str(error))}") from error


def _reason(message: str, path: Path) -> str:
    if "full" in message:
        return f"the disk that holds {path} is full; nothing was changed: free some space and try again"
    if "readonly" in message or "unable to open" in message:
        return _refused(path, message)
    if "locked" in message:
        return "another program is writing to it; try again in a moment"
    if "malformed" in message or "not a database" in message or "disk I/O" in message:
        return (
            f"the file {path} is damaged ({message}); put back a copy of it, "
            "or delete the collection and upload its documents again"
        )
    return f"{message} ({path})"


def _refused(path: Path, reason: str) -> str:
    return (
        f"the data folder cannot be used: {path}: {reason}; make it writable, "
        "or set RANKSCOPE_HOME to another folder"
    )
