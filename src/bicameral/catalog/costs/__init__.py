"""The cost model: what a stack takes before anything of it is built.

In come patterns with their knobs, sizes that were measured, and what models cost and how fast they are, all plain
numbers; out goes an `Estimate` with calls, tokens, tools, money and seconds, expected and at worst, by part and in all.
It counts contexts that grow, heads that are cached, prompts whose cost grows with the square, and who goes round whom.
"""

from ._amounts import NOTHING, Amounts
from ._estimate import Estimate, estimate
from ._lengths import tokens_of
from ._part import Part
from ._rates import LOCAL, LOCAL_CACHING, TIERS, Caching, Rates, Tier
from ._sessions import Session, expected, worst
from ._stacks import Patterns

__all__ = [
    "LOCAL",
    "LOCAL_CACHING",
    "NOTHING",
    "TIERS",
    "Amounts",
    "Caching",
    "Estimate",
    "Part",
    "Patterns",
    "Rates",
    "Session",
    "Tier",
    "estimate",
    "expected",
    "tokens_of",
    "worst",
]
