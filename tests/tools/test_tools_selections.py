"""Selections: noted for the call that makes them and for no other, bounded, and safe to show."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import example, given, strategies as st

from bicameral.tools import Selection, collect_selections, note_selection
from bicameral.tools._selections import MAX_SELECTIONS

COUNTS = st.integers(0, 10**9)


def test_what_is_noted_belongs_to_the_innermost_call_and_to_nothing_after_it() -> None:
    with collect_selections() as outer:
        with collect_selections() as inner:
            note_selection(Selection(2, 1))
        note_selection(Selection(4, 3))
    note_selection(Selection(9, 9))
    assert (inner, outer) == ([Selection(2, 1)], [Selection(4, 3)])


def test_a_call_that_fails_leaves_nothing_to_the_next() -> None:
    def fail() -> None:
        with collect_selections():
            raise RuntimeError

    with collect_selections() as noted:
        with pytest.raises(RuntimeError):
            fail()
        note_selection(Selection(1, 1))
    assert noted == [Selection(1, 1)]


async def test_calls_at_the_same_time_and_their_threads_do_not_mix() -> None:
    async def select(count: int) -> list[Selection]:
        with collect_selections() as noted:
            await asyncio.sleep(0)
            await asyncio.to_thread(note_selection, Selection(count, 0))
            await asyncio.sleep(0)
        return noted

    assert await asyncio.gather(*map(select, range(5))) == [[Selection(count, 0)] for count in range(5)]


def test_a_call_that_selects_without_end_is_bounded() -> None:
    with collect_selections() as noted:
        for number in range(10 * MAX_SELECTIONS):
            note_selection(Selection(number, 0))
    assert len(noted) == MAX_SELECTIONS


@example(12, 0, "rows", "name is \x1b]0;owned\x07\u202e\n" + "z" * 500, 1, 2)
@given(COUNTS, COUNTS, st.text(), st.text(), COUNTS, COUNTS)
def test_a_selection_is_short_on_one_line_and_comes_back_from_json(
    given: int, kept: int, noun: str, condition: str, unread: int, skipped: int
) -> None:
    selection = Selection(given, kept, noun, condition, unread, skipped)
    assert len(str(selection)) < 300
    assert str(selection).isprintable()
    assert Selection.from_json(selection.to_json()) == selection
