"""Context: who writes the text that situates each chunk, what that costs, and what it is worth, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from core.collection import Collection
from core.corpus import Corpus
from core.embedding import load_embedder
from core.errors import RankscopeError
from core.protocols import Embedder
from core.settings import PAID_WRITERS, IndexSettings
from pages.ui import context_desk, draw, state
from pages.ui.beginning import corpus_of, for_administrators, no_documents
from pages.ui.context_controls import context_controls, use_context
from pages.ui.context_lab import example, lab
from pages.ui.context_plan import plan_panel, take_said
from pages.ui.context_progress import batch_panel, run_panel, writer_name
from pages.ui.context_ranks import ranks_panel
from pages.ui.context_totals import earlier_writers, totals_panel
from pages.ui.context_work import Bench, bench_of
from pages.ui.frame import frame
from pages.ui.index_bar import ask, index_bar
from pages.ui.listing import documents_of
from pages.ui.meter import Meter
from pages.ui.plain import counted, plain, sentence

Working = Callable[[], None]
_CSS = (Path(__file__).parent / "ui" / "context.css").read_text(encoding="utf-8")


def main() -> None:
    frame("context")
    st.html(f"<style>{_CSS}</style>")
    collection = state.collection()
    if for_administrators("Writing contexts and indexing with them is"):
        return
    if not collection.files():
        no_documents(collection, "give their chunks a context here")
        return
    _follow_run(collection)
    with st.sidebar:
        draft = context_controls()
    if said := take_said():
        draw.notice(sentence(said), "error")
    working: list[Working | None] = []
    corpus = corpus_of(collection)
    bench = _bench(collection, draft, corpus)
    if bench is None:
        return
    writer, busy = draft.context.writer, False
    if writer == "none":
        _invitation(bench)
        earlier_writers(bench)
    elif writer == "headings":
        _headings(bench)
    else:
        if bench.settings.writer_key not in bench.store.writers():
            earlier_writers(bench)
        busy = run_panel(bench)
        batch_panel(bench)
        if not busy:
            working.append(plan_panel(bench))
    working.append(_index(collection, bench))
    if writer != "none":
        compared, building = ranks_panel(collection, corpus, draft)
        working += [building, lab(bench, compared, busy)]
    totals_panel(bench)
    # Last, so that the page is whole while it runs.
    for work in working:
        if work:
            work()


def _follow_run(collection: Collection) -> None:
    """A window that opens while contexts are written shows the settings they are written with."""
    run = context_desk.run_of(collection)
    if run and run.job.running and state.first_time("follow the writing"):
        state.set_index_draft(None if run.draft == state.index_settings() else run.draft)


def _bench(collection: Collection, draft: IndexSettings, corpus: Corpus | None) -> Bench | None:
    """What the page works on; None, and told why, where the model or the chunks cannot be had."""
    embedder = _model(draft.model)
    if embedder is None:
        return None
    place = st.empty()
    meters: list[Meter] = []

    def told(done: int, total: int) -> None:
        if not meters:
            with place.container():
                meters.append(Meter("Cutting", "documents"))
        meters[0](done, total)

    try:
        made = bench_of(collection, documents_of(collection), draft, embedder, corpus, told)
    except RankscopeError as error:
        draw.notice(f"The contexts cannot be shown: {error}", "error")
        return None
    place.empty()
    return made


def _model(name: str) -> Embedder | None:
    """The embedding model, which counts tokens. One that failed is not tried at every run."""
    failed = st.session_state.get("context_model_failed", ("", ""))
    if failed[0] != name:
        try:
            with st.spinner(f"Loading the model {plain(name)} …", show_time=True):
                return load_embedder(name)
        except RankscopeError as error:
            failed = st.session_state["context_model_failed"] = (name, str(error))
    draw.notice(failed[1], "error")
    st.button("Try again", key="context_model_again", on_click=_forget_failure)
    return None


def _forget_failure() -> None:
    st.session_state.pop("context_model_failed", None)


def _invitation(bench: Bench) -> None:
    with st.container(key="invitation"):
        draw.text("Chunks are indexed as they are.", "rs-empty-title")
        draw.text(
            "A chunk cut from its document often no longer says whose figures, which contract or what year "
            "it is about, and a search for these misses it. A context is a short text that says so: it is "
            "indexed with the chunk, for words and for meaning, and never shown as the document's own.",
            "rs-text",
        )
        draw.text(
            "Headings: title, section and opening words, made here at once, free. Claude: one or two "
            "sentences for each chunk, paid once; the plan comes before any cost.",
            "rs-quiet",
        )
        with st.container(horizontal=True):
            for writer, label in (
                ("headings", "Try headings"),
                ("claude", "See what Claude would cost"),
            ):
                st.button(label, key=f"context_try_{writer}", on_click=_try, args=(writer,))
    example(bench)


def _try(writer: str) -> None:
    use_context(state.index_draft().context.replace(writer=writer))


def _headings(bench: Bench) -> None:
    draw.text(
        f"{counted(bench.chunks, 'chunk')} of {counted(len(bench.documents), 'document')}: each gets title, "
        "heading path, page and the document's opening words as its context. Made here when the collection "
        "is indexed; nothing is sent, nothing is paid.",
        "rs-lead",
    )


def _index(collection: Collection, bench: Bench) -> Working | None:
    """The index's state and the step that brings the contexts into it."""
    with st.container(key="context_index"):
        working = index_bar(collection)
        place = st.empty()  # emptied at once while it is indexed
        if working is None and bench.draft != state.index_settings():
            writer = bench.settings.writer
            written = writer not in PAID_WRITERS or _written(bench)
            label = "Index without contexts" if writer == "none" else "Index with these contexts"
            with place.container(horizontal=True, vertical_alignment="center", key="context_index_row"):
                st.button(
                    label, key="context_index_do", type="primary", icon=":material/database:",
                    on_click=ask, args=(bench.draft,), disabled=not written,
                    help=None if written else "There are none yet: write them first",
                )  # fmt: skip
                draw.text(_now_in_index(bench.draft), "rs-quiet")
    return working


def _now_in_index(draft: IndexSettings) -> str:
    now = state.index_settings()
    told = (
        "now without contexts"
        if now.context.writer == "none"
        else f"now with {writer_name(now.context)}"
    )
    others = [
        path.rpartition(".")[2].replace("_", " ")
        for path in draft.changes(now)
        if not path.startswith("context.")
    ]
    return f"The index is {told}." + (f" Also changes {', '.join(others)}." if others else "")


def _written(bench: Bench) -> int:
    """How many chunks of the collection have a context."""
    digests = bench.store.digests(bench.documents, bench.settings)
    return sum(map(bool, digests))


try:
    main()
except RankscopeError as error:
    draw.notice(str(error), "error")
