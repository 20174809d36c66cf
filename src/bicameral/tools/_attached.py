"""What goes along with a call by its name: the file of an attachment, the document that is shared by its number.

Its content is no argument of the call, so no label of a run knows it. A tool says which of its arguments name such a
thing, where those things come from and who may read them:

    attaches=("attachments",)                                a stranger may have written it, and it is the user's alone
    attaches={"listing": Origin("third_party", "public")}    everyone may read it
    attaches={"file": Origin("third_party", names="text")}   whoever may read the `text` that this name stood for when
                                                             a tool of the same toolbox spoke of it in the run
    attaches={"parts[].file": Origin("third_party")}         a part of an argument names it
    attaches=()                                              nothing goes along but what the arguments hold

What is not said is taken for the worst.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from bicameral.labels import NOTHING, PUBLIC, USER, Label, Source
from bicameral.types import (
    AnyType,
    DictType,
    ListType,
    LiteralType,
    OptionalType,
    RecordType,
    StrType,
    TupleType,
    Type,
)

from ._faults import Fault
from ._origins import UNKNOWN, Origin, Participants, path_of
from ._shades import inside, principals

if TYPE_CHECKING:
    from ._tool import Tool

Attaches = Mapping[str, Origin]
"""The arguments, or parts of them, that name something which goes along with a call, and what is known of it."""

ATTACHED = " (what it names)"
"""Behind the name of an argument, in the facts of a call: the thing that goes along."""


def origins_of_named(said: Mapping[str, Origin] | Sequence[str]) -> Attaches:
    """What a tool says of the things it sends along: names alone say nothing of them."""
    return dict.fromkeys(said, UNKNOWN) if isinstance(said, list | tuple) else cast("Attaches", said)


def can_name(type_: Type, *, alone: bool = True, ids: bool = True) -> bool:
    """Whether a value of a type can say where something is kept: a path always can.

    Any text can, too, where it stands `alone` or in a list, and is no content; `ids` says whether an id counts.
    """
    match type_:
        case OptionalType(item=item):
            return can_name(item, alone=alone, ids=ids)
        case ListType(item=item):
            return can_name(item, alone=True, ids=ids)
        case StrType(format=kind):
            return kind == "path" or (alone and (kind is None or (ids and kind == "id")))
        case AnyType():
            return alone
        case _:
            return False


def _holds_text(type_: Type) -> bool:
    match type_:
        case StrType() | AnyType() | LiteralType():
            return True
        case OptionalType(item=item) | ListType(item=item) | DictType(value=item):
            return _holds_text(item)
        case TupleType(items=items):
            return any(map(_holds_text, items))
        case RecordType(fields=fields):
            return any(_holds_text(each.type) for each in fields)
        case _:
            return False


def _can_hide_names(type_: Type) -> bool:
    """Whether there can be a name anywhere in a value: also in a record, where a tool has said nothing."""
    match type_:
        case OptionalType(item=item) | ListType(item=item) | DictType(value=item):
            return _can_hide_names(item)
        case TupleType(items=items):
            return any(map(_can_hide_names, items))
        case RecordType(fields=fields):
            return any(_can_hide_names(each.type) for each in fields)
        case _:
            return can_name(type_)


def usually_attached(tool: Tool, receivers: tuple[str, ...] | None) -> dict[str, Origin]:
    """The arguments of a tool that may name what goes along, where it does not say so itself.

    `receivers` are those that the tool says name who gets it. A tool that says nothing may send whatever a text in any
    argument names; one that only asks others something, the files whose paths it is given. Where nobody has said who
    gets it, a single argument that directs says who: of several nobody knows which.
    """
    if not tool.outbound:
        return {}
    if not tool.declared:
        return {each.name: UNKNOWN for each in tool.arguments if _can_hide_names(each.type)}
    if receivers is None:
        directing = [each.name for each in tool.arguments if each.purpose == "directs" and _holds_text(each.type)]
        receivers = tuple(directing) if len(directing) == 1 else ()
    return {
        each.name: UNKNOWN
        for each in tool.arguments
        if each.name not in receivers and can_name(each.type, alone=tool.changes and each.purpose != "carries")
    }


def attached_label(origin: Origin, tool: str, argument: str, step: str) -> Label:
    """The label of what an argument names."""
    readers = PUBLIC if origin.readers == "public" else frozenset({USER})
    return Label({Source(origin.trust, tool, argument, step)}, readers)


def argument_of(part: str) -> str:
    """The argument that a part belongs to: `parts` of `parts[].file`."""
    return path_of(part)[0]


def named_in(part: str, value: object) -> list[str]:
    """The names in the value of an argument: all the texts and numbers that stand where a part says, and in that."""
    return list(_names(inside(value, path_of(part)[1:])))


def _names(values: Iterable[object]) -> Iterator[str]:
    for value in values:
        match value:
            case dict():
                yield from _names(cast("dict[str, object]", value).values())
            case list() | tuple():
                yield from _names(cast("list[object]", value))
            case _:
                yield from principals(value)


def named_along(tool: Tool, given: Mapping[str, Any], names: Sequence[str], step: str) -> Iterator[tuple[str, Label]]:
    """What goes along with a call, for each part of an argument that names such a thing: NOTHING where none is named.

    `names` are the arguments that are given, and `given` those whose values are known: before a run the literals.
    """
    for part, origin in tool.attaches.items():
        name = argument_of(part)
        argument = tool.argument(name)
        if name not in names and (argument is None or argument.required or _is_empty(argument.default)):
            continue
        empty = name in given and all(map(_is_empty, inside(given[name], path_of(part)[1:])))
        yield part, NOTHING if empty else attached_label(origin, tool.name, part, step)


def _is_empty(value: object) -> bool:
    return value is None or (isinstance(value, str | list | tuple | dict) and not value)


def attach_faults(attaches: object, known: Mapping[str, object]) -> Iterator[Fault]:
    """Everything that cannot be true of what a tool sends along."""
    if not isinstance(attaches, Mapping):
        yield Fault((), f"{attaches!r} names no arguments", 'for example attaches=("attachments",)')
        return
    for name, origin in cast("Mapping[str, object]", attaches).items():
        if not _is_part_of(name, known):
            yield Fault((), f"there is no argument {name!r}", ", ".join(known) or "no arguments")
        elif not isinstance(origin, Origin):
            yield Fault((name,), f"{origin!r} is not an Origin", 'for example Origin("third_party")')
        elif isinstance(origin.readers, Participants) or origin.own_when or origin.fresh:
            yield Fault((name,), "nothing at hand can say so of what is sent by its name", "'public' or 'user'")


def _is_part_of(part: object, known: Mapping[str, object]) -> bool:
    try:
        return isinstance(part, str) and argument_of(part) in known
    except (ValueError, IndexError):
        return False
