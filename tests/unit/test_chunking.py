"""Chunking on small texts of known answer: each strategy, the settings, the table of sizes."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pytest

from core.chunking import STRATEGIES, ChunkSettings, SizeTable, chunk_document, size_summary, split
from core.chunking.boundaries import joined, sentences
from core.errors import SettingsError
from core.types import Chunk, Document, Heading, Page, Table
from tests.fakes import HashEmbedder

EMBEDDER = HashEmbedder()


def plain(text: str) -> Document:
    return Document("d", "d.txt", "d", text)


def markdown(text: str) -> Document:
    """Headings and pipe tables as a loader would give them (no code fences here)."""
    headings, rows, tables, at = [], [], [], 0
    start = 0
    for line in text.splitlines(keepends=True):
        end = at + len(line.rstrip("\n"))
        if line.startswith("#"):
            marks = len(line) - len(line.lstrip("#"))
            headings.append(Heading(marks, line.strip("# \n"), at, end))
        if line.startswith("|"):
            start = start if rows else at
            rows.append((at, end))
        elif rows:
            tables.append(Table(text[slice(*rows[0])], start, at, tuple(rows[2:])))
            rows = []
        at += len(line)
    if rows:
        tables.append(Table(text[slice(*rows[0])], start, at, tuple(rows[2:])))
    return Document("d", "d.md", "d", text, tuple(headings), (), tuple(tables))


def cut(document: Document, **fields) -> list[str]:
    spans = split(document, ChunkSettings(**fields), EMBEDDER.count_tokens, EMBEDDER.embed)
    return [document.text[start:end] for start, end in spans]


# --- strategies -----------------------------------------------------------------------------------


def test_fixed_windows_in_characters_share_exactly_the_overlap() -> None:
    text = "abcdefghijklmnopqrstuvwxyz" * 2
    spans = split(plain(text), ChunkSettings(strategy="fixed", size=20, overlap=5))
    assert spans == [(0, 20), (15, 35), (30, 50), (45, 52)]


def test_fixed_windows_in_tokens_hold_exactly_that_many_words() -> None:
    text = " ".join(f"w{i}" for i in range(50))
    chunks = cut(plain(text), strategy="fixed", unit="tokens", size=20, overlap=5)
    assert [(chunk.split()[0], chunk.split()[-1]) for chunk in chunks] == [
        ("w0", "w19"),
        ("w15", "w34"),
        ("w30", "w49"),
    ]


def test_sentences_are_packed_whole_and_repeated_whole() -> None:
    text = "One is here. Two is here. Three is here. Four is here. Five is here."
    assert cut(plain(text), strategy="sentences", size=40, overlap=15) == [
        "One is here. Two is here. Three is here.",
        "Three is here. Four is here.",
        "Four is here. Five is here.",
    ]


def test_a_sentence_above_the_size_is_cut_at_words() -> None:
    text = "Short one. " + "word " * 30 + "end. Last one."
    chunks = cut(plain(text), strategy="sentences", size=50)
    assert max(map(len, chunks)) <= 50
    assert " ".join(chunks) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See Dr. Ito at 5 p.m. today. He waits.", ["See Dr. Ito at 5 p.m. today.", "He waits."]),
        ('"Stop!" he said. J. Doe left.', ['"Stop!"', "he said.", "J. Doe left."]),
        ("Rev. 3.5 of v1.2.3 is out. Use it.", ["Rev. 3.5 of v1.2.3 is out.", "Use it."]),
        ("検査を行う。次に記録する。", ["検査を行う。", "次に記録する。"]),
        (
            "A title\n\nno stop here\n- item one\n- item two",
            ["A title", "no stop here", "- item one", "- item two"],
        ),
        ("wrapped line\ngoes on here. Next", ["wrapped line\ngoes on here.", "Next"]),
    ],
)
def test_sentence_ends(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in sentences(text, 0, len(text))] == expected


def test_recursive_takes_the_largest_break_that_fits() -> None:
    text = "First paragraph, short.\n\nSecond paragraph. It has two sentences.\n\nThird."
    assert cut(plain(text), size=45) == [
        "First paragraph, short.",
        "Second paragraph. It has two sentences.",
        "Third.",
    ]
    assert cut(plain(text), size=200) == [text]


def test_headings_give_one_chunk_a_section() -> None:
    text = "Opening.\n\n# A\n\nText of a.\n\n## B\n\nText of b.\n\n# C\n\nText of c.\n"
    document = markdown(text)
    chunks = chunk_document(document, ChunkSettings(strategy="headings"))
    assert [chunk.text for chunk in chunks] == [
        "Opening.",
        "# A\n\nText of a.",
        "## B\n\nText of b.",
        "# C\n\nText of c.",
    ]
    assert [chunk.heading_path for chunk in chunks] == [(), ("A",), ("A", "B"), ("C",)]


def test_a_heading_opens_what_follows_also_where_its_text_is_long() -> None:
    text = "# Part\n\n## Scope\n\n" + "This sentence goes on. " * 12 + "\n\n# Tail\n"
    for strategy in ("headings", "recursive"):
        chunks = cut(markdown(text), strategy=strategy, size=80)
        assert chunks[0].startswith("# Part\n\n## Scope\n\nThis sentence goes on.")
        assert max(map(len, chunks)) <= 80
        assert chunks[-1].endswith("# Tail")
        assert chunks[-1] != "# Tail" or strategy == "recursive"


def test_table_rows_stay_whole_though_they_hold_sentences() -> None:
    rows = "".join(f"| P-{i:03} | Is set once. Not twice. See note {i}. |\n" for i in range(12))
    text = "# Limits\n\n" + "A long opening line that is cut by sentences. " * 4 + "\n"
    document = markdown(text + "| id | note |\n|---|---|\n" + rows + "\nAfter.")
    lines = set(rows.splitlines())
    for strategy in ("sentences", "recursive", "headings", "semantic"):
        for size in (60, 100, 130):
            for overlap in (0, 50):
                chunks = chunk_document(
                    document,
                    ChunkSettings(strategy=strategy, size=size, overlap=overlap),
                    embed=EMBEDDER.embed,
                )
                parts = {part for chunk in chunks for part in chunk.text.splitlines() if "P-" in part}
                assert parts == lines
                for chunk in chunks:
                    if chunk.text.startswith("| P-"):
                        assert chunk.columns == "| id | note |"


def test_semantic_breaks_where_the_meaning_jumps() -> None:
    pumps = "The pump seal leaks oil. The pump seal needs oil. The pump oil seal leaks."
    tax = "Annual tax forms list income. Tax income forms are annual. Annual income tax forms."

    def embed(texts):
        vectors = np.array(
            [[text.lower().count("pump"), text.lower().count("tax")] for text in texts], float
        )
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    document = plain(pumps + " " + tax)
    chosen = ChunkSettings(strategy="semantic", size=800, breakpoint_percentile=80)
    spans = split(document, chosen, embed=embed)
    assert len(spans) == 2
    # The neighbours' texts are embedded along, so the jump is seen from the sentence before or after.
    assert abs(spans[0][1] - len(pumps)) <= len("The pump oil seal leaks. ")


def test_semantic_packs_up_to_the_size_between_breaks() -> None:
    text = "Same words here again. " * 40
    spans = split(plain(text), ChunkSettings(strategy="semantic", size=100), embed=EMBEDDER.embed)
    assert all(80 < end - start <= 100 for start, end in spans[:-1])
    assert spans[-1][1] == len(text.rstrip())


# --- guarantees on hard texts ---------------------------------------------------------------------


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("size", "overlap"), [(20, 0), (20, 19), (37, 12), (120, 40), (800, 0), (800, 400)]
)
@pytest.mark.parametrize("unit", ["characters", "tokens"])
def test_the_last_words_are_never_lost(strategy: str, size: int, overlap: int, unit: str) -> None:
    text = "Harbour lists move on. " * 60 + "\n\nThe last word is ENDMARK-7"
    chunks = cut(plain(text), strategy=strategy, size=size, overlap=overlap, unit=unit)
    # Windows in characters are exact, so they alone may part the word.
    assert chunks[-1].endswith("ENDMARK-7" if strategy != "fixed" or unit == "tokens" else "7")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_same_sentence_over_and_over_keeps_its_places(strategy: str) -> None:
    text = "\n\n".join(["Turn the valve. Turn the valve."] * 50)
    chosen = ChunkSettings(strategy=strategy, size=60, overlap=20)
    chunks = chunk_document(plain(text), chosen, embed=EMBEDDER.embed)
    assert all(text[chunk.start : chunk.end] == chunk.text for chunk in chunks)
    assert all(a.start < b.start for a, b in pairwise(chunks))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "sign",
    [
        "\U0001f469\U0001f3fd\u200d\U0001f527",
        "\u2764\ufe0f\u200d\U0001f525",
        "\U0001f1eb\U0001f1ee",
        "e\u0301\u0323",
        "\u0e40\u0e01\u0e35\u0e48",
        "\u0e19\u0e49\u0e33",
        "\u0915\u094d\u0937\u093f",
        "\u1112\u1161\u11ab",
    ],
)
def test_signs_of_several_code_points_stay_whole(strategy: str, sign: str) -> None:
    text = (sign * 9 + "x") * 12
    starts = {i * (9 * len(sign) + 1) + j * len(sign) for i in range(12) for j in range(10)}
    for size in range(20, 41, 3):
        document = plain(text)
        spans = split(document, ChunkSettings(strategy=strategy, size=size), embed=EMBEDDER.embed)
        assert {start for start, _ in spans} <= starts
        assert "".join(text[start:end] for start, end in spans) == text


def test_joined_knows_pairs_of_flags() -> None:
    flags = "\U0001f1eb\U0001f1ee" * 3
    assert [joined(flags, i) for i in range(7)] == [False, True, False, True, False, True, False]
    assert not joined("a \u0301", 2)  # nothing to part after a blank
    assert joined("a\r\nb", 2)


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "semantic"])
def test_a_megabyte_without_a_line_break_and_a_run_without_blanks(strategy: str) -> None:
    began = time.process_time()
    line = "calm words without an end " * 40_000 + "NEEDLE"
    chunks = cut(plain(line), strategy=strategy, size=800, overlap=100)
    assert max(map(len, chunks)) <= 800
    assert chunks[-1].endswith("NEEDLE")
    run = "0123456789" * 10_000
    assert "".join(cut(plain(run), strategy=strategy, size=800)) == run
    # Far above what it takes (0.2 s): only growth with the square of the length fails here.
    assert time.process_time() - began < 8


def test_ten_megabytes_of_prose_do_not_take_the_square_of_their_length() -> None:
    text = ("A sentence of some length stands here. " * 20 + "\n\n") * 12_800
    began = time.process_time()
    spans = split(plain(text), ChunkSettings())
    assert time.process_time() - began < 8
    assert len(spans) == 12_800


def test_a_run_without_blanks_has_a_length_in_tokens() -> None:
    # The stand-in counts it as one word, as a model does with its one unknown token.
    spans = split(plain("x" * 10_000), ChunkSettings(unit="tokens", size=50), EMBEDDER.count_tokens)
    assert max(end - start for start, end in spans) <= 50 * 32
    assert spans[-1][1] == 10_000


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_blanks_alone_give_no_chunk(strategy: str) -> None:
    for text in ("", " \t\u00a0\n" * 50):
        assert cut(plain(text), strategy=strategy) == []


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_lone_surrogates_and_control_characters_pass(strategy: str) -> None:
    text = "a\ud800b \x00\x07 c\udfff. " * 30
    assert "".join("".join(cut(plain(text), strategy=strategy, size=40)).split()) == "".join(
        text.split()
    )


def test_spans_cut_elsewhere_are_returned_as_they_are() -> None:
    document = Document("d", "d.jsonl", "d", "abcdef ghij", chunks=((0, 4), (2, 11)))
    assert split(document, ChunkSettings(size=20)) == [(0, 4), (2, 11)]
    wrong = Document("d", "d.jsonl", "d", "abc", chunks=((0, 4),))
    with pytest.raises(ValueError, match="0-4 is not inside document d of 3"):
        chunk_document(wrong, ChunkSettings())


def test_ten_thousand_headings_are_described_in_one_pass() -> None:
    document = markdown("".join(f"# H{i}\n\ntext {i}\n\n" for i in range(10_000)))
    document = Document("d", "d", "d", document.text, document.headings, (Page("1", 0), Page("2", 50)))
    began = time.process_time()
    chunks = chunk_document(document, ChunkSettings(strategy="headings"))
    assert time.process_time() - began < 4
    assert len(chunks) == 10_000
    assert chunks[-1].heading_path == ("H9999",)
    assert chunks[0].pages == ("1",)
    assert chunks[-1].pages == ("2",)


# --- what is missing, and sizes -------------------------------------------------------------------


def test_what_a_strategy_needs_is_named() -> None:
    with pytest.raises(
        SettingsError, match=r"tokens need the embedding model's tokenizer.*use characters"
    ):
        split(plain("a b"), ChunkSettings(unit="tokens"))
    with pytest.raises(SettingsError, match="semantic chunking needs an embedding model"):
        split(plain("a b"), ChunkSettings(strategy="semantic"))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"size": 19}, "19"),
        ({"size": 100, "overlap": 100}, "100"),
        ({"overlap": -1}, "-1"),
        ({"strategy": "tokens"}, "tokens"),
        ({"unit": "words"}, "words"),
        ({"breakpoint_percentile": 100}, "100"),
    ],
)
def test_settings_out_of_range_are_refused_with_the_value(fields: dict, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        ChunkSettings(**fields)


def test_size_summary() -> None:
    def chunk(document: str, start: int, end: int) -> Chunk:
        return Chunk(document, start, end, "x" * (end - start))

    chunks = [chunk("a", 0, 10), chunk("a", 8, 20), chunk("a", 25, 31), chunk("b", 5, 9)]
    table = size_summary(chunks, [3, 9, 2, 2], max_tokens=8)
    assert (table.count, table.documents, table.chunks_per_document) == (4, 2, 2.0)
    assert table.overlap_characters == 2
    assert (table.truncated, table.truncated_share) == (1, 0.25)
    assert table.characters is not None
    assert (table.characters.min, table.characters.mean, table.characters.median) == (4, 8.0, 8.0)
    assert (table.characters.p95, table.characters.max) == (pytest.approx(11.7), 12)
    assert table.tokens is not None
    assert (table.tokens.min, table.tokens.max) == (2, 9)


def test_size_summary_says_what_it_does_not_know() -> None:
    assert size_summary([]) == SizeTable(0, 0, None, None, None, None, None, 0, 0.0)
    with pytest.raises(ValueError, match="1 token counts for 0 chunks"):
        size_summary([], [1], 8)


def test_identifiers_are_not_parted_where_a_blank_is_near() -> None:
    text = "Code INC-2023-Q4-011 and part 7/16-20 and get_user_id, v1.12.3 and node-07.local here. " * 5
    for strategy in ("sentences", "recursive", "headings", "semantic"):
        for size in range(20, 60):
            words = [
                word
                for chunk in cut(plain(text), strategy=strategy, size=size)
                for word in chunk.split()
            ]
            assert words == text.split()


@pytest.mark.parametrize("word", ["e\u0301", "BX-204", "pump"])
def test_no_word_or_sign_is_parted_for_the_sake_of_its_heading(word: str) -> None:
    text = f"# Limits\n# Limits\n\n\n{word}\n"
    headings = (Heading(1, "Limits", 0, 8), Heading(1, "Limits", 9, 17))
    document = Document("d", "d.md", "d", text, headings)
    spans = split(document, ChunkSettings(strategy="headings", size=21))
    assert word in [text[start:end].split()[-1] for start, end in spans]


@pytest.mark.parametrize("strategy", ["recursive", "headings"])
def test_words_are_repeated_where_no_sentence_fits_the_overlap(strategy: str) -> None:
    sentence = "A sentence of this length is more than the overlap holds by some way."
    chunks = cut(plain(" ".join([sentence] * 6)), strategy=strategy, size=100, overlap=30)
    assert len(chunks) == 6
    for one, other in pairwise(chunks):
        repeated = other.removesuffix(sentence).strip()
        assert 0 < len(repeated) <= 30
        assert one.endswith(repeated)
