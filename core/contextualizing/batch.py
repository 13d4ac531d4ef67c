"""Contexts through message batches: half price, within a day, answered in any order.

What was handed over, and which chunk each request is for, is on disk before the server is asked how far
it is: a restart, or another program, goes on from there.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from core.contextualizing.job import check_cap, judge
from core.contextualizing.plan import cache_floor, make_plan
from core.contextualizing.prompt import Mark, Span, request
from core.contextualizing.store import BatchChunk, BatchRow, ContextStore, Written
from core.contextualizing.work import Work
from core.documents import Documents
from core.errors import ContextError, LlmError
from core.llm import BatchResult, Claude
from core.prices import Prices
from core.settings import ContextSettings

REQUESTS, BYTES = 10_000, 200_000_000  # of one batch; the API takes 100,000 and 256 MB
_TOGETHER = 200  # results kept in one transaction
_OPEN = ("in_progress", "canceling")


def submit(
    store: ContextStore,
    documents: Documents,
    work: Work,
    settings: ContextSettings,
    claude: Claude,
    prices: Prices,
    cap_dollars: float | None = None,
    requests: int = REQUESTS,
    size: int = BYTES,
) -> list[str]:
    """Hand all chunks of the work over, in as many batches as it takes; their ids.

    Nothing is handed over where the plan's highest cost is above `cap_dollars`, or unknown: ContextError.
    Raises ContextError while contexts of the collection are being written, here or by another program, and
    LlmError when the server does not take one: those before stay handed over. Where its answer is
    lost the batch may exist: it then stays listed as "sending", its chunks are not asked for again, and
    `give_up` frees them. Raises ContextError where the model takes no batches, and where chunks were handed
    over already.
    """
    check_cap(cap_dollars)
    facts = claude.facts(settings.model)
    if facts.batch is False:
        raise ContextError(
            f"{settings.model} takes no batches; write the contexts live, or choose another model"
        )
    if cap_dollars is not None:
        cost = make_plan(work, settings, prices).batch
        if cost is None or cost.high > cap_dollars:
            could = f"could cost ${cost.high:.2f}" if cost else "has no known price"
            raise ContextError(
                f"this batch {could}, the limit is ${cap_dollars:g}; raise the limit, choose fewer "
                "documents or write live, where a run stops at its limit"
            )
    floor = cache_floor(prices, settings.model)
    ids: list[str] = []
    together: list[tuple[BatchChunk, Mapping[str, Any]]] = []
    taken = 0
    with store.writing():
        store.register(settings)
        for chunk, params in _requests(store, documents, work, settings, facts.quiet, floor):
            length = len(json.dumps(params)) + 100
            if together and (len(together) == requests or taken + length > size):
                ids.append(_hand_over(store, settings, claude, together))
                together, taken = [], 0
            together.append((chunk, params))
            taken += length
        if together:
            ids.append(_hand_over(store, settings, claude, together))
    return ids


def _requests(
    store: ContextStore,
    documents: Documents,
    work: Work,
    settings: ContextSettings,
    quiet: Mapping[str, Any],
    floor: int,
) -> Iterator[tuple[BatchChunk, Mapping[str, Any]]]:
    settled = store.settled(settings.writer_key)  # the work may be older
    for piece in work.pieces:
        known = settled.get(piece.text_hash, ())
        left = [span for span in piece.spans if span not in known]
        if not left:
            continue
        text = documents[piece.item].text
        mark: Mark = "1h" if work.cached(piece, floor) else None
        for span in left:
            chunk = BatchChunk(
                _custom_id(settings.writer_key, piece.text_hash, span),
                piece.text_hash,
                *span,
                piece.windowed,
            )
            params = request(settings, quiet, text[slice(*piece.window)], text[slice(*span)], mark)
            yield chunk, params


def _custom_id(key: str, text: str, span: Span) -> str:
    return hashlib.sha256(f"{key}/{text}/{span[0]}-{span[1]}".encode()).hexdigest()


def _hand_over(
    store: ContextStore,
    settings: ContextSettings,
    claude: Claude,
    together: list[tuple[BatchChunk, Mapping[str, Any]]],
) -> str:
    draft = f"sending-{secrets.token_hex(8)}"
    store.open_batch(draft, settings, [chunk for chunk, _ in together])
    try:
        name = claude.submit([(chunk.custom_id, params) for chunk, params in together])
    except LlmError as error:
        if error.kind not in ("timeout", "network", "cut", "other"):  # else it may have arrived
            store.forget_batch(draft)
        raise
    try:
        store.name_batch(draft, name)
    except ContextError as error:
        raise ContextError(
            f"the server took a batch as {name}, which could not be noted: {error}"
        ) from error
    return name


def refresh(store: ContextStore, claude: Claude, prices: Prices) -> list[BatchRow]:
    """Ask how far the open batches are and keep the results of those that ended; all batches as they are
    then, the latest last.

    Only batches of `claude`'s address are asked for. Raises LlmError when the server cannot be asked.
    """
    writers = store.writers()
    for batch in store.batches():
        settings = writers[batch.writer_key]
        if batch.status not in _OPEN or not _same_address(settings, claude):
            continue
        try:
            state = claude.batch(batch.id)
            if state.status == "ended":
                _collect(store, batch.id, settings, claude, prices)
        except LlmError as error:
            if error.kind != "gone":
                raise
            store.note_batch(batch.id, "lost", batch.counts, batch.expires_at)
            continue
        status = "collected" if state.status == "ended" else state.status
        store.note_batch(batch.id, status, state.counts, state.expires_at.isoformat(timespec="seconds"))
    return store.batches()


def _same_address(settings: ContextSettings, claude: Claude) -> bool:
    wanted = settings.base_url if settings.writer == "endpoint" else ""
    return Claude(wanted).address == claude.address


def _collect(
    store: ContextStore, batch: str, settings: ContextSettings, claude: Claude, prices: Prices
) -> None:
    chunks = store.batch_chunks(batch)
    results: list[tuple[str, str, Written | None]] = []
    try:
        for result in claude.results(batch):
            if result.id in chunks:
                chunk = chunks[result.id]
                results.append((result.id, *_kept(result, chunk, batch, settings, prices)))
            if len(results) == _TOGETHER:
                store.collect(batch, settings, results)
                results = []
    finally:  # what came before the connection broke is paid for
        store.collect(batch, settings, results)


def _kept(
    result: BatchResult,
    chunk: BatchChunk,
    batch: str,
    settings: ContextSettings,
    prices: Prices,
) -> tuple[str, Written | None]:
    """The outcome, and the answer as it is kept."""
    if result.reply is None:
        return f"{result.kind}: {result.error}", None
    state, reason = judge(result.reply, settings)
    written = Written(
        chunk.text_hash,
        chunk.start,
        chunk.end,
        state,
        result.reply.text,
        chunk.windowed,
        result.reply.usage,
        prices.cost(settings.model, result.reply.usage, batch=True),
        batch=batch,
    )
    return reason or state, written


def failures(store: ContextStore, batch: str) -> list[BatchChunk]:
    """The chunks of a collected batch that got no context, with the reason as `outcome`; another `survey`
    finds those that may be asked for again."""
    return [
        chunk if chunk.outcome else replace(chunk, outcome="the batch had no result for it")
        for chunk in store.batch_chunks(batch).values()
        if chunk.outcome != "written"
    ]


def cancel(claude: Claude, batch: str) -> None:
    """Ask for an end; `refresh` then keeps what was answered (and is paid). Raises LlmError."""
    claude.cancel(batch)


def give_up(store: ContextStore, batch: str) -> None:
    """Free the chunks of a batch that is "sending": its submission never got an answer."""
    store.forget_batch(batch)
