"""The models of a configuration: their weights, the aliases of each chamber, and a router per chamber.

Each alias gets the key of its chamber and no other. Nothing is loaded or fetched before the first request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from bicameral.cache import user_folder
from bicameral.config._config import Config, Role
from bicameral.config._llm_settings import AliasSettings, ParameterSettings, extra_parameters
from bicameral.config._load import settings_origin
from bicameral.config._routing import (
    EMBEDDED_ALIAS,
    LOCAL_FAMILY,
    alias_spec,
    can_serve,
    check_routing,
    find_key,
    find_model_weights,
    is_keyed,
    key_names,
    missing_key_error,
    model_selection,
    reachable_aliases,
    split_model_name,
)
from bicameral.errors import ConfigError, ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bicameral.models import (
        Chamber,
        LocalProvider,
        ModelReply,
        ModelRequest,
        ModelStore,
        ProgressReporter,
        Provider,
        ReplyChunk,
        Weights,
    )
    from bicameral.routing import Alias, Aliases, AliasParameters, AliasSpec, Router


BOTH_ROLES: tuple[Role, ...] = ("privileged", "quarantined")


def model_store(config: Config) -> ModelStore:
    """The store of this configuration's weights."""
    from bicameral.models import ModelStore

    return ModelStore(config.models_folder)


def prefixes_folder() -> Path:
    """Where read prompts are kept: a folder of this user alone, also where several users share the weights."""
    return user_folder("cache") / "prefixes"


def needed_weights(config: Config, roles: Iterable[Role] = BOTH_ROLES) -> list[Weights]:
    """The weights that these roles use, each once."""
    found = [find_model_weights(config, name) for role in roles for name in _role_weights(config, role)]
    return list({weights.sha256: weights for weights in found}.values())


def _role_weights(config: Config, role: Role) -> list[str]:
    """The names of the weights that calls of a chamber can reach: its own, unless no alias leads there."""
    return [*_routed_weights(config, role), *(_executor_weights(config) if role == "quarantined" else ())]


def _executor_weights(config: Config) -> Iterator[str]:
    """The weights that the variant of the quarantine has for itself."""
    settings = config.quarantine
    for name in (settings.model, *settings.validator_models):
        if name is None or name == EMBEDDED_ALIAS:
            continue
        alias = config.llm.models.get(name)
        family, model = (LOCAL_FAMILY, name) if alias is None else split_model_name(alias.model or "")
        if family == LOCAL_FAMILY:
            yield model


def _routed_weights(config: Config, role: Role) -> list[str]:
    if not config.is_routed:
        return [config.weights(role)]
    models = {name: alias.model for name, alias in config.llm.models.items()}
    aliases = reachable_aliases(config, role)
    named = (
        (LOCAL_FAMILY, config.weights(role)) if name == EMBEDDED_ALIAS else split_model_name(models[name] or "")
        for name in aliases
    )
    return [model for family, model in named if family == LOCAL_FAMILY]


def add_hub_models(
    config: Config,
    roles: Iterable[Role] = BOTH_ROLES,
    *,
    progress: ProgressReporter | None = None,
    offline: bool = False,
) -> list[Weights]:
    """Add the files of the hub that these roles name and this machine has not added; return them."""
    from bicameral.models import HubFile, is_model_reference, parse_reference

    store = model_store(config)
    added: list[Weights] = []
    for name in dict.fromkeys(name for role in roles for name in _role_weights(config, role)):
        reference = parse_reference(name) if is_model_reference(name) else None
        if isinstance(reference, HubFile) and store.own_models.find_reference(reference) is None:
            threads = config.models.threads
            added.append(store.add(reference, progress=progress, offline=offline, threads=threads).weights)
    return added


def embedded_providers(config: Config, role: Role) -> list[EmbeddedProvider]:
    """The models on this machine that calls of a chamber can reach, each of its own."""
    return [EmbeddedProvider(config, role, name) for name in dict.fromkeys(_role_weights(config, role))]


def missing_weights(config: Config, roles: Iterable[Role] = BOTH_ROLES) -> list[Weights]:
    """The weights that these roles use and this machine does not have; a damaged file raises `models.damaged`."""
    store = model_store(config)
    return [weights for weights in needed_weights(config, roles) if store.path(weights) is None]


def fetch_weights(
    config: Config,
    roles: Iterable[Role] = BOTH_ROLES,
    *,
    progress: ProgressReporter | None = None,
    offline: bool = False,
) -> list[Path]:
    """Fetch the weights that these roles use and this machine does not have, and return all their paths."""
    store = model_store(config)
    return [store.ensure(weights, progress=progress, offline=offline) for weights in needed_weights(config, roles)]


