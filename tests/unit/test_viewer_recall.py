"""What permissions cost each viewer of a judged set, told apart from what a search loses."""

from __future__ import annotations

import numpy as np
import pytest

from core.access import Access, Viewer, parse_viewer
from core.corpus import Corpus
from core.documents import ListedDocuments
from core.evaluation import EvaluationError, Evidence, GoldenQuery, measure
from core.evaluation.permissions import ViewerRecall, recall_by_viewer
from core.settings import IndexSettings, SearchSettings
from core.types import Document
from tests.fakes import HashEmbedder
from tests.unit.test_funnel import document

LEGAL, ANYBODY = parse_viewer("group:legal"), Viewer()


def corpus_of(documents: list[Document], *access: Access) -> Corpus:
    listed = ListedDocuments(documents, access=access)
    return Corpus.from_documents(listed, IndexSettings(), HashEmbedder())


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    documents = [
        document("contract", "pump seal terms", "pump seal price", "pump seal dates"),
        document("manual", "pump seal kit", "valve"),
        document("memo", "valve of the plant"),
    ]
    return corpus_of(documents, frozenset({"group:legal"}), None, None)


QUERIES = [
    GoldenQuery("both", "pump seal", (Evidence("contract", 0, 47), Evidence("manual", 0, 13))),
    GoldenQuery("hidden", "terms", (Evidence("contract", 0, 15),)),
    GoldenQuery("open", "valve of the plant", (Evidence("memo", 0, 18),)),
    GoldenQuery("silent", "nothing", ()),
]


def of(corpus: Corpus, viewer: Viewer | None, **more: object) -> ViewerRecall:
    (found,) = recall_by_viewer(corpus, QUERIES, viewers=[viewer], **more)  # type: ignore[arg-type]
    return found


def test_hidden_evidence_is_lost_and_does_not_count_against_what_may_be_seen(corpus: Corpus) -> None:
    all_seen, legal, anybody = recall_by_viewer(corpus, QUERIES, viewers=[None, LEGAL, ANYBODY])
    assert all_seen.queries == ("both", "hidden", "open")
    assert all_seen.pieces.tolist() == [4, 1, 1] == anybody.pieces.tolist()
    for whole in (all_seen, legal):
        assert (whole.items, whole.withheld, whole.recall, whole.recall_of_seen) == (3, 0, 1, 1)
    assert (anybody.items, anybody.hidden.tolist()) == (2, [3, 1, 0])
    assert anybody.found.tolist() == [1, 0, 1]
    assert anybody.recall == pytest.approx((1 / 4 + 0 + 1) / 3)
    assert anybody.withheld == pytest.approx((3 / 4 + 1 + 0) / 3)
    assert anybody.answerable.tolist() == [True, False, True]
    assert anybody.recall_of_seen == 1
    assert [one.label for one in (all_seen, legal, anybody)] == ["everything", "group legal", "anybody"]


def test_a_search_that_misses_is_told_from_a_permission_that_hides(corpus: Corpus) -> None:
    memos = of(corpus, ANYBODY, settings=SearchSettings(filters="file = memo.txt"))
    assert memos.recalls.tolist() == [0, 0, 1]
    assert memos.hidden.tolist() == [3, 1, 0]
    assert memos.recall_of_seen == pytest.approx((0 + 1) / 2)
    assert memos.recall < 1 - memos.withheld


def test_without_permissions_it_is_recall(corpus: Corpus) -> None:
    settings = SearchSettings(k=2)
    plain = measure(corpus, QUERIES, settings).stage("kept")
    assert np.array_equal(of(corpus, None, settings=settings).recalls, plain.recalls(2))
    passages = of(corpus, None, settings=settings, stage="passages", k=1).recalls
    assert np.array_equal(passages, measure(corpus, QUERIES, settings).stage("passages").recalls(1))


def test_somebody_who_sees_nothing_finds_nothing() -> None:
    closed = corpus_of([document("d0", "pump")], frozenset())
    queries = [GoldenQuery("q", "pump", (Evidence("d0", 0, 4),))]
    (found,) = recall_by_viewer(closed, queries, viewers=[ANYBODY])
    assert (found.items, found.recall, found.withheld, found.recall_of_seen) == (0, 0, 1, None)


def test_a_copy_that_may_be_seen_finds_the_evidence() -> None:
    both = [document("d0", "pump seal"), document("d1", "other", "pump seal")]
    held = corpus_of(both, frozenset(), None)
    evidence = Evidence("d0", 0, 9, copies=(("d1", 6, 15),))
    (found,) = recall_by_viewer(held, [GoldenQuery("q", "pump", (evidence,))], viewers=[ANYBODY])
    assert (found.hidden.tolist(), found.recall, found.recall_of_seen) == ([0], 1, 1)


def test_a_copy_that_is_cut_otherwise_withholds_nothing() -> None:
    """Two chunks in the hidden original are one in the copy: who finds that has all of the evidence."""
    both = [document("d0", "pump seal", "pump seal"), document("d1", "pump seal pump seal")]
    held = corpus_of(both, frozenset(), None)
    assert held.first_chunk.tolist() == [0, 2, 3]
    evidence = Evidence("d0", 0, len(both[0].text), copies=(("d1", 0, len(both[1].text)),))
    for viewer, pieces in ((None, 2), (ANYBODY, 1)):
        (found,) = recall_by_viewer(held, [GoldenQuery("q", "pump", (evidence,))], viewers=[viewer])
        assert (found.pieces.tolist(), found.hidden.tolist()) == ([pieces], [0])
        assert (found.recall, found.withheld, found.recall_of_seen) == (1, 0, 1)


def test_a_copy_in_more_pieces_hides_no_other_evidence() -> None:
    both = [
        document("d0", "pump seal pump seal"),
        document("d1", "pump seal", "pump seal"),
        document("d2", "pump terms"),
    ]
    held = corpus_of(both, frozenset(), None, frozenset())
    copied = Evidence("d0", 0, len(both[0].text), copies=(("d1", 0, len(both[1].text)),))
    query = GoldenQuery("q", "pump", (copied, Evidence("d2", 0, 10)))
    (found,) = recall_by_viewer(held, [query], viewers=[ANYBODY])
    assert (found.found.tolist(), found.pieces.tolist(), found.hidden.tolist()) == ([2], [3], [1])
    assert found.withheld == pytest.approx(1 / 3)


def test_progress_goes_on_over_the_viewers_and_a_k_out_of_reach_is_an_error(corpus: Corpus) -> None:
    heard: list[tuple[int, int]] = []
    viewers = [None, ANYBODY]
    recall_by_viewer(corpus, QUERIES, viewers=viewers, progress=lambda *at: heard.append(at))
    assert heard == [(0, 6), (1, 6), (2, 6), (3, 6), (3, 6), (4, 6), (5, 6), (6, 6)]
    with pytest.raises(EvaluationError, match="20"):
        of(corpus, ANYBODY, k=21)
