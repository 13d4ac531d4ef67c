"""A collection's judgements on disk: `judgements.db` in its folder. The truth; gone with the collection.

A judged span is kept with its words, those around it and its document's name, so that it can be found
again where the document was replaced: `queries` looks for it each time, and what is stored stays as
it was judged. Generated questions wait as drafts, and count for nothing until a person accepts them.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.collection import Collection
from core.database import clear_errors, connect, make_tables, transaction
from core.documents import Documents
from core.evaluation.judgements import EvaluationError, Evidence, GoldenQuery, Judgements, Unlocated
from core.evaluation.relocate import Place, Placed, Places
from core.llm import Usage
from core.types import encodable

_SCHEMA = 1
_TABLES = """
CREATE TABLE queries(
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, text TEXT NOT NULL,
    source TEXT NOT NULL, at TEXT NOT NULL);
CREATE INDEX queries_by_text ON queries(text);
CREATE TABLE spans(
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    query INTEGER NOT NULL REFERENCES queries(seq) ON DELETE CASCADE,
    place TEXT NOT NULL, copies TEXT NOT NULL, grade INTEGER NOT NULL, reason TEXT NOT NULL,
    at TEXT NOT NULL);
CREATE INDEX spans_by_query ON spans(query);
CREATE TABLE drafts(
    seq INTEGER PRIMARY KEY AUTOINCREMENT, question TEXT NOT NULL, place TEXT NOT NULL,
    state TEXT NOT NULL, reason TEXT NOT NULL, model TEXT NOT NULL, usage TEXT NOT NULL, dollars REAL,
    at TEXT NOT NULL);
