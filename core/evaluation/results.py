"""What was measured is kept, so that work that was stopped goes on where it was: `results.db`, a cache.

A result is named by the corpus, the settings, what is known of the items where that is asked for, and the
query with its evidence: whatever of these changes, the old result is not found any more.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from core.corpus import Corpus
from core.corpus.first_stage import FirstStage
from core.database import transaction
from core.errors import RankscopeError
from core.evaluation.judgements import Evidence, GoldenQuery
from core.extras import registered_indexes, registered_signals
from core.fields import ItemFields
from core.filters import Filter, FilterError
from core.reranking import load_reranker
from core.settings import RERANKERS, SearchSettings
from core.vectors_cache import model_key

T = TypeVar("T")

LAYOUT = 4
"""Raise it when the same search of the same corpus gives other ranks or times than before, or rows another form."""

_LARGEST = 256 << 20  # bytes: a file that grew beyond is begun anew
_LOOKUP = 500  # keys a statement: below SQLite's oldest limit of 999 variables
_TABLES = (
    "CREATE TABLE results(key TEXT PRIMARY KEY, facts TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE trials(space TEXT, point TEXT, facts TEXT NOT NULL, "
    "PRIMARY KEY(space, point)) WITHOUT ROWID",
)

_columns: WeakKeyDictionary[ItemFields, dict[str, str]] = WeakKeyDictionary()
"""Field → digest of its column: thousands of settings may ask for one."""


@dataclass(frozen=True, eq=False, slots=True)
class StageSeen:
    """One query at one stage: `ranks` of its golden pieces (0: not there), `judged` ranks, ascending, of the
    lines somebody judged, `length` of the list, and `reach`, the ranks it was asked for."""

    reach: int
    ranks: NDArray[np.int64]
    judged: NDArray[np.int64]
    length: int


@dataclass(frozen=True, eq=False, slots=True)
class Observed:
    """One query under one setting. `price`: dollars for its reranking, nothing of it cached; None unknown.
    `failed`: why it was not reranked; `held`: because it costs. `dollars` were spent now, and are not kept.
    `reading`: what else was read from its trace, with the name of that reading, as JSON holds it.
    """

    stages: Mapping[str, StageSeen]
    milliseconds: float
    notes: tuple[str, ...] = ()
    price: float | None = 0.0
    failed: str = ""
    held: bool = False
    dollars: float = 0.0
    reading: tuple[str, Any] | None = None


class ResultsCache:
    """Results and trials in a folder. A damaged file is replaced; where the disk refuses, nothing is kept and
    `trouble` says why: measuring goes on. Safe to share between threads and programs."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "results.db"
        self.trouble = ""

    @contextmanager
    def held(self) -> Iterator[None]:
        """Holds the file open: the last to close it writes its log back, which takes longer than a search."""
        try:
            holding = self._open()
        except (sqlite3.Error, OSError):  # what reads or writes says so
            yield
            return
        with closing(holding):
            yield

    def get(self, keys: Sequence[str]) -> dict[str, Observed]:
        """Key → result, for those known."""

        def look_up(database: sqlite3.Connection) -> dict[str, str]:
            found: dict[str, str] = {}
            for at in range(0, len(keys), _LOOKUP):
                part = keys[at : at + _LOOKUP]
                marks = ",".join("?" * len(part))
                query = f"SELECT key, facts FROM results WHERE key IN ({marks})"
                found.update(database.execute(query, part).fetchall())
            return found

        nothing: dict[str, str] = {}
        rows = self._do(look_up, nothing) if keys else nothing
        read = ((key, _observed(facts)) for key, facts in rows.items())
        return {key: one for key, one in read if one is not None}

    def put(self, results: Mapping[str, Observed]) -> None:
        """Keep results, all or none of them."""
        rows = [(key, _facts(one)) for key, one in results.items()]
        if rows:
            self._do(
                lambda db: db.executemany("INSERT OR REPLACE INTO results VALUES (?,?)", rows), None
            )

    def trials(self, space: str) -> dict[str, dict[str, Any]]:
        """Point → facts of the trials kept for a space, in the order of the points."""
        query = "SELECT point, facts FROM trials WHERE space=? ORDER BY point"
        nothing: list[tuple[str, str]] = []
        rows = self._do(lambda db: db.execute(query, (space,)).fetchall(), nothing)
        return {point: json.loads(facts) for point, facts in rows}

    def put_trial(self, space: str, point: str, facts: Mapping[str, Any]) -> None:
        row = (space, point, json.dumps(facts))
        self._do(lambda db: db.execute("INSERT OR REPLACE INTO trials VALUES (?,?,?)", row), None)

    def _do(self, work: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        try:
            try:
                return self._once(work)
            except sqlite3.DatabaseError as error:
                # Its kinds say that it is locked, full or read-only; the error itself that it is no database.
                if type(error) is not sqlite3.DatabaseError:
                    raise
                self._remove()
                return self._once(work)
        except (sqlite3.Error, OSError) as error:
            self.trouble = f"results are not kept, {self.path}: {error}"
        return otherwise

    def _once(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with closing(self._open()) as database, transaction(database, "BEGIN"):
            return work(database)

    def _open(self) -> sqlite3.Connection:
        if self.path.exists() and self.path.stat().st_size > _LARGEST:
            self._remove()
        database = sqlite3.connect(self.path, timeout=30, isolation_level=None)
        try:
            if _layout(database) != LAYOUT:
                database.execute("PRAGMA journal_mode=WAL")
                with transaction(database):
                    if _layout(database) != LAYOUT:  # another program may have been quicker
                        for table in ("results", "trials"):
                            database.execute(f"DROP TABLE IF EXISTS {table}")
                        for statement in _TABLES:
                            database.execute(statement)
                        database.execute(f"PRAGMA user_version={LAYOUT}")
            database.execute("PRAGMA synchronous=NORMAL")
        except sqlite3.Error:
            database.close()
            raise
        return database

    def _remove(self) -> None:
        for ending in ("", "-wal", "-shm"):
            self.path.with_name(self.path.name + ending).unlink(missing_ok=True)


def _layout(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def query_key(query: GoldenQuery) -> str:
    """Names a query by its words, its evidence and what was rejected; its id does not matter."""

    def plain(spans: Sequence[Evidence]) -> list[list[Any]]:
        return sorted(
            [one.document_id, one.start, one.end, one.grade, sorted(one.copies)] for one in spans
        )

    unlocated = sorted([one.grade, one.reason] for one in query.unlocated)
    return _hash([query.text, plain(query.evidence), plain(query.rejected), unlocated])


def settings_key(corpus: Corpus, settings: SearchSettings) -> str | None:
    """Names a search of a corpus; None where parts that do not say their version take part in it."""
    version = parts_version(settings)
    if version is None:
        return None
    known = items_key(corpus, settings)
    facts = [corpus.fingerprint, model_key(corpus.embedder), settings.fingerprint(), version, known]
    return _hash(facts)


class Known(Protocol):
    """What is known of items besides their texts, as a corpus has it."""

    @property
    def fields(self) -> ItemFields: ...
    @property
    def first_stage(self) -> FirstStage: ...


def items_key(known: Known, settings: SearchSettings) -> str:
    """Names what a search reads of items that no fingerprint holds: the columns that its filters, signals and
    rules ask for, and the day from which recency counts; blank when there is nothing."""
    rules = (rule.items for rule in known.first_stage.rules.rules if rule.on)
    asked = {one.field for part in (Filter.parse(settings.filters), *rules) for one in part.conditions}
    asked |= {settings.recency_field, settings.popularity_field} - {""}
    if not asked:
        return ""
    day = known.first_stage.today.isoformat() if settings.recency_field else ""
    return _hash([day, [(name, _column(known.fields, name)) for name in sorted(asked)]])


def _column(fields: ItemFields, name: str) -> str:
    """Names what a field holds; blank where no item has it."""
    known = _columns.setdefault(fields, {})
    if name not in known:
        try:
            known[name] = _hash([fields.kind(name), fields.texts(name)])
        except FilterError:
            known[name] = ""
    return known[name]


def parts_version(settings: SearchSettings) -> str | None:
    """The version of the reranker; None where one that somebody registered has none, or where they registered
    an index or a signal."""
    if registered_indexes() or registered_signals():
        return None
    if settings.rerank == "none":
        return ""
    try:
        reranker = load_reranker(settings)
    except RankscopeError:
        return None
    version = getattr(reranker and reranker.reranker, "version", None)
    if reranker is None or (version is None and settings.rerank not in RERANKERS):
        return None
    return f"{reranker.model_id}@{version}"


def result_key(settings: str, query: str) -> str:
    """The key of a result from `settings_key` and `query_key`."""
    return hashlib.sha256(f"{settings} {query}".encode()).hexdigest()[:32]


def _hash(facts: object) -> str:
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]


def _facts(one: Observed) -> str:
    stages = {
        name: [seen.reach, seen.ranks.tolist(), seen.judged.tolist(), seen.length]
        for name, seen in one.stages.items()
    }
    facts = [stages, one.milliseconds, one.notes, one.price, one.reading]
    return json.dumps(facts, separators=(",", ":"))


def _observed(facts: str) -> Observed | None:
    try:
        stages, milliseconds, notes, price, reading = json.loads(facts)
        name, read = reading or ("", None)
        seen = {
            str(name): StageSeen(
                int(reach),
                np.array(ranks, dtype=np.int64),
                np.array(judged, dtype=np.int64),
                int(length),
            )
            for name, (reach, ranks, judged, length) in stages.items()
        }
        return Observed(
            seen,
            float(milliseconds),
            tuple(map(str, notes)),
            price,
            reading=(str(name), read) if name else None,
        )
    except (ValueError, TypeError, AttributeError):
        return None
