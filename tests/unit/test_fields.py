"""Fields of items: their kinds, typed columns, facets, and the filters over them."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import SettingsError
from core.fields import KINDS, ItemFields, kind_of, parse_date
from core.filters import ASKING, COMPARING, MATCHING, Condition, Filter, FilterError
from core.settings import SearchSettings, Settings
from core.types import Metadata

ITEMS: list[Metadata] = [
    {"year": 2019.0, "author": "Ann", "tags": ("pump", "valve"), "issued": "2019-03-05", "draft": True},
    {"year": 2024.0, "author": "Ben", "tags": ("Pump",), "issued": "12 March 2024", "draft": False},
    {"author": "ann", "tags": "door, roof", "issued": "2024-12-31T23:30:00-11:00"},
    {"year": 2021.5, "author": "Zoe; Ann", "note": "See p. 3"},
]


def fields(items: list[Metadata] = ITEMS, kinds: dict[str, str] | None = None) -> ItemFields:
    names = [f"doc{at}.{'PDF' if at % 2 else 'md'}" for at in range(len(items))]
    return ItemFields(
        items, kinds or {}, names, ["2026-01-02T03:04:05", "", "2026-02-01", ""][: len(items)]
    )


def passing(text: str, made: ItemFields | None = None) -> list[int]:
    return np.flatnonzero((made or fields()).mask(Filter.parse(text))).tolist()


# Dates and kinds


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2024-03-05", date(2024, 3, 5)),
        ("2024-3-5", date(2024, 3, 5)),
        ("2024-03", date(2024, 3, 1)),
        ("2024-03-05T23:59:59.123Z", date(2024, 3, 5)),
        ("2024-03-05T00:10+05:30", date(2024, 3, 5)),
        ("2024-03-05 10:11", date(2024, 3, 5)),
        ("2024/03/05", date(2024, 3, 5)),
        ("5.3.2024", date(2024, 3, 5)),
        ("12 March 2024", date(2024, 3, 12)),
        ("Tue, 12 Mar 2024 10:00:00 GMT", date(2024, 3, 12)),
        ("Sept 1, 2024", date(2024, 9, 1)),
        ("D:20240305101112+01'00'", date(2024, 3, 5)),
        ("D:2024", date(2024, 1, 1)),
        ("01/02/2024", None),
        ("2024", None),
        ("2024-02-30", None),
        ("12 Marsh 2024", None),
        ("version 2024-03-05", None),
        ("", None),
        ("٢٠٢٤-03-05", None),
    ],
)
def test_a_date_is_read_where_it_is_certain(text: str, day: date | None) -> None:
    assert parse_date(text) == day


@given(st.dates())
def test_every_day_is_read_back_as_iso(day: date) -> None:
    assert parse_date(day.isoformat()) == day
    assert parse_date(f"{day.day}.{day.month}.{day.year:04d}") == day


@given(st.text() | st.from_regex(r"[\d]{1,4}[-./ ][\w]{1,5}[-./ ][\d]{1,4}.{0,5}", fullmatch=True))
def test_any_text_is_a_date_or_none(text: str) -> None:
    assert parse_date(text) is None or isinstance(parse_date(text), date)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([True, False], "yes/no"),
        ([1.0, 2], "number"),
        ([1.0, True], "text"),
        ([("a",), ("b", "c")], "list"),
        ([("a",), "b"], "list"),
        ([("a",), 3.0], "text"),
        (["2024-01-02", "5 May 2020"], "date"),
        (["2024-01-02", "soon"], "text"),
        (["2024-01-02", "", ()], "date"),
        ([1.0, "", float("nan")], "number"),
        ([], "text"),
        (["", ()], "text"),
        (["7", "8"], "text"),
    ],
)
def test_the_kind_is_the_narrowest_that_holds_for_all(values: list, kind: str) -> None:
    assert kind_of(values) == kind
    assert kind in KINDS


# Columns


def test_fields_are_those_that_an_item_has_and_the_built_in_ones() -> None:
    made = fields()
    assert made.names == ("author", "draft", "issued", "note", "tags", "year", "file", "type", "added")
    assert [made.kind(name) for name in made.names] == [
        "text", "yes/no", "date", "text", "list", "number", "text", "text", "date",
    ]  # fmt: skip
    assert fields([{"blank": "", "none": (), "nan": float("nan")}]).names == ("file", "type", "added")
    assert ItemFields([], {}, [], []).names == ()


def test_columns_are_typed_with_nan_where_there_is_nothing() -> None:
    made = fields()
    assert np.array_equal(made.numbers("year"), [2019, 2024, np.nan, 2021.5], equal_nan=True)
    assert np.array_equal(made.dates("issued"), [17960, 19794, 20088, np.nan], equal_nan=True)
    assert made.texts("tags") == (("pump", "valve"), ("Pump",), ("door, roof",), ())
    assert made.texts("year") == (("2019",), ("2024",), (), ("2021.5",))
    assert made.texts("draft") == (("yes",), ("no",), (), ())
    assert made.texts("issued")[1] == ("2024-03-12",)
    assert made.texts("type") == (("md",), ("pdf",), ("md",), ("pdf",))
    assert made.range("year") == (2019, 2024)
    assert made.range("issued") == (17960, 20088)
    assert made.range("author") is None


@pytest.mark.parametrize("digits", [400, 5000])
def test_a_whole_number_too_large_for_a_float_is_no_number(digits: int) -> None:
    fields = ItemFields([{"size": 10**digits}, {"size": 2}], {}, ["a", "b"], ["", ""])
    assert fields.numbers("size").tolist()[1:] == [2.0]
    assert np.isnan(fields.numbers("size")[0])
    assert np.isnan(fields.dates("size")[0])
    assert fields.range("size") == (2.0, 2.0)
    shown = f"1.00000000000000e+{digits}"
    assert fields.misfits("size") == [(0, shown)]
    assert fields.texts("size") == ((shown,), ("2",))
    assert fields.mask(Filter.parse("size > 1")).tolist() == [False, True]


def test_metadata_of_a_built_in_name_comes_first() -> None:
    made = fields([{"type": "report"}, {"type": "memo"}])
    assert made.texts("type") == (("report",), ("memo",))


def test_facets_count_items_and_agree_with_filters() -> None:
    made = fields()
    assert made.facets("author") == [("Ann", 2), ("Ben", 1), ("Zoe; Ann", 1)]
    assert made.facets("tags", limit=2) == [("pump", 2), ("door, roof", 1)]
    for name in made.names:
        if made.kind(name) != "date":
            for value, count in made.facets(name):
                assert made.mask(Filter((Condition(name, "=", (value,)),))).sum() == count


def test_a_kind_that_a_person_sets_names_what_does_not_fit() -> None:
    items: list[Metadata] = [{"cost": "12.5"}, {"cost": "free"}, {"cost": " 3e2 "}, {"cost": ("1",)}]
    made = fields(items, {"cost": "number"})
    assert np.array_equal(made.numbers("cost"), [12.5, np.nan, 300, np.nan], equal_nan=True)
    assert made.misfits("cost") == [(1, "free"), (3, "1")]
    assert passing("cost > 12.5", made) == [2]
    years = fields([{"when": 2024.0}, {"when": "2023"}, {"when": 2024.5}], {"when": "date"})
    assert years.texts("when") == (("2024-01-01",), ("2023-01-01",), ("2024.5",))
    assert years.misfits("when") == [(2, "2024.5")]
    assert fields(items, {"cost": "list"}).misfits("cost") == []
    assert fields(kinds={"tags": "list"}).texts("tags")[2] == ("door", "roof")
    assert fields(kinds={"author": "list"}).facets("author")[0] == ("Ann", 3)


@pytest.mark.parametrize(
    ("kind", "words"), [("number", "numbers"), ("date", "dates"), ("yes/no", "yes or no")]
)
def test_a_value_that_the_kind_has_not_is_refused(kind: str, words: str) -> None:
    made = fields([{"f": "x"}], {"f": kind})
    with pytest.raises(FilterError, match=f"f holds {words}, and 'soon' is"):
        passing("f = soon", made)


def test_an_unknown_field_is_an_error_that_names_the_close_ones_first() -> None:
    with pytest.raises(FilterError, match="no item has a field 'autor'; fields are author, draft"):
        passing("autor = Ann")
    with pytest.raises(FilterError, match="no field 'x': no item has any field"):
        ItemFields([], {}, [], []).kind("x")
    assert passing("AUTHOR = ben") == [1]
    both = fields([{"A": "1", "a": "2"}])
    assert passing("A = 1", both) == [0]
    with pytest.raises(FilterError, match="no item has a field 'x'"):
        both.dates("x")


# Filters


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("", [0, 1, 2, 3]),
        (" ; ; ", [0, 1, 2, 3]),
        ("author = ann", [0, 2]),
        ("author = ANN, ben", [0, 1, 2]),
        ('author = "zoe; ann"', [3]),
        ("author != ann", [1, 3]),
        ("year != 2019", [1, 2, 3]),
        ("author ~ an", [0, 2, 3]),
        ('tags = pump, "door, roof"', [0, 1, 2]),
        ("tags != pump", [2, 3]),
        ("tags ~ oo", [2]),
        ("year >= 2021.5", [1, 3]),
        ("year > 2021.5", [1]),
        ("year < 2021.5", [0]),
        ("year <= 2021.5; author = ann", [0]),
        ("year = 2.019e3", [0]),
        ("year exists", [0, 1, 3]),
        ("year missing", [2]),
        ('"year" MISSING; author=ann', [2]),
        ("issued = 2024", [1, 2]),
        ("issued = 2024-03", [1]),
        ("issued = 2024-12-31", [2]),
        ("issued > 2024-03", [2]),
        ("issued > 2024", []),
        ("issued >= 2024", [1, 2]),
        ("issued <= 2024-03", [0, 1]),
        ("issued < 2024", [0]),
        ("issued ~ 2024-", [1, 2]),
        ("draft = yes", [0]),
        ("draft != TRUE", [1, 2, 3]),
        ("type = pdf", [1, 3]),
        ("file ~ DOC2", [2]),
        ("added = 2026-01", [0]),
        ("added missing", [1, 3]),
    ],
)
def test_a_filter_passes_these_items(text: str, items: list[int]) -> None:
    assert passing(text) == items


@pytest.mark.parametrize("text", ["author > Ann", "tags <= pump", "draft < yes"])
def test_only_numbers_and_dates_compare(text: str) -> None:
    with pytest.raises(FilterError, match="cannot compare; use =, != or ~"):
        passing(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("author", "character 7: author is followed by nothing"),
        ("year = 3; = 4", "character 11: = where the name of a field should be"),
        ("year =", "character 7: a value is missing after ="),
        ("year = 3,", "character 10: a value is missing after ,"),
        ("year = 3 = 4", "character 10: = after a value"),
        ("year = , 3", "character 8: , where a value should be"),
        ("year >= 3, 4", "character 1: year >= is given 2 values"),
        ("year ! 3", "character 6: ! where"),
        ('year = "3', "character 8: a double quote is not closed"),
        ('year = "a" b', "character 12: b after a value"),
        ('year = ""', "a value is missing after year ="),
        ('"" = 3', "character 1: a condition without the name"),
        ('"year" exists now', "where =, !="),
        ('"year" exists = 3', "character 15: exists takes no value"),
        ("exists", "followed by nothing"),
    ],
)
def test_a_filter_that_cannot_be_read_says_where_and_why(text: str, said: str) -> None:
    with pytest.raises(FilterError) as caught:
        Filter.parse(text)
    assert said in str(caught.value)
    assert isinstance(caught.value, SettingsError)


def test_a_filter_is_written_in_one_way() -> None:
    assert str(Filter.parse(' year>=2020;;author =  Ann ,"Ben", Ann ;tags   EXISTS;year >= 2020 ')) == (
        "year >= 2020; author = Ann, Ben; tags exists"
    )
    assert str(Filter((Condition("the book exists", "~", ('say "a; b"',)),))) == (
        '"the book exists" ~ "say ""a; b"""'
    )


