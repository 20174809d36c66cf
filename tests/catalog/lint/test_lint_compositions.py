"""The published examples break the rules that they are known to break, and no others; a clean stack breaks none."""

from __future__ import annotations

from pathlib import Path

import pytest

from bicameral.catalog import catalog
from bicameral.catalog.lint import LintFinding, lint
from bicameral.catalog.stacks import Composition, compositions, read_stack, stack_of

EXAMPLES = [pytest.param(each, id=id) for id, each in compositions().items() if id.startswith("EX")]
CLEAN = Path(__file__).parents[3] / "examples" / "stacks" / "triage.stack.yaml"


def wanting(finding: LintFinding) -> set[str]:
    """The patterns that cannot do without what a finding misses, whatever the stack."""
    known = catalog().requirements
    asking = (known[rule] for rule in finding.rules if rule in known)
    return {each.pattern for each in asking if each.strength == "hard" and each.when is None}


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_has_exactly_the_errors_that_are_known(example: Composition) -> None:
    errors = lint(example.stack).of_severity("error")
    found = {finding.wants: wanting(finding) for finding in errors}
    assert len(found) == len(errors), "one thing is said twice"
    known = {(wanted,): set(users) for wanted, users in example.missing.items()}
    assert found == {(wanted,): set[str]() for wanted in example.law1} | known
    by_law = {finding.wants[0] for finding in errors if "LAW1" in finding.rules}
    assert by_law == {*example.law1}


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_with_all_that_is_missing_has_no_error_left(example: Composition) -> None:
    patterns = [use.id for use in example.stack.whole.uses]
    for _ in range(10):
        errors = lint(stack_of({"patterns": patterns})).of_severity("error")
        patterns += [finding.wants[0].partition("|")[0] for finding in errors]
    assert not lint(stack_of({"patterns": patterns})).of_severity("error")


def test_what_is_wrong_is_said_once_and_names_every_rule_that_says_so() -> None:
    errors = {finding.wants[0]: finding for finding in lint(compositions()["EX9"].stack).of_severity("error")}
    assert errors["V9"].rule == "LAW1"
    assert {"LAW7", "REQ-H4-H1-V9", "REQ-H5-S9-H1-V9-V10-V14"} <= {*errors["V9"].also}
    assert {"LAW8", "REQ-H-K10-K11"} == {*errors["K10|K11"].rules}


def test_a_clean_stack_gives_nothing_at_all() -> None:
    report = lint(read_stack(CLEAN))
    assert report.findings == ()
    assert report.waived == ()
    assert report.ok


def test_there_are_nine_examples_and_eight_parts() -> None:
    ids = [*compositions()]
    assert ids == [*(f"EX{n}" for n in range(1, 10)), *(f"ST{n}" for n in range(1, 9))]
    for each in compositions().values():
        assert [use.id for use in each.stack.whole.uses] == [*each.does]
        assert bool(each.missing) == each.id.startswith("EX")


def test_what_is_wrong_in_some_agents_at_one_place_is_said_once() -> None:
    bad = [{"part": "request", "stable": "per_call"}, {"part": "setup", "stable": "global"}]
    good = bad[::-1]
    agents = {"a": {"patterns": ["S1"]}, "b": {"patterns": ["S1"]}, "c": {"patterns": ["S1"], "prompt": good}}
    report = lint(stack_of({"patterns": ["V9", "V14"], "prompt": bad, "agents": agents}))
    (early,) = [finding for finding in report.findings if finding.rule == "C1" and not finding.undecided]
    assert early.path == "prompt[0]"
    assert early.message.endswith("(agents a, b)")


def test_what_every_agent_lacks_is_said_once_for_the_whole() -> None:
    agents = {name: {"patterns": ["R4"]} for name in ("a", "b", "c")}
    errors = {finding.wants[0]: finding for finding in lint(stack_of({"agents": agents})).of_severity("error")}
    assert {*errors} == {"V9", "V14"}
    assert errors["V9"].message.endswith("(every agent)")
    agents["b"]["patterns"] += ["V9", "V14"]
    errors = [
        finding for finding in lint(stack_of({"agents": agents})).of_severity("error") if finding.wants == ("V9",)
    ]
    assert sorted(finding.path.split(".")[1] for finding in errors) == ["a", "c"]
