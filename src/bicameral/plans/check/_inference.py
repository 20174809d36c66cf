"""Type inference for expressions.

Everything that is wrong becomes a finding; what could not be typed is Any, so that one mistake is reported once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bicameral.errors import nearest_name
from bicameral.plans._expressions import (
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
from bicameral.plans._plan import MAX_DEPTH
from bicameral.plans._type_rules import item_types, limit_size, merge, merge_all
from bicameral.plans.check._operation_types import (
    a_type,
    check_comparison,
    conversion,
    excerpt,
    field_list,
    infer_arithmetic,
    infer_call,
    reader_hint,
    type_text,
)
from bicameral.plans.check._report import Finding, Scope, Severity
from bicameral.plans.evaluate._library import FUNCTIONS, dict_value_type
from bicameral.plans.evaluate._library_scalars import DATE_FIELDS, DURATION_FIELDS, TIME_FIELDS
from bicameral.plans.evaluate._values import spec_problem
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
    DateTimeType,
    DateType,
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
    TimeType,
    TupleType,
    Type,
)


def infer_get(typer: Inference, expr: Get, scope: Scope) -> Type:
    value = typer.infer_not_none(expr.value, scope)
    return scope.narrowed_type(expr, _field_type(typer, expr.value, value, expr.field))


def _field_type(typer: Inference, expr: Any, value: Type, field: str) -> Type:
    x = excerpt(expr)
    match value:
        case AnyType():
            return value
        case DictType(value=inner):
            return inner
        case RecordType():
            found = value.get(field)
            return found if found is not None else _no_field_finding(typer, x, value, field)
        case DateTimeType() | DateType() | TimeType() | DurationType():
            known = _date_field_names(value)
            if field in known:
                return INT
            fix = f"Write {x}.{field}()." if field in FUNCTIONS else f"Fields: {', '.join(known)}."
            return typer.add_error(
                "plan.unknown-field", f"`{x}` is {a_type(value)}; it has no field '{field}'", fix=fix
            )
        case ListType() | TupleType():
            fix = f"Loop: `for item in {x}:` and use item.{field}, or take {x}[0].{field}."
            return typer.add_error("plan.unknown-field", f"`{x}` is a list; it has no field '{field}'", fix=fix)
        case _:
            fix = f"Write {x}.{field}()." if field in FUNCTIONS else None
            return typer.add_error(
                "plan.unknown-field", f"`{x}` is {a_type(value)}; it has no field '{field}'", fix=fix
            )


def _no_field_finding(typer: Inference, x: str, record: RecordType, field: str) -> Type:
    fix = f"Fields: {field_list(record)}." if record.fields else "It has no fields yet."
    if reader := reader_hint(record, field, x, typer.registry):
        fix += f" {reader}"
    return typer.add_error(
        "plan.unknown-field",
        f"`{x}` is {a_type(record) if record.name else 'a dict'}; it has no field '{field}'",
        nearest=nearest_name(field, record.names),
        fix=fix,
    )


def _date_field_names(type_: Type) -> tuple[str, ...]:
    match type_:
        case DateTimeType():
            return (*DATE_FIELDS, *TIME_FIELDS)
        case DateType():
            return tuple(DATE_FIELDS)
        case TimeType():
            return tuple(TIME_FIELDS)
        case _:
            return tuple(DURATION_FIELDS)


def infer_index(typer: Inference, expr: Index, scope: Scope) -> Type:
    value = typer.infer_not_none(expr.value, scope)
    at = typer.infer_not_none(expr.at, scope)
    return scope.narrowed_type(expr, _index_type(typer, expr, value, at))


def _index_type(typer: Inference, expr: Index, value: Type, at: Type) -> Type:
    x = excerpt(expr.value)
    constant = expr.at.value if isinstance(expr.at, Const) else None
    match value:
        case AnyType():
            return value
        case DictType() | RecordType():
            typer.require_text(expr.at, at, f"a key of `{x}`")
            if isinstance(value, RecordType) and isinstance(constant, str):
                found = value.get(constant)
                return found if found is not None else _no_field_finding(typer, x, value, constant)
            return dict_value_type(value)
        case ListType() | TupleType() | StrType() | LiteralType():
            if not isinstance(at, AnyType | IntType | BoolType):
                hint = conversion(expr.at, at, INT) or f"Use a number: {x}[0]."
                return typer.add_error("plan.wrong-type", f"a position in `{x}` is an int, not {a_type(at)}", fix=hint)
            if isinstance(value, TupleType):
                return _tuple_part_type(typer, x, value, constant)
            return value.item if isinstance(value, ListType) else STR
        case _:
            return typer.add_error("plan.not-a-list", f"`{x}` is {a_type(value)}; it has no items")


def _tuple_part_type(typer: Inference, x: str, value: TupleType, at: object) -> Type:
    if not isinstance(at, int):
        return merge_all(value.items) or ANY
    if -len(value.items) <= at < len(value.items):
        return value.items[at]
    return typer.add_error("plan.wrong-type", f"`{x}` has {len(value.items)} parts; there is no [{at}]")


def infer_slice(typer: Inference, expr: Slice, scope: Scope) -> Type:
    value = typer.infer_not_none(expr.value, scope)
    for bound in (expr.start, expr.stop, expr.step):
        if bound is not None:
            type_ = typer.infer(bound, scope)
            inner = type_.item if isinstance(type_, OptionalType) else type_
            if not isinstance(inner, AnyType | IntType | BoolType | NullType):
                typer.add_error(
                    "plan.wrong-type",
                    f"a position in a slice is an int, not {a_type(type_)}",
                    fix=conversion(bound, type_, INT),
                )
    match value:
        case StrType() | LiteralType():
            return STR
        case TupleType(items=items):
            return ListType(merge_all(items) or ANY)
        case AnyType() | ListType():
            return value
        case _:
            return typer.add_error(
                "plan.not-a-list", f"`{excerpt(expr.value)}` is {a_type(value)}; it cannot be sliced"
            )


class Inference:
    """Types expressions in a scope and collects what is wrong with them."""

    def __init__(self, registry: Registry | None = None) -> None:
        self.registry = registry
        self.path = ""
        self.findings: list[Finding] = []
        self.names_read: set[str] = set()
        self._depth = 0

    def add_finding(self, severity: Severity, code: str, message: str, **more: Any) -> None:
        finding = Finding(severity, code, message, self.path, **more)
        if finding not in self.findings[-20:]:
            self.findings.append(finding)

    def add_error(self, code: str, message: str, **more: Any) -> Type:
        self.add_finding("error", code, message, **more)
        return ANY

    def infer(self, expr: Any, scope: Scope) -> Type:
        """The type of an expression; problems go to `findings`."""
        if self._depth > MAX_DEPTH:
            return self.add_error("plan.too-deep", "the expression is nested too deep", fix="Give its parts names.")
        self._depth += 1
        try:
            found = _INFERENCE_RULES[type(expr)](self, expr, scope)
            return limit_size(found) if isinstance(expr, _COMPOSITE_NODES) else found
        finally:
            self._depth -= 1

    def infer_not_none(self, expr: Any, scope: Scope) -> Type:
        """The type of an expression where None will not do; that it may be None is a warning."""
        return self.require_not_none(expr, self.infer(expr, scope))

    def require_not_none(self, expr: Any, type_: Type) -> Type:
        if not isinstance(type_, OptionalType):
            return type_
        x = excerpt(expr)
        self.add_finding(
            "warning", "plan.none-value", f"`{x}` may be None here", fix=f"Test `if {x} is not None:` first."
        )
        return type_.item

    def require_text(self, expr: Any, type_: Type, what: str) -> None:
        if not isinstance(self.require_not_none(expr, type_), AnyType | StrType | LiteralType):
            self.add_error(
                "plan.wrong-type", f"{what} must be text, not {a_type(type_)}", fix=conversion(expr, type_, STR)
            )

    def iteration_type(self, expr: Any, type_: Type) -> Type:
        """The type of the items that a `for` over this expression gives."""
        type_ = self.require_not_none(expr, type_)
        match type_:
            case AnyType():
                return type_
            case ListType() | TupleType() | DictType() | RecordType():
                return merge_all(item_types(type_)) or ANY
            case StrType() | LiteralType():
                x = excerpt(expr)
                fix = f"Use {x}.splitlines() for its lines or {x}.split() for its words."
                return self.add_error("plan.not-a-list", f"`{x}` is text, not a list", fix=fix)
            case _:
                return self.add_error("plan.not-a-list", f"`{excerpt(expr)}` is {a_type(type_)}, not a list")

    def bind_loop_names(self, names: tuple[str, ...], item: Type, scope: Scope) -> Scope:
        """The scope in which the names of a `for` have an item's value or its parts."""
        if len(names) == 1:
            return scope.bind(names[0], item)
        for name, part in zip(names, self._unpacked_types(names, item), strict=True):
            scope = scope.bind(name, part)
        return scope

    def _unpacked_types(self, names: tuple[str, ...], item: Type) -> tuple[Type, ...]:
        match item:
            case TupleType(items=parts) if len(parts) == len(names):
                return parts
            case ListType(item=part):
                return (part,) * len(names)
            case AnyType():
                pass
            case TupleType(items=parts):
                self.add_error("plan.wrong-type", f"each item has {len(parts)} parts, but there are {len(names)} names")
            case StrType() | LiteralType():
                self.add_error(
                    "plan.wrong-type",
                    f"{', '.join(names)}: each item is one text",
                    fix="Go over `d.items()` for pairs.",
                )
            case _:
                self.add_error(
                    "plan.wrong-type", f"each item is one {type_text(item)}", fix=f"Use one name: `for {names[0]} in`."
                )
        return (ANY,) * len(names)


