"""Files, names and queries that broke others, from their bytes to the result: cut, indexed, searched.

What loading makes of them is held in test_loaders.py. Each case that needs the shared files has a twin with
an input of our own below, or stands in test_text.py, test_fusion.py or test_merging.py.
"""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from functools import cache
from itertools import pairwise
from pathlib import Path
from time import process_time

import pytest
from typer.testing import CliRunner

from core import embedding
from core.chunking import chunk_document
from core.cli import app
from core.collection import create
from core.corpus import Corpus, build_corpus
from core.errors import LoadError
from core.loading import load, safe_name
from core.pipeline import replay, search
from core.report.export import (
    FORMULA_SIGNS,
    settings_to_python,
    trace_to_csv,
    trace_to_json,
    trace_to_trec,
)
from core.settings import (
    DEFAULT_MODEL,
    STRATEGIES,
    ChunkSettings,
    IndexSettings,
    SearchSettings,
    Settings,
)
from core.trace import Trace
from core.types import Chunk, Document
from tests.fakes import HashEmbedder

CUTS = {
    "headings": ChunkSettings(),
    "headings, small": ChunkSettings(size=120),
    "fixed": ChunkSettings(strategy="fixed", size=150, overlap=40),
    "sentences": ChunkSettings(strategy="sentences", size=200),
    "recursive": ChunkSettings(strategy="recursive", size=100, overlap=30),
    "recursive, tokens": ChunkSettings(strategy="recursive", unit="tokens", size=60, overlap=10),
    "semantic": ChunkSettings(strategy="semantic", size=400),
}
ONE_STAGE = SearchSettings(two_stage=False, merge=False)
BM25_ALONE = ONE_STAGE.with_index("vector", on=False)
VECTOR_ALONE = ONE_STAGE.with_index("bm25", on=False)
MODES = {
    "two stages": SearchSettings(),
    "semantic second stage": SearchSettings(second_stage="semantic", items=5),
    "one stage": SearchSettings(two_stage=False),
    "hnsw": SearchSettings(vector="hnsw", hnsw_ef=10),
    "few items": SearchSettings(items=3, fusion="dbsf", collapse_duplicates=True, per_item=2),
}

