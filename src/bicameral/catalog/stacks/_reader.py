"""Reader of stack descriptions: sections, members, own patterns and waivers, each checked where it stands.

The shape of each record is that of its class in `_stack`, which pydantic validates; what needs more than its own value
is checked here. An error has a code, the place in the file or object, what was expected and the nearest valid name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeVar, cast

from pydantic import ConfigDict, TypeAdapter, ValidationError

from bicameral.catalog.facts import IDS, SIZES, catalog
from bicameral.catalog.stacks._stack import (
    FACTS,
    RUNTIMES,
    STATEMENTS,
    Action,
    GuardPoint,
    Loop,
    OwnPattern,
    PatternUse,
    PromptPart,
    RuntimeName,
    Stack,
    StackMember,
    StackPath,
    StackSession,
    StackStore,
    ToolCounts,
    Waiver,
)
from bicameral.documents import first_key_fault
from bicameral.errors import CatalogError, Place, nearest_name

T = TypeVar("T")

INNER_KEY, SIZES_KEY = "inner", "sizes"
"""Keys of a use besides its knobs: the patterns inside of it, and its own sizes."""
MAX_SIZE, MIN_SIZE = 1e12, 1e-9
"""No size and no knob is larger, or nearer to nothing without being nothing: such a number is a typo."""
MAX_AGENTS, MAX_USES, MAX_RECORDS = 100, 1_000, 5_000
"""Agents of a stack, patterns in all of it, and records of each other kind: sessions, actions, waivers and such."""
SHARED_FACTOR = 5
"""How many times as many there may be when those of the whole are counted for every agent, as the linter checks them.

The work of the linter grows with this number, and with the square of the patterns of an agent.
"""

_FILE_KEYS: Mapping[str, str] = {"uses": "patterns", "patterns": "pattern", "rules": "rule"}
"""The keys of fields with another name."""
_COUNT, _CAP = "a whole number from 0 on", "a number above 0"
_EXPECTED = {
    "int_type": _COUNT,
    "greater_than_equal": _COUNT,
    "float_type": _CAP,
    "greater_than": _CAP,
    "finite_number": _CAP,
    "string_pattern_mismatch": "a text",
    "string_too_long": "a text",
}
_NOTHING = object()


@dataclass(frozen=True, slots=True)
class LocatedValue:
    """A value of a description and the path to it."""

    value: Any
    path: StackPath
    locate: Callable[[StackPath], Place]

    def error(self, code: str, message: str, **more: Any) -> CatalogError:
        return CatalogError(code, message, place=self.locate(self.path), **more)

    def bad_value(self, expected: str, **more: Any) -> CatalogError:
        """The error for a value that is not of the kind that belongs here."""
        return self.error(
            "stack.bad-value", f"{_render_short(self.value)} cannot stand here", expected=expected, **more
        )

    def child(self, key: str | int) -> LocatedValue:
        return LocatedValue(self.value[key], (*self.path, key), self.locate)

    def descend(self, path: StackPath) -> LocatedValue:
        """The value at a path, or the last one on the way to it."""
        here = self
        for key in path:
            value: Any = here.value
            if not isinstance(value, list | tuple) and not (isinstance(value, Mapping) and key in value):
                break
            here = here.child(key)
        return here

    def mapping(self, expected: str) -> Iterator[tuple[str, LocatedValue]]:
        """Every key of a mapping with its value."""
        if not isinstance(self.value, Mapping):
            raise self.bad_value(expected)
        for key in cast("Mapping[Any, Any]", self.value):
            if not isinstance(key, str):
                raise replace(self.child(key), path=(*self.path, str(key))).bad_value("a name")
            yield key, self.child(key)

    def items(self, expected: str) -> Iterator[LocatedValue]:
        """Every item of a list."""
        if not isinstance(self.value, list | tuple):
            raise self.bad_value(expected)
        yield from map(self.child, range(len(cast("list[Any]", self.value))))

    def keys(self, known: Iterable[str], what: str) -> dict[str, LocatedValue]:
        """The keys of a mapping, of which each must be a known one."""
        names = tuple(known)
        found = dict(self.mapping(f"{what} with {', '.join(names)}"))
        for key in (key for key in found if key not in names):
            raise found[key].error(
                "stack.unknown-key",
                f"there is no key {key[:60]!r} in {what}",
                expected=f"one of {', '.join(names)}",
                nearest=nearest_name(key, names),
            )
        return found


def _render_short(value: Any) -> str:
    """A value in an error: short, whatever it is."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None:
        return "nothing"
    text = repr(value) if isinstance(value, str | int | float) else type(value).__name__
    return text if len(text) <= 60 else f"{text[:59]}…"


