"""Figures of a trace, for pages and notebooks."""

from __future__ import annotations

from math import log10

from core.explanation import stage_title
from core.report.plots import Figure
from core.report.tables import chunk_hue, chunk_label, flow_rows, flow_stages
from core.trace import Trace

_TICKS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1_000, 10_000)


def flow_positions(trace: Trace, top: int = 8, selected: int | None = None) -> list[int]:
    """The chunks worth following: the first `top` of every stage, and the selected one."""
    found: dict[int, None] = {}
    for stage in flow_stages(trace):
        if stage.unit == "chunk":
            found.update(dict.fromkeys(stage.ranking.head(top).positions.tolist()))
    for passage in trace.passages[:top]:
        found.update(dict.fromkeys(passage.members))
    if selected is not None:
        found[selected] = None
    return list(found)


def rank_flow(trace: Trace, top: int = 8, selected: int | None = None) -> Figure:
    """One line for each chunk from stage to stage, rank 1 on top, on a logarithmic scale.

    A chunk that falls out ends in a cross. Ranks and stages are those of `tables.flow_rows`.
    """
    stages = flow_stages(trace)
    titles = [stage_title(stage.name) for stage in stages]
    positions = flow_positions(trace, top, selected)
    figure = Figure()
    deepest = 1
    for row in flow_rows(trace, positions):
        position, chosen = row["position"], row["position"] == selected
        ranks = [row["ranks"][stage.name] for stage in stages]
        known = [at for at, rank in enumerate(ranks) if rank]
        if not known:
            continue
        deepest = max(deepest, *(ranks[at] for at in known))
        lost = stage_title(row["lost"]) if row["lost"] else ""
        colour = f"hsl({chunk_hue(position)}, 55%, 50%)"
        faint = selected is not None and not chosen
        label = chunk_label(trace.corpus, position)
        symbols = ["circle"] * len(known)
        if lost:
            symbols[-1] = "x"
        figure.add_scatter(
            x=[titles[at] for at in known],
            y=[ranks[at] for at in known],
            mode="lines+markers+text" if chosen or not faint else "lines+markers",
            name=label,
            text=[""] * (len(known) - 1) + [label],
            textposition="middle right",
            textfont={"size": 11},
            cliponaxis=False,
            line={"color": colour, "width": 4 if chosen else 1.6},
            marker={"color": colour, "size": 11 if chosen else 7, "symbol": symbols},
            opacity=0.45 if faint else 1,
            hovertemplate=f"{label} · %{{x}}: rank %{{y}}"
            + (f"<br>lost at {lost}" if lost else "")
            + "<extra></extra>",
            showlegend=False,
        )
    figure.update_xaxes(
        categoryorder="array",
        categoryarray=titles,
        side="top",
        fixedrange=True,
        range=[-0.25, len(titles) - 0.6],
        showgrid=True,
    )
    figure.update_yaxes(
        type="log",
        autorange=False,
        range=[log10(deepest * 1.25), log10(0.85)],
        fixedrange=True,
        tickvals=[tick for tick in _TICKS if tick <= deepest],
        title="rank",
        zeroline=False,
    )
    figure.update_layout(height=420, margin={"l": 48, "r": 24, "t": 36, "b": 12}, hovermode="closest")
    return figure
