"""Plans that start from the result of an earlier run: `now mail it to Kim`.

The result goes into the next run as the variable `result`, with its labels, so policy decides about it as in the run
that made it. The planner reads the person's own words and its own earlier plan as it wrote it, before anything was
bound, and the type of the result with the names that a planner may read. No part of the result itself is in a prompt.

Value, type and labels are read from the sealed record of the earlier run, and never taken from a caller.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from bicameral.agent._absent_tools import explained_failures, require_ready, require_tools
from bicameral.agent._chat_history import ChatHistory, ChatTurn
from bicameral.agent._conversation import UnderstoodTurn, understand_turn
from bicameral.agent._escalation import Planned, record_planned
from bicameral.agent._plan_choice import PlanChoice
from bicameral.agent._planning import AgentPlanning
from bicameral.agent._wiring import within_budget
from bicameral.boundary import HandleContent
from bicameral.errors import JournalError, PlanError, RunError
from bicameral.labels import NOTHING, UNKNOWN, Label, Labelled, label_tree_from_json, rename_steps, user_input
from bicameral.limits import open_ledger
from bicameral.planning import (
    EarlierRounds,
    Intent,
    ValueOrigin,
    plan_literals,
    trusted_request_text,
    understand,
    variable_origins,
)
from bicameral.plans import Answer, Call, Compute, Plan, Ref, Scope, plan_references, print_plan, type_of, walk
from bicameral.runs import Asker, Journal, StartState, read_run_record, recorded_request
from bicameral.telemetry import span
from bicameral.tools import Registry
from bicameral.types import ANY, Type, type_from_json, type_to_json, value_from_json

if TYPE_CHECKING:
    from bicameral.journal import Event

RESULT = "result"
"""The variable that holds the earlier result."""
MAX_CHAIN = 4
"""How many plans are shown before the one that is written."""
MAX_OPENING = 2_000
_SENTENCE_ENDS = ".!?…:;"


@dataclass(frozen=True, slots=True)
class EarlierResult:
    """The result of a finished run, and what a plan that starts from it is written with.

    Args:
        run: The id of the run.
        request: The person's words that led to it.
        content: The value with its type and its labels.
        shown_type: The type with the names that a planner may read.
        opening: The planner's own statements that led to it; empty if they may not be shown.
        literals: The literals of the plans that led to it.
        origin: The constants of these plans that the result may have.
        read: The label of what decided which plan was run.
        assembled: Whether the plan put the result together, so that it is not a whole value.
        changed: Whether the run changed something.
    """

    run: str
    request: str
    content: HandleContent
    shown_type: Type = ANY
    opening: str = ""
    literals: tuple[str, ...] = ()
    origin: ValueOrigin | None = None
    read: Label = NOTHING
    assembled: bool = False
    changed: bool = False

    @property
    def start(self) -> StartState:
        """What a run that continues from it starts with."""
        assembled = frozenset({RESULT}) if self.assembled else frozenset[str]()
        return StartState({RESULT: self.content}, read=self.read, assembled=assembled)

    def with_request(self, said: str) -> str:
        """The request before it and what the person says now, as one text."""
        before = self.request.rstrip()
        return f"{before}{'' if before.endswith(tuple(_SENTENCE_ENDS)) else '.'} {said}"

    def for_planner(self) -> EarlierRounds:
        """The result as the planner of the next plan is told of it."""
        from bicameral.patterns.reasoner import Round, render_history

        history = render_history([Round(1, draft=self.opening or f"{RESULT} = …")], {RESULT: self.shown_type})
        return EarlierRounds(
            history,
            {RESULT: self.content.type},
            literals=self.literals,
            may_look=False,
            shown_types={RESULT: self.shown_type},
            read_label=self.read,
            origins={} if self.origin is None else {RESULT: self.origin},
            opening=self.opening,
        )


def conversation_facts(planned: Planned) -> dict[str, Any]:
    """What the record of a run keeps so that a later request can start from its result."""
    if planned.draft is None:
        return {}
    return {
        "draft": planned.draft.to_json(),
        "type": type_to_json(_answer_type(planned.plan, planned.report.types)),
        "shown": type_to_json(_answer_type(planned.draft, planned.draft_types)),
    } | ({"continues": planned.continues} if planned.continues else {})


def load_result(journal: Journal, run: str, registry: Registry, own: frozenset[str] = frozenset()) -> EarlierResult:
    """The result of a run from its record; a record that was changed or erased is refused.

    Args:
        journal: The journal with the record.
        run: The id of the run.
        registry: The tools.
        own: The user's own addresses, from the settings.
    """
    return _load(journal, run, registry, own, MAX_CHAIN)


def _load(journal: Journal, run: str, registry: Registry, own: frozenset[str], depth: int) -> EarlierResult:
    events = journal.events(run)
    record = read_run_record(events, journal)
    first, end = events[0], record.end
    request = recorded_request(first.body)
    if record.plan is None or not request or end is None or end.kind != "run-finished":
        raise RunError(
            "run.no-result",
            f"run {record.run} has no result to go on with",
            expected="a request that was planned and has an answer",
        )
    facts = _conversation(first, journal)
    before = None
    if facts.get("continues") and depth:
        before = _load(journal, str(facts["continues"]), registry, own, depth - 1)
    draft = _readable_draft(facts.get("draft"), registry)
    start = record.start or StartState()
    named = _with_named_answer(record.plan)
    origins = {} if before is None or before.origin is None else {RESULT: before.origin}
    made = start.assembled_values(named, registry, request, own)
    # The record has what the run read; where it ran without labels the worst is assumed.
    tree = label_tree_from_json(end.body["shade"]) if "shade" in end.body else UNKNOWN
    value = value_from_json(end.body["answer"])
    return EarlierResult(
        record.run,
        request,
        HandleContent(value, _type(facts.get("type")), rename_steps(tree, _step_of_earlier)),
        _type(facts.get("shown")),
        _opening(draft, before, start, registry),
        (*(() if before is None else before.literals), *(str(each) for each in plan_literals(draft or record.plan))),
        variable_origins(named, registry, origins).get(RESULT),
        rename_steps(start.read, _step_of_earlier).flat,
        RESULT in made.variables,
        bool(end.body.get("effects")),
    )


def _conversation(first: Event, journal: Journal) -> Mapping[str, Any]:
    facts = first.body.get("conversation", {})
    if not isinstance(facts, dict):
        raise JournalError("journal.damaged", f"{journal.path}: what run {first.run} is followed by cannot be read")
    return facts  # pyright: ignore[reportUnknownVariableType]


def _type(facts: object) -> Type:
    return ANY if facts is None else type_from_json(facts)


def _step_of_earlier(step: str) -> str:
    return step if step.startswith("earlier/") else f"earlier/{step}"


def _answer_type(plan: Plan, types: Mapping[str, Type]) -> Type:
    """The type of a plan's answer; any, if it answers in more than one place."""
    match plan.steps[-1:]:
        case (Answer(value=value),) if _answers_once(plan):
            return type_of(value, Scope.from_types(types))
        case _:
            return ANY


