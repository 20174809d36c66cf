"""Answers of a type that the caller names: `agent.run(request, output=Invoice)`.

The planner is told nothing of it. If the answer of a plan cannot have the type, but has text in which it may stand, the
plan gets one more step in which the quarantined model fills the type as a form from that answer: it is checked,
labelled and recorded like every other extraction. An answer that does not fit in the end is a `Failed` with the reason,
and is never converted.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from bicameral.errors import PlanError, RunError
from bicameral.plans import (
    Answer,
    Const,
    Extract,
    Plan,
    Ref,
    Scope,
    When,
    check_step,
    is_compatible,
    type_of,
    walk,
)
from bicameral.runs import Failed, Finished, Interrupted, RunOutcome, Stopped, TypedFinished, Waiting
from bicameral.tools import Registry
from bicameral.types import (
    ANY,
    AnyType,
    StrType,
    Type,
    iter_types,
    mismatch,
    nearest_annotation,
    type_from_annotation,
    type_to_json,
)

T = TypeVar("T")
TypedOutcome = TypedFinished[T] | Failed | Stopped | Waiting | Interrupted
"""The outcome of a run with an `output`: `TypedFinished`, or why there is no answer of that type."""


class OutputType(Generic[T]):
    """The type of an answer as Python and as plans know it; one that plans do not know is a PlanError.

    Example:
        >>> OutputType(list[Invoice]).wanted
    """

    def __init__(self, output: type[T]) -> None:
        from pydantic import TypeAdapter

        try:
            self.wanted: Type = type_from_annotation(output)
        except (TypeError, NameError) as error:
            raise PlanError(
                "plan.unknown-output",
                f"no plan can answer with this type: {error}",
                expected="str, int, float, bool, date, datetime, a dataclass, a pydantic model, or a list of them",
                nearest=nearest_annotation(output),
            ) from None
        self._adapter = TypeAdapter(output)

    def shape_plan(self, plan: Plan, registry: Registry, known: dict[str, Type] | None = None) -> Plan:
        """The plan with answers of this type, as far as this is known before it runs.

        A branch that answers with something else, such as the words "nothing was found", is left as it is. If that goes
        for every answer of the plan, it is a PlanError.

        Args:
            plan: The plan; its references are bound.
            registry: The tools that it calls.
            known: The types of the variables before its first step.
        """
        misfits: list[Type] = []
        steps = self._shape_steps(plan.steps, Scope.from_types(known or {}), registry, plan, misfits)
        answers = sum(isinstance(step, Answer) for _, step in walk(plan.steps))
        if misfits and len(misfits) == answers:
            raise PlanError(
                "plan.wrong-output",
                f"the plan answers with {misfits[0]}, in which no {self.wanted} can be read",
                expected=str(self.wanted),
                fix="Ask for another type, or say in the request what is wanted.",
            )
        return plan if steps == plan.steps else plan.model_copy(update={"steps": steps})

    def _shape_steps(
        self, steps: tuple[Any, ...], scope: Scope, registry: Registry, plan: Plan, misfits: list[Type]
    ) -> tuple[Any, ...]:
        shaped: list[Any] = []
        for step in steps:
            match step:
                case Answer():
                    shaped += self._shape_answer(step, scope, plan, misfits)
                    continue
                case When():
                    blocks = (step.steps, step.otherwise)
                    inner = [self._shape_steps(each, scope, registry, plan, misfits) for each in blocks]
                    shaped.append(step.model_copy(update={"steps": inner[0], "otherwise": inner[1]}))
                case _:
                    # No answer stands in a loop.
                    shaped.append(step)
            _, scope = check_step(step, scope, registry, "")
        return tuple(shaped)

    def _shape_answer(self, step: Answer, scope: Scope, plan: Plan, misfits: list[Type]) -> list[Any]:
        given = type_of(step.value, scope) or ANY
        if is_compatible(given, self.wanted):
            return [step]
        if not any(isinstance(each, StrType | AnyType) for each in iter_types(given)):
            misfits.append(given)
            return [step]
        taken = {*(getattr(each, "name", None) for _, each in walk(plan.steps)), *scope.variables}
        name = next(each for each in ("output", *(f"output_{n}" for n in range(2, 1000))) if each not in taken)
        # The goal of a plan is the user's request, or the author's own text: nobody else wrote the instruction.
        instruction = Const(value=plan.goal or "what the text says")
        read = Extract(name=name, source=step.value, instruction=instruction, type=type_to_json(self.wanted))
        return [read, Answer(value=Ref(name=name))]

    def convert(self, outcome: RunOutcome) -> TypedOutcome[T]:
        """The outcome with its answer as an object of this type, or a `Failed` that says what does not fit."""
        if not isinstance(outcome, Finished):
            return outcome
        if reason := mismatch(outcome.answer, self.wanted, "the answer"):
            return self._failed(outcome, reason)
        try:
            value = self._adapter.validate_python(outcome.answer)
        except Exception as error:
            # What the type itself demands, such as a number above zero, or whatever else its own code raises: the run
            # has ended, and what it did must be told. Of the fault only places are: a message would quote the answer.
            places = [".".join(map(str, each["loc"])) for each in _faults(error)]
            where = ", ".join(dict.fromkeys(filter(None, places))) or type(error).__name__
            return self._failed(outcome, f"the answer does not keep the rules of the type ({where})")
        facts = {name: getattr(outcome, name) for name in Finished.__dataclass_fields__}
        return TypedFinished(**facts, value=value)

    def _failed(self, outcome: Finished, reason: str) -> Failed:
        error = RunError(
            "run.wrong-output",
            f"{reason}; it was not converted",
            expected=str(self.wanted),
            fix="Say in the request what is wanted, or leave `output` out and look at the answer.",
        )
        kept = ("effects", "written", "usage", "alerts", "doubts", "citations")
        return Failed(outcome.run, error, "", outcome.seconds, **{name: getattr(outcome, name) for name in kept})


def _faults(error: Exception) -> list[Any]:
    from pydantic import ValidationError

    return list(error.errors()) if isinstance(error, ValidationError) else []
