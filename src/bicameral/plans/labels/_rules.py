"""Label rules: the labels of the result of an expression node or a library function, from those of its parts.

Each rule keeps as many parts apart as the operation itself does. A function without a rule of its own joins the labels
of all its arguments. Every rule is monotone, as the proof needs: labels that cover others give labels that cover what
the others give.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any, ClassVar

from bicameral import labels as lb
from bicameral.plans import _expressions as ir
from bicameral.plans._type_rules import Parameter
from bicameral.plans.evaluate._closures import bind_arguments
from bicameral.plans.evaluate._library import FUNCTIONS

LabelEnv = Mapping[str, lb.LabelTree]
LabelCode = Callable[[LabelEnv], lb.LabelTree]
LambdaLabels = Callable[[lb.LabelTree], lb.LabelTree]


def label_of_taken_part(part: lb.LabelTree, whole: lb.LabelTree, strict: bool) -> lb.LabelTree:
    """The labels of an item of a list. In `strict` mode the list's own label counts: it decides which item it is."""
    return lb.taint(part, whole.own) if strict else part


def label_of_membership(container: lb.LabelTree, value: lb.LabelTree) -> lb.Label:
    """The label of `value in container`: of a dict only the keys are compared, of anything else all of it."""
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

    labels: dict[str, lb.LabelTree]
    variadic_labels: list[lb.LabelTree]
    constants: dict[str, object]
    lambdas: dict[str, LambdaLabels]
    """For each lambda that is given, the labels of what it returns for an item with these labels."""
    strict: bool

    def __getitem__(self, name: str) -> lb.LabelTree:
        return self.labels[name]

    def get(self, name: str) -> lb.LabelTree:
        """The labels of an argument; NOTHING if it is not given."""
        return self.labels.get(name, lb.NOTHING)

    def with_default(self, found: lb.LabelTree) -> lb.LabelTree:
        """The labels of what was found, joined with those of the default if one is given."""
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
        """The join of labels that decide about the result; NOTHING where control flow does not count."""
        return lb.join_all(labels) if self.strict else lb.NOTHING


_LabelRule = Callable[[_CallLabels], lb.LabelTree]


def call_labels(
    expr: ir.Apply, trees: Sequence[lb.LabelTree], result_of: Callable[[ir.Lambda], LambdaLabels], *, strict: bool
) -> lb.LabelTree:
    """The labels of a call, given those of each argument (positional, then named) and of what a lambda returns."""
    bound = _bound_parameters(expr)
    if bound is None:
        # The call is an error and has no value; its labels are the worst case.
        return lb.UNKNOWN
    rule = _FUNCTION_RULES.get(expr.function)
    if rule is None:
        return lb.join_all(tree.flat for tree in trees) if trees else lb.TRUSTED_USER
    given = _CallLabels({}, [], {}, {}, strict)
    for parameter, argument, tree in zip(bound, call_arguments(expr), trees, strict=True):
        if argument.kind == "lambda":
            given.lambdas[parameter.name] = result_of(argument)
        elif parameter.variadic:
            given.variadic_labels.append(tree)
        else:
            given.labels[parameter.name] = tree
        if argument.kind == "const":
            given.constants[parameter.name] = argument.value
    return rule(given)


@ir.memoize_by_identity
def _bound_parameters(expr: ir.Apply) -> tuple[Parameter, ...] | None:
    """The parameter of each argument, by the first signature that the call can mean."""
    function = FUNCTIONS.get(expr.function)
    shapes = (bind_arguments(signature, expr) for signature in function.signatures) if function is not None else ()
    return next((bound for bound in shapes if bound is not None), None)


def call_arguments(expr: ir.Apply) -> tuple[Any, ...]:
    return (*expr.args, *(value for _, value in expr.named)) if expr.named else expr.args


# Rules for library functions ----------------------------------------------------------------------------------------


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


def _items_labels(given: _CallLabels) -> lb.LabelTree:
    entries = given["entries"]
    return _pair_labels(entries.own, entries.own, entries.values)


