"""Which patterns there are. The numbers are those of the literature they come from, so a few are not used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from ._facts import Category


def _numbered(letter: str, numbers: Iterable[int]) -> tuple[str, ...]:
    return tuple(f"{letter}{number}" for number in numbers)


CATEGORIES: Mapping[Category, tuple[str, ...]] = MappingProxyType(
    {
        "signal": _numbered("S", (1, 2, 3, 4, 5, 6, 8, 9)),
        "knowledge": _numbered("K", range(1, 14)),
        "reasoning": _numbered("R", (*range(1, 15), *range(16, 21))),
        "orchestration": _numbered("O", range(1, 19)),
        "reliability": _numbered("V", range(1, 21)),
        "integration": _numbered("I", range(1, 7)),
        "humanizer": _numbered("H", range(1, 11)),
    }
)
"""The ids of every category, in order."""

IDS: Mapping[str, Category] = MappingProxyType({id: category for category, ids in CATEGORIES.items() for id in ids})
"""The category of every pattern."""

MOVED: Mapping[str, str] = MappingProxyType({"S7": "R17", "S10": "K6", "R15": "H6"})
"""Numbers that are not used any more, and where what they stood for is told now."""
