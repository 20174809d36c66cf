"""Reader of stack descriptions: sections, members, own patterns and waivers, each checked where it stands.

An error has a code, the place in the file or object, what was expected and the nearest valid name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeVar, cast, get_args

from bicameral.catalog.facts import IDS
from bicameral.catalog.stacks._stack import (
    FACTS,
    STATEMENTS,
    Action,
    BlastRadius,
    Gate,
    GuardPoint,
    Leg,
    Loop,
    OwnPattern,
    PatternUse,
    PromptPart,
    PromptStability,
    Stack,
    StackMember,
    StackPath,
    StackSession,
    StackStore,
    StoreContent,
    ToolCounts,
    VaryingContent,
    Waiver,
)
from bicameral.errors import CatalogError, Place, nearest_name

T = TypeVar("T")

MAX_TEXT = 2_000


@dataclass(frozen=True, slots=True)
class LocatedValue:
    """A value of a description and the way to it."""

    value: Any
    path: StackPath
    locate: Callable[[StackPath], Place]

    def error(self, code: str, message: str, **more: Any) -> CatalogError:
        """What is wrong here."""
        return CatalogError(code, message, place=self.locate(self.path), **more)

    def bad_value(self, expected: str, **more: Any) -> CatalogError:
        """That the value is not of the kind that belongs here."""
        return self.error("stack.bad-value", f"{render_short(self.value)} cannot stand here", expected=expected, **more)

    def child(self, key: str | int, value: Any) -> LocatedValue:
        return LocatedValue(value, (*self.path, key), self.locate)

    def mapping(self, expected: str) -> Iterator[tuple[str, LocatedValue]]:
        """Every key of a mapping with what stands there."""
        if not isinstance(self.value, Mapping):
            raise self.bad_value(expected)
        for key, value in cast("Mapping[Any, Any]", self.value).items():
            if not isinstance(key, str):
                raise self.child(str(key), value).bad_value("a name")
            yield key, self.child(key, value)

    def items(self, expected: str) -> Iterator[LocatedValue]:
        """Every item of a list."""
        if isinstance(self.value, str) or not isinstance(self.value, list | tuple):
            raise self.bad_value(expected)
        for number, value in enumerate(cast("list[Any]", self.value)):
            yield self.child(number, value)

    def keys(self, known: Iterable[str], what: str) -> dict[str, LocatedValue]:
        """The keys of a mapping, of which each must be a known one."""
        found: dict[str, LocatedValue] = {}
        names = tuple(known)
        for key, at in self.mapping(f"{what} with {', '.join(names)}"):
            if key not in names:
                raise at.error(
                    "stack.unknown-key",
                    f"there is no key {key[:60]!r} in {what}",
                    expected=f"one of {', '.join(names)}",
                    nearest=nearest_name(key, names),
                )
            found[key] = at
        return found

    def text(self) -> str:
        if not isinstance(self.value, str) or not self.value.strip() or len(self.value) > MAX_TEXT:
            raise self.bad_value("a text")
        return self.value

    def boolean(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.bad_value("true or false")
        return self.value

    def count(self) -> int:
        """A whole number from 0 on."""
        if isinstance(self.value, bool) or not isinstance(self.value, int) or self.value < 0:
            raise self.bad_value("a whole number from 0 on")
        return self.value

    def positive_number(self) -> float:
        """A number above 0 that is not endless: an endless cap is none."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise self.bad_value("a number above 0")
        return value

    def one_of(self, words: Iterable[T]) -> T:
        known = tuple(words)
        if self.value not in known or isinstance(self.value, bool):
            close = nearest_name(str(self.value), map(str, known))
            raise self.bad_value(f"one of {', '.join(map(str, known))}", nearest=close)
        return cast("T", self.value)

    def texts(self) -> tuple[str, ...]:
        return tuple(each.text() for each in self.items("a list of names"))

    def several_of(self, words: Iterable[T]) -> tuple[T, ...]:
        known = tuple(words)
        return tuple(each.one_of(known) for each in self.items(f"a list of {', '.join(map(str, known))}"))


