"""The weights that a configuration needs, and whether they are here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._config import Config, Role

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bicameral.models import ModelStore, Progress, Weights

BOTH: tuple[Role, ...] = ("privileged", "quarantined")


def model_store(config: Config) -> ModelStore:
    """The store that this configuration keeps its weights in."""
    from bicameral.models import ModelStore

    return ModelStore(config.models_folder)


def needed_weights(config: Config, roles: Iterable[Role] = BOTH) -> list[Weights]:
    """The weights that these roles use, each once."""
    from bicameral.models import find_weights

    found = [find_weights(name) for role in roles for name in _names(config, role)]
    return list({weights.sha256: weights for weights in found}.values())


def _names(config: Config, role: Role) -> list[str]:
    """The weights that a chamber can be led to: its own, unless the configuration never leads there."""
    if not config.llm.model_fields_set and not config.agent.planning_strategy_params.phase_models:
        return [config.weights(role)]
    from ._routing import EMBEDDED, LOCAL, family_of, reachable

    models = {name: alias.model for name, alias in config.llm.models.items()}
    wanted = [config.weights(role) if name == EMBEDDED else models[name] or "" for name in reachable(config, role)]
    return [
        family_of(name)[1] if name.startswith(f"{LOCAL}/") else name
        for name in wanted
        if name.startswith(f"{LOCAL}/") or name == config.weights(role)
    ]


def missing_weights(config: Config, roles: Iterable[Role] = BOTH) -> list[Weights]:
    """Of the weights that these roles use, those not yet here; a damaged file raises `models.damaged`."""
    store = model_store(config)
    return [weights for weights in needed_weights(config, roles) if store.path(weights) is None]


def fetch_weights(
    config: Config, roles: Iterable[Role] = BOTH, *, progress: Progress | None = None, offline: bool = False
) -> list[Path]:
    """Bring the weights that these roles use onto this machine; those already here cost nothing."""
    store = model_store(config)
    return [store.ensure(weights, progress=progress, offline=offline) for weights in needed_weights(config, roles)]


def size_text(size: int) -> str:
    """A size on disk as people read it.

    Example:
        >>> size_text(491_400_064)
        '491 MB'
    """
    return f"{size / 1_000_000:,.0f} MB"
