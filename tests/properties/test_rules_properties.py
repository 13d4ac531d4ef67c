"""What must hold for any rules: they come back as written, faults stand at their lines, conflicts end in one way."""

from __future__ import annotations

import re
from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.filters import Filter
from core.rules import Rule, Rules, RulesError
from core.rules.rule import ACTIONS, even, matches
from core.rules.settling import settled

QUICK = settings(max_examples=150, deadline=None)
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=8)
DAYS = st.one_of(st.none(), st.dates(date(2020, 1, 1), date(2030, 1, 1)))


@st.composite
def a_rule(draw: st.DrawFn, name: str) -> Rule:
    action = draw(st.sampled_from(ACTIONS))
    weight = draw(st.floats(0.001, 100)) if action in ("boost", "bury") else 0.0
    first, last = sorted([draw(DAYS) or date(2025, 1, 1) for _ in range(2)])
    return Rule(
        name=name,
        action=action,
        value=float(draw(st.integers(1, 6))) if action == "pin" else weight,
        on=draw(st.booleans()),
        query=draw(st.sampled_from(["", "seal kit"])),
        pattern=draw(WORDS.filter(lambda text: text.strip("*")).map(lambda text: f"{text} *")),
        groups=draw(st.sampled_from([(), ("sales",), ("a b", "c")])),
        first_day=draw(st.sampled_from([None, first])),
        last_day=draw(st.sampled_from([None, last])),
        items=Filter.parse(draw(st.sampled_from(["year >= 2020", 'name = "a;b"; year exists']))),
        documents=tuple(dict.fromkeys(draw(st.lists(WORDS, max_size=3)))),
    )


@st.composite
def some_rules(draw: st.DrawFn) -> Rules:
    return Rules(tuple(draw(a_rule(f"rule {n}")) for n in range(draw(st.integers(0, 4)))))


@QUICK
@given(some_rules())
def test_rules_come_back_as_they_were_written(rules: Rules) -> None:
    assert Rules.from_toml(rules.to_toml()) == rules


STRINGS = st.sampled_from(
    [
        '"a"',
        "'b [[rule]]'",
        '"""\n[[rule]]\nfault = 1\n"""',
        "'''\n# \"\n'''",
        '"\\"#"',
        '"""a\\""""""',
        '""""""',
        "''",
    ]
)
FILLERS = st.sampled_from(["", '# [[rule]] \' """ [', "   # x = '''", "\t"])


@QUICK
@given(st.data())
def test_a_fault_stands_at_its_line_whatever_surrounds_it(data: st.DataObject) -> None:
    lines, faults = [], []
    for number in range(data.draw(st.integers(1, 4))):
        lines += [
            *data.draw(st.lists(FILLERS, max_size=2)),
            data.draw(st.sampled_from(["[[rule]]", "[[ 'rule' ]] # ]"])),
        ]
        keys = [f'name = "r{number}"', 'items = "a = 1"', "hide = true"]
        values = data.draw(st.lists(STRINGS, max_size=3))
        listed = "[\n" + ",  # ]\n".join(values) + "\n]"
        for place, value in enumerate([*values, listed, "{ a = '}', b = [1] }"]):
            keys.append(
                data.draw(st.sampled_from([f"x{place} = {value}", f"'x{place}'.b={value} # y = 1"]))
            )
        for key in data.draw(st.permutations(keys)):
            lines += data.draw(st.lists(FILLERS, max_size=1))
            if re.match("'?x", key):
                faults.append(("\n".join(lines) + "\n").count("\n") + 1)
            lines.append(key)
    with pytest.raises(RulesError) as caught:
        Rules.from_toml(data.draw(st.sampled_from(["\n", "\r\n"])).join("\n".join(lines).split("\n")))
    assert [line for line, _ in caught.value.problems] == faults


@QUICK
@given(st.text("ab *", max_size=8), st.text("ab ", max_size=12))
def test_stars_match_as_a_regular_expression_would(pattern: str, query: str) -> None:
    expected = re.fullmatch(".*".join(map(re.escape, even(pattern).split("*"))), even(query)) is not None
    assert matches(pattern, query) is expected


@QUICK
@given(some_rules(), st.data())
def test_every_conflict_ends(rules: Rules, data: st.DataObject) -> None:
    n = 6
    about = [
        (rule, np.array(data.draw(st.lists(st.integers(0, n - 1), unique=True)), dtype=np.int64))
        for rule in rules.rules
    ]
    found = settled(about, range(n))
    assert len(set(found.pins.values())) == len(found.pins)
    assert all(rank >= 1 for rank in found.pins.values())
    hides = {item for rule, at in about if rule.action == "hide" for item in at.tolist()}
    kept = [set(at.tolist()) for rule, at in about if rule.action == "only"]
    assert found.hidden.keys() == hides | {
        item for item in range(n) if any(item not in one for one in kept)
    }
    assert found.hidden.keys().isdisjoint({*found.pins, *found.boosts})
    signs = {"boost": 1.0, "bury": -1.0}
    for item in set(range(n)) - set(found.hidden):
        weights = [
            signs[rule.action] * rule.value for rule, at in about if rule.action in signs and item in at
        ]
        assert found.boosts.get(item) == (pytest.approx(sum(weights)) if weights else None)
        pinned = [rule.value for rule, at in about if rule.action == "pin" and item in at]
        assert (item in found.pins) is bool(pinned)
        assert not pinned or found.pins[item] >= pinned[0]
    # Nothing but the order decides: the first rule that pins has its rank, whatever comes after.
    first = next(
        (
            (rule, at)
            for rule, at in about
            if rule.action == "pin" and set(at.tolist()) - set(found.hidden)
        ),
        None,
    )
    if first:
        item = next(one for one in first[1].tolist() if one not in found.hidden)
        assert found.pins[item] == first[0].value
    touched = {*found.pins, *found.boosts, *found.hidden}
    assert touched == set(found.said)
