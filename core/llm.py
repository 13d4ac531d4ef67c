"""Claude, and servers that speak its Messages API. The only file that imports the SDK, and only when asked.

`params` are those of the Messages API, as they go into `messages.create`. Every failure is an LlmError with a
kind; no message holds a key. What an answer used is always given back, also when its text is of no use.
"""

from __future__ import annotations

import email.utils
import functools
import ipaddress
import json
import os
import re
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import urlsplit

from core.errors import LlmError
from core.types import encodable

if TYPE_CHECKING:
    import anthropic
    from pydantic import BaseModel

T = TypeVar("T")
Model = TypeVar("Model", bound="BaseModel")

ANTHROPIC = "https://api.anthropic.com"
ENDPOINT_KEY = "RANKSCOPE_ENDPOINT_KEY"
WHOLE = ("end_turn", "stop_sequence")
"""Stop reasons of an answer that came to its end."""
_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", ENDPOINT_KEY)
# A batch of 256 MB takes longer to hand over than an answer takes to come.
_SUBMIT_SECONDS = 600.0
# More tokens than any request has: a server that says so has not counted.
_MOST_TOKENS = 1 << 40


@dataclass(frozen=True)
class Usage:
    """Tokens of one or more requests, as they are billed: the four parts of the prompt, and the output."""

    input: int = 0  # prompt tokens neither written to nor read from the cache
    cache_write: int = 0  # written for 5 minutes
    cache_write_1h: int = 0
    cache_read: int = 0
    output: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))

    @property
    def prompt(self) -> int:
        """All tokens but the output."""
        return self.input + self.cache_write + self.cache_write_1h + self.cache_read


@dataclass(frozen=True)
class Reply:
    """One answer. `stop` is the API's stop_reason: "end_turn" for a whole one, None for a cut one."""

    text: str  # the text blocks joined and stripped; thinking is left out
    stop: str | None
    usage: Usage
    model: str
    request_id: str


@dataclass(frozen=True)
class ModelFacts:
    """What a server says of a model. `known` is False, and the rest empty, where it says nothing."""

    id: str
    known: bool = False
    max_input_tokens: int | None = None
    max_tokens: int | None = None
    structured_outputs: bool | None = None
    citations: bool | None = None
    batch: bool | None = None
    # Params that switch thinking off, or low where it cannot be: thinking counts into max_tokens.
    quiet: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Citation:
    """A span of what was sent: [start, end) in content blocks, or in characters of a document's text."""

    source: int  # which search_result, or which document, of the request, from 0
    start: int
    end: int
    by: Literal["block", "char"]
    cited_text: str


@dataclass(frozen=True)
class TextDelta:
    text: str
    block: int = field(default=0, compare=False)  # the place of its text block in the answer


@dataclass(frozen=True)
class CitationDelta:
    """Belongs to the whole text block of the same number; the API sends it before the block's text."""

    citation: Citation
    block: int = field(default=0, compare=False)


@dataclass(frozen=True)
class Done:
    reply: Reply


@dataclass(frozen=True)
class BatchState:
    """`counts` are requests by "processing", "succeeded", "errored", "canceled", "expired"; all but the first
    stay 0 until the batch has ended."""

    id: str
    status: str  # "in_progress", "canceling" or "ended"
    counts: Mapping[str, int]
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True)
class BatchResult:
    """One request of a batch; `again` says whether it is worth asking once more."""

    id: str
    kind: Literal["succeeded", "errored", "canceled", "expired"]
    reply: Reply | None
    error: str
    again: bool


