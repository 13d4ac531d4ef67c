"""Claude through the real SDK, against the scripted server."""

from __future__ import annotations

import email.utils
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from core import llm
from core.errors import LlmError
from core.llm import CitationDelta, Claude, Done, TextDelta, Usage, missing_key
from tests.claude_server import (
    KEY,
    ClaudeServer,
    Cut,
    Ends,
    Fault,
    Malformed,
    MaxTokens,
    Refusal,
    StreamError,
    Timeout,
)

MODEL = "claude-haiku-5-5"
QUIET = {"thinking": {"type": "disabled"}}
DOCUMENT = (
    "The lighthouse of Kalvo was built in 1871 by fishermen. " * 50
)  # 2,800 characters: 700 tokens
CHUNK = "<chunk>\nIt was lit by whale oil until electric light came.\n</chunk>\nWhere does it stand?"


def params(**more: Any) -> dict[str, Any]:
    return {
        "model": MODEL,
        "max_tokens": 300,
        **QUIET,
        "system": "You place chunks in documents.",
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": DOCUMENT, "cache_control": {"type": "ephemeral"}},
                    {"type": "text", "text": CHUNK},
                ],
            }
        ],
        **more,
    }


def asked(text: str, **more: Any) -> dict[str, Any]:
    return params(messages=[{"role": "user", "content": text}], **more)


def refused(call: Any) -> LlmError:
    with pytest.raises(LlmError) as caught:
        call()
    return caught.value


# -- requests ------------------------------------------------------------------------------------------------


def test_a_request_is_sent_as_it_is_given(claude: ClaudeServer) -> None:
    Claude().ask(params())
    (sent,) = claude.requests
    assert (sent.method, sent.path) == ("POST", "/v1/messages")
    assert sent.body == params()
    assert list(sent.body["messages"][0]["content"][0]) == ["type", "text", "cache_control"]
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.headers["anthropic-version"] == "2026-10-21"
    assert "x-api-key" not in sent.headers
    assert "anthropic-beta" not in sent.headers


def test_an_answer_is_the_text_without_the_thinking_before_it(claude: ClaudeServer) -> None:
    loud = {name: value for name, value in params().items() if name != "thinking"}
    reply = Claude().ask(loud)
    assert reply.text == "This part is about It was lit by whale oil."
    assert reply.stop == "end_turn"
    assert reply.model == MODEL
    assert reply.request_id.startswith("req_")


def test_blocks_of_text_are_joined_and_stripped(claude: ClaudeServer) -> None:
    claude.answer = [(" Oil, ", []), ("then light.\n", [])]
    assert Claude().ask(params()).text == "Oil, then light."


def test_usage_tells_what_the_cache_wrote_and_read(claude: ClaudeServer) -> None:
    client = Claude()
    first, second = client.ask(params()).usage, client.ask(params()).usage
    system, document, rest = 8, 700, claude.tokens(CHUNK)
    output = claude.tokens("This part is about It was lit by whale oil.")
    assert first == Usage(rest, system + document, 0, 0, output)
    assert second == Usage(rest, 0, 0, system + document, output)
    assert first.prompt == second.prompt == system + document + rest


def test_usage_tells_the_hour_from_the_five_minutes(claude: ClaudeServer) -> None:
    marked = params()
    marked["messages"][0]["content"][0]["cache_control"]["ttl"] = "1h"
    assert Claude().ask(marked).usage.cache_write_1h == 708
    assert Claude().ask(marked).usage == Usage(claude.tokens(CHUNK), 0, 0, 708, 11)


def test_counters_a_server_leaves_out_are_nought(claude: ClaudeServer) -> None:
    body = (
        '{"id": "x", "type": "message", "role": "assistant", "model": "small", "stop_reason": "end_turn", '
        '"content": [{"type": "text", "text": "Yes"}], "usage": {"input_tokens": 7, "output_tokens": 1}}'
    )
    claude.fail(Fault(200, body=body))
    assert Claude().ask(params()).usage == Usage(input=7, output=1)


def test_usages_add() -> None:
    assert Usage(1, 2, 3, 4, 5) + Usage(10, 20, 30, 40, 50) == Usage(11, 22, 33, 44, 55)
    assert Usage(1, 2, 3, 4, 5).prompt == 10


