"""Errors at the command line; of a request without a plan also what was tried, what is wrong with it, and what to try.

The commands that are proposed are those that were typed, with another request or another model: they can be copied.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bicameral.cli._output import Output
from bicameral.errors import BicameralError, PlanError

if TYPE_CHECKING:
    from bicameral.planning import NoPlanError
    from bicameral.runs import Ending

_MOST_FAULTS = 5


def report_failure(out: Output, error: BicameralError, words: Sequence[str], ending: Ending | None = None) -> None:
    """Write an error with all that is known of it, as text or as JSON.

    Args:
        out: Where to.
        error: What went wrong.
        words: The command line after `bicameral`.
        ending: How the command ended.
    """
    failed = _failed_plan(error)
    if failed is None:
        out.error(error.to_json(), str(error), ending)
        return
    out.error(error.to_json() | _suggestions(failed, words), str(error), ending)
    if not out.as_json:
        _say_attempt(out, failed)
        _say_suggestions(out, failed, words)


def _failed_plan(error: BicameralError) -> NoPlanError | None:
    if not isinstance(error, PlanError):
        return None
    from bicameral.planning import NoPlanError

    return error if isinstance(error, NoPlanError) else None


def _say_attempt(out: Output, failed: NoPlanError) -> None:
    failure = failed.failure
    if failure.attempt:
        out.heading("the plan that was tried:")
        for number, line in enumerate(failure.attempt.splitlines(), 1):
            out.say(f"  {number:>2}  {line}", style="dim")
    if failure.attempt and failure.faults:
        out.heading("what is wrong with it:")
        for fault in failure.faults[:_MOST_FAULTS]:
            out.say(f"  {fault.plain}")
        if len(failure.faults) > _MOST_FAULTS:
            out.say(f"  and {len(failure.faults) - _MOST_FAULTS} more")


def _say_suggestions(out: Output, failed: NoPlanError, words: Sequence[str]) -> None:
    smaller = failed.failure.smaller
    if smaller is not None:
        known = " (a plan for it is known)" if smaller.known else ""
        out.say(f"try a part of it: {_smaller_command(failed, words) or smaller.request}{known}")
    if failed.larger_models:
        out.say(f"a larger model may find a plan: {_model_command(failed.larger_models[0], words)}")


def _suggestions(failed: NoPlanError, words: Sequence[str]) -> dict[str, Any]:
    """The commands to try, for a program."""
    commands = [_model_command(name, words) for name in failed.larger_models]
    smaller = _smaller_command(failed, words)
    found = ([] if smaller is None else [smaller]) + commands
    return {"commands": found} if found else {}


def _smaller_command(failed: NoPlanError, words: Sequence[str]) -> str | None:
    """The command with the smaller request; None if the request was not one of its words, as in a chat."""
    request, smaller = failed.failure.request, failed.failure.smaller
    if smaller is None or request not in (word.strip() for word in words):
        return None
    return shlex.join(["bicameral", *(smaller.request if word.strip() == request else word for word in words)])


def _model_command(name: str, words: Sequence[str]) -> str:
    """The command with this model."""
    kept: list[str] = []
    left_out = False
    for word in words[1:]:
        if left_out or word.startswith("--model="):
            left_out = False
        elif word == "--model":
            left_out = True
        else:
            kept.append(word)
    return shlex.join(["bicameral", *words[:1], "--model", name, *kept])
