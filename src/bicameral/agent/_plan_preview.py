"""What the effects of a plan would change in files, found out before it runs.

Where everything that decides about the effects can be read locally, the arguments of each call are computed and the
call is rehearsed. Otherwise only calls whose arguments the plan spells out are, and the others are named. What is found
has text from the world in it: it is for a person, and reaches no prompt.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bicameral.agent._dry_run import dry_run
from bicameral.agent._planned_effects import note_calls, noted_turns
from bicameral.errors import BicameralError
from bicameral.plans import Call, Const, Plan, PlanLimits, walk
from bicameral.runs import ChangePreview, can_preview, preview_call
from bicameral.types import value_from_json

if TYPE_CHECKING:
    from bicameral.policy import Policy
    from bicameral.tools import Registry

MAX_PREVIEWED = 50
"""The most calls that are rehearsed: a person reads them."""


@dataclass(frozen=True, slots=True)
class CallPreview:
    """What one call of a plan would change.

    Args:
        step: The step of the plan.
        tool: The tool.
        preview: The changes; None if they depend on what the plan reads or does before.
    """

    step: str
    tool: str
    preview: ChangePreview | None

    @property
    def text(self) -> str:
        """For a person."""
        if self.preview is None:
            return f"step {self.step} ({self.tool}): what it changes depends on what the plan does before"
        return f"step {self.step} ({self.tool}):\n{self.preview.text}"

    def to_json(self) -> dict[str, Any]:
        return {"step": self.step, "tool": self.tool, **({} if self.preview is None else self.preview.to_json())}


async def preview_plan(plan: Plan, registry: Registry, policy: Policy, limits: PlanLimits) -> tuple[CallPreview, ...]:
    """What the calls of a bound plan that change files would change, each against the files as they are now.

    Args:
        plan: The plan, with its references bound.
        registry: The tools.
        policy: Decides about every reading, as in a run; nobody is asked.
        limits: The limits of plans.
    """
    changing = [
        (path, step)
        for path, step in walk(plan.steps)
        if isinstance(step, Call) and (tool := registry.get(step.tool)) is not None and can_preview(tool)
    ]
    if not changing:
        return ()
    turns = await _computed_arguments(plan, registry, policy, limits)
    found: list[CallPreview] = []
    for path, step in changing:
        known = _constant_arguments(step) if turns is None else turns.get(path, ())
        if known is None:
            found.append(CallPreview(path, step.tool, None))
            continue
        for arguments in known:
            if len(found) < MAX_PREVIEWED:
                found.append(CallPreview(path, step.tool, await preview_call(registry[step.tool], arguments)))
    return tuple(found)


async def _computed_arguments(
    plan: Plan, registry: Registry, policy: Policy, limits: PlanLimits
) -> Mapping[str, tuple[Mapping[str, Any], ...]] | None:
    """By step, the arguments of each of its calls; None if they cannot be computed before the run."""
    noted = note_calls(plan, registry, lambda step, _: dict(step.args))
    if noted is None:
        return None
    read = await dry_run(noted, registry, policy, limits)
    if read.answer is None:
        return None
    try:
        return dict(_turns_by_step(plan, registry, json.loads(read.answer)))
    except (BicameralError, ValueError, TypeError):
        return None


def _turns_by_step(
    plan: Plan, registry: Registry, notes: dict[str, list[dict[str, Any]]]
) -> Iterator[tuple[str, tuple[Mapping[str, Any], ...]]]:
    paths = [
        path
        for path, step in walk(plan.steps)
        if isinstance(step, Call) and ((tool := registry.get(step.tool)) is None or tool.changes)
    ]
    for path, turns in zip(paths, noted_turns(notes), strict=True):
        yield path, tuple({name: value_from_json(value) for name, value in turn.items()} for turn in turns)


def _constant_arguments(step: Call) -> tuple[Mapping[str, Any], ...] | None:
    """The arguments of a call that the plan spells out; None if one of them is computed."""
    values = {name: each.value for name, each in step.args.items() if isinstance(each, Const)}
    return (values,) if len(values) == len(step.args) else None