@cache
def _adapter(kind: type[Any]) -> TypeAdapter[list[Any]]:
    # The classes have no settings of their own: those of the list hold for them, too.
    rows: Any = list[kind]  # pyright: ignore[reportInvalidTypeForm]
    return TypeAdapter(rows, config=ConfigDict(alias_generator=lambda name: _FILE_KEYS.get(name, name)))


def _read_record(kind: type[T], what: str, at: LocatedValue, known: Collection[str] = (), **given: Any) -> T:
    """A record of this class from a mapping.

    Args:
        known: The ids of all patterns that it may name.
        given: Keys with their values that do not stand in the description.
    """
    given = {"path": at.path, **given}
    names = [key for each in fields(cast("Any", kind)) if (key := _FILE_KEYS.get(each.name, each.name)) not in given]
    found = {key: each.value for key, each in at.keys(names, what).items()}
    # A key with an empty value is a mistake. As None it would pass for a key that is missing.
    values = {key: _NOTHING if value is None else value for key, value in found.items()}
    try:
        return _adapter(kind).validate_python([{**values, **given}], context=known)[0]
    except ValidationError as error:
        fault = first_key_fault(error, kind, _FILE_KEYS)
        if fault.kind == "missing":
            key = str(fault.path[-1])
            raise at.error("stack.bad-value", f"{what} has no {key!r}", expected=f"the key {key!r}") from None
        # As pydantic has it: the keys of users' own mappings are not in the path of a fault.
        fault_at = at.descend(error.errors()[0]["loc"][1:])
        if fault.kind == "unknown_pattern":
            raise _unknown_pattern(fault_at, str(fault_at.value).partition(".")[0], known) from None
        expected = _EXPECTED.get(fault.kind, fault.expected_kind)
        expected = f"one of {', '.join(fault.known)}" if fault.known else expected
        raise fault_at.bad_value(expected, nearest=fault.nearest) from None


def _read_named(kind: type[T], what: str, at: LocatedValue, known: Collection[str]) -> tuple[T, ...]:
    """The records of a section by their names; a record may be empty."""
    named = at.mapping(f"{what.partition(' ')[2]}s by their names")
    return tuple(_read_record(kind, what, _or_empty(each), known, name=name) for name, each in named)


def _or_empty(at: LocatedValue) -> LocatedValue:
    return replace(at, value={}) if at.value is None else at


def _unknown_pattern(at: LocatedValue, id: str, known: Collection[str]) -> CatalogError:
    return at.error(
        "stack.unknown-pattern",
        f"there is no pattern {id[:60]!r}",
        nearest=nearest_name(id.upper(), known),
        fix="`bicameral patterns list` shows them all; your own go under `define`.",
    )


@dataclass(frozen=True, slots=True)
class _GuardKnobs:
    path: StackPath
    at: tuple[GuardPoint, ...]


MAX_DEPTH = 12
"""No composition is deeper; a description that is was made by a mistake, or to exhaust the stack of Python."""


