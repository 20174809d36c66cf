"""Limits: how much of each thing may be taken, and the errors that say that one of them is used up.

There is one class `Limits` for runs, strategies and patterns, reasonings, and the budgets of models. What differs
between these is their `Scope`: which bounds there are, how a number is checked, and the codes and words of the errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypedDict, Unpack, get_args

from bicameral.errors import ModelError, RunError
from bicameral.limits._prices import ChamberPrices

Bound = Literal["rounds", "calls", "tool_calls", "tokens", "money", "seconds", "work"]
"""What can be limited."""
BudgetOwner = Literal["run", "role", "model"]
"""What a budget belongs to: a whole run, one role in it, or one model."""

_BOUNDS: tuple[Bound, ...] = get_args(Bound)
_MEASURED = ("money", "seconds")
"""Bounds that need not be whole numbers."""
_MANY = 10**17


@dataclass(frozen=True, slots=True)
class Scope:
    """What limits apply to, with everything that differs from one kind of limits to another.

    `counts` says which calls are counted: requests to models, so that a retry counts and a reply from the cache does
    not (calls of tools are added to them), or replies to sessions, however many requests each of them took.
    """

    bounds: tuple[Bound, ...]
    """In the order in which they are checked, and written to JSON."""
    bad_code: str
    bad_message: str
    reached_code: str
    reached_message: str
    fix: str
    counts: Literal["requests", "replies"]
    optional: tuple[Bound, ...] = ()
    """Bounds that may be left out."""


BUDGET = Scope(
    ("calls", "tokens", "money", "seconds"),
    "models.bad-setting",
    "a budget of {limit!r} {bound} makes no sense",
    "models.budget-spent",
    "the budget of the {owner} has no {bound} left: {spent:g} of {limit:g} are spent",
    "Allow more of it, or ask for less.",
    "requests",
)
RUN = Scope(
    ("rounds", "calls", "tokens", "money", "seconds", "work"),
    "run.bad-cap",
    "a cap of {limit!r} {bound} makes no sense",
    "run.cap",
    "the run has no {bound} left: {spent:g} of {limit:g} are taken",
    "Ask for less, or allow more: `{bound}` in [limits] of bicameral.toml.",
    "requests",
)
REASONING = Scope(
    ("rounds", "calls", "tokens", "money", "seconds"),
    "reason.bad-bound",
    "{bound} is {limit!r}",
    "reason.exhausted",
    "the reasoning has no {bound} left",
    "",
    "replies",
)
STRATEGY = Scope(
    ("rounds", "calls", "tool_calls", "tokens", "seconds"),
    "strategy.bad-bound",
    "{bound} is {limit!r}",
    "strategy.exhausted",
    "there is no answer within {limit:g} {words} (taken: {spent:g})",
    "Allow more, or ask for less.",
    "replies",
    ("money",),
)


class LimitNumbers(TypedDict, total=False):
    """The limits that `run_limits`, `reasoning_limits` and `strategy_limits` take."""

    rounds: int
    calls: int
    tool_calls: int
    tokens: int
    money: float
    seconds: float
    work: int
    prices: ChamberPrices


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much may be taken of each; nothing is begun once a limit is reached.

    Calls are exact; the tokens and the money of the last call, which nobody knows before it is made, may go beyond. A
    budget may leave limits out, which is None, and may be 0; in the other scopes each bound has a limit above 0, except
    for the money of a strategy or a pattern, which may be left out.

    Args:
        rounds: Plans for one request, or replies of a model that may ask for tools.
        calls: Calls of models; for a run those of tools too.
        tool_calls: Calls of tools.
        tokens: Tokens read and written, both models together.
        money: What is known of the models' cost, in the currency of the price table.
        seconds: For a run those in which it works, not those in which it waits for a person; for a role or a model
            those that its calls took.
        work: What expressions compute: an item gone over, a value compared or made, or 64 characters of text are one
            step each, about 100 ns.
        prices: What the tokens of each chamber cost, where the price table is not to say it.
        scope: What the limits apply to.

    Example:
        >>> Limits(calls=40, money=0.50).is_bounded
        True
    """

    rounds: int | None = None
    calls: int | None = None
    tool_calls: int | None = None
    tokens: int | None = None
    money: float | None = None
    seconds: float | None = None
    work: int | None = None
    prices: ChamberPrices | None = None
    scope: Scope = BUDGET

    def __post_init__(self) -> None:
        scope, budget = self.scope, self.scope is BUDGET
        for bound in _BOUNDS:
            limit: object = getattr(self, bound)
            known = bound in scope.bounds or bound in scope.optional
            if limit is None and (budget or bound not in scope.bounds):
                continue
            # By exact type, since a bool is an int; the comparison refuses infinite and `nan`.
            number = type(limit) is int or (type(limit) is float and (budget or bound in _MEASURED))
            if not known or not number or not self._is_sensible(float(limit)):  # pyright: ignore[reportArgumentType]
                message = scope.bad_message.format(limit=limit, bound=bound)
                raise (
                    ModelError(scope.bad_code, message)
                    if budget
                    else RunError(scope.bad_code, message, expected="more than 0")
                )

    def _is_sensible(self, limit: float) -> bool:
        return 0 < limit < 1e18 or (limit == 0 and self.scope is BUDGET)

    @property
    def is_bounded(self) -> bool:
        return any(getattr(self, bound) is not None for bound in _BOUNDS)

    def to_json(self) -> dict[str, Any]:
        """For journals and submissions: the bounds of the scope, and those that may be left out and are not."""
        given = [bound for bound in self.scope.optional if getattr(self, bound) is not None]
        return {bound: getattr(self, bound) for bound in (*self.scope.bounds, *given)}

    @classmethod
    def from_json(cls, facts: Mapping[str, Any], scope: Scope) -> Limits:
        """The limits of a record; a `KeyError` if one is missing."""
        limits: dict[str, Any] = {bound: facts[bound] for bound in scope.bounds if bound != "work"}
        limits |= {bound: facts[bound] for bound in scope.optional if bound in facts}
        if "work" in scope.bounds:
            # A run that was recorded before there was a limit on its work had none.
            limits["work"] = facts.get("work") or _MANY
        return cls(**limits, scope=scope)