def _dict_labels(given: _CallLabels) -> lb.LabelTree:
    # The argument may be a dict or a list of pairs; labels alone do not always tell which.
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


def _group_by_labels(given: _CallLabels) -> lb.LabelTree:
    xs = given["xs"]
    key = given.key_label(xs.item)
    return lb.RecordLabels(lb.join(xs.own, key), {}, lb.ListLabels(lb.join(xs.own, given.deciding_label(key)), xs.item))


def _contains_labels(given: _CallLabels) -> lb.LabelTree:
    if "xs" in given.labels:
        return label_of_membership(given["xs"], given["value"])
    # The call has the shape of a test of texts, but a container of unknown type may be a list or dict all the same.
    return label_of_membership(given["text"], given["part"])


_FUNCTION_RULES: Mapping[str, _LabelRule] = {
    "len": lambda given: given["xs"].own,
    "bool": lambda given: given["x"].own,
    **dict.fromkeys(("any", "all"), lambda given: lb.join(given["xs"].own, given["xs"].item.own)),
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
    "keys": lambda given: lb.ListLabels(given["entries"].own, given["entries"].own),
    "values": lambda given: lb.ListLabels(given["entries"].own, given["entries"].values),
    "items": _items_labels,
    "dict": _dict_labels,
    "sorted": _sorted_labels,
    "min": _min_max_labels,
    "max": _min_max_labels,
    "count_by": lambda given: lb.join(given["xs"].own, given.key_label(given["xs"].item)),
    "group_by": _group_by_labels,
    "contains": _contains_labels,
}


MAX_PLACES = 16
"""A longer list has one label tree for all its items."""


