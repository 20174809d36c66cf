"""How much a strategy may take: rounds, calls of models and of tools, tokens and time; and who counts it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal, get_args

from bicameral.errors import RunError
from bicameral.sessions import Ledger, Role, Spent

Own = Literal["rounds", "calls", "tool_calls", "tokens", "seconds"]
"""What is bounded here. A round is one reply of a model that may ask for tools, and the calls it asks for."""
Bound = Own | Literal["money"]
"""What a strategy can run out of; money is bounded by budgets alone."""
BOUNDS: tuple[Own, ...] = get_args(Own)


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much may be taken of each, both models together; nothing is begun beyond that."""

    rounds: int = 30
    calls: int = 100
    tool_calls: int = 100
    tokens: int = 500_000
    seconds: float = 900.0

    def __post_init__(self) -> None:
        for name in BOUNDS:
            if not getattr(self, name) > 0:
                raise RunError("strategy.bad-bound", f"{name} is {getattr(self, name)!r}", expected="more than 0")


@dataclass(frozen=True, slots=True)
class Taken:
    """How much has been taken."""

    rounds: int
    tool_calls: int
    models: Spent
    seconds: float

    @property
    def calls(self) -> int:
        return self.models.calls

    @property
    def tokens(self) -> int:
        return self.models.tokens

    def to_json(self) -> dict[str, Any]:
        counts = {name: getattr(self, name) for name in ("rounds", "calls", "tool_calls", "tokens")}
        return {**counts, "seconds": round(self.seconds, 3), **self.models.to_json()}


class Exhaustion(RunError):
    """A bound was reached: `spent` of `limit`."""

    def __init__(self, bound: Bound, spent: float, limit: float) -> None:
        super().__init__(
            "strategy.exhausted",
            f"there is no answer within {limit:g} {bound.replace('_', ' ')} (taken: {spent:g})",
            fix="Allow more, or ask for less.",
        )
        self.bound: Bound = bound
        self.spent = spent
        self.limit = limit
        self.by: Meter | None = None
        """Whose bound it was, where somebody counted."""


class Meter:
    """Counts what one conversation takes, and refuses whatever would go beyond its bounds before it begins.

    What is taken of a part is also taken of the whole that is `above` it.
    """

    def __init__(self, bounds: Bounds, ledger: Ledger, above: Meter | None = None) -> None:
        self.bounds = bounds
        self._ledger = ledger
        self._above = above
        self._started = time.monotonic()
        self._begun = 0
        self._rounds = 0
        self._tool_calls = 0

    @property
    def taken(self) -> Taken:
        return Taken(self._rounds, self._tool_calls, self._ledger.spent, time.monotonic() - self._started)

    def __call__(self, role: Role) -> None:
        """Before each call of a model."""
        self._hold("calls", self._begun)
        self._hold("tokens", self.taken.tokens)
        self._begun += 1

    def round(self) -> None:
        """Before each round."""
        if self._above is not None:
            self._above.round()
        self._hold("rounds", self._rounds)
        self._rounds += 1

    def tool(self) -> None:
        """Before each call of a tool."""
        if self._above is not None:
            self._above.tool()
        self._hold("tool_calls", self._tool_calls)
        self._tool_calls += 1

    def out_of_time(self) -> Exhaustion:
        return self._reached("seconds", self.taken.seconds)

    def is_out(self, error: Exhaustion) -> bool:
        """Whether it was a bound of this one, or of a whole around it, that was reached: not of a part of it."""
        return error.by is self or (self._above is not None and self._above.is_out(error))

    def _hold(self, bound: Own, taken: float) -> None:
        if taken >= getattr(self.bounds, bound):
            raise self._reached(bound, taken)

    def _reached(self, bound: Own, taken: float) -> Exhaustion:
        error = Exhaustion(bound, taken, getattr(self.bounds, bound))
        error.by = self
        return error
