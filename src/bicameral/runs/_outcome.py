"""How a run ends, and what it tells while it goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bicameral.errors import BicameralError
from bicameral.labels import Shade
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


def _no_places() -> Any:
    """The labels of the places that a run wrote to, for a run that goes on from it; none unless it wrote."""
    return field(default_factory=dict[str, Shade], repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Finished:
    """The run came to its answer; `shade` are the labels of the answer, unless labels were off."""

    run: str
    answer: Any
    seconds: float
    effects: tuple[EffectDone, ...] = ()
    shade: Shade | None = None
    written: Mapping[str, Shade] = _no_places()
    usage: RunUsage = field(default_factory=RunUsage)
    alerts: tuple[RunAlert, ...] = ()

    @property
    def ok(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Failed:
    """A step failed; what had been done before it is in `effects`, and nothing after it was begun."""

    run: str
    error: BicameralError
    step: str
    seconds: float
    effects: tuple[EffectDone, ...] = ()
    written: Mapping[str, Shade] = _no_places()
    usage: RunUsage = field(default_factory=RunUsage)
    alerts: tuple[RunAlert, ...] = ()

    @property
    def ok(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Stopped:
    """The run was stopped from outside; `in_flight` are the steps that had begun and not ended.

    Of an effect among them nobody knows whether it happened.
    """

    run: str
    in_flight: tuple[str, ...]
    seconds: float
    effects: tuple[EffectDone, ...] = ()
    written: Mapping[str, Shade] = _no_places()
    usage: RunUsage = field(default_factory=RunUsage)
    alerts: tuple[RunAlert, ...] = ()

    @property
    def ok(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Waiting:
    """The run waits for a person, without a process: for a yes to the calls of a `question`, or a reply to an `ask`.

    Nothing is under way. `resume_plan` takes it up, in any process, with an approver or asker that has the answer.
    """

    run: str
    question: Question | None
    ask: PendingAsk | None
    seconds: float
    effects: tuple[EffectDone, ...] = ()
    written: Mapping[str, Shade] = _no_places()
    usage: RunUsage = field(default_factory=RunUsage)
    alerts: tuple[RunAlert, ...] = ()

    @property
    def ok(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Interrupted:
    """This attempt at the run ended, and the run did not: its record could not be written, or somebody else has it.

    Nothing was done that is not in the record. `effects` are those this process knows of, and `resume_plan` takes the
    run up.
    """

    run: str
    error: BicameralError
    seconds: float = 0.0
    effects: tuple[EffectDone, ...] = ()
    written: Mapping[str, Shade] = _no_places()
    usage: RunUsage = field(default_factory=RunUsage)
    alerts: tuple[RunAlert, ...] = ()

    @property
    def ok(self) -> bool:
        return False


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
