"""CSV, TSV, JSON, JSONL and chunks made elsewhere."""

from __future__ import annotations

import json

import pytest

from core.errors import LimitError, LoadError
from core.loading import Limits, LoadOptions, load, needs_choice
from core.types import Document


def items(data: str, name: str, **options: object) -> tuple[Document, ...]:
    return load(data.encode(), name, LoadOptions(**options)).documents  # type: ignore[arg-type]


def test_a_field_with_quotes_commas_and_line_breaks_stays_one_field() -> None:
    first, second = items(
        'id,title,"note\n(long)"\n7,"Pump, inner","Says ""slowly""\nthen wait."\n8,,x\n', "a.csv"
    )
    assert first.title == "Pump, inner"
    assert first.text == 'id: 7\ntitle: Pump, inner\nnote (long): Says "slowly"\nthen wait.'
    assert (first.id[-2:], second.id[-2:]) == ("-1", "-2")


def test_the_body_field_stands_plain_and_short_fields_become_typed_metadata() -> None:
    (item,) = items(
        '[{"id": 7, "title": "North", "text": "Close it.", "year": 2023, "open": true,'
        '"day": "2024-03-05",'
        '"tags": ["a", 2], "site": {"zone": {"name": "N"}}, "none": null, "rows": [{"x": 1}]}]',
        "a.json",
    )
    assert (item.title, item.text) == ("North", "Close it.")
    assert dict(item.metadata) == {
        "id": 7.0,
        "year": 2023.0,
        "open": True,
        "day": "2024-03-05",
        "tags": ("a", "2"),
        "site.zone.name": "N",
        "rows": ('{"x": 1}',),
    }


def test_a_long_field_beside_the_body_is_searchable_text() -> None:
    (item,) = items(json.dumps({"title": "t", "text": "Body.", "remedy": "turn it " * 20}), "a.jsonl")
    assert item.text == "Body.\n\nremedy: " + "turn it " * 20
    assert "remedy" not in item.metadata


def test_what_is_text_is_decided_for_the_whole_file() -> None:
    rows = [
        {"text": "Body", "source": "short"},
        {"text": "Body", "source": "s"},
        {"text": "Body", "source": "l" * 90},
    ]
    loaded = load("\n".join(map(json.dumps, rows)).encode(), "a.jsonl")
    assert [document.text for document in loaded.documents] == ["Body"] * 3
    assert loaded.documents[2].metadata["source"] == "l" * 90


def test_nested_records_beside_a_body_are_left_out_and_named() -> None:
    row = {"content": "Body", "chunks": [{"content": "Bo" * 600}], "tags": ["a"]}
    loaded = load(json.dumps([row]).encode(), "a.json")
    assert (loaded.documents[0].text, dict(loaded.documents[0].metadata)) == ("Body", {"tags": ("a",)})
    assert loaded.warnings == ("fields too long to be metadata were left out: chunks",)


def test_the_fields_asked_for_make_text_and_title() -> None:
    data = "name,head,a,b\nx,Top,1,two\n"
    (item,) = items(data, "a.csv", title_field="head", text_fields=("b",))
    assert (item.title, item.text) == ("Top", "two")
    (item,) = items(data, "a.csv", text_fields=("a", "b"))
    assert item.text == "a: 1\nb: two"


def test_a_field_that_no_record_has_is_refused_by_name() -> None:
    with pytest.raises(LoadError, match="no record has the field 'colour'; the fields are a, b"):
        items("a,b\n1,2\n", "a.csv", text_fields=("colour",))


def test_columns_are_numbers_only_where_every_cell_is_one() -> None:
    first, second = items("id,score,code,flag,text\n1,-20,007,true,=1+1\n2,3.5,12,FALSE,\t+2\n", "a.csv")
    assert dict(first.metadata) == {"id": "1", "score": -20.0, "code": "007", "flag": True}
    assert (first.text, second.text) == ("=1+1", "\t+2")
    assert second.metadata["flag"] is False


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_found_in_the_header(separator: str) -> None:
    (item,) = items(f'"a,;b"{separator}text\n1{separator}words\n', "a.csv")
    assert (item.text, item.metadata["a,;b"]) == ("words", 1.0)


def test_uneven_rows_and_open_quotes_are_reported() -> None:
    loaded = load(b'a,b\n1\n1,2,3\n4,"open\n', "a.csv")
    assert any("records 1, 2" in warning for warning in loaded.warnings)
    assert any("quotes do not match" in warning for warning in loaded.warnings)
    assert loaded.documents[1].text == "a: 1\nb: 2\ncolumn 3: 3"


def test_bad_lines_are_named_with_their_reasons_and_the_others_load() -> None:
    loaded = load(
        b'{"text":"one"}\n\n{"text":"cut\nnot json\n["a"]\n42\n{"id":"d"}\n{"text":"two"}\n', "a.jsonl"
    )
    assert [document.text for document in loaded.documents] == ["one", "two"]
    (warning,) = loaded.warnings
    assert warning.startswith("skipped 5: line 3 (broken JSON: ")
    for reason in (
        "line 5 (a list, not an object)",
        "line 6 (a number, not an object)",
        "line 7 (no text)",
    ):
        assert reason in warning