def test_tokens_are_counted_as_they_are_billed(claude: ClaudeServer) -> None:
    client = Claude()
    count = client.count_tokens(params(stop_sequences=["\n"]))
    assert set(claude.requests[0].body) == {"model", "system", "messages", "thinking"}
    assert claude.requests[0].path == "/v1/messages/count_tokens"
    assert count == client.ask(params()).usage.prompt


def test_one_client_serves_several_threads(claude: ClaudeServer) -> None:
    claude.latency = 0.05
    client, answers = Claude(), []
    threads = [
        threading.Thread(target=lambda n=n: answers.append(client.ask(asked(f"word{n}")).text))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [f"This part is about word{n}." for n in range(8)]
    assert claude.peak_in_flight > 1


def test_the_sdk_is_loaded_only_when_claude_is_asked() -> None:
    code = "import sys, core.llm, core.prices; core.llm.Claude('http://127.0.0.1:1'); assert 'anthropic' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])


# -- retries -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [Fault(429, retry_after_ms=50), Fault(529, retry_after=0.05)])
def test_a_retry_waits_as_long_as_the_server_asks(claude: ClaudeServer, fault: Fault) -> None:
    claude.fail(fault)
    assert Claude().ask(params()).stop == "end_turn"
    first, second = claude.requests
    assert second.headers["x-stainless-retry-count"] == "1"
    assert 0.05 <= second.at - first.at < 0.3  # the SDK's own back-off is at least 0.375 s


def test_overload_and_server_errors_are_tried_again(claude: ClaudeServer) -> None:
    claude.fail(Fault(529, retry_after_ms=1), Fault(500, retry_after_ms=1))
    assert Claude(retries=2).ask(params()).stop == "end_turn"
    assert len(claude.asked) == 3


@pytest.mark.parametrize("status", [429, 529, 500, 503])
def test_what_stays_busy_says_so(claude: ClaudeServer, status: int) -> None:
    claude.fail(*[Fault(status, retry_after_ms=1)] * 3)
    error = refused(lambda: Claude(retries=2).ask(params()))
    assert (error.kind, error.again) == ("busy", True)
    assert f"too busy to answer ({status})" in str(error)
    assert len(claude.asked) == 3


@pytest.mark.parametrize(
    "headers",
    [{"retry_after": 3600.0}, {"retry_after_ms": 3_600_000.0}],
    ids=["seconds", "milliseconds"],
)
def test_nobody_waits_for_an_hour(claude: ClaudeServer, headers: dict[str, float]) -> None:
    claude.fail(Fault(429, **headers))
    begun = time.monotonic()
    error = refused(lambda: Claude(retries=5).ask(params()))
    assert time.monotonic() - begun < 5
    assert (error.kind, error.again) == ("busy", True)
    assert "asks to wait 3600 s" in str(error)
    assert len(claude.asked) == 1


def test_how_long_is_too_long_is_the_callers_choice(claude: ClaudeServer) -> None:
    claude.fail(Fault(429, retry_after=0.2))
    assert refused(lambda: Claude(patience=0.1).ask(params())).kind == "busy"
    claude.fail(Fault(429, retry_after=0.2))
    assert Claude(patience=0.3).ask(params()).stop == "end_turn"


def test_a_stream_waits_no_longer_either(claude: ClaudeServer) -> None:
    claude.fail(Fault(529, retry_after=3600))
    begun = time.monotonic()
    assert refused(lambda: list(Claude().stream(params()))).kind == "busy"
    assert time.monotonic() - begun < 5


def test_a_wait_may_be_a_date() -> None:
    in_an_hour = email.utils.formatdate(time.time() + 3600, usegmt=True)
    assert llm._wait({"retry-after": in_an_hour}) == pytest.approx(3600, abs=2)
    assert llm._wait({"retry-after": "soon"}) == 0
    assert llm._wait({}) == 0


def test_silence_ends_at_the_time_out(claude: ClaudeServer) -> None:
    claude.fail(Timeout(30))
    begun = time.monotonic()
    error = refused(lambda: Claude(retries=0, timeout=0.2).ask(params()))
    assert time.monotonic() - begun < 5
    assert (error.kind, error.again) == ("timeout", True)
    assert "silent for 0.2 s" in str(error)


def test_a_lost_connection_is_tried_again(claude: ClaudeServer) -> None:
    claude.fail(Cut())
    assert Claude(retries=1).ask(params()).stop == "end_turn"
    assert len(claude.asked) == 2


def test_no_connection_names_the_address(claude: ClaudeServer) -> None:
    claude.fail(Cut())
    error = refused(lambda: Claude(retries=0).ask(params()))
    assert (error.kind, error.again) == ("network", True)
    assert claude.url in str(error)
    error = refused(lambda: Claude("http://127.0.0.1:9", retries=0).ask(params()))
    assert error.kind == "network"
    assert "http://127.0.0.1:9" in str(error)


# -- refusals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "kind", "remedy"),
    [
        (Fault(400, message="messages: wrong"), "request", "has to change"),
        (Fault(400, message="prompt is too long: 9 tokens > 8 maximum"), "size", "send less"),
        (Fault(400, type="exceed_context_size_error", message="no room"), "size", "send less"),
        (Fault(400, message="Your credit balance is too low"), "money", "add credit"),
        (Fault(401), "key", "set ANTHROPIC_API_KEY"),
        (Fault(402), "money", "add credit"),
        (Fault(403), "key", "set ANTHROPIC_API_KEY"),
        (Fault(413), "size", "send less"),
        (Fault(429, error_code="enforced_spend_limit_reached"), "money", "raise the spend limit"),
        (Fault(504), "timeout", "try again later"),
    ],
    ids=lambda value: (
        f"{value.status}-{value.message or value.error_code}" if isinstance(value, Fault) else ""
    ),
)
def test_an_error_has_a_kind_and_a_remedy(
    claude: ClaudeServer, fault: Fault, kind: str, remedy: str
) -> None:
    claude.fail(fault)
    error = refused(lambda: Claude(retries=0).ask(params()))
    assert error.kind == kind
    assert error.again == (kind == "timeout")
    assert remedy in str(error)
    assert str(fault.status) in str(error)
    assert (fault.message or "scripted") in str(error)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 413])
