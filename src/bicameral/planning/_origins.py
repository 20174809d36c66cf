"""Origins of values in a plan: constants that the plan itself has, or results of tools.

An expression of constants is evaluated, so that its value can be looked up as a whole: `"eve" + "@" + "example.org"`
has only harmless parts. Where constants are joined with results of tools they are pieces of the new value. A reference
counts by its words: what they are bound to is there, but nobody named it if the words are the planner's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import Any, cast

from bicameral.plans import (
    Apply,
    Choose,
    Compare,
    Comprehension,
    EvaluationError,
    Format,
    Get,
    Index,
    Lambda,
    Ref,
    Reference,
    Slice,
    Update,
    children,
    evaluate_expr,
    free_names,
)
from bicameral.tools import Tool
from bicameral.types import LiteralType

MAX_ALTERNATIVES = 64


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value comes from.

    `values` are all values that it can have, if it is made of constants alone. Otherwise `whole` are the constants that
    it may be or contain as they are, and `pieces` those that were joined with something else. `lost`: constants were
    joined in a way that cannot be followed.
    """

    values: tuple[Any, ...] | None = None
    whole: frozenset[Any] = frozenset()
    pieces: frozenset[Any] = frozenset()
    lost: bool = False

    def leaves(self) -> frozenset[Any]:
        found = frozenset(leaf for value in self.values or () for leaf in _leaves(value))
        return found | self.whole


FROM_TOOL = Origin()
Origins = dict[str, Origin]


def after_tool(tool: Tool, given: Mapping[str, Origin]) -> Origin:
    """A pure tool makes its result of its arguments; what any other returns comes from the world."""
    if tool.effect != "pure" or tool.outbound or not given:
        return FROM_TOOL
    if tool.keeps is not None:
        return given.get(tool.keeps, FROM_TOOL)
    parts = [origin for name, origin in given.items() if not _is_option(tool, name)]
    return Origin(pieces=frozenset[Any]().union(*(each.leaves() | each.pieces for each in parts)))


def _is_option(tool: Tool, name: str) -> bool:
    """Whether an argument says how a tool works and is no part of its result: a column, or one of a few plain words."""
    argument = tool.argument(name)
    if argument is None:
        return False
    # A choice of addresses or paths would be a part of the result all the same.
    plain = isinstance(argument.type, LiteralType) and all(str(value).isalpha() for value in argument.type.values)
    return bool(argument.field_of) or plain


def _leaves(value: Any) -> Iterator[Any]:
    match value:
        case dict():
            for key, each in cast("dict[Any, Any]", value).items():
                yield from _leaves(key)
                yield from _leaves(each)
        case list() | tuple() | set() | frozenset():
            for each in cast("list[Any]", value):
                yield from _leaves(each)
        case None | bool():
            return
        case _:
            yield value


def either(one: Origin, other: Origin) -> Origin:
    if one == other:
        return one
    if one.values is not None and other.values is not None:
        merged = _distinct((*one.values, *other.values))
        if merged is not None:
            return Origin(merged, lost=one.lost or other.lost)
    return Origin(None, one.leaves() | other.leaves(), one.pieces | other.pieces, one.lost or other.lost)


def _distinct(values: tuple[Any, ...]) -> tuple[Any, ...] | None:
    found = list({repr(value): value for value in values}.values())
    return tuple(found) if len(found) <= MAX_ALTERNATIVES else None


def item_of(over: Origin) -> Origin:
    if over.values is None:
        return over
    items = [item for value in over.values for item in _items(value)]
    kept = _distinct(tuple(items))
    # A turn with several names takes an item apart: each of them may be any part.
    parts = tuple(leaf for item in items for leaf in _leaves(item))
    return (
        Origin(kept, frozenset(), frozenset())
        if kept is not None and parts == tuple(items)
        else Origin(whole=over.leaves())
    )


def _items(value: Any) -> Iterator[Any]:
    """What a loop over a value visits."""
    if isinstance(value, list | tuple):
        yield from cast("list[Any]", value)
    else:
        yield from _leaves(value)


