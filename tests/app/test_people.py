"""Who uses the app and whom it shows, on every page: locally, signed in, and viewed as somebody else."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.runtime.secrets import Secrets
from streamlit.testing.v1 import AppTest

from core.access import Viewer, parse_access, parse_viewer
from core.answering import AnswerStore
from core.answering.inquiry import Inquiry, Source
from core.behaviour.events import Event
from core.behaviour.forms import Log, read_log
from core.behaviour.store import Behaviour
from core.collection import Collection, open_collection
from core.corpus import build_corpus
from core.documents import ListedDocuments
from core.evaluation import open_judgements
from core.pipeline import search
from core.settings import SearchSettings, Settings
from pages.ui import answer_offer, behaviour_import, evaluate_work, happened, resources, state
from tests.app.conftest import ROOT, add, columns_data, shown_text

OpenPage = Callable[..., AppTest]
Ask = Callable[..., AppTest]
SEARCH, DOCUMENTS = "app.py", "pages/documents.py"
PAGES = (
    SEARCH,
    DOCUMENTS,
    *(f"pages/{name}.py" for name in ("chunks", "context", "answer", "evaluate", "signals")),
)
AUTH = {
    "auth": {
        "redirect_uri": "http://localhost:8501/oauth2callback",
        "cookie_secret": "a-secret-of-this-test",
        "client_id": "rankscope",
        "client_secret": "of-this-test",
        "server_metadata_url": "http://localhost:9400/.well-known/openid-configuration",
    },
    "rankscope": {"administrators": ["group:admins", "user:root@example.org"]},
}


def claims(email: str = "anna@example.org", **others: Any) -> dict[str, Any]:
    return {"is_logged_in": True, "email": email, "sub": "42", "exp": time.time() + 600, **others}


@pytest.fixture
def divided(machines: Collection) -> Collection:
    """Pumps for sales, fans for anna alone, lamps for everyone."""
    ids = dict(zip(machines.documents().names, machines.documents().ids, strict=True))
    machines.set_access([ids["pumps.md"]], parse_access("group:sales"))
    machines.set_access([ids["fans.md"]], parse_access("anna@example.org"))
    return machines


@pytest.fixture
def ask(divided: Collection) -> Ask:
    """Opens a page where people sign in: `ask("app.py", claims(…), q="…")`."""

    def run(page: str, user: dict[str, Any] | None, secrets: Any = None, **parameters: str) -> AppTest:
        test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        test.secrets = dict(AUTH if secrets is None else secrets)
        test.user = user or {}
        if page != SEARCH:
            test.switch_page(page)
        for name, value in parameters.items():
            test.query_params[name] = value
        return test.run()

    return run


def everything(test: AppTest) -> str:
    """All that stands on the page in any element."""
    return " ".join(str(element.proto) for element in test.main) + " ".join(
        str(element.proto) for element in test.sidebar
    )


def keys(test: AppTest) -> set[str]:
    return {button.key for button in test.button}


def names(test: AppTest) -> list[str]:
    return [row["Name"] for row in test.dataframe[-1].value.to_dict("records")]


def items(test: AppTest) -> list[str]:
    """Ids of the documents in any column."""
    data = json.dumps(columns_data(test))
    return [one for one in open_collection("Machines").documents().ids if one in data]


# Nobody signed in


@pytest.mark.parametrize("page", PAGES)
def test_who_is_not_signed_in_sees_nothing_of_any_collection(ask: Ask, page: str) -> None:
    test = ask(page, None, q="bearing")

    assert not test.exception
    assert "Sign in to see documents." in shown_text(test)
    assert [button.label for button in test.button] == ["Sign in"]
    for word in ("Machines", "pumps", "fans", "lamps", "bearing", "Settings"):
        assert word not in everything(test)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"exp": time.time() - 1}, "Your sign-in is over"),
        ({"exp": None}, "Your sign-in is over"),
        ({"exp": float("inf")}, "Your sign-in is over"),
        ({"email_verified": False}, "anna@example.org is not verified"),
        ({"email_verified": "false"}, "anna@example.org is not verified"),
        ({"email": "", "sub": " "}, "neither an email address nor an account"),
        ({"is_logged_in": "yes"}, "Sign in to see documents."),
    ],
)
def test_a_sign_in_that_cannot_be_used_shows_nothing(ask: Ask, wrong: dict[str, Any], said: str) -> None:
    test = ask(DOCUMENTS, claims() | wrong)

    assert said in shown_text(test)
    assert not test.dataframe
    assert "Machines" not in everything(test)


def test_each_provider_has_a_button(ask: Ask) -> None:
    shared = {name: AUTH["auth"][name] for name in ("redirect_uri", "cookie_secret")}
    provider = {name: one for name, one in AUTH["auth"].items() if name not in shared}
    test = ask(SEARCH, None, {"auth": {**shared, "work": provider, "school": provider}})

    assert [button.label for button in test.button] == ["Sign in with `work`", "Sign in with `school`"]


def test_secrets_that_cannot_be_read_let_nobody_in(
    divided: Collection, open_page: OpenPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = tmp_path / "secrets.toml"
    secrets.write_text('[auth]\nclient_secret = "a-secret')
    monkeypatch.setattr(st, "secrets", Secrets())
    before = st.get_option("secrets.files")
    st.config._set_option("secrets.files", [str(secrets)], "a test")
    try:
        test = open_page(DOCUMENTS)
    finally:
        st.config._set_option("secrets.files", before, "a test")

    assert "The app's secrets cannot be read, so nobody is let in" in shown_text(test)
    assert "a-secret" not in everything(test)
    assert not test.dataframe


# Somebody signed in


def test_a_viewer_sees_what_is_theirs_and_the_counts_are_of_that(ask: Ask) -> None:
    anna = ask(DOCUMENTS, claims())
    bert = ask(DOCUMENTS, claims("Bert@Example.org", groups=["Sales"]))
    stranger = ask(DOCUMENTS, claims("x@example.org", groups="others"))

    assert names(anna) == ["fans.md", "lamps.md"]
    assert names(bert) == ["pumps.md", "lamps.md"]
    assert names(stranger) == ["lamps.md"]
    assert "1 of 1 file · 1 document · 53 characters" in "".join(c.value for c in stranger.caption)
    for hidden in ("pumps", "Pumps", "fans", "Fans"):
        assert hidden not in everything(stranger)


def test_who_has_no_address_is_known_by_the_account(ask: Ask, divided: Collection) -> None:
    lamps = divided.documents().ids[2]
    divided.set_access([lamps], parse_access("user:42"))

    assert names(ask(DOCUMENTS, claims(""))) == ["lamps.md"]
    assert names(ask(DOCUMENTS, claims())) == ["fans.md"]


def test_a_search_ranks_only_what_the_viewer_may_see(ask: Ask, divided: Collection) -> None:
    anna = ask(SEARCH, claims(), q="bearing grease")
    bert = ask(SEARCH, claims("bert@example.org", groups=["sales"]), q="bearing grease")
    pumps, fans, lamps = divided.documents().ids

    assert items(anna) == [fans, lamps]
    assert items(bert) == [pumps, lamps]
    assert "Pumps" not in everything(anna)


def test_what_is_hidden_while_it_is_on_show_is_not_drawn_again(
    ask: Ask, divided: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of the page that is drawn by itself holds a trace of before; here it changes in between."""
    fans, lamps = divided.documents().ids[1:]
    told = happened.shown

    def hide(*facts: Any) -> None:
        divided.set_access([fans], frozenset())
        told(*facts)

    monkeypatch.setattr(happened, "shown", hide)
    anna = ask(SEARCH, claims(), q="bearing grease")

    assert items(anna) == [lamps]
    assert "squeaks" not in everything(anna)