NO_LIMITS = Limits()
RUN_LIMITS = Limits(rounds=20, calls=20_000, tokens=5_000_000, money=10.0, seconds=3_600.0, work=100_000_000, scope=RUN)
"""What a run may take, unless it is configured otherwise; how it ends then is `run.cap`."""
REASONING_LIMITS = Limits(rounds=6, calls=500, tokens=1_000_000, money=1.0, seconds=1_800.0, scope=REASONING)
STRATEGY_LIMITS = Limits(rounds=30, calls=100, tool_calls=100, tokens=500_000, seconds=900.0, scope=STRATEGY)


def run_limits(**limits: Unpack[LimitNumbers]) -> Limits:
    """The default limits of a run, with these instead.

    Example:
        >>> await run_plan(plan, registry, caps=run_limits(calls=10))
    """
    return replace(RUN_LIMITS, **limits)


def reasoning_limits(**limits: Unpack[LimitNumbers]) -> Limits:
    """The default limits of a reasoning, with these instead."""
    return replace(REASONING_LIMITS, **limits)


def strategy_limits(**limits: Unpack[LimitNumbers]) -> Limits:
    """The default limits of a strategy or a pattern, with these instead."""
    return replace(STRATEGY_LIMITS, **limits)


@dataclass(frozen=True, slots=True)
class Budgets:
    """What a run may take, and what each role in it may.

    The seconds of a run are those that pass; the seconds of a role are those that its calls took.
    """

    run: Limits = NO_LIMITS
    roles: Mapping[str, Limits] = field(default_factory=dict[str, Limits])

    @property
    def is_bounded(self) -> bool:
        return self.run.is_bounded or any(budget.is_bounded for budget in self.roles.values())


class LimitReached(RunError):
    """Something was not begun, or was ended, because a limit was reached: `spent` of `limit`.

    Args:
        counter: The meter whose limit it was, where one counted.
    """

    def __init__(self, scope: Scope, bound: Bound, spent: float, limit: float, counter: object = None) -> None:
        words = bound.replace("_", " ")
        message = scope.reached_message.format(bound=bound, words=words, spent=spent, limit=limit)
        super().__init__(scope.reached_code, message, fix=scope.fix.format(bound=bound) or None)
        self.scope = scope
        self.bound: Bound = bound
        self.spent = spent
        self.limit = limit
        self.counter = counter

    def to_json(self) -> dict[str, Any]:
        if self.scope is not RUN:
            return super().to_json()
        return super().to_json() | {"cap": self.bound, "taken": round(self.spent, 9), "limit": self.limit}


class BudgetSpent(ModelError):
    """A model was not asked: the budget of `whom` (a role or model, by `scope`) has used up `spent` of `limit`."""

    def __init__(self, bound: Bound, spent: float, limit: float, scope: BudgetOwner, whom: str = "") -> None:
        owner = f"{scope} {whom!r}" if whom else scope
        message = BUDGET.reached_message.format(owner=owner, bound=bound, spent=spent, limit=limit)
        super().__init__(BUDGET.reached_code, message, fix=BUDGET.fix)
        self.bound: Bound = bound
        self.spent = spent
        self.limit = limit
        self.scope: BudgetOwner = scope
        self.whom = whom

    def to_json(self) -> dict[str, Any]:
        facts = {"bound": self.bound, "spent": self.spent, "limit": self.limit, "scope": self.scope, "whom": self.whom}
        return super().to_json() | facts
