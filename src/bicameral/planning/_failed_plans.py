"""Requests without a plan: what the planner wrote last, what is wrong with it in plain words, and what to try instead.

Everything here was written before any untrusted text was read, and is shown to the person; nothing of it goes back into
a prompt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bicameral.errors import BicameralError, PlanError
from bicameral.planning._smaller_requests import SmallerRequest
from bicameral.plans import Finding
from bicameral.secrets import mask

# For somebody who has never read a plan; the message after it has the names.
_PLAIN_WORDS: dict[str, str] = {
    "plan.absent-tool": "it uses a tool that is not set up",
    "plan.broken-constraint": "it does not keep to a limit that you gave",
    "plan.column-as-text": "it takes the name of a column for its value",
    "plan.invented-object": "it uses a file, a person or a thing that you did not name",
    "plan.invented-value": "it would send or write to a place that nobody named",
    "plan.maybe-unbound": "it uses a value that may not be there yet",
    "plan.misplaced-look": "it asks to see a result in the wrong place",
    "plan.missing-answer": "it gives no answer",
    "plan.missing-argument": "it leaves out something that a tool must be told",
    "plan.missing-effect": "it does not do something that you asked for",
    "plan.none-value": "a value may be missing when it is needed",
    "plan.not-a-list": "it goes through something one by one that is not a list",
    "plan.not-in-language": "it is written in a way that plans cannot be",
    "plan.other-tool": "it uses another tool than you asked for",
    "plan.syntax": "it is not written as plans are",
    "plan.too-deep": "it is nested too deep",
    "plan.unasked-effect": "it would change or send something that you did not ask for",
    "plan.unbounded-fan-out": "it could take far too many steps",
    "plan.unbound-reference": "it is unclear what one of its words stands for",
    "plan.undelivered-output": "its result does not go where you asked for",
    "plan.unknown-argument": "it tells a tool something that the tool does not take",
    "plan.unknown-column": "it uses a column that the table does not have",
    "plan.unknown-field": "it uses a part of a result that the result does not have",
    "plan.unknown-function": "it computes with a function that does not exist",
    "plan.unknown-name": "it uses a value before there is one",
    "plan.unknown-tool": "it uses a tool that does not exist",
    "plan.unreachable": "a part of it is never reached",
    "plan.unserved-step": "it leaves out a step that you asked for",
    "plan.unsupported-claim": "its answer says that something was done which the plan does not do",
    "plan.unused": "it fetches something and then does not use it",
    "plan.unused-input": "it does not work with the values that it was given",
    "plan.unused-object": "it leaves out something that you named",
    "plan.wrong-type": "it uses one kind of value where another is needed",
}


@dataclass(frozen=True, slots=True)
class PlanFault:
    """One thing that is wrong with a plan. The code is empty where there is none; the line is that of the attempt."""

    code: str
    message: str
    line: int | None = None

    @classmethod
    def of_finding(cls, finding: Finding) -> PlanFault:
        return cls(finding.code, _full_message(finding), finding.place.line if finding.place else None)

    @classmethod
    def of_error(cls, error: BicameralError) -> PlanFault:
        return cls(error.code, _full_message(error), error.place.line if error.place else None)

    @property
    def plain(self) -> str:
        """What is wrong, for somebody who has never read a plan."""
        where = "" if self.line is None else f"line {self.line}: "
        words = _PLAIN_WORDS.get(self.code)
        return f"{where}{self.message}" if words is None else f"{where}{words}: {self.message}"

    def to_json(self) -> dict[str, Any]:
        facts = {"code": self.code or None, "message": self.message, "plain": self.plain, "line": self.line}
        return {key: value for key, value in facts.items() if value is not None}


def _full_message(said: Finding | BicameralError) -> str:
    text = said.message.rstrip(".")
    text += f"; expected {said.expected}" if said.expected else ""
    return text + (f" (did you mean {said.nearest!r}?)" if said.nearest else "")


@dataclass(frozen=True, slots=True)
class FailedPlan:
    """Why there is no plan.

    Args:
        attempt: The best plan that the model wrote, as people read plans; empty if it wrote none.
        faults: What is wrong with it, the gravest first.
        smaller: A part of the request that may be served.
        request: What was asked for.
    """

    attempt: str = ""
    faults: tuple[PlanFault, ...] = ()
    smaller: SmallerRequest | None = None
    request: str = ""

    def to_json(self) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "attempt": mask(self.attempt) or None,
            "wrong": [fault.to_json() for fault in self.faults] or None,
            "try": None if self.smaller is None else self.smaller.to_json(),
        }
        return {key: value for key, value in facts.items() if value is not None}


class NoPlanError(PlanError):
    """There is no plan for a request; `failure` says what was tried, and `larger_models` what may do better.

    Whoever catches it may add to both before it is shown.
    """

    def __init__(self, code: str, message: str, *, fix: str | None = None, failure: FailedPlan | None = None) -> None:
        super().__init__(code, message, fix=fix)
        self.failure = failure or FailedPlan()
        self.larger_models: tuple[str, ...] = ()
        self.is_founded = False
        """Whether code found the reason, so that no other model could do better."""

    def to_json(self) -> dict[str, Any]:
        larger = {"larger_models": list(self.larger_models)} if self.larger_models else {}
        return super().to_json() | self.failure.to_json() | larger


class RefusedPlanError(NoPlanError):
    """The planner says that a request cannot be served; `reason` is its own word."""

    def __init__(self, reason: str, *, fix: str | None = None) -> None:
        super().__init__("plan.cannot", f"this cannot be done: {reason.rstrip('.')}", fix=fix)
        self.reason = reason
