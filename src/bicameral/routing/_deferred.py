"""A model that is made when it is first asked, so that a chain can hold one whose key or package is missing."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace

from bicameral.models import Chamber, Chunk, ModelReply, ModelRequest, Provider, chunks_of, texts_of

from ._aliases import Alias, of_chamber


class Deferred:
    """The model of an alias, asked as the alias says. What cannot be made fails when it is asked, and not before.

    Example:
        >>> Fallback([Deferred(main, "privileged"), Deferred(local, "privileged")])
    """

    def __init__(self, alias: Alias, chamber: Chamber) -> None:
        self._alias = alias
        self._chamber: Chamber = chamber
        self._made: Provider | None = None

    @property
    def name(self) -> str:
        return self._alias.identity

    @property
    def grammars(self) -> bool:
        return self._alias.grammars

    @property
    def chamber(self) -> Chamber:
        return self._chamber

    @property
    def adapters(self) -> Mapping[str, str]:
        return self._alias.adapters

    @property
    def credentials(self) -> frozenset[str]:
        """The fingerprints of the keys that it will use."""
        return self._alias.credentials

    async def generate(self, request: ModelRequest) -> ModelReply:
        return await self._ready().generate(self.given(request))

    async def chunks(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """The reply as it is written."""
        async with aclosing(chunks_of(self._ready(), self.given(request))) as chunks:
            async for chunk in chunks:
                yield chunk

    def stream(self, request: ModelRequest) -> AsyncGenerator[str, None]:
        """Only the text of it."""
        return texts_of(self.chunks(request))

    async def aclose(self) -> None:
        if self._made is not None:
            await self._made.aclose()

    def _ready(self) -> Provider:
        if self._made is None:
            self._made = of_chamber(self._alias, self._alias.make(), self._chamber)
        return self._made

    def given(self, request: ModelRequest) -> ModelRequest:
        """The request as the model gets it."""
        if self._alias.parameters is not None:
            request = self._alias.parameters.applied(request)
        if request.adapter is not None and request.adapter not in self._alias.adapters:
            request = replace(request, adapter=None)
        return request
