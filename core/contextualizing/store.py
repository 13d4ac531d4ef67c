"""Contexts that were paid for: kept in SQLite beside the collection. The truth; nothing here is cache.

A context belongs to a text (not to a file or an id), a span and a writer: the same text uploaded again,
under whatever name, has its contexts already. Each write is on disk before the call returns. Keys of
services never come here.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.collection import Collection
from core.contextualizing.prompt import Span
from core.database import clear_errors, connect, make_tables, transaction
from core.documents import Documents
from core.errors import ContextError
from core.llm import Usage
from core.settings import ContextSettings
from core.types import Document, encodable, text_hash

USABLE = ("written", "accepted", "edited")
"""States whose text goes into the indexes; the others are "dropped", "truncated" and "refused"."""

_SCHEMA = 1
_LOOKUP = 500  # values in a query: below SQLite's oldest limit of 999 variables

_TABLES = """
CREATE TABLE writers(key TEXT PRIMARY KEY, settings TEXT NOT NULL, at TEXT NOT NULL);
CREATE TABLE texts(digest TEXT PRIMARY KEY, text_hash TEXT NOT NULL);
CREATE TABLE counts(text_hash TEXT NOT NULL, model TEXT NOT NULL, tokens INTEGER NOT NULL,
    PRIMARY KEY(text_hash, model));
CREATE TABLE contexts(
    writer_key TEXT NOT NULL, text_hash TEXT NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL,
    outcome TEXT NOT NULL, state TEXT NOT NULL, text TEXT NOT NULL, edited TEXT NOT NULL DEFAULT '', windowed INTEGER NOT NULL,
    input INTEGER NOT NULL, cache_write INTEGER NOT NULL, cache_write_1h INTEGER NOT NULL,
    cache_read INTEGER NOT NULL, output INTEGER NOT NULL, dollars REAL, batch TEXT NOT NULL,
    at TEXT NOT NULL, mark TEXT NOT NULL, PRIMARY KEY(writer_key, text_hash, start, end));
-- Digests are made without touching the texts.
CREATE INDEX contexts_marked ON contexts(writer_key, text_hash, start, end, mark);
-- What was paid, also for answers that could not be used or were replaced.
CREATE TABLE paid(
    seq INTEGER PRIMARY KEY AUTOINCREMENT, writer_key TEXT NOT NULL, model TEXT NOT NULL,
    input INTEGER NOT NULL, cache_write INTEGER NOT NULL, cache_write_1h INTEGER NOT NULL,
    cache_read INTEGER NOT NULL, output INTEGER NOT NULL, dollars REAL, seconds REAL, batch TEXT NOT NULL,
    at TEXT NOT NULL);
CREATE TABLE batches(
    id TEXT PRIMARY KEY, writer_key TEXT NOT NULL, status TEXT NOT NULL, counts TEXT NOT NULL,
    at TEXT NOT NULL, expires_at TEXT NOT NULL);
CREATE TABLE batch_chunks(
    batch TEXT NOT NULL REFERENCES batches(id) ON DELETE CASCADE ON UPDATE CASCADE, custom_id TEXT NOT NULL,
    text_hash TEXT NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL, windowed INTEGER NOT NULL,
    outcome TEXT NOT NULL DEFAULT '', PRIMARY KEY(batch, custom_id));
CREATE TABLE meta(key TEXT PRIMARY KEY, value INTEGER NOT NULL);
INSERT INTO meta VALUES ('version', 0);
"""


@dataclass(frozen=True, slots=True)
class Written:
    """A model's answer for one chunk: `state` "written", "truncated" or "refused", or blank for one that
    gave nothing to keep but was paid.

    `dollars` is None where no price is known, `seconds` None for a batch's.
    """

    text_hash: str
    start: int
    end: int
    state: str
    text: str
    windowed: bool
    usage: Usage
    dollars: float | None
    seconds: float | None = None
    batch: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One chunk's context as it is kept. `text` is the writer's, `edited` the person's ("" none)."""

    start: int
    end: int
    state: str
    text: str
    edited: str
    windowed: bool
    usage: Usage
    dollars: float | None
    batch: str
    at: str

    @property
    def context(self) -> str:
        """What goes into the indexes: blank unless the state is one of `USABLE`."""
        if self.state not in USABLE:
            return ""
        return self.edited or self.text


