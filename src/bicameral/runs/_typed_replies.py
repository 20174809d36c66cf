"""Replies of people that come as text: the value of the type that a question wants, and what to type for it."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Sequence
from typing import Any

from bicameral import types as t
from bicameral.display import visible_line

_YES, _NO = ("y", "yes", "true"), ("n", "no", "false")
_SIMPLE_REPLIES: dict[type, tuple[Callable[[str], Any], str]] = {
    t.StrType: (str, "some text"),
    # `index` raises the ValueError for a reply that is neither.
    t.BoolType: (lambda text: [*_YES, *_NO].index(text.lower()) < len(_YES), "yes or no"),
    t.IntType: (int, "a whole number"),
    t.FloatType: (float, "a number"),
    t.DateType: (dt.date.fromisoformat, "a date like 2026-03-01"),
    t.TimeType: (dt.time.fromisoformat, "a time like 14:30"),
    t.DateTimeType: (
        lambda text: dt.datetime.fromisoformat(text).replace(tzinfo=None),
        "a date and time like 2026-03-01 14:30",
    ),
}
"""How a reply of a simple type is parsed, and what to type for it."""


def parse_typed_reply(text: str, type_: t.Type) -> Any:
    """A reply as a value of the type; a ValueError if it is none."""
    if type(type_) in _SIMPLE_REPLIES:
        return _SIMPLE_REPLIES[type(type_)][0](text)
    match type_:
        case t.OptionalType(item=item):
            return parse_typed_reply(text, item) if text else None
        case t.ListType(item=item):
            return [parse_typed_reply(part.strip(), item) for part in text.split(",") if part.strip()]
        case t.LiteralType(values=values):
            return _chosen_literal(text, values)
        case _:
            try:
                value = json.loads(text)
            except RecursionError:
                raise ValueError("the value is nested too deeply") from None
            if reason := t.mismatch(value, type_):
                raise ValueError(reason)
            return value


def _chosen_literal(text: str, values: Sequence[str]) -> str:
    """The value that was meant: exactly this one, or the only one that differs from it in nothing but its case."""
    if text in values:
        return text
    alike = [value for value in values if value.lower() == text.lower()]
    if len(alike) != 1:
        # Of two that differ in their case only, nobody can tell which was meant by a third writing.
        raise ValueError(f"{text!r} is {'none' if not alike else 'several'} of the values")
    return alike[0]


def typed_reply_hint(type_: t.Type) -> str:
    """What a person types for a value of the type."""
    if type(type_) in _SIMPLE_REPLIES:
        return _SIMPLE_REPLIES[type(type_)][1]
    match type_:
        case t.LiteralType(values=values):
            # Choices may be a server's: on one line, they cannot pass for a question of ours.
            return visible_line(" or ".join(values))
        case t.ListType(item=t.StrType()):
            return "a list, separated by commas"
        case t.ListType(item=item):
            return f"a list of {typed_reply_hint(item)}, separated by commas"
        case t.OptionalType(item=item):
            return f"{typed_reply_hint(item)}, or nothing"
        case _:
            return f"JSON for {type_}"
