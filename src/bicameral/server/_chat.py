"""An agent behind OpenAI's protocol: `/v1/models` and `/v1/chat/completions`.

The last message of the user is the request, and the only message that is read. All earlier messages may hold untrusted
text, whatever their role: earlier answers quote what tools read, and a system message or a tool result is whatever the
client put there. None of it reaches the planner, because text does not become the user's own by being in a chat. It is
left out and the answer says so, or the request is refused (`[server] history`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, cast

from fastapi import APIRouter, Header, Path, Request
from pydantic import ConfigDict, Field

from bicameral.durable import RunView, Submission
from bicameral.errors import ServerError
from bicameral.labels import user_input
from bicameral.runs import Ending
from bicameral.server._context import HttpError, SafeJsonResponse, ServerContext, response_for
from bicameral.server._guard import Caller, CurrentContext, Runner, error_responses, token_ended_error
from bicameral.server._runs import (
    KEEPALIVE_SECONDS,
    SSE_SCHEMA,
    IdempotencyKey,
    WatchResponse,
    citations_json,
    doubts_json,
    model_names,
    pattern_of_model,
    sse_message,
    submit_run,
    wait_until_settled,
)
from bicameral.server._schemas import (
    MODEL_NAME,
    TYPED_TEXT,
    CitationTold,
    DoubtTold,
    ModelName,
    RequestModel,
    ResponseModel,
    RunIdText,
    WholeNumber,
)
from bicameral.server._tokens import AccessToken

MAX_MESSAGES = 200
MAX_MESSAGE_CHARS = 5_000
"""More than a request may have, so that a request that is too long gets the error for that."""


class _LenientModel(RequestModel):
    # Clients send many settings that an agent does not use; the answer names those that were ignored.
    model_config = ConfigDict(extra="allow")


class TextPart(_LenientModel):
    """A part of a message; only text can be a request."""

    type: Literal["text"]
    text: Annotated[str, Field(max_length=MAX_MESSAGE_CHARS, pattern=TYPED_TEXT)]


class UserMessage(_LenientModel):
    """What the user says. The last one is the request."""

    role: Literal["user"]
    content: (
        Annotated[str, Field(max_length=MAX_MESSAGE_CHARS, pattern=TYPED_TEXT)]
        | Annotated[list[TextPart], Field(min_length=1, max_length=16)]
    )


class OtherMessage(_LenientModel):
    """What others said, or are said to have said. It is never read."""

    role: Literal["system", "developer", "assistant", "tool", "function"]


class ChatWanted(_LenientModel):
    """A request in the form of a chat."""

    model: ModelName
    messages: Annotated[
        list[Annotated[UserMessage | OtherMessage, Field(discriminator="role")]],
        Field(
            min_length=1,
            max_length=MAX_MESSAGES,
            json_schema_extra={"contains": {"properties": {"role": {"const": "user"}}}},
        ),
    ]
    stream: bool | None = None
    n: Annotated[int, Field(ge=1, le=1), WholeNumber] | None = None


class ChatMessage(ResponseModel):
    """What is answered: `content`, or why there is none in `refusal`."""

    role: Literal["assistant"]
    content: str | None
    refusal: str | None = None


class ChatChoice(ResponseModel):
    index: int
    message: ChatMessage
    finish_reason: Literal["stop"]
    logprobs: None = None


class ChatUsage(ResponseModel):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatFacts(ResponseModel):
    """What an ordinary client does not know of."""

    run: RunIdText
    state: str
    approvals: list[str]
    """What the run waits for."""
    ignored: list[str]
    """What was sent and not used."""
    doubts: list[DoubtTold]
    """What the answer and the effects rest on and may be wrong; `content` begins with them."""
    citations: list[CitationTold]
    """Where what they rest on was found; `content` ends with the places."""


class ChatTold(ResponseModel):
    """The answer of a run in the form of a chat."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChatChoice]
    usage: ChatUsage
    bicameral: ChatFacts


