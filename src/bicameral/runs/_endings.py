"""How a request ended: one table for exit codes, JSON, the states of durable runs, the server and benchmarks.

The code of an error decides and nothing else, since a durable run and a server know nothing but the code.

| ending | means | exit code |
|---|---|---|
| `answered` | there is an answer; its doubts are shown before it | 0 |
| `asked` | a person must say something first: about the request, a binding, the plan or a call | 4 |
| `refused` | no plan serves the request and may run, or what it needs was not found; nothing was done | 3 |
| `denied` | policy or a person forbade a call, or a person did not want the plan | 1 |
| `invalid` | the request or the file is none that could be planned | 2 |
| `stopped` | it was stopped from outside | 130 |
| `failed` | a tool, a model or the machine failed, a limit was reached, or there was a refusal after effects | 1 |
"""

from __future__ import annotations

from typing import Literal

from bicameral.errors import BicameralError
from bicameral.runs._outcome import Failed, Finished, Interrupted, RunOutcome, Stopped, Waiting

Ending = Literal["answered", "asked", "refused", "denied", "invalid", "stopped", "failed"]

_ENDINGS: dict[str, Ending] = {
    "bind.nothing-found": "asked",
    "bind.several-found": "asked",
    "intent.needs-endorsement": "asked",
    "intent.questions": "asked",
    "plan.several": "asked",
    "run.needs-answer": "asked",
    "run.needs-approval": "asked",
    "run.waits": "asked",
    # What was looked for is not there: the outcome's doubts say where it was looked for.
    "run.empty": "refused",
    "run.nothing-found": "refused",
    "reason.declined": "denied",
    "run.refused": "denied",
    "plan.cannot-export": "invalid",
    "plan.cannot-read": "invalid",
    "reason.interrupted": "stopped",
    "run.cancelled": "stopped",
    "run.stopped": "stopped",
}
_FAMILIES: dict[str, Ending] = {"bind": "refused", "intent": "invalid", "plan": "refused"}
"""The ending of all other codes that begin with this word; what is not here has failed."""


def ending_of_code(code: str) -> Ending:
    """The ending of a request that an error with this code ended.

    Example:
        >>> ending_of_code("plan.cannot"), ending_of_code("bind.several-found"), ending_of_code("files.missing")
        ('refused', 'asked', 'failed')
    """
    return _ENDINGS.get(code) or _FAMILIES.get(code.partition(".")[0], "failed")


def ending_of_error(error: BicameralError, *, effects: bool = False) -> Ending:
    """The ending of a request that an error ended.

    Args:
        error: The error.
        effects: Whether something was changed before: then it is no refusal any more, which promises that nothing was.
    """
    ending = ending_of_code(error.code)
    return "failed" if effects and ending == "refused" else ending


def ending_of(outcome: RunOutcome | BicameralError) -> Ending:
    """The ending of a run, or of a request that an error ended before there was one.

    Example:
        >>> ending_of(await agent.run(planned))
        'answered'
    """
    match outcome:
        case BicameralError():
            return ending_of_error(outcome)
        case Finished():
            return "answered"
        case Failed(error=error):
            return ending_of_error(error, effects=bool(outcome.effects))
        case Waiting():
            return "asked"
        case Stopped():
            return "stopped"
        case Interrupted():
            return "failed"
