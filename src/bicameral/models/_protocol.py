"""The provider protocol: requests, replies, streamed chunks, failures, and the client that asks any provider.

A provider takes a `ModelRequest` and gives a `ModelReply`, whole or in chunks. A stream is made of typed chunks and
not of bare text, so that tool calls, usage and the end of the reply are not lost. `check_request` refuses what no
model could answer. A failure has one code for each thing that the caller can do about it:

models.rate-limited   wait (`retry_after` says how long, where the server does), then ask again
models.unavailable    the server cannot be reached or failed; another time, or another model
models.timeout        it took too long
models.bad-reply      what came back is malformed, cut off, or not of the shape that was asked for
models.refused        the model or its provider will not answer this; never asked again, of any model
models.auth           the key is missing or not accepted
models.bad-request    the request cannot be answered as it is
models.cancelled      the provider was closed while it was asked
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypedDict, Unpack, runtime_checkable

from bicameral.errors import ModelError

if TYPE_CHECKING:
    from pydantic import BaseModel


Speaker = Literal["system", "user", "assistant", "tool"]
Chamber = Literal["privileged", "quarantined"]
"""Which of the two sides a model serves: the one that plans, or the one that reads what strangers wrote."""
FinishReason = Literal["stop", "length", "calls"]
"""Why a reply ended: by itself, since it was long enough, or since the model wants tools to be called."""


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A tool as a model is told of it; `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model asks for. Nothing is called because of it until policy has decided."""

    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation.

    An assistant's turn may ask for `calls`; a turn of the speaker `tool` answers one of them, the one with the id
    `answers`.
    """

    speaker: Speaker
    text: str
    calls: tuple[ToolCall, ...] = ()
    answers: str | None = None


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Everything a provider needs for one reply; equal requests get equal replies at temperature 0.

    `prefill` is the beginning of the assistant's own reply: the model continues it, and the reply's text does
    not repeat it. At most one of `json_schema` and `grammar` constrains the reply. `adapter` is one of the provider's.
    `model` is an alias, or a hint for whoever chooses among models; `tools` are those that the model may ask for.
    `confidence` asks how sure the model was of each token; a provider that cannot say leaves it out of the reply.
    """

    messages: tuple[Message, ...]
    prefill: str = ""
    json_schema: dict[str, Any] | None = None
    grammar: str | None = None
    stop: tuple[str, ...] = ()
    max_tokens: int = 512
    temperature: float = 0.0
    seed: int = 0
    adapter: str | None = None
    timeout: float | None = None
    model: str | None = None
    tools: tuple[ToolSchema, ...] = ()
    confidence: bool = False


@dataclass(frozen=True, slots=True)
class ReplyToken:
    """A piece of a reply, and how likely the model held it to be among what it was allowed to write there.

    `overruled` is how likely it held the pieces that it would rather have written and that its constraint forbade.
    """

    text: str
    probability: float
    overruled: float = 0.0


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one reply; `cached` of the `prompt` tokens were reused from an earlier call."""

    prompt: int = 0
    cached: int = 0
    output: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.prompt + other.prompt, self.cached + other.cached, self.output + other.output)


@dataclass(frozen=True, slots=True)
class Route:
    """How a model was chosen for a call: its alias, what chose it (`call`, `rule`, `phase`, `role`, `default`), why.

    `rule` is the number of the rule that matched, from 0. `attempts` are those that were asked before and did not
    serve, each with the reason.
    """

    alias: str
    by: str
    why: str
    rule: int | None = None
    attempts: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "alias": self.alias,
            "by": self.by,
            "why": self.why,
            **({"rule": self.rule} if self.rule is not None else {}),
            **({"attempts": [list(each) for each in self.attempts]} if self.attempts else {}),
        }


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What a model wrote or wants called, why it stopped, and what it cost.

    `model` is the name of the provider that answered, `route` how it was chosen, and `degraded` says in what way this
    is less than what was asked for. `confidence` has the reply's tokens, if the request asked for them and the provider
    can say how sure it was.
    """

    text: str
    finish: FinishReason = "stop"
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    calls: tuple[ToolCall, ...] = ()
    model: str = ""
    route: Route | None = None
    degraded: str | None = None
    confidence: tuple[ReplyToken, ...] = ()


