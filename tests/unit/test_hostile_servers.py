"""Servers that answer with what no server should: a clear message, no figure that is none, nothing paid twice."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import pytest

import core.embedding
from core.answering import AnswerStore, ask, from_documents
from core.collection import create
from core.contextualizing import batch as batches
from core.contextualizing.job import ContextJob
from core.contextualizing.store import open_store
from core.contextualizing.work import survey
from core.corpus import build_corpus
from core.errors import ContextError, LlmError
from core.llm import Claude, Usage
from core.loading import load
from core.pipeline import search
from core.prices import load_prices
from core.report.export import trace_to_csv, trace_to_json
from core.settings import DEFAULT_MODEL, ContextSettings, SearchSettings
from tests.claude_server import KEY, WHEN, ClaudeServer, Fault, Timeout
from tests.context_desk import Desk
from tests.fakes import HashEmbedder

OWN_KEY = "endpoint-key-0123456789"
ROOT = Path(__file__).parents[2]
MODEL = "claude-haiku-5-5"
ASKED = {"model": MODEL, "max_tokens": 50, "messages": [{"role": "user", "content": "hi"}]}


def message(**changes: Any) -> Fault:
    """An answer of the right form, but for `changes`; None leaves a field out."""
    body = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [{"type": "text", "text": "It is about pumps."}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 900, "output_tokens": 6},
    } | changes
    return Fault(200, body=json.dumps({key: value for key, value in body.items() if value is not None}))


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        (None, Usage()),
        ("many", Usage()),
        ({"input_tokens": "5", "output_tokens": 2.5}, Usage()),
        ({"input_tokens": -5_000_000, "output_tokens": 7}, Usage(output=7)),
        ({"input_tokens": 10**30, "output_tokens": 7}, Usage(output=7)),
        ({"input_tokens": float("nan"), "output_tokens": 7}, Usage(output=7)),
        (
            {"input_tokens": 5, "cache_creation": {"ephemeral_1h_input_tokens": 500}},
            Usage(input=5, cache_write_1h=500),
        ),
    ],
)
def test_what_is_no_count_of_tokens_counts_nothing_and_the_answer_stays(
    claude: ClaudeServer, usage: object, counted: Usage
) -> None:
    claude.fail(message(usage=usage))
    reply = Claude(retries=0).ask(ASKED)
    assert (reply.text, reply.usage) == ("It is about pumps.", counted)


def test_signs_that_no_file_can_hold_are_replaced(claude: ClaudeServer) -> None:
    claude.fail(message(content=[{"type": "text", "text": "a\ud800b"}]))
    assert Claude(retries=0).ask(ASKED).text == "a\ufffdb"
    claude.fail(Fault(400, message="no \ud800 here"))
    with pytest.raises(LlmError) as caught:
        Claude(retries=0).ask(ASKED)
    str(caught.value).encode()
    with pytest.raises(LlmError) as caught:
        Claude(retries=0).ask(ASKED | {"model": "\ud800"})
    str(caught.value).encode()


@pytest.mark.parametrize("limit", [-5, 0, "many", True, 1 << 60])
def test_limits_that_are_none_are_passed_over(claude: ClaudeServer, limit: object) -> None:
    told = {"id": MODEL, "type": "model", "max_input_tokens": limit, "max_tokens": limit}
    claude.fail(Fault(200, body=json.dumps(told)), path=f"/v1/models/{MODEL}")
    facts = Claude(retries=0).facts(MODEL)
    # The SDK itself reads true as 1.
    assert (facts.max_input_tokens, facts.max_tokens) in ((None, None), (1, 1))
    claude.fail(Fault(200, body=json.dumps({"input_tokens": limit})), path="/v1/messages/count_tokens")
    if limit is not True:
        with pytest.raises(LlmError, match="did not answer as the Messages API does"):
            Claude(retries=0).count_tokens(ASKED)


@pytest.mark.parametrize(
    "address",
    [
        "http://", "http://[::1", "http://h:x", "http://h:99999", "http://h\n.x", "http://h h", "http:///x",
        "http://\ud800", "http://h/\x00", "file:///etc/passwd", "ftp://h", "http://:80",
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused_before_anything_is_asked(address: str) -> None:
    with pytest.raises(LlmError) as caught:
        Claude(address)
    assert caught.value.kind == "request"
    str(caught.value).encode()


def test_a_name_that_no_network_knows_is_a_clear_error(claude: ClaudeServer) -> None:
    with pytest.raises(LlmError):
        Claude("http://\u2603.example", retries=0).ask(ASKED)
    assert not Claude(retries=0).facts("x" * 100_000).known


@pytest.mark.parametrize("wait", ["nan", "-5", "x", "Fri, 31 Dec 99999 23:59:59 GMT"])
def test_a_wait_that_is_none_is_passed_over(claude: ClaudeServer, wait: str) -> None:
    claude.fail(Fault(429, headers={"retry-after": wait}))
    assert Claude(retries=1).ask(ASKED).stop == "end_turn"


# Money


def test_an_answer_without_tokens_counts_at_its_worst_against_the_limit(
    claude: ClaudeServer, tmp_path: Path
) -> None:
    desk = Desk(tmp_path, chunks=6)
    claude.fail(*[message(usage={"input_tokens": -9_000_000})] * 6)
    now = desk.run(cap_dollars=0.002, concurrency=1).snapshot()
    assert now.state == "capped"
    assert 0 < now.unsure <= 0.002
    assert now.done == len(claude.asked) < 6
    totals = desk.store.totals()
    assert (totals.dollars, totals.unpriced) == (0.0, now.done)


def test_an_answer_that_stopped_for_a_reason_of_its_own_is_not_taken_as_whole(
    claude: ClaudeServer, tmp_path: Path
) -> None:
    desk = Desk(tmp_path, chunks=2)
    claude.fail(message(stop_reason="pause_turn"))
    now = desk.run(concurrency=1).snapshot()
    assert (now.done, [one.again for one in now.failed]) == (1, [True])
    assert desk.contexts()[0] == ""
    assert desk.store.totals().answers == 2


def test_a_batch_whose_receipt_is_unreadable_is_not_sent_again(
    claude: ClaudeServer, tmp_path: Path
) -> None:
    desk = Desk(tmp_path, chunks=3)
    for body in ("<html>thanks</html>", '{"id": null}', "[]"):
        claude.fail(Fault(200, body=body), path="/v1/messages/batches")
        with pytest.raises(LlmError):
            batches.submit(desk.store, desk.documents, desk.work(), desk.settings, Claude(), desk.prices)
        assert [row.status for row in desk.store.batches()] == ["sending"]
        assert desk.work().waiting == 3
        batches.give_up(desk.store, desk.store.batches()[0].id)
    # A receipt that has the name, and nothing else that it should have, is enough.
    claude.fail(Fault(200, body='{"id": "msgbatch_9"}'), path="/v1/messages/batches")
    ids = batches.submit(desk.store, desk.documents, desk.work(), desk.settings, Claude(), desk.prices)
    assert ids == ["msgbatch_9"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"expires_at": None},
        {"expires_at": "soon"},
        {"processing_status": "weird"},
        {"request_counts": 5},
    ],
)
def test_a_batch_whose_state_is_unreadable_stays_open(
    claude: ClaudeServer, tmp_path: Path, wrong: dict[str, Any]
) -> None:
    desk = Desk(tmp_path, chunks=3)
    [name] = batches.submit(
        desk.store, desk.documents, desk.work(), desk.settings, Claude(), desk.prices
    )
    told = {
        "id": name,
        "type": "message_batch",
        "processing_status": "in_progress",
        "request_counts": {"processing": 3},
        "created_at": WHEN,
        "expires_at": WHEN,
    } | wrong
    claude.fail(Fault(200, body=json.dumps(told)), path=f"/v1/messages/batches/{name}")
    with pytest.raises(LlmError, match="did not answer as the Messages API does"):
        batches.refresh(desk.store, Claude(retries=0), desk.prices)
    claude.finish_batches()
    assert [row.status for row in batches.refresh(desk.store, Claude(), desk.prices)] == ["collected"]
    assert len([one for one in desk.contexts() if one]) == 3


def test_results_that_are_doubled_missing_foreign_or_unreadable_cost_themselves_only(
    claude: ClaudeServer, tmp_path: Path
) -> None:
    desk = Desk(tmp_path, chunks=5)
    [name] = batches.submit(
        desk.store, desk.documents, desk.work(), desk.settings, Claude(), desk.prices
    )
    claude.finish_batches()
    first, second, *others, _ = claude.batches[name].results
    nobody = {"custom_id": "nobody", "result": others[0]["result"]}
    given = [
        first | {"result": {"type": "succeeded"}},  # without its message
        {"custom_id": second["custom_id"]},
        *(others[0], others[0], nobody, others[1]),
    ]
    lines = Fault(200, body="\n".join(map(json.dumps, given)))
    claude.fail(lines, path=f"/v1/messages/batches/{name}/results")
    batches.refresh(desk.store, Claude(), desk.prices)
    assert sum(bool(one) for one in desk.contexts()) == 2
    assert desk.store.totals().answers == 2
    assert sorted(one.outcome for one in batches.failures(desk.store, name)) == [
        "errored: what the server gave cannot be read",
        "errored: what the server gave cannot be read",
        "the batch had no result for it",
    ]
    assert desk.work().chunks == 3


def test_results_that_came_before_the_connection_broke_are_kept_and_count_once(
    claude: ClaudeServer, tmp_path: Path
) -> None:
    desk = Desk(tmp_path, chunks=4)
    [name] = batches.submit(
        desk.store, desk.documents, desk.work(), desk.settings, Claude(), desk.prices
    )
    claude.finish_batches()
    lines = [json.dumps(one) for one in claude.batches[name].results]
    broken = Fault(200, body="\n".join([*lines[:2], lines[2][:40]]))
    claude.fail(broken, path=f"/v1/messages/batches/{name}/results")
    with pytest.raises(LlmError):
        batches.refresh(desk.store, Claude(retries=0), desk.prices)
    assert sum(bool(one) for one in desk.contexts()) == 2
    assert [row.status for row in batches.refresh(desk.store, Claude(), desk.prices)] == ["collected"]
    assert sum(bool(one) for one in desk.contexts()) == desk.store.totals().answers == 4


def test_a_model_that_is_too_small_for_a_chunk_is_refused(tmp_path: Path) -> None:
    desk = Desk(tmp_path, chunks=500)
    for limit in (1, 600):
        with pytest.raises(
            ContextError, match=f"takes {limit:,} tokens, and prompt, answer and a chunk"
        ):
            desk.work(max_input_tokens=limit)
    assert desk.work(max_input_tokens=1_400).windowed == 1


# Several at once

OTHER = """
import sys, time
from pathlib import Path
from core.contextualizing.store import ContextStore
store = ContextStore(Path(sys.argv[1]))
store.hold()
print("held", flush=True)
time.sleep(60)
"""


def test_two_programs_never_write_contexts_of_one_collection_at_once(
    claude: ClaudeServer, tmp_path: Path
) -> None:
    desk = Desk(tmp_path, chunks=3)
    command = [sys.executable, "-c", OTHER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as other:
        assert other.stdout
        assert other.stdout.readline() == "held\n"
        job = desk.job()
        with pytest.raises(ContextError, match="being written already"):
            job.start()
        with pytest.raises(ContextError, match="being written already"):
            batches.submit(desk.store, desk.documents, desk.work(), desk.settings, Claude(), desk.prices)
        assert claude.asked == []
        other.kill()
    job.start()  # whoever is killed holds nothing back
    assert job.join(20)
    assert job.snapshot().state == "done"
    desk.store.hold()  # and neither does a job that is done
    desk.store.release()


def test_of_two_jobs_that_saw_the_same_work_the_second_pays_for_nothing(
    claude: ClaudeServer, tmp_path: Path
) -> None:
    desk = Desk(tmp_path, chunks=6)
    first, second = desk.job(), desk.job()
    claude.latency = 0.05
    first.start()
    with pytest.raises(ContextError, match="being written already"):
        second.start()
    assert first.join(20)
    second.start()
    assert second.join(20)
    assert len(claude.asked) == desk.store.totals().answers == 6


def test_a_job_does_not_ask_for_what_a_batch_was_handed_meanwhile(
    claude: ClaudeServer, tmp_path: Path
) -> None:
    desk = Desk(tmp_path, chunks=4)
    job = desk.job()
    batches.submit(desk.store, desk.documents, desk.work(), desk.settings, Claude(), desk.prices)
    job.start()
    assert job.join(20)
    assert claude.asked == []


@pytest.mark.parametrize("cap", [float("nan"), -1.0, float("inf")])
def test_a_limit_that_is_none_is_refused(claude: ClaudeServer, tmp_path: Path, cap: float) -> None:
    desk = Desk(tmp_path, chunks=3)
    with pytest.raises(ContextError, match="is none"):
        desk.job(cap_dollars=cap)
    with pytest.raises(ContextError, match="is none"):
        batches.submit(
            desk.store, desk.documents, desk.work(), desk.settings, Claude(), desk.prices, cap
        )
    assert desk.run(cap_dollars=0.0).snapshot().state == "capped"
    assert claude.asked == []
    assert claude.batches == {}


def test_a_key_that_is_withdrawn_in_the_middle_ends_the_job_and_loses_nothing(
    claude: ClaudeServer, tmp_path: Path
) -> None:
    desk = Desk(tmp_path, chunks=10)
    claude.fail(*[Fault(401)] * 9, on=lambda body: len(claude.asked) > 4)
    job = desk.run(concurrency=2)
    now = job.snapshot()
    assert (now.state, now.failed) == ("failed", ())
    assert now.done == desk.store.totals().answers == 4
    assert len(claude.asked) <= 6  # what was on its way
    claude._faults.clear()
    before = len(claude.asked)
    job.start()
    assert job.join(20)
    assert (job.snapshot().state, len(claude.asked) - before) == ("done", 6)


SUBMIT = """
import sys
from pathlib import Path
from core.contextualizing.batch import submit
from core.llm import Claude
from tests.context_desk import Desk
desk = Desk(Path(sys.argv[1]), chunks=3)
submit(desk.store, desk.documents, desk.work(), desk.settings, Claude(), desk.prices)
"""

ANSWER = """
import sys
from pathlib import Path
from core.answering import AnswerStore, ask, from_documents
from core.llm import Claude
from core.prices import load_prices
from tests.context_desk import make_documents
documents, _ = make_documents(1, 3)
for answer in ask(from_documents("Why?", documents), AnswerStore(Path(sys.argv[1])), Claude(), load_prices()):
    print(answer.text, flush=True)
