"""Waivers waive what they name, where they name it, for as long as they say; and nothing else."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from bicameral.catalog.lint import LintReport, lint
from bicameral.catalog.stacks import parse_stack, stack_of
from bicameral.errors import CatalogError

TODAY = date(2026, 11, 16)
WHY = {"reason": "it runs in a microVM of the host", "until": "2027-03-01"}


def linted(described: dict[str, Any], *waivers: dict[str, Any], today: date = TODAY) -> LintReport:
    return lint(stack_of({**described, "waivers": list(waivers)}), today=today)


def rules_told(report: LintReport) -> set[str]:
    return {rule for finding in report.findings if not finding.undecided for rule in finding.rules}


CODE = {"patterns": ["R13", "V9", "V14", "V11"]}
BOTH = ["REQ-R13-V8", "CRIT5"]


def test_a_waiver_takes_the_finding_away_and_keeps_its_reason() -> None:
    report = linted(CODE, {"rule": BOTH, **WHY})
    assert report.ok
    assert not {*BOTH} & rules_told(report)
    (waived,) = [finding for finding in report.waived if not finding.undecided]
    assert {*waived.rules} == {*BOTH}
    assert waived.waived == WHY["reason"]
    assert waived.to_json()["waived"] == WHY["reason"]


def test_a_waiver_of_one_rule_leaves_what_another_rule_says() -> None:
    report = linted(CODE, {"rule": "REQ-R13-V8", **WHY})
    assert not report.ok
    assert "CRIT5" in rules_told(report)
    assert "REQ-R13-V8" not in rules_told(report)


def test_a_waiver_is_in_force_on_its_last_day_and_not_after_it() -> None:
    waiver = {"rule": BOTH, **WHY}
    assert linted(CODE, waiver, today=date(2027, 3, 1)).ok
    over = linted(CODE, waiver, today=date(2027, 3, 2))
    assert {*BOTH, "W3"} <= rules_told(over)
    assert over.waived == ()


@pytest.mark.parametrize(
    ("waiver", "rule"),
    [
        ({"rule": BOTH, "until": "2027-03-01"}, "W1"),
        ({"rule": BOTH, "until": "2027-03-01", "reason": ""}, "W1"),
        ({"rule": BOTH, "reason": "because"}, "W2"),
    ],
)
def test_a_waiver_without_reason_or_end_waives_nothing(waiver: dict[str, Any], rule: str) -> None:
    report = linted(CODE, waiver)
    assert {*BOTH, rule} <= rules_told(report)
    assert report.waived == ()


def test_a_waiver_that_waives_nothing_is_told_of_by_the_rule_that_is_not_used() -> None:
    report = linted(CODE, {"rule": [*BOTH, "LAW6"], **WHY}, {"rule": "CRIT1", "at": "agents.b", **WHY})
    unused = [finding.message for finding in report.findings if finding.rule == "W4"]
    assert unused == ["the waiver of CRIT1 waives nothing"]  # LAW6 waives the note that nobody can decide it


AGENTS = {
    "patterns": ["V9", "V14"],
    "agents": {"a": {"patterns": ["R13", "V11"]}, "b": {"patterns": ["R13", "V11"]}},
}


def test_a_waiver_for_one_agent_leaves_the_other() -> None:
    report = linted(AGENTS, {"rule": BOTH, "at": "agents.a", **WHY})
    (error,) = report.of_severity("error")
    assert error.path == "agents.b.patterns[0]"
    assert [finding.path for finding in report.waived if not finding.undecided] == ["agents.a.patterns[0]"]


def test_a_path_is_not_the_beginning_of_a_longer_name() -> None:
    agents = {"patterns": ["V9", "V14", "V11"], "agents": {"ab": {"patterns": ["R13"]}}}
    assert not linted(agents, {"rule": BOTH, "at": "agents.a", **WHY}).ok
    assert linted(agents, {"rule": BOTH, "at": "agents.ab", **WHY}).ok
    assert linted(agents, {"rule": BOTH, "at": "agents.ab.patterns", **WHY}).ok


def test_a_misspelt_rule_is_an_error_with_its_place() -> None:
    text = "patterns: [V9, V14]\nwaivers:\n  - {rule: CRIT99, reason: x, until: 2027-03-01}\n"
    with pytest.raises(CatalogError) as caught:
        lint(parse_stack(text, file="s.yaml"))
    assert caught.value.code == "stack.unknown-rule"
    assert caught.value.nearest in ("CRIT1", "CRIT5", "CRIT6", "CRIT8", "CRIT2", "CRIT3", "CRIT4", "CRIT7")
    assert caught.value.place is not None
    assert caught.value.place.line == 3
