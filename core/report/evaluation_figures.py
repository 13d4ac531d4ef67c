"""Figures of an evaluation, each with the same told in words. Differences never rest on colour alone:
symbols, hatching and labels carry them too. Names and queries are escaped: plotly reads tags in texts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import inf, isfinite
from typing import Any, NamedTuple

from core.evaluation.funnel import Bar, Ceiling, Funnel
from core.report.plots import Figure

# Blue, vermilion and grey of Okabe and Ito's palette, apart in every form of colour blindness.
_GOOD, _BAD, _QUIET = "#0072B2", "#D55E00", "#8C8C8C"
_PALE = "#8FC1E0"  # not by opacity: words on it must stand out on a dark page as well
_HATCHED = {"shape": "/", "fillmode": "overlay", "solidity": 0.4}
_LABELLED = 8  # more points than this are named on hover only


class Drawing(NamedTuple):
    """A figure, and what it shows in words, for those who do not see it."""

    figure: Figure
    text: str


class Rung(NamedTuple):
    """A step of the ladder: its failure rate with its interval, and the published one where there is one.

    All between 0 and 1.
    """

    name: str
    failure: float
    low: float
    high: float
    published: float | None = None


class Trial(NamedTuple):
    """One setting tried: its quality between 0 and 1, and what a query costs in milliseconds and US dollars.

    `frontier`: no other trial is better in all three. `mark` is a word for the ones to point out, such
    as "default" or "best".
    """

    name: str
    quality: float
    milliseconds: float
    dollars: float = 0.0
    frontier: bool = False
    mark: str = ""


def percent(share: float) -> str:
    """A share of 1 in per cent, with one decimal."""
    return f"{100 * share:.1f} %"


def funnel_bars(funnel: Funnel) -> Drawing:
    """A bar for each stage, in pipeline order: golden evidence that is still there, and what it lost.

    The lines of the indexes stand before "In an index's depth", which any of them is enough for; the last
    line is what the passages hold. Each bar's `customdata` is its stage.
    """
    lines = _funnel_lines(funnel)
    figure = Figure()
    single = [bar.stage in {one.stage for one in funnel.indexes} for bar, _, _ in lines]
    titles = [
        f"{bar.title} alone" if alone else bar.title if bar.on else f"{bar.title} (off)"
        for (bar, _, _), alone in zip(lines, single, strict=True)
    ]
    stages = [bar.stage for bar, _, _ in lines]
    there = [100 * passed for _, passed, _ in lines]
    lost = [100 * gone for _, _, gone in lines]
    figure.add_bar(
        name="still there",
        orientation="h",
        y=titles,
        x=there,
        customdata=stages,
        text=[percent(passed) for _, passed, _ in lines],
        textposition="auto",
        marker={"color": [_PALE if alone else _GOOD for alone in single]},
        hovertemplate="%{y}: %{x:.1f} % still there<extra></extra>",
    )
    figure.add_bar(
        name="lost here",
        orientation="h",
        y=titles,
        x=lost,
        customdata=stages,
        marker={"color": _BAD, "pattern": _HATCHED},
        hovertemplate="%{y}: %{x:.1f} % lost here<extra></extra>",
    )
    # Beside the bars: hatching is no ground to read on.
    figure.add_scatter(
        y=titles,
        x=[passed + gone for passed, gone in zip(there, lost, strict=True)],
        customdata=stages,
        mode="text",
        text=[
            # A space that plotly does not take away: the sign stands clear of the bar.
            f"\u2002−{percent(gone)} · {bar.lost:,}" if gone else ""
            for bar, _, gone in lines
        ],
        textposition="middle right",
        cliponaxis=False,
        hoverinfo="skip",
        showlegend=False,
    )
    figure.update_layout(
        barmode="stack",
        height=60 + 34 * len(lines),
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "traceorder": "normal"},
        margin={"l": 8, "r": 24, "t": 36, "b": 8},
    )
    figure.update_yaxes(autorange="reversed", automargin=True, fixedrange=True)
    figure.update_xaxes(
        title="golden evidence, %", range=[0, 122], tickvals=[*range(0, 101, 20)], fixedrange=True
    )
    return Drawing(figure, _funnel_text(funnel))


def _funnel_lines(funnel: Funnel) -> list[tuple[Bar, float, float]]:
    """Bar, what passed, what it lost; the indexes lose nothing for good, each alone."""
    lines = []
    for bar in funnel.bars:
        if bar.stage == "indexes":
            lines += [(one, one.passed_weight, 0.0) for one in funnel.indexes]
        lines.append((bar, bar.passed_weight, bar.lost_weight))
    last = funnel.bars[-1]
    counts = (last.passed + funnel.regained, last.passed_weight + funnel.regained_weight)
    passages = Bar("passages", "Passages", True, *counts, 0, 0.0, {}, ())
    return [*lines, (passages, passages.passed_weight, 0.0)]


def _funnel_text(funnel: Funnel) -> str:
    queries = _many(funnel.queries, "query", "queries")
    told = [
        f"Of the golden evidence of {queries}, {percent(funnel.bars[-1].passed_weight)} is among the "
        f"first {funnel.k}."
    ]
    for bar in funnel.bars:
        if bar.lost:
            causes = ", ".join(f"{cause} ({times})" for cause, times in bar.causes.items())
            told.append(
                f"{bar.title} loses {percent(bar.lost_weight)}: {_count(bar.lost, 'piece')} of "
                f"{_many(len(bar.queries), 'query', 'queries')}; {causes}."
            )
    told += [f"{bar.title} alone holds {percent(bar.passed_weight)}." for bar in funnel.indexes]
    if funnel.regained:
        pieces = _count(funnel.regained, "lost piece")
        told.append(f"Merging brings {pieces} back ({percent(funnel.regained_weight)}).")
    spans = funnel.spans
    if spans.cut:
        told.append(
            f"{spans.cut} of {_count(spans.located, 'located span')} are cut; the fullest chunk holds "
            f"{percent(spans.best)} of one on average."
        )
    return " ".join(told)


def ceiling_curve(ceiling: Ceiling) -> Drawing:
    """What any number of items sent on makes unreachable, and how many chunks are then searched."""
    here, chunks = ceiling.at(ceiling.current)
    figure = Figure()
    figure.add_scatter(
        name="unreachable evidence",
        x=ceiling.items,
        y=100 * ceiling.unreachable,
        mode="lines",
        line={"color": _BAD, "width": 2, "shape": "hv"},
        hovertemplate="%{x} items: %{y:.1f} % unreachable<extra></extra>",
    )
    figure.add_scatter(
        name="chunks searched",
        x=ceiling.items,
        y=ceiling.chunks,
        yaxis="y2",
        mode="lines",
        line={"color": _GOOD, "width": 2, "dash": "dot"},
        hovertemplate="%{x} items: %{y:,.0f} chunks a query<extra></extra>",
    )
    shown = min(ceiling.current, len(ceiling.items))
    figure.add_scatter(
        name=f"now: {ceiling.current:,} items",
        x=[shown],
        y=[100 * here],
        mode="markers+text",
        marker={"color": _BAD, "symbol": "diamond", "size": 12},
        text=[percent(here)],
        textposition="top center",
        cliponaxis=False,
        hoverinfo="skip",
    )
    figure.add_vline(x=shown, line={"color": _QUIET, "dash": "dash", "width": 1})
    figure.update_layout(
        height=320,
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        yaxis2={"title": "chunks a query", "overlaying": "y", "side": "right", "showgrid": False}
        | {"rangemode": "tozero", "fixedrange": True, "tickmode": "auto"},
    )
    figure.update_xaxes(title="items sent on", type="log", dtick="D2", tickformat=",d", fixedrange=True)
    figure.update_layout(yaxis={"title": "unreachable, %", "rangemode": "tozero", "fixedrange": True})
    enough = int((ceiling.unreachable <= here).argmax())
    told = (
        f"With {_count(ceiling.current, 'item')} sent on, {percent(here)} of the golden evidence cannot be "
        f"reached, and a query searches {chunks:,.0f} chunks on average."
    )
    if enough + 1 < shown:
        told += f" {_count(enough + 1, 'item')} would lose as little, with {ceiling.chunks[enough]:,.0f} chunks."
    return Drawing(figure, told)


def ladder(rungs: Sequence[Rung], k: int) -> Drawing:
    """The failure rate of every step with its interval, beside the published ones."""
    names = [rung.name for rung in rungs]
    figure = Figure()
    figure.add_scatter(
        name="measured here",
        x=names,
        y=[100 * rung.failure for rung in rungs],
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [100 * (rung.high - rung.failure) for rung in rungs],
            "arrayminus": [100 * (rung.failure - rung.low) for rung in rungs],
        },
        mode="lines+markers+text",
        text=[percent(rung.failure) for rung in rungs],
        textposition="top right",
        line={"color": _GOOD, "width": 2},
        marker={"color": _GOOD, "size": 10, "symbol": "circle"},
        cliponaxis=False,
        hovertemplate="%{x}: %{y:.1f} %<extra></extra>",
    )
    known = [rung for rung in rungs if rung.published is not None]
    if known:
        figure.add_scatter(
            name="published",
            x=[rung.name for rung in known],
            y=[100 * rung.published for rung in known if rung.published is not None],
            mode="lines+markers",
            line={"color": _QUIET, "width": 2, "dash": "dash"},
            marker={"color": _QUIET, "size": 9, "symbol": "diamond-open"},
            hovertemplate="%{x}: %{y:.1f} % published<extra></extra>",
        )
    figure.update_xaxes(
        type="category",
        categoryorder="array",
        categoryarray=names,
        fixedrange=True,
        range=[-0.4, len(rungs) - 0.4],
    )
    figure.update_yaxes(title=f"failure rate at {k}, %", rangemode="tozero", fixedrange=True)
    figure.update_layout(
        height=380,
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"},
    )
    steps = "; ".join(
        f"{rung.name} {percent(rung.failure)} ({percent(rung.low)} to {percent(rung.high)})"
        + ("" if rung.published is None else f", published {percent(rung.published)}")
        for rung in rungs
    )
    return Drawing(figure, f"Failure rate at {k}, with its 95 % interval: {steps}.")


def frontier(trials: Sequence[Trial], metric: str, cost: str = "milliseconds") -> Drawing:
    """Quality against what a query costs, in "milliseconds" or "dollars"; the frontier is joined by a line.

    Each point's `customdata` is its place in `trials`. Trials whose quality or cost is not known are left
    out, and counted in the text.
    """
    if cost not in ("milliseconds", "dollars"):
        raise ValueError(f"cost is {cost!r}; choose milliseconds or dollars")
    known = [
        (at, one)
        for at, one in enumerate(trials)
        if isfinite(one.quality) and isfinite(getattr(one, cost))
    ]
    kinds: tuple[tuple[str, list[tuple[int, Trial]], dict[str, Any]], ...] = (
        (
            "tried",
            [(at, one) for at, one in known if not one.frontier and not one.mark],
            {"color": _QUIET, "symbol": "circle-open", "size": 7},
        ),
        (
            "frontier",
            sorted(
                ((at, one) for at, one in known if one.frontier),
                key=lambda pair: (getattr(pair[1], cost), pair[1].quality),
            ),
            {"color": _GOOD, "symbol": "circle", "size": 9},
        ),
        (
            "marked",
            [(at, one) for at, one in known if one.mark],
            {"color": _BAD, "symbol": "star", "size": 14},
        ),
    )
    figure = Figure()
    most = max((getattr(one, cost) for _, one in known), default=0.0)
    for name, points, marker in kinds:
        if not points:
            continue
        named = name == "marked" or (name == "frontier" and len(points) <= _LABELLED)
        figure.add_scatter(
            name=" and ".join(one.mark for _, one in points) if name == "marked" else name,
            x=[getattr(one, cost) for _, one in points],
            y=[one.quality for _, one in points],
            customdata=[at for at, _ in points],
            mode=("lines+" if name == "frontier" else "") + "markers" + ("+text" if named else ""),
            text=[
                escape(one.mark) if name == "marked" else "" if one.mark else escape(one.name)
                for _, one in points
            ],
            # Above, below and beside: words of points in one place do not cover one another.
            textposition=[
                f"{'top' if at % 2 else 'bottom'} center"
                if name == "marked"
                else f"middle {'left' if getattr(one, cost) > most / 2 else 'right'}"
                for at, (_, one) in enumerate(points)
            ],
            hovertext=[escape(one.name) for _, one in points],
            line={"color": _GOOD, "width": 1, "shape": "hv"},
            marker=marker,
            cliponaxis=False,
            hovertemplate="%{hovertext}<br>%{y:.3f} at %{x:.4g}<extra></extra>",
        )
    unit = "milliseconds a query" if cost == "milliseconds" else "US dollars a query"
    # From 0: cut off, a difference of a thousandth would look like one of half.
    figure.update_xaxes(title=unit, range=[0, 1.1 * most or 1.0])
    qualities = [one.quality for _, one in known] or [0.0, 1.0]
    margin = max(0.02, 0.1 * (max(qualities) - min(qualities)))
    # Within what a metric can be: beyond 1 there is nothing to reach.
    ends = [max(0.0, min(qualities) - margin), min(1.0, max(qualities) + margin)]
    figure.update_yaxes(title=metric, range=ends)
    figure.update_layout(
        height=420,
        margin={"l": 8, "r": 24, "t": 36, "b": 8},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"},
    )
    listed = kinds[1][1] + [pair for pair in kinds[2][1] if not pair[1].frontier]
    told = "; ".join(
        f"{one.name}{f' ({one.mark})' if one.mark else ''}: {one.quality:.3f} at {getattr(one, cost):.4g}"
        for _, one in listed
    )
    missing = len(trials) - len(known)
    return Drawing(
        figure,
        f"{metric} against {unit}, {_count(len(known), 'trial')}. {told or 'None is on the frontier'}."
        + (f" Left out, as not known: {missing}." if missing else ""),
    )


def difference_bars(queries: Sequence[str], differences: Sequence[float], metric: str) -> Drawing:
    """The difference of each query, B minus A, from the largest gain to the largest loss.

    Each bar's `customdata` is the query's place in `queries`.
    """
    order = sorted(range(len(queries)), key=lambda at: (-differences[at], at))
    figure = Figure()
    groups = (
        ("B is better", 0.0, inf, {"color": _GOOD}),
        ("A is better", -inf, 0.0, {"color": _BAD, "pattern": _HATCHED}),
    )
    # Bars by place: two queries may read the same.
    places = {at: place for place, at in enumerate(order, 1)}
    for name, low, high, marker in groups:
        inside = [at for at in order if low < differences[at] < high]
        figure.add_bar(
            name=f"{name} ({len(inside)})",
            x=[places[at] for at in inside],
            y=[differences[at] for at in inside],
            customdata=inside,
            hovertext=[escape(queries[at]) for at in inside],
            marker=marker,
            hovertemplate="%{hovertext}: %{y:+.3f}<extra></extra>",
        )
    figure.add_hline(y=0, line={"color": _QUIET, "width": 1})
    figure.update_xaxes(
        title="queries, by difference",
        range=[0.4, max(len(order), 1) + 0.6],
        showticklabels=False,
        fixedrange=True,
    )
    figure.update_yaxes(title=f"difference in {metric}", fixedrange=True)
    figure.update_layout(
        height=300,
        bargap=0.15,
        margin={"l": 8, "r": 8, "t": 36, "b": 8},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"},
    )
    better = sum(one > 0 for one in differences)
    worse = sum(one < 0 for one in differences)
    told = (
        f"{metric}, B against A over {_many(len(queries), 'query', 'queries')}: {better} better, {worse} worse, "
        f"{len(queries) - better - worse} the same."
    )
    lost = [at for at in reversed(order) if differences[at] < 0][:3]
    if lost:
        told += " Largest losses: " + "; ".join(
            f"{queries[at]} ({signed(differences[at])})" for at in lost
        )
        told += "."
    return Drawing(figure, told)


def signed(difference: float) -> str:
    """A difference with three decimals and its sign; none before zero."""
    rounded = round(difference, 3) + 0.0
    return f"{rounded:+.3f}".replace("-", "−") if rounded else "0.000"


def _count(n: int, one: str) -> str:
    return _many(n, one, f"{one}s")


def _many(n: int, one: str, more: str) -> str:
    return f"{n:,} {one if n == 1 else more}"
