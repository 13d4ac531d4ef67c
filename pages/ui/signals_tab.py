"""What ranks the items of a query: every signal's rank of each, what rules did, and what each part is worth."""

from __future__ import annotations

from collections.abc import Sequence, Set
from html import escape
from pathlib import Path
from typing import Any

import streamlit as st

from core.evaluation.compare import Compared, Difference, compare_measured
from core.evaluation.corpora import Telling
from core.evaluation.results import ResultsCache
from core.evaluation.runner import measure_many
from core.explanation import number, stage_title
from core.passages import Passage
from core.report.figures import item_flow
from core.report.leave_one_out import Without, leave_one_out, parts_of, settings_without
from core.report.tables import chunk_label, item_signals
from core.trace import Trace
from pages.ui import draw, evaluate_work
from pages.ui.evaluate_bench import Bench
from pages.ui.plain import counted, sentence

_CSS = (Path(__file__).parent / "signals.css").read_text(encoding="utf-8")
_SHOWN = 10  # items, and as many more at each click
_ROWS = "rs_signal_rows"
_NAMED = 4  # passages that come or go
_KIND = "leave one out"
_K = 20


def signals_tab(bench: Bench, trace: Trace, item: int | None) -> None:
    """`item` is the one selected, whose line stands out in the picture."""
    st.html(f"<style>{_CSS}</style>")
    shown = st.session_state.get(_ROWS, _SHOWN)
    rows = item_signals(trace, shown)
    if rows:
        _told(trace)
        _table(rows, item)
        if len(trace.stage("items").ranking) > shown:
            st.button(f"Show {_SHOWN} more", key="signals_more", type="tertiary", on_click=_more)
        _picture(trace, item)
    else:
        draw.text(
            f"No signal ranks items here: {trace.stage('items').note or 'none is on'}.", "rs-quiet"
        )
    if parts_of(trace):
        _worth(trace)
        _over_judged(bench, trace)


def _more() -> None:
    st.session_state[_ROWS] = st.session_state.get(_ROWS, _SHOWN) + _SHOWN


def _told(trace: Trace) -> None:
    ruled, stage = trace.record.ruled, trace.stage("items")
    if ruled.fired:
        draw.text(f"Rules that hold for this query: {', '.join(ruled.fired)}.", "rs-text")
    notes = dict.fromkeys(filter(None, (*ruled.notes, stage.note)))
    for note in notes:
        draw.text(sentence(note), "rs-quiet")


