"""Answers as people read them, and replies as people type them."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from hypothesis import given, strategies as st

from bicameral.cli._plain_values import answer_text, render_table
from bicameral.display import make_visible, to_plain_json
from bicameral.runs import parse_typed_reply
from bicameral.types import BOOL, DATE, DATETIME, FLOAT, INT, STR, TIME, ListType, LiteralType, OptionalType, Type


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a\nb", "a\nb"),
        (["a", "b"], "a\nb"),
        ([], "(nothing)"),
        (None, "(no answer)"),
        (True, "yes"),
        (0.1 + 0.2, "0.3"),
        (dt.datetime(2026, 3, 1, 9, 30), "2026-03-01 09:30"),
        ({"total": 3, "names": ["a", "b"]}, "total: 3\nnames: a, b"),
        ([{"a": 1, "b": "x"}, {"a": 22}], " a  b\n──  ─\n 1  x\n22"),
    ],
)
def test_an_answer_is_shown_as_a_person_would_write_it(value: Any, shown: str) -> None:
    assert answer_text(value) == shown


def test_wide_letters_keep_columns_aligned() -> None:
    lines = render_table([{"n": "日本", "x": "1"}, {"n": "ab", "x": "2"}]).splitlines()
    assert lines[2] == "日本  1"
    assert lines[3] == "ab    2"


def test_a_long_cell_is_cut_on_a_terminal_and_nowhere_else() -> None:
    rows: list[dict[str, object]] = [{"text": "x" * 500}]
    assert max(map(len, render_table(rows, width=80).splitlines())) <= 80
    assert "x" * 500 in render_table(rows)


def test_a_terminal_gets_nothing_to_obey() -> None:
    assert make_visible("\x1b]0;title\x07\x1b[2Jred") == "<001b>]0;title<0007><001b>[2Jred"
    assert make_visible("a\tb\r\nc") == "a\tb\nc"
    assert make_visible("safe\u202etxt.exe") == "safe<202e>txt.exe"


@given(st.text())
def test_no_text_holds_a_control_character_after_it_is_made_visible(text: str) -> None:
    assert not any(ord(char) < 32 and char not in "\t\n" for char in make_visible(text))


def test_between_two_days_there_are_no_hours() -> None:
    christmas, eve = dt.datetime(2026, 12, 25), dt.datetime(2026, 12, 24, 22, 30)
    assert answer_text(christmas.date() - dt.date(2026, 11, 18)) == "37 days"
    assert answer_text(christmas - eve) == "1:30:00"
    assert answer_text([christmas.date() - eve.date()]) == "1 day"


def test_json_has_no_dates_left() -> None:
    value = {"day": dt.date(2026, 3, 1), "at": [dt.time(9, 0)], "long": dt.timedelta(minutes=2)}
    assert to_plain_json(value) == {"day": "2026-03-01", "at": ["09:00:00"], "long": 120.0}


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        ("hello", STR, "hello"),
        ("12", INT, 12),
        ("1.5", FLOAT, 1.5),
        ("Yes", BOOL, True),
        ("n", BOOL, False),
        ("2026-03-01", DATE, dt.date(2026, 3, 1)),
        ("14:30", TIME, dt.time(14, 30)),
        ("2026-03-01 14:30", DATETIME, dt.datetime(2026, 3, 1, 14, 30)),
        ("a, b", ListType(STR), ["a", "b"]),
        ("RED", LiteralType(("red", "blue")), "red"),
        ("delete", LiteralType(("Delete", "delete")), "delete"),
        ("Delete", LiteralType(("delete", "Delete")), "Delete"),
        ("", OptionalType(INT), None),
    ],
)
def test_a_reply_is_read_as_the_type_that_was_asked_for(text: str, type_: Type, value: Any) -> None:
    assert parse_typed_reply(text, type_) == value


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("twelve", INT),
        ("maybe", BOOL),
        ("tomorrow", DATE),
        ("green", LiteralType(("red",))),
        ("DELETE", LiteralType(("Delete", "delete"))),
    ],
)
def test_a_reply_that_does_not_fit_is_refused(text: str, type_: Type) -> None:
    with pytest.raises(ValueError, match=text):
        parse_typed_reply(text, type_)
