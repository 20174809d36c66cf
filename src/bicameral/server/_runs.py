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

from bicameral.durable import RunState, RunView, Submission
from bicameral.errors import BindError, CatalogError, DurableError, PlanError, ServerError, nearest_name
from bicameral.labels import user_input
from bicameral.server._context import HttpError, SafeJsonResponse, ServerContext, json_bytes
from bicameral.server._endpoints import parse_checked_plan, public_doubt_json
from bicameral.server._guard import CurrentContext, RunId, Runner, Viewer, error_responses, token_ended_error
from bicameral.server._schemas import (
    MODEL_NAME,
    CapsGiven,
    CitationTold,
    EventTold,
    JournalTold,
    RunIdText,
    RunList,
    RunTold,
    SubmitPlan,
    SubmitRequest,
)
from bicameral.server._tokens import AccessToken

if TYPE_CHECKING:
    from bicameral.limits import Limits
    from bicameral.patterns.kernel import TextPattern
    from bicameral.runs import Event


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
    responses={**error_responses(404, 409, body=True), 202: {"headers": _LOCATION}},
    operation_id="submit",
)
async def submit(
    wanted: SubmitRequest | SubmitPlan, context: CurrentContext, caller: Runner, idempotency_key: IdempotencyKey = None
) -> SafeJsonResponse:
    """Submit a request or a plan. It is kept before this answers, and whatever dies, it is run.

    A plan is checked first: one that does not pass is answered with 409 and the first thing that is wrong with it.
    """
    view = await submit_run(context, await build_submission(wanted, context, caller.user, idempotency_key))
    return SafeJsonResponse(run_json(view), 202, headers={"Location": f"/v1/runs/{view.run}"})


@run_router.get("/v1/runs", response_model=RunList, responses=error_responses(404), operation_id="list_runs")
async def list_runs(
    context: CurrentContext,
    caller: Viewer,
    state: Annotated[RunState | None, Query(description="Only runs in this state.")] = None,
    limit: Annotated[int, Query(ge=1, le=200, description="How many.")] = 50,
    before: Annotated[RunIdText | None, Query(description="Only runs that are older than this one.")] = None,
) -> SafeJsonResponse:
    """Your runs, the newest first; those of everybody for a token for all users."""
    found = await context.runs.list(user=caller.owner, state=state, limit=limit, before=before)
    return SafeJsonResponse({"runs": [run_json(view) for view in found]})


@run_router.get("/v1/runs/{run}", response_model=RunTold, responses=error_responses(404), operation_id="get_run")
async def get_run(
    run: RunId,
    request: Request,
    context: CurrentContext,
    caller: Viewer,
    wait: Annotated[
        float, Query(ge=0, le=60, description="Seconds to wait for the run to end, or to need somebody.")
    ] = 0,
) -> SafeJsonResponse:
    """A run as it stands; with `wait`, as it stands once it has ended or waits, or when the time is over."""
    view = await get_own_run(context, run, caller.owner)
    if wait and not is_settled(view):
        with context.watches.slot(caller.user):
            wait = min(wait, context.config.server.watch_seconds)
            view = await wait_until_settled(context, run, caller, wait, request.is_disconnected)
    return SafeJsonResponse(run_json(view))


@run_router.post(
    "/v1/runs/{run}/cancel",
    status_code=202,
    response_model=RunTold,
    responses=error_responses(404, 409, body=True),
    operation_id="cancel_run",
)
async def cancel_run(run: RunId, context: CurrentContext, caller: Runner) -> SafeJsonResponse:
    """Stop a run: what is under way is brought to an end, and nothing else is begun."""
    await get_own_run(context, run, caller.owner)
    await context.runs.cancel(run, user=caller.owner)
    return SafeJsonResponse(run_json(await context.runs.get(run, user=caller.owner)), 202)


@run_router.get(
    "/v1/runs/{run}/journal", response_model=JournalTold, responses=error_responses(404), operation_id="get_journal"
)
async def get_journal(run: RunId, context: CurrentContext, caller: Viewer) -> SafeJsonResponse:
    """Everything that happened in a run so far, in order, held against its seals."""
    await get_own_run(context, run, caller.owner)
    found = await context.runs.journal(run, user=caller.owner)
    return SafeJsonResponse({"run": run, "events": [event_json(event) for event in found]})


