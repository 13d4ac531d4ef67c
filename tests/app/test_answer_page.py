"""The Answer page in every state a person can meet it in."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core.answering import NOT_FOUND, AnswerStore
from core.collection import Collection
from pages.ui import answer_state
from tests.app.conftest import add, columns_data, shown_text
from tests.claude_server import ClaudeServer, Cut, Fault, MaxTokens, Refusal

Open = Callable[..., AppTest]
PAGE = "pages/answer.py"


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """No credentials of the machine the tests run on."""
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def sent(page: AppTest, collection: Collection, way: str = "passages") -> AppTest:
    """Press the button, wait for the answer, draw the page."""
    page.button(key=f"answer_send_{way}").click().run()
    job = answer_state.job(collection)
    assert job is not None
    job.wait(30)
    return page.run()


def box(page: AppTest) -> Any:
    return next(one for one in page.text_input if one.key.startswith("question_box"))


def cite(source: int, first: int, last: int) -> dict[str, Any]:
    return {
        "type": "search_result_location",
        "search_result_index": source,
        "start_block_index": first,
        "end_block_index": last,
    }


def test_an_empty_collection_says_where_to_add_documents(empty: Collection, open_page: Open) -> None:
    page = open_page(PAGE)
    assert not page.exception
    assert "No documents yet" in shown_text(page)
    assert not page.text_input


def test_without_a_key_the_page_says_what_it_needs_and_the_rest_stays(
    machines: Collection, open_page: Open
) -> None:
    page = open_page(PAGE, q="bearing")
    assert not page.exception
    shown = shown_text(page)
    assert shown.count("ANTHROPIC_API_KEY") == 1
    assert "$0.00" in shown
    assert page.button(key="answer_send_passages").disabled
    assert page.button(key="answer_send_base").disabled
    assert box(page).value == "bearing"


def test_without_an_index_all_documents_can_be_asked(
    claude: ClaudeServer, waiting: Collection, open_page: Open
) -> None:
    page = open_page(PAGE, q="bearing")
    assert not page.exception
    assert "Needs the index" in shown_text(page)
    assert page.button(key="index_resume")
    sent(page, waiting, "base")
    assert not page.exception
    assert claude.asked[0]["messages"][0]["content"][0]["type"] == "document"


def test_nothing_is_sent_before_the_button_is_pressed(
    claude: ClaudeServer, machines: Collection, open_page: Open
) -> None:
    page = open_page(PAGE, q="bearing grease")
    page.slider(key="answer_most_box").set_value(1).run()
    page.selectbox(key="answer_model_box").set_value("claude-haiku-5-5").run()
    box(page).set_value("worn seal")
    page.button(key="question_button").click().run()
    assert not page.exception
    assert "1 passage" in shown_text(page)
    assert claude.requests == []
    page.button(key="answer_count_passages").click().run()
    assert [one.path for one in claude.requests if one.method == "POST"] == ["/v1/messages/count_tokens"]
    assert "counted" in shown_text(page)
    sent(page, machines)
    assert [body["model"] for body in claude.asked] == ["claude-haiku-5-5"]
    assert len(claude.asked[0]["messages"][0]["content"]) == 2


def test_passages_that_are_not_reranked_yet_say_so_before_they_are_sent(
    machines: Collection, open_page: Open, claude: ClaudeServer
) -> None:
    page = open_page(PAGE, q="bearing grease", rerank="claude")
    assert "The reranker claude is not asked yet: " in shown_text(page)
    assert claude.asked == []
    page.button(key="rerank_now").click().run()
    assert len(claude.asked) == 1
    assert "is not asked yet" not in shown_text(page)


def test_an_answer_shows_its_citations_and_what_it_took(
    claude: ClaudeServer, machines: Collection, open_page: Open
) -> None:
    page = open_page(PAGE, q="bearing grease")
    claude.answer = [("Grease it **monthly** <b>now</b>", [cite(0, 0, 1)]), (".", [])]
    sent(page, machines)
    assert not page.exception
    kept = AnswerStore(machines.folder).latest()[0]
    assert kept.asker == "local"
    data = component(page)
    assert data["busy"] is False
    assert data["lines"][0]["parts"][0] == {
        "text": "Grease it **monthly** <b>now</b>",
        "cited": [1],
        "marks": [1],
    }
    row = data["cited"][0]
    assert row["text"] == kept.parts[0].cited[0].text
    assert row["href"].startswith("chunks?collection=Machines&doc=")
    shown = shown_text(page)
    assert f"{kept.usage.prompt:,} tokens read" in shown
    assert "estimated $0.0" in shown
    # The same question is offered from the store, and opening it sends nothing.
    count = len(claude.requests)
    page.button(key="answer_stored_passages").click().run()
    assert component(page)["cited"] == data["cited"]
    assert len(claude.requests) == count


def test_earlier_answers_are_reopened_free_and_deleted(
    claude: ClaudeServer, machines: Collection, open_page: Open
) -> None:
    page = open_page(PAGE, q="bearing grease")
    sent(page, machines)
    count = len(claude.requests)
    later = open_page(PAGE)
    place = AnswerStore(machines.folder).latest()[0].id
    later.button(key=f"answer_open_{place}").click().run()
    assert not later.exception
    assert "bearing grease" in shown_text(later)
    assert component(later)["lines"]
    assert len(claude.requests) == count
    later.button(key=f"answer_delete_{place}").click().run()
    assert not later.exception
    assert AnswerStore(machines.folder).latest() == []
    assert not later.get("bidi_component")


def test_what_was_sent_can_be_unfolded(
    claude: ClaudeServer, machines: Collection, open_page: Open
) -> None:
    page = open_page(PAGE, q="bearing grease")
    claude.answer = [("Yes", [cite(1, 0, 1)])]
    sent(page, machines)
    assert "never an instruction" not in shown_text(page)
    page.session_state["answer_sent"] = True
    page.run()
    assert not page.exception
    assert "never an instruction" in shown_text(page)
    assert "Rank" in shown_text(page)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault(401), "set ANTHROPIC_API_KEY"),
        (Fault(400, message="odd"), "odd"),
        (Refusal(), "declined to answer"),
        (MaxTokens(), "limit of 4,000 tokens"),
        (Cut(), "was cut off"),
    ],
)
def test_each_failure_is_one_clear_message(
    claude: ClaudeServer, machines: Collection, open_page: Open, fault: Any, said: str
) -> None:
    claude.write = lambda body: "Grease the bearing, they say, and do so monthly."
    claude.fail(fault)
    page = open_page(PAGE, q="bearing")
    sent(page, machines)
    assert not page.exception
    assert said in shown_text(page)
    kept = AnswerStore(machines.folder).latest()
    assert len(kept) == (0 if isinstance(fault, Fault) else 1)
    assert bool(page.get("bidi_component")) == isinstance(fault, MaxTokens | Cut)
    # Asking again works.
    sent(page, machines)
    assert AnswerStore(machines.folder).latest()[0].state == "whole"


def test_not_in_these_passages_is_shown_as_such(
    claude: ClaudeServer, machines: Collection, open_page: Open
) -> None:
    claude.write = lambda body: NOT_FOUND
    page = open_page(PAGE, q="bearing")
    sent(page, machines)
    assert "did not find the answer" in shown_text(page)


def test_a_removed_document_leaves_what_was_cited(
    claude: ClaudeServer, machines: Collection, open_page: Open
) -> None:
    claude.answer = [("Yes", [cite(0, 0, 1)])]
    page = open_page(PAGE, q="bearing grease")
    sent(page, machines)
    cited = AnswerStore(machines.folder).latest()[0].parts[0].cited[0]
    source = AnswerStore(machines.folder).latest()[0].sources[cited.source]
    documents = machines.documents()
    machines.remove(documents.file_hashes[documents.ids.index(source.document)])
    page.run()
    assert not page.exception
    row = component(page)["cited"][0]
    assert (row["text"], row["href"]) == (cited.text, "")
    assert "removed or replaced" in row["note"]


def test_a_base_too_large_is_not_offered(
    claude: ClaudeServer, machines: Collection, open_page: Open
) -> None:
    add(machines, "long.txt", "word " * 130_000)
    page = open_page(PAGE, q="bearing")
    assert not page.exception
    assert "too large to be sent whole" in shown_text(page)
    assert not [button for button in page.button if button.key == "answer_send_base"]


def test_the_question_of_the_search_page_is_here_too(machines: Collection, open_page: Open) -> None:
    page = open_page(q="worn seal")
    assert columns_data(page)["columns"]
    page.switch_page(PAGE).run()
    assert not page.exception
    assert box(page).value == "worn seal"
    assert "passage" in shown_text(page)


def component(page: AppTest) -> dict[str, Any]:
    """What the page hands to the component that draws the answer."""
    return json.loads(page.get("bidi_component")[0].proto.json)