def _infer_const(typer: Inference, expr: Const, scope: Scope) -> Type:
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


def _infer_ref(typer: Inference, expr: Ref, scope: Scope) -> Type:
    name = expr.name
    typer.names_read.add(name)
    variable = scope.get(name)
    if variable is None:
        if name in FUNCTIONS:
            return typer.add_error(
                "plan.unknown-name", f"`{name}` is a function, not a value", fix=f"Call it: {name}(…)."
            )
        return typer.add_error("plan.unknown-name", f"there is no variable `{name}`", nearest=nearest_name(name, scope))
    if variable.maybe_unbound:
        return typer.add_error(
            "plan.maybe-unbound",
            f"`{name}` may have no value here",
            fix=f"Give it a value before the `if` or `for`: `{name} = None`.",
        )
    if variable.void_of is not None:
        return typer.add_error(
            "plan.wrong-type",
            f"`{name}` has no value: {variable.void_of}() gives nothing back",
            fix=f"Call {variable.void_of}(…) without `{name} =`.",
        )
    return variable.type


def _infer_list(typer: Inference, expr: ListOf, scope: Scope) -> Type:
    return ListType(merge_all([typer.infer(item, scope) for item in expr.items]) or ANY)


def _infer_tuple(typer: Inference, expr: TupleOf, scope: Scope) -> Type:
    return TupleType(tuple(typer.infer(item, scope) for item in expr.items))


