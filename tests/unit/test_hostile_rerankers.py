"""Rerankers and model names that nobody should give: a stage falls away with its reason, the search goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import core.embedding
from core import torch_models
from core.collection import create
from core.corpus import Corpus, build_corpus
from core.errors import SettingsError
from core.loading import load
from core.pipeline import search
from core.protocols import Scores
from core.reranking import register_reranker, unregister_reranker
from core.settings import DEFAULT_MODEL, ContextSettings, SearchSettings
from tests.fakes import HashEmbedder

ABSURD = SearchSettings(
    rerank="odd", rerank_depth=1_000, k_rrf=0, k_rrf_items=0, k_rrf_score=0, k_rrf_rerank=0, rerank_weight=0.0
)  # fmt: skip


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Corpus:
    monkeypatch.setenv("RANKSCOPE_HOME", str(tmp_path))
    monkeypatch.setitem(core.embedding._loaded, DEFAULT_MODEL, HashEmbedder(model_id=DEFAULT_MODEL))
    made = create("Machines")
    for name, text in (("a.txt", "The pump is blue."), ("b.txt", "A pump leaks."), ("c.txt", "Lamps.")):
        made.add(load(text.encode(), name), name, len(text))
    return build_corpus(made, made.settings().index)


@pytest.fixture
def odd() -> Iterator[Callable[..., None]]:
    """Registers a reranker "odd" with these answers."""

    def register(scores: Any = None, estimate: Any = lambda *_: 0.0, paid: bool = False) -> None:
        class Odd:
            name, model_id, listwise = "odd", "x", False

            def scores(self, query: str, texts: Sequence[str]) -> Scores:
                given: Scores = scores(query, texts)
                return given

            def estimate(self, query: str, texts: Sequence[str]) -> Any:
                return estimate(query, texts)

        Odd.paid = paid  # type: ignore[attr-defined]
        register_reranker("odd", lambda _: Odd())  # type: ignore[arg-type, return-value]

    yield register
    unregister_reranker("odd")


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        (lambda q, t: Scores(np.full(len(t), np.nan)), "not finite"),
        (lambda q, t: Scores(np.full(len(t), 1e300)), "not finite"),
        (lambda q, t: Scores(np.zeros(1)), "of shape (1,) for 3 texts"),
        (lambda q, t: Scores(np.zeros((len(t), 2))), "of shape (3, 2)"),
        (lambda q, t: None, "failed"),
        (lambda q, t: 1 / 0, "division by zero"),
    ],
)
def test_a_reranker_that_breaks_costs_its_stage_only(
    corpus: Corpus, odd: Callable[..., None], scores: Any, said: str
) -> None:
    odd(scores)
    found = search(corpus, "pump", ABSURD)
    plain = search(corpus, "pump", ABSURD.replace(rerank="none"))
    assert found.record.reranked
    assert said in found.record.reranked.failed
    assert found.passages == plain.passages


@pytest.mark.parametrize("dollars", [float("nan"), -1.0, None, "much"])
def test_a_cost_that_is_none_is_said_to_be_unknown(
    corpus: Corpus, odd: Callable[..., None], dollars: Any
) -> None:
    odd(lambda q, t: Scores(np.arange(len(t), dtype=np.float64), dollars))
    found = search(corpus, "pump", ABSURD).record.reranked
    assert found
    assert (found.failed, found.dollars, found.note) == ("", 0.0, "what it cost is not known")


@pytest.mark.parametrize("expected", [float("nan"), -1.0, None, "much", 1e-9])
def test_without_a_yes_no_reranker_is_asked_whose_cost_is_no_zero(
    corpus: Corpus, odd: Callable[..., None], expected: Any
) -> None:
    odd(lambda q, t: pytest.fail("asked"), lambda q, t: expected, paid=True)
    found = search(corpus, "pump", ABSURD, pay=False).record.reranked
    assert found
    assert found.held


def test_an_estimate_or_a_maker_that_breaks_costs_the_stage_only(
    corpus: Corpus, odd: Callable[..., None]
) -> None:
    odd(lambda q, t: pytest.fail("asked"), lambda q, t: 1 / 0, paid=True)
    found = search(corpus, "pump", ABSURD, pay=False).record.reranked
    assert found
    assert "division by zero" in found.failed
    register_reranker("odd", lambda _: 1 / 0)  # type: ignore[arg-type, return-value]
    found = search(corpus, "pump", ABSURD).record.reranked
    assert found
    assert "cannot be made" in found.failed


@pytest.mark.parametrize("model", ["x" * 5_000, "a\x00b", " ", "a\nb", "../../nowhere/x"])
def test_a_model_that_no_folder_or_id_can_be_is_a_reason(
    corpus: Corpus, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    found = search(corpus, "pump", SearchSettings(rerank="cross-encoder", rerank_model=model))
    assert found.record.reranked
    assert "cannot load its model" in found.record.reranked.failed
    assert found.passages


def test_a_folder_that_is_no_models_is_not_read_through(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "config.json").write_text("{}")
    assert torch_models.folder_version(tmp_path) == ""
    (tmp_path / "config.json").write_text("{}")
    assert torch_models.folder_version(tmp_path)


@pytest.mark.parametrize(
    "address", ["http://me:secret@h", "https://secret@h:1/v1", "http://h/?key=secret"]
)
def test_settings_hold_no_password(address: str) -> None:
    with pytest.raises(SettingsError) as caught:
        ContextSettings(writer="endpoint", base_url=address)
    assert "secret" not in str(caught.value)
    ContextSettings(writer="endpoint", base_url="http://h/a@b")