# The file → queries, each with the words its chunk must hold. BM25 alone puts a chunk of the file that
# holds the words first; a blank says that other files may stand above it.
MARKS: dict[str, dict[str, str]] = {
    "html/boilerplate_script.html": {
        "HTML-BODY-1": "HTML-BODY-1",
        "slowly": "",
        "prime 12": "| Prime | 12 |",
    },
    "html/deep_nested.html": {"DEEP-HTML-1": "DEEP-HTML-1"},
    "md/big_table.md": {"P-087 default": "| P-087 |"},
    "md/code_with_hash.md": {"ABOVE-CODE-1": "ABOVE-CODE-1", "BELOW-CODE-2": "BELOW-CODE-2"},
    "office/merged_dates_formulas.xlsx": {
        "2024-03-05": "2024-03-05",
        "SHEET2-PART-8": "SHEET2-PART-8",
        "HIDDEN-SHEET-5": "HIDDEN-SHEET-5",
    },
    "office/notes_groups_tables.pptx": {
        m: m for m in ("SLIDE-BODY-1", "NOTES-2", "GROUP-3", "PPTX-CELL-4")
    },
    "office/spine_order.epub": {"EPUB-1": "EPUB-1", "EPUB-2": "EPUB-2", "EPUB-3": "EPUB-3"},
    "office/tables_footnotes_headings.docx": {
        m: m for m in ("TABLE-CELL-31", "FOOTNOTE-44", "DOCX-END-9")
    },
    "pdf/encrypted_empty_user_password.pdf": {"LOCKED-PDF-4": "LOCKED-PDF-4"},
    "pdf/rotated.pdf": {"ROTATED-PAGE-1": "ROTATED-PAGE-1", "SIDEWAYS-2": "SIDEWAYS-2"},
    "pdf/two_column_hyphen_ligature.pdf": dict.fromkeys(
        ("maintenance", "calibration", "confirm", "office", "first", "filters", "workflow"), ""
    ),
    "tabular/bad_lines.jsonl": {"JL-1": "JL-1", "JL-2": "JL-2", "JL-9": "JL-9"},
    "tabular/formula_cells.csv": {"15 deg": "+15 deg", "HYPERLINK": "=HYPERLINK"},
    "tabular/quoted_newlines.csv": {"CSVMARK-3": "CSVMARK-3"},
    "text/arabic_rtl.txt": {"صمام": "صمام", "AR-617": "AR-617"},
    "text/cjk_mixed.md": {"轴承": "轴承", "軸受": "軸受", "베어링은": "베어링은", "BX-204": "BX-204"},
    "text/control_chars.txt": {"CTRL-MARK-2": "CTRL-MARK-2"},
    "text/crlf_mixed_newlines.txt": {"LINE-MARK-8": "LINE-MARK-8"},
    "text/dollars_and_marks.md": {"$119.6": "$119.6", "*stars*": "*stars*"},
    "text/emoji_zwj.txt": {"ZWJ-71": "ZWJ-71"},
    "text/html_js_in_text.txt": {"TAGTEXT-5": "TAGTEXT-5"},
    "text/identifiers.md": {"INC-2023-Q4-011": "INC-2023-Q4-011"},
    "text/invisible_chars.txt": {"INVIS-MARK-3": "INVIS-MARK-3", "maintenance plan": ""},
    "text/latin1_accents.txt": {"PELORUS-LATIN1": "PELORUS-LATIN1", "Façade": "", "café": ""},
    "text/nfd_accents.txt": {
        "résumé": "re\u0301sume\u0301",
        "Zürich": "Zu\u0308rich",
        "re\u0301sume\u0301": "re\u0301sume\u0301",
    },
    "text/no_space_run.txt": {"BEACON-A": "BEACON-A", "BEACON-B": "BEACON-B"},
    "text/prompt_injection_chunk.txt": {"BANANA BANANA": "BANANA BANANA"},
    "text/repeated_sentences.md": {"Check the seal. Note 1.": ""},
    "text/shift_jis_notice.txt": {"校正証明書": "校正証明書", "KZ-3071": "KZ-3071"},
    "text/tail_needle.md": {"TAILMARK-93": "TAILMARK-93"},
    "text/thai_no_spaces.txt": {"ตลับลูกปืน": "ตลับลูกปืน", "TH-588": "TH-588"},
    "text/utf16le_bom.txt": {"PELORUS-U16LE": "PELORUS-U16LE"},
    "text/utf8_bom.txt": {"PELORUS-U8BOM": "PELORUS-U8BOM", "Quillon": ""},
    "versions/v1/policy.txt": {"VERSION-ONE": "VERSION-ONE"},
}
CASES = [(path, query) for path, queries in MARKS.items() for query in queries]
LARGE = ("text/one_line_1mb.txt", "text/long_query.txt")


@cache
def library(folder: Path) -> tuple[Document, ...]:
    """Every hard file that loads, but the large ones; names are paths inside the folder."""
    found: list[Document] = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_dir() or name.startswith(("fixtures/", "versions/v2", "versions/copy", "MANIFEST")):
            continue
        if name in LARGE or name.endswith((".zip", ".json")):
            continue
        try:
            found += load(path.read_bytes(), name).documents
        except LoadError:
            continue
    return tuple(found)


@cache
def corpus_of(folder: Path, cut: str) -> Corpus:
    settings = IndexSettings(chunking=CUTS[cut])
    return Corpus.from_documents(library(folder), settings, HashEmbedder(max_tokens=60))


@pytest.fixture
def hard(eval_data: Path) -> Path:
    return eval_data / "hard_inputs"


def of(*documents: Document, **chunking: object) -> Corpus:
    settings = IndexSettings(chunking=ChunkSettings(**chunking))  # type: ignore[arg-type]
    return Corpus.from_documents(documents, settings, HashEmbedder())


def documents_of(data: bytes, name: str) -> tuple[Document, ...]:
    return load(data, name).documents


def texts(trace: Trace, stage: str = "bm25") -> list[tuple[str, str]]:
    """Name of the document and text of each chunk of a stage, in order."""
    positions = trace.stage(stage).ranking.positions.tolist()
    return [
        (trace.corpus.item_names[trace.corpus.item_of[p]], trace.corpus.chunk(p).text) for p in positions
    ]


def flat(text: str) -> str:
    return " ".join(text.split())


# Every marker, by BM25 alone and by the whole pipeline


@pytest.mark.parametrize("cut", CUTS)
def test_every_mark_is_found_by_bm25_alone(hard: Path, cut: str) -> None:
    corpus = corpus_of(hard, cut)
    lost = []
    for path, query in CASES:
        trace = search(corpus, query, BM25_ALONE)
        trace.check()
        words, found = MARKS[path][query], texts(trace)
        if words:
            # Windows of one size cut long runs into short texts, which hold a part and little else.
            top = found[: 3 if cut == "fixed" else 1]
            ok = any(name == path and flat(words) in flat(text) for name, text in top)
        else:
            ok = any(name == path for name, _ in found[:10])
        if not ok:
            lost.append((path, query, found[:2]))
    assert lost == []


