"""Types and signatures that the check and the library of functions share.

`merge` gives the type of a value that comes from two places: branches of a `when`, turns of an `each`, items of a list.
A parameter kind says what a parameter of a library function takes, as types for the check and as Python classes for the
run. A library function is a set of signatures: typed parameters, a rule for the type of the result, and the code.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bicameral import types as t

_MAX_LITERALS = 16
_MAX_PARTS = 500
_MAX_LEVELS = 24


@dataclass(frozen=True, slots=True)
class BottomType(t.AnyType):
    """The type of the items of `[]`: it gives way to the type of whatever is added first."""


BOTTOM = BottomType()


def merge(left: t.Type, right: t.Type) -> t.Type | None:
    """The smallest type that both fit, or None if they have nothing in common."""
    if left == right:
        return left
    match left, right:
        case (BottomType(), other) | (other, BottomType()):
            return other
        case (t.CellType(), t.CellType()):
            return _merge_cells(left, right)
        case (t.AnyType(), _) | (_, t.AnyType()):
            return t.ANY
        case (t.NullType(), other) | (other, t.NullType()):
            return t.optional_type(other)
        case (t.OptionalType(item=inner), other) | (other, t.OptionalType(item=inner)):
            found = merge(inner, other.item if isinstance(other, t.OptionalType) else other)
            return None if found is None else t.optional_type(found)
        case (t.LiteralType(values=some), t.LiteralType(values=more)):
            values = tuple(dict.fromkeys(some + more))
            return t.LiteralType(values) if len(values) <= _MAX_LITERALS else t.STR
        case (t.StrType() | t.LiteralType(), t.StrType() | t.LiteralType()):
            return t.STR
        case (t.IntType() | t.FloatType(), t.IntType() | t.FloatType()):
            return t.FLOAT
        case _:
            return _merge_containers(left, right)


def _merge_cells(left: t.CellType, right: t.CellType) -> t.CellType:
    """The type of cells of two columns, as in the rows of two tables.

    Columns in two notations can only be shown: nothing says of a cell by which of them it must be read.
    """
    same = left.notation == right.notation
    readings = (*(left.readings or (left.notation,)), *(right.readings or (right.notation,)))
    return t.CellType(
        left.column,
        left.notation if same else "",
        tuple(dict.fromkeys(left.units + right.units)),
        tuple(dict.fromkeys(readings)) if not same or not left.notation else left.readings,
        None if left.others is None or right.others is None else tuple(dict.fromkeys(left.others + right.others)),
        left.text_only and right.text_only,
    )


def _merge_containers(left: t.Type, right: t.Type) -> t.Type | None:
    match left, right:
        case (t.TupleType(items=some), t.TupleType(items=more)) if len(some) == len(more):
            return t.TupleType(tuple(merge(a, b) or t.ANY for a, b in zip(some, more, strict=True)))
        case (t.ListType() | t.TupleType(), t.ListType() | t.TupleType()):
            return t.ListType(merge_all((_content_type(left), _content_type(right))) or t.ANY)
        case (t.RecordType() as some, t.RecordType() as more) if set(some.names) == set(more.names):
            return _merge_fields(some, more)
        case (t.DictType() | t.RecordType(), t.DictType() | t.RecordType()):
            # Records with different fields: what is under a key is known only as one of all.
            return t.DictType(merge_all((_content_type(left), _content_type(right))) or t.ANY)
        case _:
            return None


def _merge_fields(some: t.RecordType, more: t.RecordType) -> t.Type:
    fields = tuple(
        t.Field(field.name, merge(field.type, more.get(field.name) or t.ANY) or t.ANY, field.doc)
        for field in some.fields
    )
    return t.RecordType(fields, some.name if some.name == more.name else "")


def _content_type(type_: t.Type) -> t.Type:
    """The type of the items of a list or tuple, or of the values of a dict or record."""
    return merge_all(_inner_types(type_)) or t.ANY


def merge_all(types: Iterable[t.Type]) -> t.Type | None:
    """The smallest type that all fit; NOTHING of none, and None if they have nothing in common."""
    found: t.Type | None = BOTTOM
    for type_ in types:
        found = merge(found, type_)
        if found is None:
            return None
    return found


def replace_bottom(type_: t.Type) -> t.Type:
    """The type for a report: the items of an empty list, of which nothing is known, are Any."""
    match type_:
        case BottomType():
            return t.ANY
        case t.ListType(item=item):
            return t.ListType(replace_bottom(item))
        case t.DictType(value=value):
            return t.DictType(replace_bottom(value))
        case t.TupleType(items=items):
            return t.TupleType(tuple(replace_bottom(item) for item in items))
        case t.OptionalType(item=item):
            return t.optional_type(replace_bottom(item))
        case _:
            return type_


def limit_size(type_: t.Type) -> t.Type:
    """The type, or Any if it is too large: `x = (x, x)` doubles a type at each step."""
    level: list[t.Type] = [type_]
    parts = 0
    for _ in range(_MAX_LEVELS):
        level = [inner for outer in level for inner in _inner_types(outer)]
        parts += len(level)
        if not level:
            return type_
        if parts > _MAX_PARTS:
            break
    return t.ANY


def _inner_types(type_: t.Type) -> tuple[t.Type, ...]:
    match type_:
        case t.ListType(item=item) | t.OptionalType(item=item):
            return (item,)
        case t.DictType(value=value):
            return (value,)
        case t.TupleType(items=items):
            return items
        case t.RecordType(fields=fields):
            return tuple(field.type for field in fields)
        case _:
            return ()


def is_compatible(given: t.Type, wanted: t.Type) -> bool:
    """Whether a value may be given where another type is wanted; what only the run can tell is let through."""
    match given, wanted:
        case (t.DictType(value=t.AnyType()), t.RecordType()):
            return True
        case (t.ListType(item=some), t.ListType(item=more)) | (t.DictType(value=some), t.DictType(value=more)):
            return is_compatible(some, more)
        case (t.OptionalType(item=some), t.OptionalType(item=more)):
            return is_compatible(some, more)
        case _:
            return t.is_assignable(given, wanted)


@dataclass(frozen=True, slots=True)
class ParameterKind:
    """A set of values that a parameter takes; no types means every value."""

    title: str
    types: tuple[type[t.Type], ...]
    classes: tuple[type[object], ...]
    item: ParameterKind | None = None
    """What the items of a list must be."""
    orderable: bool = False
    """Whether the items must be comparable with `<`."""

    def fits(self, type_: t.Type) -> bool:
        """Whether every value of this type is taken."""
        if not self.types or isinstance(type_, t.AnyType):
            return True
        if not isinstance(type_, self.types):
            return False
        inner = item_types(type_)
        if self.orderable and not is_orderable(merge_all(inner)):
            return False
        return self.item is None or all(self.item.fits(item) for item in inner)


def is_orderable(type_: t.Type | None) -> bool:
    """Whether values of a type can be compared with `<` among themselves."""
    match type_:
        case t.AnyType() | t.StrType() | t.LiteralType() | t.IntType() | t.FloatType() | t.BoolType():
            return True
        case t.DateType() | t.TimeType() | t.DateTimeType() | t.DurationType():
            return True
        case t.ListType(item=item):
            return is_orderable(item)
        case t.TupleType(items=items):
            return all(is_orderable(item) for item in items)
        case _:
            return False


def item_types(type_: t.Type) -> tuple[t.Type, ...]:
    """The types of the items of a value in a `for`; of a tuple one for each part."""
    match type_:
        case t.ListType(item=item):
            return (item,)
        case t.TupleType(items=items):
            return items
        case t.DictType() | t.RecordType() | t.StrType() | t.LiteralType():
            return (t.STR,)
        case _:
            return (t.ANY,)


def item_type(type_: t.Type) -> t.Type:
    """The type of the items of a value in a `for`."""
    found = merge_all(item_types(type_))
    return t.ANY if found is None else found


_LIST_TYPES = (t.ListType, t.TupleType)
_DICT_TYPES = (t.DictType, t.RecordType)
TEXT = ParameterKind("str", (t.StrType, t.LiteralType), (str,))
DICT = ParameterKind("dict", _DICT_TYPES, (dict,))
TEXTS = ParameterKind("list[str]", _LIST_TYPES, (list, tuple), item=TEXT)
_ANYTHING = ParameterKind("any value", (), (object,))
_LIST = ParameterKind("list", _LIST_TYPES, (list, tuple))
_NUMBER = ParameterKind("number", (t.IntType, t.FloatType, t.BoolType), (int, float))
_DURATION = ParameterKind("timedelta", (t.DurationType,), (dt.timedelta,))
_SIZED_TYPES = (*_LIST_TYPES, *_DICT_TYPES, t.StrType, t.LiteralType)
_COMPARABLE = "list of comparable values"

KINDS: dict[str, ParameterKind] = {
    "any": _ANYTHING,
    "lambda": _ANYTHING,
    "text": TEXT,
    "int": ParameterKind("int", (t.IntType, t.BoolType), (int,)),
    "number": _NUMBER,
    "bool": ParameterKind("bool", (t.BoolType,), (bool,)),
    "duration": _DURATION,
    "date": ParameterKind("date", (t.DateType,), (dt.date,)),
    "time": ParameterKind("time", (t.TimeType,), (dt.time,)),
    "datetime": ParameterKind("datetime", (t.DateTimeType,), (dt.datetime,)),
    "day": ParameterKind("date or datetime", (t.DateType, t.DateTimeType), (dt.date,)),
    "moment": ParameterKind("date, time or datetime", (t.DateType, t.TimeType, t.DateTimeType), (dt.date, dt.time)),
    "list": _LIST,
    "dict": DICT,
    "iterable": ParameterKind("list", (*_LIST_TYPES, *_DICT_TYPES), (list, tuple, dict)),  # of a dict its keys
    "sized": ParameterKind("list, dict or str", _SIZED_TYPES, (list, tuple, dict, str)),
    "texts": TEXTS,
    "numbers": ParameterKind("list of numbers", _LIST_TYPES, (list, tuple), item=_NUMBER),
    "durations": ParameterKind("list[timedelta]", _LIST_TYPES, (list, tuple), item=_DURATION),
    "lists": ParameterKind("list of lists", _LIST_TYPES, (list, tuple), item=_LIST),
    "pairs": ParameterKind("list of pairs", _LIST_TYPES, (list, tuple), item=_LIST),
    "ordered": ParameterKind(_COMPARABLE, (*_LIST_TYPES, *_DICT_TYPES), (list, tuple, dict), orderable=True),
}
"""What the parameters of library functions take, by the name that `signature` knows it by."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: a value of a kind or, with a `lambda_arity`, a lambda of that many names."""

    name: str
    kind: ParameterKind = _ANYTHING
    required: bool = True
    variadic: bool = False
    named_only: bool = False
    lambda_arity: int = 0

    def __str__(self) -> str:
        shown = "lambda" if self.lambda_arity else self.kind.title
        if self.variadic:
            return f"*{self.name}: {shown}"
        return f"{self.name}: {shown}" + ("" if self.required else " = …")


