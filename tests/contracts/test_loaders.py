"""What every loaded file keeps to, and hard files that broke others, each with its right behaviour."""

from __future__ import annotations

import contextlib
import csv
import hashlib
from pathlib import Path

import pytest

from core.errors import LimitError, LoadError, PasswordNeeded
from core.loading import SUPPORTED, Loaded, LoadOptions, clean, load
from core.types import make_chunk
from tests.loading_inputs import docx, epub, paragraph, pdf, pptx, shape, xlsx

SMALL: dict[str, bytes] = {
    "a.pdf": pdf(
        [[(60, 700, "First page"), (60, 680, "Closing")], [(60, 700, "Second page")]], [("Closing", 0)]
    ),
    "a.docx": docx(paragraph("Opening", "Heading1") + paragraph("Words of the body")),
    "a.pptx": pptx([shape("Plan", role="title") + shape("Words"), shape("More")], {2: "Spoken"}),
    "a.xlsx": xlsx(),
    "a.epub": epub({"a": "<html><body><h1>One</h1><p>Words</p></body></html>"}, ["a"]),
    "a.html": b"<h1>Head</h1><table><tr><th>A<th>B<tr><td>1<td>2</table>",
    "a.md": b"---\nyear: 2024\n---\n# Head\n\n| a | b |\n|---|---|\n| 1 | 2 |\r\n\r\nWords",
    "a.txt": "\ufeffWords\r\nand\x07 more".encode(),
    "a.csv": b"id,title,text\n1,One,Words\n2,Two,More\n",
    "a.tsv": b"id\ttext\n1\tWords\n",
    "a.json": b'[{"title": "One", "text": "Words"}]',
    "a.jsonl": b'{"title": "One", "text": "Words"}\n',
    "a.py": b"def f():\n    pass\n",
    "a.unknown": b"Words",
}


def check(loaded: Loaded, data: bytes) -> None:
    """The promises of `Loaded` and `Document` that the rest of the product builds on."""
    assert loaded.file_hash == hashlib.sha256(data).hexdigest()
    assert loaded.documents
    ids = [document.id for document in loaded.documents]
    assert len(set(ids)) == len(ids)
    assert all(key.partition("-")[0] == loaded.file_hash[:16] for key in ids)
    assert loaded.characters == sum(len(document.text) for document in loaded.documents)
    assert loaded.headings == sum(len(document.headings) for document in loaded.documents)
    for document in loaded.documents:
        text = document.text
        assert text.strip()
        assert document.title.strip()
        assert clean(text) == text
        starts = [page.start for page in document.pages]
        assert starts == sorted(starts)
        assert not starts or (starts[0] == 0 and starts[-1] <= len(text))
        order = [heading.start for heading in document.headings]
        assert order == sorted(order)
        for heading in document.headings:
            assert 0 <= heading.start <= heading.end <= len(text)
            assert heading.level >= 1
            assert heading.title
        for table in document.tables:
            assert text[table.start : table.end].startswith(table.columns)
            assert all(table.start < a < b <= table.end and "\n" not in text[a:b] for a, b in table.rows)
        for value in document.metadata.values():
            assert isinstance(value, (str, float, bool, tuple))
        make_chunk(document, 0, len(text))


@pytest.mark.parametrize("name", SMALL)
def test_every_format_keeps_the_promises(name: str) -> None:
    loaded = load(SMALL[name], name)
    check(loaded, SMALL[name])
    assert loaded.format == SUPPORTED.get(name[2:], "plain text")


@pytest.mark.parametrize("name", SMALL)
def test_the_same_bytes_give_the_same_documents_under_any_name(name: str) -> None:
    again = load(SMALL[name], "folder/other" + name[1:])
    assert [(d.id, d.text, d.headings) for d in again.documents] == [
        (d.id, d.text, d.headings) for d in load(SMALL[name], name).documents
    ]
    assert {d.name for d in again.documents} == {"folder/other" + name[1:]}


