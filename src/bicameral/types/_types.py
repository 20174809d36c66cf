"""The types of values in plans, and their relations: assignable, joined, bounded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from bicameral.types._formats import BOUNDED_FORMATS, format_problem


class Type:
    """The type of a value in a plan; `str(type)` is how a plan writes it."""

    __slots__ = ()
    text: ClassVar[str] = ""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class StrType(Type):
    """Text; `format` names a narrower kind such as 'path', 'email' or 'url'. Those with a pattern are in FORMATS."""

    text: ClassVar[str] = "str"
    format: str | None = None


@dataclass(frozen=True, slots=True)
class IntType(Type):
    text: ClassVar[str] = "int"


@dataclass(frozen=True, slots=True)
class FloatType(Type):
    """A number; every int is one, too. The format `number` says that it is copied from a text, not computed."""

    format: Literal["number"] | None = None

    def __str__(self) -> str:
        return self.format or "float"


@dataclass(frozen=True, slots=True)
class BoolType(Type):
    text: ClassVar[str] = "bool"


@dataclass(frozen=True, slots=True)
class DateType(Type):
    text: ClassVar[str] = "date"


@dataclass(frozen=True, slots=True)
class TimeType(Type):
    text: ClassVar[str] = "time"


@dataclass(frozen=True, slots=True)
class DateTimeType(Type):
    text: ClassVar[str] = "datetime"


@dataclass(frozen=True, slots=True)
class DurationType(Type):
    """A length of time: the difference of two datetimes or two dates."""

    text: ClassVar[str] = "timedelta"


@dataclass(frozen=True, slots=True)
class NullType(Type):
    text: ClassVar[str] = "None"


@dataclass(frozen=True, slots=True)
class AnyType(Type):
    """A type that is unknown before the run; uses are checked at run time."""

    text: ClassVar[str] = "Any"


@dataclass(frozen=True, slots=True)
class CellType(AnyType):
    """A cell of a table column whose kind was found from all its cells: yes/no, dates, numbers, money.

    The value is the cell as it stands in the file, mostly a text, and goes wherever any value goes. Before a plan runs,
    its comparisons, sums and orders of such cells are rewritten so that they are made in the kind of the column.

    Args:
        column: The name of the column in its file, for messages.
        notation: How its cells are written (`bicameral.columns.notation_reader`); empty if there are two readings.
        units: The currencies of its amounts, or `%`.
        readings: The two readings of a column that can be read in two ways, in words.
        others: Short texts in it that are not of its kind, such as `tbd`; None if there are too many to list.
        text_only: Whether all its cells are texts.
    """

    column: str
    notation: str
    units: tuple[str, ...] = ()
    readings: tuple[str, ...] = ()
    others: tuple[str, ...] | None = ()
    text_only: bool = True

    def __str__(self) -> str:
        # Nothing of the column: the text of a type may stand in a prompt of the planner.
        return "str" if self.text_only else "Any"


@dataclass(frozen=True, slots=True)
class LiteralType(Type):
    """One of the given texts."""

    values: tuple[str, ...]

    def __str__(self) -> str:
        return "Literal[" + ", ".join(repr(value) for value in self.values) + "]"


@dataclass(frozen=True, slots=True)
class ListType(Type):
    item: Type

    def __str__(self) -> str:
        return f"list[{self.item}]"


@dataclass(frozen=True, slots=True)
class TupleType(Type):
    items: tuple[Type, ...]

    def __str__(self) -> str:
        return "tuple[" + ", ".join(map(str, self.items)) + "]"


@dataclass(frozen=True, slots=True)
class DictType(Type):
    """A dict with text keys that are unknown before the run."""

    value: Type

    def __str__(self) -> str:
        return f"dict[str, {self.value}]"


@dataclass(frozen=True, slots=True)
class OptionalType(Type):
    item: Type

    def __str__(self) -> str:
        return f"{self.item} | None"


@dataclass(frozen=True, slots=True)
class Field:
    """A named part of a record."""

    name: str
    type: Type
    doc: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class RecordType(Type):
    """A dict whose fields are known before the run: it has these and no others; optional fields may be absent.

    Two records with the same fields are the same type, whatever their names.
    """

    fields: tuple[Field, ...]
    name: str = field(default="", compare=False)

    def __str__(self) -> str:
        return self.name or "{" + ", ".join(f"{f.name!r}: {f.type}" for f in self.fields) + "}"

    def get(self, name: str) -> Type | None:
        """The type of one field, or None if there is no such field."""
        return next((each.type for each in self.fields if each.name == name), None)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.fields)


STR, INT, FLOAT, BOOL = StrType(), IntType(), FloatType(), BoolType()
DATE, TIME, DATETIME, DURATION = DateType(), TimeType(), DateTimeType(), DurationType()
NULL, ANY = NullType(), AnyType()
NUMBER = FloatType("number")
MONEY = RecordType((Field("amount", FLOAT), Field("currency", StrType("currency"))), "money")
"""An amount and the code of its currency: `total.amount`, `total.currency`."""

_BOUNDED = (BoolType, IntType, FloatType, DateType, TimeType, DateTimeType, DurationType, LiteralType, NullType)


def is_bounded(type_: Type) -> bool:
    """Whether values of a type cannot hold free text: numbers, dates, choices, and texts of a bounded format.

    A bounded value cannot carry an instruction, so it may cross from untrusted text to the privileged side.

    Example:
        >>> is_bounded(StrType("iban")), is_bounded(StrType("email")), is_bounded(ListType(INT))
        (True, False, False)
    """
    match type_:
        case OptionalType(item=item):
            return is_bounded(item)
        case StrType(format=name):
            return name in BOUNDED_FORMATS
        case RecordType():
            return type_ == MONEY
        case _:
            return isinstance(type_, _BOUNDED)


def optional_type(item: Type) -> Type:
    """`item | None`, without nesting."""
    return item if isinstance(item, OptionalType | NullType | AnyType) else OptionalType(item)


def without_optional(type_: Type) -> Type:
    """The type without `| None`."""
    return type_.item if isinstance(type_, OptionalType) else type_


def iter_types(type_: Type) -> Iterator[Type]:
    """The type and every type inside it, outermost first."""
    yield type_
    for inner in (type_.item,) if isinstance(type_, OptionalType) else _inner_types(type_):
        yield from iter_types(inner)


def is_assignable(source: Type, target: Type) -> bool:
    """Whether a value of type `source` may be used where `target` is expected.

    Example:
        >>> is_assignable(INT, FLOAT), is_assignable(STR, StrType("iban"))
        (True, False)
    """
    match source, target:
        case (AnyType(), _) | (_, AnyType()):
            return True
        case (NullType(), OptionalType() | NullType()):
            return True
        case (OptionalType(item=inner), OptionalType(item=wanted)):
            return is_assignable(inner, wanted)
        case (_, OptionalType(item=wanted)):
            return is_assignable(source, wanted)
        case (StrType(format=given), StrType(format=wanted)):
            # A bounded format is enforced on every value, so unchecked text must not pass as one.
            return given == wanted or wanted not in BOUNDED_FORMATS
        case (LiteralType(values=given), StrType(format=wanted)):
            return wanted not in BOUNDED_FORMATS or not any(format_problem(value, wanted) for value in given)
        case (LiteralType(values=given), LiteralType(values=wanted)):
            return set(given) <= set(wanted)
        case (IntType() | FloatType(), FloatType()):
            return True
        case (ListType(item=given), ListType(item=wanted)):
            return is_assignable(given, wanted)
        case (TupleType(items=given), TupleType(items=wanted)):
            return len(given) == len(wanted) and all(map(is_assignable, given, wanted))
        case (TupleType(items=given), ListType(item=wanted)):
            return all(is_assignable(item, wanted) for item in given)
        case (DictType(value=given), DictType(value=wanted)):
            return is_assignable(given, wanted)
        case (RecordType(fields=given), DictType(value=wanted)):
            return all(is_assignable(each.type, wanted) for each in given)
        case (RecordType() as given, RecordType() as wanted):
            return set(given.names) <= set(wanted.names) and all(_has_field(given, each) for each in wanted.fields)
        case _:
            return source == target


def _has_field(record: RecordType, wanted: Field) -> bool:
    given = record.get(wanted.name)
    return isinstance(wanted.type, OptionalType) if given is None else is_assignable(given, wanted.type)


def join_types(left: Type, right: Type) -> Type | None:
    """The smallest type that both are assignable to, or None if there is none.

    Example:
        >>> str(join_types(INT, NULL)), join_types(INT, STR)
        ('int | None', None)
    """
    if left == right:
        return left
    match left, right:
        case (AnyType(), _) | (_, AnyType()):
            return ANY
        case (NullType(), other) | (other, NullType()):
            return optional_type(other)
        case (OptionalType(item=inner), other) | (other, OptionalType(item=inner)):
            joined = join_types(inner, other.item if isinstance(other, OptionalType) else other)
            return optional_type(joined) if joined else None
        case (LiteralType(values=some), LiteralType(values=more)):
            return LiteralType(tuple(dict.fromkeys(some + more)))
        case (StrType() | LiteralType(), StrType() | LiteralType()):
            return STR
        case (IntType() | FloatType(), IntType() | FloatType()):
            return FLOAT
        case (TupleType(items=some), TupleType(items=more)) if len(some) == len(more):
            joined_items = [join_types(*pair) for pair in zip(some, more, strict=True)]
            return TupleType(tuple(each for each in joined_items if each)) if all(joined_items) else None
        case (RecordType() as some, RecordType() as more) if set(some.names) == set(more.names):
            return _join_fields(some, more)
        case (ListType() | TupleType(), ListType() | TupleType()):
            joined = _join_all_types(_inner_types(left) + _inner_types(right))
            return ListType(joined) if joined else None
        case (DictType() | RecordType(), DictType() | RecordType()):
            joined = _join_all_types(_inner_types(left) + _inner_types(right))
            return DictType(joined) if joined else None
        case _:
            return None


def _join_fields(some: RecordType, more: RecordType) -> Type | None:
    fields: list[Field] = []
    for each in some.fields:
        joined = join_types(each.type, more.get(each.name) or ANY)
        if joined is None:
            return None
        fields.append(Field(each.name, joined, each.doc))
    return RecordType(tuple(fields), some.name if some.name == more.name else "")


def _inner_types(type_: Type) -> tuple[Type, ...]:
    match type_:
        case ListType(item=inner) | DictType(value=inner):
            return (inner,)
        case TupleType(items=items):
            return items
        case RecordType(fields=fields):
            return tuple(each.type for each in fields)
        case _:
            return ()


def _join_all_types(types: tuple[Type, ...]) -> Type | None:
    """The smallest type that all are assignable to; Any for none.

    The types are sorted first: the join is not associative, so the result must not depend on their order.
    """
    if ANY in types:
        return ANY
    first, *rest = sorted(set(types), key=repr) or [ANY]
    joined: Type | None = first
    for other in rest:
        joined = join_types(joined, other) if joined else None
    return joined