# The fake embedder is no judge of meaning, so that a semantic second stage alone is not held to the marks.
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "semantic second stage"])
def test_every_mark_is_found_by_the_whole_pipeline(hard: Path, mode: str) -> None:
    lost = []
    for cut in ("headings", "recursive"):
        corpus = corpus_of(hard, cut)
        for path, query in CASES:
            trace = search(corpus, query, MODES[mode])
            trace.check()
            passages = [
                (corpus.item_names[passage.item], trace.text_of(passage)) for passage in trace.passages
            ]
            words = MARKS[path][query]
            if mode == "few items" and not words:
                continue
            if not any(name == path and flat(words) in flat(text) for name, text in passages):
                lost.append((cut, path, query, passages[:1]))
    assert lost == []


@pytest.mark.parametrize("cut", CUTS)
def test_chunks_keep_their_promises_on_hard_texts(hard: Path, cut: str) -> None:
    corpus, settings = corpus_of(hard, cut), CUTS[cut]
    table_rows = []
    for position in range(len(corpus)):
        chunk = corpus.chunk(position)
        document = corpus.document(int(corpus.item_of[position]))
        assert document.text[chunk.start : chunk.end] == chunk.text
        assert "\ufffd" not in chunk.text
        assert "\x00" not in chunk.text
        first = chunk.text[0]
        assert unicodedata.combining(first) == 0, (document.name, chunk.text[:5])
        assert first not in "\u200d\ufe0f\ufeff", (document.name, chunk.text[:5])
        if settings.unit == "characters":
            assert len(chunk.text) <= settings.size
        if document.name == "md/big_table.md" and "P-087" in chunk.text:
            table_rows.append(chunk.indexed_text)
        if document.name == "md/code_with_hash.md" and "for i in" in chunk.text:
            assert "Install" in chunk.heading_path
            assert "this is a comment" not in chunk.heading_path
    assert any("| parameter | unit | default | description |" in text for text in table_rows)
    tail = [
        p for p in range(len(corpus)) if corpus.item_names[corpus.item_of[p]] == "text/tail_needle.md"
    ]
    assert "TAILMARK-93" in corpus.chunk(tail[-1]).text


FINE = [
    ChunkSettings(strategy=strategy, unit=unit, size=size, overlap=overlap)
    for strategy in STRATEGIES
    for unit in ("characters", "tokens")
    for size in (20, 23, 31, 40, 100, 800)
    for overlap in (0, 5, 19)
]


@pytest.mark.parametrize(
    "path", ["emoji_zwj.txt", "thai_no_spaces.txt", "repeated_sentences.md", "tail_needle.md"]
)
def test_no_size_and_no_overlap_breaks_a_character_or_loses_the_end(hard: Path, path: str) -> None:
    (document,) = documents_of((hard / "text" / path).read_bytes(), path)
    whole_characters(document)
    if path == "tail_needle.md":
        for settings in FINE:
            last = cut(document, settings)[-1]
            # A window of one size ends where it ends: there the end of the mark is what must be left.
            assert "TAILMARK-93" in last.text or (settings.strategy == "fixed" and settings.size <= 40)
            assert last.end == len(document.text.rstrip())


def cut(document: Document, settings: ChunkSettings) -> list[Chunk]:
    embedder = HashEmbedder()
    return chunk_document(document, settings, embedder.count_tokens, embedder.embed)


def whole_characters(document: Document) -> None:
    """No chunk begins inside a character that people see as one, none is lost, and starts rise."""
    text = document.text
    for settings in FINE:
        chunks = cut(document, settings)
        starts = [chunk.start for chunk in chunks]
        assert all(a < b for a, b in pairwise(starts)), settings
        covered = set().union(*(range(chunk.start, chunk.end) for chunk in chunks))
        assert all(at in covered or text[at].isspace() for at in range(len(text))), settings
        for start in starts:
            first = text[start]
            assert unicodedata.category(first)[0] != "M", settings
            assert first not in "\u200d\ufe0f", settings
            assert not "\U0001f3fb" <= first <= "\U0001f3ff", settings
            assert text[start - 1 : start] != "\u200d", settings
        for chunk in chunks:
            assert "\ufffd" not in chunk.text
            # The vowel signs that Thai writes before their letter.
            assert chunk.end == len(text) or not "\u0e40" <= chunk.text[-1] <= "\u0e44", settings


