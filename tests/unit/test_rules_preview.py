"""What rules would do, before they are saved: items of a query, golden evidence of many."""

from __future__ import annotations

from datetime import date

import pytest

from core.access import Viewer
from core.corpus import Corpus
from core.corpus.first_stage import FirstStage
from core.errors import Stopped
from core.evaluation import EvaluationError, Evidence, GoldenQuery
from core.pipeline import search
from core.protocols import Progress
from core.report.export import trace_to_dict
from core.report.rules_preview import preview, preview_judged
from core.rules import Rules
from core.settings import IndexSettings, SearchSettings
from core.types import Document
from tests.fakes import HashEmbedder

WORDS = ("pump", "valve", "motor", "filter", "sensor", "gasket")
DOCUMENTS = [
    Document(
        f"id-{word}",
        f"{word}.md",
        word.title(),
        f"The {word} is serviced once a year.",
        metadata={"place": at},
    )
    for at, word in enumerate(WORDS)
]
SETTINGS = SearchSettings(k=2, items=3)


def rule(name: str, action: str, word: str, when: str = "") -> str:
    return f'[[rule]]\nname = "{name}"\ndocuments = ["{word}.md"]\n{when}\n{action}\n'


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    made = Corpus.from_documents(DOCUMENTS, IndexSettings(), HashEmbedder())
    return made.with_first_stage(FirstStage(today=date(2026, 3, 1)))


def golden(word: str) -> GoldenQuery:
    return GoldenQuery(f"q-{word}", f"the {word}", (Evidence(f"id-{word}", 0, 20),))


QUERIES = [golden(word) for word in WORDS]


def test_a_preview_has_the_ranks_that_a_search_with_and_without_would_have(corpus: Corpus) -> None:
    rules = Rules.from_toml(
        rule("top", "pin = 1", "gasket")
        + rule("out", "hide = true", "valve")
        + rule("later", "boost = 1", "pump", "from = 2027-01-01")
    )
    found = preview(corpus, rules, "the valve", SETTINGS)
    searched = search(
        corpus.with_first_stage(FirstStage(rules, today=date(2026, 3, 1))), "the valve", SETTINGS
    )
    assert found.trace == searched
    bare = search(corpus, "the valve", SETTINGS)
    assert found.without.stage("items") == bare.stage("items")
    assert found.without.passages == bare.passages
    gasket, valve = found.moved
    assert (gasket.item, gasket.after, gasket.said) == (5, 1, ("rule top: pin at 1",))
    assert gasket.before == found.without.stage("items").before.rank_of(5) != 1
    assert (valve.item, valve.before, valve.after, valve.said) == (1, 1, 0, ("rule out hides it",))
    assert [touch.rests for touch in found.touches] == ["", "", "it is another day"]
    assert [touch.items.tolist() for touch in found.touches if touch.items is not None] == [
        [5],
        [1],
        [0],
    ]


def test_what_costs_golden_evidence_is_told_by_rule_and_query(corpus: Corpus) -> None:
    rules = Rules.from_toml(
        rule("out", "hide = true", "valve")
        + rule("same", "hide = true", "valve")
        + rule("first", "pin = 1", "motor", 'query = "sensor"')
        + rule("never", "hide = true", "pump", "on = false")
    )
    found = preview_judged(corpus, rules, QUERIES, SearchSettings(k=1, items=3))
    out, same, first, never = found.effects
    assert (found.k, found.queries, found.without) == (1, 6, 1.0)
    assert found.with_rules == pytest.approx(5 / 6)
    # Each of two rules that hide the same is told, though without either of them nothing would change.
    for one in (out, same):
        assert len(one.queries) == 6
        (lost,) = one.lost
        assert (lost.query.id, lost.document, lost.before, lost.after) == ("q-valve", "valve.md", 1, 0)
        assert (lost.sent_before, lost.sent_after) == (True, False)
        assert not one.lifted
    assert [query.id for query in first.queries] == ["q-sensor"]
    assert [change.query.id for change in first.lost + first.lifted] in ([], ["q-sensor"])
    assert (never.queries, never.lost, never.lifted) == ((), (), ())


