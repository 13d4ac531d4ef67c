"""Many readers and writers of one collection: nobody sees half a change, no cache is missed."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from pathlib import Path

import pytest

from core.collection import Collection, create, open_collection
from core.corpus import Corpus, build_corpus
from core.errors import CollectionError
from core.loading import load
from core.pipeline import replay, search
from core.settings import ChunkSettings, IndexSettings, SearchSettings, Settings
from tests.fakes import HashEmbedder

SETTINGS = IndexSettings(model="hash", chunking=ChunkSettings(size=60))
EMBEDDER = HashEmbedder(model_id="hash")
RECORDS = 3
SECONDS = 3.0


def write_until(end: float, store: Collection, group: int) -> None:
    """Add, replace and remove one file, each time with all its records in another version."""
    chance, held = random.Random(group), ""
    for version in range(1_000_000):
        if time.monotonic() > end:
            return
        name = f"group{group}.jsonl"
        lines = [
            f'{{"text": "group{group} v{version} part{part} pump seal"}}\n' for part in range(RECORDS)
        ]
        data = "".join(lines).encode()
        loaded = load(data, name)
        if not held:
            held = store.add(loaded, name, len(data)).file.file_hash
        elif chance.random() < 0.2:
            store.remove(held)
            held = ""
        else:
            held = store.replace(held, loaded, name, len(data)).file.file_hash
        time.sleep(chance.random() * 0.1)


def search_until(end: float, store: Collection, number: int, seen: Counter[str]) -> None:
    chance = random.Random(number)
    previous: Corpus | None = None
    while time.monotonic() < end:
        try:
            corpus = build_corpus(store, SETTINGS, previous=previous, embedder=EMBEDDER)
            previous = corpus if chance.random() < 0.7 else None
            assert set(Counter(corpus.item_names).values()) <= {RECORDS}
            settings = SearchSettings(
                vector=chance.choice(["exact", "hnsw"]), two_stage=chance.random() < 0.5, hnsw_ef=10
            )
            trace = search(corpus, f"group{chance.randrange(3)} pump", settings)
            trace.check()
            versions: dict[str, set[str]] = {}
            for passage in trace.passages:
                group, version = trace.text_of(passage).split()[:2]
                versions.setdefault(group, set()).add(version)
            assert all(len(found) == 1 for found in versions.values())
            replay(trace, settings.replace(k_rrf=3)).check()
            seen["searched"] += 1
        except CollectionError as error:  # a document that it wanted to read has gone: it says so
            if "removed or replaced meanwhile" not in str(error):
                raise
            seen["reloaded"] += 1


def test_eight_threads_on_one_collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path))
    store, seen, faults = create("busy"), Counter[str](), list[str]()
    end = time.monotonic() + SECONDS

    def watched(work: object, *arguments: object) -> None:
        try:
            work(*arguments)  # type: ignore[operator]
        except BaseException:
            faults.append(traceback.format_exc())

    def housekeeping() -> None:
        while time.monotonic() < end:
            store.save_settings(Settings())
            store.log_query("pump", "", {})
            shutil.rmtree(store.folder / "corpus", ignore_errors=True)  # caches may go at any time
            time.sleep(0.2)

    jobs = [(write_until, end, store, group) for group in range(3)]
    jobs += [(search_until, end, store, number, seen) for number in range(4)]  # type: ignore[list-item,misc]
    jobs += [(housekeeping,)]  # type: ignore[list-item]
    threads = [threading.Thread(target=watched, args=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert seen["searched"] > 10


OTHER = """
import sys
from core.collection import open_or_create
from core.corpus import build_corpus
from core.loading import load
from core.pipeline import search
from core.settings import IndexSettings
from tests.fakes import HashEmbedder
store = open_or_create("Shared")
for number in range(15):
    data = f"file {sys.argv[1]} {number} pump".encode()
    store.add(load(data, "a.txt"), "a.txt", len(data))
    if number % 5 == 0:
        search(build_corpus(store, IndexSettings(model="hash"), embedder=HashEmbedder()), "pump").check()
"""


def test_two_processes_make_and_fill_one_collection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path))
    arguments = [[sys.executable, "-c", OTHER, name] for name in ("one", "two")]
    running = [
        subprocess.Popen(one, cwd=Path(__file__).parents[2], env=os.environ, stderr=subprocess.PIPE)
        for one in arguments
    ]
    for process in running:
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said.decode()
    store = open_collection("Shared")
    assert len(store.files()) == store.version == 30
    corpus = build_corpus(store, IndexSettings(model="hash"), embedder=EMBEDDER)
    assert len(search(corpus, "pump").stage("bm25").ranking) == 30
