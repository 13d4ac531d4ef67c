"""Forms in which sets of golden queries come and go: one file a form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from core.documents import Documents
from core.evaluation.forms import (
    beir,
    chunking,
    cookbook,
    jsonl,
    legalbench,
    tables,
    trec,
)
from core.evaluation.forms.collect import ImportedSet, listed
from core.evaluation.forms.files import Files
from core.evaluation.forms.jsonl import read_judgements
from core.evaluation.judgements import EvaluationError, Judgements

__all__ = ["FORMS", "Form", "ImportedSet", "read_files", "read_judgements", "read_set"]


@dataclass(frozen=True, slots=True)
class Form:
    """A form: `title` and `help` say what it is. `detect` whether files have it; `read` them, against
    documents or with their own (None); `write` gives texts by file name."""

    title: str
    help: str
    detect: Callable[[Files], bool]
    read: Callable[[Files, Documents | None], ImportedSet]
    write: Callable[[Judgements, Documents], dict[str, str]]


FORMS: Mapping[str, Form] = {
    "chunking": Form(
        "Chunking evaluation",
        "questions_df.csv with references, and corpora/*.md",
        chunking.detect,
        chunking.read,
        chunking.write,
    ),
    "legalbench": Form(
        "LegalBench-RAG",
        "JSON with tests and their snippets, and corpus/",
        legalbench.detect,
        legalbench.read,
        legalbench.write,
    ),
    "cookbook": Form(
        "Contextual Retrieval cookbook",
        "codebase_chunks.json and evaluation_set.jsonl with golden chunk texts",
        cookbook.detect,
        cookbook.read,
        cookbook.write,
    ),
    "beir": Form(
        "BEIR",
        "corpus.jsonl, queries.jsonl and qrels; whole documents are judged",
        beir.detect,
        beir.read,
        beir.write,
    ),
    "trec": Form(
        "TREC", "qrels and topics; whole documents are judged", trec.detect, trec.read, trec.write
    ),
    "jsonl": Form(
        "JSONL",
        "lines with query, document, quote (or start and end) and grade",
        jsonl.detect,
        jsonl.read_form,
        jsonl.write,
    ),
    "csv": Form(
        "CSV",
        "a table with query, document, quote (or start and end) and grade",
        tables.detect,
        tables.read_form,
        tables.write,
    ),
}
"""The forms in the order in which they are recognised."""


def read_set(path: Path | str) -> ImportedSet:
    """The documents and golden queries of a folder (or a file) in one of the forms.

    What does not match, and a file that is not read, is named in the judgements' `problems`. Raises EvaluationError when no form is
    recognised, or its files cannot be read at all.
    """
    folder = Path(path)
    try:
        return _read(Files.at(folder), None, "")
    except OSError as error:
        raise EvaluationError(f"{folder} cannot be read: {error.strerror or error}") from error


def read_files(files: Mapping[str, bytes], documents: Documents, form: str = "") -> ImportedSet:
    """As `read_set`, from uploaded files (name → bytes) and against documents that are there.

    `form` is one of `FORMS`; without it, it is recognised.
    """
    return _read(Files.uploaded(files), documents, form)


def _read(files: Files, documents: Documents | None, form: str) -> ImportedSet:
    if files.empty == files.names:
        raise EvaluationError(
            f"{', '.join(files.empty[:5])}: no text in it; choose the file that holds the queries"
        )
    chosen = FORMS.get(form) or next((one for one in FORMS.values() if one.detect(files)), None)
    if chosen is None and files.names == files.ending(".csv", ".tsv"):
        chosen = FORMS["csv"]  # which says what columns there must be
    if chosen is None:
        seen = ", ".join(files.names[:5]) + (" …" if len(files.names) > 5 else "")
        known = "; ".join(f"{one.title} ({one.help})" for one in FORMS.values())
        raise EvaluationError(f"no form of golden queries is recognised in {seen}; known are {known}")
    found = chosen.read(files, documents)
    said = [*files.notes, *found.judgements.problems]
    if unused := files.unused:
        own = "" if documents is None else ", as the documents are those of the collection"
        said.append(
            f"files of which {chosen.title} reads nothing are left out{own}: {listed(Counter(unused))}"
        )
    return replace(found, judgements=replace(found.judgements, problems=tuple(said)))
