"""Collections: the documents a person has uploaded, kept in SQLite. The truth; all else is cache.

Each collection is one database in a folder with a random name; the name people see is only ever a
value in a table. Every change is one transaction, on disk before the call returns.
"""

from __future__ import annotations

import json
import secrets
import shutil
import sqlite3
import threading
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from core.access import Access, AccessError, Viewer, parse_access, quoted, visible, written_access
from core.database import change_tables, clear_errors, connect, make_tables, transaction
from core.documents import document_digest, metadata_of, restored, structure_of
from core.errors import CollectionError, SettingsError
from core.home import home
from core.loading import Loaded, safe_name
from core.settings import Settings
from core.types import Document, Metadata, encodable

LONGEST_NAME = 100
SCHEMA = 2
_REGISTER_SCHEMA = 1
_DOCUMENTS_KEPT = 64

_TABLES = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO meta VALUES ('version', '0');
CREATE TABLE files(
    file_hash TEXT PRIMARY KEY, name TEXT NOT NULL, format TEXT NOT NULL, encoding TEXT,
    warnings TEXT NOT NULL, pages INTEGER NOT NULL, characters INTEGER NOT NULL,
    headings INTEGER NOT NULL, documents INTEGER NOT NULL, size INTEGER NOT NULL,
    added_at TEXT NOT NULL);
CREATE INDEX files_by_name ON files(name);
-- AUTOINCREMENT: a number is never given twice, so a reader holding one gets that document or none.
CREATE TABLE documents(
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
    file_hash TEXT NOT NULL REFERENCES files(file_hash) ON DELETE CASCADE,
    name TEXT NOT NULL, title TEXT NOT NULL, digest TEXT NOT NULL, length INTEGER NOT NULL,
    structure TEXT NOT NULL, metadata TEXT NOT NULL, text TEXT NOT NULL);
CREATE INDEX documents_by_file ON documents(file_hash);
-- Lists are read without touching the texts, which lie on pages of their own.
CREATE INDEX documents_listed ON documents(seq, id, name, title, digest, length, file_hash);
CREATE TABLE queries(
    seq INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL, link TEXT NOT NULL, at TEXT NOT NULL,
    summary TEXT NOT NULL);
"""

# From format 1 to 2; a new file goes the same way. Who may see a document stands in a table of its own: in
# the document's row, setting it would write the whole text again. No row: everyone.
_SINCE_1 = """
CREATE TABLE access(
    seq INTEGER PRIMARY KEY REFERENCES documents(seq) ON DELETE CASCADE, principals TEXT NOT NULL);
ALTER TABLE queries ADD COLUMN viewer TEXT NOT NULL DEFAULT '';
CREATE TABLE fields(name TEXT PRIMARY KEY, kind TEXT NOT NULL);
INSERT INTO meta VALUES ('facts', '0');
"""

_REGISTER = """
CREATE TABLE collections(id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, created_at TEXT NOT NULL);
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class CollectionInfo:
    """A collection in the list: `id` is its folder's name, `name` what people see."""

    id: str
    name: str
    created_at: str


@dataclass(frozen=True, slots=True)
class FileInfo:
    """An accepted file. `size` in bytes, `added_at` in UTC (ISO 8601)."""

    file_hash: str
    name: str
    format: str
    encoding: str | None
    warnings: tuple[str, ...]
    pages: int
    characters: int
    headings: int
    documents: int
    size: int
    added_at: str


@dataclass(frozen=True, slots=True)
class AddResult:
    """What became of a file: "added", "replaced", or "same" when its very bytes are there already, which
    `note` then says."""

    status: Literal["added", "replaced", "same"]
    file: FileInfo
    note: str = ""


@dataclass(frozen=True, slots=True)
class PastQuery:
    """A query asked before: `link` holds the settings (`Settings.from_link`), `summary` what it gave,
    `viewer` who asked."""

    text: str
    link: str
    at: str
    summary: Mapping[str, Any]
    viewer: str = ""


