"""Documents that come with a set: as records with an id, or as files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from core.errors import LoadError
from core.evaluation.forms.files import Files, rows
from core.evaluation.judgements import EvaluationError
from core.loading import LoadOptions, clean, load, safe_name
from core.loading.clean import one_line
from core.types import Document


def of_records(files: Files, name: str, problems: list[str]) -> list[Document]:
    """The documents of a corpus.jsonl: `_id`, `title`, `text`. Each is one passage, as such sets mean it.

    A text that does not begin with its title gets it as its first line. Documents without text, and
    ids that come twice, are named in `problems`.
    """
    documents: dict[str, Document] = {}
    for number, row in rows(files, name, problems):
        identity = next((row[key] for key in ("_id", "id", "docno") if row.get(key) is not None), None)
        text, title = row.get("text"), row.get("title")
        if identity is None or not isinstance(text, str):
            problems.append(f"{name}, line {number}: no _id or no text; the line is left out")
            continue
        add(documents, str(identity), title if isinstance(title, str) else "", text, problems)
    return list(documents.values())


def of_lines(files: Files, name: str, problems: list[str]) -> list[Document]:
    """The documents of a collection.tsv: an id, a tab, the text."""
    documents: dict[str, Document] = {}
    for number, line in files.lines(name):
        identity, tab, text = line.partition("\t")
        if tab:
            add(documents, identity.strip(), "", text, problems)
        else:
            problems.append(f"{name}, line {number}: no tab after the id; the line is left out")
    return list(documents.values())


def add(documents: dict[str, Document], id: str, title: str, text: str, problems: list[str]) -> None:
    """Add a document of one passage, or name why not."""
    text, title = clean(text), one_line(clean(title))
    if title and not text.lstrip().lower().startswith(title.lower()):
        text = f"{title}\n{text}"
    begin, end = len(text) - len(text.lstrip()), len(text.rstrip())
    if id in documents:
        problems.append(f"document {id} comes twice; the second is left out")
    elif begin >= end:
        problems.append(f"document {id} has no text; it is left out")
    else:
        documents[id] = Document(id, safe_name(id), title, text, chunks=((begin, end),))


def of_files(
    files: Files, names: Iterable[str], ids: Iterable[str], problems: list[str]
) -> list[Document]:
    """The documents of files, loaded as an upload is; each has the id that is given for it.

    Files that give no text, or several documents, or have the id of one before them, are named in `problems`.
    """
    documents: dict[str, Document] = {}
    for name, identity in zip(names, ids, strict=True):
        try:
            found = load(files.data(name), name).documents
        except LoadError as error:
            problems.append(f"{name}: {error}")
            continue
        if identity in documents:
            before = documents[identity].name
            problems.append(f"{name}: its id {identity} is that of {before}; it is left out")
        elif len(found) == 1:
            name_alone = safe_name(name.rpartition("/")[2])
            documents[identity] = replace(found[0], id=identity, name=name_alone)
        else:
            problems.append(f"{name} gives {len(found)} documents, one was expected; it is left out")
    return list(documents.values())


def beside(files: Files, name: str, problems: list[str]) -> list[Document]:
    """The documents of all files of a folder but its README and `name`, records of a file being one each.

    Raises EvaluationError when there is none.
    """
    documents: dict[str, Document] = {}
    for other in files.names:
        if other == name or other.lower().startswith("readme"):
            continue
        try:
            loaded = load(files.data(other), other.rpartition("/")[2], LoadOptions(records="items"))
        except LoadError as error:
            problems.append(f"{other}: {error}")
            continue
        for one in loaded.documents:
            documents.setdefault(one.id, one)
    if not documents:
        raise EvaluationError(f"there are no documents beside {name}; put them into the same folder")
    return list(documents.values())