def test_every_format_that_is_offered_has_a_small_file_here() -> None:
    assert {SUPPORTED[name[2:]] for name in SMALL if name[2:] in SUPPORTED} == set(SUPPORTED.values())


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_a_file_cut_off_loads_or_says_why(name: str, share: float) -> None:
    data = SMALL[name][: int(len(SMALL[name]) * share)]
    with contextlib.suppress(LoadError):
        check(load(data, name), data)


# The hard files: path → words that must be there, words that must not

FOUND: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "html/boilerplate_script.html": (
        (
            "HTML-BODY-1",
            "slowly",
            "| Prime | 12 |",
            "handbook\n\n## Opening",
            "fell.\n\n- Item one\n- Item two",
        ),
        (
            "SCRIPT-",
            "STYLE-",
            "COMMENT-",
            "TEMPLATE-",
            "LDJSON-",
            "NAV-",
            "NOSCRIPT-",
            "COOKIE-",
            "FOOTER-",
        ),
    ),
    "html/deep_nested.html": (("DEEP-HTML-1",), ("<",)),
    "md/big_table.md": (("| P-087 |",), ()),
    "md/code_with_hash.md": (("ABOVE-CODE-1", "# this is a comment", "BELOW-CODE-2"), ()),
    "office/merged_dates_formulas.xlsx": (
        (
            "2024-03-05 |",
            "2024-03-06 14:30:00",
            "XLSX-ROW-50",
            "## Stock\n",
            "SHEET2-PART-8",
            "HIDDEN-SHEET-5",
        ),
        ("45356", "None", "|  |  |  |  |"),
    ),
    "office/notes_groups_tables.pptx": (
        ("SLIDE-BODY-1", "NOTES-2", "GROUP-3", "| High | PPTX-CELL-4 |"),
        (),
    ),
    "office/spine_order.epub": (("# Chapter One\n", "EPUB-1", "EPUB-2", "EPUB-3"), ("NAV-NOISE",)),
    "office/tables_footnotes_headings.docx": (
        ("| South | left | TABLE-CELL-31 |", "FOOTNOTE-44", "AFTER-TABLE-2", "DOCX-END-9"),
        ("HEADER-NOISE", "FOOTER-NOISE", "Gate and side | Gate and side", "^"),
    ),
    "pdf/encrypted_empty_user_password.pdf": (("LOCKED-PDF-4",), ()),
    "pdf/rotated.pdf": (
        (
            "Marker ROTATED-PAGE-1.",
            "SIDEWAYS-2",
            "Position one is the loading bay.",
            "step, minutes\nprime, 12",
        ),
        (),
    ),
    "pdf/two_column_hyphen_ligature.pdf": (
        (
            "maintenance",
            "calibration",
            "confirm",
            "office",
            "first",
            "filters",
            "Workflow",
            "deputy",
            "next paper",
        ),
        ("\ufb01", "\ufb02", "main-", "\x02", "Page 2 of 2"),
    ),
    "tabular/all_share_term.jsonl": (("pump spare pump",), ()),
    "tabular/bad_lines.jsonl": (("JL-1", "JL-2", "JL-9"), ()),
    "tabular/formula_cells.csv": (("=1+1", "+15 deg", "-20 deg", "@home", "=HYPERLINK(", "\t=2+2"), ()),
    "tabular/quoted_newlines.csv": (('Says "open slowly"\nthen wait.', "CSVMARK-3"), ()),
    "tabular/same_text_two_items.jsonl": (("Close the gate before six in the evening.",), ()),
    "text/arabic_rtl.txt": (("صمام", "AR-617"), ()),
    "text/cjk_mixed.md": (("轴承", "軸受", "베어링은", "BX-204"), ()),
    "text/control_chars.txt": (("CTRL-MARK-2", "Section one bell", "red"), ("\x07", "\x1b", "[31m")),
    "text/crlf_mixed_newlines.txt": (
        ("First line\nSecond line\nThird line\nFourth line\n\nLINE-MARK-8",),
        (),
    ),
    "text/dollars_and_marks.md": (("$119.6", "*stars*", ":red[colour words]", "$x_1^2$ and $$y$$"), ()),
    "text/emoji_zwj.txt": (("ZWJ-71", "👩🏽‍🔧", "👨‍👩‍👧‍👦"), ("\ufffd",)),
    "text/html_js_in_text.txt": (("TAGTEXT-5", "<script>document.title='HACKED'</script>"), ()),
    "text/identifiers.md": (("INC-2023-Q4-011", "C++", "C#", ".NET", "3.5-inch", "get_user_id"), ()),
    "text/invisible_chars.txt": (("INVIS-MARK-3", "\u00ad", "\u200b"), ()),
    "text/latin1_accents.txt": (("café", "Façade", "naïve", "PELORUS-LATIN1"), ("\ufffd",)),
    "text/long_query.txt": (("Copper training depot",), ()),
    "text/nfd_accents.txt": (("re\u0301sume\u0301",), ()),
    "text/no_space_run.txt": (("BEACON-A", "BEACON-B"), ()),
    "text/one_line_1mb.txt": (("NEEDLE-START-4471",), ("\n",)),
    "text/prompt_injection_chunk.txt": (("BANANA BANANA BANANA",), ()),
    "text/repeated_sentences.md": (("Check the seal. Note 1.",), ()),
    "text/shift_jis_notice.txt": (("校正証明書", "KZ-3071"), ("\ufffd",)),
    "text/stopwords_only.txt": (("the of and to",), ()),
    "text/tail_needle.md": (("TAILMARK-93",), ()),
    "text/thai_no_spaces.txt": (("ตลับลูกปืน", "TH-588"), ()),
    "text/utf16le_bom.txt": (("PELORUS-U16LE", "café"), ("\x00", "\ufeff")),
    "text/utf8_bom.txt": (("PELORUS-U8BOM",), ("\ufeff",)),
    "versions/v1/policy.txt": (("VERSION-ONE",), ()),
}
REFUSED = {
    "names/climbing.zip": (LoadError, "'zip' are not supported"),
    "office/inflating.docx": (LimitError, "unpacks to 116 MiB.*the limit is 100 times"),
    "pdf/encrypted_password.pdf": (PasswordNeeded, "password protected"),
    "pdf/image_only_scan.pdf": (LoadError, r"no text found \(scan\?\)"),
    "pdf/truncated.pdf": (LoadError, "damaged PDF"),
    "text/whitespace_only.txt": (LoadError, "empty file"),
    "text/zero_bytes.txt": (LoadError, "empty file"),
}


