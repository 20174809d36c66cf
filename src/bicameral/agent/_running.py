"""Running with an agent: a plan or a request, to its outcome or event by event, with an answer of a type if wanted."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from bicameral.agent._continuation import AgentContinuation, conversation_facts
from bicameral.agent._escalation import Escalation, Planned
from bicameral.agent._run_events import NOBODY_TOLD, EventCallbacks, RunEvent, RunOptions, stream_events
from bicameral.agent._typed_output import OutputType, TypedOutcome
from bicameral.agent._wiring import within_budget
from bicameral.binding import binding_doubts
from bicameral.errors import PlanError
from bicameral.labels import Labelled, join, vouched_value
from bicameral.limits import Limits
from bicameral.plans import Plan
from bicameral.runs import (
    ApproveFunction,
    Approver,
    Asker,
    CheckBasis,
    Checked,
    Doubt,
    Observer,
    RunOutcome,
    StartState,
    approver_from,
    recheck,
    run_plan,
)

if TYPE_CHECKING:
    from bicameral.agent._agent import Agent
    from bicameral.agent._material import Material
    from bicameral.patterns.kernel import TextPattern

T = TypeVar("T")


class AgentRunning(AgentContinuation):
    """The part of an agent that runs plans and requests."""

    @overload
    async def run(
        self,
        what: Plan | Planned | Checked | str | Labelled[str],
        *,
        output: type[T],
        asker: Asker | None = None,
        approver: Approver | ApproveFunction | None = None,
        observer: Observer | None = None,
        deterministic: bool = False,
        caps: Limits | None = None,
        doubts: Sequence[Doubt] = (),
        material: Material | Labelled[str] | str | None = None,
        may_replace: bool = False,
        strategy: TextPattern | None = None,
    ) -> TypedOutcome[T]: ...

    @overload
    async def run(
        self,
        what: Plan | Planned | Checked | str | Labelled[str],
        *,
        output: None = None,
        asker: Asker | None = None,
        approver: Approver | ApproveFunction | None = None,
        observer: Observer | None = None,
        deterministic: bool = False,
        caps: Limits | None = None,
        doubts: Sequence[Doubt] = (),
        material: Material | Labelled[str] | str | None = None,
        may_replace: bool = False,
        strategy: TextPattern | None = None,
    ) -> RunOutcome: ...

    @within_budget
    async def run(
        self,
        what: Plan | Planned | Checked | str | Labelled[str],
        *,
        output: type[Any] | None = None,
        asker: Asker | None = None,
        approver: Approver | ApproveFunction | None = None,
        observer: Observer | None = None,
        deterministic: bool = False,
        caps: Limits | None = None,
        doubts: Sequence[Doubt] = (),
        material: Material | Labelled[str] | str | None = None,
        may_replace: bool = False,
        strategy: TextPattern | None = None,
    ) -> RunOutcome:
        """Run a plan, or plan a request and run it. A plan with errors is refused before anything happens.

        A request that cannot be planned at once, because a first look decides the next step, is worked on in rounds:
        at most as many as `rounds` in `[planning]` says.

        In a cascade, a plan that fails before it has changed anything is replaced by the plan of the next larger model,
        once, and everything that plan does carries the label of the failure.

        Args:
            what: A request, or a plan. The result of a plan's check is reused, unless it is of another plan, for
                another intent, or with other tools, policies or limits than this agent has now.
            output: The type of the answer: a pydantic model, a dataclass, `str`, `int`, `date` and the like, or a list
                of these. The outcome is then a `TypedFinished` with a `value` of that type, or says why there is none.
            asker: Answers questions of the request and of the plan.
            approver: Asked about calls that policy does not allow on its own: an object with `approve`, or a function
                of the question, which may be async. Without one the answer is no.
            observer: Gets the progress of each step, and the result of one that has ended.
            deterministic: As in `plan`.
            caps: How much the run may take, by default as configured.
            doubts: What is not sure about a plan that was bound before.
            material: With a request, as in `plan`. With a plan, the text that it reads by the names `input_text`,
                `input_lines`, `input_rows` or `input_value`; it counts as anybody's.
            may_replace: Whether the plan of a model may replace files that the request does not say to replace. By
                default the approver is asked. It holds for a plan; a request is asked about in any case.
            strategy: A pattern that works on the request instead of a plan, such as `ReWOO()`: with the same models,
                tools, policy and record. Options that are about a plan do not go with it. An `output` is checked and
                never filled in.
        """
        if strategy is not None:
            if deterministic or doubts or material is not None or may_replace:
                raise PlanError(
                    "plan.not-for-strategy",
                    "`deterministic`, `doubts`, `material` and `may_replace` are about a plan, and a strategy has none",
                    fix="Leave them out, or leave `strategy` out.",
                )
            return await self._run_pattern(
                what, strategy, None if output is None else OutputType(output), asker, approver, observer, caps
            )
        options = RunOptions(asker, approver_from(approver), observer, caps, tuple(doubts), may_replace)
        wanted = None if output is None else OutputType(output)
        outcome = await self._run(what, options, wanted, NOBODY_TOLD, deterministic=deterministic, material=material)
        return outcome if wanted is None else wanted.convert(outcome)

    async def _run_pattern(
        self,
        what: Plan | Planned | Checked | str | Labelled[str],
        pattern: TextPattern,
        output: OutputType[Any] | None,
        asker: Asker | None,
        approver: Approver | ApproveFunction | None,
        observer: Observer | None,
        caps: Limits | None,
    ) -> RunOutcome:
        from bicameral.patterns.kernel import PatternWork, run_pattern_work

        if not isinstance(what, str | Labelled):
            raise PlanError(
                "plan.strategy-without-request",
                "a strategy works on a request, and not on a plan",
                fix="Give the request, or leave `strategy` out.",
            )
        # A request without a label is the user's own text; one with a label keeps it.
        asked = vouched_value(what) if isinstance(what, str) else what
        runtime = cast("Agent", self).runtime(approver=approver, observer=observer, asker=asker, caps=caps)
        outcome = await run_pattern_work(PatternWork(pattern, (asked,)), runtime)
        return outcome if output is None else output.convert(outcome)

    async def stream(
        self,
        what: Plan | Planned | Checked | str | Labelled[str],
        *,
        output: type[Any] | None = None,
        asker: Asker | None = None,
        approver: Approver | ApproveFunction | None = None,
        deterministic: bool = False,
        caps: Limits | None = None,
        doubts: Sequence[Doubt] = (),
        material: Material | Labelled[str] | str | None = None,
    ) -> AsyncGenerator[RunEvent, None]:
        """What `run` does, event by event: statements of the plan, the plan, the steps, and at last the outcome.

        A finished step has its result with its labels. Whoever leaves the loop stops the run, and closes the connection
        to a remote model.

        Example:
            >>> async for event in agent.stream("Which lines of mail.txt mention invoices?"):
            ...     match event:
            ...         case StepProgress(kind="finished"):
            ...             print(event.step, event.value, event.result.label)
            ...         case Finished():
            ...             print(event.answer)
        """
        wanted = None if output is None else OutputType(output)

        async def work(told: EventCallbacks, observer: Observer) -> RunOutcome:
            options = RunOptions(asker, approver_from(approver), observer, caps, tuple(doubts))
            with self.spending():
                outcome = await self._run(what, options, wanted, told, deterministic=deterministic, material=material)
            return outcome if wanted is None else wanted.convert(outcome)

        events = stream_events(work)
        try:
            async for event in events:
                yield event
        finally:
            await events.aclose()

    async def _run(
        self,
        what: Plan | Planned | Checked | str | Labelled[str],
        options: RunOptions,
        output: OutputType[Any] | None,
        told: EventCallbacks,
        *,
        deterministic: bool,
        material: Material | Labelled[str] | str | None,
    ) -> RunOutcome:
        if isinstance(what, str | Labelled):
            from bicameral.agent._automatic_rounds import RequestRun

            whole = RequestRun(cast("Agent", self), replace(options, may_replace=False), output, told, material)
            return await whole.run(what, deterministic=deterministic)
        if material is None:
            return await self.run_checked(what, options, output)
        if isinstance(what, Planned):
            raise PlanError(
                "plan.material-without-request",
                "material goes with a request, and not with what was planned before",
                fix="Give the material to `Agent.plan`.",
            )
        piped = await self.piped_start(what if isinstance(what, Plan) else what.plan, material)
        return await self.run_checked(what, options, output, piped)

    async def piped_start(self, plan: Plan, material: Material | Labelled[str] | str) -> StartState:
        """What the run of a plan starts with that reads a text that is piped into it; for `check`."""
        from bicameral.agent._material import Material, piped_start

        return await piped_start(plan, Material.of(material), self.config.toolbox)

    async def run_checked(
        self,
        what: Plan | Planned | Checked,
        options: RunOptions,
        output: OutputType[Any] | None = None,
        piped: StartState | None = None,
    ) -> RunOutcome:
        """Run a plan, with answers of a type if one is given; `piped` has the text that the plan reads, if any."""
        asker, approver, observer, doubts = options.asker, options.approver, options.observer, options.doubts
        if isinstance(what, Plan):
            bound = await self.bind(what, asker=asker, scope=None if piped is None else piped.types)
            bound.require()
            what, doubts = bound.plan, (*doubts, *binding_doubts(bound.bindings))
        what = what if output is None else self._shaped(what, output, piped)
        checked = self._recheck(what, piped)
        checked.require()
        intent = checked.basis.intent
        run = partial(
            run_plan,
            registry=self.registry,
            journal=self._journal,
            extractor=self._executor,
            asker=asker,
            intent=intent,
            policy=self.policy,
            approver=approver,
            caps=options.caps or self.config.caps,
            may_replace=options.may_replace,
            start=None if checked.basis.start == StartState() else checked.basis.start,
        )
        if not isinstance(what, Planned):
            return await run(checked, observer=observer, doubts=doubts)
        # A larger model's plan would have to be written for the same material, or the same earlier result.
        if not self._stages or what.start.variables or what.continues:
            return await run(checked, observer=observer, **_planning_record(what))
        escalation = Escalation(
            self._delta,
            what,
            checked,
            self.planning_registry,
            self.policy,
            self._limits,
            partial(self.bind, asker=asker),
        )
        return await escalation.run(run, observer, _planning_record(what))

    def _shaped(
        self, what: Plan | Planned | Checked, output: OutputType[Any], piped: StartState | None
    ) -> Plan | Planned | Checked:
        """The same with a plan that answers with the type; it is checked again if that changed anything."""
        start = (
            what.start
            if isinstance(what, Planned)
            else piped or StartState()
            if isinstance(what, Plan)
            else what.basis.start
        )
        plan = what if isinstance(what, Plan) else what.plan
        shaped = output.shape_plan(plan, self.registry, start.types)
        if shaped is plan:
            return what
        if isinstance(what, Planned):
            return replace(what, plan=shaped)
        # A check is of one plan: that of another one says nothing of this.
        return shaped if isinstance(what, Plan) else self.check(shaped, intent=what.basis.intent, start=start)

    def _recheck(self, what: Plan | Planned | Checked, piped: StartState | None) -> Checked:
        """The result of a plan's check, made anew unless it comes with one that holds for this agent as it is now."""
        if isinstance(what, Plan):
            return self.check(what, start=piped)
        # The plan and the intent are those of `Planned`, since they are run, and not those of its check: if somebody
        # replaced them, the check does not hold.
        checked = what.checked if isinstance(what, Planned) else what
        intent = what.intent if isinstance(what, Planned) else what.basis.intent
        # The label of what was read to choose the plan is kept, or the choice would count for nothing. So is the
        # material of a request, which its plan reads. The variables of earlier rounds are not: no run of this agent
        # has any. An earlier result comes from the record of its run, so that no caller can give its value and labels.
        given = what.start if isinstance(what, Planned) else what.basis.start
        start = given if isinstance(what, Planned) and what.reads_material else StartState(read=given.read)
        if piped is not None:
            start = replace(piped, read=start.read)
        if isinstance(what, Planned) and what.continues:
            earlier = self.earlier_result(what.continues).start
            start = replace(earlier, read=join(earlier.read, start.read))
        basis = CheckBasis(
            what.plan, self.registry, self.policy, self._limits, start, intent, against_intent=intent is not None
        )
        return recheck(checked, basis)


def _planning_record(planned: Planned) -> dict[str, Any]:
    """What planning knows of a plan, for its run: the model calls that wrote it, what they cost, and doubts."""
    record: dict[str, Any] = {"planning": planned.spent, "planned_by": planned.calls, "doubts": planned.doubts}
    record |= {"choice": planned.choice, "strategy_choice": planned.strategy_choice}
    return record | {"conversation": conversation_facts(planned)}
