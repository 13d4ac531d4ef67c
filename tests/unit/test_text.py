"""What text becomes: terms that a person would type to find it again."""

from __future__ import annotations

import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import SettingsError
from core.stopwords import NEGATIONS, STOP_WORDS
from core.text import LANGUAGES, Analyzer

IDENTIFIERS = Analyzer()
WORDS = Analyzer(tokens="words")


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("INC-2023-Q4-011:", ["inc-2023-q4-011", "inc", "2023", "q4", "011"]),
        ("C++ C# .NET R", ["c++", "c#", ".net", "net", "r"]),
        ("C++17", ["c++", "17"]),
        ("i++ count++", ["i++", "count++", "count"]),
        ("3.5-inch", ["3.5-inch", "3.5", "inch"]),
        ("ERR_MEM_0x8007000E", ["err_mem_0x8007000e", "err", "mem", "0x8007000e"]),
        ("snake_case", ["snake_case", "snake", "case"]),
        ("camelCase", ["camelcas", "camel", "case"]),
        ("parseHTTPResponse", ["parsehttprespons", "pars", "http", "respons"]),
        ("v2.3.1", ["v2.3.1", "v", "2.3.1"]),
        ("BX204 10mm", ["bx204", "bx", "204", "10mm", "10", "mm"]),
        ("A4 5G M8x40 T-800", ["a4", "5g", "m8x40", "t-800", "t", "800"]),
        ("user@host", ["user@host", "user", "host"]),
        ("a.b@c.org", ["a.b@c.org", "a.b", "b", "c.org", "c", "org"]),
        ("src/core/text.py", ["src/core/text.py", "src", "core", "text.py", "text", "py"]),
        ("10.20.30.40", ["10.20.30.40"]),
        ("__init__ _emphasis_ ____", ["init", "emphasi"]),
        ("PDFs IDs", ["pdfs", "id"]),
        ("--verbose -- - .", ["verbos"]),
        ("what's don’t users'", ["what", "don", "user"]),
        ("größeWert", ["grössewert", "grösse", "wert"]),
        ("İstanbul", ["istanbul"]),
        ("ＩＮＣ－２０２３", ["inc-2023", "inc", "2023"]),
        ("INC\u20112023", ["inc-2023", "inc", "2023"]),
        ("ﬁlter o\ufb03ce", ["filter", "offic"]),
    ],
)
def test_identifiers_count_whole_and_by_their_parts(text: str, terms: list[str]) -> None:
    assert IDENTIFIERS.tokens_of(text) == terms


@pytest.mark.parametrize("name", ["get_user_id", "getUserId", "GetUserID", "get-user-id"])
def test_words_reach_the_identifier_that_is_made_of_them(name: str) -> None:
    assert set(IDENTIFIERS.tokens_of("user id")) <= set(IDENTIFIERS.tokens_of(name))


def test_neighbouring_incident_numbers_differ_in_their_whole() -> None:
    one, other = (set(IDENTIFIERS.tokens_of(f"INC-2023-Q4-{n}")) for n in ("011", "012"))
    assert one - other == {"inc-2023-q4-011", "011"}


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("轴承每", ["轴承", "承每"]),
        ("水", ["水"]),
        ("軸受は BX-204です", ["軸受", "受は", "bx-204", "bx", "204", "です"]),
        ("ポンプ", ["ポン", "ンプ"]),
        ("ﾎﾟﾝﾌﾟ", ["ポン", "ンプ"]),
        ("ลูก", ["ลู", "ูก"]),
        ("펌프", ["펌프"]),
        ("베어링은", ["베어링은", "베어", "어링", "링은"]),
        ("हिन्दी", ["हिन्दी"]),
        ("صَمّام", ["صمام"]),
    ],
)
def test_scripts_without_blanks_become_pairs_of_characters(text: str, terms: list[str]) -> None:
    assert IDENTIFIERS.tokens_of(text) == terms


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("résumé Zürich", "re\u0301sume\u0301 Zu\u0308rich"),
        ("maintenance plan", "mainte\u00adnance\u00a0plan"),
        ("joiner", "join\u2060er"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("Straße", "STRASSE"),
        ("베어링", "\u1107\u1166\u110b\u1165\u1105\u1175\u11bc"),
    ],
)
def test_ways_of_writing_the_same_give_the_same_terms(one: str, other: str) -> None:
    assert IDENTIFIERS.tokens_of(one) == IDENTIFIERS.tokens_of(other) != []


@pytest.mark.parametrize("text", ["", " \t\n", "the of and is", "👩🏽‍🔧 ☂️ 🇫🇮", "?! …", "\ud800", "\x00"])
def test_what_holds_no_term_gives_none(text: str) -> None:
    assert IDENTIFIERS.tokens_of(text) == []


def test_negations_count_among_identifiers_only() -> None:
    assert IDENTIFIERS.tokens_of("do not open, no exit") == ["do", "not", "open", "no", "exit"]
    assert WORDS.tokens_of("do not open, no exit") == ["do", "open", "exit"]
    assert {"no", "not"} <= STOP_WORDS["english"] & NEGATIONS


def test_plain_words_are_those_of_the_published_figures() -> None:
    import bm25s
    import Stemmer

    text = "The INC-2023-Q4-011 report: C++ isn't R, naïve Façades; 水泵的轴承 running_fast a b2 İx."
    for stem in (False, True):
        stemmer = Stemmer.Stemmer("english") if stem else None
        theirs = bm25s.tokenize([text], stemmer=stemmer, return_ids=False, show_progress=False)[0]
        assert Analyzer(tokens="words", stem=stem).tokens_of(text) == theirs


