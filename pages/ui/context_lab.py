"""The lab: a document's chunks with their contexts, one card each, to be read, edited, accepted or dropped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from html import escape

import streamlit as st

from core.contextualizing.flags import Flags
from core.errors import RankscopeError
from core.explanation import stage_title
from core.report.tables import chunk_hue, item_label
from core.settings import PAID_WRITERS
from core.types import Document, text_hash
from pages.ui import context_desk, draw, links, state
from pages.ui.context_checks import FILTERS, Checked, Looked, check_all, looked
from pages.ui.context_marks import badge, move, terms
from pages.ui.context_plan import say
from pages.ui.context_ranks import Comparison
from pages.ui.context_work import Bench, Span
from pages.ui.meter import Meter
from pages.ui.plain import counted
from pages.ui.prices import dollars

Working = Callable[[], None]

_PAGE = 12  # chunks drawn at a time
_LISTED = 2_000  # documents offered at a time
_STATES = {
    "computed": ("computed", ""),
    "written": ("written", ""),
    "accepted": ("accepted", "ok"),
    "edited": ("edited by you", "ok"),
    "dropped": ("dropped", "bad"),
    "truncated": ("cut off: not used", "bad"),
    "refused": ("refused", "bad"),
    "waiting": ("in a batch", ""),
    "whole": ("needs none: the chunk is the document", ""),
    "missing": ("not written", "bad"),
}


def lab(bench: Bench, compared: Comparison | None, busy: bool) -> Working | None:
    """Draw it; gives the work that was asked for (a look at all documents). `busy`: more are being written."""
    st.subheader("Contexts, chunk by chunk", anchor=False)
    if bench.settings.writer in PAID_WRITERS and not _any(bench):
        st.caption("Each context can be read, edited and dropped here once it is written.")
        if busy:
            _refresh()
        return None
    only = _only(bench)
    checked = _checked(bench)
    with st.container(horizontal=True, vertical_alignment="bottom", key="context_pick"):
        item = _choose(bench, checked)
        if item is None:
            return None
        label = "Look at all documents" if checked is None else "Look again"
        help = "Checks every context of the collection, and marks the documents that have flagged ones"
        asked = st.button(label, key="context_check_all", icon=":material/fact_check:", help=help)
        if busy:
            _refresh()
    working = partial(_check_all, bench, st.empty()) if asked else None
    if checked is not None:
        _found(bench, checked)
    try:
        document = bench.documents[item]
        found = looked(bench, item, document, _failed(bench, item))
    except RankscopeError as error:
        draw.notice(str(error), "warning")
        return working
    asked_terms = frozenset(bench.draft.analyzer.tokens_of(state.query()))
    if only is not None:
        st.button(
            "All chunks of this document",
            key="context_only_off",
            icon=":material/arrow_back:",
            on_click=_all_chunks,
        )
        for one in found:
            if one.span == only:
                _card(bench, item, document, one, compared, asked_terms)
        return working
    counts = {name: sum(one.passes(name) for one in found) for name in FILTERS}
    chosen = st.segmented_control(
        "Show",
        [name for name in FILTERS if counts[name] or name == "All"],
        format_func=lambda name: f"{name} · {counts[name]:,}",
        default="All",
        key=f"context_filter_{item}",
        label_visibility="collapsed",
    )
    shown = [one for one in found if one.passes(chosen or "All")]
    if not shown:
        st.caption("No chunk of this document is like that.")
        return working
    page = _page(len(shown), item, chosen or "All")
    for one in shown[page * _PAGE : (page + 1) * _PAGE]:
        _card(bench, item, document, one, compared, asked_terms)
    return working


def _refresh() -> None:
    st.button("Show what has come", key="context_refresh", icon=":material/refresh:")


def _only(bench: Bench) -> Span | None:
    """The one chunk that was asked for by its rank; its document is chosen. None: all chunks."""
    wanted: tuple[str, Span] | None = st.session_state.get("context_only")
    if wanted is None:
        return None
    item = bench.documents.ids.index(wanted[0]) if wanted[0] in bench.documents.ids else -1
    if item < 0 or wanted[1] not in bench.spans[item]:
        _all_chunks()
        return None
    st.session_state["context_document"] = item
    return wanted[1]


def _all_chunks() -> None:
    st.session_state.pop("context_only", None)


def example(bench: Bench) -> None:
    """One chunk of the collection with the context that its headings give it."""
    with_headings = bench.draft.replace(context=bench.settings.replace(writer="headings"))
    bench = replace(bench, draft=with_headings)
    item = next((item for item, spans in enumerate(bench.spans) if len(spans) > 2), None)
    if item is None:
        return
    try:
        document = bench.documents[item]
    except RankscopeError:  # removed meanwhile
        return
    one = looked(bench, item, document, {})[2]
    draw.text("For example, a chunk of this collection with its headings as context:", "rs-quiet")
    _card(bench, item, document, one, None, frozenset())


def _any(bench: Bench) -> bool:
    """Whether there is anything to read: an answer of the writer, of use or not."""
    return bool(bench.store.totals(bench.settings.writer_key).states)


# Which document


def _choose(bench: Bench, checked: Checked | None) -> int | None:
    documents = bench.documents
    shown = [item for item in range(len(documents)) if bench.spans[item]]
    if checked:
        shown.sort(key=lambda item: -checked.flagged.get(item, 0))
    if len(shown) > _LISTED:
        wanted = st.text_input(
            "Find a document", key="context_find", placeholder="Part of a name or title", width=220
        ).casefold()
        shown = [
            n for n in shown if wanted in f"{documents.names[n]}\n{documents.titles[n]}".casefold()
        ][:_LISTED]
    if not shown:
        draw.notice("No document has that in its name or title.", "info")
        return None
    if st.session_state.get("context_document") not in shown:
        # One with several chunks: a document that is one chunk has no context to look at.
        st.session_state["context_document"] = next(
            (item for item in shown if len(bench.spans[item]) > 1), shown[0]
        )
    return st.selectbox(
        "Document",
        shown,
        key="context_document",
        format_func=partial(_name, bench, checked),
        on_change=_all_chunks,
    )


def _name(bench: Bench, checked: Checked | None, item: int) -> str:
    name, title = bench.documents.names[item], bench.documents.titles[item]
    told = name if not title or title == name else f"{title} · {name}"
    told = f"{item_label(item)} · {told} · {counted(len(bench.spans[item]), 'chunk')}"
    if checked and (count := checked.flagged.get(item)):
        told += f" · {count:,} flagged"
    return told


def _failed(bench: Bench, item: int) -> dict[Span, str]:
    """The spans of a document for which the latest job got nothing, and why."""
    run = context_desk.run_of(bench.collection)
    if run is None or run.draft.context.writer_key != bench.settings.writer_key:
        return {}
    return {(one.start, one.end): one.reason for one in run.job.snapshot().failed if one.item == item}


# A look at all


def _state(bench: Bench) -> tuple[object, ...]:
    version = bench.store.version if bench.settings.writer in PAID_WRITERS else 0
    return bench.collection.id, bench.documents.version, bench.draft.fingerprint(), version


def _checked(bench: Bench) -> Checked | None:
    kept: tuple[object, Checked] | None = st.session_state.get("context_checked")
    return kept[1] if kept and kept[0] == _state(bench) else None


def _check_all(bench: Bench, place: st.delta_generator.DeltaGenerator) -> None:
    with place.container():
        meter = Meter("Looking at", "documents")
    found = check_all(bench, meter)
    st.session_state["context_checked"] = (_state(bench), found)
    st.rerun()


def _found(bench: Bench, checked: Checked) -> None:
    flagged, without = sum(checked.flagged.values()), sum(checked.without.values())
    told = f"{flagged:,} of {counted(checked.contexts, 'context')} flagged"
    if flagged:
        told += f", in {counted(len(checked.flagged), 'document')} (first in the list)"
    if without:
        told += f"; {counted(without, 'chunk')} without a context"
    st.caption(told + ".")


# The cards


def _page(count: int, item: int, chosen: str) -> int:
    """Which dozen of the chunks is on show."""
    pages = -(-count // _PAGE)
    if pages == 1:
        return 0
    place = (item, chosen)
    if st.session_state.get("context_page_of") != place:
        st.session_state["context_page_of"] = place
        st.session_state["context_page"] = 0
    page = min(st.session_state["context_page"], pages - 1)
    with st.container(horizontal=True, vertical_alignment="center", key="context_walk"):
        for label, icon, key, to, off in (
            ("Back", ":material/arrow_back:", "context_back", page - 1, page == 0),
            ("On", ":material/arrow_forward:", "context_on", page + 1, page == pages - 1),
        ):
            st.button(label, icon=icon, key=key, disabled=off, on_click=_go, args=(to,))
        first = page * _PAGE
        st.caption(f"{first + 1:,} to {min(first + _PAGE, count):,} of {counted(count, 'chunk')}")
    return page


def _go(page: int) -> None:
    st.session_state["context_page"] = page


def _card(
    bench: Bench,
    item: int,
    document: Document,
    one: Looked,
    compared: Comparison | None,
    asked: frozenset[str],
) -> None:
    start, end = one.span
    name = f"{item}_{start}_{end}"
    with st.container(border=True, key=f"context_card_{name}"):
        _head(bench, item, one)
        left, right = st.columns(2, gap="medium")
        with left:
            if st.session_state.get("context_editing") == name:
                _editor(bench, document, one, name)
            else:
                _context(one)
                if one.chunk.context:
                    if one.flags.new_terms:
                        st.html(terms(one.flags.new_terms, asked))
                    _flags(one.flags, one.tokens, bench)
                _ranks(compared, one)
                if bench.settings.writer in PAID_WRITERS:
                    _actions(bench, document, one, name)
        with right:
            st.html(
                f'<p class="rs-card-part">Chunk · {one.tokens:,} tokens as embedded</p>'
                f'<div class="rs-card-text" tabindex="0">{escape(one.chunk.text)}</div>'
            )


def _head(bench: Bench, item: int, one: Looked) -> None:
    words, kind = _STATES[one.state]
    marks = badge(words, kind)
    if one.row and one.row.windowed:
        marks += badge("from a part of the document")
    if one.reason and one.state == "missing":
        marks = badge("failed", "bad")
    path = " › ".join(one.chunk.heading_path)
    cost = ""
    if one.row and one.row.dollars is not None:
        cost = f'<span class="rs-quiet">{escape(dollars(one.row.dollars))}</span>'
    place = sum(map(len, bench.spans[:item])) + one.number - 1
    chip = draw.chip(f"{item_label(item)}{one.number}", chunk_hue(place))
    st.html(
        f'<div class="rs-card-head">{chip}<span class="path">{escape(path)}</span>{marks}{cost}</div>'
    )


def _context(one: Looked) -> None:
    row, text, css = one.row, one.chunk.context, ""
    if not text and row and row.text:
        text, css = row.edited or row.text, "dropped"
    elif not text:
        text, css = one.reason or "No context.", "none"
    st.html(
        f'<p class="rs-card-part">Context</p><div class="rs-card-text {css}" tabindex="0">{escape(text)}</div>'
    )


def _flags(found: Flags, tokens: int, bench: Bench) -> None:
    lines = []
    if found.foreign:
        lines.append(f"Not in the document: {', '.join(found.foreign)}")
    if found.orders:
        lines.append(f"Instructions, copied from the chunk: {', '.join(found.orders)}")
    if found.repeated:
        lines.append(f"Repeats the chunk: “{found.repeated}”")
    if found.too_long:
        lines.append(
            f"Context and chunk have {tokens:,} tokens, {bench.embedder.model_id} reads "
            f"{bench.embedder.max_tokens:,}: the rest does not count in vector search"
        )
    if lines:
        st.html("".join(f'<p class="rs-flag">{escape(line)}</p>' for line in lines))


def _ranks(compared: Comparison | None, one: Looked) -> None:
    if compared is None:
        return
    ranks = compared.of(one.chunk.id)
    if not ranks or all(pair == (None, None) for pair in ranks.values()):
        return
    shown = "".join(
        f"<span>{escape(stage_title(name))} {move(*pair)}</span>" for name, pair in ranks.items()
    )
    st.html(f'<div class="rs-ranks">{shown}</div>')


def _actions(bench: Bench, document: Document, one: Looked, name: str) -> None:
    if one.row is None:
        return
    actions: list[tuple[str, str, str, str]] = []
    if one.state == "written":
        actions.append(("accept", "Accept", ":material/check:", "Mark it as read and found good"))
    if one.state != "dropped":
        actions.append(("edit", "Edit", ":material/edit:", "Put your own words in its place"))
    if one.state in ("written", "accepted", "edited"):
        actions.append(
            ("drop", "Drop", ":material/block:", "Index this chunk without a context; it is not asked for again")
        )  # fmt: skip
    if one.state in ("accepted", "edited", "dropped"):
        actions.append(("restore", "Restore", ":material/undo:", "Back to what the writer wrote"))
    if one.state in ("written", "truncated", "refused"):
        actions.append(
            ("clear", "Write anew", ":material/refresh:", "Forget this one: it is among those to write, and paid again")
        )  # fmt: skip
    with st.container(horizontal=True, gap="small", key=f"context_act_{name}"):
        for verb, label, icon, help in actions:
            st.button(
                label, key=f"context_{verb}_{name}", icon=icon, type="tertiary", help=help,
                on_click=_act, args=(bench, document, one.span, verb, name),
            )  # fmt: skip
        links.open_document("Open", document.id, *one.span)


def _act(bench: Bench, document: Document, span: Span, verb: str, name: str) -> None:
    if verb == "edit":
        st.session_state["context_editing"] = name
        return
    act: Mapping[str, Callable[[str, str, Span], None]] = {
        "accept": bench.store.accept,
        "drop": bench.store.drop,
        "restore": bench.store.restore,
        "clear": bench.store.clear,
    }
    try:
        act[verb](bench.settings.writer_key, text_hash(document.text), span)
    except RankscopeError as error:
        say(str(error))


def _editor(bench: Bench, document: Document, one: Looked, name: str) -> None:
    assert one.row is not None
    with st.form(f"context_form_{name}", border=False):
        st.text_area(
            "Context", one.row.edited or one.row.text, key=f"context_words_{name}", height=150,
            label_visibility="collapsed",
        )  # fmt: skip
        with st.container(horizontal=True):
            st.form_submit_button(
                "Save", key=f"context_save_{name}", type="primary", on_click=_save,
                args=(bench, document, one.span, name),
            )  # fmt: skip
            st.form_submit_button("Cancel", key=f"context_cancel_{name}", on_click=_close)


def _save(bench: Bench, document: Document, span: Span, name: str) -> None:
    try:
        words = st.session_state[f"context_words_{name}"]
        bench.store.edit(bench.settings.writer_key, text_hash(document.text), span, words)
    except RankscopeError as error:
        say(str(error))
        return
    _close()


def _close() -> None:
    st.session_state.pop("context_editing", None)
