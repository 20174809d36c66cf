"""Budgets: how many calls, tokens, money and seconds a run, a role in it or a single model may take."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bicameral.errors import ModelError
from bicameral.limits import (
    Asked,
    BudgetBound,
    BudgetScope,
    BudgetSpent,
    Charge,
    charge_to,
    current_accounts,
)
from bicameral.models import ModelReply, ModelRequest, Provider
from bicameral.routing._wrapper import ProviderWrapper, StreamStarter, close_stream

T = TypeVar("T")

BUDGET_BOUNDS: tuple[BudgetBound, ...] = ("calls", "tokens", "money", "seconds")


@dataclass(frozen=True, slots=True)
class Budget:
    """How much may be taken of each; None for as much as there is.

    No call is begun once a bound is reached. Calls are exact; the tokens of the last call, which nobody knows before it
    is made, may go beyond. Money is in the currency of the price table.
    """

    calls: int | None = None
    tokens: int | None = None
    money: float | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for bound in BUDGET_BOUNDS:
            limit: object = getattr(self, bound)
            if limit is not None and (type(limit) not in (int, float) or not 0 <= float(limit) < 1e18):  # pyright: ignore[reportArgumentType]
                raise ModelError("models.bad-setting", f"a budget of {limit!r} {bound} makes no sense")

    @property
    def is_bounded(self) -> bool:
        return any(getattr(self, bound) is not None for bound in BUDGET_BOUNDS)


UNLIMITED_BUDGET = Budget()


@dataclass(frozen=True, slots=True)
class Budgets:
    """What a run may take, and what each role in it may.

    The seconds of a run are those that pass; the seconds of a role are those that its calls took.
    """

    run: Budget = UNLIMITED_BUDGET
    roles: Mapping[str, Budget] = field(default_factory=dict[str, Budget])

    @property
    def is_bounded(self) -> bool:
        return self.run.is_bounded or any(budget.is_bounded for budget in self.roles.values())


@dataclass(slots=True)
class BudgetUsage:
    """How much was taken so far. `reading` are tokens of calls under way, which are as good as spent."""

    calls: int = 0
    tokens: int = 0
    money: float = 0.0
    seconds: float = 0.0
    reading: int = 0

    def of(self, bound: BudgetBound) -> float:
        return self.tokens + self.reading if bound == "tokens" else getattr(self, bound)


class BudgetMeter:
    """An account with budgets: it refuses the call that would begin when one of them is spent.

    Example:
        >>> with budget_scope(Budgets(run=Budget(money=0.50), roles={"echo": Budget(calls=3)})) as purse:
        ...     await agent.run(request)
        >>> purse.spent.money
    """

    def __init__(self, budgets: Budgets, scope: BudgetScope = "run", whom: str = "") -> None:
        self.budgets = budgets
        self.spent = BudgetUsage()
        self.roles: dict[str, BudgetUsage] = {}
        self._scope: BudgetScope = scope
        self._whom = whom
        self._started = time.monotonic()

    def begin(self, call: Asked) -> None:
        role = call.role or ""
        for budget, tally, scope, whom in self._budgets_of_role(role):
            self._check_budget(budget, tally, scope, whom, call)
        for tally in (self.spent, self._usage_of_role(role)):
            tally.calls += 1
            tally.reading += call.prompt_tokens

    def end(self, call: Asked, charge: Charge) -> None:
        if not call.is_real:
            return
        for tally in (self.spent, self._usage_of_role(call.role or "")):
            tally.reading -= call.prompt_tokens
            tally.tokens += charge.tokens
            tally.money += charge.money or 0.0
            tally.seconds += charge.seconds

    def remaining(self, bound: BudgetBound, role: str | None = None) -> float | None:
        """How much is left of something for a role; None where nothing bounds it."""
        found = [
            limit - self._used(tally, bound, scope)
            for budget, tally, scope, _ in self._budgets_of_role(role or "")
            if (limit := getattr(budget, bound)) is not None
        ]
        return max(0.0, min(found)) if found else None

    def _check_budget(self, budget: Budget, tally: BudgetUsage, scope: BudgetScope, whom: str, call: Asked) -> None:
        if budget.money is not None and not call.has_price:
            raise ModelError(
                "models.price-unknown",
                f"nobody knows what {call.model!r} costs, and money is bounded",
                fix="Give its price in a file of prices, or bound tokens instead.",
            )
        for bound in BUDGET_BOUNDS:
            limit: float | None = getattr(budget, bound)
            if limit is not None and (taken := self._used(tally, bound, scope)) >= limit:
                raise BudgetSpent(bound, taken, limit, scope, whom)

    def _used(self, tally: BudgetUsage, bound: BudgetBound, scope: BudgetScope) -> float:
        if bound == "seconds" and scope == "run":
            return time.monotonic() - self._started
        return tally.of(bound)

    def _budgets_of_role(self, role: str) -> list[tuple[Budget, BudgetUsage, BudgetScope, str]]:
        found: list[tuple[Budget, BudgetUsage, BudgetScope, str]] = [
            (self.budgets.run, self.spent, self._scope, self._whom)
        ]
        if role in self.budgets.roles:
            found.append((self.budgets.roles[role], self._usage_of_role(role), "role", role))
        return found

    def _usage_of_role(self, role: str) -> BudgetUsage:
        return self.roles.setdefault(role, BudgetUsage())


@contextmanager
def budget_scope(budgets: Budgets) -> Generator[BudgetMeter]:
    """Hold every model call made inside to these budgets, also those of tasks begun there.

    Inside of a block with the very same budgets it goes on with their purse: a run and the planning before it are one.
    """
    for account in current_accounts():
        if isinstance(account, BudgetMeter) and account.budgets is budgets:
            yield account
            return
    purse = BudgetMeter(budgets)
    with charge_to(purse):
        yield purse


_LEFT: tuple[tuple[str, BudgetBound], ...] = (
    ("tokens_left", "tokens"),
    ("money_left", "money"),
    ("seconds_left", "seconds"),
)


def remaining_for_role(role: str) -> dict[str, Any]:
    """What the budgets around leave to a role, as the circumstances of a call have it; nothing that is not bounded."""
    found: dict[str, Any] = {}
    names: tuple[tuple[str, BudgetBound], ...] = (
        ("tokens_left", "tokens"),
        ("money_left", "money"),
        ("seconds_left", "seconds"),
    )
    for account in current_accounts():
        if isinstance(account, BudgetMeter):
            for name, bound in names:
                if (left := account.remaining(bound, role)) is not None:
                    found[name] = min(left, found.get(name, left))
    return found


class BudgetedProvider(ProviderWrapper):
    """A model with a budget of its own, for as long as it is there. When it is spent, a fallback may go elsewhere.

    Example:
        >>> Fallback([BudgetedProvider(powerful, Budget(money=5.0)), fast])
    """

    def __init__(self, provider: Provider, budget: Budget, *, name: str | None = None) -> None:
        super().__init__([provider])
        self.meter = BudgetMeter(Budgets(run=budget), "model", name or self.name)

    async def generate(self, request: ModelRequest) -> ModelReply:
        with charge_to(self.meter):
            return await self._providers[0].generate(request)

    async def _stream_pieces(self, request: ModelRequest, start: StreamStarter[T]) -> AsyncGenerator[T, None]:
        pieces = start(self._providers[0], request)
        try:
            while True:
                # Around each piece: between two of them the caller's own accounts hold.
                with charge_to(self.meter):
                    piece = await anext(pieces, None)
                if piece is None:
                    return
                yield piece
        finally:
            await close_stream(pieces)
