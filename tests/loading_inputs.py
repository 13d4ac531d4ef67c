"""Small files of every format, made here, for the tests of loading."""

from __future__ import annotations

import base64
import io
import zipfile
from collections.abc import Mapping, Sequence

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_A = "http://schemas.openxmlformats.org/drawingml/2006/main"
_P = "http://schemas.openxmlformats.org/presentationml/2006/main"


def zipped(parts: Mapping[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def relations(**targets: tuple[str, str]) -> str:
    """A relationships part: id=(kind, target)."""
    inner = "".join(
        f'<Relationship Id="{key}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for key, (kind, target) in targets.items()
    )
    return f'<Relationships xmlns="{_RELATIONS}">{inner}</Relationships>'


def docx(body: str, footnotes: str = "", extra: Mapping[str, str] | None = None) -> bytes:
    """A DOCX whose document part holds `body`; styles: Title, Heading1, Heading2, Chapter, Bullets."""
    styles = "".join(
        f'<w:style w:styleId="{key}"><w:name w:val="{name}"/>{more}</w:style>'
        for key, name, more in (
            ("Title", "Title", ""),
            ("Heading1", "heading 1", ""),
            ("Heading2", "heading 2", ""),
            ("Chapter", "Our chapter", '<w:basedOn w:val="Heading1"/>'),
            ("Bullets", "List Bullet", "<w:pPr><w:numPr><w:numId w:val='1'/></w:numPr></w:pPr>"),
        )
    )
    return zipped(
        {
            "_rels/.rels": relations(r1=("officeDocument", "word/document.xml")),
            "word/_rels/document.xml.rels": relations(
                r1=("styles", "styles.xml"), r2=("footnotes", "footnotes.xml")
            ),
            "word/document.xml": f'<w:document xmlns:w="{W}"><w:body>{body}</w:body></w:document>',
            "word/styles.xml": f'<w:styles xmlns:w="{W}">{styles}</w:styles>',
            "word/footnotes.xml": f'<w:footnotes xmlns:w="{W}">{footnotes}</w:footnotes>',
            **(extra or {}),
        }
    )


def paragraph(text: str, style: str = "", more: str = "") -> str:
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r>{more}</w:p>"


def shape(text: str, x: int = 0, y: int = 0, role: str = "") -> str:
    place = f'<a:xfrm><a:off x="{x}" y="{y}"/></a:xfrm>' if not role else ""
    placeholder = f'<p:nvPr><p:ph type="{role}"/></p:nvPr>' if role else "<p:nvPr/>"
    paragraphs = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in text.split("\n"))
    return (
        f"<p:sp><p:nvSpPr>{placeholder}</p:nvSpPr><p:spPr>{place}</p:spPr>"
        f"<p:txBody>{paragraphs}</p:txBody></p:sp>"
    )


def pptx(
    slides: Sequence[str], notes: Mapping[int, str] | None = None, hidden: Sequence[int] = ()
) -> bytes:
    """A PPTX; slides are stored in reverse, so that their order comes from the presentation only."""
    notes = notes or {}
    spaces = f'xmlns:a="{_A}" xmlns:p="{_P}" xmlns:r="{_OFFICE}"'
    parts = {"_rels/.rels": relations(r1=("officeDocument", "ppt/presentation.xml"))}
    targets = {}
    for number in range(len(slides), 0, -1):
        file = f"slides/slide{len(slides) + 1 - number}.xml"
        targets[f"r{number}"] = ("slide", file)
        show = ' show="0"' if number in hidden else ""
        tree = f"<p:cSld><p:spTree>{slides[number - 1]}</p:spTree></p:cSld>"
        parts[f"ppt/{file}"] = f"<p:sld {spaces}{show}>{tree}</p:sld>"
        if number in notes:
            parts[f"ppt/slides/_rels/{file[7:]}.rels"] = relations(
                n=("notesSlide", f"../notesSlides/notes{number}.xml")
            )
            parts[f"ppt/notesSlides/notes{number}.xml"] = (
                f"<p:notes {spaces}><p:cSld><p:spTree>{shape(notes[number], role='body')}"
                f"{shape('9', role='sldNum')}</p:spTree></p:cSld></p:notes>"
            )
    ids = "".join(f'<p:sldId id="{255 + n}" r:id="r{n}"/>' for n in range(1, len(slides) + 1))
    parts["ppt/presentation.xml"] = (
        f"<p:presentation {spaces}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>"
    )
    parts["ppt/_rels/presentation.xml.rels"] = relations(**targets)
    return zipped(parts)


def xlsx() -> bytes:
    from datetime import datetime

    from openpyxl import Workbook

    book = Workbook()
    sheet = book.active
    sheet.title = "Rota"
    sheet["A1"] = "Spring rota"
    sheet.merge_cells("A1:C1")
    sheet.append(["Crew", "Start", "Share"])
    sheet.append(["North", datetime(2024, 3, 5), 0.25])
    sheet["C3"].number_format = "0%"
    sheet["A40"], sheet["B40"], sheet["C40"] = "South", datetime(2024, 3, 6, 14, 30), "=C3*2"
    secret = book.create_sheet("Archive")
    secret.append(["Old"])
    secret.sheet_state = "hidden"
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def with_part(data: bytes, name: str, content: str) -> bytes:
    """An archive with one more part."""
    buffer = io.BytesIO(data)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


def core_properties(**texts: str) -> str:
    """The part docProps/core.xml; every element in one namespace, since only local names are read."""
    inner = "".join(f"<p:{name}>{text}</p:{name}>" for name, text in texts.items())
    return f'<p:coreProperties xmlns:p="urn:core">{inner}</p:coreProperties>'


def epub(
    chapters: Mapping[str, str], spine: Sequence[str], title: str = "Canal book", more: str = ""
) -> bytes:
    """An EPUB whose table of contents is item "nav"; chapters are stored in the order given."""
    items = "".join(
        f'<item id="{key}" href="{key}.xhtml" media-type="application/xhtml+xml"'
        + (' properties="nav"/>' if key == "nav" else "/>")
        for key in chapters
    )
    order = "".join(f'<itemref idref="{key}"/>' for key in spine)
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfiles><rootfile full-path="book/book.opf"/>'
            "</rootfiles></container>",
            "book/book.opf": f"<package><metadata><title>{title}</title>{more}</metadata>"
            f"<manifest>{items}</manifest><spine>{order}</spine></package>",
            **{f"book/{key}.xhtml": content for key, content in chapters.items()},
        }
    )


