"""A killed job loses no context that was paid for and asks for none of them again."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from core.contextualizing.store import ContextStore
from core.types import text_hash
from tests.claude_server import ClaudeServer, chunk_of
from tests.context_desk import CLAUDE, Desk

ROOT = Path(__file__).parents[2]
DOCUMENTS, CHUNKS, CONCURRENCY, KILLS = 20, 50, 8, 10
WRITER = f"""
import sys
from pathlib import Path
from tests.context_desk import Desk
desk = Desk(Path(sys.argv[1]), {DOCUMENTS}, {CHUNKS}, 120)
job = desk.job(concurrency={CONCURRENCY})
job.start()
job.join()
now = job.snapshot()
assert (now.state, now.failed) == ("done", ()), now
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no kill -9 on Windows")
def test_killed_ten_times_it_ends_complete(
    claude: ClaudeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path))
    chance = random.Random(11)
    desk = Desk(tmp_path, DOCUMENTS, CHUNKS, 120)
    names = {
        document.text[start:end].strip(): (text_hash(document.text), (start, end))
        for document, spans in zip(
            (desk.documents[i] for i in range(DOCUMENTS)), desk.spans, strict=True
        )
        for start, end in spans
    }
    assert len(names) == DOCUMENTS * CHUNKS

    def asked() -> list[str]:
        return [chunk_of(body) for body in claude.asked]

    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    for _ in range(KILLS):
        before = len(asked())
        stored = desk.store.settled(CLAUDE.writer_key)
        child = subprocess.Popen(command, cwd=ROOT, env=os.environ)
        until = before + chance.randint(1, 95)
        while len(claude.asked) < until and child.poll() is None:
            time.sleep(0.002)
        child.kill()
        assert child.wait() == -9
        time.sleep(0.1)  # what was on its way arrives
        for chunk in asked()[before:]:
            text, span = names[chunk]
            assert span not in stored.get(text, ())
    before = len(asked())
    stored = desk.store.settled(CLAUDE.writer_key)
    assert 0 < sum(map(len, stored.values())) < DOCUMENTS * CHUNKS
    subprocess.run(command, cwd=ROOT, env=os.environ, check=True)
    for chunk in asked()[before:]:
        text, span = names[chunk]
        assert span not in stored.get(text, ())

    counts = Counter(asked())
    assert set(counts) == set(names)
    assert sum(counts.values()) - len(counts) <= KILLS * CONCURRENCY
    for item in range(DOCUMENTS):
        assert all(desk.contexts(item))
    assert desk.store.totals().answers == DOCUMENTS * CHUNKS
    assert ContextStore(tmp_path).totals().states == {"written": DOCUMENTS * CHUNKS}
