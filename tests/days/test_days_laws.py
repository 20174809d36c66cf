"""What holds for every text: no error, exact slices, no overlaps, linear cost, and days that come back."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import example, given, settings, strategies as st

from bicameral.days import named_days, reading_steps
from property_examples import examples

DAYS = st.dates(dt.date(1950, 1, 1), dt.date(2150, 12, 31))
PIECES = (
    "may May march 5 15. 15 2026 2026-03-01 03 1er next last letzten drei three Tage days ago vor in à a las um Uhr h "
    "pm p.m. de la tarde from to bis und and - – . , / : ' \" “ „ « since seit until early Ende of the le el am Friday "
    "Fr. lundi lunes prochain pasado que viene Q1 KW 12 mañana morgen früh demain hier hoy week-end fin de semana mes "
    "mois quarter first second half ß ſ İ ́ \n \n\n _ @ 99999999999999 0 00 24 24:00 31 30 February 29 year 9999 1"
).split(" ")
TEXTS = st.one_of(st.text(max_size=80), st.lists(st.sampled_from(PIECES), max_size=14).map(" ".join))
GLUED = st.lists(st.sampled_from(PIECES), max_size=10).map("".join)


@settings(max_examples=examples(1000, quick=300))
@given(TEXTS | GLUED, st.dates(), st.booleans())
@example("in 999 years", dt.date.max, True)
@example("999 years ago", dt.date.min, True)
@example("before today", dt.date.min, True)
@example("after today", dt.date.max, True)
@example("next week last month 29 February", dt.date.min, False)
@example("weekend next year, next May, the 31st", dt.date.max, False)
def test_any_text_is_read_without_error_into_exact_slices(text: str, today: dt.date, day_first: bool) -> None:
    found = named_days(text, today, day_first=day_first)
    at = 0
    for named in found:
        start, end = named.place
        assert at <= start < end <= len(text)
        assert text[start:end] == named.phrase
        assert named.start <= named.end
        first, last = named.bounds
        assert first is not None or last is not None
        if named.time is not None:
            assert text[slice(*named.time.place)] == named.time.phrase
        at = end


MONTHS = {
    "en": "January February March April May June July August September October November December".split(),
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember".split(),
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre".split(),
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre".split(),
}
FORMS = {
    "iso": "on {day:%Y-%m-%d}",
    "points": "am {day.day}.{day.month}.{day.year}",
    "slashes": "on {day:%d/%m/%Y}",
    "en": "on {day.day} {month} {day.year}",
    "en, month first": "on {month} {day.day}, {day.year}",
    "de": "am {day.day}. {month} {day.year}",
    "fr": "le {day.day} {month} {day.year}",
    "es": "el {day.day} de {month} de {day.year}",
}


@pytest.mark.parametrize("form", FORMS)
@given(day=DAYS, today=DAYS)
def test_a_written_day_comes_back(form: str, day: dt.date, today: dt.date) -> None:
    month = MONTHS.get(form[:2], MONTHS["en"])[day.month - 1]
    (named,) = named_days(FORMS[form].format(day=day, month=month), today)
    assert (named.start, named.end) == (day, day)


@given(DAYS, st.sampled_from(["monday", "thu", "Sunday", "Montag", "lundi", "lunes"]))
def test_a_weekday_is_within_the_coming_seven_days(today: dt.date, day: str) -> None:
    (named,) = named_days(f"on {day}", today)
    assert dt.timedelta(days=1) <= named.start - today <= dt.timedelta(days=7)


@given(DAYS, st.integers(1, 12))
def test_a_month_is_the_nearest_in_the_direction_of_the_verb(today: dt.date, month: int) -> None:
    name = MONTHS["en"][month - 1]
    (past,) = named_days(f"What did I pay in {name}?", today)
    (future,) = named_days(f"What will I pay in {name}?", today)
    assert past.start.month == future.start.month == month
    assert past.start <= today < past.start.replace(year=past.start.year + 1)
    assert future.end >= today > future.end.replace(year=future.end.year - 1, day=28)


HARD = {
    "words": "on Monday, ",
    "digits": "1",
    "numbers": "1.2.",
    "quotes": "„",
    "single quotes": "' '",
    "openings": "(«“",
    "apostrophes": "d'",
    "months": "May ",
    "lower months": "may to ",
    "ranges": "3 - 4 - ",
    "relations": "since the ",
    "numbers in words": "twenty-",
    "slashes": "1/",
    "newlines": "\n ",
    "letters": "a",
    "points": ".",
    "times": "at 3 from 3 to ",
    "participles": "habe bezahlt, ",
}


@pytest.mark.parametrize("piece", HARD.values(), ids=HARD)
def test_the_cost_is_linear_in_the_length(piece: str) -> None:
    today = dt.date(2026, 3, 11)
    short, long = (reading_steps(piece * (size // len(piece)), today) for size in (2_000, 16_000))
    assert long <= 8.5 * short + 100
    assert long <= 400 * 16_000
