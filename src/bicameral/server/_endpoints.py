"""Routes for plans and checks, approvals, health and metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Response
from fastapi.responses import PlainTextResponse

from bicameral.durable import Approval
from bicameral.errors import BicameralError, BindError, DurableError, IntentError, Place, PlanError
from bicameral.labels import user_input
from bicameral.runs import ending_of
from bicameral.server._context import SafeJsonResponse, ServerContext
from bicameral.server._guard import (
    ApprovalId,
    Approver,
    CurrentContext,
    QuestionReader,
    Runner,
    Viewer,
    error_responses,
)
from bicameral.server._schemas import (
    AnswerGiven,
    ApprovalList,
    ApprovalTold,
    CheckWanted,
    DoubtTold,
    ErrorAnswer,
    HealthTold,
    PlanTold,
    PlanWanted,
    ReplyGiven,
)

if TYPE_CHECKING:
    from bicameral.agent import Agent, Checked
    from bicameral.binding import PlanBinding
    from bicameral.plans import Plan


plan_router = APIRouter(tags=["plans"])


def public_doubt_json(doubt: Mapping[str, Any]) -> dict[str, Any]:
    """A doubt without its labels: like the answer it is for the owner of the run."""
    return {name: doubt[name] for name in DoubtTold.model_fields if name in doubt}


@plan_router.post("/v1/plans", response_model=PlanTold, responses=error_responses(502, body=True), operation_id="plan")
async def plan(wanted: PlanWanted, context: CurrentContext, _: Runner) -> SafeJsonResponse:
    """Write the plan for a request and check it. Nothing is run and nothing is kept.

    A request for which there is no plan is an answer too: `ok` is false and `error` says why.
    """
    with context.plans.slot():
        try:
            planned = await context.agent.plan(
                user_input(wanted.request), deterministic=wanted.deterministic, fresh=wanted.fresh
            )
        except (IntentError, BindError, PlanError) as error:
            return SafeJsonResponse(_no_plan_json(error))
    facts = {
        "intent": planned.intent.model_dump(mode="json"),
        "bindings": [each.to_json() for each in planned.bindings],
        "doubts": [public_doubt_json(doubt.to_json()) for doubt in planned.doubts],
        "choice": dict(planned.choice) or None,
    }
    return SafeJsonResponse(_checked_json(planned.checked, planned.plan, planned.source) | facts)


@plan_router.post("/v1/checks", response_model=PlanTold, responses=error_responses(body=True), operation_id="check")
async def check(wanted: CheckWanted, context: CurrentContext, _: Runner) -> SafeJsonResponse:
    """Check a plan: types, references, effects, cost at worst, and the verdict of policy on each call.

    A text that is no plan is an answer too: `ok` is false and `error` says why.
    """
    with context.plans.slot():
        return SafeJsonResponse(await _check_text(context.agent, wanted.plan))


@dataclass(frozen=True, slots=True)
class CheckedText:
    """A plan that was sent as a text: as it was written, bound to the world as it is now, and checked."""

    plan: Plan
    bound: PlanBinding
    checked: Checked
    places: Mapping[str, Place]
    """Where the steps of the bound plan stand in the text; those that binding added stand nowhere."""

    def first_error(self) -> PlanError:
        """The first error of a plan that does not pass the check."""
        first = self.checked.report.errors[0]
        hints = {"expected": first.expected, "nearest": first.nearest, "fix": first.fix}
        return PlanError(first.code, first.message, place=first.place, **hints)


async def check_plan_text(agent: Agent, text: str) -> CheckedText:
    """The check of the plan of a text; the error if it is no plan, or if only a person can say what a word means."""
    plan, places = await asyncio.to_thread(_parse_plan_text, agent, text)
    bound = await agent.bind(plan)
    bound.require()
    moved = bound.moved_places(places)
    return CheckedText(plan, bound, await asyncio.to_thread(agent.check, bound.plan, places=moved), moved)


async def _check_text(agent: Agent, text: str) -> dict[str, Any]:
    from bicameral.binding import binding_doubts
    from bicameral.plans import print_plan

    try:
        found = await check_plan_text(agent, text)
    except BicameralError as error:
        return _no_plan_json(error)
    bound = found.bound
    return _checked_json(found.checked, bound.plan, print_plan(bound.shown_plan(found.plan), agent.registry)) | {
        "bindings": [each.to_json() for each in bound.bindings],
        "doubts": [public_doubt_json(doubt.to_json()) for doubt in binding_doubts(bound.bindings)],
    }


def _no_plan_json(error: BicameralError) -> dict[str, Any]:
    return {"ok": False, "ending": ending_of(error), "error": error.to_json()}


def _checked_json(checked: Checked, plan: Plan, source: str) -> dict[str, Any]:
    facts = {"ok": checked.ok, "plan": plan.model_dump(mode="json"), "source": source}
    return facts | {"report": checked.report.to_json(), "proof": checked.proof and checked.proof.to_json()}


def _parse_plan_text(agent: Agent, text: str) -> tuple[Plan, Mapping[str, Place]]:
    """The plan of a text in the Python syntax or as JSON, and the places of its steps."""
    from bicameral.plans import load_plan, parse

    if text.lstrip().startswith("{"):
        return load_plan(text, file="plan"), {}
    parsed = parse(text, agent.registry, file="plan")
    return parsed.plan, parsed.places


async def parse_checked_plan(agent: Agent, text: str) -> Plan:
    """The plan of a text as it was written; the first error of its check as `PlanError` if it does not pass.

    It is checked as it is bound now, and the worker binds it anew: the world may change before it runs. A `BindError`
    if only a person can say what a word means, since a plan that nobody could check would be accepted otherwise.
    """
    found = await check_plan_text(agent, text)
    if not found.checked.ok:
        raise found.first_error()
    return found.plan


approval_router = APIRouter(tags=["approvals"])


@approval_router.get(
    "/v1/approvals", response_model=ApprovalList, responses=error_responses(), operation_id="list_approvals"
)
async def list_approvals(
    context: CurrentContext,
    caller: QuestionReader,
    open_only: Annotated[bool, Query(alias="open", description="Only those that can still be answered.")] = True,
) -> SafeJsonResponse:
    """What your runs wait for."""
    found = await context.runs.approvals(user=caller.owner, open_only=open_only)
    return SafeJsonResponse({"approvals": [approval_json(each) for each in found]})


@approval_router.get(
    "/v1/approvals/{approval}", response_model=ApprovalTold, responses=error_responses(404), operation_id="get_approval"
)
async def get_approval(approval: ApprovalId, context: CurrentContext, caller: QuestionReader) -> SafeJsonResponse:
    """A question, with each call exactly as it would be made and what strangers had a hand in."""
    return SafeJsonResponse(approval_json(await get_own_approval(context, approval, caller.owner)))


@approval_router.post(
    "/v1/approvals/{approval}/answer",
    response_model=ApprovalTold,
    responses=error_responses(404, 409, body=True),
    operation_id="answer_approval",
)
async def answer_approval(
    approval: ApprovalId, given: AnswerGiven, context: CurrentContext, caller: Approver
) -> SafeJsonResponse:
    """Say which of the calls may be made. A yes holds for exactly these calls, once each, and the run goes on."""
    await get_own_approval(context, approval, caller.owner)
    answered = await context.runs.answer(
        approval, given.approve, user=caller.owner, by=caller.user, for_run=given.for_run
    )
    return SafeJsonResponse(approval_json(answered))


@approval_router.post(
    "/v1/approvals/{approval}/reply",
    response_model=ApprovalTold,
    responses=error_responses(404, 409, body=True),
    operation_id="reply_approval",
)
async def reply_approval(
    approval: ApprovalId, given: ReplyGiven, context: CurrentContext, caller: Approver
) -> SafeJsonResponse:
    """Reply to what a plan asks; the run goes on with the value."""
    await get_own_approval(context, approval, caller.owner)
    return SafeJsonResponse(
        approval_json(await context.runs.reply(approval, given.value, user=caller.owner, by=caller.user))
    )


async def get_own_approval(context: ServerContext, approval: str, user: str | None) -> Approval:
    """A question of this user, or of any, by its whole id: a prefix could match another one than the client means."""
    found = await context.runs.approval(approval, user=user)
    if found.id != approval:
        raise DurableError("durable.unknown-approval", "there is no such question")
    return found


def approval_json(approval: Approval) -> dict[str, Any]:
    """The fields of a question that the API has."""
    facts = approval.to_json()
    return {name: facts[name] for name in ApprovalTold.model_fields if name in facts}


health_router = APIRouter(tags=["health"])

READY_SECONDS = 3.0
"""How long `/readyz` waits for the database: a probe must fail and not hang."""
_ERROR_RESPONSE = {500: {"model": ErrorAnswer, "description": "A mistake of ours."}}
_NOT_READY_RESPONSE = {
    503: {"model": HealthTold, "description": "It is being stopped, or its database does not answer."}
}
_METRICS_RESPONSE = {
    "description": "Counters in Prometheus' text form.",
    "content": {"text/plain": {"schema": {"type": "string"}}},
}


@health_router.get("/healthz", response_model=HealthTold, responses={**_ERROR_RESPONSE}, operation_id="healthz")
async def healthz() -> SafeJsonResponse:
    """The process is there and answers."""
    return SafeJsonResponse({"ok": True})


@health_router.get(
    "/readyz", response_model=HealthTold, responses={**_ERROR_RESPONSE, **_NOT_READY_RESPONSE}, operation_id="readyz"
)
async def readyz(context: CurrentContext) -> SafeJsonResponse:
    """Runs can be submitted: the database answers and the server is not being stopped."""
    ready = not context.stopping.is_set() and await _is_database_ready(context)
    return SafeJsonResponse({"ok": ready}, 200 if ready else 503)


async def _is_database_ready(context: ServerContext) -> bool:
    try:
        async with asyncio.timeout(READY_SECONDS):
            await context.runs.list(limit=1)
    except Exception:
        return False
    return True


@health_router.get(
    "/metrics", response_class=Response, responses={**error_responses(), 200: _METRICS_RESPONSE}, operation_id="metrics"
)
async def metrics(context: CurrentContext, _: Viewer) -> PlainTextResponse:
    """Counters for Prometheus: names of routes, states and statuses, and nothing that anybody wrote."""
    alive = [worker for worker in await context.runs.workers() if worker.alive]
    states = await context.runs.counts()
    gauges = {
        "bicameral_runs": ("Runs by state.", [(f'{{state="{state}"}}', count) for state, count in states.items()]),
        "bicameral_watches": ("Runs that are being watched here.", [("", context.watches.in_use)]),
        "bicameral_workers": ("Workers that are alive.", [("", len(alive))]),
        "bicameral_worker_runs": ("Runs that workers have in hand.", [("", sum(worker.runs for worker in alive))]),
    }
    return PlainTextResponse(context.metrics.render(gauges), media_type="text/plain; version=0.0.4")