class DocumentsOfVersion:
    """The documents of one version, in the order they were added; texts and metadata are read when asked for.

    A document removed since raises CollectionError: a reader never sees half a change.
    """

    def __init__(
        self,
        collection: Collection,
        version: int,
        rows: Sequence[tuple],
        access: Mapping[int, Access],
        added: Mapping[str, str],
    ) -> None:
        """`access` of the documents that not everyone may see, by number; when each file was `added`."""
        self.version = version
        self._collection = collection
        self._rows, self._access = rows, access
        self._seqs: tuple[int, ...] = tuple(row[0] for row in rows)
        self.ids: tuple[str, ...] = tuple(row[1] for row in rows)
        self.names: tuple[str, ...] = tuple(row[2] for row in rows)
        self.titles: tuple[str, ...] = tuple(row[3] for row in rows)
        self.digests: tuple[str, ...] = tuple(row[4] for row in rows)
        self.lengths: tuple[int, ...] = tuple(row[5] for row in rows)
        self.file_hashes: tuple[str, ...] = tuple(row[6] for row in rows)
        self.access: tuple[Access, ...] = tuple(map(access.get, self._seqs))
        self._added = added
        self._metadata: tuple[Metadata, ...] | None = None
        self._kept: OrderedDict[int, Document] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._seqs)

    def __getitem__(self, position: int) -> Document:
        seq = self._seqs[position]
        with self._lock:
            if seq in self._kept:
                self._kept.move_to_end(seq)
                return self._kept[seq]
        document = self._collection._document(seq)
        if document is None:
            raise CollectionError(
                f"{self.names[position]!r} was removed or replaced meanwhile; "
                "reload to see the collection as it is"
            )
        with self._lock:
            self._kept[seq] = document
            if len(self._kept) > _DOCUMENTS_KEPT:
                self._kept.popitem(last=False)
        return document

    def __iter__(self) -> Iterator[Document]:
        return (self[position] for position in range(len(self)))

    def seen_by(self, viewer: Viewer) -> DocumentsOfVersion:
        """Those that the viewer may see."""
        rows = [self._rows[at] for at in visible(self.access, viewer)]
        return DocumentsOfVersion(self._collection, self.version, rows, self._access, self._added)

    def metadata(self) -> Sequence[Metadata]:
        """That of each document, without reading the texts; none of one removed meanwhile."""
        if self._metadata is None:
            found = self._collection._all_metadata()
            self._metadata = tuple(found.get(seq, MappingProxyType({})) for seq in self._seqs)
        return self._metadata

    def added(self) -> Sequence[str]:
        """When each document was added, UTC (ISO 8601)."""
        return tuple(self._added[file_hash] for file_hash in self.file_hashes)


