"""A reply as it is written: typed pieces instead of bare text, so that calls, costs and the end are not lost."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from bicameral.models._protocol import ModelReply, ModelRequest, Provider, ToolCall, Usage


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


Chunk: TypeAlias = TextChunk | CallChunk | UsageChunk | EndChunk


@runtime_checkable
class ChunkedProvider(Protocol):
    """A provider that tells more than text while it writes; routers and wrappers pass `chunks` on."""

    def chunks(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """Texts, then calls, then what it cost, then the end."""
        ...


async def chunks_of(provider: Provider, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
    """The chunks of any provider.

    One that has only `stream` would lose the calls and the costs, so it is asked for its whole reply at once.
    """
    if not isinstance(provider, ChunkedProvider):
        for chunk in whole(await provider.generate(request)):
            yield chunk
        return
    chunks = provider.chunks(request)
    try:
        async for chunk in chunks:
            yield chunk
    finally:
        await _closed(chunks)


def whole(reply: ModelReply, *, told: bool = False) -> tuple[Chunk, ...]:
    """A reply that is already there, as chunks; without its text if that was told before."""
    return (
        *((TextChunk(reply.text),) if reply.text and not told else ()),
        *(CallChunk(call) for call in reply.calls),
        UsageChunk(reply.usage),
        EndChunk(reply),
    )


async def texts_of(chunks: AsyncIterator[Chunk]) -> AsyncGenerator[str, None]:
    """Only the text; leaving early closes what it came from."""
    try:
        async for chunk in chunks:
            if isinstance(chunk, TextChunk):
                yield chunk.text
    finally:
        await _closed(chunks)


async def _closed(chunks: AsyncIterator[Chunk]) -> None:
    # A generator that nobody closes keeps its connection until it is collected.
    if isinstance(chunks, AsyncGenerator):
        await chunks.aclose()
