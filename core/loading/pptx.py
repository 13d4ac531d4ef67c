"""PPTX: one page a slide, its boxes from top to bottom, tables by rows, speaker notes at its end.

Read from the XML itself: libraries leave out speaker notes or grouped boxes, or take any first box
for a title. Slide numbers, dates and footers that repeat on each slide are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from core.errors import LoadError
from core.loading.clean import one_line
from core.loading.draft import Draft, Reading
from core.loading.options import Limits
from core.loading.package import Package, local, relationship_id
from core.loading.properties import of_office

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_TITLES = ("title", "ctrTitle")
_FURNITURE = ("sldNum", "dt", "ftr", "hdr", "sldImg")
_SHAPES = ("sp", "grpSp", "graphicFrame", "pic", "cxnSp")


def read_pptx(data: bytes, limits: Limits) -> Reading:
    """One document; pages are labelled "slide 1", "slide 2", …, titles are headings."""
    package = Package(data, limits)
    part = package.first("", "officeDocument") or "ppt/presentation.xml"
    if part not in package.names:
        raise LoadError("damaged PPTX: it holds no presentation part")
    parts = package.related(part)
    listed = [relationship_id(e) for e in package.xml(part).iter() if local(e) == "sldId"]
    slides = [parts[key][1] for key in listed if key in parts and parts[key][1] in package.names]
    draft, title, hidden = Draft(), "", []
    for number, slide in enumerate(slides, 1):
        root = package.xml(slide)
        draft.page(f"slide {number}")
        if root.get("show") == "0":
            hidden.append(str(number))
        shapes = list(_shapes(root))
        heading = next((_text(shape) for shape in shapes if _role(shape) in _TITLES), "")
        title = title or one_line(heading)
        draft.heading(2, heading)
        for shape in shapes:
            if _role(shape) not in (*_TITLES, *_FURNITURE):
                _write(draft, shape)
        notes = package.first(slide, "notesSlide")
        if notes:
            spoken = [_text(s) for s in _shapes(package.xml(notes)) if _role(s) == "body"]
            if any(text.strip() for text in spoken):
                draft.paragraph("Notes: " + "\n".join(spoken))
    warnings = [f"hidden slides are included: {', '.join(hidden)}"] if hidden else []
    return Reading([draft.finish(title, of_office(package))], warnings=warnings)


def _shapes(parent: Element) -> Iterator[Element]:
    """The shapes of a slide or group in reading order, groups opened.

    A box without a place of its own stands where the layout puts it: before the others, as stored.
    """
    found: list[tuple[tuple[int, int], Element]] = []
    for element in parent.iter():
        if local(element) == "spTree":
            parent = element
            break
    for element in parent:
        if local(element) == "AlternateContent":
            element = next((e for choice in element for e in choice if local(e) in _SHAPES), element)
        if local(element) in _SHAPES:
            found.append((_place(element), element))
    for _, element in sorted(found, key=lambda pair: pair[0]):
        if local(element) == "grpSp":
            yield from _shapes(element)
        else:
            yield element


def _place(shape: Element) -> tuple[int, int]:
    for transform in shape.iter():
        if local(transform) == "xfrm":
            offset = transform.find(f"{_A}off")
            if offset is not None:
                x, y = offset.get("x") or "0", offset.get("y") or "0"
                return (
                    (int(y), int(x))
                    if y.lstrip("-").isdecimal() and x.lstrip("-").isdecimal()
                    else (-1, -1)
                )
    return (-1, -1)


def _role(shape: Element) -> str:
    """What a placeholder is for; "" for other shapes ("obj" is a placeholder for any content)."""
    for element in shape.iter():
        if local(element) == "ph":
            return element.get("type") or "obj"
        if local(element) in ("txBody", "graphic"):
            break
    return ""


def _write(draft: Draft, shape: Element) -> None:
    for table in shape.iter(f"{_A}tbl"):
        draft.table(
            [
                [
                    "" if "1" in (c.get("hMerge"), c.get("vMerge")) else _text(c)
                    for c in row.iter(f"{_A}tc")
                ]
                for row in table.iter(f"{_A}tr")
            ]
        )
        return
    draft.paragraph(_text(shape))


def _text(shape: Element) -> str:
    """Paragraphs of a shape, one a line."""
    lines = []
    for paragraph in shape.iter(f"{_A}p"):
        parts = [
            "\n" if local(e) == "br" else e.text or ""
            for e in paragraph.iter()
            if local(e) in ("t", "br")
        ]
        lines.append("".join(parts))
    return "\n".join(line for line in lines if line.strip())
