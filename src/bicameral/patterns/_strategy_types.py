"""Phases, parameters and turns of strategies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from bicameral.errors import ConfigError, nearest_name
from bicameral.labels import Label, remember_released
from bicameral.limits import PlanningRole
from bicameral.models import Chamber, Route, Usage

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
"""The role of a model call in each phase. The loop of native ReAct reasons while it acts: its role is `reasoning`."""


@dataclass(frozen=True, slots=True)
class StrategyParams:
    """The settings of a strategy.

    Args:
        max_step_iterations: How many rounds one step of a plan may take.
        max_steps: How many steps a plan may have.
        reflect_every_step: Whether SPAR reflects after each step, or only at the end.
        phase_models: A model alias for a phase, as a call would name it. The phase map of a profile belongs to the
            router and is not repeated here.
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
    """The strategy with this name; an error with the nearest name if there is none."""
    if name in STRATEGIES:
        return name
    raise ConfigError(
        "strategy.unknown",
        f"there is no strategy {name!r}",
        expected=f"one of {', '.join(STRATEGIES)}",
        nearest=nearest_name(name, STRATEGIES),
    )


@dataclass(frozen=True, slots=True)
class ModelTurn:
    """One reply of a model.

    Args:
        model: The model that replied; `route` says how a router chose it.
        read: The join of the labels of everything that the model had read.
        calls: The names of the tools that it asked for.
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
        # The text leaves here without its label. It is remembered, so that it cannot come back as the user's own words.
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
