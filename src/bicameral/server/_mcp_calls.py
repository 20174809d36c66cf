"""What the MCP tools do: plan, check, run, show, cancel and ask, each for the user who calls.

A request or a plan comes from the client's model, which may have read text of strangers. Unless the server was started
for a client that passes on nothing but the user's own words, a person endorses it first: what a model has read is a
part of what it writes, and only a person can say that a text is theirs. Runs are durable, like all runs of the server:
they are in the journal, and what they ask can be answered anywhere.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from bicameral.durable import Approval, RunView, Submission
from bicameral.errors import BicameralError, BindError, CatalogError, IntentError, PlanError, ServerError, nearest_name
from bicameral.labels import user_input
from bicameral.server._context import HttpError, ServerContext
from bicameral.server._endpoints import check_plan_text, get_own_approval
from bicameral.server._mcp_questions import (
    CallState,
    CannotAsk,
    Declined,
    Filled,
    Form,
    FormReply,
    Person,
    Undecided,
    approved_calls,
    calls_form,
    endorsement_form,
    reply_form,
    reply_value,
)
from bicameral.server._mcp_results import (
    Answers,
    approval_result,
    no_plan_result,
    plan_result,
    refused_plan_error,
    run_result,
    run_row,
)
from bicameral.server._mcp_tools import (
    ApprovalAskArguments,
    ApprovalsListArguments,
    CheckArguments,
    PatternShowArguments,
    PatternsListArguments,
    PlanArguments,
    RunArguments,
    RunCancelArguments,
    RunShowArguments,
    RunsListArguments,
)
from bicameral.server._runs import get_own_run, is_settled, submit_run
from bicameral.server._tokens import AccessToken

if TYPE_CHECKING:
    from bicameral.agent import Planned
    from bicameral.catalog import PatternFacts
    from bicameral.patterns.kernel import TextPattern
    from bicameral.plans import Plan
    from bicameral.runs import Event

Requests = Literal["untrusted", "trusted"]
"""Whose words the requests and plans of a client are. `untrusted`: anybody may have written a part of them, and a
person endorses each. `trusted`: the user's own, for a client in which nobody else's text can become a request."""
Report = Callable[[float, str], Awaitable[None]]
"""Tells the client the progress of its call, if it wants to know."""
T = TypeVar("T")

CANCEL_SECONDS = 5.0
"""How long to wait for the end of a run that is stopped."""
_ASKED_ELSEWHERE = ("server.cannot-ask", "server.too-many-questions")
"""Errors after which a run waits on for somebody who answers it elsewhere, or later."""


@dataclass(frozen=True, slots=True)
class McpOptions:
    """How an MCP server treats its clients.

    Args:
        requests: Whose words their requests are.
        answers: What becomes of values that strangers may have written.
    """

    requests: Requests = "untrusted"
    answers: Answers = "marked"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool: who calls, who can be asked, and what an earlier round of it has begun."""

    context: ServerContext
    options: McpOptions
    caller: AccessToken
    person: Person
    report: Report
    state: CallState = field(default_factory=CallState)

    @property
    def user(self) -> str:
        return self.caller.user

    def check_token(self) -> None:
        """Refuse to go on after the token has ended: a person may take an hour to answer."""
        if not self.context.tokens.is_valid(self.caller):
            raise HttpError(401, ServerError("server.token-ended", "the token has expired or was removed"))

    async def _ask(self, form: Form) -> FormReply:
        # A form may stay open for an hour: without a bound, one client could fill the memory with them.
        with self.context.forms.slot(self.user):
            return await self.person.ask(form)

    async def plan(self, given: PlanArguments) -> dict[str, Any]:
        request = await self._own_words(given.request, "plan this request")
        context = self.context
        with context.plans.slot():
            try:
                planned = await self._planned(request, given)
            except (IntentError, BindError, PlanError) as error:
                return no_plan_result(error, self.options.answers)
        from bicameral.plans import drop_bindings

        written, registry = planned.draft or drop_bindings(planned.plan), context.agent.registry
        shown = self.options.answers
        return plan_result(planned.checked, written, planned.bindings, planned.doubts, registry, shown)

    async def _planned(self, request: str, given: PlanArguments) -> Planned:
        statements = asyncio.Queue[None]()

        async def report_statements() -> None:
            number = 0
            while True:
                await statements.get()
                # Not the statement itself: the plan is told once, when it has passed the check.
                await self.report(number := number + 1, f"statement {number} of the plan")

        await self.report(0, "planning")
        reporting = asyncio.create_task(report_statements())
        try:
            return await self.context.agent.plan(
                user_input(request),
                deterministic=given.deterministic,
                fresh=given.fresh,
                watch=lambda _: statements.put_nowait(None),
            )
        finally:
            reporting.cancel()
            with suppress(asyncio.CancelledError):
                await reporting

    async def check(self, given: CheckArguments) -> dict[str, Any]:
        # No privileged model reads the text: it is parsed, its words are looked up, and it is proved.
        agent = self.context.agent
        with self.context.plans.slot():
            try:
                found = await check_plan_text(agent, given.plan)
            except BicameralError as error:
                return no_plan_result(error, self.options.answers)
        from bicameral.binding import binding_doubts

        shown, bindings = self.options.answers, found.bound.bindings
        return plan_result(found.checked, found.plan, bindings, binding_doubts(bindings), agent.registry, shown)

    async def run(self, given: RunArguments) -> dict[str, Any]:
        context = self.context
        with context.watches.slot(self.user):
            if self.state.run is None:
                submission = await self._submission(given)
                self.check_token()
                self.state.run = (await submit_run(context, submission)).run
            async with self._stopping_run(self.state.run):
                return await self._run_result(await self._follow_and_ask(self.state.run, given.wait))

    async def run_show(self, given: RunShowArguments) -> dict[str, Any]:
        view = await get_own_run(self.context, given.run, self.user)
        if given.wait and not is_settled(view):
            with self.context.watches.slot(self.user):
                view = await self._follow(given.run, given.wait)
        return await self._run_result(view)

    async def run_cancel(self, given: RunCancelArguments) -> dict[str, Any]:
        await get_own_run(self.context, given.run, self.user)
        return await self._run_result(await self._cancel(given.run))

    async def _cancel(self, run: str) -> RunView:
        """Stop a run, and wait a while for its end: what has begun may take its time."""
        await self.context.runs.cancel(run, self.user)
        return await self.context.runs.wait(run, self.user, timeout=CANCEL_SECONDS)

    async def runs_list(self, given: RunsListArguments) -> dict[str, Any]:
        found = await self.context.runs.list(self.user, given.state, given.limit, given.before)
        return {"runs": [run_row(view) for view in found]}

    async def approvals_list(self, given: ApprovalsListArguments) -> dict[str, Any]:
        found = await self.context.runs.approvals(self.user, open_only=given.open)
        return {"approvals": [approval_result(each) for each in found]}

    async def approval_ask(self, given: ApprovalAskArguments) -> dict[str, Any]:
        approval = await get_own_approval(self.context, given.approval, self.user)
        if approval.is_open:
            if not self.person.can_be_asked:
                raise CannotAsk("this client cannot ask its user: it has no elicitation", approval=approval.id)
            approval = await self._put_to_person(approval)
        return approval_result(approval)

    async def patterns_list(self, given: PatternsListArguments) -> dict[str, Any]:
        from bicameral.catalog import catalog
        from bicameral.patterns import text_patterns

        known = catalog()
        if given.query is None:
            found = list(known.patterns.values())
        else:
            found = [hit.pattern for hit in known.search(given.query, limit=20)]
        able = await asyncio.to_thread(text_patterns)
        rows = [_pattern_row(each, able) for each in found]
        return {"patterns": [row for row in rows if row["runnable"] or not given.runnable]}

    async def pattern_show(self, given: PatternShowArguments) -> dict[str, Any]:
        from bicameral.catalog import catalog
        from bicameral.patterns import text_patterns

        pattern = catalog().pattern(given.id)
        return _pattern_facts(pattern, await asyncio.to_thread(text_patterns))

    async def _own_words(self, text: str, what: str, details: Sequence[str] = ()) -> str:
        """The text as the user's own words: as it is, or as a person endorsed it."""
        if self.options.requests == "trusted":
            return text
        from bicameral.agent import endorsement_of_value

        # A screen shows the text in its normal form, so that form is what is endorsed, and what is planned from.
        shown = endorsement_of_value(text)
        if not self.person.can_be_asked:
            raise IntentError(
                "intent.needs-endorsement",
                "a model of this client wrote the request, and the client cannot ask its user whether it is theirs",
                fix="Use a client with elicitation, run it with `bicameral run`, or start the server with "
                "`--requests trusted` if nothing but the user's own words can reach it.",
            )
        match await self._ask(endorsement_form(shown, what, details)):
            case Filled(values={"yes": True}):
                return shown.text
            case Filled() | Declined():
                raise IntentError("intent.not-endorsed", "the user said no, and nothing was done")
            case Undecided():
                raise IntentError("intent.not-endorsed", "the user did not answer, and nothing was done")

    async def _submission(self, given: RunArguments) -> Submission:
        if given.plan is not None:
            return Submission(plan=await self._checked_plan(given.plan), user=self.user)
        request = given.request or ""
        strategy = None if given.pattern is None else _known_pattern(given.pattern, given.knobs)
        what, details = "run this request", list[str]()
        if strategy is not None:
            what = f"run this request with the pattern {given.pattern}"
            details = [f"with the settings {_visible_json(given.knobs)}"] if given.knobs else []
        request = await self._own_words(request, what, details)
        user_input(request)
        deterministic = given.deterministic and strategy is None
        return Submission(request=request, strategy=strategy, deterministic=deterministic, user=self.user)

    async def _checked_plan(self, text: str) -> Plan:
        """The plan of a text, checked, and read by a person first unless it is the user's own."""
        from bicameral.plans import print_plan

        agent = self.context.agent
        with self.context.plans.slot():
            found = await check_plan_text(agent, text)
        if not found.checked.ok:
            raise refused_plan_error(found, agent.registry)
        # Printed from what will run, and not from what was sent: a comment could say anything.
        await self._own_words(print_plan(found.plan, agent.registry), "run this plan")
        return found.plan

    async def _follow_and_ask(self, run: str, wait: float) -> RunView:
        """Wait for a run, and put to the person what it asks, until it ends or nobody answers."""
        while True:
            view = await self._follow(run, wait)
            if view.state != "waiting" or not self.person.can_be_asked or not self.caller.may("approve"):
                return view
            for waits in view.waits_for:
                try:
                    answered = await self._put_to_person(await get_own_approval(self.context, waits, self.user))
                except HttpError as error:
                    if error.error.code in _ASKED_ELSEWHERE:
                        return view
                    raise
                if answered.is_open:
                    return view

    async def _put_to_person(self, approval: Approval) -> Approval:
        """Put a question to the person and store what they decide; it stays open if they decide nothing."""
        form = calls_form(approval) if approval.kind == "calls" else reply_form(approval)
        reply = await self._ask(form)
        self.check_token()
        runs, user = self.context.runs, self.user
        match reply, approval.kind:
            case Filled(), "calls":
                return await runs.answer(approval.id, approved_calls(approval, reply), user=user, by=user)
            case Declined(), "calls":
                return await runs.answer(approval.id, "none", user=user, by=user)
            case Filled(), "ask" if (value := reply_value(approval, reply)) is not None:
                return await runs.reply(approval.id, value, user=user, by=user)
            case _:
                return approval

    async def _follow(self, run: str, seconds: float) -> RunView:
        """The run when it has ended or waits, or when the time, the token or the server ends; reports each step."""
        context, loop, state = self.context, asyncio.get_running_loop(), self.state
        end, pause = loop.time() + min(seconds, context.config.server.watch_seconds), 0.02
        while True:
            view = await context.runs.get(run, user=self.user)
            for event in await asyncio.to_thread(context.runs.run_journal.events_after, run, state.read):
                state.read = event.number
                if text := _progress_text(event):
                    state.told += 1
                    await self.report(state.told, text)
            left = end - loop.time()
            if is_settled(view) or left <= 0 or context.stopping.is_set() or not context.tokens.is_valid(self.caller):
                return view
            with suppress(TimeoutError):
                await asyncio.wait_for(context.stopping.wait(), min(pause, left))
            pause = min(pause * 1.5, 0.5)

    @asynccontextmanager
    async def _stopping_run(self, run: str) -> AsyncGenerator[None]:
        """Stop the run if the call is cancelled: the client has taken back what it asked for.

        A server that is told to stop cancels its calls too. That is no wish of the client's, and the run goes on.
        """
        try:
            yield
        except asyncio.CancelledError:
            if not self.context.stopping.is_set():
                await _shielded(self._cancel(run))
            raise

    async def _run_result(self, view: RunView) -> dict[str, Any]:
        events = await self.context.runs.journal(view.run, self.user) if view.state == "finished" else []
        return run_result(view, events, self.options.answers)


