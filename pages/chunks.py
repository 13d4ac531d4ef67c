"""Chunks: how a document is cut, seen before anything is paid for; any hit opens here at its span."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from core.chunking import Sizes, SizeTable, size_summary
from core.collection import Collection, DocumentsOfVersion
from core.contextualizing import contexts_for
from core.embedding import load_embedder
from core.errors import RankscopeError
from core.protocols import Embedder
from core.settings import ChunkSettings, IndexSettings
from core.types import Document
from core.vectors_cache import shared_cache
from pages.ui import draw, people, state
from pages.ui.chunk_controls import chunk_controls
from pages.ui.chunk_work import Cut, Cutting, Survey, cut, known_cut, survey, too_many
from pages.ui.document_view import Label, draw_document, view_data
from pages.ui.frame import frame
from pages.ui.index_bar import ask, index_bar
from pages.ui.listing import documents_of
from pages.ui.meter import Meter, duration
from pages.ui.plain import counted, plain, sentence

_LISTED = 2_000  # documents offered at a time


@dataclass(frozen=True)
class _Opened:
    """The document on show and, where a link named one, the span to mark."""

    position: int
    document: Document
    mark: tuple[int, int] | None


def main() -> None:
    frame("chunks")
    collection = state.collection()
    documents = documents_of(collection)
    if not len(documents):
        draw.notice(
            "No documents in this collection yet: nothing to cut. Add some on the Documents page.",
            "info",
        )
        return
    opened = _choose(documents)
    with st.sidebar:
        draft = chunk_controls()
    embedder = _model(draft.model)
    if embedder is None:
        return
    cutting = Cutting(documents, draft, contexts_for(draft.context, documents, collection), embedder)
    surveyed = (
        collection.id,
        people.whom(),
        documents.version,
        draft.fingerprint(),
        cutting.contexts.digests,
    )
    found: tuple[object, Survey] | None = st.session_state.get("chunk_survey")
    plan = found[1] if found and found[0] == surveyed else None
    previewed = not _pays_to_cut(draft, embedder)
    if not previewed:
        draw.notice(
            "Semantic cutting embeds every sentence, and this model's service charges for it: no preview. "
            "Choose another strategy or model to see the cut.",
            "info",
        )
    elif opened is not None:
        _show(opened, cutting, plan)
    with st.sidebar:
        working = _index(collection, plan, draft, embedder)
        if plan is None and previewed:
            st.caption("Moving the settings above indexes nothing.")
            label, help = "See what indexing would take", "Cuts the whole collection."
            if st.button(label, key="chunk_survey_do", help=help):
                working = partial(_survey, st.empty(), surveyed, cutting)
    # Last, so that the page is whole while it runs.
    if working:
        working()


def _pays_to_cut(draft: IndexSettings, embedder: Embedder) -> bool:
    return draft.chunking.strategy == "semantic" and hasattr(embedder, "estimate_dollars")


def _model(name: str) -> Embedder | None:
    """The model that counts the tokens. One that failed is not tried at every run: that may take a minute."""
    failed = st.session_state.get("chunk_model_failed", ("", ""))
    if failed[0] != name:
        try:
            # A model that is not on this machine yet is downloaded by its library.
            with st.spinner(f"Loading the model {plain(name)} …", show_time=True):
                return load_embedder(name)
        except RankscopeError as error:
            failed = st.session_state["chunk_model_failed"] = (name, str(error))
    draw.notice(failed[1], "error")
    st.button("Try again", key="chunk_model_again", on_click=_forget_failure)
    return None


def _forget_failure() -> None:
    st.session_state.pop("chunk_model_failed", None)


# The document


def _choose(documents: DocumentsOfVersion) -> _Opened | None:
    link = _follow_link(documents)
    shown = list(range(len(documents)))
    if len(documents) > _LISTED:
        wanted = st.text_input(
            "Find a document", key="chunk_find", placeholder="Part of a name or title"
        ).casefold()
        shown = [
            n for n in shown if wanted in f"{documents.names[n]}\n{documents.titles[n]}".casefold()
        ][:_LISTED]
        at = st.session_state.get("chunk_document")
        if at is not None and at not in shown:
            shown.insert(0, at)
    if not shown:
        draw.notice("No document has that in its name or title.", "info")
        return None
    if st.session_state.get("chunk_document") not in shown:
        st.session_state["chunk_document"] = shown[0]
    position = st.selectbox(
        "Document",
        shown,
        key="chunk_document",
        format_func=lambda n: _document_name(documents, n),
        on_change=_leave_link,
    )
    try:
        document = documents[position]
    except RankscopeError as error:
        draw.notice(str(error), "warning")
        return None
    mark = None
    if link is not None and link[0] == documents.ids[position]:
        start, end = max(0, link[1]), min(link[2], len(document.text))
        mark = (start, end) if start < end else None
    return _Opened(position, document, mark)


def _document_name(documents: DocumentsOfVersion, position: int) -> str:
    name, title = documents.names[position], documents.titles[position]
    return name if not title or title == name else f"{title} · {name}"


def _follow_link(documents: DocumentsOfVersion) -> tuple[str, int, int] | None:
    """The link's document and span. A link that was not followed yet chooses document and place."""
    given = st.query_params.get("doc")
    if not given:
        return None
    link = (given, _whole(st.query_params.get("start")), _whole(st.query_params.get("end")))
    if given not in documents.ids:
        draw.notice(
            "The document that the link names is not in this collection: it was removed or replaced.",
            "warning",
        )
        return None
    if st.session_state.get("chunk_link") != link or "chunk_document" not in st.session_state:
        st.session_state["chunk_link"] = link
        st.session_state["chunk_document"] = documents.ids.index(given)
        st.session_state["chunk_at"] = max(0, link[1])
    return link


