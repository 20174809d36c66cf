"""From the origins that a tool declares to the labels of what it gave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from bicameral.labels import (
    NOTHING,
    PUBLIC,
    USER,
    Label,
    ListShade,
    Readers,
    RecordShade,
    Shade,
    Source,
    join,
    join_all,
    tainted,
)
from bicameral.types import ANY, DictType, ListType, RecordType, TupleType, Type

from ._origins import (
    Origin,
    Origins,
    Participants,
    Path,
    bare,
    enclosing,
    inner,
    part_of,
    path_of,
    record_around,
    type_at,
)

_ALONE: Readers = frozenset({USER})
_LONGEST_NAME = 320
_MOST_NAMES = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One part of a result: where it comes from, and the parts inside it that are told apart.

    `said` is the part that its origin is declared for, `record` the way to the record whose fields that origin names,
    `keyed` those of its fields that are dicts, which name by their keys.
    """

    path: str
    said: str
    origin: Origin
    record: Path | None
    keyed: frozenset[str] = frozenset()
    kind: str = "flat"
    inside: tuple[tuple[str, Part], ...] = ()


def compiled(origins: Origins, result: Type) -> Part:
    """The origins along the type of a result: inside a part of which nothing more is said nothing is told apart."""
    return _compiled(origins, {path_of(part) for part in origins}, result, result, ())


def _compiled(origins: Origins, named: set[Path], result: Type, type_: Type, path: Path) -> Part:
    said, origin = enclosing(origins, path)
    record = record_around(result, path_of(said))
    facts = (part_of(path), said, origin, record, _keyed(result, record))
    if not any(len(each) > len(path) and each[: len(path)] == path for each in named):
        return Part(*facts)

    def below(step: str, own: Type) -> tuple[str, Part]:
        return step, _compiled(origins, named, result, own, (*path, step))

    match bare(type_):
        case ListType(item=item):
            return Part(*facts, "list", (below("[]", item),))
        case TupleType() as pair:
            found = inner(pair, "[]")
            return Part(*facts, "list", (below("[]", found),)) if found else Part(*facts)
        case RecordType(fields=fields):
            return Part(*facts, "record", tuple(below(each.name, each.type) for each in fields))
        case DictType(value=value):
            keys = dict.fromkeys(
                ["*", *(each[len(path)] for each in sorted(named) if each[: len(path)] == path != each)]
            )
            return Part(*facts, "dict", tuple(below(key, value) for key in keys))
        case _:
            return Part(*facts)


def _keyed(result: Type, record: Path | None) -> frozenset[str]:
    found = None if record is None else bare(type_at(result, record) or ANY)
    fields = found.fields if isinstance(found, RecordType) else ()
    return frozenset(each.name for each in fields if isinstance(bare(each.type), DictType))


Resolved = tuple[tuple[str, Readers, bool], ...]
"""By part: who reads it and whether the user wrote it, where only the value can tell."""


def resolved(top: Part, value: object) -> Resolved:
    """What the value itself says about readers and ownership: for a list, what holds for every item."""
    found: list[tuple[str, Readers, bool]] = []
    for each in _telling(top):
        records = _records(value, each.record or ())
        found.append((each.said, _readers(each, records), _own(each.origin, records)))
    return tuple(found)


def _telling(top: Part) -> Iterable[Part]:
    """Each part whose facts depend on the value, once."""
    found: dict[str, Part] = {}
    waiting = [top]
    while waiting:
        part = waiting.pop()
        if isinstance(part.origin.readers, Participants) or part.origin.own_when:
            found.setdefault(part.said, part)
        waiting.extend(each for _, each in part.inside)
    return found.values()


def _records(value: object, path: Path) -> list[object]:
    """What stands at a path, for every item on the way; None (an optional record) is left out."""
    here: list[object] = [value]
    for step in path:
        here = [each for one in here for each in _inside(one, step)]
    return [each for each in here if each is not None]


def inside(value: object, path: Path) -> list[object]:
    """All that stands at a path in a value."""
    return _records(value, path)


def _inside(value: object, step: str) -> Iterable[object]:
    match value:
        case list() if step == "[]":
            return cast("list[object]", value)
        case dict() if step == "*":
            return cast("dict[str, object]", value).values()
        case dict() if step in value:
            return (cast("dict[str, object]", value)[step],)
        case _:
            return ()


def _readers(part: Part, records: list[object]) -> Readers:
    origin = part.origin
    if not isinstance(origin.readers, Participants):
        return PUBLIC if origin.readers == "public" else _ALONE
    readers: set[str] | None = None
    for record in records:
        named = _named(record, origin.readers.fields, part.keyed)
        readers = named if readers is None else readers & named
        if not readers:
            break
    return frozenset(readers | {USER}) if readers else _ALONE


