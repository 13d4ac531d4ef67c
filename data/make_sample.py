"""Write the generated documents of the sample collection.

Usage::

    pip install python-docx python-pptx openpyxl fpdf2
    python data/make_sample.py

The texts lie in ``data/source`` in a small readable markup: ``#`` is the title,
``##`` a heading, ``- `` a list item, ``| a | b |`` a table row, and everything
else a paragraph. The results go to ``data/sample``. All dates inside the files
are fixed, so a second run with the same library versions writes the same bytes.
The documents which are text already are not touched.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
import re
import sys
import zipfile
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "source"
SAMPLE = HERE / "sample"
STAMP = dt.datetime(2024, 1, 31, 12, 0, 0)
AUTHOR = "Tarnfell Coldline plc"


@dataclass
class Block:
    """One piece of a source text: title, heading, paragraph, list or table."""

    kind: str
    text: str = ""
    rows: list[list[str]] = field(default_factory=list)


def read_blocks(path: Path) -> list[Block]:
    """Parse the markup of a source text into blocks."""
    blocks: list[Block] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        line = line.strip()
        if not line:
            continue
        if line.startswith("## "):
            blocks.append(Block("heading", line[3:]))
        elif line.startswith("# "):
            blocks.append(Block("title", line[2:]))
        elif line.startswith("- "):
            blocks.append(Block("item", line[2:]))
        elif line.startswith("notes: "):
            blocks.append(Block("notes", line[7:]))
        elif line.startswith("|"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if blocks and blocks[-1].kind == "table":
                blocks[-1].rows.append(cells)
            else:
                blocks.append(Block("table", rows=[cells]))
        else:
            blocks.append(Block("paragraph", line))
    return blocks


def repack(data: bytes) -> bytes:
    """Rewrite a zip file with fixed times, inside and outside."""
    stamp = STAMP.strftime("%Y-%m-%dT%H:%M:%SZ").encode()
    result = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as old,
        zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for entry in old.infolist():
            content = old.read(entry.filename)
            if entry.filename == "docProps/core.xml":
                content = re.sub(
                    rb"(<dcterms:(?:created|modified)[^>]*>)[^<]*", rb"\g<1>" + stamp, content
                )
            info = zipfile.ZipInfo(entry.filename, STAMP.timetuple()[:6])
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            info.create_system = 3
            new.writestr(info, content)
    return result.getvalue()


def make_contracts() -> None:
    """Fill the one contract template with the terms of two customers."""
    template = (SOURCE / "contract-template.txt").read_text(encoding="utf-8")
    for name in ("hellebore", "skjerholm"):
        text = template
        source = (SOURCE / f"contract-{name}.txt").read_text(encoding="utf-8")
        for line in source.splitlines():
            key, _, value = line.partition(" = ")
            text = text.replace("{{" + key + "}}", value)
        if "{{" in text:
            raise ValueError(f"a term is missing in the contract of {name}")
        (SAMPLE / f"contract-{name}.txt").write_text(text, encoding="utf-8")


def make_handbook() -> None:
    """Write the handbook as a PDF with page numbers and an outline."""
    from fpdf import FPDF
    from fpdf.fonts import FontFace

    class Handbook(FPDF):
        def header(self) -> None:
            if self.page_no() > 1:
                self.set_font("Helvetica", "", 8)
                self.cell(0, 5, "Tarnfell Coldline, Security and Conduct Handbook, edition 7")
                self.ln(12)

        def footer(self) -> None:
            self.set_y(-15)
            self.set_font("Helvetica", "", 8)
            self.cell(0, 5, f"Class: Internal. Page {self.page_no()} of {{nb}}", align="R")

    pdf = Handbook(format="A5")
    pdf.set_creation_date(STAMP.replace(tzinfo=dt.UTC))
    pdf.set_author(AUTHOR)
    pdf.set_title("Security and Conduct Handbook")
    pdf.set_lang("en-GB")
    pdf.set_margins(16, 16, 16)
    pdf.set_auto_page_break(True, 20)
    pdf.add_page()
    for block in read_blocks(SOURCE / "handbook.txt"):
        if block.kind == "title":
            pdf.set_font("Helvetica", "B", 20)
            pdf.multi_cell(0, 9, block.text, align="L", new_x="LMARGIN", new_y="NEXT")
            pdf.ln(4)
        elif block.kind == "heading":
            if pdf.get_y() > 135:
                pdf.add_page()
            pdf.ln(3)
            pdf.set_font("Helvetica", "B", 12)
            pdf.start_section(block.text)
            pdf.multi_cell(0, 7, block.text, align="L", new_x="LMARGIN", new_y="NEXT")
        elif block.kind == "table":
            pdf.set_font("Helvetica", "", 8)
            bold = FontFace(emphasis="BOLD")
            longest = [max(map(len, column)) for column in zip(*block.rows, strict=True)]
            with pdf.table(
                rows=block.rows,
                col_widths=tuple(min(max(length, 14), 34) for length in longest),
                text_align="LEFT",
                line_height=4,
                headings_style=bold,
            ):
                pass
            pdf.ln(3)
        else:
            pdf.set_font("Helvetica", "", 10)
            pdf.multi_cell(0, 5, block.text, align="L", new_x="LMARGIN", new_y="NEXT")
            pdf.ln(2)
    pdf.output(str(SAMPLE / "security-and-conduct-handbook.pdf"))


def make_specification() -> None:
    """Write the product specification as a DOCX with headings and a table."""
    from docx import Document

    document = Document()
    properties = document.core_properties
    properties.author = AUTHOR
    properties.title = "Frostline Loggers: Product Specification"
    for block in read_blocks(SOURCE / "product-spec.txt"):
        if block.kind == "title":
            document.add_heading(block.text, level=0)
        elif block.kind == "heading":
            document.add_heading(block.text, level=1)
        elif block.kind == "table":
            table = document.add_table(rows=0, cols=len(block.rows[0]))
            table.style = "Light Grid Accent 1"
            for row in block.rows:
                for cell, text in zip(table.add_row().cells, row, strict=True):
                    cell.text = text
        else:
            document.add_paragraph(block.text)
    buffer = io.BytesIO()
    document.save(buffer)
    (SAMPLE / "frostline-product-spec.docx").write_bytes(repack(buffer.getvalue()))


def make_deck() -> None:
    """Write the board deck as a PPTX with speaker notes."""
    from pptx import Presentation

    deck = Presentation()
    deck.core_properties.author = AUTHOR
    deck.core_properties.title = "Board meeting, 15 February 2024"
    slide = body = None
    for block in read_blocks(SOURCE / "board-deck.txt"):
        if block.kind == "title":
            slide = deck.slides.add_slide(deck.slide_layouts[0 if slide is None else 1])
            slide.shapes.title.text = block.text
            body = slide.placeholders[1].text_frame
            first = True
        elif block.kind == "notes":
            slide.notes_slide.notes_text_frame.text = block.text
        else:
            paragraph = body.paragraphs[0] if first else body.add_paragraph()
            paragraph.text = block.text
            first = False
    buffer = io.BytesIO()
    deck.save(buffer)
    (SAMPLE / "board-deck-2024-02.pptx").write_bytes(repack(buffer.getvalue()))


def make_parts_list() -> None:
    """Write the price list as an XLSX with one sheet for each source table."""
    from openpyxl import Workbook
    from openpyxl.styles import Font

    book = Workbook()
    book.remove(book.active)
    book.properties.creator = AUTHOR
    book.properties.title = "Parts and prices 2024"
    for path in sorted((SOURCE / "parts").glob("*.tsv")):
        sheet = book.create_sheet(path.stem.partition("-")[2])
        with path.open(encoding="utf-8", newline="") as lines:
            for row in csv.reader(lines, delimiter="\t"):
                sheet.append([_number(cell) for cell in row])
        for cell in sheet[1]:
            cell.font = Font(bold=True)
        for column in sheet.columns:
            width = max(len(str(cell.value)) for cell in column)
            sheet.column_dimensions[column[0].column_letter].width = min(width + 2, 60)
        sheet.freeze_panes = "A2"
    buffer = io.BytesIO()
    book.save(buffer)
    (SAMPLE / "parts-and-prices-2024.xlsx").write_bytes(repack(buffer.getvalue()))


def _number(text: str) -> str | int | float:
    if re.fullmatch(r"\d+", text):
        return int(text)
    if re.fullmatch(r"\d+\.\d+", text):
        return float(text)
    return text


PAGE = """<?xml version="1.0" encoding="UTF-8"?>
<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" xml:lang="en">
<head><title>{title}</title></head>
<body>
{body}
</body>
</html>
"""

CONTAINER = """<?xml version="1.0"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
<rootfiles>
<rootfile full-path="OEBPS/content.opf" media-type="application/oebps-package+xml"/>
</rootfiles>
</container>
"""

PACKAGE = """<?xml version="1.0" encoding="UTF-8"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:identifier id="id">tarnfell-field-guide-3</dc:identifier>
<dc:title>{title}</dc:title>
<dc:language>en</dc:language>
<dc:creator>{author}</dc:creator>
<meta property="dcterms:modified">{stamp}</meta>
</metadata>
<manifest>
<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
{items}
</manifest>
<spine>
{refs}
</spine>
</package>
"""


def make_field_guide() -> None:
    """Write the field guide as an EPUB with one file for each chapter."""
    title = ""
    chapters: list[tuple[str, list[str]]] = []
    for block in read_blocks(SOURCE / "field-guide.txt"):
        if block.kind == "title":
            title = block.text
        elif block.kind == "heading":
            chapters.append((block.text, []))
        else:
            chapters[-1][1].append(block.text)
    names = [f"chapter-{number:02d}" for number in range(1, len(chapters) + 1)]
    files: list[tuple[str, str]] = [("META-INF/container.xml", CONTAINER)]
    items = "\n".join(
        f'<item id="{name}" href="{name}.xhtml" media-type="application/xhtml+xml"/>' for name in names
    )
    refs = "\n".join(f'<itemref idref="{name}"/>' for name in names)
    package = PACKAGE.format(
        title=escape(title),
        author=escape(AUTHOR),
        stamp=STAMP.strftime("%Y-%m-%dT%H:%M:%SZ"),
        items=items,
        refs=refs,
    )
    files.append(("OEBPS/content.opf", package))
    links = "\n".join(
        f'<li><a href="{name}.xhtml">{escape(heading)}</a></li>'
        for name, (heading, _) in zip(names, chapters, strict=True)
    )
    contents = f'<nav epub:type="toc"><h1>Contents</h1><ol>\n{links}\n</ol></nav>'
    files.append(("OEBPS/nav.xhtml", PAGE.format(title="Contents", body=contents)))
    for name, (heading, paragraphs) in zip(names, chapters, strict=True):
        body = "\n".join([f"<h1>{escape(heading)}</h1>"] + [f"<p>{escape(p)}</p>" for p in paragraphs])
        files.append((f"OEBPS/{name}.xhtml", PAGE.format(title=escape(heading), body=body)))
    with zipfile.ZipFile(SAMPLE / "field-guide-cold-road.epub", "w") as book:
        info = zipfile.ZipInfo("mimetype", STAMP.timetuple()[:6])
        book.writestr(info, "application/epub+zip", compress_type=zipfile.ZIP_STORED)
        for name, text in files:
            info = zipfile.ZipInfo(name, STAMP.timetuple()[:6])
            info.external_attr = 0o644 << 16
            info.create_system = 3
            book.writestr(info, text, compress_type=zipfile.ZIP_DEFLATED)


def main() -> int:
    """Write all generated documents."""
    SAMPLE.mkdir(exist_ok=True)
    make_contracts()
    make_handbook()
    make_specification()
    make_deck()
    make_parts_list()
    make_field_guide()
    for path in sorted(SAMPLE.iterdir()):
        print(f"{path.stat().st_size:8d}  {path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
