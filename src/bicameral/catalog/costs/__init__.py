"""The cost model: the cost of a stack before it is built.

In come patterns with their knobs, measured sizes, and the prices and speeds of models; out goes an `Estimate` with
calls, tokens, tool calls, money and seconds, expected and at worst, by part and in all. It models growing contexts,
cached prefixes, attention cost that grows with the square of the prompt, and patterns that wrap others.
"""

from bicameral.catalog.costs._amount_texts import (
    number_text as number_text,
    part_name as part_name,
    range_text as range_text,
)
from bicameral.catalog.costs._composition import Nesting as Nesting, nestings as nestings
from bicameral.catalog.costs._estimate import (
    Estimate as Estimate,
    PatternList as PatternList,
    estimate as estimate,
    estimate_tokens as estimate_tokens,
)
from bicameral.catalog.costs._sessions import (
    LOCAL_CACHING as LOCAL_CACHING,
    LOCAL_RATES as LOCAL_RATES,
    NO_AMOUNTS as NO_AMOUNTS,
    TIERS as TIERS,
    Amounts as Amounts,
    Caching as Caching,
    CostPart as CostPart,
    ModelTier as ModelTier,
    Rates as Rates,
    SessionLoad as SessionLoad,
    expected_amounts as expected_amounts,
    worst_amounts as worst_amounts,
)
