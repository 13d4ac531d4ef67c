"""PDF, DOCX, PPTX, XLSX, EPUB and HTML: structure, offsets and what must not be in the text."""

from __future__ import annotations

import threading

import pytest

from core.errors import LimitError, LoadError, PasswordNeeded
from core.loading import Limits, LoadOptions, check_upload, load
from core.types import Document
from tests.loading_inputs import (
    EMPTY_PDF,
    LOCKED_PDF,
    docx,
    epub,
    paragraph,
    pdf,
    pptx,
    relations,
    shape,
    xlsx,
    zipped,
)


def only(data: bytes, name: str) -> Document:
    (document,) = load(data, name).documents
    return document


def headings(document: Document) -> list[tuple[int, str]]:
    for heading in document.headings:
        assert heading.title in document.text[heading.start : heading.end]
    return [(heading.level, heading.title) for heading in document.headings]


def rows(document: Document) -> list[list[str]]:
    return [[document.text[a:b] for a, b in table.rows] for table in document.tables]


# PDF


def column(x: float, lines: list[str]) -> list[tuple[float, float, str]]:
    return [(x, 700 - 14 * i, line) for i, line in enumerate(lines)]


LEFT = [
    "The office plans the main-",
    "tenance of every gate and",
    "keeps a ledger of each in",
    "the upper shed. LEFT-END",
]
RIGHT = [
    "Right column starts with",
    "the spare filters, which are",
    "kept in the lower shed of",
    "the old mill. RIGHT-END",
]


def test_pdf_columns_written_row_by_row_are_read_one_after_the_other() -> None:
    mixed = [run for pair in zip(column(60, LEFT), column(320, RIGHT), strict=True) for run in pair]
    document = only(
        pdf([[(60, 740, "A heading over both of the columns of this page"), *mixed]]), "a.pdf"
    )
    assert document.text == (
        "A heading over both of the columns of this page\n\n"
        "The office plans the maintenance of every gate and\nkeeps a ledger of each in\n"
        "the upper shed. LEFT-END\nRight column starts with\nthe spare filters, which are\n"
        "kept in the lower shed of\nthe old mill. RIGHT-END"
    )


def test_pdf_lines_whose_boxes_overlap_are_each_read_once() -> None:
    lines = ["The first quay is long", "The next quay is quite short", "The third is by the jetty"]
    document = only(pdf([[(60, 700 - 3 * i, line) for i, line in enumerate(lines)]]), "a.pdf")
    assert document.text == "\n".join(lines)


def test_pdf_table_rows_stay_together() -> None:
    cells = [("Part", "bar"), ("A-1", "7"), ("B-2", "9"), ("C-3", "11")]
    drawn = [
        run for i, (a, b) in enumerate(cells) for run in ((60, 700 - 14 * i, a), (200, 700 - 14 * i, b))
    ]
    lines = only(pdf([drawn]), "a.pdf").text.split("\n")
    assert lines.index("A-1") + 1 == lines.index("7")
    assert lines.index("B-2") == lines.index("7") + 1


def test_pdf_running_headers_are_kept_once_and_pages_join_in_mid_sentence() -> None:
    pages = [
        [
            (60, 800, "Mill handbook"),
            (60, 700, f"Text of part {name} goes on"),
            (60, 20, f"Page {n} of 3"),
        ]
        for n, name in enumerate(("one", "two", "three"), 1)
    ]
    loaded = load(pdf(pages), "a.pdf")
    (document,) = loaded.documents
    assert document.text == (
        "Mill handbook\nPage 1 of 3\n\nText of part one goes on\nText of part two goes on\n"
        "Text of part three goes on"
    )
    assert [(page.label, document.text[page.start :][:16]) for page in document.pages] == [
        ("1", "Mill handbook\nPa"),
        ("2", "Text of part two"),
        ("3", "Text of part thr"),
    ]
    assert loaded.pages == 3
    assert "4 repeated header and footer lines" in loaded.warnings[0]


