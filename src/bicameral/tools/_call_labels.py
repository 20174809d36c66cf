"""Labels of a call: those of its result, from the tool's declared origins, and those of what is attached by name.

The content of an attachment (the file of a mail, a document that is shared by its id) is no argument of the call, so no
label of a run covers it. A tool therefore declares which arguments name such a thing, where those things come from and
who may read them:

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

from bicameral import types as t
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
)

if TYPE_CHECKING:
    from bicameral.tools._tool import Tool


_USER_ONLY: Readers = frozenset({USER})
_LONGEST_NAME = 320
_MOST_NAMES = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class ResultPart:
    """One part of a result: where it comes from, and its inner parts that have origins of their own.

    `declared_part` is the part that its origin is declared for, `record` the path of the record whose fields that
    origin names, `dict_fields` those of its fields that are dicts, whose keys are the names.
    """

    path: str
    declared_part: str
    origin: Origin
    record: PartPath | None
    dict_fields: frozenset[str] = frozenset()
    kind: str = "flat"
    inner_parts: tuple[tuple[str, ResultPart], ...] = ()


def compile_parts(origins: Origins, result: t.Type) -> ResultPart:
    """The origins along the type of a result; a part without closer declarations inside it is flat."""
    return _compile_part(origins, {parse_part(part) for part in origins}, result, result, ())


def _compile_part(origins: Origins, named: set[PartPath], result: t.Type, type_: t.Type, path: PartPath) -> ResultPart:
    declared, origin = nearest_origin(origins, path)
    record = enclosing_record(result, parse_part(declared))
    facts = (render_part(path), declared, origin, record, _dict_fields(result, record))
    if not any(len(each) > len(path) and each[: len(path)] == path for each in named):
        return ResultPart(*facts)

    def below(step: str, own: t.Type) -> tuple[str, ResultPart]:
        return step, _compile_part(origins, named, result, own, (*path, step))

    match t.without_optional(type_):
        case t.ListType(item=item):
            return ResultPart(*facts, "list", (below("[]", item),))
        case t.TupleType() as pair:
            # All places of a tuple share one part, as the items of a list do.
            return ResultPart(*facts, "list", (below("[]", inner_type(pair, "[]") or t.ANY),))
        case t.RecordType(fields=fields):
            return ResultPart(*facts, "record", tuple(below(each.name, each.type) for each in fields))
        case t.DictType(value=value):
            keys = dict.fromkeys(
                ["*", *(each[len(path)] for each in sorted(named) if each[: len(path)] == path != each)]
            )
            return ResultPart(*facts, "dict", tuple(below(key, value) for key in keys))
        case _:
            return ResultPart(*facts)


def _dict_fields(result: t.Type, record: PartPath | None) -> frozenset[str]:
    fields_type = None if record is None else t.without_optional(type_at(result, record) or t.ANY)
    fields = fields_type.fields if isinstance(fields_type, t.RecordType) else ()
    return frozenset(each.name for each in fields if isinstance(t.without_optional(each.type), t.DictType))


ResolvedReaders = tuple[tuple[str, Readers, bool], ...]
"""Part, readers, and whether the user wrote it, for the parts where these depend on the value."""


def resolve_readers(top: ResultPart, value: object) -> ResolvedReaders:
    """The facts about readers and ownership that depend on the value; for a list, those of every item."""
    resolved: list[tuple[str, Readers, bool]] = []
    for part in _value_dependent_parts(top):
        records = values_at(value, part.record or ())
        resolved.append((part.declared_part, _part_readers(part, records), _is_users_own(part.origin, records)))
    return tuple(resolved)


def _value_dependent_parts(top: ResultPart) -> Iterable[ResultPart]:
    """Each part whose facts depend on the value, once."""
    parts: dict[str, ResultPart] = {}
    pending = [top]
    while pending:
        part = pending.pop()
        if isinstance(part.origin.readers, Participants) or part.origin.own_when:
            parts.setdefault(part.declared_part, part)
        pending.extend(each for _, each in part.inner_parts)
    return parts.values()


def values_at(value: object, path: PartPath) -> list[object]:
    """The values at a path in a value, through all items on the way; None (an absent record) is left out."""
    values: list[object] = [value]
    for step in path:
        values = [each for outer in values for each in _step_values(outer, step)]
    return [each for each in values if each is not None]


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


def _named_principals(record: object, fields: Iterable[str], dict_fields: frozenset[str]) -> set[str]:
    """The principals that a record names; none if it names too many."""
    names: set[str] = set()
    if isinstance(record, dict):
        for field in fields:
            value: object = cast("dict[str, object]", record).get(field)
            # The keys of a dict are the names; the values only describe them.
            if field in dict_fields and isinstance(value, dict):
                value = list(cast("dict[str, object]", value))
            _add_names(value, names)
    return names if len(names) <= _MOST_NAMES else set()


def principals(value: object) -> frozenset[str]:
    """The people or accounts that a value names, normalised for comparison: one text, or each text of a list.

    Only ASCII names lose their case: other case folding could make two different names equal.

    Example:
        >>> sorted(principals(["Ada@Example.com", 7]))
        ['7', 'ada@example.com']
    """
    names: set[str] = set()
    _add_names(value, names)
    return frozenset(names)


def _add_names(value: object, names: set[str]) -> None:
    # Exact types: a subclass could override its text.
    for each in cast("list[object]", value) if isinstance(value, list | tuple) else (value,):
        text = each if type(each) is str else str(each) if type(each) is int else ""
        if len(text) <= _LONGEST_NAME and (name := text.strip()):
            names.add(name.lower() if name.isascii() else name)


def _is_users_own(origin: Origin, records: list[object]) -> bool:
    if origin.own_when is None or not records:
        return False
    field, wanted = origin.own_when
    texts = (cast("dict[str, object]", each).get(field) if isinstance(each, dict) else None for each in records)
    return all(type(text) is str and text == wanted for text in texts)


@lru_cache(maxsize=4096)
def result_tree(top: ResultPart, tool: str, step: str, known: ResolvedReaders, trusted: bool) -> LabelTree:
    """The labels of a result; `trusted` says that all its untrusted parts are the user's own here."""
    return _part_tree(top, tool, step, {part: (readers, own or trusted) for part, readers, own in known}, trusted)


