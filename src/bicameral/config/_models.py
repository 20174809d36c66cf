"""The models that a configuration names: weights found or fetched, and nothing loaded, before the first request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bicameral.errors import ConfigError, ModelError

from ._aliases import open_aliases
from ._config import Config, Role
from ._load import origin_of
from ._routing import EMBEDDED, check_routing, selection_of
from ._weights import model_store

if TYPE_CHECKING:
    from bicameral.models import Chunk, LocalProvider, ModelReply, ModelRequest, Provider
    from bicameral.routing import Router


@dataclass(frozen=True, slots=True)
class Models:
    """The two models of an agent; in the small profile they are the same."""

    privileged: Provider
    quarantined: Provider
    cascade: Mapping[str, Provider] = field(default_factory=dict[str, "Provider"])
    """The models that plan one after the other, by their aliases, the smallest first; empty if only one does."""


def open_models(config: Config) -> Models:
    """The models of both chambers. They cost nothing until they are asked; then missing weights are fetched.

    Each is a router over the aliases of its chamber. Where nothing is configured it has one to choose from, the
    embedded model, and goes by its name.
    """
    privileged, quarantined = open_router(config, "privileged"), open_router(config, "quarantined")
    if privileged.credentials & quarantined.credentials:
        raise ModelError(
            "models.shared-chamber", "both chambers use the same key", fix="Give each chamber a key of its own."
        )
    return Models(privileged, quarantined, _stages(config, privileged))


def _stages(config: Config, privileged: Provider) -> dict[str, Provider]:
    """The models that plan in a cascade: those of the alias that plans, if that is one, or the embedded ones.

    Where there are rules they choose for each call, and a plan is not taken out of their hands.
    """
    selection = selection_of(config)
    planning = config.llm.models.get(selection.of_role("delta") or selection.default)
    if planning is not None and len(planning.cascade) > 1 and not selection.rules:
        return {alias: open_router(config, "privileged", only=alias) for alias in planning.cascade}
    if not config.models.cascade or config.weights("privileged") == config.weights("quarantined"):
        return {}
    return {"fast": EmbeddedProvider(config, "privileged", config.weights("quarantined")), "main": privileged}


def open_router(config: Config, chamber: Role, *, only: str | None = None) -> Router:
    """The router of one chamber, or one that always chooses the same alias.

    What the quarantine may not use, since it has no key of its own for it, is not there: then its embedded model is the
    default.
    """
    from bicameral.routing import Router, Selection

    check_routing(config, lambda _: None)
    aliases = open_aliases(config, chamber, lambda weights: EmbeddedProvider(config, chamber, weights))
    selection = selection_of(config) if only is None else Selection(only)
    if selection.default not in aliases:
        selection = replace(selection, default=EMBEDDED)
    return Router(aliases, selection)


def routing_notes(config: Config) -> list[ConfigError]:
    """What is worth knowing about the rules of a configuration and changes nothing."""
    return check_routing(config, origin_of(config).locate)


class EmbeddedProvider:
    """A model from the store, by role. Its name is known at once; its weights are needed at the first request."""

    def __init__(self, config: Config, role: Role, weights: str | None = None) -> None:
        from bicameral.models import find_weights

        self.weights = find_weights(weights or config.weights(role))
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

    async def chunks(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """The same with the calls, what it cost, and the end."""
        async for chunk in (await self._ready()).chunks(request):
            yield chunk

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