"""


def test_a_program_killed_while_it_hands_over_a_batch_does_not_hand_it_over_twice(
    claude: ClaudeServer, tmp_path: Path
) -> None:
    claude.fail(Timeout(30), path="/v1/messages/batches")
    command = [sys.executable, "-c", SUBMIT, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT) as other:
        until = time.monotonic() + 30
        while not any(one.path.endswith("batches") for one in claude.requests):
            assert time.monotonic() < until
            time.sleep(0.02)
        other.kill()
    desk = Desk(tmp_path, chunks=3)
    assert [row.status for row in desk.store.batches()] == ["sending"]
    assert (desk.work().chunks, desk.work().waiting) == (0, 3)
    batches.refresh(desk.store, Claude(), desk.prices)
    batches.give_up(desk.store, desk.store.batches()[0].id)  # only a person can know
    assert desk.work().chunks == 3


def test_of_an_answer_whose_program_is_killed_what_had_come_is_kept(
    claude: ClaudeServer, tmp_path: Path
) -> None:
    claude.write = lambda body: "It is about pumps. " * 200
    claude.pace = 0.02
    command = [sys.executable, "-c", ANSWER, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout
        shown = other.stdout.readline().strip()
        other.kill()
    assert shown.startswith("It is about")
    [kept] = AnswerStore(tmp_path).latest()
    assert kept.state == "cut"
    assert kept.text.startswith(shown)


# Keys


def test_no_key_in_files_logs_exports_or_messages_when_a_server_says_it_everywhere(
    claude: ClaudeServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path))
    monkeypatch.setenv("RANKSCOPE_ENDPOINT_KEY", OWN_KEY)
    monkeypatch.setitem(core.embedding._loaded, DEFAULT_MODEL, HashEmbedder(model_id=DEFAULT_MODEL))
    made = create("Machines")
    text = "A pump leaks. " * 300
    made.add(load(text.encode(), "a.txt"), "a.txt", len(text))
    documents, store, prices = made.documents(), open_store(made), load_prices()
    said = [
        Fault(401, message=f"x-api-key: {KEY} and Authorization: Bearer {OWN_KEY}"),
        Fault(400, message=f"bad {KEY} {OWN_KEY}", headers={"x-echo": KEY}),
        Fault(500, body=json.dumps({"error": {"type": KEY, "message": OWN_KEY}})),
        Fault(200, body=f"<html>{KEY} {OWN_KEY}</html>"),
    ]
    told: list[object] = []
    for settings in (
        ContextSettings(writer="claude"),
        ContextSettings(writer="endpoint", base_url=claude.url),
    ):
        client = Claude(settings.base_url, retries=0)
        work = survey(store, documents, [[(0, 800), (800, 1_600), (1_600, 2_400)]], settings)
        for fault in said:
            claude.fail(*[fault] * 4)
            job = ContextJob(store, documents, work, settings, client, prices)
            job.start()
            assert job.join(20)
            told.append(job.snapshot())
            claude._faults.clear()
            claude.fail(fault, path="/v1/messages/batches")
            with pytest.raises(LlmError) as caught:
                batches.submit(store, documents, work, settings, client, prices)
            told += [caught.value, traceback.format_exception(caught.value)]
            for row in store.batches():
                batches.give_up(store, row.id)
            claude.fail(fault)
            inquiry = from_documents("Why?", documents)
            try:
                told += ask(inquiry, AnswerStore(made.folder), client, prices)
            except LlmError as error:
                told += [error, traceback.format_exception(error)]
    corpus = build_corpus(made, made.settings().index)
    for fault in said:
        claude.fail(fault, fault)
        trace = search(corpus, "pump", SearchSettings(rerank="claude"))
        told += [trace.notes, trace_to_json(trace), trace_to_csv(trace), trace.record.reranked]
    shown = capfd.readouterr()
    everything = "\n".join(map(repr, told)) + caplog.text + shown.out + shown.err
    files = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert "refused" in everything
    for key in (KEY, OWN_KEY):
        assert key not in everything
        assert key.encode() not in files
