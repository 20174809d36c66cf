"""The provider protocol: requests, replies, streamed chunks, failures, and the client that asks any provider.

A provider takes a `ModelRequest` and returns a `ModelReply`, whole or in chunks. A stream consists of typed chunks
and not of bare text, so that tool calls, usage and the end of the reply are not lost. `check_request` refuses a
request that no model could answer. A failure has one code for each thing that the caller can do about it:

models.rate-limited   wait (`retry_after` says how long, if the server does), then retry
models.unavailable    the server cannot be reached or failed; retry later, or use another model
models.timeout        the reply took too long
models.bad-reply      the reply is malformed, cut off, or does not fit the requested schema
models.refused        the model or its server refuses to answer; never retried, with any model
models.auth           the key is missing or not accepted
models.bad-request    the request cannot be answered as it is; `models.prompt-too-long` if only its length is wrong
models.cancelled      the provider was closed during the request
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypedDict, Unpack, runtime_checkable

from bicameral.errors import ModelError

if TYPE_CHECKING:
    from pydantic import BaseModel


Speaker = Literal["system", "user", "assistant", "tool"]
Chamber = Literal["privileged", "quarantined"]
"""Which of the two sides a model serves: the one that plans, or the one that reads untrusted text."""
FinishReason = Literal["stop", "length", "calls"]
"""Why a reply ended: by itself, at the limit of tokens, or because the model asks for tool calls."""


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A tool as it is described to a model; `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that a model asks for. It is a request only: policy decides whether the tool is called."""

    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation.

    Args:
        speaker: Who said it.
        text: What was said; for `tool`, the result.
        calls: The tool calls that an assistant's turn asks for.
        answers: For a turn of `tool`: the id of the call that it answers.
    """

    speaker: Speaker
    text: str
    calls: tuple[ToolCall, ...] = ()
    answers: str | None = None


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Everything a provider needs for one reply; equal requests get equal replies at temperature 0.

    Args:
        prefill: The beginning of the assistant's reply. The model continues it; the reply's text does not repeat it.
        json_schema: The schema that the reply must fit; not together with `grammar`.
        grammar: A GBNF grammar, or a Lark grammar for LLGuidance; only where `Provider.grammars` is true.
        stop: Texts at which the reply ends; they are not part of it.
        adapter: The job whose adapter is used, one of `Provider.adapters`.
        timeout: Seconds until `models.timeout`; None waits without limit.
        model: An alias, or a hint for a router.
        tools: The tools that the model may ask for.
        confidence: Whether to report the probability of each token; a provider that cannot leaves it out.
        fixed: How many of the first messages are the same in every process and hold no text of a user: a provider may
            keep on disk what it has read of them. It never changes a reply.
        must_call: Whether the reply must ask for one of the tools. Not every provider can enforce it.

    Example:
        >>> request = ModelRequest((Message("user", "Say hi."),), max_tokens=20)
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
    fixed: int = 0
    must_call: bool = False


@dataclass(frozen=True, slots=True)
class ReplyToken:
    """One token of a reply with its probability among the tokens that its constraint allowed there.

    `overruled` is the total probability of the likelier tokens that the constraint forbade.
    """

    text: str
    probability: float
    overruled: float = 0.0


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one reply; `cached` counts those of the `prompt` that were reused from an earlier call."""

    prompt: int = 0
    cached: int = 0
    output: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.prompt + other.prompt, self.cached + other.cached, self.output + other.output)


@dataclass(frozen=True, slots=True)
class Route:
    """How a model was chosen for a call.

    Args:
        alias: The alias of the chosen model.
        by: What chose it: `call`, `rule`, `phase`, `role` or `default`.
        why: The reason in words.
        rule: The number of the matching rule, from 0.
        attempts: The models that were asked before and failed, each with the reason.
        note: What the call asked for and did not get: a hint that nothing knows, or an alias of the other chamber.
    """

    alias: str
    by: str
    why: str
    rule: int | None = None
    attempts: tuple[tuple[str, str], ...] = ()
    note: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "alias": self.alias,
            "by": self.by,
            "why": self.why,
            **({"rule": self.rule} if self.rule is not None else {}),
            **({"attempts": [list(each) for each in self.attempts]} if self.attempts else {}),
            **({"note": self.note} if self.note is not None else {}),
        }


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The text or tool calls of a reply, why it ended, and its token usage.

    Args:
        seconds: How long the model took.
        model: The name of the provider that answered.
        route: How that model was chosen, if a router chose it.
        degraded: In what way the reply is less than what was requested, if it is.
        confidence: The tokens with their probabilities, if requested and known.
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
    """A model that can be asked. `name` identifies model and weights exactly, because cache keys contain it."""

    @property
    def name(self) -> str: ...

    @property
    def grammars(self) -> bool:
        """Whether `ModelRequest.grammar` is supported."""
        ...

    @property
    def chamber(self) -> Chamber | None:
        """The side that it was made for; None means that it has neither tools nor a key and may serve either."""
        ...

    @property
    def adapters(self) -> Mapping[str, str]:
        """The jobs that it has adapters for, each with the hash of its adapter."""
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
    """A model did not answer.

    Args:
        code: What the caller can do about it; the list is at the top of this module.
        name: The provider that failed.
        why: The reason, appended to the message.
        retry_after: Seconds to wait, if the server says so.
        usage: The tokens that were spent all the same.
        nearest: The nearest valid name, for one that is unknown.
        refused_setting: The setting of the request that the server does not take, if it says so.
    """

    def __init__(
        self,
        code: FailureCode,
        name: str,
        why: str = "",
        *,
        retry_after: float | None = None,
        usage: Usage | None = None,
        nearest: str | None = None,
        refused_setting: str | None = None,
    ) -> None:
        what, fix = _FAILURE_TEXTS[code]
        super().__init__(code, f"{name} {what}" + (f": {why}" if why else ""), nearest=nearest, fix=fix)
        self.retry_after = retry_after
        self.usage = usage or Usage()
        self.refused_setting = refused_setting


