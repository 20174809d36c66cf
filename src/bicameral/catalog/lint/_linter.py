"""The linter: every rule is checked against every agent of a stack, and waivers are applied.

A waiver without a reason or a last day, or after its last day, waives nothing and is itself a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache
from typing import Any, TypeAlias

from bicameral.catalog.lint._problems import (
    LintProblem,
    ReportedProblem,
    merge_problems,
    missing_pattern,
    undeclared_fact,
)
from bicameral.catalog.lint._rules import (
    CheckKind,
    LintReport,
    LintRule,
    LintSeverity,
    RuleCheck,
    definition_rules,
    rules,
    severity_rank,
)
from bicameral.catalog.lint._scope import AgentScope, StackCondition, agent_scopes
from bicameral.catalog.lint._section_checks import SECTION_CHECKS
from bicameral.catalog.stacks import (
    INNER_KEY,
    STATEMENTS,
    PatternUse,
    Stack,
    StackPath,
    Waiver,
    check_waived_rules,
    dotted_path,
    paths_around,
)
from bicameral.expressions import Unknown


def run_check(check: RuleCheck, scope: AgentScope) -> Iterator[LintProblem]:
    """The problems that a check finds in an agent."""
    return _CHECK_RUNNERS[check.kind](check, scope)


def check_applies(check: RuleCheck, present: frozenset[str], brought: frozenset[str] = frozenset()) -> bool:
    """Whether a check applies to an agent with these patterns; what the runtime brings can only exempt from it."""
    if not check.if_all <= present or not check.unless.isdisjoint(present | brought):
        return False
    return not check.if_any or not check.if_any.isdisjoint(present)


def _decide_condition(
    condition: StackCondition | None, check: RuleCheck, scope: AgentScope
) -> tuple[bool, list[LintProblem]]:
    """Whether a condition holds for one use at least, and problems for undeclared facts if that is not known."""
    if condition is None:
        return True, []
    unknown: set[str] = set()
    for lookup in scope.variants(check.triggers):
        value = condition.evaluate(lookup)
        if isinstance(value, Unknown):
            unknown |= value.names
        elif value:
            return True, []
    return False, [undeclared_fact(name, _check_path(check, scope)) for name in sorted(unknown)]


def _check_path(check: RuleCheck, scope: AgentScope) -> StackPath:
    """Where a check reports: at the first of its trigger patterns."""
    used = next((id for id in scope.uses if id in check.triggers), "") if check.triggers else ""
    return scope.path_of(used)


def _trigger_patterns(check: RuleCheck, scope: AgentScope) -> tuple[str, ...]:
    return tuple(id for id in scope.uses if id in check.triggers)


def _check_required(check: RuleCheck, scope: AgentScope) -> Iterator[LintProblem]:
    missing = list(_missing_patterns(check, scope))
    if not missing:
        return
    so, unknown = _decide_condition(check.when, check, scope)
    yield from unknown
    if so:
        for each, path in missing:
            yield missing_pattern(each, path, _trigger_patterns(check, scope), check.says)


def _missing_patterns(check: RuleCheck, scope: AgentScope) -> Iterator[tuple[tuple[str, ...], StackPath]]:
    """What is missing, with the first use that lacks it; a check without triggers is about the agent as a whole."""
    uses = [use for id in _trigger_patterns(check, scope) for use in scope.uses[id]]
    present = [(scope.around(use), use.path) for use in uses] or [
        (scope.outermost | scope.brought, _check_path(check, scope))
    ]
    for wanted in (*((id,) for id in check.all_of), *((check.any_of,) if check.any_of else ())):
        for around, path in present:
            if not (scope.everywhere if check.anywhere else around) & set(wanted):
                yield wanted, path
                break


def _check_together(check: RuleCheck, scope: AgentScope) -> Iterator[LintProblem]:
    one, other = (
        [use for use in scope.uses.get(id, ()) if check.exempt.get(use.id, "") not in use.knobs] for id in check.all
    )
    path = find_clash(one, other, check.apart_by)
    if path is not None:
        message = f"{' and '.join(check.all)} are used for the same {check.apart_by or 'agent'}"
        yield LintProblem(("together", *sorted(check.all)), message, path, patterns=check.all)


def find_clash(one: Sequence[PatternUse], other: Sequence[PatternUse], apart_by: str) -> StackPath | None:
    """Where the second pattern of a pair is used for the same as the first; None if all their uses are apart.

    Two uses are apart if they declare different purposes. A use without a purpose is used for everything; but parts of
    a composition each have an input of their own, unless one of them is inside of the other.
    """
    of_purpose: dict[str, int] = {}
    everything, general = _UseIndex(), _UseIndex()
    for number, use in enumerate(other):
        everything.add(number, use.path)
        if (purpose := use.knobs.get(apart_by)) is None:
            general.add(number, use.path)
        else:
            of_purpose.setdefault(str(purpose), number)
    for use in one:
        purpose: Any = use.knobs.get(apart_by)
        found = (everything if purpose is None else general).other_parts(use.path)
        if purpose is not None and str(purpose) in of_purpose:
            found.append(of_purpose[str(purpose)])
        if found:
            return other[min(found)].path
    return None


@dataclass(slots=True)
class _UseIndex:
    """Uses of a pattern by their paths, so that two patterns with many uses need not be compared one with each."""

    compositions: dict[StackPath | None, int] = field(default_factory=dict[StackPath | None, int])
    """The first two outermost compositions that uses are parts of (None: of none), with the first use in each."""
    at: dict[StackPath, int] = field(default_factory=dict[StackPath, int])
    around: dict[StackPath, int] = field(default_factory=dict[StackPath, int])

    def add(self, number: int, path: StackPath) -> None:
        composition = _outermost_composition(path)
        if len(self.compositions) < 2:
            self.compositions.setdefault(composition, number)
        self.at[path] = number
        for end in range(len(path)):
            self.around.setdefault(path[:end], number)

    def other_parts(self, path: StackPath) -> list[int]:
        """The uses that are no other parts of the composition of this path; the first of all is among them."""
        own = _outermost_composition(path)
        found = [number for each, number in self.compositions.items() if own is None or each != own]
        found += [self.at[path[:end]] for end in range(len(path) + 1) if path[:end] in self.at]
        return found + ([self.around[path]] if path in self.around else [])


def _outermost_composition(path: StackPath) -> StackPath | None:
    """The path of the outermost pattern that a use is inside of."""
    return path[: path.index(INNER_KEY) + 1] if INNER_KEY in path else None


def _check_declared(check: RuleCheck, scope: AgentScope) -> Iterator[LintProblem]:
    statement = scope.declares.get(check.name)
    gated = bool(scope.actions) and all(action.gate is not None for action in scope.actions or ())
    if statement or (statement is None and check.name == "action_gate_map" and gated):
        return
    so, unknown = _decide_condition(check.when, check, scope)
    yield from unknown
    if so:
        what = STATEMENTS[check.name].what
        message = f"it is nowhere written down {what}" if statement is False else f"declare `{check.name}`: {what}"
        yield LintProblem(
            ("statement", check.name),
            message,
            _check_path(check, scope),
            None if statement is False else "warning",
            wants=(f"declares.{check.name}",),
            patterns=_trigger_patterns(check, scope),
        )


def _check_condition(check: RuleCheck, scope: AgentScope) -> Iterator[LintProblem]:
    assert check.must is not None
    so, unknown = _decide_condition(check.when, check, scope)
    yield from unknown
    if not so:
        return
    for lookup in scope.variants(check.triggers):
        value = check.must.evaluate(lookup)
        if isinstance(value, Unknown):
            yield from (undeclared_fact(name, _check_path(check, scope)) for name in sorted(value.names))
        elif not value:
            key = ("not so", check.topic or check.must.text)
            yield LintProblem(key, check.says, _check_path(check, scope), patterns=_trigger_patterns(check, scope))


def _check_preferred(check: RuleCheck, scope: AgentScope) -> Iterator[LintProblem]:
    so, unknown = _decide_condition(check.when, check, scope)
    yield from unknown
    if so:
        users = _trigger_patterns(check, scope)
        message = f"{check.choose} instead of {' and '.join(users)} would do: {check.says}"
        key = ("prefer", check.topic or f"{check.choose} {' '.join(sorted(check.triggers))}")
        yield LintProblem(key, message, _check_path(check, scope), patterns=(check.choose, *users))


def _check_section(check: RuleCheck, scope: AgentScope) -> Iterator[LintProblem]:
    so, unknown = _decide_condition(check.when, check, scope)
    yield from unknown
    if so:
        yield from SECTION_CHECKS[check.at](scope, check)


_CHECK_RUNNERS: Mapping[CheckKind, Callable[[RuleCheck, AgentScope], Iterator[LintProblem]]] = {
    "require": _check_required,
    "together": _check_together,
    "declare": _check_declared,
    "hold": _check_condition,
    "prefer": _check_preferred,
    "look": _check_section,
}


def is_in_force(waiver: Waiver, today: date) -> bool:
    """Whether a waiver has a reason and a last day that is not over."""
    return waiver.reason is not None and waiver.until is not None and today <= waiver.until


def apply_waivers(
    stack: Stack, problems: Sequence[ReportedProblem], today: date
) -> tuple[list[ReportedProblem], list[ReportedProblem]]:
    """The problems that remain, and those that are waived, with the reason."""
    remaining: list[ReportedProblem] = []
    waived: list[ReportedProblem] = []
    numbers: dict[_WaiverKey, int] = {}
    for number, waiver in enumerate(stack.waivers):
        if is_in_force(waiver, today):
            for rule in waiver.rules:
                numbers.setdefault((rule, waiver.at), number)
    if not numbers:
        return list(problems), []
    for each in problems:
        first = min((numbers[key] for key in _waiver_keys(each) if key in numbers), default=None)
        if first is None:
            remaining.append(each)
        else:
            waived.append(replace(each, waived=stack.waivers[first].reason))
    return remaining, waived


_WaiverKey: TypeAlias = tuple[str, str | None]
"""A rule, and the path at which it is waived."""


def _waiver_keys(reported: ReportedProblem) -> Iterator[_WaiverKey]:
    """Every rule and path that a waiver of this problem can name: waivers are looked up, not tried one by one."""
    rule = reported.rule.id
    yield rule, None
    for path in dict.fromkeys((reported.problem.path, reported.scope.path)):
        yield from ((rule, around) for around in paths_around(path))


def waiver_problems(
    stack: Stack, known: Mapping[str, LintRule], waived: Sequence[ReportedProblem], today: date, scope: AgentScope
) -> Iterator[ReportedProblem]:
    """Problems of the waivers themselves."""
    used = {key for each in waived for key in _waiver_keys(each)}
    for waiver in stack.waivers:
        for id, message in _waiver_faults(waiver, used, today):
            rule = known[id]
            key = ("waiver", id, dotted_path(waiver.path))
            yield ReportedProblem(rule, LintProblem(key, message, waiver.path), scope, rule.severity)


def _waiver_faults(waiver: Waiver, used: Collection[_WaiverKey], today: date) -> Iterator[tuple[str, str]]:
    shown = ", ".join(waiver.rules)
    if waiver.reason is None:
        yield "W1", f"the waiver of {shown} gives no reason"
    if waiver.until is None:
        yield "W2", f"the waiver of {shown} has no last day"
    elif today > waiver.until:
        yield "W3", f"the waiver of {shown} was over on {waiver.until.isoformat()}"
    unused = [rule for rule in waiver.rules if (rule, waiver.at) not in used]
    if unused and is_in_force(waiver, today):
        yield "W4", f"the waiver of {', '.join(unused)} waives nothing"


def lint(stack: Stack, *, today: date | None = None) -> LintReport:
    """The findings of all rules in a stack.

    Args:
        today: The day for which waivers are checked.

    Example:
        >>> lint(stack_of({"patterns": ["R13", "V9", "V14"]})).of_severity("error")[0].wants
        ('V8',)
    """
    known = rules_for_stack(stack)
    # First: a waiver with a misspelt rule would seem to have an effect.
    check_waived_rules(stack, known)
    agents = agent_scopes(stack)
    today = today or date.today()
    index = _catalog_index() if known is rules() else _CheckIndex(known)
    problems = [each for scope in agents for each in _collect_problems(index, scope)]
    remaining, waived = apply_waivers(stack, problems, today)
    remaining += waiver_problems(stack, known, waived, today, agents[0])
    findings, waived_findings = (merge_problems(stack, each, len(agents)) for each in (remaining, waived))
    return LintReport(stack.name, stack.file, tuple(findings), tuple(waived_findings))


def rules_for_stack(stack: Stack) -> Mapping[str, LintRule]:
    """The rules of the catalogue, and those of a stack's own patterns."""
    if not stack.defined:
        return rules()
    own = (rule for defined in stack.defined.values() for rule in definition_rules(defined))
    return {**rules(), **{rule.id: rule for rule in own}}