def test_own_characters_of_many_code_points() -> None:
    whole_characters(write("e.txt", "👩🏽\u200d🔧🇫🇮👨\u200d👩\u200d👧\ufe0fe\u0301" * 12))
    whole_characters(write("t.txt", "เปลี่ยนตลับลูกปืนแล้วปิดวาล์วน้ำ" * 8))


def test_noise_of_pages_is_in_no_chunk(hard: Path) -> None:
    corpus = corpus_of(hard, "recursive")
    noise = re.compile(r"(SCRIPT|STYLE|COMMENT|TEMPLATE|LDJSON|NAV|HEADER|FOOTER)-NOISE")
    for position in range(len(corpus)):
        assert not noise.search(corpus.chunk(position).indexed_text)


# Identifiers

LINES = {
    "INC-2023-Q4-011": "- INC-2023-Q4-011:",
    "INC-2023-Q4-012": "- INC-2023-Q4-012:",
    "INC-2024-Q1-011": "- INC-2024-Q1-011:",
    **dict.fromkeys(("C++", "C#", ".NET", "R"), "- Tool chain"),
    **dict.fromkeys(("3.5-inch", "2.5-inch", "M8x40", "7/16-20"), "- Mounting kit"),
    **dict.fromkeys(
        ("get_user_id", "getUserId", "GetUserID", "parseHTTPResponse2", "max_retry_count", "user id"),
        "- Functions",
    ),
    **dict.fromkeys(("v1.2.3", "v1.12.3", "10.4.0-rc2", "10.20.30.40", "node-07.local"), "- Versions"),
    **dict.fromkeys(("duty.desk@example.org", "A4", "5G", "T-800"), "- Mail box"),
}


@pytest.mark.parametrize("identifier", LINES)
def test_an_identifier_ranks_its_own_line_first(hard: Path, identifier: str) -> None:
    (document,) = documents_of((hard / "text/identifiers.md").read_bytes(), "identifiers.md")
    lines = [
        Document(f"d{n}", "i.md", "i", line) for n, line in enumerate(document.text.split("\n")) if line
    ]
    for corpus in (
        of(document, strategy="sentences", size=105),
        of(document, strategy="recursive", size=100),
        of(*lines),
    ):
        found = texts(search(corpus, identifier, BM25_ALONE))
        assert LINES[identifier] in found[0][1], (identifier, found)
        ranking = search(corpus, identifier, BM25_ALONE).stage("bm25").ranking
        assert len(ranking) == 1 or ranking.scores[0] > ranking.scores[1]


# Queries


