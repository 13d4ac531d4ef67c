"""The one normalisation every stored text has gone through; all offsets refer to its result."""

from __future__ import annotations

import re
import unicodedata

_TERMINAL_CODE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_LINE_END = re.compile("\r\n?|[\f\v\x85]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NOT_IN_A_NAME = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]"
)
_LONGEST_NAME = 255


def clean(text: str) -> str:
    """The text as it is stored.

    Line ends (CRLF, CR, form feed, vertical tab, NEL) become "\\n"; other control characters but the
    tab, colour codes of terminals and a leading byte order mark are dropped; lone surrogates become
    U+FFFD. Composed and decomposed letters stay as they are. `clean(clean(x)) == clean(x)`.
    """
    text = _LINE_END.sub("\n", text)
    text = _CONTROL.sub("", _TERMINAL_CODE.sub("", text))
    return _SURROGATE.sub("\ufffd", text.lstrip("\ufeff"))


def control_characters(text: str) -> int:
    """How many characters `clean` drops from a text (colour codes count as one)."""
    return len(_CONTROL.findall(_TERMINAL_CODE.sub("\x00", text)))


def one_line(text: str) -> str:
    """The text without line breaks and with single blanks: for titles and table cells."""
    return " ".join(text.split())


def safe_name(name: str) -> str:
    """A file's name as it is shown: text only, never a path.

    In NFC, without control characters and direction overrides (which make "gpj.exe" look like
    "exe.jpg"), at most 255 characters, and never empty.
    """
    shown = _SURROGATE.sub("\ufffd", _NOT_IN_A_NAME.sub("", name))
    shown = unicodedata.normalize("NFC", shown).strip()
    if len(shown) > _LONGEST_NAME:
        shown = shown[: _LONGEST_NAME - 1] + "…"
    return shown or "unnamed"
