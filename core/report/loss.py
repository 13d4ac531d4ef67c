"""What approximate vector search loses on a corpus, against comparing all vectors."""

from __future__ import annotations

import numpy as np

from core.corpus import Corpus
from core.settings import SearchSettings

_SAMPLE = 20  # chunks taken as queries: exact search of each is the price


def vector_loss(corpus: Corpus, settings: SearchSettings) -> float | None:
    """Share of the exact first `depth` that HNSW misses, 0 to 1, the mean over some chunks as queries.

    None where vectors are searched exactly. The same chunks each time, so that settings compare.
    """
    index = corpus.indexes(settings)["vector"]
    measure = getattr(index, "measured_recall", None)
    if measure is None or not len(corpus):
        return None
    rows = np.random.default_rng(0).choice(len(corpus), min(_SAMPLE, len(corpus)), replace=False)
    return 1 - measure(corpus.matrix[np.sort(rows)], settings.index("vector").depth)
