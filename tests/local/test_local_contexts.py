"""Contexts that a model on this machine writes: from the plan to the indexes, and kept over a restart.

The model is too small to write good ones: no test judges what it says.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from core.chunking import split
from core.collection import Collection, create
from core.contextualizing import batch
from core.contextualizing import store as stores
from core.contextualizing.job import ContextJob, Snapshot, writer_client
from core.contextualizing.plan import Plan, make_plan
from core.contextualizing.prompt import Span
from core.contextualizing.store import ContextStore, open_store
from core.contextualizing.work import Work, count_documents, survey
from core.corpus import build_corpus
from core.documents import ListedDocuments
from core.errors import LlmError
from core.loading import load
from core.prices import load_prices
from core.settings import ChunkSettings, ContextSettings, IndexSettings, SearchSettings
from core.types import Document
from tests.fakes import HashEmbedder
from tests.local.model_server import (
    CHUNK_SIZE,
    CHUNKS,
    CONTEXT,
    FEWEST,
    MODEL,
    SHORT_PROMPT,
    TEXTS,
    Counted,
    LocalModel,
)

ROOT = Path(__file__).parents[2]
CHUNKING = ChunkSettings(size=CHUNK_SIZE)
READER = """
import json, sys
from core.collection import open_collection
from core.contextualizing.store import open_store
from core.settings import ContextSettings
collection = open_collection("Town")
settings = ContextSettings.from_dict(json.loads(sys.argv[1]))
store, documents, spans = open_store(collection), collection.documents(), json.loads(sys.argv[2])
print(json.dumps([c for i, cut in enumerate(spans) for c in store.contexts_of(documents[i], cut, settings)]))
"""


@dataclass(frozen=True)
class Desk:
    collection: Collection
    settings: ContextSettings
    spans: list[list[Span]]

    @property
    def store(self) -> ContextStore:
        return open_store(self.collection)

    def work(self) -> Work:
        return survey(self.store, self.collection.documents(), self.spans, self.settings)

    def plan(self) -> Plan:
        return make_plan(self.work(), self.settings, load_prices())

    def contexts(self) -> list[str]:
        """Of all chunks, document after document; blank where there is none."""
        documents = self.collection.documents()
        return [
            context
            for item, spans in enumerate(self.spans)
            for context in self.store.contexts_of(documents[item], spans, self.settings)
        ]

    def run(self) -> Snapshot:
        documents, client = self.collection.documents(), writer_client(self.settings)
        job = ContextJob(self.store, documents, self.work(), self.settings, client, load_prices())
        job.start()
        assert job.join(240), job.snapshot()
        return job.snapshot()


@dataclass(frozen=True)
class Written:
    """A desk whose contexts were written once, the plans before and after counting, and what came of it."""

    desk: Desk
    rough: Plan
    plan: Plan
    end: Snapshot
    counted: Counted


@pytest.fixture(scope="module")
def written(local_model: LocalModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RANKSCOPE_HOME", str(tmp_path_factory.mktemp("home")))
        collection = create("Town")
        for name, text in TEXTS.items():
            data = text.encode()
            collection.add(load(data, name), name, len(data))
        settings = ContextSettings(
            writer="endpoint",
            base_url=local_model.address,
            model=MODEL,
            max_tokens=30,
            prompt=SHORT_PROMPT,
        )
        documents, embedder = collection.documents(), HashEmbedder()
        spans = [
            split(documents[item], CHUNKING, embedder.count_tokens, embedder.embed)
            for item in range(len(documents))
        ]
        desk = Desk(collection, settings, [[(int(a), int(b)) for a, b in cut] for cut in spans])
        rough = desk.plan()
        client = writer_client(settings)
        count_documents(desk.store, documents, desk.work(), settings, client, {})
        plan = desk.plan()
        before = local_model.counted()
        end = desk.run()
        print(f"\n{end.done} contexts of {end.total} in {end.seconds:.1f} s; {end.usage}")
        yield Written(desk, rough, plan, end, local_model.counted() - before)


def test_the_plan_is_counted_by_the_server_and_has_no_price(written: Written) -> None:
    for plan, rough in ((written.rough, True), (written.plan, False)):
        assert (plan.documents, plan.chunks, plan.rough) == (len(TEXTS), CHUNKS, rough)
        assert (plan.live, plan.batch) == (None, None)
    # Chunks take their share of their document's tokens: all that is not counted itself.
    assert written.plan.input == pytest.approx(written.end.usage.prompt, rel=0.05)
    assert max(prompts(written)) < 500


def prompts(written: Written) -> list[int]:
    """Tokens of each stored chunk's prompt."""
    desk = written.desk
    texts = desk.store.text_hashes(desk.collection.documents())
    return [
        row.usage.prompt for text in texts for row in desk.store.rows(desk.settings.writer_key, text)
    ]


