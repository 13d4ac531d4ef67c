"""Writing contexts: asks a model for each chunk, a few calls at a time, and keeps every answer at once.

A document whose text the server is to cache is asked for once, alone; the others of its chunks follow
when that answer is there, for only then does the cache exist. Nothing is asked that the store has.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from core.contextualizing.plan import cache_floor
from core.contextualizing.prompt import SYSTEM, Span, question, request
from core.contextualizing.store import ContextStore, Written
from core.contextualizing.work import Piece, Work
from core.documents import Documents
from core.errors import ContextError, LlmError, RankscopeError
from core.llm import WHOLE, Claude, Reply, Usage
from core.prices import Prices
from core.settings import ContextSettings

_FATAL = ("key", "money", "gone")  # no other chunk would fare better
_SLOW_AFTER, _PAUSE_AFTER = 2, 5  # troubles in a row
_LONGEST = 12  # characters for each token allowed: more is no answer within the maximum


@dataclass(frozen=True, slots=True)
class Failure:
    """A chunk that got no context; `again`: `retry_failed` asks for it once more."""

    item: int
    name: str
    start: int
    end: int
    reason: str
    again: bool


@dataclass(frozen=True)
class Snapshot:
    """A job at a moment.

    `state`: "ready", "running", "paused" (calls under way still end), "stopped", "capped", "failed" (no
    chunk can be written, `reason` says why) or "done" (each chunk is written or among `failed`).
    `dollars` is what this job paid, `unsure` the most that calls may have cost whose answers were lost or
    told no tokens; None where no price is known. `rate` is contexts a minute, `left_seconds` None before the first.
    """

    state: str
    reason: str
    done: int
    total: int
    in_flight: int
    failed: tuple[Failure, ...]
    dollars: float | None
    unsure: float
    cap: float | None
    usage: Usage
    seconds: float
    rate: float
    left_seconds: float | None
    notes: tuple[str, ...]

    @property
    def cache_hit_rate(self) -> float:
        """Share of the prompt tokens that were read from the server's cache."""
        return self.usage.cache_read / self.usage.prompt if self.usage.prompt else 0.0


@dataclass(eq=False)
class _Part:
    """A piece under way. `bound`: the most tokens its prefix can have."""

    piece: Piece
    marked: bool
    left: deque[Span]
    text: str | None = None
    bound: int = 0
    in_flight: int = 0
    open: bool = False  # the first answer is there
    alone: bool = False  # the cache was not hit
    lost: set[Span] = field(default_factory=set)  # asked, and perhaps paid, without an answer

    @property
    def ready(self) -> bool:
        """Whether one more of its chunks may be asked for now."""
        single = self.marked and (self.alone or not self.open)
        return bool(self.left) and not (single and self.in_flight)


@dataclass(frozen=True)
class _Call:
    part: _Part
    span: Span
    text: str = field(repr=False)  # the whole document
    worst: float  # US dollars it can cost at most


def writer_client(settings: ContextSettings) -> Claude:
    """The client that contexts are asked of: patient, since a job can wait."""
    return Claude(settings.base_url if settings.writer == "endpoint" else "", retries=5, timeout=120.0)


def check_cap(dollars: float | None) -> None:
    """Raises ContextError for a limit that would hold nothing back: everything is above it, or nothing."""
    if dollars is not None and not 0 <= dollars < float("inf"):
        raise ContextError(f"the limit of {dollars:g} US dollars is none; give a number from 0 on")


def judge(reply: Reply, settings: ContextSettings) -> tuple[str, str]:
    """What an answer is worth: the state it is kept in and the reason where that is not "written".

    The state is blank where there is nothing to keep.
    """
    if reply.stop == "refusal":
        return "refused", "the model refused to write about this chunk"
    if reply.stop is None:
        return "", "the answer was cut off"
    if reply.stop in ("max_tokens", "model_context_window_exceeded"):
        return "truncated", f"the answer was cut at {settings.max_tokens} tokens"
    if reply.stop not in WHOLE:
        return "truncated", f"the answer stopped for another reason than its end ({reply.stop[:40]})"
    if not reply.text.strip():
        return "", "the answer was blank"
    if len(reply.text) > _LONGEST * settings.max_tokens:
        return "truncated", f"the answer has {len(reply.text):,} characters"
    return "written", ""


