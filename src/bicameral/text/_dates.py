"""Names of months and weekdays, in one table for every room that reads dates.

`MONTH_NUMBERS` and `WEEKDAY_NUMBERS` have every language of the table, to recognise what a text names. Code that turns
a text into a date uses the English names only: it refuses what it does not read, and does not guess.
"""

from __future__ import annotations

# One line per month, English first; a language is added by adding its names and abbreviations.
_MONTHS = (
    "january januar janvier enero gennaio janeiro januari stycznia января jan ene gen",
    "february februar février fevrier febrero febbraio fevereiro februari lutego февраля feb fév fev",
    "march märz maerz mars marzo março marco maart marca марта mar mär",
    "april avril abril aprile kwietnia апреля apr avr abr",
    "may mai mayo maggio maio mei maja мая mag",
    "june juni juin junio giugno junho czerwca июня jun giu",
    "july juli juillet julio luglio julho lipca июля jul juil lug",
    "august août aout agosto augustus sierpnia августа aug ago",
    "september septembre septiembre settembre setembro września сентября sep sept set",
    "october oktober octobre octubre ottobre outubro października октября oct okt ott out",
    "november novembre noviembre novembro listopada ноября nov",
    "december dezember décembre decembre diciembre dicembre dezembro grudnia декабря dec dez déc dic",
)
_WEEKDAYS = (
    "monday montag lundi lunes lunedì segunda maandag понедельник mon",
    "tuesday dienstag mardi martes martedì terça dinsdag вторник tue tues",
    "wednesday mittwoch mercredi miércoles mercoledì quarta woensdag среда среду wed",
    "thursday donnerstag jeudi jueves giovedì quinta donderdag четверг thu thurs",
    "friday freitag vendredi viernes venerdì sexta vrijdag пятница пятницу fri",
    "saturday samstag sonnabend samedi sábado sabato zaterdag суббота субботу sat",
    "sunday sonntag dimanche domingo domenica zondag воскресенье sun",
)

MONTH_NUMBERS = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}
"""Months by name or abbreviation in small letters, in every language of the table; January is 1."""
WEEKDAY_NUMBERS = {name: number for number, names in enumerate(_WEEKDAYS) for name in names.split()}
"""Weekdays in the same way; Monday is 0."""

ENGLISH_MONTHS = tuple(names.split()[0] for names in _MONTHS)
ENGLISH_WEEKDAYS = tuple(names.split()[0] for names in _WEEKDAYS)
ENGLISH_MONTH_NUMBERS = {
    **{name: number for number, name in enumerate(ENGLISH_MONTHS, 1)},
    **{name[:3]: number for number, name in enumerate(ENGLISH_MONTHS, 1)},
    "sept": 9,
}
"""English months and their abbreviations, in small letters."""
