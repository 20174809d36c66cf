"""Library functions on text, numbers, truth values, dates, times and durations.

Functions that text shares with lists (`count`, `index`, `contains`) stand with those on text.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import partial
from typing import Any

from bicameral import types as t
from bicameral.plans._type_rules import CallTypes, LibraryFunction, item_type, library_function, signature
from bicameral.plans.evaluate._bounds import (
    MAX_TEXT,
    EvaluationError,
    bad_value,
    check_length,
    check_number,
    measure,
    preview,
)
from bicameral.plans.evaluate._values import contains, format_date, format_value, parse_date

DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

DATE_FIELDS = ("year", "month", "day")
TIME_FIELDS = ("hour", "minute", "second")
DATE_FIELDS_BY_TYPE: dict[type[Any], tuple[str, ...]] = {
    **dict.fromkeys((dt.date, t.DateType), DATE_FIELDS),
    **dict.fromkeys((dt.time, t.TimeType), TIME_FIELDS),
    **dict.fromkeys((dt.datetime, t.DateTimeType), (*DATE_FIELDS, *TIME_FIELDS)),
    **dict.fromkeys((dt.timedelta, t.DurationType), ("days", "seconds")),
}
"""The fields that a plan can read of dates, times and durations, by the class of the value and by its type."""


def _with_date_error(make: Callable[..., Any], what: str) -> Callable[..., Any]:
    """The same function, whose bad numbers and texts are errors that name them."""

    def run(*args: Any, **named: Any) -> Any:
        try:
            return make(*args, **named)
        except (ValueError, OverflowError):
            shown = ", ".join(preview(value) for value in (*args, *named.values()))
            raise EvaluationError("run.not-a-date", f"{shown} is not a {what}", fix=_DATE_FIXES.get(what)) from None

    return run


_DATE_FIXES = {
    "date": "Write it as '2026-03-31', or use parse_date(text) for other forms.",
    "datetime": "Write it as '2026-03-31T09:30'.",
    "time": "Write it as '09:30'.",
}


def _to_date(value: dt.datetime) -> dt.date:
    return value.date() if isinstance(value, dt.datetime) else value  # pyright: ignore[reportUnnecessaryIsInstance]


def _date_from_text(text: str) -> dt.date:
    return dt.date.fromisoformat(text[:10] if len(text) > 10 and text[10] in "T " else text)


def _to_datetime(value: dt.date) -> dt.datetime:
    return value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time())


def _make_duration(
    days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0, weeks: float = 0
) -> dt.timedelta:
    try:
        return dt.timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds, weeks=weeks)
    except OverflowError:
        raise EvaluationError("run.too-large", "the timedelta is longer than all of history") from None


def _isoformat(value: dt.date | dt.time) -> str:
    return value.isoformat()


def _day_name(value: dt.date) -> str:
    return DAY_NAMES[value.weekday()]


def _replace_date(value: Any, **named: int) -> Any:
    return value.replace(**named)


_replace_moment = _with_date_error(_replace_date, "date")
_dates = partial(library_function, "dates", cost="constant")

DATE_FUNCTIONS = (
    _dates(
        "date",
        "A date from its numbers or from text like '2026-03-31', or the date of a datetime.",
        signature("text: text", t.DATE, _with_date_error(_date_from_text, "date")),
        signature("value: day", t.DATE, _to_date),
        signature("year: int, month: int, day: int", t.DATE, _with_date_error(dt.date, "date")),
    ),
    _dates(
        "time",
        "A time of day from its numbers or from text like '09:30', or the time of a datetime.",
        signature("text: text", t.TIME, _with_date_error(dt.time.fromisoformat, "time")),
        signature("value: datetime", t.TIME, dt.datetime.time),
        signature("hour: int, minute?: int, second?: int", t.TIME, _with_date_error(dt.time, "time")),
    ),
    _dates(
        "datetime",
        "A date with a time, from its numbers or from text like '2026-03-31T09:30'.",
        signature("text: text", t.DATETIME, _with_date_error(dt.datetime.fromisoformat, "datetime")),
        signature("value: day", t.DATETIME, _to_datetime),
        signature(
            "year: int, month: int, day: int, hour?: int, minute?: int, second?: int",
            t.DATETIME,
            _with_date_error(dt.datetime, "datetime"),
        ),
    ),
    _dates(
        "timedelta",
        "A length of time: `timedelta(days=1, hours=2)`.",
        signature(
            "days?: number, hours?: number, minutes?: number, seconds?: number, weeks?: number",
            t.DURATION,
            _make_duration,
        ),
    ),
    _dates(
        "combine",
        "The datetime of a date and a time.",
        signature("date: day, time: time", t.DATETIME, dt.datetime.combine),
    ),
    _dates(
        "parse_date",
        "The date in a text in one of the usual forms, such as '31 March 2026' or '31.03.2026'.",
        signature("text: text", t.DATE, parse_date),
    ),
    _dates(
        "isoformat",
        "A date or time as text like '2026-03-31'.",
        signature("value: moment", t.STR, _isoformat),
        method=True,
    ),
    _dates(
        "strftime",
        "A date or time by a pattern: `day.strftime('%d %B %Y')`.",
        signature("value: moment, pattern: text", t.STR, format_date),
        method=True,
    ),
    _dates(
        "weekday",
        "The day of the week as a number: Monday is 0.",
        signature("value: day", t.INT, dt.date.weekday),
        method=True,
    ),
    _dates("day_name", "The day of the week in English: 'Monday'.", signature("value: day", t.STR, _day_name)),
    _dates(
        "total_seconds",
        "A length of time in seconds.",
        signature("value: duration", t.FLOAT, dt.timedelta.total_seconds),
        method=True,
    ),
)


_LINES = t.ListType(t.STR)


def _split(text: str, sep: str | None = None, maxsplit: int = -1) -> list[str]:
    return text.split(_check_separator(sep), maxsplit)


def _rsplit(text: str, sep: str | None = None, maxsplit: int = -1) -> list[str]:
    return text.rsplit(_check_separator(sep), maxsplit)


def _check_separator(sep: str | None) -> str | None:
    if sep == "":
        raise EvaluationError("run.not-found", "a text cannot be split at ''", fix="Use list(text) for its characters.")
    return sep


def _join(sep: str, texts: list[str]) -> str:
    for text in texts:
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance] - a run may bring anything
            raise bad_value(f"join() needs texts, not {preview(text)}", [text], fix="Use [str(x) for x in xs].")
    check_length("the text", sum(map(len, texts)) + len(sep) * len(texts), MAX_TEXT)
    return sep.join(texts)


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    found = text.count(old) if count < 0 else min(text.count(old), count)
    check_length("the text", len(text) + found * (len(new) - len(old)), MAX_TEXT)
    return text.replace(old, new, count)


def _padding_function(pad: Callable[..., str]) -> Callable[..., str]:
    def run(text: str, width: int, fill: str = " ") -> str:
        check_length("the text", width, MAX_TEXT)
        if len(fill) != 1:
            raise EvaluationError("run.not-found", f"a text is filled up with one character, not {preview(fill)}")
        return pad(text, width, fill)

    return run


def _zfill(text: str, width: int) -> str:
    check_length("the text", width, MAX_TEXT)
    return text.zfill(width)


def _text_index(text: str, part: str) -> int:
    found = text.find(part)
    if found < 0:
        raise EvaluationError(
            "run.not-found", f"{preview(part)} is not in the text", fix="Use `if part in text:` first."
        )
    return found


def _list_index(xs: list[Any], value: object) -> int:
    measure(xs)
    try:
        return xs.index(value)
    except ValueError:
        raise EvaluationError(
            "run.not-found", f"{preview(value)} is not in the list", fix="Use `if value in xs:` first."
        ) from None


def _list_count(xs: list[Any], value: object) -> int:
    measure(xs)
    return xs.count(value)


_texts = partial(library_function, "text", method=True)


def _text_method(
    name: str, doc: str, result: t.Type, run: Callable[..., Any], more: str = "", *, grows: bool = False
) -> LibraryFunction:
    parameters = f"text: text, {more}" if more else "text: text"
    return _texts(name, doc, signature(parameters, result, run), grows=grows)


_CHARACTERS, _AFFIX, _PART = "characters?: text", "affix: text", "part: text"
_SPLIT, _PAD = "sep?: text, maxsplit?: int", "width: int, fill?: text"

TEXT_FUNCTIONS = (
    _text_method("lower", "In small letters.", t.STR, str.lower),
    _text_method("upper", "In capital letters.", t.STR, str.upper, grows=True),
    _text_method("title", "Each Word With a Capital.", t.STR, str.title, grows=True),
    _text_method("capitalize", "The first letter a capital, the others small.", t.STR, str.capitalize, grows=True),
    _text_method("strip", "Without white space (or the given characters) at both ends.", t.STR, str.strip, _CHARACTERS),
    _text_method("lstrip", "Without white space at the start.", t.STR, str.lstrip, _CHARACTERS),
    _text_method("rstrip", "Without white space at the end.", t.STR, str.rstrip, _CHARACTERS),
    _text_method("removeprefix", "Without this start, if it has it.", t.STR, str.removeprefix, _AFFIX),
    _text_method("removesuffix", "Without this end, if it has it.", t.STR, str.removesuffix, _AFFIX),
    _text_method("split", "The parts between separators (by default white space).", _LINES, _split, _SPLIT, grows=True),
    _text_method("rsplit", "Like split, counted from the end.", _LINES, _rsplit, _SPLIT, grows=True),
    _text_method("splitlines", "The lines of a text.", _LINES, str.splitlines, grows=True),
    _texts(
        "join",
        'The texts of a list with a separator between them: `", ".join(names)`.',
        signature("sep: text, texts: texts", t.STR, _join),
    ),
    _texts(
        "replace",
        "With each `old` replaced by `new`; or a date with another year, month or day.",
        signature("text: text, old: text, new: text, count?: int", t.STR, _replace),
        signature(
            "value: datetime, *, year?: int, month?: int, day?: int, hour?: int, minute?: int, second?: int",
            t.DATETIME,
            _replace_moment,
        ),
        signature("value: date, *, year?: int, month?: int, day?: int", t.DATE, _replace_moment),
    ),
    _text_method("startswith", "Whether the text begins so.", t.BOOL, str.startswith, _AFFIX),
    _text_method("endswith", "Whether the text ends so.", t.BOOL, str.endswith, _AFFIX),
    _text_method("find", "Where the part begins, or -1.", t.INT, str.find, _PART),
    _texts(
        "count",
        "How often a part is in a text, or a value in a list.",
        signature("text: text, part: text", t.INT, str.count),
        signature("xs: list, value", t.INT, _list_count),
        cost="deep",
    ),
    _texts(
        "index",
        "Where a part begins in a text, or a value stands in a list; it must be there.",
        signature("text: text, part: text", t.INT, _text_index),
        signature("xs: list, value", t.INT, _list_index),
        cost="deep",
    ),
    _texts(
        "contains",
        "Whether a text has a part, a list a value, a dict a key: the same as `value in container`.",
        signature("text: text, part: text", t.BOOL, contains),
        signature("xs: iterable, value", t.BOOL, contains),
        method=False,
        cost="deep",
    ),
    _text_method("isdigit", "Whether there are only digits (and at least one).", t.BOOL, str.isdigit),
    _text_method("isalpha", "Whether there are only letters (and at least one).", t.BOOL, str.isalpha),
    _text_method("zfill", "With zeros in front up to a width.", t.STR, _zfill, "width: int"),
    _text_method("ljust", "Filled up at the end to a width.", t.STR, _padding_function(str.ljust), _PAD),
    _text_method("rjust", "Filled up in front to a width.", t.STR, _padding_function(str.rjust), _PAD),
    _texts("str", "Any value as text.", signature("value", t.STR, format_value), method=False, cost="deep"),
)


_MAX_DIGITS = 400


def _to_int(value: Any) -> int:
    if not isinstance(value, str):
        return check_number(int(value))
    try:
        return check_number(int(_check_number_text(value)))
    except ValueError:
        fix = "Use float(x) for a number with a decimal point." if "." in value else None
        raise EvaluationError("run.not-a-number", f"{preview(value)} is not a whole number", fix=fix) from None


def _to_float(value: Any) -> float:
    if not isinstance(value, str):
        return float(value)
    try:
        number = float(_check_number_text(value))
    except ValueError:
        number = float("nan")
    if number != number or number in (float("inf"), float("-inf")):
        raise EvaluationError(
            "run.not-a-number", f"{preview(value)} is not a number", fix="Strip signs like '$' and ',' first."
        )
    return number


def _check_number_text(text: str) -> str:
    if len(text) > _MAX_DIGITS:
        raise EvaluationError("run.not-a-number", f"a text of {len(text):,} characters is not a number")
    return text


def _round(value: Any, digits: int | None = None) -> Any:
    if digits is not None and abs(digits) > _MAX_DIGITS:
        raise EvaluationError("run.too-large", f"cannot round to {preview(digits)} digits")
    return check_number(round(value, digits))


def _sum(xs: list[Any], start: Any = None) -> Any:
    zero = dt.timedelta(0) if xs and isinstance(xs[0], dt.timedelta) else 0
    total = +sum(xs, zero if start is None else start)  # '+' makes a lone bool a number
    return total if isinstance(total, dt.timedelta) else check_number(total)


def _mean(xs: list[Any]) -> Any:
    if not xs:
        raise EvaluationError("run.empty", "an empty list has no mean", fix="Test `if xs:` first.")
    return _sum(xs) / len(xs)


def _number_type(given: CallTypes) -> t.Type:
    return t.INT if given["x"] == t.BOOL else given["x"]


def _round_type(given: CallTypes) -> t.Type:
    return _number_type(given) if "digits" in given.types else t.INT


def _sum_type(given: CallTypes) -> t.Type:
    types = [item_type(given["xs"]), *([given["start"]] if "start" in given.types else [])]
    if any(isinstance(type_, t.AnyType) for type_ in types):
        return t.ANY
    return t.FLOAT if t.FLOAT in types else t.INT


_numbers = partial(library_function, "numbers and truth", cost="constant")

NUMBER_FUNCTIONS = (
    _numbers(
        "abs", "Without its sign.", signature("x: number", _number_type, abs), signature("x: duration", t.DURATION, abs)
    ),
    _numbers(
        "round",
        "The nearest whole number, or with so many digits after the point.",
        signature("x: number, digits?: int", _round_type, _round),
    ),
    _numbers(
        "sum",
        "All numbers (or timedeltas) of a list together.",
        signature("xs: numbers, start?: number", _sum_type, _sum),
        signature("xs: durations", t.DURATION, _sum),
        cost="flat",
    ),
    _numbers(
        "mean",
        "The arithmetic mean of a list of numbers.",
        signature("xs: numbers", t.FLOAT, _mean),
        signature("xs: durations", t.DURATION, _mean),
        cost="flat",
    ),
    _numbers(
        "int",
        "A text or number as a whole number.",
        signature("x: text", t.INT, _to_int),
        signature("x: number", t.INT, _to_int),
    ),
    _numbers(
        "float",
        "A text or number as a number with a fraction.",
        signature("x: text", t.FLOAT, _to_float),
        signature("x: number", t.FLOAT, _to_float),
    ),
    _numbers("bool", "Whether a value is not empty, zero or None.", signature("x", t.BOOL, bool)),
    _numbers(
        "any", "Whether at least one value of a list is true.", signature("xs: iterable", t.BOOL, any), cost="flat"
    ),
    _numbers("all", "Whether every value of a list is true.", signature("xs: iterable", t.BOOL, all), cost="flat"),
)
