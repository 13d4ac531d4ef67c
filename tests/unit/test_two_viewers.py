"""The same query as two viewers: what only one is shown, and what shows that nothing hidden was ranked."""

from __future__ import annotations

import dataclasses

import pytest

from core.access import Viewer, parse_access, parse_viewer
from core.corpus import Corpus
from core.documents import ListedDocuments
from core.loading import load
from core.pipeline import search
from core.report.two_viewers import MERGED, PLACE, SIGHT, Line, lines, listed, ranked_outside
from core.settings import IndexSettings, SearchSettings
from core.trace import Trace
from tests.fakes import HashEmbedder

TEXTS = {
    "a.md": "the pump rattles when its bearing is dry",
    "b.md": "a dry bearing squeaks",
    "c.md": "the seal of the pump is worn",
    "d.md": "lamps flicker",
}
ACCESS = ("group:sales", "everyone", "user:anna@example.org", "nobody")


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    documents = [one for name, text in TEXTS.items() for one in load(text.encode(), name).documents]
    listed_documents = ListedDocuments(documents, [parse_access(one) for one in ACCESS])
    return Corpus.from_documents(listed_documents, IndexSettings(), HashEmbedder())


def asked(corpus: Corpus, viewer: Viewer | None, **settings: object) -> Trace:
    return search(corpus.for_viewer(viewer), "pump bearing", SearchSettings(**settings))  # type: ignore[arg-type]


def test_passages_are_told_apart_by_whether_the_other_may_see_them(corpus: Corpus) -> None:
    whole, sales = asked(corpus, None), asked(corpus, parse_viewer("sales"))
    names = [
        (whole.corpus.item_names[one.passage.item], one.other, one.why) for one in lines(whole, sales)
    ]

    assert names[0] == ("a.md", 1, "")
    assert {name: why for name, _, why in names} == {
        "a.md": "",
        "b.md": "",
        "c.md": SIGHT,
        "d.md": SIGHT,
    }
    assert [one.rank for one in lines(whole, sales)] == [1, 2, 3, 4]
    assert [one.why for one in lines(sales, whole)] == ["", ""]


def test_what_both_may_see_can_still_miss_the_other_list(corpus: Corpus) -> None:
    whole, nobody = asked(corpus, None, k=1), asked(corpus, Viewer(), k=1)

    assert [one.why for one in lines(whole, nobody)] == [SIGHT]
    assert [(one.other, one.why) for one in lines(nobody, whole)] == [(None, PLACE)]


def test_text_that_both_are_shown_is_matched_however_it_is_merged(corpus: Corpus) -> None:
    whole = asked(corpus, None)
    first, rest = whole.passages[0], whole.passages[1:]

    def against(*spans: tuple[int, int]) -> Line:
        cut = [dataclasses.replace(first, start=start, end=end) for start, end in spans]
        return lines(whole, dataclasses.replace(whole, passages=(*rest, *cut)))[0]

    start, end = first.start, first.end
    after = len(rest) + 1
    # The other's passage begins later; of two that share text, the one that shares more.
    assert (against((start + 5, end)).other, against((start + 5, end)).why) == (after, MERGED)
    assert against((start, start + 3), (start + 3, end)).other == after + 1
    # The same stretch before a longer one that holds it.
    exact = against((start, end + 9), (start, end))
    assert (exact.other, exact.why) == (after + 1, "")
    # Touching is no shared text.
    assert (against((end, end + 9)).other, against((end, end + 9)).why) == (None, PLACE)


def test_lists_are_full_of_what_is_seen_and_words_are_counted_in_that(corpus: Corpus) -> None:
    whole, sales = asked(corpus, None), asked(corpus, parse_viewer("sales"))
    found = {(one.unit, one.name): one for one in listed(whole, sales)}

    bm25 = found["chunk", "bm25"]
    assert (bm25.ranked, bm25.hidden, bm25.second) == (3, 1, 2)
    # pump: in 2 of 4 chunks for all, in 1 of 2 for sales; bearing: in 2 of 4, and 2 of 2.
    assert bm25.scores is not None
    assert bm25.scores[0] == whole.record.searches["bm25"].scores[0]
    assert bm25.scores[1] == sales.record.searches["bm25"].scores[0] != bm25.scores[0]
    vector = found["chunk", "vector"]
    assert (vector.ranked, vector.hidden, vector.second) == (4, 2, 2)
    assert vector.scores is not None
    assert vector.scores[0] == pytest.approx(vector.scores[1])
    assert found["item", "lexical"].hidden == 1


def test_what_is_ranked_is_checked_against_who_may_see_it(corpus: Corpus) -> None:
    sales = asked(corpus, parse_viewer("sales"))
    total, outside = ranked_outside(sales, set(corpus.item_ids[:2]))
    assert outside == 0
    assert total == sum(map(len, sales.record.signals.values())) + sum(
        map(len, sales.record.searches.values())
    ) + sum(len(stage.ranking) for stage in sales.stages if stage.unit != "passage")
    # Were a list to hold something hidden, it would be found.
    assert ranked_outside(sales, {corpus.item_ids[0]})[1] > 0