class Collection:
    """One collection. Safe to share between threads; other programs may use it at the same time.

    Every method raises CollectionError when the database is damaged, locked, full or gone.
    """

    def __init__(self, folder: Path, info: CollectionInfo) -> None:
        """Use `create` and `open_collection`."""
        self.folder = folder
        self.id = info.id
        self.name = info.name
        self.settings_note = ""
        self._path = folder / "collection.db"
        self._lock = threading.RLock()
        self._closing: list[Callable[[], None]] = []
        with self._clear():
            if not self._path.exists():
                raise CollectionError(f"collection {self.name!r}: its file {self._path} is missing")
            self._database = connect(self._path)
            found = _updated(self._database)
        if found != SCHEMA:
            self._database.close()
            raise CollectionError(
                f"collection {self.name!r} has the format {found}, this Rankscope knows {SCHEMA}; "
                "open it with the version of Rankscope that made it, or update"
            )

    # Documents

    @property
    def version(self) -> int:
        """Grows with every change of the documents."""
        with self._read() as database:
            return _version(database)

    def add(self, loaded: Loaded, name: str, size: int, access: Access = None) -> AddResult:
        """Keep a file's documents, for those in `access` to see. One whose very bytes are there already
        changes nothing ("same"), nor who may see it, and the result's note says so."""
        with self._write() as database:
            if there := _file(database, loaded.file_hash):
                return AddResult("same", there, _said_of_same(database, there, access))
            info = _insert(database, loaded, name, size)
            if access is not None:
                _set_access(database, {document.id: access for document in loaded.documents})
            return AddResult("added", info)

    def replace(
        self,
        old_file_hash: str,
        loaded: Loaded,
        name: str,
        size: int,
        access: Access | Literal["kept"] = "kept",
    ) -> AddResult:
        """Put a file in the place of another, at once for every reader; the new one goes to the end.

        The same bytes may be given again, read in another way. Unless `access` says otherwise, a document
        of the same id is for whom it was, another for those who might see every document of the old file.
        """
        with self._write() as database:
            was = _access_of_file(database, old_file_hash)
            self._delete(database, old_file_hash)
            if there := _file(database, loaded.file_hash):
                _bump(database)
                return AddResult("same", there, _said_of_same(database, there, access))
            info = _insert(database, loaded, name, size)
            shared = _shared(was.values())
            wanted = {
                document.id: was.get(document.id, shared) if access == "kept" else access
                for document in loaded.documents
            }
            _set_access(database, {one: who for one, who in wanted.items() if who is not None})
            return AddResult("replaced", info)

    def remove(self, file_hash: str) -> None:
        """Remove a file and all its documents."""
        with self._write() as database:
            self._delete(database, file_hash)
            _bump(database)

    def files(self) -> list[FileInfo]:
        """All files, in the order they were added."""
        with self._read() as database:
            return [_file_info(row) for row in database.execute("SELECT * FROM files ORDER BY rowid")]

    def already_here(self, file_hash: str, access: Access | Literal["kept"] = "kept") -> str:
        """What to say of a file whose very bytes are there, whoever in `access` should see it; else blank."""
        with self._read() as database:
            there = _file(database, file_hash)
            return _said_of_same(database, there, access) if there else ""

    def find_by_name(self, name: str) -> FileInfo | None:
        """The file added last under this name."""
        with self._read() as database:
            row = database.execute(
                "SELECT * FROM files WHERE name=? ORDER BY rowid DESC LIMIT 1", (safe_name(name),)
            ).fetchone()
        return _file_info(row) if row else None

    def documents(self) -> DocumentsOfVersion:
        """The documents as they are now, however the collection changes later."""
        with self._read() as database:
            version = _version(database)
            rows = database.execute(
                "SELECT seq, id, name, title, digest, length, file_hash FROM documents "
                "INDEXED BY documents_listed ORDER BY seq"
            ).fetchall()
            access = dict(database.execute("SELECT seq, principals FROM access").fetchall())
            added = dict(database.execute("SELECT file_hash, added_at FROM files").fetchall())
        read = {written: _read_access(written) for written in set(access.values())}
        limited = {seq: read[written] for seq, written in access.items()}
        return DocumentsOfVersion(self, version, rows, limited, added)

    def _all_metadata(self) -> dict[int, Metadata]:
        with self._read() as database:
            rows = database.execute("SELECT seq, metadata FROM documents").fetchall()
        return {seq: metadata_of(json.loads(metadata)) for seq, metadata in rows}

    def _document(self, seq: int) -> Document | None:
        with self._read() as database:
            row = database.execute(
                "SELECT id, name, title, text, structure, metadata FROM documents WHERE seq=?", (seq,)
            ).fetchone()
        if not row:
            return None
        identity, name, title, text, structure, metadata = row
        return restored(identity, name, title, text, json.loads(structure), json.loads(metadata))

    def _delete(self, database: sqlite3.Connection, file_hash: str) -> None:
        if not database.execute("DELETE FROM files WHERE file_hash=?", (file_hash,)).rowcount:
            raise CollectionError(
                f"collection {self.name!r} has no file {file_hash[:12]}; it was removed already: reload"
            )

    # Who may see what

    def set_access(self, document_ids: Sequence[str], access: Access) -> int:
        """Let only those in `access` see these documents; how many they are.

        Raises CollectionError when one is not there: then none is changed.
        """
        wanted = dict.fromkeys(document_ids, access)
        with self._write() as database:
            if missing := _set_access(database, wanted):
                raise CollectionError(
                    f"collection {self.name!r} has no document {missing!r}; it was removed: reload"
                )
            if wanted:
                _bump(database)
        return len(wanted)

    def set_access_from_field(self, field: str) -> tuple[int, list[str]]:
        """Let each document be seen by those whom its metadata field names, as `parse_access` reads it; an
        entry of a list is one of them, whatever signs it holds.

        How many were set, and why others stay as they are.
        """
        with self._write() as database:
            rows = database.execute(
                "SELECT id, name, title, metadata FROM documents ORDER BY seq"
            ).fetchall()
            wanted: dict[str, Access] = {}
            unnamed: list[str] = []
            problems = []
            for identity, name, title, metadata in rows:
                value = json.loads(metadata).get(field, "")
                written = ", ".join(map(quoted, value)) if isinstance(value, list) else value
                if not isinstance(written, str):
                    problems.append(f"{title or name}: {field} is {value!r}; users and groups are words")
                elif not written.strip():
                    unnamed.append(name)
                else:
                    try:
                        wanted[identity] = parse_access(written)
                    except AccessError as error:
                        problems.append(f"{title or name}: {error}")
            _set_access(database, wanted)
            if wanted:
                _bump(database)
        if unnamed:
            files = ", ".join(list(dict.fromkeys(unnamed))[:5])
            lacking = "1 document has" if len(unnamed) == 1 else f"{len(unnamed):,} documents have"
            problems.append(f"{lacking} no {field}: of {files}")
        return len(wanted), problems

    # Facts beside the documents that change results

    @property
    def facts_version(self) -> int:
        """Grows with every change of the rules and of the kinds of fields."""
        with self._read() as database:
            return int(database.execute("SELECT value FROM meta WHERE key='facts'").fetchone()[0])

    def field_kinds(self) -> dict[str, str]:
        """What somebody said fields are (`core.fields.KINDS`), by name."""
        with self._read() as database:
            return dict(database.execute("SELECT name, kind FROM fields ORDER BY name").fetchall())

    def set_field_kind(self, name: str, kind: str | None) -> None:
        """Say what a field is; None leaves it to its values again."""
        with self._write() as database:
            if kind is None:
                database.execute("DELETE FROM fields WHERE name=?", (name,))
            else:
                database.execute("INSERT OR REPLACE INTO fields VALUES (?,?)", (name, kind))
            _bump(database, "facts")

    def rules_text(self) -> str:
        """The business rules as they were saved (TOML); blank without any."""
        with self._read() as database:
            row = database.execute("SELECT value FROM meta WHERE key='rules'").fetchone()
        return row[0] if row else ""

    def save_rules(self, text: str) -> None:
        """Keep the rules' text as it is: who calls has read it."""
        with self._write() as database:
            database.execute("INSERT OR REPLACE INTO meta VALUES ('rules', ?)", (encodable(text),))
            _bump(database, "facts")

    # Settings and past queries

    def settings(self) -> Settings:
        """The settings saved last, else the defaults: also where they were saved by a version that had
        other fields, which `settings_note` then says. What was saved stays until others are saved.
        """
        with self._read() as database:
            row = database.execute("SELECT value FROM meta WHERE key='settings'").fetchone()
        self.settings_note = ""
        try:
            return Settings.from_toml(row[0]) if row else Settings()
        except SettingsError as error:
            self.settings_note = f"The saved settings cannot be used ({error}); these are the defaults."
            return Settings()

    def save_settings(self, settings: Settings) -> None:
        with self._write() as database:
            database.execute("INSERT OR REPLACE INTO meta VALUES ('settings', ?)", (settings.to_toml(),))

    def log_query(self, text: str, link: str, summary: Mapping[str, Any], viewer: str = "") -> None:
        """Remember a query, its settings (`Settings.to_link`), what it gave (plain values) and who asked."""
        row = (encodable(text), link, _now(), json.dumps(dict(summary)), encodable(viewer))
        with self._write() as database:
            database.execute(
                "INSERT INTO queries(text, link, at, summary, viewer) VALUES (?,?,?,?,?)", row
            )

    def queries(self, limit: int = 50, viewer: str | None = None) -> list[PastQuery]:
        """Past queries, the latest first: of all, or only of one viewer."""
        with self._read() as database:
            rows = database.execute(
                "SELECT text, link, at, summary, viewer FROM queries WHERE ?1 IS NULL OR viewer=?1 "
                "ORDER BY seq DESC LIMIT ?2",
                (viewer, limit),
            ).fetchall()
        return [
            PastQuery(text, link, at, json.loads(summary), who) for text, link, at, summary, who in rows
        ]

    def forget_queries(self, viewer: str | None = None) -> None:
        """Forget past queries: all, or only those of one viewer."""
        with self._write() as database:
            database.execute("DELETE FROM queries WHERE ?1 IS NULL OR viewer=?1", (viewer,))

    # The database

    def on_close(self, call: Callable[[], None]) -> None:
        """Let `close` make this call too: for other files that are open in the folder, which some systems
        would not delete."""
        with self._lock:
            self._closing.append(call)

    def close(self) -> None:
        with self._lock:
            self._database.close()
            for call in self._closing:
                call()

    @contextmanager
    def _clear(self) -> Iterator[None]:
        with clear_errors(f"collection {self.name!r}", self.folder / "collection.db"):
            yield

    @contextmanager
    def _read(self) -> Iterator[sqlite3.Connection]:
        """One consistent view for all statements inside."""
        with self._transaction("BEGIN") as database:
            yield database

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        with self._transaction("BEGIN IMMEDIATE") as database:
            yield database

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._lock, self._clear():
            if not self._path.exists():  # SQLite would go on writing into a file that is no longer there
                raise CollectionError(f"collection {self.name!r} was deleted; choose another one")
            with transaction(self._database, begin):
                yield self._database


