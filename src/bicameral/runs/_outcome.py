"""How a run ends, and what it tells while it goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bicameral.errors import BicameralError
from bicameral.labels import UNKNOWN, Labelled, Shade, labelled, release
from bicameral.tools import Effect

from ._approvals import Question
from ._suspend import PendingAsk
from ._usage import RunAlert, RunUsage


@dataclass(frozen=True, slots=True)
class EffectDone:
    """A change to the world that a run made."""

    step: str
    tool: str
    effect: Effect


@dataclass(frozen=True, slots=True)
class _Ended:
    """What is known of every run that is over, or at rest: what it changed, what it took, what was noticed."""

    run: str
    effects: tuple[EffectDone, ...] = field(default=(), kw_only=True)
    written: Mapping[str, Shade] = field(default_factory=dict[str, Shade], repr=False, compare=False, kw_only=True)
    """The labels of the places that it wrote to, for a run that goes on from it."""
    usage: RunUsage = field(default_factory=RunUsage, kw_only=True)
    alerts: tuple[RunAlert, ...] = field(default=(), kw_only=True)

    @property
    def ok(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Finished(_Ended):
    """The run came to its answer; `shade` are the labels of the answer, unless labels were off.

    `answer` is naked, to be shown to the person; `labelled` is the way into another run, strategy or pattern.
    """

    answer: Any
    seconds: float
    shade: Shade | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        # Every outcome of a plan, a strategy, a reasoning or a pattern begins as one of these.
        release(self.answer, UNKNOWN if self.shade is None else self.shade)

    @property
    def labelled(self) -> Labelled[Any]:
        """The answer with its labels, closed; the worst is assumed where there are none."""
        return labelled(self.answer, UNKNOWN if self.shade is None else self.shade)

    @property
    def ok(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Failed(_Ended):
    """A step failed; what had been done before it is in `effects`, and nothing after it was begun."""

    error: BicameralError
    step: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Stopped(_Ended):
    """The run was stopped from outside; `in_flight` are the steps that had begun and not ended.

    Of an effect among them nobody knows whether it happened.
    """

    in_flight: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Waiting(_Ended):
    """The run waits for a person, without a process: for a yes to the calls of a `question`, or a reply to an `ask`.

    Nothing is under way. `resume_plan` takes it up, in any process, with an approver or asker that has the answer.
    """

    question: Question | None
    ask: PendingAsk | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Interrupted(_Ended):
    """This attempt at the run ended, and the run did not: its record could not be written, or somebody else has it.

    Nothing was done that is not in the record. `effects` are those this process knows of, and `resume_plan` takes the
    run up.
    """

    error: BicameralError
    seconds: float = 0.0


ProgressKind = Literal["started", "finished", "failed", "retrying"]

RunOutcome = Finished | Failed | Stopped | Waiting | Interrupted


@dataclass(frozen=True, slots=True)
class Progress:
    """What an observer is told: a step began, ended, failed, or is tried again."""

    kind: ProgressKind
    step: str
    what: str
    seconds: float = 0.0
    facts: dict[str, Any] = field(default_factory=dict[str, Any])


Observer = Callable[[Progress], None]
