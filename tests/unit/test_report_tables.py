"""A trace as plain rows: labels, excerpts, columns, and what a change moved."""

from __future__ import annotations

import math

import pytest

from core.corpus import Corpus
from core.evaluation import Evidence, GoldenQuery
from core.pipeline import replay, search
from core.report.figures import flow_positions, rank_flow
from core.report.marks import Marks, add_marks
from core.report.tables import (
    Reader,
    chunk_label,
    columns,
    excerpt,
    flow_rows,
    item_label,
    moved,
    movement_sentence,
    strip,
)
from core.settings import ChunkSettings, IndexSettings, SearchSettings
from core.text import Analyzer
from core.trace import Trace
from core.types import Document
from tests.fakes import HashEmbedder

TEXTS = (
    "red pump. red pump again. blue valve here. ",
    "red valve only. green pump too. ",
    "grey pipe alone. red red red pump. ",
)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    documents = [
        Document(f"d{at}", f"d{at}.txt", f"Title {at}", text * 3) for at, text in enumerate(TEXTS)
    ]
    chunking = ChunkSettings(strategy="fixed", size=40)
    return Corpus.from_documents(documents, IndexSettings(chunking), HashEmbedder())


@pytest.fixture(scope="module")
def trace(corpus: Corpus) -> Trace:
    return search(corpus, "red pump")


@pytest.fixture(scope="module")
def reader(corpus: Corpus) -> Reader:
    return Reader(corpus, "red pump", Analyzer())


@pytest.mark.parametrize(
    ("item", "label"),
    [(0, "A"), (25, "Z"), (26, "AA"), (51, "AZ"), (52, "BA"), (701, "ZZ"), (702, "AAA")],
)
def test_item_labels_count_like_the_columns_of_a_sheet(item: int, label: str) -> None:
    assert item_label(item) == label


def test_a_chunk_is_labelled_by_its_item_and_its_number_in_it(corpus: Corpus) -> None:
    labels = [chunk_label(corpus, position) for position in range(len(corpus))]
    assert labels[:2] == ["A1", "A2"]
    first_of_b = corpus.item_of.tolist().index(1)
    assert labels[first_of_b] == "B1"
    assert len(set(labels)) == len(corpus)


def test_an_excerpt_is_a_stretch_of_the_source_around_the_most_terms() -> None:
    text = "word " * 100 + "The valve of the pump leaks. " + "word " * 100 + "One valve more."
    terms = frozenset(Analyzer().tokens_of("valve pump leak"))
    found = excerpt(text, terms, Analyzer(), 100)
    shown = "".join(piece for piece, _ in found.pieces)
    assert shown in text
    assert len(shown) <= 100
    assert [piece for piece, marked in found.pieces if marked] == ["valve", "pump", "leaks"]
    assert (found.cut_before, found.cut_after) == (True, True)


def test_an_excerpt_marks_a_compound_once_and_survives_a_text_without_matches() -> None:
    terms = frozenset(Analyzer().tokens_of("INC-2023-Q4-011"))
    found = excerpt("See INC-2023-Q4-011 for more.", terms, Analyzer())
    assert [piece for piece, marked in found.pieces if marked] == ["INC-2023-Q4-011"]
    none = excerpt("\n\nNothing here.", terms, Analyzer())
    assert none.pieces == (("Nothing here.", False),)
    assert (none.cut_before, none.cut_after) == (False, False)
    assert excerpt("", terms, Analyzer()).pieces == ()


def test_columns_show_what_the_trace_ranks(trace: Trace, reader: Reader) -> None:
    made = {column["name"]: column for column in columns(trace, reader, limit=3)}
    assert list(made) == ["items", "bm25", "vector", "fused", "scored", "passages"]
    for name in ("bm25", "vector", "fused", "scored"):
        stage = trace.stage(name)
        lines = made[name]["lines"]
        assert [line["score"] for line in lines] == stage.ranking.scores[:3].tolist()
        assert [line["id"] for line in lines] == [
            trace.corpus.chunk_id(position) for position in stage.ranking.positions[:3].tolist()
        ]
        assert made[name]["count"] == len(stage.ranking)
    for line in made["fused"]["lines"]:
        assert math.fsum(part["term"] for part in line["parts"]) == pytest.approx(
            line["score"], rel=1e-12
        )
        best = min(part["rank"] for part in line["parts"] if part["rank"])
        assert line["move"] == best - line["rank"]
    joined = made["passages"]["lines"][0]
    assert len(joined["members"]) == len(trace.passages[0].members)
    assert (joined["start"], joined["end"]) == (trace.passages[0].start, trace.passages[0].end)