def hard_queries(hard: Path) -> list[str]:
    lines = (hard / "fixtures/queries_hard.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["query"] for line in lines]


@pytest.mark.parametrize("mode", MODES)
def test_hard_queries_run_through_everything(hard: Path, mode: str) -> None:
    corpus, settings = corpus_of(hard, "headings"), MODES[mode]
    queries = hard_queries(hard)
    assert len(queries) == 14
    for query in queries:
        trace = search(corpus, query, settings)
        trace.check()
        assert trace.query == query
        if not query.strip():
            assert trace.notes == ("type a query to search",)
            assert trace.passages == ()
        else:
            assert trace.passages
        if settings.two_stage:
            assert (trace.stage("items.lexical").ranking.scores > 0).all()
        assert (trace.stage("bm25").ranking.scores > 0).all()
        again = replay(trace, settings.replace(k_rrf=1, merge_gap=0))
        again.check()
        assert again == search(corpus, query, settings.replace(k_rrf=1, merge_gap=0))
        assert json.loads(trace_to_json(trace, 5))["query"] == query
    for query in ("the of and is", "zzqxv unknownword", "🇫🇮 👩🏽\u200d🔧"):
        assert query in queries
        trace = search(corpus, query, settings)
        assert len(trace.stage("bm25").ranking) == 0
        assert any(note.startswith("BM25: ") for note in trace.notes)
        fused = trace.stage("fused")
        for column, name in enumerate(fused.inputs):
            assert name != "bm25" or not fused.terms[:, column].any()  # type: ignore[index]


@pytest.mark.model
def test_hard_queries_with_the_real_model(hard: Path) -> None:
    few = [d for d in library(hard) if d.name.startswith(("text/n", "text/i", "md/c"))]
    corpus = Corpus.from_documents(few[:6], IndexSettings(), embedding.load_embedder(DEFAULT_MODEL))
    for query in hard_queries(hard):
        for two_stage in (True, False):
            trace = search(corpus, query, SearchSettings(two_stage=two_stage))
            trace.check()
            assert bool(trace.passages) == bool(query.strip())


def test_a_query_of_fifty_thousand_characters_is_answered(hard: Path) -> None:
    query = (hard / "text/long_query.txt").read_text(encoding="utf-8")
    corpus = corpus_of(hard, "recursive")
    search(corpus, "warm", SearchSettings())
    start = process_time()
    search(corpus, query, SearchSettings()).check()
    assert process_time() - start < 3


# Whole files


def test_one_line_of_a_megabyte(hard: Path) -> None:
    data = (hard / "text/one_line_1mb.txt").read_bytes()
    start = process_time()
    (document,) = documents_of(data, "one_line.txt")
    corpus = of(document)
    needles = re.findall(r"NEEDLE-[A-Z]+-\d+", document.text)
    assert len(needles) == 3
    assert int((corpus.ends - corpus.starts).max()) <= 800
    for needle in needles:
        trace = search(corpus, needle, BM25_ALONE)
        assert needle in texts(trace)[0][1]
        whole = search(corpus, needle)
        whole.check()
        assert any(needle in whole.text_of(passage) for passage in whole.passages)
        assert max(passage.end - passage.start for passage in whole.passages) <= 6_000
    assert process_time() - start < 15


def test_every_word_is_in_every_text(hard: Path) -> None:
    corpus = of(*documents_of((hard / "tabular/all_share_term.jsonl").read_bytes(), "a.jsonl"))
    for variant in ("lucene", "bm25l", "bm25+"):
        ranking = search(corpus, "pump", BM25_ALONE.replace(bm25_variant=variant)).stage("bm25").ranking
        assert len(ranking) == 4
        assert (ranking.scores > 0).all()
        assert corpus.item_titles[ranking.positions[0]].startswith("d3")  # four of five words
        assert len(set(ranking.scores.tolist())) == 4
    for variant in ("robertson", "atire"):  # they weigh such a word 0, and say so
        trace = search(corpus, "pump", BM25_ALONE.replace(bm25_variant=variant))
        assert len(trace.stage("bm25").ranking) == 0
        assert any("weighs every term of the query 0" in note for note in trace.notes)


@pytest.mark.parametrize("mode", MODES)
def test_the_same_text_in_two_items_is_two_results(hard: Path, mode: str) -> None:
    documents = documents_of((hard / "tabular/same_text_two_items.jsonl").read_bytes(), "a.jsonl")
    two_results(of(*documents), MODES[mode].replace(collapse_duplicates=False))
    collapsed = search(of(*documents), "close the gate", MODES[mode].replace(collapse_duplicates=True))
    assert [p.item for p in collapsed.passages if p.item != 2] == [0]
    assert list(collapsed.stage("kept").removed.values()) == ["same text as the chunk at rank 1"]


def two_results(corpus: Corpus, settings: SearchSettings) -> None:
    trace = search(corpus, "close the gate before six", settings)
    trace.check()
    first, second = trace.passages[:2]
    assert {first.item, second.item} == {0, 1}
    assert trace.text_of(first) == trace.text_of(second)
    assert [corpus.document(p.item).metadata["year"] for p in (first, second)] == [2023.0, 2024.0]
    assert len({corpus.item_titles[p.item] for p in (first, second)}) == 2
    rows = json.loads(trace_to_json(trace))["passages"][:2]
    assert rows[0]["title"] != rows[1]["title"]
    assert rows[0]["members"] != rows[1]["members"]


@pytest.mark.parametrize("vector", ["exact", "hnsw"])
def test_only_stop_words_as_the_only_file(hard: Path, vector: str) -> None:
    (document,) = documents_of((hard / "text/stopwords_only.txt").read_bytes(), "s.txt")
    trace = search(of(document), document.text, SearchSettings(vector=vector))
    trace.check()
    assert trace.text_of(trace.passages[0]).startswith("the of and to")


def test_binary_fills_no_index(hard: Path) -> None:
    loaded = load((hard / "text/binary_renamed.txt").read_bytes(), "b.txt")
    assert loaded.warnings
    corpus = of(*loaded.documents)
    assert len(corpus) <= 60


def test_invisible_characters_part_no_words(hard: Path) -> None:
    corpus = of(*documents_of((hard / "text/invisible_chars.txt").read_bytes(), "i.txt"))
    assert len(search(corpus, "maintenance plan", BM25_ALONE).stage("bm25").ranking) == 1


def test_formula_cells_are_text_in_exports(hard: Path) -> None:
    documents = documents_of((hard / "tabular/formula_cells.csv").read_bytes(), "=formula.csv")
    corpus = of(*documents)
    for query, words in (("1+1", "=1+1"), ("home", "@home"), ("20 deg", "-20 deg"), ("2+2", "=2+2")):
        trace = search(corpus, query, BM25_ALONE)
        assert words in texts(trace)[0][1]
        safe_csv(trace)


def safe_csv(trace: Trace) -> list[dict[str, str]]:
    """The rows of the CSV export, after a look at every cell as a spreadsheet sees it."""
    rows = list(csv.DictReader(io.StringIO(trace_to_csv(trace), newline="")))
    assert rows
    for row in rows:
        assert None not in row
        for column, cell in row.items():
            if column in ("rank", "start", "end", "score"):
                assert not cell or float(cell) is not None
            else:
                assert not cell.startswith(FORMULA_SIGNS), (column, cell)
    return rows


# Collections: versions, names


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path / "home"))
    monkeypatch.setitem(embedding._loaded, DEFAULT_MODEL, HashEmbedder(model_id=DEFAULT_MODEL))
    return tmp_path


