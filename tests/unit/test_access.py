"""Who may see a document, as it is written and read, and who is asking."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.access import (
    Access,
    AccessError,
    Viewer,
    parse_access,
    parse_viewer,
    visible,
    written_access,
)


@pytest.mark.parametrize(
    ("text", "access"),
    [
        ("", None),
        (" \n", None),
        ("Everyone", None),
        ("nobody", frozenset()),
        ("anna@X.org", {"user:anna@x.org"}),
        ("Finance", {"group:finance"}),
        ("user: Anna , group:Board of  Trustees", {"user:anna", "group:board of trustees"}),
        ("a@x.org;sales\nfinance", {"user:a@x.org", "group:sales", "group:finance"}),
        ('"group:sales, EMEA"; "group:the ""old"" ones"', {"group:sales, emea", 'group:the "old" ones'}),
        ('group:6" pipes', {'group:6" pipes'}),
        ("group:caf\u00e9", {"group:cafe\u0301".replace("e\u0301", "\u00e9")}),
        ("group:cafe\u0301", {"group:caf\u00e9"}),
        ("group:everyone", {"group:everyone"}),
    ],
)
def test_access_is_read_from_words(text: str, access: set[str] | None) -> None:
    assert parse_access(text) == (access if access is None else frozenset(access))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("team:red", "'team:red' is neither a user nor a group; write user:anna@example.org"),
        ("user:", "'user:' is neither"),
        ("nobody, finance", "'nobody' stands alone"),
        ("finance; everyone", "'everyone' stands alone"),
        (" , ;\n", "names nobody; write everyone, nobody"),
        ('""', "names nobody"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, told: str) -> None:
    with pytest.raises(AccessError, match=told):
        parse_access(text)


names = st.text(st.sampled_from('ab ,;":@\u00e9\u00df\n'), min_size=1, max_size=8)


@given(st.sets(names, max_size=3), st.sets(names, max_size=3))
def test_what_is_written_is_read_back(users: set[str], groups: set[str]) -> None:
    principals = [Viewer(user).principals for user in users] + [Viewer("", frozenset(groups)).principals]
    access: Access = frozenset().union(*principals)
    assert parse_access(written_access(access)) == access
    assert parse_access(written_access(None)) is None


def test_a_viewer_sees_what_is_for_everyone_and_what_is_for_them() -> None:
    anna = parse_viewer("Anna@x.org, group:Finance; sales")
    assert anna == Viewer("anna@x.org", frozenset({"finance", "sales"}))
    assert anna.principals == {"user:anna@x.org", "group:finance", "group:sales"}
    assert anna.sees(None)
    assert anna.sees(frozenset({"user:anna@x.org"}))
    assert anna.sees(frozenset({"group:hr", "group:sales"}))
    assert not anna.sees(frozenset({"group:hr", "user:bo@x.org"}))
    assert not anna.sees(frozenset())
    assert Viewer().sees(None)
    assert not Viewer().sees(frozenset({"user:"}))
    assert not Viewer("finance").sees(frozenset({"group:finance"})), "a user is no group"


def test_a_name_with_other_signs_is_another_name() -> None:
    sam = frozenset({"user:sam@x.org", "group:admins"})
    assert Viewer("SAM@X.org").sees(sam)
    assert not Viewer("\u017fam@x.org", frozenset({"admin\u017f"})).sees(sam), "a long s"
    assert Viewer("Stra\u00dfe") != Viewer("Strasse")
    assert Viewer("\u00c4nne") == Viewer("\u00e4nne") == Viewer("A\u0308nne")


def test_the_visible_are_found_among_many() -> None:
    access = [None, frozenset({"group:a"}), frozenset(), frozenset({"user:b", "group:a"})]
    assert visible(access, None) == [0, 1, 2, 3]
    assert visible(access, Viewer()) == [0]
    assert visible(access, Viewer("b")) == [0, 3]
    assert visible(access, Viewer("", frozenset({"A "}))) == [0, 1, 3]


def test_a_viewer_is_one_user() -> None:
    with pytest.raises(AccessError, match=r"not a@x\.org and b@x\.org"):
        parse_viewer("a@x.org, b@x.org")


@pytest.mark.parametrize(
    ("viewer", "label"),
    [
        (Viewer(), "anybody"),
        (Viewer("Anna"), "anna"),
        (Viewer("", frozenset({"sales", "board"})), "group board, sales"),
        (Viewer("anna", frozenset({"board"})), "anna, group board"),
    ],
)
def test_a_viewer_has_a_label(viewer: Viewer, label: str) -> None:
    assert viewer.label == label