def test_what_cannot_succeed_is_not_repeated(claude: ClaudeServer, status: int) -> None:
    claude.fail(Fault(status))
    refused(lambda: Claude(retries=3).ask(params()))
    assert len(claude.asked) == 1


def test_an_unknown_model_is_named(claude: ClaudeServer) -> None:
    error = refused(lambda: Claude().ask(params(model="claude-of-old")))
    assert (error.kind, error.again) == ("gone", False)
    assert "check that 'claude-of-old' is the right name" in str(error)


def test_a_parameter_of_another_time_is_refused_here(claude: ClaudeServer) -> None:
    for call in (Claude().ask, lambda given: list(Claude().stream(given))):
        error = refused(lambda call=call: call(params(temperature=0)))
        assert (error.kind, error.again) == ("request", False)
        assert "temperature" in str(error)
    assert claude.requests == []


def test_documents_are_not_carried_to_another_address(claude: ClaudeServer) -> None:
    claude.fail(Fault(307, location=f"{claude.url}/v1/elsewhere"))
    error = refused(lambda: Claude().ask(params()))
    assert error.kind == "request"
    assert "another address" in str(error)
    assert len(claude.requests) == 1


@pytest.mark.parametrize("body", ["<html><body>Welcome</body></html>", '{"hello": 1}', '{"broken'])
def test_another_kind_of_server_is_told_from_claude(claude: ClaudeServer, body: str) -> None:
    claude.fail(Fault(200, body=body))
    error = refused(lambda: Claude().ask(params()))
    assert error.kind == "other"
    assert claude.url in str(error)
    claude.fail(Fault(200, body=body))
    assert refused(lambda: list(Claude().stream(params()))).kind == "other"
    claude.fail(Fault(200, body=body), path="/v1/messages/count_tokens")
    assert refused(lambda: Claude().count_tokens(params())).kind == "other"
    claude.fail(Fault(200, body=body), path="/v1/messages/batches")
    assert refused(lambda: Claude().submit([("a", params())])).kind == "other"


def test_a_refusal_and_a_full_answer_are_replies_with_a_stop_reason(claude: ClaudeServer) -> None:
    claude.fail(Refusal(), MaxTokens(), Ends())
    client = Claude()
    refusal, full, cut = (client.ask(params()) for _ in range(3))
    assert (refusal.stop, refusal.text, refusal.usage.prompt > 0) == ("refusal", "", True)
    assert full.stop == "max_tokens"
    assert "This part is about It was lit by whale oil.".startswith(full.text)
    assert cut.stop is None


# -- keys ----------------------------------------------------------------------------------------------------


