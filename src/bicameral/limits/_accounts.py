"""Accounts and quotas: who is asked before a model or tool is called, and who gets the charge of a model call.

An account is asked before each call and can refuse it. Where a tool or model is shared (a server that takes ten calls a
minute, a model that answers two at a time), the workers that share it install a quota gate, at which each call waits
for a free slot. Without one, as in a single run, every call proceeds at once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal

from bicameral.limits._prices import FREE_PRICE, ChamberPrices
from bicameral.limits._usage import ChamberUsage, Charge, ModelCall, PendingCall, Role
from bicameral.models import Usage


class Account:
    """Counts model calls. Each method does nothing here; a subclass overrides those for what it counts.

    A session asks for a reply; any number of models may be asked for it, by retries, fallbacks and hedged requests.
    """

    __slots__ = ()

    def start_reply(self, role: Role) -> None:
        """Called before a session asks for a reply; raises if it must not."""

    def begin(self, call: PendingCall) -> None:
        """Called before a model is asked; raises if it must not be."""

    def end(self, call: PendingCall, charge: Charge) -> None:
        """Called when the call has ended in any way, once for each `begin` that did not raise."""

    def add_reply(self, call: ModelCall) -> None:
        """Called when a session has its reply."""

    def add_lost(self, role: Role, charges: Sequence[Charge]) -> None:
        """Called when a session has no reply, with the charges of the calls that were made for it."""


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


class ChargeList(list[Charge], Account):
    """An account that only collects charges."""

    def end(self, call: PendingCall, charge: Charge) -> None:
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


_MAX_DEGRADED = 50


@dataclass(slots=True)
class Ledger(Account):
    """Replies to sessions, counted by role; `money` is the part of the cost that is known.

    `degraded` lists the ways in which replies were less than requested, each once. For the journal, `records` has the
    successful calls one by one and `lost` the failed ones that cost something; both stay empty if `records` is None.
    """

    calls: dict[Role, int] = field(default_factory=dict[Role, int])
    usage: dict[Role, Usage] = field(default_factory=dict[Role, Usage])
    money: dict[Role, float] = field(default_factory=dict[Role, float])
    degraded: list[str] = field(default_factory=list[str])
    records: list[dict[str, Any]] | None = None
    lost: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def add_reply(self, call: ModelCall) -> None:
        self.calls[call.role] = self.calls.get(call.role, 0) + 1
        self._add(call.role, call.usage, call.charges)
        degraded = call.reply.degraded
        if degraded is not None and degraded not in self.degraded and len(self.degraded) < _MAX_DEGRADED:
            self.degraded.append(degraded)
        if self.records is not None:
            self.records.append(call.to_json())

    def add_lost(self, role: Role, charges: Sequence[Charge]) -> None:
        self._add(role, sum((charge.usage for charge in charges), Usage()), charges)
        if self.records is not None:
            self.lost.append({"role": role, "charges": [charge.to_json() for charge in charges], "failed": True})

    def _add(self, role: Role, usage: Usage, charges: Sequence[Charge]) -> None:
        self.usage[role] = self.usage.get(role, Usage()) + usage
        self.money[role] = self.money.get(role, 0.0) + sum(charge.money or 0.0 for charge in charges)

    @property
    def tokens(self) -> int:
        return sum(usage.prompt + usage.output for usage in self.usage.values())

    @property
    def spent(self) -> ChamberUsage:
        """The usage by chamber: every role except `quarantined` is the reasoner's."""
        executor, calls = self.usage.get("quarantined", Usage()), self.calls.get("quarantined", 0)
        tokens = executor.prompt + executor.output
        return ChamberUsage(self.tokens - tokens, tokens, sum(self.calls.values()) - calls, calls)

    def cost(self, prices: ChamberPrices | None = None) -> float:
        """What is known of the cost; by `prices`, where they price the chamber, and else as it was charged."""
        prices, cost = prices or ChamberPrices(), 0.0
        for role, usage in self.usage.items():
            price = prices.quarantined if role == "quarantined" else prices.privileged
            cost += self.money.get(role, 0.0) if price == FREE_PRICE else price.of(usage)
        return cost


@contextmanager
def open_ledger() -> Generator[Ledger]:
    """A ledger of every model call made inside, also by tasks started there; concurrent calls elsewhere do not count.

    Example:
        >>> with open_ledger() as ledger:
        ...     planned = await agent.plan(request)
        >>> ledger.spent.reasoner_tokens
    """
    ledger = Ledger(records=[])
    with charge_to(ledger):
        yield ledger


QuotaKind = Literal["tool", "model"]
QuotaGate = Callable[[QuotaKind, str], AbstractAsyncContextManager[None]]
"""Gives the slot of a tool or model, by its name."""

_QUOTA_GATE: ContextVar[QuotaGate | None] = ContextVar("bicameral-quotas", default=None)


@contextmanager
def use_quotas(gate: QuotaGate) -> Generator[None]:
    """Let every call inside wait at this gate."""
    token = _QUOTA_GATE.set(gate)
    try:
        yield
    finally:
        _QUOTA_GATE.reset(token)


# Shared by all calls: it has no state.
_NO_QUOTA: AbstractAsyncContextManager[None] = nullcontext()


def quota_slot(kind: QuotaKind, name: str) -> AbstractAsyncContextManager[None]:
    """Wait for a slot, and hold it inside the `async with`."""
    gate = _QUOTA_GATE.get()
    return _NO_QUOTA if gate is None else gate(kind, name)


def has_quotas() -> bool:
    """Whether a gate is installed."""
    return _QUOTA_GATE.get() is not None
