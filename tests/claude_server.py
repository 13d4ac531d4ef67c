"""A scripted server on loopback that speaks the Messages API, for tests through the real SDK.

It is strict where the API is (a request the API refuses gets its 400), counts tokens, keeps a prompt cache by
exact prefix, and fails when told to. `ClaudeServer.requests` holds what was asked, in order.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_httpserver.httpserver import HTTPServerBase
from werkzeug import Request, Response

Body = dict[str, Any]
KEY = "sk-ant-test-0123456789abcdef"
WHEN = "2026-11-30T12:00:00Z"


@dataclass
class Recorded:
    """One request as it came in; `status` is what was answered (0 before, or when nothing was)."""

    method: str
    path: str
    headers: dict[str, str]  # names in lower case
    body: Body
    at: float  # time.monotonic
    status: int = 0


@dataclass(frozen=True)
class Fault:
    """An answer with an error status (or, with `body`, any raw answer)."""

    status: int
    type: str = ""
    message: str = ""
    retry_after: float | None = None  # seconds
    retry_after_ms: float | None = None
    error_code: str = ""
    location: str = ""
    body: str | None = None  # sent as it is instead of the API's error, as JSON where it begins like it
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Timeout:
    """The answer comes only after `seconds`."""

    seconds: float


@dataclass(frozen=True)
class Cut:
    """The connection drops: before the answer, or in the middle of a stream."""


@dataclass(frozen=True)
class Ends:
    """A stream that simply ends, without a stop reason; an answer in one piece has stop_reason null."""


@dataclass(frozen=True)
class StreamError:
    """An `error` event in the middle of a stream."""

    type: str = "overloaded_error"


@dataclass(frozen=True)
class Refusal:
    """stop_reason "refusal" and no text."""


@dataclass(frozen=True)
class MaxTokens:
    """Half of the answer and stop_reason "max_tokens"."""


@dataclass(frozen=True)
class Malformed:
    """Text that is not the JSON asked for, with stop_reason "end_turn"."""

    text: str = '{"order": [1, 2'


_FAULTS = (Fault, Timeout, Cut, Ends, StreamError, Refusal, MaxTokens, Malformed)
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


@dataclass(frozen=True)
class Abilities:
    """What GET /v1/models/ID says of a model."""

    thinking: tuple[str, ...] = ("adaptive", "disabled")  # accepted types; () no thinking at all
    default_on: bool = True
    structured_outputs: bool = True
    citations: bool = True
    batch: bool = True
    max_input_tokens: int = 1_000_000
    max_tokens: int = 128_000


MODELS = {
    "claude-haiku-5-5": Abilities(),
    "claude-sonnet-5-5": Abilities(("adaptive", "between_tools")),
    "claude-opus-5-5": Abilities(("adaptive",)),
    "claude-haiku-4-5": Abilities(("enabled", "disabled"), default_on=False, max_input_tokens=200_000),
}


@dataclass
class _Batch:
    id: str
    requests: list[Body]
    status: str = "in_progress"
    results: list[Body] = field(default_factory=list)


@dataclass
class _Answer:
    """What a request is answered with, before it is put on the wire."""

    content: list[Body]
    stop: str | None
    usage: Body
    model: str


class ApiError(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.fault = Fault(status, message=message)


class ClaudeServer(HTTPServerBase):
    """Start with `start()`; `reset()` before each test."""

    def __init__(self) -> None:
        super().__init__("127.0.0.1", 0, threaded=True)
        self._lock = threading.RLock()
        self._wake = threading.Event()
        logging.getLogger("werkzeug").setLevel(logging.ERROR)  # else one line a request
        self.reset()

    def reset(self) -> None:
        self._wake.set()  # whoever still sleeps for an earlier test goes on at once
        with self._lock:
            self._wake = threading.Event()
            self.requests: list[Recorded] = []
            self.handler_errors = []
            self.write: Callable[[Body], str] = default_answer
            self.answer: list[tuple[str, list[Body]]] | None = None  # text blocks with their citations
            self.tokens: Callable[[str], int] = lambda text: -(-len(text) // 4)
            self.models: dict[str, Abilities] = dict(
                MODELS
            )  # empty: no models endpoint, any model answers
            self.keys: set[str] | None = None  # the keys that are let in; None: any
            self.cache_floor = 512
            self.latency = 0.0  # seconds before an answer begins
            self.pace = 0.0  # seconds between two deltas of a stream
            self.citations_first = True  # before the text of their block, as the API sends them
            self.batch_hits = True  # whether a batch's requests read what an earlier one wrote
            self.batches: dict[str, _Batch] = {}
            self.peak_in_flight = 0
            self.in_flight = 0
            self._count = 0
            self._faults: list[tuple[Any, Callable[[Body], bool] | None, str]] = []
            self._cache: set[str] = set()

    # -- for tests ---------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        return self.url_for("").rstrip("/")

    @property
    def asked(self) -> list[Body]:
        """The bodies of all POST /v1/messages so far, failed ones included."""
        return [one.body for one in list(self.requests) if one.path == "/v1/messages"]

    def fail(
        self, *faults: Any, on: Callable[[Body], bool] | None = None, path: str = "/v1/messages"
    ) -> None:
        """Queue faults: each is used up by the first request to `path` for whose body `on` holds."""
        for fault in faults:
            if not isinstance(fault, _FAULTS):
                raise TypeError(f"not a fault: {fault!r}")
        with self._lock:
            self._faults += [(fault, on, path) for fault in faults]

    def finish_batches(
        self,
        errored: Mapping[str, str] | Iterable[str] = (),
        expired: Iterable[str] = (),
        canceled: Iterable[str] = (),
    ) -> None:
        """End all running batches. The sets hold custom_ids; `errored` may map one to an error type
        ("invalid_request_error", "overloaded_error"; default "api_error"). Results come last first."""
        types = dict(errored) if isinstance(errored, Mapping) else dict.fromkeys(errored, "api_error")
        expired, canceled = set(expired), set(canceled)
        for batch in list(self.batches.values()):
            if batch.status == "ended":
                continue
            everything = batch.status == "canceling"
            for one in batch.requests:
                name = one["custom_id"]
                if name in canceled or everything:
                    result: Body = {"type": "canceled"}
                elif name in expired:
                    result = {"type": "expired"}
                elif name in types:
                    result = {"type": "errored", "error": _error(types[name], "scripted")}
                else:
                    result = self._batch_result(one["params"])
                batch.results.insert(0, {"custom_id": name, "result": result})
            batch.status = "ended"

    def _batch_result(self, params: Body) -> Body:
        try:
            self._check(params)
            answer = self._answer_to(params, None, self._read(params) if self.batch_hits else 0)
        except ApiError as refused:
            return {"type": "errored", "error": _error("invalid_request_error", str(refused))}
        return {"type": "succeeded", "message": self._message(answer)}

    # -- the wire ----------------------------------------------------------------------------------------

    def application(self, request: Request) -> Response:
        """As the base class, but without keeping every request and answer a second time."""
        request.get_data()
        try:
            return self.dispatch(request)
        except ConnectionError:  # our own Cut; werkzeug takes it for a client that went away
            raise
        except Exception as error:
            self.handler_errors.append(error)
            raise

    def dispatch(self, request: Request) -> Response:
        data = request.get_data()
        recorded = Recorded(
            request.method,
            request.path,
            {name.lower(): value for name, value in request.headers.items()},
            json.loads(data) if data else {},
            time.monotonic(),
        )
        with self._lock:
            self.requests.append(recorded)
            self._count += 1
            number = self._count
            wake = self._wake
            counted = request.path == "/v1/messages"
            self.in_flight += counted
            self.peak_in_flight = max(self.peak_in_flight, self.in_flight)

        def done() -> None:
            with self._lock:
                self.in_flight -= counted and wake is self._wake

        try:
            response = self._respond(request, recorded.body, wake)
        except ApiError as refused:
            response = _failure(refused.fault)
        except BaseException:
            done()
            raise
        response.headers["request-id"] = f"req_{number}"
        recorded.status = response.status_code
        response.call_on_close(done)
        return response

    def _respond(self, request: Request, body: Body, wake: threading.Event) -> Response:
        fault = self._next_fault(request.path, body)
        if isinstance(fault, Fault):
            return _failure(fault)
        if isinstance(fault, Timeout):
            wake.wait(fault.seconds)
        key = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.keys is not None and key not in self.keys:
            raise ApiError(401, "invalid bearer token")
        parts = request.path.strip("/").split("/")
        match request.method, parts:
            case "POST", ["v1", "messages"]:
                return self._messages(request, body, fault, wake)
            case "POST", ["v1", "messages", "count_tokens"]:
                return _json({"input_tokens": self.prompt_tokens(body)})
            case "POST", ["v1", "messages", "batches"]:
                return self._submit(body)
            case "GET", ["v1", "messages", "batches", name] if name in self.batches:
                return _json(self._batch_json(self.batches[name]))
            case "POST", ["v1", "messages", "batches", name, "cancel"] if name in self.batches:
                self.batches[name].status = "canceling"
                return _json(self._batch_json(self.batches[name]))
            case "GET", ["v1", "messages", "batches", name, "results"] if name in self.batches:
                lines = "".join(json.dumps(one) + "\n" for one in self.batches[name].results)
                return Response(lines, mimetype="application/binary")
            case "GET", ["v1", "models", name] if name in self.models:
                return _json(_model_json(name, self.models[name]))
        raise ApiError(404, f"{request.method} {request.path} not found")

    def _next_fault(self, path: str, body: Body) -> Any:
        with self._lock:
            for place, (fault, on, where) in enumerate(self._faults):
                if where == path and (on is None or on(body)):
                    del self._faults[place]
                    return fault
        return None

    # -- messages ----------------------------------------------------------------------------------------

    def _messages(self, request: Request, body: Body, fault: Any, wake: threading.Event) -> Response:
        self._check(body)
        read = self._read(body)
        if self.latency:
            wake.wait(self.latency)
        if isinstance(fault, Cut) and not body.get("stream"):
            _drop(request)
        answer = self._answer_to(body, fault, read)
        if body.get("stream"):
            events = self._events(answer, fault, request, wake)
            return Response(events, mimetype="text/event-stream")
        return _json(self._message(answer))

    def _check(self, body: Body) -> None:
        """What the API answers with 400 (or 404)."""
        name = body.get("model", "")
        if self.models and name not in self.models:
            raise ApiError(404, f"model: {name}")
        known = self.models.get(name)
        for gone in ("temperature", "top_p", "top_k"):
            if gone in body:
                raise ApiError(400, f"{gone}: not supported by this model")
        if not isinstance(body.get("max_tokens"), int) or not body.get("messages"):
            raise ApiError(400, "max_tokens and messages are required")
        if body["messages"][-1]["role"] != "user":
            raise ApiError(400, "the last message must come from the user")
        thinking = body.get("thinking", {}).get("type")
        if known and thinking and thinking not in known.thinking:
            raise ApiError(400, f"thinking.type: {thinking} is not supported by {name}")
        blocks = _blocks(body)
        if any(block.get("type") == "text" and not block["text"].strip() for block in blocks):
            raise ApiError(400, "text content blocks must contain non-whitespace text")
        if sum("cache_control" in block for block in blocks) > 4:
            raise ApiError(400, "at most 4 blocks with cache_control")
        sources = [block for block in blocks if block.get("type") in ("search_result", "document")]
        cited = {bool(block.get("citations", {}).get("enabled")) for block in sources}
        if len(cited) > 1:
            raise ApiError(400, "citations must be enabled on all sources or on none")
        if True in cited and body.get("output_config", {}).get("format"):
            raise ApiError(400, "citations and output_config.format cannot be used together")
        if known and self.prompt_tokens(body) > known.max_input_tokens:
            limit = known.max_input_tokens
            raise ApiError(
                400, f"prompt is too long: {self.prompt_tokens(body)} tokens > {limit} maximum"
            )

    def prompt_tokens(self, body: Body) -> int:
        return sum(self.tokens(text) for block in _blocks(body) for text in _texts(block))

    def _answer_to(self, body: Body, fault: Any, read: int) -> _Answer:
        stop: str | None = "end_turn"
        if isinstance(fault, Refusal):
            content, stop = [], "refusal"
        elif isinstance(fault, Malformed):
            content = [{"type": "text", "text": fault.text, "citations": None}]
        elif self.answer is not None:
            content = [
                {"type": "text", "text": text, "citations": _citations(body, cites) or None}
                for text, cites in self.answer
            ]
        else:
            content = [{"type": "text", "text": self.write(body), "citations": None}]
        known = self.models.get(body["model"])
        if known and known.default_on and body.get("thinking", {}).get("type") in (None, "adaptive"):
            content.insert(0, {"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"})
        output = sum(self.tokens(block.get("text") or block["thinking"]) for block in content)
        if isinstance(fault, MaxTokens) or output > body["max_tokens"]:
            stop, last = "max_tokens", content[-1]
            kept = len(last["text"]) // 2 if isinstance(fault, MaxTokens) else body["max_tokens"] * 4
            content[-1] = {**last, "text": last["text"][:kept], "citations": None}
            output = sum(self.tokens(block.get("text") or block["thinking"]) for block in content)
        if isinstance(fault, Ends):
            stop = None
        return _Answer(content, stop, self._usage(body, output, read), body["model"])

    def _marks(self, body: Body) -> tuple[int, list[tuple[int, str, str]]]:
        """The prompt's tokens, and for each mark past the floor: tokens up to it, its cache entry, its ttl."""
        total, marks = 0, []
        prefix = hashlib.sha256(body["model"].encode())
        for block in _blocks(body):
            plain = {name: value for name, value in block.items() if name != "cache_control"}
            prefix.update(json.dumps(plain).encode())
            total += sum(self.tokens(text) for text in _texts(block))
            mark = block.get("cache_control")
            if mark and total >= self.cache_floor:
                marks.append((total, prefix.hexdigest(), mark.get("ttl", "5m")))
        return total, marks

    def _read(self, body: Body) -> int:
        """Tokens that the cache holds when a request comes in."""
        with self._lock:
            return max(
                (tokens for tokens, entry, _ in self._marks(body)[1] if entry in self._cache), default=0
            )

    def _usage(self, body: Body, output: int, read: int) -> Body:
        """What is billed. From here on the request's entries are readable: its answer begins."""
        total, marks = self._marks(body)
        written = {"5m": 0, "1h": 0}
        before = read
        for tokens, entry, ttl in marks:
            if tokens > before:
                written[ttl] += tokens - before
                before = tokens
            with self._lock:
                self._cache.add(entry)
        return {
            "input_tokens": total - read - sum(written.values()),
            "cache_creation_input_tokens": sum(written.values()),
            "cache_read_input_tokens": read,
            "cache_creation": {
                "ephemeral_5m_input_tokens": written["5m"],
                "ephemeral_1h_input_tokens": written["1h"],
            },
            "output_tokens": output,
        }

    def _message(self, answer: _Answer) -> Body:
        with self._lock:
            self._count += 1
            name = f"msg_{self._count}"
        return {
            "id": name,
            "type": "message",
            "role": "assistant",
            "model": answer.model,
            "content": answer.content,
            "stop_reason": answer.stop,
            "stop_sequence": None,
            "usage": answer.usage,
        }

    def _events(
        self, answer: _Answer, fault: Any, request: Request, wake: threading.Event
    ) -> Iterator[bytes]:
        deltas = []
        for place, block in enumerate(answer.content):
            pieces = _deltas(block)
            if self.citations_first:
                pieces.sort(key=lambda piece: piece["type"] != "citations_delta")
            deltas += [(place, piece) for piece in pieces]
        half = len(deltas) // 2
        start = self._message(answer) | {"content": [], "stop_reason": None}
        start["usage"] = answer.usage | {"output_tokens": 1}
        yield _event("message_start", message=start)
        yield _event("ping")
        open_block = -1
        for number, (place, delta) in enumerate(deltas):
            if number == half and isinstance(fault, Cut):
                _drop(request)
            if number == half and isinstance(fault, StreamError):
                yield _event("error", error={"type": fault.type, "message": "scripted"})
                return
            if number == half and isinstance(fault, Ends):
                return
            if place != open_block:
                if open_block >= 0:
                    yield _event("content_block_stop", index=open_block)
                block = answer.content[place]
                kind = block["type"]
                empty: Body = {"type": kind, kind: ""}
                if kind == "thinking":
                    empty["signature"] = ""
                elif block["citations"]:
                    empty["citations"] = []
                yield _event("content_block_start", index=place, content_block=empty)
                open_block = place
            yield _event("content_block_delta", index=place, delta=delta)
            if self.pace:
                wake.wait(self.pace)
        if open_block >= 0:
            yield _event("content_block_stop", index=open_block)
        yield _event(
            "message_delta",
            delta={"stop_reason": answer.stop, "stop_sequence": None},
            usage={"output_tokens": answer.usage["output_tokens"]},
        )
        yield _event("message_stop")

    # -- batches -----------------------------------------------------------------------------------------

    def _submit(self, body: Body) -> Response:
        names = [one["custom_id"] for one in body["requests"]]
        bad = [name for name in names if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name)]
        if bad or len(set(names)) < len(names) or not names:
            raise ApiError(400, f"custom_id: must be unique and match [a-zA-Z0-9_-]{{1,64}}: {bad[:1]}")
        if any(one["params"].get("stream") for one in body["requests"]):
            raise ApiError(400, "stream is not supported in batches")
        with self._lock:
            batch = _Batch(f"msgbatch_{len(self.batches) + 1}", body["requests"])
            self.batches[batch.id] = batch
        return _json(self._batch_json(batch))

    def _batch_json(self, batch: _Batch) -> Body:
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        for one in batch.results:
            counts[one["result"]["type"]] += 1
        ended = batch.status == "ended"
        counts["processing"] = 0 if ended else len(batch.requests)
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": batch.status,
            "request_counts": counts,
            "created_at": WHEN,
            "expires_at": "2026-12-01T12:00:00Z",
            "ended_at": WHEN if ended else None,
            "results_url": f"{self.url}/v1/messages/batches/{batch.id}/results" if ended else None,
        }


