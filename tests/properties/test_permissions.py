"""No leak: whatever a viewer is shown is what a collection that never held the hidden documents would show.

To bring something new under this: what it shows goes into `of_corpus` or `of_trace`, what steers it into
`search_settings` or `first_stages`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from core.access import Access, Viewer
from core.behaviour.events import Event
from core.corpus import Corpus
from core.corpus.first_stage import FirstStage
from core.documents import ListedDocuments
from core.errors import RankscopeError
from core.evaluation import Evidence, GoldenQuery, measure
from core.evaluation.funnel import measure_funnel
from core.explanation import explain
from core.pipeline import further, search
from core.report import export, tables
from core.report.figures import flow_positions, item_flow, rank_flow
from core.report.find import find_chunks
from core.report.leave_one_out import leave_one_out
from core.report.loss import vector_loss
from core.rules import Rules
from core.settings import ChunkSettings, ContextSettings, IndexSettings, SearchSettings, SignalUse
from core.text import Analyzer
from core.trace import Trace
from core.types import Document
from tests.fakes import HashEmbedder

TODAY = date(2026, 3, 1)
WORDS = ["seal", "pump", "valve", "leak", "kit", "cold", "order", "stem"]
PEOPLE = ["user:ann", "user:bo", "group:red", "group:blue"]
NAMES = [f"d{n}" for n in range(8)]
INDEXED = [
    IndexSettings(chunking=ChunkSettings(strategy="sentences", size=40)),
    IndexSettings(
        chunking=ChunkSettings(size=60),
        analyzer=Analyzer(stem=False),
        context=ContextSettings(writer="headings"),
    ),
]
RULES = [
    '[[rule]]\nname = "hide old"\nitems = "year < 2022"\nhide = true\n',
    '[[rule]]\nname = "pin"\nquery = "seal"\ndocuments = ["d3", "d1", "gone"]\npin = 1\n',
    '[[rule]]\nname = "red boost"\ngroups = ["red"]\nitems = "tags = x"\nboost = 2\n',
    '[[rule]]\nname = "bury"\nitems = "secret exists"\nbury = 1\n',
    '[[rule]]\nname = "only"\nquery = "pump"\nitems = "year >= 2021"\nonly = true\n',
]


@pytest.fixture(autouse=True, scope="module")
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANKSCOPE_HOME", str(folder))
        yield folder


@st.composite
def documents(draw: st.DrawFn) -> list[Document]:
    made = []
    for name in NAMES[: draw(st.integers(0, len(NAMES)))]:
        sentences = draw(st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6), max_size=4))
        metadata: dict[str, Any] = {}
        if draw(st.booleans()):
            metadata["year"] = float(draw(st.integers(2019, 2025)))
        if draw(st.booleans()):
            metadata["tags"] = tuple(draw(st.lists(st.sampled_from(["x", "y"]), max_size=2)))
        if draw(st.booleans()):
            metadata["day"] = draw(st.sampled_from(["2026-02-20", "2025-06-01", "no day"]))
        if not draw(st.integers(0, 3)):
            metadata["secret"] = "yes"
        text = " ".join(f"{' '.join(words).capitalize()}." for words in sentences)
        made.append(
            Document(name, f"{name}.txt", draw(st.sampled_from(["", "Seal"])), text, metadata=metadata)
        )
    return made


accesses = st.none() | st.frozensets(st.sampled_from(PEOPLE), max_size=2)
viewers = st.builds(
    Viewer, st.sampled_from(["", "ann", "bo"]), st.frozensets(st.sampled_from(["red", "blue"]))
)
clicks = st.builds(
    Event,
    st.sampled_from(["seal pump", "cold stem"]),
    st.sampled_from([*NAMES, "gone"]),
    st.sampled_from(["shown", "open", "copy"]),
    st.integers(1, 5),
    st.just("2026-02-25T10:00:00+00:00"),
    st.sampled_from([f"u{n}" for n in range(9)]),
)
first_stages = st.builds(
    FirstStage,
    st.lists(st.sampled_from(RULES), unique=True).map(lambda rules: Rules.from_toml("".join(rules))),
    st.lists(clicks, max_size=30).map(tuple),
    st.sampled_from([{}, {"year": "text"}, {"day": "date", "secret": "yes/no"}]),
    st.just(TODAY),
)
signal_uses = st.builds(SignalUse, st.booleans(), st.sampled_from([0.0, 1.0, 3.0]))
search_settings = st.builds(
    SearchSettings,
    filters=st.sampled_from(["", "year >= 2022", "tags = x; day exists", "secret missing", "file ~ d1"]),
    two_stage=st.booleans(),
    signals=st.fixed_dictionaries(
        dict.fromkeys(("lexical", "semantic", "clicks", "recency", "popularity", "rules"), signal_uses)
    ),
    recency_field=st.sampled_from(["", "day"]),
    popularity_field=st.sampled_from(["", "year"]),
    items=st.sampled_from([1, 3, 100]),
    bm25_k1=st.sampled_from([0.4, 1.5]),
    bm25_variant=st.sampled_from(["lucene", "bm25+", "robertson"]),
    vector=st.sampled_from(["exact", "exact", "hnsw"]),
    fusion=st.sampled_from(["rrf", "minmax", "zscore"]),
    k_rrf=st.sampled_from([0, 60]),
    k_rrf_items=st.sampled_from([0, 10]),
    collapse_duplicates=st.booleans(),
    per_item=st.sampled_from([0, 1]),
    k=st.sampled_from([1, 20]),
    merge_gap=st.sampled_from([0, 100]),
)


def of_corpus(corpus: Corpus, asked: SearchSettings) -> dict[str, Any]:
    """All that can be known of a corpus without a query."""
    fields, indexes = corpus.fields, corpus.indexes(asked)
    return {
        "names": (corpus.fingerprint, corpus.chunks_fingerprint, corpus.viewer, corpus.notes),
        "items": (corpus.item_ids, corpus.item_names, corpus.item_titles, corpus.item_digests),
        "contexts": corpus.context_digests,
        "arrays": {
            name: getattr(corpus, name)
            for name in ("first_chunk", "starts", "ends", "tokens", "item_of", "duplicate_of", "matrix")
        },
        "chunks": [chunk for batch in corpus.chunk_batches() for chunk in batch],
        "indexes": {name: len(index) for name, index in indexes.items()},
        "terms": [_terms(index) for index in (indexes["bm25"], corpus.item_index(asked))],
        "events": corpus.first_stage.events,
        "loss": vector_loss(corpus, asked),
        "fields": {
            name: (fields.kind(name), fields.texts(name), fields.facets(name), fields.misfits(name))
            for name in fields.names
        },
        "found": {word: find_chunks(corpus, word) for word in WORDS},
    }


def _terms(index: Any) -> Any:
    return index._ready(), list(index._vocabulary), index._ids, index._offsets


def of_trace(trace: Trace) -> dict[str, Any]:
    """All that a page, the command line or an export makes of a search."""
    trace.check()
    reader = tables.Reader(trace.corpus, trace.query, Analyzer())
    positions = range(len(trace.corpus))
    return {
        "exported": export.trace_to_dict(trace),
        "csv": export.trace_to_csv(trace),
        "trec": [export.trace_to_trec(trace, stage.name) for stage in trace.stages],
        "strip": tables.strip(trace),
        "columns": tables.columns(trace, reader),
        "signals": tables.item_signals(trace),
        "flow": (tables.flow_rows(trace, positions), flow_positions(trace)),
        "figures": (rank_flow(trace).to_json(), item_flow(trace).to_json()),
        "explained": [dataclasses.asdict(explain(trace, position)) for position in positions],
        "without": leave_one_out(trace),
    }


def of_evaluation(corpus: Corpus, asked: SearchSettings) -> dict[str, Any]:
    """Figures over questions whose evidence may lie in hidden documents."""
    judged = [
        GoldenQuery(f"q{n}", query, tuple(Evidence(name, 0, 12) for name in names))
        for n, (query, names) in enumerate([("seal pump", NAMES[:3]), ("cold stem", NAMES[3:5])])
    ]
    measured = measure(corpus, judged, asked)
    return {
        "notes": measured.notes,
        "ranks": {name: (one.ranks, one.grades, one.lengths) for name, one in measured.stages.items()},
        "funnel": measure_funnel(corpus, judged, asked),
    }


def told(corpus: Corpus, query: str, asked: SearchSettings) -> dict[str, Any]:
    further._clicks.clear()  # kept by the corpus's name: each must learn its own
    found = of_corpus(corpus, asked)
    try:
        trace = search(corpus, query, asked)
    except RankscopeError as error:
        return found | {"refused": str(error)}
    return found | of_trace(trace) | of_evaluation(corpus, asked)


def plain(value: Any) -> Any:
    """Values that compare by what they hold, to the last digit; without times taken."""
    if isinstance(value, np.ndarray):
        return str(value.dtype), plain(value.tolist())
    if isinstance(value, Trace):
        return value  # equal when it tells the same story
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items() if key not in ("ms", "milliseconds")}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(
    documents(),
    st.lists(accesses, min_size=len(NAMES), max_size=len(NAMES)),
    viewers,
    first_stages,
    st.sampled_from(["seal pump", "cold stem order", "zzz", ""]),
    search_settings,
    st.sampled_from(INDEXED),
)
def test_a_viewer_is_shown_what_a_collection_without_the_hidden_would_show(
    held: list[Document],
    access: list[Access],
    viewer: Viewer,
    first_stage: FirstStage,
    query: str,
    asked: SearchSettings,
    indexed: IndexSettings,
) -> None:
    access = access[: len(held)]
    seen = [at for at, one in enumerate(access) if viewer.sees(one)]
    event(f"{'all' if len(seen) == len(held) else 'some' if seen else 'none'} seen")
    whole = Corpus.from_documents(ListedDocuments(held, access), indexed, HashEmbedder())
    part = ListedDocuments([held[at] for at in seen], [access[at] for at in seen])
    alone = Corpus.from_documents(part, indexed, HashEmbedder())
    mine = whole.with_first_stage(first_stage).for_viewer(viewer)
    never_there = [one.id for at, one in enumerate(held) if at not in seen]
    events = tuple(one for one in first_stage.events if one.document_id not in never_there)
    theirs = alone.with_first_stage(dataclasses.replace(first_stage, events=events)).for_viewer(viewer)
    assert mine.viewer == theirs.viewer == viewer
    found, expected = (plain(told(corpus, query, asked)) for corpus in (mine, theirs))
    for name, value in expected.items():
        assert found[name] == value, name
    assert found.keys() == expected.keys()
