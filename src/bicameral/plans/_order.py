"""Equality and order of values: as in Python, but bounded, and with an answer for every pair of the same type."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, cast

from ._bounds import weigh
from ._failure import EvaluationError, brief, wrong


def aligned(values: Sequence[Any]) -> Sequence[Any]:
    """Datetimes that can be compared: one without a time zone is taken to be in the zone of the others."""
    if not any(isinstance(value, dt.datetime | dt.time) for value in values):
        return values
    zones = [value.tzinfo for value in values if isinstance(value, dt.datetime | dt.time) and value.tzinfo]
    if not zones or len(zones) == len(values):
        return values
    return [v.replace(tzinfo=zones[0]) if _without_zone(v) else v for v in values]


def _without_zone(value: object) -> bool:
    return isinstance(value, dt.datetime | dt.time) and value.tzinfo is None


def equal(left: Any, right: Any) -> bool:
    """`left == right`, for values of any two types."""
    if isinstance(left, list | tuple | dict) and isinstance(right, list | tuple | dict):
        weigh(cast("object", left))
        weigh(cast("object", right))
        return _same_shape(cast("Any", left)) == _same_shape(cast("Any", right))
    if isinstance(left, dt.datetime | dt.time) and isinstance(right, dt.datetime | dt.time):
        left, right = aligned((left, right))
    return bool(left == right)


def _same_shape(value: Any) -> Any:
    return list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else value


def contains(container: Any, value: Any) -> bool:
    """`value in container`, for texts, lists and the keys of dicts."""
    match container:
        case str():
            if not isinstance(value, str):
                raise wrong(f"a text can only contain text, not {brief(value)}", [value], fix="Use str(x).")
            return value in container
        case dict():
            return isinstance(value, str) and value in cast("dict[str, Any]", container)
        case list() | tuple():
            if isinstance(value, list | tuple | dict | dt.datetime | dt.time):
                weigh(cast("object", container))
                return any(equal(item, value) for item in cast("list[Any]", container))
            return value in cast("list[Any]", container)
        case _:
            raise wrong(f"nothing can be in {brief(container)}", [container], fix="Use `in` with a list, dict or text.")


def check_order(values: Sequence[Any]) -> Sequence[Any]:
    """The values as they can be compared with `<`; weighed, since comparing looks into lists."""
    for value in values:
        if isinstance(value, list | tuple):
            weigh(cast("object", values))
            break
    return aligned(values)


def not_ordered(values: Sequence[Any]) -> EvaluationError:
    """The error for values that have no order, naming two of them."""
    first = values[0] if values else None
    other = next((value for value in values if type(value) is not type(first)), first)
    return wrong(f"{brief(first)} and {brief(other)} cannot be compared", values)


def positions(values: Sequence[Any], *, reverse: bool = False) -> list[int]:
    """The positions of the values in ascending order; equal ones keep theirs."""
    keys = check_order(values)
    try:
        return sorted(range(len(keys)), key=keys.__getitem__, reverse=reverse)
    except TypeError:
        raise not_ordered(values) from None


def extreme(values: Sequence[Any], *, largest: bool) -> int:
    """The position of the smallest or largest value."""
    if not values:
        which = "largest" if largest else "smallest"
        raise EvaluationError("run.empty", f"an empty list has no {which} value", fix="Test `if xs:` first.")
    keys = check_order(values)
    try:
        return (max if largest else min)(range(len(keys)), key=keys.__getitem__)
    except TypeError:
        raise not_ordered(values) from None


def distinct(values: Sequence[Any]) -> list[Any]:
    """Each value once, in the order they first come."""
    try:
        return list(dict.fromkeys(values))
    except TypeError:
        weigh(values)
        return list({_hashable(value): value for value in reversed(values)}.values())[::-1]


def _hashable(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return ("list", *(_hashable(item) for item in cast("list[Any]", value)))
    if isinstance(value, dict):
        entries = cast("dict[str, Any]", value)
        return ("dict", frozenset((key, _hashable(item)) for key, item in entries.items()))
    return value
