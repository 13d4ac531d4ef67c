"""The user's data folder: RANKSCOPE_HOME, or the platform's place for an application's data."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from core.errors import RankscopeError


def home() -> Path:
    """The data folder, made when it is not there.

    Raises RankscopeError when it cannot be made or written to.
    """
    chosen = os.environ.get("RANKSCOPE_HOME", "").strip()
    folder = Path(chosen).expanduser() if chosen else platformdirs.user_data_path("rankscope", False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RankscopeError(refused(folder, error.strerror or str(error))) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise RankscopeError(refused(folder, "it is read-only"))
    return folder.resolve()


def refused(path: Path, reason: str) -> str:
    """The message where the data folder, or a file in it, cannot be used."""
    return (
        f"the data folder cannot be used: {path}: {reason}; make it writable, "
        "or set RANKSCOPE_HOME to another folder"
    )