def test_without_a_key_nothing_is_asked(
    claude: ClaudeServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path))
    error = refused(lambda: Claude().ask(params()))
    assert (error.kind, error.again) == ("key", False)
    assert str(error) == missing_key()
    assert "set ANTHROPIC_API_KEY" in missing_key()
    assert refused(lambda: list(Claude().stream(params()))).kind == "key"
    assert refused(lambda: Claude().facts(MODEL)).kind == "key"
    assert claude.requests == []


def test_a_broken_profile_is_told(
    claude: ClaudeServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path))
    monkeypatch.setenv("ANTHROPIC_PROFILE", "work")
    assert "cannot be read" in missing_key()
    assert refused(lambda: Claude().ask(params())).kind == "key"
    assert claude.requests == []


def test_a_key_or_another_address_is_enough(
    monkeypatch: pytest.MonkeyPatch, claude: ClaudeServer
) -> None:
    assert missing_key() == ""
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    assert missing_key("http://127.0.0.1:8080") == ""
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token-of-mine")
    assert missing_key() == ""
    Claude().ask(params())
    assert claude.requests[0].headers["authorization"] == "Bearer token-of-mine"


def every_call(client: Claude, claude: ClaudeServer) -> None:
    client.ask(params())
    list(client.stream(params()))
    client.count_tokens(params())
    client.facts(MODEL)
    batch = client.submit([("a", params())])
    claude.finish_batches()
    client.batch(batch)
    list(client.results(batch))
    client.cancel(batch)


@pytest.mark.parametrize(("own", "sent"), [("", "none"), ("endpoint-key-77", "endpoint-key-77")])
def test_another_address_never_gets_anthropics_key(
    claude: ClaudeServer, monkeypatch: pytest.MonkeyPatch, own: str, sent: str
) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "anthropic-token-55")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", f"x-api-key: {KEY}\nx-team: secret-team")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://elsewhere.invalid")
    if own:
        monkeypatch.setenv("RANKSCOPE_ENDPOINT_KEY", own)
    every_call(Claude(claude.url), claude)
    assert len(claude.requests) == 9
    for request in claude.requests:
        assert request.headers["authorization"] == f"Bearer {sent}"
        everything = f"{request.headers}{request.body}{request.path}"
        for secret in (KEY, "anthropic-token-55", "secret-team"):
            assert secret not in everything


