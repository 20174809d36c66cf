"""A reasoning, a strategy and a pattern end in one kind of outcome; the JSON of each command has its own keys."""

from __future__ import annotations

from typing import Any

import pytest

from bicameral.cli._output import FAILED, INTERRUPTED, NO_PLAN, OK, QUESTIONS
from bicameral.cli._pattern_runs import OutcomeKind, outcome_exit_code, outcome_json
from bicameral.errors import RunError
from bicameral.labels import TRUSTED_USER
from bicameral.limits import REASONING, STRATEGY, LimitUsage
from bicameral.patterns import Answered, Exhausted, GaveUp

HEADS = {
    "reason": ["ok", "ending", "reason", "doubts", "rounds", "taken"],
    "strategy": ["ok", "ending", "run", "strategy", "doubts", "turns", "taken", "effects"],
    "pattern": ["ok", "ending", "run", "pattern", "doubts", "trace", "taken", "effects"],
}
ANSWERS = {"reason": ["answer", "shade"], "strategy": ["answer", "left_open", "shade"], "pattern": ["value", "shade"]}


def _course(kind: str) -> dict[str, Any]:
    return {"run": "r1", "way": "R4", "taken": LimitUsage(scope=REASONING if kind == "reason" else STRATEGY)}


@pytest.mark.parametrize("kind", ["reason", "strategy", "pattern"])
def test_the_keys_are_those_of_the_command(kind: OutcomeKind) -> None:
    common, head = _course(kind), HEADS[kind]
    answered = outcome_json(Answered(value=1, shade=TRUSTED_USER, **common), kind, [])
    assert list(answered) == head + ANSWERS[kind]
    exhausted = outcome_json(Exhausted(bound="rounds", spent=2, limit=2, **common), kind, [])
    assert list(exhausted) == [*head, "bound", "spent", "limit"]
    gave_up = outcome_json(GaveUp(error=RunError("run.stopped", "x"), **common), kind, [])
    assert list(gave_up) == [*head, "error", *([] if kind == "reason" else ["in_flight"])]
    chambers = ["reasoner_tokens", "executor_tokens", "reasoner_calls", "executor_calls"]
    bounds = ["tokens", "money"] if kind == "reason" else ["tool_calls", "tokens"]
    assert list(answered["taken"]) == ["rounds", "calls", *bounds, "seconds", *chambers]


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        ("run.stopped", INTERRUPTED),
        ("reason.interrupted", INTERRUPTED),
        ("run.needs-approval", QUESTIONS),
        ("plan.none", NO_PLAN),
        ("models.unavailable", FAILED),
    ],
)
def test_the_exit_code_says_how_it_ended(code: str, exit_code: int) -> None:
    assert outcome_exit_code(GaveUp(error=RunError(code, "x"), **_course("strategy"))) == exit_code
    assert outcome_exit_code(Answered(value=1, shade=TRUSTED_USER, **_course("strategy"))) == OK
    assert outcome_exit_code(Exhausted(bound="calls", spent=1, limit=1, **_course("strategy"))) == FAILED