class _CheckIndex:
    """All checks, each found by a pattern without which it has nothing to say: an agent uses few of many patterns."""

    def __init__(self, known: Mapping[str, LintRule]) -> None:
        self._checks = [(rule, check) for rule in known.values() for check in rule.checks]
        self._by_pattern: dict[str, list[int]] = {}
        self._general: list[int] = []
        for number, (_, check) in enumerate(self._checks):
            needed = check.if_all or (frozenset(check.all) if check.kind == "together" else frozenset[str]())
            for place in [min(needed)] if needed else check.if_any:
                self._by_pattern.setdefault(place, []).append(number)
            if not needed and not check.if_any:
                self._general.append(number)

    def checks_for(self, scope: AgentScope) -> Iterator[tuple[LintRule, RuleCheck]]:
        """The checks that apply to an agent, in the order of the rules."""
        numbers = {number for id in scope.present for number in self._by_pattern.get(id, ())}
        for number in sorted(numbers.union(self._general)):
            rule, check = self._checks[number]
            if check_applies(check, scope.present, scope.brought):
                yield rule, check


@cache
def _catalog_index() -> _CheckIndex:
    return _CheckIndex(rules())


def _collect_problems(index: _CheckIndex, scope: AgentScope) -> Iterator[ReportedProblem]:
    for rule, check in index.checks_for(scope):
        for problem in run_check(check, scope):
            yield ReportedProblem(rule, problem, scope, _effective_severity(rule, check, problem))


def _effective_severity(rule: LintRule, check: RuleCheck, problem: LintProblem) -> LintSeverity:
    """The mildest severity of the rule, the check and the problem."""
    return max((each for each in (rule.severity, check.severity, problem.severity) if each), key=severity_rank)
