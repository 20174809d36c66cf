"""The facts of the catalogue: what every pattern is, when it helps, what it costs, and why it works.

In come the YAML files of `data`, each read when it is first needed; out go frozen values, and a `Catalog` that finds
them by id or by query. A mistake in a file is an error with its place; no file is read in part.
"""

from bicameral.catalog.facts._catalog import Catalog, PatternHit, catalog
from bicameral.catalog.facts._expressions import SIZES, Expression, Size, default_sizes, parse_expression
from bicameral.catalog.facts._records import (
    CATEGORIES,
    ENFORCEMENT_WORDS,
    IDS,
    AntiPattern,
    CacheRule,
    Category,
    CheckSpec,
    Conflict,
    FailureMode,
    Figure,
    Invariant,
    Knob,
    Law,
    Mechanism,
    Participant,
    PatternAlternative,
    PatternCost,
    PatternFacts,
    Requirement,
    SessionCost,
    SessionTier,
    Variant,
    plain_record,
)

__all__ = [
    "CATEGORIES",
    "ENFORCEMENT_WORDS",
    "IDS",
    "SIZES",
    "AntiPattern",
    "CacheRule",
    "Catalog",
    "Category",
    "CheckSpec",
    "Conflict",
    "Expression",
    "FailureMode",
    "Figure",
    "Invariant",
    "Knob",
    "Law",
    "Mechanism",
    "Participant",
    "PatternAlternative",
    "PatternCost",
    "PatternFacts",
    "PatternHit",
    "Requirement",
    "SessionCost",
    "SessionTier",
    "Size",
    "Variant",
    "catalog",
    "default_sizes",
    "parse_expression",
    "plain_record",
]