# -- requests, read ------------------------------------------------------------------------------------------


def _blocks(body: Body) -> list[Body]:
    """All blocks of a request in cache order: tools, system, messages."""
    found = list(body.get("tools") or [])
    for content in [body.get("system") or [], *(one["content"] for one in body["messages"])]:
        found += [{"type": "text", "text": content}] if isinstance(content, str) else content
    return found


def _texts(block: Body) -> list[str]:
    match block.get("type"):
        case "text":
            return [block["text"]]
        case "search_result":
            return [block["source"], block["title"], *(part["text"] for part in block["content"])]
        case "document":
            source = block["source"]
            parts = source.get("content") or [{"text": source.get("data", "")}]
            return [block.get("title") or "", *(part["text"] for part in parts)]
    return [json.dumps(block)]


def chunk_of(body: Body) -> str:
    """The chunk of a context request: what stands in its last <chunk> tag, else the last text block."""
    last = [block["text"] for block in _blocks(body) if block.get("type") == "text"][-1]
    tagged = re.findall(r"<chunk>\s*(.*?)\s*</chunk>", last, re.DOTALL)
    return tagged[-1] if tagged else last


def default_answer(body: Body) -> str:
    """A sentence that names the chunk's first words; for structured output the schema's emptiest value."""
    form = body.get("output_config", {}).get("format")
    if form:
        return json.dumps(_emptiest(form["schema"], form["schema"].get("$defs", {})))
    return f"This part is about {' '.join(chunk_of(body).split()[:6])}."


