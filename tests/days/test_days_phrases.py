"""Which days the phrases of four languages mean, on a Wednesday in March."""

from __future__ import annotations

import datetime as dt

import pytest

from bicameral.days import named_days

TODAY = dt.date(2026, 3, 11)

# A line each: the text | the phrase in it | the first day | the last day, where it is another.
ENGLISH = """
what is on today | today | 2026-03-11
call me tomorrow | tomorrow | 2026-03-12
call me tommorow | tommorow | 2026-03-12
yesterday's mails | yesterday | 2026-03-10
the day after tomorrow | the day after tomorrow | 2026-03-13
the day before yesterday | the day before yesterday | 2026-03-09
this morning's mails | this morning | 2026-03-11
who called last night? | last night | 2026-03-10
dinner tonight | tonight | 2026-03-11
lunch on friday | friday | 2026-03-13
lunch on Fri | Fri | 2026-03-13
lunch next Friday | next Friday | 2026-03-13
lunch this Friday | this Friday | 2026-03-13
since last friday | last friday | 2026-03-06
on wednesday | wednesday | 2026-03-18
last Wednesday | last Wednesday | 2026-03-04
What did I spend on Monday? | Monday | 2026-03-09
Who wrote to me on Monday? | Monday | 2026-03-09
Which mails arrived on Thursday? | Thursday | 2026-03-05
I will call on Monday | Monday | 2026-03-16
all of next week | next week | 2026-03-16 | 2026-03-22
this week | this week | 2026-03-09 | 2026-03-15
last week's numbers | last week | 2026-03-02 | 2026-03-08
the week after next | week after next | 2026-03-23 | 2026-03-29
this weekend | this weekend | 2026-03-14 | 2026-03-15
next weekend | next weekend | 2026-03-21 | 2026-03-22
last weekend | last weekend | 2026-03-07 | 2026-03-08
at the weekend | weekend | 2026-03-14 | 2026-03-15
everything last month | last month | 2026-02-01 | 2026-02-28
this quarter | this quarter | 2026-01-01 | 2026-03-31
last quarter | last quarter | 2025-10-01 | 2025-12-31
Q1 2025 | Q1 2025 | 2025-01-01 | 2025-03-31
the first quarter of 2025 | first quarter of 2025 | 2025-01-01 | 2025-03-31
revenue grew in Q3 | Q3 | 2025-07-01 | 2025-09-30
this year | this year | 2026-01-01 | 2026-12-31
last year | last year | 2025-01-01 | 2025-12-31
in 2024 | 2024 | 2024-01-01 | 2024-12-31
How much did we pay in 2024 for the van? | 2024 | 2024-01-01 | 2024-12-31
on March 15 | March 15 | 2026-03-15
on March 15th, 2027 | March 15th, 2027 | 2027-03-15
on the 2nd of april 2027 | 2nd of april 2027 | 2027-04-02
15 Mar 2026 | 15 Mar 2026 | 2026-03-15
due 15-Mar-2026 | 15-Mar-2026 | 2026-03-15
Sept. 5, 2026 | Sept. 5, 2026 | 2026-09-05
Friday, 15 May 2026 | Friday, 15 May 2026 | 2026-05-15
Tue, 9 June | Tue, 9 June | 2026-06-09
May 2025 | May 2025 | 2025-05-01 | 2025-05-31
May '25 | May '25 | 2025-05-01 | 2025-05-31
2025-05 | 2025-05 | 2025-05-01 | 2025-05-31
What did I spend in May? | May | 2025-05-01 | 2025-05-31
In May, how much did I spend? | May | 2025-05-01 | 2025-05-31
how much was the rent in january | january | 2026-01-01 | 2026-01-31
How much will I pay in May? | May | 2026-05-01 | 2026-05-31
How much will I pay in February? | February | 2027-02-01 | 2027-02-28
the bill will be paid in January | January | 2027-01-01 | 2027-01-31
bills paid in December | December | 2025-12-01 | 2025-12-31
Remind me to pay the bill that came in December | December | 2025-12-01 | 2025-12-31
Add the dentist on 5 March | 5 March | 2027-03-05
Book a table for 20 February | 20 February | 2027-02-20
Send the corrected report on Monday | Monday | 2026-03-16
Add an event called standup on Monday | Monday | 2026-03-16
Remind me of the bill I received in April | April | 2025-04-01 | 2025-04-30
Add the invoices of April to the list | April | 2025-04-01 | 2025-04-30
Send me the mails that Anna wrote on Monday | Monday | 2026-03-09
my appointments in January | January | 2027-01-01 | 2027-01-31
invoices of April | April | 2025-04-01 | 2025-04-30
the April invoices | April | 2025-04-01 | 2025-04-30
since November | November | 2025-11-01 | 2025-11-30
last March | last March | 2025-03-01 | 2025-03-31
next May | next May | 2026-05-01 | 2026-05-31
early May | early May | 2026-05-01 | 2026-05-10
mid-May | mid-May | 2026-05-11 | 2026-05-20
by the end of May | end of May | 2026-05-21 | 2026-05-31
the first week of May | first week of May | 2026-05-01 | 2026-05-07
the second half of April 2026 | second half of April 2026 | 2026-04-16 | 2026-04-30
end of the month | end of the month | 2026-03-21 | 2026-03-31
end of next month | end of next month | 2026-04-21 | 2026-04-30
in 10 days | in 10 days | 2026-03-21
in two weeks | in two weeks | 2026-03-25
in a month | in a month | 2026-04-11
in twenty-one days | in twenty-one days | 2026-04-01
2 weeks ago | 2 weeks ago | 2026-02-25
three weeks ago | three weeks ago | 2026-02-18
a couple of days ago | a couple of days ago | 2026-03-09
two years ago | two years ago | 2024-03-11
two weeks from now | two weeks from now | 2026-03-25
the last three days | last three days | 2026-03-09 | 2026-03-11
the past 2 weeks | past 2 weeks | 2026-02-26 | 2026-03-11
the next 7 days | next 7 days | 2026-03-12 | 2026-03-18
by 2026-12-24 | 2026-12-24 | 2026-12-24
at 2026-03-01T10:00 | 2026-03-01 | 2026-03-01
on 25/12/2026 | 25/12/2026 | 2026-12-25
on 3/15/2026 | 3/15/2026 | 2026-03-15
on the 15th | 15th | 2026-03-15
by the 3rd | 3rd | 2026-04-03
What came on the 20th? | 20th | 2026-02-20
from Monday to Friday | Monday to Friday | 2026-03-16 | 2026-03-20
3 to 5 May | 3 to 5 May | 2026-05-03 | 2026-05-05
May 3-5 | May 3-5 | 2026-05-03 | 2026-05-05
between 3 and 7 May | 3 and 7 May | 2026-05-03 | 2026-05-07
May to July | May to July | 2026-05-01 | 2026-07-31
3 May to 5 June 2025 | 3 May to 5 June 2025 | 2025-05-03 | 2025-06-05
closed from 28 December to 3 January | 28 December to 3 January | 2025-12-28 | 2026-01-03
will be closed from 28 December to 3 January | 28 December to 3 January | 2026-12-28 | 2027-01-03
Who else is invited to the tasting on June 4th? | June 4th | 2026-06-04
Who was invited to the tasting on June 4th? | June 4th | 2025-06-04
That is it. I paid on June 4th. | June 4th | 2025-06-04
Is the boat booked for 4 June? | 4 June | 2026-06-04
What is not yet signed off for the meeting on 4 June? | 4 June | 2026-06-04
"""

