"""What to write instead, in messages for people and small models alike."""

from __future__ import annotations

from bicameral.tools import Registry
from bicameral.types import (
    BoolType,
    DateTimeType,
    DateType,
    DictType,
    FloatType,
    IntType,
    ListType,
    LiteralType,
    OptionalType,
    RecordType,
    StrType,
    TimeType,
    TupleType,
    Type,
    assignable,
)

from ._expressions import Apply, Const, Expr, Get, Index, Ref

_LIKE_CONTENT = frozenset({"body", "content", "contents", "text", "lines", "rows", "data", "items", "html"})
_MOST_FIELDS = 12


def shown(expr: Expr) -> str:
    """An expression short enough for a message, or `x` for a longer one."""
    match expr:
        case Ref(name=name):
            return name
        case Get(value=value, field=field):
            return f"{shown(value)}.{field}"
        case Index(value=value, at=at):
            return f"{shown(value)}[{shown(at)}]"
        case Const(value=value):
            text = repr(value)
            return text if len(text) <= 30 else text[:26] + "…'"
        case Apply(function=function):
            return f"{function}(…)"
        case _:
            return "x"


def told(type_: Type) -> str:
    """The name of a type; a literal text is just text."""
    match type_:
        case LiteralType():
            return "str"
        case ListType(item=LiteralType()):
            return "list[str]"
        case RecordType(name="", fields=fields) if len(fields) > 4:
            return "dict"
        case _:
            return str(type_)


def article(type_: Type) -> str:
    name = told(type_)
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def conversion(expr: Expr, given: Type, wanted: Type, argument: str = "") -> str | None:
    """How to make what is wanted (for an argument of this name) of what is given."""
    x = shown(expr)
    match given, wanted:
        case (RecordType() as record, _) if (field := record.get(argument)) and assignable(field, wanted):
            return f"Use {x}.{argument}."
        case (OptionalType(), _):
            return f"Test it first: `if {x} is not None:`."
        case (StrType() | LiteralType(), IntType()):
            return f"Use int({x})."
        case (StrType() | LiteralType(), FloatType()):
            return f"Use float({x})."
        case (StrType() | LiteralType(), DateType()):
            return f"Use date({x})."
        case (StrType() | LiteralType(), DateTimeType()):
            return f"Use datetime({x})."
        case (StrType() | LiteralType(), TimeType()):
            return f"Use time({x})."
        case (DateTimeType(), DateType()):
            return f"Use {x}.date()."
        case (DateType(), DateTimeType()):
            return f"Use datetime({x}) or combine({x}, time)."
        case (StrType() | LiteralType(), ListType(item=StrType())):
            return f"Use [{x}]." if isinstance(expr, Const) else f"Use {x}.splitlines() for its lines, or [{x}]."
        case (ListType() | TupleType(), StrType()):
            return _list_to_text(x, given)
        case (RecordType() as record, _) if fitting := _fitting_field(record, wanted):
            return f"Use {x}.{fitting}."
        case _:
            return _other_conversion(x, given, wanted)


def _other_conversion(x: str, given: Type, wanted: Type) -> str | None:
    match given, wanted:
        case (FloatType(), IntType()):
            return f"Use round({x}) or int({x})."
        case (BoolType() | IntType() | FloatType() | DateType() | TimeType() | DateTimeType(), StrType()):
            return f"Use str({x})."
        case (RecordType() | DictType(), StrType()):
            return f'Write its fields into a text: f"{{{x}.field}}".'
        case (_, ListType(item=item)) if assignable(given, item):
            return f"Use [{x}]."
        case (ListType(item=item), _) if assignable(item, wanted):
            return f"Use one item, {x}[0], or a loop: `for item in {x}:`."
        case _:
            return None


def _list_to_text(x: str, given: Type) -> str:
    text = isinstance(given, ListType) and isinstance(given.item, StrType | LiteralType)
    return f'Use "\\n".join({x}).' if text else f'Use "\\n".join([str(item) for item in {x}]).'


def _fitting_field(record: RecordType, wanted: Type) -> str | None:
    """The one field that fits, preferring one of exactly the wanted kind (a path for a path)."""
    exact = [field.name for field in record.fields if field.type == wanted]
    fitting = exact or [field.name for field in record.fields if assignable(field.type, wanted)]
    return fitting[0] if len(fitting) == 1 else None


def fields_of(record: RecordType) -> str:
    names = record.names
    return ", ".join(names[:_MOST_FIELDS]) + (", …" if len(names) > _MOST_FIELDS else "")


def reader_of(record: RecordType, field: str, x: str, registry: Registry | None) -> str | None:
    """`read_text(f.path)` where a plan looks for the content of something of which it only has the path."""
    if registry is None or field not in _LIKE_CONTENT:
        return None
    for tool in registry:
        needed = [argument for argument in tool.arguments if argument.required]
        if tool.effect == "read" and len(needed) == 1 and tool.name.startswith("read"):
            source = record.get(needed[0].name)
            if source is not None and assignable(source, needed[0].type):
                return f"Use {tool.name}({x}.{needed[0].name})."
    return None
