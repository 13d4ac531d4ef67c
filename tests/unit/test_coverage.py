"""Characters of the evidence that the first results cover, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from core.corpus import Corpus
from core.errors import Stopped
from core.evaluation import EvaluationError, Evidence, GoldenQuery
from core.evaluation.coverage import measure_coverage
from core.settings import IndexSettings, SearchSettings
from core.types import Document
from tests.fakes import HashEmbedder

ONE = "The red seal of pump seven leaks oil."  # 37 characters
TWO = "A blue valve sticks."  # 20
SETTINGS = SearchSettings(two_stage=False, k=2, merge=False)


@pytest.fixture
def corpus() -> Corpus:
    documents = [Document("a", "a.txt", "", f"{ONE}\n\n{TWO}", chunks=((0, 37), (39, 59)))]
    documents.append(Document("b", "b.txt", "", "Nothing of all this here.", chunks=((0, 25),)))
    return Corpus.from_documents(documents, IndexSettings(model="hash"), HashEmbedder(256))


def test_each_stage_is_counted_in_characters(corpus: Corpus) -> None:
    # "red seal" (8 characters) in the first chunk, "blue" (4) in the second.
    query = GoldenQuery("q", "red seal leaks", (Evidence("a", 4, 12), Evidence("a", 41, 45)))
    found = measure_coverage(corpus, [query, GoldenQuery("none", "no answer")], SETTINGS, k=1)
    assert [one.id for one in found.queries] == ["q"]
    # BM25 finds the first chunk alone: 8 of 12 golden characters in 37; 4 are missed.
    np.testing.assert_allclose(found.stages["bm25"], [[8 / 12, 8 / 37, 8 / (37 + 4)]])
    assert set(found.stages) == {"bm25", "vector", "fused", "kept", "passages"}
    np.testing.assert_allclose(found.omega, [12 / (37 + 20)])


def test_a_document_that_is_not_indexed_is_covered_by_nothing(corpus: Corpus) -> None:
    query = GoldenQuery("q", "red seal", (Evidence("gone", 0, 10),))
    found = measure_coverage(corpus, [query], SETTINGS, k=2)
    assert found.stages["kept"][0].tolist() == [0, 0, 0]
    assert found.omega.tolist() == [0]


def test_stages_that_were_asked_for_less_are_left_out(corpus: Corpus) -> None:
    query = GoldenQuery("q", "red seal", (Evidence("a", 4, 12),))
    found = measure_coverage(corpus, [query], SETTINGS.with_index("bm25", depth=4), k=5)
    assert set(found.stages) == {"vector", "fused"}


def test_what_cannot_be_counted_is_refused(corpus: Corpus) -> None:
    query = GoldenQuery("q", "red", (Evidence("a", 4, 12),))
    with pytest.raises(EvaluationError, match="k is 1 or more"):
        measure_coverage(corpus, [query], SETTINGS, k=0)
    with pytest.raises(EvaluationError, match="judge one first"):
        measure_coverage(corpus, [GoldenQuery("none", "no answer")], SETTINGS)


def test_it_can_be_stopped(corpus: Corpus) -> None:
    def stop(done: int, total: int) -> None:
        raise Stopped("enough")

    with pytest.raises(Stopped):
        measure_coverage(corpus, [GoldenQuery("q", "red", (Evidence("a", 4, 12),))], SETTINGS, 5, stop)
