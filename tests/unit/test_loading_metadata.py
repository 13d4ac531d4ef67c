"""What files say about themselves becomes fields of the same names and types in every format."""

from __future__ import annotations

import pytest

from core.fields import ItemFields
from core.filters import Filter
from core.loading import load
from core.types import Metadata
from tests.loading_inputs import (
    core_properties,
    docx,
    epub,
    paragraph,
    pdf,
    pptx,
    shape,
    with_part,
    xlsx,
)

OFFICE = core_properties(
    creator="Ann Lee",
    subject="Locks",
    keywords="gates; sluices, big; gates",
    created="2024-03-05T23:30:00Z",
    modified="2024-04-01T00:00:00Z",
    language="en-GB",
    category="left out",
)
PROPERTIES: Metadata = {
    "author": "Ann Lee",
    "subject": "Locks",
    "keywords": ("gates", "sluices, big"),
    "created": "2024-03-05",
    "modified": "2024-04-01",
    "language": "en-GB",
}
BOOK = (
    '<x:creator xmlns:x="urn:dc">Ann Lee</x:creator><creator>Bo Ek</creator><subject>gates</subject>'
    "<subject>sluices</subject><date>2019</date><language>en</language>"
    '<meta property="dcterms:modified">2024-04-01T00:00:00Z</meta>'
)
PAGE = """<!doctype html><html lang="de"><head><title>Gates</title>
<META NAME="Author" CONTENT="Ann Lee"><meta property="article:published_time" content="2024-03-05T08:00+01:00">
<meta name="keywords" content="gates, sluices"><meta name="viewport" content="width=5">
<meta http-equiv="last-modified" content="Mon, 01 Apr 2024 10:00:00 GMT"><meta name="dc.subject" content="Locks">
</head><body><nav>Home</nav><main><p>Words</p></main></body></html>"""
CHAPTER = {"a": "<html><body><h1>One</h1><p>Words</p></body></html>"}
INFO = {
    "Title": "Gates",
    "Author": "Ann Lee",
    "Subject": "Locks",
    "Keywords": "gates, sluices",
    "CreationDate": "D:20240305101112+01'00'",
    "ModDate": "D:20240401",
    "Producer": "left out",
}


def metadata(data: bytes, name: str) -> Metadata:
    (document,) = load(data, name).documents
    return dict(document.metadata)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.docx", docx(paragraph("Words"), extra={"docProps/core.xml": OFFICE})),
        ("a.pptx", with_part(pptx([shape("Words")]), "docProps/core.xml", OFFICE)),
    ],
)
def test_office_files_have_core_properties(name: str, data: bytes) -> None:
    assert metadata(data, name) == PROPERTIES


def test_a_workbook_has_them_too() -> None:
    from io import BytesIO

    from openpyxl import load_workbook

    book = load_workbook(BytesIO(xlsx()))
    book.properties.creator, book.properties.keywords = "Ann Lee", "rota"
    book.save(saved := BytesIO())
    found = metadata(saved.getvalue(), "a.xlsx")
    assert (found["author"], found["keywords"]) == ("Ann Lee", ("rota",))
    assert set(found) == {"author", "keywords", "created", "modified"}


def test_a_book_has_subjects_for_keywords_and_all_its_authors() -> None:
    assert metadata(epub(CHAPTER, ["a"], more=BOOK), "a.epub") == {
        "author": "Ann Lee; Bo Ek",
        "keywords": ("gates", "sluices"),
        "created": "2019-01-01",
        "modified": "2024-04-01",
        "language": "en",
    }


def test_a_page_has_meta_tags_and_its_language() -> None:
    assert metadata(PAGE.encode(), "a.html") == {
        **PROPERTIES,
        "keywords": ("gates", "sluices"),
        "language": "de",
    }


def test_a_pdf_has_its_document_information() -> None:
    (document,) = load(pdf([[(60, 700, "Words")]], info=INFO), "a.pdf").documents
    assert document.title == "Gates"
    told = {name: value for name, value in PROPERTIES.items() if name != "language"}
    assert document.metadata == {**told, "keywords": ("gates", "sluices")}


def test_front_matter_is_typed_and_named_as_in_other_formats() -> None:
    text = (
        "---\nTitle: Gates\nAuthor: Ann Lee\nkeywords: gates, sluices\ntags: [a]\nCreated: 2024-03-05\n"
        "pages: 12\ndraft: true\nOwner: Bo\n---\nWords"
    )
    found = metadata(text.encode(), "a.md")
    assert found == {
        "author": "Ann Lee",
        "keywords": ("gates", "sluices"),
        "tags": ("a",),
        "created": "2024-03-05",
        "pages": 12.0,
        "draft": True,
        "Owner": "Bo",
    }
    fields = ItemFields([found], {}, ["a.md"], [""])
    assert {name: fields.kind(name) for name in ("created", "pages", "draft", "tags")} == {
        "created": "date",
        "pages": "number",
        "draft": "yes/no",
        "tags": "list",
    }
    assert fields.mask(Filter.parse("created >= 2024-03; pages < 13; keywords = Sluices")).tolist() == [
        True
    ]


@pytest.mark.parametrize(
    "part",
    ["<cut", '<!DOCTYPE d [<!ENTITY a SYSTEM "file:///etc/passwd">]><d>&a;</d>', "", "\x00"],
)
def test_damaged_properties_do_not_cost_the_text(part: str) -> None:
    data = docx(paragraph("Words"), extra={"docProps/core.xml": part})
    (document,) = load(data, "a.docx").documents
    assert (document.text, dict(document.metadata)) == ("Words", {})


def test_what_is_no_value_is_left_out_and_what_is_endless_is_cut() -> None:
    odd = core_properties(creator=" \n ", keywords=", ,", created="01/02/2024", subject="x" * 2000)
    assert metadata(docx(paragraph("Words"), extra={"docProps/core.xml": odd}), "a.docx") == {}
    tags = "".join(
        f'<meta name="author" content="A{at}"><meta name=keywords content=k{at}>' for at in range(9999)
    )
    found = metadata(f"<html>{tags}<p>Words".encode(), "a.html")
    assert len(str(found["author"])) == 1000
    assert len(found["keywords"]) == 100  # type: ignore[arg-type]


def test_control_characters_of_a_property_are_cleaned() -> None:
    found = metadata(b'<html><meta name="author" content="A\x07nn\r\n Lee"><p>Words', "a.html")
    assert found == {"author": "Ann Lee"}