def pdf(
    pages: Sequence[Sequence[tuple[float, float, str]]],
    outline: Sequence[tuple[str, int]] = (),
    info: Mapping[str, str] | None = None,
) -> bytes:
    """A PDF in Helvetica 10: each page a list of (x, y, text); `outline` of (title, page index); `info`
    what the document information says."""
    objects: list[bytes] = []

    def add(content: str | bytes) -> int:
        objects.append(content.encode("latin-1") if isinstance(content, str) else content)
        return len(objects)

    add("")  # 1: the catalogue, known at the end
    add("")  # 2: the page tree
    font = add("<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>")
    kids = []
    for page in pages:
        drawn = "".join(f"BT /F1 10 Tf {x} {y} Td ({text}) Tj ET\n" for x, y, text in page)
        stream = add(f"<</Length {len(drawn)}>>\nstream\n{drawn}endstream")
        kids.append(
            add(
                f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents {stream} 0 R"
                f"/Resources<</Font<</F1 {font} 0 R>>>>>>"
            )
        )
    objects[1] = f"<</Type/Pages/Count {len(kids)}/Kids[{' '.join(f'{k} 0 R' for k in kids)}]>>".encode()
    root = len(objects) + 1
    if outline:
        add(
            f"<</Type/Outlines/First {root + 1} 0 R/Last {root + len(outline)} 0 R"
            f"/Count {len(outline)}>>"
        )
        for index, (title, page_index) in enumerate(outline):
            here = root + 1 + index
            after = f"/Next {here + 1} 0 R" if index + 1 < len(outline) else ""
            before = f"/Prev {here - 1} 0 R" if index else ""
            add(f"<</Title({title})/Parent {root} 0 R/Dest[{kids[page_index]} 0 R/Fit]{after}{before}>>")
    told = ""
    if info:
        told = (
            f"/Info {add('<<' + ''.join(f'/{key}({value})' for key, value in info.items()) + '>>')} 0 R"
        )
    objects[0] = f"<</Type/Catalog/Pages 2 0 R{f'/Outlines {root} 0 R' if outline else ''}>>".encode()
    out = b"%PDF-1.4\n"
    places = []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    start = len(out)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(objects) + 1, table)
    trailer = b"trailer<</Size %d/Root 1 0 R%s>>" % (len(objects) + 1, told.encode())
    return out + trailer + b"\nstartxref\n%d\n%%%%EOF" % start


