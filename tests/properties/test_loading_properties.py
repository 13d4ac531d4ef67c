"""Loading never raises anything but LoadError, and stored text is stable, whatever the bytes are."""

from __future__ import annotations

import contextlib
import csv
import io
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import LoadError
from core.loading import SUPPORTED, LoadOptions, clean, load, needs_choice, safe_name
from tests.contracts.test_loaders import SMALL, check

NAMES = st.one_of(
    st.text(max_size=20),
    st.sampled_from(sorted(SUPPORTED)).map("a.{}".format),
    st.tuples(st.text(max_size=5), st.sampled_from(sorted(SUPPORTED))).map(".".join),
)
OPTIONS = st.builds(
    LoadOptions,
    encoding=st.sampled_from([None, "utf-8", "cp1252", "utf-16", "no-such"]),
    records=st.sampled_from(["ask", "items", "table"]),
    prechunked=st.booleans(),
)
LETTERS = st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)


def try_load(data: bytes, name: str, options: LoadOptions) -> None:
    with contextlib.suppress(LoadError):
        check(load(data, name, options), data)
    needs_choice(data, name)


@given(st.binary(max_size=300), NAMES, OPTIONS)
@settings(max_examples=300, deadline=None)
def test_any_bytes_under_any_name(data: bytes, name: str, options: LoadOptions) -> None:
    try_load(data, name, options)


@given(
    st.text(alphabet="<>/!-=\"' abhlitdrp#|:\n[]{},0123\x1b\r\x00\u00e9", max_size=200), NAMES, OPTIONS
)
@settings(max_examples=300, deadline=None)
def test_any_marks_under_any_name(text: str, name: str, options: LoadOptions) -> None:
    try_load(text.encode(), name, options)


@given(st.sampled_from(sorted(SMALL)), st.data())
@settings(max_examples=300, deadline=None)
def test_files_with_changed_bytes(name: str, data: st.DataObject) -> None:
    changed = bytearray(SMALL[name])
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    try_load(bytes(changed), name, LoadOptions())


@given(st.text(alphabet=st.characters()))
def test_cleaning_twice_changes_nothing(text: str) -> None:
    cleaned = clean(text)
    assert clean(cleaned) == cleaned
    cleaned.encode("utf-8")
    assert not any(char < " " and char not in "\n\t" for char in cleaned)


@given(st.text(max_size=400))
def test_a_shown_name_is_stable_and_never_empty(name: str) -> None:
    shown = safe_name(name)
    assert shown.strip()
    assert len(shown) <= 255
    assert safe_name(shown) == shown


@given(st.lists(st.tuples(LETTERS, LETTERS), min_size=1, max_size=8))
def test_csv_and_jsonl_of_the_same_records_hold_the_same_texts(rows: list[tuple[str, str]]) -> None:
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(["ref", "text"])
    writer.writerows([(f"r{n}-{a}", f"w {b}") for n, (a, b) in enumerate(rows)])
    lines = "\n".join(
        json.dumps({"ref": f"r{n}-{a}", "text": f"w {b}"}) for n, (a, b) in enumerate(rows)
    )
    from_csv = load(buffer.getvalue().encode(), "a.csv").documents
    from_lines = load(lines.encode(), "a.jsonl").documents
    assert [d.text for d in from_csv] == [d.text for d in from_lines] == [f"w {b}" for _, b in rows]


@given(st.lists(LETTERS.filter(lambda text: bool(clean(text).strip())), min_size=1, max_size=6))
def test_chunks_made_elsewhere_come_back_as_they_were(texts: list[str]) -> None:
    lines = "\n".join(json.dumps({"document": "d", "text": text}) for text in texts)
    (document,) = load(lines.encode(), "a.jsonl", LoadOptions(prechunked=True)).documents
    assert [document.text[a:b] for a, b in document.chunks] == [clean(text) for text in texts]
