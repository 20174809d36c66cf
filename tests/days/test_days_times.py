"""Times of day, and the days they belong to."""

from __future__ import annotations

import datetime as dt

import pytest

from bicameral.days import named_days

TODAY = dt.date(2026, 3, 11)

# A line each: the text | the day's phrase | the time's phrase | its start | its end, where it has one.
TIMES = """
lunch on Friday at 3 pm | Friday | at 3 pm | 15:00
lunch on Friday at 3pm | Friday | at 3pm | 15:00
lunch on Friday at 3 p.m. | Friday | at 3 p.m. | 15:00
lunch on Friday at 12 am | Friday | at 12 am | 00:00
at 3 pm on Friday | Friday | at 3 pm | 15:00
tomorrow at 3 | tomorrow | at 3 | 15:00
tomorrow at 9 | tomorrow | at 9 | 09:00
tonight at 8 | tonight | at 8 | 20:00
tomorrow morning at 6 | tomorrow | at 6 | 06:00
tomorrow 15:30 | tomorrow | 15:30 | 15:30
tomorrow at half past three | tomorrow | at half past three | 15:30
tomorrow at a quarter | tomorrow | |
at noon tomorrow | tomorrow | at noon | 12:00
Friday at midnight | Friday | at midnight | 00:00
Friday from 3 to 4 | Friday | from 3 to 4 | 15:00 | 16:00
Friday from 3 to 4 pm | Friday | from 3 to 4 pm | 15:00 | 16:00
Friday from 11 to 1 pm | Friday | from 11 to 1 pm | 11:00 | 13:00
Friday from 10 to 11:30 | Friday | from 10 to 11:30 | 10:00 | 11:30
3pm-4pm tomorrow | tomorrow | 3pm-4pm | 15:00 | 16:00
Lunch with Anna tomorrow in the kitchen at 3 | tomorrow | at 3 | 15:00
March 15, 2026, at 9 | March 15, 2026 | at 9 | 09:00
am Freitag um 15 Uhr | Freitag | um 15 Uhr | 15:00
am Freitag um 15 Uhr 30 | Freitag | um 15 Uhr 30 | 15:30
am Freitag um 15.30 Uhr | Freitag | um 15.30 Uhr | 15:30
am Freitag um halb vier | Freitag | um halb vier | 15:30
am Freitag um Viertel nach drei | Freitag | um Viertel nach drei | 15:15
am Montag zwischen 14 und 16 Uhr | Montag | zwischen 14 und 16 Uhr | 14:00 | 16:00
am Montag von 9 bis 11 Uhr | Montag | von 9 bis 11 Uhr | 09:00 | 11:00
Montag früh um 8 | Montag | um 8 | 08:00
heute früh | heute | früh | 06:00 | 12:00
heute Abend | heute | Abend | 18:00 | 22:00
demain à 15 h 30 | demain | à 15 h 30 | 15:30
demain à 15h30 | demain | à 15h30 | 15:30
demain à 15 heures | demain | à 15 heures | 15:00
vendredi 15 mai à 19 h 15 | vendredi 15 mai | à 19 h 15 | 19:15
ce soir à 20 h | ce soir | à 20 h | 20:00
lundi de 15 h à 16 h | lundi | de 15 h à 16 h | 15:00 | 16:00
demain à midi | demain | à midi | 12:00
el lunes a las 3 de la tarde | lunes | a las 3 de la tarde | 15:00
el lunes a las tres y media | lunes | a las tres y media | 15:30
el lunes a la una | lunes | a la una | 13:00
el lunes a las 15:30 | lunes | a las 15:30 | 15:30
el martes de 3 a 4 de la tarde | martes | de 3 a 4 de la tarde | 15:00 | 16:00
mañana por la mañana | mañana | por la mañana | 06:00 | 12:00
"""


@pytest.mark.parametrize("line", TIMES.strip().splitlines(), ids=lambda line: line.split("|")[0].strip())
def test_a_time_belongs_to_its_day(line: str) -> None:
    text, phrase, said, start, end = [*(cell.strip() for cell in line.split("|")), ""][:5]
    (named,) = named_days(text, TODAY)
    assert named.phrase == phrase
    if not said:
        assert named.time is None
        return
    assert named.time is not None
    assert (named.time.phrase, named.time.start.strftime("%H:%M")) == (said, start)
    assert (named.time.end.strftime("%H:%M") if named.time.end else "") == end


@pytest.mark.parametrize("text", ["19 h 15", "um 15 Uhr", "at 3 pm", "a las 15:30"])
def test_a_time_alone_is_of_today_and_says_so(text: str) -> None:
    (named,) = named_days(text, TODAY)
    assert (named.phrase, named.start, named.names_day) == (text, TODAY, False)
    assert named.assumed.startswith("today: no day is named")


def test_a_bare_hour_is_said_to_be_in_the_afternoon() -> None:
    (named,) = named_days("tomorrow at 3", TODAY)
    assert named.assumed == "15:00: in the afternoon"


def test_each_day_has_its_own_time() -> None:
    found = named_days("Monday at 9 am and Tuesday at 5 pm", TODAY)
    assert [(named.phrase, named.time and named.time.phrase) for named in found] == [
        ("Monday", "at 9 am"),
        ("Tuesday", "at 5 pm"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        *[
            "ratio 16:9",
            "a 16:10 screen",
            "look at 3 places",
            "at 50 %",
            "from 3 to 4 people",
            "it took 3 h",
            "3 hours",
        ],
        *["von 3 bis 4 Personen", "a 3 personas", "à 3 personnes", "price 3.15", "A4 paper", "um 3 Prozent", "at 25"],
    ],
)
def test_numbers_that_are_no_times_are_left_alone(text: str) -> None:
    assert named_days(text, TODAY) == ()
