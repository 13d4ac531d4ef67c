"""The form of LegalBench-RAG (Pipitone and Alami, 2024): JSON with tests[].query and
tests[].snippets[].file_path, span and answer; the files lie in corpus/."""

from __future__ import annotations

import json
from typing import Any

from core.documents import Documents, ListedDocuments
from core.evaluation.forms import corpora
from core.evaluation.forms.collect import Collector, ImportedSet, file_names
from core.evaluation.forms.files import Files
from core.evaluation.judgements import EvaluationError, Judgements


def detect(files: Files) -> bool:
    return bool(_sets(files))


def read(files: Files, documents: Documents | None) -> ImportedSet:
    """All benchmark files of the set together. Raises EvaluationError when documents are needed and there
    are none, and for a file that is no JSON."""
    problems: list[str] = []
    files.first(_sets(files), "a JSON file that begins with its tests", "LegalBench-RAG")
    made = []
    if documents is None:
        names = [name for name in files.names if name.lower().startswith("corpus/")]
        if not names:
            raise EvaluationError("there is no folder corpus/ with texts; put it beside the JSON file")
        ids = [name.partition("/")[2] for name in names]
        made = corpora.of_files(files, names, ids, problems)
    collector = Collector(ListedDocuments(made) if documents is None else documents)
    collector.problems += problems
    for name in _sets(files):
        tests = files.json(name).get("tests")
        for place, test in enumerate(tests if isinstance(tests, list) else [], 1):
            _take(collector, f"{name}, test {place}", test if isinstance(test, dict) else {})
    return ImportedSet(tuple(made), collector.judgements(), "LegalBench-RAG")


def _take(collector: Collector, where: str, test: dict[str, Any]) -> None:
    draft = collector.query(where, test.get("query"), test.get("id"))
    if draft is None:
        return
    snippets = test.get("snippets")
    for one in snippets if isinstance(snippets, list) else []:
        facts = one if isinstance(one, dict) else {}
        span = facts.get("span")
        start, end = span if isinstance(span, list) and len(span) == 2 else (None, None)
        collector.take(
            where,
            draft,
            {
                "document": facts.get("file_path"),
                "start": start,
                "end": end,
                "quote": facts.get("answer"),
            },
            lenient=True,
        )


def write(judgements: Judgements, documents: Documents) -> dict[str, str]:
    """benchmark.json and the documents' texts. Grades and what was not located have no place in this form."""
    names = {one: f"{name}.txt" for one, name in file_names(documents).items()}
    at = {one: place for place, one in enumerate(documents.ids)}
    files: dict[str, str] = {}
    tests = []
    for query in judgements.queries:
        snippets = []
        for one in query.evidence:
            if one.document_id not in at:
                continue
            text = documents[at[one.document_id]].text
            files[f"corpus/{names[one.document_id]}"] = text
            snippets.append(
                {
                    "file_path": names[one.document_id],
                    "span": [one.start, one.end],
                    "answer": text[one.start : one.end],
                }
            )
        tests.append({"id": query.id, "query": query.text, "snippets": snippets})
    return {"benchmark.json": json.dumps({"tests": tests}, ensure_ascii=False, indent=1), **files}


def _sets(files: Files) -> list[str]:
    return [
        name
        for name in files.ending(".json")
        if not name.lower().startswith("corpus/")
        and (beginning := "".join(files.peek(name)[:200].split())).startswith("{")
        and '"tests":' in beginning
    ]
