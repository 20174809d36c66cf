"""V14, trajectory logging: the spans of another pattern as one tree, with notes as events and a word on what to keep.

Every run is recorded in its journal, completely and before anything happens: that is the audit record, and an action
that cannot be recorded does not run. Besides it each part, model call, decision and tool call has a span, which goes
wherever OpenTelemetry sends it; a failure there changes nothing. This pattern adds the root of a task. When it has
ended, the root says whether its trace is to be kept: always if something failed, was refused or reached a limit, and
otherwise for a share of all traces, as a collector that decides on whole traces can read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, ParamSpec, TypeVar

from bicameral.errors import BicameralError
from bicameral.patterns._outcome import NoteEvent, ToolCallEvent, TraceEvent
from bicameral.patterns.kernel import Context, Labelled, Pattern, PatternExample
from bicameral.patterns.kernel._parts import NEAR_LIMIT
from bicameral.patterns.reasoning.react import EXAMPLE as REACT_EXAMPLE, ReAct
from bicameral.telemetry import Span, span

P = ParamSpec("P")
T = TypeVar("T")

KEEP = "bicameral.trace.keep"
"""The attribute of the root by which a collector keeps or drops the trace."""
KEEP_DAYS = "bicameral.trace.keep_days"


@dataclass(frozen=True)
class TrajectoryLogging(Pattern[P, T]):
    """Another pattern under a root span that says what is to become of its trace.

    Args:
        inner: The pattern.
        sample_rate: The share of the traces without anything of note that are kept.
        keep_days: How many days a trace is kept; the journal has its own retention.

    Example:
        >>> outcome = await TrajectoryLogging(ReAct(), sample_rate=0.1).run(runtime, program_text("Who is on call?"))
    """

    id: ClassVar[str] = "V14"
    inner: Pattern[P, T]
    sample_rate: float = 1.0
    keep_days: int = 30

    async def execute(self, context: Context, /, *args: P.args, **kwargs: P.kwargs) -> Labelled[T]:
        begun = len(context.shared.trace)
        facts = {"bicameral.pattern": self.inner.id, KEEP_DAYS: self.keep_days}
        with span("task", self.inner.id, facts) as root:
            try:
                answer = await context.run_part("logged", lambda part: self.inner.execute(part, *args, **kwargs))
            except BaseException as error:
                # Also of a task that was stopped.
                self._decide(root, True, context.shared.trace[begun:])
                if isinstance(error, BicameralError):
                    root.set_error(error.code)
                raise
            self._decide(root, False, context.shared.trace[begun:])
            return answer

    def _decide(self, root: Span, failed: bool, events: Sequence[TraceEvent]) -> None:
        kept = failed or any(map(is_notable, events)) or root.trace_share < self.sample_rate
        root.set_facts({KEEP: kept, "bicameral.trace.events": len(events)})


def is_notable(event: TraceEvent) -> bool:
    """Whether a trace with this event is kept, whatever the share is: an error, a refusal, a limit that is near."""
    match event:
        case ToolCallEvent(error=error):
            return error is not None
        case NoteEvent(what=what):
            return what == NEAR_LIMIT
        case _:
            return False


# An example ---------------------------------------------------------------------------------------------------------

EXAMPLE = PatternExample(
    "A loop that looks things up leaves one tree of spans.",
    lambda folder: TrajectoryLogging(ReAct(max_steps=4)),
    REACT_EXAMPLE.task,
    REACT_EXAMPLE.is_correct,
    REACT_EXAMPLE.sizes,
    REACT_EXAMPLE.tools,
)
