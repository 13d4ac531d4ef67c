"""Bytes to text: which encoding, and whether it is text at all; plain text files."""

from __future__ import annotations

import codecs
import re

from core.errors import LoadError
from core.loading.clean import clean, control_characters
from core.loading.draft import Parsed, Reading

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# No text holds these often: without tab, line ends, form feed and escape, which texts do hold.
_BINARY = bytes({*range(9), 0x0B, *range(0x0E, 0x1B), *range(0x1C, 0x20), 0x7F})
_KANA = re.compile("[\u3041-\u30ff]")
_SAMPLE = 100_000
_FEW = 8
# Old Macintosh pages and cp1250 are guessed far too often; Japanese and Unicode were ruled out before.
_UNLIKELY = ("mac_", "utf_", "cp1250", "cp932", "shift_j", "euc_j")
_NOT_TEXT = (
    "this is not a text file (binary data); upload it in its own format, or save it as text first"
)


def decode(data: bytes, encoding: str | None = None) -> tuple[str, str, list[str]]:
    """Text (not yet cleaned), name of its encoding, warnings.

    Order: the encoding asked for; byte order mark; UTF-16 by its NUL bytes; strict UTF-8; UTF-8
    with a few broken bytes; a guess, which is always reported. Raises LoadError when the bytes are
    no text or not in the encoding asked for.
    """
    if encoding:
        return _decode_as(data, encoding), encoding, []
    for mark, name in _MARKS:
        if data.startswith(mark):
            text = data[len(mark) :].decode(name, "replace")
            return text, name, _replaced(text.count("\ufffd"), name)
    wide = _utf16_by_nuls(data)
    if wide:
        return data.decode(wide), wide, [_guess(wide)]
    if len(data) - len(data.translate(None, _BINARY)) > max(4, len(data) // 20):
        raise LoadError(_NOT_TEXT)
    try:
        return data.decode("utf-8"), "utf-8", []
    except UnicodeDecodeError:
        pass
    text = data.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    beyond_ascii = len(text) - len(text.encode("ascii", "ignore"))
    if beyond_ascii - broken >= 10 * broken:
        return text, "utf-8", _replaced(broken, "utf-8")
    name = _guess_encoding(data)
    return data.decode(name, "replace"), name, [_guess(name)]


def _guess(name: str) -> str:
    return f"encoding guessed as {name}: choose another one if letters look wrong"


def _replaced(count: int, name: str) -> list[str]:
    return [f"{count} places are not valid {name} and are shown as \ufffd"] if count else []


def _decode_as(data: bytes, encoding: str) -> str:
    try:
        text = data.decode(encoding)
    except UnicodeError as error:
        where = f" at byte {error.start:,}" if isinstance(error, UnicodeDecodeError) else ""
        raise LoadError(
            f"the file is not in the encoding {encoding!r}{where}; choose another one"
        ) from error
    except (LookupError, ValueError) as error:
        raise LoadError(
            f"unknown text encoding {encoding!r}; use a name such as utf-8 or cp1252"
        ) from error
    if control_characters(text) > max(4, len(text) // 20):
        raise LoadError(f"read as {encoding!r} " + _NOT_TEXT)
    return text


def _utf16_by_nuls(data: bytes) -> str | None:
    """UTF-16 without a mark: in Latin text every second byte is NUL, always on the same side."""
    if len(data) < 2 or len(data) % 2:
        return None
    pairs = len(data) // 2
    even, odd = data[0::2].count(0), data[1::2].count(0)
    for name, many, few in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        if many > 0.3 * pairs and few < 0.02 * pairs:
            try:
                data.decode(name)
            except UnicodeDecodeError:
                return None
            return name
    return None


def _guess_encoding(data: bytes) -> str:
    sample = data[:_SAMPLE]
    beyond_ascii = sum(byte > 0x7F for byte in sample)
    # A short Japanese text is guessed wrong by statistics, but only Japanese decodes to so much kana.
    for name in ("cp932", "euc_jp"):
        decoded = sample.decode(name, "ignore")
        if len(_KANA.findall(decoded)) * 2 > 0.2 * beyond_ascii and _decodes(data, name):
            return name
    # Few letters beyond ASCII mean a Latin script, where statistics confuse the code pages most.
    if beyond_ascii > max(_FEW, 0.15 * len(sample)):
        from charset_normalizer import from_bytes

        for match in from_bytes(sample):
            if match.encoding == "mac_cyrillic":
                return "cp1251"
            if not match.encoding.startswith(_UNLIKELY) and _decodes(data, match.encoding):
                return match.encoding
    return "cp1252" if _decodes(data, "cp1252") else "latin-1"


def _decodes(data: bytes, name: str) -> bool:
    try:
        data.decode(name)
    except UnicodeError:
        return False
    return True


def dropped(raw: str) -> list[str]:
    """A warning that says how many control characters `clean` takes out of a text, if any."""
    count = control_characters(raw)
    return [f"{count} control characters were left out"] if count else []


def read_text(data: bytes, encoding: str | None) -> Reading:
    """A plain text file: one document without structure."""
    raw, name, warnings = decode(data, encoding)
    text = clean(raw)
    if not re.search(r"\w", text):
        warnings = [*warnings, "it holds no letters or digits: a search for words cannot find it"]
    return Reading([Parsed(text)], name, warnings + dropped(raw))
