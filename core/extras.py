"""Further indexes: registered by name, they join every corpus, the fusion and the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import entry_points

from core.errors import SettingsError
from core.protocols import Index

ENTRY_POINTS = "rankscope.indexes"
BUILT_IN = ("bm25", "vector")

_factories: dict[str, Callable[[], Index]] = {}


def register_index(name: str, factory: Callable[[], Index]) -> None:
    """Let the index that `factory` makes take part under this name; the same name again replaces it.

    A corpus that has filled an index of this name keeps it. Installed packages register through the
    entry point group "rankscope.indexes". Raises SettingsError for a blank or built-in name.
    """
    if not name.strip() or name in BUILT_IN:
        raise SettingsError(
            f"an index cannot be named {name!r}; choose a name other than {', '.join(BUILT_IN)}"
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
    return {entry.name: entry.load() for entry in found if entry.name not in BUILT_IN}
