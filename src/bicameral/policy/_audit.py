"""The audit: do these tools together hold private data, read untrusted text, and reach others?

Any two of these are harmless. All three make data theft possible: an untrusted text says what to take and where to send
it. The audit counts them over a registry and, if all three are present, tests every outbound tool: it submits the worst
calls to the policies in force, and reports which policy stops each. An outbound tool that nothing stops fails the
audit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

from bicameral.labels import NOTHING, TRUSTED_USER, Label, Source
from bicameral.policy._decisions import Allowed, ArgumentFacts, CallFacts, Decide, Mode
from bicameral.tools import ATTACHED_SUFFIX, Purpose, Registry, Tool, part_argument
from bicameral.types import NullType

AuditLeg = Literal["private", "untrusted", "outbound"]
AUDIT_LEGS: tuple[AuditLeg, ...] = get_args(AuditLeg)

_UNTRUSTED_LABEL = Label({Source("third_party", "a stranger")})
_PRIVATE_LABEL = Label({Source("system", "a private value")}, {"user"})
_SERVICE_LABEL = Label({Source("system", "a service")})
_SOMEBODY = frozenset({"somebody@example.com"})
_LINK = frozenset({"www.example.com"})


@dataclass(frozen=True, slots=True)
class AuditTrial:
    """One kind of call that must not pass: what it would do, through which arguments, and what stops it."""

    what: str
    arguments: tuple[str, ...]
    stopped_by: tuple[str, ...] | None
    """The policies that stop it; None if it passes."""


@dataclass(frozen=True, slots=True)
class OutboundPath:
    """A tool that reaches others, and the trials of it."""

    tool: str
    declared: bool
    hosts: tuple[str, ...]
    trials: tuple[AuditTrial, ...]

    @property
    def is_held(self) -> bool:
        """Whether untrusted text cannot misuse the tool: it reaches only named hosts, or policies stop every trial.

        No rule sees inside a call, so a tool that declares nothing may read and send in one call.
        """
        if not self.declared:
            return False
        return bool(self.hosts) or all(trial.stopped_by is not None for trial in self.trials)

    def explain(self) -> Iterator[str]:
        """What stops misuse of the tool, or does not, in plain words."""
        if not self.declared:
            yield "it declares nothing, so one call may read private data and send it"
            return
        if self.hosts:
            yield f"it reaches only {', '.join(self.hosts)}"
        for trial in self.trials:
            through = f" ({', '.join(trial.arguments)})" if trial.arguments else ""
            if trial.stopped_by is None:
                yield f"nothing stops a call in which {trial.what}{through}"
            else:
                yield f"a call in which {trial.what}{through} is stopped by {', '.join(trial.stopped_by)}"


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The tools that bring each leg, and every outbound tool with its trials."""

    legs: dict[AuditLeg, tuple[str, ...]]
    ways_out: tuple[OutboundPath, ...]
    undeclared: tuple[str, ...]
    fingerprint: str
    """The fingerprint of the registry: the report is valid for this one only."""

    @property
    def leg_count(self) -> int:
        return sum(1 for tools in self.legs.values() if tools)

    @property
    def is_safe(self) -> bool:
        """Whether a leg is missing, or every outbound tool is held."""
        return self.leg_count < len(AUDIT_LEGS) or all(way.is_held for way in self.ways_out)

    @property
    def verdict(self) -> str:
        """The outcome in one sentence."""
        if self.leg_count < len(AUDIT_LEGS):
            lacking = ", ".join(leg for leg in AUDIT_LEGS if not self.legs[leg])
            return f"{self.leg_count} of 3 legs: without {lacking} nothing can be stolen by a stranger's text"
        loose = [way.tool for way in self.ways_out if not way.is_held]
        if loose:
            return f"all 3 legs, and nothing holds {', '.join(loose)}"
        return "all 3 legs, and every way out is held"

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": self.is_safe,
            "verdict": self.verdict,
            "count": self.leg_count,
            "legs": {leg: list(tools) for leg, tools in self.legs.items()},
            "ways_out": [
                {"tool": way.tool, "held": way.is_held, "hosts": list(way.hosts), "why": list(way.explain())}
                for way in self.ways_out
            ],
            "undeclared": list(self.undeclared),
            "registry": self.fingerprint,
        }