def _infer_dict(typer: Inference, expr: DictOf, scope: Scope) -> Type:
    fields: dict[str, Type] = {}
    for key, value in expr.entries:
        type_ = typer.infer(value, scope)
        if isinstance(key, Const) and isinstance(key.value, str):
            fields[key.value] = type_
            continue
        typer.require_text(key, typer.infer(key, scope), "a key of a dict")
        return DictType(merge_all([*fields.values(), type_, *_infer_remaining_values(typer, expr, key, scope)]) or ANY)
    return RecordType(tuple(Field(name, type_) for name, type_ in fields.items()))


def _infer_remaining_values(typer: Inference, expr: DictOf, after: Any, scope: Scope) -> list[Type]:
    """The types of the values after a computed key; with one such key no field is known for sure."""
    number = next(number for number, (key, _) in enumerate(expr.entries) if key is after)
    types: list[Type] = []
    for key, value in expr.entries[number + 1 :]:
        typer.require_text(key, typer.infer(key, scope), "a key of a dict")
        types.append(typer.infer(value, scope))
    return types


def _infer_arithmetic(typer: Inference, expr: Arithmetic, scope: Scope) -> Type:
    left, right = typer.infer_not_none(expr.left, scope), typer.infer_not_none(expr.right, scope)
    return infer_arithmetic(typer, expr.op, (expr.left, left), (expr.right, right))


