"""Origins of values in a plan: constants that the plan itself has, or results of tools.

An expression of constants is evaluated, so that its value can be looked up as a whole: `"eve" + "@" + "example.org"`
has only harmless parts. Where constants are joined with results of tools they are pieces of the new value. A number
that is computed keeps its operands. Records and lists that a plan makes keep their structure: of `size.id` only the
origin of that field counts, and the names of fields are no values unless the plan takes them for such. A reference
counts by its words: what they are bound to is there, but nobody named it if the words are the planner's own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from itertools import product
from typing import Any, cast

from bicameral.planning._calculations import Calculation, Operand, Role, is_number, operands_of, roles_of
from bicameral.plans import (
    Apply,
    Arithmetic,
    Choose,
    Compare,
    Comprehension,
    Const,
    DictOf,
    EvaluationError,
    Format,
    Get,
    Index,
    Lambda,
    ListOf,
    Negative,
    Ref,
    Reference,
    Slice,
    TupleOf,
    Update,
    children,
    evaluate_expr,
    free_names,
)
from bicameral.tools import Tool
from bicameral.types import DictType, ListType, LiteralType, OptionalType, RecordType, TupleType, Type

MAX_ALTERNATIVES = 64


@dataclass(frozen=True, slots=True)
class ValueOrigin:
    """Where a value comes from.

    `values` are all values that it can have, if it is made of constants alone; `operands` are those of a calculation
    that made them. Otherwise `whole` are the constants that it may be or contain as they are, and `pieces` those that
    were joined with something else. `fields` are those of a record that the plan made, and `item` is what a list has
    that the plan made; such an origin has nothing beside. `lost`: constants were joined in a way that cannot be
    followed. An origin without any of these has no constant: the value comes from the world.
    """

    values: tuple[Any, ...] | None = None
    whole: frozenset[Any] = frozenset()
    pieces: frozenset[Any] = frozenset()
    lost: bool = False
    operands: tuple[Operand, ...] = ()
    fields: tuple[tuple[str, ValueOrigin], ...] | None = None
    item: ValueOrigin | None = None

    def is_among(self, known: Collection[str]) -> bool:
        """Whether the value is certainly one of these texts, as a whole."""
        return bool(self.values) and all(isinstance(value, str) and value in known for value in self.values or ())

    def leaves(self, names: Collection[str] = ()) -> frozenset[Any]:
        """The constants that the value is or contains as they are, without the names of fields in `names`."""
        found = {self._leaf(leaf) for value in self.values or () for leaf in _leaves(value, names)} | self.whole
        for name, each in self.fields or ():
            found |= each.leaves(names) | ({name} - set(names))
        return frozenset(found | self.item.leaves(names) if self.item is not None else found)

    def _leaf(self, value: Any) -> Any:
        return Calculation(value, self.operands) if self.operands and is_number(value) else value

    @property
    def joined_pieces(self) -> frozenset[Any]:
        """The constants that were joined with something else, anywhere in the value."""
        return self.pieces.union(*(each.joined_pieces for each in self._parts))

    @property
    def is_lost(self) -> bool:
        return self.lost or any(each.is_lost for each in self._parts)

    @property
    def is_list(self) -> bool:
        """Whether the value is a list for certain."""
        constant = self.values is not None and all(isinstance(value, list | tuple) for value in self.values)
        return constant or self.item is not None

    @property
    def _parts(self) -> tuple[ValueOrigin, ...]:
        inner = tuple(each for _, each in self.fields or ())
        return inner if self.item is None else (*inner, self.item)


FROM_TOOL = ValueOrigin()
Origins = dict[str, ValueOrigin]


def after_tool(tool: Tool, given: Mapping[str, ValueOrigin]) -> ValueOrigin:
    """A pure tool makes its result of its arguments; what any other returns comes from the world."""
    if tool.effect != "pure" or tool.outbound or not given:
        return FROM_TOOL
    if tool.keeps is not None:
        return given.get(tool.keeps, FROM_TOOL)
    parts = [origin for name, origin in given.items() if not _is_option(tool, name)]
    return ValueOrigin(pieces=frozenset[Any]().union(*(each.leaves() | each.joined_pieces for each in parts)))


def _is_option(tool: Tool, name: str) -> bool:
    """Whether an argument says how a tool works and is no part of its result: a column, or one of a few plain words."""
    argument = tool.argument(name)
    return argument is not None and (bool(argument.field_of) or bool(plain_choices(argument.type)))


def plain_choices(type_: Type) -> tuple[str, ...]:
    """The words among which an argument chooses, if they are plain: a choice of addresses or paths is none."""
    inner = type_.item if isinstance(type_, OptionalType) else type_
    if not isinstance(inner, LiteralType) or not all(str(value).isalpha() for value in inner.values):
        return ()
    return tuple(map(str, inner.values))


def _leaves(value: Any, names: Collection[str] = ()) -> Iterator[Any]:
    match value:
        case dict():
            for key, each in cast("dict[Any, Any]", value).items():
                if key not in names:
                    yield from _leaves(key)
                yield from _leaves(each, names)
        case list() | tuple() | set() | frozenset():
            for each in cast("list[Any]", value):
                yield from _leaves(each, names)
        case None | bool():
            return
        case _:
            yield value


def either(one: ValueOrigin, other: ValueOrigin) -> ValueOrigin:
    """The origin of a value that is one of two."""
    if one == other:
        return one
    if one.values is not None and other.values is not None and one.operands == other.operands:
        merged = _distinct((*one.values, *other.values))
        if merged is not None:
            return ValueOrigin(merged, lost=one.lost or other.lost, operands=one.operands)
    for first, second in ((one, other), (other, one)):
        # What has no constant of its own adds none. A value of constants alone is no longer one, though.
        if second.values is None and (first == FROM_TOOL or _is_nothing(first)):
            return second
    if one.fields is not None and other.fields is not None and _names(one) == _names(other):
        others = dict(other.fields)
        return ValueOrigin(fields=tuple((name, either(each, others[name])) for name, each in one.fields))
    if one.is_list and other.is_list:
        return ValueOrigin(item=either(item_of(one), item_of(other)))
    return ValueOrigin(None, one.leaves() | other.leaves(), one.joined_pieces | other.joined_pieces, _lost(one, other))


def _is_nothing(origin: ValueOrigin) -> bool:
    return origin.values is not None and all(value is None for value in origin.values)


def _names(origin: ValueOrigin) -> set[str]:
    return {name for name, _ in origin.fields or ()}


def _lost(*origins: ValueOrigin) -> bool:
    return any(each.is_lost for each in origins)


def flat(origin: ValueOrigin) -> ValueOrigin:
    """The same constants, without the structure that they stand in."""
    return ValueOrigin(None, origin.leaves(), origin.joined_pieces, origin.is_lost)


def _distinct(values: tuple[Any, ...]) -> tuple[Any, ...] | None:
    found = list({repr(value): value for value in values}.values())
    return tuple(found) if len(found) <= MAX_ALTERNATIVES else None


def item_of(over: ValueOrigin, names: int = 1) -> ValueOrigin:
    """The origin of what a loop visits; a loop with several names takes each item apart."""
    if over.item is not None:
        return over.item if names == 1 else flat(over.item)
    if over.fields is not None:
        # A loop over a record visits the names of its fields, which are values from there on.
        return ValueOrigin(whole=frozenset(_names(over)))
    if over.values is None:
        return over
    items = [item for value in over.values for item in _items(value)]
    if not items:
        return FROM_TOOL
    kept = _distinct(tuple(items))
    parts = tuple(leaf for item in items for leaf in _leaves(item))
    if kept is None or (names > 1 and parts != tuple(items)):
        return ValueOrigin(whole=over.leaves())
    return ValueOrigin(kept)


def _items(value: Any) -> Iterator[Any]:
    """What a loop over a value visits."""
    if isinstance(value, list | tuple | dict):
        yield from cast("list[Any]", value)
    else:
        yield from _leaves(value)


def _record_of(origin: ValueOrigin) -> dict[str, ValueOrigin] | None:
    """The fields of a record that the plan made, if they are known."""
    if origin.fields is not None:
        return dict(origin.fields)
    match origin.values:
        case ({**only},) if all(isinstance(key, str) for key in only):
            return {str(key): ValueOrigin((value,)) for key, value in only.items()}
        case _:
            return None


def field_of(origin: ValueOrigin, name: str) -> ValueOrigin:
    """The origin of a field."""
    if origin.fields is None:
        return item_of(origin) if origin.is_list else origin
    return dict(origin.fields).get(name, FROM_TOOL)


def _part_of(origin: ValueOrigin, at: Any, env: Origins) -> ValueOrigin:
    """The origin of `value[at]`. The key only selects."""
    keys = origin_of(at, env).values
    if origin.fields is not None and keys is not None and all(isinstance(key, str) for key in keys):
        return reduce(either, [field_of(origin, key) for key in keys])
    if origin.fields is not None:
        return reduce(either, [each for _, each in origin.fields], FROM_TOOL)
    return item_of(origin) if origin.is_list else origin


def after_update(step: Update, env: Origins) -> ValueOrigin:
    """The origin of a variable after something was added to it."""
    now, value = env.get(step.name, FROM_TOOL), origin_of(step.value, env)
    if step.op == "append":
        if now.is_list:
            empty = now.values is not None and not any(now.values)
            return ValueOrigin(item=value if empty else either(item_of(now), value))
        return flat(either(flat(now), flat(value)))
    if step.op == "put":
        record = _record_of(now)
        if record is not None and isinstance(step.key, Const) and isinstance(step.key.value, str):
            return ValueOrigin(fields=tuple((record | {step.key.value: value}).items()))
        key = origin_of(step.key, env) if step.key is not None else FROM_TOOL
        return reduce(either, map(flat, (now, value, key)))
    if now.values is not None and value.values is not None and len(now.values) * len(value.values) <= MAX_ALTERNATIVES:
        try:
            made = _distinct(tuple(a + b for a, b in product(now.values, value.values)))
        except TypeError:
            pass
        else:
            operands = operands_of((*_terms(now), *_terms(value)), "+") or ()
            return ValueOrigin(made, lost=_lost(now, value), operands=operands if made is not None else ())
    return _added(now, value)


def _added(left: ValueOrigin, right: ValueOrigin) -> ValueOrigin:
    return _calculated(left, right, "+") or _joined_origin([left, right])


def _terms(origin: ValueOrigin) -> list[Any]:
    """The constants of a value in a calculation: each calculation once, and numbers as they are."""
    if origin.operands:
        return [Calculation(None, origin.operands)]
    return sorted(origin.leaves() | origin.joined_pieces, key=repr)


def _calculated(left: ValueOrigin, right: ValueOrigin, operator: str) -> ValueOrigin | None:
    """The origin of a number that is computed from two others; None if this is no calculation with numbers."""
    roles = roles_of(operator)
    if operator == "+" and left.is_list and right.is_list:
        return ValueOrigin(item=either(item_of(left), item_of(right)))
    if roles is None:
        return None
    terms = _explained_terms(left), _explained_terms(right)
    if operator in ("+", "-") and terms[0] is not None and terms[1] is not None:
        # Each term has a result of a tool in it, and is explained by its own operands: 7 % of one bill and of another.
        return ValueOrigin(pieces=terms[0] | terms[1], lost=_lost(left, right))
    parts = [operands_of(_terms(each), role) for each, role in zip((left, right), roles, strict=True)]
    if any(each is None for each in parts):
        return None
    operands = tuple(sorted(operand for each in parts for operand in each or ()))
    lost = _lost(left, right)
    return ValueOrigin(pieces=frozenset({Calculation(None, operands)}), lost=lost) if operands or lost else FROM_TOOL


def _explained_terms(origin: ValueOrigin) -> frozenset[Any] | None:
    """The calculations with results of tools that a number is made of; None if it has other constants than zeros."""
    constants = {each for each in origin.leaves() | origin.joined_pieces if not (is_number(each) and each == 0)}
    explained = all(isinstance(each, Calculation) and each.value is None for each in constants)
    return frozenset(constants) if explained else None


def _joined_origin(parts: list[ValueOrigin]) -> ValueOrigin:
    """The origin of a new value made of several: their constants are pieces of it, and no longer whole."""
    constants = frozenset[Any]().union(*(each.leaves() | each.joined_pieces for each in parts))
    lost = _lost(*parts) or all(each.values is not None for each in parts)
    return ValueOrigin(pieces=constants, lost=lost and bool(constants))


class RestWord(str):
    """The word for what is none of the other choices of an extraction: nobody says it, and it names nothing."""

    __slots__ = ()


_REST_WORDS = frozenset(
    "other others none unknown unclear misc rest andere anderes sonstiges sonstige keine unbekannt unklar autre autres "
    "aucun aucune inconnu otro otra otros otras ninguno ninguna desconocido".split()
)


def extracted(type_: Type) -> ValueOrigin:
    """The origin of what is read from a text: from there, but for choices, whose words are constants of the plan."""
    match type_:
        case OptionalType(item=item):
            return extracted(item)
        case LiteralType(values=values):
            rest = len(values) > 1
            words = (RestWord(each) if rest and each.casefold() in _REST_WORDS else each for each in values)
            return ValueOrigin(whole=frozenset(words))
        case ListType(item=item) | DictType(value=item) if (inner := extracted(item)) != FROM_TOOL:
            return ValueOrigin(item=inner)
        case TupleType(items=items):
            return reduce(either, map(extracted, items), FROM_TOOL)
        case RecordType(fields=fields) if any(extracted(each.type) != FROM_TOOL for each in fields):
            return ValueOrigin(fields=tuple((each.name, extracted(each.type)) for each in fields))
        case _:
            return FROM_TOOL


class ReferenceWords(str):
    """The words of a reference: what they are bound to comes from the world, but the words must be the request's."""

    __slots__ = ()