def size_text(size: int) -> str:
    """A size on disk as people read it.

    Example:
        >>> size_text(491_400_064)
        '491 MB'
    """
    return f"{size / 1_000_000:,.0f} MB"


MakeEmbedded = Callable[["str | None"], "Provider"]
"""Makes a provider of weights in the store: by their name, or the chamber's own for None."""

_PARAMETER_NAMES = ("temperature", "max_tokens", "timeout", "seed")


def open_aliases(config: Config, chamber: Chamber, embedded: MakeEmbedded) -> Aliases:
    """Every alias that a chamber may use. Keys are looked up; no provider is made and nothing is fetched yet."""
    from bicameral.routing import Alias, Aliases, DeferredProvider, ProviderAssembly

    here = [name for name in config.llm.models if can_serve(config, name, chamber)]
    bare = {EMBEDDED_ALIAS: Alias.of(EMBEDDED_ALIAS, embedded(None))}
    bare |= {name: _bare_alias(config, name, chamber, embedded) for name in here if config.llm.models[name].model}
    kept = {*here, EMBEDDED_ALIAS}
    specs = {name: _restrict_spec(alias_spec(config.llm.models[name]), kept) for name in here}
    assembly = ProviderAssembly(specs, lambda name: DeferredProvider(bare[name], chamber), cache=_reply_cache(config))
    found = [
        bare[name] if name == EMBEDDED_ALIAS or specs[name].is_plain else Alias.of(name, assembly.provider(name))
        for name in (EMBEDDED_ALIAS, *here)
    ]
    return Aliases(chamber, found, elsewhere=config.llm.models)


def _restrict_spec(spec: AliasSpec, kept: set[str]) -> AliasSpec:
    """The spec without the aliases that this chamber does not have."""
    return replace(
        spec,
        fallback=tuple(name for name in spec.fallback if name in kept),
        cascade=tuple(name for name in spec.cascade if name in kept),
        hedge_with=spec.hedge_with if spec.hedge_with in kept else None,
    )


def _bare_alias(config: Config, name: str, chamber: Chamber, embedded: MakeEmbedded) -> Alias:
    from bicameral.models.remote import remote_model_name
    from bicameral.routing import Alias

    settings = config.llm.models[name]
    family, model = split_model_name(settings.model or "")
    parameters, more = _alias_parameters(config, name, settings, model)
    if family == LOCAL_FAMILY:
        local = embedded(model)
        return Alias(name, local.name, lambda: local, local.grammars, local.adapters, parameters)
    variable, entry = key_names(settings, family, chamber) if is_keyed(settings) else (None, None)
    key = find_key(variable, entry)
    given = {**more, **settings.params}
    identity = remote_model_name(family, model, settings.base_url, {**given, **settings.options})

    def make() -> Provider:
        from bicameral.models import RemoteProvider

        if key is None and is_keyed(settings):
            raise missing_key_error(name, chamber, variable, entry)
        return RemoteProvider(
            family,
            model,
            key=key,
            base_url=settings.base_url,
            chamber=chamber,
            settings=given,
            options=settings.options,
            name=identity,
        )

    keys = frozenset[str]() if key is None else frozenset({key.fingerprint})
    return Alias(name, identity, make, parameters=parameters, credentials=keys)


def _alias_parameters(
    config: Config, name: str, settings: AliasSettings, model: str
) -> tuple[AliasParameters | None, dict[str, Any]]:
    """The parameters of an alias: those of all models, then of its model, then its own; the later ones win."""
    from bicameral.routing import AliasParameters

    llm = config.llm
    settings_of = [llm.default_params, *(llm.model_params.get(key) for key in (settings.model or "", model, name))]
    bounds: dict[str, Any] = {}
    more: dict[str, Any] = {}
    for each in settings_of:
        if each is not None:
            bounds |= _set_parameters(each)
            more |= extra_parameters(each)
    bounds |= _set_parameters(settings)
    return (AliasParameters(**bounds) if bounds else None), more


def call_sampling(config: Config, alias: str, role: str) -> tuple[float, int] | None:
    """The temperature and the seed of a call of this role to this alias; None for a cascade, whose stages differ."""
    from bicameral.models import ModelRequest
    from bicameral.routing import call_context

    settings = config.llm.models.get(alias)
    if settings is not None and settings.model is None:
        return None
    configured = config.planning.echo_temperature if role == "echo" else None
    request = ModelRequest((), temperature=configured or 0.0)
    if settings is not None:
        parameters, _ = _alias_parameters(config, alias, settings, split_model_name(settings.model or "")[1])
        with call_context(keeps_sampling=configured is not None):
            request = request if parameters is None else parameters.apply_to(request)
    return request.temperature, request.seed


