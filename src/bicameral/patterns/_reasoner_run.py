"""One reasoning: its rounds are planned, bound, checked and run, and each is recorded before the next begins."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any

from bicameral.binding import PlanBinding, planning_doubts
from bicameral.boundary import HandleContent
from bicameral.errors import BicameralError, JournalError, PlanError, RunError
from bicameral.labels import NOTHING, UNKNOWN, Label, LabelTree, join, join_all
from bicameral.limits import (
    REASONING,
    Bound,
    BudgetSpent,
    LimitReached,
    Meter,
    charge_to,
    open_ledger,
)
from bicameral.patterns._outcome import (
    Answered,
    Exhausted,
    GaveUp,
    Outcome,
)
from bicameral.patterns._reasoner_record import (
    PlannedRound,
    ReasoningRecord,
    RecordedRounds,
    ResumableRounds,
    other_code_error,
)
from bicameral.patterns._reasoner_types import (
    Round,
    WrittenRound,
    label_of_failure,
    round_failure,
)
from bicameral.patterns._reasoner_view import (
    label_of_round,
    render_history,
    tree_of_round,
    variables_left_by,
    view_result,
)
from bicameral.planning import (
    CompiledPlan,
    EarlierRounds,
    Intent,
    NeutralNames,
    ValueOrigin,
    plan_literals,
    round_source,
    variable_origins,
)
from bicameral.plans import Plan
from bicameral.runs import (
    MAX_DOUBTS,
    RESUMABLE,
    Checked,
    Doubt,
    Failed,
    Finished,
    Interrupted,
    Journal,
    RunOutcome,
    RunServices,
    StartState,
    Stopped,
    Waiting,
    check_plan,
    new_run_id,
    recorded_error,
    resume_plan,
    run_plan,
)
from bicameral.telemetry import span
from bicameral.tools import Effect
from bicameral.types import ANY, Type

if TYPE_CHECKING:
    from bicameral.patterns.reasoner import Reasoner, ReasoningCallbacks


_FINAL_CODES = (
    "run.refused",
    "run.needs-approval",
    "run.needs-answer",
    "run.no-quarantined-model",
    "run.unforeseen",
    "run.cap",
    "run.in-doubt",
)
"""Failures that end a reasoning: another plan would only ask again, or do again what may have happened."""
_UNFINISHED_CODES = ("journal.", "run.other-code")
"""Errors that end an attempt at a resumable reasoning and not the reasoning: a later attempt may succeed."""


@dataclass(slots=True)
class ReasoningRun:
    """The state of one reasoning."""

    of: Reasoner
    intent: Intent
    company: ReasoningCallbacks
    meter: Meter
    fresh: bool
    why: str
    resumable: ResumableRounds | None
    recorded: RecordedRounds
    id: str = field(init=False)
    journal: Journal | None = field(init=False)
    record: ReasoningRecord = field(init=False)
    rounds: list[Round] = field(default_factory=list[Round])
    variables: dict[str, HandleContent] = field(default_factory=dict[str, HandleContent])
    shown: dict[str, Type] = field(default_factory=dict[str, Type])
    """The types of the variables as the planner may read them."""
    assembled: frozenset[str] = frozenset()
    origins: dict[str, ValueOrigin] = field(default_factory=dict[str, ValueOrigin])
    """The constants of the plans in the variables that they left: a later plan may not direct by what nobody gave."""
    places: dict[str, LabelTree] = field(default_factory=dict[str, LabelTree])
    read: Label = NOTHING
    said: tuple[str, ...] = ()
    calls: tuple[dict[str, Any], ...] = ()
    """The model calls that wrote the plan of this round."""
    names: NeutralNames = field(init=False)
    """The neutral names of untrusted columns: the same in all rounds."""

    def __post_init__(self) -> None:
        self.id = new_run_id() if self.resumable is None else self.resumable.run
        self.journal = self.of.journal if self.resumable is None else self.resumable.journal
        self.record = ReasoningRecord(self.id, self.journal, self.resumable)
        self.names = NeutralNames(self.intent.request)

    async def run_rounds(self) -> Outcome[Any] | None:
        """The rounds; None if it was stopped in the middle of one."""
        try:
            with charge_to(self.meter):
                self.record.record_start(self.intent, self.of.bounds, self.of.policy, self.why)
                for number in count(1):
                    if self.recorded.end is not None and number not in self.recorded.ended:
                        return self._recorded_end(self.recorded.end)
                    self.meter.count_round()
                    ended, stopped = await self._round(number)
                    if ended is not None or stopped:
                        return ended
        except BicameralError as error:
            if self.resumable is not None and error.code.startswith(_UNFINISHED_CODES):
                raise
            return self._end_without_answer(error)

    async def _round(self, number: int) -> tuple[Outcome[Any] | None, bool]:
        start, planned = self._start(), self.recorded.plans.get(number)
        if planned is not None or number in self.recorded.ended:
            return await self._continue_round(number, planned, start)
        try:
            compiled, doubts = await self._bound(await self._plan(number), start)
            if compiled.cached and not self._check(compiled.plan, start).ok:
                # A cached plan is checked by the current policy, like a new one.
                compiled, doubts = await self._bound(await self._plan(number, fresh=True), start)
        except PlanError as error:
            twice = bool(self.rounds) and not self.rounds[-1].source
            # The planner's own word that the request cannot be served is an outcome: asking again would press for one.
            final = twice or self.of.bounds.rounds == 1 or error.code == "plan.cannot"
            self._failed(Round(number), error, None, None, final=final)
            return (self._end_without_answer(error) if final else None), False
        if self.resumable is not None:
            run = self.resumable.run_of_round(number)
            # Before it runs: whoever continues must run this plan, with what its words were bound to, and no other.
            self.record.record_plan(number, run, compiled, doubts, self.calls, self.meter.usage)
        return await self._run_round(self._written_round(number, compiled), compiled, start, doubts)

    async def _continue_round(
        self, number: int, planned: PlannedRound | None, start: StartState
    ) -> tuple[Outcome[Any] | None, bool]:
        """A round whose plan or end an earlier attempt has recorded: nothing that has ended is done again."""
        if planned is None:
            this, compiled = Round(number), None
        else:
            compiled = planned.compiled(self._check(planned.plan, start).report)
            this, self.calls = self._written_round(number, compiled), planned.calls
        failure = self.recorded.failure(number)
        if failure is not None or planned is None or compiled is None:
            self._keep(replace(this, failure=failure))
            error = self.recorded.final_error(number)
            return (None if error is None else self._end_without_answer(error)), False
        return await self._run_round(this, compiled, start, planned.doubts, asked=True)

    def _written_round(self, number: int, compiled: CompiledPlan) -> Round:
        draft = round_source(compiled.draft or compiled.plan, compiled.looks, self.of.registry)
        return Round(number, round_source(compiled.plan, compiled.looks, self.of.registry), draft=draft)

    async def _run_round(
        self, this: Round, compiled: CompiledPlan, start: StartState, doubts: tuple[Doubt, ...], *, asked: bool = False
    ) -> tuple[Outcome[Any] | None, bool]:
        """Check and run the plan of a round; with `asked` its being written is not announced again."""
        number, checked = this.number, self._check(compiled.plan, start)
        may = None if asked else self.company.written
        allowed = may is None or await may(WrittenRound(number, compiled, checked, this.source))
        if not checked.ok:
            if number in self.recorded.ended:
                raise other_code_error(self.id, f"the plan of round {number} does not pass the check any more")
            first = checked.report.errors[0]
            self._failed(this, PlanError(first.code, first.message), compiled.plan, checked, first.path)
            return None, False
        if not allowed:
            return self._end_without_answer(RunError("reason.declined", "the plan of a round was not wanted")), False
        outcome = await self._run(compiled.plan, start, number, doubts)
        if self.resumable is not None:
            self.resumable.raise_unfinished(outcome)
        self.places = {place: tree_of_round(tree, number) for place, tree in outcome.written.items()}
        return self._finish_round(this, compiled, checked, outcome), isinstance(outcome, Stopped)

    async def _bound(self, compiled: CompiledPlan, start: StartState) -> tuple[CompiledPlan, tuple[Doubt, ...]]:
        """The plan with its references bound, and what is not sure about it.

        The draft keeps its words, since only that is read by the planner.
        """
        of, bound = self.of, PlanBinding(compiled.plan)
        if of.bind is not None:
            bound = await of.bind(compiled.plan, start.types, self.company.asker)
            bound.require()
        shown = bound.shown_plan(compiled.plan)
        doubts = planning_doubts(
            shown,
            self.intent,
            bound.bindings,
            of.registry,
            of.policy.me,
            dropped=compiled.dropped,
            overridden=compiled.overridden,
        )
        return replace(compiled, plan=bound.plan, draft=compiled.draft or compiled.plan), doubts

    def _check(self, plan: Plan, start: StartState) -> Checked:
        of = self.of
        return check_plan(plan, of.registry, of.policy, limits=of.limits, start=start, intent=self.intent)

    async def _plan(self, number: int, *, fresh: bool = False) -> CompiledPlan:
        most, done = self.of.bounds.rounds or 1, self._effects
        earlier = None
        if most > 1:
            types = {name: held.type for name, held in self.variables.items()}
            history = render_history(
                self.rounds, {name: self.shown.get(name, ANY) for name in types}, most=self.of.history
            )
            earlier = EarlierRounds(
                history,
                types,
                done,
                self.said,
                may_look=number < most,
                names=self.names,
                shown_types=self.shown,
                read_label=self.read,
                origins=self.origins,
            )
        with span("plan", "", {"gen_ai.operation.name": "plan", "bicameral.round": number}), open_ledger() as ledger:
            try:
                return await self.of.delta.compile(
                    self.intent, self.of.registry, fresh=fresh or self.fresh, watch=self.company.watch, earlier=earlier
                )
            finally:
                self.calls = (*(ledger.records or ()), *ledger.lost)

    async def _run(self, plan: Plan, start: StartState, number: int, doubts: tuple[Doubt, ...]) -> RunOutcome:
        of, company, resumable = self.of, self.company, self.resumable
        services: RunServices = {
            "extractor": of.executor,
            "asker": company.asker,
            "approver": company.approver,
            "observer": company.observer,
        }
        link: dict[str, Any] = {"reason": self.id, "round": number}
        run = leaving = None
        if resumable is not None:
            run, leaving = resumable.run_of_round(number), resumable.leaving
            link |= {RESUMABLE: True}
            services["asker"], services["approver"] = resumable.people(run)
            if await asyncio.to_thread(resumable.journal.events_after, run, -1):
                return await resume_plan(
                    resumable.journal, run, of.registry, policy=of.policy, caps=of.caps, leaving=leaving, **services
                )
        return await run_plan(
            plan,
            of.registry,
            journal=self.journal,
            intent=self.intent,
            run=run,
            policy=of.policy,
            start=start,
            link=link,
            caps=of.caps,
            leaving=leaving,
            doubts=doubts,
            **services,
        )

    def _finish_round(
        self, this: Round, compiled: CompiledPlan, checked: Checked, outcome: RunOutcome
    ) -> Outcome[Any] | None:
        this = replace(this, outcome=outcome)
        self.said += tuple(str(value) for value in plan_literals(compiled.draft or compiled.plan))
        match outcome:
            case Finished() if compiled.looks is None:
                self._keep(this)
                tree = UNKNOWN if outcome.shade is None else outcome.shade
                return Answered(value=outcome.answer, shade=tree, **self._course)
            case Finished():
                self._keep_results(this, compiled, checked, outcome)
                return None
            case Failed(error=error):
                final = error.code in _FINAL_CODES or isinstance(error, JournalError | BudgetSpent | LimitReached)
                final = final or self.recorded.final_error(this.number) is not None
                self._failed(this, error, compiled.plan, checked, outcome.step, final=final)
                return self._end_without_answer(error) if final else None
            case Interrupted(error=error):
                self._failed(this, error, compiled.plan, checked, final=True)
                return self._end_without_answer(error)
            case Stopped() | Waiting():
                self._keep(this)
                return None

    def _keep_results(self, this: Round, compiled: CompiledPlan, checked: Checked, outcome: Finished) -> None:
        """Keep the variables of the plan, and show the reasoner what it may see of the results it looks at."""
        tree = outcome.shade or NOTHING
        left = variables_left_by(compiled.plan, outcome.answer, tree, checked.report.types, this.number)
        self.variables |= left
        # A value that this plan assembled counts as assembled in the plans that use it.
        made = self._start().assembled_values(compiled.plan, self.of.registry, self.intent.request, self.of.policy.me)
        self.assembled = (self.assembled - left.keys()) | (made.variables & left.keys())
        after = variable_origins(compiled.plan, self.of.registry, self.origins)
        self.origins |= {name: after[name] for name in left.keys() & after.keys()}
        # By the types with neutral names: the column names of a table are untrusted and are not shown.
        types = {name: compiled.draft_types.get(name, ANY) for name in left}
        self.shown |= types
        looks = [name for name in compiled.looks or () if name in left]
        seen = {name: view_result(left[name], self.of.level, as_type=types[name]) for name in looks}
        lines = tuple(f"{name} = {view.text}" for name, view in seen.items())
        read = join_all(view.label for view in seen.values())
        self._keep(replace(this, told=lines, left=tuple(left), read=read))

    def _failed(
        self,
        this: Round,
        error: BicameralError,
        plan: Plan | None,
        checked: Checked | None,
        step: str = "",
        *,
        final: bool = False,
    ) -> None:
        failure = round_failure(error, plan, self.of.registry, step)
        ran = this.outcome is not None and checked is not None
        read = label_of_failure(failure, checked.proof, self.of.registry) if ran and checked is not None else NOTHING
        this = replace(this, failure=failure, read=label_of_round(read, this.number))
        self._keep(this, error if final else None)

    def _keep(self, this: Round, final: BicameralError | None = None) -> None:
        self.rounds.append(this)
        self.read = join(self.read, this.read)
        if this.number not in self.recorded.ended:
            self.record.record_round(this, self.calls, self.meter.usage, final)
        self.calls = ()
        if self.company.done is not None:
            # A callback that fails must not change the outcome.
            with suppress(Exception):
                self.company.done(this)

    def _start(self) -> StartState:
        return StartState(dict(self.variables), dict(self.places), self.read, self.assembled)

    @property
    def _effects(self) -> frozenset[Effect]:
        return frozenset(done.effect for each in self.rounds for done in each.effects)

    @property
    def _course(self) -> dict[str, Any]:
        """What every outcome says of the way to it."""
        return {
            "run": self.id,
            "way": "reason",
            "taken": self.meter.usage,
            "effects": tuple(effect for each in self.rounds for effect in each.effects),
            # What an earlier round told decided the later plans, so the answer rests on every round.
            "doubts": tuple(dict.fromkeys(doubt for each in self.rounds for doubt in each.doubts))[:MAX_DOUBTS],
            "rounds": tuple(self.rounds),
        }

    def exhausted(self, bound: Bound) -> Exhausted:
        spent, limit = float(getattr(self.meter.usage, bound)), float(getattr(self.of.bounds, bound))
        return Exhausted(bound=bound, spent=spent, limit=limit, **self._course)

    def _recorded_end(self, facts: Mapping[str, Any]) -> Outcome[Any]:
        """The end that an earlier attempt recorded, where the rounds themselves do not say it."""
        if "bound" in facts:
            return self.exhausted(facts["bound"])
        if "error" not in facts:
            raise JournalError("journal.damaged", f"the record of {self.id} has an answer that its rounds do not have")
        return self._gave_up(recorded_error(facts["error"]))

    def interrupted(self) -> GaveUp:
        return self._gave_up(RunError("reason.interrupted", "the reasoning was stopped"))

    def _end_without_answer(self, error: BicameralError) -> Outcome[Any]:
        if isinstance(error, BudgetSpent):
            return Exhausted(bound=error.bound, spent=error.spent, limit=error.limit, **self._course)
        if isinstance(error, LimitReached) and error.scope is REASONING:
            return self.exhausted(error.bound)
        return self._gave_up(error)

    def _gave_up(self, error: BicameralError) -> GaveUp:
        return GaveUp(error=error, **self._course)
