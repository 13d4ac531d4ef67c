"""Finding a judged span again after its document was replaced, by its words and the words around it.

The quote with what stands before and after it is the TextQuoteSelector of the W3C's Web Annotation
Data Model (2017).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from functools import lru_cache
from itertools import takewhile
from operator import eq
from typing import NamedTuple

from core.documents import Documents
from core.evaluation.judgements import EvaluationError, matches, shown
from core.loading.clean import safe_name
from core.types import encodable

_AROUND = 32  # characters kept before and after a span
_SURE = 8  # of these alike tell two places of a quote apart
_WHOLE = 200  # characters kept of a span that is a whole document


class Placed(NamedTuple):
    """A span of a document that is there."""

    document_id: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Place:
    """A span as it was judged, with what it takes to find it again.

    `digest` is the document's at that time. `whole`: the span is all of the document. `settled`: looking
    again is of no use, since not the place but something else was wrong.
    """

    document_id: str
    name: str
    span: tuple[int, int] | None
    quote: str = ""
    before: str = ""
    after: str = ""
    digest: str = ""
    whole: bool = False
    settled: bool = False

    def to_json(self) -> str:
        return json.dumps(astuple(self))

    @staticmethod
    def from_json(text: str) -> Place:
        identity, name, span, *facts = json.loads(text)
        return Place(identity, name, tuple(span) if span else None, *facts)


def by_stem(names: Sequence[str]) -> dict[str, list[int]]:
    """File name without folder and ending → where it stands among the names: sets name documents so."""
    stems: dict[str, list[int]] = {}
    for at, name in enumerate(names):
        stems.setdefault(name.rpartition("/")[2].rpartition(".")[0], []).append(at)
    return stems


class Places:
    """Keeps and finds spans in one version of the documents; a text is read only where it must be."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._at = {one: at for at, one in enumerate(documents.ids)}
        self._named: dict[str, list[int]] = {}
        for at, name in enumerate(documents.names):
            self._named.setdefault(name, []).append(at)
        self._stems: dict[str, list[int]] | None = None
        self._document = lru_cache(maxsize=32)(documents.__getitem__)

    def keep(self, placed: Placed) -> Place:
        """The span as it is stored. Raises EvaluationError for an unknown document or a span outside it."""
        at = self._at.get(placed.document_id)
        if at is None:
            raise EvaluationError(
                f"there is no document {placed.document_id!r}; it was removed or replaced: reload"
            )
        text, (_, start, end) = self._document(at).text, placed
        if not 0 <= start < end <= len(text):
            raise EvaluationError(
                f"{start}-{end} is no span of {self._documents.names[at]}, which has {len(text):,} characters"
            )
        whole = (start, end) == (0, len(text))
        return Place(
            placed.document_id,
            self._documents.names[at],
            (start, end),
            text[start : min(end, start + _WHOLE) if whole else end],
            text[max(start - _AROUND, 0) : start],
            text[end : end + _AROUND],
            self._documents.digests[at],
            whole,
        )

    def lost(self, place: Place) -> Place:
        """What a reader could not locate: `settled` when that was not for want of its place."""
        place = replace(place, quote=encodable(place.quote), name=encodable(place.name))
        try:
            self.find(place)
        except EvaluationError:
            return place
        return replace(place, settled=True)

    def find(self, place: Place) -> Placed:
        """Where a stored span lies now. Raises EvaluationError with the reason when that cannot be told."""
        if place.settled:
            raise EvaluationError(f"{shown(place.quote)} of {place.name} was not taken as it was given")
        at = self._at.get(place.document_id)
        # A name may be that of another Unicode form, or the id of a document that was not there yet.
        named = (self._named.get(name) for name in (place.name, safe_name(place.name)))
        among = [at] if at is not None else next(filter(None, named), [])
        if not among and place.name in self._at:
            among = [self._at[place.name]]
        among = among or self._without_ending(place.name)
        if not among:
            raise EvaluationError(f"there is no document {place.name!r}; add it again, or judge anew")
        same = [one for one in among if place.digest and self._documents.digests[one] == place.digest]
        if same and place.span:
            return Placed(self._documents.ids[same[0]], *place.span)
        if place.whole and len(among) == 1:
            text = self._document(among[0]).text
            if text:
                return Placed(self._documents.ids[among[0]], 0, len(text))
        if place.whole or not place.quote:
            return self._at_span(place, among)
        return self._by_quote(place, among)

    def _without_ending(self, name: str) -> list[int]:
        """Documents of that file name without its ending, as sets name them that came before their documents."""
        if self._stems is None:
            self._stems = by_stem(self._documents.names)
        return self._stems.get(safe_name(name), [])

    def _at_span(self, place: Place, among: Sequence[int]) -> Placed:
        """What came without words lies where it was said to, if there is one document only."""
        if place.span and len(among) == 1 and not place.whole:
            start, end = place.span
            if 0 <= start < end <= len(self._document(among[0]).text):
                return Placed(self._documents.ids[among[0]], start, end)
        raise EvaluationError(f"the place in {place.name} cannot be told; judge anew")

    def _by_quote(self, place: Place, among: Sequence[int]) -> Placed:
        documents = [self._document(one) for one in among]
        found = matches(place.quote, documents)
        if not found:
            raise EvaluationError(
                f"{shown(place.quote)} is not in {place.name} as it is now; judge anew"
            )

        def alike(match: tuple[int, int, int]) -> int:
            at, start, end = match
            text = documents[at].text
            before, after = text[max(start - _AROUND, 0) : start], text[end : end + _AROUND]
            return _same(before[::-1], place.before[::-1]) + _same(after, place.after)

        best = max(map(alike, found))
        most = [match for match in found if alike(match) == best]
        # A character or two in common may be luck.
        sure = best >= min(_SURE, len(place.before) + len(place.after))
        if len(most) > 1 or (len(found) > 1 and not sure):
            raise EvaluationError(
                f"{shown(place.quote)} is in {place.name} {len(found)} times; judge the right one anew"
            )
        at, start, end = most[0]
        return Placed(documents[at].id, start, end)


def _same(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    return sum(takewhile(bool, map(eq, one, other)))
