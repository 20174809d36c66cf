"""Limits: prices, charges, accounts and quotas of model and tool calls.

`routing` reports what each model call costs, and `config` says what it may cost. Accounts get each charge and can
refuse the next call. This room lies between `routing` and `models`.
"""

from bicameral.limits._accounting import (
    Asked,
    BudgetBound,
    BudgetScope,
    BudgetSpent,
    CallEnding,
    Charge,
    CostEntry,
    CostGrouping,
    CostReport,
    CostTotals,
    charge_to,
    collect_charges,
    cost_entries,
    current_accounts,
)
from bicameral.limits._prices import FREE_PRICE, Price, Prices, current_prices, known_prices, load_prices, use_prices
from bicameral.limits._quotas import What, has_quotas, quota_slot, use_quotas

__all__ = [
    "FREE_PRICE",
    "Asked",
    "BudgetBound",
    "BudgetScope",
    "BudgetSpent",
    "CallEnding",
    "Charge",
    "CostEntry",
    "CostGrouping",
    "CostReport",
    "CostTotals",
    "Price",
    "Prices",
    "What",
    "charge_to",
    "collect_charges",
    "cost_entries",
    "current_accounts",
    "current_prices",
    "has_quotas",
    "known_prices",
    "load_prices",
    "quota_slot",
    "use_prices",
    "use_quotas",
]
