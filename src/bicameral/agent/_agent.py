"""The agent: plan a request, check the plan, run it. `Agent` is async; `Agent.sync` has the same methods, blocking."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from bicameral.agent._continuation import AgentContinuation, conversation_facts
from bicameral.agent._escalation import Escalation, Planned
from bicameral.agent._plan_preview import CallPreview, preview_plan
from bicameral.agent._sync import SyncAgent
from bicameral.agent._wiring import within_budget
from bicameral.binding import binding_doubts
from bicameral.errors import PlanError
from bicameral.labels import Labelled, join
from bicameral.limits import STRATEGY_LIMITS, Limits
from bicameral.planning import Intent
from bicameral.plans import Plan
from bicameral.runs import (
    Approver,
    Asker,
    CheckBasis,
    Checked,
    Doubt,
    Journal,
    Observer,
    Replayed,
    RunOutcome,
    StartState,
    Undo,
    apply_undo,
    plan_undo,
    recheck,
    replay,
    resume_plan,
    run_plan,
)
from bicameral.tools import Folders

if TYPE_CHECKING:
    from bicameral.patterns import Outcome
    from bicameral.patterns.reasoner import ReasoningCallbacks, ResumableRounds
    from bicameral.patterns.strategies import ConversationObserver, Runtime, StrategyParams


class Agent(AgentContinuation):
    """Turns requests into checked plans and runs them. Async first; `agent.sync` has the same methods, blocking.

    Policy checks every plan before it runs, and every call while it runs. The two models are kept apart: one object
    cannot be both.

    Args:
        tools: A registry or tools; by default those of the configuration.
        config: By default that of `Config.defaults`. It has everything that is not given here.
        privileged: The model that plans. It never reads untrusted text.
        quarantined: The model that reads untrusted text. It calls no tools.
        cascade: Models of the privileged side by alias, the smallest first. The first one plans, and a larger one where
            there is reason to doubt its plan.
        executor: Performs extractions instead of the quarantined model alone, such as a `ReadOnly` or a `Triple`.
        policy: By default what the configuration names, over the default rules.
        journal: Where runs are recorded.
        cache: Where plans and intents are cached.
        limits: How much a plan may do.
        now: The clock.
        listener: Gets every model call.
        budgets: How much the models may cost.
        prices: The price table.
        candidates: Where references by words are looked up; by default with the tools of the standard toolboxes.
        encoder: Finds names of near meaning to suggest where no name has the words; by default the embedding model of
            this machine, if its weights are here.

    Example:
        >>> agent = Agent(tools=[grep, read_lines])
        >>> planned = await agent.plan("Which lines of mail.txt mention invoices?")
        >>> print(planned.source)
        >>> outcome = await agent.run(planned, approver=approver)
    """

    @property
    def sync(self) -> SyncAgent:
        """The same agent for code that does not await."""
        return SyncAgent(self)

    @within_budget
    async def run(
        self,
        what: Plan | Planned | Checked | str | Labelled[str],
        *,
        asker: Asker | None = None,
        approver: Approver | None = None,
        observer: Observer | None = None,
        deterministic: bool = False,
        caps: Limits | None = None,
        doubts: Sequence[Doubt] = (),
        may_replace: bool = False,
    ) -> RunOutcome:
        """Run a plan, or plan a request and run it. A plan with errors is refused before anything happens.

        A request that cannot be planned at once, because a first look decides the next step, is worked on in rounds:
        at most as many as `rounds` in `[planning]` says.

        In a cascade, a plan that fails before it has changed anything is replaced by the plan of the next larger model,
        once, and everything that plan does carries the label of the failure.

        Args:
            what: A request, or a plan. The result of a plan's check is reused, unless it is of another plan, for
                another intent, or with other tools, policies or limits than this agent has now.
            asker: Answers questions of the request and of the plan.
            approver: Asked about calls that policy does not allow on its own. Without one the answer is no.
            observer: Gets the progress of each step.
            deterministic: As in `plan`.
            caps: How much the run may take, by default as configured.
            doubts: What is not sure about a plan that was bound before.
            may_replace: Whether the plan of a model may replace files that the request does not say to replace. By
                default the approver is asked. It holds for a plan; a request is asked about in any case.
        """
        if isinstance(what, str | Labelled):
            from bicameral.agent._automatic_rounds import RequestRun

            whole = RequestRun(self, asker, approver, observer, caps)
            return await whole.run(what, deterministic=deterministic)
        if isinstance(what, Plan):
            bound = await self.bind(what, asker=asker)
            bound.require()
            what, doubts = bound.plan, (*doubts, *binding_doubts(bound.bindings))
        checked = self._recheck(what)
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
            caps=caps or self.config.caps,
            may_replace=may_replace,
            start=None if checked.basis.start == StartState() else checked.basis.start,
        )
        if not isinstance(what, Planned):
            return await run(checked, observer=observer, doubts=doubts)
        # A larger model would have to be told of the earlier result as well: such a plan is not replaced.
        if not self._stages or what.continues:
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

    def _recheck(self, what: Plan | Planned | Checked) -> Checked:
        """The result of a plan's check, made anew unless it comes with one that holds for this agent as it is now."""
        if isinstance(what, Plan):
            return self.check(what)
        # The plan and the intent are those of `Planned`, since they are run, and not those of its check: if somebody
        # replaced them, the check does not hold.
        checked = what.checked if isinstance(what, Planned) else what
        intent = what.intent if isinstance(what, Planned) else what.basis.intent
        # The label of what was read to choose the plan is kept, or the choice would count for nothing. The variables of
        # earlier rounds are not: a run of this agent starts without any, or with the result of a recorded run, whose
        # value and labels no caller can give.
        start = StartState(read=(what.start if isinstance(what, Planned) else what.basis.start).read)
        if isinstance(what, Planned) and what.continues:
            earlier = self.earlier_result(what.continues).start
            start = replace(earlier, read=join(earlier.read, start.read))
        basis = CheckBasis(
            what.plan, self.registry, self.policy, self._limits, start, intent, against_intent=intent is not None
        )
        return recheck(checked, basis)

    @within_budget
    async def reason(
        self,
        request: str | Labelled[str] | Intent,
        *,
        rounds: int | None = None,
        bounds: Limits | None = None,
        company: ReasoningCallbacks | None = None,
        asker: Asker | None = None,
        approver: Approver | None = None,
        observer: Observer | None = None,
        deterministic: bool = False,
        fresh: bool = False,
        why: str = "",
        caps: Limits | None = None,
        resumable: ResumableRounds | None = None,
    ) -> Outcome[Any]:
        """Work on a request in rounds: plan, run, look at what may be seen of the results, plan again.

        A request that one plan serves costs what `run` costs. The outcome says what was done, however it ends.

        Args:
            request: The user's request, or its intent.
            rounds: The most rounds.
            bounds: How much it may take, by default as configured.
            company: Callbacks for the rounds.
            asker: Answers questions of the request and of the plans.
            approver: Asked about calls that policy does not allow on its own. Without one the answer is no.
            observer: Gets the progress of each step.
            deterministic: As in `plan`.
            fresh: Do not use cached plans.
            why: Recorded: why there are rounds, where nobody asked for them.
            caps: How much the run of one round may take, by default as configured.
            resumable: Makes it a reasoning that any process can continue, see `ResumableRounds`. If it is not over when
                this process is done with it, `RoundsSuspended` is raised.
        """
        from bicameral.config import bounds_of
        from bicameral.patterns.reasoner import Reasoner, ReasoningCallbacks

        given = company or ReasoningCallbacks()
        given = replace(
            given, asker=asker or given.asker, approver=approver or given.approver, observer=observer or given.observer
        )
        bounds = bounds or bounds_of(self.config)
        reasoner = Reasoner(
            self._delta,
            self.planning_registry,
            self.policy,
            executor=self._executor,
            limits=self._limits,
            journal=self._journal,
            bounds=bounds if rounds is None else replace(bounds, rounds=rounds),
            level=self.config.reason.level,
            caps=caps or self.config.caps,
            bind=lambda plan, scope, asker: self.bind(plan, asker=asker, scope=scope),
        )
        if not isinstance(request, Intent):
            request = await self.intent(request, deterministic=deterministic, asker=given.asker)
        return await reasoner.reason(request, given, fresh=fresh, why=why, resumable=resumable)

    @within_budget
    async def work(
        self,
        request: str | Labelled[str],
        *,
        strategy: str | None = None,
        params: StrategyParams | None = None,
        bounds: Limits | None = None,
        approver: Approver | None = None,
        asker: Asker | None = None,
        observer: Observer | None = None,
        audience: ConversationObserver | None = None,
        careful: bool = False,
        deterministic: bool = False,
    ) -> Outcome[Any]:
        """Work on a request with a strategy: `native_react`, `plan_and_execute`, `spar` or `compiled`.

        The first three are conversations in which models call tools; once one has read untrusted text, each call with
        consequences needs approval or is refused. The outcome says what was done, however it ends.

        Args:
            request: The user's request.
            strategy: By default the configured one. `compiled` does what `run` does.
            params: Parameters of the strategy, by default as configured.
            bounds: How much a conversation may take.
            approver: Asked about calls that need approval. Without one the answer is no.
            asker: Answers questions; only for `compiled`.
            observer: Gets the progress of each step.
            audience: Gets the turns of a conversation.
            careful: Every irreversible call needs approval.
            deterministic: As in `plan`; only for `compiled`.
        """
        from bicameral.agent._architecture import configured_strategy, run_compiled
        from bicameral.patterns.strategies import run_strategy, strategy_by_name

        name = strategy_by_name(strategy or configured_strategy(self.config)[0])
        if name == "compiled":
            options: dict[str, Any] = {"asker": asker, "approver": approver, "observer": observer}
            return await run_compiled(self, request, deterministic=deterministic, **options)
        runtime = self.runtime(
            params=params, bounds=bounds, approver=approver, observer=observer, audience=audience, careful=careful
        )
        return await run_strategy(request, name, runtime)

    def runtime(
        self,
        *,
        params: StrategyParams | None = None,
        bounds: Limits | None = None,
        approver: Approver | None = None,
        observer: Observer | None = None,
        audience: ConversationObserver | None = None,
        careful: bool = False,
    ) -> Runtime:
        """The runtime of a strategy or a pattern: this agent's models, tools, policy and journal.

        Example:
            >>> await ReWOO().run(agent.runtime(), user_input("Which of the three is cheapest?"))
        """
        from bicameral.agent._architecture import configured_strategy
        from bicameral.patterns.strategies import ConversationObserver, ModelPair, Runtime

        models = ModelPair(
            self._models,
            params or configured_strategy(self.config)[1],
            self._on_model_call,
            self.config.limits.model_timeout,
        )
        return Runtime(
            models,
            self.planning_registry,
            self.policy,
            bounds or STRATEGY_LIMITS,
            self._journal,
            approver,
            observer,
            audience or ConversationObserver(),
            careful,
            self.config.caps,
        )

    @within_budget
    async def resume(
        self,
        run: str,
        *,
        asker: Asker | None = None,
        approver: Approver | None = None,
        observer: Observer | None = None,
        caps: Limits | None = None,
    ) -> RunOutcome:
        """Continue a run that waits for a person, was interrupted, or lost its process; its outcome, if it has ended.

        Recorded steps are not done again. It is refused with `run.other-code` if tools or policies are not those it was
        begun with; its caps are by default those it was begun with.
        """
        options: dict[str, Any] = {"asker": asker, "approver": approver, "observer": observer, "caps": caps}
        return await resume_plan(
            self._required_journal, run, self.registry, policy=self.policy, extractor=self._executor, **options
        )

    @property
    def _required_journal(self) -> Journal:
        if self._journal is None:
            raise PlanError("journal.none", "this agent has no journal", fix="Give it one, or use Agent.from_config().")
        return self._journal

    async def preview(self, what: Plan | Planned | Checked) -> tuple[CallPreview, ...]:
        """What a bound plan would change in files, call by call, before it runs; nothing is changed.

        Calls whose arguments depend on a model, a person or an effect have no preview yet. A preview has text from the
        world in it: show it to a person, and give it to no model.

        Example:
            >>> for call in await agent.preview(planned):
            ...     print(call.text)
        """
        plan = what if isinstance(what, Plan) else what.plan
        return await preview_plan(plan, self.registry, self.policy, self._limits)

    async def plan_undo(self, run: str = "last", *, folders: Folders | None = None) -> Undo:
        """What taking back a run would do: the files that it would put back, and what cannot be taken back.

        Nothing is changed. The arguments are those of `undo`.
        """
        journal, folders = self._required_journal, self._undo_folders(folders)
        return await asyncio.to_thread(plan_undo, journal, run, folders, self.registry)

    async def undo(self, run: str = "last", *, folders: Folders | None = None) -> Undo:
        """Take back what a run changed in files, calendars and mail folders; all of it or nothing.

        It is refused with `run.undo-conflict` if anything else has changed one of the files since, and with
        `run.undone` if the run was taken back before. What was sent cannot be taken back: `lasting` names it.

        Args:
            run: The id of the run, its unique beginning, or `last`.
            folders: The folders in which files may be put back, by default those that the configuration lets tools
                write to now.

        Example:
            >>> undone = await agent.undo("last")
            >>> [diff.title for diff in undone.diffs]
        """
        journal, folders = self._required_journal, self._undo_folders(folders)

        def take_back() -> Undo:
            found = plan_undo(journal, run, folders, self.registry)
            apply_undo(journal, found, folders)
            return found

        return await asyncio.to_thread(take_back)

    def _undo_folders(self, given: Folders | None) -> Folders:
        from bicameral.config import surroundings_of

        return given or self._folders or surroundings_of(self.config).folders

    async def replay(self, run: str) -> Replayed:
        """Run a recorded run again with the recorded answers of models and tools."""
        journal = self._required_journal
        from bicameral.patterns.strategies import is_conversation, replay_conversation

        if is_conversation(journal, run):
            return await replay_conversation(journal, run, self.registry, self.policy)
        return await replay(journal, run, self.registry)


def _planning_record(planned: Planned) -> dict[str, Any]:
    """What planning knows of a plan, for its run: the model calls that wrote it, what they cost, and doubts."""
    record: dict[str, Any] = {"planning": planned.spent, "planned_by": planned.calls, "doubts": planned.doubts}
    return record | {"choice": planned.choice, "conversation": conversation_facts(planned)}