def test_every_chunk_is_written_or_named(written: Written) -> None:
    end, desk = written.end, written.desk
    assert (end.state, end.total, end.dollars, end.unsure) == ("done", CHUNKS, 0.0, 0.0)
    assert end.done + len(end.failed) == CHUNKS
    assert end.done >= FEWEST
    for one in end.failed:  # this model does not always find an end
        assert (one.reason, one.again) == ("the answer was cut at 30 tokens", True)
    failed = {(one.item, (one.start, one.end)) for one in end.failed}
    chunks = [(item, span) for item, spans in enumerate(desk.spans) for span in spans]
    assert {
        chunk for chunk, context in zip(chunks, desk.contexts(), strict=True) if not context
    } == failed


def test_the_ledger_is_the_servers_own_count(written: Written) -> None:
    totals, counted = written.desk.store.totals(), written.counted
    assert totals.usage == written.end.usage
    assert (totals.answers, totals.unpriced) == (CHUNKS, 0)
    assert (totals.usage.input, totals.usage.cache_read, totals.usage.output) == (
        counted.processed,
        counted.cached,
        counted.written,
    )
    # Chunks of a document follow each other: the server has its text at hand for all but the first.
    assert totals.cache_hit_rate > 0.5


def test_another_process_has_them_and_asks_for_none_again(
    written: Written, local_model: LocalModel
) -> None:
    desk = written.desk
    before, had = local_model.counted(), desk.contexts()
    settings = json.dumps(desk.settings.to_dict())
    command = [sys.executable, "-c", READER, settings, json.dumps(desk.spans)]
    told = subprocess.run(command, cwd=ROOT, env=os.environ, check=True, capture_output=True, text=True)
    assert json.loads(told.stdout) == had

    stores._open.pop(desk.collection.folder).close()
    failed = {(one.item, (one.start, one.end)) for one in written.end.failed}
    work = desk.work()
    assert work.done == written.end.done
    assert {(piece.item, span) for piece in work.pieces for span in piece.spans} == failed
    again = desk.run()
    assert (again.state, again.total) == ("done", len(failed))
    assert local_model.counted() - before == Counted(
        again.usage.input, again.usage.cache_read, again.usage.output
    )
    assert again.usage.output <= 30 * len(failed)
    for old, new in zip(had, desk.contexts(), strict=True):
        assert new == old or not old


def test_the_indexes_hold_them(written: Written) -> None:
    desk = written.desk
    index = IndexSettings(chunking=CHUNKING, context=desk.settings, model="hash")
    corpus = build_corpus(desk.collection, index, embedder=HashEmbedder())
    plain = build_corpus(
        desk.collection, index.replace(context=ContextSettings()), embedder=HashEmbedder()
    )
    contexts = desk.contexts()
    assert [corpus.chunk(i).context for i in range(len(corpus))] == contexts
    assert [corpus.chunk(i).text for i in range(CHUNKS)] == [plain.chunk(i).text for i in range(CHUNKS)]
    position = next(i for i in range(CHUNKS) if new_terms(contexts[i], corpus.chunk(i).text, index))
    chunk = corpus.chunk(position)
    term = new_terms(chunk.context, chunk.text, index)[0]
    one_stage = SearchSettings(two_stage=False)
    found, before = (
        {hit.position for hit in made.indexes(one_stage)["bm25"].search(term, CHUNKS)}
        for made in (corpus, plain)
    )
    assert position in found - before
    expected = HashEmbedder().embed([f"{chunk.context}\n{chunk.text}"])[0]
    assert corpus.matrix[position].tolist() == expected.tolist()


def new_terms(context: str, text: str, index: IndexSettings) -> list[str]:
    has = set(index.analyzer.tokens_of(text))
    return [term for term in index.analyzer.tokens_of(context) if term not in has]


def test_a_batch_is_not_taken_and_leaves_nothing_behind(
    written: Written, local_model: LocalModel
) -> None:
    settings = written.desk.settings.replace(prompt="Another one.")
    desk = Desk(written.desk.collection, settings, written.desk.spans)
    with pytest.raises(LlmError) as caught:
        batch.submit(
            desk.store,
            desk.collection.documents(),
            desk.work(),
            settings,
            writer_client(settings),
            load_prices(),
        )
    assert caught.value.kind == "gone"
    assert desk.store.batches() == []
    assert desk.work().chunks == CHUNKS


def test_a_document_too_long_for_it_is_named_chunk_by_chunk(
    written: Written, local_model: LocalModel, tmp_path: Path
) -> None:
    long = Document("l", "long.txt", "Long", "A long tale goes on. " * 600)
    documents = ListedDocuments([long])
    spans = [[(0, 100), (100, 200), (200, 300)]]
    store, settings = ContextStore(tmp_path), written.desk.settings
    before = local_model.counted()
    work = survey(store, documents, spans, settings)
    job = ContextJob(store, documents, work, settings, writer_client(settings), load_prices())
    job.start()
    assert job.join(120)
    end = job.snapshot()
    assert (end.state, end.done, end.usage.prompt) == ("done", 0, 0)
    assert sorted((one.name, one.start, one.end, one.again) for one in end.failed) == [
        ("long.txt", start, stop, False) for start, stop in spans[0]
    ]
    assert all(f"{CONTEXT} tokens" in one.reason for one in end.failed)
    assert local_model.counted() == before
    store.close()