class Claude:
    """A Messages API at one address; safe to use from several threads.

    `base_url` "" is Anthropic, or where ANTHROPIC_BASE_URL points. Another address gets RANKSCOPE_ENDPOINT_KEY
    or the word "none", and never what belongs to Anthropic. `retries` are made on overload, rate limits, server
    errors and lost connections; not after `timeout` seconds of silence, since what was asked may be answered,
    and paid, all the same. A server that asks to wait longer than `patience` seconds before a retry gets none:
    LlmError "busy" then says how long it asked for. The defaults suit a person who waits; a job gives it minutes.

    Raises LlmError (kind "request") for an address that is none.
    """

    def __init__(
        self, base_url: str = "", retries: int = 2, timeout: float = 60.0, patience: float = 20.0
    ) -> None:
        self._own = not base_url
        self.address = _address(base_url or os.environ.get("ANTHROPIC_BASE_URL") or ANTHROPIC)
        self._retries = retries
        self._timeout = timeout
        self._patience = patience

    def __repr__(self) -> str:
        return f"Claude({self.address!r})"

    @property
    def local(self) -> bool:
        """Whether requests stay on this machine."""
        host = urlsplit(self.address).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    @functools.cached_property
    def _client(self) -> anthropic.Anthropic:
        missing = "" if not self._own else missing_key()
        if missing:
            raise LlmError(missing, "key")
        import anthropic

        # All requests share one pool of connections: a client of its own costs each caller 30 ms.
        try:
            return anthropic.Anthropic(
                api_key=None if self._own else os.environ.get(ENDPOINT_KEY, "").strip() or "none",
                base_url=self.address,
                default_headers=None if self._own else _without_custom_headers(),
                max_retries=self._retries,
                timeout=anthropic.Timeout(self._timeout, connect=min(self._timeout, 10.0)),
                http_client=_connections(),
                middleware=[_bounded_retries(self._patience)],
            )
        except Exception as error:
            raise self._clear(error, self.address) from None

    def _call(self, ask: Callable[[anthropic.Anthropic], T], what: str) -> T:
        client = self._client
        try:
            return ask(client)
        except Exception as error:
            raise self._clear(error, what) from None  # the SDK's error holds request and key

    # -- models ------------------------------------------------------------------------------------------

    def facts(self, model: str) -> ModelFacts:
        """What the server says of `model`, asked once per process; `known` False where it has no such page.

        Raises LlmError when the server cannot be asked at all (no key, no connection, overloaded).
        """
        place = (self.address, model)
        if place not in _FACTS:
            _FACTS[place] = self._facts(model)
        return _FACTS[place]

    def _facts(self, model: str) -> ModelFacts:
        try:
            told = self._call(lambda client: client.models.retrieve(model), model)
        except LlmError as error:
            if error.kind in ("gone", "request", "other"):
                return ModelFacts(model)
            raise
        able, longest = getattr(told, "capabilities", None), _limit(told, "max_input_tokens")
        return ModelFacts(
            model,
            able is not None or longest is not None,
            longest,
            _limit(told, "max_tokens"),
            _supports(able, "structured_outputs"),
            _supports(able, "citations"),
            _supports(able, "batch"),
            _quiet(able),
        )

    # -- one answer --------------------------------------------------------------------------------------

    def ask(self, params: Mapping[str, Any]) -> Reply:
        """One answer, whole. Look at `stop` before using its text."""
        message = self._call(lambda client: client.messages.create(**params), params["model"])
        return self._reply(message, getattr(message, "_request_id", None))

    def parse(self, params: Mapping[str, Any], schema: type[Model]) -> tuple[Model | None, Reply]:
        """An answer in the form of `schema`; None for one that is refused, cut off or of another form.

        Bounds (numbers, lengths) reach the model as words only; pydantic checks them here.
        """
        import anthropic
        import pydantic

        form = {"type": "json_schema", "schema": anthropic.transform_schema(schema)}
        config = {**params.get("output_config", {}), "format": form}
        reply = self.ask({**params, "output_config": config})
        if reply.stop != "end_turn":
            return None, reply
        try:
            return schema.model_validate_json(reply.text), reply
        except pydantic.ValidationError:
            return None, reply

    def stream(
        self, params: Mapping[str, Any]
    ) -> Generator[TextDelta | CitationDelta | Done, None, None]:
        """The answer as it is written; the last event is Done. Closing the iterator ends the request.

        Raises LlmError: kind "cut" for a stream that ends without a stop reason.
        """
        client = self._client
        what = params["model"]
        try:
            with client.messages.stream(**params) as events:
                block = 0
                for event in events:
                    if event.type == "content_block_start":
                        block = event.index
                    elif event.type == "text":
                        yield TextDelta(encodable(event.text), block)
                    elif event.type == "citation":
                        citation = _citation(event.citation)
                        if citation:
                            yield CitationDelta(citation, block)
                message, request_id = events.get_final_message(), events.request_id
        except Exception as error:
            raise self._clear(error, what) from None
        reply = self._reply(message, request_id)
        if reply.stop is None:
            raise LlmError(_cut(self.address, "it ended without saying why"), "cut", again=True)
        yield Done(reply)

    def count_tokens(self, params: Mapping[str, Any]) -> int:
        """Prompt tokens of `params` as the server counts them: free of charge, with a rate limit of its own."""
        counted = ("model", "messages", "system", "tools", "tool_choice", "thinking", "output_config")
        asked = {name: params[name] for name in counted if name in params}
        told = self._call(lambda client: client.messages.count_tokens(**asked), params["model"])
        count = _limit(told, "input_tokens")
        if count is None:
            raise self._strange()
        return count

    # -- batches -----------------------------------------------------------------------------------------

    def submit(self, requests: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
        """Hand over (id, params) pairs, ids of at most 64 characters out of [a-zA-Z0-9_-]; returns the batch's id.

        Never repeated by itself: where the answer is lost or is none (kind "timeout", "network", "cut" or "other") the
        batch may exist.
        """
        together: Any = [{"custom_id": name, "params": dict(params)} for name, params in requests]
        batch = self._call(
            lambda client: client.with_options(max_retries=0).messages.batches.create(
                requests=together, timeout=_SUBMIT_SECONDS
            ),
            "batches",
        )
        name = getattr(batch, "id", None)
        if not isinstance(name, str) or not name:
            raise self._strange()  # it may exist all the same
        return name

    def batch(self, batch_id: str) -> BatchState:
        return self._state(
            self._call(lambda client: client.messages.batches.retrieve(batch_id), batch_id)
        )

    def cancel(self, batch_id: str) -> None:
        """Ask for an end; what is answered already stays, and is paid."""
        self._call(lambda client: client.messages.batches.cancel(batch_id), batch_id)

    def results(self, batch_id: str) -> Iterator[BatchResult]:
        """The results of an ended batch, in any order.

        Raises LlmError: kind "gone" for a batch that has none (not ended, or older than 29 days).
        """
        lines = self._call(lambda client: client.messages.batches.results(batch_id), batch_id)
        try:
            for line in lines:
                yield self._result(line)
        except LlmError:
            raise
        except Exception as error:
            raise self._clear(error, batch_id) from None

    def _state(self, batch: Any) -> BatchState:
        try:
            counts = {name: count or 0 for name, count in dict(batch.request_counts).items()}
            state = BatchState(
                batch.id, batch.processing_status, counts, batch.created_at, batch.expires_at
            )
        except (AttributeError, TypeError, ValueError):
            raise self._strange() from None
        times = isinstance(state.created_at, datetime) and isinstance(state.expires_at, datetime)
        if not (times and state.status in _BATCH_STATES):
            raise self._strange()
        return state

    def _result(self, line: Any) -> BatchResult:
        try:
            return self._read_result(line)
        except (AttributeError, TypeError, LlmError):  # one line only: the others are paid for too
            name = str(getattr(line, "custom_id", ""))
            return BatchResult(name, "errored", None, "what the server gave cannot be read", True)

    def _read_result(self, line: Any) -> BatchResult:
        result = line.result
        match result.type:
            case "succeeded":
                return BatchResult(
                    line.custom_id, "succeeded", self._reply(result.message, None), "", False
                )
            case "errored":
                error = result.error.error
                again = error.type in (
                    "api_error",
                    "overloaded_error",
                    "rate_limit_error",
                    "timeout_error",
                )
                return BatchResult(line.custom_id, "errored", None, _shown(error.message), again)
            case "canceled":
                return BatchResult(line.custom_id, "canceled", None, "the batch was stopped", True)
            case _:
                return BatchResult(line.custom_id, "expired", None, "not answered within 24 hours", True)

    # -- answers and errors, translated ------------------------------------------------------------------

    def _reply(self, message: Any, request_id: str | None) -> Reply:
        try:
            text = "".join(block.text for block in message.content if block.type == "text")
            usage = _usage(getattr(message, "usage", None))
            stop = message.stop_reason
            return Reply(
                encodable(text).strip(),
                stop if isinstance(stop, str) else None,
                usage,
                str(message.model),
                request_id or "",
            )
        except (AttributeError, TypeError):
            raise self._strange() from None

    def _strange(self) -> LlmError:
        return LlmError(
            f"{self.address} did not answer as the Messages API does: check that the address is that of an "
            "Anthropic-compatible server"
        )

    def _clear(self, error: Exception, what: str) -> LlmError:
        """The SDK's error as one message: the reason, the server's own words, the remedy."""
        import anthropic

        what = _shown(what)
        if isinstance(error, anthropic.APIStatusError) and 300 <= error.status_code < 400:
            message = f"{self.address} sends requests on to another address: give that address itself"
            return LlmError(message, "request")
        if isinstance(error, anthropic.APIStatusError):
            kind = _kind(error)
            told = _shown(error.api_message or error.message)
            status = "" if error.status_code == 200 else f" ({error.status_code})"
            message = (
                f"{self.address}: {_REASONS[kind]}{status}: {told}; {self._remedy(kind, what, error)}"
            )
            return LlmError(message, kind, again=kind in ("busy", "timeout"))
        if isinstance(error, anthropic.APITimeoutError) or "Timeout" in type(error).__name__:
            message = f"{self.address} was silent for {self._timeout:g} s; try again later"
            return LlmError(message, "timeout", again=True)
        if isinstance(error, anthropic.APIConnectionError):
            message = (
                f"no connection to {self.address}: check the network, and that the address is right"
            )
            return LlmError(message, "network", again=True)
        if isinstance(error, anthropic.CredentialsError):
            return LlmError(f"{_shown(error)}; {_SET_KEY}", "key")
        if type(error) is anthropic.AnthropicError:
            return LlmError(f"{what} has no results: it has not ended, or is older than 29 days", "gone")
        if isinstance(error, _STRANGE | anthropic.APIResponseValidationError):
            return self._strange()
        if isinstance(error, TypeError | ValueError) or type(error).__name__ == "InvalidURL":
            return LlmError(f"the request for {what} cannot be sent: {_shown(error)}", "request")
        return LlmError(
            _cut(self.address, type(error).__name__), "cut", again=True
        )  # the transport's own

    def _remedy(self, kind: str, what: str, error: anthropic.APIStatusError) -> str:
        match kind:
            case "key":
                return _SET_KEY if self._own else f"set {ENDPOINT_KEY} to a key that this server accepts"
            case "money":
                return "add credit, or raise the spend limit, in the account that the key belongs to"
            case "busy":
                wait = _wait(error.response.headers)
                return (
                    f"it asks to wait {wait:.0f} s: try again then" if wait >= 1 else "try again later"
                )
            case "timeout":
                return "try again later"
            case "size":
                return "send less: a shorter document window, fewer passages or smaller batches"
            case "gone":
                return f"check that {what!r} is the right name, and that this server has it"
            case _:
                return f"the request for {what} has to change before it is sent again"


# What the SDK raises on an answer of another shape: no JSON, no message, events in no order.
_STRANGE = json.JSONDecodeError | AssertionError | AttributeError | LookupError | RuntimeError
_BATCH_STATES = ("in_progress", "canceling", "ended")
_FACTS: dict[tuple[str, str], ModelFacts] = {}  # by address and model
_SET_KEY = "set ANTHROPIC_API_KEY to a valid key and start the app again"
_REASONS = {
    "key": "the key was refused",
    "money": "the account cannot pay for this",
    "busy": "too busy to answer",
    "timeout": "no answer in time",
    "size": "the request is too large",
    "gone": "not found",
    "request": "the request was refused",
}


def missing_key(base_url: str = "") -> str:
    """One sentence that says what to set before Claude can be asked; "" when it can.

    Another address than Anthropic's is asked without a key where none is set.
    """
    if base_url or os.environ.get("ANTHROPIC_API_KEY") or os.environ.get("ANTHROPIC_AUTH_TOKEN"):
        return ""
    import anthropic

    try:
        found = anthropic.Anthropic(http_client=_connections()).credentials
    except Exception as error:
        return f"The credentials for Claude cannot be read ({_shown(error)}): {_SET_KEY}."
    return "" if found else f"Claude needs a key: {_SET_KEY}."


@functools.lru_cache(maxsize=1)
def _connections() -> anthropic.DefaultHttpxClient:
    import anthropic

    # A redirect would carry documents to an address that nobody chose.
    return anthropic.DefaultHttpxClient(follow_redirects=False)


def _address(url: str) -> str:
    """`url` as the SDK wants it, without /v1. A password in it would reach settings and logs: refused."""
    try:
        parts = urlsplit(url.strip())
        place = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port or a bracket that is none
        place = False
    if not place or not url.strip().isprintable() or " " in url.strip():
        raise LlmError(
            f"{_shown(ascii(url))} is not the address of a server: write it as http://127.0.0.1:8080",
            "request",
        )
    if parts.username is not None or parts.query:
        raise LlmError(
            f"the address of {parts.hostname} holds more than a place: put its key into {ENDPOINT_KEY}",
            "request",
        )
    path = parts.path.rstrip("/").removesuffix("/messages").removesuffix("/v1")
    return f"{parts.scheme}://{parts.netloc}{path}"


def _without_custom_headers() -> Any:
    """The SDK adds ANTHROPIC_CUSTOM_HEADERS to every request, and a key may stand in them."""
    import anthropic

    lines = os.environ.get("ANTHROPIC_CUSTOM_HEADERS", "").split("\n")
    return {line.split(":", 1)[0].strip(): anthropic.Omit() for line in lines if ":" in line}


def _bounded_retries(patience: float) -> Any:
    """Middleware: no retry after silence, nor where the server asks to wait longer than `patience` seconds.

    The SDK sleeps as long as a server asks, hours included, and a page would hang with it. It would also
    repeat what nobody answered in time: paid twice, and told once.
    """
    import anthropic

    def handle(request: Any, call_next: Any) -> Any:
        try:
            response = call_next(request)
        except anthropic.APITimeoutError:
            raise TimeoutError from None  # of a kind that the SDK does not repeat
        headers = response.http_response.headers
        wait = _wait(headers)
        if wait > patience:
            headers["x-should-retry"] = "false"
        elif wait <= 0:
            headers.pop("retry-after", None)  # the SDK reads it too, and breaks on a day that is none
        return response

    return handle


def _wait(headers: Mapping[str, str]) -> float:
    """Seconds that a server asks to wait before the next try, 0 when it does not say."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            return float(headers[name]) / unit
        except (KeyError, ValueError):
            continue
    try:
        date = email.utils.parsedate_tz(headers.get("retry-after", ""))
        return email.utils.mktime_tz(date) - time.time() if date else 0.0
    except (ValueError, OverflowError):  # no day of any calendar
        return 0.0


def _supports(able: Any, *path: str) -> bool | None:
    """What a server says of a capability; None where it leaves it out, as compatible servers may."""
    for name in path:
        able = getattr(able, name, None)
    return getattr(able, "supported", None)


def _quiet(able: Any) -> dict[str, Any]:
    if not _supports(able, "thinking"):
        return {}
    for way in ("disabled", "between_tools"):
        if _supports(able, "thinking", "types", way):
            return {"thinking": {"type": way}}
    return {"output_config": {"effort": "low"}} if _supports(able, "effort", "low") else {}


def _usage(usage: Any) -> Usage:
    """Counters that a server leaves out, or gives as what is no count, are 0."""

    def count(of: Any, name: str) -> int:
        value = getattr(of, name, None)
        return value if type(value) is int and 0 <= value < _MOST_TOKENS else 0

    hour = count(getattr(usage, "cache_creation", None), "ephemeral_1h_input_tokens")
    return Usage(
        count(usage, "input_tokens"),
        max(count(usage, "cache_creation_input_tokens") - hour, 0),
        hour,
        count(usage, "cache_read_input_tokens"),
        count(usage, "output_tokens"),
    )


def _limit(told: Any, name: str) -> int | None:
    """A number of tokens that a server names; None for what can be none."""
    value = getattr(told, name, None)
    return value if type(value) is int and 0 < value < _MOST_TOKENS else None


def _citation(one: Any) -> Citation | None:
    """None for kinds whose sources are never sent from here (pages of a PDF, the web), or without a place."""
    source = getattr(one, "document_index", None)
    by: Literal["block", "char"] = "block"
    if one.type == "char_location":
        by, place = "char", (one.start_char_index, one.end_char_index)
    elif one.type in ("search_result_location", "content_block_location"):
        place = (one.start_block_index, one.end_block_index)
        source = getattr(one, "search_result_index", source)
    else:
        return None
    if not all(type(number) is int for number in (source, *place)):
        return None
    return Citation(source, *place, by, str(one.cited_text or ""))  # type: ignore[arg-type]


def _kind(error: anthropic.APIStatusError) -> str:
    status, told, code = error.status_code, error.type or "", error.error_code or ""
    words = f"{told} {error.api_message or ''} {_error_type(error)}".lower()
    if status == 402 or told == "billing_error" or "spend_limit" in code or "credit balance" in words:
        return "money"
    if status in (401, 403) or told in ("authentication_error", "permission_error"):
        return "key"
    if status == 413 or "too long" in words or "exceed_context_size" in words:
        return "size"
    if status in (404, 405, 410, 501) or told == "not_found_error":
        return "gone"
    if status in (408, 504) or told == "timeout_error":
        return "timeout"
    if (
        status in (409, 429)
        or status >= 500
        or told in ("overloaded_error", "rate_limit_error", "api_error")
    ):
        return "busy"
    return "request"


def _error_type(error: anthropic.APIStatusError) -> str:
    """The error's type where a local server gives one that the API does not know."""
    body = error.body if isinstance(error.body, Mapping) else {}
    inner = body.get("error")
    return str(inner.get("type", "")) if isinstance(inner, Mapping) else ""


def _cut(address: str, reason: str) -> str:
    return f"the answer of {address} was cut off ({reason}); ask again"


def _shown(text: object) -> str:
    """A server's words on one line, cut short, without anything that is or looks like a key."""
    words = " ".join(encodable(str(text)).split())
    for name in _KEYS:
        key = os.environ.get(name, "").strip()
        if key:
            words = words.replace(key, "[key]")
    words = re.sub(r"sk-ant-[\w-]+", "[key]", words)
    words = re.sub(r"(?i)\bbearer\s+\S+", "bearer [key]", words)
    return words if len(words) <= 300 else words[:300] + "…"
