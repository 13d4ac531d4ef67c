"""Judgements: the golden queries of a collection, each with its evidence; made, changed, taken away."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape

import streamlit as st

from core.errors import RankscopeError
from core.evaluation import Evidence, GoldenQuery
from pages.ui import draw, links, people, state
from pages.ui.evaluate_bench import Bench, query_link
from pages.ui.evaluate_generate import generate, review
from pages.ui.evaluate_import import exporting, importing, load_sample, outcome
from pages.ui.plain import counted, plain
from pages.ui.suggest import is_sample

_PAGE = 25
_QUOTED = 600  # characters of a judged span that are shown
_OPEN = "evaluate_open_query"
_SHOWN = "evaluate_shown"

_FILTERS: Mapping[str, Callable[[GoldenQuery], bool]] = {
    "All": lambda query: True,
    "With evidence": lambda query: query.answerable,
    "No answer": lambda query: not query.answerable,
    "Not located": lambda query: bool(query.unlocated),
}


def judgements_tab(bench: Bench) -> None:
    """All about golden queries."""
    if bench.queries:
        _counts(bench)
    else:
        _invitation(bench)
    manages = people.may_manage()
    if manages:
        review(bench)
        outcome(bench)
    with st.container(horizontal=True, key="judgements_bar"):
        if manages:
            if is_sample(bench.collection):
                load_sample(bench, primary=not bench.queries)
            importing(bench)
            generate(bench)
            _add(bench)
        if bench.queries:
            exporting(bench)
    if bench.queries:
        _problems(bench)
        _list(bench)


def _counts(bench: Bench) -> None:
    queries = bench.queries
    spans = sum(len(query.evidence) for query in queries)
    rejected = sum(len(query.rejected) for query in queries)
    missing = sum(len(query.unlocated) for query in queries)
    facts = [
        (len(queries), "golden queries" if len(queries) != 1 else "golden query"),
        (bench.answerable, "with evidence"),
        (len(queries) - bench.answerable, "without an answer"),
        (spans, "spans of evidence" if spans != 1 else "span of evidence"),
        (rejected, "judged not relevant"),
    ]
    told = "".join(f"<span><b>{number:,}</b> {what}</span>" for number, what in facts if number)
    if missing:
        told += f'<span class="rs-bad"><b>{missing:,}</b> not located</span>'
    st.html(f'<p class="rs-eval-facts">{told}</p>')


def _invitation(bench: Bench) -> None:
    with st.container(key="invitation"):
        draw.text("No golden queries yet", "rs-empty-title")
        draw.text(
            "A golden query is a question with the places in your documents that answer it. Ten to "
            "twenty are enough to see which stage loses what, fifty to tell settings apart.",
            "rs-text",
        )
        if not people.may_manage():
            draw.text("Those about documents that you see are listed here.", "rs-quiet")
        elif is_sample(bench.collection):
            draw.text(
                "The sample documents come with judged questions: load them, and measure at once.",
                "rs-quiet",
            )
        else:
            draw.text(
                "Judge while you search: a thumb on any result of the Search page makes one. Or import a set "
                "you have, or let Claude draft questions from your documents and accept the good ones.",
                "rs-quiet",
            )
            links.link(links.SEARCH, "Judge on the Search page", ":material/thumb_up:")


def _add(bench: Bench) -> None:
    with st.popover("Add “no answer”", icon=":material/add:", key="judgements_add_open"):
        draw.text(
            "A question that these documents do not answer. It has no recall; it is kept to see what a "
            "search, or an answer, makes of it.",
            "rs-quiet",
        )
        with st.form("judgements_add", border=False, clear_on_submit=True):
            text = st.text_input("Question", key="judgements_add_text")
            if st.form_submit_button("Add", key="judgements_add_do", type="primary"):
                _do(lambda: bench.store.add_query(text))
                st.rerun()


def _do(change: Callable[[], object]) -> None:
    if not people.may_manage():
        return
    try:
        change()
    except RankscopeError as error:
        state.notify(str(error))


def _problems(bench: Bench) -> None:
    problems = bench.judgements.problems
    if not problems:
        return
    lost = sum(bool(query.unlocated) for query in bench.queries)
    label = f"{counted(len(problems), 'judgement')} not located, in {lost:,} {'query' if lost == 1 else 'queries'}"
    draw.notice(f"{label}: they count as evidence that nothing finds.", "warning")
    with st.expander("Which, and why", key="judgements_problems"):
        for problem in problems[:50]:
            draw.text(problem, "rs-quiet")
        if len(problems) > 50:
            draw.text(f"and {len(problems) - 50:,} more; the export names all", "rs-quiet")


def _list(bench: Bench) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", key="judgements_filter_row"):
        wanted = st.text_input(
            "Filter", key="judgements_filter", placeholder="Part of a question or of a document's name",
            label_visibility="collapsed", on_change=_first_page,
        ).casefold()  # fmt: skip
        kind = st.segmented_control(
            "Show", list(_FILTERS), default="All", key="judgements_kind", on_change=_first_page,
            label_visibility="collapsed", required=True,
        ) or "All"  # fmt: skip
    shown = [
        query for query in bench.queries if _FILTERS[kind](query) and wanted in _searchable(bench, query)
    ]
    if not shown:
        draw.text("No golden query is like that.", "rs-quiet")
    most = st.session_state.get(_SHOWN, _PAGE)
    for query in shown[:most]:
        _row(bench, query)
    if len(shown) > most:
        st.button(f"Show more ({most:,} of {len(shown):,})", key="judgements_more", on_click=_more)


def _first_page() -> None:
    st.session_state.pop(_SHOWN, None)


def _more() -> None:
    st.session_state[_SHOWN] = st.session_state.get(_SHOWN, _PAGE) + _PAGE


def _searchable(bench: Bench, query: GoldenQuery) -> str:
    names = (_name(bench, one.document_id) for one in query.evidence)
    return "\n".join((query.id, query.text, *names)).casefold()


def _name(bench: Bench, document_id: str) -> str:
    at = _places(bench).get(document_id)
    return document_id if at is None else bench.documents.names[at]


def _places(bench: Bench) -> dict[str, int]:
    held = st.session_state.get("evaluate_places")
    if held is None or held[0] is not bench.documents:
        places = {one: at for at, one in enumerate(bench.documents.ids)}
        held = st.session_state["evaluate_places"] = (bench.documents, places)
    return held[1]


def _row(bench: Bench, query: GoldenQuery) -> None:
    opened = st.session_state.get(_OPEN) == query.id
    with st.container(key=f"judged_{'open' if opened else 'row'}_{query.id}"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.button(
                plain(query.text), key=f"judged_toggle_{query.id}", type="tertiary",
                icon=":material/expand_more:" if opened else ":material/chevron_right:",
                on_click=_toggle, args=(query.id,),
            )  # fmt: skip
            st.html(f'<p class="rs-eval-marks">{_marks(bench, query)}</p>')
        if opened:
            _open(bench, query)


def _marks(bench: Bench, query: GoldenQuery) -> str:
    parts = []
    if query.evidence:
        parts.append(f'<span class="rs-badge ok">{escape(counted(len(query.evidence), "span"))}</span>')
        names = list(dict.fromkeys(_name(bench, one.document_id) for one in query.evidence))
        more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
        parts.append(f'<span class="path">{escape(names[0] + more)}</span>')
    if query.rejected:
        parts.append(f'<span class="rs-badge">{len(query.rejected):,} not relevant</span>')
    if query.unlocated:
        parts.append(f'<span class="rs-badge bad">{len(query.unlocated):,} not located</span>')
    if not query.answerable:
        parts.append('<span class="rs-badge">no answer</span>')
    return "".join(parts)


def _toggle(id: str) -> None:
    st.session_state[_OPEN] = None if st.session_state.get(_OPEN) == id else id


def _open(bench: Bench, query: GoldenQuery) -> None:
    for one in query.evidence:
        _span(bench, one, "golden")
    for one in query.rejected:
        _span(bench, one, "rejected")
    for lost in query.unlocated:
        st.html(
            f'<div class="rs-eval-span lost"><p class="rs-card-part">not located · {escape(lost.document)}</p>'
            f'<p class="rs-source">{escape(lost.quote or "no words are known")}</p>'
            f'<p class="rs-quiet">{escape(lost.reason)}</p></div>'
        )
    if not query.answerable and not query.rejected:
        draw.text("Nothing answers it: a search is right when it finds nothing that helps.", "rs-quiet")
    with st.container(horizontal=True, vertical_alignment="center", key=f"judged_act_{query.id}"):
        query_link(query, "Open on the Search page")
        if not people.may_manage():
            return
        with (
            st.popover("Rename", icon=":material/edit:", key=f"judged_rename_open_{query.id}"),
            st.form(f"judged_rename_{query.id}", border=False),
        ):
            text = st.text_input("Question", query.text, key=f"judged_text_{query.id}")
            if st.form_submit_button("Rename", key=f"judged_rename_do_{query.id}"):
                _do(lambda: bench.store.rename_query(query.id, text))
                st.rerun()
        with st.popover("Remove", icon=":material/delete:", key=f"judged_remove_open_{query.id}"):
            draw.text("Remove this question with all its judgements?", "rs-text")
            st.button(
                "Remove for good", key=f"judged_remove_{query.id}", type="primary",
                on_click=_do, args=(lambda: bench.store.remove_query(query.id),),
            )  # fmt: skip


def _span(bench: Bench, one: Evidence, kind: str) -> None:
    at = _places(bench).get(one.document_id)
    if at is None:
        return
    text = bench.documents[at].text[one.start : one.end]
    shown = text[:_QUOTED] + ("…" if len(text) > _QUOTED else "")
    grade = "not relevant" if kind == "rejected" else "evidence"
    if one.grade > 1:
        grade += f", grade {one.grade}"
    if one.copies:
        grade += f" · {len(one.copies):,} copies elsewhere count too"
    st.html(
        f'<div class="rs-eval-span {kind}"><p class="rs-card-part">{escape(grade)} · '
        f"{escape(bench.documents.names[at])} · {one.start:,}–{one.end:,}</p>"
        f'<p class="rs-source">{escape(shown)}</p></div>'
    )
    with st.container(key=f"judged_doc_{kind}_{one.document_id}_{one.start}_{one.end}"):
        links.open_document("Read it in its document", one.document_id, one.start, one.end)
