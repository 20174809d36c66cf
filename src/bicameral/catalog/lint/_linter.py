"""The linter: every rule is checked against every agent of a stack, and waivers are applied.

A waiver without a reason or a last day, or after its last day, waives nothing and is itself a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from itertools import product
from typing import Any

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
from bicameral.catalog.stacks import STATEMENTS, PatternUse, Stack, StackPath, Waiver, check_waived_rules, dotted_path
from bicameral.expressions import Unknown


def run_check(check: RuleCheck, scope: AgentScope) -> Iterator[LintProblem]:
    """What a check finds in an agent to which it applies."""
    return _CHECK_RUNNERS[check.kind](check, scope)


def check_applies(check: RuleCheck, present: frozenset[str]) -> bool:
    """Whether a check is about an agent that uses these patterns."""
    if not check.if_all <= present or not check.unless.isdisjoint(present):
        return False
    return not check.if_any or not check.if_any.isdisjoint(present)


def _decide_condition(
    condition: StackCondition | None, check: RuleCheck, scope: AgentScope
) -> tuple[bool, list[LintProblem]]:
    """Whether a condition is so for one use at least, and what is not known where that cannot be said."""
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
    """Where a check applies: at the first of the patterns that it is about."""
    used = next((id for id in scope.uses if id in check.triggers), "") if check.triggers else ""
    return scope.path_of(used)


def _trigger_patterns(check: RuleCheck, scope: AgentScope) -> tuple[str, ...]:
    return tuple(id for id in scope.uses if id in check.triggers)


def _check_required(check: RuleCheck, scope: AgentScope) -> Iterator[LintProblem]:
    there = scope.everywhere if check.anywhere else scope.present
    wanted: list[tuple[str, ...]] = [(id,) for id in check.all_of if id not in there]
    if check.any_of and not there & set(check.any_of):
        wanted.append(check.any_of)
    if not wanted:
        return
    so, unknown = _decide_condition(check.when, check, scope)
    yield from unknown
    if so:
        for each in wanted:
            yield missing_pattern(each, _check_path(check, scope), _trigger_patterns(check, scope), check.says)


def _check_together(check: RuleCheck, scope: AgentScope) -> Iterator[LintProblem]:
    uses = [
        [use for use in scope.uses.get(id, ()) if check.exempt.get(use.id, "") not in use.knobs] for id in check.all
    ]
    for several in product(*uses):
        if not _is_apart(check, several):
            path = several[-1].path
            what = f" {check.apart_by}" if check.apart_by else " agent"
            message = f"{' and '.join(check.all)} are used for the same{what}"
            yield LintProblem(("together", *sorted(check.all)), message, path, patterns=check.all)
            return


def _is_apart(check: RuleCheck, uses: tuple[PatternUse, ...]) -> bool:
    """Whether each says what it is used for, and they differ. A use that does not say is used for everything."""
    said: list[Any] = [use.knobs.get(check.apart_by) for use in uses]
    return None not in said and len(set(map(str, said))) == len(said)


def _check_declared(check: RuleCheck, scope: AgentScope) -> Iterator[LintProblem]:
    said = scope.declares.get(check.name)
    gated = bool(scope.actions) and all(action.gate is not None for action in scope.actions or ())
    if said or (said is None and check.name == "action_gate_map" and gated):
        return
    so, unknown = _decide_condition(check.when, check, scope)
    yield from unknown
    if so:
        what = STATEMENTS[check.name].what
        message = f"it is nowhere written down {what}" if said is False else f"declare `{check.name}`: {what}"
        yield LintProblem(
            ("statement", check.name),
            message,
            _check_path(check, scope),
            None if said is False else "warning",
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
    """Whether a waiver has a reason and a last day, and that is not over."""
    return waiver.reason is not None and waiver.until is not None and today <= waiver.until


def apply_waivers(
    stack: Stack, heard: Sequence[ReportedProblem], today: date
) -> tuple[list[ReportedProblem], list[ReportedProblem]]:
    """What remains, and what is waived, with the reason."""
    if not stack.waivers:
        return list(heard), []
    kept: list[ReportedProblem] = []
    given: list[ReportedProblem] = []
    valid = [waiver for waiver in stack.waivers if is_in_force(waiver, today)]
    for each in heard:
        waiver = next((waiver for waiver in valid if _is_covered(waiver, each)), None)
        if waiver is None:
            kept.append(each)
        else:
            given.append(replace(each, waived=waiver.reason))
    return kept, given


def _is_covered(waiver: Waiver, heard: ReportedProblem) -> bool:
    if heard.rule.id not in waiver.rules:
        return False
    return waiver.covers(heard.trouble.path) or waiver.covers(heard.scope.path)


def waiver_problems(
    stack: Stack, known: Mapping[str, LintRule], given: Sequence[ReportedProblem], today: date, scope: AgentScope
) -> Iterator[ReportedProblem]:
    """What is wrong with the waivers themselves."""
    for waiver in stack.waivers:
        for id, message in _waiver_faults(waiver, given, today):
            rule = known[id]
            key = ("waiver", id, dotted_path(waiver.path))
            yield ReportedProblem(rule, LintProblem(key, message, waiver.path), scope, rule.severity)


def _waiver_faults(waiver: Waiver, given: Sequence[ReportedProblem], today: date) -> Iterator[tuple[str, str]]:
    shown = ", ".join(waiver.rules)
    if waiver.reason is None:
        yield "W1", f"the waiver of {shown} gives no reason"
    if waiver.until is None:
        yield "W2", f"the waiver of {shown} has no last day"
    elif today > waiver.until:
        yield "W3", f"the waiver of {shown} was over on {waiver.until.isoformat()}"
    if is_in_force(waiver, today):
        used = {each.rule.id for each in given if _is_covered(waiver, each)}
        if unused := [rule for rule in waiver.rules if rule not in used]:
            yield "W4", f"the waiver of {', '.join(unused)} waives nothing"


def lint(stack: Stack, *, today: date | None = None) -> LintReport:
    """Everything that is wrong with a stack, or cannot be decided; `today` is for waivers.

    Example:
        >>> lint(stack_of({"patterns": ["R13", "V9", "V14"]})).of("error")[0].wants
        ('V8',)
    """
    known = rules_for_stack(stack)
    check_waived_rules(stack, known)
    agents = agent_scopes(stack)
    heard = [each for scope in agents for each in _collect_problems(known, scope)]
    kept, given = apply_waivers(stack, heard, today or date.today())
    found = merge_problems(
        stack, [*kept, *waiver_problems(stack, known, given, today or date.today(), agents[0])], len(agents)
    )
    return LintReport(stack.name, stack.file, tuple(found), tuple(merge_problems(stack, given, len(agents))))


def rules_for_stack(stack: Stack) -> Mapping[str, LintRule]:
    """The rules of the catalogue, and those of a stack's own patterns."""
    if not stack.defined:
        return rules()
    own = (rule for defined in stack.defined.values() for rule in definition_rules(defined))
    return {**rules(), **{rule.id: rule for rule in own}}


def _collect_problems(known: Mapping[str, LintRule], scope: AgentScope) -> Iterator[ReportedProblem]:
    for rule in known.values():
        for check in rule.checks:
            if check_applies(check, scope.present):
                for trouble in run_check(check, scope):
                    yield ReportedProblem(rule, trouble, scope, _effective_severity(rule, check, trouble))


def _effective_severity(rule: LintRule, check: RuleCheck, trouble: LintProblem) -> LintSeverity:
    """As severe as the rule, or milder where the check or what it found is."""
    return max((each for each in (rule.severity, check.severity, trouble.severity) if each), key=severity_rank)
