"""The base class of every pattern, its run with record, approvals and limits, its outcomes, and runnable examples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, LiteralString, ParamSpec, TypeVar

from bicameral.errors import CatalogError, LabelError
from bicameral.labels import Labelled, LabelTree, listen_for_escapes, open_labelled, program_text
from bicameral.limits import STRATEGY, LimitUsage, Meter
from bicameral.patterns._outcome import Answered, Outcome, outcome_of
from bicameral.patterns.kernel._context import Context, SharedState
from bicameral.patterns.kernel._conversation import Role
from bicameral.patterns.strategies import Runtime, run_recorded
from bicameral.runs import CallGate, Decider, LiveEffectHandler
from bicameral.tools import Tool

if TYPE_CHECKING:
    from bicameral.catalog import PatternFacts


T = TypeVar("T")


async def run_pattern(
    pattern: str, knobs: Mapping[str, Any], runtime: Runtime, work: Callable[[Context], Awaitable[Labelled[T]]]
) -> Outcome[T]:
    """Run `work` with a context, and return the outcome. Stopping the task that awaits this gives a `GaveUp`."""
    outcome, show = await run_recorded(
        lambda decider, handler: _PatternRun(runtime, decider, handler, work),
        lambda: {"request": f"pattern {pattern}", "pattern": pattern, "knobs": dict(knobs)},
        runtime,
        {"bicameral.pattern": pattern},
    )
    context = None if show is None else show.context
    return outcome_of(
        outcome,
        limits=STRATEGY,
        subject="it",
        way=pattern,
        taken=LimitUsage(scope=STRATEGY) if context is None else context.meter.usage,
        trace=() if context is None else tuple(context.shared.trace),
    )


@dataclass(slots=True)
class _PatternRun:
    """The workload of one pattern."""

    runtime: Runtime
    decider: Decider
    handler: LiveEffectHandler
    work: Callable[[Context], Awaitable[Labelled[Any]]]
    context: Context | None = None
    given: Labelled[Any] | None = None
    written_labels: dict[str, LabelTree] = field(default_factory=dict[str, LabelTree])

    async def run(self) -> Any:
        runtime = self.runtime
        meter = Meter(runtime.bounds)
        gate = CallGate(self.decider, self.handler)
        shared = SharedState(
            runtime.models,
            gate,
            self.handler,
            runtime.registry,
            written_labels=self.written_labels,
            audience=runtime.audience,
        )
        self.context = Context(shared, meter)
        async with meter.running():
            with listen_for_escapes(shared.note_escape):
                given = await self.work(self.context)
        # Whatever the pattern opened may have decided which value it returns, so its labels are joined to the answer.
        self.given = given.with_label(self.context.read_label)
        return open_labelled(self.given)

    @property
    def answer_labels(self) -> LabelTree | None:
        return None if self.given is None else self.given.label_tree


P = ParamSpec("P")


class Pattern(ABC, Generic[P, T]):
    """A pattern with its knobs, ready to run: a frozen dataclass whose fields are the knobs.

    `run` makes a recorded run of it, with an outcome that has labels, trace and cost. Another pattern calls `execute`
    with a part of its context: the run, its limits and its record are then those of the whole.
    """

    id: ClassVar[str]

    @abstractmethod
    async def execute(self, context: Context, /, *args: P.args, **kwargs: P.kwargs) -> Labelled[T]:
        """Do the work in a context."""

    async def run(self, runtime: Runtime, /, *args: P.args, **kwargs: P.kwargs) -> Outcome[T]:
        """Do the work as a run of its own. Texts must have labels: the source of one without is unknown."""
        if any(isinstance(each, str) for each in (*args, *kwargs.values())):
            raise LabelError(
                "labels.naked",
                f"{self.id} was given a naked text",
                expected="a labelled value",
                fix="Use `program_text` for a literal, `from_user` for what the user gave, `labelled` of an outcome.",
            )
        return await run_pattern(self.id, self.knobs, runtime, lambda context: self.execute(context, *args, **kwargs))

    @property
    def facts(self) -> PatternFacts:
        """What the catalogue says of it."""
        from bicameral.catalog import catalog

        return catalog().pattern(self.id)

    @property
    def knobs(self) -> Mapping[str, Any]:
        """The knobs that the catalogue knows, as they are set."""
        assert is_dataclass(self)
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name in self.facts.knobs}

    def architecture(self) -> Mapping[str, Any]:
        """This pattern as a stack of one, for the linter and the cost model."""
        return {"name": self.facts.name, "patterns": [{self.id: dict(self.knobs)}]}

    def __post_init__(self) -> None:
        for name, value in self.knobs.items():
            knob = self.facts.knobs[name]
            if isinstance(value, int | float) and not isinstance(value, bool):
                low, high = knob.least, knob.most
                if (low is not None and value < low) or (high is not None and value > high):
                    raise CatalogError(
                        "pattern.bad-knob",
                        f"{self.id}: {name} is {value}",
                        expected=f"{low if low is not None else 'anything'} to {high if high is not None else 'any'}",
                        fix=f"`bicameral patterns show {self.id}` says what {name} is.",
                    )


Responder = Role | Pattern[[Labelled[str]], Any]


async def ask_responder(context: Context, responder: Responder, text: Labelled[str]) -> Labelled[Any]:
    """The reply of a role, or the result of a pattern, that is given this text and nothing else."""
    return await (context.ask(responder, text) if isinstance(responder, Role) else responder.execute(context, text))


@dataclass(frozen=True, slots=True)
class PatternExample:
    """An example of a pattern, run in a folder of its own.

    Args:
        task: The text that the pattern is given, or a function that makes its arguments.
        sizes: What the cost model needs to know beforehand, by the names in the pattern's cost: numbers, or texts that
            are counted with the model's own tokenizer.
        model: The smallest of the local models that it comes out right with.
    """

    about: str
    make: Callable[[Path], Pattern[..., Any]]
    task: LiteralString | Callable[[Path], tuple[Any, ...]]
    is_correct: Callable[[Answered[Any]], bool]
    sizes: Callable[[Path], Mapping[str, int | float | str]]
    tools: Callable[[Path], Sequence[Tool]] = lambda folder: ()
    model: str = "0.5b"

    def arguments(self, folder: Path) -> tuple[Any, ...]:
        """What the pattern is given."""
        return self.task(folder) if callable(self.task) else (program_text(self.task),)