@dataclass(frozen=True, slots=True)
class CallTypes:
    """The types of the arguments of a call, by parameter; lambdas are typed on demand."""

    types: dict[str, t.Type]
    variadic_types: tuple[t.Type, ...]
    constants: dict[str, object]
    lambda_result: Callable[[str, tuple[t.Type, ...]], t.Type | None]
    """The type that the lambda given for a parameter returns for these types; None if none is given."""
    report: Callable[[str, str, str], None]
    """Add a finding: its code, its message, and what to do."""

    def __getitem__(self, name: str) -> t.Type:
        return self.types[name]

    def get(self, name: str) -> t.Type | None:
        return self.types.get(name)


TypeRule = Callable[[CallTypes], t.Type]


@dataclass(frozen=True, slots=True)
class Signature:
    """One way to call a function. `result` is the type of the result or the rule for it."""

    parameters: tuple[Parameter, ...]
    result: t.Type | TypeRule
    run: Callable[..., Any]

    def bind(self, positional: int, named: Sequence[str]) -> tuple[Parameter, ...] | None:
        """The parameter of each argument (positional, then named), or None if the call does not fit."""
        places = [p for p in self.parameters if not p.named_only]
        rest = places.pop() if places and places[-1].variadic else None
        if positional > len(places) and rest is None:
            return None
        bound = places[:positional]
        by_name = {p.name: p for p in self.parameters if not p.variadic}
        for name in named:
            if name not in by_name or by_name[name] in bound:
                return None
            bound.append(by_name[name])
        if any(p.required and not p.variadic and p not in bound for p in self.parameters):
            return None
        extra = positional - len(places)
        if rest is not None and extra > 0:
            bound[positional - extra : positional - extra] = [rest] * extra
        if rest is not None and rest.required and extra <= 0:
            return None
        return tuple(bound)


