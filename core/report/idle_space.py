"""Settings of a sweep that move nothing: points that differ in them alone are one point, measured again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, product

from core.corpus.first_stage import FirstStage
from core.errors import SettingsError
from core.evaluation.ladder import signals_there
from core.evaluation.space import Range, Space, Value
from core.extras import registered_indexes
from core.pipeline.run import BUILT_IN
from core.report.knobs import idle, with_value
from core.settings import SearchSettings

_SIGNALS = ("lexical", "semantic")
_MERGING = ("merge", "merge_gap", "merge_cap")


def idle_reason(search: SearchSettings, name: str, first_stage: FirstStage | None = None) -> str:
    """Why a setting, by its dotted name from "search.", moves nothing under these; blank when it may.

    `first_stage` is the collection's: its events and rules rank items too.
    """
    path = name.removeprefix("search.")
    if path == name:
        return ""  # the index has none
    signals = (*_SIGNALS, *signals_there(search, first_stage or FirstStage()))
    return idle(search, path, signals, (*BUILT_IN, *registered_indexes()))


def idle_settings(space: Space, stage: str, first_stage: FirstStage | None = None) -> Mapping[str, str]:
    """Name → reason of those that move nothing at this stage, with none of the space's other settings."""
    found = {}
    for name in space.values:
        if name.removeprefix("search.") in _MERGING and stage != "passages":
            found[name] = "merging changes passages alone"
        elif (reason := idle_reason(space.base.search, name, first_stage)) and all(
            idle_reason(search, name, first_stage) for search in _around(space, name)
        ):
            found[name] = reason
    return found


def _around(space: Space, name: str) -> Iterator[SearchSettings]:
    """The base with one or two of the other settings at their values: more are not needed to wake one."""
    lists: dict[str, list[Value]] = {
        one: [values.low, values.high] if isinstance(values, Range) else list(values)
        for one, values in space.values.items()
        if one != name and one.startswith("search.")
    }
    for names in (*combinations(lists, 1), *combinations(lists, 2)):
        for values in product(*(lists[one] for one in names)):
            search = space.base.search
            try:
                for one, value in zip(names, values, strict=True):
                    search = with_value(search, one.removeprefix("search."), value)
            except SettingsError:  # a point that cannot be wakes nothing
                continue
            yield search
