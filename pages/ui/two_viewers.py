"""The query on show as two viewers, side by side: what each is shown, and what permissions cost."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from html import escape
from pathlib import Path

import streamlit as st

from core.access import AccessError, Viewer, parse_viewer, visible
from core.corpus import Corpus
from core.errors import RankscopeError
from core.evaluation.corpora import Telling
from core.evaluation.permissions import ViewerRecall, recall_by_viewer
from core.evaluation.results import ResultsCache
from core.explanation import number, stage_title
from core.pipeline import search
from core.report.two_viewers import Line, Listed, lines, listed, ranked_outside
from core.trace import Trace
from pages.ui import draw, evaluate_work, people, state
from pages.ui.access_box import known_names, names_box
from pages.ui.beginning import for_administrators
from pages.ui.listing import all_documents, judgements_of
from pages.ui.plain import counted

_ALL = "everything"
_KIND = "two viewers"
_TRACES = "rs_two_viewers"
_SNIPPET = 150
_CSS = (Path(__file__).parent / "two_viewers.css").read_text(encoding="utf-8")


def two_viewers(trace: Trace, corpus: Corpus) -> None:
    """`corpus` is the whole one, of whose parts both viewers see their own."""
    if for_administrators("Seeing a query as others see it is"):
        return
    st.html(f"<style>{_CSS}</style>")
    chosen = _choose()
    if chosen is None:
        return
    try:
        first, second = (_trace(trace, corpus, viewer) for viewer in chosen)
    except RankscopeError as error:
        draw.notice(f"One of the two cannot be searched: {error}", "error")
        return
    left, right = st.columns(2, gap="large")
    for place, viewer, mine, other in (
        (left, chosen[0], first, second),
        (right, chosen[1], second, first),
    ):
        with place:
            _side(_label(viewer), mine, lines(mine, other), corpus)
    _before_ranking(chosen, first, second)
    _recall(chosen, corpus, trace)


def _choose() -> tuple[Viewer | None, Viewer | None] | None:
    known = known_names(state.collection())
    # The most and the least that anybody sees: what differs is then what access lists keep back.
    for key, usual in (("two_viewers_first", [_ALL]), ("two_viewers_second", [])):
        st.session_state.setdefault(key, usual)
    with st.container(horizontal=True, key="two_viewers_choose"):
        words = [
            names_box(
                label, key, [_ALL, *known], "Nobody in particular", "Blank: what everyone may see."
            )
            for label, key in (("One viewer", "two_viewers_first"), ("The other", "two_viewers_second"))
        ]
    try:
        one, other = (None if given == _ALL else parse_viewer(given) for given in words)
    except AccessError as error:
        draw.notice(str(error), "error")
        return None
    if one == other:
        draw.text("Both see the same: choose another viewer.", "rs-quiet")
        return None
    return one, other


def _label(viewer: Viewer | None) -> str:
    return "somebody who sees everything" if viewer is None else viewer.label


def _trace(shown: Trace, corpus: Corpus, viewer: Viewer | None) -> Trace:
    """The query for a viewer; the latest are kept, as every click draws the tab again. Nothing is paid."""
    seen = corpus.for_viewer(viewer)
    kept: list[Trace] = st.session_state.get(_TRACES, [])
    for one in (shown, *kept):
        same = (one.query, one.settings) == (shown.query, shown.settings)
        if same and one.corpus is seen:
            return one
    found = search(seen, shown.query, shown.settings)
    st.session_state[_TRACES] = [found, *kept][:4]
    return found


def _side(label: str, trace: Trace, shown: list[Line], corpus: Corpus) -> None:
    draw.text(f"As {label}", "rs-subhead")
    seen = len(trace.corpus.item_ids)
    draw.text(
        f"{seen:,} of {counted(len(corpus.item_ids), 'document')}, {len(trace.corpus):,} of "
        f"{counted(len(corpus), 'chunk')}; {counted(len(shown), 'passage')} found.",
        "rs-quiet",
    )
    if fired := trace.record.ruled.fired:
        draw.text(f"Rules that hold: {', '.join(fired)}.", "rs-quiet")
    for note in trace.notes:
        draw.text(note, "rs-quiet")
    st.html(f'<ol class="rs-seen">{"".join(_line(trace, one) for one in shown)}</ol>')


def _line(trace: Trace, one: Line) -> str:
    passage = one.passage
    title = trace.corpus.item_titles[passage.item] or trace.corpus.item_names[passage.item]
    text = " ".join(trace.text_of(passage)[: 2 * _SNIPPET].split())[:_SNIPPET]
    if one.other is None:
        mark = f'<span class="only">only here: {escape(one.why)}</span>'
    else:
        told = "same place" if one.other == one.rank else f"{one.other:,} for the other"
        mark = f'<span class="place">{", ".join(filter(None, (told, escape(one.why))))}</span>'
    return f'<li><b>{one.rank:,}</b>{escape(title)}{mark}<span class="text">{escape(text)}</span></li>'


def _before_ranking(viewers: tuple[Viewer | None, Viewer | None], first: Trace, second: Trace) -> None:
    """What shows that permissions were applied before anything was ranked."""
    draw.text("Permissions come before ranking", "rs-subhead")
    documents = all_documents(state.collection())
    told = []
    for viewer, trace in zip(viewers, (first, second), strict=True):
        ids = {documents.ids[at] for at in visible(documents.access, viewer)}
        total, outside = ranked_outside(trace, ids)
        told.append(
            f"{total:,} lines in all lists for {_label(viewer)}, {outside:,} of hidden documents"
        )
    draw.text(
        f"Checked here against who may see each document: {'; '.join(told)}. Each list below is made of what its viewer "
        "sees and nothing else: it is as full as that allows, and how rare a word is, is counted among that.",
        "rs-text",
    )
    rows = [_row(one, second) for one in listed(first, second)]
    draw.table(
        ("List", "Lines for one", "of these hidden from the other", "Lines for the other", "Best line that both have, in", "Score for one", "Score for the other"),
        rows,
        numeric=(1, 2, 3, 5, 6),
    )  # fmt: skip


def _row(one: Listed, second: Trace) -> tuple[str, ...]:
    if one.line is None or one.scores is None:
        line, scores = "none", ("–", "–")
    else:
        corpus = second.corpus
        item = one.line if one.unit == "item" else int(corpus.item_of[one.line])
        line = corpus.item_titles[item] or corpus.item_names[item]
        scores = (number(one.scores[0]), number(one.scores[1]))
    title = stage_title(f"items.{one.name}") if one.unit == "item" else stage_title(one.name)
    return (title, f"{one.ranked:,}", f"{one.hidden:,}", f"{one.second:,}", line, *scores)


def _recall(viewers: tuple[Viewer | None, Viewer | None], corpus: Corpus, trace: Trace) -> None:
    draw.text("Recall over the judged set", "rs-subhead")
    collection = state.collection()
    judged, fingerprint = judgements_of(collection)
    if not any(query.answerable for query in judged.queries):
        draw.text(
            "No golden query has evidence yet: judge results, or load a set on the Evaluate page.",
            "rs-quiet",
        )
        return
    who = [viewer and sorted(viewer.principals) for viewer in viewers]
    stamp = f"{corpus.fingerprint} {trace.settings.fingerprint()} {fingerprint} {who}"

    def call(tell: Telling) -> tuple[ViewerRecall, ...]:
        progress, cache = partial(tell, "Measuring queries"), ResultsCache(collection.folder)
        return recall_by_viewer(
            corpus, judged.queries, trace.settings, viewers, progress=progress, cache=cache
        )

    found = evaluate_work.finished(collection, _KIND)
    current = found is not None and found.stamp == stamp
    if not current and not evaluate_work.running(collection, _KIND):
        st.button(
            "Measure as both", key="two_viewers_measure", icon=":material/monitoring:",
            on_click=_begin, args=(stamp, call), help="Searches every golden query twice; nothing is paid",
        )  # fmt: skip
    evaluate_work.progress(collection, _KIND, "measure again, and it goes on from there.")
    if found is not None and current:
        _measured(found.result)


def _begin(stamp: str, call: Callable[[Telling], object]) -> None:
    if people.may_manage():
        evaluate_work.begin(state.collection(), _KIND, stamp, call)


def _measured(both: tuple[ViewerRecall, ...]) -> None:
    k = both[0].k
    rows = [
        (
            _label(one.viewer),
            f"{one.items:,}",
            f"{one.recall:.3f}",
            f"{one.withheld:.1%}",
            "–" if one.recall_of_seen is None else f"{one.recall_of_seen:.3f}",
        )
        for one in both
    ]
    draw.table(
        ("Viewer", "Documents", f"recall@{k}", "Evidence hidden from them", f"recall@{k} of what they may see"),
        rows, numeric=(1, 2, 3, 4),
    )  # fmt: skip
    lost = both[0].recall - both[1].recall
    draw.text(
        f"Permissions make {abs(lost):.3f} of recall@{k} between the two. Evidence that is hidden counts as not found; "
        "the last column leaves it out, and tells what the search itself misses.",
        "rs-quiet",
    )
