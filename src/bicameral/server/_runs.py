"""Routes for runs: submit, list, get, cancel, fetch the journal, and watch events over server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from bicameral.durable import RunView, Submission
from bicameral.errors import DurableError, PlanError, ServerError
from bicameral.labels import user_input
from bicameral.server._context import HttpError, SafeJsonResponse, ServerContext, json_bytes
from bicameral.server._endpoints import parse_checked_plan
from bicameral.server._guard import Caller, CurrentContext, RunId, error_responses, token_ended_error
from bicameral.server._schemas import (
    CapsGiven,
    JournalTold,
    RunIdText,
    RunList,
    RunStateText,
    RunTold,
    SubmitPlan,
    SubmitRequest,
)
from bicameral.server._tokens import AccessToken

if TYPE_CHECKING:
    from bicameral.runs import Caps, Event


run_router = APIRouter(tags=["runs"])

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern=r"^[!-~]{1,200}$",
        description="The same key always means the same run: whoever is not sure submits again.",
    ),
]
_LOCATION = {"Location": {"description": "Where the run is.", "schema": {"type": "string"}, "required": True}}


@run_router.post(
    "/v1/runs",
    status_code=202,
    response_model=RunTold,
    responses={**error_responses(409, body=True), 202: {"headers": _LOCATION}},
    operation_id="submit",
)
async def submit(
    wanted: SubmitRequest | SubmitPlan, desk: CurrentContext, caller: Caller, idempotency_key: IdempotencyKey = None
) -> SafeJsonResponse:
    """Submit a request or a plan. It is kept before this answers, and whatever dies, it is run.

    A plan is checked first: one that does not pass is answered with 409 and the first thing that is wrong with it.
    """
    view = await submit_run(desk, await build_submission(wanted, desk, caller.user, idempotency_key))
    return SafeJsonResponse(run_json(view), 202, headers={"Location": f"/v1/runs/{view.run}"})


@run_router.get("/v1/runs", response_model=RunList, responses=error_responses(404), operation_id="list_runs")
async def list_runs(
    desk: CurrentContext,
    caller: Caller,
    state: Annotated[RunStateText | None, Query(description="Only runs in this state.")] = None,
    limit: Annotated[int, Query(ge=1, le=200, description="How many.")] = 50,
    before: Annotated[RunIdText | None, Query(description="Only runs that are older than this one.")] = None,
) -> SafeJsonResponse:
    """Your runs, the newest first."""
    found = await desk.runs.list(user=caller.user, state=state, limit=limit, before=before)
    return SafeJsonResponse({"runs": [run_json(view) for view in found]})


@run_router.get("/v1/runs/{run}", response_model=RunTold, responses=error_responses(404), operation_id="get_run")
async def get_run(
    run: RunId,
    request: Request,
    desk: CurrentContext,
    caller: Caller,
    wait: Annotated[
        float, Query(ge=0, le=60, description="Seconds to wait for the run to end, or to need somebody.")
    ] = 0,
) -> SafeJsonResponse:
    """A run as it stands; with `wait`, as it stands once it has ended or waits, or when the time is over."""
    view = await get_own_run(desk, run, caller.user)
    if wait and not is_settled(view):
        with desk.watches.slot(caller.user):
            wait = min(wait, desk.config.server.watch_seconds)
            view = await wait_until_settled(desk, run, caller, wait, request.is_disconnected)
    return SafeJsonResponse(run_json(view))


@run_router.post(
    "/v1/runs/{run}/cancel",
    status_code=202,
    response_model=RunTold,
    responses=error_responses(404, 409, body=True),
    operation_id="cancel_run",
)
async def cancel_run(run: RunId, desk: CurrentContext, caller: Caller) -> SafeJsonResponse:
    """Stop a run: what is under way is brought to an end, and nothing else is begun."""
    await get_own_run(desk, run, caller.user)
    await desk.runs.cancel(run, user=caller.user)
    return SafeJsonResponse(run_json(await desk.runs.get(run, user=caller.user)), 202)


@run_router.get(
    "/v1/runs/{run}/journal", response_model=JournalTold, responses=error_responses(404), operation_id="get_journal"
)
async def get_journal(run: RunId, desk: CurrentContext, caller: Caller) -> SafeJsonResponse:
    """Everything that happened in a run so far, in order, held against its seals."""
    await get_own_run(desk, run, caller.user)
    found = await desk.runs.journal(run, user=caller.user)
    return SafeJsonResponse({"run": run, "events": [event_json(event) for event in found]})


async def build_submission(
    wanted: SubmitRequest | SubmitPlan, desk: ServerContext, user: str, key: str | None = None
) -> Submission:
    """What is submitted, with no more allowed than the server allows."""
    common: dict[str, Any] = {
        "user": user,
        "priority": wanted.priority,
        "not_before": datetime.now(UTC) + timedelta(seconds=wanted.delay) if wanted.delay else None,
        "caps": _allowed_caps(wanted.caps, desk),
        "answer_within": wanted.answer_within,
        "key": key,
    }
    if isinstance(wanted, SubmitRequest):
        # It came over the user's own channel, and may repeat what an earlier answer said.
        user_input(wanted.request)
        return Submission(request=wanted.request, deterministic=wanted.deterministic, **common)
    try:
        with desk.plans.slot():
            plan = await asyncio.to_thread(parse_checked_plan, desk.agent, wanted.plan)
    except PlanError as error:
        raise HttpError(409, error) from None
    return Submission(plan=plan, **common)


def _allowed_caps(given: CapsGiven | None, desk: ServerContext) -> Caps | None:
    if given is None:
        return None
    most = desk.caps
    wanted = given.model_dump(exclude_none=True)
    return replace(most, **{name: min(value, getattr(most, name)) for name, value in wanted.items()})


async def submit_run(desk: ServerContext, what: Submission) -> RunView:
    """The run, kept; a key that already means another request is refused, not answered with that one's run."""
    view = await desk.runs.submit(what)
    if what.key is not None and what.request is not None and view.request != what.request:
        error = ServerError("server.key-reused", "this key was used for another request", fix="Use a new key.")
        raise HttpError(409, error)
    desk.metrics.count_submission()
    return view


