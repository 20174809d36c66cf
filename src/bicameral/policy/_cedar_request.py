"""Requests to Cedar: from the facts about a call to one entity and a context, and Cedar's answer.

Most of the cost of a new call is serialising its facts, so only the facts that the policies read are sent.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from typing import Any, get_args

from cedarpy import Entities, PolicySet, Schema, pst
from cedarpy import is_authorized as _is_authorized  # pyright: ignore[reportUnknownVariableType]
from cedarpy import validate_policies as _validate_policies  # pyright: ignore[reportUnknownVariableType]

from bicameral.labels import NOTHING, PUBLIC, USER, Label, Source
from bicameral.policy._decisions import CallFacts, Effect, Purpose
from bicameral.tools import ATTACHED_SUFFIX, Registry, Tool, part_argument, principals
from bicameral.types import ListType, OptionalType, Type

_REQUEST = {
    "principal": {"type": "Person", "id": "user"},
    "action": {"type": "Action", "id": "call"},
    "resource": {"type": "Call", "id": "call"},
}
"""Who does what to what, in every request: the facts are in the call and in the context."""


@dataclass(frozen=True, slots=True)
class CedarAnswer:
    """Whether a request is allowed, by which policies, and what went wrong in the evaluation."""

    allowed: bool
    policies: tuple[str, ...]
    errors: tuple[str, ...]


def evaluate_policies(policies: PolicySet, entities: Entities, context: str) -> CedarAnswer:
    """A full evaluation of every policy.

    The request is always of the same form, and so is the context, so that the schema need not be asked again.
    """
    found = _is_authorized({**_REQUEST, "context": context}, policies, entities)
    return CedarAnswer(found.allowed, tuple(found.diagnostics.reasons), tuple(found.diagnostics.errors))


def parse_entities(text: str) -> Entities:
    """Entities from Cedar's JSON, parsed once."""
    return Entities.from_json_str(text)  # pyright: ignore[reportUnknownMemberType]


def validation_errors(text: str, schema: Schema) -> list[str]:
    """What the validator has against a policy."""
    return [found.error for found in _validate_policies(text, schema).errors]


TAGS_GROUP, PARENTS_GROUP = "tags", "parents"
TOOL, TOOLBOX, EFFECT = "Tool", "Toolbox", "Effect"

FactsRead = Mapping[str, Collection[str]]
"""The facts that are read, by their group; the group of what is asked of single arguments is `tags`, and `parents` are
the kinds of what a call may be in: a policy can ask for one only by its name."""


def facts_read(nodes: Iterable[pst.Template], every: FactsRead) -> FactsRead:
    """What these policies read of a call; everything if that cannot be told."""
    nodes = tuple(nodes)
    found: dict[str, set[str]] = defaultdict(set)
    found[PARENTS_GROUP] = {str(uid.type) for uid in pst.entity_uids(nodes)}
    waiting: list[Any] = [clause.expr for node in nodes for clause in node.clauses]
    while waiting:
        match waiting.pop():
            case pst.GetAttr(
                base=pst.Var(name="resource"), attr="acts" | "outbound" | "declared" | "strict" | "assembled"
            ):
                continue
            case pst.GetAttr(base=pst.GetAttr(base=pst.Var(name="resource"), attr=group), attr=fact):
                found[group].add(fact)
            case pst.GetAttr(base=pst.BinaryOp(op="get_tag", left=pst.Var(name="resource"), right=name), attr=fact):
                found[TAGS_GROUP].add(fact)
                waiting.append(name)
            case pst.BinaryOp(op="has_tag", left=pst.Var(name="resource"), right=name):
                found[TAGS_GROUP] |= set()
                waiting.append(name)
            case pst.GetAttr(base=pst.Var(name="resource")) | pst.BinaryOp(op="get_tag" | "has_tag") | pst.HasAttr():
                # A whole group, or whether there is one: then nothing may be left out.
                return every
            case other:
                waiting.extend(_child_nodes(other))
    return dict(found)


def walk_expression(expr: pst.Expr) -> Iterator[Any]:
    """Every node of an expression."""
    waiting: list[Any] = [expr]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(_child_nodes(node))


def _child_nodes(node: Any) -> Iterable[Any]:
    if isinstance(node, Mapping):
        return node.values()  # pyright: ignore[reportUnknownVariableType]
    if isinstance(node, tuple):
        return node  # pyright: ignore[reportUnknownVariableType]
    if is_dataclass(node):
        return [getattr(node, field.name) for field in fields(node)]
    return ()


_EFFECTS, _PURPOSES, _MODES = frozenset(get_args(Effect)), frozenset(get_args(Purpose)), ("strict", "normal")
_ADDRESS = re.compile(r"[^@\s,;:<>()\[\]\"\\]+@([\w.-]+)")

COPIED_CONTENT = "what it copies"
"""Among what a call writes: content that is no argument of it."""