def _answers_once(plan: Plan) -> bool:
    return sum(isinstance(step, Answer) for _, step in walk(plan.steps)) == 1


def _with_named_answer(plan: Plan) -> Plan:
    """The plan with its answer as the variable `result`; unchanged if it answers in more than one place."""
    match plan.steps[-1:]:
        case (Answer(value=value),) if _answers_once(plan):
            named = (Compute(name=RESULT, value=value), Answer(value=Ref(name=RESULT)))
            return plan.model_copy(update={"steps": (*plan.steps[:-1], *named)})
        case _:
            return plan


def _readable_draft(text: object, registry: Registry) -> Plan | None:
    """The plan as its planner wrote it, if a planner may read it again."""
    if not isinstance(text, str):
        return None
    try:
        draft = Plan.model_validate_json(text)
    except ValidationError:
        return None
    # A planner never writes what a reference is bound to, and it may be a name of the world.
    if any(each.bound is not None for each in plan_references(draft)):
        return None
    tools = [registry.get(step.tool) for _, step in walk(draft.steps) if isinstance(step, Call)]
    # Neutral names of self-described tools belong to one request: in the next one they may stand for other tools.
    if any(tool is None or tool.self_described for tool in tools):
        return None
    return draft


def _opening(draft: Plan | None, before: EarlierResult | None, start: StartState, registry: Registry) -> str:
    """The planner's own statements that led to a result; empty if they cannot be shown whole."""
    if draft is None or not _answers_once(draft) or not isinstance(draft.steps[-1], Answer):
        return ""
    if start.variables and (before is None or not before.opening):
        return ""
    named = _with_named_answer(draft)
    code = print_plan(named.model_copy(update={"goal": "", "steps": named.steps[:-1]}), registry)
    whole = ("" if before is None else before.opening) + code
    return whole if len(whole) <= MAX_OPENING else ""


