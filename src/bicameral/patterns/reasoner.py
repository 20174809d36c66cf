"""The reasoner: rounds of plan, check and run, for requests that cannot be planned before the first results are known.

An intent comes in; out comes `Answered`, `Exhausted` (a limit was reached) or `GaveUp`, each with its rounds. A plan
that ends with `look(name)` is followed by another, whose planner reads a view of the results: bounded values and
counts, and never a free text, which stays a variable. The view has a label, and each later plan carries it: in a strict
run a person is asked before it does anything with consequences. The journal records which runs are its rounds, and
every line that the planner has read. With `ResumableRounds` any process can continue from there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bicameral.binding import PlanBinding
from bicameral.boundary import Executor, ViewLevel
from bicameral.errors import PlanError, RunError
from bicameral.limits import (
    REASONING_LIMITS,
    RUN_LIMITS,
    Limits,
    Meter,
)
from bicameral.patterns._outcome import (
    Answered as Answered,
    Exhausted as Exhausted,
    GaveUp as GaveUp,
    Outcome as Outcome,
)
from bicameral.patterns._reasoner_record import (
    RecordedRounds,
    ResumableRounds as ResumableRounds,
    RoundsSuspended as RoundsSuspended,
)
from bicameral.patterns._reasoner_run import ReasoningRun
from bicameral.patterns._reasoner_types import (
    Round as Round,
    RoundFailure as RoundFailure,
    WrittenRound as WrittenRound,
    describe_failure as describe_failure,
    label_of_failure as label_of_failure,
    round_failure as round_failure,
)
from bicameral.patterns._reasoner_view import (
    MAX_HISTORY,
    ResultView as ResultView,
    render_history as render_history,
    view_result as view_result,
)
from bicameral.planning import (
    LOOK,
    Intent,
    Planner,
)
from bicameral.plans import Plan, PlanLimits
from bicameral.runs import (
    Approver,
    Asker,
    Journal,
    Observer,
)
from bicameral.telemetry import span
from bicameral.tools import Registry
from bicameral.types import Type

if TYPE_CHECKING:
    from bicameral.policy import Policy


@dataclass(frozen=True, slots=True)
class ReasoningCallbacks:
    """Callbacks of a reasoning.

    Args:
        asker: Answers the questions of a plan.
        approver: Approves calls.
        observer: Observes the steps of each run.
        watch: Gets each statement of a plan while it is written.
        written: Says whether a plan that was written and checked may run.
        done: Gets each round when it has ended.
    """

    asker: Asker | None = None
    approver: Approver | None = None
    observer: Observer | None = None
    watch: Callable[[str], None] | None = None
    written: Callable[[WrittenRound], Awaitable[bool]] | None = None
    done: Callable[[Round], None] | None = None


NO_CALLBACKS = ReasoningCallbacks()

BindRound = Callable[[Plan, Mapping[str, Type], Asker | None], Awaitable[PlanBinding]]
"""Binds the references of a round's plan, given the types of the variables it starts with and who may be asked."""


class Reasoner:
    """Works in rounds: each plan is written knowing the typed results of those before, checked, proved and run.

    It reads the request, its own plans, and of results what channel rules let through; texts stay behind as variables
    that later plans can use. Each plan carries the label of everything it was written after reading.

    Example:
        >>> reasoner = Reasoner(delta, registry, policy, executor=extractor)
        >>> reasoned = await reasoner.reason(intent)
    """

    def __init__(
        self,
        delta: Planner,
        registry: Registry,
        policy: Policy,
        *,
        executor: Executor | None = None,
        limits: PlanLimits | None = None,
        journal: Journal | None = None,
        bounds: Limits | None = None,
        level: ViewLevel = "scalars",
        history: int = MAX_HISTORY,
        caps: Limits | None = None,
        bind: BindRound | None = None,
    ) -> None:
        self.caps = caps or RUN_LIMITS
        self.bind = bind
        if LOOK in registry:
            raise PlanError(
                "reason.tool-named-look",
                "a tool is called 'look', which is the word with which a plan asks to see a result",
                fix="Give the tool another name.",
            )
        self.delta, self.registry, self.policy = delta, registry, policy
        self.executor, self.limits, self.journal = executor, limits, journal
        self.bounds = bounds or REASONING_LIMITS
        self.level: ViewLevel = level
        self.history = history

    async def reason(
        self,
        intent: Intent,
        company: ReasoningCallbacks = NO_CALLBACKS,
        *,
        fresh: bool = False,
        why: str = "",
        resumable: ResumableRounds | None = None,
    ) -> Outcome[Any]:
        """Do what was asked, in as many rounds as it takes. Stopping the task that awaits this gives a `GaveUp`.

        `why` is recorded: why there are rounds, where nobody asked for them. With `resumable` it continues from what is
        recorded, and raises `RoundsSuspended` if a round waits for a person or is left to another process.
        """
        with span("reason"):
            recorded = RecordedRounds.read(resumable)
            meter = Meter(self.bounds, before=recorded.taken)
            course = ReasoningRun(self, intent, company, meter, fresh, why, resumable, recorded)
            task = asyncio.create_task(course.run_rounds())
            limit = self.bounds.seconds
            try:
                done, _ = await asyncio.wait(
                    {task}, timeout=None if limit is None else max(0.0, limit - recorded.taken.seconds)
                )
            except asyncio.CancelledError:
                done = None
                if (current := asyncio.current_task()) is not None:
                    current.uncancel()
            if not done:
                task.cancel()
                await asyncio.wait({task})
            ending = course.exhausted("seconds") if done is not None else course.interrupted()
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error
            if done is None and resumable is not None and resumable.leaving is not None and resumable.leaving():
                raise RunError("run.left", "the reasoning is left to another process", fix="Continue it.")
            outcome = ending if task.cancelled() else task.result() or ending
            return outcome if recorded.end is not None else course.record.record_end(outcome)
