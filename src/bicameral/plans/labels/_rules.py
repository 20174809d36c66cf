"""Label rules: the labels of what an expression node or a library function gives, from the labels of its parts.

Each rule keeps as many parts apart as the operation itself does. A function without a rule of its own joins all that it
is given. Every rule is monotone: from labels that cover others it computes labels that cover what it computes from the
others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any

from bicameral import labels as lb
from bicameral.plans._expressions import Apply, Compare, Const, Format, Lambda, Negative, Not
from bicameral.plans.evaluate._library import FUNCTIONS
from bicameral.plans.evaluate._operations import bind_arguments

LabelEnv = Mapping[str, lb.LabelTree]
LabelCode = Callable[[LabelEnv], lb.LabelTree]


def label_of_taken_part(part: lb.LabelTree, whole: lb.LabelTree, strict: bool) -> lb.LabelTree:
    """A part taken out of a list: where control flow counts, how many and which there are decides what it is."""
    return lb.taint(part, whole.own) if strict else part


def label_of_membership(container: lb.LabelTree, value: lb.LabelTree) -> lb.Label:
    """The label of `value in container`: in a dict one looks at its keys, in anything else at all of it."""
    match container:
        case lb.RecordLabels():
            return lb.join(value.flat, container.own)
        case lb.EitherLabels():
            return lb.join(value.flat, lb.join(container.as_list.flat, container.as_record.own))
        case _:
            return lb.join(value.flat, container.flat)


@dataclass(frozen=True, slots=True)
class _CallLabels:
    """The labels of the arguments of a call, by parameter."""

    labels: Mapping[str, lb.LabelTree]
    variadic_labels: tuple[lb.LabelTree, ...]
    constants: Mapping[str, object]
    lambdas: Mapping[str, Callable[[lb.LabelTree], lb.LabelTree]]
    strict: bool

    def __getitem__(self, name: str) -> lb.LabelTree:
        return self.labels[name]

    def get(self, name: str) -> lb.LabelTree:
        """The labels of an argument; NOTHING if it is not given."""
        return self.labels.get(name, lb.NOTHING)

    def with_default(self, found: lb.LabelTree) -> lb.LabelTree:
        """What was found, or the default that is given."""
        if "default" in self.constants:
            return lb.taint(found, lb.TRUSTED_USER)
        return lb.join_trees(found, self.get("default"))

    def key_label(self, item: lb.LabelTree) -> lb.Label:
        """The label of what items are ordered or grouped by."""
        if "key" in self.lambdas:
            return self.lambdas["key"](item).flat
        if "key" not in self.labels:
            return item.flat
        field = self.constants.get("key")
        found = item.field(field) if isinstance(field, str) else item
        return lb.join(found.flat, self["key"].flat)

    def deciding_label(self, *labels: lb.Label) -> lb.Label:
        """The join of labels that decide, where that counts."""
        return lb.join_all(labels) if self.strict else lb.NOTHING


_LabelRule = Callable[[_CallLabels], lb.LabelTree]


def compile_call_labels(expr: Apply, codes: Sequence[LabelCode], *, strict: bool) -> LabelCode:
    """The labels of a call, given the code of each argument (positional, then named; of a lambda that of its body)."""
    arguments = (*expr.args, *(value for _, value in expr.named))
    function = FUNCTIONS.get(expr.function)
    shapes = (bind_arguments(signature, expr) for signature in function.signatures) if function is not None else ()
    bound = next((found for found in shapes if found is not None), None)
    if bound is None:
        # Its value is an error. Whoever looks at its labels all the same gets the worst.
        return lambda env: lb.UNKNOWN
    rule = _FUNCTION_RULES.get(expr.function)
    if rule is None:
        return _join_codes(codes)
    named = [
        (parameter.name, parameter.variadic, argument, code)
        for parameter, argument, code in zip(bound, arguments, codes, strict=True)
    ]
    constants = {name: argument.value for name, _, argument, _ in named if isinstance(argument, Const)}

    def run(env: LabelEnv) -> lb.LabelTree:
        labels: dict[str, lb.LabelTree] = {}
        rest: list[lb.LabelTree] = []
        lambdas: dict[str, Callable[[lb.LabelTree], lb.LabelTree]] = {}
        for name, many, argument, code in named:
            if isinstance(argument, Lambda):
                lambdas[name] = _lambda_labels(argument, code, env)
            elif many:
                rest.append(code(env))
            else:
                labels[name] = code(env)
        return rule(_CallLabels(labels, tuple(rest), constants, lambdas, strict))

    return run


def _lambda_labels(function: Lambda, body: LabelCode, env: LabelEnv) -> Callable[[lb.LabelTree], lb.LabelTree]:
    return lambda item: body({**env, **dict.fromkeys(function.names, item)})


def _join_codes(codes: Sequence[LabelCode]) -> LabelCode:
    if not codes:
        return lambda env: lb.TRUSTED_USER
    return lambda env: lb.join_all(code(env).flat for code in codes)


# Rules: each keeps as many parts apart as the function itself does --------------------------------------------------


def _len_labels(given: _CallLabels) -> lb.LabelTree:
    return given["xs"].own


def _bool_labels(given: _CallLabels) -> lb.LabelTree:
    return given["x"].own


def _any_all_labels(given: _CallLabels) -> lb.LabelTree:
    return lb.join(given["xs"].own, given["xs"].item.own)


def _list_labels(given: _CallLabels) -> lb.LabelTree:
    if "xs" not in given.labels:
        return lb.ListLabels(lb.TRUSTED_USER, places=())
    xs = given["xs"]
    places = xs.places if isinstance(xs, lb.ListLabels) else None
    return lb.ListLabels(xs.own, xs.item, places)


def _reversed_labels(given: _CallLabels) -> lb.LabelTree:
    xs = given["xs"]
    places = xs.places if isinstance(xs, lb.ListLabels) else None
    return lb.ListLabels(xs.own, xs.item, None if places is None else places[::-1])


def _unique_labels(given: _CallLabels) -> lb.LabelTree:
    if "xs" not in given.labels:
        return lb.ListLabels(lb.TRUSTED_USER, places=())
    xs = given["xs"]
    return lb.ListLabels(lb.join(xs.own, given.deciding_label(xs.item.flat)), xs.item)


def _pair_labels(own: lb.Label, *places: lb.LabelTree) -> lb.LabelTree:
    return lb.ListLabels(own, lb.ListLabels(own, places=places))


def _enumerate_labels(given: _CallLabels) -> lb.LabelTree:
    xs = given["xs"]
    return _pair_labels(xs.own, lb.join(xs.own, given.get("start").flat), xs.item)


def _zip_labels(given: _CallLabels) -> lb.LabelTree:
    own = lb.join_all(each.own for each in given.variadic_labels) if given.variadic_labels else lb.TRUSTED_USER
    return _pair_labels(own, *(each.item for each in given.variadic_labels))


def _flatten_labels(given: _CallLabels) -> lb.LabelTree:
    lists = given["xs"].item
    return lb.ListLabels(lb.join(given["xs"].own, lists.own), lists.item)


def _first_last_labels(given: _CallLabels) -> lb.LabelTree:
    xs = given["xs"]
    return lb.taint(given.with_default(xs.item), given.deciding_label(xs.own))


def _get_labels(given: _CallLabels) -> lb.LabelTree:
    entries, key = given["entries"], given.constants.get("key")
    found = entries.field(key) if isinstance(key, str) else entries.values
    found = lb.taint(given.with_default(found), given.deciding_label(entries.own))
    return lb.taint(found, given["key"].flat)


def _keys_labels(given: _CallLabels) -> lb.LabelTree:
    own = given["entries"].own
    return lb.ListLabels(own, own)


def _values_labels(given: _CallLabels) -> lb.LabelTree:
    return lb.ListLabels(given["entries"].own, given["entries"].values)


def _items_labels(given: _CallLabels) -> lb.LabelTree:
    entries = given["entries"]
    return _pair_labels(entries.own, entries.own, entries.values)


def _dict_labels(given: _CallLabels) -> lb.LabelTree:
    # One argument may mean a dict or a list of pairs; only the value knows.
    labels = list(given.labels.values())
    if not labels:
        return lb.RecordLabels(lb.TRUSTED_USER, {})
    whole, found = labels[0], [record for tree in labels if (record := lb.as_record(tree)) is not None]
    pairs = lb.as_list(whole)
    if pairs is not None:
        key, value = pairs.item.place(0), pairs.item.place(1)
        own = lb.join(lb.join(pairs.own, pairs.item.own), key.flat)
        found.append(lb.RecordLabels(own, {}, lb.taint(value, own) if given.strict else value))
    if not found:
        return lb.RecordLabels(whole.flat, {}, whole.flat)
    return found[0] if len(found) == 1 else lb.join_trees(found[0], found[1])


def _sorted_labels(given: _CallLabels) -> lb.LabelTree:
    xs = given["xs"]
    order = given.deciding_label(given.key_label(xs.item), given.get("reverse").flat)
    return lb.ListLabels(lb.join(xs.own, order), xs.item)


def _min_max_labels(given: _CallLabels) -> lb.LabelTree:
    if "xs" not in given.labels:
        values = (given["value"], *given.variadic_labels)
        found: lb.LabelTree = lb.NOTHING
        for value in values:
            found = lb.join_trees(found, value)
        return lb.taint(found, given.deciding_label(*(value.flat for value in values)))
    xs = given["xs"]
    return lb.taint(given.with_default(xs.item), given.deciding_label(xs.own, given.key_label(xs.item)))


def _count_by_labels(given: _CallLabels) -> lb.LabelTree:
    return lb.join(given["xs"].own, given.key_label(given["xs"].item))


def _group_by_labels(given: _CallLabels) -> lb.LabelTree:
    xs = given["xs"]
    key = given.key_label(xs.item)
    return lb.RecordLabels(lb.join(xs.own, key), {}, lb.ListLabels(lb.join(xs.own, given.deciding_label(key)), xs.item))


def _contains_labels(given: _CallLabels) -> lb.LabelTree:
    if "xs" in given.labels:
        return label_of_membership(given["xs"], given["value"])
    # Written like a test of texts, but what stands first may be a list or dict all the same.
    return label_of_membership(given["text"], given["part"])


_FUNCTION_RULES: Mapping[str, _LabelRule] = {
    "len": _len_labels,
    "bool": _bool_labels,
    "any": _any_all_labels,
    "all": _any_all_labels,
    "list": _list_labels,
    "tuple": _list_labels,
    "unique": _unique_labels,
    "set": _unique_labels,
    "reversed": _reversed_labels,
    "enumerate": _enumerate_labels,
    "zip": _zip_labels,
    "flatten": _flatten_labels,
    "first": _first_last_labels,
    "last": _first_last_labels,
    "get": _get_labels,
    "keys": _keys_labels,
    "values": _values_labels,
    "items": _items_labels,
    "dict": _dict_labels,
    "sorted": _sorted_labels,
    "min": _min_max_labels,
    "max": _min_max_labels,
    "count_by": _count_by_labels,
    "group_by": _group_by_labels,
    "contains": _contains_labels,
}


MAX_PLACES = 16
"""A longer list has one label tree for all its items."""


def literal_labels(env: LabelEnv) -> lb.LabelTree:
    return lb.TRUSTED_USER


def unknown_labels(env: LabelEnv) -> lb.LabelTree:
    return lb.UNKNOWN


def ref_labels(name: str) -> LabelCode:
    return lambda env: env.get(name, lb.UNKNOWN)


def field_labels(value: LabelCode, field: str) -> LabelCode:
    return lambda env: value(env).field(field)


def place_labels(value: LabelCode, at: int, strict: bool) -> LabelCode:
    def run(env: LabelEnv) -> lb.LabelTree:
        whole = value(env)
        return label_of_taken_part(whole.place(at), whole, strict)

    return run


def index_labels(value: LabelCode, at: LabelCode, strict: bool) -> LabelCode:
    def run(env: LabelEnv) -> lb.LabelTree:
        return lb.taint(_any_part_labels(value(env), strict), at(env).flat)

    return run


def _any_part_labels(whole: lb.LabelTree, strict: bool) -> lb.LabelTree:
    """What stands at a place or under a key that is not known before the run."""
    match whole:
        case lb.Label():
            return whole
        case lb.ListLabels():
            return label_of_taken_part(whole.item, whole, strict)
        case lb.RecordLabels():
            return whole.values
        case lb.EitherLabels():
            return lb.join_trees(label_of_taken_part(whole.as_list.item, whole.as_list, strict), whole.as_record.values)


def slice_labels(value: LabelCode, bounds: list[LabelCode]) -> LabelCode:
    def run(env: LabelEnv) -> lb.LabelTree:
        return lb.taint(_some_items_labels(value(env)), lb.join_all(bound(env).flat for bound in bounds))

    return run


def _some_items_labels(whole: lb.LabelTree) -> lb.LabelTree:
    """Some of its items, at other places. Of what may be a list or a text, a part may be either too."""
    match whole:
        case lb.ListLabels():
            return lb.ListLabels(whole.own, whole.item)
        case lb.EitherLabels():
            return lb.EitherLabels(lb.ListLabels(whole.as_list.own, whole.as_list.item), whole.as_record)
        case _:
            return whole.flat


def list_node_labels(items: list[LabelCode]) -> LabelCode:
    def run(env: LabelEnv) -> lb.LabelTree:
        places = [item(env) for item in items]
        if len(places) <= MAX_PLACES:
            return lb.ListLabels(lb.TRUSTED_USER, places=places)
        return lb.ListLabels(lb.TRUSTED_USER, reduce(lb.join_trees, places))

    return run


def dict_node_labels(entries: list[tuple[Any, LabelCode, LabelCode]], strict: bool) -> LabelCode:
    def run(env: LabelEnv) -> lb.LabelTree:
        own: lb.Label = lb.TRUSTED_USER
        fields: dict[str, lb.LabelTree] = {}
        rest: lb.LabelTree = lb.NOTHING
        for key, key_code, value_code in entries:
            value = value_code(env)
            if isinstance(key, Const) and isinstance(key.value, str):
                fields[key.value] = value
                continue
            named = key_code(env).flat
            own = lb.join(own, named)
            rest = lb.join_trees(rest, lb.taint(value, named) if strict else value)
        # A key that is not known before the run may be any of those that are.
        return lb.RecordLabels(own, {name: lb.join_trees(value, rest) for name, value in fields.items()}, rest)

    return run


def arithmetic_labels(op: str, left: LabelCode, right: LabelCode) -> LabelCode:
    joined = {"+": sum_labels, "*": _product_labels}.get(op, _joined_label)
    return lambda env: joined(left(env), right(env))


def sum_labels(left: lb.LabelTree, right: lb.LabelTree) -> lb.LabelTree:
    """`left + right`: of lists the items of both, of anything else what is made of both."""
    if lb.as_list(left) is None and lb.as_list(right) is None:
        return lb.join(left.flat, right.flat)
    first, second = lb.as_list(left) or left.flat, lb.as_list(right) or right.flat
    items = lb.ListLabels(lb.join(first.own, second.own), lb.join_trees(first.item, second.item))
    either = lb.join_trees(left, right)
    if not isinstance(either, lb.EitherLabels) or isinstance(left, lb.ListLabels) or isinstance(right, lb.ListLabels):
        return items
    return lb.EitherLabels(items, either.as_record)


def _product_labels(left: lb.LabelTree, right: lb.LabelTree) -> lb.LabelTree:
    several = [tree for tree in (left, right) if isinstance(tree, lb.ListLabels)]
    several = several or [tree for tree in (left, right) if isinstance(tree, lb.EitherLabels)]
    if not several:
        return lb.join(left.flat, right.flat)
    return lb.taint(_some_items_labels(several[0]), (right if several[0] is left else left).flat)


def _joined_label(left: lb.LabelTree, right: lb.LabelTree) -> lb.LabelTree:
    return lb.join(left.flat, right.flat)


def flat_labels(items: Sequence[LabelCode]) -> LabelCode:
    return lambda env: lb.join_all(item(env).flat for item in items)


def own_labels(value: LabelCode) -> LabelCode:
    return lambda env: value(env).own


Alternative = tuple[LabelCode, bool]
"""One of several values that an expression may have, and whether it is a scalar for sure."""


def is_scalar_expr(expr: Any) -> bool:
    """Whether an expression can have no parts, so that what it comes together with keeps its kind."""
    return isinstance(expr, Const | Format | Compare | Not | Negative)


def _join_alternatives(ways: Sequence[tuple[lb.LabelTree, bool]]) -> lb.LabelTree:
    found: lb.LabelTree = lb.NOTHING
    scalars: lb.Label = lb.NOTHING
    for tree, scalar in ways:
        if scalar:
            scalars = lb.join(scalars, tree.flat)
        else:
            found = lb.join_trees(found, tree)
    return lb.taint(found, scalars)


def logic_labels(ways: list[Alternative]) -> LabelCode:
    def run(env: LabelEnv) -> lb.LabelTree:
        found = [(code(env), scalar) for code, scalar in ways]
        return lb.taint(_join_alternatives(found), lb.join_all(tree.own for tree, _ in found[:-1]))

    return run


def comparison_labels(ops: Sequence[str], operands: list[tuple[Any, LabelCode]]) -> LabelCode:
    nones = [expr == Const(value=None) for expr, _ in operands]

    def run(env: LabelEnv) -> lb.LabelTree:
        labels = [code(env) for _, code in operands]
        pairs = zip(ops, pairwise(labels), pairwise(nones), strict=True)
        return lb.join_all(_pair_comparison_label(op, *both, none) for op, both, none in pairs)

    return run


def _pair_comparison_label(op: str, left: lb.LabelTree, right: lb.LabelTree, is_none: tuple[bool, bool]) -> lb.Label:
    if op in ("==", "!=") and any(is_none):
        # Whether a value is there at all does not depend on what is in it.
        return left.own if is_none[1] else right.own
    if op in ("in", "not in"):
        return label_of_membership(right, left)
    return lb.join(left.flat, right.flat)


def choose_labels(condition: LabelCode, ways: list[Alternative]) -> LabelCode:
    return lambda env: lb.taint(_join_alternatives([(code(env), scalar) for code, scalar in ways]), condition(env).own)


ClauseLabels = list[tuple[tuple[str, ...], LabelCode, list[LabelCode]]]


def comprehension_labels(element: LabelCode, key: LabelCode | None, clauses: ClauseLabels, strict: bool) -> LabelCode:
    def run(env: LabelEnv) -> lb.LabelTree:
        inner = dict(env)
        own: lb.Label = lb.NOTHING
        for names, over, conditions in clauses:
            whole = over(inner)
            own = lb.join(own, whole.own)
            inner.update(unpack_labels(names, whole.item, strict))
            for condition in conditions:
                decided = condition(inner).own
                own = lb.join(own, decided) if strict else own
        found = element(inner)
        if key is None:
            return lb.ListLabels(own, found)
        own = lb.join(own, key(inner).flat)
        return lb.RecordLabels(own, {}, lb.taint(found, own) if strict else found)

    return run


def unpack_labels(names: Sequence[str], item: lb.LabelTree, strict: bool) -> Mapping[str, lb.LabelTree]:
    """The labels of the names of a `for`, from those of an item."""
    if len(names) == 1:
        return {names[0]: item}
    return {name: label_of_taken_part(item.place(at), item, strict) for at, name in enumerate(names)}
