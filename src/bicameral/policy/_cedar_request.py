"""Requests to Cedar: the facts about a call become one entity and a context.

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

from cedarpy import (
    Entities,
    PolicySet,
    Schema,
    is_authorized as _is_authorized,  # pyright: ignore[reportUnknownVariableType]
    pst,
    validate_policies as _validate_policies,  # pyright: ignore[reportUnknownVariableType]
)

from bicameral.labels import NOTHING, PUBLIC, USER, Label, Source
from bicameral.policy._decisions import CallFacts, Effect, Purpose
from bicameral.tools import ATTACHED_SUFFIX, Registry, Tool, part_argument, principals
from bicameral.types import ListType, without_optional

_REQUEST = {
    "principal": {"type": "Person", "id": "user"},
    "action": {"type": "Action", "id": "call"},
    "resource": {"type": "Call", "id": "call"},
}
"""The same in every request: the facts are in the attributes of the call and in the context."""


@dataclass(frozen=True, slots=True)
class CedarAnswer:
    """Whether a request is allowed, by which policies, and the errors of the evaluation."""

    allowed: bool
    policies: tuple[str, ...]
    errors: tuple[str, ...]


def evaluate_policies(policies: PolicySet, entities: Entities, context: str) -> CedarAnswer:
    """A full evaluation of every policy.

    The entity and the context always have the same form, so they are not validated against the schema again.
    """
    answer = _is_authorized({**_REQUEST, "context": context}, policies, entities)
    return CedarAnswer(answer.allowed, tuple(answer.diagnostics.reasons), tuple(answer.diagnostics.errors))


def validation_errors(text: str, schema: Schema) -> list[str]:
    """The errors that Cedar's validator finds in a policy."""
    return [problem.error for problem in _validate_policies(text, schema).errors]


TAGS_GROUP, PARENTS_GROUP = "tags", "parents"
TOOL, TOOLBOX, EFFECT = "Tool", "Toolbox", "Effect"

FactsRead = Mapping[str, Collection[str]]
"""The facts that policies read, by group. `tags` are facts of single arguments; `parents` are the kinds of parents of a
call (tool, toolbox, effect): a policy can refer to one only by its name."""


def facts_read(nodes: Iterable[pst.Template], every: FactsRead) -> FactsRead:
    """The facts of a call that these policies read; all of them if that cannot be determined."""
    nodes = tuple(nodes)
    read: dict[str, set[str]] = defaultdict(set)
    read[PARENTS_GROUP] = {str(uid.type) for uid in pst.entity_uids(nodes)}
    pending: list[Any] = [clause.expr for node in nodes for clause in node.clauses]
    while pending:
        match pending.pop():
            case pst.GetAttr(
                base=pst.Var(name="resource"),
                attr="acts" | "outbound" | "declared" | "strict" | "assembled" | "unreviewed" | "unaddressed",
            ):
                continue
            case pst.GetAttr(base=pst.GetAttr(base=pst.Var(name="resource"), attr=group), attr=fact):
                read[group].add(fact)
            case pst.GetAttr(base=pst.BinaryOp(op="get_tag", left=pst.Var(name="resource"), right=name), attr=fact):
                read[TAGS_GROUP].add(fact)
                pending.append(name)
            case pst.BinaryOp(op="has_tag", left=pst.Var(name="resource"), right=name):
                read[TAGS_GROUP] |= set()
                pending.append(name)
            case pst.GetAttr(base=pst.Var(name="resource")) | pst.BinaryOp(op="get_tag" | "has_tag") | pst.HasAttr():
                # The policy reads a whole group, or tests whether one exists, so nothing may be left out.
                return every
            case other:
                pending.extend(_child_nodes(other))
    return dict(read)


def walk_expression(expr: pst.Expr) -> Iterator[Any]:
    """Every node of an expression."""
    pending: list[Any] = [expr]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(_child_nodes(node))


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
"""The name of written content that is not an argument of the call."""

