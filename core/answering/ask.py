"""A question on its way to a model: streamed, kept as it comes, and shown only once it is kept."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

from core.answering.answer import Answer, Part, State, resolved
from core.answering.cost import BASE_LIMIT
from core.answering.inquiry import Inquiry
from core.answering.request import request
from core.answering.store import AnswerStore
from core.errors import LlmError, RankscopeError
from core.llm import WHOLE, CitationDelta, Claude, Done, Reply, TextDelta
from core.prices import Prices

_KEEP_EVERY = 0.2  # seconds between two writes of an answer that grows
_STOPPED = "stopped here; what had come is kept"


def ask(
    inquiry: Inquiry,
    store: AnswerStore,
    client: Claude,
    prices: Prices,
    expected: float | None = None,
    asker: str = "",
) -> Iterator[Answer]:
    """The answer as it grows; each one given is on disk already. The last one is final.

    Closing the iterator stops the stream; what had come stays, marked as cut. Raises LlmError when
    nothing came at all, and CollectionError when the disk fails. An answer that ends early is no error:
    its `state` and `note` say so.
    """
    if not inquiry.sources:
        raise LlmError("there is no text to answer from; ask another question or add documents")
    facts = client.facts(inquiry.model)
    if facts.citations is False:
        raise LlmError(f"{inquiry.model} cannot cite; choose another model", "request")
    params = request(inquiry, facts)
    if inquiry.path == "base":
        # Counted before it is paid for: an estimate may be off by a third.
        counted = client.count_tokens(params)
        limit = min(BASE_LIMIT, facts.max_input_tokens or BASE_LIMIT)
        if counted > limit:
            raise LlmError(
                f"all documents are {counted:,} tokens, the limit is {limit:,}; ask from the passages",
                "size",
            )
    answer = store.begin(inquiry, expected, asker)
    started = kept = time.monotonic()
    parts: list[Part] = []
    block = -1
    settled = False  # whether what is on disk is the last word

    def now(**facts: object) -> Answer:
        seconds = round(time.monotonic() - started, 2)
        return replace(answer, parts=tuple(parts), seconds=seconds, **facts)  # type: ignore[arg-type]

    try:
        for event in client.stream(params):
            if isinstance(event, Done):
                last = _final(now(), event.reply, prices, params["max_tokens"])
                store.save(last)
                settled = True
                yield last
                return
            if event.block != block:
                block = event.block
                parts.append(Part(""))
            parts[-1] = _grown(parts[-1], event, inquiry)
            if time.monotonic() - kept >= _KEEP_EVERY:
                growing = now()
                store.save(growing)
                kept = time.monotonic()
                yield growing
    except LlmError as error:
        if not any(part.text for part in parts):
            settled = True
            store.forget(answer.id)
            raise
        last = now(note=str(error))
        store.save(last)
        settled = True
        yield last
    finally:
        if not settled:
            store.save(now(note=_STOPPED))


def _grown(part: Part, event: TextDelta | CitationDelta, inquiry: Inquiry) -> Part:
    if isinstance(event, TextDelta):
        return Part(part.text + event.text, part.cited)
    cited = resolved(event.citation, inquiry)
    return Part(part.text, (*part.cited, cited)) if cited else part


def _final(answer: Answer, reply: Reply, prices: Prices, limit: int) -> Answer:
    state: State = "whole"
    note = ""
    if reply.stop == "refusal":
        state, note = (
            "refused",
            "The model declined to answer this question. Another model may answer it.",
        )
    elif reply.stop == "max_tokens":
        state, note = (
            "truncated",
            f"The answer reached its limit of {limit:,} tokens: the end is missing.",
        )
    elif reply.stop == "model_context_window_exceeded":
        state, note = "truncated", "The model's window is full: the end is missing. Send fewer passages."
    elif reply.stop not in WHOLE:
        state, note = "truncated", "The model stopped before the answer's end. Ask again."
    return replace(
        answer,
        state=state,
        note=note,
        usage=reply.usage,
        dollars=prices.cost(answer.model, reply.usage),
        request_id=reply.request_id,
    )


class AnswerJob:
    """`ask` in a thread of its own: a page that is drawn anew, or closed, cuts nothing that is paid for."""

    def __init__(
        self,
        inquiry: Inquiry,
        store: AnswerStore,
        client: Claude,
        prices: Prices,
        expected: float | None = None,
        asker: str = "",
    ) -> None:
        self.inquiry = inquiry
        self.answer: Answer | None = None  # as far as it has come
        self.error: RankscopeError | None = None
        self.started = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(store, client, prices, expected, asker), daemon=True
        )
        self._thread.start()

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    @property
    def stopping(self) -> bool:
        return self._stop.is_set()

    def stop(self) -> None:
        """End the stream at the next piece that comes; what had come is kept."""
        self._stop.set()

    def wait(self, seconds: float | None = None) -> None:
        self._thread.join(seconds)

    def _run(
        self, store: AnswerStore, client: Claude, prices: Prices, expected: float | None, asker: str
    ) -> None:
        try:
            with closing(ask(self.inquiry, store, client, prices, expected, asker)) as growing:  # type: ignore[type-var]
                for answer in growing:
                    self.answer = answer
                    if self._stop.is_set():
                        break
            if self.answer:
                self.answer = store.get(self.answer.id)
        except RankscopeError as error:
            self.error = error
        except Exception as error:  # in a thread nobody else would hear of it
            self.error = RankscopeError(f"the answer broke off: {error!r}")