def _infer_negative(typer: Inference, expr: Negative, scope: Scope) -> Type:
    match typer.infer_not_none(expr.value, scope):
        case IntType() | BoolType():
            return INT
        case FloatType() | DurationType() | AnyType() as type_:
            return type_
        case type_:
            fix = "For the other order use sorted(xs, reverse=True)." if isinstance(type_, StrType) else None
            return typer.add_error("plan.wrong-type", f"{a_type(type_)} has no negative", fix=fix)


def _infer_not(typer: Inference, expr: Not, scope: Scope) -> Type:
    typer.infer(expr.value, scope)
    return BOOL


def _infer_logic(typer: Inference, expr: Logic, scope: Scope) -> Type:
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
    return merge_all(types) or ANY


def _infer_compare(typer: Inference, expr: Compare, scope: Scope) -> Type:
    left_expr, left = expr.first, typer.infer(expr.first, scope)
    for op, right_expr in expr.rest:
        right = typer.infer(right_expr, scope)
        check_comparison(typer, op, (left_expr, left), (right_expr, right))
        left_expr, left = right_expr, right
    return BOOL


def _infer_choose(typer: Inference, expr: Choose, scope: Scope) -> Type:
    typer.infer(expr.condition, scope)
    then = typer.infer(expr.then, scope.narrow(expr.condition, holds=True))
    otherwise = typer.infer(expr.otherwise, scope.narrow(expr.condition, holds=False))
    return merge(then, otherwise) or ANY


def _infer_format(typer: Inference, expr: Format, scope: Scope) -> Type:
    for part in expr.parts:
        if isinstance(part, str):
            continue
        type_ = typer.infer(part.value, scope)
        if part.spec:
            type_ = typer.require_not_none(part.value, type_)
        if problem := spec_problem(part.spec, type_):
            typer.add_error("plan.wrong-type", f"the format {part.spec[:40]!r} does not fit {a_type(type_)}: {problem}")
    return STR


def _infer_comprehension(typer: Inference, expr: Comprehension, scope: Scope) -> Type:
    for clause in expr.clauses:
        item = typer.iteration_type(clause.over, typer.infer(clause.over, scope))
        scope = typer.bind_loop_names(clause.names, item, scope)
        for condition in clause.conditions:
            typer.infer(condition, scope)
            scope = scope.narrow(condition, holds=True)
    if expr.key is None:
        return ListType(typer.infer(expr.element, scope))
    typer.require_text(expr.key, typer.infer(expr.key, scope), "a key of a dict")
    return DictType(typer.infer(expr.element, scope))


def _infer_apply(typer: Inference, expr: Apply, scope: Scope) -> Type:
    return infer_call(typer, expr, scope)


def _infer_lambda(typer: Inference, expr: Lambda, scope: Scope) -> Type:
    return typer.add_error(
        "plan.wrong-type", "a lambda stands only as an argument", expected="as in sorted(xs, key=lambda x: x.name)"
    )


_COMPOSITE_NODES = (ListOf, TupleOf, DictOf, Arithmetic, Apply, Comprehension, Choose, Logic)
"""The expressions whose type can be larger than the types of their parts."""

_INFERENCE_RULES: dict[type[Any], Callable[[Inference, Any, Scope], Type]] = {
    Const: _infer_const,
    Ref: _infer_ref,
    Get: infer_get,
    Index: infer_index,
    Slice: infer_slice,
    ListOf: _infer_list,
    TupleOf: _infer_tuple,
    DictOf: _infer_dict,
    Arithmetic: _infer_arithmetic,
    Negative: _infer_negative,
    Not: _infer_not,
    Logic: _infer_logic,
    Compare: _infer_compare,
    Choose: _infer_choose,
    Format: _infer_format,
    Comprehension: _infer_comprehension,
    Apply: _infer_apply,
    Lambda: _infer_lambda,
}


def type_of(expr: Any, scope: Scope, findings: list[Finding] | None = None) -> Type:
    """The type of an expression in a scope; what is wrong with it is added to `findings`.

    Example:
        >>> type_of(Get(value=Ref(name="day"), field="year"), Scope.of({"day": DATE}))
        IntType()
    """
    typer = Inference()
    found = typer.infer(expr, scope)
    if findings is not None:
        findings.extend(typer.findings)
    return found
