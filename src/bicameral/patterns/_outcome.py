"""How a strategy, a pattern or a reasoning ends, and the trace of a pattern.

There is one `Outcome`: `Answered`, `Exhausted` (a limit was reached) or `GaveUp`. `outcome_of` is the one way from the
end of a run to it. The trace holds names, numbers and labels, in order, and no word of an untrusted text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

from bicameral.errors import BicameralError, RunError
from bicameral.labels import UNKNOWN, Label, Labelled, LabelTree, make_labelled
from bicameral.limits import Bound, BudgetSpent, LimitReached, LimitUsage, Scope
from bicameral.models import Chamber, Usage
from bicameral.runs import (
    Doubt,
    EffectDone,
    Ending,
    Failed,
    Finished,
    Interrupted,
    RunOutcome,
    Stopped,
    Waiting,
    ending_of_error,
)

if TYPE_CHECKING:
    from bicameral.patterns._reasoner_types import Round
    from bicameral.patterns._strategy_choice import StrategyChoice
    from bicameral.patterns._strategy_types import ModelTurn


@dataclass(frozen=True, slots=True)
class ModelCallEvent:
    """A model was asked: as which participant, in which chamber, under which label, and what that took."""

    at: str
    """The part of the pattern, as a path: `worker 2/`, or nothing for the pattern itself."""
    participant: str
    chamber: Chamber
    model: str
    read: Label
    usage: Usage
    seconds: float
    prefix: str = ""
    """A fingerprint of the beginning of the prompt that is always the same."""

    def to_json(self) -> dict[str, Any]:
        return {
            "asked": self.participant,
            "at": self.at,
            "chamber": self.chamber,
            "model": self.model,
            "trusted": self.read.trusted,
            "prompt_tokens": self.usage.prompt,
            "cached_tokens": self.usage.cached,
            "output_tokens": self.usage.output,
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True, slots=True)
class ToolCallEvent:
    """A tool was called, or was to be: `error` is the code of what came instead of a result."""

    at: str
    tool: str
    label: Label
    seconds: float
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        facts = {"called": self.tool, "at": self.at, "trusted": self.label.trusted, "seconds": round(self.seconds, 3)}
        return facts | ({"error": self.error} if self.error else {})


@dataclass(frozen=True, slots=True)
class NoteEvent:
    """An event that the pattern itself records, in names and numbers."""

    at: str
    what: str
    facts: dict[str, str | int | float | bool] = field(default_factory=dict[str, Any])

    def to_json(self) -> dict[str, Any]:
        return {"noted": self.what, "at": self.at, **self.facts}


TraceEvent = ModelCallEvent | ToolCallEvent | NoteEvent
Trace = tuple[TraceEvent, ...]
PARTIAL_NOTE: Final = "partial"
"""The note of a pattern, or of a part, that answered at its limit with what it had found."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    """What every outcome has: what was done on the way, whether or not there is an answer."""

    run: str
    """The id of its run in the journal; of a reasoning its own id."""
    way: str
    """The strategy, the id of the pattern, or `reason`."""
    taken: LimitUsage
    effects: tuple[EffectDone, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    """What the answer and the effects rest on and may be wrong; to be shown before them."""
    turns: tuple[ModelTurn, ...] = ()
    """The replies of models, if it was a strategy."""
    choice: StrategyChoice | None = None
    """How the strategy was chosen, if it was one."""
    trace: Trace = ()
    """What happened in order, if it was a pattern."""
    rounds: tuple[Round, ...] = ()
    """The rounds, if it was a reasoning."""
    left_open: tuple[str, ...] = ()
    """Steps of a plan that came to no end of their own."""

    @property
    def model_calls(self) -> tuple[ModelCallEvent, ...]:
        """The calls of models in the trace."""
        return tuple(moment for moment in self.trace if isinstance(moment, ModelCallEvent))

    @property
    def tool_calls(self) -> tuple[ToolCallEvent, ...]:
        """The calls of tools in the trace."""
        return tuple(moment for moment in self.trace if isinstance(moment, ToolCallEvent))

    @property
    def partial(self) -> bool:
        """Whether a pattern, or a part of it, reached a limit and answered with what it had found."""
        return any(isinstance(moment, NoteEvent) and moment.what == PARTIAL_NOTE for moment in self.trace)

    @property
    def ok(self) -> bool:
        return isinstance(self, Answered)

    @property
    def ending(self) -> Ending:
        """How it ended, in the words that all commands and runs share."""
        if isinstance(self, GaveUp):
            return ending_of_error(self.error, effects=bool(self.effects))
        return "answered" if self.ok else "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered(_Ended, Generic[T]):
    """There is an answer; `shade` are its labels.

    `labelled` is the way into what comes next: another run, pattern, strategy or tool. `value` has no label and is for
    showing to the person; giving it to a model or a tool would drop its label.
    """

    value: T
    shade: LabelTree

    @property
    def answer(self) -> T:
        """The value."""
        return self.value

    @property
    def labelled(self) -> Labelled[T]:
        """The value with its labels, closed."""
        return make_labelled(self.value, self.shade)

    @property
    def label(self) -> Label:
        return self.shade.flat


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhausted(_Ended):
    """A limit was reached before there was an answer: `spent` of `limit`. What was done before that is in `effects`."""

    bound: Bound
    spent: float
    limit: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GaveUp(_Ended):
    """The work ended without an answer: something was not allowed, a person refused or could not be asked, a model or a
    tool failed, no plan was found, or it was stopped (`run.stopped`, `reason.interrupted`).
    """

    error: BicameralError
    in_flight: tuple[str, ...] = ()
    """Steps that had begun and not ended; of an effect among them nobody knows whether it happened."""


Outcome: TypeAlias = Answered[T] | Exhausted | GaveUp


def outcome_of(
    ended: RunOutcome, *, limits: Scope | None, subject: str, waits: RunError | None = None, **course: Any
) -> Outcome[Any]:
    """The outcome of work that was a run.

    Args:
        limits: The scope whose limits end it as `Exhausted`, as a spent budget then does; None if none do.
        subject: What the errors call the work.
        waits: The error if the run waits for a person. A conversation cannot be resumed, so whoever is asked in one
            cannot let it wait.
        course: What else the outcome says: `way`, `taken`, and what happened.
    """
    common: dict[str, Any] = {"run": ended.run, "effects": ended.effects, "doubts": ended.doubts, **course}
    match ended:
        case Finished(answer=answer, shade=shade):
            # Only a `Finished` makes an `Answered`: its answer was released there. Without a label nobody trusts it.
            return Answered(value=answer, shade=UNKNOWN if shade is None else shade, **common)
        case Failed(error=LimitReached(scope=scope) as error) if scope is limits:
            return Exhausted(bound=error.bound, spent=error.spent, limit=error.limit, **common)
        case Failed(error=BudgetSpent() as error) if limits is not None:
            return Exhausted(bound=error.bound, spent=error.spent, limit=error.limit, **common)
        case Failed(error=error) | Interrupted(error=error):
            return GaveUp(error=error, **common)
        case Stopped(in_flight=in_flight):
            return GaveUp(error=RunError("run.stopped", f"{subject} was stopped"), in_flight=in_flight, **common)
        case Waiting():
            return GaveUp(error=waits or RunError("run.waits", f"{subject} waits"), **common)