def _part_tree(
    part: ResultPart, tool: str, step: str, known: Mapping[str, tuple[Readers, bool]], trusted: bool
) -> LabelTree:
    default = (PUBLIC if part.origin.readers == "public" else _USER_ONLY, trusted)
    readers, own = known.get(part.declared_part, default)
    trust = "user" if own and part.origin.trust == "third_party" else part.origin.trust
    label = Label(frozenset({Source(trust, tool, part.path, step)}), readers)
    if part.kind == "flat":
        return label
    inner = {name: _part_tree(each, tool, step, known, trusted) for name, each in part.inner_parts}
    if part.kind == "list":
        return ListLabels(label, inner["[]"])
    rest = inner.pop("*", label) if part.kind == "dict" else label
    return RecordLabels(label, inner, rest)


_MOST_PLACES = 100
"""The longest list whose items are labelled one by one."""


def itemised_tree(top: ResultPart, tool: str, step: str, value: object, owned: bool, field: str) -> LabelTree:
    """The labels of a result in which each item of a list (`field` of the result, or the result itself) has its own.

    An item has the label that it would have if it were the only one, so no item lends its label to another. The list
    itself (its length, the choice and the order of its items) keeps the label of all.
    """
    whole = result_tree(top, tool, step, resolve_readers(top, value), owned)
    record: dict[str, object] = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    items: object = record.get(field) if field else cast("object", value)
    if not isinstance(items, list):
        return whole
    each_item = cast("list[object]", items)
    if not 0 < len(each_item) <= _MOST_PLACES:
        return whole

    def alone(item: object) -> LabelTree:
        single: object = {**record, field: [item]} if field else [item]
        tree = result_tree(top, tool, step, resolve_readers(top, single), owned)
        return (tree.field(field) if isinstance(tree, RecordLabels) else tree).item

    listed = whole.field(field) if isinstance(whole, RecordLabels) else whole
    places = ListLabels(listed.own, places=[alone(item) for item in each_item])
    if not isinstance(whole, RecordLabels):
        return places
    return RecordLabels(whole.own, {**whole.fields, field: places}, whole.rest)


def join_arguments(own: LabelTree, arguments: Mapping[str, LabelTree], keeps: str | None, top: ResultPart) -> LabelTree:
    """The labels of a call's result: its own, joined with those of its arguments.

    The arguments decide the result, so every one counts, except in fresh parts. A tool that `keeps` the items of an
    argument returns some of them, in some order and unchanged: the other arguments decide only how many and which.
    """
    given = join_all(tree.flat for tree in arguments.values())
    kept = arguments.get(keeps) if keeps else None
    if kept is None or own is not NOTHING:
        return _taint_unless_fresh(top, own, given)
    # A flat label is treated as a list, too: the proof knows less than the run, and must still cover it.
    return ListLabels(join(kept.own, given), kept.flat if isinstance(kept, RecordLabels) else kept.item)


def _taint_unless_fresh(part: ResultPart, tree: LabelTree, given: Label) -> LabelTree:
    """A tree with a label joined into every part that is not fresh."""
    if part.origin.fresh:
        return tree
    match part.kind, tree:
        case "record", RecordLabels(own=own, fields=fields, rest=rest):
            inner = {name: _taint_unless_fresh(each, fields[name], given) for name, each in part.inner_parts}
            return RecordLabels(join(own, given), inner, taint(rest, given))
        case "list", ListLabels(own=own, places=places) if places is not None:
            inner = part.inner_parts[0][1]
            return ListLabels(join(own, given), places=[_taint_unless_fresh(inner, each, given) for each in places])
        case "list", ListLabels(own=own, item=item):
            return ListLabels(join(own, given), _taint_unless_fresh(part.inner_parts[0][1], item, given))
        case _:
            return taint(tree, given)