# One page that says "Sealed words VAULT-7."; the first opens with open-sesame, the second with "".
LOCKED_PDF = base64.b64decode(
    """
JVBERi0xLjMKJeLjz9MKMSAwIG9iago8PAovT3BlbkFjdGlvbiBbIDIgMCBSIC9GaXRIIG51bGwgXQovUGFnZUxheW91dCAvT25l
Q29sdW1uCi9QYWdlcyA0IDAgUgovVHlwZSAvQ2F0YWxvZwo+PgplbmRvYmoKMiAwIG9iago8PAovQ29udGVudHMgMyAwIFIKL1Bh
cmVudCA0IDAgUgovUmVzb3VyY2VzIDUgMCBSCi9UeXBlIC9QYWdlCi9NZWRpYUJveCBbIDAgMCA1OTUuMjggODQxLjg5IF0KPj4K
ZW5kb2JqCjMgMCBvYmoKPDwKL0ZpbHRlciAvRmxhdGVEZWNvZGUKL0xlbmd0aCA4MQo+PgpzdHJlYW0Kh3t0sCzvKB7zrD+jFW6s
6noLT6Zdkaa5OD764EiUwXk89Hltxz1kVsyJJ7r3vQge5Ba98SWUCOjk3UlrtMhsnT5UUked64NGtRaNHWAJeAAmCmVuZHN0cmVh
bQplbmRvYmoKNCAwIG9iago8PAovQ291bnQgMQovS2lkcyBbIDIgMCBSIF0KL01lZGlhQm94IFsgMCAwIDU5NS4yOCA4NDEuODkg
XQovVHlwZSAvUGFnZXMKPj4KZW5kb2JqCjUgMCBvYmoKPDwKL0ZvbnQgPDwKL0YxIDYgMCBSCj4+Ci9Qcm9jU2V0IFsgL1BERiAv
VGV4dCAvSW1hZ2VCIC9JbWFnZUMgL0ltYWdlSSBdCj4+CmVuZG9iago2IDAgb2JqCjw8Ci9CYXNlRm9udCAvSGVsdmV0aWNhCi9F
bmNvZGluZyAvV2luQW5zaUVuY29kaW5nCi9TdWJ0eXBlIC9UeXBlMQovVHlwZSAvRm9udAo+PgplbmRvYmoKNyAwIG9iago8PAov
Q3JlYXRpb25EYXRlIDxjMGJlNTU1ZDllZjI0NGQ4N2NiNmIzMTBlNjUzZGIxOTljPgo+PgplbmRvYmoKOCAwIG9iago8PAovViAy
Ci9SIDMKL0xlbmd0aCAxMjgKL1AgNDI5NDk2NzI5MgovRmlsdGVyIC9TdGFuZGFyZAovTyA8MTFhMDgzNDM4ZDM1MjhhNWM4NTZi
YjMxOWE2YmRlMGNhMTkwOWU0OGU4ZDA4NTNlNmM4OTQzMTY5MDc5Nzk1Zj4KL1UgPGUzYjJmOTRhMzE4M2Q1MWUwZTNjN2JiMzVl
ZjI1MTk4MjhiZjRlNWU0ZTc1OGE0MTY0MDA0ZTU2ZmZmYTAxMDg+Cj4+CmVuZG9iagp4cmVmCjAgOQowMDAwMDAwMDAwIDY1NTM1
IGYgCjAwMDAwMDAwMTUgMDAwMDAgbiAKMDAwMDAwMDEyMCAwMDAwMCBuIAowMDAwMDAwMjMyIDAwMDAwIG4gCjAwMDAwMDAzODQg
MDAwMDAgbiAKMDAwMDAwMDQ3NSAwMDAwMCBuIAowMDAwMDAwNTY2IDAwMDAwIG4gCjAwMDAwMDA2NjMgMDAwMDAgbiAKMDAwMDAw
MDczNSAwMDAwMCBuIAp0cmFpbGVyCjw8Ci9TaXplIDkKL1Jvb3QgMSAwIFIKL0luZm8gNyAwIFIKL0lEIFsgPDJmOGRjYzQ0OWU2
ZjAwMzM0NWY2M2E5MWRiZDE5ZGM2PiA8MGVkN2MzZTFkMTc4Nzc1ZjcwNGY4MDc1YmYxMjBlNGE+IF0KL0VuY3J5cHQgOCAwIFIK
Pj4Kc3RhcnR4cmVmCjk1MAolJUVPRgo=
    """
)
EMPTY_PDF = base64.b64decode(
    """
JVBERi0xLjMKJeLjz9MKMSAwIG9iago8PAovT3BlbkFjdGlvbiBbIDIgMCBSIC9GaXRIIG51bGwgXQovUGFnZUxheW91dCAvT25l
Q29sdW1uCi9QYWdlcyA0IDAgUgovVHlwZSAvQ2F0YWxvZwo+PgplbmRvYmoKMiAwIG9iago8PAovQ29udGVudHMgMyAwIFIKL1Bh
cmVudCA0IDAgUgovUmVzb3VyY2VzIDUgMCBSCi9UeXBlIC9QYWdlCi9NZWRpYUJveCBbIDAgMCA1OTUuMjggODQxLjg5IF0KPj4K
ZW5kb2JqCjMgMCBvYmoKPDwKL0ZpbHRlciAvRmxhdGVEZWNvZGUKL0xlbmd0aCA4MQo+PgpzdHJlYW0K6LxxYoTD+SXhVNRY3nJN
4IabBLZJf3Bu08A8kc31qmK6lYqLOCxOvQm7qVp7+q3mAAYp5nb7d8c+ybeezDTKSsU5aM2KYjiBJOAvMV3xmHagCmVuZHN0cmVh
bQplbmRvYmoKNCAwIG9iago8PAovQ291bnQgMQovS2lkcyBbIDIgMCBSIF0KL01lZGlhQm94IFsgMCAwIDU5NS4yOCA4NDEuODkg
XQovVHlwZSAvUGFnZXMKPj4KZW5kb2JqCjUgMCBvYmoKPDwKL0ZvbnQgPDwKL0YxIDYgMCBSCj4+Ci9Qcm9jU2V0IFsgL1BERiAv
VGV4dCAvSW1hZ2VCIC9JbWFnZUMgL0ltYWdlSSBdCj4+CmVuZG9iago2IDAgb2JqCjw8Ci9CYXNlRm9udCAvSGVsdmV0aWNhCi9F
bmNvZGluZyAvV2luQW5zaUVuY29kaW5nCi9TdWJ0eXBlIC9UeXBlMQovVHlwZSAvRm9udAo+PgplbmRvYmoKNyAwIG9iago8PAov
Q3JlYXRpb25EYXRlIDxiMzkxMjc4OTViY2U3OWQ4ZDhmNTZiYjk4OTI0OWM3Y2U2Pgo+PgplbmRvYmoKOCAwIG9iago8PAovViAy
Ci9SIDMKL0xlbmd0aCAxMjgKL1AgNDI5NDk2NzI5MgovRmlsdGVyIC9TdGFuZGFyZAovTyA8NTY2ZmE4NzNlZTMzYzc5N2NkM2I5
MDRmZGFkZjgxNGFmYTM0ZGY5YTM4ZjZlZDQxYjk4NGUyYzZkYTJhYTZmNT4KL1UgPGU4OGQyODY0YzIyYzA0OTRjMGIwODE4MmUy
OTA2MTc4MjhiZjRlNWU0ZTc1OGE0MTY0MDA0ZTU2ZmZmYTAxMDg+Cj4+CmVuZG9iagp4cmVmCjAgOQowMDAwMDAwMDAwIDY1NTM1
IGYgCjAwMDAwMDAwMTUgMDAwMDAgbiAKMDAwMDAwMDEyMCAwMDAwMCBuIAowMDAwMDAwMjMyIDAwMDAwIG4gCjAwMDAwMDAzODQg
MDAwMDAgbiAKMDAwMDAwMDQ3NSAwMDAwMCBuIAowMDAwMDAwNTY2IDAwMDAwIG4gCjAwMDAwMDA2NjMgMDAwMDAgbiAKMDAwMDAw
MDczNSAwMDAwMCBuIAp0cmFpbGVyCjw8Ci9TaXplIDkKL1Jvb3QgMSAwIFIKL0luZm8gNyAwIFIKL0lEIFsgPDJmOGRjYzQ0OWU2
ZjAwMzM0NWY2M2E5MWRiZDE5ZGM2PiA8NDNhMjQ3MmE5NWE0OWNiYTcwYmNmY2FlNmMxNjBjM2Q+IF0KL0VuY3J5cHQgOCAwIFIK
Pj4Kc3RhcnR4cmVmCjk1MAolJUVPRgo=
    """
)
