"""Hosted embedding models and rerankers: their addresses, keys and the one way in which they are asked.

Plain JSON over HTTPS through `requests` with urllib3's `Retry`, both installed with Streamlit; the
providers' own packages would bring 12 to 46 further ones. Keys come from the environment only and
are in no message. Checked against a scripted server on loopback, never run live.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from core.errors import RankscopeError
from core.types import encodable

TIMEOUT = 60.0
"""Seconds that one answer may take."""

PATIENT = 5
"""Retries of work in the background, half a minute if the provider names no wait."""

PROMPT = 2
"""Retries while a person waits for a search."""

_CONNECT = 10.0
_PAUSE = 1.0  # seconds before the third try, doubled for each further one; the second comes at once
_LONGEST_WAIT = 60  # seconds that a provider's retry-after may ask for and get
_AGAIN = (408, 429, 500, 502, 503, 504, 529)
_DETAIL = 200  # characters of a provider's own message that are passed on
_BYTES_A_TOKEN = 4
_MOST_CHARGED = 1e12  # tokens or units: no request has more


class HostedError(RankscopeError):
    """A hosted model gave no usable answer; says the reason and the remedy, never the key."""


@dataclass(frozen=True)
class Service:
    """A provider: `keys` and `url_variable` are environment variables, the first key that is set counts."""

    name: str
    keys: tuple[str, ...]
    url: str
    url_variable: str
    header: str = "Authorization"
    prefix: str = "Bearer "
    other_urls: tuple[tuple[str, str], ...] = ()
    """(what a key begins with, where such keys are served)"""

    def missing_key(self) -> str:
        """Blank when a key is set, else one sentence that says which variable to set."""
        return "" if self._key() else f"{self.name} needs a key: set {self._named} and start again"

    def post(
        self,
        path: str,
        body: Mapping[str, Any],
        timeout: float = TIMEOUT,
        retries: int = PATIENT,
    ) -> Any:
        """The answer to a JSON request. Overloads, rate limits and broken connections are tried again,
        a read that timed out once.

        Raises HostedError.
        """
        key = self._key()
        if not key:
            raise HostedError(self.missing_key())
        if not (
            key.isascii() and key.isprintable()
        ):  # no header holds it; http.client would quote it whole
            raise HostedError(
                f"the key in {self._named} has signs that no key has, such as a line's end; copy it again"
            )
        address = self._address(key)
        retry = Retry(
            total=retries,
            read=1,
            status_forcelist=_AGAIN,
            allowed_methods=None,  # the requests change nothing, though they are POSTs
            backoff_factor=_PAUSE,
            backoff_jitter=_PAUSE / 2,
            retry_after_max=_LONGEST_WAIT,
            raise_on_status=False,
        )
        try:
            # A session each: they are not made for several threads, and a handshake is short beside a call.
            with requests.Session() as session:
                session.mount(address, HTTPAdapter(max_retries=retry))
                answer = session.post(
                    address + path,
                    json=body,
                    auth=lambda request: self._signed(request, key),
                    timeout=(_CONNECT, timeout),
                    allow_redirects=False,
                )
        except requests.RequestException as error:
            # "from None": these exceptions hold the request, and with it the key.
            raise HostedError(self._silence(error, address, timeout)) from None
        if answer.status_code != 200:
            raise HostedError(self._refusal(answer, key))
        try:
            return answer.json()
        except ValueError:
            raise HostedError(
                f"{self.name} answered with something that is no JSON; check {self.url_variable} or try again later"
            ) from None

    @property
    def _named(self) -> str:
        return " or ".join(self.keys)

    def _key(self) -> str:
        return next((key for name in self.keys if (key := os.environ.get(name, "").strip())), "")

    def _address(self, key: str) -> str:
        usual = next((url for start, url in self.other_urls if key.startswith(start)), self.url)
        address = (os.environ.get(self.url_variable) or usual).rstrip("/")
        parts = urlsplit(address)
        if not (
            parts.scheme == "https"
            or (parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost", "::1"))
        ):
            raise HostedError(
                f"the address {address!r} of {self.name} is not https, and a key would travel in clear;"
                f" set {self.url_variable} to an https address or take it out"
            )
        return address

    def _signed(self, request: requests.PreparedRequest, key: str) -> requests.PreparedRequest:
        # As `auth`, not as a header: a .netrc entry for the host would replace the header.
        request.headers[self.header] = self.prefix + key
        return request

    def _silence(self, error: Exception, address: str, timeout: float) -> str:
        cause = _innermost(error)
        if isinstance(cause, TimeoutError):
            return f"{self.name} did not answer within {timeout:g} s; check the network connection or try again later"
        return (
            f"{self.name} cannot be reached at {urlsplit(address).hostname} ({type(cause).__name__});"
            f" check the network connection and {self.url_variable}, or try again later"
        )

    def _refusal(self, answer: requests.Response, key: str) -> str:
        status = answer.status_code
        if status in (401, 403):  # their own words may quote the key
            return f"{self.name} does not accept the key in {self._named} ({status}); set a valid one and start again"
        said = _message(answer)
        said = f": {said.replace(key, '…')}" if said else ""
        if status == 429:
            return (
                f"{self.name} has too many requests of this key, also after waiting (429{said});"
                " wait some minutes or raise the limits of your plan"
            )
        if status in _AGAIN:
            return f"{self.name} is overloaded or out of order ({status}{said}); try again later"
        return f"{self.name} refused the request ({status}{said}); check the model's name and your plan"


VOYAGE = Service(
    "Voyage",
    ("VOYAGE_API_KEY",),
    "https://api.voyageai.com/v1",
    "VOYAGE_BASE_URL",
    other_urls=(("al-", "https://ai.mongodb.com/v1"),),
)
GEMINI = Service(
    "Gemini",
    ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "https://generativelanguage.googleapis.com",
    "GOOGLE_GEMINI_BASE_URL",
    header="x-goog-api-key",
    prefix="",
)
COHERE = Service("Cohere", ("CO_API_KEY", "COHERE_API_KEY"), "https://api.cohere.com", "CO_API_URL")


def estimated_tokens(text: str) -> int:
    """A text's tokens, estimated: one for four bytes of UTF-8. The providers' tokenizers are not here.

    English prose has somewhat fewer, code and rare words more.
    """
    return math.ceil(len(encodable(text).encode()) / _BYTES_A_TOKEN)


def seen_characters(text: str, tokens: int) -> int:
    """How many characters of a text its first `tokens` estimated tokens hold."""
    return len(encodable(text).encode()[: tokens * _BYTES_A_TOKEN].decode(errors="ignore"))


def batches(
    texts: Sequence[str],
    most: int,
    tokens: float = math.inf,
    size: Callable[[str], int] = estimated_tokens,
) -> Iterator[list[str]]:
    """The texts in order, in lists of at most `most`; their sizes sum to `tokens` at most, but for a list
    of one text that is more by itself."""
    batch: list[str] = []
    held = 0
    for text in texts:
        needed = size(text)
        if batch and (len(batch) == most or held + needed > tokens):
            yield batch
            batch, held = [], 0
        batch.append(text)
        held += needed
    if batch:
        yield batch


def by_index(service: Service, rows: Any, field: str, count: int) -> list[Any]:
    """`field` of the rows {"index": i, field: …} in the order of their indices.

    Raises HostedError unless there is exactly one row for each index below `count`.
    """
    try:
        found = {row["index"]: row[field] for row in rows}
    except (TypeError, KeyError):
        raise malformed(service, f"rows without index or {field}") from None
    if len(rows) != count or set(found) != set(range(count)):
        raise malformed(service, f"{len(rows)} results for {count} texts")
    return [found[index] for index in range(count)]


def relevances(service: Service, answer: Any, rows: str, count: int) -> list[float]:
    """The scores of a reranker's answer in the order of the texts; raises HostedError unless all are there."""
    if not isinstance(answer, dict):
        raise malformed(service, "no object")
    values = by_index(service, answer.get(rows), "relevance_score", count)
    try:
        scores = [float(value) if isinstance(value, int | float) else math.nan for value in values]
    except OverflowError:
        scores = [math.inf]
    if not all(map(math.isfinite, scores)):
        raise malformed(service, "scores that are no numbers")
    return scores


def charged(answer: Any, *path: str) -> float | None:
    """The number at `path` in what an answer says of its cost; None where there is none. The answer itself
    is paid for, whatever stands there."""
    for name in path:
        answer = answer.get(name) if isinstance(answer, dict) else None
    known = isinstance(answer, int | float) and 0 <= answer < _MOST_CHARGED
    return float(answer) if known else None


def malformed(service: Service, what: str) -> HostedError:
    """The error of an answer that is not as documented."""
    return HostedError(
        f"{service.name} answered with {what}; check {service.url_variable}, or report it if it stays so"
    )


def _message(answer: requests.Response) -> str:
    """What the provider says of an error, in one line, cut."""
    try:
        body = answer.json()
    except ValueError:
        return ""
    if not isinstance(body, dict):
        return ""
    error = body.get("error")
    said = error.get("message") if isinstance(error, dict) else error
    said = said or body.get("detail") or body.get("message") or ""
    return " ".join(str(said).split())[:_DETAIL]


def _innermost(error: BaseException) -> BaseException:
    """What the libraries' exceptions are about; their texts are long and hold addresses."""
    while error.__context__ is not None:
        error = error.__context__
    return error