def test_a_document_on_show_is_there_while_its_text_is_the_same(divided: Collection) -> None:
    corpus, now = build_corpus(divided, divided.settings().index), [*divided.documents()]
    assert state.all_there(corpus, ListedDocuments(now))
    assert not state.all_there(corpus, ListedDocuments(now[1:]))
    assert not state.all_there(corpus, ListedDocuments([replace(now[0], text="Other words."), *now[1:]]))


def test_an_administrators_filter_is_nobody_elses(ask: Ask, divided: Collection) -> None:
    root = ask(SEARCH, claims("root@example.org"), q="bearing", filters="title = Pumps")
    next(one for one in root.toggle if one.label == "Two stages").set_value(False).run()

    assert root.session_state["rs_search"].filters == "title = Pumps"
    assert divided.settings().search == SearchSettings(two_stage=False)
    divided.save_settings(
        Settings(search=SearchSettings(filters="title = Pumps"))
    )  # of an earlier version
    anna = ask(SEARCH, claims(), q="bearing")
    assert anna.session_state["rs_search"] == SearchSettings()
    assert "Pumps" not in everything(anna)


def test_a_link_to_a_hidden_document_opens_nothing_of_it(ask: Ask, divided: Collection) -> None:
    pumps = divided.documents().ids[0]
    test = ask("pages/chunks.py", claims(), doc=pumps, start="0", end="20")

    assert "The document that the link names is not in this collection" in shown_text(test)
    box = next(one for one in test.selectbox if one.label == "Document")
    assert box.options == ["Fans · fans.md", "Lamps · lamps.md"]
    assert "rattle" not in everything(test)


