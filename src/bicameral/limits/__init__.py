"""Limits: how much may be taken of calls, tokens, money and time; who counts it; prices, accounts and quotas.

`Limits` say how much may be taken, a `Meter` counts it and refuses a call before it begins, and `LimitUsage` is what
was taken. `routing` and `sessions` report each model call to the accounts in force, of which a meter is one. This room
lies between `routing` and `models`.
"""

from bicameral.limits._accounts import (
    QUARANTINED_ROLES as QUARANTINED_ROLES,
    Account as Account,
    CallEnding as CallEnding,
    ChamberUsage as ChamberUsage,
    Charge as Charge,
    Ledger as Ledger,
    LimitUsage as LimitUsage,
    ModelCall as ModelCall,
    PendingCall as PendingCall,
    PlanningRole as PlanningRole,
    QuarantinedRole as QuarantinedRole,
    QuotaKind as QuotaKind,
    Role as Role,
    charge_to as charge_to,
    collect_charges as collect_charges,
    current_accounts as current_accounts,
    has_quotas as has_quotas,
    open_ledger as open_ledger,
    quota_slot as quota_slot,
    use_quotas as use_quotas,
)
from bicameral.limits._limits import (
    BUDGET as BUDGET,
    NO_LIMITS as NO_LIMITS,
    REASONING as REASONING,
    REASONING_LIMITS as REASONING_LIMITS,
    RUN as RUN,
    RUN_LIMITS as RUN_LIMITS,
    STRATEGY as STRATEGY,
    STRATEGY_LIMITS as STRATEGY_LIMITS,
    Bound as Bound,
    BudgetOwner as BudgetOwner,
    Budgets as Budgets,
    BudgetSpent as BudgetSpent,
    LimitReached as LimitReached,
    Limits as Limits,
    Scope as Scope,
    reasoning_limits as reasoning_limits,
    run_limits as run_limits,
    strategy_limits as strategy_limits,
)
from bicameral.limits._meter import (
    Meter as Meter,
    budget_scope as budget_scope,
    meters_in_force as meters_in_force,
    pause_meters as pause_meters,
    recount_reply as recount_reply,
    remaining_for_role as remaining_for_role,
)
from bicameral.limits._prices import (
    FREE_PRICE as FREE_PRICE,
    ChamberPrices as ChamberPrices,
    Price as Price,
    Prices as Prices,
    current_prices as current_prices,
    known_prices as known_prices,
    load_prices as load_prices,
    use_prices as use_prices,
)
from bicameral.limits._report import (
    CostEntry as CostEntry,
    CostGrouping as CostGrouping,
    CostReport as CostReport,
    CostTotals as CostTotals,
    TimeUnit as TimeUnit,
    cost_entries as cost_entries,
    unit_start as unit_start,
)
