"""Chunks made elsewhere: JSONL lines that give a document's spans or the chunks' texts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from core.errors import LoadError
from core.loading.clean import clean, one_line
from core.loading.draft import Parsed, Reading
from core.loading.text import decode

_DOCUMENT = ("document", "document_id", "doc_id", "doc", "source")
_TEXT = ("text", "content", "chunk")
_BETWEEN = "\n\n"
_NAMED_LINES = 20


@dataclass
class _Group:
    """What the lines of one document say: its text if given, spans, and texts of chunks."""

    title: str = ""
    text: str | None = None
    spans: list[tuple[int, int, int, str | None]] = field(default_factory=list)  # line, start, end, text
    texts: list[str] = field(default_factory=list)


def read_prechunked(data: bytes, encoding: str | None) -> Reading:
    """Documents with their `chunks`, in the order in which they appear.

    A line is an object with `document` and either `start`, `end` (offsets in characters into the
    document's text; the text stands once on any line of the document, as `text`, or each line holds
    its own chunk's text) or only `text`: then the texts, joined by a blank line, are the document.
    Raises LoadError when there is no usable line or spans come without any text.
    """
    raw, name, warnings = decode(data, encoding)
    groups: dict[str, _Group] = {}
    skipped: list[tuple[int, str]] = []
    for number, line in enumerate(raw.lstrip("\ufeff").split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            skipped.append((number, "broken JSON"))
            continue
        reason = _take(row, number, groups) if isinstance(row, dict) else "not an object"
        if reason:
            skipped.append((number, reason))
    parsed = []
    for number, group in enumerate(groups.values(), 1):
        document = _document(group, number if len(groups) > 1 else None, skipped)
        if document:
            parsed.append(document)
    warnings = [*warnings, *_skips(sorted(skipped))]
    if not parsed:
        raise LoadError(
            "no chunk could be read: lines need `document` with `start` and `end`, or with `text`"
            + "".join(f"; {reason}" for reason in warnings)
        )
    return Reading(parsed, name, warnings)


def _take(row: Mapping[str, object], number: int, groups: dict[str, _Group]) -> str:
    """Put a line into its document's group; the reason when it cannot be."""
    document = next((str(row[key]) for key in _DOCUMENT if row.get(key) is not None), "")
    text = next((row[key] for key in _TEXT if isinstance(row.get(key), str)), None)
    title = one_line(clean(str(row.get("title") or document)))
    start, end = row.get("start"), row.get("end")
    if start is None and end is None:
        if not isinstance(text, str) or not text.strip():
            return "neither start and end nor text"
        groups.setdefault(document, _Group(title)).texts.append(text)
        return ""
    if type(start) is not int or type(end) is not int or not 0 <= start < end:
        return f"start {start!r} and end {end!r} are no span"
    group = groups.setdefault(document, _Group(title))
    group.spans.append((number, start, end, text if isinstance(text, str) else None))
    return ""


def _document(group: _Group, number: int | None, skipped: list[tuple[int, str]]) -> Parsed | None:
    if not group.spans:
        return _joined(group, number)
    given = [*group.texts, *(text for *_, text in group.spans if text is not None)]
    longest = max(given, key=len, default=None)
    furthest = max(end for _, _, end, _ in group.spans)
    if longest is None:
        raise LoadError(
            f"the spans of document {group.title!r} come without its text: "
            "give `text` once on one of its lines"
        )
    own = all(text is not None and len(text) == end - start for _, start, end, text in group.spans)
    text = longest if group.texts or not own else _from_chunks(group.spans, furthest)
    spans = []
    for line, start, end, _ in group.spans:
        if end <= len(text):
            spans.append((start, end))
        else:
            skipped.append((line, f"end {end} lies past the document's {len(text)} characters"))
    stored, moved = _cleaned(text, spans)
    spans = sorted({span for span in moved if stored[span[0] : span[1]].strip()})
    return Parsed(stored, group.title, chunks=tuple(spans), number=number) if spans else None


def _joined(group: _Group, number: int | None) -> Parsed | None:
    spans, parts, position = [], [], 0
    for text in map(clean, group.texts):
        if text.strip():
            spans.append((position, position + len(text)))
            parts.append(text)
            position += len(text) + len(_BETWEEN)
    return (
        Parsed(_BETWEEN.join(parts), group.title, chunks=tuple(spans), number=number) if spans else None
    )


def _from_chunks(spans: Sequence[tuple[int, int, int, str | None]], length: int) -> str:
    """The document's text put together from chunks at their places; blanks where none lies."""
    parts: list[str] = []
    position = 0
    for _, start, end, text in sorted(spans, key=lambda span: span[1:3]):
        if text is not None and end > position:
            parts.append(" " * (start - position) + text[max(position - start, 0) :])
            position = end
    return "".join(parts).ljust(length)


def _cleaned(text: str, spans: Sequence[tuple[int, int]]) -> tuple[str, list[tuple[int, int]]]:
    """The stored text, and where the spans lie in it."""
    stored = clean(text)
    if stored == text:
        return text, list(spans)
    places: dict[int, int] = {}
    parts: list[str] = []
    position = done = 0
    for cut in sorted({offset for span in spans for offset in span}):
        end = cut + 1 if text[cut - 1 : cut + 1] == "\r\n" else cut  # a line end is not cut in two
        if end > position:
            parts.append(clean(text[position:end]))
            done += len(parts[-1])
            position = end
        places[cut] = done
    parts.append(clean(text[position:]))
    return "".join(parts), [(places[start], places[end]) for start, end in spans]


def _skips(skipped: Iterable[tuple[int, str]]) -> list[str]:
    skipped = list(skipped)
    if not skipped:
        return []
    named = "; ".join(f"line {number} ({reason})" for number, reason in skipped[:_NAMED_LINES])
    more = f"; and {len(skipped) - _NAMED_LINES} more" if len(skipped) > _NAMED_LINES else ""
    return [f"skipped {len(skipped)}: {named}{more}"]