GERMAN = """
Was steht heute an? | heute | 2026-03-11
heute früh | heute | 2026-03-11
Ruf mich morgen an | morgen | 2026-03-12
Morgen treffe ich Anna | Morgen | 2026-03-12
übermorgen | übermorgen | 2026-03-13
gestern | gestern | 2026-03-10
vorgestern | vorgestern | 2026-03-09
am Freitag | Freitag | 2026-03-13
nächsten Freitag | nächsten Freitag | 2026-03-13
letzten Freitag | letzten Freitag | 2026-03-06
vorletzten Montag | vorletzten Montag | 2026-03-02
Wer hat mir am Montag geschrieben? | Montag | 2026-03-09
nächste Woche | nächste Woche | 2026-03-16 | 2026-03-22
naechste Woche | naechste Woche | 2026-03-16 | 2026-03-22
letzte Woche | letzte Woche | 2026-03-02 | 2026-03-08
übernächste Woche | übernächste Woche | 2026-03-23 | 2026-03-29
am Wochenende | Wochenende | 2026-03-14 | 2026-03-15
diesen Monat | diesen Monat | 2026-03-01 | 2026-03-31
letzten Monat | letzten Monat | 2026-02-01 | 2026-02-28
letztes Jahr | letztes Jahr | 2025-01-01 | 2025-12-31
im Jahr 2024 | 2024 | 2024-01-01 | 2024-12-31
am 15.3. um neun | 15.3. | 2026-03-15
am 15.03.2026 | 15.03.2026 | 2026-03-15
am 15. 3. 2026 | 15. 3. 2026 | 2026-03-15
am 15. März | 15. März | 2026-03-15
am 15. Maerz 2027 | 15. Maerz 2027 | 2027-03-15
Freitag, 15.5. | Freitag, 15.5. | 2026-05-15
Fr., 15.5.2026 | Fr., 15.5.2026 | 2026-05-15
am 20. | 20. | 2026-03-20
Was habe ich im Mai ausgegeben? | Mai | 2025-05-01 | 2025-05-31
Wie viel werde ich im Februar bezahlen? | Februar | 2027-02-01 | 2027-02-28
Trage am 5. März einen Termin ein | 5. März | 2027-03-05
Rechnungen vom Dezember | Dezember | 2025-12-01 | 2025-12-31
seit Mai | Mai | 2025-05-01 | 2025-05-31
Anfang Mai | Anfang Mai | 2026-05-01 | 2026-05-10
Mitte März 2026 | Mitte März 2026 | 2026-03-11 | 2026-03-20
bis Ende Juni | Ende Juni | 2026-06-21 | 2026-06-30
Ende des Monats | Ende des Monats | 2026-03-21 | 2026-03-31
Ende nächster Woche | Ende nächster Woche | 2026-03-20 | 2026-03-22
zweite Hälfte April | zweite Hälfte April | 2026-04-16 | 2026-04-30
in zwei Wochen | in zwei Wochen | 2026-03-25
vor drei Tagen | vor drei Tagen | 2026-03-08
vor einundzwanzig Tagen | vor einundzwanzig Tagen | 2026-02-18
seit drei Wochen | drei Wochen | 2026-02-18
die letzten drei Tage | letzten drei Tage | 2026-03-09 | 2026-03-11
in den nächsten zwei Wochen | nächsten zwei Wochen | 2026-03-12 | 2026-03-25
erstes Quartal 2026 | erstes Quartal 2026 | 2026-01-01 | 2026-03-31
das 2. Quartal 2026 | 2. Quartal 2026 | 2026-04-01 | 2026-06-30
KW 12 | KW 12 | 2026-03-16 | 2026-03-22
vom 3. bis 7. Mai | 3. bis 7. Mai | 2026-05-03 | 2026-05-07
von Montag bis Freitag | Montag bis Freitag | 2026-03-16 | 2026-03-20
"""

