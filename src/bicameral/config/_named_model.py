"""One model by its name, alone: for a trial of what it can do, whatever roles the configuration gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bicameral.config._config import Config, Role
from bicameral.config._models import EmbeddedProvider, open_router
from bicameral.config._planning_model import find_model_settings
from bicameral.config._routing import LOCAL_FAMILY, can_serve, no_key_error, split_model_name

if TYPE_CHECKING:
    from bicameral.models import Provider, Weights


def open_named_model(config: Config, name: str, chamber: Role) -> Provider:
    """The model of this name for calls of one chamber; nothing is loaded, fetched or asked yet.

    Args:
        config: The configuration.
        name: An alias of the configuration, weights of the store (`1.5b`), or `family/model` (`openai/gpt-4.1`).
        chamber: Where it is used. A remote model serves the quarantine only with a key of its own for that.
    """
    config, wanted = _with_alias(config, name)
    if not can_serve(config, wanted, chamber):
        raise no_key_error(wanted)
    return open_router(config, chamber, only=wanted)


def named_weights(config: Config, name: str) -> Weights | None:
    """The weights that a name stands for; None for a remote model and for an alias of several models."""
    config, wanted = _with_alias(config, name)
    settings = config.llm.models.get(wanted)
    family, model = split_model_name(settings.model or "") if settings is not None else ("", "")
    return EmbeddedProvider(config, "privileged", model).weights if family == LOCAL_FAMILY else None


def _with_alias(config: Config, name: str) -> tuple[Config, str]:
    """The configuration with an alias for a model, and the alias."""
    wanted = name.strip()
    settings = find_model_settings(config, wanted)
    if settings is None:
        return config, wanted
    llm = config.llm.model_copy(update={"models": {**config.llm.models, wanted: settings}})
    return config.model_copy(update={"llm": llm}), wanted
