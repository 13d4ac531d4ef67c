"""Folders of cache files that are there whole or not at all, and are read only when undamaged."""

from __future__ import annotations

import json
import os
import shutil
import uuid
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

_SEAL = "seal.json"
_HEADER = 128  # bytes that numpy writes before the values


def write_sealed(folder: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a new folder, note each file's size and CRC-32, and only then give it its name.

    Raises OSError when the disk refuses; nothing half written stays behind.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    making = folder.with_name(f"{folder.name}.{uuid.uuid4().hex[:8]}.tmp")
    making.mkdir()
    try:
        write(making)
        (making / _SEAL).write_text(json.dumps(_facts(making)), encoding="utf-8")
        if folder.exists():
            shutil.rmtree(folder, ignore_errors=True)
        try:
            os.replace(making, folder)
        except OSError:
            if not is_sealed(folder):  # another process was faster: its files are as good
                raise
    finally:
        shutil.rmtree(making, ignore_errors=True)


def is_sealed(folder: Path) -> bool:
    """Whether the folder is there and every file is as it was written."""
    try:
        return json.loads((folder / _SEAL).read_text(encoding="utf-8")) == _facts(folder)
    except (OSError, ValueError):
        return False


def read_array(path: Path, mapped: bool = False) -> NDArray[Any]:
    """The array of an npy file, memory-mapped or read. Raises OSError and ValueError as numpy does."""
    # An empty array, whose file is its header alone, cannot be mapped.
    mode: Literal["r"] | None = "r" if mapped and path.stat().st_size > _HEADER else None
    try:
        return np.load(path, mmap_mode=mode, allow_pickle=False)
    except SystemError:
        # numpy parses a file's header as Python; before 3.11.8 and 3.12.2 that fails, rarely, when another
        # thread parses at the same time (https://github.com/python/cpython/issues/106905).
        return np.load(path, mmap_mode=mode, allow_pickle=False)


def _facts(folder: Path) -> dict[str, list[int]]:
    return {
        path.relative_to(folder).as_posix(): [path.stat().st_size, _crc(path)]
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != _SEAL
    }


def _crc(path: Path) -> int:
    crc = 0
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            crc = zlib.crc32(part, crc)
    return crc
