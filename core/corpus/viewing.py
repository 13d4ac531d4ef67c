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

_SLICES = 4  # each with vectors and indexes of its own
_VIEWERS = 32  # of one slice; they share all that is large


class _Seen:
    """One slice, and what it is for each viewer (with their groups, and the events on its items)."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self._first_stage: FirstStage | None = None
        self._views: OrderedDict[Viewer, Corpus] = OrderedDict()

    def by(self, viewer: Viewer, first_stage: FirstStage) -> Corpus:
        if first_stage is not self._first_stage:
            # Each click makes a new one, with all events in it: views of earlier ones would hold them all.
            self._first_stage = first_stage
            self._views.clear()
        if viewer not in self._views:
            self._views[viewer] = self.corpus._dressed(
                first_stage.of_items(self.corpus.item_ids), viewer
            )
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
                made = corpus if items.all() else corpus._slice(items)
                self._seen[key] = _Seen(made)
            self._seen.move_to_end(key)
            if len(self._seen) > _SLICES:
                self._seen.popitem(last=False)
            return self._seen[key].by(viewer, corpus.first_stage)

    def _visible(self, viewer: Viewer) -> NDArray[np.bool_]:
        kinds = np.zeros(len(self._kinds), dtype=np.bool_)
        kinds[visible(self._kinds, viewer)] = True
        return kinds[self._kind_of]