def fresh_names(top: ResultPart, value: object) -> frozenset[str]:
    """The names that a service made up in a result: later calls can refer to its things by them."""
    names: set[str] = set()
    for path in _fresh_paths(top, ()):
        for each in values_at(value, path):
            _add_names(each, names)
    return frozenset(names)


def _fresh_paths(part: ResultPart, at: PartPath) -> Iterable[PartPath]:
    if part.origin.fresh:
        return (at,)
    return [path for step, each in part.inner_parts for path in _fresh_paths(each, (*at, step))]


def has_fresh(top: ResultPart) -> bool:
    return bool(list(_fresh_paths(top, ())))


def readers_by_name(origins: Origins, result: t.Type, value: object) -> dict[tuple[str, str], Readers]:
    """Who may read the things that a result names, by kind and name.

    Unlike a label tree this keeps the items of a list apart. If two things have the same name, only common readers
    count.
    """
    readers_of: dict[tuple[str, str], Readers] = {}
    for part, origin in origins.items():
        record_path = enclosing_record(result, parse_part(part)) if origin.names else None
        if record_path is None or origin.names is None:
            continue
        readers, dict_fields = (
            nearest_origin(origins, (*record_path, origin.names))[1].readers,
            _dict_fields(result, record_path),
        )
        for record in values_at(value, record_path):
            named: Readers = PUBLIC if readers == "public" else _USER_ONLY
            if isinstance(readers, Participants):
                named = frozenset(_named_principals(record, readers.fields, dict_fields) | {USER})
            for name in (name for given in _step_values(record, parse_part(part)[-1]) for name in principals(given)):
                known = readers_of.get((origin.names, name), PUBLIC)
                readers_of[origin.names, name] = (
                    named if known is PUBLIC else known if named is PUBLIC else known & named
                )
    return readers_of


AttachedOrigins = Mapping[str, Origin]
"""The arguments, or parts of them, that name something that is sent with a call, and its origin."""

ATTACHED_SUFFIX = " (what it names)"
"""Follows the name of an argument in the facts of a call: the thing that it names."""


def attached_origins(declared: Mapping[str, Origin] | Sequence[str]) -> AttachedOrigins:
    """The declaration `attaches` with an origin for each name; a name alone gets the worst case."""
    return (
        dict.fromkeys(declared, UNKNOWN_ORIGIN)
        if isinstance(declared, list | tuple)
        else cast("AttachedOrigins", declared)
    )


def can_name(type_: t.Type, *, alone: bool = True, ids: bool = True) -> bool:
    """Whether a value of a type can be a reference to something that is stored elsewhere: a path always can.

    Args:
        type_: The type.
        alone: Whether any text counts, since it is no content; text in a list always counts.
        ids: Whether an id counts as such a text.
    """
    match type_:
        case t.OptionalType(item=item):
            return can_name(item, alone=alone, ids=ids)
        case t.ListType(item=item):
            return can_name(item, alone=True, ids=ids)
        case t.StrType(format=kind):
            return kind == "path" or (alone and (kind is None or (ids and kind == "id")))
        case t.AnyType():
            return alone
        case _:
            return False


def default_attached(tool: Tool, receivers: tuple[str, ...] | None) -> dict[str, Origin]:
    """The arguments of a tool that may name attached things, if it does not declare them itself.

    A tool that declares nothing may send whatever a text in any argument names; one that changes nothing, only the
    files whose paths it is given. `receivers` are the declared ones. If there are none, a single directing argument
    counts as the receiver; of several, none does, since it is unknown which.
    """
    if not tool.outbound:
        return {}
    if not tool.declared:
        return {each.name: UNKNOWN_ORIGIN for each in tool.arguments if any(map(can_name, t.iter_types(each.type)))}
    if receivers is None:
        texts = (t.StrType, t.AnyType, t.LiteralType)
        directing = [
            each.name
            for each in tool.arguments
            if each.purpose == "directs" and any(isinstance(inner, texts) for inner in t.iter_types(each.type))
        ]
        receivers = tuple(directing) if len(directing) == 1 else ()
    return {
        each.name: UNKNOWN_ORIGIN
        for each in tool.arguments
        if each.name not in receivers and can_name(each.type, alone=tool.changes and each.purpose != "carries")
    }


def attached_label(origin: Origin, tool: str, argument: str, step: str) -> Label:
    """The label of the thing that an argument names."""
    readers = PUBLIC if origin.readers == "public" else frozenset({USER})
    return Label({Source(origin.trust, tool, argument, step)}, readers)


def part_argument(part: str) -> str:
    """The argument that a part belongs to: `parts` of `parts[].file`."""
    return parse_part(part)[0]


def names_at(part: str, value: object) -> list[str]:
    """The names in the value of an argument: all texts and numbers at a part and inside it."""
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
    """The parts of arguments that name something that is sent along, each with its label: NOTHING if none is named.

    Args:
        tool: The tool.
        given: The values that are known: before a run the literals.
        names: The arguments that are given.
        step: The step of the plan.
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
    """Everything that cannot be true in a declaration `attaches`."""
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
