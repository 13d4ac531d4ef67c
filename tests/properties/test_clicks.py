"""What must hold of the click signal for any log of events."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.behaviour.clicks import HALF_LIFE, PEOPLE, ClickSignal
from core.behaviour.events import Event
from core.protocols import Vectors
from core.trace import NO_HITS
from tests.click_simulator import anywhere, position_based, simulate
from tests.fakes import HashEmbedder

ITEMS = [f"i{at}" for at in range(8)]
TODAY = date(2026, 6, 1)
QUERIES = ("pump seal", "Pump  Seal", "valve stem grease", "order kit")


def vectors_of(texts: list[str] | tuple[str, ...]) -> Vectors:
    return HashEmbedder().embed(list(texts))


def signal(events: list[Event], items: list[str] | None = None, today: date = TODAY) -> ClickSignal:
    return ClickSignal(events, vectors_of, ITEMS if items is None else items, today)


def told(one: ClickSignal) -> list:
    return [
        (one.rank(query), one.evidence(query), [one.why(query, at) for at in range(len(ITEMS))])
        for query in QUERIES
    ]


def day(age: float) -> str:
    return (datetime(2026, 6, 1, tzinfo=UTC) - timedelta(days=age)).isoformat()


def log(seed: int = 0, person=None) -> list[Event]:
    """Sessions of 20 queries, whose relevant item is their number's, shown in an order of their own."""
    rng = random.Random(seed)
    asked = [f"question number {at} of {at * 7}" for at in range(20)]
    orders = {query: rng.sample(ITEMS, len(ITEMS)) for query in asked}
    return simulate(
        person or position_based(1.0),
        dict.fromkeys(asked, ()),
        lambda query: orders[query],
        lambda query, item: asked.index(query) % len(ITEMS) == ITEMS.index(item),
        seed=seed,
        sessions=15,
    )


BACKGROUND = log()

events = st.builds(
    Event,
    query=st.sampled_from(QUERIES),
    document_id=st.sampled_from([*ITEMS, "elsewhere"]),
    kind=st.sampled_from(("shown", "open", "copy", "up", "down")),
    rank=st.integers(0, 9),
    at=st.integers(0, 300).map(day) | st.just(""),
    user=st.sampled_from(("", "ann", "bob", "cy", "dee")),
    session=st.sampled_from(("", "s1", "s2")),
)
logs = st.lists(events, max_size=40)


@settings(max_examples=60, deadline=None)
@given(logs, st.randoms())
def test_the_order_and_repetition_of_events_change_nothing(
    some: list[Event], shuffled: random.Random
) -> None:
    again = [*some, *some[::2]]
    shuffled.shuffle(again)
    assert told(signal(again)) == told(signal(some))


@settings(max_examples=60, deadline=None)
@given(logs, st.sets(st.sampled_from(ITEMS)))
def test_a_slice_knows_nothing_of_events_on_other_items(some: list[Event], hidden: set[str]) -> None:
    seen = [one for one in ITEMS if one not in hidden]
    whole = signal([*BACKGROUND, *some], seen)
    never = signal([one for one in [*BACKGROUND, *some] if one.document_id in seen], seen)
    assert told(whole) == told(never)


@settings(max_examples=60, deadline=None)
@given(logs, st.integers(0, 40), st.sampled_from(("open", "copy", "up")), st.integers(0, 9))
def test_one_user_counts_once(some: list[Event], times: int, kind: str, rank: int) -> None:
    mine = Event("pump seal", "i0", kind, rank, day(3), "eve", "e")
    often = [
        replace(mine, at=day(3 + at / 1440), session=f"e{at}", query=QUERIES[at % 2])
        for at in range(times)
    ]
    assert told(signal([*some, mine, *often])) == told(signal([*some, mine]))


@settings(max_examples=60, deadline=None)
@given(logs, st.sampled_from(("open", "copy", "up")), st.integers(0, 9), st.integers(0, 300))
def test_another_person_who_clicks_only_adds(some: list[Event], kind: str, rank: int, age: int) -> None:
    """With the means of the log as they are: a large log, of which this one click changes nothing else."""
    clicked = Event("pump seal", "i0", kind, rank, day(age), "eve", "e")
    shown = replace(clicked, kind="shown")
    before, after = signal([*some, shown]), signal([*some, shown, clicked])
    for one in (before, after):
        one.evidence("pump seal")
    # The very model of the log without the click weighs both.
    after._asked.clear()
    after._learnt = replace(after._learnt, model=before._learnt.model)  # type: ignore[type-var, union-attr]
    old, new = before.evidence("pump seal").get(0), after.evidence("pump seal")[0]
    assert old is None or (new.gamma >= old.gamma and new.clicked == old.clicked + 1)
    others = {item: one for item, one in after.evidence("pump seal").items() if item}
    assert others == {item: one for item, one in before.evidence("pump seal").items() if item}


