"""BM25 against a plain textbook version, a second library, and its own explanation."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path

import bm25s
import numpy as np
import pytest
from rank_bm25 import BM25Okapi

from core.errors import RankscopeError, SettingsError
from core.indexes import BM25Index
from core.settings import BM25_VARIANTS as VARIANTS
from core.text import Analyzer

PLAIN = Analyzer("none")
WORDS = [
    "pump",
    "valve",
    "seal",
    "roof",
    "door",
    "gear",
    "oil",
    "water",
    "steel",
    "the",
    "of",
    "and",
    "a",
    "leak",
    "hot",
    "cold",
]


def made_up(n: int, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    weights = 1 / np.arange(1, len(WORDS) + 1)
    return [
        " ".join(random.choice(WORDS, size=random.integers(1, 30), p=weights / weights.sum()))
        for _ in range(n)
    ]


TEXTS = made_up(120, 1)
QUERIES = [*made_up(25, 2), "pump pump pump roof", "unknown pump", "cold unknown hot unknown", "pump"]


def textbook(variant: str, texts: list[str], query: str, k1: float, b: float) -> list[float | None]:
    """The score of each text, None where it shares no word with the query."""
    documents = [text.split() for text in texts]
    n, mean = len(documents), sum(map(len, documents)) / len(documents)
    holding = Counter(word for document in documents for word in set(document))
    idf: dict[str, Callable[[int], float]] = {
        "robertson": lambda df: max(0.0, math.log((n - df + 0.5) / (df + 0.5))),
        "lucene": lambda df: math.log(1 + (n - df + 0.5) / (df + 0.5)),
        "atire": lambda df: math.log(n / df),
        "bm25l": lambda df: math.log((n + 1) / (df + 0.5)),
        "bm25+": lambda df: math.log((n + 1) / df),
    }
    scores: list[float | None] = []
    for document in documents:
        counts, shared, score = Counter(document), False, 0.0
        norm = 1 - b + b * len(document) / mean
        for word in query.split():
            df = holding[word]
            if not df:
                continue
            tf = counts[word]
            shared = shared or tf > 0
            weight = {
                "robertson": tf / (tf + k1 * norm),
                "lucene": tf / (tf + k1 * norm),
                "atire": tf * (k1 + 1) / (tf + k1 * norm),
                "bm25l": (k1 + 1) * (tf / norm + 0.5) / (k1 + tf / norm + 0.5),
                "bm25+": tf * (k1 + 1) / (tf + k1 * norm) + 0.5,
            }[variant]
            score += idf[variant](df) * weight
        scores.append(score if shared and score > 0 else None)
    return scores


def index_of(texts: list[str], variant: str = "lucene", k1: float = 1.5, b: float = 0.75) -> BM25Index:
    index = BM25Index(PLAIN, k1, b, variant)
    index.add_documents(texts)
    return index


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("k1", "b"), [(1.5, 0.75), (0.9, 0.4), (1.2, 0.0), (2.0, 1.0)])
def test_scores_are_those_of_the_textbook(variant: str, k1: float, b: float) -> None:
    index = index_of(TEXTS, variant, k1, b)
    for query in QUERIES:
        expected = {i: s for i, s in enumerate(textbook(variant, TEXTS, query, k1, b)) if s is not None}
        ranking = index.search(query, k=len(TEXTS))
        assert {hit.position for hit in ranking} == set(expected)
        for hit in ranking:
            assert hit.score == pytest.approx(expected[hit.position], rel=1e-9)


@pytest.mark.parametrize("variant", VARIANTS)
def test_scores_are_those_of_bm25s(variant: str) -> None:
    index = index_of(TEXTS, variant)
    theirs = bm25s.BM25(method=variant)
    theirs.index([text.split() for text in TEXTS], show_progress=False)
    for query in QUERIES:
        scores = theirs.get_scores(query.split())
        for hit in index.search(query, k=len(TEXTS)):
            assert hit.score == pytest.approx(float(scores[hit.position]), rel=1e-5)


def test_atire_is_rank_bm25_where_the_idf_agrees() -> None:
    """BM25Okapi has ATIRE's weight with Robertson's idf, so a word's scores differ by the idf only."""
    theirs = BM25Okapi([text.split() for text in TEXTS], k1=1.5, b=0.75)
    index = index_of(TEXTS, "atire")
    n, compared = len(TEXTS), 0
    for word in WORDS:
        df = sum(word in text.split() for text in TEXTS)
        if not 0 < df < n / 2:
            continue
        scores = theirs.get_scores([word])
        for hit in index.search(word, k=n):
            weight = scores[hit.position] / math.log((n - df + 0.5) / (df + 0.5))
            assert hit.score == pytest.approx(weight * math.log(n / df), rel=1e-9)
            compared += 1
    assert compared > 100


