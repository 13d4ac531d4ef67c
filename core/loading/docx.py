"""DOCX: paragraphs, lists, tables and notes of the document part, in order.

Read from the XML itself, because offsets, heading levels and notes are needed as structure and what
libraries give is either Markdown with its marks inside words, or no notes, text boxes and tracked
insertions. Page headers and footers, comments and deleted text are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from core.errors import LoadError
from core.loading.draft import Draft, Reading
from core.loading.options import Limits
from core.loading.package import Package, local
from core.loading.properties import of_office

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_SILENT = frozenset(
    ("del", "moveFrom", "pPr", "rPr", "instrText", "delText", "Fallback", "sectPr", "tblPr")
)
_PAGE = "\f"  # marks where a page begins inside a paragraph; no XML text can hold it
_TITLE_LEVEL = 1


class _Styles:
    """Which paragraph styles are headings and lists, over the chain of what they are based on."""

    def __init__(self, root: Element | None) -> None:
        self._styles = {e.get(f"{_W}styleId"): e for e in root or () if local(e) == "style"}

    def _chain(self, style: str | None) -> Iterator[Element]:
        seen: set[str | None] = set()
        while style in self._styles and style not in seen:
            seen.add(style)
            element = self._styles[style]
            yield element
            style = _value(element.find(f"{_W}basedOn"))

    def level(self, style: str | None) -> int:
        """Heading level of a style, 0 for text."""
        for element in self._chain(style):
            name = (_value(element.find(f"{_W}name")) or "").lower()
            if name == "title":
                return _TITLE_LEVEL
            if name.startswith("heading ") and name[8:].isdecimal():
                return int(name[8:])
            outline = _value(element.find(f"{_W}pPr/{_W}outlineLvl"))
            if outline and outline.isdecimal() and int(outline) < 9:
                return int(outline) + 1
        return 0

    def list_depth(self, style: str | None) -> int | None:
        for element in self._chain(style):
            numbering = element.find(f"{_W}pPr/{_W}numPr")
            if numbering is not None:
                return _depth(numbering)
        return None


class _Writer:
    def __init__(self, styles: _Styles, notes: dict[str, str], paged: bool) -> None:
        self.draft = Draft()
        self._styles = styles
        self._notes = notes
        self._page = 1
        self._pending: list[str] = []
        self._paged = paged
        if paged:
            self.draft.page("1")

    def body(self, parent: Element) -> None:
        for element in parent:
            name = local(element)
            if name == "p":
                self._paragraph(element)
            elif name == "tbl":
                self._table(element)
            elif name not in _SILENT:
                self.body(element)
        self._write_notes()

    def _paragraph(self, element: Element) -> None:
        boxes: list[Element] = []
        text = self.text(element, boxes)
        style = _value(element.find(f"{_W}pPr/{_W}pStyle"))
        outline = _value(element.find(f"{_W}pPr/{_W}outlineLvl"))
        numbering = element.find(f"{_W}pPr/{_W}numPr")
        level = int(outline) + 1 if outline and outline in "012345678" else self._styles.level(style)
        depth = _depth(numbering) if numbering is not None else self._styles.list_depth(style)
        parts = text.split(_PAGE)
        while len(parts) > 1 and not parts[0].strip():
            self._turn(1)
            parts.pop(0)
        if level or depth is not None:
            if level:
                self.draft.heading(level, "".join(parts))
            else:
                self.draft.item("".join(parts), depth or 0)
            self._turn(len(parts) - 1)
        else:
            self._write_over_pages(parts)
        for box in boxes:
            self.body(box)
        if not boxes:
            self._write_notes()

    def _write_over_pages(self, parts: list[str]) -> None:
        """A paragraph that runs over pages: each of its parts after the first begins a page."""
        parts[0] = parts[0].lstrip("\n")
        start = self.draft.paragraph("".join(parts))
        for index in range(1, len(parts)):
            if start is not None and "".join(parts[index:]).strip():
                self._page += 1
                self.draft.page_inside(str(self._page), start + len("".join(parts[:index])))
            else:
                self._turn(1)

    def _turn(self, pages: int) -> None:
        for _ in range(pages):
            self._page += 1
            self.draft.page(str(self._page))

    def _write_notes(self) -> None:
        """Footnotes follow the paragraph that refers to them, so that they stay in its section."""
        pending, self._pending = self._pending, []
        for key in pending:
            if self._notes.get(key):
                self.draft.paragraph(f"[{key}] {self._notes[key]}")

    def text(self, element: Element, boxes: list[Element] | None = None) -> str:
        """Text of a paragraph; text boxes in it are collected in `boxes`, or read in place."""
        parts: list[str] = []
        for child in element:
            name = local(child)
            if name in _SILENT:
                continue
            if name == "t":
                parts.append(child.text or "")
            elif name == "tab":
                parts.append("\t")
            elif name == "lastRenderedPageBreak":
                parts.append(_PAGE if self._paged else "")
            elif name in ("br", "cr"):
                parts.append("" if child.get(f"{_W}type") in ("page", "column") else "\n")
            elif name == "noBreakHyphen":
                parts.append("-")
            elif name in ("footnoteReference", "endnoteReference"):
                key = ("e" if name[0] == "e" else "") + (child.get(f"{_W}id") or "")
                if self._notes.get(key):
                    parts.append(f" [{key}]")
                    self._pending.append(key)
            elif name == "txbxContent" and boxes is not None:
                boxes.append(child)
            elif name == "p":
                parts.append(self.text(child, boxes) + " ")
            else:
                parts.append(self.text(child, boxes))
        return "".join(parts)

    def _table(self, table: Element) -> None:
        rows: list[list[str]] = []
        for row in _inside(table, "tr"):
            cells: list[str] = []
            for cell in _inside(row, "tc"):
                merged = cell.find(f"{_W}tcPr/{_W}vMerge")
                covered = merged is not None and _value(merged) != "restart"
                text = self.text(cell)
                cells.append("" if covered else text.replace(_PAGE, ""))
                self._turn(text.count(_PAGE))
                span = _value(cell.find(f"{_W}tcPr/{_W}gridSpan"))
                cells += [""] * (min(int(span), 100) - 1 if span and span.isdecimal() else 0)
            rows.append(cells)
        self.draft.table(rows)
        self._write_notes()


def _inside(parent: Element, name: str) -> Iterator[Element]:
    """Rows of a table or cells of a row, also those inside content controls."""
    for element in parent:
        if local(element) == name:
            yield element
        elif local(element) in ("sdt", "sdtContent", "ins", "customXml"):
            yield from _inside(element, name)


def _value(element: Element | None) -> str | None:
    return None if element is None else element.get(f"{_W}val")


def _depth(numbering: Element) -> int | None:
    """Depth of a list item; None where the paragraph takes itself out of its style's list."""
    if _value(numbering.find(f"{_W}numId")) == "0":
        return None
    depth = _value(numbering.find(f"{_W}ilvl"))
    return int(depth) if depth and depth.isdecimal() else 0


def read_docx(data: bytes, limits: Limits) -> Reading:
    """One document. Pages are known only where Word has recorded them; otherwise there are none."""
    package = Package(data, limits)
    part = package.first("", "officeDocument") or "word/document.xml"
    if part not in package.names:
        raise LoadError("damaged DOCX: it holds no document part")
    styles = package.first(part, "styles")
    root = package.xml(part)
    notes: dict[str, str] = {}
    blank = _Writer(_Styles(None), {}, False)
    for kind, prefix in (("footnotes", ""), ("endnotes", "e")):
        # Some writers add the part without a relationship to it.
        fallback = f"word/{kind}.xml" if f"word/{kind}.xml" in package.names else None
        name = package.first(part, kind) or fallback
        for note in package.xml(name) if name else ():
            if note.get(f"{_W}type") is None:
                notes[prefix + (note.get(f"{_W}id") or "")] = " ".join(blank.text(note).split())
    paged = next(root.iter(f"{_W}lastRenderedPageBreak"), None) is not None
    writer = _Writer(_Styles(package.xml(styles) if styles else None), notes, paged)
    writer.body(root)
    return Reading([writer.draft.finish(metadata=of_office(package))])
