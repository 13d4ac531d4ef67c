"""replay(run(q, a), b) == run(q, b) with rules, clicks, recency, popularity and filters; filters reach every index."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.behaviour.events import Event
from core.corpus import Corpus
from core.corpus.first_stage import FirstStage
from core.errors import NeedsSearch
from core.explanation import explain
from core.extras import register_index, unregister_index
from core.filters import Filter
from core.pipeline import assemble, replay, run, search
from core.pipeline.items import RULES
from core.report.export import trace_to_json
from core.report.figures import item_flow
from core.report.leave_one_out import leave_one_out
from core.report.tables import item_signals
from core.rules import Rules
from core.settings import ChunkSettings, IndexSettings, IndexUse, SearchSettings, SignalUse
from core.types import Document
from tests.contracts.identifier_index import IdentifierIndex
from tests.fakes import HashEmbedder

WORDS = ["seal", "pump", "valve", "leak", "kit", "blue", "cold", "order", "daily", "stem", "grease"]
QUERIES = ["seal pump 17", "cold valve stem", "zzz"]
RULES_TEXT = """
[[rule]]
name = "push kits"
query = "seal"
items = "kind = kit"
boost = 2
[[rule]]
name = "old"
items = "written < 2023"
bury = 1.5
[[rule]]
name = "first"
query = "valve"
documents = ["d7", "d3"]
pin = 1
[[rule]]
name = "withdrawn"
query = "pump"
items = "kind = draft"
hide = true
[[rule]]
name = "kits only"
query = "zzz"
items = "kind = kit, part"
only = true
"""
TODAY = date(2026, 1, 10)


def _document(n: int, words: int) -> Document:
    text = ". ".join(" ".join(WORDS[(n * 7 + i * i + j) % 11] for j in range(4)) for i in range(words))
    kind = ("kit", "part", "draft", "note")[n % 4]
    metadata = {"kind": kind, "views": float(n * 13 % 7)}
    if n % 5:
        metadata["written"] = f"202{n % 6}-03-{n % 28 + 1:02d}"
    return Document(f"d{n}", f"d{n}.txt", f"Title {n}", f"{text}. {n}.", metadata=metadata)


def _events() -> tuple[Event, ...]:
    made = []
    for person in range(8):
        for rank, n in enumerate((2, 9, 5, 7), 1):
            made.append(Event("seal pump 17", f"d{n}", "shown", rank, "2026-01-01", f"u{person}"))
            if n in (5, 7):
                made.append(Event("seal pump 17", f"d{n}", "open", rank, "2026-01-01", f"u{person}"))
    return tuple(made)


def build(n_items: int) -> Corpus:
    chunking = ChunkSettings(strategy="sentences", size=40)
    documents = [_document(n, 2 + n % 4) for n in range(n_items)]
    corpus = Corpus.from_documents(documents, IndexSettings(chunking=chunking), HashEmbedder())
    return corpus.with_first_stage(
        FirstStage(Rules.from_toml(RULES_TEXT), _events(), {"views": "number"}, TODAY)
    )


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Vectors of past queries are cached in the data folder; and a third index takes part."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANKSCOPE_HOME", str(tmp_path_factory.mktemp("home")))
        register_index("identifiers", IdentifierIndex)
        yield
        unregister_index("identifiers")


CORPUS, WIDE = build(12), build(60)
SIGNALS = ("lexical", "semantic", "clicks", "recency", "popularity", RULES)
INDEXES = ("bm25", "vector", "identifiers")
weights = st.sampled_from([0.0, 0.5, 1.0, 3.0])
signal_uses = st.builds(SignalUse, st.sampled_from([True, True, False]), weights)
index_uses = st.builds(IndexUse, st.booleans(), weights, st.sampled_from([1, 3, 8, 150]))
never = st.fixed_dictionaries(
    {
        "filters": st.sampled_from(
            ["", "kind = kit, draft", "written >= 2023", "kind = ghost", "views > 2"]
        ),
        "recency_field": st.sampled_from(["", "written"]),
        "popularity_field": st.sampled_from(["", "views"]),
    }
)
replayed = st.fixed_dictionaries(
    {
        "two_stage": st.sampled_from([True, True, False]),
        "signals": st.fixed_dictionaries(dict.fromkeys(SIGNALS, signal_uses)),
        "indexes": st.fixed_dictionaries(dict.fromkeys(INDEXES, index_uses)),
        "k_rrf_items": st.sampled_from([0, 10]),
        "items": st.sampled_from([1, 3, 100]),
        "k": st.sampled_from([1, 20]),
        "merge": st.booleans(),
    }
)
WAYS = {
    "exact": {},
    "exact, not all recorded": {},
    "hnsw": {"vector": "hnsw", "hnsw_ef": 10, "hnsw_m": 2, "hnsw_ef_construction": 10},
}


@settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(st.sampled_from(QUERIES), never, replayed, replayed)
@pytest.mark.parametrize("way", WAYS)
def test_replaying_equals_searching(
    way: str, query: str, same: dict[str, str], one: dict[str, object], other: dict[str, object]
) -> None:
    if way == "hnsw":
        pytest.importorskip("hnswlib")
    with pytest.MonkeyPatch.context() as patch:
        if way != "exact":
            patch.setattr(run, "RECORD_ALL", 10)
            patch.setattr(assemble, "PROBE", 1)
        corpus = CORPUS if way == "exact" else WIDE
        a = SearchSettings(**same, **one, **WAYS[way])  # type: ignore[arg-type]
        b = SearchSettings(**same, **other, **WAYS[way])  # type: ignore[arg-type]
        searched = search(corpus, query, b)
        searched.check()
        recorded = search(corpus, query, a)
        try:
            again = replay(recorded, b)
        except NeedsSearch:
            # Where every chunk is recorded only the change of stages, or a deeper list, needs a search.
            assert way != "exact" or (a.two_stage, a.indexes) != (b.two_stage, b.indexes)
            return
        assert again == searched
        assert again.record.ruled == searched.record.ruled


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(st.sampled_from(QUERIES), never, replayed)
def test_what_reads_a_trace_reads_any(query: str, same: dict[str, str], more: dict[str, object]) -> None:
    trace = search(CORPUS, query, SearchSettings(**same, **more))  # type: ignore[arg-type]
    items = trace.stage("items")
    rows = item_signals(trace, 100)
    assert [row["rank"] for row in rows if row["rank"]] == list(range(1, len(items.ranking) + 1))
    fused = next((one for one in trace.stages if one.name == "items.fused"), items)
    for row in rows:
        if row["fused"]:
            terms = [one["term"] for one in row["signals"].values()]
            assert sum(terms) == pytest.approx(fused.ranking.scores[row["fused"] - 1], abs=1e-12)
    for position in range(0, len(CORPUS), 5):
        told = explain(trace, position)
        assert (told.passage is None) == bool(told.lost_at)
    for left in leave_one_out(trace):
        assert left.trace == search(CORPUS, query, left.settings) if left.trace else left.needs
    item_flow(trace)
    assert trace_to_json(trace)


@pytest.mark.parametrize("two_stage", [True, False])
@pytest.mark.parametrize("filters", ["kind = kit", "written >= 2023", "views > 2"])
def test_a_filtered_search_ranks_as_one_of_the_passing_items_only_would(
    filters: str, two_stage: bool
) -> None:
    """Depths are counted among what passes, in every index; only collection statistics stay those of all."""
    chosen = SearchSettings(filters=filters, two_stage=two_stage, recency_field="written")
    for name in INDEXES:
        chosen = chosen.with_index(name, depth=5)
    trace = search(WIDE, "seal pump 17", chosen)
    trace.check()
    passing = WIDE.fields.mask(Filter.parse(filters))
    allowed = np.flatnonzero(passing[WIDE.item_of])
    assert 5 < len(allowed) < len(WIDE)
    for name, index in WIDE.indexes(chosen).items():
        found = index.search("seal pump 17", len(WIDE)).positions
        expected = found[np.isin(found, allowed)]
        got = trace.stage(name).ranking.positions
        if not two_stage:
            assert got.tolist() == expected[:5].tolist(), name
        assert passing[WIDE.item_of[got]].all()