async def get_own_run(desk: ServerContext, run: str, user: str) -> RunView:
    """A run of this user by its whole id: a beginning, which serves at a terminal, is not enough for a program."""
    view = await desk.runs.get(run, user=user)
    if view.run != run:
        raise DurableError("durable.unknown-run", "there is no such run")
    return view


async def wait_until_settled(
    desk: ServerContext,
    run: str,
    caller: AccessToken,
    seconds: float,
    gone: Callable[[], Awaitable[bool]] | None = None,
) -> RunView:
    """The run once it has ended or waits for a person, the time is over, or nobody may or will wait for it any more."""
    loop = asyncio.get_running_loop()
    end, pause = loop.time() + seconds, 0.02
    while True:
        view = await desk.runs.get(run, user=caller.user)
        left = end - loop.time()
        over = is_settled(view) or left <= 0 or desk.stopping.is_set() or not desk.tokens.is_valid(caller)
        if over or (gone is not None and await gone()):
            return view
        with suppress(TimeoutError):
            await asyncio.wait_for(desk.stopping.wait(), min(pause, left))
        pause = min(pause * 1.5, 0.5)


def is_settled(view: RunView) -> bool:
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


event_router = APIRouter(tags=["runs"])

TOKEN_CHECK_SECONDS = 0.5
"""How often a watch in which nothing happens looks whether its token still holds."""
KEEPALIVE_SECONDS = 10.0
"""How often a watch in which nothing happens says that it is still there."""
SSE_SCHEMA = {
    "type": "object",
    "required": ["data"],
    "properties": {
        "id": {"type": "string", "description": "The number of the event."},
        "event": {"type": "string", "description": "Its kind."},
        "data": {"type": "string", "description": "Its facts, as JSON."},
        "retry": {"type": "integer"},
    },
}
_STREAM_RESPONSE = {
    "description": "An event for each entry of the journal (`id` its number, `event` its kind, `data` its facts as "
    "JSON), and at the end one of the kind `end` with the run. One of the kind `error` says that the token has ended.",
    "content": {"text/event-stream": {"schema": SSE_SCHEMA}},
}
_NO_MORE_EVENTS = {"description": "The run has ended and there is nothing after that event: do not come again."}
T = TypeVar("T")


