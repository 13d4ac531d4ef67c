"""The README's table of settings, made from the fields' own help texts.

`python -m core.report.settings_table` prints it; a test holds the README to it.
"""

from __future__ import annotations

from dataclasses import MISSING, fields

from core.settings import ChunkSettings, IndexUse, SearchSettings, SignalUse
from core.text import Analyzer

GROUPS = (
    ("chunking", ChunkSettings),
    ("analyzer", Analyzer),
    ("search", SearchSettings),
    ("indexes.NAME", IndexUse),
    ("signals.NAME", SignalUse),
)


def settings_table() -> str:
    """A Markdown table: setting, default, what it does, and whether a change needs a new search."""
    lines = ["| setting | default | what it does | a change |", "| --- | --- | --- | --- |"]
    for group, settings in GROUPS:
        for spec in fields(settings):
            default = "" if spec.default is MISSING else str(spec.default)
            change = {
                "always": "recomputes",
                "covered": "recomputes as far as recorded",
                "never": "searches again",
            }
            reach = (
                "re-indexes" if group in ("chunking", "analyzer") else change[spec.metadata["replay"]]
            )
            name = spec.name if group == "search" else f"{group}.{spec.name}"
            lines.append(f"| `{name}` | {default} | {spec.metadata['help']} | {reach} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(settings_table())
