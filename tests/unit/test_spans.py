"""Runs of text under the same chunks, against a letter-by-letter count."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.report.spans import ChunkMap, Run, seen_end
from core.types import Chunk
from tests.fakes import HashEmbedder


def test_overlap_is_a_run_of_its_own_and_names_where_chunks_begin_and_end() -> None:
    runs = ChunkMap([(0, 10), (7, 15), (17, 20)]).runs(0, 20)

    assert runs == [
        Run(0, 7, 1, 0, 0, False, (0,), ()),
        Run(7, 10, 2, 0, 1, False, (1,), ()),
        Run(10, 15, 1, 0, 1, False, (), (0,)),
        Run(15, 17, 0, 0, None, False, (), (1,)),
        Run(17, 20, 1, 0, 2, False, (2,), ()),
    ]


def test_what_the_model_does_not_read_is_counted_for_each_chunk() -> None:
    runs = ChunkMap([(0, 10), (7, 15)], seen=[8, 15]).runs(0, 15)

    assert [(r.start, r.end, r.depth, r.unseen) for r in runs] == [
        (0, 7, 1, 0), (7, 8, 2, 0), (8, 10, 2, 1), (10, 15, 1, 0),
    ]  # fmt: skip


def test_a_marked_span_is_cut_out() -> None:
    runs = ChunkMap([(0, 10)]).runs(0, 10, mark=(3, 5))

    assert [(r.start, r.end, r.marked) for r in runs] == [(0, 3, False), (3, 5, True), (5, 10, False)]


def test_a_window_inside_a_chunk_belongs_to_it_without_beginning_it() -> None:
    assert ChunkMap([(0, 100), (90, 200)]).runs(20, 30) == [Run(20, 30, 1, 0, 0, False, (), ())]


def test_the_chunk_at_a_position() -> None:
    chunks = ChunkMap([(0, 10), (7, 15), (17, 20)])

    assert [chunks.at(p) for p in (0, 7, 9, 14, 15, 16, 17, 19)] == [0, 1, 1, 1, None, None, 2, 2]


def test_a_window_shows_what_stands_before_its_place_and_stays_in_the_text() -> None:
    chunks = ChunkMap([(at, at + 100) for at in range(0, 1000, 100)])

    assert chunks.window(1000, 500, width=200) == (480, 680)
    assert chunks.window(1000, 0, width=200) == (0, 200)
    assert chunks.window(1000, 990, width=200) == (800, 1000)
    assert chunks.window(50, 20, width=200) == (0, 50)


def test_a_window_holds_at_most_400_chunks_and_still_the_place_asked_for() -> None:
    spans = [(at, at + 20) for at in range(19_981)]
    chunks = ChunkMap(spans)

    for around in (0, 5_000, 19_999):
        start, stop = chunks.window(20_001, around)
        assert start <= around < stop
        assert sum(start <= s < stop for s, _ in spans) <= 400


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 30), st.integers(0, 30)), max_size=12),
    st.integers(0, 40),
    st.integers(1, 60),
    st.tuples(st.integers(0, 50), st.integers(1, 40)),
)
def test_runs_agree_with_counting_letter_by_letter(
    made: list[tuple[int, int, int]], start: int, width: int, mark: tuple[int, int]
) -> None:
    made = sorted(made)
    spans = [(at, at + length) for at, length, _ in made]
    seen = [min(at + read, at + length) for at, length, read in made]
    stop, marked = start + width, (mark[0], mark[0] + mark[1])

    runs = ChunkMap(spans, seen).runs(start, stop, marked)

    assert runs[0].start == start
    assert [start, *(r.end for r in runs)] == [*(r.start for r in runs), stop]
    for run in runs:
        for at in range(run.start, run.end):
            holding = [n for n, (s, e) in enumerate(spans) if s <= at < e]
            assert run.depth == len(holding)
            assert run.chunk == (holding[-1] if holding else None)
            assert run.unseen == sum(seen[n] <= at for n in holding)
            assert run.marked == (marked[0] <= at < marked[1])
        assert run.begins == tuple(n for n, (s, _) in enumerate(spans) if s == run.start)
    shown_ends = {(run.start, n) for run in runs for n in run.ends}
    assert shown_ends == {(e, n) for n, (s, e) in enumerate(spans) if s < stop and start < e < stop}


def test_context_before_the_text_is_read_first() -> None:
    embedder = HashEmbedder(max_tokens=6)  # two special tokens and four words
    chunk = Chunk("d", 100, 123, "four five six seven one", columns="one two")

    assert seen_end(chunk, embedder, 9) == 100 + len("four five")
    assert seen_end(chunk, embedder, 6) == 123
