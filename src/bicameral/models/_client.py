"""The three ways to ask a model: a conversation, a prompt, and a conversation as it is written."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from bicameral.models._chunks import Chunk, chunks_of
from bicameral.models._protocol import Message, ModelReply, ModelRequest, Provider, ToolSchema

if TYPE_CHECKING:
    from pydantic import BaseModel


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
        return await self.provider.generate(_request(messages, model, tools, schema, bounds))

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
        message = Message("user", _with_context(prompt, context))
        return await self.provider.generate(_request([message], model, None, schema, bounds))

    async def complete_stream(
        self,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        tools: Sequence[ToolSchema] | None = None,
        schema: dict[str, Any] | type[BaseModel] | None = None,
        **bounds: Unpack[Bounds],
    ) -> AsyncGenerator[Chunk, None]:
        """The same as it is written: texts, calls, what it cost, and at the end the whole reply."""
        chunks = chunks_of(self.provider, _request(messages, model, tools, schema, bounds))
        try:
            async for chunk in chunks:
                yield chunk
        finally:
            await chunks.aclose()


def _request(
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


def _with_context(prompt: str, context: str | Mapping[str, Any] | None) -> str:
    if not context:
        return prompt
    told = context if isinstance(context, str) else json.dumps(dict(context), ensure_ascii=False, indent=2, default=str)
    return f"Context:\n{told}\n\nTask: {prompt}"
