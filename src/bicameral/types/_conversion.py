"""Types from Python annotations, to and from JSON, and as JSON Schema."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import types as pytypes
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    TypedDict,
    Union,
    cast,
    get_args,
    get_origin,
    is_typeddict,
)

from pydantic import BaseModel

from bicameral.types import _types as t
from bicameral.types._formats import FORMATS

_SIMPLE_ANNOTATIONS: dict[object, t.Type] = {
    str: t.STR,
    int: t.INT,
    float: t.FLOAT,
    bool: t.BOOL,
    dt.date: t.DATE,
    dt.time: t.TIME,
    dt.datetime: t.DATETIME,
    dt.timedelta: t.DURATION,
    None: t.NULL,
    type(None): t.NULL,
    Any: t.ANY,
    object: t.ANY,
    Path: t.StrType("path"),
    list: t.ListType(t.ANY),
    tuple: t.ListType(t.ANY),
    dict: t.DictType(t.ANY),
}


Id = Annotated[str, t.StrType("id")]
"""An identifier of a tool. It comes from a result; a planner never writes one itself."""
FilePath = Annotated[str, t.StrType("path")]
Url = Annotated[str, t.StrType("url")]
Address = Annotated[str, t.StrType("email")]
"""A file, a page, a recipient: a planner takes these from the request or from a result."""
Iban = Annotated[str, t.StrType("iban")]
Phone = Annotated[str, t.StrType("phone")]
Code = Annotated[str, t.StrType("code")]
Currency = Annotated[str, t.StrType("currency")]
"""Texts of bounded formats: arguments and results of tools are checked against them."""


class Money(TypedDict):
    """An amount and its currency; in plans the type is `money`."""

    amount: float
    currency: Currency


def type_from_annotation(annotation: object) -> t.Type:
    """The plan type of a Python annotation; a TypeError names an annotation that has none.

    Example:
        >>> str(type_from_annotation(list[int] | None))
        'list[int] | None'
    """
    try:
        return _annotation_type(annotation)
    except RecursionError:
        raise TypeError(f"{annotation!r} contains itself; plans have no endless types") from None


def _annotation_type(annotation: object) -> t.Type:
    try:
        if annotation in _SIMPLE_ANNOTATIONS:
            return _SIMPLE_ANNOTATIONS[annotation]
    except TypeError:
        pass  # unhashable, so it is not in the table
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        format_ = next((extra for extra in arguments[1:] if isinstance(extra, t.StrType)), None)
        return format_ or _annotation_type(arguments[0])
    if origin is NotRequired:
        return t.optional_type(_annotation_type(arguments[0]))
    if origin is Required:
        return _annotation_type(arguments[0])
    if origin is Literal and all(isinstance(value, str) for value in arguments):
        return t.LiteralType(tuple(arguments))
    if origin in (Union, pytypes.UnionType):
        return _union_type(arguments)
    if origin in (list, Sequence, Iterable):
        return t.ListType(_annotation_type(arguments[0]))
    if origin in (dict, Mapping) and arguments[0] is str:
        return t.DictType(_annotation_type(arguments[1]))
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return t.ListType(_annotation_type(arguments[0]))
        return t.TupleType(tuple(_annotation_type(item) for item in arguments))
    if isinstance(annotation, type):
        return _class_type(cast("type[object]", annotation))
    raise TypeError(f"{annotation!r} has no plan type; use str, int, float, bool, date, list, dict or a record")


def _union_type(members: tuple[Any, ...]) -> t.Type:
    joined: t.Type | None = None
    for member in members:
        type_ = _annotation_type(member)
        joined = type_ if joined is None else (t.join_types(joined, type_) or t.ANY)
    result = joined or t.ANY
    return t.optional_type(result) if type(None) in members else result


def _class_type(cls: type[object]) -> t.Type:
    if issubclass(cls, BaseModel):
        docs = {name: info.description or "" for name, info in cls.model_fields.items()}
    elif dataclasses.is_dataclass(cls):
        docs = {each.name: "" for each in dataclasses.fields(cls)}
    elif is_typeddict(cls):
        docs = dict.fromkeys(typing.get_type_hints(cls), "")
    else:
        raise TypeError(f"{cls.__name__!r} has no plan type; make it a dataclass, TypedDict or pydantic model")
    hints = typing.get_type_hints(cls, include_extras=True)
    optional_keys: frozenset[str] = getattr(cls, "__optional_keys__", frozenset())
    fields: list[t.Field] = []
    for name, doc in docs.items():
        type_ = _annotation_type(hints[name])
        fields.append(
            t.Field(
                name, t.optional_type(type_) if name in optional_keys else type_, doc or annotation_doc(hints[name])
            )
        )
    return t.RecordType(tuple(fields), cls.__name__)


_NEAREST_ANNOTATIONS = {
    "bytes": "str",
    "bytearray": "str",
    "set": "list",
    "frozenset": "list",
    "Decimal": "float",
    "complex": "float",
    "Fraction": "float",
    "time": "str",
    "UUID": "str",
    "Pattern": "str",
    "Callable": "str",
    "Generator": "list",
    "Iterator": "list",
}


def nearest_annotation(annotation: object) -> str | None:
    """The supported type that comes nearest to an annotation without a plan type; None if none does.

    Example:
        >>> nearest_annotation(set[int])
        'list[int]'
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return f"Literal[{', '.join(repr(str(member.value)) for member in annotation)}]"
    if origin is Literal:
        return f"Literal[{', '.join(repr(str(value)) for value in arguments)}]"
    if origin in (dict, Mapping):
        return "dict[str, …]"
    found = _NEAREST_ANNOTATIONS.get(str(getattr(cast("object", origin or annotation), "__name__", "")))
    if found == "list":
        item = getattr(arguments[0], "__name__", None) if arguments else None
        return f"list[{item or '…'}]"
    if found is None and arguments:
        return next(filter(None, map(nearest_annotation, arguments)), None)
    return found


