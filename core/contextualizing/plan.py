"""What writing contexts will cost and take, before a cent is spent. Arithmetic only.

One document of D tokens with n chunks, its first question writing the cache and the others reading it:
`write·D + (n - 1)·read·D + n·(chunk + question)·input + n·output·out`. In a batch hits are luck: what is
expected has none, so that every request pays for writing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from core.contextualizing.store import Seen
from core.contextualizing.work import USUAL_FLOOR, Piece, Work
from core.prices import Prices, Rate
from core.settings import ContextSettings

SHORT, USUAL = 50, 75  # tokens of a context: the least and, where nothing was seen, what is expected
_CALL_SECONDS = (1.0, 6.0)  # a live call, where nothing was seen
_BATCH_SECONDS = (60.0, 24 * 3600.0)  # within a day; most within the hour


@dataclass(frozen=True, slots=True)
class Range:
    """In US dollars: contexts of 50 tokens, of the expected length, and each as long as allowed."""

    low: float
    expected: float
    high: float


@dataclass(frozen=True)
class Plan:
    """`live` and `batch` are None where no price is known. `seconds` and `batch_seconds` are ranges.

    `documents` and `chunks` are those to be asked for; `done`, `waiting`, `whole` and `windowed` as in
    `Work`. Texts sent without a mark: `below_floor`, shorter than the model's cache takes, and `single`,
    with one chunk to write. `writes` and `reads` of the cache are requests; `cache_write`, `cache_read`,
    `input` and `output` expected tokens of a live run.
    `rough`: tokens are estimates, not counts.
    """

    documents: int
    chunks: int
    done: int
    waiting: int
    whole: int
    windowed: int
    below_floor: int
    single: int
    writes: int
    reads: int
    cache_write: int
    cache_read: int
    input: int
    output: int
    live: Range | None
    batch: Range | None
    seconds: tuple[float, float]
    batch_seconds: tuple[float, float]
    rough: bool


def document_dollars(
    rate: Rate,
    document: float,
    chunks: int,
    chunk: float,
    question: float,
    output: float,
    reads: int | None = None,
    cached: bool = True,
) -> float:
    """US dollars of one document (tokens), live: the formula above.

    `chunk` is the mean length of its chunks. `reads` is how many requests read the cache, n - 1 unless
    given; the published estimate of $1.02 per million document tokens has n.
    """
    tail = chunks * ((chunk + question) * rate.input + output * rate.output)
    if not cached:
        return (chunks * document * rate.input + tail) / 1e6
    hits = chunks - 1 if reads is None else reads
    return (document * (rate.write + hits * rate.read) + tail) / 1e6


def batch_dollars(
    rate: Rate,
    document: float,
    chunks: int,
    chunk: float,
    question: float,
    output: float,
    hits: int,
    cached: bool = True,
) -> float:
    """US dollars of one document in a batch, before its discount; all but `hits` requests write the cache."""
    tail = chunks * ((chunk + question) * rate.input + output * rate.output)
    if cached:
        prefix = document * ((chunks - hits) * rate.write_1h + hits * rate.read)
    else:
        prefix = chunks * document * rate.input
    return (prefix + tail) / 1e6


def make_plan(
    work: Work,
    settings: ContextSettings,
    prices: Prices,
    seen: Seen | None = None,
    concurrency: int = 4,
) -> Plan:
    """The plan of a job, or of batches. `seen` is how the model answered so far (`ContextStore.seen`)."""
    floor = cache_floor(prices, settings.model)
    expected = min(seen.output if seen else USUAL, settings.max_tokens)
    outputs = (min(SHORT, expected), expected, settings.max_tokens)
    live, batch, priced = [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], True
    writes = reads = cache_write = cache_read = plain = below = single = 0
    for piece in work.pieces:
        n, prefix = len(piece.spans), work.prefix(piece)
        cached = work.cached(piece, floor)
        plain += sum(piece.chunk_tokens) + n * work.question
        if cached:
            writes, reads = writes + 1, reads + n - 1
            cache_write += prefix
            cache_read += (n - 1) * prefix
        else:
            plain += n * prefix
            single += n == 1
            below += n > 1
        rate = prices.rate(settings.model, prefix + work.question + max(piece.chunk_tokens))
        if rate is None:
            priced = False
            continue
        mean = sum(piece.chunk_tokens) / n
        for at, output in enumerate(outputs):
            facts = (rate, prefix, n, mean, work.question, output)
            live[at] += document_dollars(*facts, cached=cached)
            batch[at] += prices.batch * batch_dollars(*facts, n - 1 if at == 0 else 0, cached)
    chunks = work.chunks
    quick, slow = (seen.seconds * 0.7, seen.seconds * 1.5) if seen and seen.seconds else _CALL_SECONDS
    rounds = _rounds(work.pieces, concurrency)
    return Plan(
        documents=len({piece.item for piece in work.pieces}),
        chunks=chunks,
        done=work.done,
        waiting=work.waiting,
        whole=work.whole,
        windowed=work.windowed,
        below_floor=below,
        single=single,
        writes=writes,
        reads=reads,
        cache_write=cache_write,
        cache_read=cache_read,
        input=plain,
        output=round(chunks * expected),
        live=Range(*live) if priced else None,
        batch=Range(*batch) if priced else None,
        seconds=(rounds * quick, rounds * slow),
        batch_seconds=_BATCH_SECONDS if chunks else (0.0, 0.0),
        rough=not work.exact,
    )


def cache_floor(prices: Prices, model: str) -> int:
    """The model's shortest cacheable prefix, in tokens."""
    rate = prices.rate(model)
    return rate.cache_floor if rate else USUAL_FLOOR


def _rounds(pieces: tuple[Piece, ...], concurrency: int) -> int:
    """Calls one after another, when `concurrency` run at a time and each piece's first runs alone."""
    if not pieces:
        return 0
    calls = sum(len(piece.spans) for piece in pieces)
    longest = max(1 + math.ceil((len(piece.spans) - 1) / concurrency) for piece in pieces)
    return max(math.ceil(calls / concurrency), longest)
