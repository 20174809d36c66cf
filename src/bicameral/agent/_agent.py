"""The agent: plan a request, check the plan, run it. `Agent` is async; `SyncAgent` has the same methods, blocking."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from bicameral.agent._doubts import planning_doubts
from bicameral.agent._escalation import Escalation, Planned, record_planned
from bicameral.agent._requests import Endorser, endorse_text, endorsement_for
from bicameral.agent._wiring import AgentWiring, within_budget
from bicameral.binding import PlanBinding
from bicameral.errors import Place, PlanError
from bicameral.labels import Labelled, user_input
from bicameral.limits import STRATEGY_LIMITS, Ledger, Limits, open_ledger
from bicameral.planning import (
    MAX_TURNS,
    CompiledPlan,
    GivenAnswer,
    Intent,
    PlanCheck,
    complete_intent,
    continue_intent,
    is_stop,
    questions_error,
    trusted_request_text,
)
from bicameral.plans import Plan, open_references, print_plan
from bicameral.runs import (
    Approver,
    Asker,
    CheckBasis,
    Checked,
    Finished,
    Journal,
    Observer,
    Replayed,
    RunOutcome,
    StartState,
    check_plan,
    recheck,
    replay,
    resume_plan,
    run_plan,
)
from bicameral.telemetry import span
from bicameral.types import STR, Type

if TYPE_CHECKING:
    from bicameral.patterns import Outcome
    from bicameral.patterns.reasoner import ReasoningCallbacks
    from bicameral.patterns.strategies import ConversationObserver, Runtime, StrategyParams


T = TypeVar("T")


class SyncAgent:
    """An agent with blocking methods. One event loop runs in its own thread, so it works in notebooks too."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def intent(self, request: str | Labelled[str], **options: Any) -> Intent:
        return _run_blocking(self._agent.intent(request, **options))

    def complete(self, intent: Intent, **options: Any) -> Intent:
        return _run_blocking(self._agent.complete(intent, **options))

    def plan(self, request: str | Labelled[str] | Intent, **options: Any) -> Planned:
        return _run_blocking(self._agent.plan(request, **options))

    def check(self, plan: Plan, **options: Any) -> Checked:
        return self._agent.check(plan, **options)

    def bind(self, plan: Plan, **options: Any) -> PlanBinding:
        return _run_blocking(self._agent.bind(plan, **options))

    def run(self, what: Plan | Planned | Checked | str | Labelled[str], **options: Any) -> RunOutcome:
        return _run_blocking(self._agent.run(what, **options))

    def reason(self, request: str | Labelled[str] | Intent, **options: Any) -> Outcome[Any]:
        return _run_blocking(self._agent.reason(request, **options))

    def follow(self, what: Finished | Labelled[str] | str, **options: Any) -> Planned:
        return _run_blocking(self._agent.follow(what, **options))

    def work(self, request: str | Labelled[str], **options: Any) -> Outcome[Any]:
        return _run_blocking(self._agent.work(request, **options))

    def resume(self, run: str, **options: Any) -> RunOutcome:
        return _run_blocking(self._agent.resume(run, **options))

    def replay(self, run: str) -> Replayed:
        return _run_blocking(self._agent.replay(run))

    def close(self) -> None:
        _run_blocking(self._agent.aclose())

    def __enter__(self) -> SyncAgent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_event_loop: asyncio.AbstractEventLoop | None = None
_loop_lock = threading.Lock()


def _run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the loop's thread and wait; Ctrl-C cancels it and waits until it has recorded its end."""
    loop, running = _shared_loop(), list[asyncio.Task[Any]]()

    async def run() -> T:
        running.extend(task for task in [asyncio.current_task()] if task is not None)
        return await work

    future = asyncio.run_coroutine_threadsafe(run(), loop)
    try:
        return future.result()
    except KeyboardInterrupt:
        # The task and not the future: cancelling the future would not wait for what the task still has to record.
        for task in running:
            loop.call_soon_threadsafe(task.cancel)
        with contextlib.suppress(Exception, asyncio.CancelledError):
            future.result(timeout=10)
        raise


def _shared_loop() -> asyncio.AbstractEventLoop:
    global _event_loop
    # Two threads must not start two loops: models and journals belong to the loop they were first used on.
    with _loop_lock:
        if _event_loop is None or _event_loop.is_closed():
            _event_loop = asyncio.new_event_loop()
            threading.Thread(target=_event_loop.run_forever, name="bicameral", daemon=True).start()
        return _event_loop