def test_groups_come_from_the_claim_that_is_named(ask: Ask) -> None:
    secrets = AUTH | {"rankscope": {"groups_claim": "roles"}}

    assert names(ask(DOCUMENTS, claims(roles=["sales"]), secrets)) == ["pumps.md", "fans.md", "lamps.md"]
    assert names(ask(DOCUMENTS, claims(groups=["sales"]), secrets)) == ["fans.md", "lamps.md"]


def test_past_queries_are_those_of_the_person(ask: Ask, divided: Collection) -> None:
    divided.log_query("annas question", "", {}, "anna@example.org")
    divided.log_query("berts question", "", {}, "bert@example.org")

    def past(user: dict[str, Any]) -> list[str]:
        return next(box.options for box in ask(SEARCH, user).selectbox if box.label == "Past queries")

    assert past(claims()) == ["annas question"]
    assert past(claims("root@example.org")) == ["berts question", "annas question"]


def test_a_viewer_changes_nothing(ask: Ask, divided: Collection) -> None:
    before = divided.settings()
    documents = ask(DOCUMENTS, claims())
    search = ask(SEARCH, claims(), q="lamp")
    search = next(one for one in search.toggle if one.label == "Two stages").set_value(False).run()

    assert not documents.get("file_uploader")
    assert not keys(documents) & {
        "upload_add",
        "collection_delete",
        "access_set",
    }
    assert search.session_state["rs_search"] == SearchSettings(two_stage=False)
    assert divided.settings() == before
    for page in ("pages/context.py", "pages/signals.py"):
        assert "For administrators" in shown_text(ask(page, claims()))


def test_what_is_not_indexed_yet_is_told_to_those_who_may_see_it(ask: Ask, divided: Collection) -> None:
    add(divided, "valves.md", "# Valves\n\nA valve sticks.\n")
    divided.set_access(divided.documents().ids[3:], parse_access("anna@example.org"))
    told = "1 document not indexed yet: search does not find them"

    assert told in shown_text(ask(SEARCH, claims()))
    assert "not indexed" not in shown_text(ask(SEARCH, claims("bert@example.org")))
    assert "1 file not yet indexed" in shown_text(ask(SEARCH, claims("root@example.org")))


def test_nothing_that_may_be_seen_looks_like_an_empty_collection(ask: Ask, divided: Collection) -> None:
    divided.set_access(divided.documents().ids, frozenset())
    for page in (SEARCH, "pages/answer.py", "pages/evaluate.py"):
        test = ask(page, claims())
        assert "“Machines” has no documents that you may see." in shown_text(test)
    assert not ask(DOCUMENTS, claims()).dataframe