class ContextJob:
    """Writes the contexts of a `Work`. All methods return at once and may be called from any thread."""

    def __init__(
        self,
        store: ContextStore,
        documents: Documents,
        work: Work,
        settings: ContextSettings,
        claude: Claude,
        prices: Prices,
        cap_dollars: float | None = None,
        concurrency: int = 4,
    ) -> None:
        """`cap_dollars`: no call begins that could bring this job above it.

        Raises ContextError when a cap is given that is none, or no price is known that it could be held with.
        """
        self._store, self._documents, self._work = store, documents, work
        self._settings, self._claude, self._prices = settings, claude, prices
        self._cap, self._concurrency = cap_dollars, max(concurrency, 1)
        check_cap(cap_dollars)
        self._free = claude.local and not prices.known(settings.model)
        if cap_dollars is not None and not self._free and not prices.known(settings.model):
            raise ContextError(
                f"no price of {settings.model} is known, so a limit of ${cap_dollars:g} cannot be held; "
                "add the model to prices.toml, or start without a limit"
            )
        self._floor = cache_floor(prices, settings.model)
        self._quiet: Mapping[str, Any] = {}
        self._change = threading.Condition()
        self._waiting = deque(work.pieces)  # not begun
        self._parts: list[_Part] = []  # begun, with chunks left or under way
        self._failed: list[tuple[_Part, Span, str, bool]] = []
        self._state, self._reason = "ready", ""
        self._thread: threading.Thread | None = None
        self._done = self._in_flight = 0
        self._spent = self._unsure = self._reserved = 0.0
        self._usage = Usage()
        self._troubles = self._refused = 0  # in a row
        self._not_hit: list[str] = []
        self._seconds = 0.0
        self._since: float | None = None  # when it went on last

    # What a person does

    def start(self) -> None:
        """Begin, or go on after a stop or a failure that was mended.

        Raises ContextError when another job of the same store is running, here or in another program.
        """
        with self._change:
            if self._thread:  # its last calls are still under way: it goes on after them
                self._go()
                self._change.notify_all()
                return
            self._store.hold()
            try:
                self._store.register(self._settings)
            except RankscopeError:
                self._store.release()
                raise
            self._go()
            self._thread = threading.Thread(target=self._run, name="contexts", daemon=True)
            self._thread.start()

    def pause(self) -> None:
        """Begin no further call; those under way are paid for and end."""
        with self._change:
            if self._state == "running":
                self._halt("paused", "paused by you")

    def resume(self) -> None:
        """Go on after a pause."""
        with self._change:
            if self._state == "paused":
                self._go()
                self._change.notify_all()

    def stop(self) -> None:
        """End when the calls under way have ended; the rest is left for another job."""
        with self._change:
            if self._state in ("running", "paused"):
                self._halt("stopped", "stopped by you")

    def retry_failed(self) -> None:
        """Ask once more for the failed chunks that may fare better, and for nothing else that is done."""
        with self._change:
            again = [one for one in self._failed if one[3]]
            self._failed = [one for one in self._failed if not one[3]]
            for part, span, _, _ in again:
                part.left.append(span)
                if part not in self._parts:
                    part.open = False
                    self._parts.append(part)
            self._change.notify_all()
        if again and self._state != "paused":
            self.start()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until nothing is under way any more; whether that is so."""
        thread = self._thread
        if thread:
            thread.join(timeout)
        return not self.running

    @property
    def running(self) -> bool:
        """Whether its threads are at work or paused."""
        return self._thread is not None

    def snapshot(self) -> Snapshot:
        with self._change:
            seconds = self._seconds + (time.monotonic() - self._since if self._since else 0.0)
            failed = tuple(
                Failure(part.piece.item, self._documents.names[part.piece.item], *span, reason, again)
                for part, span, reason, again in self._failed
            )
            total = self._work.chunks
            left = total - self._done - len(failed)
            priced = self._free or self._prices.known(self._settings.model)
            return Snapshot(
                self._state,
                self._reason,
                self._done,
                total,
                self._in_flight,
                failed,
                self._spent if priced else None,
                self._unsure,
                self._cap,
                self._usage,
                seconds,
                60 * self._done / seconds if seconds else 0.0,
                left * seconds / self._done if self._done else None,
                self._notes(),
            )

    def _notes(self) -> tuple[str, ...]:
        notes = []
        if self._not_hit:
            more = f" and {len(self._not_hit) - 1} more" if len(self._not_hit) > 1 else ""
            notes.append(f"cache not hit for {self._not_hit[0]!r}{more}: going on one at a time")
        if self._state == "running" and self._troubles >= _SLOW_AFTER:
            notes.append(f"the server is in trouble, one call at a time: {self._reason}")
        return tuple(notes)

    # Its threads

    def _go(self) -> None:
        """Held: `_change`."""
        if self._since is None:
            self._since = time.monotonic()
        self._state, self._reason = "running", ""
        self._troubles = self._refused = 0
        for part in self._parts:  # what the server cached may be gone by now
            part.open = False

    def _halt(self, state: str, reason: str) -> None:
        """Held: `_change`. The first reason stays, but a pause can become an end."""
        if self._state in ("running", "paused"):
            self._state, self._reason = state, reason
            if self._since is not None:
                self._seconds += time.monotonic() - self._since
                self._since = None
        self._change.notify_all()

    def _run(self) -> None:
        try:
            self._quiet = self._claude.facts(self._settings.model).quiet
        except Exception as error:
            self._fail(error)
        while True:
            workers = [
                threading.Thread(target=self._work_on, name=f"contexts {n}", daemon=True)
                for n in range(self._concurrency)
            ]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            with self._change:
                if self._state != "running" or not (self._parts or self._waiting):
                    self._halt("done", "")
                    self._thread = None
                    self._store.release()
                    return

    def _work_on(self) -> None:
        try:
            while call := self._take():
                try:
                    self._ask(call)
                except LlmError as error:
                    with self._change:
                        self._trouble(call, error)
                except Exception as error:  # a full disk, above all: pay for nothing that cannot be kept
                    with self._change:
                        call.part.left.appendleft(call.span)
                        self._fail(error)
                finally:  # others wait for it
                    with self._change:
                        self._end_call(call)
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        with self._change:
            self._halt("failed", str(error) if isinstance(error, RankscopeError) else repr(error))

    def _ask(self, call: _Call) -> None:
        piece, span = call.part.piece, call.span
        if self._store.has(self._settings.writer_key, piece.text_hash, span):
            with self._change:  # another program wrote it meanwhile
                self._done += 1
            return
        params = request(
            self._settings,
            self._quiet,
            call.text[slice(*piece.window)],
            call.text[slice(*span)],
            "5m" if call.part.marked else None,
        )
        began = time.monotonic()
        reply = self._claude.ask(params)
        seconds = time.monotonic() - began
        dollars = 0.0 if self._free else self._prices.cost(self._settings.model, reply.usage)
        with self._change:  # it is paid, whether it can be kept or not
            self._spent += dollars or 0.0
            if dollars is None and self._prices.known(self._settings.model):
                self._unsure += call.worst  # the server does not say what it was
            self._usage += reply.usage
        state, reason = judge(reply, self._settings)
        answer = Written(
            piece.text_hash,
            *span,
            state,
            reply.text,
            piece.windowed,
            reply.usage,
            dollars,
            seconds,
        )
        self._store.put(self._settings, answer)
        with self._change:
            self._troubles = self._refused = 0
            self._reason = "" if self._state == "running" else self._reason
            self._learn(call.part, reply.usage)
            if state == "written":
                self._done += 1
            else:
                self._failed.append((call.part, span, reason, state != "refused"))

    def _learn(self, part: _Part, usage: Usage) -> None:
        """Held: `_change`. What an answer says of the prefix and of the cache."""
        part.bound = usage.prompt or part.bound
        tail = self._work.question + max(part.piece.chunk_tokens)
        if part.marked and part.open and usage.prompt - tail >= self._floor:
            part.alone = (
                not usage.cache_read
            )  # the call that then goes alone may find what this one wrote
            name = self._documents.names[part.piece.item]
            if part.alone and name not in self._not_hit:
                self._not_hit.append(name)
        part.open = True

    def _trouble(self, call: _Call, error: LlmError) -> None:
        """Held: `_change`. What a call without an answer means for its chunk and for the others."""
        if error.kind in _FATAL:
            call.part.left.appendleft(call.span)
            self._halt("failed", str(error))
            return
        lost = error.kind in ("timeout", "cut")  # perhaps answered, and billed, all the same
        self._unsure += call.worst if lost else 0.0
        if lost and call.span not in call.part.lost:  # once more, if the limit has room for both
            call.part.lost.add(call.span)
            call.part.left.append(call.span)
        else:
            self._failed.append((call.part, call.span, str(error), error.again))
        if error.kind == "size" and not call.part.open:
            while call.part.left:  # they all are sent with the same text
                self._failed.append((call.part, call.part.left.popleft(), str(error), False))
        elif error.again:
            self._troubles += 1
            self._reason = str(error)
            if self._troubles >= _PAUSE_AFTER:
                self._halt("paused", f"{self._troubles} calls in a row failed, the last one: {error}")
        elif error.kind != "refused":
            self._refused += 1
            if self._refused >= _PAUSE_AFTER:
                self._halt("failed", f"{self._refused} calls in a row were turned down: {error}")

    def _end_call(self, call: _Call) -> None:
        """Held: `_change`."""
        self._in_flight -= 1
        self._reserved -= call.worst
        call.part.in_flight -= 1
        if not call.part.in_flight and not call.part.left:
            call.part.text = None
            if call.part in self._parts:
                self._parts.remove(call.part)
        self._change.notify_all()

    def _take(self) -> _Call | None:
        """The next call, waited for; None when there is none, or the job is to end."""
        with self._change:
            while self._state in ("running", "paused"):
                slow = self._troubles >= _SLOW_AFTER
                if self._state == "running" and self._in_flight < (1 if slow else self._concurrency):
                    part = self._choose()
                    if part is None and not self._in_flight:
                        return None
                    if part and (call := self._call(part)):
                        return call
                    if part and not self._in_flight:
                        continue  # it fell away
                self._change.wait()
            return None

    def _choose(self) -> _Part | None:
        """Held: `_change`. Where to ask next: begun documents first, while their cache is warm."""
        for part in self._parts:
            if part.ready:
                return part
        if not self._waiting:
            return None
        piece = self._waiting.popleft()
        part = _Part(piece, self._work.cached(piece, self._floor), deque(piece.spans))
        self._parts.append(part)
        return part

    def _call(self, part: _Part) -> _Call | None:
        """Held: `_change`. The next call of a part, its cost reserved; None where the limit has no room."""
        try:
            text = part.text = part.text or self._documents[part.piece.item].text
        except RankscopeError as error:  # removed meanwhile
            self._failed += [(part, span, str(error), False) for span in part.left]
            part.left.clear()
            self._parts.remove(part)
            return None
        span = part.left[0]
        chunk = text[slice(*span)]
        worst = self._worst(part, chunk)
        if self._cap is not None and self._spent + self._unsure + self._reserved + worst > self._cap:
            if not self._in_flight:
                self._halt(
                    "capped",
                    f"the next call could cost ${worst:.4f} and bring this job above its limit of "
                    f"${self._cap:g}",
                )
            return None
        part.left.popleft()
        part.in_flight += 1
        self._in_flight += 1
        self._reserved += worst
        return _Call(part, span, text, worst)

    def _worst(self, part: _Part, chunk: str) -> float:
        """US dollars that one more call of a part can cost at most: nothing found in the cache, the answer
        as long as allowed. A token is a byte or more, so that no estimate enters."""
        piece = part.piece
        if not part.bound:
            counted = piece.exact and not piece.windowed
            part.bound = (
                self._work.system + piece.tokens
                if counted
                else _bytes(SYSTEM) + _bytes((part.text or "")[slice(*piece.window)])
            )
        prompt = part.bound + _bytes(question(self._settings, chunk))
        rate = None if self._free else self._prices.rate(self._settings.model, prompt)
        if rate is None:
            return 0.0
        return (max(rate.input, rate.write) * prompt + rate.output * self._settings.max_tokens) / 1e6


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