class AgentContinuation(AgentPlanning):
    """The part of an agent that plans requests which start from the result of an earlier run."""

    def chat_history(self) -> ChatHistory:
        """The conversation of this person in this project, not yet loaded."""
        return ChatHistory(self._journal, self.config.project)

    async def understand_turn(
        self, said: str, turns: Sequence[ChatTurn], *, asker: Asker | None = None
    ) -> UnderstoodTurn:
        """What the person means, given the turns before it: see `understand_turn`."""
        return await understand_turn(trusted_request_text(user_input(said)), turns, self._now().date(), asker)

    def earlier_result(self, run: str) -> EarlierResult:
        """The result of a finished run, from its record.

        Raises:
            JournalError: The record was changed or erased, or there is no such run.
            RunError: `run.no-result`, if the run has no answer.
        """
        if self._journal is None:
            raise PlanError("journal.none", "this agent has no journal", fix="Give it one, or use Agent.from_config().")
        return load_result(self._journal, run, self.registry, frozenset(self.policy.me))

    @within_budget
    async def plan_continuation(
        self,
        request: str | Labelled[str],
        run: str,
        *,
        deterministic: bool = False,
        asker: Asker | None = None,
        fresh: bool = False,
        watch: Callable[[str], None] | None = None,
    ) -> Planned:
        """A checked plan for a request that speaks of the result of an earlier run; nothing is done yet.

        Only effects that this request asks for are planned: what the earlier one asked for is done.

        Args:
            request: What the person says now, such as `now mail it to Kim`.
            run: The run whose result it speaks of.
            deterministic: Understand the request by rules alone, without a model.
            asker: Answers the open questions of the request.
            fresh: Do not use a cached plan.
            watch: Called with each statement as it is written.

        Example:
            >>> planned = await agent.plan_continuation("now mail it to Kim", outcome.run)
            >>> outcome = await agent.run(planned, approver=approver)
        """
        started, said, result = time.perf_counter(), trusted_request_text(request), self.earlier_result(run)
        traced = span("plan", "", {"gen_ai.operation.name": "plan"})
        with explained_failures(self, said), traced as trace, open_ledger() as ledger:
            require_tools(self, said)
            whole = result.with_request(said)
            intent = await self.intent(user_input(whole), deterministic=deterministic, asker=asker, thorough=False)
            intent = self._intent_of_now(intent, whole.removesuffix(said), said)
            planned = await self._continue(intent, result, asker, started, ledger, fresh=fresh, watch=watch)
            record_planned(trace, planned)
        return planned

    def _intent_of_now(self, intent: Intent, before: str, said: str) -> Intent:
        """The intent with the effects of what the person says now: those of the request before it have happened."""
        # Answers to questions stand after the request, and count.
        words = intent.request.removeprefix(before) if intent.request.startswith(before) else said
        now = understand(words, self.planning_registry, self._now().date())
        return intent.model_copy(update={"effects": now.effects, "required": now.required, "output": now.output})

    async def _continue(
        self,
        intent: Intent,
        result: EarlierResult,
        asker: Asker | None,
        started: float,
        ledger: Any,
        *,
        fresh: bool,
        watch: Callable[[str], None] | None,
    ) -> Planned:
        earlier, start = result.for_planner(), result.start
        options: dict[str, Any] = {"watch": watch, "earlier": earlier}
        compiled = await self._delta.compile(intent, self.planning_registry, fresh=fresh, **options)
        require_ready(self, compiled.plan)
        binder = self._plan_binder(asker)
        bound = await self._bind_with(binder, compiled.plan, start.types)
        bound.require()
        checked = self.check(bound.plan, intent=intent, known=compiled.check, start=start)
        if compiled.cached and not checked.ok:
            # A cached plan is checked by the current policies, like one that is written now.
            compiled = await self._delta.compile(intent, self.planning_registry, fresh=True, **options)
            bound = await self._bind_with(binder, compiled.plan, start.types)
            bound.require()
            checked = self.check(bound.plan, intent=intent, known=compiled.check, start=start)
        choice, seconds = PlanChoice(compiled, start=start), time.perf_counter() - started
        planned = self._build_planned(intent, choice, bound, checked, seconds, ledger)
        return replace(planned, continues=result.run)