def annotation_doc(annotation: object) -> str:
    """The text in `Annotated[T, "text"]`, or an empty string."""
    if get_origin(annotation) is Annotated:
        return next((extra for extra in get_args(annotation)[1:] if isinstance(extra, str)), "")
    return ""


def signature_hints(function: Callable[..., object]) -> dict[str, Any]:
    """The resolved annotations of a function, with `Annotated` kept."""
    return typing.get_type_hints(function, include_extras=True)


SIMPLE_TYPES: dict[str, t.Type] = {
    "str": t.STR,
    "int": t.INT,
    "float": t.FLOAT,
    "number": t.NUMBER,
    "bool": t.BOOL,
    "date": t.DATE,
    "time": t.TIME,
    "datetime": t.DATETIME,
    "timedelta": t.DURATION,
    "None": t.NULL,
    "Any": t.ANY,
}

MAX_TYPE_DEPTH = 64

JsonType = str | dict[str, Any]


def type_to_json(type_: t.Type) -> JsonType:
    """A type as plain JSON: `"str"`, `{"list": …}`, `{"record": {…}}`."""
    match type_:
        case t.StrType(format=str() as format_):
            return {"str": format_}
        case t.ListType(item=item):
            return {"list": type_to_json(item)}
        case t.TupleType(items=items):
            return {"tuple": [type_to_json(item) for item in items]}
        case t.DictType(value=value):
            return {"dict": type_to_json(value)}
        case t.OptionalType(item=item):
            return {"optional": type_to_json(item)}
        case t.LiteralType(values=values):
            return {"literal": list(values)}
        case t.RecordType(fields=fields):
            return {"record": {field.name: type_to_json(field.type) for field in fields}}
        case _:
            return str(type_)


