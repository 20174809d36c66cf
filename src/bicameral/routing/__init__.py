"""Routing: a model for every call, chosen by rules, phases and roles, and each choice recorded with its reason.

In come aliases (names for models, each of one chamber) and a selection (rules with conditions, a phase map, a role map,
a default); out goes a `Router`, which is a provider like any other. The purpose of a call and what is left to spend are
its `CallContext`, which sessions, strategies and budgets set. A provider is made when it is first called.
"""

from bicameral.routing._aliases import Alias, Aliases, AliasParameters, DeferredProvider
from bicameral.routing._assembly import AliasSpec, ProviderAssembly, find_alias_cycle
from bicameral.routing._combinators import Accept, BudgetedProvider, Cascade, Hedged, RouteTag, check_finished
from bicameral.routing._conditions import RoutingCondition, parse_condition
from bicameral.routing._context import EMPTY_CONTEXT, CallContext, call_context, current_context
from bicameral.routing._recovery import BreakerSettings, CircuitBreaker, Fallback, Retry, RetrySettings
from bicameral.routing._reply_cache import CachedProvider
from bicameral.routing._router import Router
from bicameral.routing._selection import (
    PHASES,
    ROLES,
    RoutingRule,
    Selection,
    SelectionMistake,
    find_mistakes,
    is_quarantined_only,
    unknown_alias_error,
)
from bicameral.routing._wrapper import (
    ProviderSide,
    ProviderWrapper,
    common_side,
    credentials_of,
    meter_provider,
    model_names,
    provider_side,
)

__all__ = [
    "EMPTY_CONTEXT",
    "PHASES",
    "ROLES",
    "Accept",
    "Alias",
    "AliasParameters",
    "AliasSpec",
    "Aliases",
    "BreakerSettings",
    "BudgetedProvider",
    "CachedProvider",
    "CallContext",
    "Cascade",
    "CircuitBreaker",
    "DeferredProvider",
    "Fallback",
    "Hedged",
    "ProviderAssembly",
    "ProviderSide",
    "ProviderWrapper",
    "Retry",
    "RetrySettings",
    "RouteTag",
    "Router",
    "RoutingCondition",
    "RoutingRule",
    "Selection",
    "SelectionMistake",
    "call_context",
    "check_finished",
    "common_side",
    "credentials_of",
    "current_context",
    "find_alias_cycle",
    "find_mistakes",
    "is_quarantined_only",
    "meter_provider",
    "model_names",
    "parse_condition",
    "provider_side",
    "unknown_alias_error",
]
