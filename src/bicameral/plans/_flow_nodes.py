"""Shades of each kind of expression, from the codes of the expressions inside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any

from bicameral.labels import (
    NOTHING,
    TRUSTED_USER,
    UNKNOWN,
    EitherShade,
    Label,
    ListShade,
    RecordShade,
    Shade,
    as_list,
    join,
    join_all,
    join_shades,
    tainted,
)

from ._expressions import Compare, Const, Format, Negative, Not
from ._flow_calls import ShadeCode, ShadeEnv, membership, taken

MOST_PLACES = 16
"""A longer list has one shade for all its items."""


def of_literal(env: ShadeEnv) -> Shade:
    return TRUSTED_USER


def of_unknown(env: ShadeEnv) -> Shade:
    return UNKNOWN


def of_ref(name: str) -> ShadeCode:
    return lambda env: env.get(name, UNKNOWN)


def of_get(value: ShadeCode, field: str) -> ShadeCode:
    return lambda env: value(env).field(field)


def of_place(value: ShadeCode, at: int, strict: bool) -> ShadeCode:
    def run(env: ShadeEnv) -> Shade:
        whole = value(env)
        return taken(whole.place(at), whole, strict)

    return run


def of_index(value: ShadeCode, at: ShadeCode, strict: bool) -> ShadeCode:
    def run(env: ShadeEnv) -> Shade:
        return tainted(_any_inside(value(env), strict), at(env).flat)

    return run


def _any_inside(whole: Shade, strict: bool) -> Shade:
    """What stands at a place or under a key that is not known before the run."""
    match whole:
        case Label():
            return whole
        case ListShade():
            return taken(whole.item, whole, strict)
        case RecordShade():
            return whole.values
        case EitherShade():
            return join_shades(taken(whole.as_list.item, whole.as_list, strict), whole.as_record.values)


def of_slice(value: ShadeCode, bounds: list[ShadeCode]) -> ShadeCode:
    def run(env: ShadeEnv) -> Shade:
        return tainted(_some_items(value(env)), join_all(bound(env).flat for bound in bounds))

    return run


def _some_items(whole: Shade) -> Shade:
    """Some of its items, at other places. Of what may be a list or a text, a part may be either too."""
    match whole:
        case ListShade():
            return ListShade(whole.own, whole.item)
        case EitherShade():
            return EitherShade(ListShade(whole.as_list.own, whole.as_list.item), whole.as_record)
        case _:
            return whole.flat


def of_list(items: list[ShadeCode]) -> ShadeCode:
    def run(env: ShadeEnv) -> Shade:
        places = [item(env) for item in items]
        if len(places) <= MOST_PLACES:
            return ListShade(TRUSTED_USER, places=places)
        return ListShade(TRUSTED_USER, reduce(join_shades, places))

    return run


def of_dict(entries: list[tuple[Any, ShadeCode, ShadeCode]], strict: bool) -> ShadeCode:
    def run(env: ShadeEnv) -> Shade:
        own: Label = TRUSTED_USER
        fields: dict[str, Shade] = {}
        rest: Shade = NOTHING
        for key, key_code, value_code in entries:
            value = value_code(env)
            if isinstance(key, Const) and isinstance(key.value, str):
                fields[key.value] = value
                continue
            named = key_code(env).flat
            own = join(own, named)
            rest = join_shades(rest, tainted(value, named) if strict else value)
        # A key that is not known before the run may be any of those that are.
        return RecordShade(own, {name: join_shades(value, rest) for name, value in fields.items()}, rest)

    return run


def of_arithmetic(op: str, left: ShadeCode, right: ShadeCode) -> ShadeCode:
    joined = {"+": plus, "*": _times}.get(op, _neither)
    return lambda env: joined(left(env), right(env))


def plus(left: Shade, right: Shade) -> Shade:
    """`left + right`: of lists the items of both, of anything else what is made of both."""
    if as_list(left) is None and as_list(right) is None:
        return join(left.flat, right.flat)
    first, second = as_list(left) or left.flat, as_list(right) or right.flat
    items = ListShade(join(first.own, second.own), join_shades(first.item, second.item))
    either = join_shades(left, right)
    if not isinstance(either, EitherShade) or isinstance(left, ListShade) or isinstance(right, ListShade):
        return items
    return EitherShade(items, either.as_record)


def _times(left: Shade, right: Shade) -> Shade:
    several = [shade for shade in (left, right) if isinstance(shade, ListShade)]
    several = several or [shade for shade in (left, right) if isinstance(shade, EitherShade)]
    if not several:
        return join(left.flat, right.flat)
    return tainted(_some_items(several[0]), (right if several[0] is left else left).flat)


def _neither(left: Shade, right: Shade) -> Shade:
    return join(left.flat, right.flat)


def of_flat(items: Sequence[ShadeCode]) -> ShadeCode:
    return lambda env: join_all(item(env).flat for item in items)


def of_own(value: ShadeCode) -> ShadeCode:
    return lambda env: value(env).own


Way = tuple[ShadeCode, bool]
"""One of several values that an expression may have, and whether it is a scalar for sure."""


def is_scalar(expr: Any) -> bool:
    """Whether an expression can have no parts, so that what it comes together with keeps its kind."""
    return isinstance(expr, Const | Format | Compare | Not | Negative)


def _one_of(ways: Sequence[tuple[Shade, bool]]) -> Shade:
    found: Shade = NOTHING
    scalars: Label = NOTHING
    for shade, scalar in ways:
        if scalar:
            scalars = join(scalars, shade.flat)
        else:
            found = join_shades(found, shade)
    return tainted(found, scalars)


def of_logic(ways: list[Way]) -> ShadeCode:
    def run(env: ShadeEnv) -> Shade:
        found = [(code(env), scalar) for code, scalar in ways]
        return tainted(_one_of(found), join_all(shade.own for shade, _ in found[:-1]))

    return run


def of_comparison(ops: Sequence[str], operands: list[tuple[Any, ShadeCode]]) -> ShadeCode:
    nones = [expr == Const(value=None) for expr, _ in operands]

    def run(env: ShadeEnv) -> Shade:
        shades = [code(env) for _, code in operands]
        pairs = zip(ops, pairwise(shades), pairwise(nones), strict=True)
        return join_all(_compared(op, *both, none) for op, both, none in pairs)

    return run


def _compared(op: str, left: Shade, right: Shade, is_none: tuple[bool, bool]) -> Label:
    if op in ("==", "!=") and any(is_none):
        # Whether a value is there at all does not depend on what is in it.
        return left.own if is_none[1] else right.own
    if op in ("in", "not in"):
        return membership(right, left)
    return join(left.flat, right.flat)


def of_choose(condition: ShadeCode, ways: list[Way]) -> ShadeCode:
    return lambda env: tainted(_one_of([(code(env), scalar) for code, scalar in ways]), condition(env).own)


Clauses = list[tuple[tuple[str, ...], ShadeCode, list[ShadeCode]]]


def of_comprehension(element: ShadeCode, key: ShadeCode | None, clauses: Clauses, strict: bool) -> ShadeCode:
    def run(env: ShadeEnv) -> Shade:
        inner = dict(env)
        own: Label = NOTHING
        for names, over, conditions in clauses:
            whole = over(inner)
            own = join(own, whole.own)
            inner.update(unpacked_shades(names, whole.item, strict))
            for condition in conditions:
                decided = condition(inner).own
                own = join(own, decided) if strict else own
        found = element(inner)
        if key is None:
            return ListShade(own, found)
        own = join(own, key(inner).flat)
        return RecordShade(own, {}, tainted(found, own) if strict else found)

    return run


def unpacked_shades(names: Sequence[str], item: Shade, strict: bool) -> Mapping[str, Shade]:
    """The shades of the names of a `for`, from that of an item."""
    if len(names) == 1:
        return {names[0]: item}
    return {name: taken(item.place(at), item, strict) for at, name in enumerate(names)}