@pytest.mark.parametrize("variant", VARIANTS)
def test_explained_parts_sum_to_the_score_shown(variant: str) -> None:
    index = index_of(TEXTS, variant)
    for query in [*QUERIES, "pump valve " * 3_000]:
        for hit in index.search(query, k=10):
            parts = index.explain(query, hit.position)
            assert math.fsum(p.contribution for p in parts) == pytest.approx(hit.score, rel=1e-9)


def test_an_explanation_states_what_can_be_counted_by_hand() -> None:
    index = index_of(["pump seal pump", "seal", "roof door", "door"])
    pump, seal, unknown = index.explain("pump seal pump xyz", 0)
    assert (pump.term, pump.tf, pump.df, pump.count_in_query) == ("pump", 2, 1, 2)
    assert (seal.term, seal.tf, seal.df, seal.count_in_query) == ("seal", 1, 2, 1)
    norm = 1 - 0.75 + 0.75 * 3 / ((3 + 1 + 2 + 1) / 4)
    assert pump.length_norm == seal.length_norm == pytest.approx(norm)
    assert pump.idf == pytest.approx(math.log(1 + (4 - 1 + 0.5) / (1 + 0.5)))
    assert pump.contribution == pytest.approx(2 * pump.idf * 2 / (2 + 1.5 * norm))
    assert (unknown.df, unknown.idf, unknown.contribution) == (0, 0.0, 0.0)
    with pytest.raises(IndexError, match="4"):
        index.explain("pump", 4)


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_shares_no_word_has_no_rank(variant: str) -> None:
    index = index_of(["pump seal", "roof door", "roof pump", "door", "gear"], variant)
    assert set(index.search("seal gear", k=5).positions.tolist()) == {0, 4}
    assert len(index.search("unknown", k=5)) == 0
    assert index.search("seal gear", k=5, allowed=np.array([1, 3, 4])).positions.tolist() == [4]


def test_a_word_of_all_texts_still_scores_under_lucene() -> None:
    index = index_of(["pump", "pump pump oil", "the big old pump of the house", "pump pump"])
    ranking = index.search("pump", k=9)
    assert len(ranking) == 4
    assert (ranking.scores > 0).all()


def test_other_parameters_share_the_tokens() -> None:
    index = index_of(TEXTS)
    for variant in VARIANTS:
        other = index.with_parameters(0.7, 0.3, variant)
        assert other.search("pump roof", k=20) == index_of(TEXTS, variant, 0.7, 0.3).search(
            "pump roof", k=20
        )
    assert index.with_parameters(b=0.1).k1 == 1.5
    assert np.shares_memory(index.with_parameters(k1=2)._ids, index._ids)


