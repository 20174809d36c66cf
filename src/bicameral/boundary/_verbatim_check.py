"""Which values must be copied from the source text, by type, and the check that they were.

Addresses, accounts, codes and amounts of money are never computed, so they must occur in the text. Dates and times must
occur too, unless the text leaves them to be computed (`tomorrow`). A plain `int` or `float` may be a count or a sum and
only raises an alert; a field that must be copied uses the format `number`. Booleans, choices, durations and free text
are worded by the model and are not checked.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from bicameral import types as t

if TYPE_CHECKING:
    from bicameral.boundary._evidence import Evidence

COPIED_TYPES: frozenset[str] = frozenset(
    {"email", "url", "iban", "phone", "id", "code", "currency", "money", "number", "date", "datetime", "time"}
)
"""Names of the types whose values are rejected if they do not occur in the text. `COPIED_TYPES | {"float"}` adds every
number, `COPIED_TYPES | {"str"}` every text; `COPIED_TYPES - {"date"}` allows computed dates, `frozenset()` anything."""

NOTED_TYPES: frozenset[str] = frozenset({"int", "float"})
"""Types whose values may be computed; one that does not occur in the text raises an alert."""


SEARCHABLE_TYPES: frozenset[str] = COPIED_TYPES | NOTED_TYPES | {"str"}
"""Every type whose values can be searched for in a text."""


def find_uncopied(
    value: Any, type_: t.Type, evidence: Evidence, names: frozenset[str], path: str = "value"
) -> list[str]:
    """The places of a value whose type is in `names` and that do not occur in the text."""
    return [
        place
        for place, part, name in scalar_parts(value, type_, path)
        if name in names and not is_in_text(part, name, evidence)
    ]


def free_texts(value: Any, type_: t.Type) -> Iterator[tuple[str, str]]:
    """The free texts of a value, with their places."""
    return ((place, part) for place, part, name in scalar_parts(value, type_, "value") if name in ("str", "Any"))


def scalar_parts(value: Any, type_: t.Type, path: str = "value") -> Iterator[tuple[str, Any, str]]:
    """The scalar parts of a value: place, value and type name."""
    if value is None:
        return
    match type_:
        case t.OptionalType(item=item):
            yield from scalar_parts(value, item, path)
        case t.RecordType() if type_ == t.MONEY:
            yield path, value, "money"
        case t.RecordType(fields=fields):
            for field in fields:
                inner = field.name if path == "value" else f"{path}.{field.name}"
                yield from scalar_parts(value.get(field.name), field.type, inner)
        case t.ListType(item=item):
            for position, part in enumerate(cast("list[Any]", value)):
                yield from scalar_parts(part, item, f"{path}[{position}]")
        case t.TupleType(items=items):
            for position, (part, item) in enumerate(zip(cast("list[Any]", value), items, strict=True)):
                yield from scalar_parts(part, item, f"{path}[{position}]")
        case t.DictType(value=item):
            # The keys are the model's words, so a place does not quote them.
            for part in cast("dict[str, Any]", value).values():
                yield from scalar_parts(part, item, f"{path}[…]")
        case t.StrType(format=name):
            yield path, value, name if name is not None and name in t.FORMATS else "str"
        case t.AnyType():
            yield from _untyped_texts(value, path)
        case t.DateTimeType() | t.DateType() | t.TimeType() | t.IntType() | t.FloatType():
            yield path, value, str(type_)
        case _:
            pass


def _untyped_texts(value: Any, path: str) -> Iterator[tuple[str, str, str]]:
    match value:
        case str():
            yield path, value, "Any"
        case list():
            for part in cast("list[Any]", value):
                yield from _untyped_texts(part, path)
        case dict():
            for key, part in cast("dict[str, Any]", value).items():
                yield path, key, "Any"
                yield from _untyped_texts(part, path)
        case _:
            pass


def is_in_text(value: Any, name: str, evidence: Evidence) -> bool:
    """Whether a scalar of this type occurs in a text, in any usual spelling."""
    match name, value:
        case "money", dict():
            money = cast("dict[str, Any]", value)
            return evidence.has_money(money["amount"], money["currency"])
        case "currency", str():
            return value in evidence.currencies
        case "email", str():
            return evidence.has_email(value)
        case "url", str():
            return evidence.has_url(value)
        case "iban", str():
            return evidence.has_grouped(value)
        case "phone", str():
            return evidence.has_phone(value)
        case (("id" | "code"), str()):
            return evidence.has_token(value)
        case _, str():
            return evidence.has_words(value)
        case _, dt.datetime():
            return evidence.dates.has_datetime(value)
        case _, dt.date():
            return evidence.dates.has_date(value)
        case _, dt.time():
            return evidence.dates.has_time(value)
        case _, int() | float():
            return evidence.has_number(value)
        case _:
            return False
