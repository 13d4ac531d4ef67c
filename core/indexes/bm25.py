"""BM25 over chunks, on bm25s: every variant, incremental, restrictable, with its arithmetic.

For a query q and a document d, over the terms t of q, each as often as it stands there:

    score(q, d) = Σ idf(t) · weight(tf)        tf: how often t stands in d;  df: documents with t
    norm        = 1 − b + b · |d| / mean |d|   |d|: number of terms in d;    N: number of documents

| variant   | idf                                 | weight(tf)                                  |
|-----------|-------------------------------------|---------------------------------------------|
| robertson | max(0, ln((N − df + ½) / (df + ½))) | tf / (tf + k1·norm)                         |
| lucene    | ln(1 + (N − df + ½) / (df + ½))     | tf / (tf + k1·norm)                         |
| atire     | ln(N / df)                          | tf·(k1 + 1) / (tf + k1·norm)                |
| bm25l     | ln((N + 1) / (df + ½))              | (k1 + 1)·(tf/norm + δ) / (k1 + tf/norm + δ) |
| bm25+     | ln((N + 1) / df)                    | tf·(k1 + 1) / (tf + k1·norm) + δ            |

with δ = ½; under bm25l and bm25+ a term that d does not hold (tf 0) adds the same to every document.
Sources: Robertson et al., Okapi at TREC-3 (1994); Lucene's BM25Similarity, with exact lengths; Trotman
et al., ATIRE (2012); Lv and Zhai, BM25L (SIGIR 2011) and BM25+ (CIKM 2011); in the forms of Kamphuis et
al., Which BM25 Do You Mean? (ECIR 2020), except that Robertson's idf, negative there for terms of most
documents, is cut at 0 as bm25s does.
"""

from __future__ import annotations

import json
import math
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from core.errors import RankscopeError, SettingsError
from core.indexes.checks import as_mask, check_allowed, check_query, indexed_texts
from core.protocols import Positions
from core.sealed import read_array
from core.settings import BM25_VARIANTS
from core.text import Analyzer
from core.trace import Ranking
from core.types import Chunk

DELTA = 0.5
"""δ of bm25l and bm25+."""

_FORMAT = 1
_LOOKED_UP = 30
"""To look up one chunk among those that hold a term takes as long as to add the weights of this many."""


class TermScore(NamedTuple):
    """One query term's part in the score of one chunk: `contribution` = count · idf · weight(tf)."""

    term: str
    tf: int
    df: int
    idf: float
    length_norm: float
    contribution: float
    count_in_query: int


@dataclass(frozen=True, slots=True)
class _Built:
    """The scores of all (term, chunk) pairs as bm25s made them, column by column of a term.

    `weights[bounds[t]:bounds[t + 1]]` belong to the chunks, ascending, at the same place of `chunks`. `absent` is
    what a chunk without the term gets (None where that is 0); the weights come on top of it.
    """

    size: int
    mean_length: float
    weights: NDArray[np.float64]
    chunks: NDArray[np.int32]
    bounds: NDArray[np.int64]
    absent: NDArray[np.float64] | None

    def df(self, term: int) -> int:
        return int(self.bounds[term + 1] - self.bounds[term])


class _TokenLists:
    """Token ids of each chunk as a list, one at a time: what bm25s reads, without a copy of all."""

    def __init__(self, ids: NDArray[np.int32], offsets: NDArray[np.int64]) -> None:
        self._ids, self._offsets = ids, offsets.tolist()

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __iter__(self) -> Iterator[list[int]]:
        start = 0
        for end in self._offsets[1:]:
            yield self._ids[start:end].tolist()
            start = end


