"""Where a chunk was lost, and by how much: the stage that is named and the reason that is given."""

from __future__ import annotations

from dataclasses import replace

from core.corpus import Corpus
from core.explanation import explain
from core.pipeline import search
from core.settings import ChunkSettings, IndexSettings, SearchSettings
from core.types import Document
from tests.fakes import HashEmbedder


def corpus() -> Corpus:
    texts = ("Red pump. Blue pump. Green valve.", "Red valve. Long grey hose. Old pipe.")
    documents = [Document(f"d{at}", f"d{at}.txt", "", text) for at, text in enumerate(texts)]
    settings = IndexSettings(chunking=ChunkSettings(strategy="sentences", size=20))
    return Corpus.from_documents(documents, settings, HashEmbedder())


def test_of_two_searches_the_one_that_ranked_it_is_where_it_was_lost() -> None:
    made = corpus()
    trace = search(made, "red pump", SearchSettings().with_index("vector", depth=2))
    position = next(at for at in range(len(made)) if made.chunk(at).text == "Old pipe.")
    found = explain(trace, position)
    rank = trace.stage("vector").before.rank_of(position)
    assert found.lost_at == "vector"
    assert f"rank {rank}, and only the first 2 go on" in found.step("vector").lost
    assert found.step("bm25").lost == "shares nothing with the query that this index sees"
    assert "lost at Vector (rank" in found.sentence


def test_indexes_of_weight_0_give_no_result_and_say_so() -> None:
    settings = SearchSettings().with_index("bm25", weight=0.0).with_index("vector", weight=0.0)
    trace = search(corpus(), "red pump", settings)
    assert (
        trace.stage("fused").note == "every index that is on has the weight 0: raise one to see results"
    )
    found = explain(trace, 0)
    assert (found.lost_at, found.step("fused").lost) == ("fused", "only lists of weight 0 hold it")


def test_signals_of_weight_0_send_no_item_on_and_say_so() -> None:
    settings = SearchSettings().with_signal("lexical", weight=0.0).with_signal("semantic", weight=0.0)
    trace = search(corpus(), "red pump", settings)
    assert trace.stage("items").note == "every signal that is on has the weight 0: no item goes on"
    found = explain(trace, 0)
    assert (found.lost_at, found.step("items").lost) == ("items", "only lists of weight 0 hold it")
    assert found.step("bm25").lost == "not searched: its item did not pass the item stage"


def test_without_an_item_stage_nothing_is_lost_there() -> None:
    made = corpus()
    trace = search(made, "red pump", SearchSettings(two_stage=False).with_index("vector", depth=1))
    for position in range(len(made)):
        found = explain(trace, position)
        assert found.lost_at in (None, "vector")
        assert (found.passage is None) == (found.lost_at is not None)


def test_the_arithmetic_of_a_convex_combination_gives_weight_and_normalised_score() -> None:
    trace = search(corpus(), "red pump", SearchSettings(fusion="minmax").with_index("bm25", weight=3.0))
    first = int(trace.stage("fused").ranking.positions[0])
    assert explain(trace, first).step("fused").arithmetic == (
        "3/4·1.000 + 1/4·1.000 = 0.7500 + 0.2500 = 1.000"
    )


def test_a_term_table_that_fails_does_not_take_the_explanation_along() -> None:
    class Broken:
        def explain(self, query: str, position: int) -> list[object]:
            raise RuntimeError("no table")

    trace = search(corpus(), "red pump", SearchSettings())
    broken = replace(trace, indexes={**trace.indexes, "names": Broken()})
    assert set(explain(broken, 0).terms) == {"bm25"}
