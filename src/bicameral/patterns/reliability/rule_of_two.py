"""V3, rule of two: private data, untrusted text and a way out must not come together without a boundary on record.

Use it around every agent that touches user data, text from outside or an outbound tool. Before the work begins, code
counts these three legs over all tools and inputs. With more legs than allowed it begins only under an audit: one that
names the boundary, is bound by hash to exactly this system, and says which tools may send. The count is taken again
for every call, so that a tool that was added meanwhile is counted, too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, ParamSpec, TypeVar, cast, get_args

from bicameral.errors import CatalogError, RunError
from bicameral.labels import PUBLIC, Label, Labelled
from bicameral.patterns.integration.tool_call import ROUTER, RoutedCall, ToolCalling
from bicameral.patterns.kernel import Answered, Context, InterceptedCall, Pattern, PatternExample
from bicameral.patterns.kernel._codec import fingerprint, to_record
from bicameral.patterns.kernel._state import SharedState
from bicameral.patterns.strategies import ModelPair, Runtime, list_tools
from bicameral.policy import AUDIT_LEGS, AuditLeg, AuditReport, Policy, audit_registry
from bicameral.tools import Origin, Registry, Tool, tool

P = ParamSpec("P")
T = TypeVar("T")
Boundary = Literal["V4", "V8"]
"""What can keep three legs apart: two sessions with a typed boundary, or a sandbox without a way out."""


@dataclass(frozen=True, slots=True)
class SystemAudit:
    """A decision about one system with more legs than are allowed together.

    Args:
        system: The hash of the system (`system_hash`); it holds for no other.
        boundary: What keeps the legs apart.
        content_type: The type of what crosses the boundary.
        outbound: The outbound tools that may be called all the same.
        inventory_by: Who wrote the declarations of tools and sources.
        audited_by: Who decided; somebody else.
    """

    system: str
    boundary: Boundary
    content_type: str
    outbound: tuple[str, ...]
    inventory_by: str
    audited_by: str

    def __post_init__(self) -> None:
        if self.boundary not in get_args(Boundary):
            raise _bad_audit_error(f"{self.boundary!r} is no boundary", "V4, or V8 if it removes the way out")
        for name in ("system", "content_type", "inventory_by", "audited_by"):
            if not getattr(self, name).strip():
                raise _bad_audit_error(f"{name} is empty", "a record of what was decided, and by whom")
        if self.inventory_by.strip().casefold() == self.audited_by.strip().casefold():
            raise _bad_audit_error("who wrote the inventory has audited it", "two people")


def _bad_audit_error(message: str, expected: str) -> CatalogError:
    return CatalogError("pattern.bad-audit", f"the audit does not count: {message}", expected=expected)


def system_hash(inner: Pattern[..., Any], runtime: Runtime) -> str:
    """The hash of a system: its tools with their code, its models, its policies, and its prompts."""
    return _hash_system(inner, runtime.registry, model_names(runtime.models), runtime.policy)


def model_names(models: ModelPair) -> list[str]:
    """The names of the models of both chambers."""
    return [models.chambers.privileged.name, models.chambers.quarantined.name]


def _hash_system(inner: Pattern[..., Any], registry: Registry, models: Sequence[str], policy: Policy) -> str:
    tools = [_hash_tool(each) for each in sorted(registry, key=lambda each: each.name)]
    facts = [tools, list(models), policy.fingerprint, fingerprint(to_record(inner))]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _hash_tool(tool: Tool) -> str:
    return f"{tool.fingerprint} {tool.code() if tool.code else ''}"


def label_legs(labels: Iterable[Label]) -> frozenset[AuditLeg]:
    """The legs that values with these labels bring."""
    found: set[AuditLeg] = set()
    for label in labels:
        found |= {"private"} if label.readers is not PUBLIC else set()
        found |= set() if label.trusted else {"untrusted"}
    return frozenset(found)


@dataclass(frozen=True)
class RuleOfTwo(Pattern[P, T]):
    """Another pattern whose legs are counted before it begins and at every call.

    Args:
        inner: The pattern.
        audit: The decision that allows more legs, if there is one.
        legs_allowed: How many legs may be together without one.
        tools: The tools that may be called, and are counted; by default all.

    Example:
        >>> outcome = await RuleOfTwo(ReAct()).run(runtime, program_text("What do the mails of today say?"))
        >>> outcome.error.code
        'pattern.three-legs'
    """

    id: ClassVar[str] = "V3"
    inner: Pattern[P, T]
    audit: SystemAudit | None = None
    legs_allowed: int = 2
    tools: tuple[str, ...] | None = None

    async def execute(self, context: Context, /, *args: P.args, **kwargs: P.kwargs) -> Labelled[T]:
        return await context.run_part("watched", lambda part: self._watch(part, *args, **kwargs))

    async def _watch(self, context: Context, /, *args: P.args, **kwargs: P.kwargs) -> Labelled[T]:
        if self.tools is not None:
            context.restrict_tools(self.tools)
        policy = _policy_of(context)

        def system() -> Labelled[str]:
            models = model_names(context.shared.models)
            return context.derive(_hash_system(self.inner, context.registry, models, policy))

        # A replay has other models, and the hash of the record counts.
        found = context.read(context.recall("system", system))
        if self.audit is not None and self.audit.system != found:
            raise _stale_error("the tools, models, policies or prompts are not those that were audited")
        given = label_legs((context.read_label, *_labels_in([*args, *kwargs.values()])))
        watcher = Watcher(self, context.shared, context.registry, given, policy)
        legs, report = watcher.count(context.registry)
        context.note("legs-counted", count=len(legs), legs=", ".join(sorted(legs)), audited=self.audit is not None)
        watcher.require_boundary(legs, report)
        context.add_interceptor(watcher)
        return await self.inner.execute(context, *args, **kwargs)


@dataclass(frozen=True, eq=False)
class Watcher:
    """Counts the legs of a system, at its beginning and whenever it does something.

    Args:
        rule: What is allowed.
        shared: The run whose tools were audited. A pattern that is a tool has a state of its own.
        audited: The tools that were counted at the beginning.
        given: The legs that the inputs bring.
        policy: What holds the ways out.
    """

    rule: RuleOfTwo[..., Any]
    shared: SharedState
    audited: Registry
    given: frozenset[AuditLeg]
    policy: Policy
    _counts: dict[frozenset[int], tuple[Registry, AuditReport]] = field(
        default_factory=dict[frozenset[int], tuple[Registry, AuditReport]], init=False, repr=False
    )

    def count(self, registry: Registry) -> tuple[frozenset[AuditLeg], AuditReport]:
        """The legs of the audited tools and of these together, with those of the inputs."""
        # By identity: a tool of the same name and declaration may be another one.
        key = frozenset(map(id, registry))
        if key not in self._counts:
            names = {each.name for each in registry if self.audited.get(each.name) is not each}
            known = [each for each in self.audited if each.name not in names]
            union = Registry([*known, *(each for each in registry if each.name in names)])
            # The registry is kept, so that no other tool gets the identity of one of these.
            self._counts[key] = registry, audit_registry(union, self.policy.decide)
        report = self._counts[key][1]
        legs: set[AuditLeg] = {leg for leg in AUDIT_LEGS if report.legs[leg]}
        return self.given | legs, report

    def require_boundary(self, legs: frozenset[AuditLeg], report: AuditReport) -> None:
        """Raise if there are more legs than allowed, and no audit or no policy keeps them apart."""
        if len(legs) <= self.rule.legs_allowed:
            return
        if self.rule.audit is None:
            raise RunError(
                "pattern.three-legs",
                f"{', '.join(sorted(legs))} come together, and no boundary is on record",
                expected=f"at most {self.rule.legs_allowed} of {', '.join(AUDIT_LEGS)}",
                fix="Take a tool away, split the work (V4), or pass the `audit` that names the boundary.",
            )
        # Whatever the record says: a way out that untrusted text could misuse is not behind a boundary.
        loose = sorted(way.tool for way in report.ways_out if not way.is_held)
        if loose and len(legs) == len(AUDIT_LEGS):
            raise RunError(
                "pattern.three-legs", f"no policy holds {', '.join(map(repr, loose))}, whatever is on record"
            )

    async def admit(self, call: InterceptedCall) -> None:
        registry, audit = call.context.registry, self.rule.audit
        # The tools of a pattern that is a tool itself are in the hash of that tool.
        is_own = call.context.shared is self.shared
        if is_own and audit is not None and any(self.audited.get(each.name) is not each for each in registry):
            raise _stale_error("a tool was added after the audit")
        self.require_boundary(*self.count(registry))
        if not call.tool.outbound or len(label_legs((call.label,))) < len(AUDIT_LEGS) - 1:
            return
        if audit is None or call.tool.name not in audit.outbound:
            call.note("outbound-blocked", tool=call.tool.name)
            raise RunError(
                "pattern.third-leg",
                f"{call.tool.name!r} would send something that private data and untrusted text have decided",
                expected="no such call" if audit is None else f"one of {', '.join(audit.outbound) or 'no tools'}",
                fix="Name the tool under `outbound` of an audit, if it may be called all the same.",
            )

    async def admit_work(self, context: Context, step: str, name: str) -> None:
        """Allowed: what a pattern keeps in a store of its own goes nowhere, and is private when it is read."""


def _policy_of(context: Context) -> Policy:
    if context.shared.plans is None:
        raise RunError("pattern.no-policy", "there are no policies to audit with", fix="Use a `Runtime`.")
    return context.shared.plans.policy


def _stale_error(message: str) -> RunError:
    return RunError(
        "pattern.stale-audit",
        f"the audit is of another system: {message}",
        fix="Audit it again; `system_hash` has the hash of the system as it is now.",
    )


def _labels_in(value: object) -> Iterator[Label]:
    match value:
        case Labelled():
            yield cast("Labelled[Any]", value).label
        case Mapping():
            for each in cast("Mapping[object, object]", value).values():
                yield from _labels_in(each)
        case list() | tuple():
            for each in cast("Sequence[object]", value):
                yield from _labels_in(each)
        case _:
            return


# An example ---------------------------------------------------------------------------------------------------------

_TASK: Final = "What does my calendar say for 2027-03-05?"


def _tools(folder: Path) -> Sequence[Tool]:
    @tool(effect="read", outbound=False, origins=Origin("system", "user"), purpose={"day": "selects"})
    def read_calendar(day: str) -> str:
        """The entries of your calendar for a day."""
        return "12:00 lunch with Ada Moss"

    @tool(effect="read", outbound=False, origins=Origin("third_party", "public"), purpose={"name": "selects"})
    def read_menu(name: str) -> str:
        """The menu of a restaurant, as it says itself."""
        return "Soup, fish, tart."

    return (read_calendar, read_menu)


def _is_correct(outcome: Answered[RoutedCall]) -> bool:
    right = outcome.value["result"] == "12:00 lunch with Ada Moss"
    return right and [each.tool for each in outcome.tool_calls] == ["read_calendar"]


def _sizes(folder: Path) -> dict[str, int | float | str]:
    tools = f"Tools:\n{list_tools(Registry(_tools(folder)))}"
    return {"setup": ROUTER.setup, "tools": tools, "input": _TASK, "item_output": 25}


EXAMPLE = PatternExample(
    "Private data and text of others are read; nothing can be sent, so that two legs are enough.",
    lambda folder: RuleOfTwo(ToolCalling(), tools=("read_calendar", "read_menu")),
    _TASK,
    _is_correct,
    _sizes,
    _tools,
)
