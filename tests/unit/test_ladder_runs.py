"""The ladder: which steps there are with and without a key, what each gives, stopped and gone on with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from core import embedding
from core.behaviour.events import Event
from core.collection import Collection, create
from core.corpus.first_stage import FirstStage, first_stage_of
from core.embedding import register_embedder
from core.errors import Stopped
from core.evaluation import EvaluationError, Evidence, GoldenQuery, measure, read_judgements
from core.evaluation.corpora import Corpora
from core.evaluation.ladder import PUBLISHED, Ladder, Step, ladder_steps, run_ladder, written_contexts
from core.evaluation.results import ResultsCache
from core.loading import load
from core.protocols import Scores
from core.reranking import register_reranker, unregister_reranker
from core.rules import Rules
from core.sample import ensure_sample
from core.settings import ChunkSettings, ContextSettings, IndexSettings, SearchSettings
from tests.fakes import HashEmbedder
from tests.unit.test_evaluation import WORDS, document
from tests.unit.test_runner import Priced

INDEX = IndexSettings(model="hash")
SEARCH = SearchSettings(rerank="length")
SAMPLE = Path(__file__).resolve().parents[2] / "data" / "sample_queries.jsonl"


class Length(Priced):
    name, paid = "length", False

    def scores(self, query: str, texts: Sequence[str]) -> Scores:
        return replace(super().scores(query, texts), dollars=0.0)


@pytest.fixture(autouse=True)
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path / "home"))
    register_embedder(HashEmbedder())
    register_reranker("length", lambda model: Length())
    register_reranker("priced", lambda model: Priced())
    yield
    unregister_reranker("length")
    unregister_reranker("priced")
    embedding._loaded.pop("hash", None)


def documents() -> list:
    made = []
    for item in range(40):
        words = [WORDS[(item * 3 + step * step) % 10] for step in range(12)]
        made.append(document(" ".join(words), f"d{item}", f"{item}.txt"))
    return made


def queries() -> list[GoldenQuery]:
    return [
        GoldenQuery(f"q{n}", f"{WORDS[n % 10]} {WORDS[(n * 3) % 10]}", (Evidence(f"d{n * 3}", 0, 20),))
        for n in range(10)
    ]


def test_without_a_key_what_stands_in_is_labelled() -> None:
    steps = ladder_steps(INDEX, SearchSettings(), has_key=False)
    assert [(step.name, step.title, step.offline) for step in steps] == [
        ("embeddings", "embeddings", False),
        ("bm25", "+ BM25", False),
        ("context", "+ context (offline)", True),
        ("rerank", "+ rerank (offline)", True),
        ("stages", "+ two stages, merged", True),
    ]
    assert [step.index.context.writer for step in steps] == ["none", "none"] + ["headings"] * 3
    assert [step.search.rerank for step in steps] == ["none"] * 3 + ["late"] * 2
    assert [step.search.two_stage for step in steps] == [False] * 4 + [True]
    assert [step.search.index("bm25").on for step in steps] == [False] + [True] * 4
    assert steps[3].search.rerank_depth == 50
    assert steps[3].search.rerank_fuses
    assert steps[4].stage == "passages"


def test_signals_that_are_there_are_a_step_of_their_own() -> None:
    shown = Event("amber", "d0", "open", 1, "2026-01-01T00:00:00+00:00")
    rules = Rules.from_toml('[[rule]]\nname = "top"\ndocuments = ["0.txt"]\npin = 1\n')
    stage = FirstStage(rules=rules, events=(shown,))
    search = SearchSettings(popularity_field="stock", recency_field="day").with_signal(
        "recency", weight=0.0
    )
    *_, before, last = ladder_steps(INDEX, search, has_key=False, first_stage=stage)
    assert (last.name, last.title, last.note) == ("signals", "+ signals", "clicks, popularity, rules")
    names = ("lexical", "semantic", "clicks", "popularity", "rules")
    on = [[step.search.signal(name).on for name in names] for step in (before, last)]
    assert on == [[True, True, False, False, False], [True] * 5]
    assert (last.stage, last.search.two_stage, last.offline) == ("passages", True, True)
    off = search.with_signal("clicks", on=False)
    kept = FirstStage(rules=replace(rules, rules=(replace(rules.rules[0], on=False),)), events=(shown,))
    assert ladder_steps(INDEX, off, False, first_stage=kept)[-1].note == "popularity"
    plain = ladder_steps(INDEX, SearchSettings(), False, first_stage=FirstStage(kinds={"a": "text"}))
    assert [step.name for step in plain][-1] == "stages"


def test_the_step_of_rules_is_measured_with_those_of_the_collection() -> None:
    collection = create("ruled")
    for one in documents()[:6]:
        collection.add(load(one.text.encode(), one.name), one.name, len(one.text))
    names, ids = collection.documents().names, collection.documents().ids
    golden = GoldenQuery("q", WORDS[0], (Evidence(ids[names.index("0.txt")], 0, 20),))
    collection.save_rules('[[rule]]\nname = "gone"\ndocuments = ["0.txt"]\nhide = true\n')
    search = SearchSettings(rerank="length")
    steps = ladder_steps(INDEX, search, False, first_stage=first_stage_of(collection))
    *_, before, last = run_ladder(collection, [golden], steps).results
    assert before.failure is not None
    assert last.failure is not None
    assert (before.failure.mean, last.failure.mean) == (0, 1)
    assert last.against is not None
    assert (last.against.names, last.against.losses) == (("+ two stages, merged", "+ signals"), 1)


def test_with_a_key_and_written_contexts_nothing_stands_in() -> None:
    written = ContextSettings(writer="claude", model="claude-haiku-5-5")
    steps = ladder_steps(INDEX, SearchSettings(), has_key=True, written=written)
    assert not any(step.offline for step in steps)
    assert steps[2].title == "+ context"
    assert steps[2].index.context == written
    assert steps[3].search.rerank == "claude"
    assert steps[3].search.rerank_depth == 150


def test_all_else_is_as_set_and_deep_enough_for_20() -> None:
    index = INDEX.replace(chunking=ChunkSettings("fixed", size=500), context=ContextSettings("headings"))
    search = SearchSettings(k=5, k_rrf=7, rerank="length", rerank_depth=3).with_index(
        "bm25", on=False, weight=2.0, depth=4
    )
    for step in ladder_steps(index, search, has_key=True):
        assert step.index.chunking == index.chunking
        assert (step.search.k, step.search.k_rrf) == (20, 7)
        assert step.search.index("bm25").weight == 2.0
        assert step.search.index("bm25").depth == 20
        assert step.search.rerank_depth == 20
    assert step.search.rerank == "length"


def test_published_figures_fall_and_name_steps_there_are() -> None:
    assert [round(100 * one.failure, 1) for one in PUBLISHED] == [5.7, 3.7, 2.9, 1.9]
    names = {step.name for step in ladder_steps(INDEX, SEARCH, False)}
    assert {one.step for one in PUBLISHED} - {""} <= names


def test_each_step_is_what_measuring_it_gives() -> None:
    steps = ladder_steps(INDEX, SEARCH, has_key=False)
    seen: list[Ladder] = []
    ladder = run_ladder(documents(), queries(), steps, so_far=seen.append)
    assert ladder.complete
    assert [(len(one.results), one.complete) for one in seen] == [(n, False) for n in range(1, 6)]
    assert seen[1].results[1].against.comparisons == 1  # type: ignore[union-attr]
    assert [result.step for result in ladder.results] == steps
    for result in ladder.results:
        corpus = Corpora(documents()).of(result.step.index)
        alone = measure(corpus, queries(), result.step.search)
        assert result.failure is not None
        assert result.values is not None
        assert result.failure.mean == pytest.approx(1 - alone.stage(result.step.stage).recall(20))
        assert result.failure.low <= result.failure.mean <= result.failure.high
        assert result.chunks == len(corpus)
        assert result.dollars == result.due == 0
    first, second, *_ = ladder.results
    assert first.against is None
    assert second.against is not None
    assert second.against.difference == pytest.approx(np.mean(second.values - first.values))
    steps_up = [one.against for one in ladder.results if one.against]
    assert len(steps_up) == 4
    differing = [one for one in steps_up if one.ties < one.queries]
    assert {one.comparisons for one in differing} == {len(differing)}
    assert second.against.names == ("embeddings", "+ BM25")
    assert 0 < first.failure.mean < 1


def standing_in(steps: list[Step], rerank: str | None) -> list[Step]:
    """The steps with another reranker than late, which needs the real model, to stand in."""
    return [
        replace(one, stand_in=one.stand_in.replace(rerank=rerank) if rerank and one.stand_in else None)
        for one in steps
    ]


def test_where_there_is_no_leave_to_pay_what_stands_in_is_measured_and_labelled() -> None:
    steps = ladder_steps(INDEX, SearchSettings(rerank="priced"), has_key=True)
    assert [one.stand_in and one.stand_in.rerank for one in steps] == [None] * 3 + ["late"] * 2
    steps = standing_in(steps, "length")
    held = run_ladder(documents(), queries(), steps).results
    assert all(one.failure for one in held)
    assert [one.step.title for one in held[3:]] == [
        "+ rerank (length for priced)",
        "+ two stages, merged (length for priced)",
    ]
    assert all(one.step.offline for one in held[3:])
    assert [one.dollars for one in held] == [0] * 5
    assert held[3].due == pytest.approx(1.0)
    assert "it would cost at most about $1.0000" in held[3].notes[0]
    assert "length, which runs here, stands in for priced" in held[3].notes
    for one in held[3:]:
        alone = measure(Corpora(documents()).of(one.step.index), queries(), one.step.search)
        assert one.failure is not None
        assert one.failure.mean == pytest.approx(1 - alone.stage(one.step.stage).recall(20))
    paid = run_ladder(documents(), queries(), steps[:4], pay=True).results[3]
    assert (paid.step, paid.due) == (steps[3], 0)
    assert paid.dollars == pytest.approx(1.0)
    assert paid.failure is not None


def test_with_nothing_to_stand_in_a_held_reranker_has_a_price_and_no_figure() -> None:
    steps = standing_in(ladder_steps(INDEX, SearchSettings(rerank="priced"), has_key=False), None)
    held = run_ladder(documents(), queries(), steps)
    assert [result.failure is None for result in held.results] == [False, False, False, True, True]
    assert held.results[3].due == pytest.approx(1.0)


def test_a_model_that_cannot_be_had_costs_its_step_only() -> None:
    steps = ladder_steps(INDEX, SEARCH, has_key=False)
    away = INDEX.replace(model="voyage:voyage-3.5")
    ladder = run_ladder(
        documents(), queries(), [steps[0], *ladder_steps(away, SEARCH, False)[1:2], steps[1]]
    )
    assert [result.failure is None for result in ladder.results] == [False, True, False]
    assert "vectors by voyage:voyage-3.5 would cost about $" in ladder.results[1].notes[0]
    assert ladder.results[2].against is not None


def test_stopped_it_gives_what_is_done_and_goes_on_from_there(tmp_path: Path) -> None:
    steps = ladder_steps(INDEX, SEARCH, has_key=False)
    cache = ResultsCache(tmp_path)
    heard: list[str] = []

    def stop(what: str, done: int, total: int) -> None:
        heard.append(what)
        if what == "+ context (offline): searching" and done == 5:
            raise Stopped("enough")

    part = run_ladder(documents(), queries(), steps, stop, cache)
    assert not part.complete
    assert [result.step.name for result in part.results] == ["embeddings", "bm25"]
    assert "embeddings: indexing" in heard
    embedder = embedding.load_embedder("hash")
    assert isinstance(embedder, HashEmbedder)
    before = embedder.queries
    whole = run_ladder(documents(), queries(), steps, None, cache)
    assert whole.complete
    assert embedder.queries - before == 5 + 10 + 10
    assert figures(whole) == figures(run_ladder(documents(), queries(), steps))


def figures(ladder: Ladder) -> list[object]:
    return [(result.failure, result.against) for result in ladder.results]


def test_a_collection_s_ladder_leaves_its_own_corpus_alone() -> None:
    collection = ensure_sample()
    assert isinstance(collection, Collection)
    judged = read_judgements(SAMPLE.read_text(encoding="utf-8"), collection.documents())
    assert written_contexts(collection, ContextSettings()) is None
    ladder = run_ladder(collection, judged.queries[::6], ladder_steps(INDEX, SEARCH, False))
    assert all(result.failure is not None for result in ladder.results)
    assert not (collection.folder / "corpus").exists()


def test_no_query_with_evidence_is_an_error() -> None:
    with pytest.raises(EvaluationError, match="none of 1 queries has evidence"):
        run_ladder(documents(), [GoldenQuery("q", "amber")], ladder_steps(INDEX, SEARCH, False))
