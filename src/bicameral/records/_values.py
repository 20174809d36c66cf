"""Values of records: typed by a class or by a type of plans, checked when written and when read, stored as JSON."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Generic,
    NotRequired,
    Required,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from pydantic import BaseModel

from bicameral.errors import BicameralError, RecordError
from bicameral.types import Type, mismatch, to_plain, type_from_annotation, value_from_json, value_to_json

T = TypeVar("T")
_Build = Callable[[Any], Any]


class RecordKind(Generic[T]):
    """The kind of value that a collection holds.

    Args:
        kind: A dataclass, a `TypedDict`, a pydantic model or any other annotation with a plan type; or such a type
            itself, whose values are plain.
    """

    def __init__(self, kind: type[T] | Type) -> None:
        try:
            self.type = kind if isinstance(kind, Type) else type_from_annotation(kind)
            self._build = _plain if isinstance(kind, Type) else _builder(kind)
        except TypeError as error:
            raise RecordError("records.bad-type", f"a record cannot be of this type: {error}") from None

    def to_json(self, value: T) -> Any:
        """The value as JSON; an error that does not quote it if it is not of this kind."""
        try:
            plain = to_plain(value)
        except TypeError:
            raise self._bad_value_error() from None
        if mismatch(plain, self.type) is not None:
            raise self._bad_value_error()
        return value_to_json(plain)

    def from_json(self, data: Any) -> T:
        """The value that `to_json` wrote; a ValueError for anything else."""
        plain = value_from_json(data)
        if mismatch(plain, self.type) is not None:
            raise ValueError("it is of another type")
        try:
            return cast("T", self._build(plain))
        except BicameralError as error:
            raise ValueError(error.code) from None

    def _bad_value_error(self) -> RecordError:
        # What does not fit may be untrusted text, so only the type is named.
        return RecordError(
            "records.bad-value", "this value is not of the type of the collection", expected=str(self.type)
        )


def _plain(value: Any) -> Any:
    return value


def _builder(annotation: Any) -> _Build:
    """A function that makes a value of this annotation of a plain one, which has the right type already."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Annotated, NotRequired, Required):
        return _builder(arguments[0])
    if origin in (Union, types.UnionType):
        arms = [_builder(each) for each in arguments if each is not type(None)]
        if len(arms) == 1:
            return lambda value: None if value is None else arms[0](value)
        if any(arm is not _plain for arm in arms):
            raise TypeError("which class of a union a stored value had is not known")
        return _plain
    if origin is tuple:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return _sequence_builder(tuple, _builder(arguments[0]))
        items = [_builder(each) for each in arguments]
        return lambda value: tuple(build(each) for build, each in zip(items, value, strict=True))
    if origin in (dict, Mapping):
        build_value = _builder(arguments[1])
        return lambda value: {name: build_value(each) for name, each in value.items()}
    if origin in (list, Sequence, Iterable):
        return _sequence_builder(list, _builder(arguments[0]))
    if isinstance(annotation, type):
        return _class_builder(cast("type[Any]", annotation))
    return _plain


def _sequence_builder(kind: type[list[Any]] | type[tuple[Any, ...]], build: _Build) -> _Build:
    return lambda value: kind(build(each) for each in value)


def _class_builder(kind: type[Any]) -> _Build:
    if kind is tuple or kind is Path:
        return kind
    makes_dict = is_typeddict(kind)
    if not (makes_dict or dataclasses.is_dataclass(kind) or issubclass(kind, BaseModel)):
        return _plain
    make = cast("Callable[..., Any]", dict if makes_dict else kind)
    fields = {name: _builder(hint) for name, hint in get_type_hints(kind, include_extras=True).items()}
    return lambda value: make(**{name: fields[name](each) for name, each in value.items()})


def text_of(value: Any) -> str:
    """All texts in a stored value, for a search."""
    match value:
        case str():
            return value
        case dict():
            return " ".join(text_of(each) for each in cast("dict[str, Any]", value).values())
        case list():
            return " ".join(text_of(each) for each in cast("list[Any]", value))
        case _:
            return ""
