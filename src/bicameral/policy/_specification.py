"""Specifications: the rules of one agent or role in a versioned file, judged by Cedar and by no model.

    specification: refunds
    version: "3"
    rules: |
      @id("refunds") @duties("ticket")
      permit (principal, action, resource in Tool::"refund");
      @id("nothing-private")
      forbid (principal, action, resource) when { !resource.leaves.public };
    duties:
      - { name: ticket, tool: open_ticket, copies: { customer: customer } }
    waivers:
      - rule: nothing-private
        tools: [refund]
        author: Ada Moss
        reason: the audit of November
        begins: 2026-11-01
        ends: 2026-11-30

A call that writes, sends, deletes or touches private data is denied unless a rule permits it; a forbid beats every
permit. A duty is a call that must be made first. A waiver lifts one forbid for named tools until it ends, and replaces
no permit. A specification can only forbid more: the policies of the run decide about each call as well.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Final

from cedarpy import PolicySet
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bicameral.documents import YamlDocument, YamlLimits, first_key_fault, read_yaml
from bicameral.errors import BicameralError, Place, PolicyError, nearest_name
from bicameral.labels import PUBLIC
from bicameral.policy._audit import brings_leg
from bicameral.policy._cedar_request import (
    ALL_FACTS,
    call_receivers,
    entity_facts,
    evaluate_policies,
    make_call_profile,
    outline_call,
    parse_entities,
    render_context,
)
from bicameral.policy._decisions import CallFacts
from bicameral.policy._policy import build_policy_set
from bicameral.policy._rules import PolicyRule, read_policy_file, require_known_tools, specification_rules
from bicameral.tools import Registry, Tool

LONGEST_WAIVER: Final = dt.timedelta(days=90)
"""A waiver that ends in ten years is a permanent one."""
_CRITICAL_EFFECTS = ("write", "send", "irreversible")
_UNSURE = (False, True)


@dataclass(frozen=True, slots=True)
class Waiver:
    """An exception: one forbid does not hold for these tools, from `begins` until `ends`.

    Args:
        rule: The @id of the forbid.
        tools: The names of the tools, one by one.
        author: Who answers for it.
        reason: Why it is needed.
    """

    rule: str
    tools: tuple[str, ...]
    author: str
    reason: str
    begins: dt.datetime
    ends: dt.datetime

    def __post_init__(self) -> None:
        for name in ("rule", "author", "reason"):
            if not getattr(self, name).strip():
                raise _bad_waiver(self.rule, f"it has no {name}")
        if not self.tools or not all(each.isidentifier() for each in self.tools):
            raise _bad_waiver(self.rule, "it does not name its tools", "the names of tools, one by one")
        if self.begins.tzinfo is None or self.ends.tzinfo is None:
            raise _bad_waiver(self.rule, "its times have no time zone")
        if not self.begins < self.ends <= self.begins + LONGEST_WAIVER:
            raise _bad_waiver(
                self.rule,
                "it does not end soon",
                f"an end after its begin, and at most {LONGEST_WAIVER.days} days later",
            )

    def lifts(self, tool: str, at: dt.datetime) -> bool:
        """Whether it is in force for a tool at a moment."""
        return tool in self.tools and self.begins <= at < self.ends


@dataclass(frozen=True, slots=True)
class Duty:
    """A call that must be made before the call that a rule with `@duties("NAME")` permits.

    It is made before policy and people decide about that call, and stays made if they refuse it.

    Args:
        values: Arguments with fixed values.
        copies: Arguments that get the value of an argument of the call that follows, by the name of that one.
    """

    name: str
    tool: str
    values: Mapping[str, str | int | float | bool] = field(default_factory=dict[str, Any])
    copies: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        if not self.name.strip() or not self.tool.isidentifier():
            raise PolicyError("policy.bad-duty", "a duty has no name, or names no tool")
        if twice := sorted(self.values.keys() & self.copies.keys()):
            raise PolicyError("policy.bad-duty", f"the duty {self.name!r} gives {twice[0]!r} twice")


@dataclass(frozen=True, slots=True)
class Specification:
    """Rules, duties and waivers under one name and version.

    Args:
        rules: Cedar policies. Each has an @id; a permit may have @duties("first, second").
        work: What patterns may do other than by tools (`Context.once`), by its name; everything else is denied.
        file: Where it is written, for messages.

    Example:
        >>> spec = Specification("notes", "1", '@id("notes") permit (principal, action, resource in Tool::"add_note");')
    """

    name: str
    version: str
    rules: str
    duties: tuple[Duty, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    work: tuple[str, ...] = ()
    file: str = "specification"

    def __post_init__(self) -> None:
        if not self.name.strip() or not self.version.strip():
            raise _bad_specification("it has no name or no version", Place(file=self.file))
        rules = {rule.id: rule for rule in self.parsed_rules}
        names = [duty.name for duty in self.duties]
        if len(set(names)) < len(names):
            raise PolicyError("policy.bad-duty", "two duties have the same name", place=Place(file=self.file))
        for rule in rules.values():
            for name in rule_duties(rule):
                if name not in names:
                    raise PolicyError(
                        "policy.bad-duty",
                        f"{rule.id!r} asks for the duty {name!r}, which is not there",
                        place=Place(file=self.file),
                        nearest=nearest_name(name, names),
                    )
        for waiver in self.waivers:
            if waiver.rule not in rules or rules[waiver.rule].effect != "forbid":
                forbids = [id for id, rule in rules.items() if rule.effect == "forbid"]
                raise _bad_waiver(waiver.rule, "there is no such forbid", nearest=nearest_name(waiver.rule, forbids))

    @property
    def parsed_rules(self) -> tuple[PolicyRule, ...]:
        return _parse_rules(self.file, self.rules)

    def duty(self, name: str) -> Duty:
        return next(duty for duty in self.duties if duty.name == name)

    def require_tools(self, registry: Registry) -> None:
        """Raise if a rule, a duty or a waiver names a tool that there is not: it would govern nothing."""
        require_known_tools(self.parsed_rules, registry)
        named = (*(duty.tool for duty in self.duties), *(tool for each in self.waivers for tool in each.tools))
        for tool in named:
            if tool not in registry:
                raise PolicyError(
                    "policy.unknown-tool",
                    f"there is no tool {tool!r}",
                    place=Place(file=self.file),
                    nearest=nearest_name(tool, registry.names),
                )


def rule_duties(rule: PolicyRule) -> tuple[str, ...]:
    """The names of the duties of a rule."""
    written = rule.node.annotations.get("duties")
    return () if written is None else tuple(name.strip() for name in written.split(","))


@lru_cache(maxsize=64)
def _parse_rules(file: str, text: str) -> tuple[PolicyRule, ...]:
    return specification_rules(file, text)


# Judging ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a specification says of a call.

    Args:
        rules: The rules that decided; none if no rule is about the call.
        duties: What must be done first.
        waivers: Those without which the call would be forbidden.
        reason: Why it is not permitted.
    """

    permitted: bool
    rules: tuple[str, ...] = ()
    duties: tuple[Duty, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    reason: str = ""


class SpecificationEngine:
    """Judges calls by a specification. Equal inputs have equal verdicts; whatever fails is a denial."""

    def __init__(self, specification: Specification) -> None:
        self.specification = specification
        self._rules = {f"rule{number}": rule for number, rule in enumerate(specification.parsed_rules)}
        self._sets: dict[frozenset[str], PolicySet] = {}

    def judge(self, tool: Tool, facts: CallFacts, registry: Registry, at: dt.datetime | None) -> Verdict:
        """The verdict on a call at a moment; with None for it, no waiver is in force."""
        try:
            return self._judge(tool, facts, registry, at)
        except (BicameralError, ValueError, KeyError) as error:
            return Verdict(False, reason=f"the rules cannot judge this call ({type(error).__name__})")

    def _judge(self, tool: Tool, facts: CallFacts, registry: Registry, at: dt.datetime | None) -> Verdict:
        spec = self.specification
        in_force = [each for each in spec.waivers if at is not None and each.lifts(tool.name, at)]
        forbids = self._matching(facts, registry, "forbid")
        waived = tuple(each for each in in_force if each.rule in forbids)
        left = [id for id in forbids if not any(each.rule == id for each in waived)]
        if left:
            return Verdict(False, tuple(left), reason=f"{', '.join(map(repr, left))} forbids it")
        permits = self._matching(facts, registry, "permit")
        if not permits and is_critical(tool, facts):
            return Verdict(False, reason="no rule permits it")
        rules = [rule for rule in self._rules.values() if rule.id in permits]
        duties = dict.fromkeys(name for rule in rules for name in rule_duties(rule))
        return Verdict(True, tuple(permits), tuple(map(spec.duty, duties)), waived)

    def _matching(self, facts: CallFacts, registry: Registry, effect: str) -> list[str]:
        """The rules of an effect that apply. What is unsure about a call counts against it.

        A forbid applies if it does in one of the cases that are possible, a permit if it does in all of them.
        """
        policies = self._policy_set(effect)
        call = make_call_profile(*outline_call(facts), registry=registry)
        receivers = call_receivers(facts, call)
        if receivers is None:
            raise ValueError("the recipients are not known")
        entities = parse_entities(entity_facts(call, ALL_FACTS))
        found: list[set[str]] = []
        for lures, executed in product(
            _UNSURE if facts.lures is None else (bool(facts.lures),),
            _UNSURE if facts.executed is None else (facts.executed,),
        ):
            context = render_context(receivers, lures=lures, executed=executed)
            answer = evaluate_policies(policies, entities, context)
            if answer.errors:
                raise ValueError("a rule failed")
            found.append(set(answer.policies))
        applying = found[0].union(*found) if effect == "forbid" else found[0].intersection(*found)
        return [rule.id for id, rule in self._rules.items() if id in applying]

    def _policy_set(self, effect: str) -> PolicySet:
        ids = frozenset(id for id, rule in self._rules.items() if rule.effect == effect)
        if ids not in self._sets:
            self._sets[ids] = build_policy_set({id: (self._rules[id], self._rules[id].node) for id in sorted(ids)})
        return self._sets[ids]


def is_critical(tool: Tool, facts: CallFacts) -> bool:
    """Whether a call needs a rule that permits it: it changes or tells something, or private data is in it."""
    labels = (facts.pc, facts.copied, *(each.label for each in facts.arguments))
    return (
        facts.effect in _CRITICAL_EFFECTS
        or facts.outbound
        or not facts.declared
        or any(label.readers is not PUBLIC for label in labels)
        or brings_leg(tool, "private")
    )


# Files --------------------------------------------------------------------------------------------------------------

_Names = Annotated[tuple[str, ...], Field(strict=False)]


class _FileModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _DutyFile(_FileModel):
    name: str
    tool: str
    values: dict[str, str | int | float | bool] = Field(default_factory=dict[str, Any])
    copies: dict[str, str] = Field(default_factory=dict[str, str])


class _WaiverFile(_FileModel):
    rule: str
    tools: _Names
    author: str
    reason: str
    begins: dt.datetime
    ends: dt.datetime


class _SpecificationFile(_FileModel):
    specification: str
    version: str
    rules: str
    duties: tuple[_DutyFile, ...] = ()
    waivers: tuple[_WaiverFile, ...] = ()
    work: _Names = ()


def read_specification(file: Path | str) -> Specification:
    """The specification in a YAML file; a `PolicyError` says what is wrong with it, and where.

    A time without a time zone is one in UTC.

    Example:
        >>> spec = read_specification("refunds.yaml")
    """
    path = Path(file)
    # Anchors and tags are refused, and `no` and `on` are texts.
    document = read_yaml(read_policy_file(path), path, _bad_yaml, YamlLimits(plain=True))
    try:
        written = _SpecificationFile.model_validate(document.settings)
    except ValidationError as error:
        raise _fault_error(error, document) from None
    duties = tuple(Duty(each.name, each.tool, each.values, each.copies) for each in written.duties)
    waivers = tuple(
        Waiver(each.rule, each.tools, each.author, each.reason, _in_utc(each.begins), _in_utc(each.ends))
        for each in written.waivers
    )
    names = (written.specification, written.version, written.rules)
    return Specification(*names, duties, waivers, written.work, str(path))


def _in_utc(moment: dt.datetime) -> dt.datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=dt.UTC)


def _fault_error(error: ValidationError, document: YamlDocument) -> PolicyError:
    fault = first_key_fault(error, _SpecificationFile)
    return PolicyError(
        "policy.bad-specification",
        f"{fault.key}: {fault.message}" if fault.key else "this is no specification",
        place=document.locate(fault.path),
        expected=fault.expected,
        nearest=fault.nearest,
    )


def _bad_yaml(message: str, **more: Any) -> PolicyError:
    return PolicyError("policy.bad-specification", message, **more)


def _bad_specification(message: str, place: Place) -> PolicyError:
    return PolicyError("policy.bad-specification", message, place=place)


def _bad_waiver(rule: str, message: str, expected: str | None = None, nearest: str | None = None) -> PolicyError:
    return PolicyError(
        "policy.bad-waiver", f"the waiver of {rule!r} does not load: {message}", expected=expected, nearest=nearest
    )
