"""The aliases of a configuration as models of one chamber, each with the key of that chamber and no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from bicameral.errors import ModelError

from ._config import Config
from ._keys import find_key, key_names, missing_key
from ._llm import AliasSettings, ParameterSettings, extras
from ._routing import EMBEDDED, LOCAL, family_of, keyed, serves, spec_of

if TYPE_CHECKING:
    from bicameral.models import Chamber, Key, Provider
    from bicameral.routing import Alias, Aliases, AliasSpec, Parameters

Embedded = Callable[["str | None"], "Provider"]
"""Makes a model of the store for a chamber: by its name, or the chamber's own."""

_BOUNDS = ("temperature", "max_tokens", "timeout", "seed")


def open_aliases(config: Config, chamber: Chamber, embedded: Embedded) -> Aliases:
    """Every alias that a chamber may use. Nothing is made or fetched yet; keys are looked up and shown to nobody."""
    from bicameral.routing import Alias, Aliases, Assembly, Deferred

    here = [name for name in config.llm.models if serves(config, name, chamber)]
    bare = {EMBEDDED: Alias.of(EMBEDDED, embedded(None))}
    bare |= {name: _bare(config, name, chamber, embedded) for name in here if config.llm.models[name].model}
    kept = {*here, EMBEDDED}
    specs = {name: _within(spec_of(config.llm.models[name]), kept) for name in here}
    assembly = Assembly(specs, lambda name: Deferred(bare[name], chamber), cache=_cache(config))
    found = [
        bare[name] if name == EMBEDDED or specs[name].plain else Alias.of(name, assembly.provider(name))
        for name in (EMBEDDED, *here)
    ]
    return Aliases(chamber, found, elsewhere=config.llm.models)


def _within(spec: AliasSpec, kept: set[str]) -> AliasSpec:
    """The same without what this chamber does not have."""
    return replace(
        spec,
        fallback=tuple(name for name in spec.fallback if name in kept),
        cascade=tuple(name for name in spec.cascade if name in kept),
        hedge_with=spec.hedge_with if spec.hedge_with in kept else None,
    )


def _bare(config: Config, name: str, chamber: Chamber, embedded: Embedded) -> Alias:
    from bicameral.models.remote import name_of
    from bicameral.routing import Alias

    settings = config.llm.models[name]
    family, model = family_of(settings.model or "")
    parameters, more = _parameters(config, name, settings, model)
    if family == LOCAL:
        local = embedded(model)
        return Alias(name, local.name, lambda: local, local.grammars, local.adapters, parameters)
    variable, entry = key_names(settings, family, chamber) if keyed(settings) else (None, None)
    key = find_key(variable, entry)
    given = {**more, **settings.params}
    identity = name_of(family, model, settings.base_url, {**given, **settings.options})
    make = partial(_remote, name, settings, chamber, key, given, identity, missing_key(name, chamber, variable, entry))
    keys = frozenset[str]() if key is None else frozenset({key.fingerprint})
    return Alias(name, identity, make, parameters=parameters, credentials=keys)


def _remote(
    name: str,
    settings: AliasSettings,
    chamber: Chamber,
    key: Key | None,
    given: Mapping[str, Any],
    identity: str,
    missing: ModelError,
) -> Provider:
    from bicameral.models import LiteLLMProvider, RemoteProvider

    if key is None and keyed(settings):
        raise missing
    family, model = family_of(settings.model or "")
    if family == "litellm":
        url = settings.base_url
        return LiteLLMProvider(model, key=key, base_url=url, chamber=chamber, settings=given, name=identity)
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


def _parameters(
    config: Config, name: str, settings: AliasSettings, model: str
) -> tuple[Parameters | None, dict[str, Any]]:
    """How an alias is asked: what is said of all models, of this one, of this alias, and with the alias itself."""
    from bicameral.routing import Parameters

    llm = config.llm
    told = [llm.default_params, *(llm.model_params.get(key) for key in (settings.model or "", model, name))]
    bounds: dict[str, Any] = {}
    more: dict[str, Any] = {}
    for each in told:
        if each is not None:
            bounds |= _said(each)
            more |= extras(each)
    bounds |= _said(settings)
    return (Parameters(**bounds) if bounds else None), more


def _said(settings: AliasSettings | ParameterSettings) -> dict[str, Any]:
    return {name: value for name in _BOUNDS if (value := getattr(settings, name)) is not None}


def _cache(config: Config) -> Any:
    """Where replies are kept, if an alias wants that."""
    from ._storage import open_cache

    return open_cache(config) if any(alias.cache for alias in config.llm.models.values()) else None
