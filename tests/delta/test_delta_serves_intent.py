"""A plan is held against its intent: steps, parameters, constraints and the output."""

from __future__ import annotations

import pytest

from bicameral.planning import Intent, check_against_intent, parse_intent, serves_intent
from bicameral.plans import Plan, parse
from bicameral.tools import Registry, tool


@tool(effect="read")
def read_lines(path: str) -> list[str]:
    "Lines of a file."
    return [path]


@tool(effect="pure")
def unique_lines(lines: list[str]) -> list[str]:
    "Lines without duplicates."
    return lines


@tool(effect="pure")
def grep(lines: list[str], pattern: str, ignore_case: bool = False) -> list[str]:
    "Lines that match a pattern."
    return lines


@tool(effect="write", words=("write", "save"))
def write_text(path: str, text: str) -> None:
    "Write text to a file."


@tool(effect="send", words=("send", "mail"))
def send_mail(to: list[str], body: str) -> None:
    "Send a mail."


REGISTRY = Registry([read_lines, unique_lines, grep, write_text, send_mail])
PLAN = """\
lines = read_lines("mail.txt")
kept = unique_lines(lines)
found = grep(kept, "invoice", ignore_case=True)
answer(found)
"""


def plan(text: str = PLAN) -> Plan:
    return parse(text, REGISTRY).plan


def intent(text: str) -> Intent:
    return parse_intent(text)


def codes(written: Intent, text: str = PLAN) -> list[str]:
    return [each.code for each in serves_intent(plan(text), written, REGISTRY)]


def test_a_plan_that_does_every_step_has_no_findings() -> None:
    steps = '[{"action": "remove-duplicates"}, {"action": "grep", "pattern": "invoice", "ignore_case": true}]'
    assert codes(intent(f'{{"steps": {steps}, "output": "stdout"}}')) == []


@pytest.mark.parametrize(
    ("step", "served"),
    [
        ('{"action": "grep", "pattern": "invoices"}', True),
        ('{"action": "grep", "pattern": "receipt"}', False),
        ('{"action": "translate"}', False),
        ('{"action": "read-lines", "path": "mail.txt"}', True),
        ('{"action": "read-lines", "path": "other.txt"}', False),
    ],
)
def test_a_step_or_parameter_that_the_plan_does_not_have_is_found(step: str, served: bool) -> None:
    assert (codes(intent(f'{{"steps": [{step}]}}')) == []) == served


@pytest.mark.parametrize(
    ("constraint", "kept"),
    [("only lines that match invoice", True), ("at most 7 lines", False), ("nothing about dinosaurs", True)],
)
def test_a_constraint_that_nothing_keeps_is_found(constraint: str, kept: bool) -> None:
    assert (codes(intent(f'{{"steps": [], "constraints": ["{constraint}"]}}')) == []) == kept


def test_an_effect_that_a_constraint_forbids_is_severe() -> None:
    sending = 'send_mail(["kim@example.com"], "hi")\nanswer("done")\n'
    written = intent('{"request": "Mail hi to kim@example.com", "constraints": ["do not send anything"]}')
    found = serves_intent(plan(sending), written, REGISTRY)
    assert [(each.code, each.severe) for each in found] == [("plan.broken-constraint", True)]


@pytest.mark.parametrize(
    ("output", "delivered"),
    [
        ('"answer"', True),
        ('{"kind": "file", "path": "out.txt"}', True),
        ('{"kind": "file", "path": "else.txt"}', False),
        ('{"kind": "mail", "to": ["kim@example.com"]}', False),
        ('"calendar"', False),
    ],
)
def test_an_output_that_is_not_delivered_is_found(output: str, delivered: bool) -> None:
    writing = 'write_text("out.txt", "hi")\nanswer("done")\n'
    assert (codes(intent(f'{{"request": "hi", "output": {output}}}'), writing) == []) == delivered


def test_only_a_structured_intent_is_a_contract_in_the_check() -> None:
    """Sentences of a model have other words than tools: holding plans against them would refuse right plans."""
    steps = [{"action": "translate the thing"}]
    loose = Intent.model_validate({"request": "Show the lines of mail.txt", "steps": steps, "by": "echo"})
    strict = loose.model_copy(update={"by": "person"})
    assert [each.code for each in check_against_intent(plan(), loose, REGISTRY)] == []
    assert [each.code for each in check_against_intent(plan(), strict, REGISTRY)] == ["plan.unserved-step"]
