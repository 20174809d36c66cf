"""From the facts about a call to what Cedar is asked: one entity for the call, and a context with whom it names."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, get_args

from bicameral.decisions import CallFacts, Effect, Purpose
from bicameral.labels import NOTHING, PUBLIC, USER, Label, Source
from bicameral.tools import ATTACHED, Registry, Tool, argument_of, principals
from bicameral.types import ListType, OptionalType, Type

from ._reads import EFFECT, PARENTS, TAGS, TOOL, TOOLBOX, Reads

_EFFECTS, _PURPOSES, _MODES = frozenset(get_args(Effect)), frozenset(get_args(Purpose)), ("strict", "normal")
_ADDRESS = re.compile(r"[^@\s,;:<>()\[\]\"\\]+@([\w.-]+)")

COPIED = "what it copies"
"""Among what a call writes: content that is no argument of it."""

_encode = json.JSONEncoder(separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Known:
    """One argument, as far as policies can tell before its value names anybody."""

    name: str
    purpose: Purpose
    label: Label
    bounded: bool

    @property
    def strangers_text(self) -> bool:
        return not (self.bounded or self.label.trusted)


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything that is known of a call but whom it names. Equal situations are one entity for Cedar.

    A tool of which nothing was declared is taken for the worst: each argument directs it, and each may leave with it.
    `addressing` are the arguments that name those who receive it, also such as are left out: then whoever wrote the
    plan leaves it to the tool who receives it, and `by_default` are those whom the tool names. `assembled` are the
    arguments that a plan of a model puts together.
    """

    tool: str
    toolbox: str
    effect: str
    outbound: bool
    declared: bool
    strict: bool
    control: Label
    arguments: tuple[Known, ...]
    addressing: frozenset[str]
    by_default: frozenset[str] = frozenset()
    assembled: frozenset[str] = frozenset()
    copied: Label = NOTHING

    @property
    def changes(self) -> bool:
        return self.effect in ("write", "send", "irreversible")

    @property
    def acts(self) -> bool:
        return self.outbound or self.changes

    @property
    def directing(self) -> tuple[Known, ...]:
        return tuple(each for each in self.arguments if _may_direct(each.purpose, self.declared))

    @property
    def addresses(self) -> tuple[Known, ...]:
        given = tuple(each for each in self.arguments if each.name in self.addressing)
        left_out = self.addressing.difference(each.name for each in given)
        return (*given, *(Known(name, "directs", NOTHING, bounded=False) for name in sorted(left_out)))

    @property
    def carrying(self) -> tuple[Known, ...]:
        return tuple(each for each in self.arguments if each.purpose == "carries")

    @property
    def writing(self) -> tuple[Known, ...]:
        """What a call puts into a file: content, and what it copies there from elsewhere."""
        copied = () if self.copied is NOTHING else (Known(COPIED, "carries", self.copied, bounded=False),)
        return (*self.carrying, *copied)

    @property
    def leaving(self) -> tuple[Known, ...]:
        """What others get to see: content, what goes along with a name, and of a tool that only asks, the question."""
        kinds = ("carries", "attaches") if self.changes else ("carries", "attaches", "selects")
        return tuple(each for each in self.arguments if not self.declared or each.purpose in kinds)


def _may_direct(purpose: Purpose, declared: bool) -> bool:
    """Whether an argument may direct a call: any may, if nothing was said of it. What it names is no argument."""
    return purpose == "directs" or (not declared and purpose != "attaches")


_Texts = tuple[str, str, str, str]
_Flags = tuple[bool, bool, bool]
_Arguments = tuple[tuple[str, Purpose, Label, bool], ...]


def outline(facts: CallFacts) -> tuple[_Texts, _Flags, Label, _Arguments, frozenset[str], Label]:
    """The facts but whom the call names, as quickly as they can be compared."""
    arguments: _Arguments = tuple([(each.name, each.purpose, each.label, each.bounded) for each in facts.arguments])
    return (
        (facts.tool, facts.toolbox, facts.effect, facts.mode),
        (facts.outbound, facts.declared, facts.known),
        facts.pc,
        arguments,
        facts.assembled,
        facts.copied,
    )