_open: dict[str, Collection] = {}
_opening = threading.Lock()


def list_collections() -> list[CollectionInfo]:
    """All collections by name. Raises RankscopeError when the data folder cannot be used."""
    with _register() as register:
        rows = register.execute("SELECT id, name, created_at FROM collections").fetchall()
    return sorted((CollectionInfo(*row) for row in rows), key=lambda info: info.name.casefold())


def create(name: str) -> Collection:
    """A new, empty collection. Raises CollectionError when the name is taken, blank or too long."""
    name = _checked_name(name)
    info = CollectionInfo(secrets.token_hex(8), name, _now())
    folder = _folder(info.id)
    with _register() as register:
        if register.execute("SELECT 1 FROM collections WHERE name=?", (name,)).fetchone():
            raise CollectionError(f"there is a collection {name!r} already; choose another name")
        folder.mkdir(parents=True)
        path = folder / "collection.db"
        with closing(connect(path)) as database, transaction(database):
            make_tables(database, path, _TABLES + _SINCE_1, SCHEMA)
        register.execute("INSERT INTO collections VALUES (?,?,?)", (info.id, info.name, info.created_at))
    return open_collection(name)


def open_collection(name: str) -> Collection:
    """The collection of this name; every caller in the process gets the same object.

    Raises CollectionError when there is none, when it is damaged, or made by a newer Rankscope.
    """
    name = _normal(name)
    with _register() as register:
        row = register.execute(
            "SELECT id, name, created_at FROM collections WHERE name=?", (name,)
        ).fetchone()
        names = [
            found for (found,) in register.execute("SELECT name FROM collections ORDER BY name LIMIT 20")
        ]
    if not row:
        raise CollectionError(
            f"there is no collection {name!r}; there are: {', '.join(names) or 'none yet'}"
        )
    info = CollectionInfo(*row)
    key = str(_folder(info.id))
    with _opening:
        if key not in _open:
            _open[key] = Collection(Path(key), info)
        _open[key].name = info.name
        return _open[key]


