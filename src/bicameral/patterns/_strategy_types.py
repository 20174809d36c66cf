"""Phases, parameters and turns of strategies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

Reading = Literal["typed", "as_needed", "open"]
"""Who continues a conversation after untrusted text has come in.

`typed`: the privileged model, which sees names and types; the quarantined model fills typed blanks. `as_needed`: the
same, and the privileged model may hand one step to the quarantined model, with the tools it names. `open`: the
quarantined model continues the whole conversation, with the request and all tools.
"""
READINGS: tuple[Reading, ...] = get_args(Reading)

MAX_HISTORY = 40_000

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
        hints: The hints that a step of the plan may begin with, as `[coding]`: roles of the user's own, and words
            that rules test.
        reading: Who continues after untrusted text has come in, see `Reading`.
        max_history: Characters of a conversation beyond which its oldest parts are shortened.
        reflect_looks: How often a reflection may look again with tools that only read.
    """

    max_step_iterations: int = 3
    max_steps: int = 8
    reflect_every_step: bool = True
    phase_models: Mapping[str, str] = field(default_factory=dict[str, str])
    hints: Sequence[str] = ()
    reading: Reading = "as_needed"
    max_history: int = MAX_HISTORY
    reflect_looks: int = 2

    def __post_init__(self) -> None:
        if self.reading not in READINGS:
            raise ConfigError(
                "strategy.bad-param",
                f"reading is {self.reading!r}",
                expected=f"one of {', '.join(READINGS)}",
                nearest=nearest_name(str(self.reading), READINGS),
            )
        if self.reflect_looks < 0:
            raise ConfigError("strategy.bad-param", f"reflect_looks is {self.reflect_looks!r}", expected="at least 0")
        for name in ("max_step_iterations", "max_steps", "max_history"):
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


AUTO = "auto"
"""Instead of the name of a strategy: one is chosen for the request."""


def phase_role(phase: str, strategy: str | None = None) -> PlanningRole | None:
    """The role of the calls in a phase; None if there is no such phase."""
    if strategy == "native_react" and phase == "act":
        return "reasoning"
    return next((role for name, role in PHASE_ROLES.items() if name == phase), None)


def strategy_by_name(name: str) -> StrategyName:
    """The strategy with this name; an error with the nearest name if there is none."""
    if name in STRATEGIES:
        return name
    known = (*STRATEGIES, AUTO)
    raise ConfigError(
        "strategy.unknown",
        f"there is no strategy {name!r}",
        expected=f"one of {', '.join(known)}",
        nearest=nearest_name(name, known),
    )


@dataclass(frozen=True, slots=True)
class ModelTurn:
    """One reply of a model.

    Args:
        model: The model that replied; `route` says how a router chose it.
        read: The join of the labels of everything that the model had read.
        calls: The names of the tools that it asked for.
        open_reason: Why a model that had read untrusted text saw more than one typed sub-task and the data; empty where
            it did not.
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
    open_reason: str = ""

    def __post_init__(self) -> None:
        # The text leaves here without its label. It is remembered, so that it cannot come back as the user's own words.
        remember_released(self.text, self.read)

    @property
    def rule_two(self) -> bool:
        """Whether the second key rule holds: who reads untrusted text sees neither the request nor any tool."""
        return not self.open_reason

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
        if self.open_reason:
            facts |= {"rule_two": False, "open_reason": self.open_reason}
        return facts | ({"degraded": self.degraded} if self.degraded else {})