CREATE TABLE meta(key TEXT PRIMARY KEY, value INTEGER NOT NULL);
INSERT INTO meta VALUES ('version', 0);
"""

HERE = "judged here"
GENERATED = "generated"


@dataclass(frozen=True, slots=True)
class Added:
    """What became of judgements that were added: `new` ones (or of another grade), and the `same`.

    `queries` are new ones. `problems` names all that was not taken as given.
    """

    new: int
    same: int
    problems: tuple[str, ...]
    queries: int


@dataclass(frozen=True, slots=True)
class Draft:
    """A generated question and the span that answers it. `state`: "waiting" for a person, "accepted" or
    "dropped", by a person or, as `reason` says, because its quote is not in the chunk.

    `dollars` is None where no price is known. `document` is the document's name.
    """

    id: int
    question: str
    document_id: str
    document: str
    start: int
    end: int
    quote: str
    state: str
    reason: str
    model: str
    usage: Usage
    dollars: float | None
    at: str


class JudgementStore:
    """The judgements of one collection. Every call is one transaction, on disk when it returns.

    Safe to share between threads and programs. Raises CollectionError when the disk or the file fails.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "judgements.db"

    # Judging

    def judge(
        self, query: str, document_id: str, start: int, end: int, grade: int, documents: Documents
    ) -> str:
        """Judge a span of a document for a query, which is made where it is new; returns the query's id.

        `grade` 0 is not relevant, from 1 on relevant; the same span again takes the new grade. Raises
        EvaluationError for a blank query, an unknown document, a span outside it or a negative grade.
        """
        span = _placed(documents, Evidence(document_id, start, end, grade))
        with self._open() as database:
            seq, name = _named(database, query, HERE)
            _forget(database, seq, Places(documents), Placed(document_id, start, end))
            _insert(database, seq, span, (), grade)
            _bump(database)
        return name

    def unjudge(self, query: str, document_id: str, start: int, end: int, documents: Documents) -> None:
        """Take a judgement back, also one that was found again in a new version of its document.

        A query that was made by judging, and has no judgement left, goes with it. Raises EvaluationError
        when there is no such judgement.
        """
        with self._open() as database:
            row = database.execute(
                "SELECT seq, source FROM queries WHERE text=? ORDER BY seq LIMIT 1", (_words(query),)
            ).fetchone()
            gone = row and _forget(database, row[0], Places(documents), Placed(document_id, start, end))
            if not gone:
                raise EvaluationError(
                    f"{start}-{end} of {document_id} has no judgement for this query; reload to see which "
                    "there are"
                )
            if row[1] == HERE and not _count(database, row[0]):
                database.execute("DELETE FROM queries WHERE seq=?", (row[0],))
            _bump(database)

    # Queries

    def queries(self, documents: Documents) -> Judgements:
        """All queries, located in `documents`, in the order they came.

        Evidence of a document that is there no more is looked for in documents of the same name; what is
        not found, or found twice alike, is unlocated and among the `problems`.
        """
        with self._open() as database:
            rows = database.execute("SELECT seq, id, text FROM queries ORDER BY seq").fetchall()
            spans: dict[int, list[tuple]] = {seq: [] for seq, _, _ in rows}
            for query, *facts in database.execute(
                "SELECT query, place, copies, grade, reason FROM spans ORDER BY seq"
            ):
                spans[query].append(tuple(facts))
        places = Places(documents)
        problems: list[str] = []
        queries = tuple(_query(name, text, spans[seq], places, problems) for seq, name, text in rows)
        return Judgements(queries, tuple(problems))

    def add(self, judgements: Judgements, documents: Documents, source: str) -> Added:
        """Add queries with all their judgements; `source` says where they come from (a file's name).

        A query joins the one with its id and words, else one of the same words; an id that another query
        has gets a number. What cannot be located is kept, and looked for again when documents change.
        """
        problems = list(judgements.problems)
        places = Places(documents)
        new = same = made = 0
        renamed: list[str] = []
        with self._open() as database:
            taken: set[int] = set()
            for query in judgements.queries:
                seq, fresh, name = _joined(database, query, source, taken)
                taken.add(seq)
                made += fresh
                if name != query.id and fresh:
                    renamed.append(f"{query.id} is {name}")
                known = _Known(database, seq, places)
                for one in (*query.evidence, *query.rejected):
                    copies = tuple(places.keep(Placed(*copy)) for copy in one.copies)
                    added = known.add(places.keep(Placed(*_span(one))), copies, one.grade, "")
                    new, same = new + added, same + (not added)
                for lost in query.unlocated:
                    place = places.lost(
                        Place("", lost.document, lost.span, lost.quote, whole=lost.whole)
                    )
                    added = known.add(place, (), lost.grade, lost.reason)
                    new, same = new + added, same + (not added)
            if renamed:
                more = f" and {len(renamed) - 5} more" if len(renamed) > 5 else ""
                problems.append(
                    f"other queries have these ids, so new ones were given: {', '.join(renamed[:5])}{more}"
                )
            _bump(database)
        return Added(new, same, tuple(problems), made)

    def add_query(self, text: str) -> str:
        """A query without evidence: its answer is "none" until something is judged. Returns its id."""
        with self._open() as database:
            _, name = _named(database, text, "added here")
            _bump(database)
        return name

    def remove_query(self, id: str) -> None:
        """Delete a query and its judgements. Raises EvaluationError when there is none of this id."""
        self._change("DELETE FROM queries WHERE id=?", id)

    def rename_query(self, id: str, text: str) -> None:
        """Give a query other words; its judgements stay. Raises EvaluationError when they are blank."""
        self._change("UPDATE queries SET text=? WHERE id=?", id, _words(text))

    def _change(self, statement: str, id: str, *values: str) -> None:
        with self._open() as database:
            if not database.execute(statement, (*values, id)).rowcount:
                raise EvaluationError(f"there is no query {id!r}; it was removed already: reload")
            _bump(database)

    @property
    def version(self) -> int:
        """Grows with every change of queries and judgements."""
        with self._open() as database:
            return int(database.execute("SELECT value FROM meta WHERE key='version'").fetchone()[0])

    def fingerprint(self) -> str:
        """A hash of all queries and judgements as they are stored."""
        digest = hashlib.sha256()
        with self._open() as database:
            for statement in (
                "SELECT seq, id, text FROM queries ORDER BY seq",
                "SELECT query, place, copies, grade, reason FROM spans ORDER BY seq",
            ):
                for row in database.execute(statement):
                    digest.update(json.dumps(row).encode())
        return digest.hexdigest()[:16]

    # Drafts

    def add_draft(
        self,
        question: str,
        evidence: Evidence,
        documents: Documents,
        *,
        model: str,
        usage: Usage,
        dollars: float | None,
        reason: str = "",
    ) -> Draft:
        """Keep a generated question; one with a `reason` against it is dropped from the start."""
        place = _placed(documents, evidence)
        used = json.dumps(astuple(usage))
        with self._open() as database:
            seq = database.execute(
                "INSERT INTO drafts(question, place, state, reason, model, usage, dollars, at) "
                "VALUES (?,?,?,?,?,?,?,?)",
                (
                    encodable(question).strip(),
                    place.to_json(),
                    "dropped" if reason else "waiting",
                    reason,
                    model,
                    used,
                    dollars,
                    _now(),
                ),
            ).lastrowid
            return _draft(database, int(seq or 0))

    def drafts(self, state: str = "") -> list[Draft]:
        """The drafts in the order they came; of one state where it is given."""
        which, values = ("WHERE state=?", (state,)) if state else ("", ())
        with self._open() as database:
            rows = database.execute(f"SELECT * FROM drafts {which} ORDER BY seq", values).fetchall()
        return [_to_draft(row) for row in rows]

    def accept(self, draft_id: int, documents: Documents) -> str:
        """Make a draft a query; returns the query's id. Accepting again changes nothing."""
        with self._open() as database:
            draft = _draft(database, draft_id)
            seq, name = _named(database, draft.question, GENERATED)
            places = Places(documents)
            place = Place.from_json(
                database.execute("SELECT place FROM drafts WHERE seq=?", (draft_id,)).fetchone()[0]
            )
            _Known(database, seq, places).add(place, (), 1, "")
            database.execute("UPDATE drafts SET state='accepted' WHERE seq=?", (draft_id,))
            _bump(database)
        return name

    def edit(
        self, draft_id: int, documents: Documents, question: str, span: tuple[int, int] | None = None
    ) -> Draft:
        """Give a draft a person's words, and another span of its document; it waits again.

        Raises EvaluationError for a blank question, a span outside the document, or an accepted draft.
        """
        words = _words(question)
        with self._open() as database:
            draft = _draft(database, draft_id)
            if draft.state == "accepted":
                raise EvaluationError("this draft is a query already; rename that instead")
            if span:
                place = _placed(documents, Evidence(draft.document_id, *span))
                database.execute("UPDATE drafts SET place=? WHERE seq=?", (place.to_json(), draft_id))
            database.execute(
                "UPDATE drafts SET question=?, state='waiting', reason='' WHERE seq=?", (words, draft_id)
            )
            return _draft(database, draft_id)

    def drop(self, draft_id: int) -> None:
        """Put a draft aside; it counts for nothing."""
        with self._open() as database:
            if _draft(database, draft_id).state == "accepted":
                raise EvaluationError("this draft is a query already; remove that instead")
            database.execute("UPDATE drafts SET state='dropped' WHERE seq=?", (draft_id,))

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        instead = "delete it: the judgements are gone then"
        with (
            clear_errors("the collection's judgements", self.path, instead=instead),
            closing(connect(self.path)) as database,
            transaction(database),
        ):
            make_tables(database, self.path, _TABLES, _SCHEMA)
            yield database


