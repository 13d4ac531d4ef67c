"""What a viewer sees of a corpus: a corpus of its own, cut out of the whole one.

It is, to the last digit, the corpus of a collection that never held what is hidden: nothing of the rest
is in its statistics, counts, notes or names.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from core.access import Access, Viewer, visible
from core.corpus.first_stage import FirstStage

if TYPE_CHECKING:
    from core.corpus.view import Corpus

_FEWEST, _MOST = 4, 64  # slices, each with vectors and indexes of its own
_BYTES = 2**30  # of all slices' vectors together, where there are more than the fewest
_VIEWERS = 32  # of one slice; they share all that is large


class _Seen:
    """One slice, made when first asked for, and what it is for each viewer (with their groups, and the events on
    its items). Who waits for it keeps nobody from another."""

    def __init__(self, items: NDArray[np.bool_], size: int) -> None:
        """`items` (n_items,) are those in it; `size` is that of its vectors, in bytes."""
        self.size = size
        self._items = items
        self._lock = threading.Lock()
        self._corpus: Corpus | None = None
        self._first_stage: FirstStage | None = None
        self._views: OrderedDict[Viewer, Corpus] = OrderedDict()

    def by(self, viewer: Viewer, whole: Corpus) -> Corpus:
        first_stage = whole.first_stage
        with self._lock:
            if self._corpus is None:
                self._corpus = whole if self._items.all() else whole._slice(self._items)
            if first_stage is not self._first_stage:
                # Each click makes a new one, with all events in it: views of earlier ones would hold them all.
                self._first_stage = first_stage
                self._views.clear()
            if viewer not in self._views:
                known = first_stage.of_items(self._corpus.item_ids)
                self._views[viewer] = self._corpus._dressed(known, viewer)
            self._views.move_to_end(viewer)
            if len(self._views) > _VIEWERS:
                self._views.popitem(last=False)
            return self._views[viewer]


class Views:
    """The slices of a corpus that were used last, shared by its copies; any thread may ask."""

    def __init__(self, access: Sequence[Access]) -> None:
        """`access` of each item, in their order."""
        kinds: dict[Access, int] = {}
        numbers = (kinds.setdefault(one, len(kinds)) for one in access)
        self._kind_of = np.fromiter(numbers, np.int64, len(access))
        self._kinds = tuple(kinds)
        self._lock = threading.Lock()
        self._seen: OrderedDict[bytes, _Seen] = OrderedDict()

    def of(self, corpus: Corpus, viewer: Viewer) -> Corpus:
        """The corpus as the viewer sees it."""
        items = self._visible(viewer)
        key = np.packbits(items).tobytes()
        with self._lock:
            if key not in self._seen:
                self._seen[key] = _Seen(items, _size(corpus, items))
            self._seen.move_to_end(key)
            seen = self._seen[key]
            while len(self._seen) > _FEWEST and (len(self._seen) > _MOST or self._bytes() > _BYTES):
                self._seen.popitem(last=False)
        return seen.by(viewer, corpus)

    def _bytes(self) -> int:
        return sum(one.size for one in self._seen.values())

    def _visible(self, viewer: Viewer) -> NDArray[np.bool_]:
        kinds = np.zeros(len(self._kinds), dtype=np.bool_)
        kinds[visible(self._kinds, viewer)] = True
        return kinds[self._kind_of]


def _size(corpus: Corpus, items: NDArray[np.bool_]) -> int:
    """Bytes of the vectors that a slice has of its own."""
    chunks = 0 if items.all() else int(np.diff(corpus.first_chunk)[items].sum())
    return chunks * corpus.embedder.dimension * corpus.matrix.itemsize
