"""Holding a stack against every rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date

from ..stacks import Stack, check_rules
from ._checks import applies, run_check
from ._finding import SEVERITIES, Report, Severity
from ._merging import Heard, findings
from ._own import rules_of
from ._rules import Check, Rule, rules
from ._scope import Scope, scopes
from ._trouble import Trouble
from ._waiving import told_of_waivers, waived


def lint(stack: Stack, *, today: date | None = None) -> Report:
    """Everything that is wrong with a stack, or cannot be decided; `today` is for waivers.

    Example:
        >>> lint(stack_of({"patterns": ["R13", "V9", "V14"]})).of("error")[0].wants
        ('V8',)
    """
    known = known_rules(stack)
    check_rules(stack, known)
    agents = scopes(stack)
    heard = [each for scope in agents for each in _heard(known, scope)]
    kept, given = waived(stack, heard, today or date.today())
    found = findings(
        stack, [*kept, *told_of_waivers(stack, known, given, today or date.today(), agents[0])], len(agents)
    )
    return Report(stack.name, stack.file, tuple(found), tuple(findings(stack, given, len(agents))))


def known_rules(stack: Stack) -> Mapping[str, Rule]:
    """The rules of the catalogue, and those of a stack's own patterns."""
    if not stack.defined:
        return rules()
    own = (rule for defined in stack.defined.values() for rule in rules_of(defined))
    return {**rules(), **{rule.id: rule for rule in own}}


def _heard(known: Mapping[str, Rule], scope: Scope) -> Iterator[Heard]:
    for rule in known.values():
        for check in rule.checks:
            if applies(check, scope.present):
                for trouble in run_check(check, scope):
                    yield Heard(rule, trouble, scope, _severity(rule, check, trouble))


def _severity(rule: Rule, check: Check, trouble: Trouble) -> Severity:
    """As severe as the rule, or milder where the check or what it found is."""
    mild = rule.severity
    for said in (check.severity, trouble.severity):
        if said is not None and SEVERITIES.index(said) > SEVERITIES.index(mild):
            mild = said
    return mild
