"""Charges, accounts and quotas: what model calls use, who gets the charge, and who is asked before a call.

A reply that came after a retry, from the second model of a cascade or from a hedged request costs more than its own
tokens. Every model that is really asked reports its own charge, so no cost is missed. An account gets each charge, is
asked before each call and can refuse it. Where a tool or model is shared (a server that takes ten calls a minute, a
model that answers two at a time), the workers that share it install a quota gate, at which each call waits for a free
slot. Without one, as in a single run, every call proceeds at once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import asdict, astuple, dataclass, field, fields
from operator import add
from typing import Any, Literal, get_args

from bicameral.limits._limits import BUDGET, Scope
from bicameral.limits._prices import FREE_PRICE, ChamberPrices
from bicameral.models import ModelReply, ModelRequest, Usage

PlanningRole = Literal["echo", "delta", "planning", "reasoning", "acting", "reflecting", "summarizing"]
"""The roles of the privileged chamber: those of a compiled plan, and those of the phases of a strategy."""
QuarantinedRole = Literal["quarantined", "validator"]
"""The roles of the quarantined chamber: reading untrusted text, and checking what was read."""
Role = PlanningRole | QuarantinedRole
QUARANTINED_ROLES: frozenset[str] = frozenset(get_args(QuarantinedRole))

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

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Charge:
        """The charge that `to_json` wrote."""
        usage = Usage(int(facts["prompt"]), int(facts["cached"]), int(facts["output"]))
        names = ("money", "ending", "role", "phase", "estimated")
        return cls(facts["model"], usage, facts["seconds"], **{name: facts[name] for name in names if name in facts})


@dataclass(frozen=True, slots=True, eq=False)
class PendingCall:
    """A call that is about to be made: the model, the role, and an estimate of its prompt tokens."""

    model: str
    role: str | None
    prompt_tokens: int
    has_price: bool
    is_real: bool = True
    """False for a reply from the cache, for which no model is asked."""


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One reply to a session: its role, the model, the request and the reply.

    `charges` has one entry for each model that was asked for this reply: retries, fallbacks and hedged requests
    included.
    """

    role: Role
    model: str
    request: ModelRequest
    reply: ModelReply
    seconds: float
    charges: tuple[Charge, ...] = ()

    @property
    def usage(self) -> Usage:
        """The tokens of all requests that were made for this reply."""
        return sum((charge.usage for charge in self.charges), Usage()) if self.charges else self.reply.usage

    def to_json(self) -> dict[str, Any]:
        """For the journal: the model, the route and the cost; no part of the texts."""
        route, degraded, asked = self.reply.route, self.reply.degraded, self.request
        return {
            "role": self.role,
            "model": self.model,
            "seconds": round(self.seconds, 6),
            "charges": [charge.to_json() for charge in self.charges],
            **({} if asked.temperature == 0 else {"temperature": asked.temperature, "seed": asked.seed}),
            **({} if route is None else {"route": route.to_json()}),
            **({} if degraded is None else {"degraded": degraded}),
        }


@dataclass(frozen=True, slots=True)
class ChamberUsage:
    """Model usage by chamber: the reasoner is the privileged one, the executor the quarantined one.

    Tokens are those read and those written, together.
    """

    reasoner_tokens: int = 0
    executor_tokens: int = 0
    reasoner_calls: int = 0
    executor_calls: int = 0

    @property
    def calls(self) -> int:
        """Of both chambers."""
        return self.reasoner_calls + self.executor_calls

    @property
    def tokens(self) -> int:
        """Of both chambers."""
        return self.reasoner_tokens + self.executor_tokens

    def __add__(self, other: ChamberUsage) -> ChamberUsage:
        return ChamberUsage(*map(add, astuple(self), astuple(other)))

    def to_json(self) -> dict[str, int]:
        return asdict(self)


@dataclass(slots=True, kw_only=True)
class LimitUsage:
    """How much was taken of each bound of a scope.

    `pending_tokens` are those of calls under way, which are as good as spent. `models` is the usage by chamber, where
    replies are counted.
    """

    rounds: int = 0
    calls: int = 0
    tool_calls: int = 0
    tokens: int = 0
    pending_tokens: int = 0
    money: float = 0.0
    seconds: float = 0.0
    models: ChamberUsage = field(default_factory=ChamberUsage)
    scope: Scope = BUDGET

    @classmethod
    def of_models(cls, models: ChamberUsage, scope: Scope, **taken: Any) -> LimitUsage:
        """The usage of models by chamber, and what else was `taken`."""
        return cls(calls=models.calls, tokens=models.tokens, models=models, scope=scope, **taken)

    def to_json(self) -> dict[str, Any]:
        """What was taken of each bound, and the usage by chamber."""
        digits = {"money": 9, "seconds": 3}
        taken = {bound: getattr(self, bound) for bound in self.scope.bounds if bound != "work"}
        taken |= {bound: round(taken[bound], digits[bound]) for bound in taken.keys() & digits.keys()}
        return {**taken, **self.models.to_json()}

    @classmethod
    def from_json(cls, facts: Mapping[str, Any], scope: Scope) -> LimitUsage:
        """The usage of models, and the money and time, that `to_json` wrote; rounds and calls are counted anew."""
        models = ChamberUsage(**{each.name: int(facts[each.name]) for each in fields(ChamberUsage)})
        return cls.of_models(models, scope, money=float(facts["money"]), seconds=float(facts["seconds"]))


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
        """The usage by chamber: every role outside the quarantine is the reasoner's."""
        read = [usage for role, usage in self.usage.items() if role in QUARANTINED_ROLES]
        calls = sum(count for role, count in self.calls.items() if role in QUARANTINED_ROLES)
        tokens = sum(usage.prompt + usage.output for usage in read)
        return ChamberUsage(self.tokens - tokens, tokens, sum(self.calls.values()) - calls, calls)

    def cost(self, prices: ChamberPrices | None = None) -> float:
        """What is known of the cost; by `prices`, where they price the chamber, and else as it was charged."""
        prices, cost = prices or ChamberPrices(), 0.0
        for role, usage in self.usage.items():
            price = prices.quarantined if role in QUARANTINED_ROLES else prices.privileged
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
