"""Labels of a call: those of its result, from the tool's declared origins, and those of what is attached by name.

The content of an attachment (the file of a mail, the document that is shared by its number) is no argument of the
call, so no label of a run covers it. A tool therefore declares which arguments name such a thing, where those things
come from and who may read them:

    attaches=("attachments",)                                untrusted, and for the user alone
    attaches={"listing": Origin("third_party", "public")}    everyone may read it
    attaches={"file": Origin("third_party", names="text")}   whoever may read the `text` that this name stood for when
                                                             a tool of the same toolbox returned it in the run
    attaches={"parts[].file": Origin("third_party")}         a part of an argument names it
    attaches=()                                              nothing is sent but what the arguments hold

What is not declared is assumed to be the worst case.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from bicameral.documents import KeyFault
from bicameral.labels import (
    NOTHING,
    PUBLIC,
    USER,
    Label,
    LabelTree,
    ListLabels,
    Readers,
    RecordLabels,
    Source,
    join,
    join_all,
    taint,
)
from bicameral.tools._origins import (
    UNKNOWN_ORIGIN,
    Origin,
    Origins,
    Participants,
    PartPath,
    enclosing_record,
    inner_type,
    nearest_origin,
    parse_part,
    render_part,
    type_at,
    without_optional,
)
from bicameral.types import (
    ANY,
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

if TYPE_CHECKING:
    from bicameral.tools._tool import Tool


_USER_ONLY: Readers = frozenset({USER})
_LONGEST_NAME = 320
_MOST_NAMES = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class ResultPart:
    """One part of a result: where it comes from, and the parts inside it that are told apart.

    `said` is the part that its origin is declared for, `record` the way to the record whose fields that origin names,
    `keyed` those of its fields that are dicts, which name by their keys.
    """

    path: str
    declared_part: str
    origin: Origin
    record: PartPath | None
    dict_fields: frozenset[str] = frozenset()
    kind: str = "flat"
    inner_parts: tuple[tuple[str, ResultPart], ...] = ()


def compile_parts(origins: Origins, result: Type) -> ResultPart:
    """The origins along the type of a result: inside a part of which nothing more is said nothing is told apart."""
    return _compile_part(origins, {parse_part(part) for part in origins}, result, result, ())


def _compile_part(origins: Origins, named: set[PartPath], result: Type, type_: Type, path: PartPath) -> ResultPart:
    said, origin = nearest_origin(origins, path)
    record = enclosing_record(result, parse_part(said))
    facts = (render_part(path), said, origin, record, _dict_fields(result, record))
    if not any(len(each) > len(path) and each[: len(path)] == path for each in named):
        return ResultPart(*facts)

    def below(step: str, own: Type) -> tuple[str, ResultPart]:
        return step, _compile_part(origins, named, result, own, (*path, step))

    match without_optional(type_):
        case ListType(item=item):
            return ResultPart(*facts, "list", (below("[]", item),))
        case TupleType() as pair:
            found = inner_type(pair, "[]")
            return ResultPart(*facts, "list", (below("[]", found),)) if found else ResultPart(*facts)
        case RecordType(fields=fields):
            return ResultPart(*facts, "record", tuple(below(each.name, each.type) for each in fields))
        case DictType(value=value):
            keys = dict.fromkeys(
                ["*", *(each[len(path)] for each in sorted(named) if each[: len(path)] == path != each)]
            )
            return ResultPart(*facts, "dict", tuple(below(key, value) for key in keys))
        case _:
            return ResultPart(*facts)


def _dict_fields(result: Type, record: PartPath | None) -> frozenset[str]:
    found = None if record is None else without_optional(type_at(result, record) or ANY)
    fields = found.fields if isinstance(found, RecordType) else ()
    return frozenset(each.name for each in fields if isinstance(without_optional(each.type), DictType))


ResolvedReaders = tuple[tuple[str, Readers, bool], ...]
"""By part: who reads it and whether the user wrote it, where only the value can tell."""


def resolve_readers(top: ResultPart, value: object) -> ResolvedReaders:
    """What the value itself says about readers and ownership: for a list, what holds for every item."""
    found: list[tuple[str, Readers, bool]] = []
    for each in _value_dependent_parts(top):
        records = _values_at(value, each.record or ())
        found.append((each.declared_part, _part_readers(each, records), _is_users_own(each.origin, records)))
    return tuple(found)


def _value_dependent_parts(top: ResultPart) -> Iterable[ResultPart]:
    """Each part whose facts depend on the value, once."""
    found: dict[str, ResultPart] = {}
    waiting = [top]
    while waiting:
        part = waiting.pop()
        if isinstance(part.origin.readers, Participants) or part.origin.own_when:
            found.setdefault(part.declared_part, part)
        waiting.extend(each for _, each in part.inner_parts)
    return found.values()


def _values_at(value: object, path: PartPath) -> list[object]:
    """What stands at a path, for every item on the way; None (an optional record) is left out."""
    here: list[object] = [value]
    for step in path:
        here = [each for one in here for each in _step_values(one, step)]
    return [each for each in here if each is not None]


def values_at(value: object, path: PartPath) -> list[object]:
    """All that stands at a path in a value."""
    return _values_at(value, path)


def _step_values(value: object, step: str) -> Iterable[object]:
    match value:
        case list() if step == "[]":
            return cast("list[object]", value)
        case dict() if step == "*":
            return cast("dict[str, object]", value).values()
        case dict() if step in value:
            return (cast("dict[str, object]", value)[step],)
        case _:
            return ()


def _part_readers(part: ResultPart, records: list[object]) -> Readers:
    origin = part.origin
    if not isinstance(origin.readers, Participants):
        return PUBLIC if origin.readers == "public" else _USER_ONLY
    readers: set[str] | None = None
    for record in records:
        named = _named_principals(record, origin.readers.fields, part.dict_fields)
        readers = named if readers is None else readers & named
        if not readers:
            break
    return frozenset(readers | {USER}) if readers else _USER_ONLY


def _named_principals(record: object, fields: Iterable[str], keyed: frozenset[str]) -> set[str]:
    """The principals that a record names; of a record that names too many, none."""
    found: set[str] = set()
    if isinstance(record, dict):
        for field in fields:
            named: object = cast("dict[str, object]", record).get(field)
            # Of a dict the keys are the names; what stands under them says something about each.
            if field in keyed and isinstance(named, dict):
                named = list(cast("dict[str, object]", named))
            _add_names(named, found)
    return found if len(found) <= _MOST_NAMES else set()


def principals(value: object) -> frozenset[str]:
    """The people or accounts that a value names, as they are compared: one text, or each text of a list.

    Only plain letters lose their case: other letters could make two different names the same.
    """
    found: set[str] = set()
    _add_names(value, found)
    return frozenset(found)


def _add_names(value: object, found: set[str]) -> None:
    # The very types: a class of somebody's own could say anything of itself.
    for each in cast("list[object]", value) if isinstance(value, list | tuple) else (value,):
        text = each if type(each) is str else str(each) if type(each) is int else ""
        if len(text) <= _LONGEST_NAME and (name := text.strip()):
            found.add(name.lower() if name.isascii() else name)


def _is_users_own(origin: Origin, records: list[object]) -> bool:
    if origin.own_when is None or not records:
        return False
    field, wanted = origin.own_when
    found = (cast("dict[str, object]", each).get(field) if isinstance(each, dict) else None for each in records)
    return all(type(text) is str and text == wanted for text in found)


@lru_cache(maxsize=4096)
def result_tree(top: ResultPart, tool: str, step: str, known: ResolvedReaders, trusted: bool) -> LabelTree:
    """The labels of a result. `trusted`: whether all that a stranger could have written is the user's own here."""
    return _part_tree(top, tool, step, {said: (readers, own or trusted) for said, readers, own in known}, trusted)