def _named(record: object, fields: Iterable[str], keyed: frozenset[str]) -> set[str]:
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


def _own(origin: Origin, records: list[object]) -> bool:
    if origin.own_when is None or not records:
        return False
    field, wanted = origin.own_when
    found = (cast("dict[str, object]", each).get(field) if isinstance(each, dict) else None for each in records)
    return all(type(text) is str and text == wanted for text in found)


@lru_cache(maxsize=4096)
def shade_of(top: Part, tool: str, step: str, known: Resolved, trusted: bool) -> Shade:
    """The labels of a result. `trusted`: whether all that a stranger could have written is the user's own here."""
    return _shade(top, tool, step, {said: (readers, own or trusted) for said, readers, own in known}, trusted)


def _shade(part: Part, tool: str, step: str, known: Mapping[str, tuple[Readers, bool]], trusted: bool) -> Shade:
    usual = (PUBLIC if part.origin.readers == "public" else _ALONE, trusted)
    readers, own = known.get(part.said, usual)
    trust = "user" if own and part.origin.trust == "third_party" else part.origin.trust
    label = Label(frozenset({Source(trust, tool, part.path, step)}), readers)
    if part.kind == "flat":
        return label
    inside = {name: _shade(each, tool, step, known, trusted) for name, each in part.inside}
    if part.kind == "list":
        return ListShade(label, inside["[]"])
    rest = inside.pop("*", label) if part.kind == "dict" else label
    return RecordShade(label, inside, rest)


def answered(own: Shade, arguments: Mapping[str, Shade], keeps: str | None, top: Part) -> Shade:
    """The labels of what a call gave: its own, and those of all that it was given.

    What a call is given decides what it gives, so every argument counts, but for what is fresh. A tool that `keeps` the
    items of an argument gives some of them, in some order, and changes none: the others decide only how many and which.
    """
    given = join_all(shade.flat for shade in arguments.values())
    kept = arguments.get(keeps) if keeps else None
    if kept is None or own is not NOTHING:
        return _touched(top, own, given)
    # A list whose items are not told apart is treated the same way, or the proof would not cover the run.
    return ListShade(join(kept.own, given), kept.flat if isinstance(kept, RecordShade) else kept.item)


def _touched(part: Part, shade: Shade, given: Label) -> Shade:
    """A shade joined with a label in every part that is not fresh."""
    if part.origin.fresh:
        return shade
    match part.kind, shade:
        case "record", RecordShade(own=own, fields=fields, rest=rest):
            inside = {name: _touched(each, fields[name], given) for name, each in part.inside}
            return RecordShade(join(own, given), inside, tainted(rest, given))
        case "list", ListShade(own=own, item=item):
            return ListShade(join(own, given), _touched(part.inside[0][1], item, given))
        case _:
            return tainted(shade, given)


def fresh_names(top: Part, value: object) -> frozenset[str]:
    """What a service has named anew in a result: by these names it can be spoken of later."""
    found: set[str] = set()
    for path in _fresh_paths(top, ()):
        for each in _records(value, path):
            _add_names(each, found)
    return frozenset(found)


def _fresh_paths(part: Part, at: Path) -> Iterable[Path]:
    if part.origin.fresh:
        return (at,)
    return [path for step, each in part.inside for path in _fresh_paths(each, (*at, step))]


def has_fresh(top: Part) -> bool:
    return bool(list(_fresh_paths(top, ())))


def readers_by_name(origins: Origins, result: Type, value: object) -> dict[tuple[str, str], Readers]:
    """Who may read the things that a result names, by their kinds and names: those who may read what each is.

    Unlike a shade this tells the items of a list apart. Of two things of one name only those count who may read both.
    """
    found: dict[tuple[str, str], Readers] = {}
    for part, origin in origins.items():
        around = record_around(result, path_of(part)) if origin.names else None
        if around is None or origin.names is None:
            continue
        readers, keyed = enclosing(origins, (*around, origin.names))[1].readers, _keyed(result, around)
        for record in _records(value, around):
            named: Readers = PUBLIC if readers == "public" else _ALONE
            if isinstance(readers, Participants):
                named = frozenset(_named(record, readers.fields, keyed) | {USER})
            for name in (name for given in _inside(record, path_of(part)[-1]) for name in principals(given)):
                known = found.get((origin.names, name), PUBLIC)
                found[origin.names, name] = named if known is PUBLIC else known if named is PUBLIC else known & named
    return found
