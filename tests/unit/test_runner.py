"""Many settings measured at once: as good as one by one, kept on disk, and never paid for unasked."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from core.corpus import Corpus
from core.corpus.first_stage import FirstStage
from core.errors import RankscopeError, Stopped
from core.evaluation import Evidence, GoldenQuery, measure, runner
from core.evaluation.results import ResultsCache, parts_version, query_key, settings_key
from core.evaluation.runner import Measured, measure_many
from core.extras import register_signal, unregister_signal
from core.protocols import Scores
from core.reranking import register_reranker, unregister_reranker
from core.rules import Rules
from core.settings import IndexSettings, SearchSettings
from core.types import Document
from tests.contracts.title_signal import TitleSignal
from tests.fakes import HashEmbedder
from tests.unit.test_evaluation import WORDS, corpus_of, document, wordy_corpus, wordy_queries

BASE = SearchSettings()
ONE_STAGE = SearchSettings(two_stage=False)
SETTINGS = [
    BASE,
    BASE.replace(items=2),
    BASE.replace(k_rrf=1, k_rrf_items=60),
    BASE.with_index("bm25", weight=3.0).with_signal("semantic", on=False),
    BASE.replace(bm25_k1=0.2),
    ONE_STAGE,
    ONE_STAGE.with_index("vector", depth=5),
    ONE_STAGE.with_index("bm25", depth=7).replace(vector="hnsw", hnsw_ef=10),
    BASE.replace(fusion="minmax", per_item=1, collapse_duplicates=True),
    BASE.replace(second_stage="semantic", merge_gap=500, k=5),
]


@pytest.fixture(autouse=True)
def a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path / "home"))


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return wordy_corpus()


@pytest.fixture(scope="module")
def queries(corpus: Corpus) -> list[GoldenQuery]:
    return wordy_queries(corpus)


def figures(measured: Measured) -> dict[str, object]:
    """All but the times."""
    return {
        name: (
            stage.reach,
            [ranks.tolist() for ranks in stage.ranks],
            [ranks.tolist() for ranks in stage.judged],
            stage.lengths.tolist(),
        )
        for name, stage in measured.stages.items()
    } | {"notes": measured.notes, "settings": measured.settings}


class Priced:
    """Longer texts first; a dime a list, said before and charged after."""

    name, model_id, listwise, paid, version = "priced", "p1", True, True, "1"

    def __init__(self) -> None:
        self.asked = 0

    def scores(self, query: str, texts: Sequence[str]) -> Scores:
        self.asked += 1
        return Scores(np.array([len(text) for text in texts], dtype=np.float64), dollars=0.1)

    def estimate(self, query: str, texts: Sequence[str]) -> float:
        return 0.1


@pytest.fixture
def priced() -> Iterator[Priced]:
    made = Priced()
    register_reranker("priced", lambda model: made)
    yield made
    unregister_reranker("priced")


def test_many_settings_are_what_each_is_alone(corpus: Corpus, queries: list[GoldenQuery]) -> None:
    together = measure_many(corpus, queries, SETTINGS)
    for settings, measured in zip(SETTINGS, together, strict=True):
        assert figures(measured) == figures(measure(corpus, queries, settings)), settings.changes()
        assert (measured.milliseconds > 0).all()
        assert measured.prices.tolist() == [0] * len(queries)
    assert len({str(figures(one)) for one in together}) == len(SETTINGS)


def test_what_differs_after_the_search_is_not_searched_again(
    corpus: Corpus, queries: list[GoldenQuery], monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = corpus.embedder
    assert isinstance(embedder, HashEmbedder)
    replayed = [
        BASE.replace(k_rrf=k, items=n, k=kept) for k in (1, 9) for n in (2, 9) for kept in (3, 5)
    ]
    measure(corpus, queries, BASE)  # the time of embedding is taken once
    before = embedder.queries
    measure_many(corpus, queries, replayed)
    assert embedder.queries - before == len(queries)
    measure_many(corpus, queries, [BASE.replace(bm25_b=b) for b in (0.1, 0.2, 0.3)])
    assert embedder.queries - before == 4 * len(queries)


def test_only_the_stages_asked_for_are_kept(corpus: Corpus, queries: list[GoldenQuery]) -> None:
    (measured,) = measure_many(corpus, queries, [BASE], stages=["kept"])
    assert set(measured.stages) == {"kept"}
    assert measured.notes == ()


class TestGradesAndWhatNobodyJudged:
    TEXT = "amber seal\namber kit\namber pump\namber valve"
    CHUNKS = ((0, 10), (11, 20), (21, 31), (32, 43))

    def measured(self, **query: object) -> Measured:
        corpus = corpus_of(document(self.TEXT, chunks=self.CHUNKS))
        asked = GoldenQuery("q", "amber", **query)  # type: ignore[arg-type]
        return measure(corpus, [asked], ONE_STAGE.with_index("vector", on=False))

    def test_grades_stand_beside_ranks(self) -> None:
        evidence = (
            Evidence("d1", 11, 20, 1),
            Evidence("d1", 0, 20, 3),
            Evidence("gone", 0, 4, 2),
        )
        kept = self.measured(evidence=evidence).stage("kept")
        assert kept.grades[0].tolist() == [3, 3, 2]
        assert sorted(kept.ranks[0].tolist())[0] == 0
        assert kept.ranks[0].tolist()[2] == 0
        assert kept.recall(20) == pytest.approx(2 / 3)

    def test_golden_and_rejected_are_judged_the_rest_is_not(self) -> None:
        evidence = (Evidence("d1", 0, 10),)
        rejected = (Evidence("d1", 32, 43, 0),)
        kept = self.measured(evidence=evidence, rejected=rejected).stage("kept")
        assert kept.lengths.tolist() == [4]
        assert len(kept.judged[0]) == 2
        assert kept.unjudged(20).tolist() == [0.5]
        assert kept.recall(20) == 1
        first = int(kept.judged[0][0])
        assert kept.unjudged(first)[0] == pytest.approx((first - 1) / first)
        assert kept.ranks[0][0] in kept.judged[0]

    def test_a_passage_with_one_judged_chunk_is_judged(self) -> None:
        passages = self.measured(evidence=(Evidence("d1", 0, 10),)).stage("passages")
        assert passages.lengths.tolist() == [1]
        assert passages.unjudged(5).tolist() == [0]


class TestResults:
    def test_a_stopped_run_loses_the_query_under_way_at_most(
        self, corpus: Corpus, queries: list[GoldenQuery], tmp_path: Path
    ) -> None:
        cache = ResultsCache(tmp_path)

        def stop(done: int, total: int) -> None:
            if done == 4:
                raise Stopped("enough")

        with pytest.raises(Stopped):
            measure_many(corpus, queries, SETTINGS, stop, cache)
        embedder = corpus.embedder
        assert isinstance(embedder, HashEmbedder)
        before = embedder.queries
        whole = measure_many(corpus, queries, SETTINGS[:1], None, ResultsCache(tmp_path))
        assert embedder.queries - before == len(queries) - 4
        assert figures(whole[0]) == figures(measure(corpus, queries, SETTINGS[0]))

    def test_a_second_run_searches_nothing_and_tells_the_same(
        self, corpus: Corpus, queries: list[GoldenQuery], tmp_path: Path
    ) -> None:
        cache = ResultsCache(tmp_path)
        first = measure_many(corpus, queries, SETTINGS, cache=cache)
        embedder = corpus.embedder
        assert isinstance(embedder, HashEmbedder)
        before = embedder.queries
        again = measure_many(corpus, queries, SETTINGS, cache=ResultsCache(tmp_path))
        assert embedder.queries == before
        for one, two in zip(first, again, strict=True):
            assert figures(one) == figures(two)
            assert one.milliseconds.tolist() == two.milliseconds.tolist()

    def test_other_evidence_other_documents_or_other_settings_are_searched(
        self, corpus: Corpus, queries: list[GoldenQuery], tmp_path: Path
    ) -> None:
        cache = ResultsCache(tmp_path)
        measure(corpus, queries[:1], BASE, cache=cache)
        moved = GoldenQuery("q", queries[0].text, (Evidence("d3", 0, 5),))
        assert figures(measure(corpus, [moved], BASE, cache=cache)) == figures(
            measure(corpus, [moved], BASE)
        )
        other = wordy_corpus(n=5)
        assert figures(measure(other, queries[:1], BASE, cache=cache)) == figures(
            measure(other, queries[:1], BASE)
        )

    @pytest.mark.parametrize(
        ("settings", "rules"),
        [
            (SearchSettings(filters="stock > 3"), ""),
            (SearchSettings(recency_field="day"), ""),
            (SearchSettings(popularity_field="stock"), ""),
            (SearchSettings(), '[[rule]]\nname = "few"\nitems = "stock < 3"\nhide = true'),
        ],
    )
    def test_other_metadata_is_searched_anew_where_it_counts(
        self, tmp_path: Path, settings: SearchSettings, rules: str
    ) -> None:
        """Metadata is in no fingerprint: the cache has to see it itself."""
        query = GoldenQuery("q", "amber", (Evidence("d0", 0, 5), Evidence("d1", 0, 5)))
        settings = settings.replace(items=1)
        for signal in ("recency", "popularity"):
            settings = settings.with_signal(signal, weight=9.0)

        def held(stock: list[float], day: str, rules: str = rules) -> Corpus:
            documents = [
                Document(f"d{n}", f"{n}.txt", "", "amber", metadata={"stock": one, "day": day, "x": day})
                for n, one in enumerate(stock)
            ]
            documents[0] = replace(documents[0], metadata={"stock": stock[0], "day": "2024-05-01"})
            return corpus_of(*documents).with_first_stage(FirstStage(rules=Rules.from_toml(rules)))

        cache = ResultsCache(tmp_path)
        seen = set()
        for corpus in (held([5, 1], "2024-04-01"), held([1, 5], "2024-06-01")):
            (ranks,) = measure(corpus, [query], settings, cache=cache).stage("kept").ranks
            assert np.array_equal(ranks, measure(corpus, [query], settings).stage("kept").ranks[0])
            seen.add(tuple(ranks.tolist()))
        assert len(seen) == 2
        plain = SearchSettings()
        keys = {settings_key(held(stock, "2024-04-01", ""), plain) for stock in ([5, 1], [1, 5])}
        assert len(keys) == 1  # what nothing reads makes nothing stale

    def test_recency_of_another_day_is_another_result(self, corpus: Corpus) -> None:
        def key(day: int, settings: SearchSettings) -> str | None:
            return settings_key(corpus.with_first_stage(FirstStage(today=date(2026, 1, day))), settings)

        recent = SearchSettings(recency_field="added")
        assert key(1, recent) == key(1, recent)
        assert key(1, recent) != key(2, recent)
        assert key(1, BASE) == key(2, BASE)

    def test_a_signal_that_somebody_registered_is_asked_each_time(
        self, corpus: Corpus, queries: list[GoldenQuery], tmp_path: Path
    ) -> None:
        cache = ResultsCache(tmp_path)
        measure(corpus, queries, BASE, cache=cache)
        register_signal("title", TitleSignal)
        try:
            assert parts_version(BASE) is None
            assert settings_key(corpus, BASE) is None
            measured = measure(corpus, queries, BASE, cache=cache)
        finally:
            unregister_signal("title")
        assert parts_version(BASE) == ""
        assert len(measured.stage("kept").ranks) == len(queries)

    def test_names_of_queries_follow_what_was_judged(self) -> None:
        one = GoldenQuery("a", "words", (Evidence("d", 0, 4), Evidence("d", 6, 9)))
        same = GoldenQuery("b", "words", (Evidence("d", 6, 9), Evidence("d", 0, 4)))
        assert query_key(one) == query_key(same)
        others = [
            GoldenQuery("a", "word", one.evidence),
            GoldenQuery("a", "words", one.evidence[:1]),
            GoldenQuery("a", "words", (Evidence("d", 0, 4, 2), Evidence("d", 6, 9))),
            GoldenQuery("a", "words", one.evidence, rejected=(Evidence("d", 20, 24, 0),)),
        ]
        assert len({query_key(other) for other in [one, *others]}) == 5

    @pytest.mark.parametrize("rubbish", [b"", b"no database, " * 500])
    def test_a_damaged_file_is_replaced(
        self, corpus: Corpus, queries: list[GoldenQuery], tmp_path: Path, rubbish: bytes
    ) -> None:
        (tmp_path / "results.db").write_bytes(rubbish)
        cache = ResultsCache(tmp_path)
        measured = measure(corpus, queries, BASE, cache=cache)
        assert cache.trouble == ""
        assert measured.notes == ()
        embedder = corpus.embedder
        assert isinstance(embedder, HashEmbedder)
        before = embedder.queries
        measure(corpus, queries, BASE, cache=cache)
        assert embedder.queries == before

    def test_where_nothing_can_be_kept_measuring_goes_on_and_says_so(
        self, corpus: Corpus, queries: list[GoldenQuery], tmp_path: Path
    ) -> None:
        measured = measure(corpus, queries, BASE, cache=ResultsCache(tmp_path / "missing"))
        assert len(measured.stage("kept").ranks) == len(queries)
        assert any("results are not kept" in note for note in measured.notes)

    def test_a_damaged_file_that_cannot_be_removed_stops_nobody(
        self, corpus: Corpus, queries: list[GoldenQuery], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "results.db").write_bytes(b"no database" * 1000)

        def refuse(path: Path, missing_ok: bool = False) -> None:
            raise PermissionError(13, "another program has it open", str(path))

        monkeypatch.setattr(Path, "unlink", refuse)
        measured = measure(corpus, queries, BASE, cache=ResultsCache(tmp_path))
        assert len(measured.stage("kept").ranks) == len(queries)
        assert any("another program has it open" in note for note in measured.notes)

    def test_programs_that_begin_at_once_keep_what_each_puts(self, tmp_path: Path) -> None:
        for round_ in range(10):
            folder = tmp_path / str(round_)
            folder.mkdir()
            caches = [ResultsCache(folder) for _ in range(8)]

            def put(number: int, caches: list[ResultsCache] = caches) -> None:
                caches[number].put_trial("space", str(number), {})

            with ThreadPoolExecutor(8) as pool:
                list(pool.map(put, range(8)))
            assert {one.trouble for one in caches} == {""}
            assert sorted(caches[0].trials("space")) == [str(number) for number in range(8)]


def test_what_one_query_s_list_cannot_hold_is_not_told_of_the_set(
    corpus: Corpus, queries: list[GoldenQuery], priced: Priced, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = priced.scores

    def scores(query: str, texts: Sequence[str]) -> Scores:
        if query == queries[-1].text:
            raise RankscopeError("no answer")
        return whole(query, texts)

    monkeypatch.setattr(priced, "scores", scores)
    measured = measure(corpus, queries, BASE.replace(rerank="priced", rerank_depth=10, k=20), pay=True)
    assert "reranker is not measured: it was off for 1 of 10 queries" in measured.notes
    # Nine lists have 10 chunks, the last has 20: recall@20 would be that of ten for most queries.
    assert measured.stage("kept").reach == 10


class TestPaying:
    SETTINGS = SearchSettings(rerank="priced", rerank_depth=30)

    def test_held_until_somebody_says_yes(
        self, corpus: Corpus, queries: list[GoldenQuery], priced: Priced, tmp_path: Path
    ) -> None:
        cache = ResultsCache(tmp_path)
        held = measure(corpus, queries, self.SETTINGS, cache=cache)
        assert (priced.asked, held.dollars) == (0, 0)
        assert held.due == pytest.approx(1.0)
        assert "reranker" not in held.stages
        assert held.notes[0] == (
            "not reranked: priced is not asked before you say so; it would cost at most about $1.0000 "
            "(10 of 10 queries)"
        )
        paid = measure(corpus, queries, self.SETTINGS, cache=cache, pay=True)
        assert priced.asked == 10
        assert paid.dollars == pytest.approx(1.0)
        assert paid.prices.tolist() == [0.1] * 10
        assert "reranker" in paid.stages
        again = measure(corpus, queries, self.SETTINGS, cache=cache, pay=True)
        assert (priced.asked, again.dollars, again.due) == (10, 0, 0)
        assert again.prices.tolist() == [0.1] * 10
        assert figures(again) == figures(paid)

    def test_no_more_than_was_allowed(
        self, corpus: Corpus, queries: list[GoldenQuery], priced: Priced
    ) -> None:
        measured = measure(corpus, queries, self.SETTINGS, pay=True, at_most=0.35)
        assert priced.asked == 3
        assert measured.dollars == pytest.approx(0.3)
        assert measured.due == pytest.approx(0.7)
        assert "reranker" not in measured.stages

    def test_scores_are_replayed_where_the_list_is_the_same(
        self, corpus: Corpus, queries: list[GoldenQuery], priced: Priced
    ) -> None:
        orders = [
            self.SETTINGS.replace(rerank_order=order, k=k)
            for order in ("replace", "fuse")
            for k in (5, 9)
        ]
        found = measure_many(corpus, queries, orders, pay=True)
        assert priced.asked == len(queries)
        assert sum(one.dollars for one in found) == pytest.approx(1.0)


def test_kept_scores_do_not_pass_for_a_fast_reranker(
    corpus: Corpus, queries: list[GoldenQuery], priced: Priced, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_paces", defaultdict(lambda: deque(maxlen=9)))
    slow = priced.scores

    def scores(query: str, texts: Sequence[str]) -> Scores:
        time.sleep(0.05)
        return slow(query, texts)

    monkeypatch.setattr(priced, "scores", scores)
    settings = SearchSettings(rerank="priced", rerank_depth=30)
    fresh = measure(corpus, queries, settings, pay=True)
    kept = measure(corpus, queries, settings)
    assert priced.asked == len(queries)
    assert fresh.milliseconds.min() > 50
    assert kept.milliseconds.min() > 25
    assert kept.notes == ()
    runner._paces.clear()
    again = measure(corpus, queries, settings)
    assert again.notes == (
        "priced: scores were kept from before, so the milliseconds leave it out (10 of 10 queries)",
    )


def test_documents_of_one_chunk_and_blank_queries(tmp_path: Path) -> None:
    corpus = corpus_of(Document("d", "d.txt", "", "seal kit"))
    query = GoldenQuery("q", "  ", (Evidence("d", 0, 8),))
    measured = measure(corpus, [query], cache=ResultsCache(tmp_path))
    assert measured.stage("kept").recall(20) == 0
    assert measured.stage("kept").unjudged(20).tolist() == [0]
    assert "type a query to search (1 of 1 queries)" in measured.notes


class Loading(HashEmbedder):
    """The first vector waits for the model, each new one takes 20 ms, and those of queries are kept."""

    def __init__(self) -> None:
        super().__init__(model_id="loading")
        self.kept: dict[str, np.ndarray] = {}

    def embed_query(self, text: str) -> np.ndarray:
        if text not in self.kept:
            time.sleep(0.02 if self.kept else 1.0)
            self.kept[text] = super().embed_query(text)
        return self.kept[text]


def embedded_by(embedder: HashEmbedder) -> Corpus:
    documents = [document(" ".join(WORDS), f"d{at}", f"{at}.txt") for at in range(12)]
    return Corpus.from_documents(documents, IndexSettings(), embedder)


class TestTheTimeOfASearch:
    ALIKE = (ONE_STAGE, ONE_STAGE.replace(k_rrf=3), ONE_STAGE.replace(k_rrf=9, k=5))

    def test_it_is_that_of_a_loaded_model_and_the_same_for_settings_that_differ_in_nothing_slow(
        self, queries: list[GoldenQuery]
    ) -> None:
        corpus = embedded_by(Loading())
        asked = measure_many(corpus, queries, [*self.ALIKE, ONE_STAGE.with_index("vector", on=False)])
        first, *others = (one.milliseconds.tolist() for one in asked[:3])
        assert others == [first, first]
        assert min(first) > 20
        assert max(first) < 900
        # Without vectors nothing is embedded.
        assert float(np.median(asked[3].milliseconds)) < float(np.median(first)) - 15

    def test_vectors_kept_from_before_make_no_search_faster(self, queries: list[GoldenQuery]) -> None:
        embedder = Loading()
        corpus = embedded_by(embedder)
        for query in queries:
            embedder.embed_query(query.text)
        assert measure(corpus, queries, ONE_STAGE).milliseconds.min() > 20

    def test_the_cache_keeps_it_for_what_is_measured_later(
        self, queries: list[GoldenQuery], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(runner, "_embedding_times", {})
        embedder = Loading()
        corpus = embedded_by(embedder)
        measure(corpus, queries, self.ALIKE[0], cache=ResultsCache(tmp_path))
        runner._embedding_times.clear()
        before = len(embedder.kept)
        measure(corpus, queries, self.ALIKE[1], cache=ResultsCache(tmp_path))
        assert len(embedder.kept) == before
        assert runner._embedding_times == {}

    def test_a_model_that_keeps_nothing_is_timed_with_its_search(
        self, queries: list[GoldenQuery]
    ) -> None:
        """The search makes the vector itself: counted once, not twice."""

        class Slow(HashEmbedder):
            def embed_query(self, text: str) -> np.ndarray:
                time.sleep(0.1)
                return super().embed_query(text)

        found = measure(embedded_by(Slow(model_id="slow")), queries, ONE_STAGE).milliseconds
        assert found.min() > 100
        assert float(np.median(found)) < 190
