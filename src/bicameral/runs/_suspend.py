"""Waiting without a process: who is asked says that the answer will come later, and the run is put aside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bicameral.types import Type, to_json

from ._approvals import Question


@dataclass(frozen=True, slots=True)
class PendingAsk:
    """Something that a plan asks a person, at a step. `key` is the same each time the run comes back to it."""

    step: str
    question: str
    type: Type
    key: str

    def to_json(self) -> dict[str, Any]:
        return {"step": self.step, "question": self.question, "type": to_json(self.type), "key": self.key}


class Suspend(BaseException):
    """Raised by an `Approver` or an `Asker` to let the run wait without a process; the outcome is then `Waiting`.

    An approver that knows some answers already names what is still open as `question`; what is left out of it must be
    answered when the run is resumed. It is no `Exception`: who catches everything that fails does not catch a wait.

    Example:
        >>> class Later:
        ...     async def approve(self, question: Question) -> Answers:
        ...         raise Suspend
    """

    def __init__(self, question: Question | None = None) -> None:
        super().__init__("the run waits for a person")
        self.question = question
        self.ask: PendingAsk | None = None