async def build_submission(
    wanted: SubmitRequest | SubmitPlan, context: ServerContext, user: str, key: str | None = None
) -> Submission:
    """The submission, with its caps no higher than the server's."""
    common: dict[str, Any] = {
        "user": user,
        "priority": wanted.priority,
        "not_before": datetime.now(UTC) + timedelta(seconds=wanted.delay) if wanted.delay else None,
        "caps": _allowed_caps(wanted.caps, context),
        "answer_within": wanted.answer_within,
        "key": key,
    }
    if isinstance(wanted, SubmitRequest):
        # It came over the user's own channel, so it is the user's text even if it repeats an earlier answer.
        user_input(wanted.request)
        strategy = pattern_of_model(wanted.model)
        if strategy is not None and wanted.deterministic:
            message = "a pattern does not plan, so it has no deterministic planning"
            raise HttpError(422, ServerError("server.bad-request", message, fix="Leave `deterministic` out."))
        return Submission(request=wanted.request, strategy=strategy, deterministic=wanted.deterministic, **common)
    try:
        with context.plans.slot():
            plan = await parse_checked_plan(context.agent, wanted.plan)
    except (BindError, PlanError) as error:
        raise HttpError(409, error) from None
    return Submission(plan=plan, **common)


def pattern_of_model(model: str) -> TextPattern | None:
    """The pattern that the name of a model means; None for the agent itself, and 404 for a name that is none."""
    if model == MODEL_NAME:
        return None
    from bicameral.patterns import model_pattern

    try:
        return model_pattern(model)
    except CatalogError:
        names = model_names()
        nearest, expected = nearest_name(model, names), f"one of {', '.join(names)}"
        error = ServerError("server.unknown-model", "there is no such model", expected=expected, nearest=nearest)
        raise HttpError(404, error) from None


def model_names() -> list[str]:
    """The agent, and the patterns that work on a text."""
    from bicameral.patterns import MODEL_PREFIX, text_patterns

    return [MODEL_NAME, *(f"{MODEL_PREFIX}{id}" for id in text_patterns())]


def _allowed_caps(given: CapsGiven | None, context: ServerContext) -> Limits | None:
    if given is None:
        return None
    most = context.caps
    wanted = given.model_dump(exclude_none=True)
    return replace(most, **{name: min(value, getattr(most, name)) for name, value in wanted.items()})


async def submit_run(context: ServerContext, submission: Submission) -> RunView:
    """Store a run; a key that was used for another request is refused, and not answered with that request's run."""
    view = await context.runs.submit(submission)
    pattern = None if submission.strategy is None else submission.strategy.id
    same = (view.request, view.pattern) == (submission.request, pattern)
    if submission.key is not None and submission.request is not None and not same:
        error = ServerError("server.key-reused", "this key was used for another request", fix="Use a new key.")
        raise HttpError(409, error)
    context.metrics.count_submission()
    return view


async def get_own_run(context: ServerContext, run: str, user: str | None) -> RunView:
    """A run of this user, or of any, by its whole id: a prefix is for people, and a program could hit another one."""
    view = await context.runs.get(run, user=user)
    if view.run != run:
        raise DurableError("durable.unknown-run", "there is no such run")
    return view


async def wait_until_settled(
    context: ServerContext,
    run: str,
    caller: AccessToken,
    seconds: float,
    gone: Callable[[], Awaitable[bool]] | None = None,
) -> RunView:
    """The run when it has ended or waits for a person, or when the time, the token, the client or the server ends."""
    loop = asyncio.get_running_loop()
    end, pause = loop.time() + seconds, 0.02
    while True:
        view = await context.runs.get(run, user=caller.owner)
        left = end - loop.time()
        over = is_settled(view) or left <= 0 or context.stopping.is_set() or not context.tokens.is_valid(caller)
        if over or (gone is not None and await gone()):
            return view
        with suppress(TimeoutError):
            await asyncio.wait_for(context.stopping.wait(), min(pause, left))
        pause = min(pause * 1.5, 0.5)


def is_settled(view: RunView) -> bool:
    """Whether the run has ended or waits for a person."""
    return view.state in ("waiting", "finished", "failed", "stopped")


