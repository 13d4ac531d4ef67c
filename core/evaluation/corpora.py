"""One set of documents under any index settings: what runs that change how documents are indexed take
their corpora from."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from core.chunk_table import as_embedded, with_contexts
from core.chunking import chunk_document
from core.collection import Collection
from core.contextualizing import contexts_for
from core.corpus import Corpus, build_corpus, is_built
from core.corpus.first_stage import FirstStage, first_stage_of
from core.corpus.view import fingerprint
from core.documents import Documents, ListedDocuments
from core.embedding import load_embedder
from core.evaluation.judgements import EvaluationError
from core.fields import ItemFields
from core.hosted_embedding import HostedEmbedder
from core.protocols import Contexts, Embedder, Progress, Vectors
from core.settings import IndexSettings
from core.types import Document
from core.vectors_cache import shared_cache

_KEPT = 2  # corpora in memory: their vectors may be all there is room for

Telling = Callable[[str, int, int], None]
"""Called with (what is being done, done, total); raises `Stopped` to stop, keeping what is done."""


class Corpora:
    """Corpora of a collection as it is now, its rules and events included, or of documents. The last two are
    kept in memory.

    Those of a collection that are on disk are read from there; others are made in memory alone, from the
    shared vectors, so that trying settings does not push out what the person works with.
    """

    def __init__(
        self, source: Collection | Documents | Sequence[Document], at_most: float = 0.0
    ) -> None:
        """`at_most` US dollars may be spent; `spent` were, on vectors (by estimate) and what `spend` told."""
        self._collection = source if isinstance(source, Collection) else None
        if isinstance(source, Collection):
            self.documents: Documents = source.documents()
            self.first_stage = first_stage_of(source)
        else:
            self.first_stage = FirstStage()
            self.documents = ListedDocuments(source) if isinstance(source, Sequence) else source
        self._at_most = at_most
        self.spent = 0.0
        self._kept: OrderedDict[str, Corpus] = OrderedDict()
        self._named: dict[str, tuple[str, Contexts]] = {}

    def spend(self, dollars: float) -> None:
        """Something else was paid with the same money."""
        self.spent += dollars

    @property
    def left(self) -> float:
        """US dollars that may still be spent; below 0 where something cost more than was expected."""
        return self._at_most - self.spent

    @cached_property
    def fields(self) -> ItemFields:
        """As those of each corpus."""
        documents, kinds = self.documents, self.first_stage.kinds
        return ItemFields(documents.metadata(), kinds, documents.names, documents.added())

    def fingerprint(self, settings: IndexSettings) -> str:
        """Names the corpus, with what ranks its items, without making it. Raises as `contexts_for`."""
        return f"{self._identity(settings)[0]} {self.first_stage.fingerprint}".rstrip()

    def _identity(self, settings: IndexSettings) -> tuple[str, Contexts]:
        """The fingerprint and the contexts it is of: looked at once, a run goes on with what it began with."""
        key = settings.fingerprint()
        if key not in self._named:
            contexts = contexts_for(settings.context, self.documents, self._collection)
            name = fingerprint(self.documents, settings, settings.model, contexts.digests)
            self._named[key] = name, contexts
        return self._named[key]

    def of(self, settings: IndexSettings, progress: Progress | None = None) -> Corpus:
        """The corpus under these settings. Raises EvaluationError where its model costs and may not be
        asked, else as `Corpus.from_documents` and `build_corpus`."""
        name, contexts = self._identity(settings)
        if name not in self._kept:
            while len(self._kept) >= _KEPT:
                self._kept.popitem(last=False)
            self._kept[name] = self._made(name, settings, contexts, progress)
        self._kept.move_to_end(name)
        return self._kept[name]

    def _made(
        self, name: str, settings: IndexSettings, contexts: Contexts, progress: Progress | None
    ) -> Corpus:
        if self._collection and is_built(self._collection, settings):
            built = build_corpus(self._collection, settings, progress)
            if built.chunks_fingerprint == name:  # else documents have come or gone since the run began
                return built.with_first_stage(self.first_stage)
        embedder = load_embedder(settings.model)
        price = self._price(embedder, settings, contexts)
        if price is None or (price and price > self.left):
            about = "a price that is not known" if price is None else f"about ${price:.4f}"
            raise EvaluationError(
                f"vectors by {settings.model} would cost {about}, less those already kept, and "
                f"${max(0.0, self.left):.4f} may be spent; allow more, or index the "
                "collection with these settings first"
            )
        self.spend(price)
        made = Corpus.from_documents(
            self.documents, settings, embedder, shared_cache(), None, progress, None, contexts
        )
        return made.with_first_stage(self.first_stage)

    def _price(self, embedder: Embedder, settings: IndexSettings, contexts: Contexts) -> float | None:
        """US dollars for the vectors of all chunks; None when no price is known."""
        if not isinstance(embedder, HostedEmbedder):
            return 0.0
        tokens = 0

        def count(texts: Sequence[str]) -> Vectors:
            """For chunking by meaning, which embeds sentences: that many, and no vector of any meaning."""
            nonlocal tokens
            tokens += sum(embedder.count_tokens(texts))
            return np.zeros((len(texts), embedder.dimension), dtype=np.float32)

        for item in range(len(self.documents)):
            document = self.documents[item]
            chunks = chunk_document(document, settings.chunking, embedder.count_tokens, count)
            spans = [(chunk.start, chunk.end) for chunk in chunks]
            chunks = with_contexts(chunks, contexts.of(item, document, spans), settings)
            tokens += sum(embedder.count_tokens([as_embedded(chunk, settings) for chunk in chunks]))
        return embedder.estimate_dollars(tokens)