def test_judgements_of_hidden_documents_are_neither_listed_nor_counted(
    ask: Ask, divided: Collection
) -> None:
    documents = divided.documents()
    store = open_judgements(divided)
    store.judge("why does the pump rattle", documents.ids[0], 0, 20, 1, documents)
    store.judge("why does the lamp flicker", documents.ids[2], 0, 20, 1, documents)
    store.judge("why does the lamp flicker", documents.ids[0], 0, 20, 1, documents)

    anna = ask("pages/evaluate.py", claims())
    root = ask("pages/evaluate.py", claims("root@example.org"))
    assert "1  golden query" in shown_text(anna)
    assert "1  span of evidence" in shown_text(anna)
    assert "2  golden queries" in shown_text(root)
    assert "3  spans of evidence" in shown_text(root)
    assert "rattle" not in everything(anna)
    assert "pumps" not in everything(anna)
    assert "judgements_import_open" not in everything(anna)


def test_answers_made_of_hidden_documents_are_not_listed(ask: Ask, divided: Collection) -> None:
    documents = divided.documents()
    store = AnswerStore(divided.folder)
    for question, ids in (("of both", documents.ids[::2]), ("of lamps", documents.ids[2:])):
        sources = tuple(Source(one, "0", "T", 0, 9, ((0, 9),)) for one in ids)
        inquiry = Inquiry(question, "passages", "claude-x", sources, ("text",) * len(ids))
        store.save(replace(store.begin(inquiry, 0.1, "anna@example.org"), state="whole"))

    assert "of lamps" in shown_text(ask("pages/answer.py", claims()))
    assert "of both" not in everything(ask("pages/answer.py", claims()))
    assert "of both" in shown_text(ask("pages/answer.py", claims("root@example.org")))
    assert "of lamps" not in everything(ask("pages/answer.py", claims("bert@example.org")))


