"""Figures of a trace, for pages and notebooks."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from math import log10

from core.explanation import acted, stage_title
from core.report.plots import Figure
from core.report.tables import chunk_hue, chunk_label, flow_rows, flow_stages, item_label
from core.trace import NO_HITS, Ranking, Ruled, Trace

_TOUCHED = 20  # items drawn because a rule touched them

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
    lines = [
        _Line(
            chunk_label(trace.corpus, row["position"]),
            chunk_hue(row["position"]),
            [row["ranks"][stage.name] for stage in stages],
            stage_title(row["lost"]) if row["lost"] else "",
            row["position"] == selected,
        )
        for row in flow_rows(trace, flow_positions(trace, top, selected))
    ]
    return _flow([stage_title(stage.name) for stage in stages], lines, selected is not None)


def item_flow(trace: Trace, top: int = 8, selected: int | None = None) -> Figure:
    """One line for each item through the signals that rank it to its place, as in `rank_flow`: the first
    `top` of every signal and of the item stage, those that rules boost (▲), bury (▼), pin (→ its rank) or
    hide (✕), and the selected one. One that does not go on ends in a cross; the ranks of a hidden one are
    those that signals gave it."""
    stages = [one for one in trace.stages if one.unit == "item" and one.on and one.name != "items.rules"]
    ruled = acted(trace)
    found = dict.fromkeys(at for one in stages for at in one.ranking.head(top).positions.tolist())
    found.update(
        dict.fromkeys([*list(ruled.said)[:_TOUCHED], *([] if selected is None else [selected])])
    )
    lines = []
    for item in found:
        ranks = [_rank_at(trace, stage.name, stage.ranking, item, ruled) for stage in stages]
        lost = "" if not ranks or ranks[-1] else ruled.hidden.get(item, stage_title("items"))
        label = " ".join((item_label(item), *_signs(ruled, item)))
        lines.append(_Line(label, chunk_hue(item), ranks, lost, item == selected))
    titles = [stage_title(stage.name).removeprefix("Items, ") for stage in stages]
    return _flow(titles, lines, selected is not None)


def _rank_at(trace: Trace, name: str, ranking: Ranking, item: int, ruled: Ruled) -> int | None:
    recorded = trace.record.signals.get(name.removeprefix("items."), NO_HITS)
    return (recorded if item in ruled.hidden else ranking).rank_of(item)


def _signs(ruled: Ruled, item: int) -> list[str]:
    """What rules did with an item, in signs."""
    net = ruled.boosts.get(item, 0.0)
    signs = ["▲" if net > 0 else "▼" if net < 0 else "", "✕" if item in ruled.hidden else ""]
    pin = f"→{ruled.pins[item]}" if item in ruled.pins else ""
    return list(filter(None, (*signs, pin)))


@dataclass(frozen=True)
class _Line:
    """What `_flow` draws: `ranks` has one for each stage, None where it has none; `lost` where it ended."""

    label: str
    hue: float
    ranks: list[int | None]
    lost: str
    chosen: bool


def _flow(titles: list[str], lines: list[_Line], choosing: bool) -> Figure:
    figure = Figure()
    deepest = 1
    for line in lines:
        known = [(titles[at], rank) for at, rank in enumerate(line.ranks) if rank]
        if not known:
            continue
        deepest = max(deepest, *(rank for _, rank in known))
        colour = f"hsl({line.hue}, 55%, 50%)"
        faint = choosing and not line.chosen
        symbols = ["circle"] * len(known)
        if line.lost:
            symbols[-1] = "x"
        figure.add_scatter(
            x=[title for title, _ in known],
            y=[rank for _, rank in known],
            mode="lines+markers+text" if line.chosen or not faint else "lines+markers",
            name=line.label,
            text=[""] * (len(known) - 1) + [line.label],
            textposition="middle right",
            textfont={"size": 11},
            cliponaxis=False,
            line={"color": colour, "width": 4 if line.chosen else 1.6},
            marker={"color": colour, "size": 11 if line.chosen else 7, "symbol": symbols},
            opacity=0.45 if faint else 1,
            hovertemplate=f"{line.label} · %{{x}}: rank %{{y}}"
            + (f"<br>lost at {escape(line.lost)}" if line.lost else "")
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
