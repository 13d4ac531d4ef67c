"""Vectors are computed once: kept by (model, hash of the text) in an SQLite file that may be deleted."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import numpy as np

from core.errors import EmbeddingError, RankscopeError
from core.home import home
from core.protocols import Embedder, Progress, Vectors
from core.types import text_hash

T = TypeVar("T")

BATCH = 64
"""Texts embedded between two commits: what a kill can cost."""

_LOOKUP = 500  # hashes a query: below SQLite's oldest limit of 999 variables


class VectorCache:
    """float32 vectors by (model key, text hash), shared by threads and processes.

    A damaged file is replaced by an empty one: the vectors can be computed again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        try:
            self._database = self._open()
        except sqlite3.OperationalError as error:
            raise RankscopeError(f"the vector cache {path} cannot be opened: {error}") from error
        except sqlite3.DatabaseError:
            self._renew()

    def _renew(self) -> None:
        """Put an empty file in the place of a damaged one."""
        for ending in ("", "-wal", "-shm"):
            self.path.with_name(self.path.name + ending).unlink(missing_ok=True)
        self._database = self._open()

    def _do(self, work: Callable[[], T], what: str) -> T:
        """Work on the database; done again on an empty one where the file proves to be damaged.

        Raises RankscopeError when the disk refuses.
        """
        with self._lock:
            try:
                try:
                    return work()
                except sqlite3.DatabaseError as error:
                    if type(error) is not sqlite3.DatabaseError:  # its kinds: locked, full, closed
                        raise
                    self._database.close()
                    self._renew()
                    return work()
            except (sqlite3.Error, OSError) as error:
                with suppress(sqlite3.Error):
                    self._database.execute("ROLLBACK")
                raise RankscopeError(
                    f"vectors cannot be {what} {self.path}: {error}; free disk space or check the "
                    "folder's permissions, or set RANKSCOPE_HOME to another folder"
                ) from error

    def _open(self) -> sqlite3.Connection:
        database = sqlite3.connect(self.path, timeout=30, isolation_level=None, check_same_thread=False)
        try:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("PRAGMA synchronous=NORMAL")
            database.execute(
                "CREATE TABLE IF NOT EXISTS vectors(model TEXT NOT NULL, hash TEXT NOT NULL, "
                "vector BLOB NOT NULL, PRIMARY KEY(model, hash))"
            )
        except sqlite3.Error:
            database.close()
            raise
        return database

    def get_many(self, model: str, hashes: Sequence[str]) -> dict[str, Vectors]:
        """Hash → vector of shape (d,), for those known. Raises RankscopeError when the disk refuses."""

        def look_up() -> dict[str, Vectors]:
            found: dict[str, Vectors] = {}
            for at in range(0, len(hashes), _LOOKUP):
                part = hashes[at : at + _LOOKUP]
                marks = ",".join("?" * len(part))
                query = f"SELECT hash, vector FROM vectors WHERE model=? AND hash IN ({marks})"
                rows = self._database.execute(query, (model, *part))
                found.update((key, np.frombuffer(blob, dtype="<f4")) for key, blob in rows)
            return found

        return self._do(look_up, "read from")

    def put_many(self, model: str, vectors: Mapping[str, Vectors]) -> None:
        """Store the vectors in one transaction. Raises RankscopeError when the disk refuses."""
        rows = [(model, key, np.asarray(vector, "<f4").tobytes()) for key, vector in vectors.items()]

        def store() -> None:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.executemany("INSERT OR REPLACE INTO vectors VALUES (?,?,?)", rows)
            self._database.execute("COMMIT")

        self._do(store, "stored in")

    def close(self) -> None:
        with self._lock:
            self._database.close()


_shared: dict[Path, VectorCache] = {}
_sharing = threading.Lock()


def shared_cache(name: str = "vectors.db") -> VectorCache:
    """A cache of the data folder, one per process. Raises RankscopeError as `home` does."""
    path = home() / name
    with _sharing:
        if path not in _shared:
            _shared[path] = VectorCache(path)
        return _shared[path]


def model_key(embedder: Embedder) -> str:
    """The model's id, and the version of its weights where the embedder knows one."""
    version = getattr(embedder, "version", "")
    return f"{embedder.model_id}@{version}" if version else embedder.model_id


def embed_checked(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """Vectors of shape (len(texts), embedder.dimension).

    Raises EmbeddingError when the model gives another shape or numbers that are not finite.
    """
    vectors = np.asarray(embedder.embed(texts), dtype=np.float32)
    expected = (len(texts), embedder.dimension)
    if vectors.shape != expected:
        raise EmbeddingError(
            f"model {embedder.model_id} gave vectors of shape {vectors.shape} where {expected} was "
            "declared; choose another model or index the collection again"
        )
    if not np.isfinite(vectors).all():
        raise EmbeddingError(
            f"model {embedder.model_id} gave numbers that are not finite; choose another embedding model"
        )
    return vectors


def embed_all(
    texts: Sequence[str],
    embedder: Embedder,
    cache: VectorCache | None = None,
    progress: Progress | None = None,
) -> Vectors:
    """Vectors of all texts, shape (len(texts), d); each distinct text the cache lacks is embedded once.

    Works in batches; a batch is stored before `progress(done, total)` hears of it, and counts are of
    texts to be embedded. When `progress` raises (`Stopped`), the finished batches are kept.
    Raises EmbeddingError as `embed_checked` does.
    """
    matrix = np.empty((len(texts), embedder.dimension), dtype=np.float32)
    rows: dict[str, list[int]] = {}
    for row, text in enumerate(texts):
        rows.setdefault(text_hash(text), []).append(row)
    model = model_key(embedder)
    missing = list(rows)
    if cache:
        # A vector of another width was made by other weights under the same name: embed that text anew.
        known = {
            key: vector
            for key, vector in cache.get_many(model, missing).items()
            if vector.shape == (embedder.dimension,)
        }
        for key, vector in known.items():
            matrix[rows[key]] = vector
        missing = [key for key in missing if key not in known]
    if progress and missing:
        progress(0, len(missing))
    for at in range(0, len(missing), BATCH):
        batch = missing[at : at + BATCH]
        vectors = embed_checked(embedder, [texts[rows[key][0]] for key in batch])
        if cache:
            cache.put_many(model, dict(zip(batch, vectors, strict=True)))
        for key, vector in zip(batch, vectors, strict=True):
            matrix[rows[key]] = vector
        if progress:
            progress(at + len(batch), len(missing))
    return matrix