def _read_use(at: LocatedValue, known: Collection[str], place: str = "", depth: int = 1) -> PatternUse:
    """A pattern: its id, or a mapping of its id to its knobs, sizes and the patterns inside of it."""
    if depth > MAX_DEPTH:
        raise at.error("stack.bad-value", "patterns are nested too deeply", expected=f"at most {MAX_DEPTH} levels")
    id, inner = at.value, at
    if isinstance(at.value, Mapping):
        found = list(at.mapping("a pattern with its knobs"))
        if len(found) != 1:
            raise at.bad_value("one pattern with its knobs, as in {R4: {max_steps: 8}}")
        id, inner = found[0]
    if not isinstance(id, str) or not id.strip():
        raise at.bad_value("a text")
    if id not in known:
        raise _unknown_pattern(inner, id, known)
    if inner is at or inner.value is None:
        return PatternUse(id, at.path, place=place)
    knobs: dict[str, Any] = {}
    nested: tuple[PatternUse, ...] = ()
    sizes: Mapping[str, float] = {}
    for name, each in inner.mapping("knobs, as in {max_steps: 8}"):
        if name == INNER_KEY:
            nested = tuple(_read_inner(each, known, depth + 1))
        elif name == SIZES_KEY:
            sizes = dict(_read_sizes(each, id))
        elif (id, name) == ("V5", "at"):
            knobs[name] = list(_read_record(_GuardKnobs, "V5", replace(inner, value={"at": each.value})).at)
        elif name in FACTS and not FACTS[name].accepts(each.value):
            raise each.bad_value(FACTS[name].expected)
        else:
            knobs[name] = each.value
    return PatternUse(id, at.path, knobs, nested, place, sizes)


def _read_inner(at: LocatedValue, known: Collection[str], depth: int) -> Iterator[PatternUse]:
    """The patterns inside of another: one, a list in order, or a mapping by the place of each."""
    value: Any = at.value
    if isinstance(value, list | tuple):
        for number, each in enumerate(at.items("a list of patterns")):
            yield _read_use(each, known, f"{INNER_KEY}[{number}]", depth)
    elif isinstance(value, Mapping) and not (len(cast("Mapping[Any, Any]", value)) == 1 and {*value} <= {*known}):
        for place, each in at.mapping("patterns by their places, as in {steps[0]: R5}"):
            yield _read_use(each, known, place, depth)
    else:
        yield _read_use(at, known, INNER_KEY, depth)


def _read_sizes(at: LocatedValue, id: str) -> Iterator[tuple[str, float]]:
    """Sizes of one use: `output`, or of one of its roles `Planner.output`."""
    roles = [each.role for each in catalog().pattern(id).cost.sessions] if id in IDS else []
    for name, each in at.mapping("sizes with their values, as in {output: 40}"):
        role, _, size = name.rpartition(".")
        if size not in SIZES or (role and role not in roles):
            wanted = [*SIZES, *(f"{role}.{size}" for role in roles for size in SIZES)]
            raise each.error(
                "stack.unknown-key",
                f"{id} has no size {name[:60]!r}",
                expected=f"one of {', '.join(SIZES)}, or one of these of a role of {id}",
                nearest=nearest_name(name, wanted),
            )
        number: Any = each.value
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= MAX_SIZE:
            raise each.bad_value(f"a number from 0 to {MAX_SIZE:g}")
        if 0 < number < MIN_SIZE:
            raise each.bad_value(f"0, or a number from {MIN_SIZE:g} to {MAX_SIZE:g}")
        yield name, float(number)


def _read_facts(at: LocatedValue, known: Collection[str]) -> dict[str, Any]:
    """The facts, or the statements, with their values."""
    is_fact = at.path[-1] == "facts"
    names, others, other = (FACTS, STATEMENTS, "declares") if is_fact else (STATEMENTS, FACTS, "facts")
    found: dict[str, Any] = {}
    for name, each in at.mapping("facts with their values" if is_fact else "statements, and where each is written"):
        if name not in names:
            what = "no fact" if is_fact else "nothing to declare by the name of"
            raise each.error(
                "stack.unknown-fact",
                f"there is {what} {name[:60]!r}",
                nearest=None if name in others else nearest_name(name, names),
                fix=f"It goes under `{other}`." if name in others else "`bicameral lint --facts` lists them.",
            )
        if not names[name].accepts(each.value):
            raise each.bad_value(names[name].expected)
        found[name] = each.value
    return found


