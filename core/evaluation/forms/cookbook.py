"""The Contextual Retrieval cookbook's form: codebase_chunks.json with documents cut already, and
evaluation_set.jsonl with the texts of each query's golden chunks.

Its metric compares texts without the blanks at their ends: a golden text that stands in several chunks is
found when one of them is. The others are the evidence's copies.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from core.documents import Documents, ListedDocuments
from core.evaluation.forms.collect import Collector, Draft, ImportedSet
from core.evaluation.forms.files import Files, rows
from core.evaluation.judgements import EvaluationError, Judgements
from core.loading import clean, safe_name
from core.types import Document

_CORPUS, _SET = "codebase_chunks.json", "evaluation_set.jsonl"
Span = tuple[str, int, int]


def detect(files: Files) -> bool:
    return bool(_golden_sets(files))


def read(files: Files, documents: Documents | None) -> ImportedSet:
    """Raises EvaluationError when documents are needed and codebase_chunks.json is not usable."""
    problems: list[str] = []
    name = files.first(
        [*files.called(_SET), *_golden_sets(files)], f"{_SET} with golden_chunks", "the cookbook's form"
    )
    made: list[Document] = []
    places: dict[tuple[str, Any], Span] = {}  # (document's uuid, chunk's number) → its span
    if documents is None:
        made = _documents(files, places, problems)
    among = ListedDocuments(made) if documents is None else documents
    collector = Collector(among)
    collector.problems += problems
    texts = _Texts(among)
    for number, row in rows(files, name, collector.problems):
        draft = collector.query(f"line {number}", row.get("query"), row.get("id"), apart=True)
        if draft is None:
            continue
        for key, text in _golden(row):
            _take(collector, f"line {number}", draft, texts, places.get(key), text)
    return ImportedSet(tuple(made), collector.judgements(), "cookbook")


def _take(
    collector: Collector, where: str, draft: Draft, texts: _Texts, place: Span | None, text: str
) -> None:
    found = texts.places(text)
    if place and place in found:
        found = [place, *(one for one in found if one != place)]
    if not found:
        collector.lose(where, draft, {"quote": text}, "no document has this golden text")
        return
    (document, start, end), *others = found
    collector.take(
        where,
        draft,
        {
            "document": document,
            "start": start,
            "end": end,
            "copies": [{"document": one, "start": a, "end": b} for one, a, b in others],
        },
    )


def write(judgements: Judgements, documents: Documents) -> dict[str, str]:
    """Both files; a document that was not cut elsewhere is one chunk. Golden texts are those of the spans."""
    texts = {documents.ids[at]: documents[at].text for at in range(len(documents))}
    lines = []
    for query in judgements.queries:
        golden = [
            {"doc_uuid": one.document_id, "content": texts[one.document_id][one.start : one.end]}
            for one in query.evidence
            if one.document_id in texts
        ] + [{"doc_uuid": lost.document, "content": lost.quote} for lost in query.unlocated]
        row = {"id": query.id, "query": query.text, "golden_chunks": golden}
        lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    corpus = []
    for at in range(len(documents)):
        one = documents[at]
        cut = one.chunks or ((0, len(one.text)),)
        corpus.append(
            {
                "doc_id": one.id,
                "original_uuid": one.id,
                "content": one.text,
                "chunks": [
                    {"chunk_id": f"{one.id}_{place}", "original_index": place, "content": one.text[a:b]}
                    for place, (a, b) in enumerate(cut)
                ],
            }
        )
    return {_CORPUS: json.dumps(corpus, ensure_ascii=False, indent=1), _SET: "".join(lines)}


class _Texts:
    """Where a golden text stands: as a given chunk of any document, else anywhere in one."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._chunks: dict[str, list[Span]] = {}
        for at in range(len(documents)):
            one = documents[at]
            for start, end in one.chunks:
                self._chunks.setdefault(one.text[start:end].strip(), []).append((one.id, start, end))

    def places(self, text: str) -> list[Span]:
        wanted = clean(text).strip()
        if not wanted:
            return []
        return self._chunks.get(wanted) or list(self._anywhere(wanted))

    def _anywhere(self, wanted: str) -> Iterator[Span]:
        for at in range(len(self._documents)):
            one = self._documents[at]
            start = one.text.find(wanted)
            while start >= 0:
                yield one.id, start, start + len(wanted)
                start = one.text.find(wanted, start + 1)


def _golden_sets(files: Files) -> list[str]:
    return [name for name in files.ending(".jsonl") if '"golden_chunk' in files.peek(name)]


def _golden(row: Mapping[str, Any]) -> Iterator[tuple[tuple[str, Any], str]]:
    """Each golden chunk's key and text."""
    keys = row.get("golden_chunk_uuids")
    keys = keys if isinstance(keys, list) else []
    chunks = row.get("golden_chunks")
    for place, chunk in enumerate(chunks if isinstance(chunks, list) else []):
        facts = chunk if isinstance(chunk, Mapping) else {"content": chunk}
        key = keys[place] if place < len(keys) else (facts.get("doc_uuid"), facts.get("index"))
        pair = key if isinstance(key, list | tuple) and len(key) == 2 else ("", None)
        yield (str(pair[0]), _hashable(pair[1])), str(facts.get("content", ""))


def _hashable(value: Any) -> Any:
    return value if isinstance(value, int | str) else None


def _documents(files: Files, places: dict[tuple[str, Any], Span], problems: list[str]) -> list[Document]:
    name = files.first(files.called(_CORPUS), _CORPUS, "the cookbook's form")
    given = files.json(name)
    if not isinstance(given, list):
        raise EvaluationError(f"{name} is no list of documents; take the file as it was published")
    made: dict[str, Document] = {}
    for place, row in enumerate(given, 1):
        facts = row if isinstance(row, Mapping) else {}
        identity, content, chunks = facts.get("doc_id"), facts.get("content"), facts.get("chunks")
        if not isinstance(identity, str) or not isinstance(content, str) or not isinstance(chunks, list):
            problems.append(f"{name}, document {place}: no doc_id, content or chunks; it is left out")
            continue
        if identity in made:
            problems.append(f"document {identity} comes twice; the second is left out")
            continue
        text = clean(content)
        spans, begin = [], 0
        for number, chunk in enumerate(chunks):
            told = chunk if isinstance(chunk, Mapping) else {}
            wanted = clean(str(told.get("content", "")))
            start = text.find(wanted, begin) if wanted.strip() else -1
            if start < 0:
                problems.append(f"document {identity}, chunk {number}: its text is not in the document")
                continue
            begin = start
            spans.append((start, start + len(wanted)))
            index = _hashable(told.get("original_index", number))
            places[str(facts.get("original_uuid", identity)), index] = (identity, *spans[-1])
        if not spans:
            problems.append(f"document {identity} has no chunk; it is left out")
            continue
        made[identity] = Document(
            identity, safe_name(identity), "", text, chunks=tuple(sorted(set(spans)))
        )
    return list(made.values())
