"""Documents as a corpus reads them: what lists need is at hand, a text is read when it is asked for."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any, Protocol

from core.access import Access
from core.types import Document, Heading, Metadata, Page, Table


class Documents(Protocol):
    """An unchanging sequence of documents with their names, titles, content hashes and who may see them up
    front."""

    ids: tuple[str, ...]
    names: tuple[str, ...]
    titles: tuple[str, ...]
    digests: tuple[str, ...]
    access: tuple[Access, ...]

    def __len__(self) -> int: ...

    def __getitem__(self, position: int, /) -> Document: ...

    def metadata(self) -> Sequence[Metadata]:
        """That of each document, without reading texts."""
        ...

    def added(self) -> Sequence[str]:
        """When each was added, UTC (ISO 8601); blank where not known."""
        ...


class ListedDocuments:
    """Documents held in memory, for everyone to see unless `access` says otherwise of each.

    Raises ValueError when two have the same id, or `access` is not as long as they are.
    """

    def __init__(self, documents: Sequence[Document], access: Sequence[Access] | None = None) -> None:
        self._documents = tuple(documents)
        self.access = (None,) * len(self._documents) if access is None else tuple(access)
        self.ids = tuple(document.id for document in self._documents)
        self.names = tuple(document.name for document in self._documents)
        self.titles = tuple(document.title for document in self._documents)
        self.digests = tuple(map(document_digest, self._documents))
        if len(set(self.ids)) < len(self.ids):
            twice = next(one for one in self.ids if self.ids.count(one) > 1)
            raise ValueError(f"two documents have the id {twice!r}; give each its own")
        if len(self.access) != len(self._documents):
            raise ValueError(
                f"{len(self.access)} access lists for {len(self._documents)} documents; give one for each"
            )

    def __len__(self) -> int:
        return len(self._documents)

    def __getitem__(self, position: int) -> Document:
        return self._documents[position]

    def metadata(self) -> Sequence[Metadata]:
        return tuple(document.metadata for document in self._documents)

    def added(self) -> Sequence[str]:
        return ("",) * len(self)


class ChosenDocuments:
    """Those at `positions` among other documents, in that order."""

    def __init__(self, documents: Documents, positions: Sequence[int]) -> None:
        self._documents = documents
        self._positions = tuple(positions)
        self.ids = tuple(documents.ids[at] for at in self._positions)
        self.names = tuple(documents.names[at] for at in self._positions)
        self.titles = tuple(documents.titles[at] for at in self._positions)
        self.digests = tuple(documents.digests[at] for at in self._positions)
        self.access = tuple(documents.access[at] for at in self._positions)

    def __len__(self) -> int:
        return len(self._positions)

    def __getitem__(self, position: int) -> Document:
        return self._documents[self._positions[position]]

    def metadata(self) -> Sequence[Metadata]:
        among = self._documents.metadata()
        return tuple(among[at] for at in self._positions)

    def added(self) -> Sequence[str]:
        among = self._documents.added()
        return tuple(among[at] for at in self._positions)


def structure_of(document: Document) -> dict[str, list]:
    """Headings, pages, tables and given spans as plain lists: what JSON holds."""
    return {
        name: [list(dataclasses.astuple(part)) for part in getattr(document, name)]
        for name in ("headings", "pages", "tables")
    } | {"chunks": [list(span) for span in document.chunks]}


def restored(
    id: str, name: str, title: str, text: str, structure: dict[str, list], metadata: dict[str, Any]
) -> Document:
    """The document of which `structure_of` and JSON made these plain values."""
    return Document(
        id,
        name,
        title,
        text,
        tuple(Heading(*heading) for heading in structure["headings"]),
        tuple(Page(*page) for page in structure["pages"]),
        tuple(
            Table(columns, start, end, tuple((first, last) for first, last in rows))
            for columns, start, end, rows in structure["tables"]
        ),
        metadata_of(metadata),
        tuple((start, end) for start, end in structure["chunks"]),
    )


def metadata_of(values: dict[str, Any]) -> Metadata:
    """Metadata as a document holds it, of what JSON gave back."""
    return MappingProxyType({key: tuple(v) if isinstance(v, list) else v for key, v in values.items()})


def document_digest(document: Document) -> str:
    """Hash of all that chunks and indexes are made of (not the id, not the metadata)."""
    facts = json.dumps([document.name, document.title, structure_of(document)])
    digest = hashlib.sha256(facts.encode())
    digest.update(document.text.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:32]