def run_json(view: RunView) -> dict[str, Any]:
    """The fields of a run that the API has; not its worker, whose name says on which machine it is."""
    facts = view.to_json() | {"doubts": doubts_json(view), "citations": citations_json(view)}
    return {name: facts[name] for name in RunTold.model_fields if name in facts}


def doubts_json(view: RunView) -> list[dict[str, Any]]:
    """The doubts of a run, without their labels."""
    return [public_doubt_json(doubt) for doubt in view.doubts]


def citations_json(view: RunView) -> list[dict[str, Any]]:
    """The citations of a run, without their labels: like the answer they are for the owner of the run."""
    return [{name: each[name] for name in CitationTold.model_fields if name in each} for each in view.citations]


def event_json(event: Event) -> dict[str, Any]:
    return {name: getattr(event, name) for name in EventTold.model_fields}


event_router = APIRouter(tags=["runs"])

TOKEN_CHECK_SECONDS = 0.5
"""How often an idle watch checks whether its token is still valid."""
KEEPALIVE_SECONDS = 10.0
"""How often an idle watch sends a comment, so that proxies do not close the connection."""
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
    context: CurrentContext,
    caller: Viewer,
    after: Annotated[int, Query(ge=-1, le=2**31, description="Only events after this number.")] = -1,
    last_event_id: Annotated[
        int | None,
        Header(alias="Last-Event-ID", ge=0, le=2**31, description="The last event that came through; beats `after`."),
    ] = None,
) -> Response:
    """Watch a run until it ends. Whoever is cut off comes again with the id of the last event and misses nothing."""
    start = after if last_event_id is None else last_event_id
    view = await get_own_run(context, run, caller.owner)
    if view.has_ended and start >= 0:
        events = await context.runs.journal(run, user=caller.owner)
        if all(event.number <= start for event in events):
            return Response(status_code=204)
    slots = ExitStack()
    # Taken here, where a refusal can still be a status, and freed when the stream ends.
    slots.enter_context(context.watches.slot(caller.user))
    closing = sse_message({"error": token_ended_error().to_json()}, "error")
    return WatchResponse(_stream_events(context, run, caller, start), slots, {}, closing)


class WatchResponse(StreamingResponse):
    """A stream that frees its slots even if it never began. `closing` is its last message if the token ends."""

    def __init__(
        self, content: AsyncGenerator[bytes], slots: ExitStack, headers: Mapping[str, str], closing: bytes
    ) -> None:
        super().__init__(content, media_type="text/event-stream", headers={**headers, "X-Accel-Buffering": "no"})
        self._content, self._slots, self._closing = content, slots, closing

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        scope.setdefault("state", {})["closing"] = self._closing
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._slots.close()
            await self._content.aclose()


async def _stream_events(context: ServerContext, run: str, caller: AccessToken, after: int) -> AsyncGenerator[bytes]:
    yield b"retry: 2000\n\n"
    watched = context.runs.watch(run, user=caller.owner, after=after)
    loop = asyncio.get_running_loop()
    end, last_sent = loop.time() + context.config.server.watch_seconds, loop.time()
    async for event in with_heartbeats(watched, context.stopping, end):
        if not context.tokens.is_valid(caller):
            # The guard sends the reason; it would not let anything else through.
            return
        if event is not None:
            yield sse_message(event_json(event), event.kind, event.number)
            continue
        if context.stopping.is_set() or loop.time() >= end:
            return
        if loop.time() - last_sent >= KEEPALIVE_SECONDS:
            last_sent = loop.time()
            yield b": still here\n\n"
    view = await context.runs.get(run, user=caller.owner)
    if view.has_ended:
        yield sse_message(run_json(view), "end")


def sse_message(facts: Any, kind: str = "", number: int | None = None) -> bytes:
    """One server-sent event. Its data is one line: JSON escapes line breaks."""
    head = (f"id: {number}\n" if number is not None else "") + (f"event: {kind}\n" if kind else "")
    return head.encode() + b"data: " + json_bytes(facts) + b"\n\n"


async def with_heartbeats(source: AsyncIterator[T], stopping: asyncio.Event, end: float) -> AsyncGenerator[T | None]:
    """The items of the source, and None whenever there is none for a while, at `end`, and when `stopping` is set."""
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
