"""What a configuration says of costs: the prices, and what a run may take."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ._config import Config

if TYPE_CHECKING:
    from bicameral.routing import Budgets, Prices


def open_prices(config: Config) -> Prices:
    """The prices in force: those of the file that the configuration names, over those that come with Bicameral."""
    from bicameral.routing import known_prices, load_prices

    if config.llm.prices is None:
        return known_prices()
    start = config.source.parent if config.source is not None else config.base
    return load_prices(start / os.path.expanduser(config.llm.prices))


def budgets_of(config: Config) -> Budgets:
    """How much one run may take, and each role in it."""
    from bicameral.routing import Budget, Budgets

    roles = {role: Budget(**budget.model_dump()) for role, budget in config.llm.role_budgets.items()}
    return Budgets(Budget(**config.llm.budget.model_dump()), roles)