def in_no_index(corpus: Corpus, word: str, settings: SearchSettings) -> None:
    indexes = corpus.indexes(settings)
    for index in (indexes["bm25"], corpus.item_index(settings)):
        # Its parts may stand elsewhere; the whole identifier is known to no index any more.
        whole = [t.df for t in index.explain(word, 0) if t.term == word.lower()]  # type: ignore[attr-defined]
        assert whole == [0]
    assert all(word not in corpus.chunk(position).text for position in range(len(corpus)))
    assert len(indexes["vector"]) == len(corpus)
    trace = search(corpus, word, settings)
    trace.check()
    assert all(word not in trace.text_of(passage) for passage in trace.passages)


def replaced_everywhere(old: bytes, new: bytes, gone: str, there: str) -> None:
    name = "policy.txt"
    first, second = load(old, name), load(new, name)
    store = create("versions")
    other = b"Another file that says nothing of it."
    store.add(load(other, "other.txt"), "other.txt", len(other))
    assert store.add(first, name, len(old)).status == "added"
    for settings in (SearchSettings(), SearchSettings(vector="hnsw", hnsw_ef=10)):
        search(build_corpus(store, IndexSettings()), gone, settings)
    serving = build_corpus(store, IndexSettings())
    assert serving.item_names[search(serving, gone).passages[0].item] == name
    # The same bytes under another name are recognised, and nothing is doubled.
    copy = store.add(load(old, "copy.txt"), "copy.txt", len(old))
    assert (copy.status, copy.file.name) == ("same", name)
    assert len(store.documents()) == 2
    assert store.find_by_name(name).file_hash == first.file_hash  # type: ignore[union-attr]
    assert store.replace(first.file_hash, second, name, len(new)).status == "replaced"
    for corpus in (
        build_corpus(store, IndexSettings(), previous=serving),  # grown from the old one
        build_corpus(store, IndexSettings()),  # read from disk
        Corpus.from_documents(
            list(store.documents()), IndexSettings(), HashEmbedder(model_id=DEFAULT_MODEL)
        ),
    ):
        for settings in (SearchSettings(), SearchSettings(vector="hnsw", hnsw_ef=10)):
            in_no_index(corpus, gone, settings)
            assert any(there in text for _, text in texts(search(corpus, there, settings), "kept"))
    assert [file.name for file in store.files()] == ["other.txt", name]


def test_a_replaced_version_is_gone_from_every_index(hard: Path, home: Path) -> None:
    old, copy = (hard / "versions/v1/policy.txt").read_bytes(), hard / "versions/copy_of_policy.txt"
    assert copy.read_bytes() == old
    replaced_everywhere(
        old, (hard / "versions/v2/policy.txt").read_bytes(), "VERSION-ONE", "VERSION-TWO"
    )


def test_a_copy_under_another_name_is_named_on_the_command_line(hard: Path, home: Path) -> None:
    run("add", str(hard / "versions/v1/policy.txt"), "-c", "Mine")
    (row,) = json.loads(run("add", str(hard / "versions/copy_of_policy.txt"), "-c", "Mine", "--json"))
    assert (row["status"], row["warnings"]) == (
        "same",
        ["the same bytes are already here as policy.txt"],
    )
    (row,) = json.loads(run("add", str(hard / "versions/v2/policy.txt"), "-c", "Mine", "--json"))
    assert (row["status"], row["warnings"]) == (
        "added",
        ["another file of this name was kept beside it; --replace replaces it"],
    )


