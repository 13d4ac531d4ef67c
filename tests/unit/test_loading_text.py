"""Encodings, the normalisation of stored text, names, Markdown and source code."""

from __future__ import annotations

import random

import pytest

from core.errors import LoadError
from core.loading import LoadOptions, load, safe_name
from core.loading.clean import clean


def text_of(data: bytes, name: str = "note.txt", **options: object) -> str:
    return load(data, name, LoadOptions(**options)).documents[0].text  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("encoded", "encoding"),
    [
        ("Façade café".encode(), "utf-8"),
        ("\ufeffFaçade café".encode(), "utf-8"),
        ("\ufeffFaçade café".encode("utf-16-le"), "utf-16-le"),
        ("\ufeffFaçade café".encode("utf-16-be"), "utf-16-be"),
        ("\ufeffFaçade café".encode("utf-32-le"), "utf-32-le"),
        ("Façade café".encode("utf-16-le"), "utf-16-le"),
        ("Façade café".encode("utf-16-be"), "utf-16-be"),
        ("Façade café".encode("cp1252"), "cp1252"),
    ],
)
def test_the_same_words_come_out_of_every_encoding(encoded: bytes, encoding: str) -> None:
    loaded = load(encoded, "note.txt")
    assert loaded.documents[0].text == "Façade café"
    assert loaded.encoding == encoding


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("点検は毎週の月曜日です。証明書の番号は AB-12 です。", "cp932"),
        ("点検は毎週の月曜日です。証明書の番号は AB-12 です。", "euc_jp"),
        ("Насос проверяют каждый понедельник. Номер акта хранится на складе, ключ у сторожа.", "cp1251"),
        (
            "Насос проверяют каждый понедельник. Номер акта хранится на складе, ключ у сторожа.",
            "iso8859_5",
        ),
    ],
)
def test_a_guessed_encoding_reads_well_and_is_reported(text: str, encoding: str) -> None:
    loaded = load(text.encode(encoding), "note.txt")
    assert loaded.documents[0].text == text
    assert any("guessed" in warning for warning in loaded.warnings)


def test_the_encoding_asked_for_wins() -> None:
    assert text_of("Zażółć".encode("cp1250"), encoding="cp1250") == "Zażółć"


@pytest.mark.parametrize("encoding", ["no-such", "hex", "zip", "idna", "\x00"])
def test_an_unknown_encoding_is_named(encoding: str) -> None:
    with pytest.raises(LoadError, match="encoding"):
        load(b"words \xff", "note.txt", LoadOptions(encoding=encoding))


def test_bytes_outside_the_encoding_asked_for_are_placed() -> None:
    with pytest.raises(LoadError, match="'utf-8' at byte 4"):
        load(b"caf\xc3\xa9\xff"[:3] + b" \xff", "note.txt", LoadOptions(encoding="utf-8"))


def test_a_few_broken_bytes_do_not_turn_a_utf8_text_into_mojibake() -> None:
    loaded = load(("é" * 30).encode() + b"\xff", "note.txt")
    assert loaded.documents[0].text == "é" * 30 + "\ufffd"
    assert loaded.warnings == ("1 places are not valid utf-8 and are shown as \ufffd",)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_bytes_are_no_text(seed: int) -> None:
    with pytest.raises(LoadError, match="not a text file"):
        load(random.Random(seed).randbytes(20_000), "renamed.txt")


def test_a_text_without_any_word_is_warned_of() -> None:
    assert "no letters or digits" in load(b"<" * 5000, "signs.txt").warnings[0]


@pytest.mark.parametrize(
    "data", [b"", b" \t\r\n", "\u00a0\u3000 \n".encode(), b"\xef\xbb\xbf", b"\xff\xfe"]
)
def test_a_file_without_text_is_called_empty(data: bytes) -> None:
    with pytest.raises(LoadError, match="empty file"):
        load(data, "empty.txt")


def test_line_ends_become_one_kind() -> None:
    assert text_of(b"a\r\nb\rc\nd\x0ce\r\n\r\nf") == "a\nb\nc\nd\ne\n\nf"


def test_control_characters_and_terminal_colours_go_and_are_counted() -> None:
    loaded = load(b"bell\x07 \x1b[31mred\x1b[0m n\x00ul \ttab", "log.txt")
    assert loaded.documents[0].text == "bell red nul \ttab"
    assert loaded.warnings == ("4 control characters were left out",)


def test_clean_keeps_letters_and_replaces_lone_surrogates() -> None:
    assert clean("\ufeffre\u0301sume\u0301 \ud800") == "re\u0301sume\u0301 \ufffd"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("../../../outside.txt", "../../../outside.txt"),
        ("", "unnamed"),
        (" \u202e\x00 ", "unnamed"),
        ("a\u202egpj.exe", "agpj.exe"),
        ("Re\u0301sume\u0301.txt", "Résumé.txt"),
        ("line\nbreak\x7f.txt", "linebreak.txt"),
        ("..", ".."),
    ],
)
def test_names_are_shown_as_plain_text(given: str, shown: str) -> None:
    assert safe_name(given) == shown


