"""The scripted server keeps the API's rules, so that what passes against it has a chance against the API."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from core.errors import LlmError
from core.llm import Claude, Usage
from tests.claude_server import ClaudeServer, Fault, chunk_of

MODEL = "claude-haiku-5-5"
LONG = "word " * 1000  # 5,000 characters: 1,250 tokens


def params(*texts: str | dict[str, Any], **more: Any) -> dict[str, Any]:
    blocks = [{"type": "text", "text": one} if isinstance(one, str) else one for one in texts]
    quiet = {"thinking": {"type": "disabled"}}
    return {
        "model": MODEL,
        "max_tokens": 300,
        **quiet,
        "messages": [{"role": "user", "content": blocks}],
        **more,
    }


def marked(text: str, ttl: str = "5m") -> dict[str, Any]:
    return {"type": "text", "text": text, "cache_control": {"type": "ephemeral", "ttl": ttl}}


def test_it_starts_at_once() -> None:
    begun = time.perf_counter()
    server = ClaudeServer()
    server.start()
    took = time.perf_counter() - begun
    server.stop()
    assert took < 0.1


def test_the_cache_is_an_exact_prefix(claude: ClaudeServer) -> None:
    client = Claude()

    def ask(*texts: str | dict[str, Any], **more: Any) -> Usage:
        return client.ask(params(*texts, **more)).usage

    assert ask(marked(LONG), "tail") == Usage(1, 1250, 0, 0, 6)
    assert ask(marked(LONG), "other tail").cache_read == 1250
    assert ask(marked(LONG + "!"), "tail").cache_read == 0
    assert ask("before", marked(LONG)).cache_read == 0
    assert ask(marked(LONG), "tail", system="Now with a system.").cache_read == 0
    sonnet = ask(marked(LONG), "tail", model="claude-sonnet-5-5", thinking={"type": "between_tools"})
    assert sonnet.cache_read == 0


def test_a_longer_prefix_reads_the_shorter_and_writes_the_rest(claude: ClaudeServer) -> None:
    client = Claude()
    client.ask(params(marked(LONG), "a"))
    usage = client.ask(params(marked(LONG), marked("more " * 400, "1h"), "a")).usage
    assert (usage.cache_read, usage.cache_write, usage.cache_write_1h, usage.input) == (1250, 0, 500, 1)


def test_a_prefix_below_the_floor_is_not_cached(claude: ClaudeServer) -> None:
    short = "word " * 409  # 2,045 characters: 512 tokens
    client = Claude()
    assert client.ask(params(marked(short), "a")).usage.cache_write == 512
    claude.cache_floor = 513
    assert client.ask(params(marked(short + " "), "a")).usage == Usage(513, 0, 0, 0, 6)


def test_an_entry_is_readable_once_the_first_answer_has_begun(claude: ClaudeServer) -> None:
    claude.latency = 0.2
    client, usages = Claude(), []

    def ask() -> None:
        usages.append(client.ask(params(marked(LONG), "a")).usage)

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ask()
    assert claude.peak_in_flight == 2
    assert [one.cache_write for one in usages] == [1250, 1250, 0]
    assert [one.cache_read for one in usages] == [0, 0, 1250]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (params("a", model="claude-of-old"), "model: claude-of-old"),
        (params("a", thinking={"type": "between_tools"}), "thinking.type"),
        (params(" "), "non-whitespace"),
        (params(*[marked("a")] * 5), "at most 4"),
        (
            params("a")
            | {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]},
            "last message",
        ),
        (params("word " * 1_000_000), "prompt is too long: 1250000 tokens > 1000000 maximum"),
    ],
)
def test_what_the_api_refuses_is_refused(
    claude: ClaudeServer, wrong: dict[str, Any], message: str
) -> None:
    with pytest.raises(LlmError) as caught:
        Claude().ask(wrong)
    assert message in str(caught.value)


def test_citations_are_for_all_sources_and_not_with_a_form(claude: ClaudeServer) -> None:
    def source(cited: bool) -> dict[str, Any]:
        content = [{"type": "text", "text": "One."}]
        enabled = {"citations": {"enabled": cited}}
        return {"type": "search_result", "source": "p", "title": "t", "content": content, **enabled}

    with pytest.raises(LlmError, match="on all sources or on none"):
        Claude().ask(params(source(True), source(False), "a"))
    form = {"format": {"type": "json_schema", "schema": {"type": "object"}}}
    with pytest.raises(LlmError, match="cannot be used together"):
        Claude().ask(params(source(True), "a", output_config=form))


def test_a_fault_waits_for_its_request(claude: ClaudeServer) -> None:
    claude.fail(Fault(500), on=lambda body: chunk_of(body) == "second")
    client = Claude(retries=0)
    client.ask(params("<chunk>\nfirst\n</chunk>\nWhere?"))
    with pytest.raises(LlmError):
        client.ask(params("<chunk>\nsecond\n</chunk>\nWhere?"))
    client.ask(params("<chunk>\nsecond\n</chunk>\nWhere?"))
    assert [one.status for one in claude.requests] == [200, 500, 200]


def test_an_answer_stops_at_max_tokens(claude: ClaudeServer) -> None:
    claude.write = lambda body: "word " * 100
    reply = Claude().ask(params("a", max_tokens=10))
    assert (reply.stop, reply.usage.output) == ("max_tokens", 10)
    assert reply.text == "word word word word word word word word"


def test_only_its_keys_are_let_in(claude: ClaudeServer) -> None:
    claude.keys = {"another"}
    with pytest.raises(LlmError) as caught:
        Claude().ask(params("a"))
    assert caught.value.kind == "key"


def test_batches_read_the_cache_or_not(claude: ClaudeServer) -> None:
    client = Claude()
    for hits, read in ((True, [0, 1250]), (False, [0, 0])):
        claude.reset()
        claude.batch_hits = hits
        batch = client.submit([(name, params(marked(LONG, "1h"), name)) for name in ("a", "b")])
        claude.finish_batches()
        usages = {one.id: one.reply.usage for one in client.results(batch) if one.reply}
        assert [usages[name].cache_read for name in ("a", "b")] == read
        assert [usages[name].cache_write_1h for name in ("a", "b")] == [1250, 1250 - read[1]]


def test_ids_of_a_batch_are_checked(claude: ClaudeServer) -> None:
    for wrong in (
        [("a.pdf", params("a"))],
        [("a" * 65, params("a"))],
        [("a", params("a")), ("a", params("a"))],
    ):
        with pytest.raises(LlmError, match="custom_id"):
            Claude().submit(wrong)