def audit_registry(registry: Registry, decide: Decide | None, *, mode: Mode = "strict") -> AuditReport:
    """Count the three legs over a registry, and test every outbound tool.

    Args:
        registry: The tools.
        decide: The policies in force, as `Policy.decide`; None if there are none.
        mode: Whether control flow counts.

    Example:
        >>> audit_registry(registry, Policy.load(registry=registry).decide).verdict
        'all 3 legs, and every way out is held'
    """
    tools = list(registry)
    legs: dict[AuditLeg, tuple[str, ...]] = {
        "private": _sorted_names(tool for tool in tools if brings_leg(tool, "private")),
        "untrusted": _sorted_names(tool for tool in tools if brings_leg(tool, "untrusted")),
        "outbound": _sorted_names(tool for tool in tools if tool.outbound),
    }
    ways = tuple(
        OutboundPath(tool.name, tool.declared, tool.hosts, tuple(_run_trials(tool, decide, mode)))
        for tool in tools
        if tool.outbound
    )
    return AuditReport(legs, ways, _sorted_names(tool for tool in tools if not tool.declared), registry.fingerprint)


def brings_leg(tool: Tool, leg: Literal["private", "untrusted"]) -> bool:
    """Whether a result of this tool may hold private data, or untrusted text."""
    if isinstance(tool.result, NullType):
        return False
    if not tool.declared or "" not in tool.origins:
        # A pure function brings in nothing but its arguments.
        return not (tool.declared and tool.effect == "pure" and not tool.origins)
    if leg == "private":
        return any(origin.readers != "public" for origin in tool.origins.values())
    return any(origin.trust == "third_party" for origin in tool.origins.values())


def _sorted_names(tools: Iterable[Tool]) -> tuple[str, ...]:
    return tuple(sorted(tool.name for tool in tools))


def _run_trials(tool: Tool, decide: Decide | None, mode: Mode) -> Iterator[AuditTrial]:
    """Calls that must not pass. Everything but the tested argument is as harmless as possible."""
    directs, carries = _arguments_for(tool, "directs"), _arguments_for(tool, "carries")
    # A query reveals its arguments to the service. What a sending tool selects by itself it sends unseen, unless it is
    # declared as attached.
    attached = set(map(part_argument, tool.attaches)) if tool.changes else set[str]()
    leaves = (*carries, *(name for name in _arguments_for(tool, "selects") if name not in attached))
    private = tuple(name for name, origin in tool.attaches.items() if origin.readers != "public")
    trials: list[tuple[str, tuple[str, ...], Label, Label]] = [
        ("a stranger says where it goes", directs, _UNTRUSTED_LABEL, TRUSTED_USER),
        ("something private goes to others", leaves, _PRIVATE_LABEL, _SERVICE_LABEL),
        (
            "something private goes along by its name",
            tuple(map(_attached_name, private)),
            _PRIVATE_LABEL,
            _SERVICE_LABEL,
        ),
        ("a stranger's text with a link goes out in your name", carries, _UNTRUSTED_LABEL, TRUSTED_USER),
    ]
    for description, names, label, others in trials:
        # One argument at a time: a single one that nothing stops is enough for a leak.
        stopped = {
            name: _stopping_rules(sample_call(tool, mode, name, label, others, lures=_LINK), decide) for name in names
        }
        loose = tuple(name for name, rules in stopped.items() if rules is None)
        if loose:
            yield AuditTrial(description, _argument_names(loose), None)
        elif names:
            yield AuditTrial(
                description,
                _argument_names(names),
                tuple(dict.fromkeys(rule for rules in stopped.values() for rule in rules or ())),
            )
    if mode == "strict":
        call = sample_call(tool, mode, control=_UNTRUSTED_LABEL, lures=_LINK)
        yield AuditTrial("a stranger decides whether it is made", (), _stopping_rules(call, decide))


def _arguments_for(tool: Tool, purpose: Purpose) -> tuple[str, ...]:
    return tuple(argument.name for argument in tool.arguments if argument.purpose == purpose)


def _attached_name(argument: str) -> str:
    return argument + ATTACHED_SUFFIX


def _argument_names(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name.removesuffix(ATTACHED_SUFFIX) for name in names)


def sample_call(
    tool: Tool,
    mode: Mode,
    name: str = "",
    label: Label = TRUSTED_USER,
    others: Label = TRUSTED_USER,
    control: Label = TRUSTED_USER,
    lures: frozenset[str] = frozenset(),
) -> CallFacts:
    """A call with all arguments of a tool, one of them (`name`) with this label; by default the most harmless call."""
    given = (
        ArgumentFacts(
            each.name,
            each.purpose,
            label if each.name == name else others,
            principals=_SOMEBODY if each.name in tool.receivers else frozenset(),
        )
        for each in tool.arguments
    )
    along = (
        ArgumentFacts(_attached_name(each), "attaches", label if _attached_name(each) == name else NOTHING)
        for each in tool.attaches
    )
    return CallFacts.of_tool(tool, (*given, *along), control, mode, lures=lures)


def _stopping_rules(call: CallFacts, decide: Decide | None) -> tuple[str, ...] | None:
    decision = Allowed() if decide is None else decide(call)
    return None if isinstance(decision, Allowed) else decision.rules or ("the policies",)
