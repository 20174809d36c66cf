"""Findings as SARIF 2.1.0, the format in which code hosts show what a linter found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bicameral.errors import BicameralError, Place

from ._finding import Finding, Report
from ._rules import Rule, rules

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def to_sarif(reports: Iterable[Report], *, version: str, errors: Iterable[BicameralError] = ()) -> dict[str, Any]:
    """One run with the results of all reports; `version` is the linter's, `errors` are of stacks nobody could read."""
    several = list(reports)
    found = [(report, finding) for report in several for finding in (*report.findings, *report.waived)]
    known = rules()
    used = {id: known.get(id) for _, finding in found for id in finding.rules}
    numbers = {id: number for number, id in enumerate(used)}
    driver = {
        "name": "bicameral lint",
        "semanticVersion": version,
        "rules": [_rule(id, rule) for id, rule in used.items()],
    }
    results = [_result(report, finding, numbers) for report, finding in found]
    told = [_notification(error) for error in errors]
    invocation: dict[str, Any] = {"executionSuccessful": not told}
    if told:
        invocation["toolExecutionNotifications"] = told
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "results": results,
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(id: str, rule: Rule | None) -> dict[str, Any]:
    if rule is None:
        # A rule of a pattern that the stack defines itself.
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


def _result(report: Report, finding: Finding, numbers: Mapping[str, int]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": numbers[finding.rule],
        "level": finding.severity,
        "message": {"text": f"{finding.message}. {finding.fix}"},
        "locations": [_location(report, finding)],
        "partialFingerprints": {"path/v1": f"{finding.rule}:{finding.path}:{','.join(finding.wants)}"},
        "properties": {
            "reason": finding.reason,
            "patterns": list(finding.patterns),
            "also": list(finding.also),
            "wants": list(finding.wants),
            "undecided": finding.undecided,
        },
    }
    if finding.waived is not None:
        result["suppressions"] = [{"kind": "inSource", "status": "accepted", "justification": finding.waived}]
    return result


def _location(report: Report, finding: Finding) -> dict[str, Any]:
    logical = [{"fullyQualifiedName": finding.path or report.name, "kind": "member"}]
    return {"logicalLocations": logical, **_physical(finding.place)}


def _physical(place: Place | None) -> dict[str, Any]:
    if place is None or place.file is None:
        return {}
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(place.file)}}
    if place.line is not None:
        physical["region"] = {"startLine": place.line, "startColumn": place.column or 1}
    return {"physicalLocation": physical}


def _notification(error: BicameralError) -> dict[str, Any]:
    told: dict[str, Any] = {"level": "error", "descriptor": {"id": error.code}, "message": {"text": str(error)}}
    located = _physical(error.place)
    return {**told, "locations": [located]} if located else told


def _uri(file: str) -> str:
    path = Path(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
