"""CSV with the columns of our own form: query, document, quote, start, end, grade, and id if there is one."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import Any

from core.documents import Documents, ListedDocuments
from core.evaluation.forms import corpora
from core.evaluation.forms.collect import Collector, ImportedSet
from core.evaluation.forms.files import Files
from core.evaluation.forms.jsonl import Rows
from core.evaluation.judgements import EvaluationError, Judgements
from core.types import FORMULA_SIGNS

COLUMNS = ("id", "query", "document", "quote", "start", "end", "grade", "whole")
_DELIMITERS = ",;\t|"
_TOLD = re.compile(
    r'"?sep=([,;\t|])"?(?:\r\n|\r|\n)', re.IGNORECASE
)  # the first line that spreadsheets write
_WHOLE = re.compile(r"[+-]?\d{1,15}(?:\.0*)?")


def detect(files: Files) -> bool:
    return bool(_own(files, ".csv", ".tsv"))


def read_form(files: Files, documents: Documents | None) -> ImportedSet:
    """The set of one such table; its documents are all other files of the folder."""
    # Chosen by a person, a table may have any name.
    found, problems = _own(files, ".csv", ".tsv") or _own(files, ""), list[str]()
    wanted = f"a table with a column query, and of {', '.join(COLUMNS[2:7])} those that there are"
    name = files.first(found, wanted, "CSV")
    made = corpora.beside(files, name, problems) if documents is None else []
    judged = read(files, name, ListedDocuments(made) if documents is None else documents)
    problems += files.passed_over(found, name)
    return ImportedSet(tuple(made), Judgements(judged.queries, (*problems, *judged.problems)), "CSV")


def _own(files: Files, *endings: str) -> list[str]:
    found = [name for name in files.ending(*endings) if delimiter_of(files, name, "query")]
    return sorted(found, key=lambda name: name.count("/"))


def delimiter_of(files: Files, name: str, *columns: str) -> str:
    """The delimiter under which a table has these columns; "" when there is none."""
    beginning = files.peek(name)
    told = _TOLD.match(beginning)
    for one in told[1] if told else _DELIMITERS:
        rows = csv.reader(io.StringIO(beginning[told.end() if told else 0 :], newline=""), delimiter=one)
        if set(columns) <= {cell.strip().lower() for cell in next(rows, [])}:
            return one
    return ""


def table(files: Files, name: str, *columns: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows of a table with these columns, by lower-case column, with the number of the line on which each
    ends.

    Raises EvaluationError when quoting is broken.
    """
    csv.field_size_limit(2**31 - 1)  # a cell may be a whole document
    text, delimiter = files.text(name), delimiter_of(files, name, *columns)
    told = _TOLD.match(text)
    # Strict: a quote that is never closed would swallow all rows after it without a word.
    reader = csv.DictReader(
        io.StringIO(text[told.end() if told else 0 :], newline=""), delimiter=delimiter, strict=True
    )
    above = 1 if told else 0
    try:
        for row in reader:
            yield (
                reader.line_num + above,
                {key.strip().lower(): cell or "" for key, cell in row.items() if isinstance(key, str)},
            )
    except csv.Error as error:
        raise EvaluationError(
            f"{name}, after line {reader.line_num + above}: {error}; save the table anew"
        ) from None


def read(files: Files, name: str, documents: Documents) -> Judgements:
    """Golden queries of one table. Raises EvaluationError when no row can be read."""
    collector = Collector(documents)
    for number, row in table(files, name, "query"):
        where = f"line {number}"
        if not any(cell.strip() for cell in row.values()):
            continue
        facts = {key: plain(cell) for key, cell in row.items() if cell.strip()}
        draft = collector.query(where, facts.get("query", ""), facts.get("id"))
        if draft is None:
            continue
        for key in ("start", "end", "grade"):
            if key in facts:
                facts[key] = _number(facts[key])
        facts["whole"] = str(facts.get("whole", "")).strip().lower() in ("true", "1", "yes")
        if facts["whole"] or {"document", "quote", "start", "end"} & facts.keys():
            collector.take(where, draft, facts)
    return collector.judgements()


def write(judgements: Judgements, documents: Documents) -> dict[str, str]:
    """One table with a row for each judgement; a query without any has a row of its own.

    Cells that a spreadsheet would run as formulas begin with an apostrophe, which reading takes away.
    Copies are left out: they have no column.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, restval="", extrasaction="ignore", lineterminator="\r\n")
    writer.writeheader()
    made = Rows(documents)
    for query in judgements.queries:
        for row in list(made.of(query)) or [{}]:
            whole: dict[str, Any] = {"id": query.id, "query": query.text, **row}
            if whole.get("whole"):
                whole["whole"] = "true"
            writer.writerow(
                {key: safe(cell) if isinstance(cell, str) else cell for key, cell in whole.items()}
            )
    return {"judgements.csv": out.getvalue()}


def safe(cell: str) -> str:
    """The cell so that no spreadsheet runs it."""
    return f"'{cell}" if _formula(cell) else cell


def plain(cell: str) -> Any:
    """The cell as it was before `safe`."""
    return cell[1:] if cell.startswith("'") and _formula(cell) else cell


def _formula(cell: str) -> bool:
    """Apostrophes before it are passed over, so that reading undoes writing."""
    return cell.lstrip("'").startswith(FORMULA_SIGNS)


def _number(cell: str) -> Any:
    """A whole number where the cell is one, else the cell, for the message that names it."""
    return int(float(cell)) if _WHOLE.fullmatch(cell.strip()) else cell
