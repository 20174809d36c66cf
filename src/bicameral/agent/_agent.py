"""The agent: say it, see the plan, check it, run it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from bicameral.boundary import Executor, Extractor
from bicameral.delta import Compiled, Delta, against_intent
from bicameral.errors import IntentError, Place, PlanError
from bicameral.intent import Echo, Intent
from bicameral.models import Provider
from bicameral.plans import Finding, Limits, Plan, print_plan
from bicameral.runs import (
    Approver,
    Asker,
    Checked,
    Finished,
    Journal,
    Observer,
    Replayed,
    RunOutcome,
    check_plan,
    replay,
    run_plan,
)
from bicameral.sessions import Chambers, Ledger, Listener, ModelCall, Quarantined, counted
from bicameral.telemetry import span
from bicameral.tools import Registry, Tool
from bicameral.types import STR

from ._follow import Endorser, endorsed, to_endorse
from ._planned import Planned, tell_planned
from ._sync import SyncAgent

if TYPE_CHECKING:
    from bicameral.config import Config
    from bicameral.policy import Policy
    from bicameral.reasoner import Bounds, Company, Reasoned


class Agent:
    """Turns requests into checked plans and runs them. Async first; `agent.sync` has the same methods, blocking.

    Every plan is held to the policies before it runs and every call while it runs: `policy`, or what the configuration
    names, over the defaults. The two models are kept apart: one object cannot be both. `executor` fills blanks instead
    of the quarantined model alone: a `ReadOnly` or a `Triple` around one.

    Example:
        >>> agent = Agent(tools=[grep, read_lines])
        >>> planned = await agent.plan("Which lines of mail.txt mention invoices?")
        >>> print(planned.source)
        >>> outcome = await agent.run(planned, approver=approver)
    """

    def __init__(
        self,
        tools: Registry | Iterable[Tool] | None = None,
        *,
        config: Config | None = None,
        privileged: Provider | None = None,
        quarantined: Provider | Quarantined | None = None,
        executor: Executor | None = None,
        policy: Policy | None = None,
        journal: Journal | None = None,
        cache: MutableMapping[str, str] | None = None,
        limits: Limits | None = None,
        now: Callable[[], datetime] = datetime.now,
        listener: Listener | None = None,
    ) -> None:
        from bicameral.config import Config, open_cache, open_models, open_policy, open_registry

        self.config = config or Config.defaults()
        if tools is None:
            self.registry = open_registry(self.config)
        else:
            self.registry = tools if isinstance(tools, Registry) else Registry(tools)
        if privileged is None or quarantined is None:
            own = open_models(self.config)
            privileged, quarantined = privileged or own.privileged, quarantined or own.quarantined
        self._models = Chambers(privileged, Quarantined(quarantined))
        self.policy = open_policy(self.config, self.registry) if policy is None else policy
        self._journal = journal
        self._now = now
        self.ledger = Ledger()
        self._listener = listener
        self._limits = limits or self.config.plan_limits
        timeout = self.config.limits.model_timeout
        cache = open_cache(self.config) if cache is None else cache
        self._echo = Echo(privileged, cache=cache, listener=self._heard, timeout=timeout)
        self._delta = Delta(
            privileged,
            limits=self._limits,
            cache=cache,
            listener=self._heard,
            timeout=timeout,
            repairs=self.config.limits.repairs,
        )
        self._executor = executor or Extractor(self._models.quarantined, listener=self._heard, timeout=timeout)

    @classmethod
    def from_config(cls, config: Config | None = None, **options: Any) -> Agent:
        """The agent that `bicameral.toml` describes, with its journal."""
        from bicameral.config import Config, open_journal

        config = config or Config.load()
        return cls(config=config, journal=open_journal(config), **options)

    @property
    def sync(self) -> SyncAgent:
        """The same agent for code that does not await."""
        return SyncAgent(self)

    async def intent(self, request: str, *, deterministic: bool = False, asker: Asker | None = None) -> Intent:
        """What a request means. Open questions go to the asker, once and together; without one they are an error."""
        today = self._now().date()
        intent = await self._echo.intent(request, self.registry, today, deterministic=deterministic)
        if not intent.questions:
            return intent
        if asker is None:
            raise IntentError(
                "intent.questions",
                "the request leaves open: " + " ".join(intent.questions),
                fix="Say it in the request, or run it interactively.",
            )
        reply = str(await asker.ask("\n".join(intent.questions), STR)).strip()
        fuller = f"{intent.request}\n({reply})"
        answered = await self._echo.intent(fuller, self.registry, today, deterministic=deterministic)
        return answered.model_copy(update={"questions": ()})

    async def plan(
        self,
        request: str | Intent,
        *,
        deterministic: bool = False,
        asker: Asker | None = None,
        fresh: bool = False,
        watch: Callable[[str], None] | None = None,
    ) -> Planned:
        """A plan for a request, checked; nothing has been done yet. `watch` sees each statement as it is written."""
        started = time.perf_counter()
        with span("plan", "", {"gen_ai.operation.name": "plan"}) as told, counted() as ledger:
            if isinstance(request, Intent):
                intent = request
            else:
                intent = await self.intent(request, deterministic=deterministic, asker=asker)
            compiled = await self._delta.compile(intent, self.registry, fresh=fresh, watch=watch)
            planned = self._planned(intent, compiled, time.perf_counter() - started, ledger)
            tell_planned(told, planned)
        return planned

    def check(self, plan: Plan, *, intent: Intent | None = None, places: Mapping[str, Place] | None = None) -> Checked:
        """What is wrong with a plan, what it would do and cost at worst, and what policy will say of each call."""
        checked = check_plan(plan, self.registry, self.policy, limits=self._limits, places=places)
        if intent is None or not checked.ok:
            return checked
        apart = against_intent(plan, intent, self.registry)
        found = (Finding("error" if each.severe else "warning", each.code, each.message) for each in apart)
        return replace(checked, report=replace(checked.report, findings=(*checked.report.findings, *found)))

    async def run(
        self,
        what: Plan | Planned | str,
        *,
        asker: Asker | None = None,
        approver: Approver | None = None,
        observer: Observer | None = None,
        deterministic: bool = False,
    ) -> RunOutcome:
        """Run a plan, or plan a request and run it. A plan with errors is refused before anything happens.

        Calls that policy does not allow on its own are put to the approver, exactly as they would be made; without one
        the answer is no.
        """
        if isinstance(what, str):
            what = await self.plan(what, deterministic=deterministic, asker=asker)
        plan, intent = (what.plan, what.intent) if isinstance(what, Planned) else (what, None)
        checked = self.check(plan)
        if not checked.ok:
            first = checked.report.errors[0]
            raise PlanError(first.code, f"the plan does not pass the check: {first}")
        return await run_plan(
            plan,
            self.registry,
            journal=self._journal,
            extractor=self._executor,
            asker=asker,
            observer=observer,
            intent=intent,
            policy=self.policy,
            approver=approver,
            planning=what.spent if isinstance(what, Planned) else None,
        )

    async def reason(
        self,
        request: str | Intent,
        *,
        rounds: int | None = None,
        bounds: Bounds | None = None,
        company: Company | None = None,
        asker: Asker | None = None,
        approver: Approver | None = None,
        observer: Observer | None = None,
        deterministic: bool = False,
        fresh: bool = False,
    ) -> Reasoned:
        """Do what a request asks for in rounds: plan, run, see what may be seen of the results, plan on.

        A request that one plan serves costs what `run` costs. `bounds` are how much it may take, by default as
        configured; `company` is whoever watches the rounds. How it ends is a value: nothing that was done gets lost.
        """
        from bicameral.config import bounds_of
        from bicameral.reasoner import Company, Reasoner

        given = company or Company()
        given = replace(
            given,
            asker=asker or given.asker,
            approver=approver or given.approver,
            observer=observer or given.observer,
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
        )
        if not isinstance(request, Intent):
            request = await self.intent(request, deterministic=deterministic, asker=given.asker)
        return await reasoner.reason(request, given, fresh=fresh)

    async def follow(
        self,
        what: Finished | str,
        *,
        endorser: Endorser | None = None,
        asker: Asker | None = None,
        deterministic: bool = False,
        fresh: bool = False,
    ) -> Planned:
        """A plan for what a text says, such as the answer of a run that read a to-do list.

        The text is shown to the endorser, whole and with where it came from; only a yes makes it a request.
        """
        request = await endorsed(to_endorse(what), endorser)
        return await self.plan(request, deterministic=deterministic, asker=asker, fresh=fresh)

    async def replay(self, run: str) -> Replayed:
        """Run a recorded run again with the recorded answers of models and tools."""
        if self._journal is None:
            raise PlanError("journal.none", "this agent has no journal", fix="Give it one, or use Agent.from_config().")
        return await replay(self._journal, run, self.registry)

    async def aclose(self) -> None:
        """Free the models' memory and close the journal."""
        await self._models.privileged.aclose()
        await self._models.quarantined.aclose()
        if self._journal is not None:
            self._journal.close()

    async def __aenter__(self) -> Agent:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _planned(self, intent: Intent, compiled: Compiled, seconds: float, ledger: Ledger) -> Planned:
        checked = self.check(compiled.plan, intent=intent)
        return Planned(
            intent,
            compiled.plan,
            checked.report,
            checked.proof,
            compiled.mismatches,
            print_plan(compiled.plan, self.registry),
            compiled.repairs,
            compiled.cached,
            seconds,
            dict(ledger.usage),
            ledger.spent,
        )

    def _heard(self, call: ModelCall) -> None:
        self.ledger(call)
        if self._listener is not None:
            self._listener(call)
