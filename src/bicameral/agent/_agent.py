"""The agent: plan a request, check the plan, run it. `Agent` is async; `Agent.sync` has the same methods, blocking."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bicameral.agent._escalation import Planned
from bicameral.agent._plan_preview import CallPreview, preview_plan
from bicameral.agent._running import AgentRunning
from bicameral.agent._sync import SyncAgent
from bicameral.agent._wiring import within_budget
from bicameral.errors import PlanError
from bicameral.labels import Labelled, vouched_value
from bicameral.limits import STRATEGY_LIMITS, Limits
from bicameral.planning import Intent
from bicameral.plans import Plan
from bicameral.runs import (
    ApproveFunction,
    Approver,
    Asker,
    Checked,
    Journal,
    Observer,
    Replayed,
    RunOutcome,
    Undo,
    apply_undo,
    approver_from,
    plan_undo,
    resume_plan,
)
from bicameral.tools import Folders

if TYPE_CHECKING:
    from bicameral.evaluation import Subject
    from bicameral.patterns import Outcome, Pattern
    from bicameral.patterns.kernel import TextPattern
    from bicameral.patterns.reasoner import ReasoningCallbacks, ResumableRounds
    from bicameral.patterns.strategies import ConversationObserver, Runtime, StrategyChoice, StrategyParams


class Agent(AgentRunning):
    """Turns requests into checked plans and runs them. Async first; `agent.sync` has the same methods, blocking.

    Policy checks every plan before it runs, and every call while it runs. The two models are kept apart: one object
    cannot be both.

    Args:
        tools: A registry, or tools and typed functions; by default those of the configuration.
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
    async def reason(
        self,
        request: str | Labelled[str] | Intent,
        *,
        rounds: int | None = None,
        bounds: Limits | None = None,
        company: ReasoningCallbacks | None = None,
        asker: Asker | None = None,
        approver: Approver | ApproveFunction | None = None,
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
            given,
            asker=asker or given.asker,
            approver=approver_from(approver) or given.approver,
            observer=observer or given.observer,
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
        strategy: str | StrategyChoice | TextPattern | None = None,
        params: StrategyParams | None = None,
        bounds: Limits | None = None,
        approver: Approver | ApproveFunction | None = None,
        asker: Asker | None = None,
        observer: Observer | None = None,
        audience: ConversationObserver | None = None,
        careful: bool = False,
        deterministic: bool = False,
    ) -> Outcome[Any]:
        """Work on a request with a strategy, by its name or as a pattern.

        `native_react`, `plan_and_execute` and `spar` are conversations in which models call tools; a call with
        consequences that untrusted text could have caused needs approval or is refused. `compiled` writes a plan. The
        outcome says what was done, however it ends.

        Args:
            request: The user's request.
            strategy: By default the configured one. `compiled` does what `run` does; `auto` chooses for the request,
                and the outcome's `choice` says why. Or what `choose_strategy` chose. Or a pattern that takes a text.
            params: Parameters of the strategy, by default as configured.
            bounds: How much a conversation may take.
            approver: Asked about calls that need approval. Without one the answer is no.
            asker: Answers questions; only for `compiled` and for patterns.
            observer: Gets the progress of each step.
            audience: Gets the turns of a conversation.
            careful: Every irreversible call needs approval.
            deterministic: As in `plan`; only for `compiled`.
        """
        from bicameral.agent._architecture import run_compiled
        from bicameral.patterns.kernel import Pattern, PatternWork, run_pattern
        from bicameral.patterns.strategies import StrategyChoice, run_strategy

        if isinstance(strategy, Pattern):
            asked = vouched_value(request) if isinstance(request, str) else request
            runtime = self.runtime(
                params=params,
                bounds=bounds,
                approver=approver,
                observer=observer,
                audience=audience,
                careful=careful,
                asker=asker,
            )
            return await run_pattern(PatternWork(strategy, (asked,)), runtime)
        choice = strategy if isinstance(strategy, StrategyChoice) else await self.choose_strategy(request, strategy)
        if choice.strategy == "compiled":
            options: dict[str, Any] = {"asker": asker, "approver": approver_from(approver), "observer": observer}
            return await run_compiled(self, request, deterministic=deterministic, choice=choice, **options)
        runtime = self.runtime(
            params=params, bounds=bounds, approver=approver, observer=observer, audience=audience, careful=careful
        )
        return await run_strategy(request, choice.strategy, runtime, choice=choice)

    @within_budget
    async def choose_strategy(self, request: str | Labelled[str], strategy: str | None = None) -> StrategyChoice:
        """The strategy for a request, and why: the one that is named or configured, or with `auto` one that fits.

        With `auto` the rules of the configuration choose, then its classifier model, then the words of the request.
        Only the user's own words are read.

        Example:
            >>> print(await agent.choose_strategy("Find out why the build fails", "auto"))
            native_react, by the words of the request: the next step depends on what is found ('Find out why')
        """
        from bicameral.agent._architecture import configured_classifier
        from bicameral.patterns.strategies import AUTO, DEFAULT_STRATEGY, StrategyChoice, strategy_by_name

        configured = self.config.agent.planning_strategy
        if strategy is None and configured is None:
            return StrategyChoice(DEFAULT_STRATEGY, "default", "")
        if (strategy or configured) != AUTO:
            name = strategy_by_name(strategy or configured or "")
            return StrategyChoice(name, "caller" if strategy else "configuration", "")
        asked = vouched_value(request) if isinstance(request, str) else request
        models = self.runtime().models
        return await configured_classifier(self.config).choose(asked, self.planning_registry, models)

    def as_subject(self, runtime: None = None, /, *, strategy: str | None = None) -> Subject[str, Any]:
        """This agent as the subject of an evaluation: each case is a request, with nobody to approve anything.

        Calls that need no approval are made: evaluate it with tools whose effects do not matter.

        Args:
            runtime: Nothing; the agent has its own.
            strategy: As in `work`.
        """
        from bicameral.evaluation import Subject, hash_of
        from bicameral.patterns.kernel import labelled_answer

        async def attempt(request: Labelled[str], seed: int) -> Labelled[Any]:
            return labelled_answer(await self.work(request, strategy=strategy))

        names = [self._models.privileged.name, self._models.quarantined.name]
        facts = [strategy or self.config.agent.planning_strategy, names, self.planning_registry.fingerprint]
        return Subject(f"agent ({strategy or 'as configured'})", attempt, hash_of(facts))

    def runtime(
        self,
        *,
        params: StrategyParams | None = None,
        bounds: Limits | None = None,
        approver: Approver | ApproveFunction | None = None,
        observer: Observer | None = None,
        audience: ConversationObserver | None = None,
        careful: bool = False,
        asker: Asker | None = None,
        caps: Limits | None = None,
    ) -> Runtime:
        """The runtime of a strategy or a pattern: this agent's models, tools, policy and journal.

        Example:
            >>> await ReWOO().run(agent.runtime(), user_input("Which of the three is cheapest?"))
        """
        from bicameral.agent._architecture import configured_params
        from bicameral.agent._pattern_plans import PatternPlanner
        from bicameral.patterns.strategies import ConversationObserver, ModelPair, Runtime

        models = ModelPair(
            self._models,
            params or configured_params(self.config),
            self._on_model_call,
            self.config.limits.model_timeout,
        )
        return Runtime(
            models,
            self.planning_registry,
            self.policy,
            bounds or STRATEGY_LIMITS,
            self._journal,
            approver_from(approver),
            observer,
            audience or ConversationObserver(),
            careful,
            caps or self.config.caps,
            self._executor,
            asker,
            PatternPlanner(self, self._delta, self._limits),
        )

    @within_budget
    async def resume(
        self,
        run: str,
        *,
        asker: Asker | None = None,
        approver: Approver | ApproveFunction | None = None,
        observer: Observer | None = None,
        caps: Limits | None = None,
        strategy: Pattern[..., Any] | None = None,
    ) -> RunOutcome:
        """Continue a run that waits for a person, was interrupted, or lost its process; its outcome, if it has ended.

        Recorded steps are not done again. It is refused with `run.other-code` if tools or policies are not those it was
        begun with.

        Args:
            run: The id of the run, of a plan or of a pattern.
            asker: Answers questions.
            approver: Asked about calls that need approval.
            observer: Gets the progress of each step.
            caps: How much the run of a plan may take, by default as it was begun with. A pattern keeps its own.
            strategy: The pattern of the run, if it holds something that only its program has.
        """
        from bicameral.patterns.kernel import is_pattern_run, resume_pattern_work

        journal = self._required_journal
        if is_pattern_run(journal, run):
            runtime = self.runtime(approver=approver, observer=observer, asker=asker)
            return await resume_pattern_work(journal, run, runtime, pattern=strategy)
        people: dict[str, Any] = {"asker": asker, "approver": approver_from(approver)}
        options: dict[str, Any] = {**people, "observer": observer, "caps": caps}
        return await resume_plan(journal, run, self.registry, policy=self.policy, extractor=self._executor, **options)

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
        from bicameral.patterns.kernel import replay_run

        return await replay_run(self._required_journal, run, self.registry, self.policy)
