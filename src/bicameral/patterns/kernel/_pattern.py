"""The base class of every pattern, its run with record, approvals and limits, its outcomes, and runnable examples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, ParamSpec, TypeVar

from bicameral.errors import BicameralError, CatalogError, LabelError, RunError
from bicameral.labels import UNKNOWN, Label, Labelled, LabelTree, listen_for_escapes, make_labelled, open_labelled
from bicameral.limits import STRATEGY, Bound, BudgetSpent, LimitReached, LimitUsage, Meter, Scope
from bicameral.patterns.kernel._context import Context, SharedState
from bicameral.patterns.kernel._conversation import ModelCallEvent, ToolCallEvent, Trace
from bicameral.patterns.strategies import CarefulDecider, Runtime
from bicameral.runs import (
    CallGate,
    Decider,
    EffectDone,
    Failed,
    Finished,
    Interrupted,
    LiveEffectHandler,
    PolicyDecider,
    RunOutcome,
    Stopped,
    Waiting,
    run_workload,
)
from bicameral.tools import Tool

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bicameral.catalog import PatternFacts
    from bicameral.patterns.kernel._context import Context
    from bicameral.patterns.strategies import Runtime


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _PatternEnd:
    run: str
    pattern: str
    trace: Trace
    taken: LimitUsage
    effects: tuple[EffectDone, ...]

    @property
    def model_calls(self) -> tuple[ModelCallEvent, ...]:
        """The calls of models."""
        return tuple(moment for moment in self.trace if isinstance(moment, ModelCallEvent))

    @property
    def tool_calls(self) -> tuple[ToolCallEvent, ...]:
        """The calls of tools."""
        return tuple(moment for moment in self.trace if isinstance(moment, ToolCallEvent))


@dataclass(frozen=True, slots=True)
class Answered(_PatternEnd, Generic[T]):
    """There is a value; `shade` are its labels.

    `make_labelled` is the way into what comes next: another pattern, a strategy, a tool. `value` has no label and is
    for showing to the person; giving it to a model or a tool would drop its label.
    """

    value: T
    shade: LabelTree

    @property
    def labelled(self) -> Labelled[T]:
        """The value with its labels, closed."""
        return make_labelled(self.value, self.shade)

    @property
    def label(self) -> Label:
        return self.shade.flat

    @property
    def ok(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Exhausted(_PatternEnd):
    """A bound was reached before there was a value."""

    bound: Bound
    spent: float
    limit: float

    @property
    def ok(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class GaveUp(_PatternEnd):
    """There is no way on: something must not be, a person said no, a model or a tool failed, or it was stopped."""

    error: BicameralError
    in_flight: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return False


Outcome = Answered[T] | Exhausted | GaveUp


_NO_USAGE = LimitUsage(scope=STRATEGY)


async def run_pattern(
    pattern: str, knobs: Mapping[str, Any], desk: Runtime, work: Callable[[Context], Awaitable[Labelled[T]]]
) -> Outcome[T]:
    """Let `work` have a stage, and say how it ended. Stopping the task that awaits this gives a `GaveUp`.

    Calls of tools are judged strictly, whatever the mode.
    """
    judge = CarefulDecider(desk.policy) if desk.careful else PolicyDecider(desk.policy, "strict")
    shows: list[_PatternRun] = []

    def make(hands: LiveEffectHandler) -> _PatternRun:
        shows.append(_PatternRun(desk, judge, hands, work))
        return shows[0]

    outcome = await run_workload(
        make,
        lambda: _run_facts(pattern, knobs, desk, judge),
        journal=desk.journal,
        observer=desk.observer,
        approver=desk.approver,
        told={"bicameral.pattern": pattern},
        meter=Meter(desk.caps),
    )
    return _pattern_outcome(outcome, pattern, shows[0] if shows else None)


@dataclass(slots=True)
class _PatternRun:
    """One pattern being run."""

    desk: Runtime
    judge: Decider
    hands: LiveEffectHandler
    work: Callable[[Context], Awaitable[Labelled[Any]]]
    stage: Context | None = None
    given: Labelled[Any] | None = None
    written: dict[str, LabelTree] = field(default_factory=dict[str, LabelTree])

    async def run(self) -> Any:
        desk = self.desk
        meter = Meter(desk.bounds)
        door = CallGate(self.judge, self.hands)
        shared = SharedState(desk.models, door, self.hands, desk.registry, written=self.written, audience=desk.audience)
        self.stage = Context(shared, meter)
        async with meter.running():
            with listen_for_escapes(shared.note_escape):
                given = await self.work(self.stage)
        # Which value it is was decided with everything that was opened on the way.
        self.given = given.with_label(self.stage.read_label)
        return open_labelled(self.given)

    @property
    def answer_labels(self) -> LabelTree | None:
        return None if self.given is None else self.given.label_tree


def _run_facts(pattern: str, knobs: Mapping[str, Any], desk: Runtime, judge: Decider) -> dict[str, Any]:
    return {
        "request": f"pattern {pattern}",
        "intent": None,
        "pattern": pattern,
        "knobs": dict(knobs),
        "bounds": desk.bounds.to_json(),
        "tools": {tool.name: tool.fingerprint for tool in desk.registry},
        "policy": judge.fingerprint,
        "mode": judge.mode,
    }


def _pattern_outcome(outcome: RunOutcome, pattern: str, show: _PatternRun | None) -> Outcome[Any]:
    stage = None if show is None else show.stage
    trace = () if stage is None else tuple(stage.shared.trace)
    taken = _NO_USAGE if stage is None else stage.meter.usage
    match outcome:
        case Finished(run=run, answer=answer, shade=shade, effects=effects):
            # Without a label it would be trusted by nobody.
            return Answered(run, pattern, trace, taken, effects, answer, UNKNOWN if shade is None else shade)
        case Failed(
            run=run,
            error=(LimitReached(scope=Scope(reached_code="strategy.exhausted")) | BudgetSpent()) as error,
            effects=effects,
        ):
            return Exhausted(run, pattern, trace, taken, effects, error.bound, error.spent, error.limit)
        case Failed(run=run, error=error, effects=effects) | Interrupted(run=run, error=error, effects=effects):
            return GaveUp(run, pattern, trace, taken, effects, error)
        case Stopped(run=run, effects=effects, in_flight=in_flight):
            return GaveUp(run, pattern, trace, taken, effects, RunError("run.stopped", "it was stopped"), in_flight)
        case Waiting(run=run, effects=effects):
            # A pattern cannot be resumed, so whoever is asked in one cannot let it wait.
            return GaveUp(run, pattern, trace, taken, effects, RunError("run.waits", "it waits"))


P = ParamSpec("P")


class Pattern(ABC, Generic[P, T]):
    """A pattern with its knobs, ready to run: a frozen dataclass whose fields are the knobs.

    `run` makes a recorded run of it, with a result that has labels, trace and cost. Inside another pattern it is its
    `on` that is called, with a part of the stage: the run, its bounds and its record are then those of the whole.
    """

    id: ClassVar[str]

    @abstractmethod
    async def execute(self, stage: Context, /, *args: P.args, **kwargs: P.kwargs) -> Labelled[T]:
        """Do it on a stage."""

    async def run(self, desk: Runtime, /, *args: P.args, **kwargs: P.kwargs) -> Outcome[T]:
        """Do it as a run of its own. Texts come in with their labels: whose a naked one is, nobody could say."""
        if any(isinstance(each, str) for each in (*args, *kwargs.values())):
            raise LabelError(
                "labels.naked",
                f"{self.id} was given a naked text",
                expected="a labelled value",
                fix="Use `said` for a literal, `from_user` for what the user gave, and of an outcome `labelled`.",
            )
        return await run_pattern(self.id, self.knobs, desk, lambda stage: self.execute(stage, *args, **kwargs))

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


def no_tools(folder: Path) -> Sequence[Tool]:
    return ()


@dataclass(frozen=True, slots=True)
class PatternExample:
    """An example of a pattern, run in a folder of its own.

    `sizes` are what the cost model needs to know beforehand, by the names that the pattern's cost is told in: numbers,
    or texts that are counted with the model's own tokenizer.
    """

    about: str
    make: Callable[[Path], Pattern[..., Any]]
    arguments: Callable[[Path], tuple[Any, ...]]
    is_correct: Callable[[Answered[Any]], bool]
    sizes: Callable[[Path], Mapping[str, int | float | str]]
    tools: Callable[[Path], Sequence[Tool]] = no_tools
    model: str = "0.5b"
    """The smallest of the local models that it comes out right with."""
