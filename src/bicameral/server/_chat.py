"""An agent as if it were a model: OpenAI's `/v1/models` and `/v1/chat/completions`.

The last message of the user is the request, and the only one that is read. Everything before it, whoever it is said to
be from, may hold what strangers wrote: earlier answers quote what tools read, and a system message or the result of a
tool is whatever the client put there. A text does not become the user's word by standing in a chat: none of it reaches
the planner. It is left out and the answer says so, or it is refused (`[server] history`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Request

from bicameral.durable import RunView, Submission
from bicameral.errors import ServerError, nearest
from bicameral.labels import received

from ._chat_shapes import MODEL, ChatTold, ChatWanted, ModelList, ModelTold, UserMessage
from ._chat_words import chunk, completion, deltas, facts_of, usage_of
from ._desk import Desk
from ._errors import Answered, Json, answer_for
from ._events import BEAT_SECONDS, SENT, Watched, message
from ._guard import token_ended
from ._routes import AtDesk, Caller, errors
from ._runs import Key, submitted, until_settled
from ._tokens import Token

chat = APIRouter(tags=["OpenAI-compatible"])

CHAT_SECONDS = 6 * 3600.0
"""How long a chat waits for its run; the run goes on after that."""
AGAIN_SECONDS = 600.0
"""How long a client that tries again is taken to mean the run that it began."""
_CHAT = {
    "description": "The answer, or why there is none.",
    "content": {
        "application/json": {"schema": {"$ref": "#/components/schemas/ChatTold"}},
        "text/event-stream": {"schema": SENT},
    },
}


@chat.get("/v1/models", response_model=ModelList, responses=errors(), operation_id="list_models")
async def list_models(_: Caller) -> Json:
    """The one model there is: the agent."""
    return Json({"object": "list", "data": [_model()]})


@chat.get("/v1/models/{model}", response_model=ModelTold, responses=errors(404), operation_id="get_model")
async def get_model(_: Caller, model: Annotated[str, Path(max_length=200)]) -> Json:
    """The agent as a model."""
    _known(model)
    return Json(_model())


@chat.post(
    "/v1/chat/completions",
    response_model=ChatTold,
    responses={**errors(404, 409, body=True), 200: _CHAT},
    operation_id="chat",
)
async def complete(
    wanted: ChatWanted,
    request: Request,
    desk: AtDesk,
    caller: Caller,
    idempotency_key: Key = None,
    retry_count: Annotated[str, Header(alias="x-stainless-retry-count", include_in_schema=False)] = "0",
) -> Any:
    """Run what the last message of the user asks for.

    Messages before it are not read. A run that waits for an approval answers with its id; a run that failed answers
    with a `refusal` and no content. The run goes on if the client goes away, and a client that tries again after that
    is given the same run.
    """
    _known(wanted.model)
    words, ignored = _words(wanted, desk), _ignored(wanted)
    with ExitStack() as places:
        # First the place, then the run: whoever is sent away has begun nothing.
        places.enter_context(desk.watches.one(caller.user))
        view = await _begun(desk, caller.user, words) if retry_count not in ("", "0") else None
        if view is None:
            received(words)
            view = await submitted(desk, Submission(request=words, user=caller.user, key=idempotency_key))
        headers = {"X-Bicameral-Run": view.run}
        if not wanted.stream:
            view = await until_settled(desk, view.run, caller, CHAT_SECONDS, request.is_disconnected)
            return Json(completion(view, ignored), headers=headers)
        stream = _stream(desk, caller, view, ignored, _wants_usage(wanted))
        # Without a kind: clients of this protocol take such a message for the error that it is.
        closing = message({"error": token_ended().to_json()})
        return Watched(stream, places.pop_all(), headers, closing)


async def _stream(desk: Desk, caller: Token, view: RunView, ignored: list[str], usage: bool) -> AsyncGenerator[bytes]:
    begun = view.run
    yield message(chunk(begun, {"role": "assistant", "content": ""}))
    settling = asyncio.ensure_future(until_settled(desk, begun, caller, CHAT_SECONDS))
    try:
        while not (await asyncio.wait({settling}, timeout=BEAT_SECONDS))[0]:
            yield b": still here\n\n"
        view = settling.result()
    except Exception as error:
        # It is too late for a status; clients take this for the error that it is.
        yield b"data: " + bytes(answer_for(error).body) + b"\n\n"
        return
    finally:
        settling.cancel()
    for delta in deltas(view):
        yield message(chunk(begun, delta))
    yield message({**chunk(begun, {}, finish="stop"), "bicameral": facts_of(view, ignored)})
    if usage:
        yield message({**chunk(begun, None), "usage": usage_of(view)})
    yield b"data: [DONE]\n\n"


async def _begun(desk: Desk, user: str, words: str) -> RunView | None:
    """The run that a client who tries again has begun already; an effect is not wanted twice for being slow once."""
    since = datetime.now(UTC) - timedelta(seconds=AGAIN_SECONDS)
    recent = await desk.runs.list(user=user, limit=50)
    return next((view for view in recent if view.request == words and view.created >= since), None)


def _words(wanted: ChatWanted, desk: Desk) -> str:
    """The request: what the last message of the user says."""
    asked = [each for each in wanted.messages if isinstance(each, UserMessage)]
    if not asked:
        raise Answered(422, ServerError("server.bad-request", "no message is the user's", expected="the role 'user'"))
    if len(wanted.messages) > 1 and desk.config.server.history == "refuse":
        raise Answered(
            409,
            ServerError(
                "server.history",
                "there are messages besides the request, and they would not be read",
                fix="Send the last message of the user alone.",
            ),
        )
    content = asked[-1].content
    return content if isinstance(content, str) else "\n".join(part.text for part in content)


def _ignored(wanted: ChatWanted) -> list[str]:
    """What was sent and is not used: other messages, and settings that only a model has."""
    others = len(wanted.messages) - 1
    messages = [f"messages ({others})"] if others else []
    return [*messages, *sorted(name[:100] for name in wanted.model_extra or {} if name != "stream_options")]


def _wants_usage(wanted: ChatWanted) -> bool:
    match (wanted.model_extra or {}).get("stream_options"):
        case {"include_usage": True}:
            return True
        case _:
            return False


def _known(model: str) -> None:
    if model != MODEL:
        error = ServerError(
            "server.unknown-model", "there is no such model", expected=repr(MODEL), nearest=nearest(model, [MODEL])
        )
        raise Answered(404, error)


def _model() -> dict[str, Any]:
    return {"id": MODEL, "object": "model", "created": 0, "owned_by": "bicameral"}
