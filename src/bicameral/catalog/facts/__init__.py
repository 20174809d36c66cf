"""The facts of the catalogue: what every pattern is, when it helps, what it costs, and why it works.

In come the YAML files of `data`, each read when something in it is first asked for; out go frozen values, and a
`Catalog` that finds them by id or by words. A file that is wrong is told with its place, and never half read.
"""

from ._expressions import Expression, parse_expression
from ._facts import (
    Alternative,
    Category,
    Cost,
    Failure,
    Figure,
    Invariant,
    Knob,
    Mechanism,
    Participant,
    Pattern,
    SessionCost,
    Tier,
    Variant,
)
from ._ids import CATEGORIES, IDS
from ._loading import Catalog, catalog
from ._rules import AntiPattern, CacheRule, Check, Conflict, Law, Requirement
from ._search import Hit
from ._sizes import SIZES, Size, default_sizes
from ._writing import plain

__all__ = [
    "CATEGORIES",
    "IDS",
    "SIZES",
    "Alternative",
    "AntiPattern",
    "CacheRule",
    "Catalog",
    "Category",
    "Check",
    "Conflict",
    "Cost",
    "Expression",
    "Failure",
    "Figure",
    "Hit",
    "Invariant",
    "Knob",
    "Law",
    "Mechanism",
    "Participant",
    "Pattern",
    "Requirement",
    "SessionCost",
    "Size",
    "Tier",
    "Variant",
    "catalog",
    "default_sizes",
    "parse_expression",
    "plain",
]
