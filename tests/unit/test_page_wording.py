"""Words on the pages: names shown letter by letter, times left."""

from __future__ import annotations

import pytest

from pages.ui.meter import duration, time_left
from pages.ui.plain import counted, plain


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("a.txt", "`a.txt`"),
        ("**b** [x](http://x) $a$ :red[x] :smile: ->", "`**b** [x](http://x) $a$ :red[x] :smile: ->`"),
        ("one ` tick", "``one ` tick``"),
        ("`` two", "``` `` two ```"),
        ("`", "`` ` ``"),
        ("two\nlines", "`two lines`"),
        ("", "` `"),
    ],
)
def test_plain_is_a_code_span_that_nothing_in_the_text_can_end(text: str, markdown: str) -> None:
    assert plain(text) == markdown


@pytest.mark.parametrize(
    ("done", "total", "seconds", "words"),
    [
        (0, 10, 5.0, ""),
        (10, 10, 5.0, ""),
        (5, 10, 30.0, "about 30 s left"),
        (1, 100, 10.0, "about 16 min left"),
        (1, 1000, 10.0, "about 2.8 h left"),
        (99, 100, 9.9, "about a second left"),
    ],
)
def test_time_left_is_what_remains_at_the_speed_so_far(
    done: int, total: int, seconds: float, words: str
) -> None:
    assert time_left(done, total, seconds) == words


def test_durations_read_as_a_person_says_them() -> None:
    assert [duration(s) for s in (0.2, 12.4, 89, 600, 7200)] == [
        "a second",
        "12 s",
        "89 s",
        "10 min",
        "2.0 h",
    ]


def test_counts_agree_with_their_nouns() -> None:
    assert [counted(n, "file") for n in (0, 1, 1234)] == ["0 files", "1 file", "1,234 files"]
