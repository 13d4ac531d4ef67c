"""Business rules: how they are read, when they hold, what they do, and how their conflicts end."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import date

import numpy as np
import pytest

from core.access import Viewer
from core.fields import ItemFields
from core.rules import Rules, RulesError
from core.rules.rule import matches
from core.trace import Ruled

TODAY = date(2026, 3, 15)
NAMES = ("guide.pdf", "prices.csv", "Notes.md", "archive.pdf", "faq.md")
IDS = tuple(f"d{number}" for number in range(len(NAMES)))
YEARS: Sequence[Mapping[str, float]] = [
    {"year": 2024.0},
    {"year": 2025.0},
    {},
    {"year": 2019.0},
    {"year": 2026.0},
]


def fields(n: int = len(NAMES)) -> ItemFields:
    return ItemFields(YEARS[:n], {}, NAMES[:n], [""] * n)


def ruled(
    toml: str, query: str = "seal kit", viewer: Viewer | None = None, today: date = TODAY
) -> Ruled:
    return Rules.from_toml(toml).ruled(query, viewer, today, fields(), IDS, NAMES)


def rule(name: str, action: str, about: str = 'documents = ["d0"]', when: str = "") -> str:
    return f'[[rule]]\nname = "{name}"\n{when}\n{about}\n{action}\n'


def problems(toml: str) -> list[tuple[int, str]]:
    with pytest.raises(RulesError) as caught:
        Rules.from_toml(toml)
    return list(caught.value.problems)


def test_every_fault_is_told_with_its_line_whatever_else_the_text_holds() -> None:
    text = '''# [[rule]] in a comment
[[rule]]
name = "a"  # boost = 5
query = """
[[rule]]
boost = 7 \\""" still text"""
items = "year >"
boost = 0
frm = 2026-01-01

[["rule"]] # second
name = "A"
documents = [
  "a.pdf", # [[rule]]
  'pin = 3',
]
from = 2026-05-01
"until" = 2026-01-01
pin = 2.5
hide = true

