"""Shades of what library functions give. A function without a rule of its own joins all that it is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

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
    as_record,
    join,
    join_all,
    join_shades,
    tainted,
)

from ._calls import shape
from ._expressions import Apply, Const, Lambda
from ._library import FUNCTIONS

ShadeEnv = Mapping[str, Shade]
ShadeCode = Callable[[ShadeEnv], Shade]


def taken(part: Shade, whole: Shade, strict: bool) -> Shade:
    """A part taken out of a list: where control flow counts, how many and which there are decides what it is."""
    return tainted(part, whole.own) if strict else part


def membership(container: Shade, value: Shade) -> Label:
    """The label of `value in container`: in a dict one looks at its keys, in anything else at all of it."""
    match container:
        case RecordShade():
            return join(value.flat, container.own)
        case EitherShade():
            return join(value.flat, join(container.as_list.flat, container.as_record.own))
        case _:
            return join(value.flat, container.flat)


@dataclass(frozen=True, slots=True)
class _Given:
    """The shades that a call is given, by parameter."""

    shades: Mapping[str, Shade]
    rest: tuple[Shade, ...]
    constants: Mapping[str, object]
    lambdas: Mapping[str, Callable[[Shade], Shade]]
    strict: bool

    def __getitem__(self, name: str) -> Shade:
        return self.shades[name]

    def get(self, name: str) -> Shade:
        """The shade of an argument; NOTHING if it is not given."""
        return self.shades.get(name, NOTHING)

    def or_default(self, found: Shade) -> Shade:
        """What was found, or the default that is given."""
        if "default" in self.constants:
            return tainted(found, TRUSTED_USER)
        return join_shades(found, self.get("default"))

    def key_of(self, item: Shade) -> Label:
        """The label of what items are ordered or grouped by."""
        if "key" in self.lambdas:
            return self.lambdas["key"](item).flat
        if "key" not in self.shades:
            return item.flat
        field = self.constants.get("key")
        found = item.field(field) if isinstance(field, str) else item
        return join(found.flat, self["key"].flat)

    def deciding(self, *labels: Label) -> Label:
        """The join of labels that decide, where that counts."""
        return join_all(labels) if self.strict else NOTHING


_Rule = Callable[[_Given], Shade]


def call_shade(expr: Apply, codes: Sequence[ShadeCode], *, strict: bool) -> ShadeCode:
    """The shade of a call, given the code of each argument (positional, then named; of a lambda that of its body)."""
    arguments = (*expr.args, *(value for _, value in expr.named))
    function = FUNCTIONS.get(expr.function)
    shapes = (shape(signature, expr) for signature in function.signatures) if function is not None else ()
    bound = next((found for found in shapes if found is not None), None)
    if bound is None:
        # Its value is an error. Whoever looks at its labels all the same gets the worst.
        return lambda env: UNKNOWN
    rule = _RULES.get(expr.function)
    if rule is None:
        return _flat(codes)
    named = [
        (parameter.name, parameter.many, argument, code)
        for parameter, argument, code in zip(bound, arguments, codes, strict=True)
    ]
    constants = {name: argument.value for name, _, argument, _ in named if isinstance(argument, Const)}

    def run(env: ShadeEnv) -> Shade:
        shades: dict[str, Shade] = {}
        rest: list[Shade] = []
        lambdas: dict[str, Callable[[Shade], Shade]] = {}
        for name, many, argument, code in named:
            if isinstance(argument, Lambda):
                lambdas[name] = _applied(argument, code, env)
            elif many:
                rest.append(code(env))
            else:
                shades[name] = code(env)
        return rule(_Given(shades, tuple(rest), constants, lambdas, strict))

    return run


def _applied(function: Lambda, body: ShadeCode, env: ShadeEnv) -> Callable[[Shade], Shade]:
    return lambda item: body({**env, **dict.fromkeys(function.names, item)})


def _flat(codes: Sequence[ShadeCode]) -> ShadeCode:
    if not codes:
        return lambda env: TRUSTED_USER
    return lambda env: join_all(code(env).flat for code in codes)


# Rules: each keeps as many parts apart as the function itself does --------------------------------------------------


def _length(given: _Given) -> Shade:
    return given["xs"].own


def _truth(given: _Given) -> Shade:
    return given["x"].own


def _truths(given: _Given) -> Shade:
    return join(given["xs"].own, given["xs"].item.own)


def _same_items(given: _Given) -> Shade:
    if "xs" not in given.shades:
        return ListShade(TRUSTED_USER, places=())
    xs = given["xs"]
    places = xs.places if isinstance(xs, ListShade) else None
    return ListShade(xs.own, xs.item, places)


def _reversed(given: _Given) -> Shade:
    xs = given["xs"]
    places = xs.places if isinstance(xs, ListShade) else None
    return ListShade(xs.own, xs.item, None if places is None else places[::-1])


def _unique(given: _Given) -> Shade:
    if "xs" not in given.shades:
        return ListShade(TRUSTED_USER, places=())
    xs = given["xs"]
    return ListShade(join(xs.own, given.deciding(xs.item.flat)), xs.item)


def _pairs(own: Label, *places: Shade) -> Shade:
    return ListShade(own, ListShade(own, places=places))


def _enumerate(given: _Given) -> Shade:
    xs = given["xs"]
    return _pairs(xs.own, join(xs.own, given.get("start").flat), xs.item)


def _zip(given: _Given) -> Shade:
    own = join_all(each.own for each in given.rest) if given.rest else TRUSTED_USER
    return _pairs(own, *(each.item for each in given.rest))


def _flatten(given: _Given) -> Shade:
    lists = given["xs"].item
    return ListShade(join(given["xs"].own, lists.own), lists.item)


def _one(given: _Given) -> Shade:
    xs = given["xs"]
    return tainted(given.or_default(xs.item), given.deciding(xs.own))


def _got(given: _Given) -> Shade:
    entries, key = given["entries"], given.constants.get("key")
    found = entries.field(key) if isinstance(key, str) else entries.values
    found = tainted(given.or_default(found), given.deciding(entries.own))
    return tainted(found, given["key"].flat)


def _keys(given: _Given) -> Shade:
    own = given["entries"].own
    return ListShade(own, own)


def _values(given: _Given) -> Shade:
    return ListShade(given["entries"].own, given["entries"].values)


def _items(given: _Given) -> Shade:
    entries = given["entries"]
    return _pairs(entries.own, entries.own, entries.values)


def _dict(given: _Given) -> Shade:
    # One argument may mean a dict or a list of pairs; only the value knows.
    shades = list(given.shades.values())
    if not shades:
        return RecordShade(TRUSTED_USER, {})
    whole, found = shades[0], [record for shade in shades if (record := as_record(shade)) is not None]
    pairs = as_list(whole)
    if pairs is not None:
        key, value = pairs.item.place(0), pairs.item.place(1)
        own = join(join(pairs.own, pairs.item.own), key.flat)
        found.append(RecordShade(own, {}, tainted(value, own) if given.strict else value))
    if not found:
        return RecordShade(whole.flat, {}, whole.flat)
    return found[0] if len(found) == 1 else join_shades(found[0], found[1])


def _sorted(given: _Given) -> Shade:
    xs = given["xs"]
    order = given.deciding(given.key_of(xs.item), given.get("reverse").flat)
    return ListShade(join(xs.own, order), xs.item)


def _extreme(given: _Given) -> Shade:
    if "xs" not in given.shades:
        values = (given["value"], *given.rest)
        found: Shade = NOTHING
        for value in values:
            found = join_shades(found, value)
        return tainted(found, given.deciding(*(value.flat for value in values)))
    xs = given["xs"]
    return tainted(given.or_default(xs.item), given.deciding(xs.own, given.key_of(xs.item)))


def _counted(given: _Given) -> Shade:
    return join(given["xs"].own, given.key_of(given["xs"].item))


def _grouped(given: _Given) -> Shade:
    xs = given["xs"]
    key = given.key_of(xs.item)
    return RecordShade(join(xs.own, key), {}, ListShade(join(xs.own, given.deciding(key)), xs.item))


def _contains(given: _Given) -> Shade:
    if "xs" in given.shades:
        return membership(given["xs"], given["value"])
    # Written like a test of texts, but what stands first may be a list or dict all the same.
    return membership(given["text"], given["part"])


_RULES: Mapping[str, _Rule] = {
    "len": _length,
    "bool": _truth,
    "any": _truths,
    "all": _truths,
    "list": _same_items,
    "tuple": _same_items,
    "unique": _unique,
    "set": _unique,
    "reversed": _reversed,
    "enumerate": _enumerate,
    "zip": _zip,
    "flatten": _flatten,
    "first": _one,
    "last": _one,
    "get": _got,
    "keys": _keys,
    "values": _values,
    "items": _items,
    "dict": _dict,
    "sorted": _sorted,
    "min": _extreme,
    "max": _extreme,
    "count_by": _counted,
    "group_by": _grouped,
    "contains": _contains,
}