def test_pdf_outline_gives_headings_at_their_lines() -> None:
    pages = [[(60, 700, "1. Opening"), (60, 680, "Turn slowly.")], [(60, 700, "Closing words follow.")]]
    document = only(pdf(pages, [("Opening", 0), ("Not written", 1)]), "a.pdf")
    first, second = document.headings
    assert document.text[first.start : first.end] == "1. Opening"
    assert (second.title, second.start, second.end) == (
        "Not written",
        document.pages[1].start,
        second.start,
    )
    assert document.heading_path(document.text.index("Turn")) == ("Opening",)


def test_pdf_passwords() -> None:
    assert "VAULT-7" in only(EMPTY_PDF, "a.pdf").text
    with pytest.raises(PasswordNeeded, match="give its password"):
        load(LOCKED_PDF, "a.pdf")
    with pytest.raises(PasswordNeeded, match="does not open it") as caught:
        load(LOCKED_PDF, "a.pdf", LoadOptions(password="wr0ng-secret"))
    assert "wr0ng" not in str(caught.value)
    assert (
        load(LOCKED_PDF, "a.pdf", LoadOptions(password="open-sesame"))
        .documents[0]
        .text.endswith("VAULT-7.")
    )


def test_pdf_without_text_damaged_or_too_long_is_refused() -> None:
    with pytest.raises(LoadError, match=r"no text found \(scan\?\)"):
        load(pdf([[]]), "a.pdf")
    with pytest.raises(LoadError, match="damaged PDF"):
        load(b"%PDF-1.4 cut", "a.pdf")
    with pytest.raises(LimitError, match="has 2 pages; the limit is 1"):
        load(pdf([[], []]), "a.pdf", limits=Limits(pages=1))
    loaded = load(pdf([[(60, 700, "Words")], []]), "a.pdf")
    assert loaded.warnings == ("1 of 2 pages hold no text (scanned?)",)


def test_pdf_is_known_by_its_first_bytes_too() -> None:
    assert load(pdf([[(60, 700, "Words")]]), "report").format == "PDF"


