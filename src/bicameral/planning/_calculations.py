"""Calculations: numbers of a plan that are computed from constants, with every constant that went into them.

A number that nobody gave may still follow from numbers that somebody did: `12.00 / 2`, `price * 19.5 / 100`. So a
computed number keeps its operands, and whoever judges it asks for the origin of each. Only the four basic operations
count: what they make is explained by their operands. Every use is kept, too, since `10 * 10 * 10` is no number of a
request that says 10 once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

Role = Literal["+", "*", "/"]
"""How a constant takes part: as a term, a factor or a divisor."""


@dataclass(frozen=True, slots=True, order=True)
class Operand:
    """A constant in a calculation."""

    value: float
    role: Role


@dataclass(frozen=True, slots=True)
class Calculation:
    """A computed number.

    Args:
        value: The result, if it is made of constants alone.
        operands: The constants that went into it, each as often as it was used.
    """

    value: float | None
    operands: tuple[Operand, ...]

    def __str__(self) -> str:
        if self.value is not None:
            return str(self.value)
        return ", ".join(f"{each.value:g}" for each in self.operands)


def is_number(value: Any) -> bool:
    """Whether a constant is a number; truth values are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def roles_of(operator: str) -> tuple[Role, Role] | None:
    """The roles of both sides of an operator; None where it is not one of the basic operations."""
    match operator:
        case "+" | "-":
            return "+", "+"
        case "*":
            return "*", "*"
        case "/" | "//":
            return "+", "/"
        case _:
            return None


def operands_of(constants: Iterable[Any], role: Role) -> tuple[Operand, ...] | None:
    """The operands that constants are in a calculation; None if one of them is no number."""
    found: list[Operand] = []
    for value in constants:
        if isinstance(value, Calculation):
            found += value.operands
        elif is_number(value):
            found.append(Operand(float(value), role))
        else:
            return None
    return tuple(sorted(found))
