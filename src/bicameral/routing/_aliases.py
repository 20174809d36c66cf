"""Aliases: names for models of one chamber, with parameters. The provider of an alias is made at its first call.

A deferred provider lets a fallback chain contain a model whose key or package is missing: it fails when it is called,
and not when the chain is built.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from bicameral.errors import ModelError, nearest_name
from bicameral.models import Chamber, ModelReply, ModelRequest, Provider, ReplyChunk, stream_chunks, stream_texts
from bicameral.routing._context import current_context
from bicameral.routing._wrapper import meter_provider, provider_side

ProviderFactory: TypeAlias = Callable[[], Provider]


@dataclass(frozen=True, slots=True)
class AliasParameters:
    """Parameters of every call of an alias: `max_tokens` and `timeout` are upper bounds, the others replace.

    A temperature that is configured for the role of a call stays.
    """

    temperature: float | None = None
    max_tokens: int | None = None
    timeout: float | None = None
    seed: int | None = None

    def apply_to(self, request: ModelRequest) -> ModelRequest:
        """The request with these parameters."""
        changes: dict[str, Any] = {}
        replaces = not current_context().keeps_sampling
        if self.temperature is not None and replaces:
            changes["temperature"] = self.temperature
        if self.seed is not None and replaces:
            changes["seed"] = self.seed
        if self.max_tokens is not None and self.max_tokens < request.max_tokens:
            changes["max_tokens"] = self.max_tokens
        if self.timeout is not None and (request.timeout is None or self.timeout < request.timeout):
            changes["timeout"] = self.timeout
        return replace(request, **changes) if changes else request


@dataclass(frozen=True, slots=True)
class Alias:
    """A name for a model in one chamber.

    Args:
        identity: The exact name of the model, which is known before the provider is made.
        make: Makes the provider.
        credentials: The fingerprints of the keys that it will use, never the keys.
    """

    name: str
    identity: str
    make: ProviderFactory
    grammars: bool = False
    adapters: Mapping[str, str] = field(default_factory=dict[str, str])
    parameters: AliasParameters | None = None
    credentials: frozenset[str] = frozenset()

    @classmethod
    def of(cls, name: str, provider: Provider, parameters: AliasParameters | None = None) -> Alias:
        """An alias for an existing provider."""
        keys = provider_side(provider).credentials
        return cls(name, provider.name, lambda: provider, provider.grammars, provider.adapters, parameters, keys)

    def prepare_request(self, request: ModelRequest) -> ModelRequest:
        """The request as the model receives it."""
        if self.parameters is not None:
            request = self.parameters.apply_to(request)
        # A model that has no adapter for the job answers without one.
        if request.adapter is not None and request.adapter not in self.adapters:
            request = replace(request, adapter=None)
        return request


class Aliases:
    """The aliases of one chamber.

    Args:
        elsewhere: Names that only the other chamber has; a call that names one is refused.

    Example:
        >>> aliases = Aliases("privileged", [Alias.of("main", provider)])
        >>> aliases.provider("main").name
    """

    def __init__(self, chamber: Chamber, aliases: Iterable[Alias], *, elsewhere: Iterable[str] = ()) -> None:
        self.chamber: Chamber = chamber
        self._aliases = {alias.name: alias for alias in aliases}
        self.elsewhere = frozenset(elsewhere) - self._aliases.keys()
        self._made: dict[str, Provider] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._aliases

    def __iter__(self) -> Iterator[Alias]:
        return iter(self._aliases.values())

    def __len__(self) -> int:
        return len(self._aliases)

    def __getitem__(self, name: str) -> Alias:
        found = self._aliases.get(name)
        if found is None:
            raise self.unknown_alias_error(name)
        return found

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._aliases)

    @property
    def credentials(self) -> frozenset[str]:
        """The fingerprints of all keys that these models use."""
        return frozenset(key for alias in self for key in alias.credentials)

    def provider(self, name: str) -> Provider:
        """The metered provider of an alias, made at the first call; one of the other chamber is refused."""
        made = self._made.get(name)
        if made is None:
            alias = self[name]
            made = self._made[name] = meter_provider(check_chamber(alias, alias.make(), self.chamber))
        return made

    async def aclose(self) -> None:
        """Close every provider that was made, each once."""
        # Several aliases may have the same provider object.
        made, self._made = {id(each): each for each in self._made.values()}, {}
        for provider in made.values():
            await provider.aclose()

    def unknown_alias_error(self, name: str) -> ModelError:
        """The error for a name that is no alias of this chamber."""
        if name in self.elsewhere:
            return ModelError(
                "models.wrong-chamber",
                f"the alias {name!r} is not for the {self.chamber} chamber",
                expected=f"one of {', '.join(self.names)}",
                fix="Give it a key of that chamber's own, or name another.",
            )
        return ModelError(
            "routing.unknown-alias",
            f"there is no model alias {name!r}",
            expected=f"one of {', '.join(self.names)}",
            nearest=nearest_name(name, self.names),
        )


def check_chamber(alias: Alias, provider: Provider, chamber: Chamber) -> Provider:
    """The provider; refused if it is of the other chamber or has other keys than the alias declares."""
    # A factory may return anything: a model of the other chamber would get this chamber's prompts.
    side = provider_side(provider)
    if side.chamber not in (None, chamber):
        raise ModelError(
            "models.wrong-chamber",
            f"the alias {alias.name!r} of the {chamber} chamber leads to {provider.name!r}, which is not of it",
            fix="Use one provider object for each chamber, and set its `chamber`.",
        )
    # That the chambers share no key is checked on the aliases, before a provider is made.
    if side.credentials != alias.credentials:
        raise ModelError(
            "models.wrong-chamber",
            f"the alias {alias.name!r} leads to a model with other keys than was said",
            fix="Make aliases and their models from the same settings.",
        )
    return provider


class DeferredProvider:
    """The model of an alias with its parameters. A provider that cannot be made fails at its first call.

    Example:
        >>> Fallback([DeferredProvider(main, "privileged"), DeferredProvider(local, "privileged")])
    """

    def __init__(self, alias: Alias, chamber: Chamber) -> None:
        self.name = alias.identity
        self.grammars = alias.grammars
        self.chamber: Chamber = chamber
        self.adapters = alias.adapters
        self.credentials = alias.credentials
        """The fingerprints of the keys that it will use."""
        self.prepare_request = alias.prepare_request
        self._alias = alias
        self._made: Provider | None = None

    async def generate(self, request: ModelRequest) -> ModelReply:
        return await self._provider().generate(self.prepare_request(request))

    async def chunks(self, request: ModelRequest) -> AsyncGenerator[ReplyChunk, None]:
        """The chunks of the reply."""
        async with aclosing(stream_chunks(self._provider(), self.prepare_request(request))) as chunks:
            async for chunk in chunks:
                yield chunk

    def stream(self, request: ModelRequest) -> AsyncGenerator[str, None]:
        """The text of the reply as it is generated."""
        return stream_texts(self.chunks(request))

    async def aclose(self) -> None:
        if self._made is not None:
            await self._made.aclose()

    def _provider(self) -> Provider:
        if self._made is None:
            self._made = check_chamber(self._alias, self._alias.make(), self.chamber)
        return self._made