def _whole(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 12 else 0


def _leave_link() -> None:
    for name in ("doc", "start", "end"):
        if name in st.query_params:
            del st.query_params[name]
    st.session_state["chunk_at"] = 0


def _show(opened: _Opened, cutting: Cutting, plan: Survey | None) -> None:
    document, draft, embedder = opened.document, cutting.settings, cutting.embedder
    if document.chunks:
        draw.notice(
            "This document's chunks were made elsewhere: it is not split, whatever the settings say.",
            "info",
        )
    elif count := too_many(len(document.text), draft.chunking):
        draw.notice(
            f"These settings would cut this document into about {count:,} chunks. Lower the overlap.",
            "warning",
        )
        return
    try:
        made = known_cut(cutting, opened.position) or _cut(opened, cutting)
    except RankscopeError as error:
        draw.notice(f"The document cannot be cut: {error}", "error")
        return
    if not made.chunks:
        draw.notice("This document holds nothing but blanks: no chunks.", "info")
        return
    _summary(made, draft.chunking, embedder)
    _text(opened, made, embedder)
    document_side, collection_side = st.columns(2, gap="large")
    with document_side:
        st.subheader("Sizes in this document", anchor=False)
        sizes = size_summary(made.chunks, made.tokens, embedder.max_tokens)
        characters = np.array([len(chunk.text) for chunk in made.chunks], dtype=np.int64)
        _sizes("document", sizes, characters, np.array(made.tokens, dtype=np.int64))
    with collection_side:
        st.subheader("Sizes in the collection", anchor=False)
        if plan is None:
            st.caption(
                "“See what indexing would take” cuts the whole collection and shows its sizes here."
            )
        else:
            _sizes("collection", plan.sizes, plan.characters, plan.tokens)


def _cut(opened: _Opened, cutting: Cutting) -> Cut:
    draft = cutting.settings
    # A short text is cut before a bar could be read.
    slow = len(opened.document.text) > 200_000 or draft.chunking.strategy == "semantic"
    meter = _meter(draft) if slow else None
    made = cut(cutting, opened.position, opened.document, shared_cache(), meter)
    if meter:
        meter.clear()
    return made


def _meter(draft: IndexSettings) -> Meter:
    embedded = ["sentences embedded"] if draft.chunking.strategy == "semantic" else []
    return Meter("Cutting", *embedded, "chunks counted")


def _summary(made: Cut, settings: ChunkSettings, embedder: Embedder) -> None:
    lengths = [len(chunk.text) for chunk in made.chunks]
    facts = f"{_range(lengths)} characters · {_range(made.tokens)} tokens"
    st.html(f'<p data-testid="chunk-count"><b>{counted(len(lengths), "chunk")}</b> · {facts}</p>')
    if settings.overlap and not made.repeated:
        why = (
            "text is repeated only inside a section that is longer than the size, as far as there is room"
            if settings.strategy == "headings"
            else "it is an upper bound, and nothing whole fits into it"
        )
        st.caption(f"The overlap of {settings.overlap:,} repeats nothing in this document: {why}.")
    if made.truncated:
        which = f"{counted(made.truncated, 'chunk')} {'has' if made.truncated == 1 else 'have'}"
        draw.notice(
            f"{which} more than the {embedder.max_tokens:,} tokens that {embedder.model_id} reads: "
            "what is greyed out does not count in vector search. Make chunks smaller.",
            "warning",
        )


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _text(opened: _Opened, made: Cut, embedder: Embedder) -> None:
    document = opened.document
    length = len(document.text)
    around = min(st.session_state.get("chunk_at", 0), max(length - 1, 0))
    start, stop = made.map.window(length, around)
    if (start, stop) != (0, length):
        _walk(made, start, stop, length)
    mark = opened.mark
    focus = f"{document.id}:{mark[0]}-{mark[1]}" if mark else ""
    runs = made.map.runs(start, stop, mark)
    data = view_data(
        document.text, runs, lambda n: _label(made, n, embedder), f"{document.id}@{start}", focus
    )
    draw_document(data, key="chunk_text")


def _walk(made: Cut, start: int, stop: int, length: int) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", key="chunk_walk"):
        st.button(
            "Back",
            icon=":material/arrow_back:",
            key="chunk_back",
            disabled=start == 0,
            on_click=_go,
            args=(start - (stop - start),),
        )
        st.button(
            "On",
            icon=":material/arrow_forward:",
            key="chunk_on",
            disabled=stop >= length,
            on_click=_go,
            args=(stop,),
        )
        st.number_input(
            "Go to chunk", 1, len(made.chunks), value=None, key="chunk_goto", width=140,
            on_change=_go_to_chunk, args=(made,), placeholder=f"1 to {len(made.chunks):,}",
        )  # fmt: skip
        st.caption(f"Characters {start + 1:,} to {stop:,} of {length:,}")


def _go(position: int) -> None:
    st.session_state["chunk_at"] = max(0, position)


def _go_to_chunk(made: Cut) -> None:
    wanted = st.session_state["chunk_goto"]
    if wanted:
        _go(made.chunks[wanted - 1].start)


def _label(made: Cut, number: int, embedder: Embedder) -> Label:
    chunk, tokens, seen = made.chunks[number], made.tokens[number], made.seen[number]
    facts = [f"{len(chunk.text):,} characters", f"{tokens:,} tokens"]
    if chunk.pages:
        pages = chunk.pages[0] if len(chunk.pages) == 1 else f"{chunk.pages[0]} to {chunk.pages[-1]}"
        facts.append(f"page {pages}" if pages[:1].isdigit() else pages)
    if chunk.columns:
        facts.append("table columns repeated")
    warning = ""
    if seen < chunk.end:
        warning = (
            f"the model reads {embedder.max_tokens:,} tokens: {chunk.end - seen:,} characters cut off"
        )
    return Label(number + 1, " · ".join(facts), " › ".join(chunk.heading_path), warning)


# Sizes


def _sizes(key: str, sizes: SizeTable, characters: NDArray[np.int64], tokens: NDArray[np.int64]) -> None:
    rows = [_size_row("characters", sizes.characters), _size_row("tokens", sizes.tokens)]
    localized = st.column_config.NumberColumn(format="localized")
    numbers = {name: localized for name in rows[0] if name != "Size in"}
    st.dataframe(rows, hide_index=True, key=f"sizes_{key}", column_config=numbers)
    per = f" · {sizes.chunks_per_document:,.1f} a document" if sizes.documents > 1 else ""
    share = f"{sizes.truncated or 0:,} ({sizes.truncated_share or 0:.1%})"
    st.caption(
        f"{counted(sizes.count, 'chunk')}{per} · {share} past the model's {sizes.max_tokens or 0:,} "
        f"tokens · {sizes.overlap_characters:,} characters repeated by overlap"
    )
    unit = st.segmented_control(
        "Histogram of",
        ["Tokens", "Characters"],
        default="Tokens",
        key=f"histogram_{key}",
        label_visibility="collapsed",
    )
    unit = str(unit or "Tokens")
    starts, counts = _histogram(characters if unit == "Characters" else tokens)
    st.bar_chart({unit: starts, "Chunks": counts}, x=unit, y="Chunks", height=170)


def _histogram(values: NDArray[np.int64]) -> tuple[list[int], list[int]]:
    """At most 25 classes of equal whole width: where each begins, and how many values it holds."""
    low, high = int(values.min()), int(values.max())
    width = (high - low) // 25 + 1
    counts = np.bincount((values - low) // width)
    return [low + width * n for n in range(len(counts))], counts.tolist()


def _size_row(unit: str, sizes: Sizes | None) -> dict[str, object]:
    if sizes is None:
        return {"Size in": unit}
    return {
        "Size in": unit,
        "Least": sizes.min,
        "Mean": round(sizes.mean, 1),
        "Median": round(sizes.median, 1),
        "95th percentile": round(sizes.p95, 1),
        "Greatest": sizes.max,
    }


# Indexing


def _index(
    collection: Collection, plan: Survey | None, draft: IndexSettings, embedder: Embedder
) -> Callable[[], None] | None:
    """The index as it is and what is planned for it; gives the work that was asked for."""
    st.subheader("Index", anchor=False)
    indexing = index_bar(collection)
    if plan is not None:
        _plan(plan, draft, embedder)
    return indexing


def _survey(
    place: DeltaGenerator,
    key: tuple[object, ...],
    cutting: Cutting,
) -> None:
    with place.container():
        meter = Meter("Cutting the collection", "documents")
    try:
        found = survey(cutting, shared_cache(), meter)
    except RankscopeError as error:
        draw.notice(f"The collection cannot be cut: {error}", "error")
        return
    st.session_state["chunk_survey"] = (key, found)
    st.rerun()


def _plan(plan: Survey, draft: IndexSettings, embedder: Embedder) -> None:
    missing_key = getattr(embedder, "missing_key", None)
    wanted = missing_key() if missing_key else ""
    if wanted:
        draw.notice(sentence(wanted), "warning")
    if plan.missing:
        cost = f"{plan.missing:,} of {plan.texts:,} texts have no vector yet"
        if plan.priced:
            price = (
                "at a price that is not known" if plan.dollars is None else f"about ${plan.dollars:.4f}"
            )
            cost += f": they go to the model's service, {price}."
        else:
            cost += (
                f": {duration(plan.seconds)} at {plan.rate:,.0f} texts a second." if plan.rate else "."
            )
    else:
        cost = f"All {plan.texts:,} texts have their vectors already: this is quick."
    st.markdown(
        f"**{counted(plan.sizes.count, 'chunk')}** of {counted(plan.sizes.documents, 'document')}. {cost}"
    )
    if not people.may_manage():
        return
    same = draft == state.index_settings()
    st.button(
        "Index with these settings", key="chunk_index", type="primary",
        disabled=same or bool(wanted and plan.missing),
        on_click=ask, args=(draft,),
        help="These are the index's settings already." if same else f"Model {plain(draft.model)}",
    )  # fmt: skip


try:
    main()
except RankscopeError as error:
    draw.notice(str(error), "error")