def after_update(step: Update, env: Origins) -> Origin:
    now, value = env.get(step.name, FROM_TOOL), origin_of(step.value, env)
    if step.op != "add":
        key = origin_of(step.key, env) if step.key is not None else FROM_TOOL
        return Origin(
            None, now.leaves() | value.leaves() | key.leaves(), now.pieces | value.pieces, now.lost or value.lost
        )
    if now.values is not None and value.values is not None and len(now.values) * len(value.values) <= MAX_ALTERNATIVES:
        try:
            return Origin(_distinct(tuple(a + b for a, b in product(now.values, value.values))), lost=now.lost)
        except TypeError:
            pass
    return _joined_origin([now, value])


def _joined_origin(parts: list[Origin]) -> Origin:
    """The origin of a new value made of several: their constants are pieces of it, and no longer whole."""
    constants = frozenset[Any]().union(*(each.leaves() | each.pieces for each in parts))
    lost = any(each.lost for each in parts) or all(each.values is not None for each in parts)
    return Origin(pieces=constants, lost=lost and bool(constants))


class ReferenceWords(str):
    """The words of a reference: what they are bound to comes from the world, but the words must be the request's."""

    __slots__ = ()


def _has_reference(expr: Any) -> bool:
    return isinstance(expr, Reference) or any(map(_has_reference, children(expr)))


def origin_of(expr: Any, env: Origins) -> Origin:
    if isinstance(expr, Reference):
        return Origin(whole=frozenset({ReferenceWords(expr.words)}))
    names = free_names(expr)
    known = {name: env[name].values for name in names if name in env}
    if len(known) == len(names) and all(values is not None for values in known.values()) and not _has_reference(expr):
        return _evaluate(expr, {name: values for name, values in known.items() if values is not None})
    match expr:
        case Ref(name=name):
            return env.get(name, FROM_TOOL)
        case Get(value=value) | Index(value=value):
            # The key only selects.
            return origin_of(value, env)
        case Slice(value=value):
            found = origin_of(value, env)
            return Origin(None, frozenset(), found.leaves() | found.pieces, found.lost)
        case Compare() | Lambda():
            return FROM_TOOL
        case Choose(then=then, otherwise=otherwise):
            return either(origin_of(then, env), origin_of(otherwise, env))
        case Comprehension(clauses=clauses, element=element, key=key):
            inner = dict(env)
            for clause in clauses:
                inner.update(dict.fromkeys(clause.names, item_of(origin_of(clause.over, inner))))
            parts = [origin_of(each, inner) for each in (key, element) if each is not None]
            return reduce(either, parts)
        case Apply(function="cell_matches", args=args):
            return _joined_origin([origin_of(each, env) for each in (*args[:1], *args[2:3])])
        case Apply(function="round" | "cell_value" | "cell_values" | "cell_order", args=args):
            # The number of digits, and the notation of a column, are no part of the value.
            return _joined_origin([origin_of(each, env) for each in args[:1]])
        case Apply(function=function, args=args) if function in ("get", "first", "last", "sorted", "unique", "list"):
            kept = [*args[:1], *(args[2:] if function == "get" else ())]
            return reduce(either, [origin_of(each, env) for each in kept], FROM_TOOL)
        case Format(parts=parts):
            given = [Origin((part,)) if isinstance(part, str) else origin_of(part.value, env) for part in parts]
            return _joined_origin(given)
        case _ if expr.kind in ("list", "tuple", "dict", "logic"):
            return reduce(either, [origin_of(each, env) for each in children(expr)], FROM_TOOL)
        case _:
            return _joined_origin([origin_of(each, env) for each in children(expr)])


def _evaluate(expr: Any, known: Mapping[str, tuple[Any, ...]]) -> Origin:
    """The values of an expression of constants, for each choice of the values of its variables."""
    count = reduce(lambda total, values: total * len(values), known.values(), 1)
    if isinstance(expr, Lambda):
        return FROM_TOOL
    if count <= MAX_ALTERNATIVES:
        try:
            made = [evaluate_expr(expr, dict(zip(known, each, strict=True))) for each in product(*known.values())]
            return Origin(_distinct(tuple(made)))
        except (EvaluationError, ValueError, TypeError, KeyError, OverflowError):
            pass
    return Origin(
        pieces=frozenset(leaf for values in known.values() for each in values for leaf in _leaves(each)), lost=True
    )