def open_judgements(collection: Collection) -> JudgementStore:
    """The judgements of a collection."""
    return JudgementStore(Path(collection.folder))


class _Known:
    """The judgements that one query has, by where they lie now."""

    def __init__(self, database: sqlite3.Connection, query: int, places: Places) -> None:
        self._database, self._query, self._places = database, query, places
        self._rows: dict[object, tuple[int, int]] = {}
        for seq, place, grade in database.execute(
            "SELECT seq, place, grade FROM spans WHERE query=? ORDER BY seq", (query,)
        ).fetchall():
            self._rows[self._key(Place.from_json(place))] = (seq, grade)

    def add(self, place: Place, copies: Sequence[Place], grade: int, reason: str) -> bool:
        """Whether the judgement, or its grade, is new."""
        key = self._key(place)
        seq, old = self._rows.get(key, (0, -1))
        if old == grade:
            return False
        if seq:
            self._database.execute("UPDATE spans SET grade=? WHERE seq=?", (grade, seq))
        else:
            seq = _insert(self._database, self._query, place, copies, grade, reason)
        self._rows[key] = (seq, grade)
        return True

    def _key(self, place: Place) -> object:
        try:
            return self._places.find(place)
        except EvaluationError:
            return (place.name, place.span, place.quote, place.whole)


def _span(evidence: Evidence) -> tuple[str, int, int]:
    return evidence.document_id, evidence.start, evidence.end


def _placed(documents: Documents, evidence: Evidence) -> Place:
    return Places(documents).keep(Placed(*_span(evidence)))


