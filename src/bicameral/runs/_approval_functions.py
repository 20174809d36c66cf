"""Approvers that are plain functions: `def approve(question) -> bool`, also async.

True approves every call of the question exactly as it is shown, once; an `Answers` says which. Anything else is a no.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import cast

from bicameral.errors import RunError
from bicameral.runs._approvals import Answers, ApprovalQuestion, Approver

ApproveFunction = Callable[[ApprovalQuestion], bool | Answers | Awaitable[bool | Answers]]


@dataclass(frozen=True, slots=True)
class FunctionApprover:
    """Asks a function. One that is not async runs in a thread, since it may wait for a person."""

    function: ApproveFunction

    async def approve(self, question: ApprovalQuestion) -> Answers:
        if inspect.iscoroutinefunction(self.function):
            answer: object = await self.function(question)
        else:
            answer = await asyncio.to_thread(self.function, question)
            if inspect.isawaitable(answer):
                answer = await answer
        if isinstance(answer, Answers):
            return answer
        # Only `True` itself: a function that returns a text or a number has not decided, and no truth of it is a yes.
        return Answers.yes(question.calls) if answer is True else Answers.no()


def approver_from(given: Approver | ApproveFunction | None) -> Approver | None:
    """The approver that was given, or one that asks the given function.

    Example:
        >>> approver_from(lambda question: all(call.tool == "book_room" for call in question.calls))
    """
    if given is None or callable(getattr(given, "approve", None)):
        return cast("Approver | None", given)
    if not callable(given):
        raise RunError(
            "run.bad-approver",
            f"{type(given).__name__} is no approver",
            expected="a function of the question that returns True, False or Answers, or an object with `approve`",
        )
    return FunctionApprover(given)
