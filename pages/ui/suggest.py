"""What to ask the sample collection first."""

from __future__ import annotations

import json
from collections.abc import Container

from core.collection import Collection
from core.sample import SAMPLE, sample_queries


def is_sample(collection: Collection) -> bool:
    """Whether this is the collection that comes with Rankscope."""
    return collection.name == SAMPLE


def suggestions(seen: Container[str] | None = None, most: int = 3) -> tuple[str, ...]:
    """The first judged query of each kind, `most` at most; none where they are not installed.

    Where `seen` names the documents that somebody may see, only queries about these: others tell what the
    hidden ones are about.
    """
    by_kind: dict[str, str] = {}
    for line in filter(str.strip, sample_queries().splitlines()):
        asked = json.loads(line)
        about = [one["document"] for one in asked["evidence"]]
        if seen is None or (about and all(name in seen for name in about)):
            by_kind.setdefault(asked["kind"], asked["query"])
    return tuple(by_kind.values())[:most]
