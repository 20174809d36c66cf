"""Lookups: the calls that the read-only executor makes by itself while it fills one form.

Untrusted text chooses the tool and the arguments, so only tools are offered that read and tell nobody anything, and
nobody is asked about such a call: it is made if policy allows it, and else it is not. Each is recorded before it begins
and when it has ended, and the value that is filled in carries the label of everything that was looked up.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bicameral.errors import BicameralError, Place, ToolError
from bicameral.labels import Label, LabelTree, join, label_tree_from_json
from bicameral.limits import Meter, quota_slot
from bicameral.plans import call_facts, labels_after_lookup
from bicameral.policy import Allowed
from bicameral.runs._call_policy import CallDecision, Decider, Grants, StepLabels, decision_json, label_tree_json
from bicameral.runs._effect_execution import call_with_timeout, run_with_typed_errors
from bicameral.runs._observability import EventWriter, tool_span
from bicameral.tools import Tool, executor_fault
from bicameral.types import value_to_json


@dataclass(slots=True, eq=False)
class Lookups:
    """What the executor may look up at one step, and the labels of what it has looked up.

    Args:
        step: The path of the step.
        tools: The tools that it may call.
        wrote: The label of what the quarantined model writes, by what it has read so far.
        places: The labels of variables, and of the places that were written to.
        pc: The label of the control flow.
        decider: Decides about each call.
        labels: The labels of the step, which get those of the results.
    """

    step: str
    tools: tuple[Tool, ...]
    wrote: Label
    places: Mapping[str, LabelTree]
    pc: Label
    decider: Decider
    labels: StepLabels
    made: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """What was looked up, for the record of the step."""

    def decide(self, tool: Tool, bound: Mapping[str, Any]) -> CallDecision:
        """The decision about a call. Its arguments are the model's words, with the label of all that it has read."""
        shades: dict[str, LabelTree] = {each.name: self.wrote for each in tool.arguments if each.required}
        facts = call_facts(tool, shades, bound, self.step, self.pc, self.decider.mode)
        # Without the grants of the run: a person gave those for calls of the plan.
        return self.decider.decide(f"{self.step}/lookup", facts, bound, Grants())

    def add(self, tool: Tool, bound: Mapping[str, Any], value: Any) -> Label:
        """Join the label of a result to that of the step; it counts for the arguments of the next call, too."""
        found = labels_after_lookup(tool, self.wrote, self.places, value, self.step, self.pc, bound)
        self.wrote = join(self.wrote, found)
        self.labels.add_lookup(found)
        self.made.append({"tool": tool.name, "shade": label_tree_json(found)})
        return found


def restore_lookups(labels: StepLabels, ended: Mapping[str, Any]) -> None:
    """Join the recorded labels of what was looked up to those of a step."""
    for each in ended.get("lookups", ()):
        labels.add_lookup(label_tree_from_json(each["shade"]).flat)


class RunDesk:
    """Makes the calls of the executor for one extraction of a run (`bicameral.boundary.ReadDesk`)."""

    def __init__(self, lookups: Lookups, record: EventWriter, meter: Meter) -> None:
        self._lookups = lookups
        self._record = record
        self._meter = meter

    @property
    def tools(self) -> Sequence[Tool]:
        return self._lookups.tools

    async def read(self, tool: Tool, arguments: dict[str, Any]) -> Any:
        """The result of a call; a `ToolError` if it fails or is not allowed."""
        lookups = self._lookups
        # Not only at configuration: an executor may be anybody's code, and a tool that acts must not be reached here.
        if tool not in lookups.tools or executor_fault(tool) is not None:
            raise ToolError("tools.not-for-executor", f"the executor may not call {tool.name!r}")
        bound = tool.bind(arguments)
        decided = lookups.decide(tool, bound)
        facts = {
            "tool": tool.name,
            "effect": tool.effect,
            "arguments": {name: value_to_json(value) for name, value in bound.items()},
            "control": label_tree_json(lookups.pc),
            "shades": {each.name: label_tree_json(lookups.wrote) for each in tool.arguments if each.required},
            "decision": decision_json(decided, lookups.decider),
        }
        self._meter.count_tool_call()
        self._record.write_later("lookup-started", lookups.step, facts)
        started = time.perf_counter()
        try:
            if not isinstance(decided.decision, Allowed):
                raise ToolError(
                    "policy.denied", f"policy does not let the executor call {tool.name!r}", place=Place(lookups.step)
                )
            async with quota_slot("tool", tool.name):
                with tool_span(lookups.step, tool):
                    value = await run_with_typed_errors(tool.name, lambda: call_with_timeout(tool, bound))
        except BicameralError as error:
            self._record.write_later("lookup-ended", lookups.step, {"tool": tool.name, "error": error.to_json()})
            if isinstance(error, ToolError):
                raise
            raise ToolError("tools.failed", f"{tool.name!r} failed") from error
        label = lookups.add(tool, bound, value)
        self._record.write_later(
            "lookup-ended",
            lookups.step,
            {
                "tool": tool.name,
                "result": value_to_json(value),
                "seconds": round(time.perf_counter() - started, 6),
                "shade": label_tree_json(label),
            },
        )
        return value