def situation(
    texts: _Texts,
    flags: _Flags,
    control: Label,
    arguments: _Arguments,
    assembled: frozenset[str] = frozenset(),
    copied: Label = NOTHING,
    *,
    registry: Registry | None,
) -> Situation:
    """What policies are told of an outlined call; a ValueError if something in it is of no known kind."""
    (tool, toolbox, effect, mode), (outbound, declared, known) = texts, flags
    if not known:
        raise ValueError(f"there is no tool {tool!r}")
    for what, value, possible in (("effect", effect, _EFFECTS), ("mode", mode, _MODES)):
        if value not in possible:
            raise ValueError(f"{value!r} is no {what}")
    for text in (tool, toolbox, *(name for name, *_ in arguments)):
        if type(text) is not str:
            raise ValueError(f"{text!r} is no name")
        # Half a character cannot be written down: this is an error, and so a no.
        text.encode()
    for name, purpose, _, _ in arguments:
        if purpose not in _PURPOSES:
            raise ValueError(f"the argument {name!r} is for {purpose!r}, which is no purpose")
    for label in (control, copied, *(each for _, _, each, _ in arguments)):
        if not isinstance(label, Label):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"{label!r} is no label")
    for flag in (outbound, declared, *(bounded for *_, bounded in arguments)):
        if type(flag) is not bool:
            raise ValueError(f"{flag!r} is neither true nor false")
    if len({name for name, *_ in arguments}) != len(arguments):
        raise ValueError("two arguments have the same name")
    if not all(type(name) is str for name in assembled):
        raise ValueError("what is assembled is not named")
    found = tuple(Known(*each) for each in arguments)
    declaration = registry[tool] if registry is not None else None
    if declaration is not None and _facts_of(declaration) != (toolbox, effect, outbound, declared):
        raise ValueError(f"these are not the facts of the tool {tool!r}")
    if declaration is not None and (untold := _untold(found, declaration)):
        raise ValueError(f"nothing is told of what {untold!r} names, which would go along")
    addressing, by_default = _addressing(found, declared, declaration)
    if declaration is not None and declared and _to_nobody(found, declaration):
        outbound = False
    return Situation(
        tool,
        toolbox,
        effect,
        outbound,
        declared,
        mode == "strict",
        control,
        found,
        addressing,
        by_default,
        assembled,
        copied,
    )


def _untold(arguments: tuple[Known, ...], tool: Tool) -> str | None:
    """An argument that names something which would go along, if the facts leave out what that is."""
    told = {each.name for each in arguments}
    return next((part for part in tool.attaches if argument_of(part) in told and part + ATTACHED not in told), None)


def _to_nobody(arguments: tuple[Known, ...], tool: Tool) -> bool:
    """Whether a call leaves out every list of those who would receive it, and so is for nobody: a private event.

    Only what is left out counts, since that is the plan's own word. An argument that is no list might mean everyone.
    """
    given = {each.name for each in arguments}
    receiving = [each for each in tool.arguments if each.name in tool.receivers]
    return bool(receiving) and all(
        each.name not in given and isinstance(_bare(each.type), ListType) and each.default in (None, [], ())
        for each in receiving
    )


def _bare(type_: Type) -> Type:
    return type_.item if isinstance(type_, OptionalType) else type_


def _facts_of(tool: Tool) -> tuple[str, str, bool, bool]:
    return tool.toolbox, tool.effect, tool.outbound, tool.declared


def _addressing(
    arguments: tuple[Known, ...], declared: bool, tool: Tool | None
) -> tuple[frozenset[str], frozenset[str]]:
    """The arguments that name those who receive a call, and whom the tool names where they are left out."""
    if tool is None or not declared:
        # Where nobody said which arguments do, all that direct it do.
        return frozenset(each.name for each in arguments if _may_direct(each.purpose, declared)), frozenset()
    addressing = frozenset(tool.receivers)
    left_out = addressing.difference(each.name for each in arguments)
    usual = (each.default for each in tool.arguments if each.name in left_out and not each.required)
    return addressing, frozenset(name for each in usual for name in principals(each))


_Facts = tuple[tuple[str, Any], ...]
_Groups = tuple[tuple[str, _Facts], ...]
Told = tuple[tuple[bool, bool, bool, bool, bool], tuple[tuple[str, str], ...], _Groups, _Groups]
"""What Cedar is told of a call: the tool's flags, what it is in, its facts by group, and those of each argument."""


def told(call: Situation, read: Reads) -> Told:
    """The facts of a call that policies read. Calls that are alike in these are one and the same to them."""
    places = ((TOOL, call.tool), (TOOLBOX, call.toolbox), (EFFECT, call.effect))
    return (
        (call.acts, call.outbound, call.declared, call.strict, bool(call.assembled)),
        tuple([place for place in places if place[0] in read[PARENTS]]),
        tuple([(name, _together(tell(call), read[name])) for name, tell in _GROUPS.items() if name in read]),
        tuple([(each.name, _together((each,), read[TAGS])) for each in call.arguments]) if TAGS in read else (),
    )


