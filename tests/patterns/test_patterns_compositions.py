"""Compositions: what the linter and the cost model see of patterns inside of patterns, against what happens."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from patterns_world import answered, table

from benchmarks.patterns.__main__ import Row, summarize
from benchmarks.patterns.compositions import COMPOSITIONS, ComposedCase, office_tools
from bicameral.catalog.costs import Estimate, estimate, estimate_tokens
from bicameral.catalog.lint import lint
from bicameral.catalog.stacks import PatternUse, stack_of
from bicameral.journal import open_journal_at
from bicameral.labels import program_text
from bicameral.models import ModelReply, ModelRequest, ToolCall, Usage
from bicameral.patterns import (
    IMPLEMENTED,
    Guardrails,
    OutputTemplate,
    Parallelization,
    ReAct,
    ReWOO,
    example_of,
)
from bicameral.patterns.kernel import Pattern, Role, replay_pattern
from bicameral.patterns.reliability.guardrails import length_guard
from bicameral.types import type_from_annotation

WORKER = Role("Worker", "Reply with one word.")
FORM = type_from_annotation(dict[str, int])


def guarded(inner: Pattern[..., Any]) -> Guardrails[..., Any]:
    return Guardrails(inner, (length_guard("input", 2_000), length_guard("output", 2_000)))


def uses(pattern: Pattern[..., Any]) -> list[PatternUse]:
    return list(stack_of(pattern).whole.all_uses)


# What is described --------------------------------------------------------------------------------------------------


def test_a_composition_describes_every_pattern_inside_of_it() -> None:
    inner = Parallelization.sections({"a": ReAct(max_steps=3), "b": guarded(ReWOO(max_calls=2))})
    (root,) = stack_of(inner | OutputTemplate.of(int)).whole.uses
    assert [(each.place, each.id) for each in root.inner] == [("steps[0]", "O4"), ("steps[1]", "S6")]
    left, right = root.inner[0].inner
    assert (left.place, left.id, left.knobs["max_steps"]) == ("parts.a", "R4", 3)
    assert [(each.place, each.id, each.knobs.get("max_calls")) for each in right.inner] == [("inner", "R5", 2)]


@pytest.mark.parametrize("case", COMPOSITIONS, ids=lambda case: case.name)
def test_the_description_agrees_with_the_walk(case: ComposedCase) -> None:
    pattern = case.make()
    walked = [each.id for _, each in pattern.walk()]
    # A role that is asked in the place of a pattern is described as S1.
    assert [use.id for use in uses(pattern) if use.id != "S1"] == walked


def test_roles_in_the_place_of_patterns_are_described_and_own_roles_are_not() -> None:
    parts = Parallelization.sections({"a": WORKER, "b": ReWOO()}, combine=WORKER)
    assert [(use.id, use.place) for use in uses(parts)] == [("O4", ""), ("S1", "parts.a"), ("R5", "parts.b")]


# What the linter finds ----------------------------------------------------------------------------------------------

_NEED_OTHERS = {"H1": {"K10|K11"}, "H4": {"H1", "K10", "K10|K11"}}
"""Patterns of a library that work only with others, which the runtime does not bring."""


@pytest.mark.parametrize("id", sorted(IMPLEMENTED))
def test_our_own_patterns_lint_clean_on_our_runtime(id: str, tmp_path: Path) -> None:
    report = lint(stack_of(example_of(id).make(tmp_path)))
    serious = [each for each in report.findings if each.severity != "note"]
    assert {want for each in serious for want in each.wants} == _NEED_OTHERS.get(id, set())


@pytest.mark.parametrize("case", COMPOSITIONS, ids=lambda case: case.name)
def test_our_own_compositions_lint_clean(case: ComposedCase) -> None:
    report = lint(stack_of(case.make()))
    assert [each.message for each in report.findings if each.severity != "note"] == []


def test_the_same_patterns_on_another_runtime_get_their_findings() -> None:
    described = {**ReAct().architecture(), "runtime": "other"}
    errors = {want for each in lint(stack_of(described)).of_severity("error") for want in each.wants}
    assert errors == {"V9", "V14"}


def test_what_is_wrong_deep_inside_is_found_at_its_place() -> None:
    chain = Parallelization.sections({"a": ReWOO(), "b": WORKER}) | OutputTemplate(FORM)
    described = json.loads(json.dumps(chain.architecture()))
    described["patterns"][0]["O2"]["inner"]["steps[0]"]["O4"]["inner"]["parts.a"]["R5"]["max_calls"] = 900
    (found,) = [each for each in lint(stack_of(described)).findings if each.rule == "L4"]
    assert "max_calls of R5 is 900" in found.message
    assert "steps[0].O4.inner.parts.a" in str(found.place)


# What it costs ------------------------------------------------------------------------------------------------------

PLAN = {"calls": [{"tool": "population", "arguments": [{"name": "city", "value": "Ghent"}]}]}
BRIEFS = [
    {
        "worker": name,
        "objective": f"Which day is the {name} closed?",
        "context": "none",
        "form": "one sentence",
        "limits": f"{name} only",
    }
    for name in ("library", "museum")
]


class Office:
    """A model that does each of the tasks as a good one would, and counts tokens as the cost model does."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, request: ModelRequest) -> str | list[ToolCall]:
        self.calls += 1
        system = request.messages[0].text
        fields = re.findall(r"^- (\w+) \(", system, re.M)
        if system.startswith("Plan") or '"calls"' in system:
            return json.dumps(PLAN)
        if '"briefs"' in system:
            return json.dumps({"briefs": BRIEFS})
        if request.tools:
            called = any(message.calls for message in request.messages)
            return "Order 12 was placed by Ada Young." if called else [ToolCall("1", "get_customer", {"order": 12})]
        if "Fields:" in system:
            values = {"kind": "bug", "people": 270_473}
            return json.dumps({name: values.get(name, "Ada Young") for name in fields})
        return "It is closed on Sunday." if "closed" in system else "English"


