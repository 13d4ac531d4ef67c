"""What assembling one query's record under many settings need not do again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
_MEMO = 24  # parts kept: at 50,000 chunks a list within many items takes near a megabyte


class Memo:
    """What settings over one query's recorded searches have in common, so that many of them can be tried:
    the items' fusion, and the long lists within the same items. Holds the last few of each."""

    def __init__(self) -> None:
        self._made: dict[object, Any] = {}

    def once(self, key: object, make: Callable[[], T]) -> T:
        if key not in self._made:
            if len(self._made) == _MEMO:
                del self._made[next(iter(self._made))]
            self._made[key] = make()
        made: T = self._made[key]
        return made