async def _shielded(work: Awaitable[T]) -> None:
    """Do the work to its end although the task is being cancelled; what fails is left to the run itself."""
    from anyio import move_on_after

    with move_on_after(2 * CANCEL_SECONDS, shield=True), suppress(BicameralError):
        await work


def _progress_text(event: Event) -> str | None:
    """What happened, without a value: the step and the name of its tool are the plan's."""
    match event.kind:
        case "run-started":
            return "the plan passed its check and runs"
        case "step-started":
            return f"step {event.step} began"
        case "step-finished":
            return f"step {event.step} is done"
        case "run-waits":
            return "the user is asked"
        case "reason-planned" | "reason-round":
            return "the next round is planned"
        case _:
            return None


def _known_pattern(id: str, knobs: Mapping[str, Any]) -> TextPattern:
    """The pattern with its settings; an error for a setting that it does not have."""
    from bicameral.catalog import catalog
    from bicameral.patterns import text_pattern

    known = catalog().pattern(id).knobs
    for name in knobs:
        if name not in known:
            raise CatalogError(
                "catalog.unknown-knob",
                f"{id} has no such setting",
                nearest=nearest_name(name, known),
                fix=f"It has {', '.join(known)}." if known else "It has none.",
            )
    return text_pattern(id, knobs)