@settings(max_examples=60, deadline=None)
@given(logs)
def test_ranks_and_figures_are_sound(some: list[Event]) -> None:
    one = signal(some)
    for query in QUERIES:
        ranking = one.rank(query)
        found = one.evidence(query)
        assert (ranking.scores > 1).all()
        assert (np.diff(ranking.scores) <= 0).all()
        for hit in ranking:
            assert found[hit.position].clicked >= PEOPLE
        for evidence in found.values():
            assert 0 < evidence.clicked <= evidence.shown
            assert 0 < evidence.gamma < 1


def clicks_of(
    people: int, item: str = "i0", rank: int = 4, age: float = 1, query: str = "pump seal"
) -> list[Event]:
    """Sessions in which all of ITEMS were shown, and one was opened."""
    shown = [one for one in ITEMS if one != item]
    shown.insert(rank - 1, item)
    return [
        Event(query, one, kind, at, day(age), f"new {person}", f"n{person}")
        for person in range(people)
        for at, one in enumerate(shown, 1)
        for kind in (("shown", "open") if one == item else ("shown",))
    ]


def test_one_person_moves_nothing_and_more_people_more() -> None:
    scores = []
    for people in (1, 2, 5, 10, 20):
        ranking = signal([*BACKGROUND, *clicks_of(people)]).rank("pump seal")
        scores.append(float(ranking.scores[0]) if len(ranking) else 0.0)
        assert set(ranking.positions.tolist()) <= {0}
    assert scores[:2] == [0, 0]
    assert scores == sorted(scores)
    assert scores[-1] > 1.5


def test_a_click_further_down_counts_more() -> None:
    """Ten were shown it, five opened it: usual at the top, much further down."""
    scores = []
    for rank in (1, 3, 8):
        some = [
            one for one in clicks_of(10, rank=rank) if one.kind == "shown" or int(one.session[1:]) < 5
        ]
        found = signal([*BACKGROUND, *some]).evidence("pump seal")[0]
        scores.append(found.gamma)
    assert scores[0] < scores[1] <= scores[2]


def test_clicks_fade_by_half_in_their_half_life() -> None:
    def gamma(people: int, age: float, today: date = TODAY) -> float:
        return (
            signal([*BACKGROUND, *clicks_of(people, age=age)], today=today)
            .evidence("pump seal")[0]
            .gamma
        )

    fresh, old = gamma(10, 0), gamma(20, HALF_LIFE)
    assert old == pytest.approx(fresh, rel=0.05)
    assert gamma(20, 0) > fresh
    later = TODAY + timedelta(days=3000)
    assert not len(signal([*BACKGROUND, *clicks_of(20)], today=later).rank("pump seal"))


def test_what_has_no_time_does_not_fade_also_beside_what_has_one() -> None:
    dated = clicks_of(10, age=200)
    undated = [replace(one, at="") for one in dated]
    fresh = clicks_of(10, age=0)
    gammas = [
        signal([*BACKGROUND, *some]).evidence("pump seal")[0].gamma
        for some in (dated, undated, [*undated, *dated], fresh)
    ]
    assert gammas[0] < gammas[1] == gammas[2] == gammas[3]


def test_another_number_is_another_query() -> None:
    clicked = signal(
        [*BACKGROUND, *clicks_of(12, query="what caused incident INC-2023-011 in the plant")]
    )
    assert clicked.rank("what caused incident inc-2023-011 in our plant").positions.tolist() == [0]
    assert not len(clicked.rank("what caused incident INC-2023-012 in the plant"))


def test_similar_queries_share_clicks_and_others_do_not() -> None:
    clicked = signal([*BACKGROUND, *clicks_of(12, query="how do I replace the seal of a pump")])
    assert clicked.rank("how do I replace the seal of the pump").positions.tolist() == [0]
    assert not len(clicked.rank("who greases a valve stem"))
    equal, similar = (
        clicked.evidence(query)[0].gamma
        for query in ("How do I replace  the seal of a pump", "how do I replace the seal of the pump")
    )
    assert equal > similar


