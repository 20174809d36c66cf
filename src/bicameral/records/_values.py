"""Values of records: typed by a class or by a type of plans, checked when written and when read, stored as JSON."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Generic, TypeVar, cast

from bicameral.errors import BicameralError, RecordError
from bicameral.types import Type, mismatch, to_plain, type_from_annotation, value_from_json, value_to_json

T = TypeVar("T")


class RecordKind(Generic[T]):
    """The kind of value that a collection holds.

    Args:
        kind: A dataclass, a `TypedDict`, a pydantic model or any other annotation with a plan type; or such a type
            itself, whose values are plain.
    """

    def __init__(self, kind: type[T] | Type) -> None:
        self._class = None if isinstance(kind, Type) else kind
        try:
            self.type = kind if isinstance(kind, Type) else type_from_annotation(kind)
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
        if self._class is None:
            return plain
        try:
            # Its types are right already; this makes objects of records, and tuples and sets of lists.
            return cast("T", self._adapter.validate_python(plain))
        except BicameralError as error:
            raise ValueError(error.code) from None

    @cached_property
    def _adapter(self) -> Any:
        from pydantic import TypeAdapter

        return TypeAdapter(cast("Any", self._class))

    def _bad_value_error(self) -> RecordError:
        # What does not fit may be untrusted text, so only the type is named.
        return RecordError(
            "records.bad-value", "this value is not of the type of the collection", expected=str(self.type)
        )


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