@dataclass(frozen=True, slots=True)
class TextChunk:
    """A piece of the reply's text."""

    text: str


@dataclass(frozen=True, slots=True)
class CallChunk:
    """A complete call that the model asks for; calls are never streamed in parts."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class UsageChunk:
    """The token usage of the reply."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class EndChunk:
    """The last chunk: the whole reply, as `generate` returns it. A stream without one was cut off."""

    reply: ModelReply


ReplyChunk: TypeAlias = TextChunk | CallChunk | UsageChunk | EndChunk


@runtime_checkable
class StreamingProvider(Protocol):
    """A provider that streams typed chunks and not only text; routers and wrappers pass `chunks` on."""

    def chunks(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        """The texts, then the calls, then the usage, then the end."""
        ...


async def stream_chunks(provider: Provider, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
    """The chunks of any provider.

    A provider without `chunks` is asked for its whole reply, because its `stream` would lose calls and usage.
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


def reply_chunks(reply: ModelReply, *, text_sent: bool = False) -> tuple[ReplyChunk, ...]:
    """The chunks of a complete reply, without its text if that was already sent."""
    return (
        *((TextChunk(reply.text),) if reply.text and not text_sent else ()),
        *(CallChunk(call) for call in reply.calls),
        UsageChunk(reply.usage),
        EndChunk(reply),
    )


async def stream_texts(chunks: AsyncIterator[ReplyChunk]) -> AsyncGenerator[str, None]:
    """The texts of a stream of chunks; closing this generator closes the stream."""
    try:
        async for chunk in chunks:
            if isinstance(chunk, TextChunk):
                yield chunk.text
    finally:
        await _close_stream(chunks)


async def _close_stream(chunks: AsyncIterator[ReplyChunk]) -> None:
    # A generator that is not closed keeps its connection open until it is garbage-collected.
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
    if request.must_call and not request.tools:
        raise _bad_request("it must ask for a call, and has no tools", "Give it the tools, or let it answer.")
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
    call_ids: set[str] = set()
    for message in messages:
        if message.calls and message.speaker != "assistant":
            raise _bad_request(f"the speaker {message.speaker!r} asks for calls", "Only the assistant does.")
        call_ids |= {call.id for call in message.calls}
        if (message.speaker == "tool") != (message.answers is not None) or not {message.answers} <= call_ids | {None}:
            raise _bad_request(
                "a result answers no call that was asked for", "Set `answers` to the id of an earlier call."
            )


def _bad_request(message: str, fix: str) -> ModelError:
    return ModelError("models.bad-request", f"the request cannot be answered: {message}", fix=fix)


class RequestOptions(TypedDict, total=False):
    """Options of a request besides its messages; the defaults are those of `ModelRequest`."""

    stop: tuple[str, ...]
    max_tokens: int
    temperature: float
    seed: int
    timeout: float | None


class Client:
    """Asks any provider, whether a router or a single model.

    Args:
        provider: The provider to ask. With a router, `model` of each method is an alias or a hint for it.

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
        **options: Unpack[RequestOptions],
    ) -> ModelReply:
        """The reply to a conversation: a text, JSON that fits `schema`, or calls of `tools`."""
        return await self.provider.generate(_build_request(messages, model, tools, schema, options))

    async def generate(
        self,
        prompt: str,
        context: str | Mapping[str, Any] | None = None,
        *,
        model: str | None = None,
        schema: dict[str, Any] | type[BaseModel] | None = None,
        **options: Unpack[RequestOptions],
    ) -> ModelReply:
        """The reply to a single prompt; `context`, a text or JSON, is put before it."""
        message = Message("user", _prompt_with_context(prompt, context))
        return await self.provider.generate(_build_request([message], model, None, schema, options))

    async def complete_stream(
        self,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        tools: Sequence[ToolSchema] | None = None,
        schema: dict[str, Any] | type[BaseModel] | None = None,
        **options: Unpack[RequestOptions],
    ) -> AsyncGenerator[ReplyChunk, None]:
        """Like `complete`, as it is written: texts, calls, usage, and at the end the whole reply."""
        request = _build_request(messages, model, tools, schema, options)
        async with aclosing(stream_chunks(self.provider, request)) as chunks:
            async for chunk in chunks:
                yield chunk


def _build_request(
    messages: Sequence[Message],
    model: str | None,
    tools: Sequence[ToolSchema] | None,
    schema: dict[str, Any] | type[BaseModel] | None,
    options: RequestOptions,
) -> ModelRequest:
    return ModelRequest(
        messages=tuple(messages),
        model=model,
        tools=tuple(tools or ()),
        json_schema=schema.model_json_schema() if isinstance(schema, type) else schema,
        **options,
    )


def _prompt_with_context(prompt: str, context: str | Mapping[str, Any] | None) -> str:
    if not context:
        return prompt
    text = context if isinstance(context, str) else json.dumps(dict(context), ensure_ascii=False, indent=2, default=str)
    return f"Context:\n{text}\n\nTask: {prompt}"
