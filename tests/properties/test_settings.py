"""Settings travel as TOML, as a link and as nested values without changing, and refuse what they cannot be."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import SettingsError
from core.settings import (
    ChunkSettings,
    IndexSettings,
    IndexUse,
    SearchSettings,
    Settings,
    SignalUse,
    search_only_changes,
)
from core.text import Analyzer
from tests.properties.test_replay import search_settings

chunk_settings = st.builds(
    ChunkSettings,
    strategy=st.sampled_from(["fixed", "sentences", "recursive", "headings", "semantic"]),
    unit=st.sampled_from(["characters", "tokens"]),
    size=st.integers(50, 5000),
    overlap=st.integers(0, 49),
)


@given(chunk_settings, search_settings)
def test_they_come_back_from_toml(chunking: ChunkSettings, search: SearchSettings) -> None:
    both = Settings(IndexSettings(chunking=chunking), search)
    again = Settings.from_toml(both.to_toml())
    assert again == both
    assert again.fingerprint() == both.fingerprint()


@given(search_settings)
def test_they_come_back_from_a_link(search: SearchSettings) -> None:
    assert SearchSettings.from_link(search.to_link()) == search


def test_a_byte_that_is_no_utf8_is_replaced_and_travels() -> None:
    search = SearchSettings(
        filters="a = \udcff", recency_field="\udcff", indexes={"\udcff": IndexUse(on=False)}
    )
    assert (search.filters, search.recency_field) == ("a = \ufffd", "\ufffd")
    assert list(search.indexes) == ["\ufffd"]
    assert SearchSettings.from_link(search.to_link()) == search
    assert SearchSettings.from_toml(search.to_toml()) == search


def test_a_link_holds_only_what_was_changed() -> None:
    assert SearchSettings().to_link() == ""
    changed = SearchSettings(k_rrf=10, merge=False).with_index("bm25", weight=2.5)
    assert set(changed.to_link().split("&")) == {
        "indexes.bm25.weight=2.5",
        "k_rrf=10",
        "merge=false",
    } | {
        "indexes.bm25.on=true",
        "indexes.bm25.depth=150",
    }


def test_a_use_equal_to_the_default_says_nothing() -> None:
    spelled_out = SearchSettings(indexes={"bm25": IndexUse()}, signals={"lexical": SignalUse()})
    assert spelled_out == SearchSettings()
    assert spelled_out.fingerprint() == SearchSettings().fingerprint()


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ("k_rfr=10", "no setting k_rfr"),
        ("k_rrf=ten", "k_rrf is 'ten'; give a whole number"),
        ("k=0", "SearchSettings.k is 0; it takes 1 to 1000"),
        ("k_rrf=-1", "it takes 0 to"),
        ("fusion=sum", "choose one of rrf"),
        ("merge=perhaps", "give true or false"),
        ("indexes.bm25.weight=-1", "IndexUse.weight is -1.0"),
        ("indexes.bm25.deep=3", "no setting indexes.bm25.deep"),
        ("indexes=3", "give a table of names"),
        ("bm25_k1=nan", "give a number"),
        ("bm25_k1=inf", "it takes 0.0 to 10.0"),
        ("indexes.bm25=3", "give a table"),
        ("k=1&k.x=2", "given twice"),
    ],
)
def test_bad_links_are_refused_with_the_reason(link: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        SearchSettings.from_link(link)


@given(st.text())
def test_any_text_is_settings_or_a_settings_error(text: str) -> None:
    for read in (SearchSettings.from_link, Settings.from_toml):
        with suppress(SettingsError):
            assert read(text).fingerprint()


def test_the_overlap_stays_below_the_size() -> None:
    with pytest.raises(SettingsError, match="overlap is 100 and size 100"):
        ChunkSettings(size=100, overlap=100)


@pytest.mark.parametrize("settings", [SearchSettings, IndexUse, SignalUse, ChunkSettings, Analyzer])
def test_every_setting_says_what_it_is_for(settings: type) -> None:
    for field in fields(settings):
        assert len(field.metadata.get("help", "")) > 20, field.name


def test_what_only_a_search_can_tell_is_named() -> None:
    assert search_only_changes(SearchSettings(), SearchSettings(bm25_k1=1, k_rrf=1)) == ("BM25 k1",)


@pytest.mark.parametrize("name", ["my.index", "a.weight", ".", "..", "имя", "a b&c=d", "x%2Ey"])
def test_an_index_may_have_any_name(name: str) -> None:
    settings = SearchSettings(k=3).with_index(name, weight=2.0).with_signal(name, on=False)
    assert SearchSettings.from_link(settings.to_link()) == settings
    assert SearchSettings.from_toml(settings.to_toml()) == settings
    assert SearchSettings.from_dict(settings.changed_tables()) == settings


@pytest.mark.parametrize(
    ("make", "values", "said"),
    [
        (SearchSettings, {"k": 2.5}, "k is 2.5; give a whole number"),
        (SearchSettings, {"items": float("inf")}, "give a whole number"),
        (SearchSettings, {"k": True}, "k is True; give a number"),
        (SearchSettings, {"bm25_b": float("nan")}, "give a number"),
        (SearchSettings, {"two_stage": "no"}, "two_stage is 'no'; give true or false"),
        (SearchSettings, {"fusion": []}, "choose one of rrf"),
        (SearchSettings, {"indexes": {"bm25": {"on": False}}}, "holds 'bm25'; give IndexUse values"),
        (SearchSettings, {"indexes": {5: IndexUse(on=False)}}, "holds 5; give IndexUse values"),
        (SearchSettings, {"signals": [1]}, "give SignalUse values"),
        (ChunkSettings, {"size": 100.5}, "give a whole number"),
        (IndexSettings, {"model": None}, "model is None; give a text"),
        (IndexSettings, {"chunking": "x"}, "give ChunkSettings"),
        (Settings, {"search": IndexSettings()}, "give SearchSettings"),
    ],
)
def test_values_of_another_type_are_refused(make: type, values: dict, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        make(**values)