def test_the_same_question_of_somebody_else_is_not_offered_from_the_store(
    ask: Ask, divided: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    divided.set_access(divided.documents().ids, None)  # both see the same, and would send the same
    offered: list[Inquiry] = []
    offer = answer_offer._offer

    def offer_noted(collection: Collection, inquiry: Inquiry, no_key: bool) -> None:
        offered.append(inquiry)
        offer(collection, inquiry, no_key)

    monkeypatch.setattr(answer_offer, "_offer", offer_noted)
    ask("pages/answer.py", claims(), q="lamp driver")
    store = AnswerStore(divided.folder)
    for inquiry in offered:
        store.save(replace(store.begin(inquiry, None, "anna@example.org"), state="whole"))
    stored = {"answer_stored_passages", "answer_stored_base"}

    assert stored <= keys(ask("pages/answer.py", claims(), q="lamp driver"))
    assert stored <= keys(ask("pages/answer.py", claims("root@example.org"), q="lamp driver"))
    assert not stored & keys(ask("pages/answer.py", claims("bert@example.org"), q="lamp driver"))


def test_who_erases_their_events_is_not_told_of_those_on_hidden_documents(
    ask: Ask, divided: Collection
) -> None:
    pumps, _, lamps = divided.documents().ids
    store = Behaviour(divided)
    store.switch(True)
    store.record(
        [
            Event("bearing", one, "open", 1, f"2026-01-0{day}T00:00:00+00:00", user)
            for user in ("anna@example.org", "bert@example.org")
            for day, one in ((1, pumps), (2, pumps), (3, lamps))
        ]
    )
    anna = ask("pages/signals.py", claims(), tab="Behaviour")
    assert "Kept of you: 1 event on documents that you may see." in shown_text(anna)
    anna.button(key="behaviour_erase").click().run()

    assert "Erased all that was kept of you here." in shown_text(anna)
    assert "3 event" not in everything(anna)
    assert store.users() == {"bert@example.org": 3}


def test_a_log_is_read_once_while_its_files_are_chosen(
    ask: Ask, divided: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[list[str]] = []

    def counted(files: dict[str, bytes], *others: Any) -> Log:
        read.append([*files])
        return read_log(files, *others)

    monkeypatch.setattr(behaviour_import, "read_log", counted)
    root = ask("pages/signals.py", claims("root@example.org"), tab="Behaviour")
    log = ("clicks.csv", b"query,document,rank,user\nbearing,fans.md,2,ann\n", "text/csv")
    root.file_uploader[0].set_value([log]).run()
    root.toggle(key="behaviour_on").set_value(True).run()
    assert "1 event on documents here: open 1." in shown_text(root)
    assert read == [["clicks.csv"]]
    root.file_uploader[0].set_value([("wrong.csv", b"a,b\n1,2\n", "text/csv")]).run()
    root.toggle(key="behaviour_on").set_value(False).run()
    assert "No event can be read from wrong.csv" in shown_text(root)
    assert read == [["clicks.csv"], ["wrong.csv"]]


def test_what_indexing_would_take_is_told_of_what_is_seen(
    divided: Collection, open_page: OpenPage
) -> None:
    test = view_as(open_page("pages/chunks.py"), "group:sales")
    test.button(key="chunk_survey_do").click().run()
    assert "chunk_survey_do" not in keys(test)
    test.session_state["rs_view_as"] = parse_viewer("anna@example.org")  # sees as many, but others
    test.run()

    assert "chunk_survey_do" in keys(test)


# Administrators


def test_administrators_see_and_change_everything(ask: Ask) -> None:
    for user in (claims("root@example.org"), claims(groups=["admins"])):
        test = ask(DOCUMENTS, user)
        assert names(test) == ["pumps.md", "fans.md", "lamps.md"]
        assert test.get("file_uploader")


@pytest.mark.parametrize(
    "listed", [[], "", "everyone", ["everyone"], [""], [" "], ["group:admins, sales"]]
)
def test_who_is_not_named_is_no_administrator(ask: Ask, listed: Any) -> None:
    test = ask(DOCUMENTS, claims(groups=["sales"]), AUTH | {"rankscope": {"administrators": listed}})

    assert not test.get("file_uploader")
    assert "Who may see" not in test.dataframe[-1].value


def test_where_nobody_is_named_the_page_says_how(ask: Ask) -> None:
    test = ask(DOCUMENTS, claims(), {"auth": AUTH["auth"]})

    assert 'administrators = ["user:you@example.org", "group:admins"]' in shown_text(test)


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"administrators": ["team:admins"]}, "'team:admins' is neither a user nor a group"),
        (
            {"administrators": 5},
            "administrators in the app's secrets is 5, which names nobody; write a list",
        ),
        ({"administrators": [5]}, "administrators in the app's secrets is [5], which names nobody"),
        ({"administrators": True}, "administrators in the app's secrets is True, which names nobody"),
        ("x", "rankscope in the app's secrets is one value; write a section [rankscope]"),
    ],
)
@pytest.mark.parametrize("page", PAGES)
def test_administrators_that_cannot_be_read_let_nobody_in(
    ask: Ask, page: str, section: Any, said: str
) -> None:
    test = ask(page, claims("5"), AUTH | {"rankscope": section}, q="lamp")

    assert said in shown_text(test)
    assert not test.exception
    assert not test.dataframe
    for word in ("Machines", "lamps.md"):
        assert word not in everything(test)


# Viewing as somebody


def test_a_local_person_sees_everything_and_is_told_so(divided: Collection, open_page: OpenPage) -> None:
    test = open_page(DOCUMENTS)
    test.session_state["account_open"] = True
    test.run()

    assert names(test) == ["pumps.md", "fans.md", "lamps.md"]
    assert "Local: one person, who sees and changes everything." in shown_text(test)


def view_as(test: AppTest, *who: str) -> AppTest:
    test.session_state["account_open"] = True
    test.run()
    box = next(one for one in test.multiselect if one.label == "User and groups")
    assert box.options == ["group:sales", "user:anna@example.org"]
    box.set_value(list(who)).run()
    return test.button(key="view_as_do").click().run()


