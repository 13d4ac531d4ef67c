"""One contract, run over every signal: what the item stage and the pages rely on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from core.access import Viewer
from core.behaviour.clicks import ClickSignal
from core.behaviour.events import Event
from core.corpus import Corpus
from core.corpus.first_stage import FirstStage
from core.documents import ListedDocuments
from core.errors import SettingsError, Stopped
from core.explanation import explain
from core.extras import register_signal, registered_signals, unregister_signal
from core.indexes.checks import checked_ranking
from core.pipeline import replay, search
from core.protocols import Items, Signal
from core.settings import IndexSettings, SearchSettings
from core.signals import Popularity, Recency
from core.trace import Ranking
from core.types import Document
from tests.contracts.title_signal import TitleSignal
from tests.fakes import HashEmbedder

TODAY = date(2026, 3, 1)
EVENTS = tuple(
    Event("pump", f"d{n}", kind, n + 1, "2026-02-01", f"u{person}")
    for person in range(9)
    for n, kind in ((0, "shown"), (1, "shown"), (2, "shown"), (2, "open"), (3, "shown"))
)


def clicks() -> Signal:
    def vectors(queries):  # type: ignore[no-untyped-def]
        return np.stack([HashEmbedder().embed_query(one) for one in queries])

    return ClickSignal(EVENTS, vectors, CORPUS.item_ids, TODAY)


MAKERS: dict[str, Callable[[], Signal]] = {
    "recency": lambda: Recency("written", 30.0),
    "popularity": lambda: Popularity("views"),
    "clicks": clicks,
    "title": TitleSignal,
}


def build() -> Corpus:
    documents = [
        Document(
            f"d{n}",
            f"pump {n}.txt" if n % 2 else f"valve {n}.txt",
            "",
            f"text {n} of a pump",
            metadata={"written": f"2026-02-{n + 1:02d}", "views": float(n)},
        )
        for n in range(6)
    ]
    access = [None, None, None, frozenset({"group:staff"}), None, frozenset()]
    listed = ListedDocuments(documents, access=access)
    corpus = Corpus.from_documents(listed, IndexSettings(), HashEmbedder())
    return corpus.with_first_stage(FirstStage(today=TODAY))


CORPUS = build()


@pytest.fixture(params=MAKERS)
def signal(request: pytest.FixtureRequest) -> Signal:
    return MAKERS[request.param]()


def test_the_signal_of_the_notes_is_the_one_tested_here() -> None:
    root = Path(__file__).parents[2]
    code = (root / "tests" / "contracts" / "title_signal.py").read_text(encoding="utf-8")
    shown = code[code.index("from core.protocols") :].strip()
    assert f"```python\n{shown}\n```" in (root / "core" / "README.md").read_text(encoding="utf-8")


def test_it_offers_the_interface(signal: Signal) -> None:
    assert isinstance(signal, Signal)
    assert signal.name in MAKERS


def test_it_ranks_items_of_the_corpus_once_by_falling_score(signal: Signal) -> None:
    found = signal.rank("pump", CORPUS)
    assert len(found)
    assert checked_ranking(found, len(CORPUS.item_ids), 6) == found


def test_it_says_the_same_when_asked_again(signal: Signal) -> None:
    assert signal.rank("pump", CORPUS) == signal.rank("pump", CORPUS)


@pytest.mark.parametrize("query", ["", "zzz", "a" * 10_000, "\ufffd 🙂"])
def test_any_query_will_do(signal: Signal, query: str) -> None:
    assert len(signal.rank(query, CORPUS)) <= 6


def test_what_it_says_of_an_item_is_a_sentence(signal: Signal) -> None:
    why = getattr(signal, "why", None)
    if why is None:
        assert signal.name == "title"
        return
    for item in signal.rank("pump", CORPUS).positions.tolist():
        assert why("pump", item, CORPUS)


@pytest.mark.parametrize("name", ["recency", "popularity", "title"])
def test_it_ranks_the_items_it_is_given(name: str) -> None:
    seen = CORPUS.for_viewer(Viewer())
    assert seen.item_ids == ("d0", "d1", "d2", "d4")
    ranked = MAKERS[name]().rank("pump", seen).positions.tolist()
    everyone = [CORPUS.item_ids[at] for at in MAKERS[name]().rank("pump", CORPUS).positions.tolist()]
    assert [seen.item_ids[at] for at in ranked] == [one for one in everyone if one in seen.item_ids]


class Odd:
    """Gives whatever it is told to."""

    name = "odd"

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def rank(self, query: str, items: Items) -> Ranking:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer  # type: ignore[return-value]


@pytest.fixture
def registered() -> Iterator[Callable[[object], None]]:
    yield lambda answer: register_signal("odd", lambda: Odd(answer))
    unregister_signal("odd")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (ValueError("no sales today"), "ValueError: no sales today"),
        ([1, 2], "it gave list, not a Ranking"),
        (Ranking([9], [1.0]), "it ranks positions 9 to 9; there are 0 to 5"),
        (Ranking([1, 1], [2.0, 1.0]), "it ranks a position twice"),
        (Ranking([1], [float("nan")]), "it gave a score that is not a finite number"),
        (Ranking([1, 2], [1.0, 2.0]), "its scores do not fall"),
    ],
)
def test_one_that_fails_costs_its_own_list_only(
    registered: Callable[[object], None], answer: object, reason: str
) -> None:
    plain = search(CORPUS, "pump 3", SearchSettings())
    registered(answer)
    trace = search(CORPUS, "pump 3", SearchSettings())
    trace.check()
    assert trace.passages == plain.passages
    (note,) = trace.notes
    assert note.startswith("odd: this signal is left out: ")
    assert reason in note
    assert trace.stage("items.odd").note in note
    off = SearchSettings().with_signal("odd", on=False)
    assert replay(trace, off).notes == () == search(CORPUS, "pump 3", off).notes


def test_stopping_goes_through(registered: Callable[[object], None]) -> None:
    registered(Stopped("stopped"))
    with pytest.raises(Stopped):
        search(CORPUS, "pump")


def test_a_registered_signal_joins_the_item_stage_and_can_be_switched_off() -> None:
    register_signal("title", TitleSignal)
    try:
        settings = SearchSettings(k_rrf_items=0).with_signal("title", weight=2.0)
        trace = search(CORPUS, "pump", settings)
        trace.check()
        assert trace.stage("items.title").ranking.positions.tolist() == [1, 3, 5]
        items = trace.stage("items")
        assert items.inputs == ("items.lexical", "items.semantic", "items.title")
        row = items.ranking.positions.tolist().index(3)
        assert items.terms is not None
        assert items.terms[row, 2] == 2.0 / 2
        step = explain(trace, int(CORPUS.first_chunk[3])).step("items")
        assert step.arithmetic.count("2/(0+2)") == 1
        off = replay(trace, settings.with_signal("title", on=False))
        assert not off.stage("items.title").on
        unregister_signal("title")
        assert off.passages == search(CORPUS, "pump", SearchSettings(k_rrf_items=0)).passages
    finally:
        unregister_signal("title")


def test_one_object_serves_all_searches_and_a_new_registration_replaces_it() -> None:
    made: list[Signal] = []

    def make() -> Signal:
        made.append(TitleSignal())
        return made[-1]

    try:
        register_signal("title", make)
        search(CORPUS, "pump")
        search(CORPUS, "valve")
        assert len(made) == 1
        register_signal("title", make)
        search(CORPUS, "pump")
        assert len(made) == 2
    finally:
        unregister_signal("title")
    assert "title" not in registered_signals()


@pytest.mark.parametrize("name", ["lexical", "semantic", "clicks", "rules", "fused", " ", "a.b"])
def test_a_name_that_is_taken_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="cannot be named"):
        register_signal(name, TitleSignal)
