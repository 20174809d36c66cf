"""What holds for all stacks: adding what a finding asks for removes it, and no stack is too strange."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, example, given, settings, strategies as st
from lint_strategies import FACT_VALUES, adding, any_stack

from bicameral.catalog import IDS
from bicameral.catalog.lint import LintFinding, LintReport, lint, rules
from bicameral.catalog.stacks import FACTS, STATEMENTS, stack_of
from property_examples import examples

CAREFUL = settings(max_examples=examples(120, quick=60))


def same(finding: LintFinding, report: LintReport) -> list[LintFinding]:
    """The findings of a report that say the same as this one."""
    return [each for each in report.findings if (each.wants, each.undecided) == (finding.wants, finding.undecided)]


@CAREFUL
@given(any_stack())
@example({"patterns": ["R4", "R5"], "agents": {"a": {"patterns": ["R4"]}, "b": {"patterns": ["R5", "O6"]}}})
def test_a_stack_never_crashes_the_linter_and_every_finding_is_whole(described: dict[str, Any]) -> None:
    report = lint(stack_of(described))
    seen = set[tuple[Any, ...]]()
    for each in report.findings:
        assert all(rule in rules() for rule in each.rules)
        assert each.severity in ("error", "warning", "note")
        assert not each.undecided or each.severity == "note"
        assert each.message
        assert each.reason
        assert each.fix
        key = (each.rule, each.path, each.message.partition(" (agent")[0])
        assert key not in seen, "it is said twice"
        seen.add(key)
    assert report.ok == (not report.of_severity("error"))


@CAREFUL
@given(any_stack(), st.data())
def test_adding_what_a_finding_asks_for_removes_it(described: dict[str, Any], data: st.DataObject) -> None:
    report = lint(stack_of(described))
    asking = [each for each in report.findings if each.wants and _can_be_added(each)]
    assume(asking)
    finding = data.draw(st.sampled_from(asking))
    mended = described
    for want in finding.wants:
        mended = adding(mended, data.draw(st.sampled_from(want.split("|"))), data)
    assert not same(finding, lint(stack_of(mended))), finding.message


def _can_be_added(finding: LintFinding) -> bool:
    """A pattern, a statement, or a fact; sections have shapes of their own."""
    for want in finding.wants:
        head, _, name = want.partition(".")
        known = {"facts": name in FACTS, "declares": name in STATEMENTS}.get(head)
        if known is False or (known is None and not {*want.split("|")} <= {*IDS}):
            return False
    return True


@CAREFUL
@given(any_stack())
def test_the_order_of_patterns_changes_nothing_but_places(described: dict[str, Any]) -> None:
    turned = described | {"patterns": described["patterns"][::-1]}

    def told(report: LintReport) -> set[tuple[Any, ...]]:
        return {(each.severity, frozenset(each.rules), each.wants, each.undecided) for each in report.findings}

    assert told(lint(stack_of(described))) == told(lint(stack_of(turned)))


@CAREFUL
@example({"patterns": ["R4", "O6"]})
@given(any_stack())
def test_what_an_only_agent_says_is_as_if_it_was_said_for_the_whole(
    described: dict[str, Any],
) -> None:
    """A stack without agents and the same as its only agent have the same findings."""
    alone = {key: value for key, value in described.items() if key != "agents"}
    inside = {"agents": {"only": alone}}

    def told(report: LintReport) -> list[tuple[Any, ...]]:
        return sorted(
            (each.severity, each.rule, each.also, each.undecided, len(each.wants)) for each in report.findings
        )

    assert told(lint(stack_of(alone))) == told(lint(stack_of(inside)))


def test_every_fact_can_be_drawn() -> None:
    assert {*FACT_VALUES} == {*FACTS}
