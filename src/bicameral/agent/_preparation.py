"""Preparing local models: what they read before every request is read now, and kept for later processes."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from bicameral.boundary import Extractor
from bicameral.config import embedded_providers, missing_weights
from bicameral.planning import Delta, Echo

if TYPE_CHECKING:
    from bicameral.config import Config, Role
    from bicameral.tools import Registry

ROLES: tuple[Role, ...] = ("privileged", "quarantined")


async def prepare_models(config: Config, registry: Registry, *, only: Collection[str] | None = None) -> list[str]:
    """Let the local models of a configuration read their prompts with these tools; return the names of the models.

    Weights that are not on this machine are left out, and so are remote models. What was kept already is not read
    again. `bicameral.models.watch_model` tells the progress.

    Args:
        config: The configuration.
        registry: The tools of the planner's prompt.
        only: The SHA-256 of the weights to prepare; without it, all that are used.
    """
    prepared: list[str] = []
    for role in ROLES:
        missing = {weights.sha256 for weights in missing_weights(config, [role])}
        for provider in embedded_providers(config, role):
            sha256 = provider.weights.sha256
            if sha256 in missing or (only is not None and sha256 not in only):
                continue
            try:
                if role == "privileged":
                    await Echo(provider, timeout=None).prepare()
                    await Delta(provider, timeout=None).prepare(registry)
                else:
                    await Extractor(provider, timeout=None).prepare()
            finally:
                await provider.aclose()
            prepared.append(provider.name)
    return list(dict.fromkeys(prepared))
