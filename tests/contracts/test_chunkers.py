"""The splitter contract over every strategy, on the files that broke other splitters."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from core.chunking import STRATEGIES, ChunkSettings, chunk_document, split
from core.protocols import Splitter
from core.settings import DEFAULT_MODEL
from core.types import Chunk, Document
from tests.fakes import HashEmbedder
from tests.unit.test_chunking import markdown

EMBEDDER = HashEmbedder()
SIZES = [(20, 0), (40, 10), (250, 60), (800, 0), (800, 400)]


def chunks_of(document: Document, strategy: str, size: int, overlap: int, unit: str) -> list[Chunk]:
    chosen = ChunkSettings(strategy=strategy, size=size, overlap=overlap, unit=unit)
    return chunk_document(document, chosen, EMBEDDER.count_tokens, EMBEDDER.embed)


def test_every_strategy_can_stand_as_a_splitter() -> None:
    for strategy in STRATEGIES:

        def splitter(document: Document, strategy: str = strategy) -> list[tuple[int, int]]:
            return split(document, ChunkSettings(strategy=strategy), embed=EMBEDDER.embed)

        named: Splitter = splitter
        assert named(Document("d", "d", "d", "One. Two.")) == [(0, 9)]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("unit", ["characters", "tokens"])
@pytest.mark.parametrize(
    ("name", "marks"),
    [
        ("text/tail_needle.md", ["TAILMARK-93"]),
        ("text/repeated_sentences.md", []),
        ("text/emoji_zwj.txt", []),
        ("text/thai_no_spaces.txt", ["TH-588"]),
        ("text/cjk_mixed.md", ["BX-204"]),
        ("text/identifiers.md", ["INC-2023-Q4-011", "getUserId"]),
        ("text/no_space_run.txt", []),
        ("text/nfd_accents.txt", []),
        ("text/arabic_rtl.txt", ["AR-617"]),
        ("md/big_table.md", ["P-087"]),
    ],
)
def test_hard_files(eval_data: Path, strategy: str, unit: str, name: str, marks: list[str]) -> None:
    text = (eval_data / "hard_inputs" / name).read_text("utf-8")
    document = markdown(text)
    for size, overlap in SIZES:
        chunks = chunks_of(document, strategy, size, overlap, unit)
        assert all(text[c.start : c.end] == c.text and c.text.strip() for c in chunks)
        assert all(a.start < b.start for a, b in pairwise(chunks))
        covered = set().union(*(range(c.start, c.end) for c in chunks))
        assert all(i in covered for i, sign in enumerate(text) if not sign.isspace())
        lengths = (
            [len(c.text) for c in chunks]
            if unit == "characters"
            else [n - 2 for n in EMBEDDER.count_tokens([c.text for c in chunks])]
        )
        assert max(lengths) <= size
        assert not [
            c
            for c in chunks
            if c.text[0] in "\u200d\ufe0f\U0001f3fd\u0301\u0308\u0e34\u0e35\u0e31\u0e49"
        ]
        if size >= 250:
            assert all(any(mark in c.text for c in chunks) for mark in marks)
        if name == "text/tail_needle.md":
            assert chunks[-1].text.endswith("TAILMARK-93" if strategy != "fixed" else "93")
        if name == "md/big_table.md" and strategy != "fixed" and size > 60:
            rows = {line for line in text.splitlines() if line.startswith("| P-")}
            assert rows == {line for c in chunks for line in c.text.splitlines() if "P-" in line}
            assert all(c.columns or c.text[0] != "|" or "| parameter" in c.text for c in chunks)


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "semantic"])
def test_one_line_of_a_megabyte(eval_data: Path, strategy: str) -> None:
    text = (eval_data / "hard_inputs/text/one_line_1mb.txt").read_text("utf-8")
    chunks = chunks_of(Document("d", "d", "d", text), strategy, 800, 100, "characters")
    assert max(len(c.text) for c in chunks) <= 800
    assert chunks[-1].end == len(text.rstrip())


def test_one_identifier_a_chunk_at_the_size_of_a_line(eval_data: Path) -> None:
    text = (eval_data / "hard_inputs/text/identifiers.md").read_text("utf-8")
    chunks = chunks_of(markdown(text), "recursive", 100, 0, "characters")
    first = [c.text for c in chunks if "INC-2023-Q4-011" in c.text]
    assert len(first) == 1
    assert "INC-2023-Q4-012" not in first[0]


@pytest.mark.model
def test_sizes_in_the_real_models_tokens() -> None:
    from core.embedding import load_embedder

    model = load_embedder(DEFAULT_MODEL)
    text = "Unbelievably long-winded maintenance, e.g. re-calibrating INC-2023-Q4-011 sensors. " * 60
    for strategy in ("fixed", "sentences", "recursive", "headings"):
        chosen = ChunkSettings(strategy=strategy, unit="tokens", size=100, overlap=20)
        spans = split(Document("d", "d", "d", text), chosen, model.count_tokens)
        counts = [n - 2 for n in model.count_tokens([text[s:e] for s, e in spans])]
        assert max(counts) <= 100
        assert min(counts[:-1]) > 60
