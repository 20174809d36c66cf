"""SARIF as code hosts read it."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from bicameral.catalog.frameworks import lint_recovered, read_trace
from bicameral.catalog.lint import lint, to_sarif
from bicameral.catalog.stacks import compositions, parse_stack, stack_of
from bicameral.errors import CatalogError, Place


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required, "additionalProperties": False, "properties": properties}


def _several(of: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": of, **more}


TEXT = {"type": "string"}
MESSAGE = {**_object([], text=TEXT, id=TEXT), "anyOf": [{"required": ["text"]}, {"required": ["id"]}]}
WORDS = _object(["text"], text=TEXT, markdown=TEXT)
LEVEL = {"enum": ["none", "note", "warning", "error"]}
BAG = {"type": "object", "properties": {"tags": _several(TEXT, uniqueItems=True)}}
REGION = _object([], startLine={"type": "integer", "minimum": 1}, startColumn={"type": "integer", "minimum": 1})
PHYSICAL = {
    **_object([], artifactLocation=_object([], uri={"type": "string", "format": "uri-reference"}), region=REGION),
    "anyOf": [{"required": ["artifactLocation"]}, {"required": ["address"]}],
}
LOCATION = _object(
    [], physicalLocation=PHYSICAL, logicalLocations=_several(_object([], fullyQualifiedName=TEXT, kind=TEXT))
)
DESCRIPTOR = _object(
    ["id"],
    id=TEXT,
    name=TEXT,
    shortDescription=WORDS,
    fullDescription=WORDS,
    help=WORDS,
    defaultConfiguration=_object([], level=LEVEL),
    properties=BAG,
)
SUPPRESSION = _object(
    ["kind"],
    kind={"enum": ["inSource", "external"]},
    status={"enum": ["accepted", "underReview", "rejected"]},
    justification=TEXT,
)
RESULT = _object(
    ["message"],
    ruleId=TEXT,
    ruleIndex={"type": "integer", "minimum": -1},
    level=LEVEL,
    message=MESSAGE,
    locations=_several(LOCATION),
    partialFingerprints={"type": "object", "additionalProperties": TEXT},
    suppressions=_several(SUPPRESSION, uniqueItems=True),
    properties=BAG,
)
NOTIFICATION = _object(
    ["message"], level=LEVEL, message=MESSAGE, descriptor=_object([], id=TEXT), locations=_several(LOCATION)
)
INVOCATION = _object(
    ["executionSuccessful"],
    executionSuccessful={"type": "boolean"},
    toolExecutionNotifications=_several(NOTIFICATION),
)
DRIVER = _object(["name"], name=TEXT, semanticVersion=TEXT, rules=_several(DESCRIPTOR, uniqueItems=True))
RUN = _object(
    ["tool"],
    tool=_object(["driver"], driver=DRIVER),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    invocations=_several(INVOCATION, uniqueItems=True),
    results=_several(RESULT),
)
SARIF = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    **_object(
        ["version", "runs"],
        **{"$schema": {"type": "string", "format": "uri"}, "version": {"enum": ["2.1.0"]}, "runs": _several(RUN)},
    ),
}
"""The part of the schema of SARIF 2.1.0 that a linter needs: the same names, kinds, needs and limits."""

WAIVED = {
    "patterns": ["R13", "V9", "V14", "V11"],
    "waivers": [{"rule": ["REQ-R13-V8", "CRIT5"], "reason": "a microVM", "until": "2027-03-01"}],
}


def checked(sarif: dict[str, Any]) -> dict[str, Any]:
    jsonschema.Draft202012Validator.check_schema(SARIF)
    validator: Any = jsonschema.Draft202012Validator(SARIF, format_checker=jsonschema.FormatChecker())
    validator.validate(sarif)
    assert json.loads(json.dumps(sarif)) == sarif
    return sarif["runs"][0]


def test_the_copy_of_the_schema_refuses_what_is_not_sarif() -> None:
    wrongs: list[dict[str, Any]] = [
        {"version": "2.0.0", "runs": []},
        {"version": "2.1.0"},
        {"version": "2.1.0", "runs": [{}]},
        {"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "x"}}, "results": [{"level": "fatal"}]}]},
    ]
    for wrong in wrongs:
        with pytest.raises(jsonschema.ValidationError):
            checked(wrong)


@pytest.mark.parametrize("id", compositions())
def test_findings_of_every_example_are_valid_sarif(id: str) -> None:
    report = lint(compositions()[id].stack)
    run = checked(to_sarif([report], version="1.0.0"))
    assert len(run["results"]) == len(report.findings)
    known = run["tool"]["driver"]["rules"]
    for result, finding in zip(run["results"], report.findings, strict=True):
        assert known[result["ruleIndex"]]["id"] == result["ruleId"] == finding.rule
        assert result["level"] == finding.severity
        assert finding.message in result["message"]["text"]


def test_places_are_told_for_files_and_paths_for_objects() -> None:
    text = "name: Coder\npatterns:\n  - V9\n  - R13\n"
    run = checked(to_sarif([lint(parse_stack(text, file="a b/coder.yaml"))], version="1.0.0"))
    missing = next(result for result in run["results"] if "V8" in result["message"]["text"])
    physical = missing["locations"][0]["physicalLocation"]
    assert physical == {"artifactLocation": {"uri": "a%20b/coder.yaml"}, "region": {"startLine": 4, "startColumn": 5}}
    assert missing["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == "patterns[1]"
    of_object = checked(to_sarif([lint(stack_of({"patterns": ["V9", "R13"]}))], version="1.0.0"))
    assert all("physicalLocation" not in result["locations"][0] for result in of_object["results"])


def test_what_is_waived_is_suppressed_with_its_reason() -> None:
    report = lint(stack_of(WAIVED), today=date(2026, 11, 16))
    run = checked(to_sarif([report], version="1.0.0"))
    suppressed = [result for result in run["results"] if "suppressions" in result]
    assert [result["suppressions"][0]["justification"] for result in suppressed] == ["a microVM"] * len(report.waived)
    assert {"REQ-R13-V8"} <= {result["ruleId"] for result in suppressed}


def test_what_could_not_be_read_is_a_notification() -> None:
    error = CatalogError("stack.empty", "the stack has no patterns", place=Place(file="x.yaml", line=1))
    run = checked(to_sarif([], version="1.0.0", errors=[error, CatalogError("stack.cannot-read", "no")]))
    assert run["invocations"][0]["executionSuccessful"] is False
    told = run["invocations"][0]["toolExecutionNotifications"]
    assert [each["descriptor"]["id"] for each in told] == ["stack.empty", "stack.cannot-read"]


def test_rules_of_a_pattern_of_ones_own_are_told_too() -> None:
    described = {"patterns": ["RANK", "V9", "V14"], "define": {"RANK": {"needs": ["V15"]}}}
    run = checked(to_sarif([lint(stack_of(described))], version="1.0.0"))
    assert "REQ-RANK" in {rule["id"] for rule in run["tool"]["driver"]["rules"]}


def test_recovered_stacks_are_valid_sarif_with_spans_and_notes(tmp_path: Path) -> None:
    spans = [
        {"spanId": "a1", "name": "invoke_agent x", "attributes": {"gen_ai.agent.name": "x"}},
        {"spanId": "b1", "parentSpanId": "a1", "name": "pay", "attributes": {"gen_ai.tool.name": "pay_invoice"}},
    ]
    file = tmp_path / "a b.jsonl"
    file.write_text("\n".join([*map(json.dumps, spans), "broken"]), encoding="utf-8")
    recovered = read_trace(file)
    notes = [(each.place, each.what) for each in recovered.unresolved]
    run = checked(to_sarif([lint_recovered(recovered)], version="1.0.0", notes=notes))
    (result,) = [each for each in run["results"] if "'pay_invoice'" in each["message"]["text"]]
    (location,) = result["locations"]
    assert location["physicalLocation"]["artifactLocation"]["uri"].endswith("a%20b.jsonl")
    assert location["physicalLocation"]["region"]["startLine"] == 2
    assert location["logicalLocations"][1] == {"fullyQualifiedName": "span b1", "kind": "span"}
    assert result["properties"]["basis"] == "inferred"
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is True
    assert [each["level"] for each in invocation["toolExecutionNotifications"]] == ["note"]