_SECTION_READERS: Mapping[str, Callable[[LocatedValue, Collection[str]], Any]] = {
    "patterns": lambda at, known: tuple(_read_use(each, known) for each in at.items("a list of patterns")),
    "facts": _read_facts,
    "declares": _read_facts,
    "tools": partial(_read_record, ToolCounts, "the tools"),
    "prompt": lambda at, known: tuple(
        _read_record(PromptPart, "a part of the prompt", each, known) for each in at.items("a list of parts")
    ),
    "loops": partial(_read_named, Loop, "a loop"),
    "sessions": partial(_read_named, StackSession, "a session"),
    "actions": partial(_read_named, Action, "an action"),
    "stores": partial(_read_named, StackStore, "a store"),
}
"""The sections that are no plain values."""
_MEMBER_KEYS = [
    _FILE_KEYS.get(each.name, each.name) for each in fields(StackMember) if each.name not in ("name", "path")
]
"""What can be said of an agent, and of the whole."""
_STACK_KEYS = ("name", "runtime", "agents", "define", "waivers")


def _read_member(name: str, at: LocatedValue, known: Collection[str]) -> StackMember:
    found = at.keys(_MEMBER_KEYS, "an agent")
    sections = {key: read(found[key], known) for key, read in _SECTION_READERS.items() if key in found}
    plain = {key: each.value for key, each in found.items() if key not in sections}
    return _read_record(StackMember, "an agent", replace(at, value=plain), known, name=name, **sections)


def read_description(
    settings: Mapping[str, Any], locate: Callable[[StackPath], Place], file: str | None = None
) -> Stack:
    """The stack that a mapping describes; what is wrong with it is reported with its place."""
    top = LocatedValue(settings, (), locate)
    found = top.keys((*_STACK_KEYS, *_MEMBER_KEYS), "a stack")
    defined = _read_definitions(found["define"]) if "define" in found else {}
    known = frozenset({*IDS, *defined})
    agents = tuple(_read_agents(found["agents"], known)) if "agents" in found else ()
    shared = {key: value for key, value in settings.items() if key not in _STACK_KEYS}
    whole = _read_member("", replace(top, value=shared), known)
    _check_size(top, whole, agents)
    waivers = tuple(_read_waivers(found["waivers"])) if "waivers" in found else ()
    if not whole.uses and not any(agent.uses for agent in agents):
        raise top.error(
            "stack.empty",
            "the stack has no patterns",
            expected="patterns, as in `patterns: [R4, V9, V14]`",
            fix="`bicameral patterns list` shows them all.",
        )
    name = found["name"].value if "name" in found else "stack"
    if not isinstance(name, str) or not name.strip():
        raise found["name"].bad_value("a text")
    runtime = _read_runtime(found["runtime"]) if "runtime" in found else "other"
    return Stack(name, whole, agents, waivers, defined, file, runtime, locate)


_COUNTED: Mapping[str, Callable[[StackMember], int]] = {
    "patterns": lambda member: sum(1 for _ in member.all_uses),
    "settings of patterns": lambda member: sum(len(use.knobs) for use in member.all_uses),
    "loops": lambda member: len(member.loops or ()),
    "sessions": lambda member: len(member.sessions or ()),
    "actions": lambda member: len(member.actions or ()),
    "stores": lambda member: len(member.stores or ()),
    "parts of prompts": lambda member: len(member.prompt or ()),
    "stages of pipelines": lambda member: len(member.pipeline or ()),
    "servers": lambda member: len(member.tools.servers) if member.tools is not None else 0,
}
"""What is counted of the whole and of every agent."""


