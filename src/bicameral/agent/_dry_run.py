"""Dry runs: what a plan would select, found out by doing only those of its steps that read the person's own data.

No model and no person is asked, nothing is changed and nothing leaves the machine. The result has the label of
everything that was read. It may order plans that are written already, and it reaches no prompt.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from bicameral.errors import BicameralError
from bicameral.labels import NOTHING, UNKNOWN, Label, join_all
from bicameral.limits import Limits, run_limits
from bicameral.plans import (
    Answer,
    Ask,
    Call,
    Const,
    DictOf,
    Each,
    Extract,
    Plan,
    PlanLimits,
    Ref,
    When,
    branch_names,
    can_answer,
    free_names,
    walk,
)
from bicameral.runs import Finished, check_plan, run_plan
from bicameral.tools import Registry, Tool
from bicameral.types import value_to_json

if TYPE_CHECKING:
    from bicameral.policy import Policy

LOCAL_TOOLBOXES = frozenset({"calendar", "clock", "files", "lines", "mail", "tables"})
"""Toolboxes whose readings touch files of the person and nothing else. `find` is none: its index may ask an encoder."""
DRY_RUN_LIMITS: Limits = run_limits(calls=200, seconds=10.0, work=5_000_000)
"""How much one dry run may take. The work decides long before the seconds do, so that speed does not choose a plan."""
MAX_PREVIEW = 3

Selected = Literal["something", "nothing", "unknown"]


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a plan would select.

    Args:
        selected: `nothing` if a selection that matters comes out empty or cannot match; `unknown` if no step could be
            done, or not to the end.
        answer: The answer as JSON, if it follows from what was read; None if it does not.
        label: Where everything that this tells came from.
        preview: What is empty or was left out, for a person; hidden characters are made visible.
    """

    selected: Selected
    answer: str | None
    label: Label
    preview: tuple[str, ...] = ()


NOT_RUN = DryRun("unknown", None, NOTHING)
"""Nothing was read."""


async def dry_run(plan: Plan, registry: Registry, policy: Policy, limits: PlanLimits) -> DryRun:
    """Do the local readings of a bound plan, and say what they select.

    Args:
        plan: The plan, with its references bound.
        registry: The tools.
        policy: Decides about every call, as in a run; nobody is asked, so a call in doubt is not made.
        limits: The limits of plans.
    """
    part = local_part(plan, registry)
    if part is None:
        return NOT_RUN
    try:
        checked = check_plan(part, registry, policy, limits=limits)
        if not checked.ok:
            return DryRun("nothing", None, UNKNOWN, ("it cannot run as it is",))
        # Without a journal, a model, an asker and an approver: none of them is part of choosing.
        outcome = await run_plan(checked, registry, policy=policy, caps=DRY_RUN_LIMITS, early_approvals=False)
    except BicameralError:
        return DryRun("unknown", None, UNKNOWN)
    if not isinstance(outcome, Finished):
        error = getattr(outcome, "error", None)
        # A comparison in which the kinds do not fit can match nothing.
        is_kind = isinstance(error, BicameralError) and error.code == "tables.column-kind"
        return DryRun("nothing" if is_kind else "unknown", None, UNKNOWN)
    empty = [doubt for doubt in outcome.doubts if doubt.code == "empty-selection"]
    label = join_all((outcome.labelled.label, *(doubt.label for doubt in outcome.doubts)))
    answer = json.dumps(value_to_json(outcome.answer), sort_keys=True) if part is plan else None
    preview = tuple(doubt.text for doubt in outcome.doubts[:MAX_PREVIEW])
    return DryRun("nothing" if empty else "something", answer, label, preview)


def is_local_reading(tool: Tool | None) -> bool:
    """Whether a tool only computes or reads the person's own files: no effect, no other machine, no model."""
    if tool is None or tool.changes or tool.outbound or not tool.declared:
        return False
    return tool.toolbox in LOCAL_TOOLBOXES


def local_part(plan: Plan, registry: Registry) -> Plan | None:
    """The steps of a plan that a dry run may do, ending with what the others would use; None if there are none."""
    if all(is_local_step(step, registry, reading=True) for step in plan.steps):
        return plan
    parts = divide_plan(plan, registry)
    wanted = frozenset[str]().union(*(free_names(step) for step in parts.left))
    names = sorted(name for name in (wanted & parts.made) - parts.missing if not name.startswith("_"))
    return end_with_names(plan, parts.kept, names) if names else None


@dataclass(frozen=True, slots=True)
class Division:
    """The steps of a plan that a dry run may do, and the others.

    Args:
        kept: The steps that it may do.
        left: The others.
        made: The variables that `kept` gives whatever happens.
        missing: The variables that `left` may give.
    """

    kept: Sequence[Any]
    left: Sequence[Any]
    made: frozenset[str]
    missing: frozenset[str]


def divide_plan(plan: Plan, registry: Registry) -> Division:
    """The division of a plan.

    A step is left out if it, or one inside it, does more than read locally, or if it uses what a step left out would
    have made. After a step that changes something nothing is read: it would not be what the plan reads.
    """
    kept: list[Any] = []
    left: list[Any] = []
    missing = set[str]()
    changed = False
    for step in plan.steps:
        allowed = is_local_step(step, registry, reading=not changed)
        if allowed and not free_names(step) & missing and not can_answer(step):
            kept.append(step)
            continue
        left.append(step)
        # Even if it is given again later: a variable that was made in two ways is not worth the risk of a mistake.
        missing |= branch_names(step)
        changed = changed or _changes(step, registry)
    made = frozenset[str]().union(*(branch_names(step) for step in kept if not isinstance(step, Each | When)))
    return Division(kept, left, made, frozenset(missing))


def end_with_names(plan: Plan, steps: Sequence[Any], names: Sequence[str]) -> Plan:
    """A plan of these steps that answers with these variables."""
    value = DictOf(entries=tuple((Const(value=name), Ref(name=name)) for name in names))
    return plan.model_copy(update={"steps": (*steps, Answer(value=value))})


def _inner_steps(step: Any) -> Sequence[Any]:
    return [inner for _, inner in walk((step,))]


def is_local_step(step: Any, registry: Registry, *, reading: bool) -> bool:
    for inner in _inner_steps(step):
        match inner:
            case Extract() | Ask():
                return False
            case Call():
                tool = registry.get(inner.tool)
                if not is_local_reading(tool) or (not reading and tool is not None and tool.effect != "pure"):
                    return False
            case _:
                continue
    return True


def _changes(step: Any, registry: Registry) -> bool:
    called = [registry.get(inner.tool) for inner in _inner_steps(step) if isinstance(inner, Call)]
    return any(tool is None or tool.changes for tool in called)
