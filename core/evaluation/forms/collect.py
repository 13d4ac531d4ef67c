"""What all forms share: rows become queries, and what they name is looked for in the documents."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from core.documents import Documents
from core.evaluation.judgements import (
    LARGEST_GRADE,
    EvaluationError,
    Evidence,
    GoldenQuery,
    Judgements,
    Unlocated,
    even,
    locate_among,
    shown,
)
from core.evaluation.relocate import by_stem
from core.loading.clean import safe_name
from core.types import Document

_NAMED = 50  # that a problem lists; all of them stay with their queries
_IDS = ("_id", "id", "docno", "doc_id", "docid", "document_id", "uuid")


@dataclass(frozen=True, slots=True)
class ImportedSet:
    """A set as it was read: its documents, or those it was read against, and its golden queries."""

    documents: tuple[Document, ...]
    judgements: Judgements
    form: str


@dataclass
class Draft:
    """A query that is being collected."""

    id: str
    text: str
    said: str  # as a problem names it
    evidence: dict[tuple[str, int, int], Evidence] = field(default_factory=dict)
    unlocated: list[Unlocated] = field(default_factory=list)


class Collector:
    """Collects rows into queries by id; a query without one is found again by its words."""

    def __init__(self, documents: Documents) -> None:
        self.drafts: dict[str, Draft] = {}
        self.problems: list[str] = []
        self._documents = documents
        self._again: Counter[str] = Counter()  # by the id of words that came more than once
        self._missing: Counter[str] = Counter()
        self._places: dict[str, list[int]] = {}
        for at, name in enumerate(documents.names):
            self._places.setdefault(name, []).append(at)
        self._places |= {one: [at] for at, one in enumerate(documents.ids)}
        self._by_metadata: dict[str, list[int]] | None = None
        self._by_stem: dict[str, list[int]] | None = None
        self._stems: dict[str, str] = {}  # a name that came without its ending → the document's own
        self._document = lru_cache(maxsize=32)(documents.__getitem__)
        self._length = lru_cache(maxsize=None)(lambda at: len(documents[at].text))

    def query(self, where: str, text: object, id: object = None, apart: bool = False) -> Draft | None:
        """The query of these words and this id; None, and a problem, when it is blank or its id another's.

        Without an id it gets one of its words, so that sets of different files never share one by chance
        as line numbers do. `apart`: each time such words come is a query of its own.
        """
        if not isinstance(text, str) or not text.strip():
            self.problems.append(f'{where}: no object with a text "query"; the line is left out')
            return None
        name = _id_of(text) if id is None else str(id)
        if id is None and apart and name in self.drafts:
            self._again[name] += 1
            name = f"{name}-{self._again[name] + 1}"
        draft = self.drafts.setdefault(
            name, Draft(name, text, shown(text) if id is None else f"query {name}")
        )
        if draft.text != text:
            self.problems.append(
                f"{where}: the id {name} is that of another query; the line is left out"
            )
            return None
        return draft

    def take(self, where: str, draft: Draft, facts: Mapping[str, Any], lenient: bool = False) -> None:
        """Add a judgement with the fields `document`, `quote`, `start`, `end`, `grade`, `whole`, `copies`.

        `lenient`: a quote that does not lie where it is said to lie is looked for in the document.
        """
        try:
            found = self._evidence(facts, lenient)
        except EvaluationError as error:
            self.lose(where, draft, facts, str(error))
        else:
            self._add(where, draft, found)

    def lose(self, where: str, draft: Draft, facts: Mapping[str, Any], reason: str) -> None:
        """Keep a judgement without a place, and name it."""
        self._lose(draft, facts, reason)
        self.problems.append(f"{where}, {draft.said}: {reason}")

    def take_whole(self, where: str, draft: Draft, document: str, grade: int) -> None:
        """Add the judgement of a document as a whole; documents that are not here are named together."""
        try:
            found = self._whole(document, grade)
        except EvaluationError as error:
            self._lose(draft, {"document": document, "whole": True, "grade": grade}, str(error))
            self._missing[str(error)] += 1
            return
        self._add(where, draft, found)

    def judgements(self) -> Judgements:
        """All that was collected. Raises EvaluationError when that is not one query."""
        problems = [*self.problems, *self._said_missing(), *self._said_stems()]
        if not self.drafts:
            raise EvaluationError(
                'no golden query could be read: give lines like {"query": "…", "document": "…", '
                '"quote": "…"}' + "".join(f"; {problem}" for problem in problems[:3])
            )
        queries = tuple(
            GoldenQuery(
                one.id,
                one.text,
                tuple(found for found in one.evidence.values() if found.grade),
                tuple(one.unlocated),
                tuple(found for found in one.evidence.values() if not found.grade),
            )
            for one in self.drafts.values()
        )
        return Judgements(queries, tuple(problems))

    def places(self, name: str) -> list[int]:
        """Where among the documents those are that are meant by an id, a name, a path or a stored id, or,
        where these mean none, by a file name without its ending."""
        # A name as the file system gave it may be in another Unicode form than the one that is kept.
        for one in (name, safe_name(name), safe_name(name.replace("\\", "/").rpartition("/")[2])):
            if found := self._places.get(one):
                return found
        if self._by_metadata is None:
            self._by_metadata = {}
            for at in range(len(self._documents)):
                told = self._documents[at].metadata
                for key in _IDS:
                    if key in told:
                        value = told[key]
                        whole = isinstance(value, float) and value.is_integer()
                        self._by_metadata.setdefault(str(int(value) if whole else value), []).append(at)  # type: ignore[arg-type]
        return self._by_metadata.get(name) or self._without_ending(name)

    def _without_ending(self, name: str) -> list[int]:
        if self._by_stem is None:
            self._by_stem = by_stem(self._documents.names)
        found = self._by_stem.get(safe_name(name), [])
        if len(found) == 1:
            self._stems[name] = self._documents.names[found[0]]
        return found

    def _several(self, named: str, places: Sequence[int]) -> str:
        names = sorted({self._documents.names[at] for at in places} - {named})
        which = f" ({', '.join(names[:3])}{', …' * (len(names) > 3)})" if names else ""
        return f"{len(places)} documents are called {named}{which}; give the id of "

    def _lose(self, draft: Draft, facts: Mapping[str, Any], reason: str) -> None:
        start, end, grade = facts.get("start"), facts.get("end"), facts.get("grade", 1)
        if grade == 0:
            return  # nothing that is looked for is lost; the problem names it
        draft.unlocated.append(
            Unlocated(
                str(facts.get("document", "")),
                str(facts.get("quote") or ""),
                reason,
                grade if type(grade) is int and 0 < grade <= LARGEST_GRADE else 1,
                (start, end) if type(start) is int and type(end) is int else None,
                facts.get("whole") is True,
            )
        )

    def _add(self, where: str, draft: Draft, found: Evidence) -> None:
        key = (found.document_id, found.start, found.end)
        if key in draft.evidence:
            self.problems.append(f"{where}, {draft.said}: the same evidence again; kept once")
            found = max(found, draft.evidence[key], key=lambda one: one.grade)
        draft.evidence[key] = found

    def _evidence(self, facts: Mapping[str, Any], lenient: bool) -> Evidence:
        named, grade = facts.get("document"), facts.get("grade", 1)
        if type(grade) is not int:
            raise EvaluationError(f"the grade is {grade!r}; give a whole number")
        places = self.places(str(named))
        if not places:
            raise EvaluationError(
                f"there is no document {shown(str(named))}; give the id or the name of one"
            )
        quote, span = facts.get("quote"), (facts.get("start"), facts.get("end"))
        if quote is not None and not isinstance(quote, str):
            raise EvaluationError(f"the quote is {quote!r}; give a text")
        if facts.get("whole") is True:
            return self._whole(str(named), grade)
        if span != (None, None):
            try:
                found = self._at_span(str(named), places, span, quote, grade)
            except EvaluationError:
                if not lenient or not quote:
                    raise
                found = self._at_quote(str(named), places, quote, grade)
        elif quote is None:
            raise EvaluationError("neither a quote nor start and end; give one of them")
        else:
            found = self._at_quote(str(named), places, quote, grade)
        copies = facts.get("copies")
        if not isinstance(copies, list):
            return found
        also = [
            self._evidence({**one, "copies": None}, lenient) for one in copies if isinstance(one, dict)
        ]
        return replace(found, copies=tuple((one.document_id, one.start, one.end) for one in also))

    def _at_quote(self, named: str, places: Sequence[int], quote: str, grade: int) -> Evidence:
        documents = [self._document(at) for at in places]
        at, start, end = locate_among(quote, documents, named)
        return Evidence(documents[at].id, start, end, grade)

    def _whole(self, named: str, grade: int) -> Evidence:
        places = self.places(named)
        if not places:
            raise EvaluationError(f"there is no document {shown(named)}; give the id or the name of one")
        if len(places) > 1:
            raise EvaluationError(f"{self._several(named, places)}one")
        length = self._length(places[0])
        if not length:
            raise EvaluationError(f"the document {named} has no text")
        return Evidence(self._documents.ids[places[0]], 0, length, grade)

    def _at_span(
        self, named: str, places: Sequence[int], span: tuple[Any, Any], quote: str | None, grade: int
    ) -> Evidence:
        if len(places) > 1:
            raise EvaluationError(
                f"{self._several(named, places)}the one in which {span[0]}-{span[1]} lies"
            )
        document = self._document(places[0])
        start, end = span
        if type(start) is not int or type(end) is not int:
            raise EvaluationError(f"start {start!r} and end {end!r} are no whole numbers")
        found = Evidence(document.id, start, end, grade)
        if end > len(document.text):
            raise EvaluationError(
                f"{start}-{end} is outside {named}, which has {len(document.text):,} characters"
            )
        if quote is not None and even(document.text[start:end]) != even(quote):
            raise EvaluationError(
                f"{start}-{end} of {named} reads {shown(document.text[start:end])}, not {shown(quote)}; "
                "give the quote alone to have it looked for"
            )
        return found

    def _said_missing(self) -> list[str]:
        if not self._missing:
            return []
        listed = [
            f"{reason} ({times})" if times > 1 else reason
            for reason, times in self._missing.most_common(_NAMED)
        ]
        more = f"; and {len(self._missing) - _NAMED} more" if len(self._missing) > _NAMED else ""
        total = sum(self._missing.values())
        what = "judgement of a whole document" if total == 1 else "judgements of whole documents"
        return [
            f"{total} {what} cannot be located, and {'counts' if total == 1 else 'count'} as not found: "
            f"{'; '.join(listed)}{more}"
        ]

    def _said_stems(self) -> list[str]:
        if not self._stems:
            return []
        pairs = Counter([f"{given} as {name}" for given, name in self._stems.items()])
        return [f"documents found by their file names without the ending: {listed(pairs)}"]


def _id_of(text: str) -> str:
    return "q" + blake2b(text.encode("utf-8", "surrogatepass"), digest_size=5).hexdigest()


def listed(names: Counter[str]) -> str:
    """Names with how often they came, as a problem lists them."""
    shown_names = [
        f"{name} ({times})" if times > 1 else name for name, times in names.most_common(_NAMED)
    ]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(shown_names) + more


def file_names(documents: Documents) -> dict[str, str]:
    """A file name without ending for each document id: no path, none twice."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    numbers: Counter[str] = Counter()  # all records of a file have its name
    for identity, name in zip(documents.ids, documents.names, strict=True):
        stem = name.replace("\\", "/").rpartition("/")[2]
        stem = re.sub(r"[^\w. -]", "_", stem.rpartition(".")[0] or stem).strip(". ") or "document"
        made = stem
        while made.casefold() in taken:
            numbers[stem.casefold()] += 1
            made = f"{stem}-{numbers[stem.casefold()] + 1}"
        taken.add(made.casefold())
        names[identity] = made
    return names
