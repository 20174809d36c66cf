"""What an agent may spend: its budgets and prices are in force around everything it does."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from bicameral.boundary import MAX_OUTPUT, MAX_SOURCE
from bicameral.plans import Report
from bicameral.routing import Budgets, Prices, Purse, priced, spending

P = ParamSpec("P")
R = TypeVar("R")


class Spender(Protocol):
    """Whoever has a purse."""

    def spending(self) -> AbstractContextManager[Purse]: ...


S = TypeVar("S", bound=Spender)


@contextmanager
def purse_of(budgets: Budgets, prices: Prices) -> Generator[Purse]:
    """The purse of what is done inside, counted by these prices; one that is open already goes on."""
    with priced(prices), spending(budgets) as purse:
        yield purse


def held(
    method: Callable[Concatenate[S, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """Hold what a method does to the budgets. A method that calls another shares its purse with it."""

    @wraps(method)
    async def within(self: S, *args: P.args, **options: P.kwargs) -> R:
        with self.spending():
            return await method(self, *args, **options)

    return within


ASKS = 3
"""A blank is asked for once more where one field is wrong, and once more where nothing is said to be there."""
READS = (MAX_SOURCE + 8_000) // 2
"""The most tokens that a request to fill a blank has: two characters each, with its instruction and form."""


@dataclass(frozen=True, slots=True)
class Worst:
    """The most that the models can take in a run of a plan. `money` is None if the price of one is not known."""

    calls: int
    tokens: int
    money: float | None
    models: tuple[str, ...]
    unpriced: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "calls": self.calls,
            "tokens": self.tokens,
            "money": self.money,
            "models": list(self.models),
            "unpriced": list(self.unpriced),
        }


def worst_case(report: Report, models: Sequence[str], prices: Prices) -> Worst:
    """What the check's bound on model calls comes to: every call at its longest, by the dearest of the models."""
    calls = report.cost.model_calls.most * ASKS
    found = {model: prices.of(model) for model in models}
    unpriced = tuple(model for model, price in found.items() if price is None)
    dearest = max((price.worst(READS, MAX_OUTPUT) for price in found.values() if price is not None), default=0.0)
    money = None if unpriced and calls else calls * dearest
    return Worst(calls, calls * (READS + MAX_OUTPUT), money, tuple(models), unpriced)