names = st.text(min_size=1).filter(str.strip) | st.sampled_from(
    ["a exists", "missing", "x=y", '"', "a  b"]
)
conditions = st.one_of(
    st.builds(Condition, names, st.sampled_from(ASKING)),
    st.builds(Condition, names, st.sampled_from(COMPARING), st.tuples(names)),
    st.builds(Condition, names, st.sampled_from(MATCHING), st.lists(names, min_size=1).map(tuple)),
)


@given(st.lists(conditions).map(lambda found: Filter(tuple(found))))
def test_a_filter_comes_back_from_its_text(condition: Filter) -> None:
    assert Filter.parse(str(condition)) == condition


@given(st.text() | st.text(alphabet='ab ,;=!<>~"exists'))
def test_any_text_is_a_filter_or_a_filter_error(text: str) -> None:
    try:
        made = Filter.parse(text)
    except FilterError:
        return
    assert Filter.parse(str(made)) == made


def test_settings_keep_the_written_form_and_refuse_a_filter_that_cannot_be_read() -> None:
    settings = SearchSettings(filters=" year>=2020 ;author=Ann")
    assert settings.filters == "year >= 2020; author = Ann"
    assert settings == SearchSettings(filters="year >= 2020; author = Ann")
    assert SearchSettings.from_link(settings.to_link()) == settings
    assert Settings.from_toml(Settings(search=settings).to_toml()).search == settings
    with pytest.raises(SettingsError, match="a value is missing"):
        SearchSettings.from_link("filters=year+%3E%3D")
    with pytest.raises(SettingsError, match=r"recency_half_life is 0\.0; it takes 0\.01"):
        SearchSettings(recency_half_life=0.0)