class Agent(AgentWiring):
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
    async def intent(
        self,
        request: str | Labelled[str],
        *,
        deterministic: bool = False,
        asker: Asker | None = None,
        partial: bool = False,
    ) -> Intent:
        """The intent of a request.

        Open questions go to the asker, one after the other: an answer becomes part of the request, and may settle the
        others or raise new ones. Without an asker, or if the person stops, they are an error (`intent.questions`).

        Args:
            deterministic: Understand the request by rules alone, without a model.
            asker: Answers the open questions.
            partial: Return the intent with the questions that nobody answers, instead of the error.
        """
        request, today = trusted_request_text(request), self._now().date()
        intent = await self._echo.intent(request, self.registry, today, deterministic=deterministic)
        answers: tuple[GivenAnswer, ...] = ()
        for _ in range(MAX_TURNS):
            if not intent.questions:
                break
            question = intent.questions[0]
            reply = "" if asker is None else str(await asker.ask(question.question, STR)).strip()
            if is_stop(reply) and partial:
                return intent
            if is_stop(reply):
                raise questions_error(intent.questions)
            answers = (*answers, GivenAnswer(about=question.about, question=question.question, answer=reply))
            # The whole request is understood again, by Echo's model too: an answer may change what the rest means.
            completed = f"{intent.request}\n({reply})"
            intent = await self._echo.intent(
                completed, self.registry, today, deterministic=deterministic, answers=answers
            )
        # Nothing is planned from an intent with open questions, however often somebody was asked.
        if intent.questions and not partial:
            raise questions_error(intent.questions)
        return intent

    @within_budget
    async def complete(self, intent: Intent, *, asker: Asker | None = None) -> Intent:
        """An intent that a person wrote or edited, with effects, days and mentions, and its questions answered.

        Args:
            asker: Answers the open questions; without one they are an error (`intent.questions`).
        """
        today = self._now().date()
        intent = complete_intent(intent, self.registry, today)
        for _ in range(MAX_TURNS):
            if not intent.questions:
                break
            question = intent.questions[0]
            reply = "" if asker is None else str(await asker.ask(question.question, STR)).strip()
            if is_stop(reply):
                raise questions_error(intent.questions)
            intent = continue_intent(intent, {question.about: reply}, self.registry, today)
        if intent.questions:
            raise questions_error(intent.questions)
        return intent

    @within_budget
    async def plan(
        self,
        request: str | Labelled[str] | Intent,
        *,
        deterministic: bool = False,
        asker: Asker | None = None,
        fresh: bool = False,
        watch: Callable[[str], None] | None = None,
    ) -> Planned:
        """A checked plan for a request; nothing is done yet.

        Args:
            request: The user's request, or its intent.
            deterministic: Understand the request by rules alone, without a model.
            asker: Answers the open questions of the request.
            fresh: Do not use a cached plan.
            watch: Called with each statement as it is written.
        """
        started = time.perf_counter()
        with span("plan", "", {"gen_ai.operation.name": "plan"}) as trace, open_ledger() as ledger:
            if isinstance(request, Intent):
                intent = request
            else:
                intent = await self.intent(request, deterministic=deterministic, asker=asker)
            compiled = await self._delta.compile(intent, self.registry, fresh=fresh, watch=watch)
            bound, checked = await self._bind_and_check(intent, compiled, asker)
            if compiled.cached and not checked.ok:
                # A cached plan is checked by the current policies, like one that is written now.
                compiled = await self._delta.compile(intent, self.registry, fresh=True, watch=watch)
                bound, checked = await self._bind_and_check(intent, compiled, asker)
            seconds = time.perf_counter() - started
            planned = self._build_planned(intent, compiled, bound, checked, seconds, ledger)
            record_planned(trace, planned)
        return planned

    async def _bind_and_check(
        self, intent: Intent, compiled: CompiledPlan, asker: Asker | None
    ) -> tuple[PlanBinding, Checked]:
        bound = await self.bind(compiled.plan, asker=asker)
        bound.require()
        return bound, self.check(bound.plan, intent=intent, known=compiled.check)

    @within_budget
    async def bind(
        self, plan: Plan, *, asker: Asker | None = None, scope: Mapping[str, Type] | None = None
    ) -> PlanBinding:
        """The plan with its references bound to the world, outside the privileged model.

        What rules do not decide the quarantined model chooses, and then the asker; what is left is a question of the
        result.

        Args:
            plan: The plan.
            asker: Answers which of several things is meant.
            scope: The types of the variables before its first step.
        """
        if not open_references(plan):
            return PlanBinding(plan)
        return await self._plan_binder(asker).bind(plan, scope)

    def check(
        self,
        plan: Plan,
        *,
        intent: Intent | None = None,
        places: Mapping[str, Place] | None = None,
        known: PlanCheck | None = None,
    ) -> Checked:
        """Check a plan: what is wrong with it, what it does and costs at worst, and what policy decides of each call.

        Args:
            plan: The plan.
            intent: What a model wrote the plan for; then it is checked against that too.
            places: The places of its steps in a file, for the findings.
            known: The check that the planner made; one of another plan is not used.
        """
        return check_plan(
            plan,
            self.registry,
            self.policy,
            limits=self._limits,
            places=places,
            intent=intent,
            against_intent=intent is not None,
            known=known,
        )

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
    ) -> RunOutcome:
        """Run a plan, or plan a request and run it. A plan with errors is refused before anything happens.

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
        """
        if isinstance(what, str | Labelled):
            what = await self.plan(what, deterministic=deterministic, asker=asker)
        if isinstance(what, Plan):
            bound = await self.bind(what, asker=asker)
            bound.require()
            what = bound.plan
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
        )
        if not isinstance(what, Planned):
            return await run(checked, observer=observer)
        if not self._stages:
            return await run(checked, observer=observer, **_planning_record(what))
        escalation = Escalation(
            self._delta, what, checked, self.registry, self.policy, self._limits, partial(self.bind, asker=asker)
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
        basis = CheckBasis(
            what.plan, self.registry, self.policy, self._limits, StartState(), intent, against_intent=intent is not None
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
            self.registry,
            self.policy,
            executor=self._executor,
            limits=self._limits,
            journal=self._journal,
            bounds=bounds if rounds is None else replace(bounds, rounds=rounds),
            level=self.config.reason.level,
            caps=self.config.caps,
            bind=lambda plan, scope, asker: self.bind(plan, asker=asker, scope=scope),
        )
        if not isinstance(request, Intent):
            request = await self.intent(request, deterministic=deterministic, asker=given.asker)
        return await reasoner.reason(request, given, fresh=fresh)

    async def follow(
        self,
        what: Finished | Labelled[str] | str,
        *,
        endorser: Endorser | None = None,
        asker: Asker | None = None,
        deterministic: bool = False,
        fresh: bool = False,
    ) -> Planned:
        """A plan for what a text says, such as the answer of a run that read a to-do list.

        The whole text is shown to the endorser, with its sources; only if it is endorsed it becomes a request.
        """
        request = await endorse_text(endorsement_for(what), endorser)
        # A person has read and endorsed it, so from now on it counts as the user's own text.
        return await self.plan(user_input(request), deterministic=deterministic, asker=asker, fresh=fresh)

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
            self.registry,
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

    async def replay(self, run: str) -> Replayed:
        """Run a recorded run again with the recorded answers of models and tools."""
        journal = self._required_journal
        from bicameral.patterns.strategies import is_conversation, replay_conversation

        if is_conversation(journal, run):
            return await replay_conversation(journal, run, self.registry, self.policy)
        return await replay(journal, run, self.registry)

    def _build_planned(
        self,
        intent: Intent,
        compiled: CompiledPlan,
        bound: PlanBinding,
        checked: Checked,
        seconds: float,
        ledger: Ledger,
    ) -> Planned:
        return Planned(
            intent,
            bound.plan,
            checked,
            compiled.mismatches,
            print_plan(compiled.plan, self.registry),
            compiled.repairs,
            compiled.cached,
            seconds,
            dict(ledger.usage),
            ledger.spent,
            compiled.route,
            sum(ledger.money.values()),
            tuple(ledger.degraded),
            (*(ledger.records or ()), *ledger.lost),
            bound.bindings,
            planning_doubts(compiled.plan, intent, bound.bindings, self.registry, self.policy.me),
        )


def _planning_record(planned: Planned) -> dict[str, Any]:
    """What planning knows of a plan, for its run: the model calls that wrote it, what they cost, and doubts."""
    return {"planning": planned.spent, "planned_by": planned.calls, "doubts": planned.doubts}