def test_a_selected_chunk_below_the_lines_drawn_is_the_last_line(trace: Trace, reader: Reader) -> None:
    last = int(trace.stage("vector").ranking.positions[-1])
    earlier = replay(trace, trace.settings.with_index("bm25", on=False))
    made = columns(trace, reader, limit=1, before=earlier, selected=last)
    plain = {one["name"]: one for one in columns(trace, reader, limit=1, before=earlier)}
    longer = {one["name"]: one for one in columns(trace, reader, limit=1000, before=earlier)}
    assert made[2]["name"] == "vector"
    assert made[2]["lines"][1]["rank"] == len(trace.stage("vector").ranking) > 2
    added = {}
    for column in made:
        first, *rest = column["lines"]
        assert [first] == plain[column["name"]]["lines"]
        # The very line of a longer column: with its own rank, sums, fate and earlier rank.
        assert all(line == longer[column["name"]]["lines"][line["rank"] - 1] for line in rest)
        added[column["name"]] = len(rest)
    for name in ("bm25", "vector", "fused", "scored"):
        assert added[name] == ((trace.stage(name).ranking.rank_of(last) or 0) > 1)
    item = int(trace.corpus.item_of[last])
    assert added["items"] == ((trace.stage("items").ranking.rank_of(item) or 0) > 1)
    holding = [at for at, one in enumerate(trace.passages) if last in one.members]
    assert added["passages"] == (holding != [] and holding[0] > 0)


def test_a_selected_chunk_below_the_lines_drawn_has_its_own_mark_and_verdict(
    corpus: Corpus, trace: Trace, reader: Reader
) -> None:
    last = int(trace.stage("vector").ranking.positions[-1])
    span = (
        corpus.item_ids[corpus.item_of[last]],
        int(corpus.starts[last]),
        int(corpus.ends[last]),
    )
    marks = Marks.of(corpus, GoldenQuery("1", "red pump", (Evidence(*span, 3),)))
    made = columns(trace, reader, limit=2, selected=last)
    add_marks(made, trace, marks)
    lines = next(one["lines"] for one in made if one["name"] == "vector")
    assert [line["mark"] for line in lines] == ["unjudged", "unjudged", "golden"]
    assert [line["verdict"] for line in lines] == [None, None, 3]


def test_a_selected_chunk_that_is_drawn_or_ranked_nowhere_adds_no_line(
    trace: Trace, reader: Reader
) -> None:
    first = int(trace.stage("fused").ranking.positions[0])
    fused = {one["name"]: one["lines"] for one in columns(trace, reader, 3, selected=first)}["fused"]
    assert [line["rank"] for line in fused] == [1, 2, 3]
    found = set(trace.stage("bm25").ranking.positions.tolist())
    absent = next(at for at in range(len(trace.corpus.item_of)) if at not in found)
    bm25 = {one["name"]: one["lines"] for one in columns(trace, reader, 3, selected=absent)}["bm25"]
    assert [line["rank"] for line in bm25] == [1, 2, 3]


def test_a_convex_combination_shows_weight_and_normalised_score(corpus: Corpus, reader: Reader) -> None:
    minmax = search(corpus, "red pump", SearchSettings(fusion="minmax").with_index("bm25", weight=3.0))
    fused = next(column for column in columns(minmax, reader) if column["name"] == "fused")
    best = next(line for line in fused["lines"] if line["parts"][0]["rank"] == 1)
    assert best["parts"][0]["formula"] == "3/4·1.000"
    assert best["parts"][0]["term"] == 0.75


def test_a_line_that_does_not_go_on_says_why(corpus: Corpus, reader: Reader) -> None:
    one_each = search(corpus, "red pump", SearchSettings(per_item=1, k=3))
    scored = next(column for column in columns(one_each, reader) if column["name"] == "scored")
    kept = [line for line in scored["lines"] if "dropped" not in line]
    assert [line["id"] for line in kept] == [
        corpus.chunk_id(position) for position in one_each.stage("kept").ranking.positions.tolist()
    ]
    reasons = {line["dropped"] for line in scored["lines"] if "dropped" in line}
    assert reasons == {"its item already has 1 chunks above it", "below the first 3: not kept"}


