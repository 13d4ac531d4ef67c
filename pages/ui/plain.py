"""Wording: texts of unknown origin inside labels that Streamlit reads as Markdown, and counts."""

from __future__ import annotations

import re

_BACKTICKS = re.compile("`+")
# Words and signs of which Markdown makes nothing, and which begin no list.
_HARMLESS = re.compile(
    r"(?!\s|-\s|\d+[.)]\s)(?:[^\W_]|[\s,.?()%’'=-]|(?<=[^\W_])_(?=[^\W_])|(?<=\s)[<>!](?=[=\s]))+"
)


def plain(text: str) -> str:
    """Markdown that shows the text letter by letter, on one line: a code span.

    A code span and not escapes: emoji names, arrows and dashes are replaced in Markdown text even
    where their signs are escaped.
    """
    shown = " ".join(text.split()) or " "
    fence = "`" * (max((len(run) for run in _BACKTICKS.findall(shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def label(text: str) -> str:
    """The text as a label: in letters as they are, in a code span only where Markdown would change them."""
    shown = " ".join(text.split())
    return shown if _HARMLESS.fullmatch(shown) else plain(text)


def counted(number: int, noun: str) -> str:
    """A number with its noun, in the plural where it is not one."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def sentence(text: str) -> str:
    """A message as a sentence: a capital first, a full stop last."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?", "…")) else ".")
