"""All that a browser session remembers, behind named functions."""

from __future__ import annotations

from dataclasses import fields
from urllib.parse import urlencode

import streamlit as st

from core.collection import Collection, create, list_collections, open_collection, remember, remembered
from core.corpus import Corpus
from core.documents import Documents
from core.errors import CollectionError, SettingsError
from core.report.find import find_chunks
from core.report.tables import Reader
from core.sample import ensure_sample
from core.settings import IndexSettings, SearchSettings, Settings
from core.text import Analyzer
from core.trace import CorpusView, Trace
from pages.ui import people

QUERY_BOX = "query_box"
PAST_BOX = "past_box"
PICK_BOX = "pick_words"
PAY_BOX = "pay_reranker"
_LINK_FIELDS = frozenset(spec.name for spec in fields(SearchSettings))
_LAST = "last_collection"
_FILTER = (
    "filter"  # ?filter=…: narrows the collection's own settings; ?filters= comes with all of a link's
)
_DEFAULTS = "settings"  # ?settings=default: a link that changes nothing, but says so


def collection() -> Collection:
    """The collection of the link, else of this session, else the one used last, else the sample."""
    named = st.query_params.get("collection")
    held: Collection | None = st.session_state.get("rs_collection")
    if held is not None and held.folder.exists() and named in (None, held.name):
        return held
    for name in (named, held and held.name, remembered(_LAST)):
        if not name:
            continue
        try:
            found = open_collection(name)
        except CollectionError as error:
            if name == named:
                notify(f"The link names a collection that cannot be opened: {error}")
                del st.query_params["collection"]
            continue
        if held is None or found.folder != held.folder:
            _choose(found)
        return found
    with st.spinner("Reading the sample documents …"):
        first = ensure_sample()
    if first is None:
        names = [info.name for info in list_collections()]
        first = open_collection(names[0]) if names else create("My documents")
    _choose(first)
    return first


def choose_collection(name: str) -> None:
    """Work on another collection from now on. Raises CollectionError when there is none of that name."""
    _choose(open_collection(name))
    st.query_params.clear()
    st.query_params["collection"] = name


def _choose(found: Collection) -> None:
    st.session_state["rs_collection"] = found
    for key in (
        "rs_search",
        "rs_trace",
        "rs_selected",
        "rs_draft",
        "rs_query",
        "rs_change",
        "rs_before",
        "rs_lines",
        "rs_reader",
        "rs_found",
        "rs_there",
    ):
        st.session_state.pop(key, None)
    st.session_state.pop(QUERY_BOX, None)
    if people.may_manage():  # what one viewer opens is not where all the others begin
        remember(_LAST, found.name)


def collection_link() -> dict[str, str]:
    """Query parameters that keep the collection when going to another page."""
    return {"collection": collection().name}


def search_settings() -> SearchSettings:
    """This session's search settings: first those of the link, else those saved with the collection."""
    chosen = collection()
    if "rs_search" not in st.session_state:
        st.session_state["rs_search"] = _linked_settings() or _with_filter(chosen.settings().search)
        if chosen.settings_note:
            notify(chosen.settings_note)
    return st.session_state["rs_search"]


def _unfiltered(settings: SearchSettings) -> SearchSettings:
    """What is kept for everybody: a filter may name what only who wrote it may see, and is of one question."""
    return settings.replace(filters="")


def _with_filter(settings: SearchSettings) -> SearchSettings:
    """The collection's settings with the filter that stands in the address, so that a refresh keeps it."""
    try:
        return settings.replace(filters=st.query_params.get(_FILTER, ""))
    except SettingsError as error:
        notify(f"The filter of the link cannot be used ({error}).")
        return _unfiltered(settings)


def _linked_settings() -> SearchSettings | None:
    given = st.query_params.to_dict()
    linked = {name: value for name, value in given.items() if name.partition(".")[0] in _LINK_FIELDS}
    if not linked and given.get(_DEFAULTS) != "default":
        return None
    try:
        return SearchSettings.from_link(urlencode(linked))
    except SettingsError as error:
        notify(f"The settings of the link cannot be used ({error}). The collection's own are used.")
        return None


def set_search_settings(settings: SearchSettings) -> None:
    """Change the search settings, and save them with the collection where this person may: all but the filters,
    which live in the session, in the address and in links."""
    # The link has had its say; left in the address it would undo the change at the next refresh.
    for name in st.query_params.to_dict():
        if name.partition(".")[0] in _LINK_FIELDS or name in (_DEFAULTS, _FILTER):
            del st.query_params[name]
    if settings.filters:
        st.query_params[_FILTER] = settings.filters
    chosen = collection()
    st.session_state["rs_search"] = settings
    if people.may_manage():
        chosen.save_settings(Settings(chosen.settings().index, _unfiltered(settings)))


def share_link(query: str, settings: SearchSettings) -> str:
    """The address, without its host, that restores collection, query and settings."""
    changed = settings.to_link() or f"{_DEFAULTS}=default"
    return "?" + urlencode({"collection": collection().name, "q": query}) + "&" + changed


def index_settings() -> IndexSettings:
    """What the collection is indexed with."""
    return collection().settings().index


def set_index_settings(settings: IndexSettings) -> None:
    """Index the collection with these settings from the next build on."""
    chosen = collection()
    chosen.save_settings(Settings(settings, chosen.settings().search))
    st.session_state.pop("rs_draft", None)


def index_draft() -> IndexSettings:
    """Index settings as the controls show them: not in force until the collection is indexed again."""
    return st.session_state.get("rs_draft") or index_settings()


def set_index_draft(settings: IndexSettings | None) -> None:
    """Keep a draft of index settings; None drops it."""
    st.session_state["rs_draft"] = settings


