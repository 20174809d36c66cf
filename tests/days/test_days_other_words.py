"""Words, names and numbers that look like days and are none."""

from __future__ import annotations

import datetime as dt

import pytest

from bicameral.days import named_days

TODAY = dt.date(2026, 3, 11)

WORDS = """
You may go now
May I ask something?
may
this may surprise you
what comes next may differ
It may 5 times fail
march on
march into the office
They march 5 miles a day
The march of progress
marching on
Sun is shining
sun and rain
We sat down in the sun
I wed her
on Mars there is water
the Mars 2020 rover
to Mars and back
Tell April that dinner is ready
Mail June about the plan
a mail from April
give it to August
mayo on the sandwich
Add mayo to the list
once upon a time
decent and satisfied
set the table
a second thought
the next day
one day
day by day
for 3 days
two weeks
the end of the day
end of story
in the end
this file and the last line
last three lines
last but not least
the current page
the second quarter century
every Monday
each Friday
on mondays
Jan hat angerufen
die Katze ist hier
Guten Morgen, wie geht es?
So viel Geld
Mi casa es su casa
Do not go
Marsch nach Hause
Das ist die letzte Zeile
jeden Montag
am Morgen
alle Tage
am 15. Tag
mon ami est ici
Sept personnes sont venues
chaque lundi
un an
le 15 rue de Paris
en deux semaines
la dernière ligne
début de la phrase
el mar está frío
los lunes
todos los lunes
sin sal
mi mayor problema
la última línea
fin de la historia
tres días
por la mañana
pay on frıday
due ſep 5
the report of 30 February 2026
on 31 April
am 31.4.2026
2026-02-30
on 13/13/2026
""".strip().splitlines()

NUMBERS = """
the price is 3.5.
version 1.2.3
1.2.3.4
192.168.1.10
10.3.2026.1
call 555-2024-03
555-2024-03-01
gpt-4.1-2025-04-14
3/4 of the pages
on 3/4 of the pages
add 3/4 cup
24/7 support
a 1/2 share
in 2000 words
2000 lines
room 2026
€2026
$2025
B2026
2026x
the 15th floor
on the 15th floor
Q5
Q&A
T1 line
A4
99999999999999999999999999 May
5 h
""".strip().splitlines()

NAMES = """
report_2024-03.csv
report-2024-03.csv
report_2024-03-01.csv
2024-03-01.csv
sunday.txt is fine
sunday-notes
pre-May
#may
https://example.com/2026/03/15/news
see www.example.com/may-5
notes/2026-03-01
notes/2026-03-01.md
./2026-03-01
~/monday
C:\\2026-03-01
kim@march.com
may.2026@example.com
"next Friday"
'tomorrow' is a word
'don't call tomorrow' she said
“in May”
„morgen“ schreiben
« demain » est un mot
`2026-03-01`
the file "next Friday.txt"
the mail "Invoice of 3 May 2026"
""".strip().splitlines()


@pytest.mark.parametrize("text", WORDS + NUMBERS)
def test_words_and_numbers_that_are_no_days_are_left_alone(text: str) -> None:
    assert named_days(text, TODAY) == ()


@pytest.mark.parametrize("text", NAMES)
def test_names_links_and_quoted_text_are_not_read(text: str) -> None:
    assert named_days(text, TODAY) == ()


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("You may go on 5 May", "5 May"),
        ("They march in March", "March"),
        ("April said that it rained in April", "April"),
        ("Open report_2024-03.csv from yesterday", "yesterday"),
        ('Find "next Friday" in the notes of last week', "last week"),
        ("See https://example.com/2026/03/15 by tomorrow", "tomorrow"),
        ('A 27" screen by Friday, and a 24" one', "Friday"),
        ("The dogs' food until Monday", "Monday"),
        ("today.Then", "today"),
        ("am 15.Mai", "15.Mai"),
        ("Guten Morgen! Bis morgen.", "morgen"),
        ("(2026-03-15)", "2026-03-15"),
        ("It's due Friday.", "Friday"),
    ],
)
def test_a_day_beside_such_words_is_still_read(text: str, phrase: str) -> None:
    assert [named.phrase for named in named_days(text, TODAY)] == [phrase]
