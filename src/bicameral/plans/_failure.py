"""Why an expression has no value. Every failure of evaluation is an EvaluationError; nothing else gets out."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any, cast

from bicameral.errors import PlanError

RUN_CODES: dict[str, str] = {
    "run.unbound": "a variable has no value yet",
    "run.no-field": "a record or dict has no such field or key",
    "run.index": "a list or text is not that long",
    "run.division-by-zero": "something is divided by zero",
    "run.not-a-number": "a text is not a number",
    "run.not-a-date": "a text or a set of numbers is not a date or time",
    "run.not-found": "a value is not in the list or text",
    "run.empty": "an empty list has no smallest, largest or mean value",
    "run.none": "a value is None where something is needed",
    "run.unpack": "an item has not as many parts as there are names",
    "run.too-large": "a value or a computation is beyond the limits",
    "run.type": "a value is of the wrong type",
    "run.bad-call": "a library function is called in a way it does not know",
}
"""What can go wrong while an expression is evaluated; `check` rules out `run.type` where all types are known."""


class EvaluationError(PlanError):
    """An expression of a plan has no value: a code of `RUN_CODES`, a message and what to do."""


def kind_of(value: object) -> str:
    """The type of a value as a plan writes it."""
    match value:
        case None:
            return "None"
        case bool() | int() | float() | str() | dict():
            return type(cast("object", value)).__name__
        case list() | tuple():
            return "list"
        case dt.datetime():
            return "datetime"
        case dt.date():
            return "date"
        case dt.time():
            return "time"
        case dt.timedelta():
            return "timedelta"
        case _:
            return "something no plan can use"


def brief(value: object) -> str:
    """A value short enough for a message, with its type."""
    if isinstance(value, str):
        shown = repr(value if len(value) <= 40 else value[:37] + "...")
        return f"{shown} (str)"
    if value is None or isinstance(value, bool | int | float):
        return f"{value!r}"[:60]
    if isinstance(value, dt.date | dt.time | dt.timedelta):
        return f"{value} ({kind_of(value)})"
    if isinstance(value, list | tuple | dict):
        return f"a {kind_of(cast('object', value))} of {len(cast('list[Any]', value))}"
    return kind_of(value)


def wrong(what: str, values: Iterable[object], *, fix: str | None = None) -> EvaluationError:
    """A value that does not fit; a None among the values (or directly inside them) is named as the culprit."""
    values = list(values)
    inner = (item for value in values if isinstance(value, list | tuple) for item in cast("list[object]", value))
    if any(value is None for value in values) or any(item is None for item in inner):
        return EvaluationError(
            "run.none", f"{what}: a value is None", fix=fix or "Test it with `if x is not None:` first."
        )
    return EvaluationError("run.type", what, fix=fix)
