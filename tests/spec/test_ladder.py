"""Contextual retrieval, whole: embeddings, then + BM25, + contexts, + reranking, on the sample documents.

The contexts and the reranker's order are scripted: this shows that each step reaches the next, and what
it can add. It is no figure of how good real contexts are.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from core.collection import Collection
from core.contextualizing.job import ContextJob, writer_client
from core.contextualizing.store import open_store
from core.contextualizing.work import survey
from core.corpus import Corpus, build_corpus
from core.evaluation import Evidence, GoldenQuery, measure, read_judgements
from core.prices import load_prices
from core.sample import ensure_sample
from core.settings import ContextSettings, IndexSettings, SearchSettings
from tests.claude_server import ClaudeServer, chunk_of
from tests.fakes import HashEmbedder

JUDGED = Path(__file__).resolve().parents[2] / "data" / "sample_queries.jsonl"
PLAIN = IndexSettings(model="hash")
WITH_CONTEXTS = PLAIN.replace(context=ContextSettings(writer="claude"))
HYBRID = SearchSettings(two_stage=False)
EMBEDDINGS = HYBRID.with_index("bm25", on=False)
RERANKED = HYBRID.replace(rerank="claude", rerank_depth=30)

SOUGHT = "sought"  # the scripted reranker puts texts with this word first
WORDS = ("brillig", "slithy", "borogove", "outgrabe", "mimsy")
EACH = 8  # chunks whose context holds one of the words; one of them is meant


class Script:
    """Writes contexts in which only the wanted chunks can be told apart, and orders by one word.

    A word is repeated in the contexts of its other, shorter chunks: they come before the one meant.
    """

    def __init__(self, corpus: Corpus) -> None:
        parts = [
            at
            for at, (item, first) in enumerate(zip(corpus.item_of, corpus.duplicate_of, strict=True))
            if at > 60 and at == first and corpus.first_chunk[item + 1] - corpus.first_chunk[item] > 3
        ]
        self.contexts: dict[str, str] = {}
        self.queries = []
        for number, word in enumerate(WORDS):
            here = parts[number * EACH : (number + 1) * EACH]
            chunks = sorted(map(corpus.chunk, here), key=lambda chunk: len(chunk.text))
            meant = chunks.pop()
            self.contexts |= {even(chunk.text): f"{word} " * 6 for chunk in chunks}
            self.contexts[even(meant.text)] = f"{word} {SOUGHT}"
            evidence = Evidence(meant.document_id, meant.start, meant.end)
            self.queries.append(GoldenQuery(word, word, (evidence,)))

    def __call__(self, body: dict[str, Any]) -> str:
        if "output_config" in body:
            return order(body)
        return self.contexts.get(even(chunk_of(body)), "A part of it.")


def order(body: dict[str, Any]) -> str:
    """First the passages that hold the word asked for beside the marked one, then the others as they stand."""
    *passages, asked = [block["text"] for block in body["messages"][0]["content"]]
    query = re.findall(r"<query>\n(.*)\n</query>", asked)[0]
    wanted = f"{query} {SOUGHT}"
    ids = sorted(range(1, len(passages) + 1), key=lambda one: wanted not in passages[one - 1])
    return json.dumps({"order": ids})


def even(text: str) -> str:
    return " ".join(text.split())


def write_contexts(collection: Collection, corpus: Corpus, settings: ContextSettings) -> int:
    """The number of contexts written, all there were to write."""
    bounds = pairwise(corpus.first_chunk.tolist())
    spans = [
        list(zip(corpus.starts[a:b].tolist(), corpus.ends[a:b].tolist(), strict=True)) for a, b in bounds
    ]
    store, documents = open_store(collection), collection.documents()
    work = survey(store, documents, spans, settings)
    job = ContextJob(store, documents, work, settings, writer_client(settings), load_prices())
    job.start()
    assert job.join(120)
    after = job.snapshot()
    assert (after.state, after.failed, after.done) == ("done", (), work.chunks)
    return after.done


@pytest.fixture
def collection(claude: ClaudeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Collection:
    monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path))
    made = ensure_sample()
    assert made
    return made


def test_each_step_reaches_the_next(collection: Collection, claude: ClaudeServer) -> None:
    embedder = HashEmbedder(4096)
    plain = build_corpus(collection, PLAIN, embedder=embedder)
    script = claude.write = Script(plain)
    assert len(set(script.contexts)) == EACH * len(WORDS)

    embeddings = measure(plain, script.queries, EMBEDDINGS)
    bm25 = measure(plain, script.queries, HYBRID)
    written = write_contexts(collection, plain, WITH_CONTEXTS.context)
    contextual = build_corpus(collection, WITH_CONTEXTS, embedder=embedder)
    contexts = measure(contextual, script.queries, HYBRID)
    reranked = measure(contextual, script.queries, RERANKED, pay=True)

    assert 0 < written <= len(plain) == len(contextual)
    assert embeddings.stage("kept").recall(20) == 0
    assert set(bm25.stages) == {"bm25", "vector", "fused", "kept", "passages"}
    assert bm25.stage("kept").recall(20) == 0
    for name in ("bm25", "vector", "kept"):
        assert contexts.stage(name).recall(EACH - 1) == 0, name
        assert contexts.stage(name).recall(20) == 1, name
    assert contexts.dollars == 0
    assert reranked.stage("fused").recall(EACH - 1) == 0
    assert reranked.stage("reranker").recall(1) == reranked.stage("kept").recall(1) == 1
    assert reranked.stage("reranker").reach == RERANKED.rerank_depth
    assert 0 < reranked.dollars < 1
    assert reranked.notes == ()


def test_the_sample_s_own_queries_go_all_the_way(collection: Collection, claude: ClaudeServer) -> None:
    embedder = HashEmbedder()
    plain = build_corpus(collection, PLAIN, embedder=embedder)
    write_contexts(collection, plain, WITH_CONTEXTS.context)
    contextual = build_corpus(collection, WITH_CONTEXTS, embedder=embedder)
    judged = read_judgements(JUDGED.read_text(encoding="utf-8"), collection.documents())
    assert judged.problems == ()
    some = judged.queries[::3]
    claude.write = order
    ladder = [
        measure(corpus, some, settings, pay=True)
        for corpus, settings in (
            (plain, EMBEDDINGS),
            (plain, HYBRID),
            (contextual, HYBRID),
            (contextual, RERANKED),
        )
    ]
    for step in ladder:
        assert len(step.queries) + len(step.unanswerable) == len(some)
        assert step.notes == ()
    failures = [1 - step.stage("kept").recall(20) for step in ladder]
    assert all(0 < failure < 1 for failure in failures)
    # Hashed words say little of meaning, so that BM25 beside them must help.
    assert failures[1] < failures[0]
    # The scripted order leaves real queries as they stand.
    assert failures[3] == failures[2]


def test_vectors_and_bm25_take_the_contexts_apart(collection: Collection, claude: ClaudeServer) -> None:
    embedder = HashEmbedder(4096)
    plain = build_corpus(collection, PLAIN, embedder=embedder)
    script = claude.write = Script(plain)
    write_contexts(collection, plain, WITH_CONTEXTS.context)
    asked = len(claude.asked)
    for name, other in (("vector", "bm25"), ("bm25", "vector")):
        context = WITH_CONTEXTS.context.replace(in_vectors=name == "vector", in_bm25=name == "bm25")
        corpus = build_corpus(collection, PLAIN.replace(context=context), embedder=embedder)
        measured = measure(corpus, script.queries, HYBRID)
        assert measured.stage(name).recall(20) == 1
        assert measured.stage(other).recall(20) == 0
        assert write_contexts(collection, corpus, context) == 0
    assert len(claude.asked) == asked