def test_a_very_long_name_is_cut_visibly() -> None:
    assert safe_name("n" * 5000) == "n" * 254 + "…"


def test_an_upload_of_odd_names_loads_and_writes_nothing(tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    for name in (
        "../up.txt",
        "..\\up.txt",
        "/abs.txt",
        "C:\\x.txt",
        ".",
        "..",
        "",
        " ",
        "con.txt",
        "a\x00.txt",
    ):
        assert load(b"words here", name).documents[0].text == "words here"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "title"),
    [("a/b\\note.v2.txt", "note.v2"), ("NOTE", "NOTE"), (".notes.txt", ".notes"), ("", "unnamed")],
)
def test_the_title_of_a_plain_text_is_its_name(name: str, title: str) -> None:
    assert load(b"words", name).documents[0].title == title


def test_an_unknown_extension_is_read_as_text_and_binary_data_lists_what_is_supported() -> None:
    assert load(b"plain words", "a.unknown").format == "plain text"
    with pytest.raises(LoadError, match=r"'bin' are not supported; supported are PDF, DOCX"):
        load(bytes(range(256)) * 20, "a.bin")
    with pytest.raises(LoadError, match="'zip' are not supported"):
        load(b"PK\x03\x04rest", "a.zip")


MARKDOWN = """---
title: "Gate manual"
year: 2024
draft: false
tags: [locks, gates]
authors:
  - Ann
  - Bob
---
# Open the **gate** ##

Text
Setext title
============

```sh
# no heading
```
~~~
## no heading either
~~~
    # code, no heading

## [Link](x) `code_name` C#

- item
---

| part | bar |
|---|:-:|
| A-1 | 7 |
| B-2 | 9 |

tail | no table
"""


def test_markdown_headings_leave_out_fenced_and_indented_code() -> None:
    document = load(MARKDOWN.encode(), "m.md").documents[0]
    assert [(heading.level, heading.title) for heading in document.headings] == [
        (1, "Open the gate"),
        (1, "Setext title"),
        (2, "Link code_name C#"),
    ]
    lines = [document.text[heading.start : heading.end] for heading in document.headings]
    assert lines == [
        "# Open the **gate** ##",
        "Setext title\n============",
        "## [Link](x) `code_name` C#",
    ]


def test_markdown_front_matter_is_metadata_and_no_text() -> None:
    document = load(MARKDOWN.encode(), "m.md").documents[0]
    assert document.title == "Gate manual"
    assert dict(document.metadata) == {
        "year": 2024.0,
        "draft": False,
        "tags": ("locks", "gates"),
        "authors": ("Ann", "Bob"),
    }
    assert document.text.startswith("# Open the **gate**")


def test_a_text_between_rules_is_no_front_matter() -> None:
    document = load(b"---\nJust a sentence.\n---\nMore.", "m.md").documents[0]
    assert document.text == "---\nJust a sentence.\n---\nMore."
    assert dict(document.metadata) == {}


def test_markdown_tables_know_their_columns_and_rows() -> None:
    document = load(MARKDOWN.encode(), "m.md").documents[0]
    (table,) = document.tables
    assert table.columns == "| part | bar |"
    assert [document.text[start:end] for start, end in table.rows] == ["| A-1 | 7 |", "| B-2 | 9 |"]
    assert document.text[table.start : table.end].startswith("| part | bar |\n|---|:-:|\n")
    assert document.columns_of(table.rows[1][0], table.rows[1][1]) == "| part | bar |"


def test_a_markdown_table_that_is_moved_in_begins_at_its_first_sign() -> None:
    document = load(b"Text.\n\n  a | b |\n|---|---|\n| 1 | 2 |", "m.md").documents[0]
    (table,) = document.tables
    assert document.text[table.start :].startswith(table.columns + "\n|---|---|")
    assert table.columns == "a | b |"


def test_markdown_is_stored_letter_by_letter() -> None:
    text = "It costs $119.6 ~ $120, *not* :red[x] <b> &amp; \\* `y`."
    assert text_of(text.encode(), "m.md") == text


def test_python_definitions_are_headings_of_their_depth() -> None:
    source = "class Pump:\n    async def start(self):\n        pass\n\ndef stop():\n    pass\n"
    document = load(source.encode(), "pump.py").documents[0]
    assert document.text == source
    assert [(h.level, h.title) for h in document.headings] == [
        (1, "class Pump"),
        (2, "async def start"),
        (1, "def stop"),
    ]
    assert load(b"function f() {}\n", "f.js").headings == 0