_encode = json.JSONEncoder(separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class ArgumentProfile:
    """One argument, as far as policies can tell before its value names anybody."""

    name: str
    purpose: Purpose
    label: Label
    bounded: bool

    @property
    def is_untrusted_text(self) -> bool:
        return not (self.bounded or self.label.trusted)


@dataclass(frozen=True, slots=True)
class CallProfile:
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
    arguments: tuple[ArgumentProfile, ...]
    receiver_names: frozenset[str]
    default_receivers: frozenset[str] = frozenset()
    assembled_names: frozenset[str] = frozenset()
    copied: Label = NOTHING

    @property
    def changes(self) -> bool:
        return self.effect in ("write", "send", "irreversible")

    @property
    def acts(self) -> bool:
        return self.outbound or self.changes

    @property
    def directing_arguments(self) -> tuple[ArgumentProfile, ...]:
        return tuple(each for each in self.arguments if _may_direct(each.purpose, self.declared))

    @property
    def receiver_arguments(self) -> tuple[ArgumentProfile, ...]:
        given = tuple(each for each in self.arguments if each.name in self.receiver_names)
        left_out = self.receiver_names.difference(each.name for each in given)
        return (*given, *(ArgumentProfile(name, "directs", NOTHING, bounded=False) for name in sorted(left_out)))

    @property
    def carried_arguments(self) -> tuple[ArgumentProfile, ...]:
        return tuple(each for each in self.arguments if each.purpose == "carries")

    @property
    def written_content(self) -> tuple[ArgumentProfile, ...]:
        """What a call puts into a file: content, and what it copies there from elsewhere."""
        copied = (
            () if self.copied is NOTHING else (ArgumentProfile(COPIED_CONTENT, "carries", self.copied, bounded=False),)
        )
        return (*self.carried_arguments, *copied)

    @property
    def outgoing_content(self) -> tuple[ArgumentProfile, ...]:
        """What others get to see: content, what goes along with a name, and of a tool that only asks, the question."""
        kinds = ("carries", "attaches") if self.changes else ("carries", "attaches", "selects")
        return tuple(each for each in self.arguments if not self.declared or each.purpose in kinds)


def _may_direct(purpose: Purpose, declared: bool) -> bool:
    """Whether an argument may direct a call: any may, if nothing was said of it. What it names is no argument."""
    return purpose == "directs" or (not declared and purpose != "attaches")


_Texts = tuple[str, str, str, str]
_Flags = tuple[bool, bool, bool]
_Arguments = tuple[tuple[str, Purpose, Label, bool], ...]


def outline_call(facts: CallFacts) -> tuple[_Texts, _Flags, Label, _Arguments, frozenset[str], Label]:
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


def make_call_profile(
    texts: _Texts,
    flags: _Flags,
    control: Label,
    arguments: _Arguments,
    assembled: frozenset[str] = frozenset(),
    copied: Label = NOTHING,
    *,
    registry: Registry | None,
) -> CallProfile:
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
    found = tuple(ArgumentProfile(*each) for each in arguments)
    declaration = registry[tool] if registry is not None else None
    if declaration is not None and _declared_facts(declaration) != (toolbox, effect, outbound, declared):
        raise ValueError(f"these are not the facts of the tool {tool!r}")
    if declaration is not None and (untold := _undescribed_attachment(found, declaration)):
        raise ValueError(f"nothing is told of what {untold!r} names, which would go along")
    addressing, by_default = _receiving_arguments(found, declared, declaration)
    if declaration is not None and declared and _has_no_receivers(found, declaration):
        outbound = False
    return CallProfile(
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


def _undescribed_attachment(arguments: tuple[ArgumentProfile, ...], tool: Tool) -> str | None:
    """An argument that names something which would go along, if the facts leave out what that is."""
    told = {each.name for each in arguments}
    return next(
        (part for part in tool.attaches if part_argument(part) in told and part + ATTACHED_SUFFIX not in told), None
    )


def _has_no_receivers(arguments: tuple[ArgumentProfile, ...], tool: Tool) -> bool:
    """Whether a call leaves out every list of those who would receive it, and so is for nobody: a private event.

    Only what is left out counts, since that is the plan's own word. An argument that is no list might mean everyone.
    """
    given = {each.name for each in arguments}
    receiving = [each for each in tool.arguments if each.name in tool.receivers]
    return bool(receiving) and all(
        each.name not in given and isinstance(_without_optional(each.type), ListType) and each.default in (None, [], ())
        for each in receiving
    )


def _without_optional(type_: Type) -> Type:
    return type_.item if isinstance(type_, OptionalType) else type_


def _declared_facts(tool: Tool) -> tuple[str, str, bool, bool]:
    return tool.toolbox, tool.effect, tool.outbound, tool.declared


def _receiving_arguments(
    arguments: tuple[ArgumentProfile, ...], declared: bool, tool: Tool | None
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
EntityFacts = tuple[tuple[bool, bool, bool, bool, bool], tuple[tuple[str, str], ...], _Groups, _Groups]
"""What Cedar is told of a call: the tool's flags, what it is in, its facts by group, and those of each argument."""


def entity_facts(call: CallProfile, read: FactsRead) -> EntityFacts:
    """The facts of a call that policies read. Calls that are alike in these are one and the same to them."""
    places = ((TOOL, call.tool), (TOOLBOX, call.toolbox), (EFFECT, call.effect))
    return (
        (call.acts, call.outbound, call.declared, call.strict, bool(call.assembled_names)),
        tuple([place for place in places if place[0] in read[PARENTS_GROUP]]),
        tuple([(name, _group_facts(tell(call), read[name])) for name, tell in _GROUPS.items() if name in read]),
        tuple([(each.name, _group_facts((each,), read[TAGS_GROUP])) for each in call.arguments])
        if TAGS_GROUP in read
        else (),
    )


def render_entity(told: EntityFacts) -> str:
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


def _group_facts(group: tuple[ArgumentProfile, ...], facts: Collection[str]) -> _Facts:
    return tuple([(fact, _FACT_VALUES[fact](group)) for fact in facts])


def _common_readers(group: tuple[ArgumentProfile, ...]) -> tuple[str, ...]:
    """Those who may read all of it; nobody is listed where everyone may."""
    found: frozenset[str] | None = None
    for each in group:
        if each.label.readers is not PUBLIC:
            found = each.label.readers if found is None else found & each.label.readers
    return tuple(sorted(map(normalize_principal, found or ())))


def _group_sources(group: tuple[ArgumentProfile, ...]) -> set[Source]:
    return {source for each in group for source in each.label.sources}


def _control_profile(call: CallProfile) -> tuple[ArgumentProfile, ...]:
    """What decided a call, as if it were an argument: it has no text of its own."""
    return (ArgumentProfile("", "selects", call.control, bounded=True),)


def _is_from_user(known: ArgumentProfile) -> bool:
    return all(source.trust == "user" for source in known.label.sources)


_GROUPS: dict[str, Callable[[CallProfile], tuple[ArgumentProfile, ...]]] = {
    "control": _control_profile,
    "directs": lambda call: call.directing_arguments,
    "addresses": lambda call: call.receiver_arguments,
    "carries": lambda call: call.carried_arguments,
    "writes": lambda call: call.written_content,
    # Under strict control flow a call tells others something of what decided it.
    "leaves": lambda call: (*call.outgoing_content, *(_control_profile(call) if call.strict else ())),
    "all": lambda call: call.arguments,
}
_FACT_VALUES: dict[str, Callable[[tuple[ArgumentProfile, ...]], Any]] = {
    "trusted": lambda group: all(each.label.trusted for each in group),
    "from_user": lambda group: bool(group) and all(map(_is_from_user, group)),
    "strangers_text": lambda group: any(each.is_untrusted_text for each in group),
    "public": lambda group: all(each.label.readers is PUBLIC for each in group),
    "readers": _common_readers,
    "sources": lambda group: tuple(sorted({source.tool for source in _group_sources(group)})),
    "fields": lambda group: tuple(
        sorted({source.tool + _part_suffix(source.part) for source in _group_sources(group)})
    ),
}
ALL_FACTS: FactsRead = {name: tuple(_FACT_VALUES) for name in (*_GROUPS, TAGS_GROUP)} | {
    PARENTS_GROUP: (TOOL, TOOLBOX, EFFECT)
}


def _part_suffix(part: str) -> str:
    return part if part.startswith("[") or not part else f".{part}"


def call_receivers(facts: CallFacts, call: CallProfile) -> frozenset[str] | None:
    """Whom a call names as those who get it; None if that is not known yet."""
    found = call.default_receivers
    for argument in facts.arguments:
        if argument.name in call.receiver_names:
            if argument.principals is None:
                return None
            found |= argument.principals
    return frozenset(map(normalize_principal, found))


def as_readers(names: frozenset[str], me: frozenset[str]) -> frozenset[str]:
    """Names as readers: the user's own addresses are his, and somebody who merely calls himself `user` is not he."""
    return frozenset(USER if name in me else f"'{USER}'" if name == USER else name for name in names)


@lru_cache(maxsize=1024)
def render_context(
    names: frozenset[str], me: frozenset[str] = frozenset(), *, lures: bool = False, executed: bool = False
) -> str:
    """The context as Cedar's JSON."""
    readers, domains = sorted(as_readers(names, me)), sorted({address_domain(each) for each in names})
    return _encode({"receivers": readers, "domains": domains, "lures": lures, "executed": executed})


def normalize_principal(name: str) -> str:
    """A principal as it is compared. Only plain letters lose their case: others could make two names the same."""
    bare = name.strip()
    return bare.lower() if bare.isascii() else bare


def address_domain(name: str) -> str:
    """The domain of an address. What is not plainly one address has none but itself, so that no list of good domains
    has it.

    Example:
        >>> address_domain("ann@example.com"), address_domain("eve@evil.com, ann@example.com")
        ('example.com', 'eve@evil.com, ann@example.com')
    """
    found = _ADDRESS.fullmatch(name)
    return found[1].rstrip(".") if found else name
