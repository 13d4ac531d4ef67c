"""What each index and each signal is worth to one query: the same search without it."""

from __future__ import annotations

from dataclasses import dataclass

from core.errors import NeedsSearch
from core.explanation import stage_title
from core.passages import Passage
from core.pipeline.assemble import replay
from core.pipeline.items import RULES
from core.settings import SearchSettings
from core.trace import Trace


@dataclass(frozen=True, eq=False)
class Without:
    """One query without one `part` (the name of its stage), under `settings`.

    `gained` and `lost` are the passages, with their ranks there and here, that only the search without it or
    only the one with it has; `moved` counts those of both that have another rank. `overlap`: the share of the
    chunks kept with it that are kept without it, 1 where none is. Where the record does not reach, `trace`
    is None and `needs` says why: only a search tells.
    """

    part: str
    title: str
    settings: SearchSettings
    trace: Trace | None
    needs: tuple[str, ...] = ()
    gained: tuple[tuple[int, Passage[int]], ...] = ()
    lost: tuple[tuple[int, Passage[int]], ...] = ()
    moved: int = 0
    overlap: float = 1.0


def parts_of(trace: Trace) -> tuple[str, ...]:
    """The stages of signals and indexes that are on; without one that stands alone nothing would be left."""
    signals = [
        one for one in trace.stages if one.name.startswith("items.") and one.name != "items.fused"
    ]
    rankers = [one.name for one in signals if one.on and one.name != f"items.{RULES}"]
    rules = [one.name for one in signals if one.on and one.name == f"items.{RULES}"]
    searches = [one.name for one in trace.stages if one.kind == "search" and one.on]
    alone = [part for part in (rankers, searches) if len(part) == 1]
    return tuple(part for parts in (rankers, rules, searches) if parts not in alone for part in parts)


def settings_without(settings: SearchSettings, part: str) -> SearchSettings:
    """The settings with one of `parts_of` switched off."""
    signal = part.removeprefix("items.")
    if signal != part:
        return settings.with_signal(signal, on=False)
    return settings.with_index(part, on=False)


def leave_one_out(trace: Trace) -> list[Without]:
    """The trace without each of its parts, in pipeline order. Nothing is searched."""
    return [_without(trace, part) for part in parts_of(trace)]


def _without(trace: Trace, part: str) -> Without:
    settings, title = settings_without(trace.settings, part), stage_title(part)
    try:
        other = replay(trace, settings)
    except NeedsSearch as error:
        return Without(part, title, settings, None, error.reasons)
    here, there = _ranks(trace), _ranks(other)
    kept, kept_there = (set(one.stage("kept").ranking.positions.tolist()) for one in (trace, other))
    return Without(
        part,
        title,
        settings,
        other,
        gained=tuple(one for span, one in there.items() if span not in here),
        lost=tuple(one for span, one in here.items() if span not in there),
        moved=sum(here[span][0] != there[span][0] for span in here.keys() & there.keys()),
        overlap=len(kept & kept_there) / len(kept) if kept else 1.0,
    )


def _ranks(trace: Trace) -> dict[tuple[int, int, int], tuple[int, Passage[int]]]:
    return {(one.item, one.start, one.end): (rank, one) for rank, one in enumerate(trace.passages, 1)}
