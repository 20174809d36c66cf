"""The catalogue as code: 94 patterns for agents as facts, and what checks, advises and reckons with them.

In comes an id, a few words, or a description of an architecture; out go facts, findings, advice and costs. It knows
nothing of models, tools or runs, and nothing is read before it is asked for.

    from bicameral.catalog import catalog

    catalog().pattern("O6").what
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bicameral.errors import CatalogError

if TYPE_CHECKING:
    from .facts import (
        CATEGORIES,
        IDS,
        SIZES,
        AntiPattern,
        CacheRule,
        Catalog,
        Category,
        CheckSpec,
        Conflict,
        Expression,
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
        PatternHit,
        Requirement,
        SessionCost,
        SessionTier,
        Size,
        Variant,
        catalog,
        default_sizes,
        parse_expression,
        plain_record,
    )

__all__ = [
    "CATEGORIES",
    "IDS",
    "SIZES",
    "AntiPattern",
    "CacheRule",
    "Catalog",
    "CatalogError",
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


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f"{__name__}.facts"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
