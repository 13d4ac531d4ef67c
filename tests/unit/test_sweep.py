"""Sweeps: the grid is what measuring each point gives; budgets, stop and resume; luck shows on the other half."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from core import embedding
from core.collection import create
from core.corpus import build_corpus
from core.embedding import register_embedder
from core.errors import RankscopeError, SettingsError, Stopped
from core.evaluation import EvaluationError, GoldenQuery, measure
from core.evaluation import sweep as sweeping
from core.evaluation.corpora import Corpora
from core.evaluation.metrics import per_query
from core.evaluation.optimiser import Optimiser
from core.evaluation.results import ResultsCache
from core.evaluation.space import Range, Space
from core.evaluation.sweep import Sweep, Trial, run_sweep
from core.loading import load
from core.pipeline import search
from core.reranking import register_reranker, unregister_reranker
from core.settings import IndexSettings, SearchSettings, Settings
from tests.fakes import HashEmbedder
from tests.unit.test_evaluation import WORDS, document
from tests.unit.test_ladder_runs import documents, queries
from tests.unit.test_runner import Priced

BASE = Settings(IndexSettings(model="hash"), SearchSettings(k=20))
SEARCHED = {"search.k_rrf": [1, 60], "search.items": [3, 30], "search.indexes.bm25.weight": [0.0, 2.5]}
SPACE = Space(SEARCHED, BASE)
CUT = Space({"index.chunking.size": [30, 60], "search.k_rrf": [1, 60]}, BASE)


@pytest.fixture(autouse=True)
def embedder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HashEmbedder]:
    monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path / "home"))
    made = HashEmbedder()
    register_embedder(made)
    register_reranker("priced", lambda model: Priced())
    yield made
    unregister_reranker("priced")
    embedding._loaded.pop("hash", None)


def sweep(space: Space = SPACE, **how: object) -> Sweep:
    return run_sweep(documents(), queries(), space, **{"metric": "mrr@10", **how})  # type: ignore[arg-type]


def as_fast(one: Trial, other: Trial) -> bool:
    """As trials are told apart by their time."""
    return one.milliseconds <= other.milliseconds * 1.1 + 1


def value(settings: Settings, asked: list[GoldenQuery], metric: str = "mrr", k: int = 10) -> float:
    measured = measure(Corpora(documents()).of(settings.index), asked, settings.search)
    return float(per_query(measured.stage("kept"), metric, k).mean())


class TestSpace:
    def test_a_point_is_the_base_with_its_values(self) -> None:
        point = {"index.chunking.size": 400, "search.indexes.bm25.weight": 2.5, "search.merge": False}
        space = Space({name: [one] for name, one in point.items()}, BASE)
        assert list(space.grid()) == [point]
        made = space.settings(point)
        assert (made.index.chunking.size, made.index.model) == (400, "hash")
        assert (made.search.index("bm25").weight, made.search.merge) == (2.5, False)
        assert Settings.from_toml(made.to_toml()) == made
        assert tomllib.loads(made.to_toml())["index"]["chunking"]["size"] == 400

    def test_the_grid_has_every_point_once(self) -> None:
        assert SPACE.size == 8
        points = [tuple(point.values()) for point in SPACE.grid()]
        assert points == list(product(*SEARCHED.values()))
        assert Space({"search.k": [5, 5, 9]}).size == 2

    @pytest.mark.parametrize(
        ("values", "message"),
        [
            ({}, "needs a setting to try"),
            ({"search.k": []}, "search.k has no values"),
            ({"search.speed": [1]}, "no setting search.speed"),
            ({"search.k": [0]}, "k is 0"),
            ({"search.k": Range(1, 10**9)}, "k is 1000000000"),
        ],
    )
    def test_what_cannot_be_tried_is_named(self, values: dict, message: str) -> None:
        with pytest.raises(SettingsError, match=message):
            Space(values)

    def test_a_grid_beyond_all_memory_is_refused_at_once(self) -> None:
        names = ("k_rrf", "k", "items", "rerank_depth", "merge_gap")
        space = Space({f"search.{name}": list(range(1, 101)) for name in names})
        with pytest.raises(SettingsError, match="the grid has 10,000,000,000 points"):
            sweep(space, trials=3)

    def test_ranges(self) -> None:
        with pytest.raises(SettingsError, match="holds nothing"):
            Range(3, 3)
        with pytest.raises(SettingsError, match="no logarithm"):
            Range(0, 3, log=True)
        with pytest.raises(SettingsError, match=r"search\.k is a range"):
            list(Space({"search.k": Range(1, 9)}).grid())
        assert Space({"search.k": Range(1, 9)}).size is None


class TestGrid:
    def test_each_point_is_what_measuring_it_gives(self) -> None:
        found = sweep()
        tuning = queries()[::2]
        assert [trial.point for trial in found.trials] == list(SPACE.grid())
        for trial in found.trials:
            assert trial.settings == SPACE.settings(trial.point)
            assert trial.value == pytest.approx(value(trial.settings, tuning))
            assert trial.milliseconds > 0
            assert trial.dollars == 0
        assert found.default.value == pytest.approx(value(BASE, tuning))
        assert found.queries == 5
        assert found.complete
        assert (found.left, found.dollars, found.notes) == (0, 0, ())

    def test_the_best_has_the_best_value_and_of_equal_ones_the_least_time(self) -> None:
        found = sweep()
        values = [trial.value for trial in found.trials if trial.value is not None]
        assert len(set(values)) > 1
        assert found.best is not None
        assert found.best.value == max(values)
        equal = [trial for trial in found.trials if trial.value == max(values)]
        assert all(as_fast(found.best, trial) for trial in equal)

    def test_where_nothing_is_better_the_best_is_what_it_began_with(self) -> None:
        worse = Space({"search.indexes.bm25.weight": [0.0], "search.indexes.vector.weight": [0.0]}, BASE)
        found = sweep(worse)
        (trial,) = found.trials
        assert found.default.value is not None
        assert trial.value is not None
        assert trial.value < found.default.value
        assert found.best is found.default
        assert found.frontier[0] is found.default
        assert found.held_out is not None
        assert found.held_out.winner == found.held_out.default
        # Neither is what is as good only.
        alike = sweep(Space({"search.merge_gap": [1, 2]}, BASE))
        assert [one.value for one in alike.trials] == [alike.default.value] * 2
        assert alike.best is alike.default
        assert alike.frontier == (alike.default,)

    def test_few_chunks_are_named_where_the_metric_tells_nothing(self) -> None:
        note = (
            "40 chunks: the first 50 hold them all, so recall@50 cannot tell settings apart; look at MRR, "
            "nDCG or recall@5"
        )
        large = BASE.replace(search=BASE.search.replace(k=50))
        space = Space({"search.k_rrf": [1]}, large)
        assert [one for one in sweep(space, metric="recall@50").notes if "cannot tell" in one] == [note]
        assert sweep(space, metric="mrr@50").notes == ()

    def test_a_model_that_cannot_be_loaded_is_asked_for_once(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked = []

        def load_embedder(model: str) -> HashEmbedder:
            asked.append(model)
            if model == "nosuch/model":
                raise RankscopeError(f"no model {model}")
            return real(model)

        real = sweeping.load_embedder
        monkeypatch.setattr(sweeping, "load_embedder", load_embedder)
        space = Space({"index.model": ["nosuch/model"], "search.k_rrf": [1, 2, 3]}, BASE)
        found = sweep(space)
        assert [one.failed for one in found.trials] == ["no model nosuch/model"] * 3
        assert asked.count("nosuch/model") == 1

    def test_less_is_better_where_failures_are_counted(self) -> None:
        found = sweep(metric="failure@10")
        assert found.best is not None
        values = [trial.value for trial in found.trials if trial.value is not None]
        assert found.best.value == min(values) < max(values)

    def test_none_beats_the_frontier_and_it_beats_the_rest(self) -> None:
        found = sweep()
        assert found.frontier[0] is found.best

        def no_worse(one: Trial, other: Trial) -> bool:
            assert one.value is not None
            assert other.value is not None
            return one.value >= other.value and as_fast(one, other) and one.dollars <= other.dollars

        for trial in found.trials:
            others = [one for one in found.frontier if one is not trial]
            assert (trial in found.frontier) != any(no_worse(one, trial) for one in others)

    def test_other_chunks_are_other_corpora(self, embedder: HashEmbedder) -> None:
        found = sweep(CUT)
        small, large = found.trials[0], found.trials[2]
        assert small.chunks > large.chunks > 40
        assert small.vector_bytes == small.chunks * 64 * 4
        for trial in found.trials:
            assert trial.value == pytest.approx(value(trial.settings, queries()[::2]))

    def test_a_part_of_the_grid_drawn_at_random_is_the_same_each_time(self) -> None:
        some = sweep(trials=3)
        assert len(some.trials) == 3
        assert [trial.point for trial in some.trials] == [
            trial.point for trial in sweep(trials=3).trials
        ]
        assert all(trial.point in list(SPACE.grid()) for trial in some.trials)

    def test_a_point_that_cannot_be_is_named_and_the_others_go_on(self) -> None:
        space = Space(
            {"index.chunking.size": [30, 60], "index.chunking.overlap": [0, 40], "search.k": [5, 20]},
            BASE,
        )
        found = sweep(space, metric="recall@10")
        why = {tuple(trial.point.values()): trial.failed for trial in found.trials}
        assert "overlap must be smaller" in why[30, 40, 20]
        assert "it was asked for 5 only" in why[60, 0, 5]
        assert why[60, 40, 20] == why[30, 0, 20] == ""
        assert found.best is not None
        assert found.best.settings.search.k == 20

    def test_a_metric_that_is_none_is_an_error(self) -> None:
        with pytest.raises(EvaluationError, match="no metric 'speed@3'"):
            sweep(metric="speed@3")


class TestHeldOut:
    def test_the_winner_and_the_default_on_the_queries_that_did_not_choose(self) -> None:
        found = sweep()
        assert found.best is not None
        assert found.held_out is not None
        reporting = queries()[1::2]
        assert found.held_out.queries == 5
        assert found.held_out.winner.mean == pytest.approx(value(found.best.settings, reporting))
        assert found.held_out.default.mean == pytest.approx(value(BASE, reporting))
        comparison = found.held_out.comparison
        assert comparison.names == ("default", "winner")
        assert comparison.difference == pytest.approx(
            found.held_out.winner.mean - found.held_out.default.mean
        )

    def test_places_count_queries_without_evidence_too(self) -> None:
        silent = GoldenQuery("silent", "nothing")
        found = run_sweep(documents(), [silent, *queries()], SPACE, "mrr@10")
        assert found.best is not None
        assert found.best.value == pytest.approx(value(found.best.settings, queries()[1::2]))

    def test_without_a_split_all_choose_and_nothing_is_reported(self) -> None:
        found = sweep(split="none")
        assert found.queries == 10
        assert found.held_out is None
        with_one = run_sweep(documents(), [*queries()[:1], GoldenQuery("x", "y")], SPACE, "mrr@10")
        assert with_one.held_out is None
        assert "no query of the other half has evidence" in with_one.notes[0]


class TestGoingOn:
    def test_stopped_it_gives_what_is_done_and_goes_on_from_there(
        self, tmp_path: Path, embedder: HashEmbedder
    ) -> None:
        cache = ResultsCache(tmp_path)

        def stop(what: str, done: int, total: int) -> None:
            if what.startswith("2 points done") and done == 2 and "searching" in what:
                raise Stopped("enough")

        part = sweep(CUT, progress=stop, cache=cache)
        assert not part.complete
        assert [trial.failed for trial in part.trials] == ["", ""]
        assert (part.left, part.held_out, part.notes) == (2, None, ("enough",))
        before, calls = embedder.queries, embedder.calls
        whole = sweep(CUT, cache=cache)
        assert whole.complete
        assert whole.best is whole.default
        # Of the second corpus the other three queries, and the reported half of the default; vectors of chunks
        # are there, and so is all of the first corpus, and the time that embedding takes.
        assert embedder.queries - before == 3 + 5
        assert embedder.calls == calls
        assert whole.trials[:2] == part.trials
        before = embedder.queries
        again = sweep(CUT, cache=cache)
        assert embedder.queries == before
        assert again.trials == whole.trials

    def test_what_is_kept_holds_for_the_same_queries_and_metric_only(self, tmp_path: Path) -> None:
        cache = ResultsCache(tmp_path)
        sweep(cache=cache)
        other = sweep(metric="recall@2", cache=cache)
        for trial in other.trials:
            assert trial.value == pytest.approx(value(trial.settings, queries()[::2], "recall", 2))
        fewer = run_sweep(documents(), queries()[:4], SPACE, "mrr@10", cache=cache)
        assert fewer.default.value == pytest.approx(value(BASE, queries()[:4:2]))

    def test_no_seconds_no_trials(self) -> None:
        found = sweep(budget_seconds=0.0)
        assert not found.complete
        assert (found.trials, found.best, found.held_out, found.left) == ((), None, None, 8)
        assert found.default.failed
        assert "the seconds are used up" in found.notes[0]

    def test_time_enough_is_no_limit(self) -> None:
        assert sweep(budget_seconds=300.0).complete


class TestMoney:
    SPACE = Space({"search.rerank": ["none", "priced"], "search.rerank_depth": [20, 25]}, BASE)

    def test_nothing_is_paid_unasked_and_the_price_is_told(self) -> None:
        found = sweep(self.SPACE)
        free, held = found.trials[0], found.trials[2]
        assert free.value is not None
        assert (held.value, found.dollars) == (None, 0)
        assert held.due == pytest.approx(0.5)
        assert "it would cost at most about $0.5000" in held.failed
        assert found.best is found.default

    def test_the_budget_pays_and_is_not_passed(self, tmp_path: Path) -> None:
        cache = ResultsCache(tmp_path)
        part = sweep(self.SPACE, budget_dollars=1.25, cache=cache, split="none")
        assert part.dollars == pytest.approx(1.2)
        assert [trial.value is None for trial in part.trials] == [False, False, False, True]
        # Two paid for; for two others both depths give the same list, which is paid for once.
        assert part.trials[3].due == pytest.approx(0.6)
        whole = sweep(self.SPACE, budget_dollars=9.0, cache=cache, split="none")
        assert whole.dollars == pytest.approx(0.6)
        assert [trial.dollars for trial in whole.trials] == pytest.approx([0, 0, 0.1, 0.1])
        assert all(trial.value is not None for trial in whole.trials)

    def test_vectors_and_rerankers_are_paid_from_one_purse(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Corpora, "_price", lambda *_: 0.6)
        space = Space(
            {"index.chunking.size": [30, 60], "search.rerank": ["priced"], "search.rerank_depth": [20]},
            BASE,
        )
        # Vectors of the default and of one size take 1.2, the reranker's scores for that size another 0.5.
        found = sweep(space, budget_dollars=2.2, split="none", metric="recall@20")
        assert found.dollars <= 2.2
        assert [one.value is None for one in found.trials] == [False, True]
        assert "may be spent" in found.trials[1].failed

    def test_the_price_of_vectors_is_that_of_all_chunks_with_what_they_repeat(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("core.hosted_embedding.load_prices", lambda: PerMillion())
        model = "voyage:voyage-4-large"
        long = [document(" ".join(WORDS * 40), "long", "long.txt")]

        def price(**chunking: object) -> float:
            index = BASE.index.replace(model=model)
            index = index.replace(
                chunking=index.chunking.replace(unit="characters", size=200, **chunking)
            )
            with pytest.raises(EvaluationError, match="would cost about") as refused:
                Corpora(long).of(index)
            return float(str(refused.value).split("about $")[1].split(",")[0])

        plain = price(strategy="fixed", overlap=0)
        assert plain == pytest.approx(len(long[0].text) / 4, rel=0.1)
        assert price(strategy="fixed", overlap=100) == pytest.approx(2 * plain, rel=0.1)
        # Sentences are embedded before their chunks are.
        assert price(strategy="semantic", overlap=0) > 1.9 * plain


class PerMillion:
    """A dollar a token."""

    def per_unit(self, kind: str, model: str) -> float:
        return 1e6


class TestOptimiser:
    SPACE = Space({"search.k_rrf": Range(1, 200, log=True), "search.items": Range(2, 40)}, BASE)

    def test_it_tries_as_many_points_as_asked_within_the_ranges(self) -> None:
        pytest.importorskip("optuna")
        found = sweep(self.SPACE, method="optuna", trials=12)
        assert len(found.trials) == 12
        for trial in found.trials:
            assert 1 <= trial.settings.search.k_rrf <= 200
            assert 2 <= trial.settings.search.items <= 40
            assert trial.value == pytest.approx(value(trial.settings, queries()[::2]))
        assert found.held_out is not None

    def test_it_goes_on_from_what_is_kept(self, tmp_path: Path, embedder: HashEmbedder) -> None:
        pytest.importorskip("optuna")
        cache = ResultsCache(tmp_path)
        some = sweep(self.SPACE, method="optuna", trials=6, cache=cache)
        more = sweep(self.SPACE, method="optuna", trials=9, cache=cache)
        points = [trial.point for trial in more.trials]
        assert len(points) == 9
        assert all(trial.point in points for trial in some.trials)

    def test_stopped_and_gone_on_with_it_tries_what_it_would_have_tried(self, tmp_path: Path) -> None:
        pytest.importorskip("optuna")
        cache = ResultsCache(tmp_path)

        def stop(what: str, done: int, total: int) -> None:
            if what.startswith("20 points done"):
                raise Stopped("enough")

        part = sweep(self.SPACE, method="optuna", trials=30, cache=cache, progress=stop)
        assert len(part.trials) == 20
        resumed = sweep(self.SPACE, method="optuna", trials=30, cache=cache)
        at_once = sweep(self.SPACE, method="optuna", trials=30)
        assert [one.point for one in resumed.trials] == [one.point for one in at_once.trials]
        assert [one.value for one in resumed.trials] == [one.value for one in at_once.trials]

    def test_a_space_that_is_used_up_ends_it(self) -> None:
        pytest.importorskip("optuna")
        found = sweep(Space({"search.k_rrf": [1, 60]}, BASE), method="optuna", trials=20)
        assert sorted(trial.settings.search.k_rrf for trial in found.trials) == [1, 60]

    def test_it_comes_near_the_top_of_a_hill(self) -> None:
        pytest.importorskip("optuna")
        optimiser = Optimiser(Space({"search.items": Range(1, 1000)}, BASE))
        best = -math.inf
        for _ in range(60):
            trial, point = optimiser.ask()
            worth = -abs(float(point["search.items"]) - 700)
            optimiser.tell(trial, worth)
            best = max(best, worth)
        assert best > -50

    def test_without_optuna_it_says_what_to_install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(__import__("sys").modules, "optuna", None)
        with pytest.raises(RankscopeError, match=r"pip install 'rankscope\[sweep\]'"):
            sweep(self.SPACE, method="optuna", trials=2)


def test_documents_that_come_while_it_runs_are_no_part_of_it() -> None:
    collection = create("growing")
    collection.add(load(b"amber birch cedar", "one.txt"), "one.txt", 17)
    corpora = Corpora(collection)
    name = corpora.fingerprint(BASE.index)
    collection.add(load(b"delta ember fjord", "two.txt"), "two.txt", 17)
    build_corpus(collection, BASE.index)
    made = corpora.of(BASE.index)
    assert (made.fingerprint, len(made.item_ids)) == (name, 1)


def test_other_weights_under_a_model_s_name_are_measured_anew(
    tmp_path: Path, embedder: HashEmbedder
) -> None:
    cache = ResultsCache(tmp_path)
    sweep(cache=cache, split="none")
    before = embedder.queries
    sweep(cache=cache, split="none")
    assert embedder.queries == before
    embedder.version = "2"  # type: ignore[attr-defined]
    sweep(cache=cache, split="none")
    assert embedder.queries > before


def test_rules_of_a_collection_take_part_whether_or_not_its_corpus_is_built() -> None:
    collection = create("ruled")
    for name in ("one.txt", "two.txt"):
        collection.add(load(b"amber birch cedar", name), name, 17)
    plain = Corpora(collection).fingerprint(BASE.index)
    collection.save_rules('[[rule]]\nname = "away"\ndocuments = ["one.txt"]\nhide = true\n')
    for built in (False, True):
        if built:
            build_corpus(collection, BASE.index)
        corpora = Corpora(collection)
        made = corpora.of(BASE.index)
        assert search(made, "amber", BASE.search).stage("items").removed == {0: "rule away hides it"}
        assert corpora.fingerprint(BASE.index) != plain
        assert corpora.fields.names == made.fields.names


def test_trials_are_measured_anew_when_the_field_that_they_rank_by_changed(
    tmp_path: Path, embedder: HashEmbedder
) -> None:
    def found(first: int) -> Sweep:
        ranked = [
            replace(one, metadata={"rank": float(first * at)}) for at, one in enumerate(documents())
        ]
        base = BASE.replace(search=BASE.search.replace(popularity_field="rank", items=1))
        space = Space({"search.k_rrf_items": [1, 5]}, base)
        return run_sweep(ranked, queries(), space, split="none", cache=ResultsCache(tmp_path))

    found(1)
    before = embedder.queries
    found(1)
    assert embedder.queries == before
    found(-1)
    assert embedder.queries > before


def test_two_corpora_are_kept_in_memory() -> None:
    corpora = Corpora(documents())
    made = [
        corpora.of(BASE.index.replace(chunking=BASE.index.chunking.replace(size=n)))
        for n in (30, 40, 50)
    ]
    again = corpora.of(made[2].settings)
    assert again is made[2]
    assert corpora.of(made[1].settings) is made[1]
    assert corpora.of(made[0].settings) is not made[0]
    assert np.array_equal(corpora.of(made[0].settings).matrix, made[0].matrix)
    assert corpora.fingerprint(made[0].settings) == made[0].fingerprint