def render_short(value: Any) -> str:
    """A value in an error: short, whatever it is."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None:
        return "nothing"
    text = repr(value) if isinstance(value, str | int | float) else type(value).__name__
    return text if len(text) <= 60 else f"{text[:59]}…"


def read_pattern_id(at: LocatedValue, known: Collection[str], name: str | None = None) -> str:
    """The id of a pattern that there is."""
    id = name if name is not None else at.text()
    if id not in known:
        meant = nearest_name(id.upper(), known)
        raise at.error(
            "stack.unknown-pattern",
            f"there is no pattern {id[:60]!r}",
            nearest=meant,
            fix="`bicameral patterns list` shows them all; your own go under `define`.",
        )
    return id


def read_uses(at: LocatedValue, known: Collection[str]) -> tuple[PatternUse, ...]:
    return tuple(_read_use(each, known) for each in at.items("a list of patterns"))


def _read_use(at: LocatedValue, known: Collection[str]) -> PatternUse:
    if not isinstance(at.value, Mapping):
        return PatternUse(read_pattern_id(at, known), at.path)
    found = list(at.mapping("a pattern with its knobs"))
    if len(found) != 1:
        raise at.bad_value("one pattern with its knobs, as in {R4: {max_steps: 8}}")
    id, inner = found[0]
    read_pattern_id(inner, known, id)
    if inner.value is None:
        return PatternUse(id, at.path)
    knobs = {name: _read_knob(id, name, each) for name, each in inner.mapping("knobs, as in {max_steps: 8}")}
    return PatternUse(id, at.path, knobs)


def _read_knob(id: str, name: str, at: LocatedValue) -> Any:
    if (id, name) == ("V5", "at"):
        return list(read_guards(at))
    fact = FACTS.get(name)
    if fact is not None and not fact.accepts(at.value):
        raise at.bad_value(fact.expected)
    return at.value


def read_facts(at: LocatedValue) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, each in at.mapping("facts with their values"):
        if name not in FACTS:
            where = "declares" if name in STATEMENTS else "facts"
            raise each.error(
                "stack.unknown-fact",
                f"there is no fact {name[:60]!r}",
                nearest=None if where == "declares" else nearest_name(name, FACTS),
                fix="It goes under `declares`." if where == "declares" else "`bicameral lint --facts` lists them.",
            )
        if not FACTS[name].accepts(each.value):
            raise each.bad_value(FACTS[name].expected)
        found[name] = each.value
    return found


def read_declares(at: LocatedValue) -> dict[str, str | bool]:
    found: dict[str, str | bool] = {}
    for name, each in at.mapping("statements, each with where it is written down"):
        if name not in STATEMENTS:
            raise each.error(
                "stack.unknown-fact",
                f"there is nothing to declare by the name of {name[:60]!r}",
                nearest=nearest_name(name, STATEMENTS),
                fix="It goes under `facts`." if name in FACTS else "`bicameral lint --facts` lists them.",
            )
        if not STATEMENTS[name].accepts(each.value):
            raise each.bad_value(STATEMENTS[name].expected)
        found[name] = each.value
    return found


def read_tools(at: LocatedValue) -> ToolCounts:
    found = at.keys(("count", "schema_tokens", "servers"), "the tools")
    tokens = found["schema_tokens"].count() if "schema_tokens" in found else None
    if tokens is None and "servers" in found:
        tokens = sum(each.count() for _, each in found["servers"].mapping("servers with their schema tokens"))
    return ToolCounts(at.path, found["count"].count() if "count" in found else None, tokens)


def read_legs(at: LocatedValue) -> tuple[Leg, ...]:
    return at.several_of(get_args(Leg))


def read_guards(at: LocatedValue) -> tuple[GuardPoint, ...]:
    return at.several_of(get_args(GuardPoint))


def read_prompt(at: LocatedValue, known: Collection[str]) -> tuple[PromptPart, ...]:
    return tuple(_read_prompt_part(each, known) for each in at.items("a list of parts"))


def _read_prompt_part(at: LocatedValue, known: Collection[str]) -> PromptPart:
    found = at.keys(("part", "stable", "tokens", "holds", "breakpoint"), "a part of the prompt")
    for needed in ("part", "stable"):
        if needed not in found:
            raise at.error("stack.bad-value", f"a part of the prompt has no {needed!r}", expected="part and stable")
    name = found["part"].text()
    owner = name.partition(".")[0]
    if owner[:1].isupper() and owner[1:].isdigit():
        read_pattern_id(found["part"], known, owner)
    return PromptPart(
        name,
        found["stable"].one_of(get_args(PromptStability)),
        at.path,
        found["tokens"].count() if "tokens" in found else None,
        found["holds"].several_of(get_args(VaryingContent)) if "holds" in found else (),
        found["breakpoint"].boolean() if "breakpoint" in found else False,
    )


def read_loops(at: LocatedValue) -> tuple[Loop, ...]:
    return tuple(_read_loop(name, each) for name, each in at.mapping("loops by their names"))


def _read_loop(name: str, at: LocatedValue) -> Loop:
    caps = ("steps", "tokens", "money", "seconds")
    found = at.keys((*caps, "exit"), "a loop") if at.value is not None else {}
    amounts = {cap: found[cap].positive_number() for cap in caps if cap in found}
    return Loop(name, at.path, **amounts, exit=found["exit"].text() if "exit" in found else None)


def read_sessions(at: LocatedValue) -> tuple[StackSession, ...]:
    return tuple(_read_session(name, each) for name, each in at.mapping("sessions by their names"))


def _read_session(name: str, at: LocatedValue) -> StackSession:
    keys = ("model", "reads", "writes", "judges", "tools", "policy", "quarantined")
    found = at.keys(keys, "a session") if at.value is not None else {}
    return StackSession(
        name,
        at.path,
        found["model"].text() if "model" in found else None,
        found["reads"].texts() if "reads" in found else (),
        found["writes"].texts() if "writes" in found else (),
        found["judges"].texts() if "judges" in found else (),
        found["tools"].texts() if "tools" in found else None,
        found["policy"].text() if "policy" in found else None,
        found["quarantined"].boolean() if "quarantined" in found else False,
    )


def read_actions(at: LocatedValue) -> tuple[Action, ...]:
    return tuple(_read_action(name, each) for name, each in at.mapping("actions by their names"))


def _read_action(name: str, at: LocatedValue) -> Action:
    gates = get_args(Gate)
    keys = ("reversible", "blast_radius", "novel", "gate", "was", "review")
    found = at.keys(keys, "an action") if at.value is not None else {}
    return Action(
        name,
        at.path,
        found["reversible"].boolean() if "reversible" in found else None,
        found["blast_radius"].one_of(get_args(BlastRadius)) if "blast_radius" in found else None,
        found["novel"].boolean() if "novel" in found else None,
        found["gate"].one_of(gates) if "gate" in found else None,
        found["was"].one_of(gates) if "was" in found else None,
        found["review"].text() if "review" in found else None,
    )


def read_stores(at: LocatedValue, known: Collection[str]) -> tuple[StackStore, ...]:
    return tuple(_read_store(name, each, known) for name, each in at.mapping("stores by their names"))


def _read_store(name: str, at: LocatedValue, known: Collection[str]) -> StackStore:
    keys = ("pattern", "readers", "writers", "eraser", "personal", "holds")
    found = at.keys(keys, "a store") if at.value is not None else {}
    return StackStore(
        name,
        at.path,
        _read_owners(found["pattern"], known) if "pattern" in found else (),
        found["readers"].texts() if "readers" in found else (),
        found["writers"].texts() if "writers" in found else (),
        found["eraser"].boolean() if "eraser" in found else None,
        found["personal"].boolean() if "personal" in found else False,
        found["holds"].one_of(get_args(StoreContent)) if "holds" in found else "content",
    )


def _read_owners(at: LocatedValue, known: Collection[str]) -> tuple[str, ...]:
    if isinstance(at.value, str):
        return (read_pattern_id(at, known),)
    return tuple(read_pattern_id(each, known) for each in at.items("a pattern or a list of patterns"))


def read_pipeline(at: LocatedValue, known: Collection[str]) -> tuple[str, ...]:
    """What comes after what: patterns, or parts of them such as `R5.plan`."""
    found: list[str] = []
    for each in at.items("a list such as [K11.read, R5.plan, R5.execute]"):
        read_pattern_id(each, known, each.text().partition(".")[0])
        found.append(each.text())
    return tuple(found)


CATALOGUE_IDS = frozenset(IDS)


SectionReader = Callable[[LocatedValue, Collection[str]], Any]

_SECTION_READERS: Mapping[str, tuple[str, SectionReader]] = {
    "patterns": ("uses", read_uses),
    "facts": ("facts", lambda at, _: read_facts(at)),
    "declares": ("declares", lambda at, _: read_declares(at)),
    "model": ("model", lambda at, _: at.text()),
    "owner": ("owner", lambda at, _: at.text()),
    "policy": ("policy", lambda at, _: at.text()),
    "tools": ("tools", lambda at, _: read_tools(at)),
    "legs": ("legs", lambda at, _: read_legs(at)),
    "guards": ("guards", lambda at, _: read_guards(at)),
    "prompt": ("prompt", read_prompt),
    "loops": ("loops", lambda at, _: read_loops(at)),
    "sessions": ("sessions", lambda at, _: read_sessions(at)),
    "actions": ("actions", lambda at, _: read_actions(at)),
    "stores": ("stores", read_stores),
    "pipeline": ("pipeline", read_pipeline),
}
"""What can be said of an agent, and of the whole."""
_STACK_KEYS = ("name", "agents", "define", "waivers")


def read_description(
    settings: Mapping[str, Any], locate: Callable[[StackPath], Place], file: str | None = None
) -> Stack:
    """The stack that a mapping describes; what is wrong with it is told with its place."""
    top = LocatedValue(settings, (), locate)
    found = top.keys((*_STACK_KEYS, *_SECTION_READERS), "a stack")
    defined = _read_definitions(found["define"]) if "define" in found else {}
    known = CATALOGUE_IDS | defined.keys()
    agents = _read_agents(found["agents"], known) if "agents" in found else ()
    whole = _read_member("", (), {key: at for key, at in found.items() if key in _SECTION_READERS}, known)
    if not whole.uses and not any(agent.uses for agent in agents):
        raise top.error(
            "stack.empty",
            "the stack has no patterns",
            expected="patterns, as in `patterns: [R4, V9, V14]`",
            fix="`bicameral patterns list` shows them all.",
        )
    waivers = (
        tuple(_read_waiver(each) for each in found["waivers"].items("a list of waivers")) if "waivers" in found else ()
    )
    name = found["name"].text() if "name" in found else "stack"
    return Stack(name, whole, agents, waivers, defined, file, locate)


def _read_agents(at: LocatedValue, known: Collection[str]) -> tuple[StackMember, ...]:
    found: list[StackMember] = []
    for name, each in at.mapping("agents by their names"):
        if not name.strip():
            raise each.error("stack.bad-value", "an agent has no name", expected="a name")
        sections = each.keys(_SECTION_READERS, "an agent") if each.value is not None else {}
        found.append(_read_member(name, each.path, sections, known))
    return tuple(found)


def _read_member(name: str, path: StackPath, found: Mapping[str, LocatedValue], known: Collection[str]) -> StackMember:
    read = {_SECTION_READERS[key][0]: _SECTION_READERS[key][1](at, known) for key, at in found.items()}
    return StackMember(name, path, **read)


def _read_definitions(at: LocatedValue) -> dict[str, OwnPattern]:
    """Patterns of one's own. They may need each other, but not in a circle."""
    given = dict(at.mapping("patterns of your own by their ids"))
    for id, each in given.items():
        if id in CATALOGUE_IDS:
            raise each.error("stack.known-pattern", f"the catalogue has a pattern {id!r} already", fix="Rename yours.")
    known = CATALOGUE_IDS | given.keys()
    found = {id: _read_definition(id, each, known) for id, each in given.items()}
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


