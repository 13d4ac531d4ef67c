"""Forms of golden queries: read, recognised, written and read again; what does not match is named."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from core.documents import ListedDocuments
from core.evaluation import (
    FORMS,
    EvaluationError,
    Evidence,
    GoldenQuery,
    ImportedSet,
    Judgements,
    Unlocated,
    read_files,
    read_set,
)
from core.evaluation.forms import tables
from core.evaluation.forms.collect import file_names
from core.types import FORMULA_SIGNS, Document

VALVES = "The valve leaks at night. The pump is new. The valve leaks at noon."


def document(text: str, id: str, name: str, **facts: object) -> Document:
    return Document(id, name, "", text, **facts)  # type: ignore[arg-type]


DOCUMENTS = ListedDocuments(
    [
        document(VALVES, "d1", "valves.txt"),
        document("Seals are black. Seals\nare round.", "d2", "seals.md"),
        document("First.", "t1", "tickets.jsonl", metadata={"_id": "T-1"}),
        document("Second.", "t2", "tickets.jsonl", metadata={"_id": 7.0}),
    ]
)


def read(files: Mapping[str, str | bytes], form: str = "") -> ImportedSet:
    data = {
        name: text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        for name, text in files.items()
    }
    return read_files(data, DOCUMENTS, form)


def folder(at: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (at / name).parent.mkdir(parents=True, exist_ok=True)
        (at / name).write_text(text, encoding="utf-8", newline="")
    return at


def by_id(found: ImportedSet) -> dict[str, GoldenQuery]:
    return {query.id: query for query in found.judgements.queries}


SET = Judgements(
    (
        GoldenQuery(
            "a",
            "new pump; or old?",
            (Evidence("d1", 26, 42, 2), Evidence("d1", 4, 15)),
            rejected=(Evidence("d2", 0, 16, 0),),
        ),
        GoldenQuery("b", '=HYPERLINK("x")', (Evidence("t2", 0, 7),)),
        GoldenQuery("c", "no answer"),
        GoldenQuery("d", "lost?", (), (Unlocated("gone.txt", "'=said, once", "", 3),)),
    )
)


class TestRoundTrips:
    @pytest.mark.parametrize("form", ["jsonl", "csv"])
    def test_own_forms_lose_nothing(self, form: str) -> None:
        found = read(FORMS[form].write(SET, DOCUMENTS))
        assert found.form == FORMS[form].title
        (lost,) = by_id(found)["d"].unlocated
        assert (lost.document, lost.quote, lost.grade) == ("gone.txt", "'=said, once", 3)
        assert by_id(found)["a"] == SET.queries[0]
        assert by_id(found)["b"] == SET.queries[1]
        assert by_id(found)["c"] == SET.queries[2]
        assert len(found.judgements.problems) == 1

    def test_formulas_are_neutral_in_the_table(self) -> None:
        (text,) = FORMS["csv"].write(SET, DOCUMENTS).values()
        assert '"\'=HYPERLINK(""x"")"' in text
        assert "''=said" in text
        spans = FORMS["chunking"].write(SET, DOCUMENTS)["questions_df.csv"]
        assert '"\'=HYPERLINK(""x"")"' in spans

    @pytest.mark.parametrize("sign", FORMULA_SIGNS)
    def test_every_sign_of_a_formula_is_neutral_and_comes_back(self, sign: str) -> None:
        for cell in (f"{sign}1", f"'{sign}1", f"''{sign}1"):
            assert tables.safe(cell) == f"'{cell}"
            assert tables.plain(tables.safe(cell)) == cell
        assert tables.safe(f"1{sign}") == tables.plain(f"1{sign}") == f"1{sign}"

    def test_names_that_are_formulas_are_neutral_in_the_table_of_spans(self, tmp_path: Path) -> None:
        documents = ListedDocuments([document("The pump is new.", "p", "-2+3.txt")])
        given = Judgements((GoldenQuery("1", "new?", (Evidence("p", 4, 8),)),))
        files = FORMS["chunking"].write(given, documents)
        assert files["questions_df.csv"].endswith(",'-2_3\n")
        found = read_set(folder(tmp_path, files))
        [place] = found.judgements.queries[0].evidence
        assert (found.documents[0].name, place.start, place.end) == ("-2_3.md", 4, 8)

    @pytest.mark.parametrize("form", ["chunking", "legalbench"])
    def test_span_forms_with_their_documents(self, form: str, tmp_path: Path) -> None:
        spans = Judgements(SET.queries[:2])
        found = read_set(folder(tmp_path, FORMS[form].write(spans, DOCUMENTS)))
        query, formula = found.judgements.queries
        assert formula.text == SET.queries[1].text
        texts = {one.id: one.text for one in found.documents}
        assert query.text == "new pump; or old?"
        assert [texts[one.document_id][one.start : one.end] for one in query.evidence] == [
            "The pump is new.",
            "valve leaks",
        ]
        assert found.judgements.problems == ()

    def test_cookbook_with_its_documents(self, tmp_path: Path) -> None:
        cut = ListedDocuments(
            [
                document("one two three", "x", "x", chunks=((0, 3), (4, 7), (8, 13))),
                document("two  four", "y", "y", chunks=((0, 4), (5, 9))),
            ]
        )
        given = Judgements(
            (
                GoldenQuery("1", "two?", (Evidence("x", 4, 7),)),
                GoldenQuery("2", "q", (Evidence("y", 5, 9),)),
            )
        )
        found = read_set(folder(tmp_path, FORMS["cookbook"].write(given, cut)))
        assert [one.chunks for one in found.documents] == [cut[0].chunks, cut[1].chunks]
        # Texts are compared without the blanks at their ends, as the set's own metric does.
        assert by_id(found)["1"].evidence == (Evidence("x", 4, 7, 1, (("y", 0, 4),)),)
        assert by_id(found)["2"].evidence == (Evidence("y", 5, 9),)

    @pytest.mark.parametrize("form", ["beir", "trec"])
    def test_forms_of_whole_documents(self, form: str, tmp_path: Path) -> None:
        files = FORMS[form].write(SET, DOCUMENTS)
        if form == "trec":
            files["collection.tsv"] = "d1\tone\nd2\ttwo\nt2\tthree\n"
        found = read_set(folder(tmp_path, files))
        assert found.form == FORMS[form].title
        queries = by_id(found)
        length = {one.id: len(one.text) for one in found.documents}
        assert queries["a"].evidence == (Evidence("d1", 0, length["d1"], 2),)
        assert queries["a"].rejected == (Evidence("d2", 0, length["d2"], 0),)
        assert [one.document for one in queries["d"].unlocated] == ["gone.txt"]
        assert "queries without judgements: c" in found.judgements.problems[0]


class TestOwnForms:
    @pytest.mark.parametrize("form", ["beir", "trec"])
    def test_ids_that_no_table_holds_keep_their_judgements(self, form: str) -> None:
        odd = Judgements((GoldenQuery(" a\tb\nc", "q?", (Evidence("d1", 0, len(VALVES)),)),))
        found = read(FORMS[form].write(odd, DOCUMENTS), form)
        (query,) = found.judgements.queries
        assert (query.text, query.evidence) == ("q?", odd.queries[0].evidence)

    def test_marks_of_windows_and_other_delimiters(self) -> None:
        text = '\ufeffQuery;Document;Quote;Grade\r\nnew?;valves.txt;The pump is new.;2\r\nnew?;d2;"Seals\r\nare round";\r\n'
        found = read({"table.csv": text})
        (query,) = found.judgements.queries
        assert query.evidence == (Evidence("d1", 26, 42, 2), Evidence("d2", 17, 32))
        lines = '\ufeff{"query": "new?", "document": "d1", "quote": "The pump is new."}\r\n\r\n'
        (query,) = read({"lines.jsonl": lines}).judgements.queries
        assert query.evidence == (Evidence("d1", 26, 42),)

    def test_what_a_table_lacks_and_what_is_not_read_is_named(self) -> None:
        with pytest.raises(
            EvaluationError, match=r"needs a table with a column query.* among fragen.csv; add it"
        ):
            read({"fragen.csv": "frage,datei\nWann?,valves.txt\n"})
        for table in ("set.csv", "set.jsonl"):
            row = "query\nwhen?\n" if table.endswith("csv") else '{"query": "when?"}\n'
            found = read({table: row, "notes.txt": "of mine"}).judgements
            assert [query.text for query in found.queries] == ["when?"]
            assert found.problems == (
                f"files of which {'CSV' if table.endswith('csv') else 'JSONL'} reads nothing are left out, "
                "as the documents are those of the collection: notes.txt",
            )

    def test_numbers_in_tables(self) -> None:
        text = (
            "query\tdocument\tstart\tend\tgrade\n"
            "q\td1\t0\t3\t1.0\nq\td1\t-4\t3\t1\nq\td1\tx\t3\t1\nq\td1\t4\t9\thigh\n"
        )
        found = read({"table.tsv": text})
        (query,) = found.judgements.queries
        assert query.evidence == (Evidence("d1", 0, 3),)
        assert [problem.partition(": ")[2] for problem in found.judgements.problems] == [
            "-4-3 is no span; give 0 <= start < end",
            "start 'x' and end 3 are no whole numbers",
            "the grade is 'high'; give a whole number",
        ]

    def test_whole_documents_and_copies(self) -> None:
        rows = [
            {"id": "w", "query": "w", "evidence": [{"document": "d2", "whole": True}]},
            {
                "id": "c",
                "query": "c",
                "document": "d1",
                "start": 4,
                "end": 9,
                "copies": [{"document": "d1", "start": 47, "end": 52}],
            },
        ]
        queries = by_id(read({"a.jsonl": "\n".join(map(json.dumps, rows))}))
        assert queries["w"].evidence == (Evidence("d2", 0, 33),)
        assert queries["c"].evidence == (Evidence("d1", 4, 9, 1, (("d1", 47, 52),)),)

    def test_a_folder_of_documents_and_a_file_of_queries(self, tmp_path: Path) -> None:
        line = {"query": "new?", "document": "valves.txt", "quote": "The pump is new."}
        files = {"golden.jsonl": json.dumps(line), "docs/valves.txt": VALVES, "README.md": "About."}
        found = read_set(folder(tmp_path, files))
        assert [one.name for one in found.documents] == ["valves.txt"]
        (query,) = found.judgements.queries
        assert query.evidence == (Evidence(found.documents[0].id, 26, 42),)
        (tmp_path / "docs" / "valves.txt").unlink()
        with pytest.raises(EvaluationError, match=r"no documents beside golden.jsonl"):
            read_set(tmp_path)


BEIR = {
    "corpus.jsonl": "\n".join(
        map(
            json.dumps,
            [
                {"_id": "d1", "title": "On seals", "text": "They are round."},
                {"_id": "d2", "title": "", "text": "Pumps."},
                {"_id": "d3", "title": "Rare", "text": "rare earths"},
                {"_id": "d2", "text": "again"},
                {"_id": "d4", "title": "", "text": " "},
                {"text": "nameless"},
            ],
        )
    ),
    "queries.jsonl": '{"_id": "1", "text": "round?"}\n{"_id": 2, "text": "pumps?"}\n{"_id": "3", "text": "silent"}\n',
    "qrels/test.tsv": "query-id\tcorpus-id\tscore\n1\td1\t2\n1\td2\t0\n2\td9\t1\n2\td9x\t1\n7\td1\t1\n2\td4\tbad\n",
}


class TestBeir:
    def test_documents_judgements_and_problems(self, tmp_path: Path) -> None:
        found = read_set(folder(tmp_path, BEIR))
        assert found.form == "BEIR"
        assert [(one.id, one.text) for one in found.documents] == [
            ("d1", "On seals\nThey are round."),
            ("d2", "Pumps."),
            ("d3", "rare earths"),
        ]
        assert found.documents[0].chunks == ((0, 24),)
        queries = by_id(found)
        assert queries["1"].evidence == (Evidence("d1", 0, 24, 2),)
        assert queries["1"].rejected == (Evidence("d2", 0, 6, 0),)
        assert [one.document for one in queries["2"].unlocated] == ["d9", "d9x"]
        assert all(one.whole for one in queries["2"].unlocated)
        assert not queries["3"].answerable
        problems = "\n".join(found.judgements.problems)
        for named in (
            "document d2 comes twice",
            "document d4 has no text",
            "corpus.jsonl, line 6: no _id or no text",
            "qrels/test.tsv, line 7: not a query, a document and a grade",
            "judgements of queries that are not there are left out: 7",
            "queries without judgements: 3",
            "2 judgements of whole documents cannot be located",
            "there is no document “d9”",
        ):
            assert named in problems

    def test_without_a_header_and_of_several_splits(self, tmp_path: Path) -> None:
        files = {
            **BEIR,
            "qrels/test.tsv": "1\td1\t1\n",
            "qrels/train.tsv": "2\td2\t1\n",
        }
        found = read_set(folder(tmp_path, files))
        assert list(by_id(found)) == ["1"]
        assert by_id(found)["1"].evidence == (Evidence("d1", 0, 24),)
        assert "qrels/train.tsv is left out: qrels/test.tsv is read" in found.judgements.problems

    def test_into_a_collection_by_id_name_and_stored_id(self) -> None:
        qrels = "1\tvalves.txt\t1\n1\tT-1\t1\n1\t7\t2\n1\ttickets.jsonl\t1\n1\tfolder/seals.md\t1\n"
        found = read({"set/queries.jsonl": '{"_id": "1", "text": "q"}', "set/qrels.tsv": qrels})
        (query,) = found.judgements.queries
        assert query.evidence == (
            Evidence("d1", 0, len(VALVES)),
            Evidence("t1", 0, 6),
            Evidence("t2", 0, 7, 2),
            Evidence("d2", 0, 33),
        )
        assert "2 documents are called tickets.jsonl" in query.unlocated[0].reason
        assert found.documents == ()


class TestTrec:
    QRELS = "301 0 d1 1\r\n301 0 d2 -2\r\n302 0 zzz 1\r\n302 0 d1 x\r\n"
    TAGGED = (
        "<top>\n<num> Number: 301\n<title> Leaks &amp; seals\n<desc> Description:\nWhat leaks?\n</top>\n"
        "<top>\n<num> Number: 302\n<title>\n<desc> Description:\nWho fell?\n</top>\n"
        "<top>\n<title> numberless\n</top>"
    )

    @pytest.mark.parametrize(
        "topics",
        [
            TAGGED,
            "301\tLeaks & seals\n302\tWho fell?\nnumberless\n",
            '<topics><topic number="301"><query>Leaks &amp; seals</query></topic>'
            '<topic number="302"><query>Who fell?</query></topic><topic number=""></topic></topics>',
        ],
    )
    def test_each_form_of_topics(self, topics: str) -> None:
        found = read({"qrels.test.txt": self.QRELS, "topics.txt": topics})
        queries = by_id(found)
        assert {id: query.text for id, query in queries.items()} == {
            "301": "Leaks & seals",
            "302": "Who fell?",
        }
        assert queries["301"].evidence == (Evidence("d1", 0, len(VALVES)),)
        assert queries["301"].rejected == (Evidence("d2", 0, 33, 0),)
        assert [one.document for one in queries["302"].unlocated] == ["zzz"]
        problems = "\n".join(found.judgements.problems)
        assert "qrels.test.txt, line 4: not a query, a document and a grade" in problems
        assert "no number or no words" in problems

    def test_of_two_files_with_one_id_the_second_is_named(self, tmp_path: Path) -> None:
        files = {
            "qrels.txt": "1 0 a 1",
            "topics.tsv": "1\tq",
            "corpus/a.md": "One.",
            "corpus/a.txt": "Two.",
        }
        found = read_set(folder(tmp_path, files))
        assert [(one.id, one.text) for one in found.documents] == [("a", "One.")]
        assert found.judgements.problems == ("corpus/a.txt: its id a is that of a.md; it is left out",)

    def test_documents_as_files(self, tmp_path: Path) -> None:
        files = {"qrels.txt": "1 0 FR-1 1", "topics.tsv": "1\tq", "corpus/FR-1.txt": "The text."}
        found = read_set(folder(tmp_path, files))
        (query,) = found.judgements.queries
        assert query.evidence == (Evidence("FR-1", 0, 9),)

    def test_without_documents(self, tmp_path: Path) -> None:
        with pytest.raises(EvaluationError, match="the set has no documents"):
            read_set(folder(tmp_path, {"qrels.txt": "1 0 a 1", "topics.txt": "1\tq"}))


class TestNothingIsLostWithoutAWord:
    JUDGED: Mapping[str, Mapping[str, str]] = {
        "TREC": {"topics.txt": "1\tnew?", "qrels.txt": "1 0 {} 1"},
        "BEIR": {"queries.jsonl": '{{"_id": "1", "text": "new?"}}', "qrels/test.tsv": "1\t{}\t1"},
    }

    def files(self, form: str, document: str, **further: str) -> dict[str, str]:
        return {name: text.format(document) for name, text in self.JUDGED[form].items()} | further

    @pytest.mark.parametrize("form", JUDGED)
    def test_files_beside_a_set_are_named(self, form: str, tmp_path: Path) -> None:
        beside = {"notes.md": "of mine", "more/b.txt": "text", "README": "about"}
        corpus = {"corpus.jsonl": '{"_id": "valves", "text": "Valves."}'}
        files = {**self.files(form, "valves"), **corpus, **beside}
        found = read_set(folder(tmp_path, files))
        assert [one.id for one in found.documents] == ["valves"]
        assert found.judgements.problems == (
            f"files of which {form} reads nothing are left out: more/b.txt, notes.md",
        )
        judged = read({**self.files(form, "d1"), **corpus}).judgements
        assert judged.problems == (
            f"files of which {form} reads nothing are left out, as the documents are those of the "
            "collection: corpus.jsonl",
        )

    @pytest.mark.parametrize(
        ("form", "kept"),
        [
            ("chunking", {"corpora/v.md": VALVES}),
            ("legalbench", {"corpus/v.txt": VALVES}),
            ("cookbook", {}),
            ("csv", {"v.md": VALVES}),
            ("jsonl", {"v.md": VALVES}),
        ],
    )
    def test_a_set_of_any_form_names_what_is_beside_it_and_nothing_else(
        self, form: str, kept: dict[str, str], tmp_path: Path
    ) -> None:
        documents = ListedDocuments([document(VALVES, "v", "v.md")])
        judged = Judgements((GoldenQuery("1", "new?", (Evidence("v", 26, 42),)),))
        files = {**FORMS[form].write(judged, documents), **kept}
        assert read_set(folder(tmp_path, files)).judgements.problems == ()
        (tmp_path / "odd.md").write_bytes(b"")  # where all files are documents, it is none
        (said,) = read_set(tmp_path).judgements.problems
        assert "odd.md" in said

    def test_very_many_are_counted(self) -> None:
        files = {**self.files("TREC", "d1"), **{f"n{at:03}.md": "x" for at in range(60)}}
        (said,) = read(files).judgements.problems
        assert said.endswith("n048.md, n049.md and 10 more")

    @pytest.mark.parametrize("form", JUDGED)
    def test_an_id_without_ending_is_the_one_document_of_that_file_name(self, form: str) -> None:
        found = read(self.files(form, "valves"))
        (query,) = found.judgements.queries
        assert query.evidence == (Evidence("d1", 0, len(VALVES)),)
        assert found.judgements.problems == (
            "documents found by their file names without the ending: valves as valves.txt",
        )

    @pytest.mark.parametrize("form", JUDGED)
    def test_a_whole_name_goes_before_and_two_of_one_name_are_a_problem(self, form: str) -> None:
        among = [document("One.", "a", "rental.md"), document("Two.", "b", "rental.txt")]
        data = {name: text.encode() for name, text in self.files(form, "rental").items()}
        judged = read_files(data, ListedDocuments(among)).judgements
        (query,) = judged.queries
        reason = "2 documents are called rental (rental.md, rental.txt); give the id of one"
        assert [one.reason for one in query.unlocated] == [reason]
        assert reason in judged.problems[0]
        assert len(judged.problems) == 1
        among.append(document("Three.", "c", "rental"))
        judged = read_files(data, ListedDocuments(among)).judgements
        assert judged.queries[0].evidence == (Evidence("c", 0, 6),)
        assert judged.problems == ()

    def test_a_quote_decides_between_two_of_one_name(self) -> None:
        among = [document("One.", "a", "rental.md"), document("Two.", "b", "rental.txt")]
        line = '{"query": "q", "document": "rental", "quote": "Two."}'
        (query,) = read_files({"a.jsonl": line.encode()}, ListedDocuments(among)).judgements.queries
        assert query.evidence == (Evidence("b", 0, 4),)


class TestSpanForms:
    def test_legalbench_names_what_does_not_match(self) -> None:
        snippets = [
            {"file_path": "contracts/valves.txt", "span": [26, 42], "answer": "The pump is new."},
            {"file_path": "../../etc/passwd", "span": [0, 4], "answer": "root"},
            {"file_path": "valves.txt", "span": [0, 3], "answer": "The pump"},
            {"file_path": "valves.txt", "span": [-1, 3]},
            {"file_path": "valves.txt", "span": "all"},
            7,
        ]
        tests = [{"query": "q", "snippets": snippets}, {"snippets": []}, "test"]
        found = read({"bench.json": json.dumps({"tests": tests})})
        (query,) = found.judgements.queries
        # Where its span is off, a quote that stands there once is looked for.
        assert query.evidence == (Evidence("d1", 26, 42), Evidence("d1", 26, 34))
        assert [one.document for one in query.unlocated] == [
            "../../etc/passwd",
            "valves.txt",
            "valves.txt",
            "None",
        ]
        assert len(found.judgements.problems) == 6

    def test_no_path_leads_out_of_the_folder(self, tmp_path: Path) -> None:
        (tmp_path / "secret.txt").write_text("secret")
        tests = [{"query": "q", "snippets": [{"file_path": "../secret.txt", "span": [0, 6]}]}]
        files = {"set/b.json": json.dumps({"tests": tests}), "set/corpus/a.txt": "Text."}
        folder(tmp_path, files)
        found = read_set(tmp_path / "set")
        assert [one.text for one in found.documents] == ["Text."]
        assert len(found.judgements.queries[0].unlocated) == 1

    def test_chunking_evaluation_against_a_collection(self) -> None:
        references = [{"content": "The pump is new.", "start_index": 26, "end_index": 42}]
        rows = (
            "question,references,corpus_id\n"
            + f'new?,"{json.dumps(references)}",valves\n'.replace('\\"', '"').replace(
                json.dumps(references), json.dumps(references).replace('"', '""')
            )
            + 'x?,"[]",moon\ny?,broken,valves\n'
        )
        found = read({"questions_df.csv": rows})
        new, x, y = found.judgements.queries
        assert new.evidence == (Evidence("d1", 26, 42),)
        assert not x.answerable
        assert y.unlocated[0].reason == "the references are no JSON list"
        assert "corpora that are not there, and their questions: moon" in found.judgements.problems

    def test_cookbook_texts_against_a_collection(self) -> None:
        row = {
            "query": "q",
            "golden_chunks": [{"content": "  The valve leaks\n"}, {"content": "absent"}],
        }
        found = read({"evaluation_set.jsonl": json.dumps(row)})
        (query,) = found.judgements.queries
        assert query.evidence == (Evidence("d1", 0, 15, 1, (("d1", 43, 58),)),)
        assert query.unlocated[0].quote == "absent"


class TestHostileFiles:
    @pytest.mark.parametrize(
        ("files", "reason"),
        [
            ({"a.bin": b"\x00\xff\xfe"}, "no form of golden queries is recognised in a.bin"),
            (
                {"a.jsonl": b'{"query": "a"}\n' * 700 + bytes(range(256)) * 400},
                "a.jsonl: this is not a text file",
            ),
            ({"a.jsonl": "[" * 100_000 + '\n{"query": 1}'}, "no form of golden queries"),
            ({"bench.json": '{"tests": [' + "[" * 100_000}, "bench.json is no JSON"),
            ({"bench.json": '{"tests": 7}'}, "no golden query could be read"),
            ({"a.csv": 'query,document\n"q'}, "a.csv, after line 1: unexpected end of data"),
            ({"a.jsonl": '{"query": 7}'}, "no golden query could be read"),
            (
                {"queries.jsonl": '{"_id": 1}', "qrels.tsv": "1\td\t1e999\n1\td\tnan"},
                "no golden query could be read",
            ),
        ],
    )
    def test_is_named(self, files: dict[str, str | bytes], reason: str) -> None:
        with pytest.raises(EvaluationError, match=reason):
            read(files)

    def test_nothing_there(self, tmp_path: Path) -> None:
        with pytest.raises(EvaluationError, match="no file and no folder with files"):
            read_set(tmp_path)
        with pytest.raises(EvaluationError, match="no file and no folder"):
            read_set(tmp_path / "nowhere")

    def test_deep_and_odd_rows_are_named_one_by_one(self) -> None:
        lines = [
            '{"query": "fine", "document": "d1", "quote": "The pump is new."}',
            '{"query": ' + "[" * 100_000,
            '{"query": "q", "document": ["d1"], "quote": {"a": 1}, "start": 1e400, "grade": true}',
            '{"query": "q2", "evidence": 7}',
            '{"query": "q3", "document": "d1", "start": true, "end": 3}',
            '{"query": "q4", "document": "d1", "quote": "x", "grade": -3}',
        ]
        found = read({"a.jsonl": "\n".join(lines)})
        assert found.judgements.queries[0].evidence == (Evidence("d1", 26, 42),)
        assert [problem.split(",")[0].split(":")[0] for problem in found.judgements.problems] == [
            f"line {number}" for number in (2, 3, 4, 5, 6)
        ]
        assert all(len(query.unlocated) == 1 for query in found.judgements.queries[1:])

    @pytest.mark.parametrize(
        "topics",
        [
            "<top " * 50_000,
            "<top>" + "<num " * 100_000 + "</top>",
            f"<top number={' ' * 100_000}></top>",
        ],
    )
    def test_tags_that_never_end_take_no_time(self, topics: str) -> None:
        begin = time.process_time()
        with pytest.raises(EvaluationError, match="no golden query could be read"):
            read({"topics.txt": topics, "qrels.txt": "1 0 d1 1\n"}, "trec")
        assert time.process_time() - begin < 5

    def test_grades_that_no_database_holds(self) -> None:
        odd = {"query": "q", "document": "d1", "quote": "The pump is new.", "grade": 10**30}
        found = read({"a.jsonl": json.dumps(odd)})
        assert found.judgements.queries[0].unlocated[0].grade == 1
        assert "give 0 (not relevant) to 1,000" in found.judgements.problems[0]
        found = read({"queries.jsonl": '{"_id": 1, "text": "q"}', "qrels.tsv": "1\td1\t1e30"})
        assert found.judgements.queries[0].unlocated[0].grade == 1

    def test_long_names_are_not_repeated_whole(self) -> None:
        found = read({"a.jsonl": json.dumps({"query": "q", "document": "d" * 10**6, "quote": "x"})})
        assert len(found.judgements.problems[0]) < 300


def test_lines_of_old_spreadsheets() -> None:
    found = read({"a.csv": "query,document,quote\rnew?,d1,The pump is new.\r"})
    assert found.judgements.queries[0].evidence == (Evidence("d1", 26, 42),)


def test_many_documents_of_one_name_have_file_names_of_their_own() -> None:
    rows = ListedDocuments([document("x", f"r{n}", "rows.csv") for n in range(30_000)])
    begin = time.process_time()
    names = file_names(rows)
    assert time.process_time() - begin < 5
    assert [names[one] for one in ("r0", "r1", "r29999")] == ["rows", "rows-2", "rows-30000"]
    assert len(set(names.values())) == 30_000


class TestRealSets:
    @pytest.mark.parametrize(
        ("name", "form", "documents", "queries", "evidence", "unlocated"),
        [
            ("cookbook_codebase", "cookbook", 90, 248, 306, 0),
            ("cranfield", "BEIR", 1398, 225, 1611, 1),
            ("legalbench_contractnli", "LegalBench-RAG", 95, 977, 1389, 0),
            ("chunking_evaluation", "chunking evaluation", 5, 472, 790, 0),
        ],
    )
    def test_are_read_whole(
        self,
        name: str,
        form: str,
        documents: int,
        queries: int,
        evidence: int,
        unlocated: int,
        eval_data: Path,
    ) -> None:
        found = read_set(eval_data / "data" / name)
        asked = found.judgements.queries
        assert (found.form, len(found.documents), len(asked)) == (form, documents, queries)
        assert sum(len(query.evidence) for query in asked) == evidence
        assert sum(len(query.unlocated) for query in asked) == unlocated
        assert len({one.id for one in asked}) == queries

    def test_cookbook_copies_and_chunks(self, eval_data: Path) -> None:
        found = read_set(eval_data / "data" / "cookbook_codebase")
        assert sum(len(one.chunks) for one in found.documents) == 737
        texts = {one.id: one.text for one in found.documents}
        copied = [one for query in found.judgements.queries for one in query.evidence if one.copies]
        assert len(copied) == 9
        for one in copied:
            own = texts[one.document_id][one.start : one.end].strip()
            assert all(texts[name][start:end].strip() == own for name, start, end in one.copies)

    def test_cranfield_names_its_empty_documents(self, eval_data: Path) -> None:
        found = read_set(eval_data / "data" / "cranfield")
        assert found.judgements.problems[:2] == (
            "document 471 has no text; it is left out",
            "document 995 has no text; it is left out",
        )
        (lost,) = [one for query in found.judgements.queries for one in query.unlocated]
        assert (lost.document, lost.whole) == ("995", True)