def hard(eval_data: Path, path: str) -> bytes:
    return (eval_data / "hard_inputs" / path).read_bytes()


@pytest.mark.parametrize("path", FOUND)
def test_hard_file_loads(eval_data: Path, path: str) -> None:
    data = hard(eval_data, path)
    loaded = load(data, path.rpartition("/")[2])
    check(loaded, data)
    text = "\n\n".join(document.text for document in loaded.documents)
    present, absent = FOUND[path]
    assert [word for word in present if word not in text] == []
    assert [word for word in absent if word in text] == []


@pytest.mark.parametrize("path", REFUSED)
def test_hard_file_is_refused(eval_data: Path, path: str) -> None:
    kind, message = REFUSED[path]
    with pytest.raises(kind, match=message) as caught:
        load(hard(eval_data, path), path.rpartition("/")[2])
    assert type(caught.value) is kind


def test_every_file_of_the_list_loads_or_is_refused(eval_data: Path) -> None:
    with (eval_data / "hard_inputs" / "MANIFEST.tsv").open(encoding="utf-8", newline="") as file:
        listed = [row["file"] for row in csv.DictReader(file, delimiter="\t")]
    listed = [path for path in listed if not path.startswith("fixtures/")]
    for path in listed:
        data = hard(eval_data, path)
        try:
            check(load(data, path.rpartition("/")[2]), data)
        except LoadError:
            assert path in REFUSED
        else:
            assert path not in REFUSED
    assert set(FOUND) | set(REFUSED) <= set(listed)


def test_hard_names_are_shown_and_their_files_found(eval_data: Path) -> None:
    folder = eval_data / "hard_inputs" / "names"
    found = set()
    for path in folder.iterdir():
        if path.suffix not in (".zip", ".json"):
            (document,) = load(path.read_bytes(), path.name).documents
            found.add(document.text.split()[-1])
    assert found == {f"NAME-{n}." for n in range(1, 9)}