def _part_tree(
    part: ResultPart, tool: str, step: str, known: Mapping[str, tuple[Readers, bool]], trusted: bool
) -> LabelTree:
    usual = (PUBLIC if part.origin.readers == "public" else _USER_ONLY, trusted)
    readers, own = known.get(part.declared_part, usual)
    trust = "user" if own and part.origin.trust == "third_party" else part.origin.trust
    label = Label(frozenset({Source(trust, tool, part.path, step)}), readers)
    if part.kind == "flat":
        return label
    inside = {name: _part_tree(each, tool, step, known, trusted) for name, each in part.inner_parts}
    if part.kind == "list":
        return ListLabels(label, inside["[]"])
    rest = inside.pop("*", label) if part.kind == "dict" else label
    return RecordLabels(label, inside, rest)


def join_arguments(own: LabelTree, arguments: Mapping[str, LabelTree], keeps: str | None, top: ResultPart) -> LabelTree:
    """The labels of what a call gave: its own, and those of all that it was given.

    What a call is given decides what it gives, so every argument counts, but for what is fresh. A tool that `keeps` the
    items of an argument gives some of them, in some order, and changes none: the others decide only how many and which.
    """
    given = join_all(shade.flat for shade in arguments.values())
    kept = arguments.get(keeps) if keeps else None
    if kept is None or own is not NOTHING:
        return _taint_unless_fresh(top, own, given)
    # A list whose items are not told apart is treated the same way, or the proof would not cover the run.
    return ListLabels(join(kept.own, given), kept.flat if isinstance(kept, RecordLabels) else kept.item)


