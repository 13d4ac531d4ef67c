"""Further indexes and signals: registered by name, they join every corpus, the fusion and the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from core.errors import SettingsError
from core.protocols import Index, Signal

ENTRY_POINTS = "rankscope.indexes"
SIGNAL_ENTRY_POINTS = "rankscope.signals"
TAKEN = frozenset(
    {"bm25", "vector", "items", "fused", "scored", "reranker", "reranked", "kept", "passages"}
)
"""Names of the built-in indexes and of the other stages: a trace tells stages apart by name."""
SIGNALS_TAKEN = frozenset({"lexical", "semantic", "clicks", "recency", "popularity", "rules", "fused"})

_factories: dict[str, Callable[[], Index]] = {}
_signals: dict[str, Callable[[], Signal]] = {}


def register_index(name: str, factory: Callable[[], Index]) -> None:
    """Let the index that `factory` makes take part under this name; the same name again replaces it.

    A corpus that has filled an index of this name keeps it. Installed packages register through the
    entry point group "rankscope.indexes". Raises SettingsError for a blank name or one that a
    stage has.
    """
    if not _free(name):
        raise SettingsError(
            f"an index cannot be named {name!r}; choose a name other than {', '.join(sorted(TAKEN))}, "
            "and none that begins with 'items.'"
        )
    _factories[name] = factory


def unregister_index(name: str) -> None:
    """Take a registered index out; a name that is not registered is no error."""
    _factories.pop(name, None)


def registered_indexes() -> Mapping[str, Callable[[], Index]]:
    """Name → factory of every further index, installed ones first."""
    return {**_installed(ENTRY_POINTS), **_factories}


def register_signal(name: str, factory: Callable[[], Signal]) -> None:
    """Let the signal that `factory` makes rank items under this name; the same name again replaces it.

    It is made once, by the first search that asks it. Installed packages register through the entry point
    group "rankscope.signals". Raises SettingsError for a blank name, one with a dot, or one that a signal of
    ours has.
    """
    if not _free_signal(name):
        raise SettingsError(
            f"a signal cannot be named {name!r}; choose a name without a dot, other than "
            f"{', '.join(sorted(SIGNALS_TAKEN))}"
        )
    _signals[name] = cache(factory)


def unregister_signal(name: str) -> None:
    """Take a registered signal out; a name that is not registered is no error."""
    _signals.pop(name, None)


def registered_signals() -> Mapping[str, Callable[[], Signal]]:
    """Name → what gives each further signal, installed ones first."""
    return {**_installed(SIGNAL_ENTRY_POINTS), **_signals}


@cache
def _installed(group: str) -> Mapping[str, Callable[[], Any]]:
    found = entry_points(group=group)
    free = _free if group == ENTRY_POINTS else _free_signal
    # Loaded when it is made: a package that cannot be imported costs its own index or signal only.
    made = {entry.name: partial(_load_and_make, entry) for entry in found if free(entry.name)}
    # An index is made for each corpus, one signal serves all.
    return made if group == ENTRY_POINTS else {name: cache(make) for name, make in made.items()}


def _load_and_make(entry: EntryPoint) -> Any:
    return entry.load()()


def _free(name: str) -> bool:
    return bool(name.strip()) and name not in TAKEN and not name.startswith("items.")


def _free_signal(name: str) -> bool:
    return bool(name.strip()) and "." not in name and name not in SIGNALS_TAKEN
