"""The policies that a configuration names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._config import Config

if TYPE_CHECKING:
    from bicameral.policy import Policy
    from bicameral.tools import Registry


def open_policy(config: Config, registry: Registry) -> Policy:
    """The defaults and the user's own policies, for these tools.

    Example:
        >>> open_policy(Config.defaults(), registry).mode
        'strict'
    """
    from bicameral.policy import Policy

    return Policy.load(config.policy_files, registry, mode=config.policy.mode, me=config.policy.me)