def test_hard_files_keep_their_structure(eval_data: Path) -> None:
    def document(path: str):  # type: ignore[no-untyped-def]
        return load(hard(eval_data, path), path.rpartition("/")[2]).documents[0]

    code = document("md/code_with_hash.md")
    assert [heading.title for heading in code.headings] == ["Install", "Next part"]
    assert code.heading_path(code.text.index("for i in")) == ("Install",)
    manual = document("office/tables_footnotes_headings.docx")
    assert manual.heading_path(manual.text.index("TABLE-CELL-31")) == ("Opening", "Limits")
    assert manual.text.index("## Limits") < manual.tables[0].start < manual.text.index("AFTER-TABLE-2")
    slides = document("office/notes_groups_tables.pptx")
    for mark, slide in (
        ("SLIDE-BODY-1", 1),
        ("NOTES-2", 1),
        ("GROUP-3", 1),
        ("PPTX-CELL-4", 1),
        ("first in", 2),
    ):
        at = slides.text.index(mark)
        assert slides.pages_of(at, at + 1) == (f"slide {slide}",)
    assert slides.text.index("first in") < slides.text.index("second in")
    sheets = document("office/merged_dates_formulas.xlsx")
    at = sheets.text.index("SHEET2-PART-8")
    assert (sheets.pages_of(at, at + 1), sheets.heading_path(at)) == (("sheet Stock",), ("Stock",))
    book = document("office/spine_order.epub").text
    assert book.index("EPUB-1") < book.index("EPUB-2") < book.index("EPUB-3")
    table = document("md/big_table.md")
    row = table.text.index("| P-087 |")
    assert table.columns_of(row, row + 9) == "| parameter | unit | default | description |"
    columns = document("pdf/two_column_hyphen_ligature.pdf")
    order = ["office", "LEFT-COLUMN-END", "Right column starts", "RIGHT-COLUMN-END"]
    assert [columns.text.index(mark) for mark in order] == sorted(
        columns.text.index(mark) for mark in order
    )
    assert columns.pages_of(columns.text.index("RIGHT-COLUMN-END"), len(columns.text)) == ("2",)


def test_hard_files_say_what_was_left_out_or_guessed(eval_data: Path) -> None:
    def warnings(path: str) -> str:
        return " ".join(load(hard(eval_data, path), path.rpartition("/")[2]).warnings)

    for number in (4, 5, 6, 7, 8):
        assert f"line {number} (" in warnings("tabular/bad_lines.jsonl")
    assert "hidden sheets are included: Archive" in warnings("office/merged_dates_formulas.xlsx")
    assert "guessed as cp932" in warnings("text/shift_jis_notice.txt")
    assert "guessed as cp1252" in warnings("text/latin1_accents.txt")
    assert "no letters or digits" in warnings("text/binary_renamed.txt")


def test_hard_password_opens_the_file(eval_data: Path) -> None:
    data = hard(eval_data, "pdf/encrypted_password.pdf")
    (document,) = load(data, "a.pdf", LoadOptions(password="invented-pass")).documents
    assert document.text.startswith("Sealed")


def test_hard_records_are_separate_items(eval_data: Path) -> None:
    data = hard(eval_data, "tabular/same_text_two_items.jsonl")
    north, south, _ = load(data, "a.jsonl").documents
    assert north.text == south.text
    assert [(d.title, d.metadata["year"]) for d in (north, south)] == [
        ("north-2023 · North rules", 2023.0),
        ("south-2024 · South rules", 2024.0),
    ]
    assert len(load(hard(eval_data, "tabular/quoted_newlines.csv"), "a.csv").documents) == 3
    last = load(hard(eval_data, "text/one_line_1mb.txt"), "a.txt").documents[0].text
    assert len(last) == 1_048_576


def test_a_long_text_loads_fast() -> None:
    from time import process_time

    data = b"gasket valve inner follows " * 40_000
    start = process_time()
    load(data, "a.txt")
    assert process_time() - start < 0.5
