"""What models cost, added up by role, phase, step, model, run or day from what the journal holds of each call."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

By = Literal["role", "phase", "step", "model", "run", "day"]
"""What costs can be told apart by."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Calls, tokens and money. `unpriced` calls are in no sum of money, since nobody knows what they cost.

    `kept` are calls that were answered from the cache, `failed` those that gave no reply, and `estimated` those whose
    tokens are a guess.
    """

    calls: int = 0
    prompt: int = 0
    cached: int = 0
    output: int = 0
    money: float = 0.0
    seconds: float = 0.0
    unpriced: int = 0
    kept: int = 0
    failed: int = 0
    estimated: int = 0

    @property
    def tokens(self) -> int:
        return self.prompt + self.output

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__} | {
            "tokens": self.tokens,
            "money": round(self.money, 9),
            "seconds": round(self.seconds, 6),
        }


@dataclass(frozen=True, slots=True)
class Spending:
    """One call of one model, with where it belongs."""

    run: str
    at: float
    step: str
    role: str
    phase: str
    model: str
    cost: Cost
    degraded: str | None = None

    def key(self, by: By) -> str:
        if by == "day":
            return datetime.datetime.fromtimestamp(self.at).date().isoformat()
        return str(getattr(self, by)) or "(none)"


@dataclass(frozen=True, slots=True)
class Costs:
    """What was spent, call by call.

    Example:
        >>> costs = Costs.of(spending_in(run, events))
        >>> costs.by("role")["delta"].tokens
    """

    spendings: tuple[Spending, ...] = ()
    total: Cost = field(default_factory=Cost)

    @classmethod
    def of(cls, spendings: Iterable[Spending]) -> Costs:
        found = tuple(spendings)
        return cls(found, sum((each.cost for each in found), Cost()))

    def by(self, by: By) -> dict[str, Cost]:
        """The sums, those that cost most first; they add up to the total."""
        sums: dict[str, Cost] = {}
        for each in self.spendings:
            key = each.key(by)
            sums[key] = sums.get(key, Cost()) + each.cost
        return dict(sorted(sums.items(), key=lambda pair: (-pair[1].money, -pair[1].tokens, pair[0])))

    @property
    def unpriced(self) -> tuple[str, ...]:
        """The models of which nobody knows what they cost."""
        return tuple(sorted({each.model for each in self.spendings if each.cost.unpriced}))

    @property
    def degraded(self) -> tuple[str, ...]:
        """The ways in which replies were less than what was wanted."""
        return tuple(dict.fromkeys(each.degraded for each in self.spendings if each.degraded is not None))


def spendings_in(run: str, at: float, kind: str, step: str, body: Mapping[str, Any]) -> Iterator[Spending]:
    """The calls that an event of a journal tells of: that of a model, or those that wrote a plan or came to nothing."""
    if kind == "model-called":
        yield from _of_call(run, at, step, body)
        return
    for name in ("planning_calls", "lost_calls"):
        calls: object = body.get(name)
        for call in cast("list[object]", calls) if isinstance(calls, list) else []:
            if isinstance(call, Mapping):
                yield from _of_call(run, at, step, cast("Mapping[str, Any]", call))


def _of_call(run: str, at: float, step: str, call: Mapping[str, Any]) -> Iterator[Spending]:
    charges: object = call.get("charges")
    said: object = call.get("degraded")
    for charge in cast("list[object]", charges) if isinstance(charges, list) else []:
        if isinstance(charge, Mapping):
            facts = cast("Mapping[str, Any]", charge)
            role = str(facts.get("role") or call.get("role") or "")
            phase, model = str(facts.get("phase") or ""), str(facts.get("model") or "")
            degraded = said if isinstance(said, str) and facts.get("ending") == "answered" else None
            yield Spending(run, at, step, role, phase, model, _cost(facts), degraded)


def _cost(charge: Mapping[str, Any]) -> Cost:
    money, ending = charge.get("money"), charge.get("ending")
    return Cost(
        calls=1,
        prompt=_whole(charge.get("prompt")),
        cached=_whole(charge.get("cached")),
        output=_whole(charge.get("output")),
        money=_number(money),
        seconds=_number(charge.get("seconds")),
        unpriced=int(money is None),
        kept=int(ending == "remembered"),
        failed=int(ending in ("failed", "cancelled")),
        estimated=int(charge.get("estimated") is True),
    )


def _whole(value: object) -> int:
    return value if type(value) is int and value >= 0 else 0


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and 0 <= value < 1e18 else 0.0
