"""How much of everything: calls, tokens, money, seconds, memory; added up, repeated, laid side by side."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Amounts:
    """What something takes. Expected amounts are averages, so they need not be whole numbers.

    `prompt` counts every token that is read, `cached` those of them that were read from a cache, `stored` those that
    were written into one. `charged` is the prompt as it is billed: so many tokens at the full price would cost as much.
    `longest` is the longest single call, prompt and reply; `memory` the bytes of the KV cache at the fullest moment.
    Money and seconds are None where a price or a speed is not known, never 0.
    """

    calls: float = 0.0
    prompt: float = 0.0
    cached: float = 0.0
    stored: float = 0.0
    charged: float = 0.0
    output: float = 0.0
    tools: float = 0.0
    money: float | None = 0.0
    seconds: float | None = 0.0
    longest: float = 0.0
    memory: float = 0.0

    def plus(self, other: Amounts) -> Amounts:
        """This and then the other: the longest call and the memory are those of the larger."""
        return _combined(self, other, beside=False)

    def beside(self, other: Amounts) -> Amounts:
        """This and the other at the same time: the time is that of the slower, the memory that of both."""
        return _combined(self, other, beside=True)

    def times(self, often: float, at_once: float = 1.0) -> Amounts:
        """The same so often, so many of them side by side."""
        if often <= 0:
            return NOTHING
        turns, together = rounds(often, at_once), max(1.0, min(often, at_once))
        changed = {name: _scaled(getattr(self, name), often) for name in _ADDED}
        return Amounts(
            **changed, seconds=_scaled(self.seconds, turns), longest=self.longest, memory=self.memory * together
        )

    def to_json(self) -> dict[str, Any]:
        """The same for a program, without the noise of floating point."""
        return {
            each.name: None if (value := getattr(self, each.name)) is None else plain(value) for each in fields(self)
        }


_ADDED = ("calls", "prompt", "cached", "stored", "charged", "output", "tools", "money")

NOTHING = Amounts()


def rounds(often: float, at_once: float) -> float:
    """How many turns it takes to do something so often, so many at once; between whole numbers a straight line."""
    at_once = max(1.0, math.floor(at_once))
    low = math.floor(often)
    below, above = math.ceil(low / at_once), math.ceil((low + 1) / at_once)
    return below + (often - low) * (above - below)


def between(low: Amounts, high: Amounts, part: float) -> Amounts:
    """The mean of two cases, the second of which happens in this part of all: 0 is the first alone."""
    if part <= 0:
        return low
    names = (each.name for each in fields(low))
    values: dict[str, Any] = {name: _between(getattr(low, name), getattr(high, name), part) for name in names}
    return Amounts(**values)


def plain(value: float) -> float | int:
    """A number to print: whole where it is whole, and not more than nine digits after the point."""
    rounded = round(value, 9)
    return int(rounded) if rounded == int(rounded) else rounded


def _between(low: float | None, high: float | None, part: float) -> float | None:
    return None if low is None or high is None else low + (high - low) * part


def _combined(one: Amounts, other: Amounts, *, beside: bool) -> Amounts:
    added = {name: _sum(getattr(one, name), getattr(other, name)) for name in _ADDED}
    if beside:
        slower = None if one.seconds is None or other.seconds is None else max(one.seconds, other.seconds)
        memory = one.memory + other.memory
    else:
        slower, memory = _sum(one.seconds, other.seconds), max(one.memory, other.memory)
    return Amounts(**added, seconds=slower, longest=max(one.longest, other.longest), memory=memory)


def _sum(one: float | None, other: float | None) -> Any:
    return None if one is None or other is None else one + other


def _scaled(value: float | None, often: float) -> Any:
    return None if value is None else value * often
