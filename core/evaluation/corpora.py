"""One set of documents under any index settings: what runs that change how documents are indexed take
their corpora from."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

from core.collection import Collection
from core.contextualizing import contexts_for
from core.corpus import Corpus, build_corpus, is_built
from core.corpus.view import fingerprint
from core.documents import Documents, ListedDocuments
from core.embedding import load_embedder
from core.evaluation.judgements import EvaluationError
from core.hosted_embedding import HostedEmbedder
from core.protocols import Embedder, Progress
from core.settings import IndexSettings
from core.types import Document
from core.vectors_cache import shared_cache

_KEPT = 2  # corpora in memory: their vectors may be all there is room for

Telling = Callable[[str, int, int], None]
"""Called with (what is being done, done, total); raises `Stopped` to stop, keeping what is done."""


class Corpora:
    """Corpora of a collection as it is now, or of documents. The last two are kept in memory.

    Those of a collection that are on disk are read from there; others are made in memory alone, from the
    shared vectors, so that trying settings does not push out what the person works with.
    """

    def __init__(
        self, source: Collection | Documents | Sequence[Document], at_most: float = 0.0
    ) -> None:
        """`at_most` US dollars, by estimate, may be spent on vectors; `spent` says how many were."""
        self._collection = source if isinstance(source, Collection) else None
        if isinstance(source, Collection):
            self.documents: Documents = source.documents()
        else:
            self.documents = ListedDocuments(source) if isinstance(source, Sequence) else source
        self._at_most = at_most
        self.spent = 0.0
        self._kept: OrderedDict[str, Corpus] = OrderedDict()

    def fingerprint(self, settings: IndexSettings) -> str:
        """The fingerprint of the corpus, without making it. Raises as `contexts_for`."""
        contexts = contexts_for(settings.context, self.documents, self._collection)
        return fingerprint(self.documents, settings, settings.model, contexts.digests)

    def of(self, settings: IndexSettings, progress: Progress | None = None) -> Corpus:
        """The corpus under these settings. Raises EvaluationError where its model costs and may not be
        asked, else as `Corpus.from_documents` and `build_corpus`."""
        name = self.fingerprint(settings)
        if name not in self._kept:
            while len(self._kept) >= _KEPT:
                self._kept.popitem(last=False)
            self._kept[name] = self._made(settings, progress)
        self._kept.move_to_end(name)
        return self._kept[name]

    def _made(self, settings: IndexSettings, progress: Progress | None) -> Corpus:
        if self._collection and is_built(self._collection, settings):
            return build_corpus(self._collection, settings, progress)
        embedder = load_embedder(settings.model)
        price = self._price(embedder)
        if price is None or (price and price > self._at_most - self.spent):
            about = "a price that is not known" if price is None else f"about ${price:.4f}"
            raise EvaluationError(
                f"vectors by {settings.model} would cost {about}, less those already kept, and "
                f"${max(0.0, self._at_most - self.spent):.4f} may be spent; allow more, or index the "
                "collection with these settings first"
            )
        self.spent += price
        contexts = contexts_for(settings.context, self.documents, self._collection)
        return Corpus.from_documents(
            self.documents, settings, embedder, shared_cache(), None, progress, None, contexts
        )

    def _price(self, embedder: Embedder) -> float | None:
        """US dollars for all vectors, overlaps and contexts left out; None when no price is known."""
        if not isinstance(embedder, HostedEmbedder):
            return 0.0
        texts = (self.documents[at].text for at in range(len(self.documents)))
        return embedder.estimate_dollars(sum(embedder.count_tokens([text])[0] for text in texts))
