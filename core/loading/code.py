"""Source code: the text as it is; Python's classes and functions serve as headings."""

from __future__ import annotations

import re

from core.loading.clean import clean
from core.loading.draft import Parsed, Reading
from core.loading.text import decode, dropped
from core.types import Heading

_DEFINITION = re.compile(r"^([ \t]*)((?:async[ ]+)?(?:def|class)[ ]+\w+)[^\n]*", re.MULTILINE)


def read_code(data: bytes, encoding: str | None, extension: str) -> Reading:
    """One document. Only Python has headings, by indentation: other languages need a parser."""
    raw, name, warnings = decode(data, encoding)
    text = clean(raw)
    headings: tuple[Heading, ...] = ()
    if extension == "py":
        headings = tuple(
            Heading(len(match[1].expandtabs(4)) // 4 + 1, match[2], match.start(2), match.end())
            for match in _DEFINITION.finditer(text)
        )
    return Reading([Parsed(text, headings=headings)], name, warnings + dropped(raw))
