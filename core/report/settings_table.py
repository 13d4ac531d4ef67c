"""The README's table of settings, made from the fields' own help texts.

`python -m core.report.settings_table` prints it; a test holds the README to it.
"""

from __future__ import annotations

from dataclasses import MISSING, fields

from core.settings import (
    ChunkSettings,
    ContextSettings,
    IndexSettings,
    IndexUse,
    SearchSettings,
    SignalUse,
)
from core.text import Analyzer

GROUPS = (
    ("chunking.", ChunkSettings),
    ("context.", ContextSettings),
    ("", IndexSettings),
    ("analyzer.", Analyzer),
    ("", SearchSettings),
    ("indexes.NAME.", IndexUse),
    ("signals.NAME.", SignalUse),
)
_INDEXED = (ChunkSettings, ContextSettings, IndexSettings, Analyzer)
_CHANGES = {
    None: "re-indexes",
    "always": "recomputes",
    "covered": "recomputes as far as recorded",
    "never": "searches again",
}


def settings_table() -> str:
    """A Markdown table: setting, default, what it does, and whether a change needs a new search."""
    lines = ["| setting | default | what it does | a change |", "| --- | --- | --- | --- |"]
    for prefix, settings in GROUPS:
        for spec in fields(settings):
            if "help" not in spec.metadata:
                continue  # a group of its own
            default = "" if spec.default is MISSING else str(spec.default)
            replay = None if settings in _INDEXED else spec.metadata["replay"]
            lines.append(
                f"| `{prefix}{spec.name}` | {default} | {spec.metadata['help']} | {_CHANGES[replay]} |"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    print(settings_table())
