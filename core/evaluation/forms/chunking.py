"""The form of chunking evaluations (Smith and Troynikov, Chroma, 2024): questions_df.csv with question,
references (a JSON list of content, start_index, end_index) and corpus_id, and corpora/<corpus_id>.md."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from pathlib import PurePosixPath

from core.documents import Documents, ListedDocuments
from core.evaluation.forms import corpora
from core.evaluation.forms.collect import Collector, ImportedSet, file_names, listed
from core.evaluation.forms.files import Files
from core.evaluation.forms.tables import delimiter_of, plain, safe, table
from core.evaluation.judgements import EvaluationError, Judgements

_COLUMNS = ("question", "references", "corpus_id")


def detect(files: Files) -> bool:
    return bool(_questions(files))


def read(files: Files, documents: Documents | None) -> ImportedSet:
    """Raises EvaluationError when documents are needed and there are none."""
    problems: list[str] = []
    made = []
    wanted = f"a table with the columns {', '.join(_COLUMNS)}"
    name = files.first(_questions(files), wanted, "chunking evaluation")
    if documents is None:
        names = [one for one in files.ending(".md", ".txt") if one.lower().startswith("corpora/")]
        if not names:
            raise EvaluationError(f"there is no folder corpora/ with texts; put it beside {name}")
        made = corpora.of_files(files, names, [PurePosixPath(one).stem for one in names], problems)
    among = ListedDocuments(made) if documents is None else documents
    collector = Collector(among)
    collector.problems += problems
    unknown: Counter[str] = Counter()
    for number, row in table(files, name, *_COLUMNS):
        where = f"line {number}"
        corpus = str(plain(row["corpus_id"].strip()))
        draft = collector.query(where, plain(row["question"]), apart=True)
        if draft is None:
            continue
        try:
            references = json.loads(row["references"] or "[]")
        except (ValueError, RecursionError):
            references = None
        if not isinstance(references, list):
            collector.lose(where, draft, {"document": corpus}, "the references are no JSON list")
            continue
        unknown[corpus] += not collector.places(corpus)
        for one in references:
            facts = one if isinstance(one, dict) else {}
            collector.take(
                where,
                draft,
                {
                    "document": corpus,
                    "start": facts.get("start_index"),
                    "end": facts.get("end_index"),
                    "quote": facts.get("content"),
                },
                lenient=True,
            )
    if unknown := +unknown:
        collector.problems.append(f"corpora that are not there, and their questions: {listed(unknown)}")
    return ImportedSet(tuple(made), collector.judgements(), "chunking evaluation")


def write(judgements: Judgements, documents: Documents) -> dict[str, str]:
    """questions_df.csv, a row for each question and document, and the documents' texts. Grades and what
    was not located have no place in this form."""
    names = file_names(documents)
    files: dict[str, str] = {}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    at = {one: place for place, one in enumerate(documents.ids)}
    for query in judgements.queries:
        together: dict[str, list[dict[str, object]]] = {}
        for one in query.evidence:
            if one.document_id not in at:
                continue
            text = documents[at[one.document_id]].text
            files[f"corpora/{names[one.document_id]}.md"] = text
            together.setdefault(one.document_id, []).append(
                {
                    "content": text[one.start : one.end],
                    "start_index": one.start,
                    "end_index": one.end,
                }
            )
        for document, references in together.items():
            writer.writerow([safe(query.text), json.dumps(references), safe(names[document])])
    return {"questions_df.csv": out.getvalue(), **files}


def _questions(files: Files) -> list[str]:
    return [name for name in files.ending(".csv") if delimiter_of(files, name, *_COLUMNS)]