def test_a_vote_outweighs_what_was_opened_until_it_is_changed() -> None:
    opened = [*BACKGROUND, *clicks_of(10)]
    votes = [Event("pump seal", "i0", "down", 4, day(0.5), f"new {person}", "v") for person in range(10)]
    assert signal(opened).rank("pump seal").positions.tolist() == [0]
    assert signal([*opened, *votes]).evidence("pump seal") == {}
    changed = [replace(one, kind="up", at=day(0.25)) for one in votes]
    assert signal([*opened, *votes, *changed]).rank("pump seal").positions.tolist() == [0]


def test_a_log_without_what_was_shown_takes_the_usual_ranks() -> None:
    """Six opened i0 at 5, two i1 at 1: what i0 was not clicked by, it was shown to, at rank 5."""
    some = [
        Event("pump seal", item, "open", rank, day(1), f"new {person}", "")
        for person, (item, rank) in enumerate([("i0", 5)] * 6 + [("i1", 1)] * 2)
    ]
    bare = [one for one in BACKGROUND if one.kind != "shown"]
    found = signal([*bare, *some]).evidence("pump seal")
    assert {item: (one.clicked, one.shown) for item, one in found.items()} == {0: (6, 8), 1: (2, 8)}
    assert signal([*bare, *some]).rank("pump seal").positions.tolist() == [0]


def test_sessions_count_as_people_where_nobody_is_named() -> None:
    unnamed = [replace(one, user="") for one in clicks_of(10)]
    assert signal(unnamed).evidence("pump seal") == signal(clicks_of(10)).evidence("pump seal")
    one = [replace(event, session="") for event in unnamed]
    assert signal(one).evidence("pump seal")[0].shown == 1


@pytest.mark.parametrize("seed", range(3))
def test_clicks_anywhere_rank_next_to_nothing(seed: int) -> None:
    noise, real = log(seed, anywhere), log(seed)
    asked = sorted({one.query for one in noise})
    ranked = [sum(len(signal(some).rank(query)) for query in asked) for some in (noise, real)]
    assert ranked[0] == 0  # of 160 pairs of query and item
    assert ranked[1] >= 8  # of 20 that are relevant


def test_why_says_the_counts() -> None:
    why = signal([*BACKGROUND, *clicks_of(10)]).why("pump seal", 0)
    assert why.startswith("10 of 10 people who were shown it for this query or similar ones opened it, ")
    assert signal(BACKGROUND).why("pump seal", 0) == ""


def test_no_event_gives_no_ranking_and_asks_for_no_vector() -> None:
    def never(texts: object) -> Vectors:
        raise AssertionError(texts)

    empty = ClickSignal([Event("q", "elsewhere", "open", 1, day(1))], never, ITEMS, TODAY)
    assert len(empty.rank("q")) == 0


def test_without_vectors_of_unrelated_queries_only_equal_ones_count() -> None:
    """A hosted model has vectors of what was asked alone, and unrelated texts may well be 0.8 alike to it."""
    asked: list[str] = []

    def known(texts: list[str] | tuple[str, ...]) -> Vectors:
        asked.extend(texts)
        vectors = np.zeros((len(texts), 2), np.float32)
        cosines = {"Pump  Seal": (1.0, 0.0), "annual report": (0.8, 0.6)}
        for row, text in enumerate(texts):
            vectors[row] = cosines.get(text, (0.0, 0.0))
        return vectors

    events = [replace(one, query="Pump  Seal") for one in clicks_of(10)]
    one = ClickSignal([*BACKGROUND, *events], known, ITEMS, TODAY)
    assert one.rank("annual report") == NO_HITS
    assert one.rank("pump seal").positions.tolist() == [0]
    assert "Pump  Seal" in asked
    assert "pump seal" not in asked


def test_queries_are_compared_as_they_were_asked() -> None:
    asked: list[tuple[str, ...]] = []

    def heard(texts: list[str] | tuple[str, ...]) -> Vectors:
        asked.append(tuple(texts))
        return vectors_of(texts)

    events = [replace(one, query="Pump  Seal") for one in clicks_of(10)]
    ClickSignal(events, heard, ITEMS, TODAY).rank("Seal of the Pump")
    assert asked[0][0] == "Pump  Seal"
    assert asked[1] == ("Seal of the Pump",)
