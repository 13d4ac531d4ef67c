"""The lesson "A multi-index RAG pipeline": one interface, Reciprocal Rank Fusion, its own numbers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from core.fusion import rrf
from core.pipeline.retriever import Retriever
from core.trace import Ranking


class FixedIndex:
    """An index whose answer is written down: documents by falling place in `order`."""

    def __init__(self, name: str, order: Sequence[int]) -> None:
        self.name = name
        self.order = order
        self.asked: list[int] = []
        self.documents: list[object] = []

    def add_document(self, document: object) -> None:
        self.documents.append(document)

    def add_documents(self, documents: Sequence[object]) -> None:
        self.documents.extend(documents)

    def search(self, query_text: str, k: int = 1, allowed: object = None) -> Ranking:
        self.asked.append(k)
        return Ranking(self.order[:k], [1 / (place + 1) for place in range(len(self.order[:k]))])

    def __len__(self) -> int:
        return len(self.documents)


def sections() -> list[str]:
    return [f"section {number}" for number in range(11)]


def lesson_retriever() -> Retriever:
    retriever = Retriever(FixedIndex("vector", [2, 7, 6]), FixedIndex("bm25", [6, 2, 7]))
    retriever.add_documents(sections())
    return retriever


def test_the_lessons_example_with_k_rrf_1() -> None:
    results = lesson_retriever().search("what happened?", k=3, k_rrf=1)
    assert [result.document for result in results] == ["section 2", "section 6", "section 7"]
    assert [result.score for result in results] == [
        1 / (1 + 1) + 1 / (1 + 2),
        1 / (1 + 3) + 1 / (1 + 1),
        1 / (1 + 2) + 1 / (1 + 3),
    ]
    assert [round(result.score, 3) for result in results] == [0.833, 0.75, 0.583]
    assert [result.rank for result in results] == [1, 2, 3]
    assert results[0].ranks == {"vector": 1, "bm25": 2}


@pytest.mark.parametrize(
    ("ranks", "published"), [((1, 2), 0.0325), ((1, 4), 0.0320), ((2, 3), 0.0320), ((5, 5), 0.0308)]
)
def test_the_lessons_scores_with_k_rrf_60(ranks: tuple[int, int], published: float) -> None:
    """Section 10, 2 and 5 of the lesson's report, from the ranks that give the printed scores."""
    lists = {
        name: Ranking([100 + n if n != rank else 0 for n in range(1, 9)], [1 / n for n in range(1, 9)])
        for name, rank in zip(("vector", "bm25"), ranks, strict=True)
    }
    fused = rrf(lists, k_rrf=60)
    score = fused.ranking.scores[fused.ranking.rank_of(0) - 1]
    assert score == 1 / (60 + ranks[0]) + 1 / (60 + ranks[1])
    assert score == pytest.approx(published, abs=6e-5)


def test_a_document_no_index_gives_is_not_in_the_result() -> None:
    retriever = Retriever(FixedIndex("vector", [1]), FixedIndex("bm25", []))
    retriever.add_documents(["a", "b"])
    assert [result.document for result in retriever.search("q", k=5)] == ["b"]


def test_each_index_is_asked_for_five_times_k() -> None:
    """With k from each, the lesson's own section 5 (rank 5 in both) could never be in the top 3."""
    index = FixedIndex("vector", list(range(11)))
    retriever = Retriever(index)
    retriever.add_documents(sections())
    assert len(retriever.search("q", k=2)) == 2
    assert index.asked == [10]


def test_k_is_1_by_default_and_cuts_the_result() -> None:
    assert [result.document for result in lesson_retriever().search("q")] == ["section 2"]


def test_a_third_index_joins_the_fusion() -> None:
    retriever = Retriever(
        FixedIndex("vector", [2, 7, 6]), FixedIndex("bm25", [6, 2, 7]), FixedIndex("names", [7])
    )
    retriever.add_documents(sections())
    first = retriever.search("q", k=1, k_rrf=1)[0]
    assert first.document == "section 7"
    assert first.ranks == {"vector": 2, "bm25": 3, "names": 1}
    assert first.score == pytest.approx(1 / 3 + 1 / 4 + 1 / 2)


def test_documents_reach_every_index() -> None:
    one, two = FixedIndex("vector", []), FixedIndex("bm25", [])
    retriever = Retriever(one, two)
    retriever.add_document("a")
    retriever.add_documents(["b", "c"])
    assert one.documents == two.documents == ["a", "b", "c"]


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="at least one index"):
        Retriever()
    with pytest.raises(ValueError, match="name of its own"):
        Retriever(FixedIndex("a", []), FixedIndex("a", []))
    retriever = lesson_retriever()
    with pytest.raises(TypeError, match="query must be a string, not int"):
        retriever.search(7)  # type: ignore[arg-type]
    for k in (0, -1):
        with pytest.raises(ValueError, match=f"k is {k}"):
            retriever.search("q", k=k)
    with pytest.raises(ValueError, match="k_rrf is -1"):
        retriever.search("q", k_rrf=-1)
    assert retriever.search("q", k_rrf=0)[0].score == 1 / 1 + 1 / 2
    with pytest.raises(TypeError, match="a document is int"):
        retriever.add_documents(["fine", 3])  # type: ignore[list-item]
    assert len(retriever._indexes[0]) == 11


def test_an_index_that_already_holds_documents_is_refused() -> None:
    filled = FixedIndex("vector", [0])
    filled.add_document("a")
    with pytest.raises(ValueError, match="already hold documents"):
        Retriever(filled, FixedIndex("bm25", []))


def test_what_is_no_index_is_named() -> None:
    with pytest.raises(TypeError, match="int is no index"):
        Retriever(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("k_rrf", [float("nan"), float("inf")])
def test_a_constant_that_is_no_number_is_refused(k_rrf: float) -> None:
    with pytest.raises(ValueError, match="k_rrf is"):
        lesson_retriever().search("q", k_rrf=k_rrf)


def test_documents_may_come_one_by_one_but_not_as_one_string() -> None:
    one, two = FixedIndex("vector", []), FixedIndex("bm25", [])
    retriever = Retriever(one, two)
    retriever.add_documents(word for word in ("a", "b"))  # an iterator is empty at its second reading
    assert one.documents == two.documents == ["a", "b"]
    with pytest.raises(TypeError, match="one string"):
        retriever.add_documents("abc")


def test_indexes_that_fell_apart_are_not_searched() -> None:
    class Failing(FixedIndex):
        def add_documents(self, documents: Sequence[str]) -> None:  # type: ignore[override]
            raise OSError("disk full")

    retriever = Retriever(FixedIndex("bm25", [0]), Failing("vector", []))
    with pytest.raises(OSError, match="disk full"):
        retriever.add_document("a")
    with pytest.raises(ValueError, match="bm25 holds 1 documents, the retriever 0"):
        retriever.search("q")
