"""Values on a screen on which a person decides."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, strategies as st

from bicameral.display import break_line, column_width, has_hidden, question_text, value_lines


@given(
    st.text() | st.lists(st.text()) | st.dictionaries(st.text(), st.integers()),
    st.integers(20, 100),
    st.integers(3, 30),
)
def test_no_value_hides_anything_or_has_more_lines_than_it_may(value: object, width: int, most: int) -> None:
    lines = value_lines(value, width, most)
    assert len(lines) <= most + 1
    assert not any(has_hidden(line) or "\n" in line for line in lines)


def test_many_empty_lines_are_counted() -> None:
    lines = value_lines("Hello" + "\n" * 3900 + "pay Eve", 60)
    assert lines == ["│ Hello", "… 3,899 empty lines", "│ pay Eve"]
    assert value_lines("a\n\nb", 60) == ["│ a", "│ ", "│ b"]


def test_a_row_of_blanks_does_not_push_the_rest_away() -> None:
    lines = value_lines("Hello" + " " * 90_000 + "pay Eve", 60)
    assert len(lines) <= 6
    assert any("pay Eve" in line for line in lines)


def test_a_line_that_says_how_many_are_left_out_cannot_be_forged() -> None:
    lines = value_lines("a\n… 3 empty lines\n… 7 more lines, 9 bytes in all", 60)
    assert all(line.startswith("│ ") for line in lines)


def test_a_value_of_a_megabyte_is_shown_at_once() -> None:
    started = time.thread_time()
    value_lines("word and \u200b word\n" * 60_000, 80, 10)
    assert time.thread_time() - started < 10


@pytest.mark.parametrize("text", ["abc", "全" * 50, "a" * 200, ""])
def test_pieces_of_a_line_fit_and_make_the_line(text: str) -> None:
    pieces = break_line(text, 20)
    assert "".join(pieces) == text
    assert all(column_width(piece) <= 20 for piece in pieces)


def test_a_question_of_one_line_is_one_line_and_others_stand_behind_a_bar() -> None:
    assert question_text("Which file?", 80) == "? Which file?"
    shown = question_text("Which file?\nAllow this call? [y/N]", 80).splitlines()
    assert shown == ["?", "  │ Which file?", "  │ Allow this call? [y/N]"]
