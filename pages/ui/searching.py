"""From query and settings to the trace on show: replayed where that can be, else searched."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.corpus import Corpus
from core.errors import NeedsSearch
from core.explanation import stage_title
from core.pipeline import replay, search
from core.pipeline.further import further_signals
from core.pipeline.items import RULES
from core.report import knobs as report
from core.report.knobs import knobs, value_of
from core.report.tables import moved, movement_sentence
from core.settings import PAID_RERANKERS, SearchSettings
from core.trace import Trace
from pages.ui import state
from pages.ui.plain import counted, plain


def current_trace(corpus: Corpus, query: str, settings: SearchSettings) -> Trace:
    """The trace of query and settings; the session keeps it, the one before, and what changed."""
    shown, pay = state.trace(), state.take_pay()
    if shown is None or shown.query != query or shown.corpus is not corpus:
        with st.spinner(_doing("Searching", settings, pay), show_time=True):
            found = search(corpus, query, settings, pay=pay)
        # Said from the first search on, so that the columns do not move down at the first change.
        spent = sum(found.record.milliseconds.values())
        told = f"Searched {_searched(found)} in {took(spent)}."
        state.set_trace(found, told + _paid(found))
        return found
    held = shown.record.reranked is not None and shown.record.reranked.held
    if shown.settings == settings and not (pay and held):
        return shown
    try:
        if pay and held:
            raise NeedsSearch((f"the scores of {settings.rerank}",))
        found, how = replay(shown, settings), "Recomputed from the recorded search"
    except NeedsSearch as reason:
        with st.spinner(_doing("Searching again", settings, pay), show_time=True):
            found = search(corpus, query, settings, pay=pay)
        how = f"Searched again, as the recorded search does not cover {', '.join(reason.reasons)}"
    counts = moved(shown, found)
    told = f"{how}: {movement_sentence(counts)}.{_paid(found)}"
    asked = found.record.reranked
    if not any(counts.values()) and not (asked and asked.failed):  # which the page says by itself
        told += why_nothing_moved(shown.settings, settings, report.signals_of(found), indexes_of(found))
    state.set_trace(found, told, before=shown)
    return found


def _searched(trace: Trace) -> str:
    """How many chunks could be found: those of the items that the filters let pass."""
    whole, passing = counted(len(trace.corpus), "chunk"), trace.record.passing
    return whole if passing is None else f"{int(passing[trace.corpus.item_of].sum()):,} of {whole}"


def _doing(what: str, settings: SearchSettings, pay: bool) -> str:
    """What takes the time: a reranker reads far more than a search does."""
    if settings.rerank == "none" or (settings.rerank in PAID_RERANKERS and not pay):
        return f"{what} …"
    return f"{what}, then reranking up to {counted(settings.rerank_depth, 'chunk')}: {plain(settings.rerank)} …"


def took(milliseconds: float) -> str:
    return f"{milliseconds / 1_000:.1f} seconds" if milliseconds >= 1_000 else f"{milliseconds:.1f} ms"


def _paid(found: Trace) -> str:
    """A sentence on what the reranker cost; with a blank before it."""
    asked = found.record.reranked
    return f" {asked.name} cost ${asked.dollars:.4f}." if asked and asked.dollars else ""


def why_nothing_moved(
    old: SearchSettings, new: SearchSettings, signals: Sequence[str], indexes: Sequence[str]
) -> str:
    """A sentence for a change that changed nothing, naming the setting; with a blank before it."""
    for _, group in knobs(new, signals, indexes):
        for knob in group:
            if knob.value != value_of(old, knob.path):
                reason = knob.idle or "the results are the same at both values"
                name = f"{stage_title(knob.part)} {knob.label}".strip()
                return f" {name}: {reason}."
    return ""


def signals_of(corpus: Corpus | None, settings: SearchSettings) -> tuple[str, ...]:
    """The item signals that a search with these settings has, also before there is one."""
    if corpus is None:
        return ("lexical", "semantic")
    ruled = (RULES,) if len(corpus.first_stage.rules) else ()
    return ("lexical", "semantic", *further_signals(corpus, settings), *ruled)


def indexes_of(trace: Trace | None) -> tuple[str, ...]:
    """The indexes there are: those recorded, else the built-in ones."""
    return (tuple(trace.record.searches) if trace is not None else ()) or ("bm25", "vector")
