"""What the exit code of the command line says."""

from __future__ import annotations

from bicameral.errors import (
    BicameralError,
    ConfigError,
    IntentError,
    JournalError,
    PlanError,
    PolicyError,
    ToolError,
)

OK = 0
FAILED = 1
"""A run, a model or a check of the machine failed."""
USAGE = 2
"""The command, the configuration or the input is wrong."""
NO_PLAN = 3
"""There is no plan, or it does not pass the check."""
QUESTIONS = 4
"""Something must be answered first, and nobody is there to ask."""
INTERRUPTED = 130
TERMINATED = 143
"""By SIGTERM, after what was under way had been stopped and recorded."""

NEEDS_A_PERSON = ("intent.questions", "intent.needs-endorsement", "run.needs-answer", "run.needs-approval")
_BAD_INPUT = (
    "catalog.bad-fact",
    "catalog.bad-number",
    "catalog.cannot-read",
    "catalog.cannot-write",
    "catalog.unknown-category",
    "catalog.unknown-fact",
    "catalog.unknown-knob",
    "catalog.unknown-model",
    "catalog.unknown-pattern",
    "catalog.unknown-size",
    "journal.unknown-run",
    "journal.ambiguous-run",
    "journal.no-runs",
    "journal.no-answer",
    "models.unknown",
    "plan.cannot-read",
    "durable.ambiguous-approval",
    "durable.ambiguous-run",
    "durable.bad-database",
    "durable.bad-state",
    "durable.bad-submission",
    "durable.no-runs",
    "durable.unknown-approval",
    "durable.unknown-run",
    "durable.wrong-answer",
)


class Terminated(Exception):
    """Somebody told the process to end; whatever was under way has been stopped and recorded."""


def exit_code(error: BicameralError) -> int:
    """The exit code for an error that ended a command."""
    if error.code in NEEDS_A_PERSON:
        return QUESTIONS
    if error.code in _BAD_INPUT or error.code.startswith("stack."):
        return USAGE
    match error:
        case ConfigError() | IntentError() | PolicyError() | ToolError():
            return USAGE
        case PlanError():
            return NO_PLAN
        case JournalError():
            return FAILED
        case _:
            return FAILED
