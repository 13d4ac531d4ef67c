"""The signal that core/README.md shows: a whole signal in one screen."""

from __future__ import annotations

from core.protocols import Items
from core.trace import Ranking


class TitleSignal:
    """Items by how many of the query's words their title or file name holds."""

    name = "title"

    def rank(self, query: str, items: Items) -> Ranking:
        wanted = set(query.casefold().split())
        named = zip(items.item_titles, items.item_names, strict=True)
        held = (wanted & set(f"{title} {name}".casefold().split()) for title, name in named)
        return Ranking.of((item, len(words)) for item, words in enumerate(held) if words)
