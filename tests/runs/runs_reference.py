"""What a plan means, in the plainest way: one step after the other, every value copied, nothing shared."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from bicameral.errors import BicameralError, Place
from bicameral.plans import (
    Answer,
    Call,
    Compute,
    Each,
    EvaluationError,
    Expr,
    Plan,
    Step,
    Update,
    When,
    apply_update,
    evaluate_expr,
)
from bicameral.tools import Registry


class Ended(Exception):
    """The plan came to its answer."""


@dataclass
class Meaning:
    """How a plan ends when it runs step by step."""

    answer: Any = None
    failure: tuple[str, str] | None = None
    effects: list[str] = field(default_factory=list[str])


async def meaning(plan: Plan, registry: Registry) -> Meaning:
    return await _Sequential(registry).run(plan)


class _Sequential:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._values: dict[str, Any] = {}
        self._found = Meaning()

    async def run(self, plan: Plan) -> Meaning:
        try:
            await self._block(plan.steps, "")
        except Ended:
            pass
        except BicameralError as error:
            self._found.failure = (error.code, error.place.step or "" if error.place else "")
        return self._found

    async def _block(self, steps: tuple[Step, ...], at: str) -> None:
        for number, step in enumerate(steps):
            try:
                await self._step(step, f"{at}{number}")
            except BicameralError as error:
                if error.place is None or error.place.step is None:
                    error.place = Place(step=f"{at}{number}")
                raise

    async def _step(self, step: Step, at: str) -> None:
        match step:
            case Compute():
                self._values[step.name] = self._value(step.value)
            case Update():
                key = self._value(step.key) if step.key is not None else None
                self._update(step, key, self._value(step.value))
            case Call():
                tool = self._registry[step.tool]
                result = await tool.call({name: self._value(value) for name, value in step.args.items()})
                if tool.changes:
                    self._found.effects.append(at)
                if step.name is not None:
                    self._values[step.name] = result
            case When():
                holds = self._value(step.condition)
                await self._block(step.steps if holds else step.otherwise, f"{at}/{'then' if holds else 'else'}/")
            case Each():
                for turn, item in enumerate(self._value(step.over)):
                    self._values[step.names[0]] = item
                    await self._block(step.steps, f"{at}[{turn}]/")
            case Answer():
                self._found.answer = self._value(step.value)
                raise Ended
            case _:
                raise AssertionError(f"no meaning for {step!r}")

    def _update(self, step: Update, key: Any, value: Any) -> None:
        current = self._values[step.name]
        match step.op, type(current).__name__:
            case "append", "list":
                current.append(value)
            case "put", "dict":
                current[key] = value
            case "add", _ if type(current) is type(value):
                # What doubles a list in every turn of a loop must be refused when it is too large, and not later.
                self._values[step.name] = apply_update("add", current, None, value)
            case _:
                raise EvaluationError("run.type", "no such addition")

    def _value(self, expr: Expr) -> Any:
        return deepcopy(evaluate_expr(expr, self._values))
