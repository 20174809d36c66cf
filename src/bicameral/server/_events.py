"""Watching a run: its events as they are recorded, over server-sent events, and on from where one left off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import ExitStack, suppress
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse

from ._desk import Desk
from ._errors import json_text
from ._guard import token_ended
from ._routes import AtDesk, Caller, RunId, errors
from ._runs import event_json, own_run, run_json
from ._tokens import Token

events = APIRouter(tags=["runs"])

CHECK_SECONDS = 0.5
"""How often a watch in which nothing happens looks whether its token still holds."""
BEAT_SECONDS = 10.0
"""How often a watch in which nothing happens says that it is still there."""
SENT = {
    "type": "object",
    "required": ["data"],
    "properties": {
        "id": {"type": "string", "description": "The number of the event."},
        "event": {"type": "string", "description": "Its kind."},
        "data": {"type": "string", "description": "Its facts, as JSON."},
        "retry": {"type": "integer"},
    },
}
_TEXT = {
    "description": "An event for each entry of the journal (`id` its number, `event` its kind, `data` its facts as "
    "JSON), and at the end one of the kind `end` with the run. One of the kind `error` says that the token has ended.",
    "content": {"text/event-stream": {"schema": SENT}},
}
_NOTHING = {"description": "The run has ended and there is nothing after that event: do not come again."}
T = TypeVar("T")


@events.get(
    "/v1/runs/{run}/events",
    response_class=StreamingResponse,
    responses={**errors(404), 200: _TEXT, 204: _NOTHING},
    operation_id="watch_run",
)
async def watch_run(
    run: RunId,
    desk: AtDesk,
    caller: Caller,
    after: Annotated[int, Query(ge=-1, le=2**31, description="Only events after this number.")] = -1,
    last_event_id: Annotated[
        int | None,
        Header(alias="Last-Event-ID", ge=0, le=2**31, description="The last event that came through; beats `after`."),
    ] = None,
) -> Response:
    """Watch a run until it ends. Whoever is cut off comes again with the id of the last event and misses nothing."""
    start = after if last_event_id is None else last_event_id
    view = await own_run(desk, run, caller.user)
    if view.ended and start >= 0 and not await _anything(desk, run, caller.user, start):
        return Response(status_code=204)
    places = ExitStack()
    # Taken here, where a refusal can still be answered, and given back when the stream ends.
    places.enter_context(desk.watches.one(caller.user))
    return Watched(_stream(desk, run, caller, start), places, {}, message({"error": token_ended().to_json()}, "error"))


class Watched(StreamingResponse):
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


async def _anything(desk: Desk, run: str, user: str, after: int) -> bool:
    found = await desk.runs.journal(run, user=user)
    return any(event.number > after for event in found)


async def _stream(desk: Desk, run: str, caller: Token, after: int) -> AsyncGenerator[bytes]:
    yield b"retry: 2000\n\n"
    watched = desk.runs.watch(run, user=caller.user, after=after)
    loop = asyncio.get_running_loop()
    end, beaten = loop.time() + desk.config.server.watch_seconds, loop.time()
    async for event in beating(watched, desk.stopping, end):
        if not desk.tokens.holds(caller):
            # The guard lets nothing more through, and says why.
            return
        if event is not None:
            yield message(event_json(event), event.kind, event.number)
            continue
        if desk.stopping.is_set() or loop.time() >= end:
            return
        if loop.time() - beaten >= BEAT_SECONDS:
            beaten = loop.time()
            yield b": still here\n\n"
    view = await desk.runs.get(run, user=caller.user)
    if view.ended:
        yield message(run_json(view), "end")


def message(facts: Any, kind: str = "", number: int | None = None) -> bytes:
    """One event as it goes over the wire; JSON has no line breaks of its own."""
    head = (f"id: {number}\n" if number is not None else "") + (f"event: {kind}\n" if kind else "")
    return head.encode() + b"data: " + json_text(facts) + b"\n\n"


async def beating(source: AsyncIterator[T], stopping: asyncio.Event, end: float) -> AsyncGenerator[T | None]:
    """What comes from the source, and None when nothing does for a while, at the end, and once all is stopped."""
    stopped = asyncio.ensure_future(stopping.wait())
    coming: asyncio.Future[T] | None = None
    try:
        while True:
            coming = coming or asyncio.ensure_future(anext(source))
            beat = max(0.0, min(CHECK_SECONDS, end - asyncio.get_running_loop().time()))
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