def _query(
    id: str, text: str, rows: Sequence[tuple], places: Places, problems: list[str]
) -> GoldenQuery:
    evidence: dict[Placed, Evidence] = {}
    unlocated = []
    for stored, stored_copies, grade, reason in rows:
        place = Place.from_json(stored)
        try:
            found = places.find(place)
        except EvaluationError as error:
            why = reason if place.settled else str(error)
            if grade:
                unlocated.append(Unlocated(place.name, place.quote, why, grade, place.span, place.whole))
            problems.append(f"query {id}: {why}")
            continue
        copies: list[Placed] = []
        for copy in map(Place.from_json, json.loads(stored_copies)):
            try:
                copies.append(places.find(copy))
            except EvaluationError as error:
                problems.append(f"query {id}, a copy of its evidence: {error}")
        one = Evidence(*found, grade, tuple(copies))
        # Two versions of a document may have been judged, and are one place now: the later word counts.
        evidence[found] = one
    kept = evidence.values()
    return GoldenQuery(
        id,
        text,
        tuple(one for one in kept if one.grade),
        tuple(unlocated),
        tuple(one for one in kept if not one.grade),
    )


def _words(text: str) -> str:
    words = encodable(text).strip()
    if not words:
        raise EvaluationError("the query is blank; type one")
    return words


def _named(database: sqlite3.Connection, text: str, source: str) -> tuple[int, str]:
    """The first query of these words, made where there is none: its number and id."""
    words = _words(text)
    row = database.execute(
        "SELECT seq, id FROM queries WHERE text=? ORDER BY seq LIMIT 1", (words,)
    ).fetchone()
    return row or _make(database, "", words, source)


def _make(database: sqlite3.Connection, id: str, text: str, source: str) -> tuple[int, str]:
    seq = int(
        database.execute(
            "INSERT INTO queries(id, text, source, at) VALUES (?,?,?,?)",
            (f"\0{text}", text, encodable(source), _now()),  # a place, until the id is known to be free
        ).lastrowid
        or 0
    )
    base = name = id or f"q{seq}"
    number = 1
    while database.execute("SELECT 1 FROM queries WHERE id=?", (name,)).fetchone():
        number += 1
        name = f"{base}-{number}"
    database.execute("UPDATE queries SET id=? WHERE seq=?", (name, seq))
    return seq, name


def _joined(
    database: sqlite3.Connection, query: GoldenQuery, source: str, taken: set[int]
) -> tuple[int, bool, str]:
    """The stored query that an added one is: its number, whether it was made now, and its id."""
    words = _words(query.text)
    rows = database.execute(
        "SELECT seq, id FROM queries WHERE text=? ORDER BY id<>?, seq", (words, query.id)
    ).fetchall()
    for seq, name in rows:
        # A set may ask the same words twice, of two documents: those stay two queries.
        if name == query.id or seq not in taken:
            return seq, False, name
    seq, name = _make(database, encodable(query.id), words, source)
    return seq, True, name


def _insert(
    database: sqlite3.Connection,
    query: int,
    place: Place,
    copies: Sequence[Place],
    grade: int,
    reason: str = "",
) -> int:
    kept = json.dumps([copy.to_json() for copy in copies])
    return int(
        database.execute(
            "INSERT INTO spans(query, place, copies, grade, reason, at) VALUES (?,?,?,?,?,?)",
            (query, place.to_json(), kept, grade, encodable(reason), _now()),
        ).lastrowid
        or 0
    )


def _forget(database: sqlite3.Connection, query: int, places: Places, at: Placed) -> int:
    """Delete the judgements of a query that lie at a span now; how many there were."""
    gone = []
    for seq, place in database.execute("SELECT seq, place FROM spans WHERE query=?", (query,)):
        try:
            if places.find(Place.from_json(place)) == at:
                gone.append((seq,))
        except EvaluationError:
            continue
    database.executemany("DELETE FROM spans WHERE seq=?", gone)
    return len(gone)


def _count(database: sqlite3.Connection, query: int) -> int:
    return int(database.execute("SELECT COUNT(*) FROM spans WHERE query=?", (query,)).fetchone()[0])


def _draft(database: sqlite3.Connection, id: int) -> Draft:
    row = database.execute("SELECT * FROM drafts WHERE seq=?", (id,)).fetchone()
    if not row:
        raise EvaluationError(f"there is no draft {id}; reload to see which there are")
    return _to_draft(row)


def _to_draft(row: tuple[Any, ...]) -> Draft:
    seq, question, stored, state, reason, model, usage, dollars, at = row
    place = Place.from_json(stored)
    start, end = place.span or (0, 0)
    return Draft(
        seq,
        question,
        place.document_id,
        place.name,
        start,
        end,
        place.quote,
        state,
        reason,
        model,
        Usage(*json.loads(usage)),
        dollars,
        at,
    )


def _bump(database: sqlite3.Connection) -> None:
    database.execute("UPDATE meta SET value=value+1 WHERE key='version'")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
