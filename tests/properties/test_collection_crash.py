"""A killed process loses no accepted document and leaves no half one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.collection import create, open_collection
from core.collection import delete as delete_collection
from core.corpus import Corpus, build_corpus
from core.loading import load
from core.settings import IndexSettings
from tests.fakes import HashEmbedder

ROOT = Path(__file__).parents[2]
WRITER = """
import os, sys
from core.collection import open_collection
from core.loading import load
made = open_collection("crash")
kill_at = int(sys.argv[1])
for number in range(100):
    lines = ['{"text": "file %d record %d"}\\n' % (number, record) for record in range(20)]
    data = "".join(lines).encode()
    if number == kill_at:
        from core import collection
        whole = collection.document_digest
        seen = []
        def die(document):
            seen.append(document)
            if len(seen) == 10:
                os.kill(os.getpid(), 9)
            return whole(document)
        collection.document_digest = die
    result = made.add(load(data, f"{number}.jsonl"), f"{number}.jsonl", len(data))
    print(result.file.file_hash, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no kill -9 on Windows")
@pytest.mark.parametrize("kill_at", [0, 1, 7])
def test_a_kill_in_the_middle_of_a_file(
    kill_at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path))
    made = create("crash")
    done = subprocess.run(
        [sys.executable, "-c", WRITER, str(kill_at)],
        cwd=ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
    )
    assert done.returncode == -9, done.stderr
    acknowledged = done.stdout.split()
    assert len(acknowledged) == kill_at
    assert [file.file_hash for file in made.files()] == acknowledged
    documents = made.documents()
    assert [document.text for document in documents] == [
        f"file {number} record {record}" for number in range(kill_at) for record in range(20)
    ]
    assert documents.version == kill_at
    assert made.add(load(b"after", "after.txt"), "after.txt", 5).status == "added"


WORDS = st.sampled_from(["pump", "valve", "seal", "leak", "rotor"])
STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "remove", "replace"]), st.lists(WORDS, min_size=1, max_size=4)),
    max_size=8,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_any_history_gives_the_corpus_of_what_is_left(
    steps: list[tuple[str, list[str]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path))
    made, embedder = create("history"), HashEmbedder()
    chosen = IndexSettings(model="hash")
    expected: dict[str, str] = {}
    corpus: Corpus | None = None
    try:
        for number, (step, words) in enumerate(steps):
            text = " ".join(words)
            loaded = load(text.encode(), f"{number}.txt")
            if step == "add" or not expected:
                status = made.add(loaded, f"{number}.txt", len(text)).status
                assert status == ("same" if loaded.file_hash in expected else "added")
                expected.setdefault(loaded.file_hash, text)
            else:
                oldest = next(iter(expected))
                del expected[oldest]
                if step == "remove":
                    made.remove(oldest)
                else:
                    made.replace(oldest, loaded, f"{number}.txt", len(text))
                    expected.setdefault(loaded.file_hash, text)
            corpus = build_corpus(made, chosen, previous=corpus, embedder=embedder)
            assert [corpus.document(item).text for item in range(len(corpus.item_ids))] == list(
                expected.values()
            )
            fresh = Corpus.from_documents(list(open_collection("history").documents()), chosen, embedder)
            assert corpus.fingerprint == fresh.fingerprint
            assert (corpus.matrix == fresh.matrix).all()
    finally:
        delete_collection("history")