CostClass = Literal["constant", "flat", "deep"]


@dataclass(frozen=True, slots=True)
class LibraryFunction:
    """A function of the closed library, pure and total."""

    name: str
    doc: str
    group: str
    signatures: tuple[Signature, ...]
    method: bool = False
    """Whether a plan writes it as a method: `text.lower()`."""
    cost: CostClass = "flat"
    """How its work grows: not at all, with the length of its arguments, or with everything in them."""
    grows: bool = False
    """Whether its result can be larger than its arguments, so that its size must be checked."""

    @property
    def usage(self) -> str:
        """How to call it, one form after the other: `count(text: str, part: str) or count(xs: list, value)`."""
        return " or ".join(f"{self.name}({', '.join(map(str, s.parameters))})" for s in self.signatures)


def signature(parameters: str, result: t.Type | TypeRule, run: Callable[..., Any]) -> Signature:
    """A signature whose parameters are written as text: `"xs: list, default?"`.

    A parameter is `name: kind` with a kind of `KINDS` (none: any value). `?` after the name means that it may be left
    out, `*` before it that it takes all further arguments; those after a lone `*` are given by name only.
    """
    found: list[Parameter] = []
    named_only = False
    for part in filter(None, parameters.split(", ")):
        if part == "*":
            named_only = True
            continue
        name, _, kind = part.partition(": ")
        shape = {"required": not name.endswith("?"), "variadic": name.startswith("*"), "named_only": named_only}
        found.append(Parameter(name.strip("*?"), KINDS[kind or "any"], **shape, lambda_arity=int(kind == "lambda")))
    return Signature(tuple(found), result, run)


def library_function(
    group: str,
    name: str,
    doc: str,
    *signatures: Signature,
    method: bool = False,
    cost: CostClass = "flat",
    grows: bool = False,
) -> LibraryFunction:
    return LibraryFunction(name, doc, group, signatures, method, cost, grows)