def _emptiest(schema: Body, named: Body) -> Any:
    if "$ref" in schema:
        return _emptiest(named[schema["$ref"].rsplit("/", 1)[-1]], named)
    if "anyOf" in schema:
        return _emptiest(schema["anyOf"][0], named)
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "object":
        return {name: _emptiest(part, named) for name, part in schema.get("properties", {}).items()}
    return {"array": [], "string": "", "integer": 0, "number": 0.0, "boolean": False}.get(schema["type"])


def _citations(body: Body, cites: list[Body]) -> list[Body]:
    """Citations as the API gives them: cited text, title and source filled in from the request."""
    results = [block for block in _blocks(body) if block.get("type") == "search_result"]
    documents = [block for block in _blocks(body) if block.get("type") == "document"]
    filled = []
    for cite in cites:
        match cite["type"]:
            case "search_result_location":
                block = results[cite["search_result_index"]]
                parts = block["content"][cite["start_block_index"] : cite["end_block_index"]]
                cited = "".join(part["text"] for part in parts)
                filled.append(
                    {"source": block["source"], "title": block["title"], "cited_text": cited} | cite
                )
            case "char_location":
                block = documents[cite["document_index"]]
                cited = block["source"]["data"][cite["start_char_index"] : cite["end_char_index"]]
                filled.append({"document_title": block.get("title"), "cited_text": cited} | cite)
            case "content_block_location":
                block = documents[cite["document_index"]]
                parts = block["source"]["content"][cite["start_block_index"] : cite["end_block_index"]]
                cited = "".join(part["text"] for part in parts)
                filled.append({"document_title": block.get("title"), "cited_text": cited} | cite)
            case kind:
                raise ValueError(f"citation type {kind!r} is not scripted")
    return filled


