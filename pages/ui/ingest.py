"""Uploaded files on their way into a collection: what to ask first, then one file at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from core.access import Access
from core.collection import Collection
from core.errors import LimitError, PasswordNeeded, RankscopeError
from core.loading import SUPPORTED, Limits, LoadOptions, check_upload, load, needs_choice, safe_name


@dataclass(frozen=True, slots=True)
class Incoming:
    """An uploaded file; `name` as it is shown, `digest` the SHA-256 of its bytes."""

    name: str
    data: bytes
    digest: str

    @classmethod
    def of(cls, name: str, data: bytes) -> Incoming:
        return cls(safe_name(name), data, hashlib.sha256(data).hexdigest())


@dataclass(frozen=True, slots=True)
class Question:
    """What must be known of a file before it is added.

    `same_as`: the collection has these bytes already, under this name; they can be read in another
    way. `earlier`: the hash of a file that has this name and other content. `records`: each record
    may be an item or the file one table.
    `jsonl`: it may hold chunks made elsewhere.
    """

    incoming: Incoming
    same_as: str = ""
    earlier: str = ""
    records: bool = False
    jsonl: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """A file with the answers: how to read it, the hash of the file it replaces, if it does, and for whom
    its documents are ("kept": as those it replaces were, else for everyone)."""

    incoming: Incoming
    options: LoadOptions
    replaces: str = ""
    access: Access | Literal["kept"] = "kept"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one file: `status` is added, replaced, kept both, already here, or failed."""

    name: str
    status: str
    documents: int = 0
    pages: int = 0
    characters: int = 0
    headings: int = 0
    encoding: str = ""
    message: str = ""
    needs_password: bool = False

    @property
    def failed(self) -> bool:
        return self.status == "failed"

    @property
    def changed(self) -> bool:
        """Whether the collection is another one afterwards."""
        return self.status in ("added", "replaced", "kept both")


def questions(incoming: Sequence[Incoming], collection: Collection) -> list[Question]:
    """For each file, in the order given, what to ask before adding it."""
    held = collection.files()
    by_hash = {file.file_hash: file.name for file in held}
    by_name = {file.name: file.file_hash for file in held}
    asked = []
    for one in incoming:
        same = by_hash.get(one.digest, "")
        earlier = "" if same else by_name.get(one.name, "")
        jsonl = SUPPORTED.get(one.name.rpartition(".")[2].lower()) == "JSONL"
        asked.append(Question(one, same, earlier, needs_choice(one.data, one.name), jsonl))
    return asked


def refusal(incoming: Sequence[Incoming], limits: Limits) -> str:
    """Why the upload as a whole is not taken; empty when it is."""
    try:
        check_upload([len(one.data) for one in incoming], limits)
    except LimitError as error:
        return str(error)
    return ""


def ingest(task: Task, collection: Collection, limits: Limits) -> Outcome:
    """Read one file and commit it on its own; what goes wrong is told in the outcome."""
    name, data = task.incoming.name, task.incoming.data
    try:
        digest = task.incoming.digest
        if task.replaces != digest and (said := collection.already_here(digest, task.access)):
            return Outcome(name, "already here", message=said)
        loaded = load(data, name, task.options, limits)
        status: str
        if any(file.file_hash == task.replaces for file in collection.files()):
            result = collection.replace(task.replaces, loaded, name, len(data), task.access)
            status = result.status
        else:
            beside = collection.find_by_name(name)
            access = None if task.access == "kept" else task.access
            result = collection.add(loaded, name, len(data), access)
            status = "kept both" if beside and result.status == "added" else result.status
    except RankscopeError as error:
        return Outcome(
            name, "failed", message=str(error), needs_password=isinstance(error, PasswordNeeded)
        )
    return Outcome(
        name,
        "already here" if status == "same" else status,
        len(loaded.documents),
        loaded.pages,
        loaded.characters,
        loaded.headings,
        loaded.encoding or "",
        "; ".join(filter(None, (result.note, *loaded.warnings))),
    )


def with_password(task: Task, password: str) -> Task:
    """The same file, to be read with this password."""
    return replace(task, options=replace(task.options, password=password))