def test_what_lifts_golden_evidence_is_told_too(corpus: Corpus) -> None:
    asked = GoldenQuery("hard", "valve pump motor filter", (Evidence("id-gasket", 0, 20),))
    rules = Rules.from_toml(rule("top", "pin = 1", "gasket", 'pattern = "valve *"'))
    found = preview_judged(corpus, rules, [asked, golden("pump")], SearchSettings(k=3, items=1))
    (top,) = found.effects
    assert [query.id for query in top.queries] == ["hard"]
    (lifted,) = top.lifted
    assert (lifted.before, lifted.sent_before, lifted.sent_after) == (0, False, True)
    assert lifted.after == 1
    assert found.with_rules > found.without


def test_what_the_filters_keep_out_no_rule_alone_brings_in(corpus: Corpus) -> None:
    rules = Rules.from_toml(rule("top", "pin = 1", "pump") + rule("out", "hide = true", "gasket"))
    settings = SETTINGS.replace(filters="place >= 1", items=1)
    found = preview_judged(corpus, rules, [golden("valve")], settings)
    top, _ = found.effects
    assert (len(top.queries), top.lost, top.lifted) == (1, (), ())
    assert [row.item for row in preview(corpus, rules, "the valve", settings).moved] == [5]


def test_rules_for_groups_are_tried_as_somebody_of_the_group(corpus: Corpus) -> None:
    rules = Rules.from_toml(rule("ours", "hide = true", "valve", 'groups = ["sales"]'))
    alone = preview_judged(corpus, rules, QUERIES, SETTINGS)
    assert alone.effects[0].queries == ()
    assert "choose a viewer" in alone.notes[0]
    sales = Viewer(groups=frozenset({"sales"}))
    assert len(preview_judged(corpus, rules, QUERIES, SETTINGS, viewer=sales).effects[0].lost) == 1
    assert preview(corpus, rules, "the valve", SETTINGS, sales).moved[0].after == 0


def test_a_preview_as_somebody_says_what_their_search_does_not(corpus: Corpus) -> None:
    rules = Rules.from_toml(rule("falcon pin", "pin = 1", "falcon"))
    for viewer in (None, Viewer("anna")):
        found = preview(corpus, rules, "the valve", SETTINGS, viewer)
        assert found.notes == ("rule falcon pin: 1 of its 1 documents not here",)
    assert found.trace.record.ruled.fired == ()
    assert "falcon" not in str(trace_to_dict(found.trace))


def test_in_one_stage_rules_do_nothing_and_that_is_said(corpus: Corpus) -> None:
    rules = Rules.from_toml(rule("out", "hide = true", "valve"))
    one = SearchSettings(two_stage=False, k=1)
    found = preview_judged(corpus, rules, QUERIES, one)
    assert found.with_rules == found.without
    assert not found.effects[0].lost
    assert "two stages are off" in found.notes[0]
    assert "two stages are off" in preview(corpus, rules, "the valve", one).notes[0]
    with pytest.raises(EvaluationError):
        preview_judged(corpus, rules, [], one)


def test_what_was_tried_before_a_stop_is_told(corpus: Corpus) -> None:
    rules = Rules.from_toml(rule("out", "hide = true", "pump"))

    def stop_at(at: int) -> Progress:
        def tell(done: int, total: int) -> None:
            if done >= at:
                raise Stopped("stopped by you")

        return tell

    found = preview_judged(corpus, rules, QUERIES, SETTINGS, stop_at(2))
    assert (found.queries, len(found.effects[0].queries)) == (2, 2)
    assert found.notes[0] == "stopped after 2 of 6 queries: these figures are of those"
    with pytest.raises(Stopped):
        preview_judged(corpus, rules, QUERIES, SETTINGS, stop_at(0))
