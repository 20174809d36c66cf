"""The types of expressions. Everything that is wrong is noted; what could not be typed is Any, so that one mistake
is told once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bicameral.errors import nearest
from bicameral.tools import Registry
from bicameral.types import (
    ANY,
    BOOL,
    FLOAT,
    INT,
    NULL,
    STR,
    AnyType,
    BoolType,
    DictType,
    DurationType,
    Field,
    FloatType,
    IntType,
    ListType,
    LiteralType,
    NullType,
    OptionalType,
    RecordType,
    StrType,
    TupleType,
    Type,
)

from ._advice import article, conversion, shown, told
from ._depth import MAX_DEPTH
from ._expressions import (
    Apply,
    Arithmetic,
    Choose,
    Compare,
    Comprehension,
    Const,
    DictOf,
    Format,
    Get,
    Index,
    Lambda,
    ListOf,
    Logic,
    Negative,
    Not,
    Ref,
    Slice,
    TupleOf,
)
from ._findings import Finding, Severity
from ._kinds import items_of
from ._library import FUNCTIONS
from ._merge import bounded, merge, merged
from ._scope import Scope
from ._show import spec_problem
from ._typing_access import type_get, type_index, type_slice
from ._typing_calls import type_call
from ._typing_operators import type_arithmetic, type_comparison


class Typer:
    """Types expressions in a scope and collects what is wrong with them."""

    def __init__(self, registry: Registry | None = None) -> None:
        self.registry = registry
        self.path = ""
        self.findings: list[Finding] = []
        self.reads: set[str] = set()
        self._depth = 0

    def note(self, severity: Severity, code: str, message: str, **more: Any) -> None:
        finding = Finding(severity, code, message, self.path, **more)
        if finding not in self.findings[-20:]:
            self.findings.append(finding)

    def error(self, code: str, message: str, **more: Any) -> Type:
        self.note("error", code, message, **more)
        return ANY

    def infer(self, expr: Any, scope: Scope) -> Type:
        """The type of an expression; problems go to `findings`."""
        if self._depth > MAX_DEPTH:
            return self.error("plan.too-deep", "the expression is nested too deep", fix="Give its parts names.")
        self._depth += 1
        try:
            found = _RULES[type(expr)](self, expr, scope)
            return bounded(found) if isinstance(expr, _BUILDING) else found
        finally:
            self._depth -= 1

    def present(self, expr: Any, scope: Scope) -> Type:
        """The type of an expression where None will not do; that it may be None is a warning."""
        return self.not_none(expr, self.infer(expr, scope))

    def not_none(self, expr: Any, type_: Type) -> Type:
        if not isinstance(type_, OptionalType):
            return type_
        x = shown(expr)
        self.note("warning", "plan.none-value", f"`{x}` may be None here", fix=f"Test `if {x} is not None:` first.")
        return type_.item

    def need_text(self, expr: Any, type_: Type, what: str) -> None:
        if not isinstance(self.not_none(expr, type_), AnyType | StrType | LiteralType):
            self.error(
                "plan.wrong-type", f"{what} must be text, not {article(type_)}", fix=conversion(expr, type_, STR)
            )

    def items(self, expr: Any, type_: Type) -> Type:
        """The type of the items that a `for` over this expression gives."""
        type_ = self.not_none(expr, type_)
        match type_:
            case AnyType():
                return type_
            case ListType() | TupleType() | DictType() | RecordType():
                return merged(items_of(type_)) or ANY
            case StrType() | LiteralType():
                x = shown(expr)
                fix = f"Use {x}.splitlines() for its lines or {x}.split() for its words."
                return self.error("plan.not-a-list", f"`{x}` is text, not a list", fix=fix)
            case _:
                return self.error("plan.not-a-list", f"`{shown(expr)}` is {article(type_)}, not a list")

    def bind_items(self, names: tuple[str, ...], item: Type, scope: Scope) -> Scope:
        """The scope in which the names of a `for` have an item's value or its parts."""
        if len(names) == 1:
            return scope.bind(names[0], item)
        for name, part in zip(names, self._parts(names, item), strict=True):
            scope = scope.bind(name, part)
        return scope

    def _parts(self, names: tuple[str, ...], item: Type) -> tuple[Type, ...]:
        match item:
            case TupleType(items=parts) if len(parts) == len(names):
                return parts
            case ListType(item=part):
                return (part,) * len(names)
            case AnyType():
                pass
            case TupleType(items=parts):
                self.error("plan.wrong-type", f"each item has {len(parts)} parts, but there are {len(names)} names")
            case StrType() | LiteralType():
                self.error(
                    "plan.wrong-type",
                    f"{', '.join(names)}: each item is one text",
                    fix="Go over `d.items()` for pairs.",
                )
            case _:
                self.error(
                    "plan.wrong-type", f"each item is one {told(item)}", fix=f"Use one name: `for {names[0]} in`."
                )
        return (ANY,) * len(names)