def _read_definition(id: str, at: LocatedValue, known: Collection[str]) -> OwnPattern:
    keys = at.keys(("name", "needs", "needs_one_of", "not_with", "loops", "why"), "a pattern of your own")

    def listed(key: str) -> tuple[str, ...]:
        if key not in keys:
            return ()
        return tuple(read_pattern_id(each, known) for each in keys[key].items("a list of patterns"))

    if id in listed("not_with"):
        raise keys["not_with"].error("stack.bad-value", f"{id!r} cannot be without itself", expected="other patterns")
    return OwnPattern(
        id,
        keys["name"].text() if "name" in keys else id,
        at.path,
        listed("needs"),
        listed("needs_one_of"),
        listed("not_with"),
        keys["loops"].boolean() if "loops" in keys else False,
        keys["why"].text() if "why" in keys else "its definition says so",
    )


def _read_waiver(at: LocatedValue) -> Waiver:
    found = at.keys(("rule", "at", "reason", "until"), "a waiver")
    if "rule" not in found:
        raise at.error("stack.bad-value", "a waiver names no rule", expected="a rule, as in `rule: CRIT6`")
    rule = found["rule"]
    rules = (rule.text(),) if isinstance(rule.value, str) else rule.texts()
    # A reason that is empty is none: that is a finding, and no fault of the description.
    reason = found["reason"].value if "reason" in found else None
    if reason is not None and not isinstance(reason, str):
        raise found["reason"].bad_value("a text")
    return Waiver(
        rules,
        at.path,
        found["at"].text() if "at" in found else None,
        reason.strip() or None if reason else None,
        _read_day(found["until"]) if "until" in found else None,
    )


def _read_day(at: LocatedValue) -> date:
    value = at.value
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(str(value))
    except ValueError:
        raise at.bad_value("a day, as in 2027-03-01") from None


def check_waived_rules(stack: Stack, known: Collection[str]) -> None:
    """Every rule that a waiver names must be one: a misspelt waiver would seem to waive."""
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