class BM25Index:
    """BM25 ranking of chunks; texts and queries pass through the same analyzer.

    Scores are built before the first search after an addition (bm25s adds nothing to what is built).
    Chunks that share no term with the query, or score 0 (robertson and atire weigh terms of most
    chunks 0), have no rank. One lock per index: any method may be called from any thread, and a
    search sees either all chunks of an `add_documents` or none.
    Raises SettingsError when k1 or b is out of range or the variant is unknown.
    """

    def __init__(
        self,
        analyzer: Analyzer | None = None,
        k1: float = 1.5,
        b: float = 0.75,
        variant: str = "lucene",
        name: str = "bm25",
    ) -> None:
        if not (math.isfinite(k1) and k1 >= 0):
            raise SettingsError(f"BM25 k1 is {k1}; it must be 0 or more")
        if not 0 <= b <= 1:
            raise SettingsError(f"BM25 b is {b}; it must be between 0 and 1")
        if variant not in BM25_VARIANTS:
            raise SettingsError(
                f"BM25 variant {variant!r} is unknown; choose from {', '.join(BM25_VARIANTS)}"
            )
        self.name = name
        self.analyzer = analyzer or Analyzer()
        self.k1, self.b, self.variant = float(k1), float(b), variant
        self._lock = threading.RLock()
        self._vocabulary: dict[str, int] = {}
        self._ids = np.zeros(0, np.int32)
        self._offsets = np.zeros(1, np.int64)
        self._pending: list[NDArray[np.int32]] = []
        self._built: _Built | None = None

    def __len__(self) -> int:
        with self._lock:
            return len(self._offsets) - 1 + len(self._pending)

    def add_document(self, document: Chunk | str) -> None:
        """Adds one chunk (or bare text) at the next position."""
        self.add_documents([document])

    def add_documents(self, documents: Sequence[Chunk | str]) -> None:
        """Adds chunks (or bare texts) at the next positions; all are searchable from now on."""
        tokens = [self.analyzer.tokens_of(text) for text in indexed_texts(documents)]
        with self._lock:
            number = self._vocabulary
            for listed in tokens:
                ids = [number.setdefault(token, len(number)) for token in listed]
                self._pending.append(np.array(ids, np.int32))
            if tokens:
                self._built = None

    def search(self, query_text: str, k: int = 1, allowed: Positions | None = None) -> Ranking:
        """The best `k` chunks that share a term with the query, of the `allowed` ones if given.

        Scores are those of the whole collection (idf, mean length) in either case.
        Raises TypeError (query, k) and ValueError (k < 1, a position outside the index).
        """
        k = check_query(query_text, k)
        built = self._ready()
        only = check_allowed(allowed, built.size)
        counts = self._counts(self.analyzer.tokens_of(query_text), built)
        if only is not None and _LOOKED_UP * len(only) * len(counts) < sum(map(built.df, counts)):
            scores = _scores_of(built, counts, only)
            holding = np.flatnonzero(scores > 0)
            found, best = only[holding], scores[holding]
        else:
            scores = _scores(built, counts)
            found = np.flatnonzero(scores > 0)
            if only is not None:
                found = found[as_mask(only, built.size)[found]]
            best = scores[found]
        if built.absent is not None:
            best += sum(count * float(built.absent[term]) for term, count in counts.items())
        return Ranking.order(found, best, k)

    def explain(self, query: str, position: int) -> list[TermScore]:
        """Each query term's part in the score of the chunk at `position`, in the query's order.

        Computed from the formulas above, not from the built scores; `math.fsum` of the contributions
        is the score that `search` shows. Terms that no chunk holds are there with df 0.
        Raises IndexError when there is no such position.
        """
        built = self._ready()
        if not 0 <= position < built.size:
            raise IndexError(f"position {position} is not in an index of {built.size} chunks")
        own = self._ids[self._offsets[position] : self._offsets[position + 1]]
        norm = 1 - self.b + self.b * len(own) / (built.mean_length or 1)
        found = []
        for token, count in Counter(self.analyzer.tokens_of(query)).items():
            term = self._vocabulary.get(token, -1)
            df = built.df(term) if 0 <= term < len(built.bounds) - 1 else 0
            tf = int(np.count_nonzero(own == term)) if df else 0
            idf = _idf(self.variant, df, built.size) if df else 0.0
            part = count * idf * _weight(self.variant, tf, norm, self.k1)
            found.append(TermScore(token, tf, df, idf, norm, part, count))
        return found

    def query_notes(self, query: str) -> tuple[str, ...]:
        """Why a query finds nothing here, or less than it seems, in sentences for the page."""
        if not query.strip():
            return ("The query is empty: type a question or some words.",)
        tokens = self.analyzer.tokens_of(query)
        if not tokens:
            return ("No term is left of the query: it holds only stop words or signs.",)
        built = self._ready()
        counts = self._counts(tokens, built)
        if not counts:
            return (f"No chunk holds any term of the query ({_listed(tokens)}).",)
        if all(_idf(self.variant, built.df(term), built.size) == 0 for term in counts):
            return (f"{self.variant} weighs every term of the query 0: too many chunks hold it.",)
        return ()

    def with_parameters(
        self, k1: float | None = None, b: float | None = None, variant: str | None = None
    ) -> BM25Index:
        """A new index over the same tokens with other parameters (None: as here)."""
        made = BM25Index(
            self.analyzer,
            self.k1 if k1 is None else k1,
            self.b if b is None else b,
            variant or self.variant,
            self.name,
        )
        with self._lock:
            self._gather()
            made._vocabulary = dict(self._vocabulary)
            made._ids, made._offsets = self._ids, self._offsets
            if (made.k1, made.b, made.variant) == (self.k1, self.b, self.variant):
                made._built = self._built
        return made

    def extended(self, documents: Sequence[Chunk | str]) -> BM25Index:
        """A new index with the documents after those of this one, which stays as it is."""
        made = self.with_parameters()
        made.add_documents(documents)
        return made

    def chosen(self, positions: Positions) -> BM25Index:
        """A new index over the chunks at ascending `positions`: as if made of their texts alone."""
        with self._lock:
            self._gather()
            terms = list(self._vocabulary)
            kept = np.zeros(len(self._offsets) - 1, dtype=np.bool_)
            kept[positions] = True
            lengths = np.diff(self._offsets)
            ids = self._ids[np.repeat(kept, lengths)]
        # Terms are numbered by their first place, as they are when texts are added.
        first = np.full(len(terms), len(ids))
        first[ids[::-1]] = np.arange(len(ids))[::-1]  # the last one written stays
        there = np.flatnonzero(first < len(ids))
        there = there[np.argsort(first[there])]
        number = np.zeros(len(terms), np.int32)
        number[there] = np.arange(len(there))
        made = BM25Index(self.analyzer, self.k1, self.b, self.variant, self.name)
        made._vocabulary = {terms[term]: at for at, term in enumerate(there.tolist())}
        made._ids = number[ids]
        made._offsets = np.concatenate([[0], np.cumsum(lengths[kept])]).astype(np.int64)
        return made

    def save(self, folder: Path) -> None:
        """Writes tokens and built scores as npy and JSON files; the description comes last."""
        built = self._ready()
        folder.mkdir(parents=True, exist_ok=True)
        described = folder / "bm25.json"
        described.unlink(missing_ok=True)
        with self._lock:
            arrays: dict[str, NDArray] = {"ids": self._ids, "offsets": self._offsets}
            vocabulary = list(self._vocabulary)
        arrays |= {"weights": built.weights, "chunks": built.chunks, "bounds": built.bounds}
        if built.absent is not None:
            arrays["absent"] = built.absent
        for name, array in arrays.items():
            np.save(folder / f"bm25_{name}.npy", array, allow_pickle=False)
        (folder / "bm25_vocabulary.json").write_text(json.dumps(vocabulary), encoding="utf-8")
        description = {
            "format": _FORMAT,
            "analyzer": self.analyzer.fingerprint,
            "chunks": built.size,
            "terms": len(vocabulary),
            "k1": self.k1,
            "b": self.b,
            "variant": self.variant,
            "delta": DELTA,
            "arrays": sorted(arrays),
        }
        described.write_text(json.dumps(description), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path, analyzer: Analyzer | None = None, name: str = "bm25") -> BM25Index:
        """The saved index, with the parameters it was saved with.

        Raises RankscopeError when the files are missing, damaged or of another analyzer: index again.
        """
        analyzer = analyzer or Analyzer()
        try:
            description = json.loads((folder / "bm25.json").read_text(encoding="utf-8"))
            arrays = {part: read_array(folder / f"bm25_{part}.npy") for part in description["arrays"]}
            vocabulary = json.loads((folder / "bm25_vocabulary.json").read_text(encoding="utf-8"))
            found = (description["format"], description["analyzer"])
            if found != (_FORMAT, analyzer.fingerprint):
                raise RankscopeError(
                    f"BM25 index in {folder} was made with {found[1]} (format {found[0]}), "
                    f"not with {analyzer.fingerprint} (format {_FORMAT}); index again"
                )
            made = cls(analyzer, description["k1"], description["b"], description["variant"], name)
            made._ids, made._offsets = arrays["ids"], arrays["offsets"]
            made._vocabulary = {token: i for i, token in enumerate(vocabulary)}
            size, terms = len(made), len(made._vocabulary)
            whole = (
                (size, terms) == (description["chunks"], description["terms"])
                and made._offsets[-1] == len(made._ids)
                and len(arrays["bounds"]) == terms + 1
                and arrays["bounds"][-1] == len(arrays["weights"]) == len(arrays["chunks"])
            )
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            raise RankscopeError(
                f"BM25 index in {folder} cannot be read ({error}); index again"
            ) from error
        if not whole:
            raise RankscopeError(f"BM25 index in {folder} is incomplete; index again")
        if description["delta"] == DELTA:
            made._built = _Built(
                size,
                len(made._ids) / max(size, 1),
                arrays["weights"],
                arrays["chunks"],
                arrays["bounds"],
                arrays.get("absent"),
            )
        return made

    def _counts(self, tokens: list[str], built: _Built) -> dict[int, int]:
        """How often each known term stands in the query, in the query's order."""
        terms = len(built.bounds) - 1
        numbers = (self._vocabulary.get(token, terms) for token in tokens)
        return Counter(number for number in numbers if number < terms)

    def _gather(self) -> None:
        """Moves pending tokens into the arrays; call it with the lock held."""
        if self._pending:
            lengths = np.fromiter(map(len, self._pending), np.int64, len(self._pending))
            self._ids = np.concatenate([self._ids, *self._pending])
            self._offsets = np.concatenate([self._offsets, self._offsets[-1] + np.cumsum(lengths)])
            self._pending = []

    def _ready(self) -> _Built:
        with self._lock:
            if self._built is None:
                self._gather()
                self._built = self._build()
            return self._built

    def _build(self) -> _Built:
        size, terms = len(self._offsets) - 1, len(self._vocabulary)
        if not len(self._ids):  # bm25s cannot index a collection without tokens.
            none = np.zeros(0)
            return _Built(size, 0.0, none, none.astype(np.int32), np.zeros(terms + 1, np.int64), None)
        import bm25s  # here, since it takes a while and many uses of this package never search

        # float64, so that a score equals the sum of its explained parts to the last digits shown.
        scorer = bm25s.BM25(
            k1=self.k1, b=self.b, delta=DELTA, method=self.variant, dtype="float64", backend="numpy"
        )
        scores = scorer.build_index_from_ids(
            unique_token_ids=range(terms),
            corpus_token_ids=_TokenLists(self._ids, self._offsets),
            show_progress=False,
        )
        return _Built(
            size,
            len(self._ids) / size,
            scores["data"],
            scores["indices"],
            scores["indptr"],
            cast("NDArray[np.float64] | None", scorer.nonoccurrence_array),
        )


