"""What the reasoner is told of a round that failed: a code, a step, a tool and an argument, and nothing else.

The message of an error may quote what a stranger wrote, so no message crosses. A code crosses only if it is one that
this house has words for: a tool can raise any it likes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bicameral.errors import BicameralError
from bicameral.labels import Label, join_all
from bicameral.plans import RUN_CODES, Call, Extract, Plan, Proof, static_path, walk
from bicameral.tools import Registry

_SAID = {
    **RUN_CODES,
    "plan.none": "no plan was found",
    "plan.refused": "policy would refuse this call",
    "pattern.guarded": "a guard refused this call or what it gave",
    "policy.denied": "policy refused this call",
    "run.extraction-rejected": "the text does not hold what was asked for",
    "run.too-many-turns": "there are too many items",
    "tools.failed": "the tool failed",
    "tools.timeout": "the tool took too long",
    "tools.bad-result": "the tool gave something else than it declares",
    "tools.command-failed": "the command failed",
    "files.missing": "there is no such file",
    "files.exists": "there is a file of this name already",
    "files.bad-path": "this is no path that may be used",
    "mail.unknown-mail": "there is no such mail",
    "web.unreachable": "the page cannot be reached",
    "web.status": "the page cannot be had",
    "web.forbidden-host": "this host may not be asked",
}
"""Codes that may be told, with our own words for them."""
_OTHER = "it failed"
_PATH = re.compile(r"[0-9a-z/]{1,40}")


def said_of(code: str) -> str:
    """Our own words for a failure: what may be told of it where a stranger may have had a hand in its message."""
    return f"{_SAID[code]} [{code}]" if code in _SAID else _OTHER


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed round as the reasoner may hear of it."""

    code: str | None
    step: str
    tool: str
    argument: str = ""

    def __str__(self) -> str:
        where = f"step {self.step}" if self.step else "the plan"
        what = f" ({self.tool}{f', {self.argument}' if self.argument else ''})" if self.tool else ""
        return f"failed at {where}{what}: {said_of(self.code or '')}"


def failure_of(error: BicameralError, plan: Plan | None, registry: Registry, step: str = "") -> Failure:
    """What may be told of an error: only what stands in the plan, in a declaration or in our own list."""
    path = static_path(step or (error.place.step or "" if error.place else ""))
    known = dict(walk(plan.steps)) if plan is not None else {}
    path = path if path in known and _PATH.fullmatch(path) else ""
    tool, argument = "", ""
    match known.get(path):
        case Call(tool=name) if (declared := registry.get(name)) is not None:
            tool = name
            given = error.place.argument if error.place else None
            argument = given if given is not None and declared.argument(given) is not None else ""
        case Extract():
            tool = "extract"
        case _:
            pass
    return Failure(error.code if error.code in _SAID else None, path, tool, argument)


def label_of(failure: Failure, proof: Proof | None, registry: Registry) -> Label:
    """The label of the news that a round failed there: everything that could have had a hand in it.

    Which step fails is decided by what the steps before it gave and by whoever answers it, so all of that counts.
    """
    if proof is None:
        return join_all(())
    facts = [call.facts for call in proof.calls if call.facts is not None]
    found = [shade.flat for shade in proof.variables.values()]
    found += [label for each in facts for label in (each.pc, *(argument.label for argument in each.arguments))]
    declared = registry.get(failure.tool)
    if declared is not None:
        found.append(declared.result_shade(None, failure.step).flat)
    return join_all(found)
