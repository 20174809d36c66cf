"""Limits, phases, parameters and outcomes of strategies, and the meter that counts against the limits.

Nothing is begun beyond a limit. What a part takes is also taken from the whole that is above it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from bicameral.errors import BicameralError, ConfigError, RunError, nearest_name
from bicameral.labels import UNKNOWN, Label, Labelled, LabelTree, make_labelled, remember_released
from bicameral.models import Chamber, Route, Usage
from bicameral.runs import EffectDone
from bicameral.sessions import ChamberUsage, Ledger, PlanningRole, Role

StrategyLimitName = Literal["rounds", "calls", "tool_calls", "tokens", "seconds"]
"""What is bounded here. A round is one reply of a model that may ask for tools, and the calls it asks for."""
LimitName = StrategyLimitName | Literal["money"]
"""What a strategy can run out of; money is bounded by budgets alone."""
STRATEGY_LIMITS: tuple[StrategyLimitName, ...] = get_args(StrategyLimitName)


@dataclass(frozen=True, slots=True)
class StrategyLimits:
    """How much may be taken of each, both models together; nothing is begun beyond that."""

    rounds: int = 30
    calls: int = 100
    tool_calls: int = 100
    tokens: int = 500_000
    seconds: float = 900.0

    def __post_init__(self) -> None:
        for name in STRATEGY_LIMITS:
            if not getattr(self, name) > 0:
                raise RunError("strategy.bad-bound", f"{name} is {getattr(self, name)!r}", expected="more than 0")


@dataclass(frozen=True, slots=True)
class StrategyUsage:
    """How much has been taken."""

    rounds: int
    tool_calls: int
    models: ChamberUsage
    seconds: float

    @property
    def calls(self) -> int:
        return self.models.calls

    @property
    def tokens(self) -> int:
        return self.models.tokens

    def to_json(self) -> dict[str, Any]:
        counts = {name: getattr(self, name) for name in ("rounds", "calls", "tool_calls", "tokens")}
        return {**counts, "seconds": round(self.seconds, 3), **self.models.to_json()}


class LimitReached(RunError):
    """A bound was reached: `spent` of `limit`."""

    def __init__(self, bound: LimitName, spent: float, limit: float) -> None:
        super().__init__(
            "strategy.exhausted",
            f"there is no answer within {limit:g} {bound.replace('_', ' ')} (taken: {spent:g})",
            fix="Allow more, or ask for less.",
        )
        self.bound: LimitName = bound
        self.spent = spent
        self.limit = limit
        self.meter: StrategyMeter | None = None
        """Whose bound it was, where somebody counted."""


class StrategyMeter:
    """Counts what one conversation takes, and refuses whatever would go beyond its bounds before it begins.

    What is taken of a part is also taken of the whole that is `above` it.
    """

    def __init__(self, bounds: StrategyLimits, ledger: Ledger, above: StrategyMeter | None = None) -> None:
        self.bounds = bounds
        self._ledger = ledger
        self._above = above
        self._started = time.monotonic()
        self._begun = 0
        self._rounds = 0
        self._tool_calls = 0

    @property
    def usage(self) -> StrategyUsage:
        return StrategyUsage(self._rounds, self._tool_calls, self._ledger.spent, time.monotonic() - self._started)

    def __call__(self, role: Role) -> None:
        """Before each call of a model."""
        self._hold("calls", self._begun)
        self._hold("tokens", self.usage.tokens)
        self._begun += 1

    def count_round(self) -> None:
        """Before each round."""
        if self._above is not None:
            self._above.count_round()
        self._hold("rounds", self._rounds)
        self._rounds += 1

    def count_tool_call(self) -> None:
        """Before each call of a tool."""
        if self._above is not None:
            self._above.count_tool_call()
        self._hold("tool_calls", self._tool_calls)
        self._tool_calls += 1

    def out_of_time(self) -> LimitReached:
        return self._reached("seconds", self.usage.seconds)

    def is_exhausted_by(self, error: LimitReached) -> bool:
        """Whether it was a bound of this one, or of a whole around it, that was reached: not of a part of it."""
        return error.meter is self or (self._above is not None and self._above.is_exhausted_by(error))

    def _hold(self, bound: StrategyLimitName, taken: float) -> None:
        if taken >= getattr(self.bounds, bound):
            raise self._reached(bound, taken)

    def _reached(self, bound: StrategyLimitName, taken: float) -> LimitReached:
        error = LimitReached(bound, taken, getattr(self.bounds, bound))
        error.meter = self
        return error


PhaseName = Literal["sense", "plan", "act", "reflect", "final_answer"]
PHASES: tuple[PhaseName, ...] = get_args(PhaseName)

StrategyName = Literal["native_react", "plan_and_execute", "spar", "compiled"]
STRATEGIES: tuple[StrategyName, ...] = get_args(StrategyName)

PHASE_ROLES: Mapping[PhaseName, PlanningRole] = {
    "sense": "reasoning",
    "plan": "planning",
    "act": "acting",
    "reflect": "reflecting",
    "final_answer": "summarizing",
}
"""The role of a call in each phase. The loop of native ReAct thinks while it acts: its role is `reasoning`."""


@dataclass(frozen=True, slots=True)
class StrategyParams:
    """How a strategy goes about it.

    `max_step_iterations` is how many rounds one step of a plan may take, `max_steps` how many steps a plan may have,
    `reflect_every_step` whether SPAR looks back after each step or only at the end. `phase_models` names an alias for
    each phase, as a call would name it; a profile's own phase map is the router's and need not be said here.
    """

    max_step_iterations: int = 3
    max_steps: int = 8
    reflect_every_step: bool = True
    phase_models: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        for name in ("max_step_iterations", "max_steps"):
            if getattr(self, name) < 1:
                raise ConfigError("strategy.bad-param", f"{name} is {getattr(self, name)!r}", expected="at least 1")
        for phase in self.phase_models:
            if phase not in PHASES:
                raise ConfigError(
                    "routing.unknown-phase",
                    f"there is no phase {phase!r}",
                    expected=f"one of {', '.join(PHASES)}",
                    nearest=nearest_name(phase, PHASES),
                )


def strategy_by_name(name: str) -> StrategyName:
    """The strategy with this name; an error that teaches, if there is none."""
    for known in STRATEGIES:
        if name == known:
            return known
    raise ConfigError(
        "strategy.unknown",
        f"there is no strategy {name!r}",
        expected=f"one of {', '.join(STRATEGIES)}",
        nearest=nearest_name(name, STRATEGIES),
    )


@dataclass(frozen=True, slots=True)
class ModelTurn:
    """One reply of a model: in which phase, of which chamber, by whom, and under which label it was written.

    `read` is the join of everything the model had read; `calls` are the names of the tools it asked for. `model` is who
    answered, and `route` how it was chosen, where somebody chose.
    """

    number: int
    phase: PhaseName
    role: str
    chamber: Chamber
    model: str
    read: Label
    text: str
    calls: tuple[str, ...] = ()
    route: Route | None = None
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    degraded: str | None = None

    def __post_init__(self) -> None:
        remember_released(self.text, self.read)

    def to_json(self) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "turn": self.number,
            "phase": self.phase,
            "role": self.role,
            "chamber": self.chamber,
            "model": self.model,
            "trusted": self.read.trusted,
            "calls": list(self.calls),
            "prompt_tokens": self.usage.prompt,
            "output_tokens": self.usage.output,
            "seconds": round(self.seconds, 3),
        }
        if self.route is not None:
            facts["route"] = self.route.to_json()
        return facts | ({"degraded": self.degraded} if self.degraded else {})


@dataclass(frozen=True, slots=True)
class Answered:
    """There is an answer; `shade` are its labels, and `left_open` the steps that came to no end of their own."""

    run: str
    strategy: StrategyName
    answer: Any
    shade: LabelTree | None
    turns: tuple[ModelTurn, ...]
    taken: StrategyUsage
    effects: tuple[EffectDone, ...] = ()
    left_open: tuple[str, ...] = ()

    @property
    def labelled(self) -> Labelled[Any]:
        """The answer with its labels, closed: the way into another run, strategy or pattern. `answer` is naked."""
        return make_labelled(self.answer, UNKNOWN if self.shade is None else self.shade)

    @property
    def ok(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Exhausted:
    """A bound was reached before there was an answer. What was done before that is in `effects`."""

    run: str
    strategy: StrategyName
    bound: LimitName
    spent: float
    limit: float
    turns: tuple[ModelTurn, ...]
    taken: StrategyUsage
    effects: tuple[EffectDone, ...] = ()

    @property
    def ok(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class GaveUp:
    """There is no way on: a person said no or is not there, a model failed, or it was stopped (`run.stopped`)."""

    run: str
    strategy: StrategyName
    error: BicameralError
    turns: tuple[ModelTurn, ...]
    taken: StrategyUsage
    effects: tuple[EffectDone, ...] = ()
    in_flight: tuple[str, ...] = ()
    """Steps that had begun and not ended; of an effect among them nobody knows whether it happened."""

    @property
    def ok(self) -> bool:
        return False


StrategyOutcome = Answered | Exhausted | GaveUp
