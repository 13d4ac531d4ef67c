"""Answers on disk: paid for once, in `answers.db` in the collection's folder, and gone with it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, astuple
from datetime import UTC, datetime, timedelta
from pathlib import Path

from core.answering.answer import Answer, Cited, Part
from core.answering.inquiry import Inquiry, Source
from core.database import change_tables, clear_errors, connect, make_tables, transaction
from core.llm import Usage

SCHEMA = 2
_HOUR = timedelta(hours=1)
_TABLES = """
CREATE TABLE answers(
    seq INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, prefix TEXT NOT NULL,
    question TEXT NOT NULL, path TEXT NOT NULL, model TEXT NOT NULL, sources TEXT NOT NULL,
    at TEXT NOT NULL, parts TEXT NOT NULL, state TEXT NOT NULL, usage TEXT NOT NULL, dollars REAL,
    expected REAL, seconds REAL NOT NULL, note TEXT NOT NULL, request_id TEXT NOT NULL,
    asker TEXT NOT NULL DEFAULT '');
CREATE INDEX answers_by_key ON answers(key);
CREATE INDEX answers_by_prefix ON answers(prefix);
"""
_SINCE_1 = "ALTER TABLE answers ADD COLUMN asker TEXT NOT NULL DEFAULT ''"
_COLUMNS = (
    "seq, key, question, path, model, sources, at, parts, state, usage, dollars, expected, seconds, "
    "note, request_id, asker"
)


class AnswerStore:
    """A collection's answers. Every call is one transaction, on disk when it returns.

    Safe to share between threads and programs. Raises CollectionError when the disk or the file fails.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "answers.db"

    def begin(self, inquiry: Inquiry, expected: float | None, asker: str = "") -> Answer:
        """A place for an answer, before it is asked for: cut, until it is known to be whole."""
        at = datetime.now(UTC).isoformat(timespec="seconds")
        with self._open() as database:
            row = database.execute(
                "INSERT INTO answers(key, prefix, question, path, model, sources, at, parts, state, usage, "
                "expected, seconds, note, request_id, asker) "
                "VALUES (?,?,?,?,?,?,?,'[]','cut','{}',?,0,'','',?)",
                (
                    inquiry.key,
                    inquiry.prefix,
                    inquiry.question,
                    inquiry.path,
                    inquiry.model,
                    json.dumps([astuple(source) for source in inquiry.sources]),
                    at,
                    expected,
                    asker,
                ),
            )
            place = int(row.lastrowid or 0)
        return Answer(
            place,
            inquiry.key,
            inquiry.question,
            inquiry.path,
            inquiry.model,
            inquiry.sources,
            at,
            expected=expected,
            asker=asker,
        )

    def save(self, answer: Answer) -> None:
        """Put the answer as it is now in the place that `begin` gave it."""
        parts = json.dumps([[part.text, [astuple(one) for one in part.cited]] for part in answer.parts])
        with self._open() as database:
            database.execute(
                "UPDATE answers SET parts=?, state=?, usage=?, dollars=?, seconds=?, note=?, request_id=? "
                "WHERE seq=?",
                (
                    parts,
                    answer.state,
                    json.dumps(asdict(answer.usage)),
                    answer.dollars,
                    answer.seconds,
                    answer.note,
                    answer.request_id,
                    answer.id,
                ),
            )

    def forget(self, place: int) -> None:
        """Delete an answer."""
        with self._open() as database:
            database.execute("DELETE FROM answers WHERE seq=?", (place,))

    def get(self, place: int) -> Answer | None:
        with self._open() as database:
            row = database.execute(f"SELECT {_COLUMNS} FROM answers WHERE seq=?", (place,)).fetchone()
        return _answer(row) if row else None

    def find(self, key: str, asker: str | None = None) -> Answer | None:
        """The whole answer given last to the same question, model and sources: to this asker, None is to anybody."""
        with self._open() as database:
            row = database.execute(
                f"SELECT {_COLUMNS} FROM answers WHERE key=?1 AND state='whole' AND (?2 IS NULL OR asker=?2) "
                "ORDER BY seq DESC LIMIT 1",
                (key, asker),
            ).fetchone()
        return _answer(row) if row else None

    def latest(self, most: int = 50, asker: str | None = None) -> list[Answer]:
        """Answers to this asker (None: to anybody), the latest first; not those of which nothing has come."""
        with self._open() as database:
            rows = database.execute(
                f"SELECT {_COLUMNS} FROM answers WHERE (parts<>'[]' OR state<>'cut') "
                "AND (?1 IS NULL OR asker=?1) ORDER BY seq DESC LIMIT ?2",
                (asker, most),
            ).fetchall()
        return [_answer(row) for row in rows]

    def warm_until(self, prefix: str) -> datetime | None:
        """Until when the prompt cache should hold this prefix; None when it does not any more."""
        with self._open() as database:
            rows = database.execute(
                "SELECT at, usage FROM answers WHERE prefix=? ORDER BY seq DESC LIMIT 10", (prefix,)
            ).fetchall()
        for at, usage in rows:
            used = Usage(**json.loads(usage))
            if used.cache_write_1h or used.cache_read:
                until = datetime.fromisoformat(at) + _HOUR
                return until if until > datetime.now(UTC) else None
        return None

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        instead = "delete it: its answers are gone then, and asking again is paid again"
        with (
            clear_errors("the collection's answers", self._path, instead=instead),
            closing(connect(self._path)) as database,
            transaction(database),
        ):
            make_tables(database, self._path, _TABLES, SCHEMA)
            if database.execute("PRAGMA user_version").fetchone()[0] == 1:
                change_tables(database, _SINCE_1, SCHEMA)
            yield database


def _answer(row: tuple) -> Answer:
    facts = dict(zip(_COLUMNS.split(", "), row, strict=True))
    sources = tuple(
        Source(document, digest, title, start, end, tuple((a, b) for a, b in spans))
        for document, digest, title, start, end, spans in json.loads(facts["sources"])
    )
    parts = tuple(
        Part(text, tuple(Cited(*one) for one in cited)) for text, cited in json.loads(facts["parts"])
    )
    usage = Usage(**json.loads(facts["usage"]))
    facts |= {"id": facts.pop("seq"), "sources": sources, "parts": parts, "usage": usage}
    return Answer(**facts)
