"""Further indexes: registered by name, they join every corpus, the fusion and the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points

from core.errors import SettingsError
from core.protocols import Index

ENTRY_POINTS = "rankscope.indexes"
TAKEN = frozenset(
    {"bm25", "vector", "items", "fused", "scored", "reranker", "reranked", "kept", "passages"}
)
"""Names of the built-in indexes and of the other stages: a trace tells stages apart by name."""

_factories: dict[str, Callable[[], Index]] = {}


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
    return {**_installed(), **_factories}


@cache
def _installed() -> Mapping[str, Callable[[], Index]]:
    found = entry_points(group=ENTRY_POINTS)
    # Loaded when the index is made: a package that cannot be imported costs its own index only.
    return {entry.name: partial(_load_and_make, entry) for entry in found if _free(entry.name)}


def _load_and_make(entry: EntryPoint) -> Index:
    index: Index = entry.load()()
    return index


def _free(name: str) -> bool:
    return bool(name.strip()) and name not in TAKEN and not name.startswith("items.")