def _has_reference(expr: Any) -> bool:
    return isinstance(expr, Reference) or any(map(_has_reference, children(expr)))


def origin_of(expr: Any, env: Origins) -> ValueOrigin:
    """The origin of an expression's value, by those of its variables."""
    match expr:
        case Reference():
            return ValueOrigin(whole=frozenset({ReferenceWords(expr.words)}))
        case Ref(name=name):
            return env.get(name, FROM_TOOL)
        case _:
            pass
    names = free_names(expr)
    known = {name: env[name].values for name in names if name in env}
    if len(known) == len(names) and all(values is not None for values in known.values()) and not _has_reference(expr):
        made = _evaluate(expr, {name: values for name, values in known.items() if values is not None})
        operands = None if isinstance(expr, Const) else _constant_operands(expr, env, "+")
        return made if operands is None or made.values is None else replace(made, operands=operands)
    match expr:
        case Get(value=value, field=name):
            return field_of(origin_of(value, env), name)
        case Index(value=value, at=at):
            return _part_of(origin_of(value, env), at, env)
        case Slice(value=value):
            found = origin_of(value, env)
            if found.is_list:
                return ValueOrigin(item=item_of(found))
            return ValueOrigin(None, frozenset(), found.leaves() | found.joined_pieces, found.is_lost)
        case Compare() | Lambda():
            return FROM_TOOL
        case Choose(then=then, otherwise=otherwise):
            return either(origin_of(then, env), origin_of(otherwise, env))
        case Comprehension(clauses=clauses, element=element, key=key):
            inner = dict(env)
            for clause in clauses:
                item = item_of(origin_of(clause.over, inner), len(clause.names))
                inner.update(dict.fromkeys(clause.names, item))
            if key is None:
                return ValueOrigin(item=origin_of(element, inner))
            return either(flat(origin_of(key, inner)), flat(origin_of(element, inner)))
        case Arithmetic(op=operator, left=left, right=right):
            parts = origin_of(left, env), origin_of(right, env)
            return _calculated(*parts, operator) or _joined_origin(list(parts))
        case Apply(args=args) if args:
            return _applied_origin(expr, env)
        case Format(parts=parts):
            given = [ValueOrigin((part,)) if isinstance(part, str) else origin_of(part.value, env) for part in parts]
            return _joined_origin(given)
        case DictOf(entries=entries):
            if all(isinstance(key, Const) and isinstance(key.value, str) for key, _ in entries):
                fields = {cast("Const", key).value: origin_of(value, env) for key, value in entries}
                return ValueOrigin(fields=tuple(cast("dict[str, ValueOrigin]", fields).items()))
            return reduce(either, [flat(origin_of(each, env)) for each in children(expr)], FROM_TOOL)
        case ListOf(items=items) | TupleOf(items=items) if items:
            return ValueOrigin(item=reduce(either, [origin_of(each, env) for each in items]))
        case _ if expr.kind == "logic":
            return reduce(either, [origin_of(each, env) for each in children(expr)])
        case _:
            return _joined_origin([origin_of(each, env) for each in children(expr)])