def test_anthropic_never_gets_the_endpoints_key(
    claude: ClaudeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKSCOPE_ENDPOINT_KEY", "endpoint-key-77")
    every_call(Claude(), claude)
    assert {one.headers["authorization"] for one in claude.requests} == {f"Bearer {KEY}"}
    assert not any("endpoint-key-77" in str(one.headers) for one in claude.requests)


@pytest.mark.parametrize("echo", [KEY, "sk-ant-api03-of_another", "Bearer abc.def"])
def test_no_message_holds_a_key(
    claude: ClaudeServer, echo: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    claude.fail(*[Fault(401, message=f"no such key: {echo}!")] * 2)
    client = Claude()
    for call in (lambda: client.ask(params()), lambda: list(client.stream(params()))):
        try:
            call()
        except LlmError as error:
            shown = f"{error}{error!r}{traceback.format_exc()}{client!r}{vars(client)}{caplog.text}"
    assert "no such key: " in shown
    assert "[key]" in shown
    assert echo.removeprefix("Bearer ") not in shown
    assert KEY not in shown


def test_a_long_answer_of_a_broken_server_is_shortened(claude: ClaudeServer) -> None:
    claude.fail(Fault(400, message="word " * 1000))
    assert len(str(refused(lambda: Claude().ask(params())))) < 600


# -- addresses -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "address", "local"),
    [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080", True),
        (" http://localhost:8080/v1/ ", "http://localhost:8080", True),
        ("http://[::1]:8080/v1/messages", "http://[::1]:8080", True),
        ("https://models.example.org/claude/", "https://models.example.org/claude", False),
        ("http://192.168.1.5", "http://192.168.1.5", False),
    ],
)
def test_an_address_says_where_requests_go(given: str, address: str, local: bool) -> None:
    client = Claude(given)
    assert (client.address, client.local) == (address, local)
    assert repr(client) == f"Claude('{address}')"


def test_the_environment_may_point_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:8080/")
    assert (Claude().address, Claude().local) == ("http://127.0.0.1:8080", True)
    monkeypatch.delenv("ANTHROPIC_BASE_URL")
    assert (Claude().address, Claude().local) == ("https://api.anthropic.com", False)


@pytest.mark.parametrize("given", ["localhost:8080", "ftp://models.example.org", "http://", "claude"])
def test_what_is_no_address_is_told(given: str) -> None:
    error = refused(lambda: Claude(given))
    assert error.kind == "request"
    assert given in str(error)


@pytest.mark.parametrize(
    "given", ["http://me:hunter2@models.example.org", "http://models.example.org?key=hunter2"]
)
def test_an_address_may_hold_no_key(given: str) -> None:
    error = refused(lambda: Claude(given))
    assert "RANKSCOPE_ENDPOINT_KEY" in str(error)
    assert "hunter2" not in str(error)


# -- facts ---------------------------------------------------------------------------------------------------


def test_facts_say_how_a_model_is_kept_quiet(claude: ClaudeServer) -> None:
    client = Claude()
    assert client.facts("claude-haiku-5-5").quiet == {"thinking": {"type": "disabled"}}
    assert client.facts("claude-sonnet-5-5").quiet == {"thinking": {"type": "between_tools"}}
    assert client.facts("claude-opus-5-5").quiet == {"output_config": {"effort": "low"}}
    old = client.facts("claude-haiku-4-5")
    assert (old.known, old.max_input_tokens, old.max_tokens) == (True, 200_000, 128_000)
    assert (old.structured_outputs, old.citations, old.batch) == (True, True, True)


def test_facts_are_asked_for_once(claude: ClaudeServer) -> None:
    first = Claude().facts(MODEL)
    assert Claude().facts(MODEL) is first
    assert [one.path for one in claude.requests] == [f"/v1/models/{MODEL}"]


def test_a_server_that_knows_no_models_is_no_error(claude: ClaudeServer) -> None:
    claude.models = {}
    facts = Claude(claude.url).facts("small")
    assert (facts.id, facts.known, facts.max_input_tokens, facts.quiet) == ("small", False, None, {})


def test_a_server_that_says_little_is_no_error(claude: ClaudeServer) -> None:
    claude.fail(Fault(200, body='{"id": "small", "object": "model"}'), path="/v1/models/small")
    assert not Claude().facts("small").known
    some = '{"id": "half", "max_tokens": 512, "capabilities": {"batch": {"supported": false}}}'
    claude.fail(Fault(200, body=some), path="/v1/models/half")
    facts = Claude().facts("half")
    assert (facts.known, facts.max_tokens, facts.batch, facts.citations) == (True, 512, False, None)
    assert facts.quiet == {}


def test_facts_that_could_not_be_had_are_asked_for_again(claude: ClaudeServer) -> None:
    claude.fail(Fault(529), path=f"/v1/models/{MODEL}")
    assert refused(lambda: Claude(retries=0).facts(MODEL)).kind == "busy"
    assert Claude().facts(MODEL).known


# -- structured output ---------------------------------------------------------------------------------------


class Ranking(BaseModel):
    order: list[int] = Field(max_length=3)


def test_structured_output_is_parsed(claude: ClaudeServer) -> None:
    claude.write = lambda body: '{"order": [2, 0, 1]}'
    ranking, reply = Claude().parse(params(output_config={"effort": "low"}), Ranking)
    assert ranking == Ranking(order=[2, 0, 1])
    assert reply.usage.output == claude.tokens('{"order": [2, 0, 1]}')
    config = claude.asked[0]["output_config"]
    assert config["effort"] == "low"
    assert config["format"]["type"] == "json_schema"
    schema = config["format"]["schema"]
    assert schema["properties"]["order"]["items"] == {"type": "integer"}
    assert (schema["required"], schema["additionalProperties"]) == (["order"], False)


@pytest.mark.parametrize("fault", [Malformed(), Malformed("Gladly!"), Refusal(), MaxTokens(), Ends()])
def test_an_answer_of_another_form_is_none_but_paid(claude: ClaudeServer, fault: Any) -> None:
    claude.write = lambda body: '{"order": [2, 0, 1]}'
    claude.fail(fault)
    ranking, reply = Claude().parse(params(), Ranking)
    assert ranking is None
    assert reply.usage.prompt > 700


def test_bounds_of_the_form_are_checked_here(claude: ClaudeServer) -> None:
    claude.write = lambda body: '{"order": [3, 2, 0, 1]}'
    assert Claude().parse(params(), Ranking)[0] is None


# -- streams -------------------------------------------------------------------------------------------------

SOURCES = [
    {
        "type": "search_result",
        "source": f"passage-{n}",
        "title": "Kalvo",
        "content": [{"type": "text", "text": f"Sentence {n}.{m}. "} for m in range(3)],
        "citations": {"enabled": True},
    }
    for n in range(2)
]


def test_a_stream_gives_text_then_the_reply(claude: ClaudeServer) -> None:
    *texts, done = Claude().stream(params())
    assert len(texts) > 2
    assert all(isinstance(one, TextDelta) for one in texts)
    whole = "".join(one.text for one in texts)
    assert whole == "This part is about It was lit by whale oil."
    assert isinstance(done, Done)
    assert (done.reply.text, done.reply.stop, done.reply.model) == (whole, "end_turn", MODEL)
    assert done.reply.usage == Usage(claude.tokens(CHUNK), 708, 0, 0, 11)
    assert done.reply.request_id.startswith("req_")
    assert claude.asked[0]["stream"] is True


@pytest.mark.parametrize("first", [True, False])
def test_citations_come_with_the_block_they_belong_to(claude: ClaudeServer, first: bool) -> None:
    claude.citations_first = first
    place = {"type": "search_result_location", "search_result_index": 1}
    claude.answer = [
        ("Oil first", [{**place, "start_block_index": 0, "end_block_index": 2}]),
        (", and then", []),
        (" light.", [{**place, "search_result_index": 0, "start_block_index": 2, "end_block_index": 3}]),
    ]
    content = [*SOURCES, {"type": "text", "text": "What lit it?"}]
    events = list(Claude().stream(params(messages=[{"role": "user", "content": content}])))
    cites = [one.citation for one in events if isinstance(one, CitationDelta)]
    assert [(one.source, one.start, one.end, one.by) for one in cites] == [
        (1, 0, 2, "block"),
        (0, 2, 3, "block"),
    ]
    assert cites[0].cited_text == "Sentence 1.0. Sentence 1.1. "
    blocks: dict[int, str] = {}
    for one in events:
        if isinstance(one, TextDelta):
            blocks[one.block] = blocks.get(one.block, "") + one.text
    assert blocks == {0: "Oil first", 1: ", and then", 2: " light."}
    assert [one.block for one in events if isinstance(one, CitationDelta)] == [0, 2]
    assert isinstance(events[0], CitationDelta) == first
    assert claude.asked[0]["messages"][0]["content"][:2] == SOURCES


def test_citations_of_documents_are_in_characters_or_blocks(claude: ClaudeServer) -> None:
    cited = {"citations": {"enabled": True}}
    plain = {"type": "text", "media_type": "text/plain", "data": "It was lit by oil. Then came light."}
    parts = {
        "type": "content",
        "content": [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}],
    }
    content = [
        {"type": "document", "title": "A", "source": plain, **cited},
        {"type": "document", "title": "B", "source": parts, **cited},
        {"type": "text", "text": "What lit it?"},
    ]
    claude.answer = [
        (
            "Oil",
            [
                {
                    "type": "char_location",
                    "document_index": 0,
                    "start_char_index": 0,
                    "end_char_index": 18,
                }
            ],
        ),
        (
            "Two",
            [
                {
                    "type": "content_block_location",
                    "document_index": 1,
                    "start_block_index": 1,
                    "end_block_index": 2,
                }
            ],
        ),
    ]
    events = Claude().stream(params(messages=[{"role": "user", "content": content}]))
    cites = [one.citation for one in events if isinstance(one, CitationDelta)]
    assert [(one.source, one.start, one.end, one.by, one.cited_text) for one in cites] == [
        (0, 0, 18, "char", "It was lit by oil."),
        (1, 1, 2, "block", "Two."),
    ]


