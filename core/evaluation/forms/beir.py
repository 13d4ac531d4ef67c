"""BEIR: corpus.jsonl, queries.jsonl and qrels as a table, in the folder or in its qrels/.

Whole documents are judged. Thakur et al., "BEIR" (2021).
"""

from __future__ import annotations

import json

from core.documents import Documents, ListedDocuments
from core.evaluation.forms import corpora, qrels
from core.evaluation.forms.collect import ImportedSet
from core.evaluation.forms.files import Files, rows
from core.evaluation.judgements import Judgements

_SPLITS = ("test", "dev", "train")
_CORPUS, _QUERIES = "corpus.jsonl", "queries.jsonl"
_HEADER = ["query-id", "corpus-id", "score"]


def detect(files: Files) -> bool:
    return bool(files.called(_QUERIES) and _qrels(files))


def read(files: Files, documents: Documents | None) -> ImportedSet:
    """Of several splits test is read, else dev. Raises EvaluationError without queries or documents."""
    problems: list[str] = []
    found = _qrels(files)
    name = files.first(files.called(_QUERIES), _QUERIES, "BEIR")
    told = files.first(found, f"qrels (a table of {', '.join(_HEADER)})", "BEIR")
    made: list = []
    if documents is None:
        corpus = files.first(files.called(_CORPUS), _CORPUS, "BEIR")
        made = corpora.of_records(files, corpus, problems)
    queries: dict[str, str] = {}
    for number, row in rows(files, name, problems):
        identity, text = row.get("_id", row.get("id")), row.get("text")
        if identity is None or not isinstance(text, str):
            problems.append(f"{name}, line {number}: no _id or no text; the line is left out")
        elif str(identity) in queries:
            problems.append(
                f"{name}, line {number}: the id {identity} comes twice; the second is left out"
            )
        else:
            queries[str(identity)] = text
    problems += files.passed_over(found, told)
    judged = qrels.judge(
        qrels.lines(files, told, problems),
        queries,
        ListedDocuments(made) if documents is None else documents,
        problems,
        told,
        all_queries=len(found) == 1,
    )
    return ImportedSet(tuple(made), judged, "BEIR")


def write(judgements: Judgements, documents: Documents) -> dict[str, str]:
    """The three files; blanks in ids are single spaces. Spans become judgements of their whole documents:
    this form has no others."""
    corpus = "".join(
        _line(_id=_id(one.id), title=one.title, text=one.text)
        for one in (documents[at] for at in range(len(documents)))
    )
    queries = "".join(_line(_id=_id(query.id), text=query.text) for query in judgements.queries)
    judged = "".join(
        f"{_id(query)}\t{_id(document)}\t{grade}\n"
        for query, document, grade in qrels.graded(judgements)
    )
    return {
        _CORPUS: corpus,
        _QUERIES: queries,
        "qrels/test.tsv": "\t".join(_HEADER) + "\n" + judged,
    }


def _qrels(files: Files) -> list[str]:
    """The files with judgements, the one to read first: by their names, or by their header where a browser
    gives files without their folder."""
    found = []
    for name in files.ending(".tsv", ".txt", ".qrels"):
        beginning = files.peek(name)
        headed = beginning.lower().split(maxsplit=3)[:3] == _HEADER
        if headed or ("qrels" in name.lower() and not qrels.has_four(beginning)):
            found.append(name)

    def order(name: str) -> tuple[int, str]:
        stem = name.lower().rpartition("/")[2].rpartition(".")[0]
        return (_SPLITS.index(stem) if stem in _SPLITS else -1), name

    return sorted(found, key=order)


def _id(name: str) -> str:
    """As a cell of a table holds it."""
    return " ".join(name.split()) or "_"


def _line(**fields: str) -> str:
    return json.dumps(fields, ensure_ascii=False) + "\n"
