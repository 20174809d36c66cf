"""Routing: a model for every call, chosen by rules, phases and roles, and each choice recorded with its reason.

In come aliases (names for models, each of one chamber) and a selection (rules with conditions, a phase map, a role map,
a default); out goes a `Router`, which is a provider like any other. What a call is for and what is left to spend is its
`Situation`: sessions, strategies and budgets set it, and nobody passes it along. Nothing is made before it is asked.
"""

from ._aliases import Alias, Aliases, Parameters
from ._breaker import Breaker, BreakerSettings
from ._budgets import Budget, Budgeted, Budgets, Purse, left_for, spending
from ._cached import Cached
from ._cascade import Accept, Cascade, unfinished
from ._charges import Asked, Charge, accounted, charged
from ._conditions import Tree
from ._context import NOTHING_KNOWN, Situation, situated, situation
from ._costs import By, Cost, Costs, Spending, spendings_in
from ._deferred import Deferred
from ._fallback import Fallback
from ._hedge import Hedged
from ._marked import Marked
from ._parsing import parse_condition
from ._part import Part, metered, models_of
from ._prices import FREE, Price, Prices, known_prices, load_prices, priced, prices
from ._retry import Retry, RetrySettings
from ._router import Router, for_role
from ._selection import PHASES, ROLES, Mistake, Rule, Selection, mistakes, only_quarantined, unknown_alias
from ._sides import Side, credentials_of, one_side, side_of
from ._specs import AliasSpec, Assembly, cycle_in
from ._spent import BudgetSpent

__all__ = [
    "FREE",
    "NOTHING_KNOWN",
    "PHASES",
    "ROLES",
    "Accept",
    "Alias",
    "AliasSpec",
    "Aliases",
    "Asked",
    "Assembly",
    "Breaker",
    "BreakerSettings",
    "Budget",
    "BudgetSpent",
    "Budgeted",
    "Budgets",
    "By",
    "Cached",
    "Cascade",
    "Charge",
    "Cost",
    "Costs",
    "Deferred",
    "Fallback",
    "Hedged",
    "Marked",
    "Mistake",
    "Parameters",
    "Part",
    "Price",
    "Prices",
    "Purse",
    "Retry",
    "RetrySettings",
    "Router",
    "Rule",
    "Selection",
    "Side",
    "Situation",
    "Spending",
    "Tree",
    "accounted",
    "charged",
    "credentials_of",
    "cycle_in",
    "for_role",
    "known_prices",
    "left_for",
    "load_prices",
    "metered",
    "mistakes",
    "models_of",
    "one_side",
    "only_quarantined",
    "parse_condition",
    "priced",
    "prices",
    "side_of",
    "situated",
    "situation",
    "spending",
    "spendings_in",
    "unfinished",
    "unknown_alias",
]