def _const(typer: Typer, expr: Const, scope: Scope) -> Type:
    match expr.value:
        case None:
            return NULL
        case bool():
            return BOOL
        case int():
            return INT
        case float():
            return FLOAT
        case str() as text:
            return LiteralType((text,))


def _ref(typer: Typer, expr: Ref, scope: Scope) -> Type:
    name = expr.name
    typer.reads.add(name)
    variable = scope.get(name)
    if variable is None:
        if name in FUNCTIONS:
            return typer.error("plan.unknown-name", f"`{name}` is a function, not a value", fix=f"Call it: {name}(…).")
        return typer.error("plan.unknown-name", f"there is no variable `{name}`", nearest=nearest(name, scope))
    if variable.maybe_unbound:
        return typer.error(
            "plan.maybe-unbound",
            f"`{name}` may have no value here",
            fix=f"Give it a value before the `if` or `for`: `{name} = None`.",
        )
    if variable.void_of is not None:
        return typer.error(
            "plan.wrong-type",
            f"`{name}` has no value: {variable.void_of}() gives nothing back",
            fix=f"Call {variable.void_of}(…) without `{name} =`.",
        )
    return variable.type


def _list_of(typer: Typer, expr: ListOf, scope: Scope) -> Type:
    return ListType(merged([typer.infer(item, scope) for item in expr.items]) or ANY)


def _tuple_of(typer: Typer, expr: TupleOf, scope: Scope) -> Type:
    return TupleType(tuple(typer.infer(item, scope) for item in expr.items))


def _dict_of(typer: Typer, expr: DictOf, scope: Scope) -> Type:
    fields: dict[str, Type] = {}
    for key, value in expr.entries:
        type_ = typer.infer(value, scope)
        if isinstance(key, Const) and isinstance(key.value, str):
            fields[key.value] = type_
            continue
        typer.need_text(key, typer.infer(key, scope), "a key of a dict")
        return DictType(merged([*fields.values(), type_, *_rest(typer, expr, key, scope)]) or ANY)
    return RecordType(tuple(Field(name, type_) for name, type_ in fields.items()))


def _rest(typer: Typer, expr: DictOf, after: Any, scope: Scope) -> list[Type]:
    """The types of the values after a computed key; with one such key no field is known for sure."""
    number = next(number for number, (key, _) in enumerate(expr.entries) if key is after)
    types: list[Type] = []
    for key, value in expr.entries[number + 1 :]:
        typer.need_text(key, typer.infer(key, scope), "a key of a dict")
        types.append(typer.infer(value, scope))
    return types


def _arithmetic(typer: Typer, expr: Arithmetic, scope: Scope) -> Type:
    left, right = typer.present(expr.left, scope), typer.present(expr.right, scope)
    return type_arithmetic(typer, expr.op, (expr.left, left), (expr.right, right))


def _negative(typer: Typer, expr: Negative, scope: Scope) -> Type:
    match typer.present(expr.value, scope):
        case IntType() | BoolType():
            return INT
        case FloatType() | DurationType() | AnyType() as type_:
            return type_
        case type_:
            fix = "For the other order use sorted(xs, reverse=True)." if isinstance(type_, StrType) else None
            return typer.error("plan.wrong-type", f"{article(type_)} has no negative", fix=fix)


