"""Accounting of model calls: the charge of each call, the accounts that get it, and sums over a journal.

A reply that came after a retry, from the second model of a cascade or from a hedged request costs more than its own
tokens. Every model that is really asked reports its own charge, so no cost is missed. An account is asked before each
call and can refuse it: `BudgetSpent` says which budget is used up.
"""

from __future__ import annotations

import datetime
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, cast

from bicameral.errors import ModelError
from bicameral.models import ModelRequest, Usage

BudgetBound = Literal["calls", "tokens", "money", "seconds"]
"""What a budget limits."""
BudgetScope = Literal["run", "role", "model"]
"""What a budget applies to: a whole run, one role in it, or one model."""


class BudgetSpent(ModelError):
    """A model was not asked: the budget of `whom` (a role or model, by `scope`) has used up `spent` of `limit`."""

    def __init__(self, bound: BudgetBound, spent: float, limit: float, scope: BudgetScope, whom: str = "") -> None:
        owner = f"{scope} {whom!r}" if whom else scope
        super().__init__(
            "models.budget-spent",
            f"the budget of the {owner} has no {bound} left: {spent:g} of {limit:g} are spent",
            fix="Allow more of it, or ask for less.",
        )
        self.bound: BudgetBound = bound
        self.spent = spent
        self.limit = limit
        self.scope: BudgetScope = scope
        self.whom = whom

    def to_json(self) -> dict[str, Any]:
        facts = {"bound": self.bound, "spent": self.spent, "limit": self.limit, "scope": self.scope, "whom": self.whom}
        return super().to_json() | facts


CallEnding = Literal["answered", "failed", "cancelled", "remembered"]
"""How a call ended: with a reply, with an error, cancelled, or with a reply from the cache."""


@dataclass(frozen=True, slots=True)
class Charge:
    """One call of one model: its tokens, their cost, and how it ended. `money` is None where no price is known.

    `estimated` says that the tokens are a guess from the length of the texts. No provider reports how much a cancelled
    call had written, so only its prompt is counted.
    """

    model: str
    usage: Usage
    seconds: float
    money: float | None = 0.0
    ending: CallEnding = "answered"
    role: str | None = None
    phase: str | None = None
    estimated: bool = False

    @property
    def tokens(self) -> int:
        return self.usage.prompt + self.usage.output

    def to_json(self) -> dict[str, Any]:
        """For the journal; facts that are unknown or have their default are left out."""
        pairs = (("role", self.role), ("phase", self.phase), ("estimated", self.estimated or None))
        return {
            "model": self.model,
            "prompt": self.usage.prompt,
            "cached": self.usage.cached,
            "output": self.usage.output,
            "money": self.money,
            "seconds": round(self.seconds, 6),
            "ending": self.ending,
            **{name: value for name, value in pairs if value is not None},
        }


class Account(Protocol):
    """Counts model calls: it is asked before each one, and gets its charge afterwards."""

    def begin(self, call: Asked) -> None:
        """Called before a model is asked; raises if it must not be."""
        ...

    def end(self, call: Asked, charge: Charge) -> None:
        """Called when the call has ended in any way, once for each `begin` that did not raise."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A call that is about to be made: the model, the role, and an estimate of its prompt tokens."""

    model: str
    request: ModelRequest
    role: str | None
    prompt_tokens: int
    has_price: bool
    is_real: bool = True
    """False for a reply from the cache, for which no model is asked."""


# A context variable: tasks inherit it, and concurrent runs in one process do not share accounts.
_ACCOUNTS: ContextVar[tuple[Account, ...]] = ContextVar("bicameral-accounts", default=())


@contextmanager
def charge_to(account: Account) -> Generator[None]:
    """Report every model call made inside to this account too, also those of tasks started there."""
    token = _ACCOUNTS.set((*_ACCOUNTS.get(), account))
    try:
        yield
    finally:
        _ACCOUNTS.reset(token)


def current_accounts() -> tuple[Account, ...]:
    """The accounts in force here, the outermost first."""
    return _ACCOUNTS.get()


class ChargeList(list[Charge]):
    """An account that only collects charges."""

    def begin(self, call: Asked) -> None: ...

    def end(self, call: Asked, charge: Charge) -> None:
        self.append(charge)


@contextmanager
def collect_charges() -> Generator[ChargeList]:
    """The charges of every model call made inside.

    Example:
        >>> with collect_charges() as charges:
        ...     reply = await cascade.generate(request)
        >>> sum(charge.tokens for charge in charges)
    """
    charges = ChargeList()
    with charge_to(charges):
        yield charges


CostGrouping = Literal["role", "phase", "step", "model", "run", "day"]
"""What costs can be grouped by."""


