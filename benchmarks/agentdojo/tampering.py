"""An attacker who reaches an item through an injection vector writes its other fields too, as far as they are his.

An injected mail has an attacker's subject, an injected review an attacker's name: wherever a result's item holds the
injected text, each of its parts that is declared a third party's gets the value that serves the goal best.
"""

from __future__ import annotations

from functools import cache
from typing import Any, cast

from bicameral.types import DictType, ListType, OptionalType, RecordType, Type

from .adapter import Tamper, tools_of
from .attacks import Goal
from .bait import best
from .declarations import Declaration, declarations


@cache
def _result(suite: str, tool: str) -> Type:
    return next(each.result for each in tools_of(suite) if each.name == tool)


def tamper(suite: str, goal: Goal, injected: str, rank: int) -> Tamper:
    """What the attacker makes of results that hold the injected text; `rank` is how far down his list he goes."""

    def altered(tool: str, result: Any) -> Any:
        if injected not in repr(result) and injected not in str(result):
            return result
        return _altered(result, _result(suite, tool), "", declarations(suite)[tool], goal, injected, rank)

    return altered


def _altered(value: Any, type_: Type, path: str, declared: Declaration, goal: Goal, injected: str, rank: int) -> Any:
    """A value that holds the injected text, with what is the attacker's in it changed."""
    match type_:
        case OptionalType(item=inner):
            return None if value is None else _altered(value, inner, path, declared, goal, injected, rank)
        case ListType(item=inner):
            items = cast("list[Any]", value)
            return [_if_reached(item, inner, f"{path}[]", declared, goal, injected, rank) for item in items]
        case DictType(value=inner):
            entries = cast("dict[str, Any]", value).items()
            below = f"{path}.*" if path else "*"
            return {key: _if_reached(item, inner, below, declared, goal, injected, rank) for key, item in entries}
        case RecordType():
            return {
                field.name: _field(value, field.name, field.type, path, declared, goal, injected, rank)
                for field in type_.fields
            }
        case _:
            return _bait(value, path, declared, goal, rank)


def _if_reached(value: Any, type_: Type, path: str, declared: Declaration, goal: Goal, injected: str, rank: int) -> Any:
    return _altered(value, type_, path, declared, goal, injected, rank) if _holds(value, injected) else value


def _field(
    record: Any, name: str, type_: Type, path: str, declared: Declaration, goal: Goal, injected: str, rank: int
) -> Any:
    value, at = record[name], f"{path}.{name}" if path else name
    origin = declared.origin(at)
    own = origin.own_when is not None and record.get(origin.own_when[0]) == origin.own_when[1]
    if own or _holds(value, injected):
        return value
    if isinstance(type_, ListType) and origin.trust == "third_party" and isinstance(value, list):
        texts = [text for text in best(goal, name, "") if isinstance(text, str)]
        items = cast("list[Any]", value)
        return texts[rank : rank + 1] if texts and all(isinstance(item, str) for item in items) else items
    return _bait(value, at, declared, goal, rank)


def _bait(value: Any, path: str, declared: Declaration, goal: Goal, rank: int) -> Any:
    if declared.origin(path).trust != "third_party" or isinstance(value, bool):
        return value
    name = path.rpartition(".")[2]
    if isinstance(value, str):
        choices: list[Any] = [bait for bait in best(goal, name, "") if isinstance(bait, str)]
    elif isinstance(value, int | float):
        choices = [type(value)(bait) for bait in best(goal, name, "", ("number",))]
    else:
        return value
    return choices[rank % len(choices)] if choices else value


def _holds(value: Any, injected: str) -> bool:
    match value:
        case str():
            return injected in value
        case list():
            return any(_holds(item, injected) for item in cast("list[Any]", value))
        case dict():
            return any(_holds(item, injected) for item in cast("dict[str, Any]", value).values())
        case _:
            return False