def _taint_unless_fresh(part: ResultPart, shade: LabelTree, given: Label) -> LabelTree:
    """A shade joined with a label in every part that is not fresh."""
    if part.origin.fresh:
        return shade
    match part.kind, shade:
        case "record", RecordLabels(own=own, fields=fields, rest=rest):
            inside = {name: _taint_unless_fresh(each, fields[name], given) for name, each in part.inner_parts}
            return RecordLabels(join(own, given), inside, taint(rest, given))
        case "list", ListLabels(own=own, item=item):
            return ListLabels(join(own, given), _taint_unless_fresh(part.inner_parts[0][1], item, given))
        case _:
            return taint(shade, given)


def fresh_names(top: ResultPart, value: object) -> frozenset[str]:
    """What a service has named anew in a result: by these names it can be spoken of later."""
    found: set[str] = set()
    for path in _fresh_paths(top, ()):
        for each in _values_at(value, path):
            _add_names(each, found)
    return frozenset(found)


def _fresh_paths(part: ResultPart, at: PartPath) -> Iterable[PartPath]:
    if part.origin.fresh:
        return (at,)
    return [path for step, each in part.inner_parts for path in _fresh_paths(each, (*at, step))]


def has_fresh(top: ResultPart) -> bool:
    return bool(list(_fresh_paths(top, ())))


def readers_by_name(origins: Origins, result: Type, value: object) -> dict[tuple[str, str], Readers]:
    """Who may read the things that a result names, by their kinds and names: those who may read what each is.

    Unlike a shade this tells the items of a list apart. Of two things of one name only those count who may read both.
    """
    found: dict[tuple[str, str], Readers] = {}
    for part, origin in origins.items():
        around = enclosing_record(result, parse_part(part)) if origin.names else None
        if around is None or origin.names is None:
            continue
        readers, keyed = nearest_origin(origins, (*around, origin.names))[1].readers, _dict_fields(result, around)
        for record in _values_at(value, around):
            named: Readers = PUBLIC if readers == "public" else _USER_ONLY
            if isinstance(readers, Participants):
                named = frozenset(_named_principals(record, readers.fields, keyed) | {USER})
            for name in (name for given in _step_values(record, parse_part(part)[-1]) for name in principals(given)):
                known = found.get((origin.names, name), PUBLIC)
                found[origin.names, name] = named if known is PUBLIC else known if named is PUBLIC else known & named
    return found


AttachedOrigins = Mapping[str, Origin]
"""The arguments, or parts of them, that name something which goes along with a call, and what is known of it."""

ATTACHED_SUFFIX = " (what it names)"
"""Behind the name of an argument, in the facts of a call: the thing that goes along."""


def attached_origins(said: Mapping[str, Origin] | Sequence[str]) -> AttachedOrigins:
    """What a tool says of the things it sends along: names alone say nothing of them."""
    return dict.fromkeys(said, UNKNOWN_ORIGIN) if isinstance(said, list | tuple) else cast("AttachedOrigins", said)


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