def document_link(document_id: str, start: int, end: int) -> dict[str, str]:
    """Query parameters with which pages/chunks.py opens a document at a span."""
    return {**collection_link(), "doc": document_id, "start": str(start), "end": str(end)}


def query() -> str:
    """The query asked last: of the link at first, empty when none was asked."""
    collection()  # choosing another collection forgets the query
    if "rs_query" not in st.session_state:
        st.session_state["rs_query"] = st.query_params.get("q", "")
    return st.session_state["rs_query"]


def set_query(text: str) -> None:
    """Ask this from now on; it stays in the address, so that a refresh asks it again."""
    if text != st.session_state.get("rs_query"):
        for key in ("rs_selected", "rs_lines"):
            st.session_state.pop(key, None)
    st.session_state["rs_query"] = text
    if text.strip() and len(text) <= 2_000:
        st.query_params["q"] = text
    elif "q" in st.query_params:
        del st.query_params["q"]


def fill_query_box() -> None:
    """Before the query box is drawn for the first time: the query asked last."""
    if QUERY_BOX not in st.session_state:
        st.session_state[QUERY_BOX] = query()


def submit_query() -> None:
    """The query box was entered."""
    set_query(st.session_state[QUERY_BOX])
    st.session_state["rs_log"] = bool(query().strip())


def ask(text: str) -> None:
    """Ask this, as if it had been typed and entered."""
    st.session_state[QUERY_BOX] = text
    submit_query()


def ask_past_query() -> None:
    """A past query was chosen from the list: ask it again; the list shows its placeholder again."""
    if st.session_state[PAST_BOX]:
        ask(st.session_state[PAST_BOX])
    st.session_state[PAST_BOX] = None


def take_log_request() -> bool:
    """Whether the query was just asked by the person, and not repeated by a refresh; true once."""
    return st.session_state.pop("rs_log", False)


def pay_once() -> None:
    """The person said yes to what the reranker costs for the results on show."""
    st.session_state["rs_pay"] = True


def take_pay() -> bool:
    """Whether a reranker that costs may be asked now: once, or always where the person chose that."""
    return st.session_state.pop("rs_pay", False) or st.session_state.get(PAY_BOX, False)


def first_time(what: str) -> bool:
    """True once in a session for each collection and `what`."""
    done: set[tuple[str, str]] = st.session_state.setdefault("rs_done", set())
    step = (collection().id, what)
    if step in done:
        return False
    done.add(step)
    return True


def trace() -> Trace | None:
    """The trace on show; none of what another viewer saw in this window."""
    found: Trace | None = st.session_state.get("rs_trace")
    seen_here = False
    try:
        seen_here = found is not None and getattr(found.corpus, "viewer", None) == people.viewer()
    except people.NotSignedIn:
        st.rerun()  # a part of the page drawn by itself: the whole page asks to sign in
    return found if seen_here else None


def all_there(corpus: Corpus, documents: Documents) -> bool:
    """Whether all items of the corpus are among these documents, as they were; looked at once for the same two."""
    held = st.session_state.get("rs_there")
    if held is None or held[0] is not corpus or held[1] is not documents:
        now = set(zip(documents.ids, documents.digests, strict=True))
        there = now.issuperset(zip(corpus.item_ids, corpus.item_digests, strict=True))
        held = st.session_state["rs_there"] = (corpus, documents, there)
    return held[2]


def shown() -> Trace | None:
    """The trace on show, while it is of the query asked last."""
    found = trace()
    return found if found is not None and found.query == query() else None


def set_trace(found: Trace | None, change: str = "", before: Trace | None = None) -> None:
    """Show this trace; `change` says in one sentence how it came about from the trace `before`."""
    st.session_state["rs_trace"] = found
    st.session_state["rs_change"] = change
    st.session_state["rs_before"] = before


def trace_before() -> Trace | None:
    """The trace of the same query that was on show before the last change of settings."""
    before: Trace | None = st.session_state.get("rs_before")
    return before if trace() is not None else None


def change() -> str:
    """How the trace on show came about, in one sentence."""
    return st.session_state.get("rs_change", "")


def selected() -> str | None:
    """The id of what is marked in every column: a chunk, or an item with all its chunks."""
    return st.session_state.get("rs_selected")


def select(chosen: str | None) -> None:
    """Mark this; a list of chunks found by their words has served then."""
    st.session_state["rs_selected"] = chosen
    st.session_state[PICK_BOX] = ""


def found_chunks(corpus: CorpusView, words: str) -> list[int]:
    """`find_chunks`, looked up once for the same words: every click draws the list again."""
    held = st.session_state.get("rs_found")
    if held is None or held[0] is not corpus or held[1] != words:
        held = st.session_state["rs_found"] = (corpus, words, find_chunks(corpus, words))
    return held[2]


def lines_shown() -> int:
    """How many lines each column shows."""
    return st.session_state.get("rs_lines", 20)


def show_more_lines() -> None:
    st.session_state["rs_lines"] = lines_shown() + 20


def reader(found: Trace, analyzer: Analyzer) -> Reader:
    """Reads the chunks of a trace for display; what was read is kept while corpus and query stay."""
    kept: Reader | None = st.session_state.get("rs_reader")
    if kept is None or not kept.serves(found):
        kept = st.session_state["rs_reader"] = Reader(found.corpus, found.query, analyzer)
    return kept


def notify(text: str) -> None:
    """Keep a message for the top of the page."""
    st.session_state.setdefault("rs_notices", []).append(text)


def take_notices() -> list[str]:
    """Messages kept for the top of the page; each is given once."""
    return st.session_state.pop("rs_notices", [])
