"""Every rule finds what it is about, and leaves alone what is only near it."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from lint_cases import CASES, WAIVERS
from lint_making import Case

from bicameral.catalog import IDS, catalog
from bicameral.catalog.lint import LintFinding, lint, rules
from bicameral.catalog.lint._linter import check_applies, run_check
from bicameral.catalog.lint._scope import agent_scopes
from bicameral.catalog.lint._section_checks import SECTION_CHECKS
from bicameral.catalog.stacks import FACTS, STATEMENTS, stack_of

TODAY = date(2026, 11, 16)


def told(described: dict[str, Any], rule: str) -> list[LintFinding]:
    """The findings of a rule that are decided."""
    report = lint(stack_of(described), today=TODAY)
    return [each for each in report.findings if rule in each.rules and not each.undecided]


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case[0]}-{n}") for n, case in enumerate(CASES)])
def test_a_rule_finds_what_breaks_it_and_nothing_near_it(case: Case) -> None:
    rule, broken, kept = case
    found = told(broken, rule)
    assert found, f"{rule} finds nothing"
    assert not told(kept, rule), f"{rule}: {told(kept, rule)[0].message}"
    for each in found:
        assert each.message
        assert each.reason
        assert each.fix
        assert each.place is not None


def test_every_rule_has_a_case() -> None:
    assert {case[0] for case in CASES} == {*rules()}


@pytest.mark.parametrize("id", rules())
def test_every_check_of_every_rule_finds_something_and_leaves_something_alone(id: str) -> None:
    cases = [(stack_of(broken), stack_of(kept)) for rule, broken, kept in CASES if rule == id]
    for check in rules()[id].checks:

        def finds(stack: Any, check: Any = check) -> bool:
            found = (run_check(check, scope) for scope in agent_scopes(stack) if check_applies(check, scope.present))
            return any(not trouble.is_undecided for several in found for trouble in several)

        assert any(finds(broken) and not finds(kept) for broken, kept in cases), check


def test_every_name_that_a_rule_asks_for_can_be_said() -> None:
    for rule in rules().values():
        for check in rule.checks:
            for name in check.names:
                head, _, tail = name.partition(".")
                if head in IDS and tail:
                    assert tail in catalog().pattern(head).knobs, (rule.id, name)
                elif head == "tools":
                    assert tail in ("count", "schema_tokens")
                else:
                    assert name in FACTS or name in IDS, (rule.id, name)
            assert not check.name or check.name in STATEMENTS
            assert not check.at or check.at in SECTION_CHECKS
            named = {*check.triggers, *check.unless, *check.all_of, *check.any_of, *check.all}
            assert named <= {*IDS}, rule.id


def test_every_fact_and_every_look_is_used_by_a_rule() -> None:
    checks = [check for rule in rules().values() for check in rule.checks]
    asked = {name for check in checks for name in check.names}
    assert {*FACTS} <= asked
    assert {*STATEMENTS} == {check.name for check in checks if check.name}
    assert {*SECTION_CHECKS} == {check.at for check in checks if check.at}


def test_the_law_of_loops_knows_every_pattern_that_loops() -> None:
    assert {id for id, pattern in catalog().patterns.items() if pattern.loops} <= rules()["LAW7"].checks[0].if_any


def test_there_are_as_many_rules_as_there_are() -> None:
    families = [rule.family for rule in rules().values()]
    counts = {family: families.count(family) for family in dict.fromkeys(families)}
    assert counts == {"law": 10, "requirement": 88, "conflict": 78, "anti-pattern": 36, "cache": 25, "linter": 10}


def test_the_waiver_cases_are_about_waivers() -> None:
    assert all(case[0].startswith("W") for case in WAIVERS)


def test_a_surface_that_nobody_told_is_a_note_and_no_clash() -> None:
    found = [each for each in lint(stack_of({"name": "x", "patterns": ["H5", "H8"]})).findings if "HUM6" in each.rules]
    assert {each.severity for each in found} == {"note"}


@pytest.mark.parametrize(
    ("value", "said"),
    [(1e308, "1e+12 at most"), (10**400, "1e+12 at most"), (float("nan"), "a number"), (0, "1 at least")],
)
def test_a_knob_that_its_pattern_does_not_bound_is_a_number_that_can_be(value: float, said: str) -> None:
    (found,) = told({"patterns": [{"O15": {"max_depth": value}}]}, "L4")
    assert said in found.message
    assert not told({"patterns": [{"O15": {"max_depth": 1e12}}]}, "L4")
