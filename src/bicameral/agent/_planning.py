"""Planning with an agent: the intent of a request, its plan, what its words mean, and the check. Nothing runs here."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bicameral.agent._absent_tools import absent_tool_doubts, explained_failures, require_ready, require_tools
from bicameral.agent._escalation import Planned, record_planned
from bicameral.agent._material import Material, as_requested, read_material, with_material
from bicameral.agent._requests import Endorser, endorse_text, endorsement_for
from bicameral.agent._wiring import AgentWiring, within_budget
from bicameral.binding import PlanBinding, planning_doubts
from bicameral.errors import BicameralError, Place, PlanError
from bicameral.labels import NOTHING, Labelled, join, user_input
from bicameral.limits import Ledger, open_ledger
from bicameral.planning import (
    MAX_TURNS,
    CompiledPlan,
    GivenAnswer,
    Intent,
    PlanCheck,
    UnaskedEffectError,
    complete_intent,
    continue_intent,
    is_stop,
    questions_error,
    trusted_request_text,
)
from bicameral.plans import Call, Plan, bind_cells, open_references, print_plan, walk
from bicameral.runs import Asker, Checked, Doubt, Finished, StartState, check_plan
from bicameral.telemetry import span
from bicameral.types import BOOL, STR, Type

if TYPE_CHECKING:
    from bicameral.agent._plan_choice import PlanChoice
    from bicameral.binding import PlanBinder


class AgentPlanning(AgentWiring):
    """The part of an agent that understands, plans, binds and checks."""

    @within_budget
    async def intent(
        self,
        request: str | Labelled[str],
        *,
        deterministic: bool = False,
        asker: Asker | None = None,
        partial: bool = False,
        thorough: bool = True,
    ) -> Intent:
        """The intent of a request.

        Open questions go to the asker, one after the other: an answer becomes part of the request, and may settle the
        others or raise new ones. Without an asker, or if the person stops, they are an error (`intent.questions`).

        Args:
            deterministic: Understand the request by rules alone, without a model.
            asker: Answers the open questions.
            partial: Return the intent with the questions that nobody answers, instead of the error.
            thorough: Ask the model for the steps of the request also where it leaves nothing open.
        """
        request, today = trusted_request_text(request), self._now().date()
        how: dict[str, Any] = {"deterministic": deterministic, "thorough": thorough}
        intent = await self._echo.intent(request, self.planning_registry, today, **how)
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
            intent = await self._echo.intent(completed, self.planning_registry, today, answers=answers, **how)
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
        intent = complete_intent(intent, self.planning_registry, today)
        for _ in range(MAX_TURNS):
            if not intent.questions:
                break
            question = intent.questions[0]
            reply = "" if asker is None else str(await asker.ask(question.question, STR)).strip()
            if is_stop(reply):
                raise questions_error(intent.questions)
            intent = continue_intent(intent, {question.about: reply}, self.planning_registry, today)
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
        plans: int | None = None,
        understood: Callable[[Intent], None] | None = None,
        material: Material | Labelled[str] | str | None = None,
    ) -> Planned:
        """A checked plan for a request; nothing is done yet.

        Args:
            request: The user's request, or its intent.
            deterministic: Understand the request by rules alone, without a model.
            asker: Answers the open questions of the request.
            fresh: Do not use a cached plan.
            watch: Called with each statement as it is written.
            plans: How many more plans are drawn if the first is doubtful, by default as configured; 0 for none.
            understood: Called with the intent, before the plan is written.
            material: A text that the request is about, see `Material`. The planner never reads it.
        """
        said = request.request if isinstance(request, Intent) else trusted_request_text(request)
        with explained_failures(self, said):
            require_tools(self, said)
            if material is not None:
                given = Material.of(material)
                return await self._plan_with_material(
                    request, given, deterministic, asker, fresh=fresh, watch=watch, understood=understood
                )
            return await self._plan(
                request,
                deterministic=deterministic,
                asker=asker,
                fresh=fresh,
                watch=watch,
                plans=plans,
                understood=understood,
            )

    async def _plan(
        self,
        request: str | Labelled[str] | Intent,
        *,
        deterministic: bool,
        asker: Asker | None,
        fresh: bool,
        watch: Callable[[str], None] | None,
        plans: int | None,
        understood: Callable[[Intent], None] | None,
    ) -> Planned:
        started = time.perf_counter()
        with span("plan", "", {"gen_ai.operation.name": "plan"}) as trace, open_ledger() as ledger:
            if isinstance(request, Intent):
                intent = request
            else:
                intent = await self.intent(request, deterministic=deterministic, asker=asker, thorough=False)
            if understood is not None:
                understood(intent)
            try:
                compiled = await self._delta.compile(intent, self.planning_registry, fresh=fresh, watch=watch)
            except UnaskedEffectError as error:
                intent, compiled = await self._compile_as_allowed(intent, error, asker, fresh=fresh, watch=watch)
            # One binder for all of it, so that the world is looked through once.
            binder = self._plan_binder(asker)
            choice = await self._choose_plan(compiled, intent, binder, asker, plans)
            require_ready(self, choice.compiled.plan)
            choice, bound = await self._bind_choice(choice, intent, binder, fresh=fresh, watch=watch)
            checked = self._check_choice(intent, choice, bound)
            if choice.compiled.cached and not checked.ok:
                # A cached plan is checked by the current policies, like one that is written now.
                compiled = await self._delta.compile(intent, self.planning_registry, fresh=True, watch=watch)
                choice = await self._choose_plan(compiled, intent, binder, asker, plans)
                require_ready(self, choice.compiled.plan)
                choice, bound = await self._bind_choice(choice, intent, binder, fresh=True, watch=watch)
                checked = self._check_choice(intent, choice, bound)
            seconds = time.perf_counter() - started
            planned = self._build_planned(intent, choice, bound, checked, seconds, ledger)
            record_planned(trace, planned)
        return planned

    async def _plan_with_material(
        self,
        request: str | Labelled[str] | Intent,
        material: Material,
        deterministic: bool,
        asker: Asker | None,
        *,
        fresh: bool,
        watch: Callable[[str], None] | None,
        understood: Callable[[Intent], None] | None,
    ) -> Planned:
        """A plan that reads the material from the variables that its run starts with."""
        started = time.perf_counter()
        if isinstance(request, Intent):
            raise PlanError("plan.bad-material", "material goes with a request, and not with an intent")
        with span("plan", "", {"gen_ai.operation.name": "plan"}) as trace, open_ledger() as ledger:
            words = trusted_request_text(request)
            name = material.name_for(words)
            # The name is the program's own and the words are the user's: neither is text of the world.
            told = with_material(words, name)
            intent = await self.intent(user_input(told), deterministic=deterministic, asker=asker, thorough=False)
            if understood is not None:
                understood(intent)
            try:
                compiled = await self._delta.compile(intent, self.planning_registry, fresh=fresh, watch=watch)
            except UnaskedEffectError as error:
                intent, compiled = await self._compile_as_allowed(intent, error, asker, fresh=fresh, watch=watch)
            binder, own = self._plan_binder(asker), as_requested(intent, told, words)
            choice, bound = await self._bind_material(compiled, material, name, own, binder)
            checked = self.check(bound.plan, intent=own, start=choice.start)
            if compiled.cached and not checked.ok:
                # A cached plan is checked by the current policies, like one that is written now.
                compiled = await self._delta.compile(intent, self.planning_registry, fresh=True, watch=watch)
                choice, bound = await self._bind_material(compiled, material, name, own, binder)
                checked = self.check(bound.plan, intent=own, start=choice.start)
            seconds = time.perf_counter() - started
            planned = self._build_planned(own, choice, bound, checked, seconds, ledger)
            record_planned(trace, planned)
        return replace(planned, reads_material=True)

    async def _bind_material(
        self, compiled: CompiledPlan, material: Material, name: str, intent: Intent, binder: PlanBinder
    ) -> tuple[PlanChoice, PlanBinding]:
        """The plan with the material in place of the file of this name, and with its words bound."""
        from bicameral.agent._plan_choice import PlanChoice

        require_ready(self, compiled.plan)
        plan, start = await read_material(compiled.plan, material, name, self.config.toolbox)
        plan = plan.model_copy(update={"goal": intent.request})
        bound = await self._bind_with(binder, plan, start.types)
        bound.require()
        choice = PlanChoice(replace(compiled, plan=plan), start=start)
        if not start.variables:
            unread = Doubt("unread-material", "the plan does not read the text that came with the request", NOTHING)
            choice = replace(choice, doubts=(unread,))
        return choice, bound

    async def _compile_as_allowed(
        self,
        intent: Intent,
        error: UnaskedEffectError,
        asker: Asker | None,
        *,
        fresh: bool,
        watch: Callable[[str], None] | None,
    ) -> tuple[Intent, CompiledPlan]:
        """A plan for a request that orders an effect in no known words: with it if the person wants it, else without.

        Whoever wants to see a text before it goes out gets the text. Without a person it stays the error: an answer
        would look as if the effect had happened.
        """
        if asker is None:
            raise error
        if await asker.ask(error.question, BOOL) is True:
            wanted = {*intent.effects, *error.effects}
            effects = tuple(effect for effect in ("write", "send", "irreversible") if effect in wanted)
            intent = intent.model_copy(update={"effects": effects})
            return intent, await self._delta.compile(intent, self.planning_registry, fresh=fresh, watch=watch)
        changing = frozenset(tool.name for tool in self.planning_registry if tool.changes)
        planner = self._planner_of(None)
        try:
            compiled = await planner.compile(intent, self.planning_registry, fresh=fresh, watch=watch, without=changing)
        except PlanError:
            raise error from None
        return intent, replace(compiled, dropped=tuple(sorted({*compiled.dropped, *error.tools})))

    async def _bind_choice(
        self,
        choice: PlanChoice,
        intent: Intent,
        binder: PlanBinder,
        *,
        fresh: bool,
        watch: Callable[[str], None] | None,
    ) -> tuple[PlanChoice, PlanBinding]:
        """The plan with its words bound, or one that reads what is there: a table as a table, a note where no table is.

        The planner learns nothing of the world: it writes again with fewer tools. Which tools are left was decided by
        what is there, so the run starts with the label of that. Tools with effects are never among them, and a plan
        that has effects is not written anew.
        """
        bound = await self._bind_with(binder, choice.compiled.plan)
        other = await binder.find_other_reading(choice.compiled.plan, bound)
        if other is None:
            return choice, bound
        kept = choice
        if other.reason == "misread":
            # Otherwise there is an open question, which is the error of the plan.
            kept = replace(choice, doubts=(*choice.doubts, Doubt("misread-file", other.text, other.label)))
        planner = self._planner_of(choice.compiled)
        try:
            compiled = await planner.compile(
                intent, self.planning_registry, fresh=fresh, watch=watch, without=other.without, begin=other.begin
            )
        except BicameralError:
            # Nor is it an error if the model fails, or the budget is spent: there is a plan.
            return kept, bound
        again = await self._bind_with(binder, compiled.plan)
        # A question about the right file, such as which column is meant, is better than an answer from a misread one.
        # Nor does a plan that reads nothing look elsewhere: its answer would be invented.
        unclear = other.reason == "absent" and (again.questions or not self._reads(compiled.plan))
        if unclear or await binder.find_other_reading(compiled.plan, again) is not None:
            return kept, bound
        start = replace(choice.start, read=join(choice.start.read, other.label))
        # What was doubtful about the first plan says nothing of this one.
        doubts = () if other.reason == "misread" else (Doubt("looked-elsewhere", other.text, other.label),)
        compiled = replace(compiled, route=choice.compiled.route)
        return replace(choice, compiled=compiled, by="world", start=start, doubts=doubts, instead=other), again

    def _reads(self, plan: Plan) -> bool:
        """Whether a plan reads something that it names or describes: a clock reads nothing."""
        called = (self.registry.get(step.tool) for _, step in walk(plan.steps) if isinstance(step, Call))
        return any(tool is not None and tool.effect == "read" and tool.arguments for tool in called)

    async def _bind_with(self, binder: PlanBinder, plan: Plan, scope: Mapping[str, Type] | None = None) -> PlanBinding:
        if not open_references(plan):
            return PlanBinding(bind_cells(plan, self.registry, scope))
        return await binder.bind(plan, scope)

    def _check_choice(self, intent: Intent, choice: PlanChoice, bound: PlanBinding) -> Checked:
        bound.require()
        return self.check(bound.plan, intent=intent, known=choice.compiled.check, start=choice.start)

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
        return await self._bind_with(self._plan_binder(asker), plan, scope)

    def check(
        self,
        plan: Plan,
        *,
        intent: Intent | None = None,
        places: Mapping[str, Place] | None = None,
        known: PlanCheck | None = None,
        start: StartState | None = None,
    ) -> Checked:
        """Check a plan: what is wrong with it, what it does and costs at worst, and what policy decides of each call.

        Args:
            plan: The plan.
            intent: What a model wrote the plan for; then it is checked against that too.
            places: The places of its steps in a file, for the findings.
            known: The check that the planner made; one of another plan is not used.
            start: What its run starts with.
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
            start=start,
        )

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

    def _build_planned(
        self,
        intent: Intent,
        choice: PlanChoice,
        bound: PlanBinding,
        checked: Checked,
        seconds: float,
        ledger: Ledger,
    ) -> Planned:
        compiled = choice.compiled
        shown = bound.shown_plan(compiled.plan)
        own = planning_doubts(
            shown,
            intent,
            bound.bindings,
            self.registry,
            self.policy.me,
            dropped=compiled.dropped,
            overridden=compiled.overridden,
        )
        return Planned(
            intent,
            bound.plan,
            checked,
            compiled.mismatches,
            print_plan(shown, self.registry),
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
            (*choice.doubts, *own, *absent_tool_doubts(self, intent.request)),
            choice.start,
            choice.to_json(),
            compiled.draft,
            compiled.draft_types,
        )
