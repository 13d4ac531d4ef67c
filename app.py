"""The Search page: a query, every stage side by side, and why each chunk is where it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import streamlit as st

from core.collection import Collection
from core.corpus import Corpus
from core.errors import RankscopeError
from core.explanation import stage_title
from core.report.figures import flow_positions, rank_flow
from core.report.marks import Marks, add_marks, add_recall
from core.report.tables import Reader, chunk_label, columns, flow_rows, flow_stages, strip
from core.trace import Trace
from pages.ui import draw, happened, judging, people, resources, state
from pages.ui.beginning import indexed, no_documents
from pages.ui.controls import index_controls, search_controls
from pages.ui.evaluate_bench import bench_of
from pages.ui.filters import filter_chips
from pages.ui.frame import frame
from pages.ui.index_bar import ask as ask_for_index
from pages.ui.keep import keep_settings, keep_trace
from pages.ui.listing import documents_of, past_queries
from pages.ui.plain import label
from pages.ui.rank_columns import rank_columns
from pages.ui.rerank_offer import rerank_offer
from pages.ui.searching import current_trace, indexes_of, signals_of
from pages.ui.signals_tab import signals_tab
from pages.ui.suggest import is_sample, suggestions
from pages.ui.two_viewers import two_viewers
from pages.ui.why import chunk_search, item_chunks, why


def main() -> None:
    frame("search")
    collection = state.collection()
    corpus, indexing = _ready_corpus(collection)
    with st.sidebar:
        loss = search_controls(
            signals_of(corpus, state.search_settings()),
            indexes_of(state.trace()),
            corpus.fields if corpus else None,
        )
        if people.may_manage():
            index_controls(ask_for_index)
    if corpus is not None:
        judging.ask_golden()
        _query_box(collection)
        filter_chips(corpus.fields)
        if state.query().strip():
            _search(collection, corpus, state.query())
        else:
            _invitation(collection)
        if state.search_settings().vector == "hnsw":
            loss.caption(_loss_sentence(corpus))
        with st.sidebar, st.expander("Keep and share", key="group_keep"):
            keep_settings(state.query())
    if indexing is not None:
        indexing()


def _loss_sentence(corpus: Corpus) -> str:
    settings = state.search_settings()
    share = resources.loss(corpus, settings)
    if share is None:
        return "Vectors are searched exactly: hnswlib cannot be imported."
    depth = min(settings.index("vector").depth, len(corpus))
    return f"Measured loss against exact search: {share:.1%} of the first {depth:,}."


def _ready_corpus(collection: Collection) -> tuple[Corpus | None, Callable[[], None] | None]:
    """The corpus to search, None where there is none yet; and the indexing that was asked for, if any.

    What to do next is then on the page.
    """
    if not documents_of(collection):
        no_documents(collection, "search them here")
        return None, None
    corpus, indexing = indexed(collection, state.shown())
    if corpus is not None:
        resources.warm(corpus.settings.model)
    return corpus, indexing


def _query_box(collection: Collection) -> None:
    state.fill_query_box()
    with st.container(horizontal=True, vertical_alignment="bottom", key="query_row"):
        with (
            st.form("query_form", border=False, width="stretch"),
            st.container(horizontal=True, vertical_alignment="bottom"),
        ):
            st.text_input(
                "Query",
                key=state.QUERY_BOX,
                placeholder="Ask the documents something",
                label_visibility="collapsed",
                width="stretch",
            )
            st.form_submit_button(
                "Search",
                key="search_button",
                type="primary",
                icon=":material/search:",
                on_click=state.submit_query,
            )
        asked = [state.query()] if state.query().strip() else []
        past = list(dict.fromkeys([*asked, *past_queries(collection, 200)]))
        if past:
            st.selectbox(
                "Past queries",
                past,
                key=state.PAST_BOX,
                index=None,
                placeholder="Past queries",
                label_visibility="collapsed",
                on_change=state.ask_past_query,
                help="Queries asked of this collection; choose one to run it again",
                width=210,
            )


def _invitation(collection: Collection) -> None:
    with st.container(key="invitation"):
        draw.text("Type a query to see what every stage makes of it.", "rs-empty-title")
        draw.text(
            "Items are ranked first, then chunks inside the best ones by each index; the lists are "
            "fused, fused again with the item's rank, cut and merged into passages. Every step is shown "
            "with its arithmetic. A thumb on a result, or words selected in its text, keep the query among "
            "the golden ones, with which the Evaluate page measures.",
            "rs-quiet",
        )
        seen = None if people.viewer() is None else set(documents_of(collection).names)
        for number, text in enumerate(suggestions(seen) if is_sample(collection) else ()):
            st.button(
                label(text),
                key=f"suggestion_{number}",
                icon=":material/arrow_forward:",
                on_click=state.ask,
                args=(text,),
            )


def _search(collection: Collection, corpus: Corpus, query: str) -> None:
    trace = current_trace(corpus, query, state.search_settings())
    asked = state.take_log_request()
    happened.shown(trace, asked)
    if asked:
        settings = state.search_settings()
        summary = {"passages": len(trace.passages)}
        collection.log_query(query, settings.to_link(), summary, people.user())
    _results()


@st.fragment
def _results() -> None:
    """All that follows from the trace; choosing a chunk redraws this part only."""
    trace = state.trace()
    if trace is None:
        return
    try:
        if not state.all_there(_corpus_of(trace), documents_of(state.collection())):
            st.rerun()  # something on show was removed, replaced or hidden since: the whole page anew
        _draw_trace(trace, _corpus_of(trace))
    except RankscopeError as error:
        draw.notice(str(error), "error")


def _draw_trace(trace: Trace, corpus: Corpus) -> None:
    reader = state.reader(trace, corpus.settings.analyzer)
    for note in trace.notes:
        draw.notice(note, "info")
    if state.change():
        draw.text(state.change(), "rs-change")
    rerank_offer(trace)
    marks = judging.marks_of(trace)
    judging.select_golden(trace, marks)
    if trouble := judging.take_trouble():
        draw.notice(trouble, "error")
    position, item = _selected(trace)
    _columns(trace, reader, marks, position)
    happened.told(state.collection())
    if not trace.passages:
        draw.notice(
            "No result. Try other words, switch on more indexes or signals, or raise the depth or the "
            "items.",
            "warning",
        )
    tabs = {
        "Why is this here?": partial(_why, trace, reader, marks, position, item),
        "Rank flow": partial(_flow, trace, position),
        "Signals": partial(_signals, trace, corpus, position, item),
        "Two viewers": partial(two_viewers, trace, corpus),
        "Export this trace": partial(keep_trace, trace),
    }
    if not (
        people.may_manage() and any(one is not None for one in documents_of(state.collection()).access)
    ):
        del tabs["Two viewers"]
    for tab, draw_tab in zip(
        st.tabs(list(tabs), key="below", on_change="rerun"), tabs.values(), strict=True
    ):
        if tab.open:
            with tab:
                draw_tab()
    for note in corpus.notes:
        draw.text(note, "rs-quiet")


def _columns(trace: Trace, reader: Reader, marks: Marks, selected: int | None) -> None:
    steps = strip(trace)
    add_recall(steps, trace, marks)
    lists = columns(trace, reader, state.lines_shown(), state.trace_before(), selected)
    add_marks(lists, trace, marks)
    for line in lists[-1]["lines"]:
        line["copy"] = trace.text_of(trace.passages[line["rank"] - 1])
    rank_columns(
        steps,
        lists,
        judging.judged_line(trace, marks),
        state.selected(),
        _select,
        state.show_more_lines,
        _judge,
        judging.say_none,
        partial(happened.did, "copy") if happened.recording(state.collection()) else None,
    )


def _select(chosen: str | None) -> None:
    state.select(chosen)
    happened.did("open", chosen)


def _judge(chunk_id: str, grade: int | None, seen: Sequence[int | None]) -> None:
    judging.judge_chunk(chunk_id, grade, seen)
    if grade is not None:
        happened.did("up" if grade else "down", chunk_id)


def _why(trace: Trace, reader: Reader, marks: Marks, position: int | None, item: int | None) -> None:
    if chunk_search(trace):
        return
    if position is not None:
        why(trace, reader, marks, position)
    elif item is not None:
        item_chunks(trace, reader, item)
    else:
        draw.text("Or choose a card above to see its way through all stages.", "rs-quiet")


def _signals(trace: Trace, corpus: Corpus, position: int | None, item: int | None) -> None:
    chosen = item if position is None else int(corpus.item_of[position])
    signals_tab(bench_of(state.collection(), corpus), trace, chosen)


def _flow(trace: Trace, selected: int | None) -> None:
    draw.text(
        "Each line is a chunk on its way through the stages; a cross ends those that fall out.",
        "rs-quiet",
    )
    st.plotly_chart(
        rank_flow(trace, selected=selected),
        key="rank_flow",
        config={"displayModeBar": False},
        width="stretch",
    )
    with st.expander("The same as a table", key="rank_flow_table"):
        stages = flow_stages(trace)
        positions = flow_positions(trace, selected=selected)
        rows = [
            (
                chunk_label(trace.corpus, row["position"]),
                *(row["ranks"][stage.name] or "–" for stage in stages),
                stage_title(row["lost"]) if row["lost"] else "",
            )
            for row in flow_rows(trace, positions)
        ]
        draw.table(
            ("Chunk", *(stage_title(stage.name) for stage in stages), "Lost at"),
            rows,
            numeric=range(1, len(stages) + 1),
        )


def _selected(trace: Trace) -> tuple[int | None, int | None]:
    """The position of the selected chunk, or that of the selected item."""
    chosen = state.selected()
    if chosen is None:
        return None, None
    corpus = _corpus_of(trace)
    if chosen in corpus.item_ids:
        return None, corpus.item_position(chosen)
    try:
        return corpus.position_of(chosen), None
    except KeyError:
        state.select(None)
        return None, None


def _corpus_of(trace: Trace) -> Corpus:
    assert isinstance(trace.corpus, Corpus)
    return trace.corpus


try:
    main()
except RankscopeError as error:
    draw.notice(str(error), "error")
