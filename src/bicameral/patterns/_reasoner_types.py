"""Failures and rounds of a reasoning.

Of a failed round the reasoner gets a code, a step, a tool and an argument, and nothing else: the message of an error
may quote untrusted text, so no message crosses. A code crosses only if it is listed here, since a tool can raise any
code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bicameral.errors import BicameralError
from bicameral.labels import NOTHING, Label, join_all
from bicameral.planning import CompiledPlan
from bicameral.plans import RUN_CODES, Call, Extract, Plan, Proof, static_path, walk
from bicameral.runs import Checked, Doubt, EffectDone, RunOutcome
from bicameral.tools import Registry

_TELLABLE_CODES = {
    **RUN_CODES,
    "plan.none": "no plan was found",
    "plan.unasked-effect": "the plan does what the request does not ask for",
    "plan.refused": "policy would refuse this call",
    "pattern.guarded": "a guard refused this call or what it gave",
    "policy.denied": "policy refused this call",
    "run.extraction-rejected": "what was read does not fit what was asked for",
    "run.nothing-found": "the text does not hold what was asked for",
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
"""The codes that the reasoner may see, with fixed words for each."""
_OTHER_FAILURE = "it failed"
_STEP_PATH = re.compile(r"[0-9a-z/]{1,40}")


def describe_failure(code: str) -> str:
    """Fixed words for a failure, for use where its message may have untrusted text."""
    return f"{_TELLABLE_CODES[code]} [{code}]" if code in _TELLABLE_CODES else _OTHER_FAILURE


@dataclass(frozen=True, slots=True)
class RoundFailure:
    """A failed round as the reasoner may see it."""

    code: str | None
    step: str
    tool: str
    argument: str = ""

    def __str__(self) -> str:
        where = f"step {self.step}" if self.step else "the plan"
        what = f" ({self.tool}{f', {self.argument}' if self.argument else ''})" if self.tool else ""
        return f"failed at {where}{what}: {describe_failure(self.code or '')}"


def round_failure(error: BicameralError, plan: Plan | None, registry: Registry, step: str = "") -> RoundFailure:
    """What the reasoner may see of an error: only what is in the plan, in a declaration or in the list of codes."""
    path = static_path(step or (error.place.step or "" if error.place else ""))
    known = dict(walk(plan.steps)) if plan is not None else {}
    path = path if path in known and _STEP_PATH.fullmatch(path) else ""
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
    return RoundFailure(error.code if error.code in _TELLABLE_CODES else None, path, tool, argument)


def label_of_failure(failure: RoundFailure, proof: Proof | None, registry: Registry) -> Label:
    """The label of the fact that a round failed there: the join of everything that could have caused it.

    The results of the steps before it, and the tool itself, decide which step fails, so all of their labels count.
    """
    if proof is None:
        return join_all(())
    facts = [call.facts for call in proof.calls if call.facts is not None]
    found = [tree.flat for tree in proof.variables.values()]
    found += [label for each in facts for label in (each.pc, *(argument.label for argument in each.arguments))]
    declared = registry.get(failure.tool)
    if declared is not None:
        found.append(declared.result_labels(None, failure.step).flat)
    return join_all(found)


@dataclass(frozen=True, slots=True)
class WrittenRound:
    """A round whose plan is written and checked, and has not run."""

    number: int
    compiled: CompiledPlan
    checked: Checked
    source: str


@dataclass(frozen=True, slots=True)
class Round:
    """One round: its plan as people read it, how its run ended, and what the reasoner was told of it.

    `read` is the label of what it was told; `left` are the variables that later plans can use. A round for which no
    plan was found has no source, and one whose plan did not pass the check has no outcome. `draft` is the plan as the
    planner wrote it, with neutral names for what others called the columns of their tables.
    """

    number: int
    source: str = ""
    outcome: RunOutcome | None = None
    told: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    read: Label = NOTHING
    failure: RoundFailure | None = None
    draft: str = ""

    @property
    def run(self) -> str | None:
        """The id of its run in the journal."""
        return self.outcome.run if self.outcome is not None else None

    @property
    def effects(self) -> tuple[EffectDone, ...]:
        return self.outcome.effects if self.outcome is not None else ()

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """The doubts about its run, if later rounds or a change of the world may rest on it."""
        outcome = self.outcome
        return outcome.doubts if outcome is not None and (outcome.ok or outcome.effects) else ()
