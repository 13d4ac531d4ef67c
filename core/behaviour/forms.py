"""Click logs as files: CSV, and JSON or JSONL after User Behavior Insights (UBI, the schema that OpenSearch
and Elasticsearch log in: queries with their hits, events with `action_name` and `query_id`)."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from core.behaviour.events import BehaviourError, Event, checked
from core.documents import Documents
from core.loading import safe_name
from core.types import FORMULA_SIGNS

COLUMNS = ("query", "document", "kind", "rank", "at", "user", "session", "name")

_ALIASES = {
    "document_id": "document",
    "object_id": "document",
    "item": "document",
    "position": "rank",
    "timestamp": "at",
    "time": "at",
    "action": "kind",
    "action_name": "kind",
    "user_id": "user",
    "client_id": "user",
    "query_id": "session",
    "session_id": "session",
    "user_query": "query",
}
_ACTIONS = {
    **dict.fromkeys(("shown", "impression", "view_impression", "product_impression"), "shown"),
    **dict.fromkeys(("open", "click", "item_click", "result_click", "click_through", "watch"), "open"),
    **dict.fromkeys(("copy", "download", "add_to_cart", "purchase"), "copy"),
    **dict.fromkeys(("up", "thumbs_up", "like", "upvote"), "up"),
    **dict.fromkeys(("down", "thumbs_down", "dislike", "downvote"), "down"),
}
_WRITTEN = {
    "shown": "impression",
    "open": "click",
    "copy": "copy",
    "up": "thumbs_up",
    "down": "thumbs_down",
}
_DELIMITERS = (",", ";", "\t", "|")
_NAMED = 10  # problems of one sort that are named one by one
_IDS = ("id", "_id")  # fields in which a record of a table keeps the id it had elsewhere


@dataclass(frozen=True, slots=True)
class Log:
    """Events as a log has them: `strays` are those whose `document_id`, a name as it was given, no document
    (or more than one) has; `problems` say what is not taken, and what of it is assumed."""

    events: tuple[Event, ...]
    strays: tuple[Event, ...]
    problems: tuple[str, ...]


class Finder:
    """Documents by id, by the id that their record had in its table, by file name, or by title."""

    def __init__(self, documents: Documents) -> None:
        told: list[tuple[str, ...]] = [
            tuple(_word(one[key]) for key in _IDS if key in one) for one in documents.metadata()
        ]
        self._ways: list[dict[str, set[str]]] = []
        for names in (
            [(one,) for one in documents.ids],
            told,
            [(one,) for one in documents.names],
            [(one,) for one in documents.titles],
        ):
            way: dict[str, set[str]] = {}
            for identity, mine in zip(documents.ids, names, strict=True):
                for name in mine:
                    way.setdefault(name, set()).add(identity)
            self._ways.append(way)

    def id_of(self, name: str) -> str:
        """The one document that is meant; blank where none is, or several are."""
        ids = self.ids_of(name)
        return next(iter(ids)) if len(ids) == 1 else ""

    def ids_of(self, name: str) -> set[str]:
        for way in self._ways:
            if found := way.get(name) or way.get(safe_name(name)):
                return found
        return set()


def read_log(files: Mapping[str, bytes], documents: Documents) -> Log:
    """The events of a click log, in one or several files (UBI's queries and events may lie apart).

    CSV: the columns query and document, and of rank (from 1), at, user, kind and session those there are; a
    row without a kind is "open". UBI: objects with a query text and `query_id`, whose hits count as shown,
    and objects with an `action_name`, an object and its position. Of an object in the hits, the place among
    them is its rank; positions that begin at 0 in a log are counted from 1. Further fields are left alone.
    Raises BehaviourError where no event can be read.
    """
    problems: list[str] = []
    events: list[Event] = []
    objects: list[tuple[str, dict[str, Any]]] = []
    for name, data in files.items():
        text = _decoded(name, data)
        if text.lstrip()[:1] in ("{", "["):
            objects += _objects(name, text, problems)
        else:
            events += _rows(name, text, problems)
    events += _ubi(objects, problems)
    if not events:
        reason = "; ".join(problems[:3]) or "there is no row in it"
        raise BehaviourError(
            f"no event can be read from {', '.join(files)}: {reason}; give a CSV with the columns query, "
            "document, rank, at, user and kind, or UBI's queries and events"
        )
    return _matched(events, documents, problems)


def to_csv(events: Iterable[Event], documents: Documents) -> str:
    """A table that `read_log` reads back, with the documents' names beside their ids.

    Cells that a spreadsheet would run as formulas begin with an apostrophe, which reading takes away.
    """
    names = dict(zip(documents.ids, documents.names, strict=True))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for one in events:
        cells = (one.query, one.document_id, one.kind, one.rank or "", one.at, one.user, one.session)
        row = (*cells, names.get(one.document_id, ""))
        writer.writerow([_safe(cell) if isinstance(cell, str) else cell for cell in row])
    return out.getvalue()


def to_ubi(events: Iterable[Event]) -> str:
    """JSON lines after UBI that `read_log` reads back: each event with its query, showing an "impression"."""
    lines = []
    for one in events:
        attributes: dict[str, Any] = {"object": {"object_id": one.document_id}}
        if one.rank:
            attributes["position"] = {"ordinal": one.rank}
        line = {
            "action_name": _WRITTEN[one.kind],
            "query_id": one.session,
            "user_query": one.query,
            "client_id": one.user,
            "timestamp": one.at,
            "event_attributes": attributes,
        }
        lines.append(json.dumps(line, ensure_ascii=False))
    return "\n".join(lines) + "\n" if lines else ""


def _matched(events: Sequence[Event], documents: Documents, problems: list[str]) -> Log:
    finder = Finder(documents)
    found: dict[Event, None] = {}  # in order, each once
    strays: dict[Event, None] = {}
    lost: Counter[str] = Counter()
    for event in events:
        if identity := finder.id_of(event.document_id):
            found[replace(event, document_id=identity)] = None
        else:
            strays[event] = None
            lost[event.document_id] += 1
    if lost:
        several = {name: len(ids) for name in lost if len(ids := finder.ids_of(name)) > 1}
        listed = [
            f"{name[:80]} ({f'{several[name]} documents have that name' if name in several else times})"
            for name, times in lost.most_common(_NAMED)
        ]
        more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
        problems.append(
            f"events kept apart: {len(strays):,}; no one document has the id, file name or title "
            f"{', '.join(listed)}{more}"
        )
    problems += _assumed([*found, *strays])
    return Log(tuple(found), tuple(strays), tuple(problems))


def _assumed(events: Sequence[Event]) -> Iterator[str]:
    """What the click model takes for granted where a log does not say."""
    if not any(one.kind == "shown" for one in events):
        yield (
            "the log does not say what was shown: of each query, all that was ever clicked is taken to have "
            "been shown to all who asked it, at the rank it was clicked at"
        )
    for what, value_of, said in (
        ("a user", attrgetter("user"), "each of their sessions counts as one person"),
        ("a rank", attrgetter("rank"), "a click counts, not clicking says nothing"),
        ("a time", attrgetter("at"), "they do not fade"),
    ):
        if missing := sum(not value_of(one) for one in events):
            yield f"events without {what}: {missing:,}; {said}"


def _decoded(name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BehaviourError(f"{name} is no UTF-8 text (byte {error.start}); save it as UTF-8") from None


def _rows(name: str, text: str, problems: list[str]) -> Iterator[Event]:
    header = text.split("\n", 1)[0]
    delimiter = max(_DELIMITERS, key=header.count)
    csv.field_size_limit(2**31 - 1)
    # Strict: a quote that is never closed would swallow all rows after it without a word.
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        for row in reader:
            facts = {_column(key): _plain(cell or "").strip() for key, cell in row.items() if key}
            if any(facts.values()):
                facts["kind"] = facts.get("kind") or "open"
                yield from _event(f"{name}, line {reader.line_num}", facts, problems)
    except csv.Error as error:
        raise BehaviourError(
            f"{name}, after line {reader.line_num}: {error}; save the table anew"
        ) from None


def _column(name: str) -> str:
    even = name.strip().casefold().replace(" ", "_")
    return _ALIASES.get(even, even)


def _event(where: str, facts: Mapping[str, str], problems: list[str]) -> Iterator[Event]:
    try:
        rank = facts.get("rank") or "0"
        if not re.fullmatch(r"\d{1,9}(\.0*)?", rank):
            raise BehaviourError(f"the rank is {rank[:40]!r}; give a whole number, from 1")
        yield checked(
            Event(
                facts.get("query", ""),
                facts.get("document", ""),
                _kind(facts.get("kind", "")),
                int(float(rank)),
                facts.get("at", ""),
                facts.get("user", ""),
                facts.get("session", ""),
            )
        )
    except BehaviourError as error:
        problems.append(f"{where} is left out: {error}")


def _kind(action: str) -> str:
    even = re.sub(r"\W+", "_", action.strip().casefold()).removeprefix("on_")
    kind = _ACTIONS.get(even)
    if kind is None:
        raise BehaviourError(f"the action {action[:40]!r} is none of {', '.join(sorted(_ACTIONS))}")
    return kind


def _objects(name: str, text: str, problems: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a JSON file (a list, or lists under any names) or of JSON lines, with where they stand."""
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                try:
                    yield from _listed(f"{name}, line {number}", json.loads(line), problems)
                except (ValueError, RecursionError):
                    problems.append(f"{name}, line {number} is left out: broken JSON")
        return
    lists = whole.values() if isinstance(whole, dict) and not _UBI & whole.keys() else [whole]
    for one in lists:
        for number, entry in enumerate(one if isinstance(one, list) else [one], 1):
            yield from _listed(f"{name}, entry {number}", entry, problems)


_UBI = {"query_id", "action_name"}


def _listed(where: str, entry: Any, problems: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(entry, dict) and isinstance(entry.get("_source"), dict):
        entry = entry["_source"]  # as a dump of an OpenSearch index has it
    if isinstance(entry, dict):
        yield where, entry
    else:
        problems.append(f"{where} is left out: not an object")


def _ubi(objects: Sequence[tuple[str, dict[str, Any]]], problems: list[str]) -> Iterator[Event]:
    queries = {_word(one.get("query_id")): one for _, one in objects if "action_name" not in one}
    actions = [(where, one) for where, one in objects if "action_name" in one]
    first = 1
    if any(_position(one) == 0 for _, one in actions):
        first = 0
        problems.append("positions begin at 0 in this log: the ranks are one more")
    for identity, one in queries.items():
        for rank, document in enumerate(_hits(one), 1):
            yield from _event(
                f"query {identity}",
                {**_common(one, {}), "document": document, "rank": str(rank), "kind": "shown"},
                problems,
            )
    unknown: Counter[str] = Counter()
    for where, one in actions:
        action = _word(one.get("action_name"))
        asked = queries.get(_word(one.get("query_id")), {})
        facts = _common(one, asked)
        document = _word(_attribute(one, "object", "object_id"))
        try:
            kind = _kind(action)
        except BehaviourError:
            unknown[action] += 1
            continue
        hits = _hits(asked)
        position = _position(one)
        rank = 0 if position is None else position + 1 - first
        facts |= {
            "document": document,
            "kind": kind,
            "rank": str(hits.index(document) + 1 if document in hits else rank),
        }
        yield from _event(where, facts, problems)
    if unknown:
        listed = ", ".join(f"{name[:40]} ({times})" for name, times in unknown.most_common(_NAMED))
        problems.append(f"events that are no result shown, opened or judged are left out: {listed}")


def _common(one: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, str]:
    """What a UBI object says of its query, by itself or by the query object that it belongs to."""

    def said(*names: str) -> str:
        return next(
            (word for told in (one, asked) for name in names if (word := _word(told.get(name)))), ""
        )

    return {
        "query": said("user_query"),
        "user": said("client_id", "user_id"),
        "session": said("query_id", "session_id"),
        "at": said("timestamp"),
    }


def _hits(query: Mapping[str, Any]) -> list[str]:
    for name in ("query_response_hit_ids", "query_response_object_ids", "query_response_objects_ids"):
        if isinstance(query.get(name), list):
            return [word for word in map(_word, query[name]) if word]
    return []


def _position(one: Mapping[str, Any]) -> int | None:
    found = _attribute(one, "position", "ordinal")
    return found if type(found) is int and found >= 0 else None


def _attribute(one: Mapping[str, Any], part: str, key: str) -> Any:
    """`event_attributes.part.key`, or a flat `key` or `part` as some exports have it."""
    attributes = one.get("event_attributes")
    inner = attributes.get(part) if isinstance(attributes, dict) else None
    if isinstance(inner, dict) and key in inner:
        return inner[key]
    return next((told[name] for told in (one,) for name in (key, part) if name in told), inner)


def _word(value: Any) -> str:
    """An id as text: 7, 7.0 and "7" are one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip() if isinstance(value, str | int | float) else ""


def _safe(cell: str) -> str:
    return f"'{cell}" if _formula(cell) else cell


def _plain(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _formula(cell) else cell


def _formula(cell: str) -> bool:
    """Apostrophes before it are passed over, so that reading undoes writing."""
    return cell.lstrip("'").startswith(FORMULA_SIGNS)