def run(*words: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(words))
    assert result.exit_code == code, (result.output, result.exception)
    return result.stdout


def test_hard_names_by_the_command_line(hard: Path, home: Path) -> None:
    rows = json.loads(run("add", str(hard / "names"), "-c", "Names", "--json", code=1))
    status = {row["file"]: row["status"] for row in rows}
    assert [name for name, state in status.items() if state == "failed"] == ["climbing.zip"]
    names = set(status) - {"climbing.zip", "odd_file_names.json"}
    found = set()
    for number in range(1, 9):
        trace = json.loads(run("search", f"NAME-{number}", "-c", "Names", "--json"))
        best = trace["passages"][0]
        assert f"NAME-{number}" in best["text"]
        found.add(unicodedata.normalize("NFC", best["name"]))
        run("export", f"NAME-{number}", "-c", "Names", "--format", "csv")
    assert found == {unicodedata.normalize("NFC", name) for name in names}
    outside(home, "NAME-")


def outside(home: Path, *marks: str) -> None:
    """Nothing was written outside the data folder, and no stored file bears a given name."""
    written = [path for path in home.rglob("*") if path.is_file()]
    assert all(path.is_relative_to(home / "home") for path in written)
    shape = re.compile(
        r"home\.db|vectors\.db|collections/[0-9a-f]{16}/(collection\.db|corpus/[0-9a-f]{16}/[\w.-]+/[\w.-]+)"
    )
    for path in written:
        name = path.relative_to(home / "home").as_posix()
        assert shape.fullmatch(re.sub(r"-(wal|shm)$", "", name)), name


def test_odd_file_names_are_values_not_paths(hard: Path, home: Path) -> None:
    odd_names(json.loads((hard / "names/odd_file_names.json").read_text(encoding="utf-8")), home)


def odd_names(names: list[str], home: Path) -> None:
    store = create("odd")
    for number, name in enumerate(names):
        data = f"Text of file ODD-{number}.".encode()
        assert store.add(load(data, name), name, len(data)).status == "added"
    corpus = build_corpus(store, IndexSettings())
    for number, name in enumerate(names):
        trace = search(corpus, f"ODD-{number}")
        assert f"ODD-{number}" in trace.text_of(trace.passages[0])
        assert corpus.item_names[trace.passages[0].item] == safe_name(name)
        safe_csv(trace)
    outside(home)


# Twins: inputs of our own


def write(name: str, text: str) -> Document:
    (document,) = documents_of(text.encode(), name)
    return document


def test_own_versions(home: Path) -> None:
    replaced_everywhere(
        b"The lease ends in OLDMARK-7 spring.",
        b"The lease ends in NEWMARK-8 autumn.",
        "OLDMARK-7",
        "NEWMARK-8",
    )


def test_own_odd_names(home: Path) -> None:
    odd_names(
        [
            "../up.txt",
            "..\\up.md",
            "/abs.csv.txt",
            "=cmd|' /C calc'!A0.txt",
            "+1.txt",
            "-n.txt",
            "@x.txt",
            "",
            " ",
            "..",
            "nul",
            "表 ☂.txt",
            "a" * 300 + ".txt",
            "two\nlines.txt",
            'quote".txt',
            "nul\x00.txt",
        ],
        home,
    )


def test_own_stop_words() -> None:
    document = write("the.txt", "the of and to it is")
    for vector in ("exact", "hnsw"):
        corpus = of(document)
        trace = search(corpus, document.text, SearchSettings(vector=vector))
        trace.check()
        assert len(trace.stage("bm25").ranking) == 0
        assert trace.text_of(trace.passages[0]) == document.text
        assert search(corpus, document.text, BM25_ALONE).passages == ()
        assert search(corpus, "pump", BM25_ALONE).passages == ()


@pytest.mark.parametrize("mode", MODES)
def test_own_same_text(mode: str) -> None:
    lines = [
        {"title": title, "year": year, "text": "Close the gate before six, says the harbour."}
        for title, year in (("East", 2023), ("West", 2024))
    ] + [{"title": "None", "year": 2020, "text": "Ferries leave at noon."}]
    data = "\n".join(json.dumps(line) for line in lines).encode()
    two_results(of(*documents_of(data, "r.jsonl")), MODES[mode].replace(collapse_duplicates=False))