def open_or_create(name: str) -> Collection:
    """The collection of this name, made when there is none. Raises as `create` and `open_collection` do."""
    _checked_name(name)
    try:
        return create(name)
    except (
        CollectionError
    ):  # taken, perhaps by another program just now; whatever else is wrong, it says
        return open_collection(name)


def rename(name: str, new_name: str) -> None:
    """Give a collection another name. Raises CollectionError as `create` and `open_collection` do."""
    name, new_name = _normal(name), _checked_name(new_name)
    with _register() as register:
        try:
            done = register.execute(
                "UPDATE collections SET name=? WHERE name=?", (new_name, name)
            ).rowcount
        except sqlite3.IntegrityError:
            raise CollectionError(
                f"there is a collection {new_name!r} already; choose another name"
            ) from None
        if not done:
            raise CollectionError(f"there is no collection {name!r}; it was deleted or renamed: reload")


def delete(name: str) -> None:
    """Delete a collection with its documents and index files, and nothing else.

    Raises CollectionError when there is none of this name.
    """
    name = _normal(name)
    with _register() as register:
        row = register.execute("SELECT id FROM collections WHERE name=?", (name,)).fetchone()
        if not row:
            raise CollectionError(f"there is no collection {name!r}; it was deleted or renamed: reload")
        register.execute("DELETE FROM collections WHERE id=?", row)
    folder = _folder(row[0])
    with _opening:
        if found := _open.pop(str(folder), None):
            found.close()
    # What another program still holds open stays behind without a name; nothing lists it any more.
    shutil.rmtree(folder, ignore_errors=True)


def remembered(key: str) -> str | None:
    """A value kept for the whole data folder."""
    with _register() as register:
        row = register.execute("SELECT value FROM meta WHERE key=?", (key,)).fetchone()
    return row[0] if row else None


def remember(key: str, value: str) -> None:
    """Keep a value for the whole data folder."""
    with _register() as register:
        register.execute("INSERT OR REPLACE INTO meta VALUES (?,?)", (key, value))


@contextmanager
def _register() -> Iterator[sqlite3.Connection]:
    """The list of collections, in one transaction."""
    path = home() / "home.db"
    with (
        clear_errors("the list of collections", path),
        closing(connect(path)) as database,
        transaction(database),
    ):
        make_tables(database, path, _REGISTER, _REGISTER_SCHEMA)
        yield database


def _folder(collection_id: str) -> Path:
    return home() / "collections" / collection_id