def _scores(built: _Built, counts: Mapping[int, int]) -> NDArray[np.float64]:
    """Scores of all chunks, less what chunks without a term get."""
    scores = np.zeros(built.size)
    for term, count in counts.items():
        start, end = built.bounds[term], built.bounds[term + 1]
        weights = built.weights[start:end]
        np.add.at(scores, built.chunks[start:end], weights if count == 1 else count * weights)
    return scores


def _scores_of(built: _Built, counts: Mapping[int, int], only: Positions) -> NDArray[np.float64]:
    """`_scores` at these positions, to the last bit, without a pass over all chunks of each term."""
    scores, wanted = np.zeros(len(only)), only.astype(built.chunks.dtype)
    for term, count in counts.items():
        start, end = built.bounds[term], built.bounds[term + 1]
        chunks = built.chunks[start:end]
        at = np.searchsorted(chunks, wanted)
        at[at == len(chunks)] = 0
        holds = chunks[at] == wanted
        weights = built.weights[start:end][at[holds]]
        scores[holds] += weights if count == 1 else count * weights
    return scores


def _idf(variant: str, df: int, size: int) -> float:
    if variant == "robertson":
        return max(0.0, math.log((size - df + 0.5) / (df + 0.5)))
    if variant == "lucene":
        return math.log(1 + (size - df + 0.5) / (df + 0.5))
    if variant == "atire":
        return math.log(size / df)
    return math.log((size + 1) / (df + 0.5 if variant == "bm25l" else df))


def _weight(variant: str, tf: int, norm: float, k1: float) -> float:
    if variant == "bm25l":
        even = (tf / norm if tf else 0.0) + DELTA
        return (k1 + 1) * even / (k1 + even)
    part = tf / (tf + k1 * norm) if tf else 0.0
    if variant in ("robertson", "lucene"):
        return part
    return part * (k1 + 1) + (DELTA if variant == "bm25+" else 0.0)


def _listed(tokens: list[str]) -> str:
    distinct = list(dict.fromkeys(tokens))
    return ", ".join(distinct[:8]) + (", …" if len(distinct) > 8 else "")