HOSTILE = [
    "", "  ", "the of and", "qqqzzz", "a*b? \\d+ ^x$ {1} [draft]", '"exact" AND OR NOT', "<b>x</b> & 'q'",
    "pump " * 2_000, "\u202e\u202c \x00 x", "👩🏽\u200d🔧", "'; DROP TABLE items; --", "../../etc", "\ud800",
    "x" * 50_000, "-" * 50_000, "a-" * 20_000, "e\u0301" * 20_000, "轴" * 20_000, ".NET" * 5_000,
]  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
def test_own_hostile_queries(mode: str) -> None:
    corpus = of(
        write("a.txt", "The pump <b>leaks</b>. See ../../etc or C++ x."),
        write("b.md", "# Valve\n\n轴承 e\u0301"),
    )
    start = process_time()
    for query in HOSTILE:
        trace = search(corpus, query, MODES[mode])
        trace.check()
        assert bool(trace.passages) == bool(query.strip())
        trace_to_json(trace).encode()
        trace_to_csv(trace).encode()
    assert process_time() - start < 10


def test_own_trec_run_has_six_fields_whatever_the_ids_are() -> None:
    ids = ["with blank", "tab\tid", "\u3000wide", "plain"]
    corpus = of(*(Document(one, f"{one}.txt", one, f"The pump of {n}.") for n, one in enumerate(ids)))
    trace = search(corpus, "pump")
    lines = trace_to_trec(trace, query_id="my query", run="my run").splitlines()
    assert len(lines) == 4
    assert all(len(line.split()) == 6 for line in lines)
    assert len({line.split()[2] for line in lines}) == 4
    safe_csv(trace)


@pytest.mark.parametrize(
    "hostile", ['\'"\\n{x}%s\t"""日', "'); import os; ('", "\ud800\u2028#", "\\", "{0}'''"]
)
def test_own_snippet_runs_with_hostile_names(
    hostile: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = create(hostile)
    data = b"The pump in the yard."
    store.add(load(data, "a.txt"), "a.txt", len(data))
    settings = Settings(search=SearchSettings(k_rrf=3).with_index(f"my.{hostile}", weight=2.0))
    script = settings_to_python(settings, hostile, f"pump {hostile}")
    exec(compile(script, "snippet", "exec"), {})
    assert capsys.readouterr().out.endswith("a.txt 0 21\nThe pump in the yard.\n")


def test_own_settings_file_is_read_by_the_command_line(home: Path, tmp_path: Path) -> None:
    given, saved = tmp_path / "a.txt", tmp_path / "s.toml"
    given.write_text("The pump in the yard.")
    run("add", str(given), "-c", "Mine")
    run("export", "pump", "-c", "Mine", "-s", "indexes.my.ids.weight=2", "-s", "k_rrf=7", "--format", "toml",
        "--output", str(saved))  # fmt: skip
    trace = json.loads(run("search", "pump", "-c", "Mine", "--settings", str(saved), "--json"))
    assert trace["settings"]["indexes"]["my.ids"]["weight"] == 2.0
    assert trace["settings"]["k_rrf"] == 7
    assert trace["notes"] == ["there is no index my.ids: its settings have no effect"]


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t", "\n", "＝", "＋", "－", "＠"])
def test_own_names_run_no_formula(sign: str) -> None:
    corpus = of(Document("a", f"{sign}cmd|' /C calc'!A0.txt", f"{sign}1", f"The pump {sign}1+1."))
    rows = safe_csv(search(corpus, "pump"))
    assert {row["name"] for row in rows} == {f"'{sign}cmd|' /C calc'!A0.txt"}
    assert all(float(row["score"]) > 0 for row in rows if row["stage"] != "vector")


def test_every_file_of_the_list_is_searched_somewhere(hard: Path) -> None:
    with (hard / "MANIFEST.tsv").open(encoding="utf-8", newline="") as file:
        listed = {row["file"] for row in csv.DictReader(file, delimiter="\t")}
    elsewhere = {
        "text/long_query.txt", "text/one_line_1mb.txt", "text/stopwords_only.txt", "text/binary_renamed.txt",
        "tabular/all_share_term.jsonl", "tabular/same_text_two_items.jsonl", "versions/copy_of_policy.txt",
        "versions/v2/policy.txt",
    }  # fmt: skip
    refused = {
        "office/inflating.docx", "pdf/encrypted_password.pdf", "pdf/image_only_scan.pdf", "pdf/truncated.pdf",
        "text/whitespace_only.txt", "text/zero_bytes.txt",
    }  # fmt: skip
    rest = listed - set(MARKS) - elsewhere - refused
    assert {path.partition("/")[0] for path in rest} == {"fixtures", "names"}
    names = {document.name for document in library(hard)}
    assert set(MARKS) <= names
    assert not refused & names
