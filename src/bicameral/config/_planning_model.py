"""The model that plans, chosen for one command: a configuration in which the planning roles have another model.

Only Echo and Delta get it. The quarantined model stays as it is configured: who reads untrusted text is not decided by
whoever wants a better plan.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bicameral.config._config import Config
from bicameral.config._llm_settings import AliasSettings
from bicameral.config._models import model_store
from bicameral.config._routing import (
    EMBEDDED_ALIAS,
    LOCAL_FAMILY,
    can_serve,
    find_key,
    find_model_weights,
    is_keyed,
    key_names,
    model_selection,
    split_model_name,
)
from bicameral.errors import BicameralError, ModelError, nearest_name

if TYPE_CHECKING:
    from bicameral.models import Weights


PLANNING_ROLES = ("echo", "delta")


def with_planning_model(config: Config, name: str) -> Config:
    """The configuration in which a model understands requests and writes plans, whatever it says itself.

    Args:
        config: The configuration.
        name: An alias of the configuration, weights of the store (`1.5b`), or `family/model` (`openai/gpt-4.1`).

    Example:
        >>> with_planning_model(Config.defaults(), "0.5b").weights("privileged")
        '0.5b'
    """
    wanted = name.strip()
    settings = find_model_settings(config, wanted)
    models = config.models.model_copy(update={"cascade": False})
    weights = _weights_of(settings)
    if weights is not None and not config.is_routed:
        models = models.model_copy(update={"privileged": weights, "quarantined": config.weights("quarantined")})
        return config.model_copy(update={"profile": "default", "models": models})
    llm = config.llm
    rules = tuple(
        # A rule is asked before the role: none may choose another model for these.
        rule.model_copy(update={"condition": f"not role:echo and not role:delta and ({rule.condition})"})
        for rule in llm.routing.rules
    )
    changes = {
        "models": {**llm.models, wanted: settings} if settings is not None else llm.models,
        "model_roles": {**llm.model_roles, **dict.fromkeys(PLANNING_ROLES, wanted)},
        "routing": llm.routing.model_copy(update={"rules": rules}),
    }
    return config.model_copy(update={"llm": llm.model_copy(update=changes), "models": models})


def planning_models(config: Config) -> dict[str, str]:
    """The names that `--model` takes besides `family/model`, and what each of them is."""
    local = {weights.alias: weights.title for weights in _chat_weights(config)}
    own = {alias: settings.model or "a cascade" for alias, settings in config.llm.models.items()}
    return {**local, **own}


def larger_planning_models(config: Config) -> tuple[str, ...]:
    """The models that may plan better than the one that plans: larger weights, the next size first, then remote ones.

    Nothing is known of the size of a remote model, so there is none that is larger. A model whose key is not set is not
    among them.
    """
    used = _planning_weights(config)
    if used is None:
        return ()
    size = find_model_weights(config, used).bytes
    larger = sorted((each.bytes, each.alias) for each in _chat_weights(config) if each.bytes > size)
    return (*(alias for _, alias in larger), *_usable_remote_aliases(config))


def _chat_weights(config: Config) -> list[Weights]:
    """The known weights that reply, and the own models of this user."""
    from bicameral.models import known_weights

    own = model_store(config).own_models.entries()
    return [*(weights for weights in known_weights() if weights.kind == "chat"), *own]


def find_model_settings(config: Config, name: str) -> AliasSettings | None:
    """The settings of a model that has no alias yet; None for one that the configuration has an alias for."""
    if name in config.llm.models or (name == EMBEDDED_ALIAS and config.is_routed):
        return None
    from bicameral.models import is_model_reference, parse_reference

    family, model = split_model_name(name)
    if family == LOCAL_FAMILY and is_model_reference(model):
        # The caller's path, not one of the configuration: it starts where the command runs.
        reference = parse_reference(model)
        absolute = os.path.abspath(reference) if isinstance(reference, Path) else str(reference)
        return AliasSettings(model=f"{LOCAL_FAMILY}/{absolute}")
    if "/" in name:
        # What is wrong with it is found where aliases are checked.
        return AliasSettings(model=name)
    with suppress(ModelError):
        return AliasSettings(model=f"{LOCAL_FAMILY}/{find_model_weights(config, name).alias}")
    known = planning_models(config)
    raise ModelError(
        "models.unknown",
        f"there is no model {name!r}",
        expected=f"one of {', '.join(known)}, or family/model such as openai/gpt-4.1",
        nearest=nearest_name(name, known),
        fix="`bicameral models list` and `bicameral models aliases` show them.",
    )


def _weights_of(settings: AliasSettings | None) -> str | None:
    family, model = split_model_name(settings.model or "") if settings is not None else ("", "")
    return model if family == LOCAL_FAMILY else None


def _planning_weights(config: Config) -> str | None:
    """The weights that write plans; None if a remote model does. Of a cascade it is the last."""
    selection = model_selection(config)
    alias = selection.of_role("delta") or selection.default
    while alias != EMBEDDED_ALIAS:
        settings = config.llm.models.get(alias)
        if settings is None or not settings.cascade:
            return _weights_of(settings)
        alias = settings.cascade[-1]
    return config.weights("privileged")


def _usable_remote_aliases(config: Config) -> Iterator[str]:
    for alias, settings in config.llm.models.items():
        family, _ = split_model_name(settings.model or "")
        if settings.model is None or family == LOCAL_FAMILY or not can_serve(config, alias, "privileged"):
            continue
        with suppress(BicameralError):
            if not is_keyed(settings) or find_key(*key_names(settings, family, "privileged")) is not None:
                yield alias
