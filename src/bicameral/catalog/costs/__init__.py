"""The cost model: what a stack takes before anything of it is built.

In come patterns with their knobs, sizes that were measured, and what models cost and how fast they are, all plain
numbers; out goes an `Estimate` with calls, tokens, tools, money and seconds, expected and at worst, by part and in all.
It counts contexts that grow, heads that are cached, prompts whose cost grows with the square, and who goes round whom.
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
