"""What permissions do to a judged set: what each viewer finds of it, and what nobody can find for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.access import Viewer
from core.corpus import Corpus
from core.evaluation.golden import pieces_of, standing
from core.evaluation.judgements import GoldenQuery
from core.evaluation.results import ResultsCache
from core.evaluation.runner import Measured, answerable, measure
from core.protocols import Progress
from core.settings import SearchSettings


@dataclass(frozen=True, eq=False)
class ViewerRecall:
    """One viewer's recall@k (None: somebody who sees all) of each query that has evidence.

    All arrays have shape (n,). `found`: golden pieces among the first k; `hidden`: pieces of evidence of which
    the viewer may see neither its own place nor a copy; `pieces`: these and those that they may see, cut as
    where they see them (a copy may be cut into another number). `items` is how many items they may see.
    """

    viewer: Viewer | None
    k: int
    items: int
    queries: tuple[str, ...]
    found: NDArray[np.int64]
    pieces: NDArray[np.int64]
    hidden: NDArray[np.int64]

    @property
    def label(self) -> str:
        return "everything" if self.viewer is None else self.viewer.label

    @property
    def recalls(self) -> NDArray[np.float64]:
        """recall@k of each query; what is hidden counts as not found, so that viewers can be compared."""
        return self.found / self.pieces

    @property
    def recall(self) -> float:
        """The mean of `recalls`."""
        return float(self.recalls.mean())

    @property
    def withheld(self) -> float:
        """The share of evidence that is hidden, the mean over the queries: `recall` is at most 1 − this."""
        return float((self.hidden / self.pieces).mean())

    @property
    def answerable(self) -> NDArray[np.bool_]:
        """The queries of which the viewer may see some evidence."""
        return self.hidden < self.pieces

    @property
    def recall_of_seen(self) -> float | None:
        """recall@k over the evidence that the viewer may see, of the queries `answerable`; None without any."""
        some = self.answerable
        if not some.any():
            return None
        return float((self.found[some] / (self.pieces - self.hidden)[some]).mean())


def recall_by_viewer(
    corpus: Corpus,
    queries: Sequence[GoldenQuery],
    settings: SearchSettings | None = None,
    viewers: Sequence[Viewer | None] = (None,),
    k: int | None = None,
    stage: str = "kept",
    progress: Progress | None = None,
    cache: ResultsCache | None = None,
) -> tuple[ViewerRecall, ...]:
    """Each viewer's recall@k over one judged set, in the viewers' order; `k` is the settings' own when None.

    `corpus` is the whole one: each viewer's is cut out of it before anything is ranked. `progress(done, total)` hears of queries, and may raise `Stopped`.
    Nothing is paid. Raises EvaluationError as `measure`, and when k is beyond the stage's reach.
    """
    chosen = settings or SearchSettings()
    at = chosen.k if k is None else k
    asked = answerable(queries)

    def told(number: int) -> Progress | None:
        before, total = number * len(asked), len(viewers) * len(asked)
        return (lambda done, _: progress(before + done, total)) if progress else None

    found = []
    for number, viewer in enumerate(viewers):
        seen = corpus.for_viewer(viewer)
        measured = measure(seen, asked, chosen, told(number), cache)
        found.append(viewer_recall(corpus, seen, measured, at, stage))
    return tuple(found)


def viewer_recall(
    corpus: Corpus, seen: Corpus, measured: Measured, k: int, stage: str = "kept"
) -> ViewerRecall:
    """What was `measured` over the corpus `seen`, cut out of `corpus` for a viewer. Raises EvaluationError as
    `StageRanks.recalls`."""
    queries, ranks = measured.queries, measured.stage(stage)
    ranks.recalls(k)  # whether it can be told at this k
    counts = [_pieces(corpus, seen, query) for query in queries]
    pieces, hidden = np.array(counts, dtype=np.int64).reshape(-1, 2).T
    return ViewerRecall(
        seen.viewer,
        k,
        len(seen.item_ids),
        tuple(query.id for query in queries),
        np.array([((one > 0) & (one <= k)).sum() for one in ranks.ranks], dtype=np.int64),
        pieces,
        hidden,
    )


def _pieces(corpus: Corpus, seen: Corpus, query: GoldenQuery) -> tuple[int, int]:
    """How many golden pieces a query has for who sees `seen` of `corpus`, and how many of them are hidden."""
    visible: set[int] = set()  # in `seen`
    known: set[int] = set()  # the same evidence in `corpus`
    hidden: set[int] = set()
    lost = len(query.unlocated)
    for one in query.evidence:
        here = pieces_of(seen, standing(seen, one)).tolist()
        whole = pieces_of(corpus, standing(corpus, one)).tolist()
        if here:
            visible.update(here)
            known.update(whole)
        elif whole:
            hidden.update(whole)
        else:
            lost += 1
    hidden -= known  # a chunk golden for two spans, of which a copy of one may be seen
    return len(visible) + len(hidden) + lost, len(hidden)