@pytest.mark.parametrize("fault", [Cut(), Ends()])
def test_a_cut_stream_is_an_error_after_its_text(claude: ClaudeServer, fault: Any) -> None:
    claude.fail(fault)
    seen = []

    def read() -> None:
        seen.extend(Claude().stream(params()))

    error = refused(read)
    assert (error.kind, error.again) == ("cut", True)
    assert len(seen) == 2
    assert len(claude.asked) == 1  # streams are not repeated: half of one has been shown


def test_an_error_in_a_stream_keeps_its_kind(claude: ClaudeServer) -> None:
    claude.fail(StreamError("overloaded_error"), StreamError("invalid_request_error"))
    error = refused(lambda: list(Claude().stream(params())))
    assert (error.kind, error.again) == ("busy", True)
    assert "(200)" not in str(error)
    assert refused(lambda: list(Claude().stream(params()))).kind == "request"


def test_a_stream_that_falls_silent_is_a_time_out(claude: ClaudeServer) -> None:
    claude.pace = 5
    error = refused(lambda: list(Claude(timeout=0.2).stream(params())))
    assert (error.kind, error.again) == ("timeout", True)


def test_a_stream_may_be_refused_or_full(claude: ClaudeServer) -> None:
    claude.fail(Refusal(), MaxTokens())
    *_, refusal = Claude().stream(params())
    *_, full = Claude().stream(params())
    assert isinstance(refusal, Done)
    assert isinstance(full, Done)
    assert (refusal.reply.stop, refusal.reply.text) == ("refusal", "")
    assert full.reply.stop == "max_tokens"


