"""The sample collection and its golden queries agree with one another."""

from __future__ import annotations

import csv
import json
import re
import zipfile
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[2] / "data"
SAMPLE = DATA / "sample"
TEXT = {".md", ".txt", ".html", ".csv", ".jsonl", ".py"}
SOURCES = {
    "security-and-conduct-handbook.pdf": "handbook.txt",
    "frostline-product-spec.docx": "product-spec.txt",
    "board-deck-2024-02.pptx": "board-deck.txt",
    "field-guide-cold-road.epub": "field-guide.txt",
    "parts-and-prices-2024.xlsx": "parts",
}
KINDS = {"identifier", "paraphrase", "two-span", "no-answer", "other-language", "table"}


def _queries() -> list[dict]:
    lines = (DATA / "sample_queries.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _readable(name: str) -> str:
    """Return the text of a document, or of the source that it is generated from."""
    if Path(name).suffix in TEXT:
        return (SAMPLE / name).read_text(encoding="utf-8")
    source = DATA / "source" / SOURCES[name]
    parts = sorted(source.glob("*.tsv")) if source.is_dir() else [source]
    return "\n".join(part.read_text(encoding="utf-8") for part in parts)


EVIDENCE = [
    pytest.param(item["document"], item["quote"], id=f"{query['id']}-{number}")
    for query in _queries()
    for number, item in enumerate(query["evidence"], 1)
]


@pytest.mark.parametrize(("document", "quote"), EVIDENCE)
def test_quote_occurs_once_and_verbatim(document: str, quote: str) -> None:
    assert (SAMPLE / document).is_file()
    assert _readable(document).count(quote) == 1
    assert "\n" not in quote


def test_there_are_enough_queries_of_every_kind() -> None:
    queries = _queries()
    assert len(queries) >= 40
    assert {query["kind"] for query in queries} == KINDS
    for kind in KINDS:
        assert sum(query["kind"] == kind for query in queries) >= 5, kind


def test_ids_and_queries_are_unique() -> None:
    queries = _queries()
    assert len({query["id"] for query in queries}) == len(queries)
    assert len({query["query"] for query in queries}) == len(queries)


def test_amount_of_evidence_fits_the_kind() -> None:
    for query in _queries():
        expected = {"no-answer": 0, "two-span": 2}.get(query["kind"], 1)
        assert len(query["evidence"]) == expected, query["id"]


def test_unanswerable_identifiers_occur_nowhere() -> None:
    names = [path.name for path in SAMPLE.iterdir()]
    everything = "\n".join(_readable(name) for name in names)
    for query in _queries():
        if query["kind"] == "no-answer":
            for token in re.findall(r"INC-[\w-]+|ERR_\w+", query["query"]):
                assert token not in everything


def test_every_document_is_asked_about() -> None:
    asked = {item["document"] for query in _queries() for item in query["evidence"]}
    assert asked == {path.name for path in SAMPLE.iterdir()}


def test_formats_and_size() -> None:
    paths = list(SAMPLE.iterdir())
    wanted = TEXT | {".pdf", ".docx", ".pptx", ".xlsx", ".epub"}
    assert {path.suffix for path in paths} == wanted
    assert sum(path.stat().st_size for path in paths) < 400_000


def test_annual_report_keeps_the_incident_in_its_own_section() -> None:
    report = (SAMPLE / "annual-report-2023.md").read_text(encoding="utf-8")
    sections = re.split(r"(?m)^## ", report)[1:]
    assert len(sections) >= 10
    mentions = [s.split("\n", 1)[0] for s in sections if "INC-2023-Q4-011" in s]
    assert mentions == ["7. Software engineering", "8. Cybersecurity and incident response"]


def test_contracts_differ_in_their_terms_only() -> None:
    first = (SAMPLE / "contract-hellebore.txt").read_text(encoding="utf-8").splitlines()
    second = (SAMPLE / "contract-skjerholm.txt").read_text(encoding="utf-8").splitlines()
    assert len(first) == len(second)
    same = sum(a == b for a, b in zip(first, second, strict=True))
    assert 0.6 < same / len(first) < 0.9


def test_records_are_well_formed() -> None:
    with (SAMPLE / "incidents-2023-h2.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert len({row["incident_id"] for row in rows}) == len(rows) == 26
    assert all(None not in row and None not in row.values() for row in rows)
    text = (SAMPLE / "support-tickets.jsonl").read_text(encoding="utf-8")
    tickets = [json.loads(line) for line in text.splitlines()]
    assert len({ticket["id"] for ticket in tickets}) == len(tickets)
    assert all({"id", "title", "text", "date", "severity"} <= ticket.keys() for ticket in tickets)


@pytest.mark.parametrize("suffix", [".docx", ".pptx", ".xlsx", ".epub"])
def test_packaged_files_carry_a_fixed_date(suffix: str) -> None:
    for path in SAMPLE.glob(f"*{suffix}"):
        with zipfile.ZipFile(path) as package:
            assert {entry.date_time[0] for entry in package.infolist()} == {2024}
