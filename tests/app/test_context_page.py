"""The Context page: the writer and its plan, writing while it goes on, and each context read and edited."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core.collection import Collection
from core.contextualizing.flags import foreign
from core.contextualizing.store import open_store
from core.corpus import build_corpus
from core.settings import ContextSettings, IndexSettings, Settings
from core.types import text_hash
from pages.ui import context_desk
from pages.ui.context_checks import Vocabulary
from pages.ui.context_marks import move
from tests.app.conftest import add
from tests.app.conftest import shown_text as shown_lines
from tests.claude_server import ClaudeServer, Fault, MaxTokens, Refusal, chunk_of

OpenPage = Callable[..., AppTest]
PAGE = "pages/context.py"
CLAUDE = ContextSettings(writer="claude")


@pytest.fixture(autouse=True)
def fresh() -> None:
    """No job of another test, nothing known of its documents."""
    st.cache_resource.clear()


def shown_text(test: AppTest) -> str:
    """All on one line: figures stand in tags of their own."""
    return " ".join(shown_lines(test).split())


def choose(test: AppTest, writer: str) -> AppTest:
    return test.selectbox(key="context_writer").set_value(writer).run()


def keys(test: AppTest) -> set[str | None]:
    return {button.key for button in test.button}


def write(test: AppTest, collection: Collection) -> AppTest:
    """Start writing and wait for its end."""
    test.button(key="context_start").click().run()
    run = context_desk.run_of(collection)
    assert run is not None
    assert run.job.join(30)
    return test.run()


def card(test: AppTest, verb: str, at: int = 0) -> str:
    """The key of a card's button, of the card at a place."""
    found = [
        b.key
        for b in test.button
        if b.key and b.key.startswith(f"context_{verb}_") and b.key[-1].isdigit()
    ]
    return found[at]


def indexed_with(collection: Collection, context: ContextSettings) -> None:
    collection.save_settings(Settings(index=IndexSettings(context=context)))
    build_corpus(collection, collection.settings().index)


def contexts(collection: Collection, name: str = "pumps.md") -> list[str]:
    """The usable contexts of a document by Claude, in the order of its chunks."""
    text = next(d.text for d in map(collection.documents().__getitem__, range(3)) if d.name == name)
    return [row.context for row in open_store(collection).rows(CLAUDE.writer_key, text_hash(text))]


def test_without_documents_it_says_what_to_do(empty: Collection, open_page: OpenPage) -> None:
    test = open_page(PAGE)

    assert not test.exception
    assert "No documents yet" in shown_text(test)


def test_without_a_writer_it_explains_and_shows_an_example(
    waiting: Collection, open_page: OpenPage
) -> None:
    text = "".join(f"# Part {n}\n\n{'Some words that fill it. ' * 30}\n\n" for n in range(4))
    add(waiting, "long.md", text)
    build_corpus(waiting, waiting.settings().index)

    test = open_page(PAGE)

    assert not test.exception
    assert "Chunks are indexed as they are." in shown_text(test)
    assert "For example, a chunk of this collection" in shown_text(test)
    test.button(key="context_try_headings").click().run()
    assert test.selectbox(key="context_writer").value == "headings"
    assert waiting.settings().index == IndexSettings()  # a draft


def test_headings_are_shown_at_once_and_indexed(machines: Collection, open_page: OpenPage) -> None:
    test = choose(open_page(PAGE), "headings")
    shown = shown_text(test)
    assert "Pumps > Noise" in shown or "Pumps" in shown
    assert "computed" in shown
    assert not any(key and key.startswith("context_edit_") for key in keys(test))

    test.button(key="context_index_do").click().run()

    assert not test.exception
    assert machines.settings().index.context.writer == "headings"
    assert "Indexed: 4 chunks of 3 documents." in shown_text(test)


def test_without_a_key_the_plan_is_shown_and_writing_is_closed(
    machines: Collection, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)

    test = choose(open_page(PAGE), "claude")

    assert not test.exception
    shown = shown_text(test)
    assert "set ANTHROPIC_API_KEY" in shown
    assert "https://api.anthropic.com" in shown
    assert "rough" in shown
    assert test.button(key="context_start").disabled
    assert test.button(key="context_submit").disabled