def test_viewing_as_somebody_shows_theirs_on_every_page_until_it_is_stopped(
    divided: Collection, open_page: OpenPage
) -> None:
    divided.save_settings(Settings(search=SearchSettings(k=7)))
    test = view_as(open_page(DOCUMENTS), "group:sales")

    assert "Viewing as group sales: 2 of 3 documents." in shown_text(test)
    assert names(test) == ["pumps.md", "lamps.md"]
    assert not test.get("file_uploader")
    test.switch_page("pages/signals.py").run()
    assert "Viewing as group sales" in shown_text(test)
    assert "For administrators" in shown_text(test)
    test.switch_page(SEARCH).run()
    next(one for one in test.toggle if one.label == "Two stages").set_value(False).run()
    assert divided.settings().search == SearchSettings(k=7)
    test.switch_page(DOCUMENTS).run()
    test.button(key="view_as_stop").click().run()
    assert names(test) == ["pumps.md", "fans.md", "lamps.md"]
    assert test.get("file_uploader")
    assert "Viewing as" not in shown_text(test)


def test_two_users_at_once_are_no_viewer(divided: Collection, open_page: OpenPage) -> None:
    test = open_page(DOCUMENTS)
    test.session_state["account_open"] = True
    test.session_state["view_as_names"] = ["user:anna@example.org", "user:bert@example.org"]
    test.run()
    test.button(key="view_as_do").click().run()

    assert "a viewer is one user, not anna@example.org and bert@example.org" in shown_text(test)
    assert names(test) == ["pumps.md", "fans.md", "lamps.md"]


def test_what_was_on_show_is_not_shown_to_whom_it_is_viewed_as(
    divided: Collection, open_page: OpenPage
) -> None:
    pumps = divided.documents().ids[0]
    test = open_page(SEARCH, q="bearing grease")
    assert pumps in items(test)
    view_as(test, "user:anna@example.org")

    assert pumps not in items(test)
    assert "rattle" not in everything(test)


# Who may see a document


def test_access_is_set_for_chosen_files_and_shown(divided: Collection, open_page: OpenPage) -> None:
    test = open_page(DOCUMENTS)
    assert [row["Who may see"] for row in test.dataframe[-1].value.to_dict("records")] == [
        "group:sales", "user:anna@example.org", "everyone",
    ]  # fmt: skip
    divided.set_access(divided.documents().ids, None)
    assert {row["Who may see"] for row in test.run().dataframe[-1].value.to_dict("records")} == {
        "everyone"
    }


def test_access_is_taken_from_a_field(empty: Collection, open_page: OpenPage) -> None:
    add(
        empty,
        "notes.csv",
        "title,text,readers\nOne,first words,finance\nTwo,more words,a@b.org\nThree,x y,team:z\n",
    )
    test = open_page(DOCUMENTS)
    test.session_state["access_field_open"] = True
    test.run()
    box = next(one for one in test.selectbox if one.label == "Field")
    box.set_value("readers").run()
    test.button(key="access_from_field").click().run()

    assert [*empty.documents().access] == [
        frozenset({"group:finance"}),
        frozenset({"user:a@b.org"}),
        None,
    ]
    assert "Who may see 2 documents is set from readers." in shown_text(test)
    assert "Left as they were: Three: 'team:z' is neither a user nor a group" in shown_text(test)
    assert test.dataframe[-1].value.to_dict("records")[0]["Who may see"] == "various"


def test_of_a_file_that_is_seen_in_part_only_that_part_is_told(ask: Ask, divided: Collection) -> None:
    add(divided, "notes.csv", "title,text\nOne,first words\nTwo,more words here\n")
    one = divided.documents().ids[3]
    divided.set_access([one], parse_access("group:finance"))
    row = ask(DOCUMENTS, claims()).dataframe[-1].value.to_dict("records")[-1]

    assert (row["Name"], row["Title"], row["Documents"]) == ("notes.csv", "Two", 1)
    assert row["Characters"] == divided.documents().lengths[4]


def test_files_are_uploaded_for_whom_is_chosen(empty: Collection, open_page: OpenPage) -> None:
    test = open_page(DOCUMENTS)
    test = (
        test.file_uploader[0].set_value([("secret.md", b"# Plan\n\nWords of it.", "text/plain")]).run()
    )
    box = next(one for one in test.multiselect if one.label == "Who may see them")
    box.set_value(["team:x"]).run()
    assert "'team:x' is neither a user nor a group" in shown_text(test)
    assert "upload_add" not in keys(test)
    next(one for one in test.multiselect if one.label == "Who may see them").set_value(["board"]).run()
    test.button(key="upload_add").click().run()

    assert [*empty.documents().access] == [frozenset({"group:board"})]


