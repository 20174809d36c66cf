"""Types to and from JSON, and types as JSON Schema."""

from __future__ import annotations

from typing import Any, cast

from ._formats import FORMATS
from ._types import (
    ANY,
    BOOL,
    DATE,
    DATETIME,
    DURATION,
    FLOAT,
    INT,
    NULL,
    NUMBER,
    STR,
    TIME,
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
    optional,
)

SIMPLE: dict[str, Type] = {
    "str": STR,
    "int": INT,
    "float": FLOAT,
    "number": NUMBER,
    "bool": BOOL,
    "date": DATE,
    "time": TIME,
    "datetime": DATETIME,
    "timedelta": DURATION,
    "None": NULL,
    "Any": ANY,
}

MAX_DEPTH = 64

JsonType = str | dict[str, Any]


def to_json(type_: Type) -> JsonType:
    """A type as plain JSON: `"str"`, `{"list": …}`, `{"record": {…}}`."""
    match type_:
        case StrType(format=str() as format_):
            return {"str": format_}
        case ListType(item=item):
            return {"list": to_json(item)}
        case TupleType(items=items):
            return {"tuple": [to_json(item) for item in items]}
        case DictType(value=value):
            return {"dict": to_json(value)}
        case OptionalType(item=item):
            return {"optional": to_json(item)}
        case LiteralType(values=values):
            return {"literal": list(values)}
        case RecordType(fields=fields):
            return {"record": {field.name: to_json(field.type) for field in fields}}
        case _:
            return str(type_)


def from_json(value: object, depth: int = 0) -> Type:
    """The type that `to_json` wrote; a ValueError says what is wrong with anything else."""
    if depth > MAX_DEPTH:
        raise ValueError(f"the type is nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, str) and value in SIMPLE:
        return SIMPLE[value]
    if not isinstance(value, dict):
        raise ValueError(f"{value!r} is not a type; the simple ones are {', '.join(SIMPLE)}")
    entries = cast("dict[str, Any]", value)
    if len(entries) != 1:
        raise ValueError(f"a composite type has exactly one key, not {sorted(entries)!r}")
    ((kind, inner),) = entries.items()
    match kind, inner:
        case "str", str():
            return StrType(inner)
        case "list", _:
            return ListType(from_json(inner, depth + 1))
        case "dict", _:
            return DictType(from_json(inner, depth + 1))
        case "optional", _:
            return optional(from_json(inner, depth + 1))
        case "tuple", list():
            return TupleType(tuple(from_json(item, depth + 1) for item in cast("list[object]", inner)))
        case "literal", [_, *_] if all(isinstance(item, str) for item in cast("list[object]", inner)):
            return LiteralType(tuple(cast("list[str]", inner)))
        case "record", dict():
            named = cast("dict[str, object]", inner)
            return RecordType(tuple(Field(name, from_json(item, depth + 1)) for name, item in named.items()))
        case _:
            raise ValueError(f"{kind!r}: {inner!r} is not a type")


def json_schema(type_: Type, *, max_text: int | None = None, formats: bool = False) -> dict[str, Any]:
    """The JSON Schema of this type with every field written out.

    `max_text` bounds free text. With `formats` every narrower kind of text has its shape, for a model that is to write
    one; without, only those that are held to everywhere.
    """

    def inside(inner: Type) -> dict[str, Any]:
        return json_schema(inner, max_text=max_text, formats=formats)

    match type_:
        case StrType(format=str() as name) if name in FORMATS and (formats or FORMATS[name].bounded):
            known = FORMATS[name]
            return {"enum": list(known.choices)} if known.choices else {"type": "string", "pattern": known.pattern}
        case StrType():
            return {"type": "string"} | ({"maxLength": max_text} if max_text else {})
        case IntType():
            return {"type": "integer"}
        case FloatType():
            return {"type": "number"}
        case BoolType():
            return {"type": "boolean"}
        case DateType():
            return {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}
        case TimeType():
            return {"type": "string", "pattern": "^[0-9]{2}:[0-9]{2}(:[0-9]{2})?$"}
        case DateTimeType():
            return {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2})?$"}
        case DurationType():
            return {"type": "number", "description": "seconds"}
        case NullType():
            return {"type": "null"}
        case LiteralType(values=values):
            return {"enum": list(values)}
        case ListType(item=item):
            return {"type": "array", "items": inside(item)}
        case TupleType(items=items):
            schemas = [inside(item) for item in items]
            return {"type": "array", "prefixItems": schemas, "minItems": len(items), "maxItems": len(items)}
        case DictType(value=value):
            return {"type": "object", "additionalProperties": inside(value)}
        case OptionalType(item=item):
            return {"anyOf": [inside(item), {"type": "null"}]}
        case RecordType(fields=fields):
            properties = {
                field.name: inside(field.type) | ({"description": field.doc} if field.doc else {}) for field in fields
            }
            required = [field.name for field in fields]
            return {
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": False,
            }
        case AnyType():
            return {}
        case _:
            raise ValueError(f"{type_!r} has no JSON Schema")
