"""Pages among hostile settings, servers and texts: nothing is sent without a click, nothing paid twice, no key
and no traceback on show."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.answering import AnswerStore
from core.collection import Collection
from core.llm import Claude
from core.settings import ContextSettings, IndexSettings, SearchSettings, Settings
from pages.ui import answer_state, context_desk
from pages.ui.prices import prices
from tests.app.conftest import shown_text
from tests.claude_server import KEY, ClaudeServer, Fault

Open = Callable[..., AppTest]
PAGES = ("app.py", "pages/documents.py", "pages/chunks.py", "pages/context.py", "pages/answer.py")
ANSWER, CONTEXT = "pages/answer.py", "pages/context.py"
TAGS = "</document></chunk><script>alert(1)</script> **bold** $x^2$ :red[no] \u202egnp.exe\x00 [a](javascript:x)"


def everything(page: AppTest) -> str:
    """All that the page sends to the browser."""
    return json.dumps([str(element.proto) for element in page.main] + [shown_text(page)])


def from_elsewhere(collection: Collection, url: str) -> None:
    """Settings of a stranger's TOML: an endpoint, and a reranker that costs."""
    index = IndexSettings.from_toml(
        f'[context]\nwriter = "endpoint"\nmodel = "claude-haiku-5-5"\nbase_url = "{url}"\n'
    )
    search = SearchSettings.from_toml('rerank = "claude"\n')
    collection.save_settings(Settings(index, search))


def test_settings_from_elsewhere_send_nothing_without_a_click(
    claude: ClaudeServer, machines: Collection, open_page: Open
) -> None:
    from_elsewhere(machines, claude.url)
    for name in PAGES:
        page = open_page(name, q="bearing grease")
        assert not page.exception, name
        page.run()
        assert KEY not in everything(page), name
    page = open_page("app.py", q="bearing", rerank="claude", rerank_model="claude-haiku-5-5")
    assert not page.exception
    assert claude.requests == []


@pytest.mark.parametrize("address", ["http://", "http://[::1", "https://h h", "http://h:x"])
def test_an_address_that_is_none_is_a_message_on_every_page(
    claude: ClaudeServer,
    machines: Collection,
    open_page: Open,
    monkeypatch: pytest.MonkeyPatch,
    address: str,
) -> None:
    from_elsewhere(machines, address)
    page = open_page(CONTEXT)
    assert not page.exception
    assert "is not the address of a server" in shown_text(page)
    assert page.selectbox(key="context_writer").value == "endpoint"  # it can be mended
    monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
    machines.save_settings(Settings(IndexSettings(context=ContextSettings(writer="claude"))))
    page = open_page(CONTEXT)
    assert not page.exception
    assert "is not the address of a server" in shown_text(page)
    machines.save_settings(Settings())
    for key in ("answer_count_passages", "answer_send_passages"):
        page = open_page(ANSWER, q="bearing")
        page.button(key=key).click().run()
        assert not page.exception
        assert "is not the address of a server" in shown_text(page)
    assert answer_state.job(machines) is None
    assert AnswerStore(machines.folder).latest() == []


@pytest.mark.parametrize("content", ["", "date = 5", "\x00", "[models]\nx = 1", "batch = -1"])
def test_a_broken_price_list_is_a_message_and_pays_nothing(
    claude: ClaudeServer, machines: Collection, open_page: Open, home: Path, content: str
) -> None:
    (home / "prices.toml").write_text(content)
    prices.clear()
    machines.save_settings(Settings(IndexSettings(context=ContextSettings(writer="claude"))))
    for name in (ANSWER, CONTEXT):
        page = open_page(name, q="bearing")
        assert not page.exception
        assert "price list" in shown_text(page)
    machines.save_settings(Settings(search=SearchSettings(rerank="claude")))
    page = open_page("app.py", q="bearing")
    assert not page.exception
    assert claude.asked == []
    prices.clear()


def test_two_windows_that_press_the_same_button_pay_once(
    claude: ClaudeServer, machines: Collection, open_page: Open
) -> None:
    claude.latency = 0.5
    first, second = open_page(ANSWER, q="bearing"), open_page(ANSWER, q="bearing")
    first.button(key="answer_send_passages").click().run()
    second.button(key="answer_send_passages").click().run()
    job = answer_state.job(machines)
    assert job
    job.wait(20)
    assert not second.run().exception
    third = open_page(ANSWER, q="bearing")
    assert len(claude.asked) == 1
    # One that was drawn before the answer came opens it.
    AnswerStore(machines.folder).forget(AnswerStore(machines.folder).latest()[0].id)
    answer_state._jobs().clear()
    stale = open_page(ANSWER, q="bearing")
    third.run()
    third.button(key="answer_send_passages").click().run()
    job = answer_state.job(machines)
    assert job
    job.wait(20)
    assert len(claude.asked) == 2
    stale.button(key="answer_send_passages").click().run()
    assert not stale.exception
    assert len(claude.asked) == 2
    assert stale.get("bidi_component")


def test_what_a_model_writes_stays_text_and_its_citations_in_what_was_sent(
    claude: ClaudeServer, machines: Collection, open_page: Open
) -> None:
    claude.answer = [(TAGS + "\ud800", []), ("x" * 300_000, [])]
    page = open_page(ANSWER, q="bearing grease")
    page.button(key="answer_send_passages").click().run()
    job = answer_state.job(machines)
    assert job
    job.wait(30)
    page.run()
    assert not page.exception
    assert job.answer
    assert job.answer.text.startswith(TAGS + "\ufffd")
    assert "<script>" not in "".join(one.proto.body for one in page.get("html"))


def test_no_key_on_show_whatever_the_server_says(
    claude: ClaudeServer, machines: Collection, open_page: Open, home: Path
) -> None:
    told = [
        Fault(401, message=f"bad key {KEY}"),
        Fault(400, message=f"Authorization: Bearer {KEY}"),
        Fault(500, body=f"<html>{KEY}</html>"),
        Fault(200, body=f"<html>{KEY}</html>"),
    ]
    for fault in told:
        claude.fail(fault, fault)
        page = open_page(ANSWER, q="bearing")
        page.button(key="answer_send_passages").click().run()
        job = answer_state.job(machines)
        assert job
        job.wait(30)
        page.run()
        assert not page.exception
        assert job.error
        assert KEY not in everything(page)
        claude._faults.clear()
        answer_state._jobs().clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Claude, "stream", lambda *_: 1 / 0)
        page = open_page(ANSWER, q="bearing")
        page.button(key="answer_send_passages").click().run()
        job = answer_state.job(machines)
        assert job
        job.wait(30)
        page.run()
    assert not page.exception
    assert "ZeroDivisionError" in shown_text(page)
    kept = b"".join(file.read_bytes() for file in home.rglob("*") if file.is_file())
    assert KEY.encode() not in kept


def test_what_a_model_writes_as_context_stays_text_in_the_lab(
    claude: ClaudeServer, machines: Collection, open_page: Open
) -> None:
    claude.write = lambda body: TAGS + " It is about bearings."
    context = ContextSettings(writer="claude")
    machines.save_settings(Settings(IndexSettings(context=context)))
    page = open_page(CONTEXT, q="bearing")
    page.button(key="context_start").click().run()
    run = context_desk.run_of(machines)
    assert run
    assert run.job.join(20)
    page = open_page(CONTEXT, q="bearing")
    assert not page.exception
    assert run.job.snapshot().done > 0
    assert "It is about bearings." in everything(page)
    html = "".join(one.proto.body for one in page.get("html"))
    assert "<script>" not in html
    assert not [one for one in page.markdown if "javascript:" in one.value]
