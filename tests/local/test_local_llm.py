"""core.llm against a server that was not written for it."""

from __future__ import annotations

import pytest

from core import llm
from core.errors import LlmError
from core.llm import Claude, Done, ModelFacts, TextDelta
from tests.local.model_server import CONTEXT, KEY, MODEL, LocalModel

SYSTEM = "You answer with one short sentence."
QUESTION = "What is the capital of France?"
PARAMS = {
    "model": MODEL,
    "max_tokens": 30,
    "system": SYSTEM,
    "messages": [{"role": "user", "content": [{"type": "text", "text": QUESTION}]}],
}


@pytest.fixture
def client(local_model: LocalModel) -> Claude:
    # A kept connection may be closed by the server between two tests: that is asked once more.
    return Claude(local_model.address, retries=2, timeout=120)


def test_an_answer_and_what_it_used(client: Claude, local_model: LocalModel) -> None:
    assert client.local
    before = local_model.counted()
    first = client.ask(PARAMS)
    assert (first.stop, first.model) == ("end_turn", MODEL)
    assert "Paris" in first.text
    again = client.ask(PARAMS)
    assert "Paris" in again.text
    assert again.usage.prompt == first.usage.prompt == client.count_tokens(PARAMS)
    assert again.usage.cache_read > 0  # the same prompt, found in its cache
    used, counted = first.usage + again.usage, local_model.counted() - before
    assert (used.input, used.cache_read, used.output) == (
        counted.processed,
        counted.cached,
        counted.written,
    )


def test_the_maximum_cuts_it(client: Claude) -> None:
    reply = client.ask({**PARAMS, "max_tokens": 3})
    assert (reply.stop, reply.usage.output) == ("max_tokens", 3)


def test_the_stream_is_the_answer_in_parts(client: Claude) -> None:
    *parts, done = client.stream(PARAMS)
    assert len(parts) > 2
    assert isinstance(done, Done)
    assert done.reply.stop == "end_turn"
    texts = [part.text for part in parts if isinstance(part, TextDelta)]
    # Not held to another answer: what is found in the cache is computed in other steps, and may round otherwise.
    assert "".join(texts).strip() == done.reply.text
    assert "Paris" in done.reply.text


def test_tokens_are_counted_with_all_that_is_sent(client: Claude) -> None:
    without = {name: value for name, value in PARAMS.items() if name != "system"}
    assert client.count_tokens(PARAMS) != client.count_tokens(without)
    longer = {**PARAMS, "messages": [{"role": "user", "content": f"{QUESTION} " * 10}]}
    assert 9 * 7 < client.count_tokens(longer) - client.count_tokens(PARAMS) < 9 * 10


def test_it_says_nothing_of_its_models(client: Claude) -> None:
    assert client.facts(MODEL) == ModelFacts(MODEL)


def test_only_its_own_key_goes_there(
    local_model: LocalModel, client: Claude, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client.ask(PARAMS).text
    monkeypatch.delenv(llm.ENDPOINT_KEY)
    # Even the right word is refused where it stands for Anthropic's key: it is not sent.
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", KEY)
    with pytest.raises(LlmError, match=llm.ENDPOINT_KEY) as caught:
        Claude(local_model.address, retries=0, timeout=120).ask(PARAMS)
    assert (caught.value.kind, caught.value.again) == ("key", False)
    assert KEY not in str(caught.value)


def test_too_long_a_prompt(client: Claude) -> None:
    words = {"role": "user", "content": "word " * (CONTEXT + 1)}
    for ask in (client.ask, lambda params: list(client.stream(params))):
        with pytest.raises(LlmError, match=f"{CONTEXT} tokens") as caught:
            ask({**PARAMS, "messages": [words]})
        assert (caught.value.kind, caught.value.again) == ("size", False)


def test_it_takes_no_batches(client: Claude) -> None:
    with pytest.raises(LlmError, match="has it") as caught:
        client.submit([("one", PARAMS)])
    assert (caught.value.kind, caught.value.again) == ("gone", False)