@dataclass(frozen=True, slots=True)
class Totals:
    """What a writer's contexts came to: answers paid, their tokens and US dollars.

    `unpriced` answers have no known price and are not in `dollars`. `states` counts the chunks.
    """

    answers: int
    usage: Usage
    dollars: float
    unpriced: int
    states: Mapping[str, int]

    @property
    def cache_hit_rate(self) -> float:
        """Share of the prompt tokens that were read from the server's cache."""
        return self.usage.cache_read / self.usage.prompt if self.usage.prompt else 0.0


@dataclass(frozen=True, slots=True)
class Seen:
    """How a model answered so far, on the mean: output tokens, and seconds of a live call."""

    answers: int
    output: float
    seconds: float


@dataclass(frozen=True, slots=True)
class BatchChunk:
    """One request of a batch; `outcome` is "" until the batch ended, then how it went."""

    custom_id: str
    text_hash: str
    start: int
    end: int
    windowed: bool
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class BatchRow:
    """A batch: `status` "sending" (no answer to the submission yet), "in_progress", "canceling",
    "collected" (its results are in) or "lost" (the server keeps it no longer)."""

    id: str
    writer_key: str
    status: str
    counts: Mapping[str, int]
    at: str
    expires_at: str


class ContextStore:
    """The contexts of one collection, in `contexts.db` of its folder. Safe to share between threads; other
    programs may use it at the same time.

    Every method raises ContextError when the file is damaged, locked, full or gone.
    """

    def __init__(self, folder: Path) -> None:
        """Use `open_store`. Raises ContextError also where a newer Rankscope made the file."""
        self.path = folder / "contexts.db"
        self._lock = threading.RLock()
        self._held: sqlite3.Connection | None = None
        self._closed = False
        self._unkept: list[tuple[ContextSettings, Written]] = []
        self._known: dict[str, tuple[int, dict[str, str]]] = {}  # digests by writer, of a version
        with self._clear():
            self._database = connect(self.path)
            try:
                with transaction(self._database):
                    make_tables(self._database, self.path, _TABLES, _SCHEMA, ContextError)
            except BaseException:
                self._database.close()
                raise

    # Contexts

    @property
    def version(self) -> int:
        """Grows with every change of a context."""
        with self._read() as database:
            return _version(database)

    def register(self, settings: ContextSettings) -> None:
        """Keep what a writer is, prompt included, under its key."""
        facts = {
            name: getattr(settings, name)
            for name in ("writer", "model", "base_url", "prompt", "max_tokens", "window")
        }
        self._keep_held()
        with self._write() as database:
            database.execute(
                "INSERT OR IGNORE INTO writers VALUES (?,?,?)",
                (settings.writer_key, json.dumps(facts), _now()),
            )

    def writers(self) -> dict[str, ContextSettings]:
        """The writers that contexts were asked of, by key, the latest last."""
        with self._read() as database:
            rows = database.execute("SELECT key, settings FROM writers ORDER BY rowid").fetchall()
        return {key: ContextSettings.from_dict(json.loads(facts)) for key, facts in rows}

    def put(self, settings: ContextSettings, written: Written) -> None:
        """Keep an answer and what it cost; on disk when this returns.

        It takes the place of an earlier one unless a person has edited, accepted or dropped that. What a full
        disk does not take is held, and goes there with the next answer or the next start of a job: it is paid.
        """
        with self._lock:
            self._unkept.append((settings, written))
            self._keep_held()

    def _keep_held(self) -> None:
        with self._lock:
            if self._unkept:
                with self._write() as database:
                    for settings, written in self._unkept:
                        _put(database, settings, written)
                self._unkept.clear()

    def settled(self, key: str) -> dict[str, set[Span]]:
        """Text hash → spans that need no asking: usable, dropped by a person, or refused by the model."""
        return self._spans(
            "SELECT text_hash, start, end FROM contexts WHERE writer_key=? AND state!='truncated'", key
        )

    def waiting(self, key: str) -> dict[str, set[Span]]:
        """Text hash → spans that an open batch will answer."""
        return self._spans(
            "SELECT c.text_hash, c.start, c.end FROM batch_chunks c JOIN batches b ON b.id=c.batch "
            "WHERE b.writer_key=? AND b.status NOT IN ('collected', 'lost')",
            key,
        )

    def _spans(self, query: str, key: str) -> dict[str, set[Span]]:
        found: dict[str, set[Span]] = {}
        with self._read() as database:
            for text, start, end in database.execute(query, (key,)):
                found.setdefault(text, set()).add((start, end))
        return found

    def has(self, key: str, text: str, span: Span) -> bool:
        """Whether a chunk needs no asking any more: it is settled, or waits in an open batch."""
        query = (
            "SELECT 1 FROM contexts WHERE writer_key=?1 AND text_hash=?2 AND start=?3 AND end=?4 "
            "AND state!='truncated' UNION ALL "
            "SELECT 1 FROM batches b JOIN batch_chunks c ON b.id=c.batch WHERE b.writer_key=?1 "
            "AND b.status NOT IN ('collected', 'lost') AND c.text_hash=?2 AND c.start=?3 AND c.end=?4"
        )
        with self._read() as database:
            return database.execute(query, (key, text, *span)).fetchone() is not None

    def rows(self, key: str, text: str) -> list[Row]:
        """All contexts of a text (by its hash) from one writer, by their spans."""
        query = (
            "SELECT start, end, state, text, edited, windowed, input, cache_write, cache_write_1h, "
            "cache_read, output, dollars, batch, at FROM contexts WHERE writer_key=? AND text_hash=? "
            "ORDER BY start, end"
        )
        with self._read() as database:
            found = database.execute(query, (key, text)).fetchall()
        return [
            Row(start, end, state, text, edited, bool(windowed), Usage(*facts[:5]), *facts[5:])
            for start, end, state, text, edited, windowed, *facts in found
        ]

    def contexts_of(
        self, document: Document, spans: Sequence[Span], settings: ContextSettings
    ) -> list[str]:
        """The usable context of each span; blank where there is none."""
        query = "SELECT start, end, state, text, edited FROM contexts WHERE writer_key=? AND text_hash=?"
        with self._read() as database:
            rows = database.execute(query, (settings.writer_key, text_hash(document.text))).fetchall()
        found = {
            (start, end): edited or text for start, end, state, text, edited in rows if state in USABLE
        }
        return [found.get((start, end), "") for start, end in spans]

    def digests(self, documents: Documents, settings: ContextSettings) -> tuple[str, ...]:
        """For each document a hash of its usable contexts; blank without any.

        A document is read only where its digest was never met before.
        """
        marked = self._marked(settings.writer_key)
        if not marked:
            return ("",) * len(documents)
        return tuple(marked.get(text, "") for text in self.text_hashes(documents))

    def _marked(self, key: str) -> dict[str, str]:
        """Text hash → hash of its usable contexts from one writer."""
        with self._lock:
            with self._read() as database:
                version = _version(database)
                if key in self._known and self._known[key][0] == version:
                    return self._known[key][1]
                rows = database.execute(
                    "SELECT text_hash, start, end, mark FROM contexts INDEXED BY contexts_marked "
                    "WHERE writer_key=? AND mark!='' ORDER BY text_hash, start, end",
                    (key,),
                )
                made: dict[str, Any] = {}
                for text, start, end, mark in rows:
                    if text not in made:
                        made[text] = hashlib.sha256()
                    made[text].update(f"{start}-{end}:{mark};".encode())
            self._known[key] = (version, {text: one.hexdigest()[:16] for text, one in made.items()})
            return self._known[key][1]

    def text_hashes(self, documents: Documents) -> tuple[str, ...]:
        """The text hash of each document; one whose digest was never met before is read, once."""
        known = self._known_texts(documents.digests)
        new: dict[str, str] = {}
        for item, digest in enumerate(documents.digests):
            if digest not in known and digest not in new:
                new[digest] = text_hash(documents[item].text)
        if new:
            with self._write() as database:
                database.executemany("INSERT OR IGNORE INTO texts VALUES (?,?)", new.items())
        known |= new
        return tuple(known[digest] for digest in documents.digests)

    def _known_texts(self, digests: Sequence[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        with self._read() as database:
            for at in range(0, len(digests), _LOOKUP):
                part = digests[at : at + _LOOKUP]
                marks = ",".join("?" * len(part))
                query = f"SELECT digest, text_hash FROM texts WHERE digest IN ({marks})"
                found.update(database.execute(query, part))
        return found

    # What a person decides

    def accept(self, key: str, text: str, span: Span) -> None:
        """Mark a context as read and found good."""
        self._decide(key, text, span, "accepted", "state!='truncated' AND state!='refused'")

    def edit(self, key: str, text: str, span: Span, words: str) -> None:
        """Put a person's words in the place of the writer's, which are kept; also where it gave none.

        Raises ContextError when the words are blank: `drop` it instead.
        """
        words = encodable(words).strip()
        if not words:
            raise ContextError("the context is blank; type one, or drop it")
        self._decide(key, text, span, "edited", "1", words)

    def drop(self, key: str, text: str, span: Span) -> None:
        """Leave the chunk without a context; it is not asked for again."""
        self._decide(key, text, span, "dropped", "state!='truncated' AND state!='refused'")

    def restore(self, key: str, text: str, span: Span) -> None:
        """Back to what the writer gave."""
        self._decide(key, text, span, "", "1", "")

    def clear(self, key: str, text: str, span: Span) -> None:
        """Forget a chunk's context, so that it is asked for again."""
        with self._write() as database:
            database.execute(
                "DELETE FROM contexts WHERE writer_key=? AND text_hash=? AND start=? AND end=?",
                (key, text, *span),
            )
            _bump(database)

    def _decide(
        self, key: str, text: str, span: Span, state: str, where: str, words: str | None = None
    ) -> None:
        """`state` "" is the writer's own; `words` None leaves a person's words as they are."""
        with self._write() as database:
            place = (key, text, *span)
            at = "writer_key=? AND text_hash=? AND start=? AND end=?"
            old = database.execute(
                f"SELECT text, edited, outcome FROM contexts WHERE {at} AND {where}", place
            ).fetchone()
            if not old:
                raise ContextError(
                    f"the chunk {span[0]}-{span[1]} has no context to change; let it be written first"
                )
            state = state or old[2]
            edited = old[1] if words is None else words
            mark = _mark(edited or old[0]) if state in USABLE else ""
            database.execute(
                f"UPDATE contexts SET state=?, edited=?, mark=? WHERE {at}",
                (state, edited, mark, *place),
            )
            _bump(database)

    def forget(self, texts: Iterable[str]) -> None:
        """Delete contexts and counts of texts (by hash) that are gone for good; what was paid stays told."""
        with self._write() as database:
            for text in texts:
                for table in ("contexts", "counts", "texts"):
                    database.execute(f"DELETE FROM {table} WHERE text_hash=?", (text,))
            _bump(database)

    def orphans(self, documents: Documents) -> set[str]:
        """Hashes of texts with contexts that none of these documents has: what `forget` may take."""
        here = set(self._known_texts(documents.digests).values())
        with self._read() as database:
            return {
                text
                for (text,) in database.execute("SELECT DISTINCT text_hash FROM contexts")
                if text not in here
            }

    # Sums

    def totals(self, key: str = "") -> Totals:
        """What was paid and what there is, for one writer or for all."""
        which, values = ("WHERE writer_key=?", (key,)) if key else ("", ())
        with self._read() as database:
            row = database.execute(
                "SELECT COUNT(*), TOTAL(input), TOTAL(cache_write), TOTAL(cache_write_1h), "
                f"TOTAL(cache_read), TOTAL(output), TOTAL(dollars), COUNT(dollars) FROM paid {which}",
                values,
            ).fetchone()
            states = dict(
                database.execute(f"SELECT state, COUNT(*) FROM contexts {which} GROUP BY state", values)
            )
        answers, *tokens, dollars, priced = row
        return Totals(answers, Usage(*map(int, tokens)), dollars, answers - priced, states)

    def seen(self, model: str) -> Seen | None:
        """How a model answered so far; None where it never did."""
        with self._read() as database:
            answers, output, seconds = database.execute(
                "SELECT COUNT(*), AVG(output), AVG(seconds) FROM paid WHERE model=?", (model,)
            ).fetchone()
        return Seen(answers, output, seconds or 0.0) if answers else None

    def counts(self, model: str) -> dict[str, int]:
        """Text hash → tokens, as the model's own server counted them."""
        with self._read() as database:
            return dict(database.execute("SELECT text_hash, tokens FROM counts WHERE model=?", (model,)))

    def put_count(self, text: str, model: str, tokens: int) -> None:
        with self._write() as database:
            database.execute("INSERT OR REPLACE INTO counts VALUES (?,?,?)", (text, model, tokens))

    # Batches

    def open_batch(self, batch: str, settings: ContextSettings, chunks: Sequence[BatchChunk]) -> None:
        """Keep a batch and its chunks as "sending", before it is sent.

        Raises ContextError when one of them is in an open batch already: it would be paid twice.
        """
        with self._lock:
            sent = self.waiting(settings.writer_key)
            if any((c.start, c.end) in sent.get(c.text_hash, ()) for c in chunks):
                raise ContextError("these chunks were handed over already, from another window; reload")
            with self._write() as database:
                database.execute(
                    "INSERT INTO batches VALUES (?,?,'sending','{}',?,'')",
                    (batch, settings.writer_key, _now()),
                )
                database.executemany(
                    "INSERT INTO batch_chunks VALUES (?,?,?,?,?,?,'')",
                    [(batch, c.custom_id, c.text_hash, c.start, c.end, c.windowed) for c in chunks],
                )

    def name_batch(self, batch: str, name: str) -> None:
        """The server took it and calls it `name`."""
        with self._write() as database:
            database.execute("UPDATE batches SET id=?, status='in_progress' WHERE id=?", (name, batch))

    def note_batch(self, batch: str, status: str, counts: Mapping[str, int], expires_at: str) -> None:
        with self._write() as database:
            database.execute(
                "UPDATE batches SET status=?, counts=?, expires_at=? WHERE id=?",
                (status, json.dumps(dict(counts)), expires_at, batch),
            )

    def batches(self) -> list[BatchRow]:
        """All batches, the latest last."""
        with self._read() as database:
            rows = database.execute(
                "SELECT id, writer_key, status, counts, at, expires_at FROM batches ORDER BY rowid"
            ).fetchall()
        return [
            BatchRow(batch, key, status, json.loads(counts), at, expires_at)
            for batch, key, status, counts, at, expires_at in rows
        ]

    def batch_chunks(self, batch: str) -> dict[str, BatchChunk]:
        """The chunks of a batch by custom id."""
        query = (
            "SELECT custom_id, text_hash, start, end, windowed, outcome FROM batch_chunks WHERE batch=?"
        )
        with self._read() as database:
            rows = database.execute(query, (batch,)).fetchall()
        return {
            name: BatchChunk(name, text, start, end, bool(windowed), outcome)
            for name, text, start, end, windowed, outcome in rows
        }

    def collect(
        self,
        batch: str,
        settings: ContextSettings,
        results: Sequence[tuple[str, str, Written | None]],
    ) -> None:
        """Keep results (custom id, outcome, answer if any) of a batch, in one transaction.

        One whose outcome is there already, because an earlier collecting was cut short, counts once.
        """
        with self._write() as database:
            for custom_id, outcome, written in results:
                new = database.execute(
                    "UPDATE batch_chunks SET outcome=? WHERE batch=? AND custom_id=? AND outcome=''",
                    (outcome, batch, custom_id),
                ).rowcount
                if new and written:
                    _put(database, settings, written)

    def forget_batch(self, batch: str) -> None:
        """Give up a batch whose submission never got an answer: its chunks may be asked for again."""
        with self._write() as database:
            database.execute("DELETE FROM batches WHERE id=?", (batch,))

    # One writer at a time

    def hold(self) -> None:
        """Keep every other job and program from writing contexts of this collection, until `release`, or
        until this program ends, however it ends: what two ask at once is paid twice.

        Raises ContextError where they are being written already.
        """
        with self._clear():
            # A lock that the system takes back from a program that is killed, on every platform.
            held = sqlite3.connect(
                self.path.with_name("contexts.lock"), 0.0, isolation_level=None, check_same_thread=False
            )
            try:
                held.execute("BEGIN EXCLUSIVE")
            except sqlite3.Error as error:
                held.close()
                if "locked" not in str(error):
                    raise
                raise ContextError(
                    "contexts of this collection are being written already; wait for that, or stop it"
                ) from None
        self._held = held

    def release(self) -> None:
        if self._held:
            self._held.close()
            self._held = None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """`hold`, and `release` in the end."""
        self.hold()
        try:
            yield
        finally:
            self.release()

    # The database

    def close(self) -> None:
        self.release()
        with self._lock:
            self._closed = True
            self._database.close()

    def _clear(self) -> AbstractContextManager[None]:
        instead = "delete it: its contexts must then be written, and paid for, again"
        return clear_errors("the collection's contexts", self.path, ContextError, instead)

    @contextmanager
    def _read(self) -> Iterator[sqlite3.Connection]:
        with self._transaction("BEGIN") as database:
            yield database

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        with self._transaction("BEGIN IMMEDIATE") as database:
            yield database

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._lock, self._clear():
            if (
                self._closed or not self.path.exists()
            ):  # SQLite would go on writing into a file that is no longer there
                raise ContextError(f"the contexts in {self.path} were deleted with their collection")
            with transaction(self._database, begin):
                yield self._database


_open: dict[Path, ContextStore] = {}
_opening = threading.Lock()


def open_store(collection: Collection) -> ContextStore:
    """The contexts of a collection (of its `folder`); every caller in the process gets the same object.

    Raises ContextError when the file is damaged or cannot be opened.
    """
    folder = Path(collection.folder)
    with _opening:
        found = _open.get(folder)
        if found is None or not found.path.exists():
            if found:
                found.close()
            found = _open[folder] = ContextStore(folder)
            collection.on_close(found.close)
        return found


def _put(database: sqlite3.Connection, settings: ContextSettings, written: Written) -> None:
    usage, key = written.usage, settings.writer_key
    database.execute(
        "INSERT INTO paid(writer_key, model, input, cache_write, cache_write_1h, cache_read, output, "
        "dollars, seconds, batch, at) VALUES (?,?,?,?,?,?,?,?,?,?,?)",
        (
            *(key, settings.model, *_tokens(usage)),
            *(written.dollars, written.seconds, written.batch, _now()),
        ),
    )
    if not written.state:
        return
    text = encodable(written.text)
    database.execute(
        "INSERT INTO contexts VALUES (?,?,?,?,?,?,?,'',?,?,?,?,?,?,?,?,?,?) "
        "ON CONFLICT(writer_key, text_hash, start, end) DO UPDATE SET outcome=excluded.outcome, "
        "state=excluded.state, "
        "text=excluded.text, windowed=excluded.windowed, input=excluded.input, "
        "cache_write=excluded.cache_write, cache_write_1h=excluded.cache_write_1h, "
        "cache_read=excluded.cache_read, output=excluded.output, dollars=excluded.dollars, "
        "batch=excluded.batch, at=excluded.at, mark=excluded.mark "
        "WHERE state NOT IN ('accepted', 'edited', 'dropped')",
        (
            *(key, written.text_hash, written.start, written.end),
            *(written.state, written.state, text, written.windowed),
            *_tokens(usage),
            *(written.dollars, written.batch, _now()),
            _mark(text) if written.state in USABLE else "",
        ),
    )
    _bump(database)


def _tokens(usage: Usage) -> tuple[int, int, int, int, int]:
    return (
        usage.input,
        usage.cache_write,
        usage.cache_write_1h,
        usage.cache_read,
        usage.output,
    )


def _mark(text: str) -> str:
    return text_hash(text)[:16]


def _version(database: sqlite3.Connection) -> int:
    return int(database.execute("SELECT value FROM meta WHERE key='version'").fetchone()[0])


def _bump(database: sqlite3.Connection) -> None:
    database.execute("UPDATE meta SET value=value+1 WHERE key='version'")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