def test_pdfs_load_in_several_threads_at_once() -> None:
    data = pdf([[(60, 700, f"Line of page {n}")] for n in range(20)])
    texts: list[str] = []
    threads = [threading.Thread(target=lambda: texts.append(only(data, "a.pdf").text)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(texts) == 6
    assert set(texts) == {texts[0]}


# DOCX

CELL = "<w:tc><w:tcPr>{}</w:tcPr><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc>"


def test_docx_headings_come_from_styles_and_what_they_are_based_on() -> None:
    body = (
        paragraph("Manual", "Title")
        + paragraph("Opening", "Chapter")
        + paragraph("Limits &amp; more", "Heading2")
        + paragraph("Seven bar.")
    )
    document = only(docx(body), "a.docx")
    assert document.text == "# Manual\n\n# Opening\n\n## Limits & more\n\nSeven bar."
    assert document.title == "Manual"
    assert document.heading_path(document.text.index("Seven")) == ("Opening", "Limits & more")


def test_docx_table_cells_stand_once_in_their_rows() -> None:
    table = "<w:tbl>" + "".join(
        f"<w:tr>{row}</w:tr>"
        for row in (
            CELL.format("<w:gridSpan w:val='2'/>", "Gate") + CELL.format("", "bar"),
            CELL.format("<w:vMerge w:val='restart'/>", "North")
            + CELL.format("", "left")
            + CELL.format("", "2"),
            CELL.format("<w:vMerge/>", "North") + CELL.format("", "right") + CELL.format("", "3"),
        )
    )
    document = only(docx(paragraph("Before") + table + "</w:tbl>" + paragraph("After")), "a.docx")
    assert rows(document) == [["| North | left | 2 |", "|  | right | 3 |"]]
    assert document.tables[0].columns == "| Gate |  | bar |"
    assert document.text.index("Before") < document.tables[0].start < document.text.index("After")


def test_docx_footnotes_follow_their_paragraph() -> None:
    note = '<w:footnote w:id="2"><w:p><w:r><w:t>Four turns.</w:t></w:r></w:p></w:footnote>'
    separator = (
        '<w:footnote w:type="separator" w:id="0"><w:p><w:r><w:t>---</w:t></w:r></w:p></w:footnote>'
    )
    reference = '<w:r><w:footnoteReference w:id="2"/></w:r>'
    document = only(
        docx(paragraph("Slowly", more=reference) + paragraph("Next"), separator + note), "a.docx"
    )
    assert document.text == "Slowly [2]\n\n[2] Four turns.\n\nNext"


def test_docx_deleted_text_goes_inserted_text_and_text_boxes_stay() -> None:
    changed = (
        "<w:p><w:del><w:r><w:delText>old</w:delText></w:r></w:del>"
        "<w:ins><w:r><w:t>new</w:t></w:r></w:ins><w:r><w:tab/><w:t>x</w:t><w:br/><w:t>y</w:t></w:r>"
        "<w:hyperlink><w:r><w:t> link</w:t></w:r></w:hyperlink></w:p>"
    )
    boxed = f"<w:pict><w:txbxContent>{paragraph('Boxed')}</w:txbxContent></w:pict>"
    box = f"<w:p><w:r><w:t>Host</w:t>{boxed}</w:r></w:p>"
    content = f"<w:sdt><w:sdtContent>{paragraph('Controlled')}</w:sdtContent></w:sdt>"
    items = paragraph("first", "Bullets") + paragraph("second", "Bullets")
    document = only(docx(changed + box + content + items), "a.docx")
    assert document.text == "new\tx\ny link\n\nHost\n\nBoxed\n\nControlled\n\n- first\n- second"


def test_docx_page_headers_are_no_text() -> None:
    header = {"word/header1.xml": '<w:hdr xmlns:w="x"><w:p><w:r><w:t>NOISE</w:t></w:r></w:p></w:hdr>'}
    assert only(docx(paragraph("Body"), extra=header), "a.docx").text == "Body"


def test_docx_pages_are_those_that_word_recorded() -> None:
    turn = "<w:r><w:lastRenderedPageBreak/><w:t>{}</w:t></w:r>"
    body = paragraph("One ", more=turn.format("two")) + f"<w:p>{turn.format('Three')}</w:p>"
    document = only(docx(body), "a.docx")
    assert document.text == "One two\n\nThree"
    assert [(page.label, document.text[page.start :]) for page in document.pages] == [
        ("1", "One two\n\nThree"),
        ("2", "two\n\nThree"),
        ("3", "Three"),
    ]
    explicit = paragraph("One", more='<w:r><w:br w:type="page"/></w:r>') + paragraph("Two")
    assert only(docx(explicit), "a.docx").pages == ()


# PPTX


def test_pptx_slides_in_order_with_notes_groups_and_tables() -> None:
    cell = "<a:tc{}><a:txBody><a:p><a:r><a:t>{}</a:t></a:r></a:p></a:txBody></a:tc>"
    table = (
        "<p:graphicFrame><p:xfrm><a:off x='0' y='300'/></p:xfrm><a:graphic><a:graphicData><a:tbl>"
        f"<a:tr>{cell.format('', 'Tide')}{cell.format('', 'Hour')}</a:tr>"
        f"<a:tr>{cell.format('', 'High')}{cell.format('', '7')}</a:tr>"
        "</a:tbl></a:graphicData></a:graphic>"
        "</p:graphicFrame>"
    )
    group = (
        "<p:grpSp><p:grpSpPr><a:xfrm><a:off x='0' y='200'/></a:xfrm></p:grpSpPr>"
        f"{shape('grouped', 5, 9)}</p:grpSp>"
    )
    first = (
        table + shape("last", 0, 400) + group + shape("top\nlines", 0, 100) + shape("Plan", role="title")
    )
    second = shape("3", role="sldNum") + shape("Second slide")
    loaded = load(pptx([first, second], {1: "Say it slowly"}, hidden=[2]), "a.pptx")
    (document,) = loaded.documents
    assert document.text == (
        "## Plan\n\ntop\nlines\n\ngrouped\n\n| Tide | Hour |\n| --- | --- |\n| High | 7 |\n\nlast\n\n"
        "Notes: Say it slowly\n\nSecond slide"
    )
    assert (document.title, headings(document), rows(document)) == (
        "Plan",
        [(2, "Plan")],
        [["| High | 7 |"]],
    )
    start = document.text.index("Second")
    assert [page.label for page in document.pages] == ["slide 1", "slide 2"]
    assert document.pages_of(start, start + 6) == ("slide 2",)
    assert loaded.warnings == ("hidden slides are included: 2",)


# XLSX


def test_xlsx_shows_values_as_a_person_sees_them() -> None:
    loaded = load(xlsx(), "crew.xlsx")
    (document,) = loaded.documents
    assert document.text == (
        "## Rota\n\nSpring rota\n\n| Crew | Start | Share |\n| --- | --- | --- |\n"
        "| North | 2024-03-05 | 25% |\n| South | 2024-03-06 14:30:00 | =C3*2 |\n\n## Archive\n\nOld"
    )
    assert headings(document) == [(2, "Rota"), (2, "Archive")]
    assert [page.label for page in document.pages] == ["sheet Rota", "sheet Archive"]
    assert rows(document)[0][0] == "| North | 2024-03-05 | 25% |"
    assert loaded.warnings == (
        "hidden sheets are included: Archive",
        "1 formulas have no stored result and are shown as formulas",
    )


# EPUB


def test_epub_follows_the_spine_and_leaves_the_table_of_contents_out() -> None:
    chapters = {
        "b": "<html><head><title>Second chapter</title></head><body><p>Two.</p></body></html>",
        "a": "<html><body><h2>First</h2><p>On<b>e</b>.</p><nav>NOISE</nav></body></html>",
        "nav": "<html><body><p>NOISE</p></body></html>",
    }
    document = only(epub(chapters, ["nav", "a", "b"]), "a.epub")
    assert document.text == "## First\n\nOne.\n\n# Second chapter\n\nTwo."
    assert document.title == "Canal book"


def test_epub_with_encrypted_chapters_is_refused() -> None:
    book = epub({"a": "<p>x</p>"}, ["a"])
    import io
    import zipfile

    buffer = io.BytesIO(book)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("META-INF/encryption.xml", '<e><CipherReference URI="book/a.xhtml"/></e>')
    with pytest.raises(PasswordNeeded, match="DRM"):
        load(buffer.getvalue(), "a.epub")


# HTML


def html(body: str, head: str = "") -> Document:
    return only(f"<!doctype html><html><head>{head}</head><body>{body}</body></html>".encode(), "a.html")


def test_html_furniture_never_reaches_the_text() -> None:
    document = html(
        "<nav>N1<div><nav>N2</nav></div>N3</nav><script>N4</script><template><p>N5</p></template>"
        "<noscript>N6</noscript><!-- N7 --><svg><text>N8</text></svg><p hidden>N9</p>"
        "<div style='display: none'><div>N10</div>N11</div><select><option>N12</select><p>Kept.</p>",
        '<style>N13</style><script type="application/ld+json">{"a":"N14"}</script><title>Page</title>',
    )
    assert document.text == "Kept."
    assert document.title == "Page"


def test_html_words_join_inside_lines_and_never_across_blocks() -> None:
    document = html(
        "loose<div>one</div>two<p>slow<b>ly</b> a&amp;b&nbsp;c\n d</p><p>x<br>y</p>"
        "<ul><li>i<ol><li>j<li>k</ol><li>l</ul><dl><dt>t<dd>d</dl><pre>\n a\n  b</pre>"
    )
    assert document.text == (
        "loose\n\none\n\ntwo\n\nslowly a&b\u00a0c d\n\nx\ny\n\n- i\n  1. j\n  2. k\n- l"
        "\n\nt\n\nd\n\n a\n  b"
    )


def test_html_tables_keep_rows_and_merged_cells_stand_once() -> None:
    document = html(
        "<table><caption>Limits</caption><tr><th>A<th colspan=2>B</tr><tr><td rowspan=2>r<td>1<td>2</tr>"
        "<tr><td><p>3</p><p>x</p><td><table><tr><td>4<td>5</table></tr></table>"
    )
    assert (
        document.text == "Limits\n\n| A | B |  |\n| --- | --- | --- |\n| r | 1 | 2 |\n|  | 3 x | 4 5 |"
    )


def test_html_main_part_is_preferred_and_what_is_left_out_is_said() -> None:
    main = b"<main><h1>Gate</h1><p>Text</p></main>"
    data = b"<title>Gate | Site</title><div>Cookies</div>" + main + b"<footer>F</footer>"
    loaded = load(data, "a.html")
    assert loaded.documents[0].text == "# Gate\n\nText"
    assert loaded.documents[0].title == "Gate"
    assert loaded.warnings == ("8 characters outside the page's <main> were left out",)
    assert only(b"<main></main><p>Elsewhere</p>", "a.html").text == "Elsewhere"


def test_html_declared_encoding_is_believed() -> None:
    page = '<meta charset="windows-1251"><p>Насос</p>'.encode("cp1251")
    assert only(page, "a.html").text == "Насос"


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "opening", ["<div>", "<a ", "<!--", "<![CDATA[", "<li>x", "<table><tr><td>", "<td colspan=999>y"]
)
def test_html_that_never_closes_ends_soon(opening: str) -> None:
    document = only(f"<p>MARK-1</p>{opening * 3000}".encode(), "a.html")
    assert document.text.startswith("MARK-1")


# Archives


def test_an_archive_that_inflates_is_refused_before_it_is_unpacked() -> None:
    bomb = zipped({"word/document.xml": b" " * (30 * 1024 * 1024)})
    with pytest.raises(
        LimitError, match=r"unpacks to 30 MiB, 1,\d\d\d times its size; the limit is 100 times"
    ):
        load(bomb, "a.docx")
    with pytest.raises(LimitError, match="unpacks to 30 MiB; the limit is 10 MiB"):
        load(bomb, "a.xlsx", limits=Limits(unpacked_bytes=10 * 1024 * 1024))


@pytest.mark.parametrize("name", ["a.docx", "a.pptx", "a.xlsx", "a.epub"])
def test_what_is_no_archive_or_holds_other_parts_is_called_damaged(name: str) -> None:
    for data in (b"PK\x03\x04 cut", b"words", zipped({"x.txt": "words"})):
        with pytest.raises(LoadError, match="damaged"):
            load(data, name)


def test_entities_of_a_document_type_are_refused() -> None:
    evil = (
        '<!DOCTYPE d [<!ENTITY a "aaaa"><!ENTITY b SYSTEM "file:///etc/passwd">]>'
        '<w:document xmlns:w="x"><w:body>&b;</w:body></w:document>'
    )
    rels = relations(r1=("officeDocument", "word/document.xml"))
    with pytest.raises(LoadError, match=r"damaged file.*EntitiesForbidden"):
        load(zipped({"_rels/.rels": rels, "word/document.xml": evil}), "a.docx")


def test_office_files_with_a_password_or_of_old_formats_say_so() -> None:
    old = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 100
    with pytest.raises(LoadError, match="Office 97-2003"):
        load(old, "a.docx")
    with pytest.raises(PasswordNeeded, match="save a copy without the password"):
        load(old + "EncryptedPackage".encode("utf-16-le"), "a.xlsx")


def test_an_empty_office_file_is_an_error() -> None:
    with pytest.raises(LoadError, match="empty file"):
        load(docx(""), "a.docx")


def test_file_and_upload_limits_name_value_and_limit() -> None:
    with pytest.raises(LimitError, match=r"has 2\.0 MiB; the limit is 1\.0 MiB"):
        load(b"x" * 2**21, "a.txt", limits=Limits(file_bytes=2**20))
    with pytest.raises(LimitError, match="3 files in one upload; the limit is 2"):
        check_upload([1, 1, 1], Limits(files=2))
    with pytest.raises(LimitError, match="has 2 MiB; the limit is 1 MiB"):
        check_upload([2**20, 2**20], Limits(total_bytes=2**20))
    check_upload([1, 1], Limits(files=2))
