"""What people upload as golden queries: another form than chosen, files missing, other encodings, no ids."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.documents import ListedDocuments
from core.evaluation import FORMS, EvaluationError, Evidence, ImportedSet, JudgementStore, read_files
from core.evaluation.forms.files import Files
from core.types import Document

TEXT = "The valve leaks at night. Größe: 5 µm. The pump is new."
PUMP = (TEXT.index("The pump"), len(TEXT))
DOCUMENTS = ListedDocuments(
    [Document("d1", "valves.txt", "", TEXT), Document("d2", "seals.md", "", "Seals are black.")]
)
LINE = '{"query": "new?", "document": "d1", "quote": "The pump is new."}'


def read(files: Mapping[str, str | bytes], form: str = "") -> ImportedSet:
    data = {name: text if isinstance(text, bytes) else text.encode() for name, text in files.items()}
    return read_files(data, DOCUMENTS, form)


def spans(found: ImportedSet) -> list[tuple[int, int]]:
    return [(one.start, one.end) for query in found.judgements.queries for one in query.evidence]


class TestAnotherFormThanChosen:
    @pytest.mark.parametrize(
        ("form", "files", "needed"),
        [
            ("chunking", {"a.jsonl": LINE}, "a table with the columns question, references, corpus_id"),
            ("chunking", {"a.csv": "question,references\nq,[]"}, "question, references, corpus_id"),
            ("legalbench", {"a.json": "[1]"}, "a JSON file that begins with its tests"),
            ("cookbook", {"a.jsonl": LINE}, "evaluation_set.jsonl with golden_chunks"),
            ("beir", {"test.tsv": "query-id\tcorpus-id\tscore\n1\td1\t1"}, "queries.jsonl"),
            ("beir", {"queries.jsonl": '{"_id": "1", "text": "q"}'}, "query-id, corpus-id, score"),
            ("trec", {"topics.txt": "1\tq"}, "qrels of four columns"),
            ("trec", {"qrels.txt": "1 0 d1 1"}, "topics"),
            ("jsonl", {"a.csv": "query\nq"}, "a file .jsonl with lines that have a query"),
            ("csv", {"a.jsonl": LINE}, "a table with a column query"),
        ],
    )
    def test_the_file_that_is_missing_and_those_given_are_named(
        self, form: str, files: dict[str, str], needed: str
    ) -> None:
        with pytest.raises(EvaluationError) as caught:
            read(files, form)
        assert needed in str(caught.value)
        assert f"among {', '.join(files)}; add it, or choose" in str(caught.value)

    NAMES = (
        "queries.jsonl", "corpus.jsonl", "evaluation_set.jsonl", "codebase_chunks.json", "a.jsonl", "a.json",
        "questions_df.csv", "a.csv", "a.tsv", "test.tsv", "qrels/test.tsv", "qrels.txt", "topics.txt",
        "queries.tsv", "corpora/v.md", "corpus/v.txt", "README",
    )  # fmt: skip
    PIECES = (
        "", "\n", "\ufeff", " ", "\r", "\u2028", "\0", ",", ";", "\t", '"', "[", "]", "{", "}", "1", "q", "d1", "#",
        "sep=;\n", "query,document,quote\n", "question,references,corpus_id\n", "question;references;corpus_id",
        "query-id\tcorpus-id\tscore\n", "1\td1\t1\n", "1 0 d1 1\n", "1\tq\n", '{"tests": [{"query": "q"}]}',
        '{"tests": 1}', '{"_id": "1", "text": "q"}\n', '{"_id": [], "text": 1}\n', '{"query": "q"}\n', LINE + "\n",
        '{"query": "q", "golden_chunks": [{"content": "q"}, 1]}\n', '{"golden_chunks": 7}\n', "[[], 1]",
        "<top><num>1<title>q</top>", '[{"doc_id": "a", "content": "b", "chunks": [1]}]', "q,[],d1\n", "1e999",
    )  # fmt: skip

    @given(
        st.sampled_from(["", *FORMS]),
        st.dictionaries(
            st.sampled_from(NAMES),
            st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=5).map("".join)
            | st.binary(max_size=20),
            min_size=1,
            max_size=3,
        ),
        st.booleans(),
    )
    def test_any_files_are_read_or_refused_with_a_reason(
        self, form: str, files: dict[str, str | bytes], own: bool
    ) -> None:
        data = {
            name: text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
            for name, text in files.items()
        }
        with suppress(EvaluationError):
            if own or not form:
                read_files(data, DOCUMENTS, form)
            else:
                FORMS[form].read(Files.uploaded(data), None)


class TestJsonl:
    @pytest.mark.parametrize(
        "text",
        [
            f"# ours\n\n{LINE}\n",
            f"\ufeff\n\n  {LINE}",
            LINE.replace('"query":', '"query"\t:'),
            f'{{"note": "{"long " * 3000}", ' + LINE[1:],
            f"[{LINE}]",
            "[\n" + json.dumps(json.loads(LINE), indent=1) + "\n]",
        ],
    )
    @pytest.mark.parametrize("name", ["a.jsonl", "a.txt", "a.json"])
    def test_chosen_is_read_whatever_its_first_line(self, text: str, name: str) -> None:
        found = read({name: text}, "jsonl")
        assert spans(found) == [PUMP]
        comment = ("line 1: broken JSON; the line is left out",) if text.startswith("#") else ()
        assert found.judgements.problems == comment

    def test_a_comment_first_is_recognised(self) -> None:
        assert read({"a.jsonl": f"// ours\n\n{LINE}\n"}).form == "JSONL"

    def test_what_cannot_be_read_is_named(self) -> None:
        found = read({"a.txt": f'[{LINE}, 7, {{"query": ""}}]'}, "jsonl")
        assert found.judgements.problems == (
            'entry 2: no object with a text "query"; the line is left out',
            'entry 3: no object with a text "query"; the line is left out',
        )
        found = read({"a.txt": f"[1]\n{LINE}\n{{"}, "jsonl")
        assert spans(found) == [PUMP]
        assert [one.partition(":")[0] for one in found.judgements.problems] == ["line 1", "line 3"]


class TestBeirAsPlainFiles:
    QUERIES = '{"_id": "1", "text": "new?"}\n{"_id": "2", "text": "old?"}'

    def test_qrels_are_recognised_by_their_header(self) -> None:
        files = {
            "queries.jsonl": self.QUERIES,
            "train.tsv": "query-id\tcorpus-id\tscore\n2\td2\t1\n",
            "test.tsv": "Query-ID\tcorpus-id\tscore\r\n1\td1\t1\r\n",
        }
        found = read(files)
        assert found.form == "BEIR"
        (query,) = found.judgements.queries
        assert query.evidence == (Evidence("d1", 0, len(TEXT)),)
        assert found.judgements.problems == ("train.tsv is left out: test.tsv is read",)

    def test_another_table_is_none(self) -> None:
        with pytest.raises(EvaluationError, match="no form of golden queries"):
            read({"queries.jsonl": self.QUERIES, "test.tsv": "1\td1\t1\n"})


class TestEncodings:
    TABLE = "query;document;quote\r\nGröße?;d1;Größe: 5 µm.\r\n"
    SPAN = (TEXT.index("Größe"), TEXT.index(" The pump"))

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
    @pytest.mark.parametrize("form", ["", "csv"])
    def test_unicode_is_read_without_a_word(self, encoding: str, form: str) -> None:
        found = read({"a.csv": self.TABLE.encode(encoding)}, form)
        assert [query.text for query in found.judgements.queries] == ["Größe?"]
        assert spans(found) == [self.SPAN]
        assert found.judgements.problems == ()

    @pytest.mark.parametrize("encoding", ["cp1252", "utf-16-le", "utf-16-be"])
    def test_without_a_mark_it_is_guessed_and_said(self, encoding: str) -> None:
        line = '{"query": "Größe?", "document": "d1", "quote": "Größe: 5 µm."}\n'
        for name, text in {"a.csv": self.TABLE, "a.jsonl": line}.items():
            found = read({name: text.encode(encoding)})
            assert [query.text for query in found.judgements.queries] == ["Größe?"]
            assert spans(found) == [self.SPAN]
            assert found.judgements.problems == (
                f"{name} is not valid UTF-8: read as {encoding}; save it as UTF-8 if letters look wrong",
            )

    def test_a_letter_may_lie_across_the_end_of_what_tells_the_form(self) -> None:
        rows = "query,document,quote\n" + "".join(f"{'ö' * 60} {n},d1,Größe\n" for n in range(200))
        for shift in ("", " "):
            found = read({"a.csv": rows.replace("quote", f"quote{shift}", 1)})
            assert len(found.judgements.queries) == 200
            assert found.judgements.problems == ()

    @pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf", b"\r\n \n"])
    @pytest.mark.parametrize("form", ["", "csv", "jsonl"])
    def test_an_empty_file_is_said_to_be_empty(self, data: bytes, form: str) -> None:
        with pytest.raises(EvaluationError, match=r"a\.csv: no text in it; choose the file"):
            read({"a.csv": data}, form)
        with pytest.raises(EvaluationError, match=r"a\.csv, notes\.md \(a\.csv: empty\)"):
            read({"a.csv": data, "notes.md": "of mine"}, form or "csv")

    @pytest.mark.parametrize("first", ["sep=;\r\n", '"sep=;"\n', "\ufeffSEP=;\r"])
    def test_the_delimiter_that_a_spreadsheet_tells(self, first: str) -> None:
        found = read({"a.csv": first + self.TABLE + "x;d1;absent\r\n"})
        assert spans(found) == [self.SPAN]
        assert found.judgements.problems[0].startswith("line 4, “x”: “absent” is not in d1")


class TestQueriesWithoutIds:
    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("a.jsonl", '{{"query": "{0}", "document": "d1", "quote": "The pump is new."}}'),
            ("a.csv", "query,document,quote\n{0},d1,The pump is new.\n"),
            ("b.json", '{{"tests": [{{"query": "{0}", "snippets": []}}]}}'),
            ("questions_df.csv", "question,references,corpus_id\n{0},[],d1\n"),
            ("evaluation_set.jsonl", '{{"query": "{0}", "golden_chunks": []}}'),
        ],
    )
    def test_another_file_takes_none_of_their_ids(self, name: str, text: str, tmp_path: Path) -> None:
        store = JudgementStore(tmp_path)
        for query in ("new?", "old?", "new?"):
            found = read({name: text.format(query)})
            added = store.add(found.judgements, DOCUMENTS, name)
            assert added.problems == ()
        assert [query.text for query in store.queries(DOCUMENTS).queries] == ["new?", "old?"]

    def test_the_same_words_are_one_query_but_where_a_form_has_each_apart(self) -> None:
        assert len(read({"a.jsonl": f"{LINE}\n{LINE}"}).judgements.queries) == 1
        row = '{"query": "q", "golden_chunks": []}\n'
        first, *rest = [query.id for query in read({"a.jsonl": row * 3}).judgements.queries]
        assert rest == [f"{first}-2", f"{first}-3"]


def test_one_lost_judgement_is_told_in_the_singular() -> None:
    line = '{"_id": "1", "text": "q"}'
    for qrels, told in {
        "1\tx\t1": "1 judgement of a whole document cannot be located, and counts as not found: ",
        "1\tx\t1\n1\ty\t1": "2 judgements of whole documents cannot be located, and count as not found: ",
    }.items():
        found = read({"queries.jsonl": line, "qrels.tsv": qrels})
        assert found.judgements.problems[0].startswith(told)