def type_from_json(value: object, depth: int = 0) -> t.Type:
    """The type that `type_to_json` wrote; a ValueError says what is wrong with any other input."""
    # Types also come from files and recorded runs, so the depth of the recursion is bounded.
    if depth > MAX_TYPE_DEPTH:
        raise ValueError(f"the type is nested more than {MAX_TYPE_DEPTH} levels deep")
    if isinstance(value, str) and value in SIMPLE_TYPES:
        return SIMPLE_TYPES[value]
    if not isinstance(value, dict):
        raise ValueError(f"{value!r} is not a type; the simple ones are {', '.join(SIMPLE_TYPES)}")
    entries = cast("dict[str, Any]", value)
    if len(entries) != 1:
        raise ValueError(f"a composite type has exactly one key, not {sorted(entries)!r}")
    ((kind, inner),) = entries.items()
    match kind, inner:
        case "str", str():
            return t.StrType(inner)
        case "list", _:
            return t.ListType(type_from_json(inner, depth + 1))
        case "dict", _:
            return t.DictType(type_from_json(inner, depth + 1))
        case "optional", _:
            return t.optional_type(type_from_json(inner, depth + 1))
        case "tuple", list():
            return t.TupleType(tuple(type_from_json(item, depth + 1) for item in cast("list[object]", inner)))
        case "literal", [_, *_] if all(isinstance(item, str) for item in cast("list[object]", inner)):
            return t.LiteralType(tuple(cast("list[str]", inner)))
        case "record", dict():
            named = cast("dict[str, object]", inner)
            return t.RecordType(tuple(t.Field(name, type_from_json(item, depth + 1)) for name, item in named.items()))
        case _:
            raise ValueError(f"{kind!r}: {inner!r} is not a type")


_SIMPLE_SCHEMAS: dict[type[t.Type], dict[str, Any]] = {
    t.IntType: {"type": "integer"},
    t.FloatType: {"type": "number"},
    t.BoolType: {"type": "boolean"},
    t.DateType: {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"},
    t.TimeType: {"type": "string", "pattern": "^[0-9]{2}:[0-9]{2}(:[0-9]{2})?$"},
    t.DateTimeType: {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2})?$"},
    t.DurationType: {"type": "number", "description": "seconds"},
    t.NullType: {"type": "null"},
    t.AnyType: {},
    t.CellType: {},
}


def type_json_schema(type_: t.Type, *, max_text: int | None = None, formats: bool = False) -> dict[str, Any]:
    """The JSON Schema of a type, with every field written out.

    Args:
        type_: The type.
        max_text: The maximum length of free text.
        formats: Whether every text format has its pattern, for a model that writes such a text; without it, only
            bounded formats have one.
    """

    def schema_of(inner: t.Type) -> dict[str, Any]:
        return type_json_schema(inner, max_text=max_text, formats=formats)

    match type_:
        case t.StrType(format=str() as name) if name in FORMATS and (formats or FORMATS[name].bounded):
            known = FORMATS[name]
            return {"enum": list(known.choices)} if known.choices else {"type": "string", "pattern": known.pattern}
        case t.StrType():
            return {"type": "string"} | ({"maxLength": max_text} if max_text else {})
        case t.LiteralType(values=values):
            return {"enum": list(values)}
        case t.ListType(item=item):
            return {"type": "array", "items": schema_of(item)}
        case t.TupleType(items=items):
            schemas = [schema_of(item) for item in items]
            return {"type": "array", "prefixItems": schemas, "minItems": len(items), "maxItems": len(items)}
        case t.DictType(value=value):
            return {"type": "object", "additionalProperties": schema_of(value)}
        case t.OptionalType(item=item):
            return {"anyOf": [schema_of(item), {"type": "null"}]}
        case t.RecordType(fields=fields):
            properties = {
                field.name: schema_of(field.type) | ({"description": field.doc} if field.doc else {})
                for field in fields
            }
            required = [field.name for field in fields]
            return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
        case _ if type(type_) in _SIMPLE_SCHEMAS:
            return dict(_SIMPLE_SCHEMAS[type(type_)])
        case _:
            raise ValueError(f"{type_!r} has no JSON Schema")
