"""Library functions on dates, times and lengths of time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

from bicameral.types import DATE, DATETIME, DURATION, FLOAT, INT, STR, TIME

from ._dates_in_text import parse_date
from ._failure import EvaluationError, brief
from ._function import Function, Parameter, Signature, may, need
from ._kinds import DATE_KIND, DATETIME_KIND, DAY, DURATION_KIND, INTEGER, MOMENT, NUMBER, TEXT, TIME_KIND
from ._show import strftime

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

DATE_FIELDS: dict[str, Callable[[Any], int]] = {
    "year": lambda value: value.year,
    "month": lambda value: value.month,
    "day": lambda value: value.day,
}
TIME_FIELDS: dict[str, Callable[[Any], int]] = {
    "hour": lambda value: value.hour,
    "minute": lambda value: value.minute,
    "second": lambda value: value.second,
}
DURATION_FIELDS: dict[str, Callable[[Any], int]] = {
    "days": lambda value: value.days,
    "seconds": lambda value: value.seconds,
}


def _made(make: Callable[..., Any], what: str) -> Callable[..., Any]:
    """The same function, whose bad numbers and texts are errors that name them."""

    def run(*args: Any, **named: Any) -> Any:
        try:
            return make(*args, **named)
        except (ValueError, OverflowError):
            shown = ", ".join(brief(value) for value in (*args, *named.values()))
            raise EvaluationError("run.not-a-date", f"{shown} is not a {what}", fix=_FIXES.get(what)) from None

    return run


_FIXES = {
    "date": "Write it as '2026-03-31', or use parse_date(text) for other forms.",
    "datetime": "Write it as '2026-03-31T09:30'.",
    "time": "Write it as '09:30'.",
}


def _date_of(value: dt.datetime) -> dt.date:
    return value.date() if isinstance(value, dt.datetime) else value  # pyright: ignore[reportUnnecessaryIsInstance]


def _date_text(text: str) -> dt.date:
    return dt.date.fromisoformat(text[:10] if len(text) > 10 and text[10] in "T " else text)


def _time_of(value: dt.datetime) -> dt.time:
    return value.time()


def _datetime_of(value: dt.date) -> dt.datetime:
    return value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time())


def _datetime(year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0) -> dt.datetime:
    return dt.datetime(year, month, day, hour, minute, second)


def _time(hour: int, minute: int = 0, second: int = 0) -> dt.time:
    return dt.time(hour, minute, second)


def _duration(
    days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0, weeks: float = 0
) -> dt.timedelta:
    try:
        return dt.timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, weeks=weeks)
    except OverflowError:
        raise EvaluationError("run.too-large", "the timedelta is longer than all of history") from None


def _combine(date: dt.date, time: dt.time) -> dt.datetime:
    return dt.datetime.combine(date, time)


def _isoformat(value: dt.date | dt.time) -> str:
    return value.isoformat()


def _day_name(value: dt.date) -> str:
    return DAYS[value.weekday()]


def _replace_date(value: Any, **named: int) -> Any:
    return value.replace(**named)


def _numbers(*names: str, required: int) -> tuple[Parameter, ...]:
    return tuple(need(name, INTEGER) if at < required else may(name, INTEGER) for at, name in enumerate(names))


def replace_date_signature() -> tuple[Signature, ...]:
    """`replace` on dates: `day.replace(day=1)`; text has its own in the same function."""
    fields = tuple(may(name, INTEGER, named_only=True) for name in ("year", "month", "day"))
    clock = tuple(may(name, INTEGER, named_only=True) for name in ("hour", "minute", "second"))
    run = _made(_replace_date, "date")
    return (
        Signature((need("value", DATETIME_KIND), *fields, *clock), DATETIME, run),
        Signature((need("value", DATE_KIND), *fields), DATE, run),
    )


def _function(name: str, doc: str, *signatures: Signature, method: bool = False) -> Function:
    return Function(name, doc, "dates", signatures, method, cost="constant")


DATE_FUNCTIONS: tuple[Function, ...] = (
    _function(
        "date",
        "A date from its numbers or from text like '2026-03-31', or the date of a datetime.",
        Signature((need("text", TEXT),), DATE, _made(_date_text, "date")),
        Signature((need("value", DAY),), DATE, _date_of),
        Signature(_numbers("year", "month", "day", required=3), DATE, _made(dt.date, "date")),
    ),
    _function(
        "time",
        "A time of day from its numbers or from text like '09:30', or the time of a datetime.",
        Signature((need("text", TEXT),), TIME, _made(dt.time.fromisoformat, "time")),
        Signature((need("value", DATETIME_KIND),), TIME, _time_of),
        Signature(_numbers("hour", "minute", "second", required=1), TIME, _made(_time, "time")),
    ),
    _function(
        "datetime",
        "A date with a time, from its numbers or from text like '2026-03-31T09:30'.",
        Signature((need("text", TEXT),), DATETIME, _made(dt.datetime.fromisoformat, "datetime")),
        Signature((need("value", DAY),), DATETIME, _datetime_of),
        Signature(
            _numbers("year", "month", "day", "hour", "minute", "second", required=3),
            DATETIME,
            _made(_datetime, "datetime"),
        ),
    ),
    _function(
        "timedelta",
        "A length of time: `timedelta(days=1, hours=2)`.",
        Signature(
            tuple(may(name, NUMBER) for name in ("days", "hours", "minutes", "seconds", "weeks")), DURATION, _duration
        ),
    ),
    _function(
        "combine",
        "The datetime of a date and a time.",
        Signature((need("date", DAY), need("time", TIME_KIND)), DATETIME, _combine),
    ),
    _function(
        "parse_date",
        "The date in a text in one of the usual forms, such as '31 March 2026' or '31.03.2026'.",
        Signature((need("text", TEXT),), DATE, parse_date),
    ),
    _function(
        "isoformat",
        "A date or time as text like '2026-03-31'.",
        Signature((need("value", MOMENT),), STR, _isoformat),
        method=True,
    ),
    _function(
        "strftime",
        "A date or time by a pattern: `day.strftime('%d %B %Y')`.",
        Signature((need("value", MOMENT), need("pattern", TEXT)), STR, strftime),
        method=True,
    ),
    _function(
        "weekday",
        "The day of the week as a number: Monday is 0.",
        Signature((need("value", DAY),), INT, dt.date.weekday),
        method=True,
    ),
    _function(
        "day_name",
        "The day of the week in English: 'Monday'.",
        Signature((need("value", DAY),), STR, _day_name),
    ),
    _function(
        "total_seconds",
        "A length of time in seconds.",
        Signature((need("value", DURATION_KIND),), FLOAT, dt.timedelta.total_seconds),
        method=True,
    ),
)
