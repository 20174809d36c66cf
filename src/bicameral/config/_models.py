"""The models that a configuration names: weights found or fetched, and nothing loaded, before the first request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ._config import Config, Role
from ._weights import model_store

if TYPE_CHECKING:
    from bicameral.models import LocalProvider, ModelReply, ModelRequest, Provider


@dataclass(frozen=True, slots=True)
class Models:
    """The two models of an agent; in the small profile they are the same."""

    privileged: Provider
    quarantined: Provider


def open_models(config: Config) -> Models:
    """The models of both roles. They cost nothing until they are asked; then missing weights are fetched."""
    return Models(EmbeddedProvider(config, "privileged"), EmbeddedProvider(config, "quarantined"))


class EmbeddedProvider:
    """A model from the store, by role. Its name is known at once; its weights are needed at the first request."""

    def __init__(self, config: Config, role: Role) -> None:
        from bicameral.models import find_weights

        self.weights = find_weights(config.weights(role))
        self._config = config
        self._role: Role = role
        self._local: LocalProvider | None = None
        self._fetching = asyncio.Lock()

    @property
    def name(self) -> str:
        return f"local:{self.weights.id}@{self.weights.sha256[:8]}"

    @property
    def grammars(self) -> bool:
        return True

    @property
    def chamber(self) -> Role:
        return self._role

    @property
    def adapters(self) -> Mapping[str, str]:
        return {job: pin.sha256 for job, pin in self.weights.adapters.items()}

    async def generate(self, request: ModelRequest) -> ModelReply:
        return await (await self._ready()).generate(request)

    async def stream(self, request: ModelRequest) -> AsyncIterator[str]:
        """The reply's text as it is written."""
        async for text in (await self._ready()).stream(request):
            yield text

    async def aclose(self) -> None:
        if self._local is not None:
            await self._local.aclose()

    async def _ready(self) -> LocalProvider:
        from bicameral.models import LocalProvider, adapters_of, terminal_progress

        async with self._fetching:
            if self._local is None:
                store, threads = model_store(self._config), self._config.models.threads
                path = await asyncio.to_thread(store.ensure, self.weights, progress=terminal_progress())
                self._local = LocalProvider(path, name=self.name, threads=threads, adapters=adapters_of(self.weights))
        return self._local
