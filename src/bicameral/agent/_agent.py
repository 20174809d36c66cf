"""What an agent does: say it, see the plan, check it, run it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from bicameral.delta import Compiled, against_intent
from bicameral.errors import IntentError, Place, PlanError
from bicameral.intent import Intent
from bicameral.labels import Labelled, received
from bicameral.plans import Finding, Plan, print_plan
from bicameral.runs import (
    Approver,
    Asker,
    Caps,
    Checked,
    Finished,
    Journal,
    Observer,
    Replayed,
    RunOutcome,
    check_plan,
    replay,
    resume_plan,
    run_plan,
)
from bicameral.sessions import Ledger, counted
from bicameral.telemetry import span
from bicameral.types import STR

from ._again import Again
from ._assembled import Assembled
from ._follow import Endorser, endorsed, to_endorse
from ._planned import Planned, tell_planned
from ._request import own_request
from ._spending import held
from ._sync import SyncAgent

if TYPE_CHECKING:
    from bicameral.reasoner import Bounds, Company, Reasoned
    from bicameral.strategies import Audience, Desk, Params, Worked
    from bicameral.strategies import Bounds as WorkBounds


class Agent(Assembled):
    """Turns requests into checked plans and runs them. Async first; `agent.sync` has the same methods, blocking.

    Every plan is held to the policies before it runs and every call while it runs: `policy`, or what the configuration
    names, over the defaults. The two models are kept apart: one object cannot be both. `executor` fills blanks instead
    of the quarantined model alone: a `ReadOnly` or a `Triple` around one. With a `cascade` (alias and provider, the
    smallest first, all of the privileged side) the first model plans, and a larger one where there is reason to doubt.

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

    @held
    async def intent(
        self, request: str | Labelled[str], *, deterministic: bool = False, asker: Asker | None = None
    ) -> Intent:
        """What a request means. Open questions go to the asker, once and together; without one they are an error."""
        request, today = own_request(request), self._now().date()
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

    @held
    async def plan(
        self,
        request: str | Labelled[str] | Intent,
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
            if compiled.cached and not self.check(compiled.plan, intent=intent).ok:
                # What was kept is judged by the policies of today, like a plan that is written now.
                compiled = await self._delta.compile(intent, self.registry, fresh=True, watch=watch)
            planned = self._planned(intent, compiled, time.perf_counter() - started, ledger)
            tell_planned(told, planned)
        return planned

    def check(self, plan: Plan, *, intent: Intent | None = None, places: Mapping[str, Place] | None = None) -> Checked:
        """What is wrong with a plan, what it would do and cost at worst, and what policy will say of each call.

        `intent` is what a model wrote the plan for: then it is held against that, too.
        """
        request = None if intent is None else intent.request
        checked = check_plan(plan, self.registry, self.policy, limits=self._limits, places=places, request=request)
        if intent is None or not checked.ok:
            return checked
        apart = against_intent(plan, intent, self.registry)
        found = (Finding("error" if each.severe else "warning", each.code, each.message) for each in apart)
        return replace(checked, report=replace(checked.report, findings=(*checked.report.findings, *found)))

    @held
    async def run(
        self,
        what: Plan | Planned | str | Labelled[str],
        *,
        asker: Asker | None = None,
        approver: Approver | None = None,
        observer: Observer | None = None,
        deterministic: bool = False,
        caps: Caps | None = None,
    ) -> RunOutcome:
        """Run a plan, or plan a request and run it. A plan with errors is refused before anything happens.

        Calls that policy does not allow on its own are put to the approver, exactly as they would be made; without one
        the answer is no. In a cascade, a plan that fails before it has changed anything is replaced by the plan of
        the next larger model, once, and what that does carries the label of the failure. `caps` are how much it may
        take, by default as configured.
        """
        if isinstance(what, str | Labelled):
            what = await self.plan(what, deterministic=deterministic, asker=asker)
        plan, intent = (what.plan, what.intent) if isinstance(what, Planned) else (what, None)
        checked = self.check(plan, intent=intent)
        if not checked.ok:
            first = checked.report.errors[0]
            raise PlanError(first.code, f"the plan does not pass the check: {first}")
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
            return await run(plan, observer=observer, proof=checked.proof)
        if not self._stages:
            return await run(plan, observer=observer, proof=checked.proof, **_written_by(what))
        again = Again(self._delta, what, checked, self.registry, self.policy, self._limits)
        return await again.run(run, observer, _written_by(what) | {"proof": checked.proof})

    @held
    async def reason(
        self,
        request: str | Labelled[str] | Intent,
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
            caps=self.config.caps,
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

        The text is shown to the endorser, whole and with where it came from; only a yes makes it a request.
        """
        request = await endorsed(to_endorse(what), endorser)
        # The person has read it and said yes: from now on these are his own words.
        return await self.plan(received(request), deterministic=deterministic, asker=asker, fresh=fresh)

    @held
    async def work(
        self,
        request: str | Labelled[str],
        *,
        strategy: str | None = None,
        params: Params | None = None,
        bounds: WorkBounds | None = None,
        approver: Approver | None = None,
        asker: Asker | None = None,
        observer: Observer | None = None,
        audience: Audience | None = None,
        careful: bool = False,
        deterministic: bool = False,
    ) -> Worked:
        """Do what a request asks for with a strategy: `native_react`, `plan_and_execute`, `spar` or `compiled`.

        Without a name it is the configured one. The first three are conversations in which models ask for tools as they
        go; once one has read what a stranger wrote, each call with consequences is put to the approver or refused. If
        `careful`, so is every other call that cannot be taken back. `compiled` is what `run` does, and alone takes an
        `asker` and `deterministic`. How it ends is a value: nothing that was done gets lost.
        """
        from bicameral.strategies import strategy_named, work

        from ._working import compiled, configured

        name = strategy_named(strategy or configured(self.config)[0])
        if name == "compiled":
            options: dict[str, Any] = {"asker": asker, "approver": approver, "observer": observer}
            return await compiled(self, request, deterministic=deterministic, **options)
        desk = self.desk(
            params=params, bounds=bounds, approver=approver, observer=observer, audience=audience, careful=careful
        )
        return await work(request, name, desk)

    def desk(
        self,
        *,
        params: Params | None = None,
        bounds: WorkBounds | None = None,
        approver: Approver | None = None,
        observer: Observer | None = None,
        audience: Audience | None = None,
        careful: bool = False,
    ) -> Desk:
        """This agent's models, tools, policy and record, for a strategy or a pattern to work at.

        Example:
            >>> await ReWOO().run(agent.desk(), said("Which of the three is cheapest?"))
        """
        from bicameral.strategies import Audience, Bounds, Desk, Voices

        from ._working import configured

        voices = Voices(
            self._models, params or configured(self.config)[1], self._heard, self.config.limits.model_timeout
        )
        return Desk(
            voices,
            self.registry,
            self.policy,
            bounds or Bounds(),
            self._journal,
            approver,
            observer,
            audience or Audience(),
            careful,
            self.config.caps,
        )

    @held
    async def resume(
        self,
        run: str,
        *,
        asker: Asker | None = None,
        approver: Approver | None = None,
        observer: Observer | None = None,
        caps: Caps | None = None,
    ) -> RunOutcome:
        """Go on with a run that waits for a person, was interrupted, or lost its process; how it ended, if it has.

        What it has done is not done again. It is refused with `run.other-code` where tools or policies are not those it
        was begun with, and its caps are those it was begun with unless others are given.
        """
        options: dict[str, Any] = {"asker": asker, "approver": approver, "observer": observer, "caps": caps}
        return await resume_plan(
            self._kept, run, self.registry, policy=self.policy, extractor=self._executor, **options
        )

    @property
    def _kept(self) -> Journal:
        if self._journal is None:
            raise PlanError("journal.none", "this agent has no journal", fix="Give it one, or use Agent.from_config().")
        return self._journal

    async def replay(self, run: str) -> Replayed:
        """Run a recorded run again with the recorded answers of models and tools."""
        journal = self._kept
        from bicameral.strategies import is_conversation, replay_conversation

        if is_conversation(journal, run):
            return await replay_conversation(journal, run, self.registry, self.policy)
        return await replay(journal, run, self.registry)

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
            compiled.route,
            sum(ledger.money.values()),
            tuple(ledger.degraded),
            (*(ledger.records or ()), *ledger.lost),
        )


def _written_by(planned: Planned) -> dict[str, Any]:
    """Who wrote a plan and what that cost, for the record of its run."""
    return {"planning": planned.spent, "planned_by": planned.calls}