FRENCH = """
aujourd'hui | aujourd'hui | 2026-03-11
aujourd’hui | aujourd’hui | 2026-03-11
demain matin | demain | 2026-03-12
après-demain | après-demain | 2026-03-13
hier soir | hier | 2026-03-10
avant-hier | avant-hier | 2026-03-09
ce soir | ce soir | 2026-03-11
lundi prochain | lundi prochain | 2026-03-16
vendredi dernier | vendredi dernier | 2026-03-06
Qui m'a écrit lundi ? | lundi | 2026-03-09
la semaine prochaine | semaine prochaine | 2026-03-16 | 2026-03-22
cette semaine | cette semaine | 2026-03-09 | 2026-03-15
le mois dernier | mois dernier | 2026-02-01 | 2026-02-28
ce mois-ci | ce mois-ci | 2026-03-01 | 2026-03-31
le week-end prochain | week-end prochain | 2026-03-21 | 2026-03-22
l'an dernier | an dernier | 2025-01-01 | 2025-12-31
l'année prochaine | année prochaine | 2027-01-01 | 2027-12-31
le 1er mai 2026 | 1er mai 2026 | 2026-05-01
le 14 juillet | 14 juillet | 2026-07-14
vendredi 15 mai | vendredi 15 mai | 2026-05-15
le 15 | 15 | 2026-03-15
le 3/4/2026 | 3/4/2026 | 2026-04-03
Combien ai-je dépensé en avril ? | avril | 2025-04-01 | 2025-04-30
Combien vais-je payer en février ? | février | 2027-02-01 | 2027-02-28
Combien a coûté le vélo en fevrier ? | fevrier | 2026-02-01 | 2026-02-28
la facture du mois d'août | août | 2025-08-01 | 2025-08-31
mars dernier | mars dernier | 2025-03-01 | 2025-03-31
début mai 2026 | début mai 2026 | 2026-05-01 | 2026-05-10
mi-mai | mi-mai | 2026-05-11 | 2026-05-20
fin du mois | fin du mois | 2026-03-21 | 2026-03-31
dans deux semaines | dans deux semaines | 2026-03-25
il y a trois semaines | il y a trois semaines | 2026-02-18
depuis trois jours | trois jours | 2026-03-08
les trois derniers jours | trois derniers jours | 2026-03-09 | 2026-03-11
les 7 prochains jours | 7 prochains jours | 2026-03-12 | 2026-03-18
premier trimestre 2026 | premier trimestre 2026 | 2026-01-01 | 2026-03-31
du 3 au 7 mai | 3 au 7 mai | 2026-05-03 | 2026-05-07
jusqu'au 15 mai | 15 mai | 2026-05-15
"""