def test_extending_leaves_the_old_index_as_it_is() -> None:
    index = index_of(TEXTS[:60])
    before = index.search("pump roof", k=60)
    longer = index.extended(TEXTS[60:])
    assert longer.search("pump roof", k=120) == index_of(TEXTS).search("pump roof", k=120)
    assert index.search("pump roof", k=60) == before
    assert (len(index), len(longer)) == (60, 120)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    "positions", [[], [0], [119], list(range(1, 120, 2)), list(range(40)), list(range(120))]
)
def test_chosen_chunks_are_an_index_of_their_texts_alone(variant: str, positions: list[int]) -> None:
    index = index_of(TEXTS[:100], variant, 1.1, 0.6)
    index.add_documents(TEXTS[100:])  # not gathered yet
    chosen = index.chosen(np.array(positions, dtype=np.int64))
    alone = index_of([TEXTS[position] for position in positions], variant, 1.1, 0.6)
    for made in (chosen, alone):
        made._ready()
    assert list(chosen._vocabulary.items()) == list(alone._vocabulary.items())
    for name in ("_ids", "_offsets"):
        np.testing.assert_array_equal(getattr(chosen, name), getattr(alone, name), strict=True)
    np.testing.assert_equal(astuple(chosen._ready()), astuple(alone._ready()))
    for query in QUERIES:
        assert chosen.search(query, k=50) == alone.search(query, k=50)
        assert chosen.query_notes(query) == alone.query_notes(query)
    for made in (chosen, alone):
        made.add_document("brandnew pump")
    assert chosen.search("brandnew pump", k=50) == alone.search("brandnew pump", k=50)
    assert (len(chosen), len(index)) == (len(positions) + 1, 120)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_saved_index_comes_back_as_it_was(variant: str, tmp_path: Path) -> None:
    index = index_of(TEXTS, variant, 1.1, 0.6)
    index.save(tmp_path)
    loaded = BM25Index.load(tmp_path, PLAIN)
    assert (loaded.k1, loaded.b, loaded.variant, len(loaded)) == (1.1, 0.6, variant, len(TEXTS))
    for query in QUERIES:
        assert loaded.search(query, k=50) == index.search(query, k=50)
    loaded.add_document("brandnew")
    assert loaded.search("brandnew").positions.tolist() == [len(TEXTS)]


@pytest.mark.parametrize("texts", [[], ["", "…"]])
def test_an_index_without_tokens_can_be_saved(texts: list[str], tmp_path: Path) -> None:
    index_of(texts).save(tmp_path)
    loaded = BM25Index.load(tmp_path, PLAIN)
    assert len(loaded) == len(texts)
    assert len(loaded.search("pump", k=3)) == 0
    loaded.add_document("pump")
    assert loaded.search("pump").positions.tolist() == [len(texts)]


def test_another_analyzer_or_damage_asks_for_indexing_again(tmp_path: Path) -> None:
    with pytest.raises(RankscopeError, match="index again"):
        BM25Index.load(tmp_path / "nowhere", PLAIN)
    index_of(TEXTS).save(tmp_path)
    with pytest.raises(RankscopeError, match=r"none.*english.*index again"):
        BM25Index.load(tmp_path, Analyzer("english"))
    for name in ("bm25_offsets.npy", "bm25_weights.npy", "bm25_vocabulary.json", "bm25.json"):
        file = tmp_path / name
        whole = file.read_bytes()
        file.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(RankscopeError, match="index again"):
            BM25Index.load(tmp_path, PLAIN)
        file.write_bytes(whole)
    (tmp_path / "bm25_vocabulary.json").write_text(json.dumps(["pump"]), encoding="utf-8")
    with pytest.raises(RankscopeError, match="incomplete"):
        BM25Index.load(tmp_path, PLAIN)


def test_notes_say_why_a_query_finds_nothing() -> None:
    index = BM25Index()
    index.add_documents(["The pump leaks", "The pump of the house", "A roof"])
    assert index.query_notes("leaking pumps") == ()
    assert "empty" in index.query_notes("  \t")[0]
    assert "stop words" in index.query_notes("the of and is")[0]
    assert "stop words" in index.query_notes("?! 👩🏽‍🔧")[0]
    assert "zzqxv, unknownword" in index.query_notes("zzqxv unknownword")[0]
    assert "weighs every term" in index.with_parameters(variant="robertson").query_notes("pump")[0]


