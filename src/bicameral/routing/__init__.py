"""Routing: a model for every call, chosen by rules, phases and roles, and each choice recorded with its reason.

In come aliases (names for models, each of one chamber) and a selection (rules with conditions, a phase map, a role map,
a default); out goes a `Router`, which is a provider like any other. The purpose of a call and what is left to spend are
its `CallContext`, which sessions, strategies and budgets set. A provider is made when it is first called.
"""

from bicameral.routing._aliases import (
    Alias as Alias,
    Aliases as Aliases,
    AliasParameters as AliasParameters,
    DeferredProvider as DeferredProvider,
)
from bicameral.routing._assembly import (
    AliasSpec as AliasSpec,
    ProviderAssembly as ProviderAssembly,
    find_alias_cycle as find_alias_cycle,
)
from bicameral.routing._combinators import (
    Accept as Accept,
    BudgetedProvider as BudgetedProvider,
    Cascade as Cascade,
    Hedged as Hedged,
    RouteTag as RouteTag,
    check_finished as check_finished,
)
from bicameral.routing._conditions import RoutingCondition as RoutingCondition, parse_condition as parse_condition
from bicameral.routing._context import (
    EMPTY_CONTEXT as EMPTY_CONTEXT,
    CallContext as CallContext,
    PromptSize as PromptSize,
    call_context as call_context,
    current_context as current_context,
)
from bicameral.routing._recovery import (
    BreakerSettings as BreakerSettings,
    CircuitBreaker as CircuitBreaker,
    Fallback as Fallback,
    Retry as Retry,
    RetrySettings as RetrySettings,
)
from bicameral.routing._reply_cache import CachedProvider as CachedProvider
from bicameral.routing._router import Router as Router
from bicameral.routing._selection import (
    PHASES as PHASES,
    ROLES as ROLES,
    STRATEGY_PHASES as STRATEGY_PHASES,
    ModelSelector as ModelSelector,
    RoutingRule as RoutingRule,
    Selection as Selection,
    SelectionMistake as SelectionMistake,
    find_mistakes as find_mistakes,
    is_quarantined_only as is_quarantined_only,
    unknown_alias_error as unknown_alias_error,
)
from bicameral.routing._wrapper import (
    ProviderSide as ProviderSide,
    ProviderWrapper as ProviderWrapper,
    common_side as common_side,
    credentials_of as credentials_of,
    meter_provider as meter_provider,
    model_names as model_names,
    provider_side as provider_side,
    resolve_model as resolve_model,
)
