"""An index that is not ours may do anything: it costs its own list, never the search."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import EntryPoint
from typing import Any

import numpy as np
import pytest

from core import extras
from core.corpus import Corpus
from core.errors import Stopped
from core.extras import register_index, unregister_index
from core.pipeline import replay, search
from core.protocols import Positions
from core.settings import ChunkSettings, IndexSettings, SearchSettings
from core.trace import Ranking
from core.types import Chunk, Document
from tests.fakes import HashEmbedder

DOCUMENTS = [
    Document(f"d{n}", f"d{n}.txt", f"Title {n}", f"The pump {n} leaks. Order seal {n} now.")
    for n in range(6)
]
SETTINGS = IndexSettings(chunking=ChunkSettings(strategy="sentences", size=24))


class Foreign:
    name = "foreign"

    def __init__(self, answer: Callable[[int], Any], taking: Callable[[], None] = lambda: None) -> None:
        self.answer, self.taking, self.size = answer, taking, 0

    def __len__(self) -> int:
        return self.size

    def add_document(self, document: Chunk | str) -> None:
        self.add_documents([document])

    def add_documents(self, documents: Sequence[Chunk | str]) -> None:
        self.taking()
        self.size += len(documents)

    def search(self, query_text: str, k: int = 1, allowed: Positions | None = None) -> Ranking:
        return self.answer(self.size)  # type: ignore[no-any-return]


def fails(error: Exception) -> Callable[..., Any]:
    def fail(*_: object) -> Any:
        raise error

    return fail


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    yield
    unregister_index("foreign")


def corpus_with(make: Callable[[], Foreign]) -> Corpus:
    register_index("foreign", make)  # type: ignore[arg-type]
    return Corpus.from_documents(DOCUMENTS, SETTINGS, HashEmbedder())


BROKEN: dict[str, tuple[Callable[[int], Any], str]] = {
    "raises": (fails(RuntimeError("boom")), "RuntimeError: boom"),
    "twice": (lambda _: Ranking([0, 0, 1], [3, 2, 1]), "ranks a position twice"),
    "outside": (lambda _: Ranking([0, 10**6], [2, 1]), "positions 0 to 1000000; there are 0 to 11"),
    "negative": (lambda _: Ranking([0, -1], [2, 1]), "positions -1 to 0"),
    "nan": (lambda _: Ranking([0, 1], [float("nan"), 1]), "not a finite number"),
    "infinite": (lambda _: Ranking([0, 1], [float("inf"), 1]), "not a finite number"),
    "rising": (lambda _: Ranking([0, 1], [1, 2]), "do not fall"),
    "a list": (lambda _: [(0, 1.0)], "gave list, not a Ranking"),
    "nothing": (lambda _: None, "gave NoneType, not a Ranking"),
}
MODES = [
    SearchSettings(items=2),
    SearchSettings(two_stage=False),
    SearchSettings(items=2, vector="hnsw"),
]


@pytest.mark.parametrize("settings", MODES, ids=["two stages", "one stage", "hnsw"])
@pytest.mark.parametrize("fault", BROKEN)
def test_a_bad_answer_is_left_out_with_a_note(fault: str, settings: SearchSettings) -> None:
    answer, said = BROKEN[fault]
    plain = search(Corpus.from_documents(DOCUMENTS, SETTINGS, HashEmbedder()), "pump 3", settings)
    trace = search(corpus_with(lambda: Foreign(answer)), "pump 3", settings)
    trace.check()
    assert len(trace.notes) == len(plain.notes) + 1
    assert trace.notes[-1].startswith("foreign: this index is left out")
    assert said in trace.notes[-1]
    assert len(trace.stage("foreign").ranking) == 0
    assert trace.passages == plain.passages
    again = replay(trace, settings.replace(k_rrf=1))
    again.check()
    assert again.notes == trace.notes


@pytest.mark.parametrize("settings", MODES, ids=["two stages", "one stage", "hnsw"])
def test_odd_but_sound_answers_take_part(settings: SearchSettings) -> None:
    trace = search(
        corpus_with(lambda: Foreign(lambda n: Ranking([5, 2, 9], [0, 0, 0]))), "pump", settings
    )
    trace.check()
    assert "foreign" not in " ".join(trace.notes)
    listed = trace.stage("foreign").ranking.positions.tolist()
    # Ties stand in corpus order; what lies outside the items sent on has gone.
    assert listed == [p for p in (2, 5, 9) if not settings.two_stage or p in passed(trace)]
    deep = corpus_with(lambda: Foreign(lambda n: Ranking(np.arange(n), np.arange(n, 0, -1))))
    shallow = search(deep, "pump", settings.with_index("foreign", depth=2))
    shallow.check()
    assert len(shallow.stage("foreign").ranking) == 2


def passed(trace: Any) -> list[int]:
    items = trace.stage("items").ranking.positions
    return [p for p in range(len(trace.corpus)) if trace.corpus.item_of[p] in items]


@pytest.mark.parametrize(
    "make",
    [
        fails(ImportError("no module named spacy")),
        lambda: Foreign(lambda _: Ranking([], []), fails(ImportError("no module named spacy"))),
    ],
    ids=["made", "filled"],
)
def test_an_index_that_cannot_be_built_is_left_out_with_a_note(make: Callable[[], Foreign]) -> None:
    corpus = corpus_with(make)
    trace = search(corpus, "pump 3")
    trace.check()
    assert trace.passages
    assert list(trace.indexes) == ["bm25", "vector"]
    assert corpus.notes == (
        "the index foreign is left out, it cannot be built (ImportError: no module named spacy)",
    )
    register_index("foreign", lambda: Foreign(lambda _: Ranking([1], [1.0])))  # mended: it joins
    assert len(search(corpus, "pump 3", SearchSettings(two_stage=False)).stage("foreign").ranking) == 1


def test_a_stop_while_it_is_filled_is_a_stop() -> None:
    def stop(done: int, total: int) -> None:
        raise Stopped("stopped")

    corpus = corpus_with(lambda: Foreign(lambda _: Ranking([], [])))
    unregister_index("foreign")
    search(corpus, "pump")
    register_index("foreign", lambda: Foreign(lambda _: Ranking([], [])))
    with pytest.raises(Stopped):
        search(corpus, "pump", progress=stop)
    assert corpus.notes == ()


def test_an_installed_package_that_cannot_be_imported_costs_its_own_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    group = extras.ENTRY_POINTS
    installed = [
        EntryPoint("broken", "no_such_module:X", group),
        EntryPoint("kept", "no_such_module:X", group),  # a stage's name: passed over
        EntryPoint("ids", "tests.contracts.identifier_index:IdentifierIndex", group),
    ]
    monkeypatch.setattr(extras, "entry_points", lambda group: installed)
    extras._installed.cache_clear()
    try:
        corpus = Corpus.from_documents(DOCUMENTS, SETTINGS, HashEmbedder())
        trace = search(corpus, "pump 3")
    finally:
        monkeypatch.undo()
        extras._installed.cache_clear()
    trace.check()
    assert list(trace.indexes) == ["bm25", "vector", "ids"]
    assert len(trace.stage("ids").ranking) == 2
    (note,) = corpus.notes
    assert note.startswith("the index broken is left out, it cannot be built (ModuleNotFoundError")
