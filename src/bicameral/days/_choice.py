"""The year, the month or the week that a text leaves open: the nearest in the direction of the clause."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from bicameral.days._calendar import DayRange, month_range
from bicameral.days._cursor import Cursor
from bicameral.days._periods import Reading, describe_month
from bicameral.days._tense import VERB, Direction
from bicameral.days._vocabulary import ALL_FUNCTION_WORDS, AND_WORDS, ARTICLES, RELATIONS, Relation

FIRST_YEAR, LAST_YEAR = 1900, 2199


MONTH_DAYS = 31


@dataclass(frozen=True, slots=True)
class Choice:
    """How a year or a week that the text leaves open is chosen: the nearest to a day, in a direction.

    `strength` is that of the sign that gave the direction, `of` how the day is called where the choice is shown.
    """

    base: dt.date
    direction: Direction
    strength: int
    of: str = "today"


def relation_before(cursor: Cursor, at: int) -> Relation:
    """`since`, `until`, `before` or `after` in front of a place; articles may stand between."""
    return RELATIONS.get(_relation_word(cursor, at), "")


def _relation_word(cursor: Cursor, at: int) -> str:
    for back in range(1, 5):
        word = cursor.word(at - back)
        if word in RELATIONS:
            return word
        if word not in ARTICLES and word not in ("'", "’"):
            break
    return ""


def choose(cursor: Cursor, at: int) -> Choice:
    """The choice for a day named at a place, by what stands before it and by the tense of its clause."""
    direction, strength = cursor.tenses.direction(at)
    word = _relation_word(cursor, at)
    # `ab Mai` and `à partir de mai` may begin in the past or in the future.
    relation = RELATIONS.get(word, "") if word not in ("ab", "partir") else ""
    if relation == "since" and not (direction == 1 and strength >= VERB):
        return Choice(cursor.today, -1, VERB)
    if relation == "until" and not (direction == -1 and strength >= VERB):
        return Choice(cursor.today, 1, VERB)
    return Choice(cursor.today, direction, strength)


def ends_number(cursor: Cursor, at: int) -> bool:
    """Whether a number ends before a place: it goes on in `1.2.2026.4`, `2026-03-01-notes`, `2026x`."""
    if not cursor.is_glued(at):
        return True
    token = cursor.token(at)
    if token.kind != "mark":
        return False
    return not (token.text in "-./" and cursor.is_glued(at + 1) and cursor.token(at + 1).kind != "mark")


def resolve_yearless(
    choice: Choice, month: int, day: int | None, weekday: int | None, first: int, after: int
) -> Reading | None:
    """A month, or a day of it, in the year that is nearest in the direction of the clause.

    Where nothing tells the direction it is the year of the day that the text was written. A weekday beside it decides
    between the years, where one of them fits.
    """
    candidates: list[DayRange] = []
    for year in range(max(choice.base.year - 8, 1), min(choice.base.year + 8, 9999) + 1):
        whole = month_range(year, month)
        if day is None:
            candidates.append(whole)
        elif day <= whole[1].day:
            candidates.append((whole[0].replace(day=day), whole[0].replace(day=day)))
    if not candidates:
        return None
    this_year = [days for days in candidates if days[0].year == choice.base.year]
    past = [days for days in candidates if days[0] <= choice.base]
    future = [days for days in candidates if days[1] >= choice.base]
    fitting = [days for days in candidates if weekday is not None and days[0].weekday() == weekday]
    nearby = [days for days in fitting if abs(days[0].year - choice.base.year) <= 1]
    if nearby:
        chosen = min(nearby, key=lambda days: abs((days[0] - choice.base).days))
        why = "the nearest one on that weekday"
    elif choice.direction < 0 and past:
        chosen, why = past[-1], f"the nearest one before {choice.of}"
    elif choice.direction > 0 and future:
        chosen, why = future[0], f"the nearest one after {choice.of}"
    else:
        near = this_year or candidates
        chosen = min(near, key=lambda days: abs((days[0] - choice.base).days))
        why = "this year" if this_year else "the nearest one"
    if chosen[0] <= choice.base <= chosen[1]:
        why = choice.of if day is not None else "the current month"
    title = describe_month(chosen[0], day=day is not None)
    return Reading(first, after, *chosen, f"{title}: {why}", "month" if day is None else "day", open_year=True)


def read_year_after(cursor: Cursor, at: int) -> tuple[int, int] | None:
    """The year behind a month or a day, and the place after it: `, 2026`, `de 2026`, `'26`."""
    after = cursor.skip(at, ".") if cursor.is_glued(at) and cursor.token(at + 1).kind == "number" else at
    after = cursor.skip(after, ",", "de", "del", "of", "-", "/")
    if cursor.word(after) in ("'", "’") and cursor.is_glued(after + 1) and len(cursor.word(after + 1)) == 2:
        short = cursor.digits(after + 1)
        return (2000 + short, after + 2) if short is not None else None
    year = cursor.digits(after, 4)
    if year is None or len(cursor.word(after)) != 4 or not FIRST_YEAR <= year <= LAST_YEAR:
        return None
    if not ends_number(cursor, after + 1) or cursor.word(after + 1) in ("%", "€", "$"):
        return None
    # `15 May, 2000 copies`: the year of a date is not followed by what it counts.
    following = cursor.token(after + 1)
    counts = following.kind == "word" and following.text.islower() and following.word not in ALL_FUNCTION_WORDS
    if cursor.word(after - 1) == "," and counts and following.word not in AND_WORDS:
        return None
    return year, after + 1