def _applied_origin(expr: Apply, env: Origins) -> ValueOrigin:
    """The origin of what a function of the library returns."""
    args, first = expr.args, origin_of(expr.args[0], env)
    # What is taken if there is nothing else is as good as any other value.
    defaults = [origin_of(value, env) for name, value in expr.named if name == "default"]
    match expr.function:
        case "cell_matches":
            return _joined_origin([origin_of(each, env) for each in (*args[:1], *args[2:3])])
        case "round" | "cell_value" | "cell_values" | "cell_order" | "abs" | "float" | "int":
            # The number of digits, and the notation of a column, are no part of the value.
            return _joined_origin([first])
        case "get":
            found = _part_of(first, args[1], env) if len(args) > 1 else first
            return reduce(either, [found, *(origin_of(each, env) for each in args[2:]), *defaults])
        case "sum" if len(args) == 1 and isinstance(args[0], ListOf):
            # As if they were added one by one: a number that is in the list twice is used twice.
            return reduce(_added, [origin_of(each, env) for each in args[0].items])
        case "max" | "min" if len(args) > 1:
            return reduce(either, [*(origin_of(each, env) for each in args), *defaults])
        case "first" | "last" | "max" | "min":
            return reduce(either, [item_of(first), *(origin_of(each, env) for each in args[1:]), *defaults])
        case "sorted" | "unique" | "list" | "reversed":
            return ValueOrigin(item=item_of(first)) if first.is_list or first.fields is not None else first
        case _:
            return _joined_origin([origin_of(each, env) for each in children(expr)])


