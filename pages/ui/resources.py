"""What all browsers on this process share: the corpora being searched, and the indexing asked for."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date

import streamlit as st

from core.behaviour.store import Behaviour
from core.collection import Collection, DocumentsOfVersion
from core.contextualizing import contexts_for
from core.corpus import Corpus, build_corpus, indexed_part, is_built
from core.corpus.first_stage import first_stage_of
from core.embedding import load_embedder
from core.protocols import Embedder, Progress
from core.report.loss import vector_loss
from core.settings import PAID_WRITERS, IndexSettings, SearchSettings
from core.trace import Trace
from pages.ui import people

# Collections whose corpora stay in memory; others are read from disk when they are asked for.
_SERVED = 4
_WAIT = 0.5  # seconds between two looks at whether another window's indexing is done


@dataclass(frozen=True)
class _Served:
    """A corpus that answers queries, the collection's version it was made for, and how many files of
    that version are not in it; `facts` tell whether its rules, events and kinds of fields are those of now."""

    corpus: Corpus
    version: int
    waiting: int
    facts: tuple[int, int, date]


@dataclass
class Order:
    """An indexing that was asked for, whichever window did; `progress` is what its worker said last."""

    settings: IndexSettings
    progress: tuple[int, int] = (0, 0)


class _Shelf:
    """The corpora being searched and the indexing asked for, by collection; one build at a time for each."""

    def __init__(self) -> None:
        self.served: dict[str, _Served] = {}
        self.orders: dict[str, Order] = {}
        self._locks: dict[tuple[str, str], threading.Lock] = {}
        self._lock = threading.Lock()

    def lock(self, collection: Collection, what: str) -> threading.Lock:
        with self._lock:
            return self._locks.setdefault((str(collection.folder), what), threading.Lock())

    def get(self, collection: Collection) -> _Served | None:
        return self.served.get(str(collection.folder))

    def put(
        self,
        collection: Collection,
        corpus: Corpus,
        documents: DocumentsOfVersion,
        facts: tuple[int, int, date],
    ) -> None:
        """`facts` of before the corpus was made: what changed meanwhile is then looked at again."""
        held = set(zip(corpus.item_ids, corpus.item_digests, strict=True))
        waiting = {
            file
            for one, digest, file in zip(
                documents.ids, documents.digests, documents.file_hashes, strict=True
            )
            if (one, digest) not in held
        }
        with self._lock:
            self.served.pop(str(collection.folder), None)
            made = _Served(corpus, documents.version, len(waiting), facts)
            self.served[str(collection.folder)] = made
            while len(self.served) > _SERVED:
                self.served.pop(next(iter(self.served)))

    def dress(self, collection: Collection) -> None:
        """Give what is served the rules, events and kinds of now. Raises RulesError as `first_stage_of`."""
        facts, served = _facts(collection), self.get(collection)
        if served is None or served.facts == facts:
            return
        made = replace(
            served, corpus=served.corpus.with_first_stage(first_stage_of(collection)), facts=facts
        )
        with self._lock:
            if self.served.get(str(collection.folder)) is served:  # else it is another one by now
                self.served[str(collection.folder)] = made


def _facts(collection: Collection) -> tuple[int, int, date]:
    return collection.facts_version, Behaviour(collection).version, date.today()


@st.cache_resource(show_spinner=False)
def _shelf() -> _Shelf:
    return _Shelf()


@st.cache_data(show_spinner=False, max_entries=64)
def _loss(fingerprint: str, link: str, _corpus: Corpus) -> float | None:
    return vector_loss(_corpus, SearchSettings.from_link(link))


def loss(corpus: Corpus, settings: SearchSettings) -> float | None:
    """`vector_loss`, measured once for the same corpus and vector settings."""
    own = SearchSettings(
        vector=settings.vector,
        hnsw_m=settings.hnsw_m,
        hnsw_ef_construction=settings.hnsw_ef_construction,
        hnsw_ef=settings.hnsw_ef,
    ).with_index("vector", depth=settings.index("vector").depth)
    return _loss(corpus.fingerprint, own.to_link(), corpus)


@st.cache_resource(show_spinner=False)
def warm(model_id: str) -> None:
    """Let the model load while the person still types: its first use takes seconds.

    One at a service is left alone: there is nothing to load, and each use is paid.
    """
    model = load_embedder(model_id)
    if not hasattr(model, "estimate_dollars"):
        threading.Thread(target=_use_first, args=(model,), daemon=True).start()


def _use_first(model: Embedder) -> None:
    model.embed_query("warm")
    # Streamlit collects garbage after every run of a page, also of one cut short. Looking each time
    # through all that the model's libraries brought holds every window up for a quarter of a second.
    gc.collect()
    gc.freeze()


def seen(collection: Collection, shown: Trace | None = None) -> Corpus | None:
    """What of `corpus` the pages show here: all of it, or what the viewer may see.

    With a trace on show its own corpus, where that differs only by what people did with results since:
    that counts from the next query on, and moves nothing under the hand. Raises NotSignedIn.
    """
    viewer, whole = people.viewer(), corpus(collection)
    if whole is None:
        return None
    found = whole.for_viewer(viewer)
    if (
        shown is not None
        and isinstance(shown.corpus, Corpus)
        and _differs_by_events(shown.corpus, found)
    ):
        return shown.corpus
    return found


def _differs_by_events(one: Corpus, other: Corpus) -> bool:
    def facts(corpus: Corpus) -> tuple:
        stage = corpus.first_stage
        kinds = tuple(sorted(stage.kinds.items()))
        # The matrix stands for the very chunks: copies of a corpus share it.
        return corpus.viewer, id(corpus.matrix), stage.rules.fingerprint, kinds, stage.today

    return one is not other and facts(one) == facts(other)


def corpus(collection: Collection) -> Corpus | None:
    """The newest corpus of the collection, read from disk when it was built before, for whoever manages it;
    pages that show or search use `seen`.

    It may lack documents added since (see `waiting`) or be cut by earlier index settings (see
    `Corpus.settings`), but never holds one that was removed or replaced; None when nothing has been
    indexed yet. Rules, events and kinds of fields are those of now.
    """
    _shelf().dress(collection)
    settings = collection.settings().index
    served = _shelf().get(collection)
    current = served and (served.version, served.corpus.settings) == (collection.version, settings)
    if served and current and not served.waiting:
        return served.corpus
    if is_built(collection, settings):
        return build(collection, settings)
    if served and current:
        return served.corpus
    # Not the lock of `build`: who searches does not wait for what another window indexes.
    with _shelf().lock(collection, "part"):
        served = _shelf().get(collection)
        before = served.corpus if served else None
        facts, documents = _facts(collection), collection.documents()
        found = indexed_part(collection, settings, before)
        if found is None and before is not None:
            found = indexed_part(collection, before.settings, before)
        if found is not None:
            _shelf().put(collection, found, documents, facts)
        return found


def waiting(collection: Collection) -> int:
    """How many files of the collection are not in the corpus that `corpus` gives."""
    if corpus(collection) is None:
        return len(collection.files())
    served = _shelf().get(collection)
    return served.waiting if served else 0


def contexts_waiting(collection: Collection, served: Corpus) -> int:
    """How many documents of the corpus have other contexts by now than those they are indexed with."""
    settings = served.settings.context
    if settings.writer not in PAID_WRITERS:
        return 0
    documents = collection.documents()
    now = dict(zip(documents.ids, contexts_for(settings, documents, collection).digests, strict=True))
    was = zip(served.item_ids, served.context_digests, strict=True)
    return sum(now.get(one, digest) != digest for one, digest in was)


def order(collection: Collection) -> Order | None:
    """The indexing that was asked for and is neither finished nor stopped."""
    return _shelf().orders.get(str(collection.folder))


def place_order(collection: Collection, index_settings: IndexSettings) -> None:
    """Ask for indexing: whichever window comes next does it, so that closing one loses nothing."""
    _shelf().orders[str(collection.folder)] = Order(index_settings)


def end_order(collection: Collection) -> None:
    """The indexing is done, cannot be done, or is no longer wanted."""
    _shelf().orders.pop(str(collection.folder), None)


def build(
    collection: Collection,
    index_settings: IndexSettings,
    progress: Progress | None = None,
    meanwhile: Callable[[], None] | None = None,
) -> Corpus:
    """Index the collection and serve the result; until then the corpus before serves on.

    `meanwhile` is called again and again while another window indexes the same collection.
    Raises Stopped when `progress` does, EmbeddingError when the model cannot be used.
    """
    lock = _shelf().lock(collection, "build")
    while not lock.acquire(timeout=_WAIT if meanwhile else -1):
        if meanwhile:
            meanwhile()
    try:
        before = _shelf().get(collection)
        facts, documents = _facts(collection), collection.documents()
        wanted = (documents.version, index_settings)
        current = before and not before.waiting and (before.version, before.corpus.settings) == wanted
        if before and current and not contexts_waiting(collection, before.corpus):
            return before.corpus  # another window built it while this one waited
        made = build_corpus(collection, index_settings, progress, before.corpus if before else None)
        _shelf().put(collection, made, documents, facts)
        return made
    finally:
        lock.release()