_encode = json.JSONEncoder(separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class ArgumentProfile:
    """One argument as policies see it, without the principals that its value names."""

    name: str
    purpose: Purpose
    label: Label
    bounded: bool

    @property
    def is_untrusted_text(self) -> bool:
        return not (self.bounded or self.label.trusted)


@dataclass(frozen=True, slots=True)
class CallProfile:
    """Everything that is known of a call except the principals it names. Equal profiles are one entity for Cedar.

    A tool that declares nothing is treated as the worst case: each argument directs it, and each may leave with it.
    `receiver_names` are the arguments that name the recipients, including those that are left out: then the tool itself
    chooses, and `default_receivers` are its defaults. `assembled_names` are the arguments that a model's plan puts
    together.
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
    unreviewed: bool = False
    unaddressed: bool = False

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
        """The content that a call puts into a file, including what it copies there."""
        copied = (
            () if self.copied is NOTHING else (ArgumentProfile(COPIED_CONTENT, "carries", self.copied, bounded=False),)
        )
        return (*self.carried_arguments, *copied)

    @property
    def outgoing_content(self) -> tuple[ArgumentProfile, ...]:
        """What others can see: content, attached content, and the query of a tool that changes nothing."""
        kinds = ("carries", "attaches") if self.changes else ("carries", "attaches", "selects")
        # Where nobody has said what an argument is for, or who gets it, each may be content.
        unknown = not self.declared or self.unaddressed
        return tuple(each for each in self.arguments if unknown or each.purpose in kinds)


def _may_direct(purpose: Purpose, declared: bool) -> bool:
    """Whether an argument may direct a call: any may, if the tool declares nothing. Attached content never does."""
    return purpose == "directs" or (not declared and purpose != "attaches")


_Texts = tuple[str, str, str, str]
_Flags = tuple[bool, bool, bool, bool, bool]
_Arguments = tuple[tuple[str, Purpose, Label, bool], ...]


def outline_call(facts: CallFacts) -> tuple[_Texts, _Flags, Label, _Arguments, frozenset[str], Label]:
    """The facts without the names of people, as a hashable cache key."""
    arguments: _Arguments = tuple([(each.name, each.purpose, each.label, each.bounded) for each in facts.arguments])
    return (
        (facts.tool, facts.toolbox, facts.effect, facts.mode),
        (facts.outbound, facts.declared, facts.known, facts.unreviewed, facts.unaddressed),
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
    """The profile of an outlined call; a ValueError if a fact is malformed or contradicts the declaration."""
    (tool, toolbox, effect, mode), (outbound, declared, known, *said) = texts, flags
    # Every fact is checked by its exact kind: facts may come from a plan or a file, and an error is a denial.
    if not known:
        raise ValueError(f"there is no tool {tool!r}")
    for kind, value, possible in (("effect", effect, _EFFECTS), ("mode", mode, _MODES)):
        if value not in possible:
            raise ValueError(f"{value!r} is no {kind}")
    for text in (tool, toolbox, *(name for name, *_ in arguments)):
        if type(text) is not str:
            raise ValueError(f"{text!r} is no name")
        # A lone surrogate cannot be encoded: the error becomes a denial.
        text.encode()
    for name, purpose, _, _ in arguments:
        if purpose not in _PURPOSES:
            raise ValueError(f"the argument {name!r} is for {purpose!r}, which is no purpose")
    for label in (control, copied, *(each for _, _, each, _ in arguments)):
        if not isinstance(label, Label):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"{label!r} is no label")
    for flag in (outbound, declared, *said, *(bounded for *_, bounded in arguments)):
        if type(flag) is not bool:
            raise ValueError(f"{flag!r} is neither true nor false")
    if len({name for name, *_ in arguments}) != len(arguments):
        raise ValueError("two arguments have the same name")
    if not all(type(name) is str for name in assembled):
        raise ValueError("what is assembled is not named")
    profiles = tuple(ArgumentProfile(*each) for each in arguments)
    declaration = registry[tool] if registry is not None else None
    # Facts that contradict the declaration must not decide anything: the error becomes a denial.
    if declaration is not None and (
        (declaration.toolbox, declaration.effect, declaration.outbound, declaration.declared)
        != (toolbox, effect, outbound, declared)
        or [declaration.unreviewed, declaration.unaddressed] != said
    ):
        raise ValueError(f"these are not the facts of the tool {tool!r}")
    if declaration is not None and (undescribed := _undescribed_attachment(profiles, declaration)):
        raise ValueError(f"nothing is told of what {undescribed!r} names, which would go along")
    receivers, defaults = _receiving_arguments(profiles, declared, declaration)
    # A call that nobody receives tells nobody anything.
    if declaration is not None and declared and _has_no_receivers(profiles, declaration):
        outbound = False
    facts = (tool, toolbox, effect, outbound, declared, mode == "strict", control)
    return CallProfile(*facts, profiles, receivers, defaults, assembled, copied, *said)


def _undescribed_attachment(arguments: tuple[ArgumentProfile, ...], tool: Tool) -> str | None:
    """A part that names content which would go along, if the facts say nothing about that content."""
    names = {each.name for each in arguments}
    return next(
        (part for part in tool.attaches if part_argument(part) in names and part + ATTACHED_SUFFIX not in names), None
    )


def _has_no_receivers(arguments: tuple[ArgumentProfile, ...], tool: Tool) -> bool:
    """Whether a call leaves out every list of recipients and so reaches nobody, such as a private event.

    Only omitted arguments count, since an omission is the plan's own choice. An argument that is not a list might
    default to everyone.
    """
    given = {each.name for each in arguments}
    receiving = [each for each in tool.arguments if each.name in tool.receivers]
    return bool(receiving) and all(
        each.name not in given and isinstance(without_optional(each.type), ListType) and each.default in (None, [], ())
        for each in receiving
    )


def _receiving_arguments(
    arguments: tuple[ArgumentProfile, ...], declared: bool, tool: Tool | None
) -> tuple[frozenset[str], frozenset[str]]:
    """The arguments that name the recipients of a call, and the tool's defaults for those left out."""
    if tool is None or not declared:
        # Without a declaration, every argument that directs the call may name a recipient.
        return frozenset(each.name for each in arguments if _may_direct(each.purpose, declared)), frozenset()
    receivers = frozenset(tool.receivers)
    left_out = receivers.difference(each.name for each in arguments)
    defaults = (each.default for each in tool.arguments if each.name in left_out and not each.required)
    return receivers, frozenset(name for each in defaults for name in principals(each))


_Facts = tuple[tuple[str, Any], ...]
_Groups = tuple[tuple[str, _Facts], ...]
_FLAG_NAMES = ("acts", "outbound", "declared", "strict", "assembled", "unreviewed", "unaddressed")
EntityFacts = tuple[tuple[bool, ...], tuple[tuple[str, str], ...], _Groups, _Groups]
"""The facts of a call for Cedar: flags, parents, facts by group, and facts of each argument."""


def entity_facts(call: CallProfile, read: FactsRead) -> EntityFacts:
    """The facts of a call that policies read; calls with equal facts get the same answer."""
    places = ((TOOL, call.tool), (TOOLBOX, call.toolbox), (EFFECT, call.effect))
    return (
        (
            *(call.acts, call.outbound, call.declared, call.strict),
            *(bool(call.assembled_names), call.unreviewed, call.unaddressed),
        ),
        tuple([place for place in places if place[0] in read[PARENTS_GROUP]]),
        tuple([(name, _group_facts(members(call), read[name])) for name, members in _GROUPS.items() if name in read]),
        tuple([(each.name, _group_facts((each,), read[TAGS_GROUP])) for each in call.arguments])
        if TAGS_GROUP in read
        else (),
    )


def render_entity(facts: EntityFacts) -> str:
    """The call as Cedar's JSON. Names are only ever JSON strings, so none can be parsed as anything else."""
    said, parents, groups, tags = facts
    flags = dict(zip(_FLAG_NAMES, said, strict=True))
    return _encode(
        [
            {
                "uid": {"type": "Call", "id": "call"},
                "attrs": flags | {name: dict(values) for name, values in groups},
                "parents": [{"type": kind, "id": name} for kind, name in parents],
                "tags": {name: dict(values) for name, values in tags},
            }
        ]
    )


def parse_entities(facts: EntityFacts) -> Entities:
    """The call as Cedar's entities."""
    return Entities.from_json_str(render_entity(facts))  # pyright: ignore[reportUnknownMemberType]


def _group_facts(group: tuple[ArgumentProfile, ...], facts: Collection[str]) -> _Facts:
    return tuple([(fact, _FACT_VALUES[fact](group)) for fact in facts])


def _common_readers(group: tuple[ArgumentProfile, ...]) -> tuple[str, ...]:
    """The readers of all arguments in the group; empty if everyone may read all of them."""
    common: frozenset[str] | None = None
    for each in group:
        if each.label.readers is not PUBLIC:
            common = each.label.readers if common is None else common & each.label.readers
    return tuple(sorted(map(normalize_principal, common or ())))


def _group_sources(group: tuple[ArgumentProfile, ...]) -> set[Source]:
    return {source for each in group for source in each.label.sources}


def _control_profile(call: CallProfile) -> tuple[ArgumentProfile, ...]:
    """The control flow as an argument without free text."""
    return (ArgumentProfile("", "selects", call.control, bounded=True),)


_GROUPS: dict[str, Callable[[CallProfile], tuple[ArgumentProfile, ...]]] = {
    "control": _control_profile,
    "directs": lambda call: call.directing_arguments,
    "addresses": lambda call: call.receiver_arguments,
    "carries": lambda call: call.carried_arguments,
    "writes": lambda call: call.written_content,
    # In strict mode a call also reveals to others something about the data that decided it.
    "leaves": lambda call: (*call.outgoing_content, *(_control_profile(call) if call.strict else ())),
    "all": lambda call: call.arguments,
}
_FACT_VALUES: dict[str, Callable[[tuple[ArgumentProfile, ...]], Any]] = {
    "trusted": lambda group: all(each.label.trusted for each in group),
    "from_user": lambda group: bool(group) and all(source.trust == "user" for source in _group_sources(group)),
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
    """The principals that a call names as recipients; None if they are not known yet."""
    names = call.default_receivers
    for argument in facts.arguments:
        if argument.name in call.receiver_names:
            if argument.principals is None:
                return None
            names |= argument.principals
    return frozenset(map(normalize_principal, names))


def as_readers(names: frozenset[str], me: frozenset[str]) -> frozenset[str]:
    """Names as readers: the user's own addresses become `user`, and a principal with that very name is quoted."""
    return frozenset(USER if name in me else f"'{USER}'" if name == USER else name for name in names)


@lru_cache(maxsize=1024)
def render_context(
    names: frozenset[str], me: frozenset[str] = frozenset(), *, lures: bool = False, executed: bool = False
) -> str:
    """The context as Cedar's JSON."""
    readers, domains = sorted(as_readers(names, me)), sorted({address_domain(each) for each in names})
    return _encode({"receivers": readers, "domains": domains, "lures": lures, "executed": executed})


def normalize_principal(name: str) -> str:
    """A principal as it is compared. Only ASCII loses its case: other folding could make two names equal."""
    bare = name.strip()
    return bare.lower() if bare.isascii() else bare


def address_domain(name: str) -> str:
    """The domain of an address; a text that is not exactly one address stands for itself, so no allow-list contains it.

    Example:
        >>> address_domain("ann@example.com"), address_domain("eve@evil.com, ann@example.com")
        ('example.com', 'eve@evil.com, ann@example.com')
    """
    address = _ADDRESS.fullmatch(name)
    return address[1].rstrip(".") if address else name