@pytest.fixture
def office(monkeypatch: pytest.MonkeyPatch) -> Office:
    """Every scripted model counts the tokens of its prompts and replies, schemas of tools included."""
    from patterns_world import Speaker

    async def generate(self: Speaker, request: ModelRequest) -> ModelReply:
        self.asked.append(request)
        line = model(request)
        prompt = sum(estimate_tokens(each.text) + 5 for each in request.messages) + 3
        prompt += sum(130 for _ in request.tools)
        text = line if isinstance(line, str) else json.dumps([each.arguments for each in line])
        usage = Usage(prompt, 0, estimate_tokens(text))
        calls = () if isinstance(line, str) else tuple(line)
        return ModelReply(line if isinstance(line, str) else "", "calls" if calls else "stop", usage, calls=calls)

    model = Office()
    monkeypatch.setattr(Speaker, "generate", generate)
    return model


def run_case(case: ComposedCase, office: Office, folder: Path) -> tuple[Row, Estimate]:
    expected = estimate(stack_of(case.make().architecture(sizes=case.sizes)))
    with open_journal_at(folder / "journal.db") as journal:
        there = table(tools=office_tools(), journal=journal)
        outcome = answered(asyncio.run(case.make().run(there.desk, program_text(case.task))))
        again = asyncio.run(
            replay_pattern(journal, outcome.run, there.desk.registry, there.desk.policy, pattern=case.make())
        )
    tokens = expected.expected.prompt + expected.expected.output
    taken = outcome.taken
    row = Row(case.name, True, taken.calls, expected.expected.calls, taken.tokens, tokens, 0.0, "", again.identical)
    return row, expected


def test_calls_and_tokens_of_compositions_are_foreseen(office: Office, tmp_path: Path) -> None:
    rows: list[Row] = []
    for number, case in enumerate(COMPOSITIONS):
        folder = tmp_path / str(number)
        folder.mkdir()
        row, expected = run_case(case, office, folder)
        assert row.calls == row.calls_expected, case.name
        assert row.calls <= expected.worst.calls, case.name
        assert row.replayed, case.name
        rows.append(row)
    found = summarize([], rows)
    assert (found["composed"], found["call_error"], found["replay_equal"]) == (len(COMPOSITIONS), 0.0, len(rows))
    assert found["token_error"] <= 0.25
    assert max(row.token_error for row in rows) <= 0.35, [
        (row.pattern, row.tokens, row.tokens_expected) for row in rows
    ]
    assert len(rows) >= 12
    assert max(case.depth for case in COMPOSITIONS) == 3