def _normal(name: str) -> str:
    words = " ".join(encodable(name).split())
    return unicodedata.normalize("NFC", "".join(c for c in words if unicodedata.category(c) != "Cc"))


def _checked_name(name: str) -> str:
    normal = _normal(name)
    if not any(c.isprintable() and not c.isspace() for c in normal):
        raise CollectionError("a collection needs a name that can be seen; type one")
    if len(normal) > LONGEST_NAME:
        raise CollectionError(
            f"the name has {len(normal)} characters, the limit is {LONGEST_NAME}; choose a shorter one"
        )
    return normal


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _version(database: sqlite3.Connection) -> int:
    return int(database.execute("SELECT value FROM meta WHERE key='version'").fetchone()[0])


def _bump(database: sqlite3.Connection, counter: str = "version") -> None:
    database.execute("UPDATE meta SET value=CAST(value AS INTEGER)+1 WHERE key=?", (counter,))


def _updated(database: sqlite3.Connection) -> int:
    """The file's format, after one of an earlier format was brought to this one, whole or not at all."""
    found = _format(database)
    if found == 1:
        with transaction(database):
            if _format(database) == 1:  # another program may have done it just now
                change_tables(database, _SINCE_1, SCHEMA)
        found = _format(database)
    return found


def _format(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def _set_access(database: sqlite3.Connection, wanted: Mapping[str, Access]) -> str | None:
    """Write who may see each document, by id; an id that is not there, before the others are written."""
    seqs = {}
    for one in wanted:
        row = database.execute("SELECT seq FROM documents WHERE id=?", (one,)).fetchone()
        if not row:
            return one
        seqs[one] = row[0]
    for one, access in wanted.items():
        if access is None:
            database.execute("DELETE FROM access WHERE seq=?", (seqs[one],))
        else:
            written = json.dumps(sorted(access))
            database.execute("INSERT OR REPLACE INTO access VALUES (?,?)", (seqs[one], written))
    return None


def _access_of_file(database: sqlite3.Connection, file_hash: str) -> dict[str, Access]:
    rows = database.execute(
        "SELECT id, principals FROM documents LEFT JOIN access USING (seq) WHERE file_hash=?",
        (file_hash,),
    )
    return {identity: written and _read_access(written) for identity, written in rows}


def _said_of_same(
    database: sqlite3.Connection, there: FileInfo, access: Access | Literal["kept"]
) -> str:
    said = f"the same bytes are already here as {there.name}"
    held = set(_access_of_file(database, there.file_hash).values())
    if access == "kept" or held <= {access}:
        return said
    who = written_access(held.pop()) if len(held) == 1 else "not the same for all its documents"
    return f"{said}; who may see it was not changed: {who}"


def _read_access(written: str) -> Access:
    return frozenset(json.loads(written))


def _shared(accesses: Iterable[Access]) -> Access:
    """Those who may see all of what these are for."""
    limited = [access for access in accesses if access is not None]
    return frozenset.intersection(*limited) if limited else None


def _file(database: sqlite3.Connection, file_hash: str) -> FileInfo | None:
    row = database.execute("SELECT * FROM files WHERE file_hash=?", (file_hash,)).fetchone()
    return _file_info(row) if row else None


def _file_info(row: tuple) -> FileInfo:
    facts = list(row)
    facts[4] = tuple(json.loads(facts[4]))
    return FileInfo(*facts)


def _insert(database: sqlite3.Connection, loaded: Loaded, name: str, size: int) -> FileInfo:
    info = FileInfo(
        loaded.file_hash,
        safe_name(name),
        loaded.format,
        loaded.encoding,
        loaded.warnings,
        loaded.pages,
        loaded.characters,
        loaded.headings,
        len(loaded.documents),
        size,
        _now(),
    )
    facts = [json.dumps(fact) if isinstance(fact, tuple) else fact for fact in astuple(info)]
    database.execute("INSERT INTO files VALUES (?,?,?,?,?,?,?,?,?,?,?)", facts)
    database.executemany(
        "INSERT INTO documents(id, file_hash, name, title, digest, length, structure, metadata, text) "
        "VALUES (?,?,?,?,?,?,?,?,?)",
        (
            (
                document.id,
                loaded.file_hash,
                document.name,
                document.title,
                document_digest(document),
                len(document.text),
                json.dumps(structure_of(document)),
                json.dumps(dict(document.metadata)),
                document.text,
            )
            for document in loaded.documents
        ),
    )
    _bump(database)
    return info
