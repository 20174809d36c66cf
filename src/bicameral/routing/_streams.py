"""Replies as they are written, which can still be had from elsewhere as long as nothing of them was shown."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Generic, TypeAlias, TypeVar

from bicameral.models import EndChunk, ModelReply, ModelRequest, Provider

from ._clock import Deadline

T = TypeVar("T")

Start: TypeAlias = Callable[[Provider, ModelRequest], AsyncIterator[T]]
"""How a reply is read from a model piece by piece: as text, or as chunks."""


def as_text(provider: Provider, request: ModelRequest) -> AsyncIterator[str]:
    return provider.stream(request)


class Opened(Generic[T]):
    """A reply of which the first piece has come; None if it had none."""

    def __init__(self, first: T | None, rest: AsyncIterator[T], deadline: Deadline) -> None:
        self._first, self._rest, self._deadline = first, rest, deadline

    async def pieces(self) -> AsyncGenerator[T, None]:
        """All of it."""
        try:
            piece = self._first
            while piece is not None:
                yield piece
                async with self._deadline.kept():
                    piece = await anext(self._rest, None)
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        await closed(self._rest)


async def opened(
    start: Start[T], provider: Provider, request: ModelRequest, deadline: Deadline, first_by: Deadline | None = None
) -> Opened[T]:
    """Wait for the first piece; whatever goes wrong until then went wrong before anything was shown."""
    pieces = aiter(start(provider, deadline.given(request)))
    try:
        async with (first_by or deadline).kept():
            first = await anext(pieces, None)
    except BaseException:
        await closed(pieces)
        raise
    return Opened(first, pieces, deadline)


def amended(piece: T, change: Callable[[ModelReply], ModelReply]) -> T:
    """The piece; where it is the end, with the reply changed."""
    return EndChunk(change(piece.reply)) if isinstance(piece, EndChunk) else piece  # pyright: ignore[reportReturnType]


async def closed(pieces: AsyncIterator[T]) -> None:
    """A generator that nobody closes keeps its connection until it is collected."""
    if isinstance(pieces, AsyncGenerator):
        await pieces.aclose()
