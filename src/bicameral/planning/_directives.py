"""Values that direct an effect (recipient, path, link, amount, id, day) and that nobody gave.

Such a value must come from the request, the settings, a binding, or a tool's result. `ungrounded_directives` follows
every literal of a plan to the arguments that direct calls, however it is assembled. Where literals are joined with
results of tools, each literal must be in the request. A computed number stands if each of its operands does. What
cannot be followed is refused.

Two kinds of literals come from the tool itself: one of the plain words among which an argument chooses (`"r"`, `"rw"`),
and the names of fields that its declaration has. A choice that the request does not say is no reason to refuse a plan,
but a person is told of it (`chosen_directives`). The words among which an extraction chooses are the plan's own, and
constants like any other, unless the argument has them as choices.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bicameral import types as t
from bicameral.planning._grounds import Grounds, OfferedByTool
from bicameral.planning._intent_document import Intent
from bicameral.planning._origins import (
    FROM_TOOL,
    Origins,
    ValueOrigin,
    after_tool,
    after_update,
    either,
    extracted,
    item_of,
    origin_of,
    plain_choices,
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
from bicameral.text import lazy_pattern
from bicameral.tools import Argument, Registry, Tool

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
    plan: Plan,
    intent: Intent,
    registry: Registry,
    settings: Collection[str] = (),
    *,
    start: Mapping[str, ValueOrigin] | None = None,
) -> tuple[UngroundedDirective, ...]:
    """The literals of a plan that direct an effect and that nobody gave.

    Args:
        plan: The plan.
        intent: What it is for: its request and its days.
        registry: The tools.
        settings: Values of the user's settings, such as the own addresses (`policy.me`).
        start: The origins of the variables before its first step, as `variable_origins` has them.

    Example:
        >>> ungrounded_directives(plan, Intent(request="Mail the menu to Kim"), registry)
        (UngroundedDirective(path='1', tool='send_mail', argument='to', value='kim@example.com'),)
    """
    walker = _DirectiveWalker(registry, Grounds(intent, frozenset(map(str.casefold, settings))))
    walker.walk(plan.steps, dict(start or {}), "")
    return tuple(dict.fromkeys(walker.found))


@dataclass(frozen=True, slots=True)
class ChosenDirective:
    """A word that directs a call, chosen among a few, and that neither the request says nor the tool has by default."""

    path: str
    tool: str
    argument: str
    value: str


def chosen_directives(
    plan: Plan, intent: Intent, registry: Registry, settings: Collection[str] = ()
) -> tuple[ChosenDirective, ...]:
    """The choices that direct an effect and that the request does not say: a person should see them.

    They are words among which an argument of a tool chooses.

    Example:
        >>> chosen_directives(plan, Intent(request="Share the menu with Kim"), registry)
        (ChosenDirective(path='0', tool='share', argument='right', value='rw'),)
    """
    walker = _DirectiveWalker(registry, Grounds(intent, frozenset(map(str.casefold, settings))))
    walker.walk(plan.steps, {}, "")
    return tuple(dict.fromkeys(walker.chosen))


def variable_origins(
    plan: Plan, registry: Registry, start: Mapping[str, ValueOrigin] | None = None
) -> dict[str, ValueOrigin]:
    """The origins of all variables after a plan: which of its constants they have, for the plan of the next round.

    Args:
        plan: The plan.
        registry: The tools.
        start: The origins of the variables before its first step.

    Example:
        >>> variable_origins(plan, registry)["to"].values
        ('eve@example.org',)
    """
    found = dict(start or {})
    _DirectiveWalker(registry, Grounds(Intent(request=""), frozenset())).walk(plan.steps, found, "")
    return found


class _DirectiveWalker:
    def __init__(self, registry: Registry, grounds: Grounds) -> None:
        self._registry = registry
        self._grounds = grounds
        self.found: list[UngroundedDirective] = []
        self.chosen: list[ChosenDirective] = []

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
                    read = ValueOrigin(pieces=constants, lost=True) if constants else FROM_TOOL
                    env[step.name] = either(extracted(step.result_type), read)
                case Ask():
                    env[step.name] = FROM_TOOL
                case When():
                    other = dict(env)
                    self.walk(step.steps, env, f"{path}/then/")
                    self.walk(step.otherwise, other, f"{path}/else/")
                    for name, origin in other.items():
                        env[name] = either(env[name], origin) if name in env else origin
                case Each():
                    item = item_of(origin_of(step.over, env), len(step.names))
                    for _ in range(_PASSES):
                        before = dict(env)
                        env.update(dict.fromkeys(step.names, item))
                        self.walk(step.steps, env, f"{path}/")
                        for name, origin in before.items():
                            env[name] = either(origin, env[name])
                case _:
                    pass

    def _after_call(self, step: Call, given: Mapping[str, ValueOrigin], path: str) -> ValueOrigin:
        tool = self._registry.get(step.tool)
        if tool is None:
            return ValueOrigin(lost=True)
        if tool.changes or tool.outbound:
            for name, type_ in directing_arguments(tool):
                if name in given:
                    recipient = _is_recipient(tool, name)
                    offered = OfferedByTool(
                        () if recipient else plain_choices(type_), _field_names(tool, tool.argument(name))
                    )
                    if self._is_configured(tool, name, given[name]):
                        continue
                    wrong = self._grounds.ungrounded(given[name], recipient, declared=tool.declared, offered=offered)
                    self.found += [UngroundedDirective(path, tool.name, name, str(value)) for value in wrong]
                    self.chosen += [
                        ChosenDirective(path, tool.name, name, str(value))
                        for value in sorted(_choices_in(given[name], offered.choices), key=str)
                        if not _is_default(tool, name, value) and not self._grounds.says_choice(value)
                    ]
        return after_tool(tool, given)

    def _is_configured(self, tool: Tool, name: str, origin: ValueOrigin) -> bool:
        """Whether an argument is, as a whole, what the user's settings have for it, and the request names nothing."""
        known = tool.configured.get(name, ())
        return bool(known) and origin.is_among(known) and not self._grounds.names_file


def _choices_in(origin: ValueOrigin, offered: Collection[str]) -> set[str]:
    return {each for each in origin.leaves() if isinstance(each, str) and each in offered}


def _is_default(tool: Tool, name: str, value: str) -> bool:
    argument = tool.argument(name)
    return argument is not None and argument.default == value


_NAME = lazy_pattern(r"[^\W\d]\w*")


def _field_names(tool: Tool, argument: Argument | None) -> frozenset[str]:
    """The names of fields that an argument is declared to have, by its type or in its description.

    The description counts only where the user takes the word of whoever wrote it.
    """
    if argument is None:
        return frozenset()
    told = _NAME.findall(argument.doc) if tool.declared and not tool.self_described else ()
    return frozenset((*declared_fields(argument.type), *told))


def declared_fields(type_: t.Type) -> Iterator[str]:
    """The names of fields that a type has, at any depth."""
    match type_:
        case t.OptionalType(item=item) | t.ListType(item=item) | t.DictType(value=item):
            yield from declared_fields(item)
        case t.TupleType(items=items):
            for each in items:
                yield from declared_fields(each)
        case t.RecordType(fields=fields):
            for field in fields:
                yield field.name
                yield from declared_fields(field.type)
        case _:
            return


def _is_recipient(tool: Tool, name: str) -> bool:
    return tool.declared and tool.effect == "send" and name in tool.receivers