class ModelTold(ResponseModel):
    """The agent or a pattern, as a model."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(ResponseModel):
    """All there are: the agent, and the patterns that work on a text."""

    object: Literal["list"]
    data: list[ModelTold]


CHUNK_CHARS = 200
"""Characters of an answer per streamed chunk."""


def content_or_refusal(view: RunView) -> tuple[str | None, str | None]:
    """The content and the refusal of a completion; one of them is None."""
    match view.state:
        case "finished":
            # A client of this protocol shows nothing but the content.
            doubts = "".join(f"Doubt: {doubt['text']}\n" for doubt in view.doubts)
            sources = "".join(f"\nSource: {each['where']}" for each in view.citations)
            answer = answer_text(view) + (f"\n{sources}" if sources else "")
            return (f"{doubts}\n" if doubts else "") + answer, None
        case "waiting":
            ids = ", ".join(view.waits_for)
            return (
                f"The run {view.run} waits for you: something it would do must be approved, or it asks something. "
                f"Approval: {ids}. See GET /v1/approvals/{next(iter(view.waits_for), 'ID')}, or "
                f"`bicameral approvals show {next(iter(view.waits_for), 'ID')}`.",
                None,
            )
        case "queued" | "running":
            return f"The run {view.run} goes on. See GET /v1/runs/{view.run}.", None
        case "failed" | "stopped":
            return None, f"The run {view.run} {_ENDING_TEXTS.get(view.ending, 'failed')}: {_failure_text(view)}"


_ENDING_TEXTS: dict[Ending | None, str] = {
    "asked": "needs an answer first",
    "denied": "was not allowed",
    "refused": "cannot be done",
    "stopped": "was stopped",
}


def _failure_text(view: RunView) -> str:
    error = view.error or {}
    code = f" [{error['code']}]" if "code" in error else ""
    return f"{error.get('message') or view.why or 'no reason is known'}{code}"


def answer_text(view: RunView) -> str:
    """The answer as text: a text as it is, a list of texts as lines, anything else as JSON."""
    answer: Any = view.answer
    match answer:
        case None:
            done = ", ".join(dict.fromkeys(str(effect.get("tool", "")) for effect in view.effects))
            return f"Done: {done}." if done else "Done."
        case str():
            return answer
        case list() if answer and all(isinstance(item, str) for item in cast("list[Any]", answer)):
            return "\n".join(cast("list[str]", answer))
        case _:
            return json.dumps(answer, ensure_ascii=False, indent=2)


def completion_json(view: RunView, ignored: list[str]) -> dict[str, Any]:
    """A run as a chat completion."""
    content, refusal = content_or_refusal(view)
    message = {"role": "assistant", "content": content, "refusal": refusal}
    return {
        "id": f"chatcmpl-{view.run}",
        "object": "chat.completion",
        "created": int(view.created.timestamp()),
        "model": model_of(view),
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}],
        "usage": token_usage(view),
        "bicameral": run_facts(view, ignored),
    }


def completion_deltas(view: RunView) -> Iterator[dict[str, Any]]:
    """The deltas of a streamed completion."""
    content, refusal = content_or_refusal(view)
    name, text = ("content", content) if content is not None else ("refusal", refusal or "")
    for start in range(0, len(text), CHUNK_CHARS):
        yield {name: text[start : start + CHUNK_CHARS]}


def model_of(view: RunView) -> str:
    """The name of the model that a run is of."""
    return MODEL_NAME if view.pattern is None else f"pattern:{view.pattern}"


def completion_chunk(view: RunView, delta: dict[str, Any] | None, *, finish: str | None = None) -> dict[str, Any]:
    """A chunk of a streamed completion; without a delta it has no choice."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}]
    head = {"id": f"chatcmpl-{view.run}", "object": "chat.completion.chunk", "created": 0, "model": model_of(view)}
    return head | {"choices": choices}


def run_facts(view: RunView, ignored: list[str]) -> dict[str, Any]:
    facts = {"run": view.run, "state": view.state, "approvals": list(view.waits_for), "ignored": ignored}
    return facts | {"doubts": doubts_json(view), "citations": citations_json(view)}


def token_usage(view: RunView) -> dict[str, int]:
    """The tokens of the run, all as prompt tokens: a run does not store which were read and which were written."""
    total = sum(int(view.usage.get(f"{chamber}_tokens", 0)) for chamber in ("reasoner", "executor"))
    return {"prompt_tokens": total, "completion_tokens": 0, "total_tokens": total}


chat_router = APIRouter(tags=["OpenAI-compatible"])

CHAT_SECONDS = 6 * 3600.0
"""How long a chat waits for its run; the run continues after that."""
RETRY_WINDOW_SECONDS = 600.0
"""How long a retry of a client gets the run that its first try began."""
_CHAT_RESPONSES = {
    "description": "The answer, or why there is none.",
    "content": {
        "application/json": {"schema": {"$ref": "#/components/schemas/ChatTold"}},
        "text/event-stream": {"schema": SSE_SCHEMA},
    },
}


@chat_router.get("/v1/models", response_model=ModelList, responses=error_responses(), operation_id="list_models")
async def list_models(_: Caller) -> SafeJsonResponse:
    """The agent, and the patterns that work on a text."""
    return SafeJsonResponse({"object": "list", "data": [_model_json(name) for name in model_names()]})


@chat_router.get(
    "/v1/models/{model}", response_model=ModelTold, responses=error_responses(404), operation_id="get_model"
)
async def get_model(_: Caller, model: Annotated[str, Path(max_length=200)]) -> SafeJsonResponse:
    """The agent or a pattern as a model."""
    pattern_of_model(model)
    return SafeJsonResponse(_model_json(model))


