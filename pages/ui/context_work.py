"""What there is to write for a collection: its chunks' spans, and the work that is left. Nothing is drawn."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import streamlit as st

from core.chunking import split
from core.collection import Collection, DocumentsOfVersion
from core.contextualizing.store import ContextStore, open_store
from core.contextualizing.work import Work, survey
from core.corpus import Corpus
from core.protocols import Embedder, Progress, Vectors
from core.settings import ChunkSettings, ContextSettings, IndexSettings
from core.vectors_cache import embed_all, model_key, shared_cache
from pages.ui.prices import prices

Span = tuple[int, int]
Spans = tuple[tuple[Span, ...], ...]
"""For each document the spans of its chunks."""

_KEPT = 200_000  # documents whose spans are kept


@dataclass(frozen=True)
class Bench:
    """What one drawing of the page works on: the collection as it is, and as the draft would cut it."""

    collection: Collection
    documents: DocumentsOfVersion
    draft: IndexSettings
    embedder: Embedder
    spans: Spans
    store: ContextStore

    @property
    def settings(self) -> ContextSettings:
        return self.draft.context

    @property
    def chunks(self) -> int:
        return sum(map(len, self.spans))


@st.cache_resource(show_spinner=False)
def _known() -> OrderedDict[tuple[str, str, str], tuple[Span, ...]]:
    """Spans by document digest, chunk settings and model."""
    return OrderedDict()


def spans_of(
    documents: DocumentsOfVersion,
    chunking: ChunkSettings,
    embedder: Embedder,
    corpus: Corpus | None,
    progress: Progress | None = None,
) -> Spans:
    """Where the chunks of each document lie; taken from the corpus or an earlier cut where that fits.

    Raises SettingsError and EmbeddingError as chunking and embedding do, and what `progress` raises.
    """
    known, settings, model = _known(), chunking.fingerprint(), model_key(embedder)
    if corpus is not None and corpus.settings.chunking == chunking and corpus.embedder is embedder:
        cut = list(zip(corpus.starts.tolist(), corpus.ends.tolist(), strict=True))
        bounds = corpus.first_chunk.tolist()
        for digest, (first, last) in zip(corpus.item_digests, pairwise(bounds), strict=True):
            known[digest, settings, model] = tuple(cut[first:last])

    def embed(texts: Sequence[str]) -> Vectors:
        return embed_all(texts, embedder, shared_cache())

    found = []
    for item, digest in enumerate(documents.digests):
        key = (digest, settings, model)
        spans = known.get(key)
        if spans is None:
            if progress:
                progress(item, len(documents))
            cut_now = split(documents[item], chunking, embedder.count_tokens, embed)
            spans = known[key] = tuple((int(start), int(end)) for start, end in cut_now)
        found.append(spans)
    while len(known) > _KEPT:
        known.popitem(last=False)
    return tuple(found)


def work_of(bench: Bench, max_input_tokens: int | None = None) -> Work:
    """What is left to write; read again only when documents, settings, contexts, counts or batches changed."""
    settings, store = bench.settings, bench.store
    if max_input_tokens is None and (rate := prices().rate(settings.model)):
        max_input_tokens = rate.context or None
    state = (
        str(bench.collection.folder),
        bench.documents.version,
        store.version,
        len(store.counts(settings.model)),
        tuple((batch.id, batch.status) for batch in store.batches()),
        bench.draft.chunking.fingerprint(),
        bench.draft.model,
        settings.writer_key,
        max_input_tokens,
    )
    return _work(state, bench, max_input_tokens)


@st.cache_resource(show_spinner=False, max_entries=4)
def _work(state: tuple[object, ...], _bench: Bench, _max_input_tokens: int | None) -> Work:
    return survey(_bench.store, _bench.documents, _bench.spans, _bench.settings, _max_input_tokens)


def bench_of(
    collection: Collection,
    documents: DocumentsOfVersion,
    draft: IndexSettings,
    embedder: Embedder,
    corpus: Corpus | None,
    progress: Progress | None = None,
) -> Bench:
    """All of it. Raises as `spans_of` does, and ContextError where the contexts cannot be read."""
    spans = spans_of(documents, draft.chunking, embedder, corpus, progress)
    return Bench(collection, documents, draft, embedder, spans, open_store(collection))
