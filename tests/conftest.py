"""Where the shared evaluation data lies, for tests that measure on it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def eval_data() -> Path:
    """The folder that RANKSCOPE_EVAL_DATA names; the test is skipped, visibly, where it is unset."""
    named = os.environ.get("RANKSCOPE_EVAL_DATA")
    if not named:
        pytest.skip("RANKSCOPE_EVAL_DATA is not set: no evaluation data to measure on")
    return Path(named).resolve()
