"""The types of `+`, `<`, `in` and the other operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bicameral.types import (
    ANY,
    DATE,
    DATETIME,
    DURATION,
    FLOAT,
    INT,
    STR,
    AnyType,
    BoolType,
    DateTimeType,
    DateType,
    DictType,
    DurationType,
    FloatType,
    IntType,
    ListType,
    LiteralType,
    NullType,
    RecordType,
    StrType,
    TimeType,
    TupleType,
    Type,
)

from ._advice import article, conversion, shown, told
from ._kinds import item_of, orderable
from ._merge import NOTHING, merge

if TYPE_CHECKING:
    from ._typing import Typer

Typed = tuple[Any, Type]
"""An expression and its type."""

_FAMILIES: dict[type[Type], str] = {
    IntType: "int",
    BoolType: "int",
    FloatType: "float",
    StrType: "text",
    LiteralType: "text",
    ListType: "list",
    TupleType: "list",
    DateType: "date",
    DateTimeType: "datetime",
    TimeType: "time",
    DurationType: "duration",
    DictType: "dict",
    RecordType: "dict",
    NullType: "none",
}

_SAME_FOR = {"+", "-", "*", "//", "%"}
_NUMBERS = {"int", "float"}

_RESULTS: dict[tuple[str, str, str], Type] = {
    **{("int", op, "int"): INT for op in _SAME_FOR},
    **{(left, op, right): FLOAT for op in _SAME_FOR for left, right in (("int", "float"), ("float", "int"))},
    **{("float", op, "float"): FLOAT for op in _SAME_FOR},
    **{(left, "/", right): FLOAT for left in _NUMBERS for right in _NUMBERS},
    ("text", "+", "text"): STR,
    ("text", "*", "int"): STR,
    ("int", "*", "text"): STR,
    ("date", "-", "date"): DURATION,
    ("datetime", "-", "datetime"): DURATION,
    ("date", "+", "duration"): DATE,
    ("date", "-", "duration"): DATE,
    ("duration", "+", "date"): DATE,
    ("datetime", "+", "duration"): DATETIME,
    ("datetime", "-", "duration"): DATETIME,
    ("duration", "+", "datetime"): DATETIME,
    ("duration", "+", "duration"): DURATION,
    ("duration", "-", "duration"): DURATION,
    ("duration", "%", "duration"): DURATION,
    ("duration", "/", "duration"): FLOAT,
    ("duration", "//", "duration"): INT,
    ("duration", "//", "int"): DURATION,
    **{("duration", op, number): DURATION for op in ("*", "/") for number in _NUMBERS},
    **{(number, "*", "duration"): DURATION for number in _NUMBERS},
}


def type_arithmetic(typer: Typer, op: str, left: Typed, right: Typed) -> Type:
    """The type of `left op right`."""
    first, second = left[1], right[1]
    if NOTHING in (first, second):
        return NOTHING
    if isinstance(first, AnyType) or isinstance(second, AnyType):
        return ANY
    families = _FAMILIES.get(type(first), "other"), _FAMILIES.get(type(second), "other")
    found = _RESULTS.get((families[0], op, families[1]))
    if found is not None:
        return found
    if op == "+" and families == ("list", "list"):
        return ListType(merge(item_of(first), item_of(second)) or ANY)
    if op == "*" and families in (("list", "int"), ("int", "list")):
        return ListType(item_of(first if families[0] == "list" else second))
    return typer.error(
        "plan.wrong-type",
        f"{told(first)} {op} {told(second)} has no meaning: `{shown(left[0])} {op} {shown(right[0])}`",
        fix=_arithmetic_fix(op, left, right, families),
    )


def _arithmetic_fix(op: str, left: Typed, right: Typed, families: tuple[str, str]) -> str | None:
    a, b = shown(left[0]), shown(right[0])
    match op, families:
        case "+", ("text", "list") | ("list", "text"):
            return f"Use {a} + [{b}]." if families[0] == "list" else f'Use "\\n".join({b}).'
        case "+", ("text", _) | (_, "text"):
            return f"Use {a} + str({b})." if families[0] == "text" else f"Use str({a}) + {b}, or int({b}) for a number."
        case "%", ("text", _):
            return "Use an f-string."
        case "-", ("list", "list"):
            return f"Use [x for x in {a} if x not in {b}]."
        case "+", ("list", _):
            return f"Use {a} + [{b}]."
        case _, ("date" | "datetime", "int"):
            return f"Use {a} {op} timedelta(days={b})."
        case _, ("date", "datetime"):
            return f"Use {b}.date()."
        case _, ("datetime", "date"):
            return f"Use {a}.date()."
        case _, ("time", _) | (_, "time"):
            return "Make datetimes first: combine(date, time)."
        case _, ("text", "int" | "float") | ("int" | "float", "text"):
            return f"Use float({a if families[0] == 'text' else b})."
        case _:
            return None


def type_comparison(typer: Typer, op: str, left: Typed, right: Typed) -> None:
    """Note what is wrong with `left op right`; the result is a bool whatever it is."""
    match op:
        case "==" | "!=":
            return
        case "in" | "not in":
            _type_membership(typer, left, right)
        case _:
            _type_order(typer, op, left, right)


def _type_membership(typer: Typer, left: Typed, right: Typed) -> None:
    container = typer.not_none(*right)
    match container:
        case AnyType() | ListType() | TupleType() | DictType() | RecordType():
            return
        case StrType() | LiteralType():
            typer.need_text(*left, f"what is looked for in the text `{shown(right[0])}`")
        case _:
            typer.error("plan.not-a-list", f"nothing can be `in` {article(container)}", fix="Use == to compare.")


def _type_order(typer: Typer, op: str, left: Typed, right: Typed) -> None:
    first, second = typer.not_none(*left), typer.not_none(*right)
    if isinstance(first, AnyType) or isinstance(second, AnyType):
        return
    families = _FAMILIES.get(type(first), "other"), _FAMILIES.get(type(second), "other")
    if {*families} <= _NUMBERS:
        return
    if families[0] == families[1] and orderable(merge(first, second)):
        return
    typer.error(
        "plan.wrong-type",
        f"{told(first)} and {told(second)} cannot be compared: `{shown(left[0])} {op} {shown(right[0])}`",
        fix=_comparison_fix(left, right, families),
    )


def _comparison_fix(left: Typed, right: Typed, families: tuple[str, str]) -> str | None:
    match families:
        case ("text", _):
            return conversion(left[0], left[1], right[1])
        case (_, "text"):
            return conversion(right[0], right[1], left[1])
        case ("datetime", "date"):
            return f"Use {shown(left[0])}.date()."
        case ("date", "datetime"):
            return f"Use {shown(right[0])}.date()."
        case ("list", "int" | "float"):
            return f"Use len({shown(left[0])})."
        case ("duration", "int" | "float"):
            return f"Use {shown(left[0])}.days or {shown(left[0])}.total_seconds()."
        case _:
            return None
