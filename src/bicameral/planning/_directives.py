"""Values that direct an effect (recipient, path, link, amount, id, day) and that nobody gave.

Such a value must come from the request, the settings, a binding, or a tool's result. `ungrounded_directives` follows
every literal of a plan to the arguments that direct calls, however it is assembled. Where literals are joined with
results of tools, each literal must be in the request. What cannot be followed is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from bicameral.planning._grounds import Grounds
from bicameral.planning._intent_document import Intent
from bicameral.planning._origins import (
    FROM_TOOL,
    Origin,
    Origins,
    after_tool,
    after_update,
    either,
    item_of,
    origin_of,
)
from bicameral.plans import (
    Ask,
    Call,
    Compute,
    Each,
    Extract,
    Plan,
    Update,
    When,
    directing_arguments,
)
from bicameral.tools import Registry, Tool

_PASSES = 3
"""How often a loop is walked: literals move at most a few variables further with each turn."""


@dataclass(frozen=True, slots=True)
class UngroundedDirective:
    """A literal that directs a call and that neither the request nor the settings have."""

    path: str
    tool: str
    argument: str
    value: str


def ungrounded_directives(
    plan: Plan, intent: Intent, registry: Registry, settings: Collection[str] = ()
) -> tuple[UngroundedDirective, ...]:
    """The literals of a plan that direct an effect and that nobody gave.

    Args:
        plan: The plan.
        intent: What it is for: its request and its days.
        registry: The tools.
        settings: Values of the user's settings, such as the own addresses (`policy.me`).

    Example:
        >>> ungrounded_directives(plan, Intent(request="Mail the menu to Kim"), registry)
        (UngroundedDirective(path='1', tool='send_mail', argument='to', value='kim@example.com'),)
    """
    walker = _DirectiveWalker(registry, Grounds(intent, frozenset(map(str.casefold, settings))))
    walker.walk(plan.steps, {}, "")
    return tuple(dict.fromkeys(walker.found))


class _DirectiveWalker:
    def __init__(self, registry: Registry, grounds: Grounds) -> None:
        self._registry = registry
        self._grounds = grounds
        self.found: list[UngroundedDirective] = []

    def walk(self, steps: tuple[Any, ...], env: Origins, at: str) -> None:
        """Follow values through steps; the variables are changed in place."""
        for number, step in enumerate(steps):
            path = f"{at}{number}"
            match step:
                case Call():
                    given = {name: origin_of(value, env) for name, value in step.args.items()}
                    result = self._after_call(step, given, path)
                    if step.name is not None:
                        env[step.name] = result
                case Compute():
                    env[step.name] = origin_of(step.value, env)
                case Update():
                    env[step.name] = after_update(step, env)
                case Extract():
                    # A model that reads only what the plan itself says returns the plan's words.
                    source = origin_of(step.source, env)
                    constants = source.leaves() if source.values is not None else frozenset[Any]()
                    env[step.name] = Origin(pieces=constants, lost=bool(constants))
                case Ask():
                    env[step.name] = FROM_TOOL
                case When():
                    other = dict(env)
                    self.walk(step.steps, env, f"{path}/then/")
                    self.walk(step.otherwise, other, f"{path}/else/")
                    for name, origin in other.items():
                        env[name] = either(env[name], origin) if name in env else origin
                case Each():
                    item = item_of(origin_of(step.over, env))
                    for _ in range(_PASSES):
                        before = dict(env)
                        env.update(dict.fromkeys(step.names, item))
                        self.walk(step.steps, env, f"{path}/")
                        for name, origin in before.items():
                            env[name] = either(origin, env[name])
                case _:
                    pass

    def _after_call(self, step: Call, given: Mapping[str, Origin], path: str) -> Origin:
        tool = self._registry.get(step.tool)
        if tool is None:
            return Origin(lost=True)
        if tool.changes or tool.outbound:
            for name, _ in directing_arguments(tool):
                if name in given:
                    wrong = self._grounds.ungrounded(given[name], _is_recipient(tool, name), declared=tool.declared)
                    self.found += [UngroundedDirective(path, tool.name, name, str(value)) for value in wrong]
        return after_tool(tool, given)


def _is_recipient(tool: Tool, name: str) -> bool:
    return tool.declared and tool.effect == "send" and name in tool.receivers