@pytest.mark.parametrize(
    ("data", "name", "message"),
    [
        ('{"id": 1}\n', "a.jsonl", "no record could be read; skipped 1: line 1"),
        ('{"a": ', "a.json", "broken JSON at line 1"),
        ("[" * 100_000, "a.json", "nested too deeply|broken JSON"),
        ("a,b\n", "a.csv", "no record could be read"),
        ("[1e400, " + "9" * 5000 + "]", "a.json", "broken JSON"),
    ],
)
def test_files_without_a_usable_record_say_why(data: str, name: str, message: str) -> None:
    with pytest.raises(LoadError, match=message):
        load(data.encode(), name)


def test_a_deep_line_spoils_itself_only() -> None:
    loaded = load(b'{"text":"fine"}\n{"a":' + b"[" * 200_000 + b"\n", "a.jsonl")
    assert [document.text for document in loaded.documents] == ["fine"]


def test_as_one_table_a_file_is_one_document_with_rows() -> None:
    (document,) = items('part,note\nA-1,"two\nlines"\nB-2,x\n', "parts.csv", records="table")
    assert document.text == "| part | note |\n| --- | --- |\n| A-1 | two lines |\n| B-2 | x |"
    (table,) = document.tables
    assert [document.text[a:b] for a, b in table.rows] == ["| A-1 | two lines |", "| B-2 | x |"]
    assert document.title == "parts"


def test_a_json_object_is_one_document() -> None:
    loaded = load(b'{"name": "Pump", "limits": {"bar": 7}}', "a.json")
    assert [(d.id, d.title, d.text) for d in loaded.documents] == [
        (loaded.file_hash[:16], "Pump", "name: Pump\nlimits.bar: 7")
    ]


@pytest.mark.parametrize(
    ("data", "name", "asked"),
    [
        (b"a,b", "a.csv", True),
        (b"{}", "A.JSONL", True),
        (b" \n[1]", "a.json", True),
        ("\ufeff[1]".encode("utf-16-le"), "a.json", True),
        (b'{"a": []}', "a.json", False),
        (b"a,b", "a.txt", False),
    ],
)
def test_the_choice_is_asked_for_files_of_records_only(data: bytes, name: str, asked: bool) -> None:
    assert needs_choice(data, name) is asked


def test_too_many_records_are_refused_with_the_limit() -> None:
    with pytest.raises(LimitError, match="has 3 records; the limit is 2"):
        load(b"a,b\n1,x\n2,x\n3,x\n", "a.csv", limits=Limits(records=2))


def prechunked(*rows: object) -> tuple[tuple[Document, ...], tuple[str, ...]]:
    loaded = load("\n".join(map(json.dumps, rows)).encode(), "c.jsonl", LoadOptions(prechunked=True))
    return loaded.documents, loaded.warnings


def chunk_texts(document: Document) -> list[str]:
    return [document.text[start:end] for start, end in document.chunks]


def test_chunks_by_spans_of_a_text_given_once() -> None:
    (document,), warnings = prechunked(
        {"document": "d", "title": "Deed", "text": "One two three."},
        {"document": "d", "start": 0, "end": 7},
        {"document": "d", "start": 4, "end": 14},
        {"document": "d", "start": 8, "end": 99},
        {"document": "d", "start": 5, "end": 5},
    )
    assert (document.title, document.text) == ("Deed", "One two three.")
    assert chunk_texts(document) == ["One two", "two three."]
    assert warnings == (
        "skipped 2: line 4 (end 99 lies past the document's 14 characters); "
        "line 5 (start 5 and end 5 are no span)",
    )


def test_chunks_by_texts_only_are_joined() -> None:
    (first, second), _ = prechunked(
        {"document": "a", "text": "One."},
        {"document": "b", "text": "Other."},
        {"document": "a", "text": "Two."},
    )
    assert (first.text, chunk_texts(first)) == ("One.\n\nTwo.", ["One.", "Two."])
    assert (second.text, chunk_texts(second)) == ("Other.", ["Other."])
    assert (first.id[-2:], second.id[-2:]) == ("-1", "-2")


def test_chunks_with_spans_and_their_own_texts_rebuild_the_document() -> None:
    (document,), _ = prechunked(
        {"document": "a", "start": 6, "end": 9, "text": "two"},
        {"document": "a", "start": 0, "end": 4, "text": "One,"},
        {"document": "a", "start": 2, "end": 7, "text": "e,  t"},
    )
    assert document.text == "One,  two"
    assert chunk_texts(document) == ["One,", "e,  t", "two"]


def test_spans_follow_the_normalisation_of_the_text() -> None:
    (document,), _ = prechunked(
        {"document": "a", "text": "one\r\ntwo\x00\r\nthree"},
        {"document": "a", "start": 5, "end": 8},
        {"document": "a", "start": 11, "end": 16},
    )
    assert document.text == "one\ntwo\nthree"
    assert chunk_texts(document) == ["two", "three"]


def test_spans_without_any_text_are_refused() -> None:
    with pytest.raises(LoadError, match="spans of document 'a' come without its text"):
        prechunked({"document": "a", "start": 0, "end": 3})


def test_a_record_is_found_by_the_id_that_people_write() -> None:
    lines = b'{"id": "SUP-48213", "title": "Export stops", "text": "It stops."}\n'
    lines += b'{"id": 7, "title": "Plain number", "text": "No code."}\n'
    lines += b'{"id": "0f8fad5b-d9cb-469f-a165-70867728950e", "title": "Machine id", "text": "No code."}'
    titles = [document.title for document in load(lines, "t.jsonl").documents]
    assert titles == ["SUP-48213 · Export stops", "Plain number", "Machine id"]