SPANISH = """
hoy | hoy | 2026-03-11
mañana por la mañana | mañana | 2026-03-12
pasado mañana | pasado mañana | 2026-03-13
ayer por la tarde | ayer | 2026-03-10
anteayer | anteayer | 2026-03-09
esta tarde | esta tarde | 2026-03-11
el lunes | lunes | 2026-03-16
el próximo lunes | próximo lunes | 2026-03-16
el lunes pasado | lunes pasado | 2026-03-09
el lunes que viene | lunes que viene | 2026-03-16
¿Quién me escribió el lunes? | lunes | 2026-03-09
la semana que viene | semana que viene | 2026-03-16 | 2026-03-22
la semana pasada | semana pasada | 2026-03-02 | 2026-03-08
este fin de semana | este fin de semana | 2026-03-14 | 2026-03-15
el mes pasado | mes pasado | 2026-02-01 | 2026-02-28
el año pasado | año pasado | 2025-01-01 | 2025-12-31
el 15 de mayo de 2026 | 15 de mayo de 2026 | 2026-05-15
el viernes 15 de mayo | viernes 15 de mayo | 2026-05-15
mayo de 2025 | mayo de 2025 | 2025-05-01 | 2025-05-31
¿Cuánto gasté en mayo? | mayo | 2025-05-01 | 2025-05-31
¿Cuánto he gastado en abril? | abril | 2025-04-01 | 2025-04-30
¿Cuánto pagaré en febrero? | febrero | 2027-02-01 | 2027-02-28
mayo pasado | mayo pasado | 2025-05-01 | 2025-05-31
a principios de mayo | principios de mayo | 2026-05-01 | 2026-05-10
a mediados de junio | mediados de junio | 2026-06-11 | 2026-06-20
a finales de mayo | finales de mayo | 2026-05-21 | 2026-05-31
fin de mes | fin de mes | 2026-03-21 | 2026-03-31
hace dos semanas | hace dos semanas | 2026-02-25
desde hace tres días | hace tres días | 2026-03-08
dentro de dos semanas | dentro de dos semanas | 2026-03-25
en dos semanas | en dos semanas | 2026-03-25
los últimos tres días | últimos tres días | 2026-03-09 | 2026-03-11
los próximos 5 días | próximos 5 días | 2026-03-12 | 2026-03-16
primer trimestre de 2025 | primer trimestre de 2025 | 2025-01-01 | 2025-03-31
del 3 al 7 de mayo | 3 al 7 de mayo | 2026-05-03 | 2026-05-07
hasta el 15 de mayo | 15 de mayo | 2026-05-15
"""


def rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in table.splitlines() if line]