def test_the_english_stop_words_are_those_of_bm25s() -> None:
    import bm25s.stopwords

    assert STOP_WORDS["english"] == set(bm25s.stopwords.STOPWORDS_EN)


def test_language_stemmer_and_stop_words_can_be_chosen() -> None:
    german = "die Prüfungen der Pumpen"
    assert Analyzer("german").tokens_of(german) == ["prufung", "pump"]
    assert Analyzer("german", stem=False).tokens_of(german) == ["prüfungen", "pumpen"]
    assert Analyzer("german", stem=False, stop_words=False).tokens_of("die Pumpen") == ["die", "pumpen"]
    assert Analyzer("none").tokens_of("The Pumps") == ["the", "pumps"]
    assert Analyzer("french").tokens_of("l'eau d’été") == ["eau", "été"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_gives_terms(language: str) -> None:
    for tokens in ("identifiers", "words"):
        assert Analyzer(language, tokens=tokens).tokens_of("INC-2023 pumpa 水泵") != []


def test_notes_say_what_a_choice_leaves_out() -> None:
    assert IDENTIFIERS.notes() == ()
    assert "no stop-word list for hungarian" in Analyzer("hungarian").notes()[0]
    assert Analyzer("hungarian", stop_words=False).notes() == ()
    assert "neither stemmed nor dropped" in Analyzer("none").notes()[0]
    assert "C++" in WORDS.notes()[0]


def test_unknown_choices_are_refused_by_name() -> None:
    with pytest.raises(SettingsError, match="klingon"):
        Analyzer("klingon")
    with pytest.raises(SettingsError, match="letters"):
        Analyzer(tokens="letters")  # type: ignore[arg-type]


def test_fingerprints_tell_analyzers_apart() -> None:
    made = [
        Analyzer(language, stem, stop, tokens)
        for language in ("english", "german")
        for stem in (True, False)
        for stop in (True, False)
        for tokens in ("identifiers", "words")
    ]
    assert len({analyzer.fingerprint for analyzer in made}) == len(made) == 16
    assert Analyzer().fingerprint == Analyzer("english").fingerprint


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("see getUserId.", ["see", "getUserId", "get", "User", "Id"]),
        ("(the) mainte\u00adnance plan", ["mainte\u00adnance", "plan"]),
        ("Zu\u0308rich, re\u0301sume\u0301", ["Zu\u0308rich", "re\u0301sume\u0301"]),
        ("x ㈱ y", ["x", "㈱", "y"]),
        ("ﾎﾟﾝﾌﾟ!", ["ﾎﾟﾝ", "ﾝﾌﾟ"]),
        ("ＩＮＣ－２０", ["ＩＮＣ－２０", "ＩＮＣ", "２０"]),
    ],
)
def test_spans_point_into_the_text_as_written(text: str, spans: list[str]) -> None:
    assert [text[start:end] for _, start, end in IDENTIFIERS.spans_of(text)] == spans


def test_spans_of_plain_words_survive_letters_that_grow() -> None:
    text = "İİİ İstanbul pump"  # a small İ is an i and a dot, which is no letter
    assert [text[start:end] for _, start, end in WORDS.spans_of(text)] == ["stanbul", "pump"]


HARD = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from(list("aB9-_.@/'+# \u00ad\u200b\u0301\u0308éÉﬁ㈱ガｶﾞ水ำํ은")),
        st.sampled_from(list("\u1100\u1161\u11a8ᄀㅏＡ－İßΣ\u2011")),
    ),
    max_size=60,
)


@settings(max_examples=300, deadline=None)
@given(HARD)
def test_spans_and_tokens_are_the_same_terms(text: str) -> None:
    for analyzer in (IDENTIFIERS, WORDS):
        spans = analyzer.spans_of(text)
        assert [term for term, _, _ in spans] == analyzer.tokens_of(text)
        assert all(0 <= start < end <= len(text) for _, start, end in spans)
        assert all(term for term, _, _ in spans)


@settings(max_examples=200, deadline=None)
@given(HARD)
def test_blanks_around_a_text_change_nothing(text: str) -> None:
    assert IDENTIFIERS.tokens_of(f" {text} ") == IDENTIFIERS.tokens_of(text)


@pytest.mark.parametrize(
    "text",
    [
        *(piece * 50_000 for piece in ("a1", "a-", "aB", "..", "__", "++", "é-", "'s", "a'", "é\u0301")),
        *(piece * 50_000 for piece in ("\u1161\u1161", "轴承", "न्दी")),
        "NEEDLE upper roster follows signal. " * 29_000,
        "élève à l’école mangé " * 47_000,
    ],
    ids=lambda text: text[:8],
)
def test_time_is_bounded_on_texts_without_breaks(text: str) -> None:
    started = time.process_time()
    IDENTIFIERS.tokens_of(text)
    assert time.process_time() - started < 1.0


def test_no_term_grows_with_the_text() -> None:
    for text in ("x" * 10_000, "é" * 10_000, "a-b" * 10_000, "가" * 10_000):
        assert max(map(len, IDENTIFIERS.tokens_of(text))) <= 32 * 129


def test_threads_get_the_terms_that_one_thread_gets() -> None:
    texts = [f"running{n} pumps leaking seals{n} INC-{n}" for n in range(500)]
    expected = [Analyzer("english", stop_words=False).tokens_of(text) for text in texts]
    shared = Analyzer("english", stop_words=False)
    results: list[list[list[str]]] = []
    threads = [
        threading.Thread(target=lambda: results.append([shared.tokens_of(text) for text in texts]))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 8