def test_a_line_remembers_its_rank_before_the_last_change(trace: Trace, reader: Reader) -> None:
    after = replay(trace, trace.settings.with_index("bm25", on=False))
    fused = next(one for one in columns(after, reader, before=trace) if one["name"] == "fused")
    old = trace.stage("fused").ranking
    for line, position in zip(
        fused["lines"], after.stage("fused").ranking.positions.tolist(), strict=False
    ):
        was = old.rank_of(position) or 0
        assert line.get("was", line["rank"]) == was


def test_the_strip_counts_every_stage_and_its_milliseconds(trace: Trace) -> None:
    steps = {step["name"]: step for step in strip(trace)}
    assert list(steps) == ["items", "bm25", "vector", "fused", "scored", "kept", "passages"]
    assert (steps["items"]["count"], steps["items"]["of"]) == (3, 3)
    assert steps["vector"]["ms"] == trace.record.milliseconds["vector"]
    assert steps["items"]["ms"] == trace.record.milliseconds["items.lexical"]
    assert steps["kept"]["of"] == len(trace.stage("scored").ranking)


def test_moved_counts_ranks_entries_and_scores(trace: Trace) -> None:
    assert moved(trace, trace) == {"moved": 0, "entered": 0, "gone": 0, "rescored": 0}
    fewer = replay(trace, trace.settings.replace(k=1))
    change = moved(trace, fewer)
    before = {(one.item, one.start, one.end) for one in trace.passages}
    after = {(one.item, one.start, one.end) for one in fewer.passages}
    assert change["entered"] == len(after - before)
    assert change["gone"] == len(before - after)
    rescored = moved(trace, replay(trace, trace.settings.replace(k_rrf_score=50)))
    assert rescored["moved"] == rescored["entered"] == 0
    assert rescored["rescored"] == len(trace.passages)


@pytest.mark.parametrize(
    ("counts", "told"),
    [
        ((0, 0, 0, 0), "no result moved"),
        ((0, 0, 0, 4), "scores changed, no result moved"),
        ((1, 0, 0, 4), "1 result moved"),
        ((3, 1, 2, 0), "3 results moved, 1 is new, 2 dropped out"),
    ],
)
def test_movement_in_words(counts: tuple[int, ...], told: str) -> None:
    assert (
        movement_sentence(dict(zip(("moved", "entered", "gone", "rescored"), counts, strict=True)))
        == told
    )


def test_flow_rows_name_the_stage_at_which_a_chunk_is_lost(corpus: Corpus) -> None:
    short = search(corpus, "red pump", SearchSettings(k=1, merge=False))
    best, second = short.stage("scored").ranking.positions[:2].tolist()
    kept, lost = flow_rows(short, [best, second])
    assert kept["ranks"]["passages"] == 1
    assert kept["lost"] is None
    assert (lost["ranks"]["scored"], lost["ranks"]["kept"], lost["lost"]) == (2, None, "kept")
    unheard = search(
        corpus, "red pump", SearchSettings().with_index("bm25", weight=0.0).with_index("vector", depth=1)
    )
    only_bm25 = next(
        position
        for position in unheard.stage("bm25").ranking.positions.tolist()
        if unheard.stage("vector").ranking.rank_of(position) is None
    )
    assert flow_rows(unheard, [only_bm25])[0]["lost"] == "fused"


def test_the_rank_flow_draws_a_line_a_chunk_and_a_cross_where_it_is_lost(corpus: Corpus) -> None:
    short = search(corpus, "red pump", SearchSettings(k=1, merge=False))
    best, second = short.stage("scored").ranking.positions[:2].tolist()
    figure = rank_flow(short, top=2, selected=second)
    drawn = {line.name: line for line in figure.data}
    assert set(drawn) == {chunk_label(corpus, position) for position in flow_positions(short, 2, second)}
    through, lost = drawn[chunk_label(corpus, best)], drawn[chunk_label(corpus, second)]
    assert (through.x[-1], through.y[-1], through.marker.symbol[-1]) == ("Passages", 1, "circle")
    assert (lost.x[-1], lost.y[-1], lost.marker.symbol[-1]) == ("Score fusion", 2, "x")
    assert lost.line.width > through.line.width


def test_an_excerpt_opens_where_the_terms_stand_together() -> None:
    """The first part number shares a part with the one asked for; the card must show the latter."""
    text = " ".join(f"P-{number:03} holds {number} litres." for number in range(80, 100))
    found = excerpt(text, frozenset(Analyzer().tokens_of("P-087")), Analyzer(), 200)
    marked = [piece for piece, hit in found.pieces if hit]
    assert "P-087" in marked[:3]
    assert "P-081" not in "".join(piece for piece, _ in found.pieces)
