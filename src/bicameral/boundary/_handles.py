"""Handles: what the privileged side may pass on and not read.

The value stays in the run, with its type and its labels. A handle says that it is there, of what kind, how long and
from where, and never a piece of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2s
from typing import Any, Literal, cast, get_args

from bicameral.errors import BicameralError
from bicameral.labels import Label, Public, Shade, Source, shade_from_json, shade_to_json
from bicameral.types import (
    DictType,
    ListType,
    RecordType,
    StrType,
    TupleType,
    Type,
    from_json,
    plain,
    to_json,
    value_from_json,
    value_to_json,
)

MAX_HANDLES = 10_000
MAX_SOURCES = 3

HandleKind = Literal["text", "email", "url", "id", "path", "code", "list", "record", "dict", "value"]
_KINDS: tuple[HandleKind, ...] = get_args(HandleKind)
_TEXTS: dict[str | None, HandleKind] = {"email": "email", "url": "url", "id": "id", "path": "path", "code": "code"}
_ID = re.compile(r"h[1-9][0-9]{0,5}-[0-9a-f]{8}")
_PART = re.compile(r"[A-Za-z0-9_.\[\]*]{1,60}")


class BoundaryError(BicameralError):
    """Something was brought to the boundary that cannot cross it."""


@dataclass(frozen=True, slots=True)
class Handle:
    """A name for a value of a run: its kind, its length (characters or items) and where it came from."""

    id: str
    kind: HandleKind
    length: int
    origin: str

    def to_json(self) -> dict[str, Any]:
        return {"handle": self.id, "kind": self.kind, "length": self.length, "origin": self.origin}

    @classmethod
    def from_json(cls, value: object) -> Handle:
        """The handle that `to_json` wrote; anything else is refused."""
        match value:
            case {"handle": str() as id_, "kind": str() as kind, "length": int() as length, "origin": str() as origin}:
                if (
                    len(cast("dict[str, Any]", value)) == 4
                    and _ID.fullmatch(id_)
                    and kind in _KINDS
                    and type(length) is int
                    and length >= 0
                ):
                    return cls(id_, kind, length, origin)
            case _:
                pass
        raise BoundaryError("boundary.bad-handle", "this is not a handle", expected="what Handle.to_json gives")


@dataclass(frozen=True, slots=True)
class Held:
    """What a handle stands for."""

    value: Any
    type: Type
    shade: Shade


class Handles:
    """The handles of one run. Ids tell runs apart, so that a handle of another run stands for nothing here.

    Example:
        >>> handles = Handles("20260301-101500-a1b2c3")
        >>> body = handles.put("Dear Ada, …", STR, shade)
        >>> handles.get(body).value
        'Dear Ada, …'
    """

    def __init__(self, run: str) -> None:
        self.run = run
        self._held: dict[str, tuple[Handle, Held]] = {}

    def __len__(self) -> int:
        return len(self._held)

    def put(self, value: object, type_: Type, shade: Shade) -> Handle:
        """Keep a value and get its handle."""
        if len(self._held) >= MAX_HANDLES:
            raise BoundaryError("boundary.too-many-handles", f"a run has at most {MAX_HANDLES:,} handles")
        kept = plain_value(value)
        handle = Handle(self._id(len(self._held) + 1), _kind(type_), _length(kept), summary(shade.flat))
        self._held[handle.id] = handle, Held(kept, type_, shade)
        return handle

    def get(self, given: Handle | str) -> Held:
        """What a handle stands for; one that this run did not give, or that was changed, is refused."""
        # By the very type: a class of somebody's own may equal every handle there is.
        if type(given) not in (str, Handle):
            raise BoundaryError("boundary.bad-handle", "this is not a handle", expected="a Handle, or the id of one")
        id_ = given if isinstance(given, str) else given.id
        found = self._held.get(id_)
        if found is None:
            raise BoundaryError("boundary.unknown-handle", "this run has no such handle", fix="Use one that it gave.")
        handle, held = found
        if not isinstance(given, str) and handle != given:
            raise BoundaryError("boundary.forged-handle", f"the handle {id_!r} is not the one that the run gave")
        # A copy: whoever gets it may change it.
        return Held(plain(held.value), held.type, held.shade)

    def to_json(self) -> dict[str, Any]:
        """Everything, for the record of the run. It holds what the handles hide."""
        held = [
            {
                **handle.to_json(),
                "value": value_to_json(kept.value),
                "type": to_json(kept.type),
                "shade": shade_to_json(kept.shade),
            }
            for handle, kept in self._held.values()
        ]
        return {"run": self.run, "handles": held}

    @classmethod
    def from_json(cls, value: object) -> Handles:
        """The table that `to_json` wrote; a damaged one is refused."""
        written = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        run, entries = written.get("run"), written.get("handles")
        if len(written) != 2 or not isinstance(run, str) or not isinstance(entries, list):
            raise _damaged()
        table = cls(run)
        for entry in cast("list[Any]", entries):
            try:
                facts: dict[str, Any] = dict(entry)
                held = value_from_json(facts.pop("value"))
                type_, shade = from_json(facts.pop("type")), shade_from_json(facts.pop("shade"))
            except (KeyError, TypeError, ValueError):
                raise _damaged() from None
            if table.put(held, type_, shade) != Handle.from_json(facts):
                raise _damaged()
        return table

    def _id(self, number: int) -> str:
        return f"h{number}-{blake2s(f'{self.run}:{number}'.encode(), digest_size=4).hexdigest()}"


def plain_value(value: object) -> Any:
    """The plain value of anything; what is none, or is beyond all bounds, is refused."""
    try:
        return plain(value)
    except TypeError as error:
        raise BoundaryError("boundary.bad-value", f"this cannot be kept: {error}") from None


def _damaged() -> BoundaryError:
    return BoundaryError("boundary.bad-handle", "this is not a table of handles", expected="what Handles.to_json gives")


def _kind(type_: Type) -> HandleKind:
    match type_:
        case StrType(format=name):
            return _TEXTS.get(name, "text")
        case ListType() | TupleType():
            return "list"
        case RecordType():
            return "record"
        case DictType():
            return "dict"
        case _:
            return "value"


def _length(value: object) -> int:
    return len(cast("str | list[Any]", value)) if isinstance(value, str | list | dict) else 1


def summary(label: Label) -> str:
    """Where a value came from, in words that hold nothing of it. Readers are counted: their names may be strangers'."""
    outside = sorted(source for source in label.sources if source.trust == "third_party")
    if not outside:
        inside = sorted({source.trust for source in label.sources})
        trust = "trusted, from the " + " and the ".join(inside) if inside else "trusted"
    else:
        named = ", ".join(dict.fromkeys(map(_place, outside[:MAX_SOURCES])))
        trust = f"untrusted, from {named}" + (" and others" if len(outside) > MAX_SOURCES else "")
    if isinstance(label.readers, Public):
        return f"{trust}; for everyone"
    others = len(label.readers) - 1
    return f"{trust}; for the user" + (f" and {others} others" if others else " alone")


def _place(source: Source) -> str:
    part = f" {source.part}" if _PART.fullmatch(source.part) else ""
    tool = source.tool if _PART.fullmatch(source.tool) else "a tool"
    step = f" (step {source.step})" if re.fullmatch(r"[0-9a-z/]{1,40}", source.step) else ""
    return f"{tool}{part}{step}"