def entity(told: Told) -> str:
    """The call as Cedar's JSON. Names only ever stand in JSON texts, so that none can be taken for anything else."""
    (acts, outbound, declared, strict, assembled), parents, groups, tags = told
    flags = {"acts": acts, "outbound": outbound, "declared": declared, "strict": strict, "assembled": assembled}
    return _encode(
        [
            {
                "uid": {"type": "Call", "id": "call"},
                "attrs": flags | {name: dict(facts) for name, facts in groups},
                "parents": [{"type": kind, "id": name} for kind, name in parents],
                "tags": {name: dict(facts) for name, facts in tags},
            }
        ]
    )


def _together(group: tuple[Known, ...], facts: Collection[str]) -> _Facts:
    return tuple([(fact, _TELL[fact](group)) for fact in facts])


def _readers(group: tuple[Known, ...]) -> tuple[str, ...]:
    """Those who may read all of it; nobody is listed where everyone may."""
    found: frozenset[str] | None = None
    for each in group:
        if each.label.readers is not PUBLIC:
            found = each.label.readers if found is None else found & each.label.readers
    return tuple(sorted(map(plain_name, found or ())))


def _sources(group: tuple[Known, ...]) -> set[Source]:
    return {source for each in group for source in each.label.sources}


def _control(call: Situation) -> tuple[Known, ...]:
    """What decided a call, as if it were an argument: it has no text of its own."""
    return (Known("", "selects", call.control, bounded=True),)


def _of_user(known: Known) -> bool:
    return all(source.trust == "user" for source in known.label.sources)


_GROUPS: dict[str, Callable[[Situation], tuple[Known, ...]]] = {
    "control": _control,
    "directs": lambda call: call.directing,
    "addresses": lambda call: call.addresses,
    "carries": lambda call: call.carrying,
    "writes": lambda call: call.writing,
    # Under strict control flow a call tells others something of what decided it.
    "leaves": lambda call: (*call.leaving, *(_control(call) if call.strict else ())),
    "all": lambda call: call.arguments,
}
_TELL: dict[str, Callable[[tuple[Known, ...]], Any]] = {
    "trusted": lambda group: all(each.label.trusted for each in group),
    "from_user": lambda group: bool(group) and all(map(_of_user, group)),
    "strangers_text": lambda group: any(each.strangers_text for each in group),
    "public": lambda group: all(each.label.readers is PUBLIC for each in group),
    "readers": _readers,
    "sources": lambda group: tuple(sorted({source.tool for source in _sources(group)})),
    "fields": lambda group: tuple(sorted({source.tool + _suffix(source.part) for source in _sources(group)})),
}
EVERYTHING: Reads = {name: tuple(_TELL) for name in (*_GROUPS, TAGS)} | {PARENTS: (TOOL, TOOLBOX, EFFECT)}


def _suffix(part: str) -> str:
    return part if part.startswith("[") or not part else f".{part}"


def receivers(facts: CallFacts, call: Situation) -> frozenset[str] | None:
    """Whom a call names as those who get it; None if that is not known yet."""
    found = call.by_default
    for argument in facts.arguments:
        if argument.name in call.addressing:
            if argument.principals is None:
                return None
            found |= argument.principals
    return frozenset(map(plain_name, found))


def as_readers(names: frozenset[str], me: frozenset[str]) -> frozenset[str]:
    """Names as readers: the user's own addresses are his, and somebody who merely calls himself `user` is not he."""
    return frozenset(USER if name in me else f"'{USER}'" if name == USER else name for name in names)


@lru_cache(maxsize=1024)
def context(
    names: frozenset[str], me: frozenset[str] = frozenset(), *, lures: bool = False, executed: bool = False
) -> str:
    """The context as Cedar's JSON."""
    readers, domains = sorted(as_readers(names, me)), sorted({domain(each) for each in names})
    return _encode({"receivers": readers, "domains": domains, "lures": lures, "executed": executed})


def plain_name(name: str) -> str:
    """A principal as it is compared. Only plain letters lose their case: others could make two names the same."""
    bare = name.strip()
    return bare.lower() if bare.isascii() else bare


def domain(name: str) -> str:
    """The domain of an address. What is not plainly one address has none but itself, so that no list of good domains
    has it.

    Example:
        >>> domain("ann@example.com"), domain("eve@evil.com, ann@example.com")
        ('example.com', 'eve@evil.com, ann@example.com')
    """
    found = _ADDRESS.fullmatch(name)
    return found[1].rstrip(".") if found else name
