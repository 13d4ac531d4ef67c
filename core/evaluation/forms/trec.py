"""TREC: qrels of four columns and topics, either "id<TAB>text" or the tagged form; whole documents are judged.

The documents, where they come along, are corpus.jsonl, collection.tsv, or files in corpus/ or documents/
whose names without ending are the ids.
"""

from __future__ import annotations

import html
import re

from core.documents import Documents, ListedDocuments
from core.evaluation.forms import corpora, qrels
from core.evaluation.forms.collect import ImportedSet
from core.evaluation.forms.files import Files
from core.evaluation.judgements import EvaluationError, Judgements
from core.types import Document

# No part of these reads on past the next "<": a file of tags that never end would take hours.
_TOPIC = re.compile(
    r"<top(?:ic)?\b([^<>]*)>(.*?)(?=</top(?:ic)?>|<top(?:ic)?\b|\Z)", re.DOTALL | re.IGNORECASE
)
_NUMBER = re.compile(r"""number\s*=\s*+["']?+\s*+([^"'\s>]+)""", re.IGNORECASE)
_LABEL = re.compile(r"^\s*(?:Number|Topic|Description|Title)\s*:\s*", re.IGNORECASE)


def detect(files: Files) -> bool:
    return bool(_qrels(files) and _topics(files))


def read(files: Files, documents: Documents | None) -> ImportedSet:
    """Raises EvaluationError without topics or documents."""
    problems: list[str] = []
    judged, topics = _qrels(files), _topics(files)
    told = files.first(judged, "qrels of four columns (a file with qrel in its name)", "TREC")
    asked = files.first(topics, "topics (a file with topic or query in its name)", "TREC")
    made = _documents(files, problems) if documents is None else []
    queries = _read_topics(files, asked, problems)
    problems += files.passed_over(judged, told) + files.passed_over(topics, asked)
    found = qrels.judge(
        qrels.lines(files, told, problems),
        queries,
        ListedDocuments(made) if documents is None else documents,
        problems,
        told,
    )
    return ImportedSet(tuple(made), found, "TREC")


def write(judgements: Judgements, documents: Documents) -> dict[str, str]:
    """Topics and qrels; ids have "_" for blanks. Spans become judgements of their whole documents."""
    topics = "".join(
        f"{_id(query.id)}\t{' '.join(query.text.split())}\n" for query in judgements.queries
    )
    judged = "".join(
        f"{_id(query)} 0 {_id(document)} {grade}\n"
        for query, document, grade in qrels.graded(judgements)
    )
    return {"topics.tsv": topics, "qrels.txt": judged}


def _id(name: str) -> str:
    return re.sub(r"\s+", "_", name.strip()) or "_"


def _qrels(files: Files) -> list[str]:
    return [name for name in files.names if "qrel" in name.lower() and qrels.has_four(files.peek(name))]


def _topics(files: Files) -> list[str]:
    found = [
        name for name in files.names if re.search(r"topic|quer|qry", name.rpartition("/")[2].lower())
    ]
    return [name for name in found if "qrel" not in name.lower() and not name.endswith(".jsonl")]


def _read_topics(files: Files, name: str, problems: list[str]) -> dict[str, str]:
    queries: dict[str, str] = {}

    def add(where: str, identity: str, text: str) -> None:
        if not identity or not text:
            problems.append(f"{name}, {where}: no number or no words; left out")
        elif identity in queries:
            problems.append(f"{name}, {where}: the id {identity} comes twice; the second is left out")
        else:
            queries[identity] = text

    if re.search(r"<top(ic)?\b", files.peek(name), re.IGNORECASE):
        for place, (attributes, body) in enumerate(_TOPIC.findall(files.text(name)), 1):
            numbered = _NUMBER.search(attributes)
            identity = numbered.group(1) if numbered else _field(body, "num")
            add(
                f"topic {place}",
                identity,
                next(filter(None, (_field(body, one) for one in ("title", "query", "desc"))), ""),
            )
    else:
        for number, line in files.lines(name):
            identity, _, text = line.partition("\t")
            add(f"line {number}", identity.strip(), text.strip())
    return queries


def _field(body: str, tag: str) -> str:
    """The words after a tag, up to the next one."""
    found = re.search(rf"<{tag}\b[^<>]*>([^<]*)", body, re.IGNORECASE)
    return " ".join(html.unescape(_LABEL.sub("", found.group(1))).split()) if found else ""


def _documents(files: Files, problems: list[str]) -> list[Document]:
    if corpus := files.called("corpus.jsonl"):
        return corpora.of_records(files, corpus[0], problems)
    if table := files.called("collection.tsv", "corpus.tsv"):
        return corpora.of_lines(files, table[0], problems)
    names = [name for name in files.names if name.split("/")[0] in ("corpus", "documents")]
    if not names:
        raise EvaluationError(
            "the set has no documents; put corpus.jsonl, collection.tsv or a folder corpus/ beside the "
            "qrels, or import it into a collection that has them"
        )
    ids = [name.rpartition("/")[2].rpartition(".")[0] or name for name in names]
    return corpora.of_files(files, names, ids, problems)
