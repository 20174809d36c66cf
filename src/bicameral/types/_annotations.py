"""From Python annotations to types, so that an ordinary typed function can be a tool."""

from __future__ import annotations

import dataclasses
import datetime as dt
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

from ._types import (
    ANY,
    BOOL,
    DATE,
    DATETIME,
    DURATION,
    FLOAT,
    INT,
    NULL,
    STR,
    TIME,
    DictType,
    Field,
    ListType,
    LiteralType,
    RecordType,
    StrType,
    TupleType,
    Type,
    join,
    optional,
)

_SIMPLE: dict[object, Type] = {
    str: STR,
    int: INT,
    float: FLOAT,
    bool: BOOL,
    dt.date: DATE,
    dt.time: TIME,
    dt.datetime: DATETIME,
    dt.timedelta: DURATION,
    None: NULL,
    type(None): NULL,
    Any: ANY,
    object: ANY,
    Path: StrType("path"),
    list: ListType(ANY),
    tuple: ListType(ANY),
    dict: DictType(ANY),
}


Id = Annotated[str, StrType("id")]
"""A text by which a tool knows a thing. It comes from a result; a planner never writes one itself."""
FilePath = Annotated[str, StrType("path")]
Url = Annotated[str, StrType("url")]
Address = Annotated[str, StrType("email")]
"""A file to read, a page to open, someone to write to: a planner takes these from the request or from a result."""
Iban = Annotated[str, StrType("iban")]
Phone = Annotated[str, StrType("phone")]
Code = Annotated[str, StrType("code")]
Currency = Annotated[str, StrType("currency")]
"""Texts of a tight shape, which can hold nothing else: a tool is never given, and never gives, another."""


class Money(TypedDict):
    """An amount and its currency; in plans the type is `money`."""

    amount: float
    currency: Currency


def from_annotation(annotation: object) -> Type:
    """The plan type of a Python annotation; a TypeError names what has none."""
    try:
        return _type_of(annotation)
    except RecursionError:
        raise TypeError(f"{annotation!r} contains itself; plans have no endless types") from None


def _type_of(annotation: object) -> Type:
    try:
        if annotation in _SIMPLE:
            return _SIMPLE[annotation]
    except TypeError:
        pass
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        format_ = next((extra for extra in arguments[1:] if isinstance(extra, StrType)), None)
        return format_ or _type_of(arguments[0])
    if origin is NotRequired:
        return optional(_type_of(arguments[0]))
    if origin is Required:
        return _type_of(arguments[0])
    if origin is Literal and all(isinstance(value, str) for value in arguments):
        return LiteralType(tuple(arguments))
    if origin in (Union, pytypes.UnionType):
        return _from_union(arguments)
    if origin in (list, Sequence, Iterable):
        return ListType(_type_of(arguments[0]))
    if origin in (dict, Mapping) and arguments[0] is str:
        return DictType(_type_of(arguments[1]))
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return ListType(_type_of(arguments[0]))
        return TupleType(tuple(_type_of(item) for item in arguments))
    if isinstance(annotation, type):
        return _from_class(cast("type[object]", annotation))
    raise TypeError(f"{annotation!r} has no plan type; use str, int, float, bool, date, list, dict or a record")


def _from_union(members: tuple[Any, ...]) -> Type:
    found: Type | None = None
    for member in members:
        type_ = _type_of(member)
        found = type_ if found is None else (join(found, type_) or ANY)
    result = found or ANY
    return optional(result) if type(None) in members else result


def _from_class(cls: type[object]) -> Type:
    if issubclass(cls, BaseModel):
        docs = {name: info.description or "" for name, info in cls.model_fields.items()}
    elif dataclasses.is_dataclass(cls):
        docs = {each.name: "" for each in dataclasses.fields(cls)}
    elif is_typeddict(cls):
        docs = dict.fromkeys(typing.get_type_hints(cls), "")
    else:
        raise TypeError(f"{cls.__name__!r} has no plan type; make it a dataclass, TypedDict or pydantic model")
    hints = typing.get_type_hints(cls, include_extras=True)
    absent: frozenset[str] = getattr(cls, "__optional_keys__", frozenset())
    fields: list[Field] = []
    for name, doc in docs.items():
        type_ = _type_of(hints[name])
        fields.append(Field(name, optional(type_) if name in absent else type_, doc or annotation_doc(hints[name])))
    return RecordType(tuple(fields), cls.__name__)


def annotation_doc(annotation: object) -> str:
    """The text in `Annotated[T, "text"]`, or nothing."""
    if get_origin(annotation) is Annotated:
        return next((extra for extra in get_args(annotation)[1:] if isinstance(extra, str)), "")
    return ""


def signature_hints(function: Callable[..., object]) -> dict[str, Any]:
    """The resolved annotations of a function, `Annotated` kept."""
    return typing.get_type_hints(function, include_extras=True)