class ExpressionLabels:
    """Computes the labels of expressions from those of their variables.

    In `strict` mode what decides counts like what is used: the condition of a comprehension, the key of an order, how
    many items there are where one is taken.
    """

    literal: lb.Label = lb.TRUSTED_USER
    """The label of what is written in the plan."""
    unknown: lb.Label = lb.UNKNOWN
    """The worst case: for a variable without labels, and for what is nested too deep to have a value."""

    def __init__(self, *, strict: bool) -> None:
        self.strict = strict

    def labels_of(self, expr: Any, env: LabelEnv) -> lb.LabelTree:
        """The labels of an expression that is not nested too deep."""
        # By the word and not by the class: isinstance is slow for pydantic models.
        rule = self._rules.get(expr.kind)
        return self.unknown if rule is None else rule(self, expr, env)

    def _constant_labels(self, expr: ir.Const, env: LabelEnv) -> lb.LabelTree:
        return self.literal

    def _reference_labels(self, expr: ir.Reference, env: LabelEnv) -> lb.LabelTree:
        # Not a literal of the user: whoever named the candidates had a hand in it.
        return self.unknown if expr.bound is None else expr.bound.label_tree

    def _variable_labels(self, expr: ir.Ref, env: LabelEnv) -> lb.LabelTree:
        return env.get(expr.name, self.unknown)

    def _field_labels(self, expr: ir.Get, env: LabelEnv) -> lb.LabelTree:
        return self.labels_of(expr.value, env).field(expr.field)

    def _slice_labels(self, expr: ir.Slice, env: LabelEnv) -> lb.LabelTree:
        bounds = (self.labels_of(bound, env).flat for bound in (expr.start, expr.stop, expr.step) if bound is not None)
        return lb.taint(_some_items_labels(self.labels_of(expr.value, env)), lb.join_all(bounds))

    def _list_labels(self, expr: ir.ListOf | ir.TupleOf, env: LabelEnv) -> lb.LabelTree:
        places = [self.labels_of(item, env) for item in expr.items]
        if len(places) <= MAX_PLACES:
            return lb.ListLabels(self.literal, places=places)
        return lb.ListLabels(self.literal, reduce(lb.join_trees, places))

    def _arithmetic_labels(self, expr: ir.Arithmetic, env: LabelEnv) -> lb.LabelTree:
        left, right = self.labels_of(expr.left, env), self.labels_of(expr.right, env)
        if expr.op == "+":
            return sum_labels(left, right)
        return _product_labels(left, right) if expr.op == "*" else lb.join(left.flat, right.flat)

    def _negative_label(self, expr: ir.Negative, env: LabelEnv) -> lb.LabelTree:
        return self.labels_of(expr.value, env).flat

    def _negation_label(self, expr: ir.Not, env: LabelEnv) -> lb.LabelTree:
        return self.labels_of(expr.value, env).own

    def _logic_labels(self, expr: ir.Logic, env: LabelEnv) -> lb.LabelTree:
        trees = [self.labels_of(item, env) for item in expr.items]
        return lb.taint(_join_alternatives(expr.items, trees), lb.join_all(tree.own for tree in trees[:-1]))

    def _choice_labels(self, expr: ir.Choose, env: LabelEnv) -> lb.LabelTree:
        ways = (expr.then, expr.otherwise)
        either = _join_alternatives(ways, [self.labels_of(way, env) for way in ways])
        return lb.taint(either, self.labels_of(expr.condition, env).own)

    def _format_label(self, expr: ir.Format, env: LabelEnv) -> lb.LabelTree:
        return lb.join_all((self.literal, *(self.labels_of(value, env).flat for value in ir.children(expr))))

    def _index_labels(self, expr: ir.Index, env: LabelEnv) -> lb.LabelTree:
        whole, at = self.labels_of(expr.value, env), expr.at.value if expr.at.kind == "const" else None
        if isinstance(at, str):
            return whole.field(at)
        if isinstance(at, int):
            return label_of_taken_part(whole.place(int(at)), whole, self.strict)
        return lb.taint(any_part_labels(whole, self.strict), self.labels_of(expr.at, env).flat)

    def _dict_labels(self, expr: ir.DictOf, env: LabelEnv) -> lb.LabelTree:
        own = self.literal
        fields: dict[str, lb.LabelTree] = {}
        rest: lb.LabelTree = lb.NOTHING
        for key, value in expr.entries:
            tree = self.labels_of(value, env)
            if key.kind == "const" and isinstance(key.value, str):
                fields[key.value] = tree
                continue
            named = self.labels_of(key, env).flat
            own = lb.join(own, named)
            rest = lb.join_trees(rest, lb.taint(tree, named) if self.strict else tree)
        # A key that is not known before the run may be any of those that are.
        return lb.RecordLabels(own, {name: lb.join_trees(tree, rest) for name, tree in fields.items()}, rest)

    def _comparison_label(self, expr: ir.Compare, env: LabelEnv) -> lb.Label:
        operands = [expr.first, *(operand for _, operand in expr.rest)]
        # Each operand once: chains inside chains would otherwise take time exponential in their depth.
        pairs = pairwise([(self.labels_of(operand, env), _is_none(operand)) for operand in operands])
        found = (_pair_comparison_label(op, *pair) for (op, _), pair in zip(expr.rest, pairs, strict=True))
        return lb.join_all(found)

    def _call_labels(self, expr: ir.Apply, env: LabelEnv) -> lb.LabelTree:
        def result_of(function: ir.Lambda) -> LambdaLabels:
            return lambda item: self.labels_of(function.body, {**env, **dict.fromkeys(function.names, item)})

        trees = [
            lb.NOTHING if argument.kind == "lambda" else self.labels_of(argument, env)
            for argument in call_arguments(expr)
        ]
        return call_labels(expr, trees, result_of, strict=self.strict)

    def _comprehension_labels(self, expr: ir.Comprehension, env: LabelEnv) -> lb.LabelTree:
        inner = dict(env)
        own: lb.Label = lb.NOTHING
        for clause in expr.clauses:
            whole = self.labels_of(clause.over, inner)
            own = lb.join(own, whole.own)
            inner.update(unpack_labels(clause.names, whole.item, self.strict))
            if self.strict:
                own = lb.join_all((own, *(self.labels_of(each, inner).own for each in clause.conditions)))
        found = self.labels_of(expr.element, inner)
        if expr.key is None:
            return lb.ListLabels(own, found)
        own = lb.join(own, self.labels_of(expr.key, inner).flat)
        return lb.RecordLabels(own, {}, lb.taint(found, own) if self.strict else found)

    _rules: ClassVar[Mapping[str, Callable[[Any, Any, LabelEnv], lb.LabelTree]]] = {
        "const": _constant_labels,
        "ref": _variable_labels,
        "reference": _reference_labels,
        "get": _field_labels,
        "index": _index_labels,
        "slice": _slice_labels,
        "list": _list_labels,
        "tuple": _list_labels,
        "dict": _dict_labels,
        "arithmetic": _arithmetic_labels,
        "negative": _negative_label,
        "not": _negation_label,
        "logic": _logic_labels,
        "compare": _comparison_label,
        "choose": _choice_labels,
        "apply": _call_labels,
        "format": _format_label,
        "comprehension": _comprehension_labels,
    }
    """The rule for each kind of expression."""