[[rule]]
on = "yes"
hide = false
rule.query = "x"
[rule.query]
x = 1
[other]
'''
    found = problems(text)
    assert [line for line, _ in found] == [7, 8, 9, 12, 18, 19, 20, 22, 22, 23, 24, 25, 26, 28]
    said = dict(found)
    assert "a value is missing" in said[7]
    assert said[8] == "boost is 0; give a weight above 0, at most 100"
    assert said[9] == "'frm' is nothing a rule has; did you mean from?"
    assert said[12] == "rule 1 is called 'A' too; give each its own name"
    assert said[18] == "until 2026-01-01 is before from 2026-05-01; the rule would never hold"
    assert said[19] == "pin is 2.5; give a rank, 1 to 1000"
    assert said[20].startswith("pin and hide in one rule")
    assert said[23] == "on is 'yes'; give true or false"
    assert said[24] == "hide is false; write true, or leave the line out"
    assert said[25].startswith("'rule' is nothing a rule has")
    assert said[26].startswith("query is {'x': 1}; give text")
    assert said[28] == "'other' stands outside a rule; write each rule under [[rule]]"


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ('[[rule]]\nname = "a\nhide = true', 2, 'the quote " opened on line 2 is not closed'),
        ('[[rule]]\r\nname = "a\r\nhide = true', 2, "opened on line 2"),
        ("[[rule]]\n# it's\nname = \"a", 3, "opened on line 3"),
        ("[[rule]]\nname = 'a\nhide = true\n", 2, "the quote ' opened on line 2 is not closed"),
        ('name = """a "b"\n\nhide = true\n', 1, 'the quote """ opened on line 1 is not closed'),
        ("name = it's\n", 1, "Invalid value"),
        ('a = 1 2\nb = "c', 1, "Expected newline"),
        ('a = "\\q"', 1, "Unescaped"),
        ("a = 1\n\na = 2", 3, "Cannot overwrite"),
        ("[[rule]]\nname = ", 2, "Invalid value"),
        ('# a\n[rule]\nname = "x"', 2, "rule is no list"),
        ("x = " + "[" * 100_000, 1, "too deep"),
        ("x = " + "1" * 5000, 1, "not TOML"),
        ("rule = [3]", 1, "3 is no rule"),
        ("#" * 2_000_001, 1, "at most 2,000,000"),
    ],
)
def test_what_is_no_list_of_rules_is_one_problem_with_its_line(
    text: str, line: int, reason: str
) -> None:
    ((found, said),) = problems(text)
    assert found == line
    assert reason in said


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("boost = true", "boost is true; give a weight"),
        ("boost = nan", "boost is nan"),
        ("boost = 100.5", "at most 100"),
        ("bury = -1", "bury is -1"),
        ("pin = 0", "pin is 0; give a rank"),
        ("pin = 1001", "1 to 1000"),
        ("only = 1", "only is 1; write true"),
        ('hide = true\nquery = "?!"', "holds no word"),
        ('hide = true\npattern = "**"', "holds for every query"),
        ('hide = true\npattern = ""', "pattern is blank"),
        (f'hide = true\npattern = "{"a" * 501}"', "has 501 characters; at most 500"),
        ('hide = true\ngroups = "sales"', "groups is 'sales'; give a list"),
        ("hide = true\ngroups = [1]", "groups is 1; give text"),
        ("hide = true\ngroups = []", "groups is []; give a list"),
        ('hide = true\ngroups = ["sales", "group: "]', "groups names no group"),
        ('hide = true\nfrom = "soon"', "from is 'soon'; give a day"),
        ("hide = true\nuntil = 2026-01-01T10:00:00", "give a day"),
        ("hide = true\nfrom = 12:00:00", "give a day"),
        ('hide = true\nitems = " ; "', "holds no condition"),
        ("hide = true\ndocuments = {}", "documents is {}; give a list"),
    ],
)
def test_a_value_out_of_its_limits_is_refused_by_name(key: str, reason: str) -> None:
    lines = key.splitlines()
    about = "" if "documents" in key else 'documents = ["d0"]'
    ((line, said),) = problems(rule("a", key, about))
    assert reason in said
    assert line == 4 + len(lines)


def test_a_rule_needs_a_name_items_and_an_action() -> None:
    assert [said.partition(";")[0] for _, said in problems("[[rule]]")] == [
        "no name",
        "no items",
        "no action",
    ]
    assert [
        said.partition(";")[0]
        for _, said in problems('[[rule]]\nname = " "\nhide = true\nitems = "a=1"')
    ] == ["name is blank"]


def test_rules_are_written_as_they_are_read() -> None:
    text = (
        rule(
            "one",
            "boost = 2.5",
            'items = "year >= 2024;type=pdf"',
            'query = "seal  kit"\ngroups = ["Sales"]',
        )
        + rule(
            "two",
            "hide = true",
            when='on = false\npattern = "INC-*"\nfrom = 2026-01-01\nuntil = "2026-12-31"',
        )
        + rule("three", "pin = 3", 'documents = ["b \\"quoted\\".md", "a"]')
    )
    rules = Rules.from_toml(text)
    again = Rules.from_toml(rules.to_toml())
    assert again == rules
    assert again.fingerprint == rules.fingerprint
    assert [one.value for one in rules.rules] == [2.5, 0.0, 3.0]
    assert rules.rules[0].groups == ("sales",)
    assert str(rules.rules[0].items) == "year >= 2024; type = pdf"
    assert rules.rules[1].last_day == date(2026, 12, 31)
    assert Rules.from_toml(Rules.empty.to_toml()) == Rules.empty


def test_the_fingerprint_names_what_acts() -> None:
    one, two = rule("a", "boost = 1"), rule("b", "hide = true", when="from = 2026-01-01")
    rests = rule("c", "pin = 1", when="on = false\nuntil = 2020-01-01")
    assert Rules.empty.fingerprint == Rules.from_toml(rests).fingerprint == ""
    assert Rules.from_toml(one + rests).fingerprint == Rules.from_toml(one).fingerprint != ""
    assert Rules.from_toml(one + two).fingerprint != Rules.from_toml(two + one).fingerprint
    assert [Rules.from_toml(text).dated for text in (one, two, one + rests)] == [False, True, False]


@pytest.mark.parametrize(
    ("pattern", "query", "holds"),
    [
        ("seal kit", "  Seal   KIT ", True),
        ("seal kit", "the seal kit", False),
        ("*seal*kit*", "which seals fit the kit?", True),
        ("how do i *", "How do I return it?", True),
        ("how do i *", "how do it", False),
        ("ab*ba", "aba", False),
        ("ab*ba", "abba", True),
        ("*a*a*", "a", False),
        ("STRASSE *", "straße 5", True),
        ("INC-2023-*", "ＩＮＣ-2023-Q4", True),
        ("a.c", "abc", False),
        ("[ab]*", "a", False),
    ],
)
def test_a_pattern_is_the_whole_query_with_stars_for_any_text(
    pattern: str, query: str, holds: bool
) -> None:
    assert matches(pattern, query) is holds


def test_no_pattern_takes_long() -> None:
    began = time.perf_counter()
    assert not matches("*a" * 250, "a" * 249 + "b" * 100_000)
    assert not matches("*" + "a" * 400 + "b*", "a" * 100_000)
    assert time.perf_counter() - began < 30  # backtracking would take years


@pytest.mark.parametrize(
    ("words", "query", "holds"),
    [
        ("seal kit", "a KIT with Seals and a seal", True),
        ("seal kit", "seals and kits", False),
        ("INC-2023-Q4-011", "what about inc-2023-q4-011?", True),
        ("INC-2023-Q4-011", "what about inc-2023-q4-012?", False),
        ("C++", "c++ or rust", True),
        ("C++", "c or rust", False),
        ("密封", "更换密封圈", True),
    ],
)
def test_query_words_are_all_held_whole_and_whatever_their_capitals(
    words: str, query: str, holds: bool
) -> None:
    (one,) = Rules.from_toml(rule("a", "hide = true", when=f'query = "{words}"')).rules
    assert one.rests(query, None, TODAY) == ("" if holds else "the query lacks its words")


def test_a_rule_holds_on_its_days_for_its_groups() -> None:
    dated = rule("a", "hide = true", when="from = 2026-03-15\nuntil = 2026-03-16")
    days = [date(2026, 3, day) for day in (14, 15, 16, 17)]
    assert [bool(ruled(dated, today=day).hidden) for day in days] == [False, True, True, False]
    sales = rule("a", "hide = true", when='groups = ["Sales", "board"]')
    (written,) = Rules.from_toml(sales.replace('"Sales"', '"group:Sales", "SALES"')).rules
    assert written.groups == ("sales", "board")
    viewers = [None, Viewer("anna"), Viewer(groups=frozenset({"SALES"})), Viewer("sales")]
    assert [bool(ruled(sales, viewer=viewer).hidden) for viewer in viewers] == [
        False,
        False,
        True,
        False,
    ]
    assert ruled(rule("a", "hide = true", when="on = false")) == Ruled()


def test_items_are_told_by_field_id_and_file_name_and_both_narrow() -> None:
    assert dict(ruled(rule("a", "boost = 2", 'items = "year >= 2025"')).boosts) == {1: 2.0, 4: 2.0}
    assert dict(ruled(rule("a", "boost = 2", 'documents = ["NOTES.md", "d0"]')).boosts) == {
        2: 2.0,
        0: 2.0,
    }
    both = rule(
        "a", "boost = 2", 'documents = ["faq.md", "Notes.md", "archive.pdf"]\nitems = "year exists"'
    )
    assert dict(ruled(both).boosts) == {4: 2.0, 3: 2.0}


def test_boosts_and_buries_add_up_and_say_so() -> None:
    found = ruled(
        rule("up", "boost = 3", 'items = "year exists"')
        + rule("down", "bury = 0.5", 'documents = ["d0"]')
    )
    assert dict(found.boosts) == {0: 2.5, 1: 3.0, 3: 3.0, 4: 3.0}
    assert found.said[0] == ("rule up: boost 3", "rule down: bury 0.5")
    assert found.said[1] == ("rule up: boost 3",)
    assert found.fired == ("up", "down")
    assert found.notes == ("1 item both boosted and buried, by rules up, down: the weights add up",)


def test_hide_and_only_come_first_and_win() -> None:
    found = ruled(
        rule("top", "pin = 1", 'documents = ["d0", "d3"]')
        + rule("push", "boost = 2", 'documents = ["d3"]')
        + rule("old", "hide = true", 'items = "year < 2020"')
        + rule("dated", "only = true", 'items = "year exists"')
    )
    assert dict(found.hidden) == {3: "rule old hides it", 2: "rule dated keeps only others"}
    assert dict(found.pins) == {0: 1}
    assert not found.boosts
    assert found.said[3] == (
        "rule old hides it",
        "rule top: pin at 1, but the item is taken out",
        "rule push: boost 2, but the item is taken out",
    )
    assert found.notes == (
        "rule top has no effect on 1 item: rule old hides it",
        "rule push has no effect on 1 item: rule old hides it",
    )


def test_two_onlys_keep_what_both_keep_and_an_empty_rest_is_told() -> None:
    new, pdfs = (
        rule("new", "only = true", 'items = "year > 2024"'),
        rule("pdf", "only = true", 'items = "type = pdf"'),
    )
    found = ruled(new + pdfs)
    assert len(found.hidden) == 5
    # Any viewer reads it: it says no condition, which may name what is hidden from them.
    assert found.notes == ("no item is left: rule new keeps only others; rule pdf keeps only others",)
    assert ruled(new).hidden.keys() == {0, 2, 3}


def test_pins_take_the_rank_written_or_the_next_free_one_in_the_order_of_the_rules() -> None:
    found = ruled(
        rule("first", "pin = 1", 'documents = ["d4", "d3"]')
        + rule("second", "pin = 1", 'documents = ["d2"]')
        + rule("third", "pin = 2", 'documents = ["d1"]')
        + rule("again", "pin = 9", 'documents = ["d2"]')
    )
    assert dict(found.pins) == {4: 1, 1: 2, 2: 3, 3: 4}
    assert found.said[2] == (
        "rule second: pin at 1, put at 3: rule first has 1",
        "rule again: pin at 9, but rule second pins the item already",
    )
    assert found.said[3] == ("rule first: pin at 1",)
    assert set(found.notes) == set(found.said[2])


def test_a_rule_that_cannot_be_answered_does_nothing_and_names_nothing_hidden() -> None:
    found = ruled(
        rule("mine", "boost = 2", 'items = "secret = x"')
        + rule("gone", "hide = true", 'documents = ["layoffs.pdf", "d0"]')
        + rule("none", "boost = 1", 'items = "year = 1900"')
    )
    assert dict(found.hidden) == {0: "rule gone hides it"}
    assert found.notes == (
        "rule mine does nothing: the items here cannot answer its conditions",
        "rule gone: 1 of its 2 documents not here",
        "rule none holds, and is about no item here",
    )


@pytest.mark.parametrize("items", ["secret = x", "secret != x", "secret missing", "year >= soon"])
@pytest.mark.parametrize("viewer", [None, Viewer("anna")])
def test_an_only_that_cannot_be_answered_keeps_nothing(items: str, viewer: Viewer | None) -> None:
    found = ruled(rule("mine", "only = true", f'items = "{items}"'), viewer=viewer)
    assert dict(found.hidden) == dict.fromkeys(range(len(NAMES)), "rule mine keeps only others")
    assert found.fired == ("mine",)
    told = "rule mine keeps nothing: the items here cannot answer its conditions"
    empty = "no item is left: rule mine keeps only others"
    assert found.notes == ((told, empty) if viewer is None else (empty,))


def test_a_viewer_is_told_of_no_rule_that_touches_none_of_their_items() -> None:
    text = (
        rule("falcon pin", "pin = 1", 'documents = ["falcon.pdf"]')
        + rule("falcon field", "hide = true", 'items = "secret = x"')
        + rule("falcon year", "boost = 1", 'items = "year = 1900"')
        + rule("both", "boost = 2", 'documents = ["falcon.pdf", "d0"]')
        + rule("falcon only", "only = true", 'documents = ["falcon.pdf"]\npattern = "x"')
    )
    found = ruled(text, viewer=Viewer("anna"))
    assert (found.fired, found.notes) == (("both",), ())
    assert found.said == {0: ("rule both: boost 2",)}
    everything = ruled(text)
    assert {"falcon pin", "falcon year"} < set(everything.fired)
    assert len(everything.notes) == 4
    only = ruled(text, query="x", viewer=Viewer("anna"))
    assert only.fired == ("both", "falcon only")
    assert len(only.hidden) == len(NAMES)
    filtered = Rules.from_toml(text).ruled(
        "q", Viewer("anna"), TODAY, fields(), IDS, NAMES, np.arange(len(NAMES)) > 0
    )
    assert filtered == Ruled()


def test_what_rules_are_about_is_told_anew_for_other_items() -> None:
    rules = Rules.from_toml(rule("a", "boost = 1", 'items = "year exists"'))
    whole, part = fields(), fields(2)
    for _ in range(2):
        assert rules.ruled("q", None, TODAY, whole, IDS, NAMES).boosts.keys() == {0, 1, 3, 4}
        assert rules.ruled("q", None, TODAY, part, IDS[:2], NAMES[:2]).boosts.keys() == {0, 1}


def test_many_rules_over_many_items_are_settled() -> None:
    n = 20_000
    many = ItemFields([{"year": float(2000 + at % 25)} for at in range(n)], {}, ["a.md"] * n, [""] * n)
    ids = [str(at) for at in range(n)]
    rules = Rules.from_toml(
        "".join(rule(f"r{at}", f"boost = {at + 1}", f'items = "year = {2000 + at}"') for at in range(25))
        + rule("pins", "pin = 1", 'items = "year exists"')
    )
    found = rules.ruled("q", None, TODAY, many, ids, ["a.md"] * n)
    assert found.pins[n - 1] == n