def _table(rows: Sequence[dict[str, Any]], selected: int | None) -> None:
    signals: dict[str, Any] = next((row["signals"] for row in rows if row["signals"]), {})
    ruled = any(row["said"] for row in rows)
    heads = ["Item", "Place", *(_capital(one["title"]) for one in signals.values())]
    heads += ["What rules did"] if ruled else []
    head = "".join(f'<th scope="col">{escape(title)}</th>' for title in heads)
    body = "".join(_row(row, list(signals), ruled, selected) for row in rows)
    st.html(
        '<div class="rs-scroll" tabindex="0" aria-label="Items and their signals"><table class="rs-table rs-signals">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
    draw.text(
        "The rank in each signal, its score below; point at it for the reason and its term in the sum.", "rs-quiet"
    )  # fmt: skip


def _capital(title: str) -> str:
    return title[:1].upper() + title[1:]


def _row(row: dict[str, Any], signals: Sequence[str], ruled: bool, selected: int | None) -> str:
    item = f"<b>{escape(row['label'])}</b> {escape(row['title'])}"
    place = f"{row['rank']:,}" if row["rank"] else "hidden"
    was = row["fused"]
    moved = bool(row["rank"]) and was != row["rank"]
    before = "no signal ranks it" if was is None else f"{was:,} before pins"
    under = f"<small>{escape(before)}</small>" if moved else ""
    cells = [f"<td>{item}</td>", f"<td>{place}{under}</td>"]
    cells += [_cell(row["signals"].get(name)) for name in signals]
    if ruled:
        said = row["said"] or ([row["hidden"]] if row["hidden"] else [])
        cells.append(f"<td>{'<br>'.join(map(escape, said))}</td>")
    mark = ' class="rs-chosen"' if row["item"] == selected else ""
    return f"<tr{mark}>{''.join(cells)}</tr>"


def _cell(signal: dict[str, Any] | None) -> str:
    if signal is None:
        return "<td></td>"
    term = f"{signal['formula']} = {number(signal['term'])}" if signal["formula"] else ""
    told = escape("\n".join(filter(None, (signal["why"], term))))
    if signal["rank"] is None:
        return f'<td title="{told}">{"–" if not term else escape(number(signal["term"]))}</td>'
    return f'<td title="{told}">{signal["rank"]:,}<small>{escape(signal["digits"])}</small></td>'


def _picture(trace: Trace, item: int | None) -> None:
    draw.text("Each line is an item from signal to signal to its place", "rs-subhead")
    if trace.record.ruled.fired:
        draw.text("▲ boosted, ▼ buried, → put at that rank, ✕ hidden by a rule.", "rs-quiet")
    st.plotly_chart(
        item_flow(trace, selected=item), key="item_flow", config={"displayModeBar": False}, width="stretch"
    )  # fmt: skip


def _worth(trace: Trace) -> None:
    draw.text("This query without each part", "rs-subhead")
    rows = [_without(trace, one) for one in leave_one_out(trace)]
    draw.table(
        ("Without", "Same chunks kept", "Passages moved or merged otherwise", "Gone (rank)", "New (rank)"), rows, numeric=(1, 2)
    )  # fmt: skip


def _without(trace: Trace, one: Without) -> tuple[str, ...]:
    if one.trace is None:
        return (one.title, "–", "–", f"Only a search tells: {', '.join(one.needs)}", "")
    # One that is merged otherwise, with the same best chunk, has not gone.
    best = {passage.best for _, passage in one.lost} & {passage.best for _, passage in one.gained}
    return (
        one.title,
        f"{one.overlap:.0%}",
        f"{one.moved + len(best):,}",
        _named(trace, one.lost, best),
        _named(one.trace, one.gained, best),
    )


def _named(trace: Trace, passages: Sequence[tuple[int, Passage[int]]], but: Set[int]) -> str:
    listed = [
        f"{chunk_label(trace.corpus, one.best)} ({rank})"
        for rank, one in passages
        if one.best not in but
    ]
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return ", ".join(listed[:_NAMED]) + more or "–"


def _over_judged(bench: Bench, trace: Trace) -> None:
    """The same over all judged queries, when it is asked for."""
    if not bench.answerable:
        draw.text(
            "Judge some queries, and this tells what each part is worth over all of them.", "rs-quiet"
        )
        return
    parts = parts_of(trace)
    stamp = f"{bench.stamp} {' '.join(parts)}"
    found = evaluate_work.finished(bench.collection, _KIND)
    current = found is not None and found.stamp == stamp
    if not current and not evaluate_work.running(bench.collection, _KIND):
        queries = counted(bench.answerable, "judged query").replace("querys", "queries")
        st.button(
            f"Measure without each over {queries}", key="leave_one_out_do", icon=":material/monitoring:",
            on_click=_begin, args=(bench, parts, stamp),
            help="Searches each query once with all parts; nothing is paid for it",
        )  # fmt: skip
    evaluate_work.progress(bench.collection, _KIND, "measure again, and it goes on from there.")
    if found is not None and current:
        _judged(found.result)


def _begin(bench: Bench, parts: Sequence[str], stamp: str) -> None:
    corpus, settings = bench.corpus, bench.search
    assert corpus is not None
    labels = [f"recall@{min(_K, settings.k)}", f"ndcg@{min(10, settings.k)}"]

    def call(tell: Telling) -> Compared:
        names = ["All parts", *(stage_title(part) for part in parts)]
        tried = [settings, *(settings_without(settings, part) for part in parts)]
        measured = measure_many(
            corpus, bench.queries, tried, lambda done, total: tell("Measuring queries", done, total),
            ResultsCache(bench.collection.folder), stages=("kept",),
        )  # fmt: skip
        return compare_measured(dict(zip(names, measured, strict=True)), labels, ("kept",))

    evaluate_work.begin(bench.collection, _KIND, stamp, call)


def _judged(found: Compared) -> None:
    draw.text("The judged queries without each part", "rs-subhead")
    draw.table(
        ("Without", "Metric", "With all", "Without it", "Difference", "95 % interval", ""),
        [_difference(one) for one in found.differences],
        numeric=(2, 3, 4),
    )
    for note in found.notes:
        draw.text(sentence(note), "rs-quiet")


def _difference(one: Difference) -> tuple[str, ...]:
    told = one.comparison
    return (
        told.names[1],
        told.metric,
        *(f"{mean:.3f}" for mean in told.means),
        f"{told.difference:+.3f}",
        f"{told.low:+.3f} to {told.high:+.3f}",
        {None: "not distinguishable", told.names[0]: "worse without it"}.get(
            told.better, "better without it"
        ),
    )