@runtime_checkable
class Provider(Protocol):
    """A model that can be asked. `name` identifies model and weights exactly, since caches are keyed by it."""

    @property
    def name(self) -> str: ...

    @property
    def grammars(self) -> bool:
        """Whether `ModelRequest.grammar` is honoured."""
        ...

    @property
    def chamber(self) -> Chamber | None:
        """The side that it was made for; None says that it holds neither tools nor a key, and may serve either."""
        ...

    @property
    def adapters(self) -> Mapping[str, str]:
        """The jobs that the model was trained for, each with what identifies that training exactly."""
        ...

    async def generate(self, request: ModelRequest) -> ModelReply: ...

    def stream(self, request: ModelRequest) -> AsyncIterator[str]:
        """The reply's text as it is written."""
        ...

    async def aclose(self) -> None: ...


FailureCode: TypeAlias = Literal[
    "models.rate-limited",
    "models.unavailable",
    "models.timeout",
    "models.bad-reply",
    "models.refused",
    "models.auth",
    "models.bad-request",
    "models.cancelled",
    "models.prompt-too-long",
]

_FAILURE_TEXTS: dict[FailureCode, tuple[str, str]] = {
    "models.rate-limited": ("takes no more requests for now", "Wait, or use another model."),
    "models.unavailable": ("cannot be reached or failed", "Ask again later, or use another model."),
    "models.timeout": ("did not finish in time", "Allow more time, or ask for fewer tokens."),
    "models.bad-reply": ("gave a reply that cannot be used", "Ask again, or use another model."),
    "models.refused": ("refuses to answer this", "Change what is asked. It is not asked again anywhere else."),
    "models.auth": ("did not accept the key", "Check the key of this chamber, and what it may be used for."),
    "models.bad-request": ("cannot answer this request", "Check the name of the model and its parameters."),
    "models.cancelled": ("was closed while it was asked", "Ask before the provider is closed."),
    "models.prompt-too-long": ("cannot read a prompt of this length", "Shorten the messages."),
}


class ModelFailure(ModelError):
    """A model did not answer. `retry_after` is in seconds; `usage` is what was spent all the same."""

    def __init__(
        self,
        code: FailureCode,
        name: str,
        why: str = "",
        *,
        retry_after: float | None = None,
        usage: Usage | None = None,
        nearest: str | None = None,
    ) -> None:
        what, fix = _FAILURE_TEXTS[code]
        super().__init__(code, f"{name} {what}" + (f": {why}" if why else ""), nearest=nearest, fix=fix)
        self.retry_after = retry_after
        self.usage = usage or Usage()


@dataclass(frozen=True, slots=True)
class TextChunk:
    """A piece of the reply's text."""

    text: str


@dataclass(frozen=True, slots=True)
class CallChunk:
    """A call that the model asks for, whole: half a call is of no use to anyone."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class UsageChunk:
    """What the reply cost."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class EndChunk:
    """The last one: the whole reply, as `generate` would have given it. A stream without it was cut off."""

    reply: ModelReply


ReplyChunk: TypeAlias = TextChunk | CallChunk | UsageChunk | EndChunk


