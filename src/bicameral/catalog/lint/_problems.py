"""Problems that checks report, their merge into findings, and the findings as SARIF 2.1.0.

Problems with one key are one thing: what several rules say about it, or one rule about several agents, becomes one
finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

from bicameral.catalog.facts import IDS, catalog
from bicameral.catalog.lint._rules import LintFinding, LintReport, LintRule, LintSeverity, rules, severity_rank
from bicameral.catalog.lint._scope import SECTION_OF_FACT, AgentScope
from bicameral.catalog.stacks import FACTS, Stack, StackPath, dotted_path
from bicameral.errors import BicameralError, Place

ProblemKey: TypeAlias = tuple[str, ...]

_TOOL_SECTIONS = {"count": "how many tools the agent has", "schema_tokens": "how many tokens their schemas take"}
STACK_SECTIONS = {
    **{f"tools.{name}": what for name, what in _TOOL_SECTIONS.items()},
    "legs": "which of private data, strangers' text and ways out the agent has",
    "guards": "where guards stand",
    "prompt": "the parts of the prompt in their order",
    "loops": "what repeats, and the caps of each",
    "sessions": "which session reads, writes and judges what",
    "actions": "what is done to the world, and behind which gate",
    "stores": "what is kept, and who writes and erases it",
    "pipeline": "what comes after what",
    "policy": "the policy of each role",
    "owner": "who answers for each agent",
}
"""The sections of a stack besides facts, and what each describes."""


@dataclass(frozen=True, slots=True)
class LintProblem:
    """A problem that a check reports: what is wrong or undecided, where, and what would help."""

    key: ProblemKey
    message: str
    path: StackPath
    severity: LintSeverity | None = None
    """None: as severe as the rule."""
    wants: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    needed_by: tuple[str, ...] = ()

    @property
    def is_undecided(self) -> bool:
        return self.key[0] == "undeclared"


def problem_at(kind: str, path: StackPath, message: str, *patterns: str, wants: tuple[str, ...] = ()) -> LintProblem:
    """A problem of one thing in the stack: whichever rule sees it there, it is the same."""
    return LintProblem((kind, dotted_path(path)), message, path, wants=wants, patterns=patterns)


def missing_pattern(
    alternatives: Iterable[str], path: StackPath, needed_by: Iterable[str] = (), says: str = ""
) -> LintProblem:
    """The problem that a pattern is missing, or all of several alternatives."""
    wanted = "|".join(alternatives)
    return LintProblem(
        ("missing", wanted), says, path, wants=(wanted,), patterns=tuple(wanted.split("|")), needed_by=tuple(needed_by)
    )


def undeclared_fact(name: str, path: StackPath) -> LintProblem:
    """The problem that a rule is undecided because this is not declared."""
    key, message, wants = _undeclared_parts(name)
    return LintProblem(key, message, path, "note", wants)


@cache
def _undeclared_parts(name: str) -> tuple[ProblemKey, str, tuple[str, ...]]:
    name = SECTION_OF_FACT.get(name, name)
    if name in FACTS:
        wanted = f"facts.{name}"
        what = f"{FACTS[name].what} ({FACTS[name].expected})"
    elif name in STACK_SECTIONS:
        wanted, what = name, STACK_SECTIONS[name]
    else:
        wanted, what = name, "nobody says how it is set"
    return ("undeclared", name), f"not decidable: declare `{wanted}`: {what}", (wanted,)


@dataclass(frozen=True, slots=True)
class ReportedProblem:
    """A problem, the rule that reports it, and the agent in which it was found."""

    rule: LintRule
    problem: LintProblem
    scope: AgentScope
    severity: LintSeverity
    waived: str | None = None


def merge_problems(stack: Stack, problems: Iterable[ReportedProblem], agents: int) -> list[LintFinding]:
    """One finding for each problem, the most severe first and then in the order of the file."""
    by_key: dict[ProblemKey, list[ReportedProblem]] = {}
    for each in problems:
        by_key.setdefault(each.problem.key, []).append(each)
    groups = (group for same in by_key.values() for group in _group_by_place(same, agents))
    return sorted((_merge_group(stack, group) for group in groups), key=_finding_order)


def _group_by_place(same: list[ReportedProblem], agents: int) -> Iterable[list[ReportedProblem]]:
    """The reports of one problem, grouped by place.

    A problem of every agent is one finding, and an undeclared fact can be declared for the whole. A problem of some
    agents that has one place is one finding for them.
    """
    by_scope: dict[StackPath, list[ReportedProblem]] = {}
    for each in same:
        by_scope.setdefault(each.scope.path, []).append(each)
    if len(by_scope) == agents or same[0].problem.is_undecided:
        return [same]
    by_place: dict[StackPath, list[ReportedProblem]] = {}
    for group in by_scope.values():
        by_place.setdefault(min(group, key=_problem_rank).problem.path, []).extend(group)
    return by_place.values()


def _problem_rank(reported: ReportedProblem) -> tuple[int, int]:
    return severity_rank(reported.severity), reported.rule.rank


def _finding_order(finding: LintFinding) -> tuple[int, bool, int, str, str, str]:
    line = finding.place.line or 0
    return severity_rank(finding.severity), finding.undecided, line, finding.path, finding.rule, finding.message


def _merge_group(stack: Stack, group: Sequence[ReportedProblem]) -> LintFinding:
    ranked = sorted(group, key=_problem_rank)
    first = ranked[0]
    rules = list(dict.fromkeys(each.rule.id for each in ranked))
    message = _finding_message(ranked) + _agent_suffix(stack, group, first.problem)
    patterns = dict.fromkeys(id for each in ranked for id in (*each.problem.patterns, *each.problem.needed_by))
    undecided = first.problem.is_undecided
    return LintFinding(
        rules[0],
        min((each.severity for each in group), key=severity_rank),
        stack.place(first.problem.path),
        dotted_path(first.problem.path),
        message,
        "a rule that nobody can decide may be broken" if undecided else first.rule.why,
        f"Declare `{first.problem.wants[0]}`." if undecided else _finding_fix(first),
        tuple(patterns),
        tuple(rules[1:]),
        tuple(dict.fromkeys(want for each in ranked for want in each.problem.wants)),
        undecided,
        first.waived,
    )


def _agent_suffix(stack: Stack, group: Sequence[ReportedProblem], problem: LintProblem) -> str:
    """The agents of a problem, if there are several and the message does not name one."""
    names = list(dict.fromkeys(each.scope.member.name for each in group))
    if len(stack.agents) < 2 or problem.is_undecided or problem.key[0] == "waiver" or repr(names[0]) in problem.message:
        return ""
    if len(names) == len(stack.agents):
        return " (every agent)" if problem.path[:1] == ("agents",) else ""
    return f" ({'agent' if len(names) == 1 else 'agents'} {', '.join(names)})"


def _finding_message(ranked: Sequence[ReportedProblem]) -> str:
    first = ranked[0].problem
    if first.key[0] != "missing":
        return first.message
    wanted = " or ".join(map(pattern_title, first.key[1].split("|")))
    users = list(dict.fromkeys(id for each in ranked for id in each.problem.needed_by))
    messages = list(dict.fromkeys(each.problem.message for each in ranked if each.problem.message))
    laws = dict.fromkeys(each.rule.id for each in ranked if not each.problem.needed_by and each.rule.family == "law")
    because = [f"{', '.join(users)} {'needs' if len(users) == 1 else 'need'} it"] if users else []
    because += messages
    if not because:
        because = [f"{', '.join(laws) or ranked[0].rule.id} {'want' if len(laws) > 1 else 'wants'} it"]
    return f"{wanted} is missing: {'; '.join(because)}"


def _finding_fix(first: ReportedProblem) -> str:
    if first.problem.key[0] == "missing" and first.rule.family == "requirement":
        return f"Add {' or '.join(map(pattern_title, first.problem.key[1].split('|')))}."
    return first.rule.fix


@cache
def pattern_title(id: str) -> str:
    """The id of a pattern with its name."""
    return f"{id} ({catalog().pattern(id).name})" if id in IDS else id


_SARIF_PROPERTIES = ("reason", "patterns", "also", "wants", "undecided", "basis", "evidence")
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def to_sarif(
    reports: Iterable[LintReport],
    *,
    version: str,
    errors: Iterable[BicameralError] = (),
    notes: Iterable[tuple[Place, str]] = (),
) -> dict[str, Any]:
    """A SARIF log with one run.

    Args:
        version: The version of the linter.
        errors: The errors of stacks that could not be read.
        notes: Places that could not be followed, each with the reason.
    """
    several = list(reports)
    found = [(report, finding) for report in several for finding in (*report.findings, *report.waived)]
    known = rules()
    used = {id: known.get(id) for _, finding in found for id in finding.rules}
    numbers = {id: number for number, id in enumerate(used)}
    driver = {
        "name": "bicameral lint",
        "semanticVersion": version,
        "rules": [_sarif_rule(id, rule) for id, rule in used.items()],
    }
    results = [_sarif_result(report, finding, numbers) for report, finding in found]
    notifications = [_sarif_notification(error) for error in errors]
    invocation: dict[str, Any] = {"executionSuccessful": not notifications}
    notifications += [_sarif_note(place, what) for place, what in notes]
    if notifications:
        invocation["toolExecutionNotifications"] = notifications
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "results": results,
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _sarif_rule(id: str, rule: LintRule | None) -> dict[str, Any]:
    if rule is None:
        # A rule of a pattern that the stack defines.
        return {"id": id, "shortDescription": {"text": "a rule of a pattern of one's own"}}
    return {
        "id": id,
        "name": rule.name,
        "shortDescription": {"text": rule.name},
        "fullDescription": {"text": f"{rule.rule}. {rule.why}"},
        "help": {"text": rule.fix},
        "defaultConfiguration": {"level": rule.severity},
        "properties": {"tags": [rule.family, *rule.patterns]},
    }


def _sarif_result(report: LintReport, finding: LintFinding, numbers: Mapping[str, int]) -> dict[str, Any]:
    logical = [{"fullyQualifiedName": finding.path or report.name, "kind": "member"}]
    if finding.place.step is not None:
        # A step of a trace is a span, which has no line of its own where a file holds everything in one.
        logical.append({"fullyQualifiedName": finding.place.step, "kind": "span"})
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": numbers[finding.rule],
        "level": finding.severity,
        "message": {"text": f"{finding.message}. {finding.fix}"},
        "locations": [{"logicalLocations": logical, **_physical_location(finding.place)}],
        "partialFingerprints": {"path/v1": f"{finding.rule}:{finding.path}:{','.join(finding.wants)}"},
        "properties": {name: value for name, value in finding.to_json().items() if name in _SARIF_PROPERTIES},
    }
    if finding.waived is not None:
        result["suppressions"] = [{"kind": "inSource", "status": "accepted", "justification": finding.waived}]
    return result


def _physical_location(place: Place | None) -> dict[str, Any]:
    if place is None or place.file is None:
        return {}
    path = Path(place.file)
    uri = path.as_uri() if path.is_absolute() else quote(path.as_posix())
    physical: dict[str, Any] = {"artifactLocation": {"uri": uri}}
    if place.line is not None:
        physical["region"] = {"startLine": place.line, "startColumn": place.column or 1}
    return {"physicalLocation": physical}


def _sarif_notification(error: BicameralError) -> dict[str, Any]:
    facts: dict[str, Any] = {"level": "error", "descriptor": {"id": error.code}, "message": {"text": str(error)}}
    location = _physical_location(error.place)
    return {**facts, "locations": [location]} if location else facts


def _sarif_note(place: Place, what: str) -> dict[str, Any]:
    facts: dict[str, Any] = {"level": "note", "message": {"text": what}}
    location = _physical_location(place)
    return {**facts, "locations": [location]} if location else facts
