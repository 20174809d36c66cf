"""The cost model: the cost of a stack before it is built.

In come patterns with their knobs, measured sizes, and the prices and speeds of models; out goes an `Estimate` with
calls, tokens, tool calls, money and seconds, expected and at worst, by part and in all. It models growing contexts,
cached prefixes, attention cost that grows with the square of the prompt, and patterns that wrap others.
"""

from bicameral.catalog.costs._estimate import Estimate, PatternList, estimate, estimate_tokens
from bicameral.catalog.costs._sessions import (
    LOCAL_CACHING,
    LOCAL_RATES,
    NO_AMOUNTS,
    TIERS,
    Amounts,
    Caching,
    CostPart,
    ModelTier,
    Rates,
    SessionLoad,
    expected_amounts,
    worst_amounts,
)

__all__ = [
    "LOCAL_CACHING",
    "LOCAL_RATES",
    "NO_AMOUNTS",
    "TIERS",
    "Amounts",
    "Caching",
    "CostPart",
    "Estimate",
    "ModelTier",
    "PatternList",
    "Rates",
    "SessionLoad",
    "estimate",
    "estimate_tokens",
    "expected_amounts",
    "worst_amounts",
]
