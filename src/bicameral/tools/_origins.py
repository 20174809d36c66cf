"""Origins: where each part of a tool's result comes from, and who may read it.

    {"": Origin("third_party"),                                    how many there are, and every part not named below
     "[].id": Origin("system"),                                    a field of each item of a list
     "[].body": Origin("third_party", Participants(("sender", "to")))}

A part is a path into the result: `""` is the value itself, `[]` the items of a list, `*` the values of a dict, a name
the field of a record. For a part that is not named the nearest enclosing named part counts; if there is none, the part
is untrusted and for the user alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bicameral import types as t
from bicameral.documents import KeyFault
from bicameral.errors import nearest_name
from bicameral.labels import TRUSTS, Trust

PartPath = tuple[str, ...]
"""A part as steps: `"[].sender"` is `("[]", "sender")`."""

_STEP = re.compile(r"\[\]|\.?(\*|[^.\[\]*]+)")


@dataclass(frozen=True, slots=True)
class Participants:
    """Readers that the result names itself: fields of the same record that hold addresses or account ids.

    A field may hold one, a list of them, or a dict with them as keys (who may open a file, and how). The record is the
    part itself if it is one, otherwise the record that holds the part. For a list of records it is each item: the
    length of the list may be known to those whom every item names.
    """

    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Origin:
    """Who wrote a part of a result, and who may read it.

    Args:
        trust: Who wrote it.
        readers: Who may read it.
        own_when: A field of the same record that the service sets, and its value where the user wrote the part: the
            subject of a transfer is untrusted, unless `("direction", "outgoing")`.
        fresh: Whether the service makes it up for what the call creates (the id of a new file), so that no argument
            influences it.
        names: For an id or name that the service gives: the field of the same record that holds the thing itself. A
            tool of the same toolbox that `attaches` such a thing may send it, by this id, to whoever may read that
            field.

    Example:
        >>> Origin("third_party", Participants(("sender", "to"))).to_json()
        {'trust': 'third_party', 'readers': ['sender', 'to']}
    """

    trust: Trust
    readers: Literal["public", "user"] | Participants = "user"
    own_when: tuple[str, str] | None = None
    fresh: bool = False
    names: str | None = None

    def to_json(self) -> dict[str, Any]:
        readers = list(self.readers.fields) if isinstance(self.readers, Participants) else self.readers
        own = {"own_when": {"field": self.own_when[0], "is": self.own_when[1]}} if self.own_when else {}
        more = ({"fresh": True} if self.fresh else {}) | ({"names": self.names} if self.names else {})
        return {"trust": self.trust, "readers": readers, **own, **more}


UNKNOWN_ORIGIN = Origin("third_party")
"""The worst case, for a part that is not declared: untrusted, and only the user may see it."""

Origins = Mapping[str, Origin]


def parse_part(part: str) -> PartPath:
    """The steps of a part; a ValueError if the text is not one."""
    steps: list[str] = []
    at = 0
    while at < len(part):
        token = _STEP.match(part, at)
        # A name needs a dot before it, except at the beginning.
        if token is None or (token[1] is not None and token[0].startswith(".") == (at == 0)):
            raise ValueError(f"{part!r} is not a part")
        steps.append(token[1] or "[]")
        at = token.end()
    return tuple(steps)


def render_part(path: PartPath) -> str:
    """A part as it is declared."""
    text = ""
    for step in path:
        text += step if step == "[]" or not text else f".{step}"
    return text


def inner_type(type_: t.Type, step: str) -> t.Type | None:
    """The type one step further in, or None if there is no such step."""
    match t.without_optional(type_), step:
        case t.ListType(item=item), "[]":
            return item
        case t.TupleType(), "[]":
            return t.ANY
        case t.DictType(value=value), _ if step != "[]":
            return value
        case t.RecordType() as record, _:
            return record.get(step)
        case _:
            return None


def enclosing_record(type_: t.Type, path: PartPath) -> PartPath | None:
    """The path of the record that a part is or lies in; for a list of records that of its items."""
    record: PartPath | None = None
    current: t.Type | None = type_
    for length in range(len(path) + 1):
        if isinstance(t.without_optional(current or t.ANY), t.RecordType):
            record = path[:length]
        current = inner_type(current, path[length]) if current is not None and length < len(path) else None
    items = t.without_optional(type_at(type_, path) or t.ANY) if record is None else None
    if isinstance(items, t.ListType) and isinstance(t.without_optional(items.item), t.RecordType):
        return (*path, "[]")
    return record


def type_at(type_: t.Type, path: PartPath) -> t.Type | None:
    """The type at a path, or None if there is no such path."""
    current: t.Type | None = type_
    for step in path:
        current = None if current is None else inner_type(current, step)
    return current


def nearest_origin(origins: Origins, path: PartPath) -> tuple[str, Origin]:
    """The nearest declared part around a path, and its origin."""
    for length in range(len(path), -1, -1):
        part = render_part(path[:length])
        if part in origins:
            return part, origins[part]
    return "", UNKNOWN_ORIGIN


def origin_faults(origins: object, result: t.Type) -> Iterator[KeyFault]:
    """Everything wrong with the origins of a result, each under its part."""
    if not isinstance(origins, Mapping):
        yield KeyFault((), f"{origins!r} is not a mapping from parts to origins", 'for example {"": Origin("system")}')
        return
    valid: dict[str, Origin] = {}
    for part, origin in origins.items():  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(part, str):
            yield KeyFault((), f"the part {part!r} is not text", "such as '' or '[].sender'")
        elif not isinstance(origin, Origin):
            yield KeyFault((part,), f"{origin!r} is not an Origin", 'for example Origin("third_party")')
        else:
            valid[part] = origin
    for part, origin in valid.items():
        yield from _path_faults(part, result)
        yield from _declaration_faults(part, origin, result, valid)


def _path_faults(part: str, result: t.Type) -> Iterator[KeyFault]:
    try:
        path = parse_part(part)
    except ValueError as error:
        yield KeyFault((part,), str(error), "such as '', '[]', '[].sender' or 'rows.*'")
        return
    current = result
    for number, step in enumerate(path):
        inner = inner_type(current, step)
        if inner is None:
            yield _unknown_part_fault(part, path[:number], step, t.without_optional(current))
            return
        current = inner


def _unknown_part_fault(part: str, parent: PartPath, step: str, type_: t.Type) -> KeyFault:
    where = repr(render_part(parent)) if parent else "the result"
    known: list[str] = []
    match type_:
        case t.RecordType():
            known = list(type_.names)
        case t.ListType() | t.TupleType():
            known = ["[]"]
        case t.DictType():
            known = ["*"]
        case t.AnyType():
            return KeyFault((part,), f"nothing is known of what is inside {where}", "a result type that has this part")
        case t.NullType():
            return KeyFault((part,), f"{where} is None and has no parts", "only the part ''")
        case _:
            return KeyFault((part,), f"{where} is {type_} and has no parts", "only what is around it")
    return KeyFault((part,), f"{where} has no part {step!r}", ", ".join(known), nearest_name(step, known))


def _declaration_faults(part: str, origin: Origin, result: t.Type, origins: Origins) -> Iterator[KeyFault]:
    if origin.trust not in TRUSTS:
        given = str(origin.trust)
        yield KeyFault((part, "trust"), f"{origin.trust!r} is no trust", ", ".join(TRUSTS), nearest_name(given, TRUSTS))
    if isinstance(origin.readers, Participants):
        fields = origin.readers.fields
        if not fields or isinstance(fields, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            yield KeyFault((part, "readers"), f"{fields!r} names no participants", 'fields, such as ("sender", "to")')
            return
        for field in fields:
            yield from _field_faults((part, "readers"), part, field, result)
    elif origin.readers not in ("public", "user"):
        yield KeyFault(
            (part, "readers"), f"{origin.readers!r} are no readers", "'public', 'user' or the fields that name them"
        )
    if origin.own_when is not None:
        yield from _own_when_faults(part, origin.own_when, result, origins)
    if origin.fresh and (origin.trust != "system" or not isinstance(_part_type(part, result), t.StrType | t.IntType)):
        yield KeyFault(
            (part, "fresh"), "only a name or number that the service itself gives is fresh", "trust 'system'"
        )
    if origin.names is not None:
        yield from _named_thing_faults(part, origin, result)


def _named_thing_faults(part: str, origin: Origin, result: t.Type) -> Iterator[KeyFault]:
    # An untrusted id could be that of a thing which the recipient must not get.
    if origin.trust == "third_party" or not isinstance(_part_type(part, result), t.StrType | t.IntType):
        yield KeyFault((part, "names"), "a stranger could give a thing of the user's this name", "trust 'system'")
    record_path = enclosing_record(result, parse_part(part))
    record = t.without_optional(type_at(result, record_path) or t.ANY) if record_path is not None else t.ANY
    fields = record.names if isinstance(record, t.RecordType) else ()
    if origin.names not in fields:
        yield KeyFault((part, "names"), f"there is no field {origin.names!r} beside it", ", ".join(fields))


def _part_type(part: str, result: t.Type) -> t.Type:
    try:
        return t.without_optional(type_at(result, parse_part(part)) or t.ANY)
    except ValueError:
        return t.ANY


def _own_when_faults(part: str, own_when: tuple[str, str], result: t.Type, origins: Origins) -> Iterator[KeyFault]:
    field, _ = own_when
    faults = list(_field_faults((part, "own_when"), part, field, result))
    yield from faults
    record = None if faults else enclosing_record(result, parse_part(part))
    if record is not None and nearest_origin(origins, (*record, field))[1].trust == "third_party":
        yield KeyFault(
            (part, "own_when"),
            f"{field!r} is a stranger's word, and a stranger could say that the user wrote this",
            "a field whose trust is 'system' or 'user'",
        )


def _field_faults(at: tuple[str, ...], part: str, field: str, result: t.Type) -> Iterator[KeyFault]:
    try:
        path = parse_part(part)
    except ValueError:
        return
    record_path = enclosing_record(result, path) if type_at(result, path) is not None else None
    if record_path is None:
        yield KeyFault(
            at, "this part is in no record, so there are no fields to name its readers", "'public' or 'user'"
        )
        return
    record = t.without_optional(type_at(result, record_path) or t.ANY)
    names = record.names if isinstance(record, t.RecordType) else ()
    type_ = record.get(field) if isinstance(record, t.RecordType) else None
    if type_ is None:
        yield KeyFault(at, f"there is no field {field!r} beside it", ", ".join(names), nearest_name(str(field), names))
    elif not _can_name_people(type_):
        yield KeyFault(
            at, f"the field {field!r} is {type_} and names nobody", "text, a list of texts, or a dict by text"
        )


def _can_name_people(type_: t.Type) -> bool:
    plain = t.without_optional(type_)
    if isinstance(plain, t.DictType):
        return True
    single = t.without_optional(plain.item) if isinstance(plain, t.ListType) else plain
    return isinstance(single, t.StrType | t.LiteralType | t.IntType | t.AnyType)