def test_the_plan_counts_what_is_written_and_what_needs_nothing(
    machines: Collection, open_page: OpenPage, claude: ClaudeServer
) -> None:
    test = choose(open_page(PAGE), "claude")

    shown = shown_text(test)
    # pumps.md has two chunks; fans.md and lamps.md are one chunk each.
    assert "4 chunks of 3 documents" in shown
    assert "2 to write" in shown
    assert "2 are a whole document: they need none" in shown
    assert "on this machine: nothing leaves it" in shown  # the scripted server is on loopback
    assert not claude.asked

    test.button(key="context_count").click().run()
    assert [one.path for one in claude.requests if "count" in one.path]
    assert "context_count" not in keys(test)
    assert "as the model's server counted them" in shown_text(test)


def test_contexts_are_written_kept_edited_dropped_and_indexed(
    machines: Collection, open_page: OpenPage, claude: ClaudeServer
) -> None:
    test = write(choose(open_page(PAGE), "claude"), machines)

    assert not test.exception
    assert "Done: 2 of 2 contexts written" in shown_text(test)
    assert len(claude.asked) == 2
    first, second = contexts(machines)
    assert first in shown_text(test)
    assert "Paid so far" in {expander.label.partition(":")[0] for expander in test.expander}

    test.button(key=card(test, "edit")).click().run()
    test.text_area(key=test.session_state["context_editing"].join(("context_words_", ""))).set_value(
        "The squeaky zweihander pump."
    )
    save = next(b for b in test.button if b.key and b.key.startswith("context_save_"))
    save.click().run()
    assert contexts(machines) == ["The squeaky zweihander pump.", second]
    assert "edited by you" in shown_text(test)
    assert "zweihand" in shown_text(test)  # the new index term

    test.button(key=card(test, "drop", 1)).click().run()
    assert contexts(machines)[1] == ""
    test.button(key=card(test, "restore", 1)).click().run()
    test.button(key=card(test, "accept", 0)).click().run()
    assert contexts(machines)[1] == second
    test.button(key=card(test, "restore", 0)).click().run()
    assert contexts(machines)[0] == first
    assert len(claude.asked) == 2  # none of this is paid

    test.button(key="context_index_do").click().run()
    assert machines.settings().index.context == CLAUDE
    assert "Indexed: 4 chunks" in shown_text(test)
    assert "0 to write" in shown_text(test)


def test_a_context_that_says_what_the_document_does_not_is_flagged(
    machines: Collection, open_page: OpenPage, claude: ClaudeServer
) -> None:
    claude.write = lambda body: (
        "Made by the Borealis works in 1987." if "seal" in chunk_of(body) else "On the noise of a pump."
    )
    test = write(choose(open_page(PAGE), "claude"), machines)

    assert "Not in the document: Borealis, 1987" in shown_text(test)
    chosen = next(group for group in test.button_group if group.key == "context_filter_0")
    assert chosen.options == ["All · 2", "Flagged · 1"]
    test.button(key="context_check_all").click().run()
    assert "1 of 2 contexts flagged, in 1 document" in " ".join(c.value for c in test.caption)
    assert "1 flagged" in test.selectbox(key="context_document").options[0]


def test_failures_are_named_and_retried_alone(
    machines: Collection, open_page: OpenPage, claude: ClaudeServer
) -> None:
    claude.fail(MaxTokens(), on=lambda body: "seal" in chunk_of(body))
    test = write(choose(open_page(PAGE), "claude"), machines)

    shown = shown_text(test)
    assert "1 of 2 chunks failed." in shown
    assert "pumps.md" in shown
    assert "A2" in shown
    assert "cut at 300 tokens" in shown
    assert "1 to write" in shown

    asked = len(claude.asked)
    test.button(key="context_retry").click().run()
    assert context_desk.run_of(machines).job.join(30)
    test.run()
    assert len(claude.asked) == asked + 1
    assert "Done: 2 of 2 contexts written" in shown_text(test)


def test_a_refusal_says_that_asking_again_changes_nothing(
    machines: Collection, open_page: OpenPage, claude: ClaudeServer
) -> None:
    claude.fail(Refusal(), on=lambda body: "seal" in chunk_of(body))
    test = write(choose(open_page(PAGE), "claude"), machines)

    assert "asking again changes nothing" in shown_text(test)
    assert "context_retry" not in keys(test)
    assert "0 to write" in shown_text(test)


def test_a_limit_stops_the_run_and_is_kept(
    machines: Collection, open_page: OpenPage, claude: ClaudeServer
) -> None:
    claude.fail(Fault(401, message="bad key"))
    test = write(choose(open_page(PAGE), "claude"), machines)
    assert "Could not go on" in shown_text(test)
    assert "bad key" in shown_text(test)
    test.button(key="context_close").click().run()

    add(machines, "long.md", "".join(f"# Part {n}\n\n{'words ' * 120}\n\n" for n in range(300)))
    build_corpus(machines, machines.settings().index)
    test.run()
    test.number_input(key="context_cap").set_value(0.01).run()
    test = write(test, machines)
    assert "Stopped at the limit" in shown_text(test)
    assert test.button(key="context_start").label.startswith("Resume: write the other")
    assert test.number_input(key="context_cap").value == 0.01
    store = open_store(machines)
    assert 0 < store.totals(CLAUDE.writer_key).dollars <= 0.01