@runtime_checkable
class StreamingProvider(Protocol):
    """A provider that tells more than text while it writes; routers and wrappers pass `chunks` on."""

    def chunks(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        """Texts, then calls, then what it cost, then the end."""
        ...


async def stream_chunks(provider: Provider, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
    """The chunks of any provider.

    One that has only `stream` would lose the calls and the costs, so it is asked for its whole reply at once.
    """
    if not isinstance(provider, StreamingProvider):
        for chunk in reply_chunks(await provider.generate(request)):
            yield chunk
        return
    chunks = provider.chunks(request)
    try:
        async for chunk in chunks:
            yield chunk
    finally:
        await _close_stream(chunks)


def reply_chunks(reply: ModelReply, *, told: bool = False) -> tuple[ReplyChunk, ...]:
    """A reply that is already there, as chunks; without its text if that was told before."""
    return (
        *((TextChunk(reply.text),) if reply.text and not told else ()),
        *(CallChunk(call) for call in reply.calls),
        UsageChunk(reply.usage),
        EndChunk(reply),
    )


async def stream_texts(chunks: AsyncIterator[ReplyChunk]) -> AsyncGenerator[str, None]:
    """Only the text; leaving early closes what it came from."""
    try:
        async for chunk in chunks:
            if isinstance(chunk, TextChunk):
                yield chunk.text
    finally:
        await _close_stream(chunks)


async def _close_stream(chunks: AsyncIterator[ReplyChunk]) -> None:
    # A generator that nobody closes keeps its connection until it is collected.
    if isinstance(chunks, AsyncGenerator):
        await chunks.aclose()


_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def check_request(request: ModelRequest) -> None:
    """Raise `models.bad-request` for a request that no model could answer."""
    if request.json_schema is not None and request.grammar is not None:
        raise _bad_request("it has both a JSON Schema and a grammar", "Keep one of them.")
    if request.max_tokens < 1:
        raise _bad_request(f"max_tokens is {request.max_tokens}", "Allow at least one token.")
    if request.temperature < 0:
        raise _bad_request(f"the temperature is {request.temperature}", "Use 0 for the same reply each time.")
    if request.timeout is not None and request.timeout <= 0:
        raise _bad_request(f"the timeout is {request.timeout} s", "Use None to wait without limit.")
    if "" in request.stop:
        raise _bad_request("a stop string is empty", "Leave it out.")
    if request.tools:
        _check_tools(request)
    _check_turns(request.messages)


def _check_tools(request: ModelRequest) -> None:
    if request.grammar is not None or request.prefill:
        raise _bad_request(
            "it has tools, and a grammar or a prefill", "A reply that may be a call has a shape of its own."
        )
    names = [tool.name for tool in request.tools]
    if wrong := next((name for name in names if not _TOOL_NAME.fullmatch(name)), None):
        raise _bad_request(f"a tool is called {wrong!r}", "Use letters, digits, '_' and '-', at most 64 of them.")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise _bad_request(f"two tools are called {twice!r}", "Give each a name of its own.")


def _check_turns(messages: tuple[Message, ...]) -> None:
    asked: set[str] = set()
    for message in messages:
        if message.calls and message.speaker != "assistant":
            raise _bad_request(f"the speaker {message.speaker!r} asks for calls", "Only the assistant does.")
        asked |= {call.id for call in message.calls}
        if (message.speaker == "tool") != (message.answers is not None) or not {message.answers} <= asked | {None}:
            raise _bad_request(
                "a result answers no call that was asked for", "Set `answers` to the id of an earlier call."
            )


def _bad_request(message: str, fix: str) -> ModelError:
    return ModelError("models.bad-request", f"the request cannot be answered: {message}", fix=fix)


class Bounds(TypedDict, total=False):
    """What a call may say besides its messages; each has the default of `ModelRequest`."""

    stop: tuple[str, ...]
    max_tokens: int
    temperature: float
    seed: int
    timeout: float | None


class Client:
    """Asks any provider, a router as well as a single model. `model` is an alias or a hint for whoever chooses.

    Example:
        >>> client = Client(ScriptedProvider(["Sunny."]))
        >>> (await client.generate("What is the weather?", model="fast")).text
        'Sunny.'
    """

    def __init__(self, provider: Provider) -> None:
        self.provider = provider

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        tools: Sequence[ToolSchema] | None = None,
        schema: dict[str, Any] | type[BaseModel] | None = None,
        **bounds: Unpack[Bounds],
    ) -> ModelReply:
        """The reply to a conversation: a text, one that fits `schema`, or the calls of `tools` that the model wants."""
        return await self.provider.generate(_build_request(messages, model, tools, schema, bounds))

    async def generate(
        self,
        prompt: str,
        context: str | Mapping[str, Any] | None = None,
        *,
        model: str | None = None,
        schema: dict[str, Any] | type[BaseModel] | None = None,
        **bounds: Unpack[Bounds],
    ) -> ModelReply:
        """The reply to a prompt alone, or to one with something to know beforehand."""
        message = Message("user", _prompt_with_context(prompt, context))
        return await self.provider.generate(_build_request([message], model, None, schema, bounds))

    async def complete_stream(
        self,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        tools: Sequence[ToolSchema] | None = None,
        schema: dict[str, Any] | type[BaseModel] | None = None,
        **bounds: Unpack[Bounds],
    ) -> AsyncGenerator[ReplyChunk, None]:
        """The same as it is written: texts, calls, what it cost, and at the end the whole reply."""
        chunks = stream_chunks(self.provider, _build_request(messages, model, tools, schema, bounds))
        try:
            async for chunk in chunks:
                yield chunk
        finally:
            await chunks.aclose()


def _build_request(
    messages: Sequence[Message],
    model: str | None,
    tools: Sequence[ToolSchema] | None,
    schema: dict[str, Any] | type[BaseModel] | None,
    bounds: Bounds,
) -> ModelRequest:
    return ModelRequest(
        messages=tuple(messages),
        model=model,
        tools=tuple(tools or ()),
        json_schema=schema.model_json_schema() if isinstance(schema, type) else schema,
        **bounds,
    )


def _prompt_with_context(prompt: str, context: str | Mapping[str, Any] | None) -> str:
    if not context:
        return prompt
    told = context if isinstance(context, str) else json.dumps(dict(context), ensure_ascii=False, indent=2, default=str)
    return f"Context:\n{told}\n\nTask: {prompt}"
