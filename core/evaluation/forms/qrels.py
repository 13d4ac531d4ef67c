"""Relevance judgements of whole documents, one a line: three columns (BEIR) or four (TREC)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from core.documents import Documents
from core.evaluation.forms.collect import Collector, listed
from core.evaluation.forms.files import Files
from core.evaluation.judgements import Judgements

Line = tuple[int, str, str, int]  # line number, query id, document id, grade from 0


def lines(files: Files, name: str, problems: list[str]) -> Iterator[Line]:
    """The judgements of a file, with or without a header. Grades below 0 (junk, spam) are 0."""
    for number, line in files.lines(name):
        cells = [cell.strip() for cell in line.split("\t")] if "\t" in line else line.split()
        if len(cells) == 4:
            del cells[1]  # TREC's iteration, which nobody uses
        try:
            query, document, told = cells
            grade = float(told)
            if not query or not document or not grade.is_integer():
                raise ValueError
        except (ValueError, OverflowError):
            if number > 1 or len(cells) != 3:
                problems.append(f"{name}, line {number}: not a query, a document and a grade; left out")
            continue
        yield number, query, document, max(int(grade), 0)


def has_four(text: str) -> bool:
    """Whether the beginning of a file looks like TREC's qrels."""
    first = next((line.split() for line in text.splitlines() if line.strip()), [])
    return len(first) == 4 and first[3].lstrip("-").isdigit()


def judge(
    judged: Iterable[Line],
    queries: Mapping[str, str],
    documents: Documents,
    problems: list[str],
    name: str,
    all_queries: bool = True,
) -> Judgements:
    """Queries (id → words) with the documents judged for them. Without `all_queries`, those that the
    judgements do not mention are left out (they belong to another split)."""
    judged = list(judged)  # reading them adds to the problems
    collector = Collector(documents)
    collector.problems += problems
    asked = {query for _, query, _, _ in judged}
    for one, text in queries.items():
        if all_queries or one in asked:
            collector.query(f"query {one}", text, one)
    unknown: Counter[str] = Counter()
    for number, query, document, grade in judged:
        draft = collector.drafts.get(query)
        if draft is None:
            unknown[query] += 1
        else:
            collector.take_whole(f"{name}, line {number}", draft, document, grade)
    if unknown:
        collector.problems.append(
            f"judgements of queries that are not there are left out: {listed(unknown)}"
        )
    silent = [one for one in queries if one not in asked] if all_queries else []
    if silent:
        collector.problems.append(f"queries without judgements: {listed(Counter(silent))}")
    return collector.judgements()


def graded(judgements: Judgements) -> Iterator[tuple[str, str, int]]:
    """(query id, document id, grade): of each document the highest grade of its spans; 0 where it is
    rejected only. What was not located has the name it was given."""
    for query in judgements.queries:
        grades: dict[str, int] = {}
        for one in (*query.evidence, *query.rejected):
            grades[one.document_id] = max(grades.get(one.document_id, 0), one.grade)
        for lost in query.unlocated:
            grades[lost.document] = max(grades.get(lost.document, 0), lost.grade)
        for document, grade in grades.items():
            yield query.id, document, grade