def _visible_json(value: object) -> str:
    # ASCII: what a person reads is what is set, whatever characters are in it.
    return json.dumps(value, ensure_ascii=True, sort_keys=True)


def _pattern_row(pattern: PatternFacts, able: Sequence[str]) -> dict[str, Any]:
    facts = {"id": pattern.id, "name": pattern.name, "category": pattern.category, "what": pattern.what}
    return {**facts, "runnable": pattern.id in able}


def _pattern_facts(pattern: PatternFacts, able: Sequence[str]) -> dict[str, Any]:
    from bicameral.catalog import catalog, plain_record

    known = catalog()
    knobs = [
        {"name": name, "what": knob.what, "default": plain_record(knob.default)} for name, knob in pattern.knobs.items()
    ]
    facts: dict[str, Any] = {
        "how": pattern.how,
        "when": list(pattern.when),
        "not_when": [f"{each.condition}: {', '.join(each.use) or 'build nothing'}" for each in pattern.not_when],
        "invariants": [each.rule for each in pattern.invariants],
        "knobs": knobs,
        "needs": [f"{', '.join(each.all_of or each.any_of)}: {each.why}" for each in known.requirements_of(pattern.id)],
        "clashes": [f"{each.id} {each.name}: {each.rule}" for each in known.conflicts_of(pattern.id)],
    }
    return _pattern_row(pattern, able) | facts


HANDLERS: Mapping[str, Callable[[ToolCall, Any], Awaitable[dict[str, Any]]]] = {
    "plan": ToolCall.plan,
    "check": ToolCall.check,
    "run": ToolCall.run,
    "run_show": ToolCall.run_show,
    "run_cancel": ToolCall.run_cancel,
    "runs_list": ToolCall.runs_list,
    "approvals_list": ToolCall.approvals_list,
    "approval_ask": ToolCall.approval_ask,
    "patterns_list": ToolCall.patterns_list,
    "pattern_show": ToolCall.pattern_show,
}
"""What each tool does, by its name."""