def _check_size(top: LocatedValue, whole: StackMember, agents: Sequence[StackMember]) -> None:
    """Refuse a stack that nobody can have meant."""
    _check_count(top, len(agents), "agents", MAX_AGENTS)
    for what, count in _COUNTED.items():
        most = MAX_USES if what == "patterns" else MAX_RECORDS
        shared, own = count(whole), sum(map(count, agents))
        _check_count(top, shared + own, what, most)
        if what != "patterns":
            seen = shared * len(agents) + own
            _check_count(top, seen, f"{what}, counting those of the whole for each agent", most * SHARED_FACTOR)


def _check_count(at: LocatedValue, count: int, what: str, most: int) -> None:
    if count > most:
        raise at.error("stack.too-large", f"the stack has {count:,} {what}", expected=f"at most {most:,}")


def _read_runtime(at: LocatedValue) -> RuntimeName:
    for name in RUNTIMES:
        if at.value == name:
            return name
    given: Any = at.value
    nearest = nearest_name(given, RUNTIMES) if isinstance(given, str) else None
    raise at.bad_value(f"one of {', '.join(RUNTIMES)}", nearest=nearest)


def _read_agents(at: LocatedValue, known: Collection[str]) -> Iterator[StackMember]:
    for name, each in at.mapping("agents by their names"):
        if not name.strip():
            raise each.error("stack.bad-value", "an agent has no name", expected="a name")
        yield _read_member(name, _or_empty(each), known)


def _read_definitions(at: LocatedValue) -> dict[str, OwnPattern]:
    """The patterns that the stack defines. They may need each other, but not in a cycle."""
    given = dict(at.mapping("patterns of your own by their ids"))
    _check_count(at, len(given), "patterns of its own", MAX_USES)
    known = frozenset({*IDS, *given})
    found: dict[str, OwnPattern] = {}
    for id, each in given.items():
        if id in IDS:
            raise each.error("stack.known-pattern", f"the catalogue has a pattern {id!r} already", fix="Rename yours.")
        found[id] = _read_record(OwnPattern, "a pattern of your own", each, known, id=id)
        if id in found[id].not_with:
            raise each.child("not_with").error(
                "stack.bad-value", f"{id!r} cannot be without itself", expected="other patterns"
            )
    try:
        TopologicalSorter({id: each.needs for id, each in found.items()}).prepare()
    except CycleError as error:
        # The sorter goes from what is needed to what needs it.
        circle = cast("list[str]", error.args[1])[::-1]
        raise given[circle[0]].error(
            "stack.circle",
            f"these patterns need each other in a circle: {' needs '.join(circle)}",
            fix="Take one need away.",
        ) from None
    return found


def _read_waivers(at: LocatedValue) -> Iterator[Waiver]:
    items = list(at.items("a list of waivers"))
    _check_count(at, len(items), "waivers", MAX_RECORDS)
    yield from map(_read_waiver, items)


def _read_waiver(at: LocatedValue) -> Waiver:
    value: Any = at.value
    if isinstance(value, Mapping) and "reason" in value and value["reason"] is None:
        at = replace(at, value={**value, "reason": ""})
    return _read_record(Waiver, "a waiver", at)


def check_waived_rules(stack: Stack, known: Collection[str]) -> None:
    """Every rule that a waiver names must exist: a misspelt waiver would seem to waive."""
    for waiver in stack.waivers:
        for number, rule in enumerate(waiver.rules):
            if rule not in known:
                raise CatalogError(
                    "stack.unknown-rule",
                    f"there is no rule {rule[:60]!r}",
                    place=stack.place((*waiver.path, "rule", number)),
                    nearest=nearest_name(rule, known),
                    fix="`bicameral lint --rules` lists them.",
                )
