"""The files of a set of judgements: in a folder, one file alone, or uploaded. Names are only ever looked
up among those that are there, so that no path in a set leads out of it."""

from __future__ import annotations

import codecs
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from core.errors import LoadError
from core.evaluation.judgements import EvaluationError
from core.loading.text import decode

_PEEK = 8192  # bytes that tell a file's form
_PIECE = 1 << 20  # bytes looked through at once
_ABOUT = ("readme", "license", "licence")
_NAMED = 5  # files that a message lists


class Files:
    """Named files; a text in UTF-8 is read line by line, one in another encoding as `core.loading` reads it.

    `notes` say of each text that is not UTF-8 as what it was read. Raises EvaluationError for bytes that
    are no text.
    """

    def __init__(self, openers: Mapping[str, Callable[[], BinaryIO]]) -> None:
        self._openers = dict(sorted(openers.items()))
        self._used: set[str] = set()
        self._encodings: dict[str, str] = {}
        self.notes: list[str] = []

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
        """The names of those of which no more than the beginning was looked at, and nothing was said; a
        README and a licence are no part of a set."""
        rest = (name for name in self._openers if name not in self._used)
        return [name for name in rest if name.partition(".")[0].lower() not in _ABOUT]

    @property
    def empty(self) -> list[str]:
        """The names of those without any text."""
        return [
            name for name in self._openers if not self._beginning(name).strip(b"\xef\xbb\xbf \t\r\n")
        ]

    def first(self, found: Sequence[str], wanted: str, form: str) -> str:
        """The first of the names found. Raises EvaluationError, which names what is `wanted`, when there is
        none."""
        if found:
            return found[0]
        names = ", ".join(self.names[:_NAMED]) + (" …" if len(self.names) > _NAMED else "")
        empty = f" ({', '.join(self.empty[:_NAMED])}: empty)" if self.empty else ""
        raise EvaluationError(
            f"{form} needs {wanted}, and there is no such file among {names}{empty}; add it, or choose the "
            "form that the files are in"
        )

    def passed_over(self, others: Iterable[str], chosen: str) -> list[str]:
        """A problem for each of the files that could have been read as well as the one that is."""
        names = [other for other in others if other != chosen]
        self._used.update(names)
        return [f"{name} is left out: {chosen} is read" for name in names]

    def ending(self, *endings: str) -> list[str]:
        """The names with one of these endings, in any letter case."""
        return [name for name in self._openers if name.lower().endswith(endings)]

    def called(self, *names: str) -> list[str]:
        """The files of these names (without folders), in the order of the names, the outermost first."""
        outermost = sorted(self._openers, key=lambda one: one.count("/"))
        return [
            name for wanted in names for name in outermost if name.lower().rpartition("/")[2] == wanted
        ]

    def peek(self, name: str) -> str:
        """The beginning of a file, whatever it is; "" where that is no text."""
        beginning = self._beginning(name)
        if _is_utf8([beginning], whole=False):
            return beginning.decode("utf-8-sig", "ignore")
        try:
            return decode(beginning)[0]
        except LoadError:
            return ""

    def _beginning(self, name: str) -> bytes:
        with self._openers[name]() as file:
            return file.read(_PEEK)

    def data(self, name: str) -> bytes:
        self._used.add(name)
        with self._openers[name]() as file:
            return file.read()

    def text(self, name: str) -> str:
        """A whole text, with its line ends as they are."""
        with self._decoded(name) as file:
            return file.read().removeprefix("\ufeff")

    def lines(self, name: str) -> Iterator[tuple[int, str]]:
        """The lines that are not blank, with their numbers from 1, without their ends."""
        with self._decoded(name) as file:
            for number, line in enumerate(file, 1):
                if number == 1:
                    line = line.removeprefix("\ufeff")
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
        if name not in self._encodings:
            self._encodings[name] = self._encoding(name)
        # Lines end at "\n" alone: JSON strings may hold other line separators as they are.
        return io.TextIOWrapper(
            self._openers[name](), encoding=self._encodings[name], errors="replace", newline="\n"
        )

    def _encoding(self, name: str) -> str:
        with self._openers[name]() as file:
            if _is_utf8(iter(lambda: file.read(_PIECE), b"")):
                return "utf-8"
        try:
            _, encoding, doubts = decode(self.data(name))
        except LoadError as error:
            raise EvaluationError(f"{name}: {error}") from None
        if doubts:
            self.notes.append(
                f"{name} is not valid UTF-8: read as {encoding}; save it as UTF-8 if letters look wrong"
            )
        return encoding


def _is_utf8(pieces: Iterable[bytes], whole: bool = True) -> bool:
    """Whether these bytes are UTF-8 without NUL, which UTF-16 has in every text; a beginning may end within a
    character."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for piece in pieces:
            if b"\0" in piece:
                return False
            decoder.decode(piece)
        decoder.decode(b"", final=whole)
    except UnicodeDecodeError:
        return False
    return True


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