def _can_contain_name(type_: Type) -> bool:
    """Whether there can be a name anywhere in a value: also in a record, where a tool has said nothing."""
    match type_:
        case OptionalType(item=item) | ListType(item=item) | DictType(value=item):
            return _can_contain_name(item)
        case TupleType(items=items):
            return any(map(_can_contain_name, items))
        case RecordType(fields=fields):
            return any(_can_contain_name(each.type) for each in fields)
        case _:
            return can_name(type_)


def default_attached(tool: Tool, receivers: tuple[str, ...] | None) -> dict[str, Origin]:
    """The arguments of a tool that may name what goes along, where it does not say so itself.

    `receivers` are those that the tool says name who gets it. A tool that says nothing may send whatever a text in any
    argument names; one that only asks others something, the files whose paths it is given. Where nobody has said who
    gets it, a single argument that directs says who: of several nobody knows which.
    """
    if not tool.outbound:
        return {}
    if not tool.declared:
        return {each.name: UNKNOWN_ORIGIN for each in tool.arguments if _can_contain_name(each.type)}
    if receivers is None:
        directing = [each.name for each in tool.arguments if each.purpose == "directs" and _holds_text(each.type)]
        receivers = tuple(directing) if len(directing) == 1 else ()
    return {
        each.name: UNKNOWN_ORIGIN
        for each in tool.arguments
        if each.name not in receivers and can_name(each.type, alone=tool.changes and each.purpose != "carries")
    }


def attached_label(origin: Origin, tool: str, argument: str, step: str) -> Label:
    """The label of what an argument names."""
    readers = PUBLIC if origin.readers == "public" else frozenset({USER})
    return Label({Source(origin.trust, tool, argument, step)}, readers)


def part_argument(part: str) -> str:
    """The argument that a part belongs to: `parts` of `parts[].file`."""
    return parse_part(part)[0]


def names_at(part: str, value: object) -> list[str]:
    """The names in the value of an argument: all the texts and numbers that stand where a part says, and in that."""
    return list(_iter_names(values_at(value, parse_part(part)[1:])))


def _iter_names(values: Iterable[object]) -> Iterator[str]:
    for value in values:
        match value:
            case dict():
                yield from _iter_names(cast("dict[str, object]", value).values())
            case list() | tuple():
                yield from _iter_names(cast("list[object]", value))
            case _:
                yield from principals(value)


def attached_labels(
    tool: Tool, given: Mapping[str, Any], names: Sequence[str], step: str
) -> Iterator[tuple[str, Label]]:
    """What goes along with a call, for each part of an argument that names such a thing: NOTHING where none is named.

    `names` are the arguments that are given, and `given` those whose values are known: before a run the literals.
    """
    for part, origin in tool.attaches.items():
        name = part_argument(part)
        argument = tool.argument(name)
        if name not in names and (argument is None or argument.required or _is_empty(argument.default)):
            continue
        empty = name in given and all(map(_is_empty, values_at(given[name], parse_part(part)[1:])))
        yield part, NOTHING if empty else attached_label(origin, tool.name, part, step)


def _is_empty(value: object) -> bool:
    return value is None or (isinstance(value, str | list | tuple | dict) and not value)


def attach_faults(attaches: object, known: Mapping[str, object]) -> Iterator[KeyFault]:
    """Everything that cannot be true of what a tool sends along."""
    if not isinstance(attaches, Mapping):
        yield KeyFault((), f"{attaches!r} names no arguments", 'for example attaches=("attachments",)')
        return
    for name, origin in cast("Mapping[str, object]", attaches).items():
        if not _is_argument_part(name, known):
            yield KeyFault((), f"there is no argument {name!r}", ", ".join(known) or "no arguments")
        elif not isinstance(origin, Origin):
            yield KeyFault((name,), f"{origin!r} is not an Origin", 'for example Origin("third_party")')
        elif isinstance(origin.readers, Participants) or origin.own_when or origin.fresh:
            yield KeyFault((name,), "nothing at hand can say so of what is sent by its name", "'public' or 'user'")


def _is_argument_part(part: object, known: Mapping[str, object]) -> bool:
    try:
        return isinstance(part, str) and part_argument(part) in known
    except (ValueError, IndexError):
        return False