@event_router.get(
    "/v1/runs/{run}/events",
    response_class=StreamingResponse,
    responses={**error_responses(404), 200: _STREAM_RESPONSE, 204: _NO_MORE_EVENTS},
    operation_id="watch_run",
)
async def watch_run(
    run: RunId,
    desk: CurrentContext,
    caller: Caller,
    after: Annotated[int, Query(ge=-1, le=2**31, description="Only events after this number.")] = -1,
    last_event_id: Annotated[
        int | None,
        Header(alias="Last-Event-ID", ge=0, le=2**31, description="The last event that came through; beats `after`."),
    ] = None,
) -> Response:
    """Watch a run until it ends. Whoever is cut off comes again with the id of the last event and misses nothing."""
    start = after if last_event_id is None else last_event_id
    view = await get_own_run(desk, run, caller.user)
    if view.has_ended and start >= 0 and not await _has_events_after(desk, run, caller.user, start):
        return Response(status_code=204)
    places = ExitStack()
    # Taken here, where a refusal can still be answered, and given back when the stream ends.
    places.enter_context(desk.watches.slot(caller.user))
    return WatchResponse(
        _stream_events(desk, run, caller, start),
        places,
        {},
        sse_message({"error": token_ended_error().to_json()}, "error"),
    )


class WatchResponse(StreamingResponse):
    """A stream whose place is given back also if it was never begun. `closing` is its last word if its token ends."""

    def __init__(
        self, content: AsyncGenerator[bytes], places: ExitStack, headers: Mapping[str, str], closing: bytes
    ) -> None:
        super().__init__(content, media_type="text/event-stream", headers={**headers, "X-Accel-Buffering": "no"})
        self._content, self._places, self._closing = content, places, closing

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        scope.setdefault("state", {})["closing"] = self._closing
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._places.close()
            await self._content.aclose()


async def _has_events_after(desk: ServerContext, run: str, user: str, after: int) -> bool:
    found = await desk.runs.journal(run, user=user)
    return any(event.number > after for event in found)


async def _stream_events(desk: ServerContext, run: str, caller: AccessToken, after: int) -> AsyncGenerator[bytes]:
    yield b"retry: 2000\n\n"
    watched = desk.runs.watch(run, user=caller.user, after=after)
    loop = asyncio.get_running_loop()
    end, beaten = loop.time() + desk.config.server.watch_seconds, loop.time()
    async for event in with_heartbeats(watched, desk.stopping, end):
        if not desk.tokens.is_valid(caller):
            # The guard lets nothing more through, and says why.
            return
        if event is not None:
            yield sse_message(event_json(event), event.kind, event.number)
            continue
        if desk.stopping.is_set() or loop.time() >= end:
            return
        if loop.time() - beaten >= KEEPALIVE_SECONDS:
            beaten = loop.time()
            yield b": still here\n\n"
    view = await desk.runs.get(run, user=caller.user)
    if view.has_ended:
        yield sse_message(run_json(view), "end")


def sse_message(facts: Any, kind: str = "", number: int | None = None) -> bytes:
    """One event as it goes over the wire; JSON has no line breaks of its own."""
    head = (f"id: {number}\n" if number is not None else "") + (f"event: {kind}\n" if kind else "")
    return head.encode() + b"data: " + json_bytes(facts) + b"\n\n"


async def with_heartbeats(source: AsyncIterator[T], stopping: asyncio.Event, end: float) -> AsyncGenerator[T | None]:
    """What comes from the source, and None when nothing does for a while, at the end, and once all is stopped."""
    stopped = asyncio.ensure_future(stopping.wait())
    coming: asyncio.Future[T] | None = None
    try:
        while True:
            coming = coming or asyncio.ensure_future(anext(source))
            beat = max(0.0, min(TOKEN_CHECK_SECONDS, end - asyncio.get_running_loop().time()))
            await asyncio.wait({coming, stopped}, timeout=beat, return_when=asyncio.FIRST_COMPLETED)
            if not coming.done():
                yield None
                continue
            done, coming = coming, None
            try:
                yield done.result()
            except StopAsyncIteration:
                return
    finally:
        stopped.cancel()
        if coming is not None:
            coming.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration, Exception):
                await coming
        if isinstance(source, AsyncGenerator):
            await source.aclose()
