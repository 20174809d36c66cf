"""How work with a strategy ends, and what each model call of it was."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bicameral.errors import BicameralError
from bicameral.labels import UNKNOWN, Label, Labelled, Shade, labelled, release
from bicameral.models import Chamber, Route, Usage
from bicameral.runs import EffectDone

from ._bounds import Bound, Taken
from ._phases import PhaseName, StrategyName


@dataclass(frozen=True, slots=True)
class Turn:
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
        release(self.text, self.read)

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
    shade: Shade | None
    turns: tuple[Turn, ...]
    taken: Taken
    effects: tuple[EffectDone, ...] = ()
    left_open: tuple[str, ...] = ()

    @property
    def labelled(self) -> Labelled[Any]:
        """The answer with its labels, closed: the way into another run, strategy or pattern. `answer` is naked."""
        return labelled(self.answer, UNKNOWN if self.shade is None else self.shade)

    @property
    def ok(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Exhausted:
    """A bound was reached before there was an answer. What was done before that is in `effects`."""

    run: str
    strategy: StrategyName
    bound: Bound
    spent: float
    limit: float
    turns: tuple[Turn, ...]
    taken: Taken
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
    turns: tuple[Turn, ...]
    taken: Taken
    effects: tuple[EffectDone, ...] = ()
    in_flight: tuple[str, ...] = ()
    """Steps that had begun and not ended; of an effect among them nobody knows whether it happened."""

    @property
    def ok(self) -> bool:
        return False


Worked = Answered | Exhausted | GaveUp