def test_a_busy_server_is_asked_again_before_a_stream_begins(claude: ClaudeServer) -> None:
    claude.fail(Fault(529, retry_after_ms=10))
    *_, done = Claude().stream(params())
    assert isinstance(done, Done)
    assert len(claude.asked) == 2


def test_closing_a_stream_ends_the_request(claude: ClaudeServer) -> None:
    claude.pace = 0.02
    claude.write = lambda body: "word " * 2000
    stream = Claude().stream(params(max_tokens=5000))
    assert next(stream) == TextDelta("word word wo")
    stream.close()
    until = time.monotonic() + 5
    while claude.in_flight and time.monotonic() < until:
        time.sleep(0.01)
    assert claude.in_flight == 0


# -- batches -------------------------------------------------------------------------------------------------


def test_a_batch_goes_from_submitted_to_results(claude: ClaudeServer) -> None:
    client = Claude()
    batch_id = client.submit([(name, asked(f"about {name}")) for name in ("a", "b", "c", "d", "e")])
    sent = claude.requests[0].body["requests"]
    assert sent[0] == {"custom_id": "a", "params": asked("about a")}
    running = client.batch(batch_id)
    assert (running.id, running.status, running.counts["processing"]) == (batch_id, "in_progress", 5)
    assert (running.expires_at - running.created_at).total_seconds() == 86_400
    assert refused(lambda: list(client.results(batch_id))).kind == "gone"

    claude.finish_batches(
        errored={"b": "invalid_request_error", "c": "overloaded_error"}, expired=["d"], canceled=["e"]
    )
    ended = client.batch(batch_id)
    assert ended.status == "ended"
    assert dict(ended.counts) == {
        "processing": 0,
        "succeeded": 1,
        "errored": 2,
        "canceled": 1,
        "expired": 1,
    }
    results = list(client.results(batch_id))
    assert [one.id for one in results] == ["e", "d", "c", "b", "a"]
    by_id = {one.id: one for one in results}
    assert {one.id: (one.kind, one.again) for one in results} == {
        "a": ("succeeded", False),
        "b": ("errored", False),
        "c": ("errored", True),
        "d": ("expired", True),
        "e": ("canceled", True),
    }
    assert by_id["a"].reply is not None
    assert by_id["a"].reply.text == "This part is about about a."
    assert by_id["b"].reply is None
    assert by_id["b"].error == "scripted"


def test_a_batch_can_be_stopped(claude: ClaudeServer) -> None:
    client = Claude()
    batch_id = client.submit([("a", params())])
    client.cancel(batch_id)
    assert client.batch(batch_id).status == "canceling"
    claude.finish_batches()
    assert [one.kind for one in client.results(batch_id)] == ["canceled"]


def test_a_batch_is_not_handed_over_twice(claude: ClaudeServer) -> None:
    claude.fail(Fault(529, retry_after_ms=1), path="/v1/messages/batches")
    assert refused(lambda: Claude(retries=3).submit([("a", params())])).kind == "busy"
    assert len(claude.requests) == 1


def test_an_unknown_batch_is_gone(claude: ClaudeServer) -> None:
    error = refused(lambda: Claude().batch("msgbatch_9"))
    assert error.kind == "gone"
    assert "'msgbatch_9'" in str(error)
