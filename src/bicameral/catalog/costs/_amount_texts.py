"""Amounts as texts for people: an expected and a worst number, and what a part of an estimate is called."""

from __future__ import annotations

import math

from bicameral.catalog.costs._sessions import CostPart


def number_text(value: float, digits: int = 1) -> str:
    """A number to read: whole where it is large or whole. One that has no end, or is none, is not known.

    Example:
        >>> number_text(1234.5), number_text(2.0), number_text(0.25)
        ('1,234', '2', '0.2')
    """
    if not math.isfinite(value):
        return "not known"
    if value == math.floor(value) or (value >= 100 and digits == 1):
        return f"{value:,.0f}"
    return f"{value:,.{digits}f}"


def range_text(usual: float | None, worst: float | None, digits: int = 1) -> str:
    """Expected and worst, as in `3 / 8`; empty if both are nothing."""
    if usual is None or worst is None:
        return "not known"
    if not usual and not worst:
        return ""
    return f"{number_text(usual, digits)} / {number_text(worst, digits)}"


def part_name(part: CostPart) -> str:
    """The agent, the place, the pattern and the role of a part, as far as it has them."""
    where = f"{part.agent}: " if part.agent not in ("", "agent") else ""
    return f"{where}{f'{part.place}: ' if part.place else ''}{part.pattern} {part.role}".strip()