@chat_router.post(
    "/v1/chat/completions",
    response_model=ChatTold,
    responses={**error_responses(404, 409, body=True), 200: _CHAT_RESPONSES},
    operation_id="chat",
)
async def complete(
    wanted: ChatWanted,
    request: Request,
    context: CurrentContext,
    caller: Runner,
    idempotency_key: IdempotencyKey = None,
    retry_count: Annotated[str, Header(alias="x-stainless-retry-count", include_in_schema=False)] = "0",
) -> Any:
    """Run what the last message of the user asks for: as a plan, or with `pattern:ID` as the model by that pattern.

    Messages before it are not read. A run that waits for an approval answers with its id; a run that failed answers
    with a `refusal` and no content. The run goes on if the client goes away, and a client that tries again after that
    is given the same run.
    """
    strategy = pattern_of_model(wanted.model)
    text, ignored = _request_text(wanted, context), _ignored_parts(wanted)
    with ExitStack() as slots:
        # First the slot, then the run: a client that is refused must not have started one.
        slots.enter_context(context.watches.slot(caller.user))
        # A stainless SDK says that it retries: an effect must not happen twice because the first answer was slow.
        view = await _recent_run(context, caller.user, text, wanted.model) if retry_count not in ("", "0") else None
        if view is None:
            # It came over the user's own channel, so it is the user's text even if it repeats an earlier answer.
            user_input(text)
            submission = Submission(request=text, strategy=strategy, user=caller.user, key=idempotency_key)
            view = await submit_run(context, submission)
        headers = {"X-Bicameral-Run": view.run}
        if not wanted.stream:
            view = await wait_until_settled(context, view.run, caller, CHAT_SECONDS, request.is_disconnected)
            return SafeJsonResponse(completion_json(view, ignored), headers=headers)
        options: Any = (wanted.model_extra or {}).get("stream_options")
        usage = isinstance(options, dict) and cast("dict[str, Any]", options).get("include_usage") is True
        stream = _stream_completion(context, caller, view, ignored, usage)
        # Without an event name: clients of this protocol treat such a message as an error.
        closing = sse_message({"error": token_ended_error().to_json()})
        return WatchResponse(stream, slots.pop_all(), headers, closing)


async def _stream_completion(
    context: ServerContext, caller: AccessToken, view: RunView, ignored: list[str], usage: bool
) -> AsyncGenerator[bytes]:
    run = view.run
    yield sse_message(completion_chunk(view, {"role": "assistant", "content": ""}))
    settling = asyncio.ensure_future(wait_until_settled(context, run, caller, CHAT_SECONDS))
    try:
        while not (await asyncio.wait({settling}, timeout=KEEPALIVE_SECONDS))[0]:
            yield b": still here\n\n"
        view = settling.result()
    except Exception as error:
        # The status was sent already; clients treat this message as an error.
        yield b"data: " + bytes(response_for(error).body) + b"\n\n"
        return
    finally:
        settling.cancel()
    for delta in completion_deltas(view):
        yield sse_message(completion_chunk(view, delta))
    yield sse_message({**completion_chunk(view, {}, finish="stop"), "bicameral": run_facts(view, ignored)})
    if usage:
        yield sse_message({**completion_chunk(view, None), "usage": token_usage(view)})
    yield b"data: [DONE]\n\n"


async def _recent_run(context: ServerContext, user: str, text: str, model: str) -> RunView | None:
    """The run that the first try of a retrying client began; None if it began none."""
    since = datetime.now(UTC) - timedelta(seconds=RETRY_WINDOW_SECONDS)
    recent = await context.runs.list(user=user, limit=50)
    asked = ((view.request, model_of(view), view) for view in recent if view.created >= since)
    return next((view for request, name, view in asked if (request, name) == (text, model)), None)


def _request_text(wanted: ChatWanted, context: ServerContext) -> str:
    """The text of the last message of the user."""
    of_user = [each for each in wanted.messages if isinstance(each, UserMessage)]
    if not of_user:
        raise HttpError(422, ServerError("server.bad-request", "no message is the user's", expected="the role 'user'"))
    if len(wanted.messages) > 1 and context.config.server.history == "refuse":
        message = "there are messages besides the request, and they would not be read"
        raise HttpError(409, ServerError("server.history", message, fix="Send the last message of the user alone."))
    content = of_user[-1].content
    return content if isinstance(content, str) else "\n".join(part.text for part in content)


def _ignored_parts(wanted: ChatWanted) -> list[str]:
    """What was sent and is not used: the other messages, and settings of models."""
    others = len(wanted.messages) - 1
    messages = [f"messages ({others})"] if others else []
    return [*messages, *sorted(name[:100] for name in wanted.model_extra or {} if name != "stream_options")]


def _model_json(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "bicameral"}