@pytest.mark.parametrize("row", rows(ENGLISH + GERMAN + FRENCH + SPANISH), ids=lambda row: row[0])
def test_a_phrase_means_these_days(row: list[str]) -> None:
    text, phrase, start, end = [*row, row[-1]][:4]
    (named,) = named_days(text, TODAY)
    assert (named.phrase, named.start.isoformat(), named.end.isoformat()) == (phrase, start, end)


@pytest.mark.parametrize(
    ("text", "relation", "bounds"),
    [
        ("mails since Monday", "since", ("2026-03-09", None)),
        ("seit dem 3. März", "since", ("2026-03-03", None)),
        ("depuis le 3 mars", "since", ("2026-03-03", None)),
        ("desde el lunes", "since", ("2026-03-09", None)),
        ("by Friday", "until", (None, "2026-03-13")),
        ("until the end of May", "until", (None, "2026-05-31")),
        ("bis zum 15. Mai", "until", (None, "2026-05-15")),
        ("jusqu'au 15 mai", "until", (None, "2026-05-15")),
        ("before 3 May", "before", (None, "2026-05-02")),
        ("vor dem 3. Mai", "before", (None, "2026-05-02")),
        ("avant le 3 mai", "before", (None, "2026-05-02")),
        ("antes del 3 de mayo", "before", (None, "2026-05-02")),
        ("after 3 May", "after", ("2026-05-04", None)),
        ("nach dem 3. Mai", "after", ("2026-05-04", None)),
        ("on 3 May", "", ("2026-05-03", "2026-05-03")),
    ],
)
def test_what_stands_before_a_day_says_how_it_bounds(
    text: str, relation: str, bounds: tuple[str | None, str | None]
) -> None:
    (named,) = named_days(text, TODAY)
    first, last = named.bounds
    assert (named.relation, (first and first.isoformat(), last and last.isoformat())) == (relation, bounds)


@pytest.mark.parametrize(
    ("text", "assumed"),
    [
        ("What did I pay in May?", "May 2025: the nearest one before today"),
        ("What will I pay in May?", "May 2026: the nearest one after today"),
        ("pages about May 2026", ""),
        ("on 3 May", "3 May 2026: this year"),
        ("on Friday", "Friday 2026-03-13: the first one after today"),
        ("Who called on Friday?", "Friday 2026-03-06: the last one before today"),
        ("early May 2026", "early: 2026-05-01 to 2026-05-10"),
        ("on 3/4/2026", "April 2026, day 3: read as day/month"),
        ("on 15/4/2026", ""),
        ("tomorrow", ""),
        ("Friday, 16 May 2026", "2026-05-16 is a Saturday, not a Friday"),
        ("the last three days", "2026-03-09 to today, today included"),
    ],
)
def test_what_was_assumed_is_said(text: str, assumed: str) -> None:
    (named,) = named_days(text, TODAY)
    assert named.assumed == assumed


@pytest.mark.parametrize(
    ("text", "day_first", "day"),
    [
        ("3/4/2026", True, "2026-04-03"),
        ("3/4/2026", False, "2026-03-04"),
        ("15/4/2026", False, "2026-04-15"),
        ("4/15/2026", True, "2026-04-15"),
        ("3.4.2026", False, "2026-04-03"),
        ("on 3/4", False, "2026-03-04"),
        ("on 3/4", True, "2026-04-03"),
    ],
)
def test_the_locale_orders_day_and_month_unless_only_the_other_order_exists(
    text: str, day_first: bool, day: str
) -> None:
    (named,) = named_days(text, TODAY, day_first=day_first)
    assert named.start.isoformat() == day


def test_a_weekday_beside_a_date_decides_the_year() -> None:
    (named,) = named_days("Saturday, 16 May", dt.date(2027, 1, 5))
    assert named.start == dt.date(2026, 5, 16)


def test_an_event_that_is_moved_has_two_days() -> None:
    found = named_days("Move the meeting from Monday to Friday", TODAY)
    assert [named.phrase for named in found] == ["Monday", "Friday"]


def test_every_day_of_a_list_is_found() -> None:
    found = named_days("Compare April and May with 3 June 2025, 2025-07-01 and yesterday.", TODAY)
    assert [named.phrase for named in found] == ["April", "May", "3 June 2025", "2025-07-01", "yesterday"]