def test_progress_is_shown_and_stopped(
    machines: Collection, open_page: OpenPage, claude: ClaudeServer
) -> None:
    claude.latency = 0.7
    add(machines, "long.md", "".join(f"# Part {n}\n\n{'words ' * 120}\n\n" for n in range(40)))
    build_corpus(machines, machines.settings().index)
    test = choose(open_page(PAGE), "claude")
    test.button(key="context_start").click().run()

    assert not test.exception
    assert "context_pause" in keys(test)
    assert "context_start" not in keys(test)
    assert "cost so far" in shown_text(test)
    assert "context_refresh" in keys(test)  # before the first has come, too
    test.button(key="context_pause").click().run()
    assert "context_resume" in keys(test)
    other = open_page(PAGE)  # another window finds it, settings and all
    assert other.selectbox(key="context_writer").value == "claude"
    assert "context_resume" in keys(other)
    other.button(key="context_stop").click().run()
    assert context_desk.run_of(machines).job.join(30)
    other.run()
    written = sum(open_store(machines).totals(CLAUDE.writer_key).states.values())
    assert 0 < written < 42
    assert f"Stopped: {written} of 42 contexts written" in shown_text(other)
    assert other.button(key="context_start").label == f"Resume: write the other {42 - written}"


def test_a_batch_is_submitted_found_again_and_collected(
    machines: Collection, open_page: OpenPage, claude: ClaudeServer
) -> None:
    test = choose(open_page(PAGE), "claude")
    test.button(key="context_submit").click().run()

    assert not test.exception
    assert "A batch of 2 chunks is being written" in shown_text(test)
    assert "2 in batches under way" in shown_text(test)
    assert "context_start" not in keys(test)

    st.cache_resource.clear()  # as after a restart
    claude.finish_batches(errored=[next(iter(claude.batches.values())).requests[1]["custom_id"]])
    test = choose(open_page(PAGE), "claude")
    test.run()
    shown = shown_text(test)
    assert "1 of 2 chunks of the batch" in shown
    assert "1 to write" in shown
    assert sum(map(bool, contexts(machines))) == 1


def test_the_ranks_with_and_without_contexts_stand_side_by_side(
    machines: Collection, open_page: OpenPage, claude: ClaudeServer
) -> None:
    claude.write = lambda body: "About the zweihander, a pump." if "seal" in chunk_of(body) else "Noise."
    test = write(choose(open_page(PAGE), "claude"), machines)
    test.button(key="context_index_do").click().run()
    test.text_input(key="query_box").set_value("zweihander")
    test.button(key="context_query").click().run()

    # Its index without contexts is the one that was there before.
    assert "context_build_bare" not in keys(test)
    table = next(e.proto.body for e in test.get("html") if 'data-testid="context-ranks"' in e.proto.body)
    assert '— → <span class="up">1 ▲</span>' in table  # BM25 finds A2 by its context alone
    assert "A2" in table


def test_contexts_of_removed_documents_can_be_deleted(
    machines: Collection, open_page: OpenPage, claude: ClaudeServer
) -> None:
    test = write(choose(open_page(PAGE), "claude"), machines)
    machines.remove(machines.files()[0].file_hash)
    test = choose(open_page(PAGE), "claude")

    assert "Contexts of 1 document that are no longer in the collection" in shown_text(test)
    test.button(key="context_forget_ask").click().run()
    test.button(key="context_forget").click().run()
    assert not open_store(machines).totals(CLAUDE.writer_key).states
    assert "no longer in the collection" not in shown_text(test)


def test_an_endpoint_says_where_documents_go(
    machines: Collection, open_page: OpenPage, claude: ClaudeServer
) -> None:
    test = choose(open_page(PAGE), "endpoint")
    assert any("as good as the model" in caption.value for caption in test.caption)

    test.text_input(key="context_base_url").set_value("http://models.example.invalid").run()
    assert "documents are sent to http://models.example.invalid" in shown_text(test)
    other = ContextSettings(writer="endpoint", base_url="http://models.example.invalid", model="m-1")
    test.session_state["rs_draft"] = IndexSettings(context=other)
    test.run()
    assert "price not known" in shown_text(test)
    assert "No price of m-1 is in the price list" in shown_text(test)
    assert not [box for box in test.number_input if box.key == "context_cap"]  # nothing it could hold
    test.text_input(key="context_base_url").set_value("nonsense").run()
    assert not test.exception
    assert "an endpoint needs an address" in shown_text(test)

    test.text_input(key="context_base_url").set_value(claude.url).run()
    test.selectbox(key="context_model").set_value("claude-haiku-5-5").run()
    test = write(test, machines)
    assert "Done: 2 of 2" in shown_text(test)
    assert {one.headers["authorization"] for one in claude.requests} == {"Bearer none"}


