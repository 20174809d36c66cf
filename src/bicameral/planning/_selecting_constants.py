"""Constants by which a plan selects (what is compared or searched for), and that nobody gave."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from bicameral.planning._grounds import Grounds
from bicameral.planning._intent_document import Intent
from bicameral.plans import (
    Apply,
    Call,
    Compare,
    Const,
    EvaluationError,
    ListOf,
    Plan,
    children,
    evaluate_expr,
    walk,
)
from bicameral.tools import Registry
from bicameral.types import LiteralType

_YES_OR_NO = frozenset("yes no true false ja nein oui non si sí no x done open erledigt offen".split())


@dataclass(frozen=True, slots=True)
class InventedConstant:
    """A constant by which a plan selects, and that neither the request nor the settings have."""

    path: str
    value: str


def invented_constants(
    plan: Plan, intent: Intent, registry: Registry, settings: Collection[str] = ()
) -> tuple[InventedConstant, ...]:
    """The numbers, words and days by which a plan selects and that nobody gave: a person should see them.

    Only what is compared or searched for counts. Texts that are shown or sent, keys, positions and the numbers 0 and 1
    do not, and neither do words for yes and no: nobody says them for what is "unpaid".

    Example:
        >>> invented_constants(plan, Intent(request="What is due?"), registry)
        (InventedConstant(path='1', value='2023-10-01'),)
    """
    grounds = Grounds(intent, frozenset(map(str.casefold, settings)))
    found: dict[InventedConstant, None] = {}
    for path, step in walk(plan.steps):
        for value in _selecting_constants(step, registry):
            if isinstance(value, str) and value.strip().casefold() in _YES_OR_NO:
                continue
            if not grounds.is_given(value):
                found[InventedConstant(path, str(value))] = None
    return tuple(found)


def _selecting_constants(step: Any, registry: Registry) -> Iterator[Any]:
    tool = registry.get(step.tool) if isinstance(step, Call) else None
    if isinstance(step, Call) and tool is not None and not tool.changes:
        for argument in tool.arguments:
            expr = step.args.get(argument.name)
            if expr is not None and not argument.field_of and not isinstance(argument.type, LiteralType):
                yield from _constants_in(expr)
    for expr in children(step):
        yield from _compared_constants(expr)


def _compared_constants(expr: Any) -> Iterator[Any]:
    if isinstance(expr, Compare):
        for operand in (expr.first, *(each for _, each in expr.rest)):
            yield from _constants_in(operand)
    for child in children(expr):
        # The steps inside a step are walked by themselves.
        if hasattr(child, "kind"):
            yield from _compared_constants(child)


def _constants_in(expr: Any) -> Iterator[Any]:
    match expr:
        case Const(value=bool() | None):
            return
        case Const(value=value):
            yield value
        case Apply(function="date" | "datetime"):
            try:
                yield evaluate_expr(expr, {})
            except EvaluationError:
                return
        case ListOf(items=items):
            for each in items:
                yield from _constants_in(each)
        case _:
            return