# -- answers, written ----------------------------------------------------------------------------------------


def _deltas(block: Body) -> list[Body]:
    """A block as a stream sends it: its text in pieces of a few characters, and its citations."""
    if block["type"] == "thinking":
        return [
            {"type": "thinking_delta", "thinking": block["thinking"]},
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    text = block["text"]
    pieces = [text[at : at + 12] for at in range(0, len(text), 12)]
    return [{"type": "text_delta", "text": piece} for piece in pieces] + [
        {"type": "citations_delta", "citation": cite} for cite in block["citations"] or []
    ]


def _event(name: str, **data: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode()


def _json(body: Body, status: int = 200) -> Response:
    return Response(json.dumps(body), status, mimetype="application/json")


def _error(kind: str, message: str, code: str = "") -> Body:
    error: Body = {"type": kind, "message": message}
    if code:
        error["details"] = {"error_code": code}
    return {"type": "error", "error": error}


def _failure(fault: Fault) -> Response:
    if fault.body is not None:
        kind = "application/json" if fault.body.startswith(("{", "[")) else "text/html"
        response = Response(fault.body, fault.status, mimetype=kind)
    else:
        kind = fault.type or _TYPES.get(fault.status, "api_error")
        message = fault.message or f"scripted {fault.status}"
        response = _json(_error(kind, message, fault.error_code), fault.status)
    response.headers.update(fault.headers)
    if fault.location:
        response.headers["location"] = fault.location
    if fault.retry_after is not None:
        response.headers["retry-after"] = f"{fault.retry_after:g}"
    if fault.retry_after_ms is not None:
        response.headers["retry-after-ms"] = f"{fault.retry_after_ms:g}"
    return response


def _drop(request: Request) -> None:
    """Close the connection under the answer, as a broken network does."""
    wire: socket.socket = request.environ["werkzeug.socket"]
    wire.shutdown(socket.SHUT_RDWR)
    raise ConnectionError("dropped")


def _model_json(name: str, abilities: Abilities) -> Body:
    def can(*names: str, of: tuple[str, ...]) -> Body:
        return {one: {"supported": one in of} for one in names}

    levels = ("low", "medium", "high", "max", "xhigh")
    flags = {
        "batch": abilities.batch,
        "citations": abilities.citations,
        "structured_outputs": abilities.structured_outputs,
        "code_execution": False,
        "image_input": True,
        "pdf_input": True,
        "server_tools": False,
    }
    thinking = can("adaptive", "between_tools", "disabled", "enabled", of=abilities.thinking)
    return {
        "id": name,
        "type": "model",
        "display_name": name,
        "created_at": WHEN,
        "lifecycle": "active",
        "max_input_tokens": abilities.max_input_tokens,
        "max_tokens": abilities.max_tokens,
        "capabilities": {flag: {"supported": value} for flag, value in flags.items()}
        | {
            "thinking": {"supported": bool(abilities.thinking), "types": thinking},
            "effort": {"supported": True, **can(*levels, of=levels)},
            "context_management": {"supported": False},
        },
    }
