"""Arithmetic of days and periods. Weeks begin on Monday."""

from __future__ import annotations

import calendar
import datetime as dt

from bicameral.days._vocabulary import ENGLISH_MONTH_TITLES, Third, Unit

DayRange = tuple[dt.date, dt.date]
ONE_DAY = dt.timedelta(days=1)
MAX_COUNT = 999


def month_range(year: int, month: int) -> DayRange:
    """The first and the last day of a month."""
    return dt.date(year, month, 1), dt.date(year, month, calendar.monthrange(year, month)[1])


def add_months(day: dt.date, months: int) -> dt.date:
    """The same day some months later, or the last day of a month that is too short."""
    index = day.year * 12 + day.month - 1 + months
    year, month = index // 12, index % 12 + 1
    return dt.date(year, month, min(day.day, month_range(year, month)[1].day))


def add_units(day: dt.date, count: int, unit: Unit) -> dt.date:
    """The day that is some days, weeks, months or years away."""
    match unit:
        case "day":
            return day + dt.timedelta(days=count)
        case "week" | "weekend":
            return day + dt.timedelta(weeks=count)
        case "fortnight":
            return day + dt.timedelta(weeks=2 * count)
        case "month":
            return add_months(day, count)
        case "quarter":
            return add_months(day, 3 * count)
        case "year":
            return add_months(day, 12 * count)


def quarter_range(year: int, quarter: int) -> DayRange:
    return dt.date(year, 3 * quarter - 2, 1), month_range(year, 3 * quarter)[1]


def shifted_period(day: dt.date, unit: Unit, shift: int) -> DayRange:
    """The calendar period that holds a day, or one before or after it: this week, last month, next year."""
    match unit:
        case "day":
            moved = day + dt.timedelta(days=shift)
            return moved, moved
        case "week" | "fortnight":
            monday = day + dt.timedelta(weeks=shift, days=-day.weekday())
            return monday, monday + dt.timedelta(days=6)
        case "weekend":
            saturday = day + dt.timedelta(weeks=shift, days=5 - day.weekday())
            return saturday, saturday + ONE_DAY
        case "month":
            moved = add_months(day.replace(day=1), shift)
            return month_range(moved.year, moved.month)
        case "quarter":
            moved = add_months(day.replace(day=1), 3 * shift)
            return quarter_range(moved.year, (moved.month + 2) // 3)
        case "year":
            return dt.date(day.year + shift, 1, 1), dt.date(day.year + shift, 12, 31)


def third_of(days: DayRange, third: Third) -> DayRange:
    """The first, second or last third of a period: of a month the 1st to 10th, the 11th to 20th, and the rest."""
    first, last = days
    length = (last - first).days + 1
    size = 10 if 28 <= length <= 31 else max(length // 3, 1)
    match third:
        case "early":
            return first, first + dt.timedelta(days=size - 1)
        case "middle":
            return first + dt.timedelta(days=size), first + dt.timedelta(days=2 * size - 1)
        case "late":
            return first + dt.timedelta(days=2 * size), last


def weekday_after(day: dt.date, weekday: int) -> dt.date:
    """The next such weekday; the day itself does not count."""
    return day + dt.timedelta(days=(weekday - day.weekday() - 1) % 7 + 1)


def weekday_before(day: dt.date, weekday: int) -> dt.date:
    """The last such weekday; the day itself does not count."""
    return day - dt.timedelta(days=(day.weekday() - weekday - 1) % 7 + 1)


def month_title(day: dt.date) -> str:
    """A month as it is shown to a person: `March 2026`."""
    return f"{ENGLISH_MONTH_TITLES[day.month - 1]} {day.year}"
