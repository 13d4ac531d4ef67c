"""The signals that rank items by something else than their texts: what people did, and what is known of them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

import numpy as np

from core.behaviour.clicks import ClickSignal
from core.corpus import Corpus
from core.errors import RankscopeError
from core.extras import registered_signals
from core.filters import Filter
from core.hosted_embedding import is_hosted
from core.protocols import Embedder, Signal, Vectors
from core.settings import SearchSettings
from core.signals import Popularity, Recency
from core.types import encodable, text_hash
from core.vectors_cache import VectorCache, model_key, shared_cache

_KEPT = 8  # click signals: of a corpus, and of what some viewers see of it
_clicks: OrderedDict[str, ClickSignal] = OrderedDict()
_lock = threading.Lock()


def further_signals(corpus: Corpus, settings: SearchSettings) -> dict[str, Callable[[], Signal]]:
    """Name → what makes each signal that there is for this corpus under these settings: clicks where there
    are events on its items, recency and popularity where their field is set, then registered ones."""
    made: dict[str, Callable[[], Signal]] = {}
    if any(_holds(corpus, event.document_id) for event in corpus.first_stage.events):
        made["clicks"] = partial(click_signal, corpus)
    if settings.recency_field:
        made["recency"] = partial(_recency, corpus, settings)
    if settings.popularity_field:
        made["popularity"] = partial(Popularity, settings.popularity_field)
    return made | dict(registered_signals())


def _recency(corpus: Corpus, settings: SearchSettings) -> Recency:
    passing = corpus.fields.mask(Filter.parse(settings.filters)) if settings.filters else None
    return Recency(settings.recency_field, settings.recency_half_life, passing)


def click_signal(corpus: Corpus) -> ClickSignal:
    """What people did on the corpus's items, as a signal; it learns at its first query, and is kept."""
    with _lock:
        if corpus.fingerprint not in _clicks:
            stage = corpus.first_stage
            vectors_of = partial(query_vectors, corpus.embedder)
            made = ClickSignal(stage.events, vectors_of, corpus.item_ids, stage.today)
            _clicks[corpus.fingerprint] = made
            if len(_clicks) > _KEPT:
                _clicks.popitem(last=False)
        _clicks.move_to_end(corpus.fingerprint)
        return _clicks[corpus.fingerprint]


def query_vectors(embedder: Embedder, queries: Sequence[str]) -> Vectors:
    """Unit vectors of queries asked before, shape (n, d), from the shared cache where it has them.

    A hosted model is not paid for it: a query that the cache does not have gets zeros, so that clicks
    count for equal queries only.
    """
    texts = [encodable(query) for query in queries]
    keys, model = [text_hash(text) for text in texts], f"{model_key(embedder)}?query"
    cache = _cache()
    known = {}
    if cache:
        with suppress(RankscopeError):
            known = cache.get_many(model, list(dict.fromkeys(keys)))
    fresh: dict[str, Vectors] = {}
    found = np.zeros((len(texts), embedder.dimension), dtype=np.float32)
    for row, (key, text) in enumerate(zip(keys, texts, strict=True)):
        vector = known.get(key, fresh.get(key))
        if vector is None or vector.shape != (embedder.dimension,):
            if is_hosted(embedder.model_id):
                continue
            vector = fresh[key] = embedder.embed_query(text)
        found[row] = vector
    if cache and fresh:
        with suppress(RankscopeError):  # without its cache this costs time, no more
            cache.put_many(model, fresh)
    return found


def _cache() -> VectorCache | None:
    with suppress(RankscopeError):
        return shared_cache()
    return None


def _holds(corpus: Corpus, document_id: str) -> bool:
    try:
        corpus.item_position(document_id)
    except KeyError:
        return False
    return True