def _constant_operands(expr: Any, env: Origins, role: Role) -> tuple[Operand, ...] | None:
    """The operands of a calculation with constants alone; None if the expression is anything else."""
    match expr:
        case Const(value=value):
            return operands_of([value], role)
        case Ref(name=name):
            return operands_of(_terms(env[name]), role)
        case Negative(value=value):
            return _constant_operands(value, env, role)
        case Apply(function="round" | "abs" | "float", args=args) if args:
            return _constant_operands(args[0], env, role)
        case Arithmetic(op=operator, left=left, right=right) if (roles := roles_of(operator)) is not None:
            parts = _constant_operands(left, env, roles[0]), _constant_operands(right, env, roles[1])
            return None if parts[0] is None or parts[1] is None else tuple(sorted((*parts[0], *parts[1])))
        case _:
            return None


def _evaluate(expr: Any, known: Mapping[str, tuple[Any, ...]]) -> ValueOrigin:
    """The values of an expression of constants, for each choice of the values of its variables."""
    count = reduce(lambda total, values: total * len(values), known.values(), 1)
    if isinstance(expr, Lambda):
        return FROM_TOOL
    if count <= MAX_ALTERNATIVES:
        try:
            made = [evaluate_expr(expr, dict(zip(known, each, strict=True))) for each in product(*known.values())]
            return ValueOrigin(_distinct(tuple(made)))
        except (EvaluationError, ValueError, TypeError, KeyError, OverflowError):
            pass
    return ValueOrigin(
        pieces=frozenset(leaf for values in known.values() for each in values for leaf in _leaves(each)), lost=True
    )
