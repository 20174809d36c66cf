"""Lengths of time in words, in four languages, and what gives none."""

from __future__ import annotations

import pytest

from bicameral.planning._durations import days_between, minutes_between, minutes_in_words
from bicameral.planning._language import fold


@pytest.mark.parametrize(
    ("request_", "minutes"),
    [
        ("Put the car inspection into my calendar at 9:00, it takes an hour and a half", 90),
        ("Make the team meeting half an hour longer, it takes 60 minutes so far", 90),
        ("block two and a half hours for it", 150),
        ("Such mir eine freie Dreiviertelstunde", 45),
        ("es dauert anderthalb Stunden", 90),
        ("dauert zwei Stunden", 120),
        ("une heure et demie avec Priya", 90),
        ("trois quarts d'heure", 45),
        ("una hora y media", 90),
        ("1 h 30", 90),
        ("verkürz die Stunde um 15 Minuten, sie dauert 60 Minuten", 45),
    ],
)
def test_a_length_in_words_gives_its_minutes(request_: str, minutes: int) -> None:
    assert minutes in minutes_in_words(fold(request_))


@pytest.mark.parametrize(
    ("request_", "minutes"),
    [
        ("Put the car inspection into my calendar at 9:00", 90),
        ("Make the team meeting longer", 90),
        ("it takes 60 minutes, and the other one 30 minutes", 90),
        ("Make the meeting half an hour longer", 90),
        ("Trag das Treffen mit Nadia ein", 45),
    ],
)
def test_a_length_that_nobody_said_is_not_given(request_: str, minutes: int) -> None:
    assert minutes not in minutes_in_words(fold(request_))


@pytest.mark.parametrize(
    ("request_", "days"),
    [
        ("Three lessons: on friday, then 7 and 14 days later", {7, 14}),
        ("guitar on friday, +7 days", {7}),
        ("the dentist, and a check two weeks after", {14}),
        ("am Freitag und eine Woche später", {7}),
        ("vendredi, puis 7 jours plus tard", {7}),
        ("el viernes y 3 días después", {3}),
        ("show the mails of the last 7 days", set[int]()),
        ("a trip of 7 days from friday", set[int]()),
        ("die letzten 14 Tage", set[int]()),
    ],
)
def test_only_a_distance_from_a_day_gives_other_days(request_: str, days: set[int]) -> None:
    assert days_between(fold(request_)) == days


@pytest.mark.parametrize(
    ("request_", "minutes"),
    [
        ("Game night on Friday from 20:00 to 22:30", 150),
        ("dinner 7pm to 9:30pm", 150),
        ("from 11 am until 1 pm", 120),
        ("Spieleabend von 20 bis 22 Uhr", 120),
        ("bloque mardi 14h-16h", 120),
        ("Réunion de 10 h à 11 h 30", 90),
        ("Bloquea el martes de 8 a 10", 120),
        ("von 22 bis 1 Uhr", 180),
    ],
)
def test_two_times_give_the_minutes_between_them(request_: str, minutes: int) -> None:
    assert minutes_between(fold(request_)) == {minutes}


@pytest.mark.parametrize("request_", ["rows 3 to 5", "the dentist at 9", "from 2.5 to 3.5 percent", "2024 to 2026"])
def test_other_numbers_are_no_times(request_: str) -> None:
    assert not minutes_between(fold(request_))