@dataclass(frozen=True, slots=True)
class CostTotals:
    """Calls, tokens and money. `unpriced` calls have no known price and are missing from `money`.

    `kept` calls were answered from the cache, `failed` ones gave no reply, and the tokens of `estimated` ones are a
    guess.
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

    def __add__(self, other: CostTotals) -> CostTotals:
        return CostTotals(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__} | {
            "tokens": self.tokens,
            "money": round(self.money, 9),
            "seconds": round(self.seconds, 6),
        }


@dataclass(frozen=True, slots=True)
class CostEntry:
    """One call of one model, with its run, step, role and phase."""

    run: str
    at: float
    step: str
    role: str
    phase: str
    model: str
    cost: CostTotals
    degraded: str | None = None

    def key(self, by: CostGrouping) -> str:
        """The group that this call belongs to."""
        if by == "day":
            return datetime.datetime.fromtimestamp(self.at).date().isoformat()
        return str(getattr(self, by)) or "(none)"


@dataclass(frozen=True, slots=True)
class CostReport:
    """The costs of several calls, with their sum.

    Example:
        >>> report = CostReport.of(cost_entries(run, at, kind, step, body))
        >>> report.by("role")["delta"].tokens
    """

    entries: tuple[CostEntry, ...] = ()
    total: CostTotals = field(default_factory=CostTotals)

    @classmethod
    def of(cls, entries: Iterable[CostEntry]) -> CostReport:
        listed = tuple(entries)
        return cls(listed, sum((entry.cost for entry in listed), CostTotals()))

    def by(self, by: CostGrouping) -> dict[str, CostTotals]:
        """The sum of each group, the most expensive first; together they are the total."""
        sums: dict[str, CostTotals] = {}
        for entry in self.entries:
            key = entry.key(by)
            sums[key] = sums.get(key, CostTotals()) + entry.cost
        return dict(sorted(sums.items(), key=lambda pair: (-pair[1].money, -pair[1].tokens, pair[0])))

    @property
    def unpriced(self) -> tuple[str, ...]:
        """The models without a known price."""
        return tuple(sorted({entry.model for entry in self.entries if entry.cost.unpriced}))

    @property
    def degraded(self) -> tuple[str, ...]:
        """The ways in which replies were less than requested, each once."""
        return tuple(dict.fromkeys(entry.degraded for entry in self.entries if entry.degraded is not None))


def cost_entries(run: str, at: float, kind: str, step: str, body: Mapping[str, Any]) -> Iterator[CostEntry]:
    """The model calls that a journal event reports: one call, or those for a plan and those that failed."""
    if kind == "model-called":
        yield from _entries_of_call(run, at, step, body)
        return
    for name in ("planning_calls", "lost_calls"):
        calls: object = body.get(name)
        for call in cast("list[object]", calls) if isinstance(calls, list) else []:
            if isinstance(call, Mapping):
                yield from _entries_of_call(run, at, step, cast("Mapping[str, Any]", call))


def _entries_of_call(run: str, at: float, step: str, call: Mapping[str, Any]) -> Iterator[CostEntry]:
    """The charges of one recorded call; malformed ones are skipped, since a journal file may have been edited."""
    charges: object = call.get("charges")
    call_degraded: object = call.get("degraded")
    for charge in cast("list[object]", charges) if isinstance(charges, list) else []:
        if isinstance(charge, Mapping):
            facts = cast("Mapping[str, Any]", charge)
            role = str(facts.get("role") or call.get("role") or "")
            phase, model = str(facts.get("phase") or ""), str(facts.get("model") or "")
            degraded = call_degraded if isinstance(call_degraded, str) and facts.get("ending") == "answered" else None
            yield CostEntry(run, at, step, role, phase, model, _totals_of_charge(facts), degraded)


def _totals_of_charge(charge: Mapping[str, Any]) -> CostTotals:
    money, ending = charge.get("money"), charge.get("ending")
    return CostTotals(
        calls=1,
        prompt=_count_or_zero(charge.get("prompt")),
        cached=_count_or_zero(charge.get("cached")),
        output=_count_or_zero(charge.get("output")),
        money=_amount_or_zero(money),
        seconds=_amount_or_zero(charge.get("seconds")),
        unpriced=int(money is None),
        kept=int(ending == "remembered"),
        failed=int(ending in ("failed", "cancelled")),
        estimated=int(charge.get("estimated") is True),
    )


def _count_or_zero(value: object) -> int:
    return value if type(value) is int and value >= 0 else 0


def _amount_or_zero(value: object) -> float:
    # The upper bound also refuses `inf`, and the comparison `nan`, which would spoil every sum.
    return float(value) if isinstance(value, int | float) and 0 <= value < 1e18 else 0.0
