"""Library functions on text, numbers, truth values, dates, times and durations.

Functions that text shares with lists (`count`, `index`, `contains`) stand with those on text.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

from bicameral import types as t
from bicameral.plans._type_rules import (
    ANYTHING,
    DATE_KIND,
    DATETIME_KIND,
    DAY,
    DURATION_KIND,
    DURATIONS,
    INTEGER,
    ITERABLE,
    LIST,
    MOMENT,
    NUMBER,
    NUMBERS,
    TEXT,
    TEXTS,
    TIME_KIND,
    CallTypes,
    CostClass,
    LibraryFunction,
    Parameter,
    Signature,
    item_type,
    option,
    param,
)
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


def _to_time(value: dt.datetime) -> dt.time:
    return value.time()


def _to_datetime(value: dt.date) -> dt.datetime:
    return value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time())


def _make_datetime(year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0) -> dt.datetime:
    return dt.datetime(year, month, day, hour, minute, second)


def _make_time(hour: int, minute: int = 0, second: int = 0) -> dt.time:
    return dt.time(hour, minute, second)


def _make_duration(
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
    return DAY_NAMES[value.weekday()]


def _replace_date(value: Any, **named: int) -> Any:
    return value.replace(**named)


def _integer_params(*names: str, required: int) -> tuple[Parameter, ...]:
    return tuple(param(name, INTEGER) if at < required else option(name, INTEGER) for at, name in enumerate(names))


def replace_date_signatures() -> tuple[Signature, ...]:
    """`replace` on dates: `day.replace(day=1)`; text has its own in the same function."""
    fields = tuple(option(name, INTEGER, named_only=True) for name in ("year", "month", "day"))
    clock = tuple(option(name, INTEGER, named_only=True) for name in ("hour", "minute", "second"))
    run = _with_date_error(_replace_date, "date")
    return (
        Signature((param("value", DATETIME_KIND), *fields, *clock), t.DATETIME, run),
        Signature((param("value", DATE_KIND), *fields), t.DATE, run),
    )


def _date_function(name: str, doc: str, *signatures: Signature, method: bool = False) -> LibraryFunction:
    return LibraryFunction(name, doc, "dates", signatures, method, cost="constant")


DATE_FUNCTIONS: tuple[LibraryFunction, ...] = (
    _date_function(
        "date",
        "A date from its numbers or from text like '2026-03-31', or the date of a datetime.",
        Signature((param("text", TEXT),), t.DATE, _with_date_error(_date_from_text, "date")),
        Signature((param("value", DAY),), t.DATE, _to_date),
        Signature(_integer_params("year", "month", "day", required=3), t.DATE, _with_date_error(dt.date, "date")),
    ),
    _date_function(
        "time",
        "A time of day from its numbers or from text like '09:30', or the time of a datetime.",
        Signature((param("text", TEXT),), t.TIME, _with_date_error(dt.time.fromisoformat, "time")),
        Signature((param("value", DATETIME_KIND),), t.TIME, _to_time),
        Signature(
            _integer_params("hour", "minute", "second", required=1), t.TIME, _with_date_error(_make_time, "time")
        ),
    ),
    _date_function(
        "datetime",
        "A date with a time, from its numbers or from text like '2026-03-31T09:30'.",
        Signature((param("text", TEXT),), t.DATETIME, _with_date_error(dt.datetime.fromisoformat, "datetime")),
        Signature((param("value", DAY),), t.DATETIME, _to_datetime),
        Signature(
            _integer_params("year", "month", "day", "hour", "minute", "second", required=3),
            t.DATETIME,
            _with_date_error(_make_datetime, "datetime"),
        ),
    ),
    _date_function(
        "timedelta",
        "A length of time: `timedelta(days=1, hours=2)`.",
        Signature(
            tuple(option(name, NUMBER) for name in ("days", "hours", "minutes", "seconds", "weeks")),
            t.DURATION,
            _make_duration,
        ),
    ),
    _date_function(
        "combine",
        "The datetime of a date and a time.",
        Signature((param("date", DAY), param("time", TIME_KIND)), t.DATETIME, _combine),
    ),
    _date_function(
        "parse_date",
        "The date in a text in one of the usual forms, such as '31 March 2026' or '31.03.2026'.",
        Signature((param("text", TEXT),), t.DATE, parse_date),
    ),
    _date_function(
        "isoformat",
        "A date or time as text like '2026-03-31'.",
        Signature((param("value", MOMENT),), t.STR, _isoformat),
        method=True,
    ),
    _date_function(
        "strftime",
        "A date or time by a pattern: `day.strftime('%d %B %Y')`.",
        Signature((param("value", MOMENT), param("pattern", TEXT)), t.STR, format_date),
        method=True,
    ),
    _date_function(
        "weekday",
        "The day of the week as a number: Monday is 0.",
        Signature((param("value", DAY),), t.INT, dt.date.weekday),
        method=True,
    ),
    _date_function(
        "day_name",
        "The day of the week in English: 'Monday'.",
        Signature((param("value", DAY),), t.STR, _day_name),
    ),
    _date_function(
        "total_seconds",
        "A length of time in seconds.",
        Signature((param("value", DURATION_KIND),), t.FLOAT, dt.timedelta.total_seconds),
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


def _text_method(
    name: str, doc: str, result: t.Type, run: Callable[..., Any], *more: Parameter, grows: bool = False
) -> LibraryFunction:
    return LibraryFunction(
        name, doc, "text", (Signature((param("text", TEXT), *more), result, run),), True, grows=grows
    )


_AFFIX, _CHARS = param("affix", TEXT), option("characters", TEXT)
_SEP, _MAXSPLIT = option("sep", TEXT), option("maxsplit", INTEGER)
_WIDTH, _FILL = param("width", INTEGER), option("fill", TEXT)
_PART = param("part", TEXT)

TEXT_FUNCTIONS: tuple[LibraryFunction, ...] = (
    _text_method("lower", "In small letters.", t.STR, str.lower),
    _text_method("upper", "In capital letters.", t.STR, str.upper, grows=True),
    _text_method("title", "Each Word With a Capital.", t.STR, str.title, grows=True),
    _text_method("capitalize", "The first letter a capital, the others small.", t.STR, str.capitalize, grows=True),
    _text_method("strip", "Without white space (or the given characters) at both ends.", t.STR, str.strip, _CHARS),
    _text_method("lstrip", "Without white space at the start.", t.STR, str.lstrip, _CHARS),
    _text_method("rstrip", "Without white space at the end.", t.STR, str.rstrip, _CHARS),
    _text_method("removeprefix", "Without this start, if it has it.", t.STR, str.removeprefix, _AFFIX),
    _text_method("removesuffix", "Without this end, if it has it.", t.STR, str.removesuffix, _AFFIX),
    _text_method(
        "split", "The parts between separators (by default white space).", _LINES, _split, _SEP, _MAXSPLIT, grows=True
    ),
    _text_method("rsplit", "Like split, counted from the end.", _LINES, _rsplit, _SEP, _MAXSPLIT, grows=True),
    _text_method("splitlines", "The lines of a text.", _LINES, str.splitlines, grows=True),
    LibraryFunction(
        "join",
        'The texts of a list with a separator between them: `", ".join(names)`.',
        "text",
        (Signature((param("sep", TEXT), param("texts", TEXTS)), t.STR, _join),),
        method=True,
    ),
    LibraryFunction(
        "replace",
        "With each `old` replaced by `new`; or a date with another year, month or day.",
        "text",
        (
            Signature(
                (param("text", TEXT), param("old", TEXT), param("new", TEXT), option("count", INTEGER)), t.STR, _replace
            ),
            *replace_date_signatures(),
        ),
        method=True,
    ),
    _text_method("startswith", "Whether the text begins so.", t.BOOL, str.startswith, _AFFIX),
    _text_method("endswith", "Whether the text ends so.", t.BOOL, str.endswith, _AFFIX),
    _text_method("find", "Where the part begins, or -1.", t.INT, str.find, _PART),
    LibraryFunction(
        "count",
        "How often a part is in a text, or a value in a list.",
        "text",
        (
            Signature((param("text", TEXT), _PART), t.INT, str.count),
            Signature((param("xs", LIST), param("value")), t.INT, _list_count),
        ),
        method=True,
        cost="deep",
    ),
    LibraryFunction(
        "index",
        "Where a part begins in a text, or a value stands in a list; it must be there.",
        "text",
        (
            Signature((param("text", TEXT), _PART), t.INT, _text_index),
            Signature((param("xs", LIST), param("value")), t.INT, _list_index),
        ),
        method=True,
        cost="deep",
    ),
    LibraryFunction(
        "contains",
        "Whether a text has a part, a list a value, a dict a key: the same as `value in container`.",
        "text",
        (
            Signature((param("text", TEXT), _PART), t.BOOL, contains),
            Signature((param("xs", ITERABLE), param("value")), t.BOOL, contains),
        ),
        cost="deep",
    ),
    _text_method("isdigit", "Whether there are only digits (and at least one).", t.BOOL, str.isdigit),
    _text_method("isalpha", "Whether there are only letters (and at least one).", t.BOOL, str.isalpha),
    _text_method("zfill", "With zeros in front up to a width.", t.STR, _zfill, _WIDTH),
    _text_method("ljust", "Filled up at the end to a width.", t.STR, _padding_function(str.ljust), _WIDTH, _FILL),
    _text_method("rjust", "Filled up in front to a width.", t.STR, _padding_function(str.rjust), _WIDTH, _FILL),
    LibraryFunction(
        "str", "Any value as text.", "text", (Signature((param("value"),), t.STR, format_value),), cost="deep"
    ),
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


def _number_function(name: str, doc: str, *signatures: Signature, cost: CostClass = "constant") -> LibraryFunction:
    return LibraryFunction(name, doc, "numbers and truth", signatures, cost=cost)


_ITEMS = param("xs", ITERABLE)

NUMBER_FUNCTIONS: tuple[LibraryFunction, ...] = (
    _number_function(
        "abs",
        "Without its sign.",
        Signature((param("x", NUMBER),), _number_type, abs),
        Signature((param("x", DURATION_KIND),), t.DURATION, abs),
    ),
    _number_function(
        "round",
        "The nearest whole number, or with so many digits after the point.",
        Signature((param("x", NUMBER), option("digits", INTEGER)), _round_type, _round),
    ),
    _number_function(
        "sum",
        "All numbers (or timedeltas) of a list together.",
        Signature((param("xs", NUMBERS), option("start", NUMBER)), _sum_type, _sum),
        Signature((param("xs", DURATIONS),), t.DURATION, _sum),
        cost="flat",
    ),
    _number_function(
        "mean",
        "The arithmetic mean of a list of numbers.",
        Signature((param("xs", NUMBERS),), t.FLOAT, _mean),
        Signature((param("xs", DURATIONS),), t.DURATION, _mean),
        cost="flat",
    ),
    _number_function(
        "int",
        "A text or number as a whole number.",
        Signature((param("x", TEXT),), t.INT, _to_int),
        Signature((param("x", NUMBER),), t.INT, _to_int),
    ),
    _number_function(
        "float",
        "A text or number as a number with a fraction.",
        Signature((param("x", TEXT),), t.FLOAT, _to_float),
        Signature((param("x", NUMBER),), t.FLOAT, _to_float),
    ),
    _number_function(
        "bool", "Whether a value is not empty, zero or None.", Signature((param("x", ANYTHING),), t.BOOL, bool)
    ),
    _number_function(
        "any", "Whether at least one value of a list is true.", Signature((_ITEMS,), t.BOOL, any), cost="flat"
    ),
    _number_function("all", "Whether every value of a list is true.", Signature((_ITEMS,), t.BOOL, all), cost="flat"),
)
