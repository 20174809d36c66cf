"""The types of fields, items and slices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bicameral.errors import nearest
from bicameral.types import (
    ANY,
    INT,
    STR,
    AnyType,
    BoolType,
    DateTimeType,
    DateType,
    DictType,
    DurationType,
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

from ._advice import article, conversion, fields_of, reader_of, shown
from ._expressions import Const, Get, Index, Slice
from ._library import FUNCTIONS
from ._library_dates import DATE_FIELDS, DURATION_FIELDS, TIME_FIELDS
from ._library_lists import value_of
from ._merge import merged
from ._scope import Scope

if TYPE_CHECKING:
    from ._typing import Typer


def type_get(typer: Typer, expr: Get, scope: Scope) -> Type:
    value = typer.present(expr.value, scope)
    return scope.known(expr, _field(typer, expr.value, value, expr.field))


def _field(typer: Typer, expr: Any, value: Type, field: str) -> Type:
    x = shown(expr)
    match value:
        case AnyType():
            return value
        case DictType(value=inner):
            return inner
        case RecordType():
            found = value.get(field)
            return found if found is not None else _no_field(typer, x, value, field)
        case DateTimeType() | DateType() | TimeType() | DurationType():
            known = _date_fields(value)
            if field in known:
                return INT
            fix = f"Write {x}.{field}()." if field in FUNCTIONS else f"Fields: {', '.join(known)}."
            return typer.error("plan.unknown-field", f"`{x}` is {article(value)}; it has no field '{field}'", fix=fix)
        case ListType() | TupleType():
            fix = f"Loop: `for item in {x}:` and use item.{field}, or take {x}[0].{field}."
            return typer.error("plan.unknown-field", f"`{x}` is a list; it has no field '{field}'", fix=fix)
        case _:
            fix = f"Write {x}.{field}()." if field in FUNCTIONS else None
            return typer.error("plan.unknown-field", f"`{x}` is {article(value)}; it has no field '{field}'", fix=fix)


def _no_field(typer: Typer, x: str, record: RecordType, field: str) -> Type:
    fix = f"Fields: {fields_of(record)}." if record.fields else "It has no fields yet."
    if reader := reader_of(record, field, x, typer.registry):
        fix += f" {reader}"
    return typer.error(
        "plan.unknown-field",
        f"`{x}` is {article(record) if record.name else 'a dict'}; it has no field '{field}'",
        nearest=nearest(field, record.names),
        fix=fix,
    )


def _date_fields(type_: Type) -> tuple[str, ...]:
    match type_:
        case DateTimeType():
            return (*DATE_FIELDS, *TIME_FIELDS)
        case DateType():
            return tuple(DATE_FIELDS)
        case TimeType():
            return tuple(TIME_FIELDS)
        case _:
            return tuple(DURATION_FIELDS)


def type_index(typer: Typer, expr: Index, scope: Scope) -> Type:
    value = typer.present(expr.value, scope)
    at = typer.present(expr.at, scope)
    return scope.known(expr, _item(typer, expr, value, at))


def _item(typer: Typer, expr: Index, value: Type, at: Type) -> Type:
    x = shown(expr.value)
    constant = expr.at.value if isinstance(expr.at, Const) else None
    match value:
        case AnyType():
            return value
        case DictType() | RecordType():
            typer.need_text(expr.at, at, f"a key of `{x}`")
            if isinstance(value, RecordType) and isinstance(constant, str):
                found = value.get(constant)
                return found if found is not None else _no_field(typer, x, value, constant)
            return value_of(value)
        case ListType() | TupleType() | StrType() | LiteralType():
            if not isinstance(at, AnyType | IntType | BoolType):
                hint = conversion(expr.at, at, INT) or f"Use a number: {x}[0]."
                return typer.error("plan.wrong-type", f"a position in `{x}` is an int, not {article(at)}", fix=hint)
            if isinstance(value, TupleType):
                return _part(typer, x, value, constant)
            return value.item if isinstance(value, ListType) else STR
        case _:
            return typer.error("plan.not-a-list", f"`{x}` is {article(value)}; it has no items")


def _part(typer: Typer, x: str, value: TupleType, at: object) -> Type:
    if not isinstance(at, int):
        return merged(value.items) or ANY
    if -len(value.items) <= at < len(value.items):
        return value.items[at]
    return typer.error("plan.wrong-type", f"`{x}` has {len(value.items)} parts; there is no [{at}]")


def type_slice(typer: Typer, expr: Slice, scope: Scope) -> Type:
    value = typer.present(expr.value, scope)
    for bound in (expr.start, expr.stop, expr.step):
        if bound is not None:
            type_ = typer.infer(bound, scope)
            inner = type_.item if isinstance(type_, OptionalType) else type_
            if not isinstance(inner, AnyType | IntType | BoolType | NullType):
                typer.error(
                    "plan.wrong-type",
                    f"a position in a slice is an int, not {article(type_)}",
                    fix=conversion(bound, type_, INT),
                )
    match value:
        case StrType() | LiteralType():
            return STR
        case TupleType(items=items):
            return ListType(merged(items) or ANY)
        case AnyType() | ListType():
            return value
        case _:
            return typer.error("plan.not-a-list", f"`{shown(expr.value)}` is {article(value)}; it cannot be sliced")
