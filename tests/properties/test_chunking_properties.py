"""What every chunking strategy promises, on texts from all Unicode planes and on made-up documents."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.chunking import STRATEGIES, ChunkSettings, chunk_document, split
from core.types import Document, Heading, Page, Table, make_chunk
from tests.fakes import HashEmbedder

EMBEDDER = HashEmbedder()
QUICK = settings(max_examples=60, deadline=None)


def thirds(texts: Sequence[str]) -> list[int]:
    """A tokenizer whose count of a text is not the sum over its words: blanks count too."""
    return [2 + (len(text) + 2) // 3 for text in texts]


SIGNS = [
    *"aZ1.!?,;:-_()\"'",
    " ",
    "  ",
    "\n",
    "\n\n",
    "\t",
    "\r\n",
    "\u00a0",
    "word ",
    "The end. ",
    "e.g. this ",
    "No. 7 ",
    "e\u0301",
    "a\u0308\u0323",
    "\U0001f469\U0001f3fd\u200d\U0001f527",
    "\u2764\ufe0f\u200d\U0001f525",
    "\U0001f1eb\U0001f1ee",
    "1\ufe0f\u20e3",
    "\u0e40\u0e01\u0e35\u0e48\u0e22\u0e27",
    "\u0e19\u0e49\u0e33",
    "\u0915\u094d\u0937\u093f",
    "\u1112\u1161\u11ab",
    "\uac01",
    "検査。",
    "\u05e9\u05c1",
    "\x00",
    "\u200b",
    "\ud800",
]
texts = st.one_of(
    st.lists(st.one_of(st.sampled_from(SIGNS), st.characters()), max_size=300).map("".join),
    st.text(max_size=200),
)


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """Headings, paragraphs, tables with short rows, pages, in any order."""
    text = ""
    headings: list[Heading] = []
    tables: list[Table] = []
    pages = [Page("1", 0)]
    for kind in draw(st.lists(st.sampled_from(["heading", "prose", "table", "page"]), max_size=9)):
        if kind == "heading":
            level = draw(st.integers(1, 3))
            title = draw(st.sampled_from(["Limits", "Scope", "A b"]))
            line = "#" * level + " " + title
            headings.append(Heading(level, title, len(text), len(text) + len(line)))
            text += line + draw(st.sampled_from(["\n", "\n\n"]))
        elif kind == "prose":
            words = draw(st.lists(st.sampled_from([*SIGNS, "longish words here. "]), max_size=40))
            text += "".join(words) + "\n\n"
        elif kind == "table":
            start, rows = len(text), []
            text += "| name | value |\n|---|---|\n"
            for value in draw(
                st.lists(st.sampled_from(["7 mm. Ok", "x", "a b c"]), min_size=1, max_size=8)
            ):
                row = f"| P-{len(rows):03} | {value} |"
                rows.append((len(text), len(text) + len(row)))
                text += row + "\n"
            tables.append(Table("| name | value |", start, len(text), tuple(rows)))
            text += "\n"
        elif len(text) > pages[-1].start:
            pages.append(Page(str(len(pages) + 1), len(text)))
    return Document("d", "d.md", "d", text, tuple(headings), tuple(pages), tuple(tables))


@st.composite
def chunk_settings(draw: st.DrawFn, strategy: str, low: int = 20) -> ChunkSettings:
    size = draw(st.integers(low, 90))
    return ChunkSettings(
        strategy=strategy,
        unit=draw(st.sampled_from(["characters", "tokens"])),
        size=size,
        overlap=draw(st.one_of(st.just(0), st.integers(0, size - 1))),
    )


def belongs_to_the_sign_before(sign: str) -> bool:
    return (
        unicodedata.category(sign).startswith("M")
        or sign == "\u200d"
        or "\U0001f3fb" <= sign <= "\U0001f3ff"
    )


def check(document: Document, chosen: ChunkSettings, count_tokens=EMBEDDER.count_tokens) -> list:
    text = document.text
    spans = split(document, chosen, count_tokens, EMBEDDER.embed)
    covered = bytearray(len(text))
    for start, end in spans:
        assert 0 <= start < end <= len(text)
        assert text[start:end].strip(), "blank chunk"
        covered[start:end] = b"\1" * (end - start)
        if chosen.unit == "characters":
            assert end - start <= chosen.size
        first = start
        while first and belongs_to_the_sign_before(text[first]):
            first -= 1
        assert first == start or text[start - 1].isspace() or start - first > chosen.size // 2
    if chosen.unit == "tokens" and spans:
        assert max(count_tokens([text[s:e] for s, e in spans])) - count_tokens([""])[0] <= chosen.size
    assert all(a[0] < b[0] for a, b in pairwise(spans))
    assert all(a[1] < b[1] for a, b in pairwise(spans))
    assert all(c or sign.isspace() for c, sign in zip(covered, text, strict=True)), "text lost"
    for (_, end), (start, _) in pairwise(spans):
        if start < end:
            shared = text[start:end]
            length = (
                len(shared)
                if chosen.unit == "characters"
                else count_tokens([shared])[0] - count_tokens([""])[0]
            )
            assert length <= chosen.overlap
    return spans


@pytest.mark.parametrize("strategy", STRATEGIES)
@QUICK
@given(st.data())
def test_any_text_is_covered_in_chunks_of_the_size(strategy: str, data: st.DataObject) -> None:
    text = data.draw(texts)
    check(Document("d", "d.txt", "d", text), data.draw(chunk_settings(strategy)))


@pytest.mark.parametrize("strategy", STRATEGIES)
@QUICK
@given(st.data())
def test_structured_documents_too(strategy: str, data: st.DataObject) -> None:
    document = data.draw(documents())
    chosen = data.draw(chunk_settings(strategy))
    spans = check(document, chosen)
    assert chunk_document(document, chosen, EMBEDDER.count_tokens, EMBEDDER.embed) == [
        make_chunk(document, *span) for span in spans
    ]


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "fixed"])
@QUICK
@given(st.data())
def test_no_table_row_is_cut(strategy: str, data: st.DataObject) -> None:
    document = data.draw(documents())
    spans = split(
        document, data.draw(chunk_settings(strategy, 30)), EMBEDDER.count_tokens, EMBEDDER.embed
    )
    rows = [row for table in document.tables for row in table.rows]
    edges = {edge for span in spans for edge in span}
    assert not [(row, edge) for row in rows for edge in edges if row[0] < edge < row[1]]


@QUICK
@given(st.data())
def test_no_heading_stands_alone(data: st.DataObject) -> None:
    document = data.draw(documents())
    chosen = data.draw(chunk_settings("headings", 80))
    lines = {document.text[h.start : h.end] for h in document.headings}
    spans = split(document, chosen, EMBEDDER.count_tokens)
    for start, end in spans[:-1]:
        parts = [line.strip() for line in document.text[start:end].splitlines() if line.strip()]
        if all(part in lines for part in parts):
            # Only where they do not fit a chunk together with a table's header and first row.
            body = end
            for heading in document.headings:
                if heading.start >= end and not document.text[body : heading.start].strip():
                    body = heading.end
            assert body + 1 - start + 47 > chosen.size


@pytest.mark.parametrize("strategy", STRATEGIES)
@QUICK
@given(st.data())
def test_a_tokenizer_that_does_not_add_up_word_by_word(strategy: str, data: st.DataObject) -> None:
    text = data.draw(st.lists(st.sampled_from(SIGNS), max_size=300).map("".join))
    size = data.draw(st.integers(20, 60))
    spans = split(
        Document("d", "d.txt", "d", text),
        ChunkSettings(strategy=strategy, unit="tokens", size=size, overlap=size // 4),
        thirds,
        EMBEDDER.embed,
    )
    assert all((end - start + 2) // 3 <= size for start, end in spans)
    assert [sign for i, sign in enumerate(text) if not sign.isspace()] == [
        text[i]
        for i in sorted({i for start, end in spans for i in range(start, end)})
        if not text[i].isspace()
    ]
    assert all(a[0] < b[0] for a, b in pairwise(spans))


@QUICK
@given(
    st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=500),
    st.integers(20, 60),
    st.data(),
)
def test_fixed_windows_are_exact(text: str, size: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, size - 1))
    spans = split(Document("d", "d", "d", text), ChunkSettings("fixed", size=size, overlap=overlap))
    step = size - overlap
    count = max(-(-(len(text) - overlap) // step), 1) if text else 0
    assert spans == [(i * step, min(i * step + size, len(text))) for i in range(count)]
