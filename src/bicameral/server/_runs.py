"""Runs: submit, look at, list, cancel, and fetch the journal of."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Header, Query, Request

from bicameral.durable import RunView, Submission
from bicameral.errors import DurableError, PlanError, ServerError
from bicameral.labels import received

from ._desk import Desk
from ._errors import Answered, Json
from ._plans import checked_plan
from ._routes import AtDesk, Caller, RunId, errors
from ._shapes import CapsGiven, Id, JournalTold, RunList, RunTold, State, SubmitPlan, SubmitRequest
from ._tokens import Token

if TYPE_CHECKING:
    from bicameral.runs import Caps, Event

runs = APIRouter(tags=["runs"])

Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern=r"^[!-~]{1,200}$",
        description="The same key always means the same run: whoever is not sure submits again.",
    ),
]
_LOCATION = {"Location": {"description": "Where the run is.", "schema": {"type": "string"}, "required": True}}


@runs.post(
    "/v1/runs",
    status_code=202,
    response_model=RunTold,
    responses={**errors(409, body=True), 202: {"headers": _LOCATION}},
    operation_id="submit",
)
async def submit(wanted: SubmitRequest | SubmitPlan, desk: AtDesk, caller: Caller, idempotency_key: Key = None) -> Json:
    """Submit a request or a plan. It is kept before this answers, and whatever dies, it is run.

    A plan is checked first: one that does not pass is answered with 409 and the first thing that is wrong with it.
    """
    view = await submitted(desk, await submission(wanted, desk, caller.user, idempotency_key))
    return Json(run_json(view), 202, headers={"Location": f"/v1/runs/{view.run}"})


@runs.get("/v1/runs", response_model=RunList, responses=errors(404), operation_id="list_runs")
async def list_runs(
    desk: AtDesk,
    caller: Caller,
    state: Annotated[State | None, Query(description="Only runs in this state.")] = None,
    limit: Annotated[int, Query(ge=1, le=200, description="How many.")] = 50,
    before: Annotated[Id | None, Query(description="Only runs that are older than this one.")] = None,
) -> Json:
    """Your runs, the newest first."""
    found = await desk.runs.list(user=caller.user, state=state, limit=limit, before=before)
    return Json({"runs": [run_json(view) for view in found]})


@runs.get("/v1/runs/{run}", response_model=RunTold, responses=errors(404), operation_id="get_run")
async def get_run(
    run: RunId,
    request: Request,
    desk: AtDesk,
    caller: Caller,
    wait: Annotated[
        float, Query(ge=0, le=60, description="Seconds to wait for the run to end, or to need somebody.")
    ] = 0,
) -> Json:
    """A run as it stands; with `wait`, as it stands once it has ended or waits, or when the time is over."""
    view = await own_run(desk, run, caller.user)
    if wait and not settled(view):
        with desk.watches.one(caller.user):
            wait = min(wait, desk.config.server.watch_seconds)
            view = await until_settled(desk, run, caller, wait, request.is_disconnected)
    return Json(run_json(view))


@runs.post(
    "/v1/runs/{run}/cancel",
    status_code=202,
    response_model=RunTold,
    responses=errors(404, 409, body=True),
    operation_id="cancel_run",
)
async def cancel_run(run: RunId, desk: AtDesk, caller: Caller) -> Json:
    """Stop a run: what is under way is brought to an end, and nothing else is begun."""
    await own_run(desk, run, caller.user)
    await desk.runs.cancel(run, user=caller.user)
    return Json(run_json(await desk.runs.get(run, user=caller.user)), 202)


@runs.get("/v1/runs/{run}/journal", response_model=JournalTold, responses=errors(404), operation_id="get_journal")
async def get_journal(run: RunId, desk: AtDesk, caller: Caller) -> Json:
    """Everything that happened in a run so far, in order, held against its seals."""
    await own_run(desk, run, caller.user)
    found = await desk.runs.journal(run, user=caller.user)
    return Json({"run": run, "events": [event_json(event) for event in found]})


async def submission(wanted: SubmitRequest | SubmitPlan, desk: Desk, user: str, key: str | None = None) -> Submission:
    """What is submitted, with no more allowed than the server allows."""
    common: dict[str, Any] = {
        "user": user,
        "priority": wanted.priority,
        "not_before": datetime.now(UTC) + timedelta(seconds=wanted.delay) if wanted.delay else None,
        "caps": _caps(wanted.caps, desk),
        "answer_within": wanted.answer_within,
        "key": key,
    }
    if isinstance(wanted, SubmitRequest):
        # It came over the user's own channel, and may repeat what an earlier answer said.
        received(wanted.request)
        return Submission(request=wanted.request, deterministic=wanted.deterministic, **common)
    try:
        with desk.plans.one():
            plan = await asyncio.to_thread(checked_plan, desk.agent, wanted.plan)
    except PlanError as error:
        raise Answered(409, error) from None
    return Submission(plan=plan, **common)


def _caps(given: CapsGiven | None, desk: Desk) -> Caps | None:
    if given is None:
        return None
    most = desk.caps
    wanted = given.model_dump(exclude_none=True)
    return replace(most, **{name: min(value, getattr(most, name)) for name, value in wanted.items()})


async def submitted(desk: Desk, what: Submission) -> RunView:
    """The run, kept; a key that already means another request is refused, not answered with that one's run."""
    view = await desk.runs.submit(what)
    if what.key is not None and what.request is not None and view.request != what.request:
        error = ServerError("server.key-reused", "this key was used for another request", fix="Use a new key.")
        raise Answered(409, error)
    desk.metrics.submitted()
    return view


async def own_run(desk: Desk, run: str, user: str) -> RunView:
    """A run of this user by its whole id: a beginning, which serves at a terminal, is not enough for a program."""
    view = await desk.runs.get(run, user=user)
    if view.run != run:
        raise DurableError("durable.unknown-run", "there is no such run")
    return view


async def until_settled(
    desk: Desk, run: str, caller: Token, seconds: float, gone: Callable[[], Awaitable[bool]] | None = None
) -> RunView:
    """The run once it has ended or waits for a person, the time is over, or nobody may or will wait for it any more."""
    loop = asyncio.get_running_loop()
    end, pause = loop.time() + seconds, 0.02
    while True:
        view = await desk.runs.get(run, user=caller.user)
        left = end - loop.time()
        over = settled(view) or left <= 0 or desk.stopping.is_set() or not desk.tokens.holds(caller)
        if over or (gone is not None and await gone()):
            return view
        with suppress(TimeoutError):
            await asyncio.wait_for(desk.stopping.wait(), min(pause, left))
        pause = min(pause * 1.5, 0.5)


def settled(view: RunView) -> bool:
    """Whether nothing more happens by itself."""
    return view.state in ("waiting", "finished", "failed", "stopped")


def run_json(view: RunView) -> dict[str, Any]:
    """A run as its user is told it: not on which machine it is."""
    told = view.to_json()
    return {name: told[name] for name in RunTold.model_fields if name in told}


def event_json(event: Event) -> dict[str, Any]:
    return {
        "number": event.number,
        "at": event.at,
        "kind": event.kind,
        "step": event.step,
        "body": event.body,
    }