def test_a_prompt_of_ones_own_is_another_writer_and_the_first_is_offered_again(
    machines: Collection, open_page: OpenPage, claude: ClaudeServer
) -> None:
    test = write(choose(open_page(PAGE), "claude"), machines)
    test.text_area(key="context_prompt").set_value("Say it in Latin.").run()

    assert "2 to write" in shown_text(test)
    assert "2 contexts by claude-haiku-5-5 were written before and are kept." in shown_text(test)
    test.text_area(key="context_prompt").set_value("").run()
    test.number_input(key="context_max_tokens_0").set_value(200).run()
    shown = shown_text(test)
    assert "2 contexts by claude-haiku-5-5 (longest context 300) were written before" in shown
    test.button(key=f"context_use_{CLAUDE.writer_key}").click().run()
    assert "0 to write" in shown_text(test)
    assert test.text_area(key="context_prompt").value.startswith("Write a short context")


def test_hostile_contexts_stay_text(
    machines: Collection, open_page: OpenPage, claude: ClaudeServer
) -> None:
    claude.write = lambda body: "<script>document.title='HACKED'</script> **b** :red[x] $x$"
    test = write(choose(open_page(PAGE), "claude"), machines)

    assert "<script>document.title='HACKED'</script> **b** :red[x] $x$" in shown_text(test)
    assert not any("<script>" in e.proto.body for e in test.get("html"))
    assert not any("HACKED" in m.value for m in (*test.markdown, *test.caption))


def test_many_chunks_are_walked_through(empty: Collection, open_page: OpenPage) -> None:
    add(empty, "long.md", "".join(f"# Part {n}\n\n{'words ' * 120}\n\n" for n in range(40)))
    test = choose(open_page(PAGE), "headings")

    def numbers() -> list[str]:
        shown = "\n".join(e.proto.body for e in test.get("html") if "rs-card-head" in e.proto.body)
        return [part.partition("<")[0] for part in shown.split('">A')[1:]]

    assert numbers() == [str(n) for n in range(1, 13)]
    test.button(key="context_on").click().run()
    assert numbers() == [str(n) for n in range(13, 25)]
    assert not test.exception


@pytest.mark.parametrize(
    "context",
    [
        "Made by the Borealis works in 1987.",
        "On 4.8.0 and 1000 units of INC-2023-Q4-011, 2.5 kg.",
        "The Pumps' noise, 1,000 and 12.000 of them",
        "It says ERR_BAT_LOW and Low-Bat for Tarnfell's 7 loggers; Straße 7",
    ],
)
def test_a_documents_words_by_their_parts_flag_as_its_whole_text_does(context: str) -> None:
    document = (
        "Tarnfell has 1,000 units (INC-2023-Q4-011); ERR_BAT_LOW in 4.8.0, pump 2,5 kg, STRASSE. 12000"
    )

    assert foreign(context, Vocabulary(document).near(context)) == foreign(context, document)


def test_a_move_says_which_way() -> None:
    assert move(31, 4) == '31 → <span class="up">4 ▲27</span>'
    assert move(4, 31) == '4 → <span class="down">31 ▼27</span>'
    assert move(3, None) == '3 → <span class="down">— ▼</span>'
    assert move(5, 5) == '<span class="same">5 → 5</span>'


def test_a_ranked_chunk_is_read_alone(
    machines: Collection, open_page: OpenPage, claude: ClaudeServer
) -> None:
    test = choose(open_page(PAGE), "headings")
    test.button(key="context_index_do").click().run()
    test.text_input(key="query_box").set_value("seal")
    test.button(key="context_query").click().run()
    pills = next(group for group in test.button_group if group.key == "context_jump")
    assert "A2" in pills.options

    pills.set_value("A2").run()

    assert not test.exception
    assert "Replace the seal" in shown_text(test)
    assert "A dry bearing" not in shown_text(test)
    test.button(key="context_only_off").click().run()
    assert "A dry bearing" in shown_text(test)
