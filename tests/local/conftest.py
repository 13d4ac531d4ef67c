"""The tests of this folder share one local model server, and are marked `local_llm`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from core import llm
from tests.local.model_server import KEY, LocalModel, model_server


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.local_llm)


@pytest.fixture(scope="package")
def local_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalModel]:
    """The server; RANKSCOPE_ENDPOINT_KEY is the key that it wants, and no other is set."""
    with pytest.MonkeyPatch.context() as patch, model_server(tmp_path_factory.mktemp("model")) as model:
        for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS"):
            patch.delenv(name, raising=False)
        patch.setenv(llm.ENDPOINT_KEY, KEY)
        yield model