def test_a_query_is_seen_as_two_viewers_side_by_side(divided: Collection) -> None:
    documents = divided.documents()
    store = open_judgements(divided)
    store.judge("bearing grease", documents.ids[0], 0, 60, 1, documents)
    store.judge("bearing grease", documents.ids[1], 0, 60, 1, documents)

    def page() -> None:
        from pages.ui import resources, state
        from pages.ui.frame import frame
        from pages.ui.searching import current_trace
        from pages.ui.two_viewers import two_viewers

        frame("search")
        corpus = resources.seen(state.collection())
        assert corpus is not None
        two_viewers(current_trace(corpus, "bearing grease", state.search_settings()), corpus)

    divided.save_rules(
        '[[rule]]\nname = "for sales"\ngroups = ["sales"]\ndocuments = ["lamps.md"]\nboost = 1\n'
    )
    test = AppTest.from_function(page, default_timeout=60).run()
    assert not test.exception
    shown = shown_text(test)
    assert "As somebody who sees everything" in shown
    assert "3 of 3 documents, 4 of 4 chunks" in shown
    assert "As anybody" in shown
    assert "1 of 3 documents, 1 of 4 chunks" in shown
    assert "Rules that hold" not in shown
    test.session_state["two_viewers_second"] = ["group:sales"]
    shown = shown_text(test.run())
    assert shown.count("Rules that hold: for sales.") == 1
    assert "As group sales" in shown
    assert "2 of 3 documents, 3 of 4 chunks" in shown
    assert shown.count("only here: hidden from the other") == 1
    assert shown.count(", 0 of hidden documents") == 2
    test.button(key="two_viewers_measure").click().run()
    work = evaluate_work.work_of(divided, "two viewers")
    assert work is not None
    work.wait(30)
    rows = shown_text(test.run())
    assert re.search(r"somebody who sees everything +3 +1\.000 +0\.0% +1\.000", rows)
    assert re.search(r"group sales +2 +0\.500 +50\.0% +1\.000", rows)


# What is searched


def test_rules_and_events_of_now_are_searched_with(machines: Collection) -> None:
    before = resources.corpus(machines)
    machines.save_rules(
        '[[rule]]\nname = "no fans"\nquery = "bearing"\ndocuments = ["fans.md"]\nhide = true\n'
    )
    after = resources.corpus(machines)

    assert before is not None
    assert after is not None
    assert after.matrix is before.matrix
    assert [rule.name for rule in after.first_stage.rules.rules] == ["no fans"]
    assert resources.corpus(machines) is after


def test_what_is_done_with_results_counts_from_the_next_query_on(machines: Collection) -> None:
    before = resources.seen(machines)
    assert before is not None
    shown = search(before, "bearing")
    behaviour = Behaviour(machines)
    behaviour.switch(True)
    behaviour.record([Event("bearing", before.item_ids[0], "open", 1, "2026-01-01T00:00:00Z", "a")])

    assert resources.seen(machines, shown) is before
    after = resources.seen(machines)
    assert after is not None
    assert len(after.first_stage.events) == 1
    # A rule is another matter: it holds at once.
    machines.save_rules('[[rule]]\nname = "no fans"\ndocuments = ["fans.md"]\nhide = true\n')
    assert resources.seen(machines, shown) is not before


def test_a_viewers_corpus_follows_who_may_see_what(divided: Collection) -> None:
    whole = build_corpus(divided, divided.settings().index)
    anna = parse_viewer("anna@example.org")
    assert whole.for_viewer(anna).item_names == ("fans.md", "lamps.md")
    assert whole.for_viewer(Viewer()).item_names == ("lamps.md",)
    divided.set_access(divided.documents().ids, frozenset())
    served = resources.corpus(divided)
    assert served is not None
    assert served.for_viewer(anna).item_names == ()
