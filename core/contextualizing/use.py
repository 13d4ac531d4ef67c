"""The contexts that a corpus puts beside its chunks, whoever writes them."""

from __future__ import annotations

from collections.abc import Sequence

from core.collection import Collection
from core.contextualizing.headings import VERSION, headings_contexts
from core.contextualizing.prompt import Span
from core.contextualizing.store import ContextStore, open_store
from core.documents import Documents
from core.errors import ContextError
from core.protocols import Contexts
from core.settings import ContextSettings
from core.types import Document


def contexts_for(
    settings: ContextSettings, documents: Documents, collection: Collection | None = None
) -> Contexts:
    """The contexts of these documents under these settings.

    Those that a model writes are as many as are written so far, and are kept with `collection`.
    Raises ContextError where they are wanted without one, or its file is damaged.
    """
    if settings.writer == "none":
        return NoContexts(documents)
    if settings.writer == "headings":
        return _HeadingContexts(documents, settings.opening)
    if collection is None:
        raise ContextError(
            f"contexts that {settings.writer} writes are kept with a collection; give it, or choose the "
            "writer headings or none"
        )
    return _StoredContexts(open_store(collection), documents, settings)


class NoContexts:
    """Chunks as they are."""

    def __init__(self, documents: Documents) -> None:
        self.digests = ("",) * len(documents)

    def of(self, item: int, document: Document, spans: Sequence[Span]) -> list[str]:
        return [""] * len(spans)


class _HeadingContexts:
    """Made from the document alone, whose own digest tells of every change: one name is enough."""

    def __init__(self, documents: Documents, opening: int) -> None:
        self._opening = opening
        self.digests = (f"headings/{VERSION}/{opening}",) * len(documents)

    def of(self, item: int, document: Document, spans: Sequence[Span]) -> list[str]:
        return headings_contexts(document, spans, self._opening)


class _StoredContexts:
    def __init__(self, store: ContextStore, documents: Documents, settings: ContextSettings) -> None:
        self._store = store
        self._settings = settings
        self.digests = store.digests(documents, settings)

    def of(self, item: int, document: Document, spans: Sequence[Span]) -> list[str]:
        return self._store.contexts_of(document, spans, self._settings)