def _not(typer: Typer, expr: Not, scope: Scope) -> Type:
    typer.infer(expr.value, scope)
    return BOOL


def _logic(typer: Typer, expr: Logic, scope: Scope) -> Type:
    types: list[Type] = []
    *most, last = expr.items
    for item in most:
        type_ = typer.infer(item, scope)
        # What `or` passes on is not None.
        types.append(type_.item if expr.op == "or" and isinstance(type_, OptionalType) else type_)
        scope = scope.narrow(item, holds=expr.op == "and")
    types.append(typer.infer(last, scope))
    if expr.op == "or":
        types = [*(type_ for type_ in types[:-1] if not isinstance(type_, NullType)), types[-1]]
    return merged(types) or ANY


def _compare(typer: Typer, expr: Compare, scope: Scope) -> Type:
    left_expr, left = expr.first, typer.infer(expr.first, scope)
    for op, right_expr in expr.rest:
        right = typer.infer(right_expr, scope)
        type_comparison(typer, op, (left_expr, left), (right_expr, right))
        left_expr, left = right_expr, right
    return BOOL


def _choose(typer: Typer, expr: Choose, scope: Scope) -> Type:
    typer.infer(expr.condition, scope)
    then = typer.infer(expr.then, scope.narrow(expr.condition, holds=True))
    otherwise = typer.infer(expr.otherwise, scope.narrow(expr.condition, holds=False))
    return merge(then, otherwise) or ANY


def _format(typer: Typer, expr: Format, scope: Scope) -> Type:
    for part in expr.parts:
        if isinstance(part, str):
            continue
        type_ = typer.infer(part.value, scope)
        if part.spec:
            type_ = typer.not_none(part.value, type_)
        if problem := spec_problem(part.spec, type_):
            typer.error("plan.wrong-type", f"the format {part.spec[:40]!r} does not fit {article(type_)}: {problem}")
    return STR


def _comprehension(typer: Typer, expr: Comprehension, scope: Scope) -> Type:
    for clause in expr.clauses:
        item = typer.items(clause.over, typer.infer(clause.over, scope))
        scope = typer.bind_items(clause.names, item, scope)
        for condition in clause.conditions:
            typer.infer(condition, scope)
            scope = scope.narrow(condition, holds=True)
    if expr.key is None:
        return ListType(typer.infer(expr.element, scope))
    typer.need_text(expr.key, typer.infer(expr.key, scope), "a key of a dict")
    return DictType(typer.infer(expr.element, scope))


def _apply(typer: Typer, expr: Apply, scope: Scope) -> Type:
    return type_call(typer, expr, scope)


def _lambda(typer: Typer, expr: Lambda, scope: Scope) -> Type:
    return typer.error(
        "plan.wrong-type", "a lambda stands only as an argument", expected="as in sorted(xs, key=lambda x: x.name)"
    )


_BUILDING = (ListOf, TupleOf, DictOf, Arithmetic, Apply, Comprehension, Choose, Logic)
"""The expressions whose type can be larger than the types of their parts."""

_RULES: dict[type[Any], Callable[[Typer, Any, Scope], Type]] = {
    Const: _const,
    Ref: _ref,
    Get: type_get,
    Index: type_index,
    Slice: type_slice,
    ListOf: _list_of,
    TupleOf: _tuple_of,
    DictOf: _dict_of,
    Arithmetic: _arithmetic,
    Negative: _negative,
    Not: _not,
    Logic: _logic,
    Compare: _compare,
    Choose: _choose,
    Format: _format,
    Comprehension: _comprehension,
    Apply: _apply,
    Lambda: _lambda,
}


def type_of(expr: Any, scope: Scope, findings: list[Finding] | None = None) -> Type:
    """The type of an expression in a scope; what is wrong with it is added to `findings`.

    Example:
        >>> type_of(Get(value=Ref(name="day"), field="year"), Scope.of({"day": DATE}))
        IntType()
    """
    typer = Typer()
    found = typer.infer(expr, scope)
    if findings is not None:
        findings.extend(typer.findings)
    return found
