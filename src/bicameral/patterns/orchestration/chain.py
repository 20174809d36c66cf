"""O2, prompt chaining: a fixed row of patterns, each of which gets the result of the one before and nothing else.

Use it where the steps can be listed before the input is read. `a.then(b)` and `a | b` make one; gates check what passes
from one step to the next. Which step comes next is decided by code alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, ParamSpec, TypeVar, cast

from bicameral.errors import CatalogError, RunError
from bicameral.patterns.kernel import Context, Labelled, Pattern

P = ParamSpec("P")
T = TypeVar("T")

GateCheck = Callable[[Any], str | None]
"""Gets the value that is to pass on. None lets it pass; a text says what is wrong with it, in words of the program."""


@dataclass(frozen=True)
class Chain(Pattern[P, T], Generic[P, T]):
    """Steps in order, each in its own part: it reads its input, and nothing else of the chain.

    Args:
        steps: The patterns, the first of which gets the arguments of the chain.
        gates: A check behind a step, by its number from 0 on.
        max_retries: How often one gate may send its step back. The step is run again from its own input.

    Example:
        >>> chain = Chain.of(ReWOO(), OutputTemplate(form)).with_gate(0, lambda text: None if text else "it is empty")
    """

    id: ClassVar[str] = "O2"
    steps: tuple[Pattern[..., Any], ...]
    gates: Mapping[int, GateCheck] = field(default_factory=dict[int, GateCheck])
    max_retries: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if unknown := sorted(set(self.gates) - set(range(len(self.steps)))):
            raise CatalogError(
                "pattern.bad-knob",
                f"O2: there is a gate behind step {unknown[0]}",
                expected=f"0 to {len(self.steps) - 1}",
                fix="Steps are counted from 0 on.",
            )

    @classmethod
    def of(cls, first: Pattern[P, Any], *following: Pattern[..., Any]) -> Chain[P, Any]:
        """A chain of these. A chain among them is taken apart, so that the order of `|` makes no difference."""
        steps: list[Pattern[..., Any]] = []
        gates: dict[int, GateCheck] = {}
        retries = cls.max_retries
        for each in (first, *following):
            if isinstance(each, Chain):
                inner = cast("Chain[..., Any]", each)
                gates |= {len(steps) + number: gate for number, gate in inner.gates.items()}
                steps += inner.steps
                retries = max(retries, inner.max_retries)
            else:
                steps.append(each)
        return cls(tuple(steps), gates, retries)

    def with_gate(self, behind: int, check: GateCheck) -> Chain[P, T]:
        """This chain with a check of what the step gives."""
        return Chain(self.steps, {**self.gates, behind: check}, self.max_retries)

    @property
    def knobs(self) -> Mapping[str, Any]:
        return {"stages": max(2, len(self.steps)), "max_retries": self.max_retries}

    async def execute(self, context: Context, /, *args: P.args, **kwargs: P.kwargs) -> Labelled[T]:
        value = await self._step(context, 0, args, kwargs)
        for number in range(1, len(self.steps)):
            value = await self._step(context, number, (value,), {})
        return value

    async def _step(
        self, context: Context, number: int, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Labelled[Any]:
        """The result of a step that its gate lets pass; the run fails if none does."""
        step, gate = self.steps[number], self.gates.get(number)
        complaint = ""
        for _ in range(1 + self.max_retries):
            value = await context.run_pattern(f"{number + 1} {step.id}", step, *args, **kwargs)
            if gate is None:
                return value
            # The verdict is about the value, so that everything behind the gate has its label.
            found = gate(context.read(value))
            context.note("gate", step=number + 1, passed=found is None)
            if found is None:
                return value
            complaint = found
        raise RunError(
            "pattern.gate-failed",
            f"what step {number + 1} ({step.id}) gave does not pass: {complaint}",
            fix="The run has what it gave: `bicameral runs show`.",
        )
