"""How much a reasoning may take: rounds, model calls, tokens, money and time; and how much it has taken."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal

from bicameral.errors import RunError
from bicameral.routing import FREE, Price
from bicameral.sessions import Ledger, Role, Spent

Bound = Literal["rounds", "calls", "tokens", "money", "seconds"]
"""What a reasoning can run out of."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much a reasoning may take of each, both models together; no call is begun beyond that.

    `privileged` and `quarantined` say what the tokens of the two models cost; where they do not, the price table does.
    """

    rounds: int = 6
    calls: int = 500
    tokens: int = 1_000_000
    money: float = 1.0
    seconds: float = 1800.0
    privileged: Price = FREE
    quarantined: Price = FREE

    def __post_init__(self) -> None:
        for name in ("rounds", "calls", "tokens", "money", "seconds"):
            if not getattr(self, name) > 0:
                raise RunError("reason.bad-bound", f"{name} is {getattr(self, name)!r}", expected="more than 0")


@dataclass(frozen=True, slots=True)
class Taken:
    """How much a reasoning has taken."""

    rounds: int
    models: Spent
    money: float
    seconds: float

    @property
    def calls(self) -> int:
        return self.models.calls

    @property
    def tokens(self) -> int:
        return self.models.tokens

    def to_json(self) -> dict[str, Any]:
        return {
            "rounds": self.rounds,
            "calls": self.calls,
            "tokens": self.tokens,
            "money": round(self.money, 9),
            "seconds": round(self.seconds, 3),
            **self.models.to_json(),
        }


class Meter:
    """Counts what one reasoning takes, and refuses the model call that would go beyond its bounds.

    A call that is refused was not made: only the tokens of a call that was begun in time may go beyond.
    """

    def __init__(self, bounds: Bounds, ledger: Ledger) -> None:
        self._bounds = bounds
        self._ledger = ledger
        self._started = time.monotonic()
        self._begun = 0
        self.rounds = 0

    @property
    def taken(self) -> Taken:
        money = 0.0
        for role, used in self._ledger.usage.items():
            price = self._bounds.quarantined if role == "quarantined" else self._bounds.privileged
            money += self._ledger.money.get(role, 0.0) if price == FREE else price.of(used)
        return Taken(self.rounds, self._ledger.spent, money, time.monotonic() - self._started)

    def __call__(self, role: Role) -> None:
        """Before each model call."""
        bound = self._reached()
        if bound is not None:
            raise RunError("reason.exhausted", f"the reasoning has no {bound} left")
        self._begun += 1

    def _reached(self) -> Bound | None:
        taken, bounds = self.taken, self._bounds
        # Calls that are under way count: several may be made side by side.
        if self._begun >= bounds.calls:
            return "calls"
        if taken.tokens >= bounds.tokens:
            return "tokens"
        return "money" if taken.money >= bounds.money else None

    def exhausted(self) -> Bound:
        """What has run out; rounds, if nothing else has."""
        return self._reached() or "rounds"

    def spent(self, bound: Bound) -> tuple[float, float]:
        """How much of something was taken, and how much there was of it."""
        return float(getattr(self.taken, bound)), float(getattr(self._bounds, bound))