def _is_none(expr: Any) -> bool:
    return expr.kind == "const" and expr.value is None


def any_part_labels(whole: lb.LabelTree, strict: bool) -> lb.LabelTree:
    """The labels of an item at a position or under a key that is not known before the run."""
    match whole:
        case lb.Label():
            return whole
        case lb.ListLabels():
            return label_of_taken_part(whole.item, whole, strict)
        case lb.RecordLabels():
            return whole.values
        case lb.EitherLabels():
            return lb.join_trees(label_of_taken_part(whole.as_list.item, whole.as_list, strict), whole.as_record.values)


def _some_items_labels(whole: lb.LabelTree) -> lb.LabelTree:
    """The labels of some items at other positions; a part of what may be a list or a text may be either too."""
    match whole:
        case lb.ListLabels():
            return lb.ListLabels(whole.own, whole.item)
        case lb.EitherLabels():
            return lb.EitherLabels(lb.ListLabels(whole.as_list.own, whole.as_list.item), whole.as_record)
        case _:
            return whole.flat


def sum_labels(left: lb.LabelTree, right: lb.LabelTree) -> lb.LabelTree:
    """The labels of `left + right`: of lists the items of both, of anything else one label."""
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


def _join_alternatives(exprs: Sequence[Any], trees: Sequence[lb.LabelTree]) -> lb.LabelTree:
    """The labels of one of several values. A scalar adds only its label, so that the others keep their shape."""
    found: lb.LabelTree = lb.NOTHING
    scalars: lb.Label = lb.NOTHING
    for expr, tree in zip(exprs, trees, strict=True):
        if expr.kind in ("const", "reference", "format", "compare", "not", "negative"):
            scalars = lb.join(scalars, tree.flat)
        else:
            found = lb.join_trees(found, tree)
    return lb.taint(found, scalars)


def _pair_comparison_label(op: str, left: tuple[lb.LabelTree, bool], right: tuple[lb.LabelTree, bool]) -> lb.Label:
    """The label of `left op right`, of operands given as their labels and whether they are the literal None."""
    (first, first_is_none), (second, second_is_none) = left, right
    if op in ("==", "!=") and (first_is_none or second_is_none):
        # Whether a value is there at all does not depend on what is in it.
        return first.own if second_is_none else second.own
    if op in ("in", "not in"):
        return label_of_membership(second, first)
    return lb.join(first.flat, second.flat)


def unpack_labels(names: Sequence[str], item: lb.LabelTree, strict: bool) -> Mapping[str, lb.LabelTree]:
    """The labels of the names of a `for`, from those of an item."""
    if len(names) == 1:
        return {names[0]: item}
    return {name: label_of_taken_part(item.place(at), item, strict) for at, name in enumerate(names)}