@pytest.mark.parametrize(
    ("arguments", "value"),
    [({"k1": -1}, "-1"), ({"k1": math.nan}, "nan"), ({"b": 1.1}, "1.1"), ({"variant": "x"}, "x")],
)
def test_parameters_out_of_range_are_refused(arguments: dict, value: str) -> None:
    with pytest.raises(SettingsError, match=value):
        BM25Index(**arguments)


def test_positions_outside_the_index_are_refused() -> None:
    for wrong in ([-1], [120]):
        with pytest.raises(ValueError, match="0 to 119"):
            index_of(TEXTS).search("pump", k=1, allowed=np.array(wrong))


def test_identifiers_find_their_own_line_first() -> None:
    lines = [
        "- INC-2031-Q2-007: oil on the floor.",
        "- INC-2031-Q2-008: door does not close.",
        "- INC-2032-Q2-007: lamp out.",
        "- Written in C++, reports in C#, hosted on .NET, charts in R.",
        "- A 4.5-inch hose and a 2.5-inch hose with M6x30 bolts.",
        "- Functions get_user_id and getOrderId.",
        "- Releases v1.4.2 and v1.14.2.",
        "- A plan for the c major scale, no net, no inch of user.",
    ]
    index = BM25Index()
    index.add_documents(lines)
    own = {
        0: ["INC-2031-Q2-007"],
        1: ["INC-2031-Q2-008"],
        2: ["INC-2032-Q2-007"],
        3: ["C++", "C#", ".NET", "R"],
        4: ["4.5-inch", "2.5-inch", "M6x30"],
        5: ["get_user_id", "getOrderId", "user id", "order id"],
        6: ["v1.4.2", "1.14.2"],
    }
    for line, query in ((line, query) for line, queries in own.items() for query in queries):
        ranking = index.search(query, k=3)
        assert ranking.positions[0] == line, query
        assert len(ranking) == 1 or ranking.scores[0] > ranking.scores[1], query


def test_other_scripts_are_found_by_keyword() -> None:
    found_by = {
        "水泵的轴承每六个月更换": "轴承",
        "ポンプの軸受を交換": "軸受",
        "펌프 베어링은 교체합니다": "베어링",
        "ต้องเปลี่ยนตลับลูกปืน": "ตลับลูกปืน",
        "إغلاق صمام الماء": "صمام",
        "Re\u0301sume\u0301": "résumé",
        "Zu\u0308rich": "Zürich",
        "The mainte\u00adnance\u00a0plan": "maintenance plan",
    }
    index = BM25Index()
    index.add_documents(list(found_by))
    for line, query in enumerate(found_by.values()):
        assert index.search(query, k=9).positions.tolist() == [line], query


def test_hard_queries_of_the_evaluation_data(eval_data: Path) -> None:
    index = BM25Index()
    index.add_documents(["The pump leaks", "INC-2023-Q4-011: résumé", "draft of the bold plan"])
    file = eval_data / "hard_inputs" / "fixtures" / "queries_hard.jsonl"
    for line in file.read_text(encoding="utf-8").splitlines():
        query = json.loads(line)["query"]
        ranking = index.search(query, k=3)
        assert (ranking.scores > 0).all()
        assert (len(ranking) == 0) == bool(index.query_notes(query))


def test_figures_of_the_evaluation_data(eval_data: Path) -> None:
    """recall@20 of BM25 with stop words and stemmer on Cranfield: 0.495 (plain words, as published)."""
    folder = eval_data / "data" / "cranfield"
    rows = [
        json.loads(line) for line in (folder / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    index = BM25Index(Analyzer(tokens="words"))
    index.add_documents([row["text"] for row in rows])
    golden: dict[str, set[str]] = {}
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, document, grade = line.split("\t")
        if int(grade) > 0:
            golden.setdefault(query, set()).add(document)
    recalls = []
    for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines():
        query = json.loads(line)
        if wanted := golden.get(str(query["_id"])):
            found = {str(rows[hit.position]["_id"]) for hit in index.search(query["text"], k=20)}
            recalls.append(len(found & wanted) / len(wanted))
    assert np.mean(recalls) == pytest.approx(0.495, abs=0.005)
