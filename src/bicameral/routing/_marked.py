"""A model that was chosen by something larger than a call: its replies say on which route."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import TypeVar

from bicameral.models import ModelReply, ModelRequest, Provider, Route

from ._part import Part
from ._streams import Start, amended, closed

T = TypeVar("T")


class Marked(Part):
    """One model, asked on a route that somebody else chose: a cascade of planners judges whole plans, not replies.

    Example:
        >>> Marked(large, Route("main", "cascade", "escalated", attempts=(("fast", "the plan had to be mended"),)))
    """

    def __init__(self, provider: Provider, route: Route) -> None:
        super().__init__([provider])
        self._route = route

    async def generate(self, request: ModelRequest) -> ModelReply:
        return self._on_route(await self._asked[0].generate(request))

    async def _flow(self, request: ModelRequest, start: Start[T]) -> AsyncGenerator[T, None]:
        pieces = start(self._asked[0], request)
        try:
            async for piece in pieces:
                yield amended(piece, self._on_route)
        finally:
            await closed(pieces)

    def _on_route(self, reply: ModelReply) -> ModelReply:
        """A model that is itself asked through others has a way of its own behind it, which comes last."""
        inner = () if reply.route is None else reply.route.attempts
        return replace(reply, route=replace(self._route, attempts=(*self._route.attempts, *inner)))
