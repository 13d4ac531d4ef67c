"""The files of a set of judgements: in a folder, one file alone, or uploaded. Names are only ever looked
up among those that are there, so that no path in a set leads out of it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from core.evaluation.judgements import EvaluationError

_PEEK = 8192  # bytes that tell a file's form


class Files:
    """Named files; a text is read line by line. Raises EvaluationError for bytes that are no UTF-8."""

    def __init__(self, openers: Mapping[str, Callable[[], BinaryIO]]) -> None:
        self._openers = dict(sorted(openers.items()))
        self._used: set[str] = set()

    @staticmethod
    def at(path: Path) -> Files:
        """The files below a folder, named by their path in it, or one file.

        Raises EvaluationError when there is none.
        """
        if path.is_file():
            return Files({path.name: lambda: path.open("rb")})
        found = {
            one.relative_to(path).as_posix(): one
            for one in path.rglob("*")
            if one.is_file() and not any(part.startswith(".") for part in one.relative_to(path).parts)
        }
        if not found:
            raise EvaluationError(f"{path} is no file and no folder with files; give the path of a set")
        return Files({name: lambda one=one: one.open("rb") for name, one in found.items()})  # type: ignore[misc]

    @staticmethod
    def uploaded(files: Mapping[str, bytes]) -> Files:
        """Files in memory. A folder that all of them lie in is no part of their names."""
        names = {name: name.replace("\\", "/").lstrip("/") for name in files}
        tops = {name.partition("/")[0] for name in names.values()}
        if len(tops) == 1 and all("/" in name for name in names.values()):
            names = {key: name.partition("/")[2] for key, name in names.items()}
        return Files({names[key]: lambda data=data: io.BytesIO(data) for key, data in files.items()})  # type: ignore[misc]

    @property
    def names(self) -> list[str]:
        return list(self._openers)

    @property
    def unused(self) -> list[str]:
        """The names of those of which no more than the beginning was looked at, and nothing was said."""
        return [name for name in self._openers if name not in self._used]

    def passed_over(self, others: Iterable[str], chosen: str) -> list[str]:
        """A problem for each of the files that could have been read as well as the one that is."""
        names = [other for other in others if other != chosen]
        self._used.update(names)
        return [f"{name} is left out: {chosen} is read" for name in names]

    def ending(self, *endings: str) -> list[str]:
        """The names with one of these endings, in any letter case."""
        return [name for name in self._openers if name.lower().endswith(endings)]

    def called(self, *names: str) -> str:
        """The first of these names (without folders) that a file has; "" when none has."""
        for wanted in names:
            for name in sorted(self._openers, key=lambda one: one.count("/")):
                if name.lower().rpartition("/")[2] == wanted:
                    return name
        return ""

    def peek(self, name: str) -> str:
        """The beginning of a file, whatever it is."""
        with self._openers[name]() as file:
            return file.read(_PEEK).decode("utf-8-sig", "replace")

    def data(self, name: str) -> bytes:
        self._used.add(name)
        with self._openers[name]() as file:
            return file.read()

    def text(self, name: str) -> str:
        """A whole text, with its line ends as they are."""
        with self._decoded(name) as file:
            return self._read(name, file.read)

    def lines(self, name: str) -> Iterator[tuple[int, str]]:
        """The lines that are not blank, with their numbers from 1, without their ends."""
        with self._decoded(name) as file:
            number = 0
            while line := self._read(name, file.readline):
                number += 1
                if line.strip():
                    yield number, line.rstrip("\r\n")

    def json(self, name: str) -> Any:
        """A file that is one JSON value. Raises EvaluationError when it is none."""
        try:
            return json.loads(self.text(name))
        except (ValueError, RecursionError) as error:
            raise EvaluationError(
                f"{name} is no JSON ({error}); correct it, or export it anew"
            ) from None

    def _decoded(self, name: str) -> io.TextIOWrapper:
        self._used.add(name)
        # Lines end at "\n" alone: JSON strings may hold other line separators as they are.
        return io.TextIOWrapper(self._openers[name](), encoding="utf-8-sig", newline="\n")

    def _read(self, name: str, read: Callable[[], str]) -> str:
        try:
            return read()
        except UnicodeDecodeError as error:
            raise EvaluationError(
                f"{name} is no UTF-8 text (byte {error.start}); save it as UTF-8"
            ) from None


def rows(files: Files, name: str, problems: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSONL file with their line numbers; other lines are named in `problems`."""
    for number, line in files.lines(name):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            problems.append(f"{name}, line {number}: broken JSON; the line is left out")
            continue
        if isinstance(row, dict):
            yield number, row
        else:
            problems.append(f"{name}, line {number}: not an object; the line is left out")
