"""Approvals: the calls that wait for a yes, and what plans ask, answered by the user whose run it is."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from bicameral.durable import Approval
from bicameral.errors import DurableError

from ._desk import Desk
from ._errors import Json
from ._routes import ApprovalId, AtDesk, Caller, errors
from ._shapes import AnswerGiven, ApprovalList, ApprovalTold, ReplyGiven

approvals = APIRouter(tags=["approvals"])


@approvals.get("/v1/approvals", response_model=ApprovalList, responses=errors(), operation_id="list_approvals")
async def list_approvals(
    desk: AtDesk,
    caller: Caller,
    open_only: Annotated[bool, Query(alias="open", description="Only those that can still be answered.")] = True,
) -> Json:
    """What your runs wait for."""
    found = await desk.runs.approvals(user=caller.user, open_only=open_only)
    return Json({"approvals": [approval_json(each) for each in found]})


@approvals.get(
    "/v1/approvals/{approval}", response_model=ApprovalTold, responses=errors(404), operation_id="get_approval"
)
async def get_approval(approval: ApprovalId, desk: AtDesk, caller: Caller) -> Json:
    """A question, with each call exactly as it would be made and what strangers had a hand in."""
    return Json(approval_json(await _own(desk, approval, caller.user)))


@approvals.post(
    "/v1/approvals/{approval}/answer",
    response_model=ApprovalTold,
    responses=errors(404, 409, body=True),
    operation_id="answer_approval",
)
async def answer_approval(approval: ApprovalId, given: AnswerGiven, desk: AtDesk, caller: Caller) -> Json:
    """Say which of the calls may be made. A yes holds for exactly these calls, once each, and the run goes on."""
    await _own(desk, approval, caller.user)
    user = caller.user
    answered = await desk.runs.answer(approval, given.approve, user=user, by=user, for_run=given.for_run)
    return Json(approval_json(answered))


@approvals.post(
    "/v1/approvals/{approval}/reply",
    response_model=ApprovalTold,
    responses=errors(404, 409, body=True),
    operation_id="reply_approval",
)
async def reply_approval(approval: ApprovalId, given: ReplyGiven, desk: AtDesk, caller: Caller) -> Json:
    """Reply to what a plan asks; the run goes on with the value."""
    await _own(desk, approval, caller.user)
    return Json(approval_json(await desk.runs.reply(approval, given.value, user=caller.user, by=caller.user)))


async def _own(desk: Desk, approval: str, user: str) -> Approval:
    """A question to this user by its whole id: whoever answers must mean exactly this one."""
    found = await desk.runs.approval(approval, user=user)
    if found.id != approval:
        raise DurableError("durable.unknown-approval", "there is no such question")
    return found


def approval_json(approval: Approval) -> dict[str, Any]:
    told = approval.to_json()
    return {name: told[name] for name in ApprovalTold.model_fields if name in told}