def _set_parameters(settings: AliasSettings | ParameterSettings) -> dict[str, Any]:
    return {name: value for name in _PARAMETER_NAMES if (value := getattr(settings, name)) is not None}


def _reply_cache(config: Config) -> Any:
    """The cache of replies, if an alias uses one."""
    from bicameral.config._resources import open_cache

    return open_cache(config) if any(alias.cache for alias in config.llm.models.values()) else None


@dataclass(frozen=True, slots=True)
class ConfiguredModels:
    """The two models of an agent; in the small profile both use the same weights."""

    privileged: Provider
    quarantined: Provider
    cascade: Mapping[str, Provider] = field(default_factory=dict[str, "Provider"])
    """The models that plan one after the other, by their aliases, the smallest first; empty if only one does."""


def open_models(config: Config) -> ConfiguredModels:
    """The models of both chambers. Weights are loaded, and fetched if they are missing, at the first request.

    Each is a router over the aliases of its chamber. Where nothing is configured there is one alias, the embedded
    model, and the router has its name.
    """
    privileged, quarantined = open_router(config, "privileged"), open_router(config, "quarantined")
    if privileged.credentials & quarantined.credentials:
        raise ModelError(
            "models.shared-chamber", "both chambers use the same key", fix="Give each chamber a key of its own."
        )
    return ConfiguredModels(privileged, quarantined, _cascade_stages(config, privileged))


def _cascade_stages(config: Config, privileged: Provider) -> dict[str, Provider]:
    """The models that plan in a cascade: those of the alias that plans, if that is one, or the embedded ones.

    With routing rules there is no cascade: rules choose the model of each call.
    """
    selection = model_selection(config)
    planning = config.llm.models.get(selection.of_role("delta") or selection.default)
    if planning is not None and len(planning.cascade) > 1 and not selection.rules:
        return {alias: open_router(config, "privileged", only=alias) for alias in planning.cascade}
    if not config.models.cascade or config.weights("privileged") == config.weights("quarantined"):
        return {}
    return {"fast": EmbeddedProvider(config, "privileged", config.weights("quarantined")), "main": privileged}


def open_router(config: Config, chamber: Role, *, only: str | None = None) -> Router:
    """The router of one chamber, or one that always chooses the same alias.

    The quarantined chamber has no alias that it lacks a key of its own for; if that is the default alias, its embedded
    model is the default instead.
    """
    from bicameral.routing import Router, Selection

    check_routing(config, lambda _: None)
    aliases = open_aliases(config, chamber, lambda weights: EmbeddedProvider(config, chamber, weights))
    selection = model_selection(config) if only is None else Selection(only)
    if selection.default not in aliases:
        selection = replace(selection, default=EMBEDDED_ALIAS)
    return Router(aliases, selection)


def routing_notes(config: Config) -> list[ConfigError]:
    """Remarks on the routing rules that are no errors, such as a rule that no call reaches."""
    return check_routing(config, settings_origin(config).locate)


class EmbeddedProvider:
    """A model from the store, by role. Its name is known at once; its weights are loaded at the first request."""

    def __init__(self, config: Config, role: Role, weights: str | None = None) -> None:
        self.weights = find_model_weights(config, weights or config.weights(role))
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
        return await (await self._load()).generate(request)

    async def stream(self, request: ModelRequest) -> AsyncIterator[str]:
        """The text of the reply, piece by piece."""
        async for text in (await self._load()).stream(request):
            yield text

    async def chunks(self, request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        """The pieces of the reply with tool calls, usage and the end of it."""
        async for chunk in (await self._load()).chunks(request):
            yield chunk

    async def aclose(self) -> None:
        if self._local is not None:
            await self._local.aclose()

    async def _load(self) -> LocalProvider:
        from bicameral.models import KeptPrefixes, LocalProvider, adapters_of, probe_grammar, terminal_progress

        # One at a time: two first requests must not fetch or load the same weights twice.
        async with self._fetching:
            if self._local is None:
                store, threads = model_store(self._config), self._config.models.threads
                path = await asyncio.to_thread(store.ensure, self.weights, progress=terminal_progress())
                if not self.weights.tested:
                    # A file that the configuration names by its path, and that nobody has added before.
                    await probe_grammar(path, threads=threads)
                    await asyncio.to_thread(store.own_models.mark_tested, self.weights)
                most_bytes = self._config.models.kept_mb * 10**6
                self._local = LocalProvider(
                    path,
                    name=self.name,
                    threads=threads,
                    adapters=adapters_of(self.weights),
                    prefixes=KeptPrefixes(prefixes_folder(), self.weights.sha256, most_bytes),
                    own_template=self.weights.own,
                )
        return self._local
